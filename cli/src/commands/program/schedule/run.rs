//! `program schedule run`

use super::super::show;
use super::change;
use crate::args::IdempotencyArgs;
use crate::context::Context;
use crate::error::CliError;
use vm_system_protocol::control::ScheduleRun;

/// Arguments of `program schedule run`.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    #[command(flatten)]
    which: change::Args,
    #[command(flatten)]
    idempotency: IdempotencyArgs,
}

pub(crate) async fn run(context: &Context, args: RunArgs) -> Result<u8, CliError> {
    let verb = ScheduleRun { schedule: args.which.schedule };
    let run = context.call_once(verb, args.idempotency.idempotency_key).await?;
    show::run(context, &run).await
}
