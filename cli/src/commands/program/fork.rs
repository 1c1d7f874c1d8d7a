//! `program fork`

use super::show;
use crate::args::IdempotencyArgs;
use crate::context::Context;
use crate::error::CliError;
use vm_system_protocol::control::RunFork;

/// Arguments of `program fork`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Id, unique beginning of an id, or name
    #[arg(value_name = "EXECUTION")]
    execution: String,
    /// Number of the checkpoint [default: the current state]
    #[arg(long, value_name = "N")]
    checkpoint: Option<u64>,
    /// A name for the new execution
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    idempotency: IdempotencyArgs,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let op = RunFork { execution: args.execution, checkpoint: args.checkpoint, name: args.name };
    let run = context.call_once(op, args.idempotency.idempotency_key).await?;
    show::run(context, &run).await
}
