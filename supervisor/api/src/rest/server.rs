//! Identifies the client of each accepted connection as far as the kernel does, and serves it in a separate task.

use super::auth::RestPeer;
use super::connection::{self, RestContext};
use super::half_closed::ClientStream;
use super::lingering::{LINGERING, LingerBounds, linger};
use super::{App, RestOptions, routes, upgrade};
use crate::accept::{self, Connections, Listening, StartingConnection};
use crate::control::ServerState;
use crate::keep_alive;
use nix::sys::socket::{getsockopt, sockopt};
use std::future::Future;
use std::io::{self, Write as _};
use std::marker::PhantomData;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use vm_system_ops::VerbHandler;
use vm_system_runtime::shares::{Holder, Share, ShareRefusal, Shares};
use vm_system_store::BoxFuture;

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

/// Serves the listeners; the future resolves after [`ServerState::hang_up`]. Must be called inside the runtime.
pub fn serve(
    listeners: Listeners,
    verbs: Arc<dyn VerbHandler>,
    options: RestOptions,
    state: ServerState,
) -> io::Result<impl Future<Output = ()> + Send> {
    let slots = Shares::new("HTTP connections", "http_connections", options.limits.connections);
    let mcp = super::mcp::mount(&verbs, &options, &state);
    let upgraded = upgrade::clients(&verbs, &options, &state);
    let app = Arc::new(App { verbs, options, mcp, upgraded, state: state.clone() });
    let routes = routes::service(Arc::clone(&app));
    let shared = RestContext { routes, app, lingering: Arc::new(Semaphore::new(LINGERING)) };
    let clients = TaskTracker::new();
    let mut accepting: Vec<BoxFuture<'static, ()>> = Vec::new();
    for listener in listeners.unix {
        let unix = Clients { shared: shared.clone(), tasks: clients.clone(), listener: PhantomData };
        let slots = Arc::clone(&slots);
        accepting.push(Box::pin(accept::start::<Clients<UnixListener>>(
            listener,
            unix,
            slots,
            state.closing.clone(),
        )?));
    }
    for listener in listeners.tcp {
        let tcp = Clients { shared: shared.clone(), tasks: clients.clone(), listener: PhantomData };
        let slots = Arc::clone(&slots);
        accepting.push(Box::pin(accept::start::<Clients<TcpListener>>(
            listener,
            tcp,
            slots,
            state.closing.clone(),
        )?));
    }
    Ok(async move {
        for end in accepting {
            end.await;
        }
        state.hang_up.cancelled().await;
        clients.close();
        // The remaining connections are in the middle of a step; they end with the process.
        let _ = tokio::time::timeout(HANG_UP, clients.wait()).await;
    })
}

/// A kind of listener.
trait HttpListener: Listening + Sync {
    type Served: ClientStream;
    fn peer(stream: &Self::Stream) -> io::Result<RestPeer>;
    /// Sends a few bytes without waiting, and then the end.
    fn send_last(stream: &Self::Stream, bytes: &[u8]) -> io::Result<()>;
    /// The stream in the runtime's reactor.
    fn register(stream: Self::Stream) -> io::Result<Self::Served>;
}

impl HttpListener for UnixListener {
    type Served = tokio::net::UnixStream;

    fn peer(stream: &UnixStream) -> io::Result<RestPeer> {
        let peer = getsockopt(stream, sockopt::PeerCredentials).ok();
        Ok(RestPeer::unix(peer.map(|peer| peer.uid())))
    }

    fn send_last(mut stream: &UnixStream, bytes: &[u8]) -> io::Result<()> {
        stream.write_all(bytes)?;
        stream.shutdown(Shutdown::Write)
    }

    fn register(stream: UnixStream) -> io::Result<tokio::net::UnixStream> {
        tokio::net::UnixStream::from_std(stream)
    }
}

impl HttpListener for TcpListener {
    type Served = tokio::net::TcpStream;

    fn peer(stream: &TcpStream) -> io::Result<RestPeer> {
        let (client, server) = (stream.peer_addr()?, stream.local_addr()?);
        stream.set_nodelay(true)?;
        keep_alive(stream)?;
        let inode = nix::sys::stat::fstat(stream)?.st_ino;
        Ok(RestPeer::tcp(client, server, inode))
    }

    fn send_last(mut stream: &TcpStream, bytes: &[u8]) -> io::Result<()> {
        stream.write_all(bytes)?;
        stream.shutdown(Shutdown::Write)
    }

    fn register(stream: TcpStream) -> io::Result<tokio::net::TcpStream> {
        tokio::net::TcpStream::from_std(stream)
    }
}

/// Begins the tasks of one listener's connections.
struct Clients<L> {
    shared: RestContext,
    tasks: TaskTracker,
    listener: PhantomData<L>,
}

impl<L: HttpListener> Connections for Clients<L> {
    type Listener = L;
    type Connection = (L::Stream, RestPeer);

    fn begin(&self, stream: L::Stream) -> io::Result<(Holder, (L::Stream, RestPeer))> {
        let peer = L::peer(&stream)?;
        Ok((peer.holder(&self.shared.app.options.peers), (stream, peer)))
    }

    fn serve(&self, (stream, peer): (L::Stream, RestPeer), slot: Share, starting: StartingConnection) {
        match L::register(stream) {
            Ok(stream) => {
                let present = self.shared.app.state.clients.enter();
                let serving =
                    connection::serve(self.shared.clone(), stream, peer, (Arc::new(slot), starting));
                self.tasks.spawn(async move {
                    serving.await;
                    drop(present);
                });
            }
            Err(error) => tracing::warn!(%error, "a connection cannot be served"),
        }
    }

    fn refuse(&self, (stream, _): (L::Stream, RestPeer), refusal: ShareRefusal, in_turn: bool) {
        // A client whose socket buffer is full is disconnected without a response.
        let sent = L::send_last(&stream, &connection::no_capacity(&refusal));
        if sent.is_err() || !in_turn {
            return;
        }
        let Ok(mut stream) = L::register(stream) else { return };
        let shared = self.shared.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = linger(&mut stream, &shared.lingering, &LingerBounds::REFUSED) => {}
                () = shared.app.state.closing.cancelled() => {}
            }
        });
    }
}
