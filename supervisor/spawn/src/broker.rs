//! Starts the brokers and command processes that run with the supervisor's own rights. Knows nothing of requests.

use crate::child::ChildProcess;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use vm_system_sandbox::identity::Identity;
use vm_system_sandbox::namespaces::is_root;

/// The hidden mode of a broker.
const MODE: &str = "broker";

/// The hidden mode for one command.
const COMMAND_MODE: &str = "broker-exec";

/// The files that a broker process may use.
#[derive(Debug, Clone, Copy)]
pub struct BrokerFiles<'a> {
    /// The worktree's folder.
    pub worktree: BorrowedFd<'a>,
    /// Folders of other mounts beneath the worktree may be entered.
    pub cross_mounts: bool,
}

/// Starts `program broker` for the files of a worktree, with its end of the channel and the worktree's handle.
pub fn start_file_broker(
    program: &Path,
    write: bool,
    channel: BorrowedFd<'_>,
    files: BrokerFiles<'_>,
) -> io::Result<ChildProcess> {
    let user = own_user()?;
    let mut arguments = vec![OsStr::new(MODE)];
    if write {
        arguments.push(OsStr::new("write"));
    }
    if files.cross_mounts {
        arguments.push(OsStr::new("cross-mounts"));
    }
    arguments.extend(user.as_deref());
    ChildProcess::start(program, &arguments, &[channel, files.worktree])
}

/// Starts `program broker-exec`: the process of one command.
pub fn start_command(
    program: &Path,
    channel: BorrowedFd<'_>,
    files: BrokerFiles<'_>,
) -> io::Result<ChildProcess> {
    let user = own_user()?;
    let mut arguments = vec![OsStr::new(COMMAND_MODE)];
    arguments.extend(user.as_deref());
    ChildProcess::start(program, &arguments, &[channel, files.worktree])
}

/// The files of a broker for databases.
#[derive(Debug, Clone, Copy)]
pub struct DatabaseFiles<'a> {
    /// The workspace's folder.
    pub workspace: BorrowedFd<'a>,
    /// All of them together (bytes); the process can make none that is larger.
    pub max_bytes: u64,
}

/// Starts `program broker` for databases, with its end of the channel; without files they are in memory. A supervisor that is root
/// gives it the service user.
pub fn start_database_broker(
    program: &Path,
    service_user: &Identity,
    channel: BorrowedFd<'_>,
    files: Option<DatabaseFiles<'_>>,
) -> io::Result<ChildProcess> {
    let user = is_root().then(|| OsString::from(format!("user={service_user}")));
    let mut arguments = vec![OsStr::new(MODE), OsStr::new("database")];
    arguments.extend(user.as_deref());
    let max_bytes = files.map(|files| OsString::from(format!("max-bytes={}", files.max_bytes)));
    arguments.extend(max_bytes.as_deref());
    let workspace = files.map(|files| files.workspace);
    let descriptors: Vec<_> = std::iter::once(channel).chain(workspace).collect();
    ChildProcess::start(program, &arguments, &descriptors)
}

/// The argument with the supervisor's own user: a process of root must have it, and gives up all capabilities.
fn own_user() -> io::Result<Option<OsString>> {
    let user = is_root().then(Identity::of_this_process).transpose()?;
    Ok(user.map(|user| OsString::from(format!("user={user}"))))
}
