//! Tools of tasks: reading the pending prompt, and answering it.

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
            title: "What is asked",
            description: "What the execution wants to know next, or what came of it. Read only: asking again changes \
                nothing. `state` of the structured answer distinguishes a question from a result.",
            input: schema::input::<Get>,
            output: schema::output::<TaskStatusView>,
            effect: Effect::Reads,
            reads_files: false,
            run: |call| Box::pin(get(call)),
        },
        ToolRow {
            name: "submitTask",
            title: "Answer the question",
            description: "Answer the question of an execution. When the answer comes, the program has run on to its \
                next question, which is `task` of the structured answer, or to its end. What does not fit the \
                question's schema is refused with the reason: answer again.",
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
        ExecutionStatus::Running => ToolOutput::new("Execution is running: ask again", &data),
        ended => match said_at_the_end(ended, status.result.as_ref(), status.error.as_ref()) {
            Ok(text) => ToolOutput::new(text, &data),
            Err(text) => ToolOutput::failed(text, &data),
        },
    }
}

/// The original's text about an execution that has ended; an error if it failed.
pub(in crate::mcp) fn said_at_the_end(
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
    /// The answer: any text, or JSON where the question has a schema
    // Agents send the object itself, too, where a schema requires one.
    #[schemars(with = "String")]
    result: Value,
    /// Which question is answered; refused if another one is asked meanwhile
    task_id: Option<String>,
}

async fn submit(call: &ToolCall<'_>) -> ToolResult {
    let Submit { execution_id, result, task_id } = call.input()?;
    // The original takes texts only; agents send the object itself where a schema requires one.
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
