//! `program rerun`

use super::set::value_of;
use super::show;
use crate::args::IdempotencyArgs;
use crate::context::Context;
use crate::error::CliError;
use vm_system_protocol::control::{GivenAnswer, OtherAnswer, OtherValue, RunRerun};
use vm_system_protocol::json::JsonText;

/// Arguments of `program rerun`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Id, unique beginning of an id, or name
    #[arg(value_name = "EXECUTION")]
    execution: String,
    /// Number of the checkpoint, as `program checkpoints` lists it
    #[arg(long, value_name = "CHECKPOINT")]
    from: u64,
    /// Another answer to a task that was open there: its id, or a beginning that no other open task has, and as in `task submit` any
    /// text, or JSON if the task has a schema (several times: in the order in which the program gets them)
    #[arg(long, value_name = "TASK=ANSWER")]
    answer: Vec<String>,
    /// The answers are typed JSON: `"42"` is a string, not a number
    #[arg(long)]
    json: bool,
    /// Another value of a variable as JSON; anything that is not JSON is a string (several times)
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// A name for the new execution
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// End the old execution; the new one takes over its name
    #[arg(long)]
    end_old: bool,
    #[command(flatten)]
    idempotency: IdempotencyArgs,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let mut answers = Vec::with_capacity(args.answer.len());
    for answer in &args.answer {
        let (task, text) = parts("--answer", "TASK=ANSWER", answer)?;
        let result = if args.json {
            GivenAnswer::Json(JsonText::from_untrusted(text.to_owned()))
        } else {
            GivenAnswer::Typed(text.to_owned())
        };
        answers.push(OtherAnswer { task: task.to_owned(), result });
    }
    let mut variables = Vec::with_capacity(args.set.len());
    for change in &args.set {
        let (name, value) = parts("--set", "NAME=VALUE", change)?;
        variables.push(OtherValue { name: name.to_owned(), value: value_of(value)?, frame: None });
    }
    let op = RunRerun {
        execution: args.execution,
        checkpoint: args.from,
        answers,
        variables,
        name: args.name,
        end_old: args.end_old,
    };
    let run = context.call_once(op, args.idempotency.idempotency_key).await?;
    show::run(context, &run).await
}

fn parts<'a>(option: &str, form: &str, value: &'a str) -> Result<(&'a str, &'a str), CliError> {
    value
        .split_once('=')
        .ok_or_else(|| CliError::usage(format!("{option} takes {form}, and {value:?} has no `=`")))
}
