//! Accepts clients, gets their user from the kernel, and serves each in a separate task.

use super::connection::{self, ControlContext, Disconnect};
use super::frame::FrameError;
use super::{API, ControlLimits, PeerPolicy, Transport};
use interprocess::local_socket::PeerCreds;
use interprocess::local_socket::tokio::{Listener, Stream};
use interprocess::local_socket::traits::StreamCommon as _;
use interprocess::local_socket::traits::tokio::Listener as _;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use vm_system_ops::{ApiRefusal, VerbHandler};
use vm_system_protocol::control::ErrorCode;
use vm_system_runtime::client_memory::ClientMemory;
use vm_system_runtime::shares::{Holder, Share, ShareLimits, ShareRefusal, Shares};
use vm_system_spawn::reactor::{self, StreamReader, StreamWriter};

/// Pause after an `accept` that failed for lack of descriptors or memory, which spares the log and the CPU.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Time for clients to read their queued replies after the hang-up.
const HANG_UP: Duration = Duration::from_secs(1);

/// The state that the listeners of all APIs share: the steps in which they are closed.
#[derive(Debug, Clone)]
pub struct ServerState {
    /// First step: no more clients and requests are accepted.
    pub closing: CancellationToken,
    /// Second step: waits for the requests in progress, of all clients.
    pub requests: TaskTracker,
    /// The connected clients of all APIs.
    pub clients: ClientCount,
    /// Streams of events of all APIs.
    pub streams: Arc<Shares>,
    /// Memory of requests and replies of all APIs.
    pub memory: ClientMemory,
    /// Last step: connections are closed as soon as their queued replies are written.
    pub hang_up: CancellationToken,
}

/// Streams of events at a time, unless the operator sets another number.
pub const STREAMS: usize = 2_048;

impl Default for ServerState {
    fn default() -> Self {
        Self::new(ShareLimits::of(STREAMS), ClientMemory::default())
    }
}

impl ServerState {
    /// With the limits of streams of events, and of memory.
    pub fn new(streams: ShareLimits, memory: ClientMemory) -> Self {
        Self {
            closing: CancellationToken::new(),
            requests: TaskTracker::new(),
            clients: ClientCount::default(),
            streams: Shares::new("streams of events", "streams", streams),
            memory,
            hang_up: CancellationToken::new(),
        }
    }
}

/// Bounds how often a listener accepts, so that a client that connects and closes in a loop leaves processor time to the others. Who
/// connects meanwhile waits in the listener's queue.
pub(crate) struct Pace {
    since: Instant,
    accepted: u32,
}

impl Pace {
    /// Connections in one interval.
    const BURST: u32 = 32;
    const INTERVAL: Duration = Duration::from_millis(10);

    pub(crate) fn new() -> Self {
        Self { since: Instant::now(), accepted: 0 }
    }

    /// To be called for each accepted connection.
    pub(crate) async fn wait(&mut self) {
        if let Some(until) = self.next(Instant::now()) {
            tokio::time::sleep_until(until).await;
        }
    }

    /// When the next connection may be accepted; `None`: now.
    fn next(&mut self, now: Instant) -> Option<Instant> {
        self.accepted += 1;
        if self.accepted < Self::BURST {
            return None;
        }
        let end = self.since + Self::INTERVAL;
        (self.since, self.accepted) = (end.max(now), 0);
        (end > now).then_some(end)
    }
}

/// Counts the connections, so that a task can wait until there are none.
#[derive(Debug, Clone)]
pub struct ClientCount(watch::Sender<usize>);

impl Default for ClientCount {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl ClientCount {
    /// Counts a connection until the returned value is dropped.
    pub fn enter(&self) -> CountedClient {
        self.0.send_modify(|count| *count += 1);
        CountedClient(self.0.clone())
    }

