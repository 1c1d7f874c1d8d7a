//! Accepts the connections of a listener in a thread of its own, which no request and no other listener delays: whoever waits in the
//! kernel's queue of a listener keeps the clients of all users away from it.
//!
//! An accepted connection has its share at once, in place of an idle one of the same client if it must be, or is refused at once.
//! Then it waits for its turn to be served ([`turns`]). Knows nothing of what is sent on a connection.

mod turns;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{Backlog, listen};
use std::future::Future;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
pub(crate) use turns::StartingConnection;
use turns::{NextConnection, Turns};
use vm_system_runtime::shares::{Holder, Share, ShareRefusal, Shares};

/// Pause after an `accept` that failed for lack of descriptors or memory, which spares the log and the CPU.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Connections that are accepted before the first of them are served.
const BATCH: usize = 256;

/// A listening socket.
pub(crate) trait Listening: AsFd + Send + 'static {
    type Stream: Send + 'static;
    /// A connection whose calls do not block.
    fn accept(&self) -> io::Result<Self::Stream>;
    fn set_nonblocking(&self) -> io::Result<()>;
}

impl Listening for UnixListener {
    type Stream = UnixStream;

    fn accept(&self) -> io::Result<UnixStream> {
        let (stream, _) = UnixListener::accept(self)?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }

    fn set_nonblocking(&self) -> io::Result<()> {
        UnixListener::set_nonblocking(self, true)
    }
}

impl Listening for TcpListener {
    type Stream = TcpStream;

    fn accept(&self) -> io::Result<TcpStream> {
        let (stream, _) = TcpListener::accept(self)?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }

    fn set_nonblocking(&self) -> io::Result<()> {
        TcpListener::set_nonblocking(self, true)
    }
}

/// The connections of one API. Its functions are called in the listener's thread, inside the runtime, and must not block.
pub(crate) trait Connections: Send + 'static {
    type Listener: Listening;
    type Connection: Send + 'static;
    /// The client's holder until it is identified; an error ends this connection alone.
    fn begin(&self, stream: <Self::Listener as Listening>::Stream) -> io::Result<(Holder, Self::Connection)>;
    fn serve(&self, connection: Self::Connection, share: Share, starting: StartingConnection);
    /// A connection that has no share. `in_turn`: it may cost as much as one that is served.
    fn refuse(&self, connection: Self::Connection, refusal: ShareRefusal, in_turn: bool);
}

/// Starts to accept; the future resolves when that has ended, after `closing`. Must be called inside the runtime.
pub(crate) fn start<C: Connections>(
    listener: C::Listener,
    connections: C,
    shares: Arc<Shares>,
    closing: CancellationToken,
) -> io::Result<impl Future<Output = ()> + Send + use<C>> {
    listener.set_nonblocking()?;
    // As many as the machine permits (net.core.somaxconn), also if a service manager has chosen fewer.
    listen(&listener, Backlog::MAXALLOWABLE)?;
    let (stop, stopped) = UnixStream::pair()?;
    let (ended, thread_end) = oneshot::channel::<()>();
    let runtime = Handle::current();
    let acceptor = Acceptor { listener, connections, shares, turns: Turns::new(Instant::now()) };
    std::thread::Builder::new().name("accept".to_owned()).spawn(move || {
        let _inside = runtime.enter();
        acceptor.run(&stopped);
        drop(ended);
    })?;
    Ok(async move {
        closing.cancelled().await;
        drop(stop);
        let _ = thread_end.await;
    })
}

struct Acceptor<C: Connections> {
    listener: C::Listener,
    connections: C,
    shares: Arc<Shares>,
    turns: Turns<C::Connection>,
}

impl<C: Connections> Acceptor<C> {
    /// Accepts until the other end of `stopped` is closed.
    fn run(mut self, stopped: &UnixStream) {
        loop {
            let pause = self.turns.until_next(Instant::now());
            let Ok([is_stopped, has_clients]) = readable([stopped.as_fd(), self.listener.as_fd()], pause)
            else {
                // Without memory for the call.
                std::thread::sleep(ACCEPT_PAUSE);
                continue;
            };
            if is_stopped {
                return;
            }
            if has_clients && let Err(error) = self.accept_all() {
                // Where descriptors are short, an idle client makes way.
                let evicted = self.shares.evict();
                tracing::warn!(%error, evicted, "cannot accept a connection");
                self.turns.close_evicted();
                if readable([stopped.as_fd()], Some(ACCEPT_PAUSE)).is_ok_and(|[is_stopped]| is_stopped) {
                    return;
                }
            }
            let now = Instant::now();
            self.turns.begin(now);
            while let Some(NextConnection { connection, share, starting }) = self.turns.next(now) {
                self.connections.serve(connection, share, starting);
            }
        }
    }

    /// Accepts all that wait, or many of them. An error if there is no place for another one.
    fn accept_all(&mut self) -> io::Result<()> {
        self.turns.begin(Instant::now());
        for _ in 0..BATCH {
            match self.listener.accept() {
                Ok(stream) => self.arrived(stream),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if concerns_one_connection(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn arrived(&mut self, stream: <C::Listener as Listening>::Stream) {
        let (holder, connection) = match self.connections.begin(stream) {
            Ok(begun) => begun,
            Err(error) => return tracing::debug!(%error, "a connection failed at its start"),
        };
        // Connections that made way for the last ones are not counted among those that leave.
        self.turns.close_evicted_of(&holder);
        if self.shares.is_full_for(&holder)
            && let Some(share) = self.turns.replace_oldest(&holder)
        {
            // A client that connects faster than it is served: the cost of each further connection is that of closing one.
            share.idle();
            return self.turns.push(holder, connection, share);
        }
        match self.shares.take(&holder) {
            Ok(share) => {
                share.idle();
                self.turns.push(holder, connection, share);
            }
            Err(refusal) => {
                let in_turn = self.turns.spend(&holder);
                self.connections.refuse(connection, refusal, in_turn);
            }
        }
    }
}

/// Which of these can be read, as soon as one can be or the time is over.
fn readable<const N: usize>(
    files: [std::os::fd::BorrowedFd<'_>; N],
    time: Option<Duration>,
) -> nix::Result<[bool; N]> {
    // Rounded up: without that the last millisecond would be a loop.
    let millis = |time: Duration| i32::try_from(time.as_millis() + 1).unwrap_or(i32::MAX);
    let timeout = time
        .map_or(PollTimeout::NONE, |time| PollTimeout::try_from(millis(time)).unwrap_or(PollTimeout::MAX));
    let mut polled = files.map(|file| PollFd::new(file, PollFlags::POLLIN));
    match poll(&mut polled, timeout) {
        Ok(_) | Err(Errno::EINTR) => Ok(polled.map(|file| file.any().unwrap_or(true))),
        Err(error) => Err(error),
    }
}

/// Whether `accept` reports the failure of a connection that has just ended (accept(2), "Error handling").
fn concerns_one_connection(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw);
    errno.is_some_and(|errno| {
        matches!(
            errno,
            Errno::EINTR
                | Errno::ECONNABORTED
                | Errno::ENOTCONN
                | Errno::EPERM
                | Errno::EPROTO
                | Errno::ENETDOWN
                | Errno::ENETUNREACH
                | Errno::EHOSTDOWN
                | Errno::EHOSTUNREACH
                | Errno::ENONET
                | Errno::ENOPROTOOPT
                | Errno::EOPNOTSUPP
        )
    })
}
