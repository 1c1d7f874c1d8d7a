//! Root gives the folders of a daemon to the user that the daemon becomes: once, before it becomes this user. Never through a link, never
//! what another user could have put there, and only folders that look like a daemon's own.

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open, openat, readlinkat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, mkdirat};
use nix::unistd::{Gid, Uid, fchown, fchownat};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use vm_system_sandbox::namespaces::Ids;

/// The store makes it first, in every state directory.
const LOCK: &str = "lock";
/// One of them is in a state directory beside its lock.
const MADE_BY_A_DAEMON: [&str; 3] = ["vm-system.db", "keepers", "libraries"];
/// The log of a daemon in the background.
const LOG: &str = "daemon.log";
/// Last parts of the names of sockets and their locks.
const OF_SOCKETS: [&str; 3] = [".sock", ".lock", ".start"];
/// Links in a path.
const LINKS: usize = 40;
/// Folders in folders.
const DEPTH: usize = 16;
const FOLDER: OFlag =
    OFlag::O_DIRECTORY.union(OFlag::O_RDONLY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

/// Why a folder is not given away.
#[derive(Debug, thiserror::Error)]
pub enum GiveError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} is not a folder, or is a link, or is behind a link that others can change", .0.display())]
    NotAFolder(PathBuf),
    /// It belongs to neither root nor the daemon's user.
    #[error("{} belongs to uid {uid}, and the daemon becomes uid {to}", path.display())]
    Foreign { path: PathBuf, uid: u32, to: u32 },
    #[error("{} can be changed by others (mode {mode:04o})", path.display())]
    Open { path: PathBuf, mode: u32 },
    /// It has files that no daemon makes.
    #[error("{} is not a state directory: it has {name:?}", path.display())]
    NotState { path: PathBuf, name: String },
    /// The file has a second name, or is a device: its owner elsewhere would lose it.
    #[error("{} has a file with a second name, a device, or too many folders in folders: {name:?}", path.display())]
    Unusual { path: PathBuf, name: String },
}

