//! Path resolution beneath a folder by `openat2`, the only call that is safe against a hostile writer of the folder: the resolve
//! flags, and whether this process may make the call at all (an inherited filter of the host can forbid it; then no file could be
//! read). Keeps no descriptor open.

use crate::step::{AtStep as _, JailStep, StepError};
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};

/// How paths beneath a folder are walked: never out of it, through no link of `/proc`, and into no other mount unless that is
/// allowed.
pub fn beneath_only(cross_mounts: bool) -> ResolveFlag {
    let mut resolve = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS;
    // A user's FUSE mount could hold a process in a wait that SIGKILL does not end.
    resolve.set(ResolveFlag::RESOLVE_NO_XDEV, !cross_mounts);
    resolve
}

/// Opens the root directory, as a path only, by `openat2`. A filter sees only the number of this call: its flags are in memory.
pub fn check() -> Result<(), StepError> {
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_MAGICLINKS);
    openat2(AT_FDCWD, "/", how).map(drop).at(JailStep::OpenBeneath)
}
