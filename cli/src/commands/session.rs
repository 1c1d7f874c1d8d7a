//! `session …`: sandboxed processes that run code.

mod checkpoint;
mod close;
mod create;
mod events;
mod fork;
mod get;
mod inspect;
mod kill;
mod list;
mod rename;
mod restore;
mod suspend;

use crate::context::Context;
use crate::error::CliError;
use clap::Subcommand;

/// Verbs of sessions.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create a session and wait until it is ready
    Create(create::Args),
    /// Show sessions, newest first
    List(list::Args),
    /// Show one session
    Get(SessionArg),
    /// End a session; a running execution is cancelled
    Close(SessionArg),
    /// Give a session another name
    Rename(rename::Args),
    /// Show a session's process as the kernel reports it
    Inspect(SessionArg),
    /// Kill a session's process
    Kill(kill::Args),
    /// Show what happened to a session: its executions, forks, its end
    Events(events::Args),
    /// Create copies of an idle session with its current state
    Fork(fork::Args),
    /// Keep a frozen copy of an idle session, to which it can be rolled back
    Checkpoint(checkpoint::CheckpointArgs),
    /// Show the checkpoints of a session
    Checkpoints(SessionArg),
    /// Continue a session from a checkpoint
    Rollback(checkpoint::RollbackArgs),
    /// Give up a checkpoint
    DeleteCheckpoint(checkpoint::DeleteArgs),
    /// Stop an idle session's worker until a request needs it
    Suspend(SessionArg),
    /// Let the worker of a suspended session run again
    Resume(SessionArg),
    /// Repeat the successful inputs of an ended session in a new one
    #[command(after_long_help = restore::HELP)]
    Restore(restore::Args),
    /// Show how far the restoration in a new session is, or its result
    Restoration(SessionArg),
}

/// A session.
#[derive(Debug, clap::Args)]
pub struct SessionArg {
    /// Id, unique beginning of an id, or name
    #[arg(value_name = "SESSION")]
    session: String,
}

pub(crate) async fn run(context: &Context, command: Command) -> Result<u8, CliError> {
    match command {
        Command::Create(args) => create::run(context, args).await,
        Command::List(args) => list::run(context, args).await,
        Command::Get(args) => get::run(context, args).await,
        Command::Close(args) => close::run(context, args).await,
        Command::Rename(args) => rename::run(context, args).await,
        Command::Inspect(args) => inspect::run(context, args).await,
        Command::Kill(args) => kill::run(context, args).await,
        Command::Events(args) => events::run(context, args).await,
        Command::Fork(args) => fork::run(context, args).await,
        Command::Checkpoint(args) => checkpoint::create(context, args).await,
        Command::Checkpoints(args) => checkpoint::list(context, args).await,
        Command::Rollback(args) => checkpoint::roll_back(context, args).await,
        Command::DeleteCheckpoint(args) => checkpoint::delete(context, args).await,
        Command::Suspend(args) => suspend::suspend(context, args).await,
        Command::Resume(args) => suspend::resume(context, args).await,
        Command::Restore(args) => restore::run(context, args).await,
        Command::Restoration(args) => restore::show(context, args).await,
    }
}