impl GiveError {
    /// The remedy.
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

/// Whether a daemon makes a file of this name beside its sockets.
pub(super) fn is_of_sockets(name: &str) -> bool {
    OF_SOCKETS.iter().any(|end| name.ends_with(end))
}

fn io_error(path: &Path) -> impl Fn(io::Error) -> GiveError {
    move |source| GiveError::Io { path: path.to_owned(), source }
}

/// The folder; `None`: it belongs to the user, or was made now, with the mode of a state directory or, for a group, of a socket's folder.
fn open_or_make(path: &Path, user: Ids, group: Option<u32>) -> Result<Option<OwnedFd>, GiveError> {
    let failed = io_error(path);
    let mode = if group.is_some() { 0o750 } else { 0o700 };
    let (made, fresh) = open_from_the_top(path, Mode::from_bits_truncate(mode))?;
    if fresh {
        give(&made, Ids { gid: group.unwrap_or(user.gid), ..user }).map_err(&failed)?;
    }
    let owner = fstat(&made).map_err(|errno| failed(errno.into()))?.st_uid;
    Ok((owner != user.uid).then_some(made))
}

/// Opens a folder name by name, and makes those that are missing; whether the last one was made. Links above it are followed only where
/// root alone can have made them, as `/var/run` is one: the daemon's user must not choose what root gives away.
fn open_from_the_top(path: &Path, mode: Mode) -> Result<(OwnedFd, bool), GiveError> {
    let failed = |errno: Errno| io_error(path)(errno.into());
    let refused = || GiveError::NotAFolder(path.to_owned());
    let top = || open("/", FOLDER, Mode::empty()).map_err(failed);
    let names = |path: &Path| -> Vec<OsString> {
        let is_name = |part: &Component<'_>| matches!(part, Component::Normal(_) | Component::ParentDir);
        path.components().rev().filter(is_name).map(|part| part.as_os_str().to_owned()).collect()
    };
    let mut left = names(&std::path::absolute(path).map_err(io_error(path))?);
    let (mut folder, mut fresh, mut links) = (top()?, false, 0);
    while let Some(name) = left.pop() {
        let inner = || openat(&folder, name.as_os_str(), FOLDER, Mode::empty());
        (folder, fresh) = match inner() {
            Ok(inner) => (inner, false),
            Err(Errno::ENOENT) => {
                let mode = if left.is_empty() { mode } else { Mode::from_bits_truncate(0o755) };
                mkdirat(&folder, name.as_os_str(), mode).map_err(failed)?;
                let made = inner().map_err(failed)?;
                // Not ours any more, if the owner of the folder above has replaced it.
                if fstat(&made).map_err(failed)?.st_uid != 0 {
                    return Err(refused());
                }
                (made, true)
            }
            Err(Errno::ENOTDIR | Errno::ELOOP) if !left.is_empty() && links < LINKS => {
                links += 1;
                let target = link_of_root(&folder, &name).map_err(failed)?.ok_or_else(refused)?;
                left.extend(names(&target));
                (if target.is_absolute() { top()? } else { folder }, false)
            }
            // A link, whatever is behind it.
            Err(Errno::ENOTDIR | Errno::ELOOP) => return Err(refused()),
            Err(errno) => return Err(failed(errno)),
        };
    }
    Ok((folder, fresh))
}

/// The target of a link that root alone can have made; `None`: it is another one, or no link.
fn link_of_root(folder: &OwnedFd, name: &OsStr) -> Result<Option<PathBuf>, Errno> {
    let link = openat(folder, name, OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC, Mode::empty())?;
    let (above, found) = (fstat(folder)?, fstat(&link)?);
    // In a folder such as /tmp all users make links, and none replaces those of others.
    let is_shared = above.st_mode & 0o022 != 0;
    let is_sticky = above.st_mode & Mode::S_ISVTX.bits() != 0;
    let is_roots = above.st_uid == 0 && (!is_shared || is_sticky) && found.st_uid == 0;
    if kind(&found) != SFlag::S_IFLNK || !is_roots {
        return Ok(None);
    }
    readlinkat(&link, c"").map(|target| Some(PathBuf::from(target)))
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
        // A link that the user puts there is not given.
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
    fn links_of_others_above_a_folder_are_not_followed() {
        let Some(world) = world() else { return };
        let (theirs, elsewhere) = (world.path().join("theirs"), world.path().join("elsewhere"));
        for folder in [&theirs, &elsewhere] {
            std::fs::create_dir(folder).unwrap();
        }
        chown(&theirs, Some(USER.uid), Some(USER.gid)).unwrap();
        // Whoever made the link: its folder's owner can replace it.
        symlink(&elsewhere, theirs.join("link")).unwrap();
        symlink(&elsewhere, world.path().join("of-root")).unwrap();
        for path in ["theirs/link/run", "theirs/link/deep/run", "of-root/../theirs/link/run"] {
            let refused = socket_folder(&world.path().join(path), USER, None);
            assert!(matches!(refused, Err(GiveError::NotAFolder(_))), "{path}: {refused:?}");
        }
        assert_eq!(elsewhere.read_dir().unwrap().count(), 0, "root made nothing behind it");
        // As /var/run is one of root's.
        socket_folder(&world.path().join("of-root/run"), USER, None).expect("made");
        assert_eq!((owner(&elsewhere), owner(&elsewhere.join("run"))), (0, USER.uid));
        socket_folder(&theirs.join("own/run"), USER, None).expect("made");
        assert_eq!(owner(&theirs.join("own/run")), USER.uid);
        std::fs::set_permissions(world.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        let refused = socket_folder(&world.path().join("of-root/run"), USER, None);
        assert!(matches!(refused, Err(GiveError::NotAFolder(_))), "all users can replace the link");
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
