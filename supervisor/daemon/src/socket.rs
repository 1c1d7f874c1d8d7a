//! The file of a listening Unix socket: created with the right modes; a stale one is replaced, one in use is not touched.
//!
//! A lock file beside the socket decides between two supervisors that start with the same path.

use super::give::is_of_sockets;
use nix::fcntl::{Flock, FlockArg};
use nix::unistd::Group;
use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Owner and group may connect.
const SOCKET_MODE: u32 = 0o660;
/// Longest path of a socket: `sun_path` (unix(7)), without the zero at its end (bytes).
const MOST_PATH_BYTES: usize = 107;
/// The folder of a socket that a group may reach.
const SHARED_DIR_MODE: u32 = 0o750;
/// The folder of a user's own socket.
const PRIVATE_DIR_MODE: u32 = 0o700;

/// Why a socket could not be created.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Another supervisor listens there, or is about to.
    #[error("another supervisor listens at {}: stop it first, or choose another {option}", path.display())]
    InUse {
        path: PathBuf,
        /// The command-line option that names the path.
        option: &'static str,
    },
    /// The kernel accepts no path of this length.
    #[error("the path of a socket has at most {MOST_PATH_BYTES} bytes, and {} has more: choose another {option}", path.display())]
    TooLong {
        path: PathBuf,
        /// The command-line option that names the path.
        option: &'static str,
    },
    /// The path exists and is not a socket.
    #[error("{} exists and is not a socket: move it away, or choose another {option}", path.display())]
    NotASocket {
        path: PathBuf,
        /// The command-line option that names the path.
        option: &'static str,
    },
    /// The operator named a group that does not exist.
    #[error("no such group: `{0}`; create it, or change `socket_group`")]
    NoGroup(String),
    /// The system call failed.
    #[error("cannot listen at {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// A bound socket. When dropped, removes its file, unless another supervisor has replaced it.
pub(super) struct ListeningSocket {
    path: PathBuf,
    identity: (u64, u64),
    _lock: Flock<File>,
}

impl ListeningSocket {
    /// Binds the control socket; `group` may connect besides its owner.
    pub(super) fn bind(path: &Path, group: Option<u32>) -> Result<(Self, UnixListener), SocketError> {
        Self::bind_as(path, "--socket", group)
    }

    /// The same for the REST API.
    pub(super) fn bind_http(path: &Path, group: Option<u32>) -> Result<(Self, UnixListener), SocketError> {
        Self::bind_as(path, "--http-socket", group)
    }

    fn bind_as(
        path: &Path,
        option: &'static str,
        group: Option<u32>,
    ) -> Result<(Self, UnixListener), SocketError> {
        let io = |source| SocketError::Io { path: path.to_owned(), source };
        if path.as_os_str().len() > MOST_PATH_BYTES {
            return Err(SocketError::TooLong { path: path.to_owned(), option });
        }
        make_dir(path, group).map_err(io)?;
        let lock = lock(path, option)?;
        remove_stale(path, option)?;
        let listener = UnixListener::bind(path).map_err(io)?;
        if let Some(gid) = group {
            std::os::unix::fs::lchown(path, None, Some(gid)).map_err(io)?;
        }
        std::fs::set_permissions(path, Permissions::from_mode(SOCKET_MODE)).map_err(io)?;
        let metadata = std::fs::symlink_metadata(path).map_err(io)?;
        let socket = Self { path: path.to_owned(), identity: (metadata.dev(), metadata.ino()), _lock: lock };
        Ok((socket, listener))
    }
}

impl Drop for ListeningSocket {
    fn drop(&mut self) {
        let ours = std::fs::symlink_metadata(&self.path)
            .is_ok_and(|metadata| (metadata.dev(), metadata.ino()) == self.identity);
        if ours && let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!(%error, path = %self.path.display(), "cannot remove a socket");
        }
    }
}

/// The id of the group that may connect.
pub(super) fn find_group(name: &str) -> Result<u32, SocketError> {
    match Group::from_name(name) {
        Ok(Some(group)) => Ok(group.gid.as_raw()),
        _ => Err(SocketError::NoGroup(name.to_owned())),
    }
}

/// Creates the socket's folder if it does not exist, accessible only to the supervisor's user and the group that may connect. One that
/// an earlier start made for another group is given to this group.
fn make_dir(path: &Path, group: Option<u32>) -> io::Result<()> {
    let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) else { return Ok(()) };
    if dir.exists() {
        if let Some(gid) = group {
            let_in(dir, gid);
        }
        return Ok(());
    }
    let shared = group.is_some() || nix::unistd::geteuid().is_root();
    let mode = if shared { SHARED_DIR_MODE } else { PRIVATE_DIR_MODE };
    DirBuilder::new().recursive(true).mode(mode).create(dir)?;
    group.map_or(Ok(()), |gid| std::os::unix::fs::lchown(dir, None, Some(gid)))
}

