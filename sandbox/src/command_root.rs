//! The root directory of a command: the system's programs and libraries, read-only; the worktree at `/work`; an empty
//! `/tmp` in memory. Nothing else of the host's file system: no homes, no `/var`, no `/run`, and of `/etc` only what programs
//! need to start. Landlock says the same once more, and what may be done there.

use crate::landlock::{self, Access, Domain};
use crate::root::{make_read_only, pivot_to};
use crate::sys;
use nix::fcntl::{OFlag, open};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::{Mode, fstat};
use nix::unistd::{chdir, chroot, fchdir};
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

const NOTHING: Option<&str> = None;

/// The paths of the system that a command sees, if they exist. Links are recreated, files and folders are mounted read-only.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/ssl/certs",
];
/// Devices without side effects; their nodes are read-only, because modes and times are those of the host's nodes.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
/// Links that shells and programs expect; where there is no `/proc`, they lead nowhere.
const DEVICE_LINKS: &[(&str, &str)] = &[
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
];
/// Only process information: no `/proc/sys`, where the kernel checks for root's id and for no capability.
const PROCESSES_ONLY: &str = "subset=pid";
/// Sizes of `/tmp` and of the root itself.
const SIZE_LIMITS: &str = "size=64m,nr_inodes=4096,mode=0755";

/// The access of a command to the worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// An empty folder.
    Nothing,
    /// The worktree.
    Read,
    /// The worktree, which it may change.
    ReadWrite,
}

/// Replaces the root of this mount namespace; then `/work` is the working directory. `program` is mounted too if it is outside of
/// the system's folders. Needs the capabilities of a new user namespace.
///
/// The calling process then is in another mount namespace, which it cannot reach by any path: `mountinfo` has the paths of the host
/// from which folders are mounted, and it lists the mounts of a process's namespace that its root reaches: none. The mounts exist as
/// long as another process, the caller's parent, is in their namespace.
pub fn build(worktree: BorrowedFd<'_>, view: View, program: &Path) -> io::Result<()> {
    // First: otherwise the mounts below would appear in the host's namespace.
    mount(NOTHING, "/", NOTHING, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NOTHING)?;
    // Before anything is mounted over its path.
    let worktree = match view {
        View::Nothing => None,
        View::Read | View::ReadWrite => Some(of_this_namespace(worktree)?),
    };
    let program_handle = if is_outside(program) { Some(path_handle(program)?) } else { None };
    let place = "/tmp";
    let walls = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("none"), place, Some("tmpfs"), walls, Some(SIZE_LIMITS))?;
    for path in SYSTEM {
        show(Path::new(path), place)?;
    }
    for path in DEVICES {
        if Path::new(path).exists() {
            bind(Path::new(path), &format!("{place}{path}"), sys::READ_ONLY)?;
        }
    }
    folder(&format!("{place}/dev"))?;
    for (link, target) in DEVICE_LINKS {
        std::os::unix::fs::symlink(target, format!("{place}{link}"))?;
    }
    folder(&format!("{place}/tmp"))?;
    mount(
        Some("none"),
        format!("{place}/tmp").as_str(),
        Some("tmpfs"),
        walls | MsFlags::MS_NOEXEC,
        Some(SIZE_LIMITS),
    )?;
    // After `/tmp`, which would hide a program beneath it.
    if let Some(handle) = program_handle {
        let target = format!("{place}{}", program.display());
        bind(Path::new(&format!("/proc/self/fd/{}", handle.as_raw_fd())), &target, PROGRAMS)?;
    }
    let work = format!("{place}/work");
    folder(&work)?;
    if let Some(worktree) = &worktree {
        let source = format!("/proc/self/fd/{}", worktree.as_raw_fd());
        mount(Some(source.as_str()), work.as_str(), NOTHING, MsFlags::MS_BIND, NOTHING)?;
        let read_only = if view == View::Read { sys::READ_ONLY } else { 0 };
        sys::mount_restrict(Path::new(&work), sys::NO_DEVICES | read_only)?;
    }
    show_processes(&format!("{place}/proc"), walls | MsFlags::MS_NOEXEC)?;
    pivot_to(place)?;
    // When all mount points exist: they are made as folders of this root.
    make_read_only(walls)?;
    leave_mount_namespace()?;
    Ok(chdir("/work")?)
}

