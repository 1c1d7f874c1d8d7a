//! The broker's process: takes its descriptors, enters the jail, then serves requests until the channel is closed.
//! Blocking and single-threaded; no logging, no environment.

use crate::channel::{SupervisorChannel, SupervisorChannelError};
use crate::database::Databases;
use crate::fs;
use crate::jail::{self, Needs, Served, WorkspaceFiles};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use vm_system_protocol::broker::{BrokerCall, BrokerReply, FromBroker, ToBroker};
use vm_system_protocol::worker::HostError;
use vm_system_sandbox::identity::Identity;
use vm_system_sandbox::{inspect, process};

/// Argument of a file broker: it may change files.
pub(crate) const WRITE: &str = "write";
/// Argument of a file broker: folders of other mounts beneath the worktree may be entered.
pub(crate) const CROSS_MOUNTS: &str = "cross-mounts";
/// Argument: the kernel kills the broker when its parent exits. Only for a parent whose threads do not exit before it does.
pub(crate) const DIES_WITH_PARENT: &str = "dies-with-parent";
/// Argument of a broker for databases.
const DATABASE: &str = "database";
/// Prefix of an argument of a broker with database files: what all of them together may take (bytes).
const MAX_BYTES: &str = "max-bytes=";

/// The channel to the supervisor.
const CHANNEL: i32 = process::FIRST_FD;
/// The worktree's folder, or the folder of the workspace's databases, if there is one.
const FOLDER: i32 = process::FIRST_FD + 1;

/// Runs the broker to its end. Exits by itself, because the filter does not allow the system calls of the runtime's tear-down.
/// `arguments`: those above, and the user to become (`user=UID:GID:GROUPS`, for a broker started by root).
pub(crate) fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let Ok((channel, needs)) = descriptors(arguments) else {
        // Not started by a supervisor: there is no channel.
        return ExitCode::from(2);
    };
    let mut channel = SupervisorChannel::new(File::from(channel));
    if let Err(failure) = jail::enter(&needs) {
        let _ = channel.send(&FromBroker::Failed { message: failure.to_string() });
        process::exit_now(1);
    }
    match serve(&mut channel, &needs.served) {
        Ok(()) => process::exit_now(0),
        Err(_) => process::exit_now(1),
    }
}

fn descriptors(arguments: impl Iterator<Item = OsString>) -> io::Result<(OwnedFd, Needs)> {
    let arguments: Vec<OsString> = arguments.collect();
    let named = |what: &str| arguments.iter().any(|argument| argument == what);
    let channel = process::inherited(CHANNEL)?;
    let folder = process::inherited(FOLDER);
    process::close_inherited();
    let served = if named(DATABASE) {
        let max_bytes =
            arguments.iter().find_map(|argument| argument.to_str()?.strip_prefix(MAX_BYTES)?.parse().ok());
        // Without the limit there are no files.
        let workspace =
            folder.ok().zip(max_bytes).map(|(folder, max_bytes)| WorkspaceFiles { folder, max_bytes });
        Served::Databases { workspace }
    } else {
        Served::Files { worktree: folder?, write: named(WRITE), cross_mounts: named(CROSS_MOUNTS) }
    };
    let user = user(&arguments)?;
    Ok((channel, Needs { served, user, dies_with_parent: named(DIES_WITH_PARENT) }))
}

/// The user from the argument `user=`, which the supervisor looked up; without it the process keeps its user. A process with
/// capabilities and without that argument fails: it would keep root's rights.
pub(crate) fn user(arguments: &[OsString]) -> io::Result<Option<Identity>> {
    let user = user_argument(&mut arguments.iter().cloned())?;
    if user.is_none() && inspect::status(std::process::id())?.capabilities != 0 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(user)
}

/// The first argument `user=`.
pub(crate) fn user_argument(arguments: &mut impl Iterator<Item = OsString>) -> io::Result<Option<Identity>> {
    let user = arguments.find_map(|argument| argument.to_str()?.strip_prefix("user=").map(str::to_owned));
    user.map(|user| user.parse()).transpose()
}

fn serve(channel: &mut SupervisorChannel, served: &Served) -> Result<(), SupervisorChannelError> {
    let mut databases = Databases::new(matches!(served, Served::Databases { workspace: Some(_) }));
    let mut last = None;
    channel.send(&FromBroker::Ready)?;
    loop {
        match channel.receive()? {
            Some(ToBroker::Call { call, execution, request }) => {
                if last.replace(execution).is_some_and(|last| last != execution) {
                    databases.roll_back();
                }
                let reply = handle_request(served, &mut databases, request);
                channel.send(&FromBroker::Reply { call, reply })?;
            }
            Some(ToBroker::ExecutionEnded) => databases.roll_back(),
            Some(ToBroker::Shutdown) | None => return Ok(()),
        }
    }
}

fn handle_request(
    served: &Served,
    databases: &mut Databases,
    request: BrokerCall,
) -> Result<BrokerReply, HostError> {
    match (request, served) {
        (BrokerCall::Fs { request, terms }, Served::Files { worktree, cross_mounts, .. }) => {
            fs::handle_request(worktree, *cross_mounts, request, terms).map(BrokerReply::Fs)
        }
        (BrokerCall::Database { request, terms }, Served::Databases { .. }) => {
            databases.handle_request(&request, terms).map(BrokerReply::Database)
        }
        _ => Err(HostError {
            code: "EBROKER".to_owned(),
            message: "EBROKER: this broker does not handle this kind of call".to_owned(),
        }),
    }
}
