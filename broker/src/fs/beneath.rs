//! Opening beneath the worktree. The path is handed to the kernel as it is: `openat2` walks it and refuses any step that
//! would leave the directory, also when a link or folder is exchanged during the walk. Nothing here inspects a path as
//! text, because what is true of the text may not be true of the files a moment later.

use super::kind;
use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::{FileStat as RawStat, fstat};
use std::os::fd::{AsFd as _, OwnedFd};
use vm_system_protocol::broker::FileKind;

/// How often a walk is begun again after the kernel saw a rename in the middle of it and could not vouch for `..`.
const WALKS: usize = 16;

fn open(worktree: &OwnedFd, path: &str, flags: OFlag) -> Result<OwnedFd, Errno> {
    let how = OpenHow::new()
        .flags(flags | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    let mut last = Errno::EAGAIN;
    for _ in 0..WALKS {
        match openat2(worktree.as_fd(), path, how) {
            Err(errno @ (Errno::EAGAIN | Errno::EINTR)) => last = errno,
            result => return result,
        }
    }
    Err(last)
}

/// What a path is, without opening it for anything.
pub(super) fn stat(worktree: &OwnedFd, path: &str, follow: bool) -> Result<RawStat, Errno> {
    let no_follow = if follow { OFlag::empty() } else { OFlag::O_NOFOLLOW };
    fstat(open(worktree, path, OFlag::O_PATH | no_follow)?)
}

/// Opens a regular file for reading. Opening a device can have effects and a pipe would block, so the kind is looked at
/// first, and once more on the open file in case it was exchanged in between.
pub(super) fn regular_file(worktree: &OwnedFd, path: &str) -> Result<(OwnedFd, RawStat), Errno> {
    expect_file(&stat(worktree, path, true)?)?;
    let file = open(worktree, path, OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY)?;
    let stat = fstat(&file)?;
    expect_file(&stat)?;
    Ok((file, stat))
}

fn expect_file(stat: &RawStat) -> Result<(), Errno> {
    match kind(stat) {
        FileKind::File => Ok(()),
        FileKind::Directory => Err(Errno::EISDIR),
        FileKind::Symlink | FileKind::Other => Err(Errno::ENODEV),
    }
}

/// Opens a folder for listing.
pub(super) fn folder(worktree: &OwnedFd, path: &str) -> Result<OwnedFd, Errno> {
    open(worktree, path, OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NONBLOCK)
}
