//! Subscriptions: a client is notified that the document of an execution has changed, and reads it again. In the older
//! generation of the protocol it subscribes to each document; in the newer one an open request names all of them. Documents
//! are polled, and each poll reads the store: their number is bounded for each owner, unchanged ones are polled less often,
//! and those of ended executions are not polled.

use super::{McpBackend, McpClient, views};
use rmcp::RoleServer;
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{Peer, SubscriptionSink};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::{CancellationToken, DropGuard};
use vm_system_ops::IdempotencyKey;
use vm_system_protocol::control::{ErrorCode, RunGet, Verb as _};
use vm_system_protocol::model::Run;
use vm_system_runtime::shares::{Holder, Share, ShareLimits, Shares};

/// Documents that one client watches at a time.
pub(super) const WATCHED: usize = 64;
/// Documents that all clients of one owner watch at a time.
pub(super) const WATCHED_BY_OWNER: usize = 256;
/// Interval between two polls of a document that has just changed: short enough for agents that wait for people.
const POLL: Duration = Duration::from_secs(1);
/// Longest interval between two polls of an unchanged document.
const POLL_MAX: Duration = Duration::from_secs(4);

/// Documents that all clients watch at a time.
const WATCHED_BY_ALL: usize = 4_096;

/// Shares of the watched documents; administrators have one like all others, because each document is polled.
pub(super) fn shares() -> Arc<Shares> {
    let limits = ShareLimits { most: WATCHED_BY_ALL, per_owner: WATCHED_BY_OWNER, reserved: 0 };
    Shares::new("watched documents", "watched", limits)
}

/// Has the share of what a client watches.
fn holder(client: &McpClient) -> Holder {
    let owner = client.caller.as_ref().map(|caller| caller.owner.clone());
    owner.map_or(Holder::UNKNOWN, Holder::Owner)
}

type Watched = Arc<Mutex<HashMap<String, DropGuard>>>;

/// The documents that one client of the older generation watches; their polls end when the client disconnects.
#[derive(Default)]
pub(super) struct Watches(Watched);

fn lock(watched: &Watched) -> std::sync::MutexGuard<'_, HashMap<String, DropGuard>> {
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watches {
    /// Watches a document from this state on; false if there is no slot for it.
    pub(super) fn add(
        &self,
        backend: Arc<dyn McpBackend>,
        (client, shares): (McpClient, &Arc<Shares>),
        uri: String,
        now: &Run,
        peer: Peer<RoleServer>,
    ) -> bool {
        // An ended execution never changes.
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
        let Ok(slot) = shares.take(&holder(&client)) else { return false };
        let end = CancellationToken::new();
        watched.insert(uri.clone(), end.clone().drop_guard());
        let document = Document::new(uri.clone(), Some(hash_of(now)), slot);
        // Weak: a strong reference would keep the polls after the client has disconnected.
        let all = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            let watching = watch(backend, client, vec![document], Subscriber::Peer(peer));
            if end.run_until_cancelled(watching).await.is_some()
                && let Some(all) = all.upgrade()
            {
                lock(&all).remove(&uri);
            }
        });
        true
    }

    /// Stops watching a document; does nothing if it is not watched.
    pub(super) fn remove(&self, uri: &str) {
        lock(&self.0).remove(uri);
    }
}

/// Notifies one request of the newer generation of changes until it ends; false if there are not enough slots.
pub(super) async fn notify_request(
    backend: Arc<dyn McpBackend>,
    (client, shares): (McpClient, &Arc<Shares>),
    uris: Vec<String>,
    sink: SubscriptionSink,
) -> bool {
    let documents = uris.into_iter().take(WATCHED);
    let documents = documents.map(|uri| Some(Document::new(uri, None, shares.take(&holder(&client)).ok()?)));
    let Some(documents) = documents.collect::<Option<Vec<_>>>() else { return false };
    watch(backend, client, documents, Subscriber::Request(sink)).await;
    true
}

/// The receiver of notifications.
enum Subscriber {
    Peer(Peer<RoleServer>),
    Request(SubscriptionSink),
}

