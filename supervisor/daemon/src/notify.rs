//! Reports the daemon's state to a service manager: one datagram to `$NOTIFY_SOCKET` (`sd_notify(3)`). A daemon that gives up root's
//! rights connects before: its user may not reach a socket of root.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::OnceLock;

/// Connected by root.
static CONNECTED: OnceLock<UnixDatagram> = OnceLock::new();

/// The states that are reported to a service manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Clients can connect.
    Ready,
    /// The daemon is stopping.
    Stopping,
    /// The daemon works.
    Watchdog,
}

impl State {
    const fn text(self) -> &'static str {
        match self {
            Self::Ready => "READY=1",
            Self::Stopping => "STOPPING=1",
            Self::Watchdog => "WATCHDOG=1",
        }
    }
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
    let Some(path) = manager() else { return };
    let sent = match CONNECTED.get() {
        Some(socket) => socket.send(state.text().as_bytes()).map(drop),
        None => send(&path, state),
    };
    if let Err(error) = sent {
        // A starter that waited only for readiness has gone.
        let has_gone = matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused);
        if has_gone && state != State::Ready {
            tracing::debug!(%error, state = state.text(), "nobody is notified");
            return;
        }
        tracing::warn!(%error, state = state.text(), "cannot notify the service manager");
    }
}

fn send(path: &OsStr, state: State) -> io::Result<()> {
    connect_to(path)?.send(state.text().as_bytes()).map(drop)
}

fn connect_to(path: &OsStr) -> io::Result<UnixDatagram> {
    let bytes = path.as_bytes();
    let address = match bytes.split_first() {
        Some((b'@', name)) => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(path)?,
    };
    let socket = UnixDatagram::unbound()?;
    // A full queue must not block the supervisor.
    socket.set_nonblocking(true)?;
    socket.connect_addr(&address)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manager_gets_one_datagram_by_path_or_abstract_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let by_path = UnixDatagram::bind(&path).unwrap();
        let name = format!("vm-system-test-{}", std::process::id());
        let abstract_address = SocketAddr::from_abstract_name(name.as_bytes()).unwrap();
        let by_name = UnixDatagram::bind_addr(&abstract_address).unwrap();
        send(path.as_os_str(), State::Ready).unwrap();
        send(OsStr::new(&format!("@{name}")), State::Stopping).unwrap();
        let mut buffer = [0; 64];
        let read = by_path.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..read], b"READY=1");
        let read = by_name.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..read], b"STOPPING=1");
    }

    #[test]
    fn a_missing_listener_is_an_error_and_no_panic() {
        assert!(send(OsStr::new("/nowhere/notify"), State::Ready).is_err());
        assert!(send(OsStr::new(&"x".repeat(200)), State::Ready).is_err());
    }
}
