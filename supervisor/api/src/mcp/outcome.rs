//! The outcome of an execution as text: hosts may show an agent nothing but texts. The pending task, the result, or the error
//! with its stack.

use super::call::ToolCall;
use super::output::{ToolError, prompt, shortened};
use super::tools::end_text;
use super::views;
use vm_system_protocol::control::{ExecEvents, RunGet};
use vm_system_protocol::model::{EventPayload, ExecutionError, ExecutionStatus, Run, Task};

/// Longest schema in a text (bytes).
const SCHEMA_BYTES: usize = 16 * 1024;
/// Longest stack in a text (bytes).
const STACK_BYTES: usize = 8 * 1024;
/// The last events of an execution, among which its exception is.
const LAST_EVENTS: u64 = 4;

/// The outcome of an execution that was continued; `Err` if it has failed.
pub(super) async fn describe(call: &ToolCall<'_>, run: &Run) -> Result<Result<String, String>, ToolError> {
    let execution = &run.execution;
    Ok(match execution.status {
        ExecutionStatus::Running => Ok("The program still runs: call getTask later.".to_owned()),
        ExecutionStatus::Waiting => {
            let Some(task) = &run.task else { return Ok(Ok(views::waits(run.waiting_for.as_ref()))) };
            let questions = run.waiting_for.map_or(0, |waiting| waiting.questions);
            let id = run.execution.id.to_string();
            let more = views::more_tasks(questions.saturating_sub(1), &id, &call.client.toolsets);
            Ok(next(task) + &more.map_or_else(String::new, |more| format!("\n\n{more}")))
        }
        ended => match end_text(ended, execution.result.as_ref(), execution.error.as_ref()) {
            Ok(text) => Ok(text),
            Err(text) => {
                let id = execution.id.to_string();
                Err(with_stack(call, &id, execution.error.as_ref(), text).await?)
            }
        },
    })
}

/// The pending task.
fn next(task: &Task) -> String {
    let schema = schema(task).map_or_else(String::new, |schema| format!("\n\n{schema}"));
    let prompt = prompt(task);
    format!("Task for you; submit the answer with submitTask (taskId {}):\n\n{prompt}{schema}", task.id)
}

/// The form that the answer must have, if the task has a schema.
pub(super) fn schema(task: &Task) -> Option<String> {
    let schema = task.schema.as_ref()?.as_str();
    Some(match shortened(schema, SCHEMA_BYTES) {
        None => format!("The answer is JSON that matches this schema: {schema}"),
        Some(short) => {
            format!("The answer is JSON that matches this schema: {short}… ({} bytes in all)", schema.len())
        }
    })
}

/// The text about a failure, with the stack of the uncaught exception if that is the reason.
pub(super) async fn with_stack(
    call: &ToolCall<'_>,
    execution: &str,
    error: Option<&ExecutionError>,
    text: String,
) -> Result<String, ToolError> {
    let Some(error) = error.filter(|error| error.code == "EXCEPTION") else { return Ok(text) };
    let run = call.perform(RunGet { execution: execution.to_owned() }).await?;
    let after_seq = run.execution.metrics.events.saturating_sub(LAST_EVENTS);
    let (execution, limit) = (execution.to_owned(), 64);
    let op = ExecEvents { execution, after_seq, limit, follow: false };
    let events = call.perform(op).await?;
    let stack = events.iter().rev().find_map(|event| match &event.payload {
        EventPayload::Exception { stack, .. } => Some(stack),
        _ => None,
    });
    Ok(match stack {
        // The stack begins with the message.
        Some(stack) => match shortened(stack, STACK_BYTES) {
            None => format!("Error: {stack}"),
            Some(short) => {
                // The stack was cut before, too, if the message was.
                let whole = error.full_bytes.map_or_else(
                    || format!("{} bytes", stack.len()),
                    |bytes| format!("an error whose message has {bytes} bytes"),
                );
                format!("Error: {short}\n[truncated: {} bytes of {whole} are shown]", short.len())
            }
        },
        None => text,
    })
}
