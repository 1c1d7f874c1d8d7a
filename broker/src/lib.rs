//! The broker: a jailed process, one per session that uses host modules, which touches files on the session's behalf.
//!
//! Invariants of absence: never sees the control database, a network, another session's worktree or a JavaScript value;
//! decides nothing about grants (the supervisor checked each request before it was sent); starts no process, except
//! in the mode that exists for one command. It ends
//! when its channel does.
//!
//! Reading order:
//! - [`role`]: the process: descriptors, jail, then one request after the other
//! - [`jail`]: the walls in the order in which they are put up
//! - [`channel`]: frames on the socket to the supervisor
//! - [`fs`]: the `fs` module, everything beneath one directory handle
//! - [`database`]: the `database` module, SQLite files of the workspace
//! - [`exec`]: the `exec` module: a process of its own for each command

pub mod channel;
pub mod database;
pub mod exec;
pub mod fs;
pub mod jail;
pub mod role;

use std::ffi::OsString;
use std::process::ExitCode;

/// First argument of the hidden mode.
pub const MODE: &str = "broker";

/// Runs the broker if the arguments ask for it; to be called before anything else starts.
pub fn dispatch(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let mode = arguments.nth(1)?;
    if mode == exec::MODE {
        return Some(exec::run(arguments));
    }
    (mode == MODE).then(|| role::run(arguments))
}
