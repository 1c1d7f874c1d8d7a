//! Reports the daemon's state to a service manager, and gives it descriptors: datagrams to `$NOTIFY_SOCKET` (`sd_notify(3)`). A daemon
//! that gives up root's rights connects before: its user may not reach a socket of root. By hand for that reason: `sd-notify` connects for
//! each message, and waits where the queue is full.

use super::lifeline::has_hung_up;
use nix::sys::socket::{
    AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, UnixAddr, connect as connect_socket,
    sendmsg, socket,
};
use nix::sys::time::TimeValLike as _;
use nix::time::{ClockId, clock_gettime};
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd as _, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::OnceLock;
use std::time::Duration;

/// Connected by root.
static CONNECTED: OnceLock<OwnedFd> = OnceLock::new();

/// The states that are reported to a service manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Clients can connect.
    Ready,
    /// Settings are read again; `READY=1` follows.
    Reloading,
    /// The daemon is stopping.
    Stopping,
    /// The daemon works.
    Watchdog,
}

impl State {
    fn text(self) -> Cow<'static, str> {
        match self {
            Self::Ready => "READY=1".into(),
            Self::Reloading => format!("RELOADING=1\nMONOTONIC_USEC={}", monotonic_us()).into(),
            Self::Stopping => "STOPPING=1".into(),
            Self::Watchdog => "WATCHDOG=1".into(),
        }
    }
}

/// The service manager compares it with the time of its request (`Type=notify-reload`).
fn monotonic_us() -> i64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |now| now.num_microseconds())
}

fn manager() -> Option<OsString> {
    std::env::var_os("NOTIFY_SOCKET").filter(|path| !path.is_empty())
}

/// Connects to `$NOTIFY_SOCKET` while this process is root. A failure shows at the first report.
pub(super) fn connect() {
    let connected = manager().and_then(|path| connect_to(&path).ok());
    if let Some(socket) = connected {
        // Called once.
        let _ = CONNECTED.set(socket);
    }
}

/// Sends the state if `$NOTIFY_SOCKET` is set. A failure is only logged.
pub(super) fn notify(state: State) {
    let text = state.text();
    if let Err(error) = send(&Notification { text: &text, fds: &[] }) {
        // A starter that waited only for readiness has gone.
        let has_gone = matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused);
        if has_gone && state != State::Ready {
            tracing::debug!(%error, state = %text, "nobody is notified");
            return;
        }
        tracing::warn!(%error, state = %text, "cannot notify the service manager");
    }
}

/// One datagram.
pub(super) struct Notification<'a> {
    pub(super) text: &'a str,
    pub(super) fds: &'a [BorrowedFd<'a>],
}

/// Sends a message; false if there is no service manager.
pub(super) fn send(message: &Notification<'_>) -> io::Result<bool> {
    let Some(path) = manager() else { return Ok(false) };
    match CONNECTED.get() {
        // Another socket may have its place.
        Some(socket) => send_by(socket, message).or_else(|_| send_to(&path, message))?,
        None => send_to(&path, message)?,
    }
    Ok(true)
}

/// Waits until the service manager has processed all earlier messages (`BARRIER=1`). Blocks.
pub(super) fn barrier(patience: Duration) -> io::Result<()> {
    let (reading, writing) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    send(&Notification { text: "BARRIER=1", fds: &[writing.as_fd()] })?;
    drop(writing);
    if has_hung_up(&reading, patience)? { Ok(()) } else { Err(io::ErrorKind::TimedOut.into()) }
}

fn send_to(path: &OsStr, message: &Notification<'_>) -> io::Result<()> {
    send_by(&connect_to(path)?, message)
}

fn connect_to(path: &OsStr) -> io::Result<OwnedFd> {
    let address = match path.as_bytes().split_first() {
        Some((b'@', name)) => UnixAddr::new_abstract(name)?,
        _ => UnixAddr::new(path)?,
    };
    // A full queue must not block the supervisor.
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Unix, SockType::Datagram, flags, None)?;
    connect_socket(socket.as_raw_fd(), &address)?;
    Ok(socket)
}

fn send_by(socket: &OwnedFd, message: &Notification<'_>) -> io::Result<()> {
    let fds: Vec<RawFd> = message.fds.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = if fds.is_empty() { Vec::new() } else { vec![ControlMessage::ScmRights(&fds)] };
    let text = [IoSlice::new(message.text.as_bytes())];
    sendmsg::<UnixAddr>(socket.as_raw_fd(), &text, &rights, MsgFlags::MSG_NOSIGNAL, None)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::net::{SocketAddr, UnixDatagram};

    #[test]
    fn the_manager_gets_one_datagram_by_path_or_abstract_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let by_path = UnixDatagram::bind(&path).unwrap();
        let name = format!("vm-system-test-{}", std::process::id());
        let abstract_address = SocketAddr::from_abstract_name(name.as_bytes()).unwrap();
        let by_name = UnixDatagram::bind_addr(&abstract_address).unwrap();
        let send =
            |place: &OsStr, state: State| send_to(place, &Notification { text: &state.text(), fds: &[] });
        send(path.as_os_str(), State::Ready).unwrap();
        send(OsStr::new(&format!("@{name}")), State::Stopping).unwrap();
        let mut buffer = [0; 64];
        let read = by_path.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..read], b"READY=1");
        let read = by_name.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..read], b"STOPPING=1");
        let reloading = State::Reloading.text();
        let since_boot = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").expect("both fields");
        assert!(since_boot.parse::<u64>().expect("microseconds") > 0);
    }

    #[test]
    fn a_missing_listener_is_an_error_and_no_panic() {
        let text = State::Ready.text();
        let ready = Notification { text: &text, fds: &[] };
        assert!(send_to(OsStr::new("/nowhere/notify"), &ready).is_err());
        assert!(send_to(OsStr::new(&"x".repeat(200)), &ready).is_err());
    }
}
