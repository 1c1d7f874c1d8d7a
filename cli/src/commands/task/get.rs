//! `task get`

use crate::commands::program::{show, step};
use crate::context::Context;
use crate::error::{CliError, exit};
use crate::output::escape;
use crate::script_output::note_truncated_error;
use vm_system_protocol::control::TaskGet;
use vm_system_protocol::counted::counted;
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::TaskStatus;

/// Arguments of `task get`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The execution, or its task: id, unique beginning of an id, or the execution's name
    #[arg(value_name = "EXECUTION")]
    execution: String,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let status = task_status(context, args.execution).await?;
    let shown = context.out.is_table() && status.error.is_some();
    let stack = if shown { step::stack_of(context, status.execution_id).await? } else { String::new() };
    context.out.result(&status, || text(&status, &stack))?;
    note_truncated_error(status.error.as_ref());
    if let Some(schema) = status.task.as_ref().and_then(|task| task.schema.as_ref())
        && context.out.is_table()
    {
        // The prompt alone is the output.
        context.out.note(&format!("Schema of the answer: {}", escape::for_message(schema.as_str())));
    }
    if status.more_tasks > 0 && context.out.is_table() {
        let more = counted(u64::from(status.more_tasks), "more task");
        let execution = status.execution_id;
        context.out.note(&format!("{more}: `vm-system task list --execution {execution}` shows all"));
    }
    Ok(exit::OK)
}

/// The status of an execution, with its pending task.
pub(crate) async fn task_status(context: &Context, execution: String) -> Result<TaskStatus, CliError> {
    context.call_once(TaskGet { execution }, None).await
}

fn text(status: &TaskStatus, stack: &str) -> String {
    if let Some(task) = &status.task {
        return escape::for_terminal(&task.prompt).into_owned();
    }
    match (&status.result, &status.error) {
        (_, Some(error)) => {
            format!("Error: {} ({})\n{stack}", escape::for_message(&error.message), error.code)
        }
        (Some(result), None) => {
            let json = result.json.as_ref().map_or(result.preview.as_str(), JsonText::as_str);
            format!("Execution completed with result: {}", escape::for_message(json))
        }
        (None, None) => match &status.waiting_for {
            Some(waiting) => format!("Execution is {}, for {}", status.status, show::waiting_for(waiting)),
            None => format!("Execution is {}", status.status),
        },
    }
}
