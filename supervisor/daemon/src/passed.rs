//! Listening sockets that the service manager has bound and passed to the daemon (socket activation, `sd_listen_fds(3)`): so a daemon
//! without a network serves HTTP over TCP. The name of a descriptor (`FileDescriptorName=` of the socket unit) says which API it is for.
//! Decides nothing about who may connect.

use super::inherited;
use super::lifeline;
use nix::sys::socket::{
    AddressFamily, SockType, SockaddrLike as _, SockaddrStorage, getsockname, getsockopt, sockopt,
};
use std::net::TcpListener;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixListener;
use vm_system_sandbox::process;

/// The name of the control socket.
const CONTROL: &str = "control";
/// The name of a socket of the HTTP API.
const HTTP: &str = "http";

/// Why a passed descriptor cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PassedSocketError {
    /// Nothing of the daemon has this name.
    #[error("the service manager passed a descriptor with the name {0:?}, which the daemon does not know")]
    Unknown(String),
    /// It is something else.
    #[error("the descriptor {name:?} of the service manager is {found}, not {wanted}")]
    NotListening { name: &'static str, found: String, wanted: &'static str },
    /// There can be only one.
    #[error("the service manager passed two descriptors with the name \"control\"")]
    TwoControlSockets,
}

/// The sockets by their use.
#[derive(Debug, Default)]
pub(super) struct PassedSockets {
    /// In place of the socket that the daemon would make.
    pub(super) control: Option<UnixListener>,
    /// If there is one: in place of the HTTP socket that the daemon would make.
    pub(super) http_unix: Vec<UnixListener>,
    /// Besides the configured addresses.
    pub(super) http_tcp: Vec<TcpListener>,
}

impl PassedSockets {
    /// Takes those of this process. The descriptors of the lifeline are left.
    pub(super) fn take() -> Result<Self, PassedSocketError> {
        let named = inherited::named_passed().into_iter().filter(|(name, _)| name != lifeline::NAME);
        let open = named.filter_map(|(name, number)| Some((name, process::inherited(number).ok()?)));
        Self::by_name(open)
    }

    fn by_name(named: impl Iterator<Item = (String, OwnedFd)>) -> Result<Self, PassedSocketError> {
        let mut passed = Self::default();
        for (name, socket) in named {
            match (name.as_str(), listening_family(&socket)) {
                (CONTROL, Some(AddressFamily::Unix)) => {
                    if passed.control.replace(socket.into()).is_some() {
                        return Err(PassedSocketError::TwoControlSockets);
                    }
                }
                (HTTP, Some(AddressFamily::Unix)) => passed.http_unix.push(socket.into()),
                (HTTP, Some(AddressFamily::Inet | AddressFamily::Inet6)) => {
                    passed.http_tcp.push(socket.into());
                }
                (CONTROL, found) => {
                    let wanted = "a listening Unix stream socket";
                    return Err(PassedSocketError::NotListening {
                        name: CONTROL,
                        found: shown(found),
                        wanted,
                    });
                }
                (HTTP, found) => {
                    let wanted = "a listening stream socket (Unix or TCP)";
                    return Err(PassedSocketError::NotListening { name: HTTP, found: shown(found), wanted });
                }
                _ => return Err(PassedSocketError::Unknown(name)),
            }
        }
        Ok(passed)
    }
}

/// The family of a stream socket that listens.
fn listening_family(socket: &OwnedFd) -> Option<AddressFamily> {
    let listens = getsockopt(socket, sockopt::AcceptConn).is_ok_and(|listens| listens)
        && getsockopt(socket, sockopt::SockType).is_ok_and(|kind| kind == SockType::Stream);
    let address = listens.then(|| getsockname::<SockaddrStorage>(socket.as_raw_fd()).ok()).flatten()?;
    address.family()
}

fn shown(family: Option<AddressFamily>) -> String {
    family.map_or_else(
        || "no listening stream socket".to_owned(),
        |family| format!("a socket of the family {family:?}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(named: Vec<(&str, OwnedFd)>) -> Result<PassedSockets, String> {
        PassedSockets::by_name(named.into_iter().map(|(name, socket)| (name.to_owned(), socket)))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn sockets_are_sorted_by_name_and_family() {
        let folder = tempfile::tempdir().expect("a folder");
        let unix = |name: &str| OwnedFd::from(UnixListener::bind(folder.path().join(name)).expect("bound"));
        let tcp = || OwnedFd::from(TcpListener::bind("127.0.0.1:0").expect("bound"));
        let sockets =
            passed(vec![("http", tcp()), ("control", unix("a")), ("http", unix("b")), ("http", tcp())]);
        let sockets = sockets.expect("known names");
        assert!(sockets.control.is_some());
        assert_eq!((sockets.http_unix.len(), sockets.http_tcp.len()), (1, 2));
        let two = passed(vec![("control", unix("c")), ("control", unix("d"))]).expect_err("two");
        assert!(two.contains("two descriptors"), "{two}");
    }

    #[test]
    fn unknown_names_and_what_does_not_listen_are_refused_by_name() {
        let tcp = || OwnedFd::from(TcpListener::bind("127.0.0.1:0").expect("bound"));
        let file = || OwnedFd::from(std::fs::File::open("/dev/null").expect("a device"));
        let unknown = passed(vec![("vm-system-http.socket", tcp())]).expect_err("unknown");
        assert!(unknown.contains("\"vm-system-http.socket\""), "{unknown}");
        for (name, socket) in [("control", tcp()), ("control", file()), ("http", file())] {
            let refused = passed(vec![(name, socket)]).expect_err(name);
            assert!(
                refused.contains(&format!("{name:?}")) && refused.contains("not a listening"),
                "{refused}"
            );
        }
        let (connected, _peer) = std::os::unix::net::UnixStream::pair().expect("a pair");
        assert!(passed(vec![("http", connected.into())]).is_err(), "it does not listen");
    }
}
