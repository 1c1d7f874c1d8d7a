//! The `exec` module: a process for one command. It creates the namespaces, starts the command in them, writes its input and
//! reads its output. It kills the command with all its child processes when a limit of time or output is reached, or when the
//! supervisor closes the channel.
//!
//! - [`inside`]: pid 1 of the command's namespaces, and the command's own first steps
//! - [`watch`]: pipes and deadline
//!
//! Must not check whether the command may be started: the supervisor has done that.

mod inside;
mod watch;

use crate::channel::{SupervisorChannel, SupervisorChannelError};
use crate::fs::host_error;
use inside::CommandEnd;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use vm_system_protocol::broker::{
    BrokerCall, BrokerReply, ExecReply, ExecRequest, ExecTerms, FromBroker, ToBroker,
};
use vm_system_protocol::worker::HostError;
use vm_system_sandbox::identity::Identity;
use vm_system_sandbox::namespaces;
use vm_system_sandbox::process::{self, Fork};
use vm_system_sandbox::step::{AtStep as _, JailStep, StepError};
use watch::WatchError;

/// First argument of the hidden mode.
pub(crate) const MODE: &str = "broker-exec";
/// The channel to the supervisor.
const CHANNEL: i32 = process::FIRST_FD;
/// The worktree's directory.
const WORKTREE: i32 = process::FIRST_FD + 1;
/// The user namespace of this user's commands, where the host refuses it to users.
const USER_NAMESPACE: i32 = process::FIRST_FD + 2;

/// Runs the process to its end.
pub(crate) fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let Ok((channel, place)) = descriptors(arguments) else {
        // Not started by a supervisor: there is no channel.
        return ExitCode::from(2);
    };
    let mut channel = SupervisorChannel::new(File::from(channel));
    match serve(&mut channel, &place) {
        Ok(()) => process::exit_now(0),
        Err(_) => process::exit_now(1),
    }
}

/// Where a command runs.
struct CommandPlace {
    worktree: OwnedFd,
    user: Identity,
    user_namespace: Option<OwnedFd>,
}

fn descriptors(arguments: impl Iterator<Item = OsString>) -> io::Result<(OwnedFd, CommandPlace)> {
    let arguments: Vec<OsString> = arguments.collect();
    let (channel, worktree) = (process::inherited(CHANNEL)?, process::inherited(WORKTREE)?);
    let user_namespace = process::inherited(USER_NAMESPACE).ok();
    process::close_inherited();
    // One of root has the user of its own process: it runs no command.
    let user = crate::role::user(&arguments)?.map_or_else(Identity::of_this_process, Ok)?;
    Ok((channel, CommandPlace { worktree, user, user_namespace }))
}

fn serve(channel: &mut SupervisorChannel, place: &CommandPlace) -> Result<(), SupervisorChannelError> {
    channel.send(&FromBroker::Ready)?;
    let Some(ToBroker::Call { call, request: BrokerCall::Exec { request, terms }, .. }) =
        channel.receive()?
    else {
        return Ok(());
    };
    let reply = match start(place, &request, &terms) {
        Ok(started) => watch::supervise(channel, started, &request, &terms).map_err(|error| match error {
            WatchError::Folder(errno) => host_error(errno, "chdir", &request.folder),
            error => failed(&error),
        }),
        Err(error) => Err(failed(&error)),
    };
    channel.send(&FromBroker::Reply { call, reply: reply.map(BrokerReply::Exec) })
}

/// Why a command was not started.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error(
        "this session uses its files as root, and commands are not run as root; create it for another user (--as-user)"
    )]
    Root,
    #[error(transparent)]
    Jail(#[from] StepError),
}

/// Our ends of the pipes to the command.
struct Started {
    /// Pid 1 of the command's namespaces.
    pid: u32,
    input: PipeWriter,
    output: PipeReader,
    errors: PipeReader,
    /// The exit report of pid 1.
    status: PipeReader,
}

fn start(place: &CommandPlace, request: &ExecRequest, terms: &ExecTerms) -> Result<Started, StartError> {
    let CommandPlace { worktree, user, user_namespace } = place;
    process::die_first_of_memory_shortage().at_step(JailStep::OomScore)?;
    if namespaces::is_root_of_host() {
        return Err(StartError::Root);
    }
    // The kernel carries the working directory over into the new mount namespace, where it is mounted for the command.
    nix::unistd::fchdir(worktree).at_step(JailStep::Descriptors)?;
    // Commands run as the user of this process.
    namespaces::enter(user.clone(), user_namespace.as_ref())?;
    // Where the kernel has it, as `ops doctor` reports: the command does not see in which group of the host it is.
    let _ = namespaces::enter_cgroup();
    let (command_input, input) = io::pipe().at_step(JailStep::Descriptors)?;
    let (output, command_output) = io::pipe().at_step(JailStep::Descriptors)?;
    let (errors, command_errors) = io::pipe().at_step(JailStep::Descriptors)?;
    let (status, command_status) = io::pipe().at_step(JailStep::Descriptors)?;
    match process::fork().at_step(JailStep::Fork)? {
        Fork::Parent(pid) => {
            vm_system_sandbox::privileges::drop_all().at_step(JailStep::Privileges)?;
            Ok(Started { pid, input, output, errors, status })
        }
        Fork::Child => {
            drop((input, output, errors, status));
            let streams = [command_input.into(), command_output.into(), command_errors.into()];
            inside::run(worktree, request, terms, streams, command_status)
        }
    }
}

fn failed(error: &dyn std::error::Error) -> HostError {
    HostError { code: "ERR_EXEC".to_owned(), message: format!("ERR_EXEC: the command did not run: {error}") }
}

/// The reply about a started command.
fn reply(end: CommandEnd, stdout: Vec<u8>, stderr: Vec<u8>, timed_out: bool, truncated: bool) -> ExecReply {
    let (code, signal) = match end {
        CommandEnd::Exited(code) => (Some(code), None),
        CommandEnd::Signaled(signal) => (None, Some(signal)),
    };
    ExecReply { code, signal, timed_out, stdout, stderr, truncated }
}
