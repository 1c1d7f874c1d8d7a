//! `program rewind`

use super::show;
use crate::args::IdempotencyArgs;
use crate::context::Context;
use crate::error::CliError;
use vm_system_protocol::control::RunRewind;

/// Arguments of `program rewind`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Id, unique beginning of an id, or name
    #[arg(value_name = "EXECUTION")]
    execution: String,
    /// Number of the checkpoint, as `program checkpoints` lists it
    #[arg(value_name = "CHECKPOINT")]
    checkpoint: u64,
    #[command(flatten)]
    idempotency: IdempotencyArgs,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let op = RunRewind { execution: args.execution, checkpoint: args.checkpoint };
    let run = context.call_once(op, args.idempotency.idempotency_key).await?;
    show::run(context, &run).await
}
