//! Checks that the server of a connection within this machine belongs to a user that may get a token: any user of the machine can listen
//! on a free port. The kernel says who accepted the connection. Only for connections without TLS, whose servers have no certificate.

use nix::unistd::User;
use std::fmt::Display;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};
use vm_system_sandbox::identity::uid_of_name;
use vm_system_sandbox::socket_diagnosis::{self, LocalEnd};

/// How long a server may take to accept a connection that the kernel has already made.
const ACCEPT_PATIENCE: Duration = Duration::from_secs(2);
/// Pause between two queries.
const PAUSE: Duration = Duration::from_millis(2);

/// Why a server is not used.
#[derive(Debug)]
pub(super) enum ServerUserError {
    /// It belongs to another user.
    Other(u32),
    /// The kernel does not report its user.
    Unknown(String),
}

/// The users whose servers are trusted.
#[derive(Debug)]
pub(super) struct TrustedUsers(Vec<u32>);

impl TrustedUsers {
    /// Root, this user, the user of the system's daemon, and the one that the user named.
    pub(super) fn new(named: Option<u32>) -> Self {
        let runtime = Path::new(vm_system_daemon::SYSTEM_RUNTIME);
        let own = nix::unistd::geteuid().as_raw();
        Self([0, own].into_iter().chain(user_of_folder(runtime)).chain(named).collect())
    }

    /// Waits until the server of a connection within this machine has accepted it, and checks its user. Other connections pass: to
    /// an address of another machine, and to one of this machine's own that is passed on to another machine.
    pub(super) async fn check(&self, stream: &TcpStream) -> Result<(), ServerUserError> {
        let unknown = |error: &dyn Display| ServerUserError::Unknown(error.to_string());
        let own = stream.local_addr().map_err(|error| unknown(&error))?;
        let server = stream.peer_addr().map_err(|error| unknown(&error))?;
        if !is_of_this_machine(server.ip()) {
            return Ok(());
        }
        match accepted_by(server, own).await? {
            Some(uid) if self.0.contains(&uid) => Ok(()),
            Some(uid) => Err(ServerUserError::Other(uid)),
            None => Ok(()),
        }
    }
}

/// Whether a server of this machine can have this address.
fn is_of_this_machine(address: IpAddr) -> bool {
    address.to_canonical().is_loopback() || UdpSocket::bind((address, 0)).is_ok()
}

/// The user that accepted a connection; none if nothing of this machine listens there.
async fn accepted_by(server: SocketAddr, client: SocketAddr) -> Result<Option<u32>, ServerUserError> {
    let until = Instant::now() + ACCEPT_PATIENCE;
    loop {
        match socket_diagnosis::find(server, client) {
            Ok(LocalEnd::Held(found)) if found.is_established => return Ok(Some(found.uid)),
            Ok(LocalEnd::Absent) if !server.ip().to_canonical().is_loopback() => return Ok(None),
            Err(errno) => {
                let why = format!("no socket diagnosis (netlink): {}", errno.desc());
                return Err(ServerUserError::Unknown(why));
            }
            Ok(_) if Instant::now() >= until => {
                let why = "no process of this machine has accepted the connection";
                return Err(ServerUserError::Unknown(why.to_owned()));
            }
            Ok(_) => sleep(PAUSE).await,
        }
    }
}

/// The owner of a folder, if root alone decides what is at its path: root made the folder for this user.
fn user_of_folder(folder: &Path) -> Option<u32> {
    let is_folder_of_one = |path: &Path| -> io::Result<Option<u32>> {
        let found = path.symlink_metadata()?;
        Ok((found.is_dir() && found.mode() & 0o022 == 0).then(|| found.uid()))
    };
    let mut above = folder.ancestors().skip(1);
    let is_roots = above.all(|path| matches!(is_folder_of_one(path), Ok(Some(0))));
    if is_roots { is_folder_of_one(folder).ok().flatten() } else { None }
}

/// The uid of a user's name or number.
pub(super) fn uid_of(user: &str) -> Result<u32, String> {
    user.parse().or_else(|_| uid_of_name(user))
}

/// A uid with its name, if it has one.
pub(super) fn shown(uid: u32) -> String {
    match User::from_uid(uid.into()) {
        Ok(Some(user)) => format!("uid {uid} ({})", user.name),
        _ => format!("uid {uid}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn outcome(trusted: Vec<u32>, accepts: bool) -> Result<(), ServerUserError> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let stream = TcpStream::connect(address).await.expect("connected");
            let _server = accepts.then(|| listener.accept().expect("accepted"));
            TrustedUsers(trusted).check(&stream).await
        })
    }

    #[test]
    fn server_of_another_user_is_not_trusted() {
        let own = nix::unistd::geteuid().as_raw();
        assert!(outcome(vec![own + 1, own], true).is_ok());
        assert!(matches!(outcome(vec![own + 1], true), Err(ServerUserError::Other(uid)) if uid == own));
        assert!(TrustedUsers::new(Some(own + 7)).0.starts_with(&[0, own]));
        assert!(TrustedUsers::new(Some(own + 7)).0.contains(&(own + 7)));
    }

    #[test]
    fn server_that_does_not_accept_is_not_taken_for_roots() {
        // The kernel reports uid 0 for a connection that no process has accepted.
        assert!(matches!(outcome(vec![0], false), Err(ServerUserError::Unknown(_))));
    }

    #[test]
    fn only_addresses_of_this_machine_are_checked() {
        for (address, is_checked) in
            [("127.0.0.2", true), ("::1", true), ("::ffff:127.0.0.1", true), ("192.0.2.1", false)]
        {
            assert_eq!(is_of_this_machine(address.parse().expect("an address")), is_checked, "{address}");
        }
    }

    #[test]
    fn folder_names_a_user_only_if_root_alone_decides_what_is_there() {
        assert_eq!(user_of_folder(Path::new("/proc")), Some(0));
        let open = tempfile::tempdir().expect("a folder");
        // Beneath /tmp, into which all users may write.
        assert_eq!(user_of_folder(open.path()), None);
        assert_eq!(user_of_folder(Path::new("/nowhere/at/all")), None);
    }

    #[test]
    fn users_are_named_by_name_or_number() {
        assert_eq!((uid_of("4711"), uid_of("root")), (Ok(4711), Ok(0)));
        assert!(uid_of("no-such-user-here").is_err_and(|why| why.contains("no-such-user-here")));
        assert!(shown(0).contains("root"));
    }
}
