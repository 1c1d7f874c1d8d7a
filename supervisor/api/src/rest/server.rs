//! Accepts connections, each served in a separate task, until the server is closed.

use super::auth::RestPeer;
use super::connection::{self, RestContext};
use super::lingering::{LINGERING, LingerBounds, linger};
use super::{App, RestOptions, routes, upgrade};
use crate::control::{Pace, ServerState};
use crate::keep_alive;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use vm_system_ops::VerbHandler;
use vm_system_runtime::shares::Shares;

/// Pause after an `accept` that failed for lack of descriptors or memory, which spares the log and the CPU.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Time for connections to end after the hang-up.
const HANG_UP: Duration = Duration::from_secs(1);

/// The listening sockets.
#[derive(Debug)]
pub struct Listeners {
    /// For users of this machine.
    pub unix: Vec<UnixListener>,
    /// For every host that can reach these addresses.
    pub tcp: Vec<TcpListener>,
}

impl Listeners {
    /// The TCP ports.
    pub fn ports(&self) -> Vec<u16> {
        self.tcp.iter().filter_map(|listener| Some(listener.local_addr().ok()?.port())).collect()
    }
}

/// Serves until [`ServerState::hang_up`].
pub async fn serve(
    listeners: Listeners,
    verbs: Arc<dyn VerbHandler>,
    options: RestOptions,
    state: ServerState,
) {
    let slots = Shares::new("HTTP connections", "http_connections", options.limits.connections);
    let mcp = super::mcp::mount(&verbs, &options, &state);
    let upgraded = upgrade::clients(&verbs, &options, &state);
    let app = Arc::new(App { verbs, options, mcp, upgraded, state: state.clone() });
    let routes = routes::service(Arc::clone(&app));
    let shared = RestContext { routes, app, lingering: Arc::new(Semaphore::new(LINGERING)) };
    let clients = TaskTracker::new();
    let loops = TaskTracker::new();
    for listener in listeners.unix {
        let unix = Accepting { shared: shared.clone(), slots: Arc::clone(&slots), clients: clients.clone() };
        loops.spawn(unix.run(listener));
    }
    for listener in listeners.tcp {
        let tcp = Accepting { shared: shared.clone(), slots: Arc::clone(&slots), clients: clients.clone() };
        loops.spawn(tcp.run(listener));
    }
    loops.close();
    loops.wait().await;
    state.hang_up.cancelled().await;
    clients.close();
    // The remaining connections are in the middle of a step; they end with the process.
    let _ = tokio::time::timeout(HANG_UP, clients.wait()).await;
}

/// A kind of listener.
trait Listener: Send + 'static {
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;
    fn accept(&self) -> impl Future<Output = io::Result<(Self::Stream, RestPeer)>> + Send;
    /// Sends a few bytes without waiting.
    fn send_now(stream: &Self::Stream, bytes: &[u8]);
}

impl Listener for UnixListener {
    type Stream = UnixStream;

    async fn accept(&self) -> io::Result<(UnixStream, RestPeer)> {
        let (stream, _) = UnixListener::accept(self).await?;
        let uid = stream.peer_cred().ok().map(|peer| peer.uid());
        Ok((stream, RestPeer::unix(uid)))
    }

    fn send_now(stream: &UnixStream, bytes: &[u8]) {
        // A client whose socket buffer is full is disconnected without a response.
        let _ = stream.try_write(bytes);
    }
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    async fn accept(&self) -> io::Result<(TcpStream, RestPeer)> {
        let (stream, client) = TcpListener::accept(self).await?;
        let server = stream.local_addr()?;
        stream.set_nodelay(true)?;
        keep_alive(&stream)?;
        let inode = nix::sys::stat::fstat(&stream)?.st_ino;
        Ok((stream, RestPeer::tcp(client, server, inode)))
    }

    fn send_now(stream: &TcpStream, bytes: &[u8]) {
        // As for the Unix socket.
        let _ = stream.try_write(bytes);
    }
}

/// The loop of one listener.
struct Accepting {
    shared: RestContext,
    slots: Arc<Shares>,
    clients: TaskTracker,
}

impl Accepting {
    async fn run<L: Listener>(self, listener: L) {
        let state = self.shared.app.state.clone();
        let mut pace = Pace::new();
        loop {
            let accepted = tokio::select! {
                () = state.closing.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    self.begin::<L>(stream, peer);
                    pace.wait().await;
                }
                Err(error) => self.pause(&error).await,
            }
        }
    }

    fn begin<L: Listener>(&self, stream: L::Stream, peer: RestPeer) {
        let holder = peer.holder(&self.shared.app.options.peers);
        match self.slots.take(&holder) {
            Ok(slot) => {
                slot.idle();
                let present = self.shared.app.state.clients.enter();
                let serving = connection::serve(self.shared.clone(), stream, peer, Arc::new(slot));
                self.clients.spawn(async move {
                    serving.await;
                    drop(present);
                });
            }
            Err(refusal) => {
                L::send_now(&stream, &connection::no_capacity(&refusal));
                let (shared, mut stream) = (self.shared.clone(), stream);
                self.clients.spawn(async move {
                    if stream.shutdown().await.is_err() {
                        return;
                    }
                    tokio::select! {
                        () = linger(&mut stream, &shared.lingering, &LingerBounds::REFUSED) => {}
                        () = shared.app.state.closing.cancelled() => {}
                    }
                });
            }
        }
    }

    async fn pause(&self, error: &io::Error) {
        if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::NotConnected) {
            return;
        }
        let evicted = self.slots.evict();
        tracing::warn!(%error, evicted, "cannot accept a connection");
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }
}
