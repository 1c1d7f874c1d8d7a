//! `task …`: pending tasks and their answers.

mod get;
mod list;
mod submit;

pub(crate) use get::task_status;

use crate::context::Context;
use crate::error::CliError;
use clap::Subcommand;

/// Verbs of tasks.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show all pending tasks, oldest first
    List(list::Args),
    /// Show the pending task of an execution, or its result
    Get(get::Args),
    /// Answer a task; the program continues to its next task or its end
    Submit(submit::Args),
}

pub(crate) async fn run(context: &Context, command: Command) -> Result<u8, CliError> {
    match command {
        Command::List(args) => list::run(context, args).await,
        Command::Get(args) => get::run(context, args).await,
        Command::Submit(args) => submit::run(context, args).await,
    }
}
