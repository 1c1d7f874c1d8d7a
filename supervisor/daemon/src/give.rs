//! Root gives the folders of a daemon to the user that the daemon becomes: once, before it becomes this user. Never through a link, never
//! what another user could have put there, and only folders that look like a daemon's own.

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat};
use nix::unistd::{Gid, Uid, fchown, fchownat};
use std::fs::DirBuilder;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use vm_system_sandbox::namespaces::Ids;

/// The store makes it first, in every state directory.
const LOCK: &str = "lock";
/// One of them is in a state directory beside its lock.
const MADE_BY_A_DAEMON: [&str; 3] = ["vm-system.db", "keepers", "libraries"];
/// The log of a daemon in the background.
const LOG: &str = "daemon.log";
/// Last parts of the names of sockets and their locks.
const OF_SOCKETS: [&str; 3] = [".sock", ".lock", ".start"];
/// Folders in folders.
const DEPTH: usize = 16;
const FOLDER: OFlag =
    OFlag::O_DIRECTORY.union(OFlag::O_RDONLY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

/// Why a folder is not given away.
#[derive(Debug, thiserror::Error)]
pub enum GiveError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} is not a folder, or is a link", .0.display())]
    NotAFolder(PathBuf),
    /// It belongs to neither root nor the daemon's user.
    #[error("{} belongs to uid {uid}, and the daemon becomes uid {to}", path.display())]
    Foreign { path: PathBuf, uid: u32, to: u32 },
    #[error("{} can be changed by others (mode {mode:04o})", path.display())]
    Open { path: PathBuf, mode: u32 },
    /// It has files that no daemon makes.
    #[error("{} is not a state directory: it has {name:?}", path.display())]
    NotState { path: PathBuf, name: String },
    /// Its owner elsewhere would lose it.
    #[error("{} has a file with a second name, a device, or too many folders in folders: {name:?}", path.display())]
    Unusual { path: PathBuf, name: String },
}

impl GiveError {
    /// What to do about it.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Io { .. } | Self::NotAFolder(_) => "name a folder itself with --state-dir and --socket",
            Self::Foreign { .. } => {
                "give it to the daemon's user (chown -R), or name its user with --user (`user` of the file)"
            }
            Self::Open { .. } => "chmod go-w",
            Self::NotState { .. } => "name an empty folder, or one that a daemon has made, with --state-dir",
            Self::Unusual { .. } => "remove what is not the daemon's from the folder",
        }
    }
}

/// Gives the state directory with everything in it, and makes it if there is none. One that belongs to the user is left alone: whoever
/// has been the user could have put anything there.
pub(super) fn state_folder(path: &Path, user: Ids) -> Result<(), GiveError> {
    let Some(folder) = open_or_make(path, user, None)? else { return Ok(()) };
    check(path, &folder.as_fd(), user)?;
    let names = names(&folder).map_err(io_error(path))?;
    let is_usual = |name: &str| [LOCK, LOG].contains(&name) || is_of_sockets(name);
    // Other programs, such as package managers, have a file `lock` in their folders, too.
    let is_state = |made: &str| names.iter().any(|name| name == made);
    if !(is_state(LOCK) && MADE_BY_A_DAEMON.iter().any(|made| is_state(made)))
        && let Some(name) = names.into_iter().find(|name| !is_usual(name))
    {
        return Err(GiveError::NotState { path: path.to_owned(), name });
    }
    give_content(path, &folder, user, DEPTH)?;
    // Last: a start that fails before begins again.
    give(&folder, user).map_err(io_error(path))
}

/// Gives the folder of a socket, and makes it if there is none: for the user alone, or for a group that may connect. A folder with other
/// files, such as `/tmp`, is left as it is: the daemon can listen there if its user may.
pub(super) fn socket_folder(path: &Path, user: Ids, group: Option<u32>) -> Result<(), GiveError> {
    let Some(folder) = open_or_make(path, user, Some(group.unwrap_or(user.gid)))? else { return Ok(()) };
    let names = names(&folder).map_err(io_error(path))?;
    if check(path, &folder.as_fd(), user).is_err() || !names.iter().all(|name| is_of_sockets(name)) {
        return Ok(());
    }
    give_content(path, &folder, user, 0)?;
    // A group that may enter it still may.
    fchown(&folder, Some(Uid::from_raw(user.uid)), None).map_err(|errno| io_error(path)(errno.into()))
}

