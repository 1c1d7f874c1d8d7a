//! Path resolution beneath a folder by `openat2`, the only call that is safe against a hostile writer of the folder: folders and
//! files are opened with the rights of the calling process, and whether this process may make the call at all (an inherited filter
//! of the host can forbid it; then no file could be read). Keeps no descriptor open.

use crate::step::{AtStep as _, JailStep, StepError};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::{fstat, major, stat};
use nix::sys::statfs::fstatfs;
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

/// Times a path is looked up again when folders above it are moved in the same moment (`openat2` fails with EAGAIN).
const RACES: u32 = 16;

/// Flags for opening a folder itself.
pub const FOLDER: OFlag = OFlag::O_PATH.union(OFlag::O_DIRECTORY).union(OFlag::O_CLOEXEC);

/// How paths beneath a folder are walked: never out of it, through no link of `/proc`, and into no other mount unless that is
/// allowed.
pub fn beneath_only(cross_mounts: bool) -> ResolveFlag {
    let mut resolve = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS;
    // A user's FUSE mount could hold a process in a wait that SIGKILL does not end.
    resolve.set(ResolveFlag::RESOLVE_NO_XDEV, !cross_mounts);
    resolve
}

/// Opens a folder beneath `root` as a path only, if this process may search it; follows no link. Blocks.
pub fn open_folder(root: BorrowedFd<'_>, beneath: &Path, cross_mounts: bool) -> nix::Result<OwnedFd> {
    let resolve = beneath_only(cross_mounts) | ResolveFlag::RESOLVE_NO_SYMLINKS;
    // Opening as a path needs no right to the folder itself; the last step, to `.`, does.
    let folder = walk(root, &beneath.join("."), OpenHow::new().flags(FOLDER).resolve(resolve))?;
    if is_of_kernel(folder.as_fd())? || is_of_devices(folder.as_fd())? { Err(OF_KERNEL) } else { Ok(folder) }
}

/// As [`open_folder`], from what the kernel has cached: EAGAIN where a disk or a server would have to be queried, or the type of a
/// file system without a device. Does not block.
pub fn open_cached_folder(root: BorrowedFd<'_>, beneath: &Path, cross_mounts: bool) -> nix::Result<OwnedFd> {
    let cached = ResolveFlag::from_bits_retain(libc::RESOLVE_CACHED);
    let resolve = beneath_only(cross_mounts) | ResolveFlag::RESOLVE_NO_SYMLINKS | cached;
    let folder = openat2(root, &beneath.join("."), OpenHow::new().flags(FOLDER).resolve(resolve))?;
    let (device, of_root) = (fstat(&folder)?.st_dev, fstat(root)?.st_dev);
    // The kernel's own have none; a server would be queried for the type.
    if device == of_root || major(device) != 0 { Ok(folder) } else { Err(Errno::EAGAIN) }
}

/// The error of [`open_folder`] for a folder of the kernel.
pub const OF_KERNEL: Errno = Errno::EOPNOTSUPP;

/// File systems in which the kernel shows itself: their files are no files of a user, and `self` in `/proc` is whichever process opens
/// it. In-memory ones (`tmpfs`) are not among them, so neither is `/dev`.
const KERNEL_FILE_SYSTEMS: &[u64] = &[
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0x6265_6570, // configfs
    0xcafe_4a11, // bpf
    0x6165_676c, // pstore
    0xde5e_81e4, // efivarfs
    0xf97c_ff8c, // selinuxfs
    0x4341_5d53, // smackfs
    0x5a3c_69f0, // apparmorfs
    0x4249_4e4d, // binfmt_misc
    0x6573_5543, // fusectl
    0x0765_5821, // resctrl
    0xabba_1974, // xenfs
    0x1980_0202, // mqueue
    0x1cd1,      // devpts
    0x6e73_6673, // nsfs
    0x6759_6969, // rpc_pipefs
];

/// Whether a file is in a file system in which the kernel shows itself. Blocks.
pub fn is_of_kernel(file: BorrowedFd<'_>) -> nix::Result<bool> {
    // The type of the field differs between machines; a magic number has 32 bits.
    let kind = fstatfs(file)?.filesystem_type().0 as u64 & 0xffff_ffff;
    Ok(KERNEL_FILE_SYSTEMS.contains(&kind))
}