    /// The number of connections, as a watch channel.
    pub fn watch(&self) -> watch::Receiver<usize> {
        self.0.subscribe()
    }
}

/// Counts one connection until it is dropped.
#[derive(Debug)]
pub struct CountedClient(watch::Sender<usize>);

impl Drop for CountedClient {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}

/// Concurrent refusals of clients above the limit; further clients are closed without a reason.
const REFUSALS: ShareLimits = ShareLimits { most: 64, per_owner: 8, reserved: 8 };

/// Serves the control socket until [`ServerState::hang_up`].
pub async fn serve(
    listener: Listener,
    handler: Arc<dyn VerbHandler>,
    peers: PeerPolicy,
    limits: ControlLimits,
    state: ServerState,
) {
    let slots = Shares::new("connections", "connections", limits.connections);
    let refusals = Shares::new("refusals", "connections", REFUSALS);
    let clients = TaskTracker::new();
    let shared = Arc::new(ControlContext { handler, limits, state: state.clone() });
    let mut number: u64 = 0;
    let mut pace = Pace::new();
    loop {
        let stream = tokio::select! {
            () = state.closing.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok(stream) => stream,
                Err(error) => {
                    // Where descriptors are short, an idle client makes way.
                    let evicted = slots.evict();
                    tracing::warn!(%error, evicted, "cannot accept a client");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            },
        };
        pace.wait().await;
        number += 1;
        let peer = Peer::of(&stream, &peers);
        let slot = slots.take(&peer.holder);
        if let Ok(slot) = &slot {
            slot.idle();
        }
        // Refusals with a reason are bounded too.
        let refusal = match &slot {
            Ok(_) => None,
            Err(_) => match refusals.take(&peer.holder) {
                Ok(refusal) => Some(refusal),
                Err(_) => continue,
            },
        };
        let (shared, peers) = (Arc::clone(&shared), peers.clone());
        let present = state.clients.enter();
        clients.spawn(async move {
            client(&shared, &peers, stream, number, (peer, slot)).await;
            drop((refusal, present));
        });
    }
    drop(listener);
    state.hang_up.cancelled().await;
    clients.close();
    // The remaining clients do not read their replies, or wait for a request that did not end.
    let _ = tokio::time::timeout(HANG_UP, clients.wait()).await;
}

/// The stream as reader and writer of the runtime's reactor.
fn halves(stream: Stream) -> io::Result<(StreamReader, StreamWriter)> {
    let Stream::UdSocket(stream) = stream;
    reactor::split(OwnedFd::try_from(stream)?)
}

/// What the kernel reports of a client.
struct Peer {
    uid: Option<u32>,
    pid: Option<i32>,
    /// Has the share of its connection until it is identified.
    holder: Holder,
}

impl Peer {
    fn of(stream: &Stream, peers: &PeerPolicy) -> Self {
        let creds = stream.peer_creds().ok();
        let uid = creds.as_ref().and_then(PeerCreds::euid);
        let pid = creds.as_ref().and_then(PeerCreds::pid);
        Self { uid, pid, holder: peers.holder(uid) }
    }
}

async fn client(
    shared: &ControlContext,
    peers: &PeerPolicy,
    stream: Stream,
    number: u64,
    (peer, slot): (Peer, Result<Share, ShareRefusal>),
) {
    let Peer { uid, pid, .. } = peer;
    let ended = match slot {
        Ok(slot) => {
            let slot = Arc::new(slot);
            tokio::select! {
                ended = identified(shared, peers, stream, uid, Arc::clone(&slot)) => ended,
                () = slot.evicted() => Err(Disconnect::Evicted),
            }
        }
        Err(refusal) => Err(connection::refuse(stream, &shared.limits, refused(&refusal)).await),
    };
    match ended {
        Ok(()) => tracing::debug!(client = number, "client left"),
        Err(reason) if reason.is_usual() => {
            tracing::debug!(client = number, uid, pid, %reason, "client left");
        }
        Err(reason) => tracing::warn!(client = number, uid, pid, %reason, "client disconnected"),
    }
}

/// A refusal as the hello has it, whose text is all that a client gets.
fn refused(refusal: &ShareRefusal) -> String {
    format!("{refusal} ({})", refusal.hint())
}

/// Serves a client if its user may connect and has a share of the connections.
async fn identified(
    shared: &ControlContext,
    peers: &PeerPolicy,
    stream: Stream,
    uid: Option<u32>,
    slot: Arc<Share>,
) -> Result<(), Disconnect> {
    let caller = match peers.judge(API, uid, Transport::Unix).await {
        Ok(caller) => caller,
        Err(reason) => {
            let from = uid.map_or_else(String::new, |uid| format!("uid:{uid}"));
            let (what, code) = ("connect".to_owned(), ErrorCode::NotPermitted.as_str());
            shared.handler.refused(ApiRefusal { owner: None, api: API, what, from, code }).await;
            return Err(connection::refuse(stream, &shared.limits, reason).await);
        }
    };
    if let Err(refusal) = slot.assign(&caller.holder()) {
        return Err(connection::refuse(stream, &shared.limits, refused(&refusal)).await);
    }
    let (reader, writer) = halves(stream).map_err(FrameError::Io)?;
    connection::serve(shared, reader, writer, caller, slot).await
}

#[cfg(test)]
mod tests {
    use super::{Instant, Pace};

    #[test]
    fn accepting_waits_for_the_end_of_an_interval_after_its_connections_and_not_before() {
        let mut pace = Pace::new();
        let mut now = pace.since;
        for _ in 0..3 {
            let end = now + Pace::INTERVAL;
            let waits: Vec<Option<Instant>> = (0..Pace::BURST).map(|_| pace.next(now)).collect();
            assert_eq!(waits.iter().flatten().collect::<Vec<_>>(), [&end], "only the last one waits");
            assert_eq!(waits.last(), Some(&Some(end)));
            now = end;
        }
        let later = now + 2 * Pace::INTERVAL;
        assert!((0..Pace::BURST).all(|_| pace.next(later).is_none()), "they came slowly");
    }
}
