//! `ops …`: the daemon and its host.

mod audit;
mod backup;
mod check;
mod doctor;
mod health;
mod runtime;
mod runtime_summary;
mod shutdown;
mod upgrade;

use crate::context::Context;
use crate::error::CliError;
use clap::Subcommand;

/// Verbs of operators.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Check whether the daemon responds
    Health(health::Args),
    /// Show the sessions that have a worker
    RuntimeSummary,
    /// Show the daemon's version, sandbox walls and totals
    Runtime,
    /// Show the audit log: principal, API, verb, subject and outcome, newest first
    Audit(audit::Args),
    /// Show which sandbox walls this host supports
    Doctor,
    /// Copy the daemon's database into a file while it is in use; administrators only
    Backup(backup::Args),
    /// Check the database for damage and name what it cost; with --db that of a daemon that is stopped, or a backup
    Check,
    /// Show which builds the sessions run; replace those of other builds by a deadline; administrators only
    Upgrade(upgrade::Args),
    /// Stop the daemon and wait for its end; all its sessions are closed
    Shutdown(shutdown::Args),
}

pub(crate) async fn run(context: &Context, command: Command) -> Result<u8, CliError> {
    match command {
        Command::Health(args) => health::run(context, args).await,
        Command::RuntimeSummary => runtime_summary::run(context).await,
        Command::Runtime => runtime::run(context).await,
        Command::Audit(args) => audit::run(context, args).await,
        Command::Doctor => doctor::run(context).await,
        Command::Backup(args) => backup::run(context, args).await,
        Command::Check => check::run(context).await,
        Command::Upgrade(args) => upgrade::run(context, args).await,
        Command::Shutdown(args) => shutdown::run(context, args).await,
    }
}
