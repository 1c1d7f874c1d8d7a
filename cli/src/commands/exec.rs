//! `exec …`: run code in sessions, and what came of it.

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
    /// Run code in a session; what it declares stays for the next run
    Repl(repl::Args),
    /// Run a file of a session's worktree
    RunFile(run_file::Args),
    /// Show a session's executions, newest first
    List(list::Args),
    /// Show one execution
    Get(ExecutionArg),
    /// Show an execution's events
    Events(events::Args),
    /// End a running execution; its session lives on
    Cancel(ExecutionArg),
}

/// An execution.
#[derive(Debug, clap::Args)]
pub struct ExecutionArg {
    /// Id, unique beginning of one, or name
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
