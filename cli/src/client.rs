//! One connection to a supervisor: handshake, then one request at a time.
//!
//! The supervisor is trusted more than a worker, but not blindly: frames are bounded, and a response without a request
//! ends the connection.

use crate::error::{CliError, exit};
use crate::hints;
use crate::paths::DATABASE;
use crate::target::DaemonTarget;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, setsockopt, socket, sockopt};
use nix::sys::time::{TimeVal, TimeValLike as _};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context as TaskContext, Waker};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::UnixStream;
use tokio::time::timeout;
use vm_system_protocol::codec::{self, CodecError, Decode, Encode};
use vm_system_protocol::control::frame::{self, HEADER_BYTES, WRITE_CHUNK_BYTES};
use vm_system_protocol::control::{
    CONTROL_PROTOCOL, ClientFrame, ClientHello, Op, OpError, Reply, ServerFrame, ServerHello,
};
use vm_system_protocol::limits::CONTROL_FRAME_BYTES;
use vm_system_protocol::model::Event;

/// Time within which a supervisor must send its hello.
const GREETING: Duration = Duration::from_secs(5);
/// Time within which the rest of a frame must arrive, and within which the supervisor must read a request.
const FRAME: Duration = Duration::from_secs(30);

/// A place where no supervisor is found, and why.
enum Absent<'a> {
    Nobody(&'a Path, io::ErrorKind),
    /// This folder of the path does not let this user in.
    Closed(&'a Path, &'a Path),
}

impl Absent<'_> {
    const fn path(&self) -> &Path {
        match self {
            Self::Nobody(path, _) | Self::Closed(path, _) => path,
        }
    }
}

impl std::fmt::Display for Absent<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (", self.path().display())?;
        match self {
            Self::Nobody(_, io::ErrorKind::ConnectionRefused) => f.write_str("nobody listens there")?,
            Self::Nobody(..) => f.write_str("there is none")?,
            Self::Closed(_, folder) => write!(f, "the folder {} does not let you in", folder.display())?,
        }
        f.write_str(")")
    }
}

/// The folder of a path that this user may not enter.
fn closed_folder(path: &Path) -> Option<&Path> {
    path.ancestors().skip(1).filter(|folder| is_closed(folder)).last()
}

/// Whether this user cannot use what is in a folder.
fn is_closed(folder: &Path) -> bool {
    std::fs::symlink_metadata(folder.join("."))
        .is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

/// Receives events as they arrive; an error ends the request.
pub(crate) type OnEvents<'a> = &'a mut dyn FnMut(Vec<Event>) -> Result<(), CliError>;

/// Why a request failed.
#[derive(Debug)]
pub(crate) enum CallError {
    /// The supervisor returned an error.
    Op(Box<OpError>),
    /// The connection broke; the verb may or may not have run.
    Lost(String),
    /// This process failed or gave up.
    Own(CliError),
}

/// A frame was not sent or received.
#[derive(Debug, thiserror::Error)]
enum ChannelError {
    #[error("the supervisor closed the connection")]
    Closed,
    #[error("stream: {0}")]
    Io(io::Error),
    #[error("a frame was incomplete after {0:?}")]
    Deadline(Duration),
    #[error(transparent)]
    Codec(#[from] CodecError),
}

impl From<io::Error> for ChannelError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::UnexpectedEof { Self::Closed } else { Self::Io(error) }
    }
}

/// One connection.
pub(crate) struct Connection {
    /// The path of a socket, or a URL.
    place: String,
    stream: Box<dyn ByteStream>,
    next_id: u32,
    /// Who listens at the socket, in our pid namespace: the daemon, or the service manager that made the socket for it.
    listener: Option<u32>,
}

/// The bytes of a connection: a socket's, or those of an HTTP connection after its upgrade.
pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

impl Connection {
    /// Connects to a daemon. The only place where a command does so.
    pub(crate) async fn open(target: &DaemonTarget) -> Result<Self, CliError> {
        match target {
            DaemonTarget::Sockets(places) => Self::open_first(places).await,
            DaemonTarget::Url(remote) => {
                let stream = remote.connect().await?;
                Self::greet(remote.url().to_owned(), stream).await
            }
            DaemonTarget::Conflict(message) => Err(CliError::usage(message)),
        }
    }

