//! `event …`: events for which programs wait.

mod emit;

use crate::context::Context;
use crate::error::CliError;
use clap::Subcommand;

/// Verbs of events.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Give an execution an event, or all that wait for it (`waitFor` in a program)
    Emit(emit::Args),
}

pub(crate) async fn run(context: &Context, command: Command) -> Result<u8, CliError> {
    match command {
        Command::Emit(args) => emit::run(context, args).await,
    }
}
