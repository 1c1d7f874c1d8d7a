//! The root directory of the jail: an empty read-only tmpfs, and a chroot beneath it, in which no user namespace can be
//! created. Nothing of the host's file system is left, `/proc` included.

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::stat::Mode;
use nix::unistd::{chdir, chroot, mkdir, pivot_root};
use std::io;

const NOTHING: Option<&str> = None;

/// Replaces the root of this mount namespace.
pub fn replace_by_nothing() -> io::Result<()> {
    let walls = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    // First: otherwise the mounts below would appear in the host's namespace.
    mount(NOTHING, "/", NOTHING, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NOTHING)?;
    // Any existing directory can be used as mount point; /proc always exists here.
    let options = Some("size=4k,nr_inodes=2,mode=0555");
    let place =
        ["/tmp", "/proc"].into_iter().find(|place| std::path::Path::new(place).is_dir()).unwrap_or("/proc");
    mount(Some("none"), place, Some("tmpfs"), walls, options)?;
    pivot_to(place)?;
    mkdir("/r", Mode::from_bits_truncate(0o555))?;
    chdir("/r")?;
    // After the folder was made in it, and before the chroot: a process with another root than its mount's can create no user namespace.
    make_read_only(walls)?;
    Ok(chroot(".")?)
}

/// Makes a mount the root, and unmounts the old root.
pub(crate) fn pivot_to(place: &str) -> io::Result<()> {
    chdir(place)?;
    pivot_root(".", ".")?;
    // The old root is mounted over the new one: unmount it.
    umount2(".", MntFlags::MNT_DETACH)?;
    Ok(chdir("/")?)
}

/// Makes the root read-only; `walls` are the flags that it keeps.
pub(crate) fn make_read_only(walls: MsFlags) -> io::Result<()> {
    let read_only = walls | MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY;
    Ok(mount(NOTHING, "/", NOTHING, read_only, NOTHING)?)
}
