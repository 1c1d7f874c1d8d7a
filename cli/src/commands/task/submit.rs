//! `task submit`

use crate::args::IdempotencyArgs;
use crate::commands::program::{call_run, show};
use crate::commands::run::read_stdin;
use crate::context::Context;
use crate::error::CliError;
use vm_system_protocol::control::DurableOp;

/// Arguments of `task submit`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The execution: id, unique beginning of one, or name
    #[arg(value_name = "EXECUTION")]
    execution: String,
    /// The answer: any text, or JSON where the task has a schema; `-` reads it from stdin
    #[arg(value_name = "ANSWER", allow_hyphen_values = true)]
    answer: String,
    /// Only if this is the pending task
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    #[command(flatten)]
    idempotency: IdempotencyArgs,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let result = if args.answer == "-" { read_stdin()? } else { args.answer };
    let op = DurableOp::TaskSubmit { execution: args.execution, task: args.task, result };
    let run = call_run(context, op, args.idempotency.idempotency_key).await?;
    show::run(context, &run)
}
