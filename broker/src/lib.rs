//! The broker: a jailed process, one per session that uses host modules, which touches files on the session's behalf.
//!
//! Invariants of absence: never sees the control database, a network, another session's worktree or a JavaScript value;
//! decides nothing about grants (the supervisor checked each request before it was sent); starts no process. It ends
//! when its channel does.
//!
//! Reading order:
//! - [`role`]: the process: descriptors, jail, then one request after the other
//! - [`jail`]: the walls in the order in which they are put up
//! - [`channel`]: frames on the socket to the supervisor
//! - [`fs`]: the `fs` module, everything beneath one directory handle

pub mod channel;
pub mod fs;
pub mod jail;
pub mod role;

use std::ffi::OsString;
use std::process::ExitCode;

/// First argument of the hidden mode.
pub const MODE: &str = "broker";

/// Runs the broker if the arguments ask for it; to be called before anything else starts.
pub fn dispatch(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    (arguments.nth(1)? == MODE).then(role::run)
}
