//! `task submit`

use crate::args::IdempotencyArgs;
use crate::commands::program::show;
use crate::commands::program::step::Step;
use crate::commands::task::get::task_status;
use crate::context::Context;
use crate::error::CliError;
use crate::read::read_stdin;
use vm_system_protocol::control::{GivenAnswer, TaskSubmit};
use vm_system_protocol::json::JsonText;

/// Arguments of `task submit`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The execution, or its task: id, unique beginning of an id, or the execution's name
    #[arg(value_name = "EXECUTION")]
    execution: String,
    /// The answer: any text, or JSON if the task has a schema; `-` reads it from stdin
    #[arg(value_name = "ANSWER", allow_hyphen_values = true)]
    answer: String,
    /// The task, if the execution has several; with one, submit only if it is this
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    /// The answer is typed JSON: `"42"` is a string, not a number
    #[arg(long)]
    json: bool,
    /// Return as soon as the answer is stored
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    idempotency: IdempotencyArgs,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let text = if args.answer == "-" { read_stdin()? } else { args.answer };
    let result =
        if args.json { GivenAnswer::Json(JsonText::from_untrusted(text)) } else { GivenAnswer::Typed(text) };
    let task = match args.task {
        None if args.idempotency.idempotency_key.is_none() => pending_task(context, &args.execution).await?,
        // The daemon binds a key to the task that is pending at the first request with it.
        named => named,
    };
    let wait = !args.no_wait;
    let step = if wait { Step::find_after(context, &args.execution).await? } else { None };
    let op = TaskSubmit { execution: args.execution, task, result, wait };
    let run = context.call_once(op, args.idempotency.idempotency_key).await?;
    if let Some(step) = step {
        step.print(context).await?;
    }
    show::run(context, &run).await
}

/// The task of an execution that is pending as the command begins: an answer is for no task that appears later. None if the
/// reference is that of a task, and for several tasks, for which the daemon has the error.
async fn pending_task(context: &Context, reference: &str) -> Result<Option<String>, CliError> {
    let status = task_status(context, reference.to_owned()).await?;
    let is_execution = status.name.as_deref() == Some(reference)
        || status.execution_id.to_string().starts_with(&reference.to_lowercase());
    Ok(status.task.filter(|_| is_execution && status.more_tasks == 0).map(|task| task.id.to_string()))
}
