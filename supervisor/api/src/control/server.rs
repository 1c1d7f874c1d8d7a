//! Gets the user of each accepted client from the kernel, and serves it in a separate task.

use super::connection::{self, ControlContext, Disconnect};
use super::frame::FrameError;
use super::{API, ControlLimits, PeerPolicy, Transport};
use crate::accept::{self, Connections, StartingConnection};
use nix::sys::socket::{getsockopt, sockopt};
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use vm_system_ops::{ApiRefusal, VerbHandler};
use vm_system_protocol::control::ErrorCode;
use vm_system_runtime::client_memory::ClientMemory;
use vm_system_runtime::shares::{Holder, Share, ShareLimits, ShareRefusal, Shares};
use vm_system_spawn::reactor::{self, StreamReader, StreamWriter};

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
        Self::new(ShareLimits::at_most(STREAMS), ClientMemory::default())
    }
}

impl ServerState {
    /// A context with the limits of streams of events, and of memory.
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

/// Serves the control socket; the future resolves after [`ServerState::hang_up`]. Must be called inside the runtime.
pub fn serve(
    listener: UnixListener,
    handler: Arc<dyn VerbHandler>,
    peers: PeerPolicy,
    limits: ControlLimits,
    state: ServerState,
) -> io::Result<impl Future<Output = ()> + Send> {
    let slots = Shares::new("connections", "connections", limits.connections);
    let refusals = Shares::new("refusals", "connections", REFUSALS);
    let clients = TaskTracker::new();
    let shared = Arc::new(ControlContext { handler, limits, state: state.clone() });
    let connections =
        Clients { shared, peers, refusals, tasks: clients.clone(), accepted: AtomicU64::new(0) };
    let accepting = accept::start(listener, connections, slots, state.closing.clone())?;
    Ok(async move {
        accepting.await;
        state.hang_up.cancelled().await;
        clients.close();
        // The remaining clients do not read their replies, or wait for a request that did not end.
        let _ = tokio::time::timeout(HANG_UP, clients.wait()).await;
    })
}

/// Begins the tasks of the clients.
struct Clients {
    shared: Arc<ControlContext>,
    peers: PeerPolicy,
    refusals: Arc<Shares>,
    tasks: TaskTracker,
    accepted: AtomicU64,
}

impl Clients {
    fn spawn(&self, (stream, peer): (UnixStream, Peer), admission: Admission) {
        let (shared, peers) = (Arc::clone(&self.shared), self.peers.clone());
        let present = shared.state.clients.enter();
        let number = self.accepted.fetch_add(1, Ordering::Relaxed) + 1;
        self.tasks.spawn(async move {
            client(&shared, &peers, stream, number, (peer, admission)).await;
            drop(present);
        });
    }
}

impl Connections for Clients {
    type Listener = UnixListener;
    type Connection = (UnixStream, Peer);

    fn begin(&self, stream: UnixStream) -> io::Result<(Holder, (UnixStream, Peer))> {
        let peer = Peer::new(&stream);
        Ok((self.peers.holder(peer.uid), (stream, peer)))
    }

    fn serve(&self, connection: (UnixStream, Peer), slot: Share, starting: StartingConnection) {
        self.spawn(connection, Admission::Served { slot, starting });
    }

    fn refuse(&self, connection: (UnixStream, Peer), refusal: ShareRefusal, in_turn: bool) {
        // The client gets the reason after its hello; how many wait for one is bounded, too.
        let holder = self.peers.holder(connection.1.uid);
        if in_turn && let Ok(turn) = self.refusals.take(&holder) {
            self.spawn(connection, Admission::Refused { refusal, _turn: turn });
        }
    }
}

/// The stream as reader and writer of the runtime's reactor.
fn halves(stream: UnixStream) -> Result<(StreamReader, StreamWriter), Disconnect> {
    Ok(reactor::split(OwnedFd::from(stream)).map_err(FrameError::Io)?)
}

/// Admission of a client, with the share that counts it until it leaves.
enum Admission {
    Served { slot: Share, starting: StartingConnection },
    Refused { refusal: ShareRefusal, _turn: Share },
}

/// The client's user and process, as the kernel reports them.
struct Peer {
    uid: Option<u32>,
    pid: Option<i32>,
}

impl Peer {
    fn new(stream: &UnixStream) -> Self {
        let peer = getsockopt(stream, sockopt::PeerCredentials).ok();
        Self { uid: peer.map(|peer| peer.uid()), pid: peer.map(|peer| peer.pid()) }
    }
}

async fn client(
    shared: &ControlContext,
    peers: &PeerPolicy,
    stream: UnixStream,
    number: u64,
    (peer, admission): (Peer, Admission),
) {
    let Peer { uid, pid } = peer;
    let ended = match admission {
        Admission::Served { slot, starting } => {
            let slot = Arc::new(slot);
            tokio::select! {
                ended = identified(shared, peers, (stream, uid), (Arc::clone(&slot), starting)) => ended,
                () = slot.evicted() => Err(Disconnect::Evicted),
            }
        }
        Admission::Refused { refusal, _turn } => Err(refuse(stream, &shared.limits, refused(&refusal)).await),
    };
    match ended {
        Ok(()) => tracing::debug!(client = number, "client left"),
        Err(reason) if reason.is_usual() => {
            tracing::debug!(client = number, uid, pid, %reason, "client left");
        }
        Err(reason) => tracing::warn!(client = number, uid, pid, %reason, "client disconnected"),
    }
}

async fn refuse(stream: UnixStream, limits: &ControlLimits, reason: String) -> Disconnect {
    match halves(stream) {
        Ok((reader, writer)) => connection::refuse(reader, writer, limits, reason).await,
        Err(failed) => failed,
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
    (stream, uid): (UnixStream, Option<u32>),
    (slot, starting): (Arc<Share>, StartingConnection),
) -> Result<(), Disconnect> {
    let caller = match peers.judge(API, uid, Transport::Unix).await {
        Ok(caller) => caller,
        Err(reason) => {
            let from = uid.map_or_else(String::new, |uid| format!("uid:{uid}"));
            let (what, code) = ("connect".to_owned(), ErrorCode::NotPermitted.as_str());
            shared.handler.refused(ApiRefusal { owner: None, api: API, what, from, code }).await;
            return Err(refuse(stream, &shared.limits, reason).await);
        }
    };
    if let Err(refusal) = slot.assign(&caller.holder()) {
        return Err(refuse(stream, &shared.limits, refused(&refusal)).await);
    }
    let (reader, writer) = halves(stream)?;
    connection::serve(shared, (reader, writer), caller, (slot, Some(starting))).await
}