fn is_of_sockets(name: &str) -> bool {
    OF_SOCKETS.iter().any(|end| name.ends_with(end))
}

fn io_error(path: &Path) -> impl Fn(io::Error) -> GiveError {
    move |source| GiveError::Io { path: path.to_owned(), source }
}

/// The folder; `None`: it belongs to the user, or was made now, with the mode of a state directory or, for a group, of a socket's folder.
fn open_or_make(path: &Path, user: Ids, group: Option<u32>) -> Result<Option<OwnedFd>, GiveError> {
    let failed = io_error(path);
    let (made, fresh) = match open(path, FOLDER, Mode::empty()) {
        Ok(folder) => (folder, false),
        Err(Errno::ENOENT) => {
            if let Some(parent) = path.parent() {
                DirBuilder::new().recursive(true).mode(0o755).create(parent).map_err(&failed)?;
            }
            let mode = if group.is_some() { 0o750 } else { 0o700 };
            DirBuilder::new().mode(mode).create(path).map_err(&failed)?;
            (open(path, FOLDER, Mode::empty()).map_err(|errno| failed(errno.into()))?, true)
        }
        // A link, whatever is behind it.
        Err(Errno::ENOTDIR | Errno::ELOOP) => return Err(GiveError::NotAFolder(path.to_owned())),
        Err(errno) => return Err(failed(errno.into())),
    };
    if fresh {
        give(&made, Ids { gid: group.unwrap_or(user.gid), ..user }).map_err(&failed)?;
    }
    let owner = fstat(&made).map_err(|errno| failed(errno.into()))?.st_uid;
    Ok((owner != user.uid).then_some(made))
}

/// Refuses a folder that is not root's alone.
fn check(path: &Path, folder: &impl AsFd, user: Ids) -> Result<(), GiveError> {
    let found = fstat(folder).map_err(|errno| io_error(path)(errno.into()))?;
    let mode = found.st_mode & 0o7777;
    if found.st_uid != 0 {
        Err(GiveError::Foreign { path: path.to_owned(), uid: found.st_uid, to: user.uid })
    } else if mode & 0o022 != 0 {
        Err(GiveError::Open { path: path.to_owned(), mode })
    } else {
        Ok(())
    }
}

fn names(folder: &OwnedFd) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in Dir::openat(folder, ".", FOLDER, Mode::empty())?.iter() {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name != "." && name != ".." {
            names.push(name);
        }
    }
    Ok(names)
}

/// Everything in a folder, which nobody but root can change meanwhile.
fn give_content(path: &Path, folder: &OwnedFd, user: Ids, depth: usize) -> Result<(), GiveError> {
    let failed = |errno: Errno| io_error(path)(errno.into());
    for entry in Dir::openat(folder, ".", FOLDER, Mode::empty()).map_err(failed)?.iter() {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        if [&b"."[..], b".."].contains(&name.to_bytes()) {
            continue;
        }
        let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let handle = openat(folder, name, flags, Mode::empty()).map_err(failed)?;
        let found = fstat(&handle).map_err(failed)?;
        let unusual =
            || GiveError::Unusual { path: path.to_owned(), name: name.to_string_lossy().into_owned() };
        match kind(&found) {
            SFlag::S_IFDIR if depth == 0 => return Err(unusual()),
            SFlag::S_IFDIR => {
                let inner = openat(&handle, ".", FOLDER, Mode::empty()).map_err(failed)?;
                give_content(&path.join(&*name.to_string_lossy()), &inner, user, depth - 1)?;
            }
            SFlag::S_IFREG if found.st_nlink > 1 => return Err(unusual()),
            SFlag::S_IFBLK | SFlag::S_IFCHR => return Err(unusual()),
            _ => {}
        }
        give(&handle, user).map_err(io_error(path))?;
    }
    Ok(())
}

fn kind(found: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT
}

