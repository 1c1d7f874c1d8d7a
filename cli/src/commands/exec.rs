//! `exec …`: run code in sessions, and show executions.

mod cancel;
mod events;
mod get;
mod list;
pub(crate) mod repl;
mod run_file;
pub(crate) mod start;

use crate::context::Context;
use crate::error::CliError;
use clap::Subcommand;

/// Verbs of executions.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run code in a session; its declarations are kept for the next run
    Repl(repl::Args),
    /// Run a file of a session's worktree
    RunFile(run_file::Args),
    /// Show a session's executions, newest first
    List(list::Args),
    /// Show one execution
    Get(ExecutionArg),
    /// Show an execution's events
    Events(events::Args),
    /// Cancel a running execution; its session continues
    Cancel(ExecutionArg),
}

/// An execution.
#[derive(Debug, clap::Args)]
pub struct ExecutionArg {
    /// Id, unique beginning of an id, or name
    #[arg(value_name = "EXECUTION")]
    execution: String,
}

pub(crate) async fn run(context: &Context, command: Command) -> Result<u8, CliError> {
    match command {
        Command::Repl(args) => repl::run(context, args).await,
        Command::RunFile(args) => run_file::run(context, args).await,
        Command::List(args) => list::run(context, args).await,
        Command::Get(args) => get::run(context, args).await,
        Command::Events(args) => events::run(context, args).await,
        Command::Cancel(args) => cancel::run(context, args).await,
    }
}
