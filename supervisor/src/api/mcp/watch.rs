//! Subscriptions: a client hears that the document of an execution has become another one, and reads it again. In the older
//! generation it asks for each document by itself; in the newer one a request that stays open names all of them.

use super::call::run_of;
use super::{Asker, Front, views};
use rmcp::RoleServer;
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{Peer, SubscriptionSink};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;
use vm_system_protocol::control::{DurableOp, ErrorCode, Op};
use vm_system_protocol::model::Run;

/// Documents that one client watches at a time.
pub(super) const WATCHED: usize = 64;
/// Between two looks at a document: agents that wait for people notice no difference.
const LOOK: Duration = Duration::from_secs(1);

/// What one client of the older generation watches; each ends with it.
#[derive(Default)]
pub(super) struct Watches(Mutex<HashMap<String, DropGuard>>);

impl Watches {
    /// Watches a document that looks like this now; false if the client watches as many as it may.
    pub(super) fn add(
        &self,
        front: Arc<dyn Front>,
        asker: Asker,
        uri: String,
        now: &Run,
        peer: Peer<RoleServer>,
    ) -> bool {
        let mut watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if watched.contains_key(&uri) {
            return true;
        }
        if watched.len() >= WATCHED {
            return false;
        }
        let end = CancellationToken::new();
        watched.insert(uri.clone(), end.clone().drop_guard());
        let document = Document { uri, last: Some(text_of(now)) };
        tokio::spawn(async move {
            end.run_until_cancelled(watch(front, asker, vec![document], Ear::Peer(peer))).await;
        });
        true
    }

    /// No longer. It is fine if it was not watched.
    pub(super) fn remove(&self, uri: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(uri);
    }
}

/// Tells one request of the newer generation about these documents until it ends.
pub(super) async fn tell(front: Arc<dyn Front>, asker: Asker, uris: Vec<String>, sink: SubscriptionSink) {
    let documents = uris.into_iter().take(WATCHED).map(|uri| Document { uri, last: None }).collect();
    watch(front, asker, documents, Ear::Request(sink)).await;
}

/// Who listens.
enum Ear {
    Peer(Peer<RoleServer>),
    Request(SubscriptionSink),
}

impl Ear {
    /// False when nobody listens any more.
    async fn hears(&self, uri: &str) -> bool {
        match self {
            Self::Peer(peer) => {
                peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await.is_ok()
            }
            Self::Request(sink) => sink.notify_resource_updated(uri).await.is_ok(),
        }
    }

    fn is_gone(&self) -> bool {
        matches!(self, Self::Peer(peer) if peer.is_transport_closed())
    }
}

struct Document {
    uri: String,
    /// How it looked last. None before the first look: what changed since the client asked is then told, perhaps once too often.
    last: Option<String>,
}

/// Looks at the documents for ever, or until nobody listens.
async fn watch(front: Arc<dyn Front>, asker: Asker, mut documents: Vec<Document>, ear: Ear) {
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if ear.is_gone() {
            return;
        }
        for document in &mut documents {
            let Some(now) = look(&front, &asker, &document.uri).await else { continue };
            if document.last.as_ref() == Some(&now) {
                continue;
            }
            document.last = Some(now);
            if !ear.hears(&document.uri).await {
                return;
            }
        }
    }
}

/// How a document looks now; none if that cannot be said at the moment.
async fn look(front: &Arc<dyn Front>, asker: &Asker, uri: &str) -> Option<String> {
    let execution = super::resources::execution_of(uri)?;
    let op = Op::Durable(DurableOp::RunGet { execution });
    match front.ask(asker, op, Uuid::new_v4().to_string()).await {
        Ok(reply) => run_of(reply).ok().map(|run| text_of(&run)),
        // It was there, and is forgotten.
        Err(error) if error.code == ErrorCode::ExecutionNotFound => Some(String::new()),
        Err(_) => None,
    }
}

fn text_of(run: &Run) -> String {
    serde_json::Value::Object(views::run(run)).to_string()
}