fn give(handle: &OwnedFd, user: Ids) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    Ok(fchownat(handle, c"", Some(uid), Some(gid), AtFlags::AT_EMPTY_PATH)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};

    const USER: Ids = Ids { uid: 65_534, gid: 65_533 };

    fn world() -> Option<tempfile::TempDir> {
        if nix::unistd::geteuid().is_root() {
            return Some(tempfile::tempdir().unwrap());
        }
        vm_system_testkit::skip("root", "only root gives files away");
        None
    }

    fn owner(path: &Path) -> u32 {
        path.symlink_metadata().unwrap().uid()
    }

    #[test]
    fn a_state_directory_is_given_once_with_its_content_and_nothing_behind_links() {
        let Some(world) = world() else { return };
        let outside = world.path().join("outside");
        std::fs::write(&outside, "").unwrap();
        let state = world.path().join("deep/state");
        state_folder(&state, USER).expect("made");
        assert_eq!((owner(&state), state.metadata().unwrap().mode() & 0o777), (USER.uid, 0o700));
        assert_eq!(owner(&world.path().join("deep")), 0);
        // Of a daemon that was root.
        chown(&state, Some(0), Some(0)).unwrap();
        std::fs::create_dir_all(state.join("workspaces/owner/one")).unwrap();
        for file in
            ["lock", "vm-system.db", "agent-sessions.key", "agent-sessions.new", "workspaces/owner/one/db"]
        {
            std::fs::write(state.join(file), "").unwrap();
        }
        symlink(&outside, state.join("link")).unwrap();
        state_folder(&state, USER).expect("given");
        for given in ["", "lock", "agent-sessions.key", "workspaces/owner/one/db", "workspaces", "link"] {
            assert_eq!(owner(&state.join(given)), USER.uid, "{given}");
        }
        assert_eq!(owner(&outside), 0);
        // What the user puts there is not given.
        std::fs::hard_link(&outside, state.join("second")).unwrap();
        state_folder(&state, USER).expect("its own");
        assert_eq!(owner(&outside), 0);
        chown(&state, Some(0), Some(0)).unwrap();
        let error = state_folder(&state, USER).expect_err("a second name");
        assert!(matches!(&error, GiveError::Unusual { name, .. } if name == "second"), "{error}");
        assert_eq!((owner(&outside), owner(&state)), (0, 0));
    }

    #[test]
    fn folders_of_others_are_not_given() {
        let Some(world) = world() else { return };
        let state = world.path().join("state");
        std::fs::create_dir(&state).unwrap();
        std::fs::write(state.join("passwd"), "").unwrap();
        // As in the folders of package managers.
        std::fs::write(state.join("lock"), "").unwrap();
        assert!(
            matches!(state_folder(&state, USER), Err(GiveError::NotState { name, .. }) if name == "passwd")
        );
        socket_folder(&state, USER, None).expect("left as it is");
        std::fs::remove_file(state.join("passwd")).unwrap();
        std::fs::remove_file(state.join("lock")).unwrap();
        chown(&state, Some(1), None).unwrap();
        assert!(matches!(state_folder(&state, USER), Err(GiveError::Foreign { uid: 1, .. })));
        chown(&state, Some(0), None).unwrap();
        std::fs::set_permissions(&state, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(state_folder(&state, USER), Err(GiveError::Open { mode: 0o777, .. })));
        socket_folder(&state, USER, None).expect("left as it is");
        assert_eq!(owner(&state), 0);
        let link = world.path().join("link");
        symlink(&state, &link).unwrap();
        assert!(matches!(state_folder(&link, USER), Err(GiveError::NotAFolder(_))));
    }

    #[test]
    fn the_folder_of_a_socket_is_given_if_it_has_nothing_else() {
        let Some(world) = world() else { return };
        let run = world.path().join("run");
        socket_folder(&run, USER, Some(7)).expect("made");
        let found = run.metadata().unwrap();
        assert_eq!((found.uid(), found.gid(), found.mode() & 0o777), (USER.uid, 7, 0o750));
        chown(&run, Some(0), None).unwrap();
        std::fs::write(run.join("control.sock.lock"), "").unwrap();
        socket_folder(&run, USER, None).expect("given");
        assert_eq!((owner(&run), run.metadata().unwrap().gid()), (USER.uid, 7));
        assert_eq!(owner(&run.join("control.sock.lock")), USER.uid);
    }
}
