//! Opening beneath the worktree. The path is passed to the kernel unchanged: `openat2` walks it and refuses any step that
//! would leave the directory, also when a link or folder is exchanged during the walk. Must not decide anything by the text of
//! a path, because the files can change before they are opened; the text is only split into the folder, which is opened, and
//! the last name.

use super::kind;
use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::{FileStat as RawStat, Mode, fstat};
use std::os::fd::{AsFd as _, OwnedFd};
use vm_system_protocol::broker::{FileKind, FsTerms};
use vm_system_sandbox::beneath::{beneath_only, is_foreign_of_kernel};

/// Attempts of a walk; the kernel returns `EAGAIN` when a rename during the walk made `..` unsafe.
const WALKS: usize = 16;

/// A worktree, and the terms of one call.
pub(super) struct WorktreePaths<'a> {
    pub(super) worktree: &'a OwnedFd,
    /// Folders of other mounts may be entered.
    pub(super) cross_mounts: bool,
    pub(super) terms: FsTerms,
}

impl WorktreePaths<'_> {
    pub(super) fn open(&self, path: &str, flags: OFlag, mode: Mode) -> Result<OwnedFd, Errno> {
        let mut resolve = beneath_only(self.cross_mounts);
        resolve.set(ResolveFlag::RESOLVE_NO_SYMLINKS, !self.terms.links);
        let how = OpenHow::new().flags(flags | OFlag::O_CLOEXEC).mode(mode).resolve(resolve);
        let mut last = Errno::EAGAIN;
        for _ in 0..WALKS {
            match openat2(self.worktree.as_fd(), path, how) {
                Err(errno @ (Errno::EAGAIN | Errno::EINTR)) => last = errno,
                // Links are not allowed here; scripts would read `ELOOP` as too many links.
                Err(Errno::ELOOP) if !self.terms.links => return Err(Errno::EXDEV),
                // If `/` is the worktree, `proc/self` would be this process.
                Ok(file)
                    if self.cross_mounts && is_foreign_of_kernel(file.as_fd(), self.worktree.as_fd())? =>
                {
                    return Err(Errno::EXDEV);
                }
                result => return result,
            }
        }
        Err(last)
    }

    /// The metadata of a path, without opening the file.
    pub(super) fn stat(&self, path: &str, follow: bool) -> Result<RawStat, Errno> {
        fstat(self.path(path, follow)?)
    }

    /// An `O_PATH` handle, for metadata only.
    pub(super) fn path(&self, path: &str, follow: bool) -> Result<OwnedFd, Errno> {
        if !follow && !self.terms.links {
            return self.last_itself(path);
        }
        let no_follow = if follow { OFlag::empty() } else { OFlag::O_NOFOLLOW };
        self.open(path, OFlag::O_PATH | no_follow, Mode::empty())
    }

    /// Opens a regular file for reading. Opening a device can have effects and a pipe would block, so the kind is checked
    /// first, and again on the open file in case the file was exchanged in between.
    pub(super) fn regular_file(&self, path: &str) -> Result<(OwnedFd, RawStat), Errno> {
        expect_file(&self.stat(path, true)?)?;
        let file = self.open(path, OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY, Mode::empty())?;
        let stat = fstat(&file)?;
        expect_file(&stat)?;
        Ok((file, stat))
    }

    /// Opens a folder for listing.
    pub(super) fn folder(&self, path: &str) -> Result<OwnedFd, Errno> {
        self.open(path, OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NONBLOCK, Mode::empty())
    }

    /// The folder that contains the last name of a path, and that name. The name must not be `.`, `..` or empty: it is to be
    /// changed.
    pub(super) fn parent<'p>(&self, path: &'p str) -> Result<(OwnedFd, &'p str), Errno> {
        let (folder, name) = split(path)?;
        let folder = self.open(folder, OFlag::O_PATH | OFlag::O_DIRECTORY, Mode::empty())?;
        Ok((folder, name))
    }

    /// A handle of a path's last name, which is not followed if it is a link. No link in the path is followed either.
    fn last_itself(&self, path: &str) -> Result<OwnedFd, Errno> {
        let Ok((folder, name)) = self.parent(path) else {
            return self.open(path, OFlag::O_PATH, Mode::empty());
        };
        let how = OpenHow::new()
            .flags(OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC)
            .resolve(beneath_only(self.cross_mounts));
        openat2(folder.as_fd(), name, how)
    }
}

/// The folder of a path and its last name.
fn split(path: &str) -> Result<(&str, &str), Errno> {
    if path.is_empty() {
        return Err(Errno::ENOENT);
    }
    let trimmed = path.trim_end_matches('/');
    let (folder, name) = match trimmed.rfind('/') {
        Some(at) => (&trimmed[..=at], &trimmed[at + 1..]),
        None => (".", trimmed),
    };
    match name {
        "" if path.starts_with('/') => Err(Errno::EXDEV),
        "" | "." | ".." => Err(Errno::EBUSY),
        name if name.contains('\0') => Err(Errno::EINVAL),
        name => Ok((folder, name)),
    }
}

pub(super) fn expect_file(stat: &RawStat) -> Result<(), Errno> {
    match kind(stat) {
        FileKind::File => Ok(()),
        FileKind::Directory => Err(Errno::EISDIR),
        FileKind::Symlink | FileKind::Other => Err(Errno::ENODEV),
    }
}
