//! A thread that opens files with a user's rights, for a supervisor that runs as root. The thread drops its own rights for good
//! and exits after its work, so that nothing has to be restored.

use crate::identity::Identity;
use crate::namespaces::must_become;
use crate::sys::{Call, clear_capabilities, has_access_list, set_thread_groups};
use nix::sys::prctl::{get_dumpable, set_dumpable};
use nix::sys::stat::fstat;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Whether this process is root and can take on a user's identity for files. A process that cannot has only its own rights.
pub fn can_become(uid: u32) -> bool {
    must_become(uid)
}

/// Does work as `user`, with the user's groups and without any capability, if this process is root and the user is mapped in its
/// namespace; otherwise with the rights of this process. The kernel checks every open, access control lists included.
///
/// Only the identity for files changes: a thread with the user's uid could be signalled by that user, and so could the whole
/// process.
pub fn as_user<T: Send>(user: &Identity, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    if !must_become(user.ids.uid) {
        return Ok(work());
    }
    std::thread::scope(|scope| {
        let reader = std::thread::Builder::new().name("reader".to_owned());
        let reader = reader.spawn_scoped(scope, || lower(user).map(|()| work()))?;
        reader.join().unwrap_or_else(|_| Err(io::Error::other("the reading thread ended early")))
    })
}

fn lower(user: &Identity) -> io::Result<()> {
    let dumpable = get_dumpable()?;
    set_thread_groups(&user.groups)?;
    for (set, id) in [
        (Call::set_fs_group as fn(u32) -> Call, user.ids.gid),
        (Call::set_fs_user as fn(u32) -> Call, user.ids.uid),
    ] {
        set(id).make()?;
        // The call never fails; with an impossible id it changes nothing and returns the id in force.
        if set(u32::MAX).make()? as u32 != id {
            return Err(io::Error::from_raw_os_error(libc::EPERM));
        }
    }
    clear_capabilities()?;
    // The change made the whole process undumpable, and root the owner of its files in /proc.
    Ok(set_dumpable(dumpable)?)
}

/// Whether `user` may pass through an open folder (search permission), by the folder's mode. For a process that cannot take on the
/// user's identity to let the kernel decide. Fails closed: `Err` if the folder has an access control list, which the mode does not
/// show.
pub fn may_search(user: &Identity, folder: BorrowedFd<'_>) -> io::Result<bool> {
    if has_access_list(folder)? {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "it has an access control list"));
    }
    let facts = fstat(folder.as_fd())?;
    let search = if facts.st_uid == user.ids.uid {
        libc::S_IXUSR
    } else if user.is_member(facts.st_gid) {
        libc::S_IXGRP
    } else {
        libc::S_IXOTH
    };
    Ok(facts.st_mode & search != 0)
}

#[cfg(test)]
mod tests {
    use super::{as_user, may_search};
    use crate::identity::Identity;
    use crate::namespaces::{Ids, is_root};
    use nix::fcntl::{OFlag, openat};
    use nix::sys::stat::Mode;
    use std::fs;
    use std::os::fd::AsFd as _;
    use std::os::unix::fs::{PermissionsExt as _, chown};

    #[test]
    fn the_most_specific_mode_bits_decide_who_may_search_a_folder() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (uid, gid) = (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw());
        let user = |uid, gid, groups: &[u32]| Identity { ids: Ids { uid, gid }, groups: groups.to_vec() };
        let (owner, member, other) =
            (user(uid, gid, &[]), user(uid + 1, gid + 1, &[gid]), user(uid + 1, gid + 1, &[]));
        for (mode, expected) in [
            (0o711, [true, true, true]),
            (0o701, [true, false, true]),
            (0o071, [false, true, true]),
            (0o700, [true, false, false]),
            (0o666, [false, false, false]),
        ] {
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).expect("chmod");
            let handle = nix::fcntl::open(folder.path(), OFlag::O_PATH, Mode::empty()).expect("a folder");
            let may = [&owner, &member, &other].map(|user| may_search(user, handle.as_fd()).expect("a mode"));
            assert_eq!(may, expected, "{mode:o}");
        }
    }

    #[test]
    fn a_group_that_is_denied_stays_denied() {
        if !is_root() {
            vm_system_testkit::skip("root", "only root can read as another user");
            return;
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("closed-to-the-group");
        fs::write(&file, "text").expect("written");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("open");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o604)).expect("0604");
        chown(&file, Some(0), Some(4_711)).expect("root may");
        let unprivileged = Ids { uid: 65534, gid: 65534 };
        let open = |groups: Vec<u32>| {
            let user = Identity { ids: unprivileged, groups };
            as_user(&user, || fs::File::open(&file).is_ok()).expect("root may become any user")
        };
        assert!(open(vec![]), "others may read it");
        assert!(!open(vec![4_711]), "members of its group may not");
    }

    #[test]
    fn files_closed_to_the_user_are_not_opened_and_the_callers_rights_stay() {
        if !is_root() {
            vm_system_testkit::skip("root", "only root can read as another user");
            return;
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        let unprivileged = Identity::from(Ids { uid: 65534, gid: 65534 });
        let root = Identity::from(Ids { uid: 0, gid: 0 });
        let [mine, theirs] = ["mine", "theirs"].map(|name| folder.path().join(name));
        for (path, owner) in [(&mine, 0), (&theirs, 65534)] {
            fs::write(path, "text").expect("written");
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("closed");
            chown(path, Some(owner), Some(owner)).expect("root may");
        }
        chown(folder.path(), Some(65534), Some(65534)).expect("root may");
        // By a handle, so that the access to parent folders does not matter.
        let handle = fs::File::open(folder.path()).expect("a folder");
        let opens = |who: &Identity, name: &str| {
            let open = || openat(&handle, name, OFlag::O_RDONLY, Mode::empty()).is_ok();
            as_user(who, open).expect("root may become any user")
        };
        assert!(opens(&unprivileged, "theirs"));
        assert!(!opens(&unprivileged, "mine"));
        // Without capabilities root has the rights of any other user.
        chown(folder.path(), Some(0), Some(0)).expect("root may");
        assert!(opens(&root, "mine"));
        assert!(!opens(&root, "theirs"));
        assert!(fs::File::open(&theirs).is_ok(), "this thread has its rights as before");
    }
}