/// Gives the existing folder of a socket to the group that may connect, if it is ours and of sockets alone. Otherwise says that the
/// group cannot enter it.
fn let_in(dir: &Path, gid: u32) {
    let Ok(metadata) = std::fs::symlink_metadata(dir) else { return };
    let mode = metadata.permissions().mode() & 0o777;
    let enters = |metadata: &Metadata| mode & 0o001 != 0 || (metadata.gid() == gid && mode & 0o010 != 0);
    if enters(&metadata) {
        return;
    }
    let is_of_sockets = std::fs::read_dir(dir).is_ok_and(|mut entries| {
        entries.all(|entry| entry.is_ok_and(|entry| is_of_sockets(&entry.file_name().to_string_lossy())))
    });
    let is_ours = metadata.is_dir() && metadata.uid() == nix::unistd::geteuid().as_raw();
    let given = if is_ours && is_of_sockets && mode & 0o010 != 0 {
        std::os::unix::fs::lchown(dir, None, Some(gid))
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    };
    if given.is_err() {
        tracing::warn!(
            folder = %dir.display(),
            mode = format!("{mode:04o}"),
            folder_gid = metadata.gid(),
            group_gid = gid,
            "the members of `socket_group` cannot enter the folder of the socket: give it to the group (chgrp, chmod g+x), or choose \
             another --socket"
        );
    }
}

fn lock(path: &Path, option: &'static str) -> Result<Flock<File>, SocketError> {
    let io = |source| SocketError::Io { path: path.to_owned(), source };
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    // Follows no link: in a folder of several users it could name a file of ours.
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK)
        .open(name)
        .map_err(io)?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| {
        if errno == nix::errno::Errno::EWOULDBLOCK {
            SocketError::InUse { path: path.to_owned(), option }
        } else {
            io(errno.into())
        }
    })
}

/// Removes a socket on which no process listens.
fn remove_stale(path: &Path, option: &'static str) -> Result<(), SocketError> {
    let io = |source| SocketError::Io { path: path.to_owned(), source };
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(io(error)),
        Ok(metadata) if !metadata.file_type().is_socket() => {
            return Err(SocketError::NotASocket { path: path.to_owned(), option });
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            tracing::info!(path = %path.display(), "replacing a socket that an exited supervisor left behind");
            std::fs::remove_file(path).map_err(io)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        // A process listens, or the error does not prove that it has exited.
        Ok(_) | Err(_) => Err(SocketError::InUse { path: path.to_owned(), option }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bind(path: &Path) -> Result<(ListeningSocket, UnixListener), SocketError> {
        ListeningSocket::bind(path, None)
    }

    #[test]
    fn a_stale_socket_is_replaced_and_ours_is_removed_at_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep").join("control.sock");
        let first = bind(&path).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o660);
        assert_eq!(mode(path.parent().unwrap()) & 0o007, 0, "the folder is closed to others");
        drop(first);
        assert!(!path.exists());
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "an exited supervisor leaves its file");
        assert!(bind(&path).is_ok());
    }

    #[test]
    fn a_path_that_is_too_long_is_refused_with_the_option() {
        let path = Path::new("/tmp").join("x".repeat(110)).join("control.sock");
        let error = bind(&path).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("at most 107 bytes") && error.contains("choose another --socket"), "{error}");
        assert!(!path.parent().unwrap().exists(), "nothing was created");
    }

    #[test]
    fn a_socket_in_use_is_not_touched_with_and_without_our_lock() {
        let dir = tempfile::tempdir().unwrap();
        let ours = dir.path().join("ours.sock");
        let held = bind(&ours).unwrap();
        assert!(matches!(bind(&ours), Err(SocketError::InUse { option: "--socket", .. })));
        let http = ListeningSocket::bind_http(&ours, None).map(|_| ());
        assert!(matches!(http, Err(SocketError::InUse { option: "--http-socket", .. })));
        drop(held);
        let foreign = dir.path().join("foreign.sock");
        let _listener = UnixListener::bind(&foreign).unwrap();
        assert!(matches!(bind(&foreign), Err(SocketError::InUse { option: "--socket", .. })));
        assert!(foreign.exists());
    }

    #[test]
    fn what_is_not_a_socket_is_never_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notes.txt");
        std::fs::write(&path, "precious").unwrap();
        assert!(matches!(bind(&path), Err(SocketError::NotASocket { .. })));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
        assert!(matches!(find_group("no-such-group-here"), Err(SocketError::NoGroup(_))));
        let long = dir.path().join("x".repeat(150));
        assert!(matches!(bind(&long), Err(SocketError::TooLong { .. })));
    }

    #[test]
    fn a_group_that_is_configured_later_may_enter_the_folder_of_the_socket_alone() {
        // Root may give a folder to any group.
        let other = nix::unistd::geteuid().is_root().then_some(1);
        let Some(group) = other else { return vm_system_testkit::skip("root", "groups need root") };
        let dir = tempfile::tempdir().unwrap();
        let folder_of = |path: &Path| std::fs::metadata(path.parent().unwrap()).unwrap();
        let path = dir.path().join("run").join("control.sock");
        drop(bind(&path).unwrap());
        assert_ne!(folder_of(&path).gid(), group);
        drop(ListeningSocket::bind(&path, Some(group)).unwrap());
        assert_eq!((folder_of(&path).gid(), folder_of(&path).mode() & 0o777), (group, 0o750));
        // A folder with other files stays as it is.
        let state = dir.path().join("state").join("control.sock");
        drop(bind(&state).unwrap());
        std::fs::write(state.with_file_name("vm-system.db"), []).unwrap();
        drop(ListeningSocket::bind(&state, Some(group)).unwrap());
        assert_ne!(folder_of(&state).gid(), group);
    }

    #[test]
    fn a_successors_socket_is_not_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control.sock");
        let ours = bind(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let _successor = UnixListener::bind(&path).unwrap();
        drop(ours);
        assert!(path.exists());
    }
}