    /// Connects to the first of `places` where a supervisor listens. A folder that this user may not enter is no place of this user:
    /// nobody can know whether a supervisor listens there, and the next place is tried.
    async fn open_first(places: &[PathBuf]) -> Result<Self, CliError> {
        let mut absent = Vec::with_capacity(places.len());
        let mut denied = None;
        for path in places {
            match Self::connect(path).await {
                Ok(stream) => {
                    let listener = stream.peer_cred().ok().and_then(|peer| u32::try_from(peer.pid()?).ok());
                    let greeted = Self::greet(path.display().to_string(), Box::new(stream)).await?;
                    return Ok(Self { listener, ..greeted });
                }
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    match closed_folder(path) {
                        Some(folder) if places.len() > 1 => absent.push(Absent::Closed(path, folder)),
                        // Also the only place, which the user has named.
                        closed => denied = denied.or(Some((path, closed))),
                    }
                }
                Err(error) if is_absent(&error) => absent.push(Absent::Nobody(path, error.kind())),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let message = format!("{} accepts no connection", path.display());
                    return Err(CliError::new(exit::BUSY, message).with_hint(
                        "is the supervisor overloaded or stopped? try again, or look at its log",
                    ));
                }
                Err(error) => {
                    return Err(CliError::internal(format!("cannot connect to {}: {error}", path.display())));
                }
            }
        }
        Err(match denied {
            Some((path, closed)) => {
                let hint = match closed {
                    Some(folder) => {
                        let folder = folder.display();
                        format!(
                            "the folder {folder} does not let you in: `ls -ld {folder}` shows its owner and group"
                        )
                    }
                    None => "the socket's group may connect: `ls -l` shows it".to_owned(),
                };
                CliError::new(exit::NOT_PERMITTED, format!("no permission to connect to {}", path.display()))
                    .with_hint(hint)
            }
            None => no_daemon(&absent),
        })
    }

    async fn connect(path: &Path) -> io::Result<UnixStream> {
        let path = path.to_owned();
        let connected = tokio::task::spawn_blocking(move || connect_in_turn(&path)).await;
        let stream = connected.unwrap_or_else(|_| Err(io::ErrorKind::Interrupted.into()))?;
        stream.set_nonblocking(true)?;
        UnixStream::from_std(stream)
    }

    /// Who listens at the socket.
    pub(crate) const fn listener(&self) -> Option<u32> {
        self.listener
    }

    async fn greet(place: String, stream: Box<dyn ByteStream>) -> Result<Self, CliError> {
        let mut connection = Self { place, stream, next_id: 0, listener: None };
        let hello = ClientHello { protocol: CONTROL_PROTOCOL, version: env!("CARGO_PKG_VERSION").to_owned() };
        let answer = async {
            connection.send(&hello).await?;
            connection.receive::<ServerHello>(GREETING).await
        };
        let answer = timeout(GREETING, answer).await.map_err(|_| {
            CliError::new(exit::BUSY, format!("{} sent no hello", connection.place))
                .with_hint("is the supervisor overloaded or stopped? try again, or look at its log")
        })?;
        let answer = answer.map_err(|error| match error {
            ChannelError::Closed | ChannelError::Io(_) => {
                let message = format!("{} closed the connection before its hello", connection.place);
                CliError::new(exit::BUSY, message)
                    .with_hint("the supervisor is stopping, or has just exited: try again")
            }
            error => {
                let place = &connection.place;
                CliError::internal(format!("{place} does not speak the control protocol: {error}"))
            }
        })?;
        if answer.protocol != CONTROL_PROTOCOL {
            let message = format!(
                "the supervisor (version {}) uses control protocol {}, this client (version {}) {CONTROL_PROTOCOL}",
                answer.version,
                answer.protocol,
                env!("CARGO_PKG_VERSION"),
            );
            return Err(CliError::internal(message).with_hint("use the client of the supervisor's version"));
        }
        match answer.refusal {
            None => Ok(connection),
            Some(reason) => Err(CliError::new(
                exit::NOT_PERMITTED,
                format!("the supervisor at {} refuses: {reason}", connection.place),
            )),
        }
    }

    /// Whether the supervisor keeps this connection, which is not in use: one that was idle for long may be closed in favour of
    /// another client, or by a proxy.
    pub(crate) async fn is_open(&mut self) -> bool {
        // The runtime learns what has happened to the connection while its thread waited for the terminal.
        tokio::task::yield_now().await;
        let mut byte = [0];
        let mut context = TaskContext::from_waker(Waker::noop());
        let read = Pin::new(&mut self.stream).poll_read(&mut context, &mut ReadBuf::new(&mut byte));
        read.is_pending()
    }

    /// Runs one verb; an execution for which it waits may be cancelled when this process disconnects. After [`CallError::Lost`] and
    /// [`CallError::Own`] the connection must not be used again.
    pub(crate) async fn call(
        &mut self,
        (op, cancel_on_disconnect): (Op, bool),
        idempotency_key: Option<String>,
        mut on_events: impl FnMut(Vec<Event>) -> Result<(), CliError>,
    ) -> Result<Reply, CallError> {
        self.next_id = self.next_id.wrapping_add(1);
        let id = self.next_id;
        let request = ClientFrame::Request { id, idempotency_key, cancel_on_disconnect, op };
        match self.send(&request).await {
            Ok(()) => {}
            Err(ChannelError::Codec(error)) => {
                return Err(CallError::Own(CliError::usage(format!("the request is too large: {error}"))));
            }
            // The supervisor may have sent the reason before it closed.
            Err(error) => tracing::debug!(%error, "cannot send the request"),
        }
        loop {
            let frame = self.receive(FRAME).await.map_err(|error| self.lost(&error))?;
            match frame {
                ServerFrame::Events { id: of, events } if of == id => {
                    on_events(events).map_err(CallError::Own)?;
                }
                ServerFrame::Reply { id: of, result } if of == id => {
                    return result.map_err(CallError::Op);
                }
                ServerFrame::Events { .. } | ServerFrame::Reply { .. } => {
                    return Err(CallError::Lost("a response without a request".to_owned()));
                }
            }
        }
    }

    fn lost(&self, why: &ChannelError) -> CallError {
        // Which of the usual sockets it was does not help; a URL does.
        let is_socket = self.place.starts_with('/');
        CallError::Lost(if is_socket { why.to_string() } else { format!("{why} ({})", self.place) })
    }

    async fn send<T: Encode>(&mut self, value: &T) -> Result<(), ChannelError> {
        for chunk in frame::encode(value, CONTROL_FRAME_BYTES)?.chunks(WRITE_CHUNK_BYTES) {
            let written = timeout(FRAME, self.stream.write_all(chunk)).await;
            written.map_err(|_| ChannelError::Deadline(FRAME))??;
        }
        // A TLS connection keeps the last bytes until it is flushed.
        let flushed = timeout(FRAME, self.stream.flush()).await;
        flushed.map_err(|_| ChannelError::Deadline(FRAME))??;
        Ok(())
    }

    /// Waits for a frame's first byte without a deadline, then `limit` for the rest.
    async fn receive<T: Decode<()> + Encode>(&mut self, limit: Duration) -> Result<T, ChannelError> {
        let mut header = [0; HEADER_BYTES];
        self.stream.read_exact(&mut header[..1]).await?;
        let rest = async {
            self.stream.read_exact(&mut header[1..]).await?;
            let len = frame::value_len(header, CONTROL_FRAME_BYTES)?;
            let mut bytes = Vec::new();
            let read = (&mut self.stream).take(len as u64).read_to_end(&mut bytes).await?;
            if read < len { Err(ChannelError::Closed) } else { Ok(bytes) }
        };
        let bytes = timeout(limit, rest).await.map_err(|_| ChannelError::Deadline(limit))??;
        Ok(codec::decode(&bytes)?)
    }
}

