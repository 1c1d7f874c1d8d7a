//! Tools for tasks: read the pending task, submit its answer.

use super::{Effect, ToolResult, ToolRow, ToolSet, console};
use crate::mcp::call::{ToolCall, exact_json};
use crate::mcp::outcome;
use crate::mcp::output::{ToolError, ToolOutput, prompt, shortened};
use crate::mcp::schema::{self, JsonSchema, schemars};
use crate::mcp::views::{self, ExecutionView, OutputView, RESULT_BYTES, TaskStatusView};
use serde::Deserialize;
use serde_json::Value;
use vm_system_protocol::control::{DurableOp, DurableReply, GivenAnswer};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{ExecutionError, ExecutionStatus, ResultValue};

/// Console output of one response (bytes).
const OUTPUT_BYTES: usize = 16 * 1024;

pub(super) fn rows() -> Vec<ToolRow> {
    vec![
        ToolRow {
            name: "getTask",
            title: "Get the pending task",
            description: "The prompt of an execution's pending task, or the execution's result if it has ended; on request \
                its console output and its stack. Read only. `state` of the structured result distinguishes a prompt from \
                a result.",
            input: schema::input::<Get>,
            output: schema::output::<TaskStatusView>,
            effect: Effect::Reads,
            set: ToolSet::Basic,
            reads_files: false,
            run: |call| Box::pin(get(call)),
        },
        ToolRow {
            name: "submitTask",
            title: "Submit an answer",
            description: "Submit the answer to an execution's pending task. The call returns when the program has reached \
                its next task or its end: the result has it. An answer that does not match the task's schema is refused \
                with the reason: submit another one.",
            input: schema::input::<Submit>,
            output: schema::output::<ExecutionView>,
            effect: Effect::Adds,
            set: ToolSet::Basic,
            reads_files: false,
            run: |call| Box::pin(submit(call)),
        },
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Get {
    /// Name or id of the execution; the current one if absent
    execution_id: Option<String>,
    /// Also return the console output after this sequence number (0: all; later: `next` of the result before)
    after: Option<u64>,
    /// Also return the calls in progress (default: false)
    #[serde(default)]
    stack: bool,
}

async fn get(call: &ToolCall<'_>) -> ToolResult {
    let Get { execution_id, after, stack } = call.input()?;
    let execution = call.which(execution_id).await?;
    let status = match call.durable(DurableOp::TaskGet { execution }).await? {
        DurableReply::TaskStatus(status) => *status,
        other => return Err(ToolError::unexpected(&other)),
    };
    let id = status.execution_id.to_string();
    let mut data = call.give_status(&status);
    let (mut more, mut failed) = (Vec::new(), false);
    let text = match status.status {
        ExecutionStatus::Waiting => match &status.task {
            Some(task) => {
                more.extend(outcome::schema(task));
                prompt(task)
            }
            None => "Waiting for input".to_owned(),
        },
        ExecutionStatus::Running => "Execution is running: call getTask again later".to_owned(),
        ended => match end_text(ended, status.result.as_ref(), status.error.as_ref()) {
            Ok(text) => text,
            Err(text) => {
                failed = true;
                outcome::with_stack(call, &id, status.error.as_ref(), text).await?
            }
        },
    };
    if let Some(after) = after {
        let (lines, next, is_cut) = console(call, &id, after, OUTPUT_BYTES).await?;
        let output = OutputView::new(lines, next, is_cut);
        more.push(output.text());
        data.output = Some(output);
    }
    if stack && status.status == ExecutionStatus::Waiting {
        let op = DurableOp::StateGet { execution: id, checkpoint: None };
        let DurableReply::State(state) = call.durable(op).await? else {
            return Err(ToolError::unexpected(&"StateGet"));
        };
        let lines = views::stack(&state);
        more.push(format!("Stack:\n{}", lines.join("\n")));
        data.stack = Some(lines);
    }
    let output = if failed { ToolOutput::failed(text, &data) } else { ToolOutput::new(text, &data) };
    Ok(more.into_iter().fold(output, ToolOutput::and))
}

/// The original system's text about an execution that has ended; `Err` if it failed.
pub(in crate::mcp) fn end_text(
    status: ExecutionStatus,
    result: Option<&ResultValue>,
    error: Option<&ExecutionError>,
) -> Result<String, String> {
    if status == ExecutionStatus::Ok {
        let json = result.and_then(|result| result.json.as_ref());
        return Ok(match json.map(JsonText::as_str).filter(|result| *result != "null") {
            Some(result) => completed(result),
            None => "Execution completed".to_owned(),
        });
    }
    Err(format!("Error: {}", error.map_or_else(|| status.to_string(), |error| error.message.clone())))
}

/// The text about a result; of one that is too large its beginning, and where the rest is.
fn completed(result: &str) -> String {
    let whole = result.len();
    match shortened(result, RESULT_BYTES) {
        None => format!("Execution completed with result: {result}"),
        Some(short) => format!(
            "Execution completed with result: {short}\n[truncated: {} of {whole} bytes are shown; \
             `vm-system program status EXECUTION --output json` has the whole result]",
            short.len()
        ),
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Submit {
    /// Name or id of the execution; the current one if absent
    execution_id: Option<String>,
    /// The answer: any text, or JSON if the task has a schema (a text where the schema allows one)
    // Declared as a text; agents also send the object itself where a schema requires one.
    #[schemars(with = "String")]
    result: Value,
    /// Id of the task that is answered; refused if another task is pending now. Default: the task of this execution that you were last given
    task_id: Option<String>,
}

async fn submit(call: &ToolCall<'_>) -> ToolResult {
    let Submit { execution_id, result, task_id } = call.input()?;
    // The original system accepts texts only; agents send the object itself where a schema requires one.
    let result = match result {
        Value::String(text) => GivenAnswer::Typed(text),
        other => GivenAnswer::Json(exact_json(&other)?),
    };
    let execution = call.which(execution_id).await?;
    let task = task_id.or_else(|| call.last_given(&execution).map(|task| task.to_string()));
    let run = call.long_run(DurableOp::TaskSubmit { execution, task, result, wait: true }).await?;
    let mut data = call.give_run(&run);
    let current = call.current().await?.is_some_and(|current| current.execution.id == run.execution.id);
    data.is_current = Some(current);
    Ok(ToolOutput::new("Execution resumed", &data).with_outcome(outcome::of(call, &run).await?))
}
