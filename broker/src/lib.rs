//! The broker: a jailed process, one for the file calls of a session, and one for its database calls; each command gets a process
//! of its own. The files agent starts them with the rights of a user.
//!
//! Invariants of absence: has no access to the control database, a network, another session's worktree or a JavaScript value;
//! decides no grants (the supervisor has checked each request); starts no process, except in the modes for one command and of the
//! agent. It exits when its channel is closed.
//!
//! Reading order:
//! - [`role`]: the process: descriptors, jail, then one request after the other
//! - [`jail`]: the steps of the jail in order
//! - [`channel`]: frames on the socket to the supervisor
//! - [`fs`]: the `fs` module, everything beneath one directory handle
//! - [`database`]: the `database` module, SQLite files of the workspace
//! - [`exec`]: the `exec` module: a separate process for each command
//! - [`files_agent`]: one process for each user: opens worktrees with the user's rights, and starts brokers for them

pub mod channel;
pub mod database;
pub mod exec;
pub mod files_agent;
pub mod fs;
pub mod jail;
pub mod role;

use std::ffi::OsString;
use std::process::ExitCode;

/// First argument of the hidden mode.
pub const MODE: &str = "broker";

/// Runs the broker if the arguments name one of its hidden modes; to be called before anything else starts.
pub fn dispatch(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let mode = arguments.nth(1)?;
    if mode == exec::MODE {
        return Some(exec::run(arguments));
    }
    if mode == files_agent::MODE {
        return Some(files_agent::run(arguments));
    }
    (mode == MODE).then(|| role::run(arguments))
}
