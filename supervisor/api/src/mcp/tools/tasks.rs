//! Tools for tasks: read the pending task, submit its answer.

use super::{Effect, ToolResult, ToolRow};
use crate::mcp::call::ToolCall;
use crate::mcp::output::{ToolError, ToolOutput, cut};
use crate::mcp::schema::{self, JsonSchema, schemars};
use crate::mcp::views::{ExecutionView, TaskStatusView};
use serde::Deserialize;
use serde_json::Value;
use vm_system_protocol::control::{DurableOp, DurableReply, GivenAnswer};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{ExecutionError, ExecutionStatus, TaskStatus};

pub(super) fn rows() -> Vec<ToolRow> {
    vec![
        ToolRow {
            name: "getTask",
            title: "Get the pending task",
            description: "The prompt of an execution's pending task, or the execution's result if it has ended. Read \
                only. `state` of the structured result distinguishes a prompt from a result.",
            input: schema::input::<Get>,
            output: schema::output::<TaskStatusView>,
            effect: Effect::Reads,
            reads_files: false,
            run: |call| Box::pin(get(call)),
        },
        ToolRow {
            name: "submitTask",
            title: "Submit an answer",
            description: "Submit the answer to an execution's pending task. The call returns when the program has reached \
                its next task, which is `task` of the structured result, or its end. An answer that does not match \
                the task's schema is refused with the reason: submit another one.",
            input: schema::input::<Submit>,
            output: schema::output::<ExecutionView>,
            effect: Effect::Adds,
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
}

async fn get(call: &ToolCall<'_>) -> ToolResult {
    let Get { execution_id } = call.input()?;
    let execution = call.which(execution_id).await?;
    match call.durable(DurableOp::TaskGet { execution }).await? {
        DurableReply::TaskStatus(status) => Ok(shown(*status)),
        other => Err(ToolError::unexpected(&other)),
    }
}

fn shown(status: TaskStatus) -> ToolOutput {
    let data = TaskStatusView::of(&status);
    match status.status {
        ExecutionStatus::Waiting => match status.task {
            Some(task) => ToolOutput::new(cut(task.prompt), &data),
            None => ToolOutput::new("Waiting for input", &data),
        },
        ExecutionStatus::Running => ToolOutput::new("Execution is running: call getTask again later", &data),
        ended => match end_text(ended, status.result.as_ref(), status.error.as_ref()) {
            Ok(text) => ToolOutput::new(text, &data),
            Err(text) => ToolOutput::failed(text, &data),
        },
    }
}

/// The original system's text about an execution that has ended; `Err` if it failed.
pub(in crate::mcp) fn end_text(
    status: ExecutionStatus,
    result: Option<&JsonText>,
    error: Option<&ExecutionError>,
) -> Result<String, String> {
    if status == ExecutionStatus::Ok {
        return Ok(match result.map(JsonText::as_str).filter(|result| *result != "null") {
            Some(result) => cut(format!("Execution completed with result: {result}")),
            None => "Execution completed".to_owned(),
        });
    }
    Err(format!("Error: {}", error.map_or_else(|| status.to_string(), |error| error.message.clone())))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Submit {
    /// Name or id of the execution; the current one if absent
    execution_id: Option<String>,
    /// The answer: any text, or JSON if the task has a schema
    // Declared as a text; agents also send the object itself where a schema requires one.
    #[schemars(with = "String")]
    result: Value,
    /// Id of the task that is answered; refused if another task is pending now
    task_id: Option<String>,
}

async fn submit(call: &ToolCall<'_>) -> ToolResult {
    let Submit { execution_id, result, task_id } = call.input()?;
    // The original system accepts texts only; agents send the object itself where a schema requires one.
    let result = match result {
        Value::String(text) => GivenAnswer::Typed(text),
        other => GivenAnswer::Json(JsonText::from_value(&other)),
    };
    let execution = call.which(execution_id).await?;
    let run = call.long_run(DurableOp::TaskSubmit { execution, task: task_id, result, wait: true }).await?;
    let mut data = ExecutionView::of(&run);
    let current = call.current().await?.is_some_and(|current| current.execution.id == run.execution.id);
    data.is_current = Some(current);
    Ok(ToolOutput::new("Execution resumed", &data))
}
