//! Executions as tasks of the protocol's extension (`io.modelcontextprotocol/tasks`): the id of such a task is the execution's,
//! so that both exist equally long, for each client of the owner. A pending prompt is an input that the task requires; the answer
//! is the task's update. `start` with `asTask` returns such a task, if the client declares the extension.

use super::call::{ToolCall, exact_json};
use super::output::{ToolError, ToolOutput, prompt, result, shortened};
use super::{tools, views};
use rmcp::model::{
    DetailedTask, ElicitRequest, ElicitRequestParams, ElicitationSchema, GetTaskResult, InputRequest,
    InputRequests, InputResponses, JsonObject, Task, TaskPayload, TaskStatus,
};
use serde_json::{Value, json};
use std::fmt::Display;
use vm_system_protocol::control::{ExecCancel, GivenAnswer, RunGet, TaskSubmit};
use vm_system_protocol::model::{self, ExecutionStatus, Run};

/// Poll interval that is suggested to clients (milliseconds).
const POLL_MS: u64 = 1_000;
/// Longest schema in the text of a prompt (bytes).
const SCHEMA_BYTES: usize = 16 * 1024;
/// The property with the answer to a prompt whose schema is no form.
const ANSWER: &str = "answer";

/// The current state of an execution's task.
pub(super) async fn get(call: &ToolCall<'_>, id: String) -> Result<GetTaskResult, ToolError> {
    let run = call.perform(RunGet { execution: id }).await?;
    Ok(GetTaskResult::new(DetailedTask::new(task(&run), payload(&run))))
}

/// The task of an execution that has just started.
pub(super) fn started(run: &Run) -> Task {
    let mut task = task(run);
    task.status = payload(run).status();
    task
}

/// Submits the answer to the pending prompt; answers to other prompts are ignored.
pub(super) async fn update(
    call: &ToolCall<'_>,
    id: String,
    answers: InputResponses,
) -> Result<(), ToolError> {
    let run = call.perform(RunGet { execution: id.clone() }).await?;
    let Some(pending) = &run.task else { return Ok(()) };
    let Some(mut answer) = answers.get(&pending.id.to_string()).cloned() else { return Ok(()) };
    // Declined or cancelled by the user: the prompt stays pending.
    if answer["action"] != "accept" {
        return Ok(());
    }
    let content = answer["content"].take();
    let content = if form(pending).is_some() { content } else { content[ANSWER].clone() };
    let result = match content {
        Value::Null => return Err(ToolError::invalid("the answer is missing")),
        Value::String(text) => GivenAnswer::Typed(text),
        other => GivenAnswer::Json(exact_json(&other)?),
    };
    let task = Some(pending.id.to_string());
    let op = TaskSubmit { execution: id, task, result, wait: true };
    call.long(op).await.map(|_| ())
}

/// Ends the execution.
pub(super) async fn cancel(call: &ToolCall<'_>, id: String) -> Result<(), ToolError> {
    call.perform(RunGet { execution: id.clone() }).await?;
    call.perform(ExecCancel { execution: id }).await
}

fn task(run: &Run) -> Task {
    let execution = &run.execution;
    let changed: &dyn Display = match (&execution.ended_at, &run.task) {
        (Some(at), _) => at,
        (None, Some(pending)) => &pending.created_at,
        (None, None) => &execution.started_at,
    };
    let mut task = Task::new(
        execution.id.to_string(),
        TaskStatus::Working,
        execution.started_at.to_string(),
        changed.to_string(),
    );
    task.poll_interval_ms = Some(POLL_MS);
    task.status_message = Some(format!("{}: {}", views::name_of(run), views::legacy_of(run)));
    task
}

fn payload(run: &Run) -> TaskPayload {
    match run.execution.status {
        ExecutionStatus::Running => TaskPayload::Working,
        ExecutionStatus::Waiting => match &run.task {
            Some(pending) => TaskPayload::InputRequired { input_requests: input(pending) },
            None => TaskPayload::Working,
        },
        ExecutionStatus::Cancelled => TaskPayload::Cancelled,
        ExecutionStatus::Ok | ExecutionStatus::Error | ExecutionStatus::Timeout => {
            TaskPayload::Completed { result: final_result(run) }
        }
    }
}

/// The result of the tool call, as if the call had waited for the end.
fn final_result(run: &Run) -> JsonObject {
    let data = views::ExecutionView::new(run);
    let text =
        tools::end_text(run.execution.status, run.execution.result.as_ref(), run.execution.error.as_ref());
    let outcome = match text {
        Ok(text) => ToolOutput::new(text, &data),
        Err(text) => ToolOutput::failed(text, &data),
    };
    match serde_json::to_value(result(Ok(outcome))) {
        Ok(Value::Object(map)) => map,
        _ => JsonObject::new(),
    }
}

fn input(pending: &model::Task) -> InputRequests {
    let fallback = || {
        let properties = json!({ ANSWER: { "type": "string" } });
        let plain = json!({ "type": "object", "properties": properties, "required": [ANSWER] });
        serde_json::from_value::<ElicitationSchema>(plain).ok()
    };
    let own = form(pending);
    let message = match &pending.schema {
        // The fallback form has one plain field: the message must name the schema.
        Some(schema) if own.is_none() => format!(
            "{}\n\nThe answer is JSON that matches this schema: {}",
            prompt(pending),
            shortened(schema.as_str(), SCHEMA_BYTES).unwrap_or(schema.as_str())
        ),
        _ => prompt(pending),
    };
    let Some(requested_schema) = own.or_else(fallback) else { return InputRequests::new() };
    let params = ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema };
    let request = InputRequest::Elicitation(ElicitRequest::new(params));
    InputRequests::from([(pending.id.to_string(), request)])
}

/// The schema of a task as an elicitation form, if all its fields are flat.
fn form(pending: &model::Task) -> Option<ElicitationSchema> {
    let schema = pending.schema.as_ref()?.to_value()?;
    let fields = schema.get("properties")?.as_object()?;
    // A form cannot express unions and nested schemas; dropping their rules would accept wrong answers.
    let flat = fields.values().all(|field| field.get("type").is_some_and(Value::is_string));
    flat.then(|| serde_json::from_value(schema.clone()).ok()).flatten()
}
