//! Subscriptions: a client hears that the document of an execution has become another one, and reads it again. In the older
//! generation it asks for each document by itself; in the newer one a request that stays open names all of them. Looking at a
//! document costs a look at the store: an owner has only so many, what does not change is looked at more rarely, and an execution
//! that has ended no more.

use super::call::run_of;
use super::{Asker, Front, views};
use rmcp::RoleServer;
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{Peer, SubscriptionSink};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;
use vm_system_protocol::control::{DurableOp, ErrorCode, Op};
use vm_system_protocol::model::Run;
use vm_system_record::Owner;

/// Documents that one client watches at a time.
pub(super) const WATCHED: usize = 64;
/// Documents that all clients of one owner watch at a time.
pub(super) const WATCHED_BY_OWNER: usize = 256;
/// Between two looks at a document that has just changed: agents that wait for people notice no difference.
const LOOK: Duration = Duration::from_secs(1);
/// Between two looks at one that has not changed for long.
const LOOK_MAX: Duration = Duration::from_secs(4);

/// How many documents the clients of each owner watch.
#[derive(Default)]
pub(super) struct Shares(Mutex<HashMap<Option<Owner>, usize>>);

/// A place for one document.
struct Place {
    shares: Arc<Shares>,
    owner: Option<Owner>,
}

impl Shares {
    /// None if this owner's clients watch as many as they may.
    fn place(self: &Arc<Self>, asker: &Asker) -> Option<Place> {
        let owner = asker.caller.as_ref().map(|caller| caller.owner.clone());
        let mut shares = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let share = shares.entry(owner.clone()).or_default();
        if *share >= WATCHED_BY_OWNER {
            return None;
        }
        *share += 1;
        Some(Place { shares: Arc::clone(self), owner })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut shares = self.shares.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = shares.get_mut(&self.owner) {
            *share -= 1;
            if *share == 0 {
                shares.remove(&self.owner);
            }
        }
    }
}

type Watched = Arc<Mutex<HashMap<String, DropGuard>>>;

/// What one client of the older generation watches; each ends with it.
#[derive(Default)]
pub(super) struct Watches(Watched);

fn lock(watched: &Watched) -> std::sync::MutexGuard<'_, HashMap<String, DropGuard>> {
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watches {
    /// Watches a document that looks like this now; false if there is no place for it.
    pub(super) fn add(
        &self,
        front: Arc<dyn Front>,
        (asker, shares): (Asker, &Arc<Shares>),
        uri: String,
        now: &Run,
        peer: Peer<RoleServer>,
    ) -> bool {
        // It never changes again.
        if now.execution.status.is_final() {
            return true;
        }
        let mut watched = lock(&self.0);
        if watched.contains_key(&uri) {
            return true;
        }
        if watched.len() >= WATCHED {
            return false;
        }
        let Some(place) = shares.place(&asker) else { return false };
        let end = CancellationToken::new();
        watched.insert(uri.clone(), end.clone().drop_guard());
        let document = Document::new(uri.clone(), Some(hash_of(now)), place);
        // Weakly: what the client watches ends with it.
        let all = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            let watching = watch(front, asker, vec![document], Ear::Peer(peer));
            if end.run_until_cancelled(watching).await.is_some()
                && let Some(all) = all.upgrade()
            {
                lock(&all).remove(&uri);
            }
        });
        true
    }

    /// No longer. It is fine if it was not watched.
    pub(super) fn remove(&self, uri: &str) {
        lock(&self.0).remove(uri);
    }
}

/// Tells one request of the newer generation about these documents until it ends; false if there is no place for all of them.
pub(super) async fn tell(
    front: Arc<dyn Front>,
    (asker, shares): (Asker, &Arc<Shares>),
    uris: Vec<String>,
    sink: SubscriptionSink,
) -> bool {
    let documents = uris.into_iter().take(WATCHED);
    let documents = documents.map(|uri| Some(Document::new(uri, None, shares.place(&asker)?)));
    let Some(documents) = documents.collect::<Option<Vec<_>>>() else { return false };
    watch(front, asker, documents, Ear::Request(sink)).await;
    true
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
    last: Option<u64>,
    /// When it is looked at again, and how long after the last look that is.
    next: Instant,
    pause: Duration,
    _place: Place,
}