/// Moves to a copy of this mount namespace and keeps the root of the original.
fn leave_mount_namespace() -> io::Result<()> {
    let root = path_handle(Path::new("/"))?;
    unshare(CloneFlags::CLONE_NEWNS)?;
    fchdir(root)?;
    Ok(chroot(".")?)
}

/// Restricts the calling process by Landlock to what [`build`] has mounted. Needs `no_new_privs`.
pub fn restrict(view: View, program: &Path) -> io::Result<Domain> {
    let work = match view {
        View::Nothing => Access::Read,
        View::Read => Access::Execute,
        View::ReadWrite => Access::Work,
    };
    let mut allowed = Vec::new();
    for path in SYSTEM {
        allowed.push((Path::new(path), Access::Execute));
    }
    for path in DEVICES {
        allowed.push((Path::new(path), Access::Device));
    }
    if is_outside(program) {
        allowed.push((program, Access::Execute));
    }
    for (path, access) in [("/proc", Access::Read), ("/tmp", Access::Scratch), ("/work", work)] {
        allowed.push((Path::new(path), access));
    }
    let mut handles = Vec::with_capacity(allowed.len());
    for (path, access) in allowed {
        match path_handle(path) {
            Ok(handle) => handles.push((handle, access)),
            Err(nix::errno::Errno::ENOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let rules: Vec<_> = handles.iter().map(|(handle, access)| (handle.as_fd(), *access)).collect();
    landlock::restrict(&rules)
}

/// Whether a program is in none of the system's folders.
fn is_outside(program: &Path) -> bool {
    !SYSTEM.iter().any(|path| program.starts_with(path))
}

fn path_handle(path: &Path) -> nix::Result<OwnedFd> {
    open(path, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty())
}

/// A `/proc` of this namespace's processes, read-only. The kernel refuses a new one where parts of the host's `/proc` are
/// covered, as in containers, and before Linux 5.8 a `/proc` with process information only; then the command gets no `/proc`.
fn show_processes(proc: &str, walls: MsFlags) -> io::Result<()> {
    folder(proc)?;
    match mount(Some("none"), proc, Some("proc"), walls, Some(PROCESSES_ONLY)) {
        Ok(()) => sys::mount_restrict(Path::new(proc), sys::READ_ONLY | sys::NO_DEVICES),
        Err(_) => Ok(()),
    }
}

/// The same folder in this mount namespace: a folder that was opened in another namespace cannot be mounted here. The worktree is
/// the working directory, which the kernel carried over into the new namespace. No path is walked, so that no request goes to a
/// file system that a user mounted on the way.
fn of_this_namespace(worktree: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let here = open(".", OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
    let (one, other) = (fstat(worktree)?, fstat(here.as_fd())?);
    if (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino) {
        Ok(here)
    } else {
        Err(io::Error::other("the worktree is not the working directory"))
    }
}

fn folder(path: &str) -> io::Result<()> {
    match fs::create_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn show(path: &Path, place: &str) -> io::Result<()> {
    let target = format!("{place}{}", path.display());
    let Ok(found) = fs::symlink_metadata(path) else { return Ok(()) };
    if found.is_symlink() && path.parent() == Some(Path::new("/")) {
        return std::os::unix::fs::symlink(fs::read_link(path)?, target);
    }
    bind(path, &target, PROGRAMS)
}

/// Mount attributes of programs and libraries.
const PROGRAMS: u64 = sys::READ_ONLY | sys::NO_DEVICES;

/// Mounts a file or folder of the host, without set-user-id and with the attributes `without`.
fn bind(source: &Path, target: &str, without: u64) -> io::Result<()> {
    let Ok(found) = fs::metadata(source) else { return Ok(()) };
    if let Some(parent) = Path::new(target).parent() {
        fs::create_dir_all(parent)?;
    }
    if found.is_dir() {
        folder(target)?;
    } else {
        drop(fs::File::create(target)?);
    }
    mount(Some(source), target, NOTHING, MsFlags::MS_BIND | MsFlags::MS_REC, NOTHING)?;
    sys::mount_restrict(Path::new(target), without)
}
