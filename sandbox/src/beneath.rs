//! Walks beneath a folder by `openat2`, the only way to walk a path that holds against a hostile writer of the folder: which steps
//! are allowed, the path of a worktree, and whether this process may make the call at all (a host can take it away with a filter
//! that it inherits; then no file could be read). Keeps nothing open itself.

use crate::step::{AtStep as _, JailStep, StepError};
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, open, openat2};
use nix::sys::stat::Mode;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

const FOLDER: OFlag = OFlag::O_PATH.union(OFlag::O_DIRECTORY).union(OFlag::O_CLOEXEC);

/// How paths beneath a folder are walked: never out of it, through no link of `/proc`, and into no other mount unless that is
/// allowed.
pub fn beneath_only(cross_mounts: bool) -> ResolveFlag {
    let mut resolve = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS;
    // A user's FUSE mount could hold a process in a wait that SIGKILL does not end.
    resolve.set(ResolveFlag::RESOLVE_NO_XDEV, !cross_mounts);
    resolve
}

/// Where a worktree is, for a process that must open it again: a handle of another mount namespace cannot be mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorktreePath {
    /// The operator's root, absolute and without links.
    pub root: PathBuf,
    /// The folder beneath it; `.` is the root itself.
    pub beneath: PathBuf,
    /// Folders of other mounts may be entered.
    pub cross_mounts: bool,
}

impl WorktreePath {
    /// Opens it (as a path only) by the walk that the supervisor makes: no link is followed.
    pub fn open(&self) -> io::Result<OwnedFd> {
        let root = open(&self.root, FOLDER | OFlag::O_NOFOLLOW, Mode::empty())?;
        let resolve = beneath_only(self.cross_mounts) | ResolveFlag::RESOLVE_NO_SYMLINKS;
        Ok(openat2(&root, &self.beneath, OpenHow::new().flags(FOLDER).resolve(resolve))?)
    }
}

/// Opens the root directory, as a path only, by `openat2`. A filter cannot see more of the call than that it is made.
pub fn check() -> Result<(), StepError> {
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_MAGICLINKS);
    openat2(AT_FDCWD, "/", how).map(drop).at(JailStep::OpenBeneath)
}
