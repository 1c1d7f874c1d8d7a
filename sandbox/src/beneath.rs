//! Whether this process may call `openat2`, by which every path beneath a worktree is walked. A host can take the call away
//! with a filter that it inherits; then no file could be read, and there is no other way to walk a path that holds against a
//! hostile writer of the folder. Opens nothing that is kept.

use crate::step::{AtStep as _, JailStep, StepError};
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};

/// Opens the root directory, as a path only, by `openat2`. A filter cannot see more of the call than that it is made.
pub fn check() -> Result<(), StepError> {
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_MAGICLINKS);
    openat2(AT_FDCWD, "/", how).map(drop).at(JailStep::OpenBeneath)
}
