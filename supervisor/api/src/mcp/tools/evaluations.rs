//! The result of an execution in a session, as tools return it: value, output and error, each with what was cut of it.

use super::ToolSets;
use crate::mcp::output::{ToolOutput, prompt, shortened};
use crate::mcp::schema::{JsonSchema, schemars};
use crate::mcp::views::{self, ErrorView, TaskView};
use serde::Serialize;
use serde_json::Value;
use vm_system_protocol::control::ErrorCode;
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{
    ConsoleLevel, EventPayload, Execution, ExecutionKind, ExecutionStatus, JsType, Task,
};

/// Console output of one evaluation (bytes).
const OUTPUT_BYTES: usize = 16 * 1024;
/// The value of one evaluation (bytes).
const VALUE_BYTES: usize = 16 * 1024;
/// The texts that a console writes in place of what it leaves out.
const MORE: &[&str] = &[" more item", " more character"];
/// Events that are read for one evaluation, and listed by `get_events`.
pub(super) const EVENTS: u32 = 1_000;

/// The result of an execution in a session.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct EvaluationView {
    /// Id of the execution
    execution_id: String,
    /// Id of the session
    session_id: String,
    /// ok, error, timeout, cancelled, running or waiting
    #[schemars(with = "String")]
    status: ExecutionStatus,
    /// The value of the last expression, as a console shows it
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    /// The value as JSON, if it has an exact JSON form and is not too large
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    /// Bytes of the whole value as JSON, if the response has less than that; read it in parts by session_eval
    #[serde(skip_serializing_if = "Option::is_none")]
    value_bytes: Option<u64>,
    /// True: the value is longer than what the response has of it
    #[serde(skip_serializing_if = "Option::is_none")]
    value_truncated: Option<bool>,
    /// Console output
    output: Vec<String>,
    /// Sequence number of the last event in `output`: the rest is after it
    next: u64,
    /// True: there was too much output for a response
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<bool>,
    /// The task that it waits for
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<TaskView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorView>,
}

/// `hint`: what the agent can do about a failure.
pub(super) fn evaluated(
    execution: &Execution,
    pending: Option<&Task>,
    sets: &ToolSets,
    hint: Option<&str>,
) -> ToolOutput {
    let id = execution.id.to_string();
    let events = execution.events.as_deref().unwrap_or_default();
    let events = &events[..events.len().min(EVENTS as usize)];
    let (mut output, next, all) = views::lines(events, 0, OUTPUT_BYTES);
    let first = events.iter().find(|event| !matches!(event.payload, EventPayload::InputEcho { .. }));
    if let Some(EventPayload::System { message, level: ConsoleLevel::Warn, .. }) =
        first.map(|event| &event.payload)
    {
        output.insert(0, format!("[{message}]"));
    }
    let mut text = output.join("\n");
    let mut add = |line: &str| {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(line);
    };
    let truncated = !all || events.len() >= EVENTS as usize;
    let too_much = ErrorCode::OutputLimitExceeded.as_str();
    if truncated {
        let rest = sets.named("get_events");
        add(&format!("[truncated: the rest is after event {next} of the execution {id}, for {rest}]"));
    } else if execution.error.as_ref().is_some_and(|error| error.code == too_much) {
        let rest = sets.named("get_events");
        add(&format!("[the execution {id} has the output up to the limit, for {rest}]"));
    }
    let value = events.iter().rev().find_map(|event| match &event.payload {
        EventPayload::Value(value)
            if value.kind != JsType::Undefined || execution.kind == ExecutionKind::Repl =>
        {
            Some(value)
        }
        _ => None,
    });
    let preview = value.map(|value| shortened(&value.preview, VALUE_BYTES).unwrap_or(value.preview.as_str()));
    let result = value.and_then(|value| value.json.as_ref());
    let result = result.filter(|json| json.as_str().len() <= VALUE_BYTES);
    // The JSON has what a console leaves out.
    let elided = preview.is_some_and(|preview| MORE.iter().any(|more| preview.contains(more)));
    if let Some(preview) = preview {
        add(result.filter(|_| elided).map_or(preview, JsonText::as_str));
    }
    let rest = value.filter(|value| result.is_none() && (value.truncated || value.json.is_some()));
    let value_bytes = rest.and_then(|value| {
        value.full_bytes.or_else(|| value.json.as_ref().map(|json| json.as_str().len() as u64))
    });
    if rest.is_some() {
        let size = value_bytes.map_or_else(String::new, |bytes| format!(" has {bytes} bytes of JSON and"));
        add(&format!(
            "[truncated: the value{size} is not shown as a whole: read it in parts by session_eval]"
        ));
    }
    if let Some(task) = pending {
        add(&format!("Waiting for an answer (submitTask executionId={id}): {}", prompt(task)));
    }
    if let Some(error) = &execution.error {
        let label = if error.message.starts_with("Error: ") { "" } else { "Error: " };
        add(&format!("{label}{}", error.message));
        for place in events.iter().rev().find_map(views::places_of).into_iter().flatten() {
            add(place);
        }
    }
    if let Some(hint) = hint {
        add(hint);
    }
    let data = EvaluationView {
        session_id: execution.session_id.to_string(),
        status: execution.status,
        value: preview.map(str::to_owned),
        result: result.map(|json| json.to_value().unwrap_or(Value::Null)),
        value_bytes,
        value_truncated: rest.map(|_| true),
        output,
        next,
        truncated: truncated.then_some(true),
        task: pending.map(TaskView::new),
        error: execution.error.as_ref().map(ErrorView::new),
        execution_id: id,
    };
    if data.error.is_some() { ToolOutput::failed(text, &data) } else { ToolOutput::new(text, &data) }
}