impl Document {
    fn new(uri: String, last: Option<u64>, place: Place) -> Self {
        Self { uri, last, next: Instant::now(), pause: LOOK, _place: place }
    }

    fn seen(&mut self, changed: bool) {
        self.pause = if changed { LOOK } else { (2 * self.pause).min(LOOK_MAX) };
        self.next = Instant::now() + self.pause;
    }
}

/// Looks at the documents until none of them changes any more, nobody listens, or the client may no longer ask.
async fn watch(front: Arc<dyn Front>, asker: Asker, mut documents: Vec<Document>, ear: Ear) {
    while let Some(next) = documents.iter().map(|document| document.next).min() {
        sleep_until(next).await;
        if ear.is_gone() {
            return;
        }
        for mut document in std::mem::take(&mut documents) {
            if document.next > Instant::now() {
                documents.push(document);
                continue;
            }
            let (looks, stays) = match look(&front, &asker, &document.uri).await {
                Sight::Looks(now, stays) => (Some(now), stays),
                Sight::Gone => (None, false),
                Sight::Hidden => (document.last, true),
                Sight::Refused => return,
            };
            let changed = !stays || looks != document.last;
            if changed && !ear.hears(&document.uri).await {
                return;
            }
            if stays {
                document.last = looks;
                document.seen(changed);
                documents.push(document);
            }
        }
    }
    // A request goes on until its client ends it, though there is nothing more to tell.
    if let Ear::Request(_) = ear {
        std::future::pending::<()>().await;
    }
}

/// How a document looks now.
enum Sight {
    /// Like this; whether it may become another one.
    Looks(u64, bool),
    /// It was there, and is forgotten.
    Gone,
    /// That cannot be said at the moment.
    Hidden,
    /// This client may no longer ask.
    Refused,
}

async fn look(front: &Arc<dyn Front>, asker: &Asker, uri: &str) -> Sight {
    let Some(execution) = super::resources::execution_of(uri) else { return Sight::Gone };
    let op = Op::Durable(DurableOp::RunGet { execution });
    match front.ask(asker, op, Uuid::new_v4().to_string()).await {
        Ok(reply) => run_of(reply)
            .map_or(Sight::Hidden, |run| Sight::Looks(hash_of(&run), !run.execution.status.is_final())),
        Err(error) if error.code == ErrorCode::ExecutionNotFound => Sight::Gone,
        Err(error) if error.code == ErrorCode::NotPermitted => Sight::Refused,
        Err(_) => Sight::Hidden,
    }
}

fn hash_of(run: &Run) -> u64 {
    let mut hasher = DefaultHasher::new();
    serde_json::json!(views::ExecutionView::of(run)).to_string().hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::{Asker, Shares, WATCHED_BY_OWNER};
    use std::sync::Arc;
    use vm_system_ops::Caller;
    use vm_system_record::Owner;

    #[test]
    fn all_clients_of_an_owner_watch_only_so_many_documents_and_give_their_places_back() {
        let shares = Arc::new(Shares::default());
        let asker = |owner: &str, client: usize| Asker {
            caller: Some(Caller { owner: Owner::new(owner), admin: false, api: "mcp" }),
            client: Some(format!("session {client}")),
        };
        let mut places: Vec<_> = (0..WATCHED_BY_OWNER).map(|n| shares.place(&asker("a", n))).collect();
        assert!(places.iter().all(Option::is_some));
        assert!(shares.place(&asker("a", 0)).is_none());
        assert!(shares.place(&asker("b", 0)).is_some(), "others have places of their own");
        places.pop();
        assert!(shares.place(&asker("a", 0)).is_some());
        drop(places);
        assert!(shares.0.lock().expect("nobody failed").is_empty(), "nothing is kept of who watches nothing");
    }
}
