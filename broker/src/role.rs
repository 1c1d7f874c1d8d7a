//! The broker's process: takes its descriptors, enters the jail, then serves requests until the channel is closed.
//! Blocking and single-threaded; no logging, no environment.

use crate::channel::{SupervisorChannel, SupervisorChannelError};
use crate::database::Databases;
use crate::fs;
use crate::jail::{self, Needs};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use vm_system_protocol::broker::{BrokerCall, BrokerReply, FromBroker, ToBroker};
use vm_system_protocol::worker::HostError;
use vm_system_sandbox::identity::Identity;
use vm_system_sandbox::namespaces::Ids;
use vm_system_sandbox::process;

/// The channel to the supervisor.
const CHANNEL: i32 = process::FIRST_FD;
/// The worktree's directory.
const WORKTREE: i32 = process::FIRST_FD + 1;
/// The directory of the workspace's databases, if there is one.
const WORKSPACE: i32 = process::FIRST_FD + 2;

/// Runs the broker to its end. Exits by itself, because the filter does not allow the system calls of the runtime's tear-down.
/// `arguments`: the rights beyond reading (`write`, `database`), `cross-mounts`, and the user to become
/// (`user=UID:GID:GROUPS`, for a broker started by root).
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
    match serve(&mut channel, &needs) {
        Ok(()) => process::exit_now(0),
        Err(_) => process::exit_now(1),
    }
}

fn descriptors(arguments: impl Iterator<Item = OsString>) -> io::Result<(OwnedFd, Needs)> {
    let arguments: Vec<OsString> = arguments.collect();
    let named = |what: &str| arguments.iter().any(|argument| argument == what);
    let (write, database, cross_mounts) = (named("write"), named("database"), named("cross-mounts"));
    let channel = process::inherited(CHANNEL)?;
    let worktree = process::inherited(WORKTREE)?;
    let workspace = if database { process::inherited(WORKSPACE).ok() } else { None };
    process::close_inherited();
    let user = user(&arguments, &worktree)?;
    Ok((channel, Needs { write, database, worktree, cross_mounts, user, workspace }))
}

/// The owner of the files from the argument `user=`, which the supervisor looked up; without the argument the process keeps its
/// user. A process that could become the owner but has no such argument fails: it would keep root's rights, or lose groups.
pub(crate) fn user(arguments: &[OsString], worktree: &OwnedFd) -> io::Result<Identity> {
    let user = arguments.iter().find_map(|argument| argument.to_str()?.strip_prefix("user="));
    if let Some(user) = user {
        return user.parse();
    }
    let owner = nix::sys::stat::fstat(worktree)?;
    if vm_system_sandbox::reader::can_become(owner.st_uid) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(Ids { uid: owner.st_uid, gid: owner.st_gid }.into())
}

fn serve(channel: &mut SupervisorChannel, needs: &Needs) -> Result<(), SupervisorChannelError> {
    let mut databases = Databases::new(needs.workspace.is_some());
    let mut last = None;
    channel.send(&FromBroker::Ready)?;
    loop {
        match channel.receive()? {
            Some(ToBroker::Call { call, execution, request }) => {
                if last.replace(execution).is_some_and(|last| last != execution) {
                    databases.roll_back();
                }
                let reply = handle_request(needs, &mut databases, request);
                channel.send(&FromBroker::Reply { call, reply })?;
            }
            Some(ToBroker::ExecutionEnded) => databases.roll_back(),
            Some(ToBroker::Shutdown) | None => return Ok(()),
        }
    }
}

fn handle_request(
    needs: &Needs,
    databases: &mut Databases,
    request: BrokerCall,
) -> Result<BrokerReply, HostError> {
    match request {
        BrokerCall::Fs { request, terms } => {
            fs::handle_request(&needs.worktree, needs.cross_mounts, request, terms).map(BrokerReply::Fs)
        }
        BrokerCall::Database { request, terms } if needs.database => {
            databases.handle_request(&request, terms).map(BrokerReply::Database)
        }
        BrokerCall::Database { .. } | BrokerCall::Exec { .. } => Err(HostError {
            code: "EBROKER".to_owned(),
            message: "EBROKER: this broker does not handle this kind of call".to_owned(),
        }),
    }
}
