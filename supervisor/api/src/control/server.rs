//! Accepts clients, gets their user from the kernel, and serves each in a separate task.

use super::connection::{self, ControlContext};
use super::frame::FrameError;
use super::{API, ControlLimits, PeerPolicy, Transport};
use interprocess::local_socket::tokio::{Listener, Stream};
use interprocess::local_socket::traits::StreamCommon as _;
use interprocess::local_socket::traits::tokio::Listener as _;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use vm_system_ops::{ApiRefusal, VerbHandler};
use vm_system_protocol::control::ErrorCode;
use vm_system_spawn::reactor::{self, StreamReader, StreamWriter};

/// Pause after an `accept` that failed for lack of descriptors or memory, which spares the log and the CPU.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Time for clients to read their queued replies after the hang-up.
const HANG_UP: Duration = Duration::from_secs(1);

/// The state that the listeners of all APIs share: the steps in which they are closed.
#[derive(Debug, Clone, Default)]
pub struct ServerState {
    /// First step: no more clients and requests are accepted.
    pub closing: CancellationToken,
    /// Second step: waits for the requests in progress, of all clients.
    pub requests: TaskTracker,
    /// The connected clients of all APIs.
    pub clients: ClientCount,
    /// Last step: connections are closed as soon as their queued replies are written.
    pub hang_up: CancellationToken,
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

/// Most concurrent refusals of clients above the limit; further clients are closed without a reason.
const REFUSALS: usize = 16;

/// Serves the control socket until [`ServerState::hang_up`].
pub async fn serve(
    listener: Listener,
    handler: Arc<dyn VerbHandler>,
    peers: PeerPolicy,
    limits: ControlLimits,
    state: ServerState,
) {
    let slots = Arc::new(Semaphore::new(limits.connections));
    let refusals = Arc::new(Semaphore::new(REFUSALS));
    let clients = TaskTracker::new();
    let shared = Arc::new(ControlContext { handler, limits, state: state.clone() });
    let mut number: u64 = 0;
    loop {
        let stream = tokio::select! {
            () = state.closing.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok(stream) => stream,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a client");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            },
        };
        number += 1;
        let slot = Arc::clone(&slots).try_acquire_owned().ok();
        // Refusals with a reason are bounded too.
        let refusal = match slot {
            Some(_) => None,
            None => match Arc::clone(&refusals).try_acquire_owned() {
                Ok(refusal) => Some(refusal),
                Err(_) => continue,
            },
        };
        let (shared, peers) = (Arc::clone(&shared), peers.clone());
        let present = state.clients.enter();
        clients.spawn(async move {
            client(&shared, &peers, stream, number, slot.is_some()).await;
            drop((slot, refusal, present));
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

async fn client(shared: &ControlContext, peers: &PeerPolicy, stream: Stream, number: u64, has_slot: bool) {
    let creds = stream.peer_creds().ok();
    let uid = creds.and_then(|creds| creds.euid());
    let pid = creds.and_then(|creds| creds.pid());
    let verdict = peers.judge(API, uid, Transport::Unix).await.and_then(|caller| {
        if has_slot {
            Ok(caller)
        } else {
            Err(format!("{} clients are connected already", shared.limits.connections))
        }
    });
    let ended = match verdict {
        Ok(caller) => {
            tracing::debug!(client = number, uid, pid, "client connected");
            match halves(stream) {
                Ok((reader, writer)) => connection::serve(shared, reader, writer, caller).await,
                Err(error) => Err(FrameError::Io(error).into()),
            }
        }
        Err(reason) => {
            if has_slot {
                let from = uid.map_or_else(String::new, |uid| format!("uid:{uid}"));
                let (what, code) = ("connect".to_owned(), ErrorCode::NotPermitted.as_str());
                shared.handler.refused(ApiRefusal { owner: None, api: API, what, from, code }).await;
            }
            Err(connection::refuse(stream, &shared.limits, reason).await)
        }
    };
    match ended {
        Ok(()) => tracing::debug!(client = number, "client left"),
        Err(reason) => tracing::warn!(client = number, uid, pid, %reason, "client disconnected"),
    }
}
