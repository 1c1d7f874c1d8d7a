//! A thread that opens files with somebody else's rights, for a root that was asked to read what belongs to a user. The thread
//! gives its own rights up for good and ends with its work: nothing is left that could forget to take them back.

use crate::namespaces::{Ids, must_become};
use crate::sys::{clear_capabilities, raw};
use nix::sys::prctl::{get_dumpable, set_dumpable};
use std::io;

/// Does work as `owner`, without supplementary groups and without any capability, where this process is root and such a user
/// exists; as who we are elsewhere. The kernel judges what is opened, access lists included.
///
/// Only the identity for files changes: with its own uid the thread could be signalled by that user, and with it all of us.
pub fn as_owner<T: Send>(owner: Ids, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    if !must_become(owner) {
        return Ok(work());
    }
    std::thread::scope(|scope| {
        let reader = std::thread::Builder::new().name("reader".to_owned());
        let reader = reader.spawn_scoped(scope, || lower(owner).map(|()| work()))?;
        reader.join().unwrap_or_else(|_| Err(io::Error::other("the reading thread ended early")))
    })
}

/// By number: the C library's functions change all threads at once.
fn lower(owner: Ids) -> io::Result<()> {
    const NOBODY: usize = u32::MAX as usize;
    let dumpable = get_dumpable()?;
    raw(libc::SYS_setgroups, [0; 6])?;
    for (call, id) in [(libc::SYS_setfsgid, owner.gid), (libc::SYS_setfsuid, owner.uid)] {
        raw(call, [id as usize, 0, 0, 0, 0, 0])?;
        // It never fails: an id that cannot be means to be told the one in force.
        if raw(call, [NOBODY, 0, 0, 0, 0, 0])? as u32 != id {
            return Err(io::Error::from_raw_os_error(libc::EPERM));
        }
    }
    clear_capabilities()?;
    // The change made the whole process undumpable, and with that its own files in /proc somebody else's.
    Ok(set_dumpable(dumpable)?)
}

#[cfg(test)]
mod tests {
    use super::{Ids, as_owner};
    use crate::namespaces::is_root;
    use nix::fcntl::{OFlag, openat};
    use nix::sys::stat::Mode;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, chown};

    #[test]
    fn what_the_owner_may_not_open_is_not_opened_and_afterwards_all_is_as_before() {
        if !is_root() {
            println!("SKIPPED: only root can read as somebody else");
            return;
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        let nobody = Ids { uid: 65534, gid: 65534 };
        let root = Ids { uid: 0, gid: 0 };
        let [mine, theirs] = ["mine", "theirs"].map(|name| folder.path().join(name));
        for (path, owner) in [(&mine, 0), (&theirs, 65534)] {
            fs::write(path, "text").expect("written");
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("closed");
            chown(path, Some(owner), Some(owner)).expect("root may");
        }
        chown(folder.path(), Some(65534), Some(65534)).expect("root may");
        // By a handle: what lies above the folder is nobody's business here.
        let handle = fs::File::open(folder.path()).expect("a folder");
        let opens = |who, name: &str| {
            let open = || openat(&handle, name, OFlag::O_RDONLY, Mode::empty()).is_ok();
            as_owner(who, open).expect("root may become anybody")
        };
        assert!(opens(nobody, "theirs"));
        assert!(!opens(nobody, "mine"));
        // Without capabilities root is a user among others.
        chown(folder.path(), Some(0), Some(0)).expect("root may");
        assert!(opens(root, "mine"));
        assert!(!opens(root, "theirs"));
        assert!(fs::File::open(&theirs).is_ok(), "this thread is who it was");
    }
}