/// Whether a folder is in the file system of the devices, which is an in-memory one.
fn is_of_devices(folder: BorrowedFd<'_>) -> nix::Result<bool> {
    let device = fstat(folder)?.st_dev;
    let is_same = |path: &str| stat(path).is_ok_and(|found| found.st_dev == device);
    Ok(is_same("/dev") && !is_same("/"))
}

/// Identifies a file or folder in its file system, also after a restart and after the reuse of its inode number
/// (`name_to_handle_at`), at most [`HANDLE_BYTES`]; `None` where the file system has no handles.
pub fn file_handle(file: BorrowedFd<'_>) -> Option<Vec<u8>> {
    crate::sys::file_handle(file).ok()
}

/// Longest result of [`file_handle`]: the type, and `MAX_HANDLE_SZ`.
pub const HANDLE_BYTES: usize = 4 + 128;

/// The target of a path beneath a folder.
#[derive(Debug)]
pub enum PathTarget {
    /// A regular file, open for reading.
    File(File, Metadata),
    Folder,
    /// There is no such file.
    Nothing,
    /// A device, a pipe or a socket.
    Irregular,
}

/// Opens a file beneath `folder` for reading, without waiting for the peer of a pipe. Links within the folder are followed if
/// `links`. Blocks.
pub fn open_file(
    folder: BorrowedFd<'_>,
    path: &str,
    links: bool,
    cross_mounts: bool,
) -> nix::Result<PathTarget> {
    let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let mut resolve = beneath_only(cross_mounts);
    resolve.set(ResolveFlag::RESOLVE_NO_SYMLINKS, !links);
    let file = match walk(folder, Path::new(path), OpenHow::new().flags(flags).resolve(resolve)) {
        Ok(file) => File::from(file),
        Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ENAMETOOLONG) => return Ok(PathTarget::Nothing),
        // A socket, or a device without a driver.
        Err(Errno::ENXIO | Errno::ENODEV) => return Ok(PathTarget::Irregular),
        Err(errno) => return Err(errno),
    };
    if cross_mounts && is_foreign_of_kernel(file.as_fd(), folder)? {
        return Err(Errno::EXDEV);
    }
    let metadata = file.metadata().map_err(|error| errno_of(&error))?;
    Ok(match metadata.file_type() {
        kind if kind.is_file() => PathTarget::File(file, metadata),
        kind if kind.is_dir() => PathTarget::Folder,
        _ => PathTarget::Irregular,
    })
}

/// The content of an open file of `size` bytes; the inner error is the size of a file above `cap`, or the part that was read. Blocks.
pub fn read_capped(file: File, size: u64, cap: u64) -> nix::Result<Result<Vec<u8>, u64>> {
    if size > cap {
        return Ok(Err(size));
    }
    // The file may grow while it is read: one byte above the limit detects that.
    let mut bytes = Vec::with_capacity(size as usize + 1);
    file.take(cap.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| errno_of(&error))?;
    let read = bytes.len() as u64;
    Ok(if read > cap { Err(read) } else { Ok(bytes) })
}

/// Whether a file beneath `folder` is in another file system, in which the kernel shows itself.
pub fn is_foreign_of_kernel(file: BorrowedFd<'_>, folder: BorrowedFd<'_>) -> nix::Result<bool> {
    Ok(fstat(file)?.st_dev != fstat(folder)?.st_dev && is_of_kernel(file)?)
}

fn walk(from: BorrowedFd<'_>, path: &Path, how: OpenHow) -> nix::Result<OwnedFd> {
    let mut races = 0;
    loop {
        match openat2(from, path, how) {
            Err(Errno::EAGAIN) if races < RACES => races += 1,
            Err(Errno::EINTR) => {}
            opened => return opened,
        }
    }
}

/// The error number of an I/O error; EIO if it has none.
pub fn errno_of(error: &io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO))
}

/// Opens the root directory, as a path only, by `openat2`. A filter sees only the number of this call: its flags are in memory.
pub fn check() -> Result<(), StepError> {
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_MAGICLINKS);
    openat2(AT_FDCWD, "/", how).map(drop).at_step(JailStep::OpenBeneath)
}
