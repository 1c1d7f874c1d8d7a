//! `ops …`: the daemon and its host.

mod audit;
mod doctor;
mod health;
mod runtime;
mod runtime_summary;
mod shutdown;

use crate::context::Context;
use crate::error::CliError;
use clap::Subcommand;

/// Verbs of operators.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Ask whether the daemon answers
    Health,
    /// Show which sessions are alive
    RuntimeSummary,
    /// Show the daemon itself: version, walls in force, totals
    Runtime,
    /// Show who changed what, through which API and how it ended, newest first
    Audit(audit::Args),
    /// Show which walls this host can put around sessions
    Doctor,
    /// Stop the daemon; all its sessions are closed
    Shutdown,
}

pub(crate) async fn run(context: &Context, command: Command) -> Result<u8, CliError> {
    match command {
        Command::Health => health::run(context).await,
        Command::RuntimeSummary => runtime_summary::run(context).await,
        Command::Runtime => runtime::run(context).await,
        Command::Audit(args) => audit::run(context, args).await,
        Command::Doctor => doctor::run(context).await,
        Command::Shutdown => shutdown::run(context).await,
    }
}