impl Subscriber {
    /// False if the receiver has disconnected.
    async fn notify(&self, uri: &str) -> bool {
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
    /// Hash of the last state. None before the first poll, after which the client is notified in any case.
    last: Option<u64>,
    /// The time of the next poll, and the interval before it.
    next: Instant,
    pause: Duration,
    _slot: Share,
}

impl Document {
    fn new(uri: String, last: Option<u64>, slot: Share) -> Self {
        Self { uri, last, next: Instant::now(), pause: POLL, _slot: slot }
    }

    fn seen(&mut self, changed: bool) {
        self.pause = if changed { POLL } else { (2 * self.pause).min(POLL_MAX) };
        self.next = Instant::now() + self.pause;
    }
}

/// Polls the documents until all executions have ended, the receiver has disconnected, or the client has lost its rights.
async fn watch(
    backend: Arc<dyn McpBackend>,
    client: McpClient,
    mut documents: Vec<Document>,
    subscriber: Subscriber,
) {
    while let Some(next) = documents.iter().map(|document| document.next).min() {
        sleep_until(next).await;
        if subscriber.is_gone() {
            return;
        }
        for mut document in std::mem::take(&mut documents) {
            if document.next > Instant::now() {
                documents.push(document);
                continue;
            }
            let (state, stays) = match poll(&backend, &client, &document.uri).await {
                DocumentState::Present(now, stays) => (Some(now), stays),
                DocumentState::Gone => (None, false),
                DocumentState::Hidden => (document.last, true),
                DocumentState::Refused => return,
            };
            let changed = !stays || state != document.last;
            if changed && !subscriber.notify(&document.uri).await {
                return;
            }
            if stays {
                document.last = state;
                document.seen(changed);
                documents.push(document);
            }
        }
    }
    // The request stays open until its client ends it, even without further notifications.
    if let Subscriber::Request(_) = subscriber {
        std::future::pending::<()>().await;
    }
}

/// The result of one poll.
enum DocumentState {
    /// Hash of the state; whether the execution can still change.
    Present(u64, bool),
    /// The execution was deleted.
    Gone,
    /// The document cannot be read at the moment.
    Hidden,
    /// The client may no longer read it.
    Refused,
}

async fn poll(backend: &Arc<dyn McpBackend>, client: &McpClient, uri: &str) -> DocumentState {
    let Some(execution) = super::resources::execution_of(uri) else { return DocumentState::Gone };
    match backend.perform(client, RunGet { execution }.into(), IdempotencyKey::unique()).await {
        Ok(reply) => RunGet::reply_from(reply).map_or(DocumentState::Hidden, |run| {
            DocumentState::Present(hash_of(&run), !run.execution.status.is_final())
        }),
        Err(error) if error.code == ErrorCode::ExecutionNotFound => DocumentState::Gone,
        Err(error) if error.code == ErrorCode::NotPermitted => DocumentState::Refused,
        Err(_) => DocumentState::Hidden,
    }
}

fn hash_of(run: &Run) -> u64 {
    let mut hasher = DefaultHasher::new();
    serde_json::json!(views::ExecutionView::new(run)).to_string().hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::super::ToolSets;
    use super::{McpClient, WATCHED_BY_OWNER, holder, shares};
    use vm_system_ops::Caller;
    use vm_system_record::Owner;

    #[test]
    fn documents_that_the_clients_of_an_owner_watch_are_bounded() {
        let shares = shares();
        let client = |owner: &str, client: usize| McpClient {
            caller: Some(Caller { owner: Owner::new(owner), admin: true, api: "mcp" }),
            key: Some(format!("session {client}")),
            toolsets: ToolSets::default(),
            ..McpClient::default()
        };
        let taken = |owner: &str, number: usize| shares.take(&holder(&client(owner, number)));
        let slots: Vec<_> = (0..WATCHED_BY_OWNER).map(|number| taken("a", number)).collect();
        assert!(slots.iter().all(Result::is_ok));
        assert!(taken("a", 0).is_err());
        assert!(taken("b", 0).is_ok(), "other owners have their own slots");
    }
}
