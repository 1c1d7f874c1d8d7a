//! `program schedule …`: times at which programs are started.

mod add;
mod change;
mod get;
mod list;
mod run;

use crate::context::Context;
use crate::error::CliError;
use clap::Subcommand;

/// Verbs of schedules.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start a program at certain times
    Add(Box<add::Args>),
    /// Show all schedules, with their next times and what the last ones led to
    List(list::Args),
    /// Show one schedule
    Get(change::Args),
    /// Start nothing until the schedule is resumed
    Pause(change::Args),
    /// Let a paused schedule go on with its next time
    Resume(change::Args),
    /// Start the program of a schedule now, beside its times
    Run(run::RunArgs),
    /// Delete a schedule; its executions continue
    Delete(change::Args),
}

pub(crate) async fn run(context: &Context, command: Command) -> Result<u8, CliError> {
    match command {
        Command::Add(args) => add::run(context, *args).await,
        Command::List(args) => list::run(context, args).await,
        Command::Get(args) => get::run(context, args).await,
        Command::Pause(args) => change::pause(context, args).await,
        Command::Resume(args) => change::resume(context, args).await,
        Command::Run(args) => run::run(context, args).await,
        Command::Delete(args) => change::delete(context, args).await,
    }
}
