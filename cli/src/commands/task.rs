//! `task …`: the questions of programs, and their answers.

mod get;
mod list;
mod submit;

pub(crate) use get::called;

use crate::context::Context;
use crate::error::CliError;
use clap::Subcommand;

/// Verbs of tasks.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show all open questions, oldest first
    List(list::Args),
    /// Show what an execution waits for, or what came of it
    Get(get::Args),
    /// Answer a question; the program runs on to its next one or its end
    Submit(submit::Args),
}

pub(crate) async fn run(context: &Context, command: Command) -> Result<u8, CliError> {
    match command {
        Command::List(args) => list::run(context, args).await,
        Command::Get(args) => get::run(context, args).await,
        Command::Submit(args) => submit::run(context, args).await,
    }
}
