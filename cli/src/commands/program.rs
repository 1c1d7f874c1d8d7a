//! `program …`: durable programs and their executions.

mod answers;
mod checkpoints;
mod current;
mod delete;
mod export;
mod forget;
mod fork;
mod get;
mod import;
mod list;
mod load;
mod plan;
mod rerun;
mod rewind;
mod runs;
mod schedule;
mod set;
pub(crate) mod show;
mod start;
mod state;
mod status;
pub(crate) mod step;
mod versions;

use crate::context::Context;
use crate::error::CliError;
use clap::Subcommand;

/// Verbs of durable programs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Compile and store a program; another source under the same name becomes a new version
    Load(load::Args),
    /// Check a plan: a Markdown file that a built-in program goes through (`program load --plan`)
    Plan(plan::Args),
    /// Show all programs
    List(list::Args),
    /// Show one program with its source
    Get(get::GetArgs),
    /// Show the versions of a program, newest first
    Versions(versions::Args),
    /// Delete a program; its executions continue
    Delete(get::Args),
    /// Run a program to its first task or its end
    Start(start::Args),
    /// Show executions of programs, newest first
    Runs(runs::Args),
    /// Start programs at certain times
    #[command(subcommand)]
    Schedule(schedule::Command),
    /// Show the status of an execution
    Status(status::Args),
    /// Show the variables and the source line of an execution
    State(state::Args),
    /// Change a variable of a waiting execution
    Set(set::Args),
    /// Show the stored checkpoints of an execution
    Checkpoints(status::Args),
    /// Rewind to a checkpoint: a new execution takes over the name, the old one ends
    Rewind(rewind::Args),
    /// Start a new execution from a checkpoint; the old one is not changed
    Fork(fork::Args),
    /// Continue from a checkpoint with other answers, as a new execution
    Rerun(rerun::Args),
    /// Write a program, or an execution with all its stored data, to a file
    Export(export::Args),
    /// Create a program or an execution from an exported file
    Import(import::Args),
    /// Delete an execution with its output and states; if it has not ended, it is ended first
    Forget(status::Args),
    /// Show or set an agent's current execution, which its requests use if they name none
    Current(current::Args),
}

pub(crate) async fn run(context: &Context, command: Command) -> Result<u8, CliError> {
    match command {
        Command::Load(args) => load::run(context, args).await,
        Command::Plan(args) => plan::run(context, args).await,
        Command::List(args) => list::run(context, args).await,
        Command::Get(args) => get::run(context, args).await,
        Command::Versions(args) => versions::run(context, args).await,
        Command::Delete(args) => delete::run(context, args).await,
        Command::Start(args) => start::run(context, args).await,
        Command::Runs(args) => runs::run(context, args).await,
        Command::Schedule(command) => schedule::run(context, command).await,
        Command::Status(args) => status::run(context, args).await,
        Command::State(args) => state::run(context, args).await,
        Command::Set(args) => set::run(context, args).await,
        Command::Checkpoints(args) => checkpoints::run(context, args).await,
        Command::Rewind(args) => rewind::run(context, args).await,
        Command::Fork(args) => fork::run(context, args).await,
        Command::Rerun(args) => rerun::run(context, args).await,
        Command::Export(args) => export::run(context, args).await,
        Command::Import(args) => import::run(context, args).await,
        Command::Forget(args) => forget::run(context, args).await,
        Command::Current(args) => current::run(context, args).await,
    }
}