/// Connects, waiting for a place in the listener's queue for as long as for a hello: without that the kernel refuses (EAGAIN)
/// whoever comes while another client has filled the queue.
fn connect_in_turn(path: &Path) -> io::Result<BlockingStream> {
    let socket = socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    let seconds = i64::try_from(GREETING.as_secs()).unwrap_or(i64::MAX);
    setsockopt(&socket, sockopt::SendTimeout, &TimeVal::seconds(seconds))?;
    let address = UnixAddr::new(path)?;
    while let Err(error) = connect(socket.as_raw_fd(), &address) {
        if error != nix::Error::EINTR {
            return Err(error.into());
        }
    }
    Ok(BlockingStream::from(socket))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused | io::ErrorKind::NotADirectory
    )
}

fn no_daemon(absent: &[Absent<'_>]) -> CliError {
    // A socket in a state directory that the command was not given: `serve` alone would use another one.
    let state_dir = match absent {
        [socket] if !hints::names_state_dir() => {
            socket.path().parent().filter(|folder| folder.join(DATABASE).is_file())
        }
        _ => None,
    };
    let places: Vec<_> = absent.iter().map(Absent::to_string).collect();
    let error = CliError::new(exit::NO_DAEMON, format!("no supervisor responds at {}", places.join(" or ")));
    match state_dir {
        Some(folder) => error.with_hint(format!(
            "its records are in {0}: start it again with `vm-system serve --detach --state-dir {0}`; `vm-system run` needs no daemon",
            hints::quoted(&folder.to_string_lossy())
        )),
        None => error.with_hint(
            "start one with `vm-system serve --detach`, or give its socket with --socket; `vm-system run` needs no daemon",
        ),
    }
}
