//! The result of a tool: a text in the wording of the original system, and the same as data.

use super::tools::ToolSets;
use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde::Serialize;
use serde_json::{Value, json};
use vm_system_protocol::control::{ErrorCode, OpError};
use vm_system_protocol::model::Task;

/// Longest text of a result (bytes): an agent reads all of it.
pub(super) const TEXT_BYTES: usize = 256 * 1024;
/// Longest prompt in a response (bytes).
pub(super) const PROMPT_BYTES: usize = 128 * 1024;

/// The result of a successful call.
#[derive(Debug)]
pub(super) struct ToolOutput {
    text: String,
    /// Further texts, for hosts that show nothing but texts.
    more: Vec<String>,
    data: Value,
    is_error: bool,
}

impl ToolOutput {
    /// A text, and the same as data that match the tool's schema.
    pub(super) fn new(text: impl Into<String>, data: &impl Serialize) -> Self {
        Self { text: text.into(), more: Vec::new(), data: json!(data), is_error: false }
    }

    /// The text is the data as JSON.
    pub(super) fn json(data: &impl Serialize) -> Self {
        let data = json!(data);
        let text = serde_json::to_string_pretty(&data).unwrap_or_default();
        Self { text, more: Vec::new(), data, is_error: false }
    }

    /// A further text, after the others.
    pub(super) fn and(mut self, text: impl Into<String>) -> Self {
        self.more.push(text.into());
        self
    }

    /// The outcome of what the tool did, as a further text. A failure is the first text, and marks the result as an error.
    pub(super) fn with_outcome(mut self, outcome: Result<String, String>) -> Self {
        match outcome {
            Ok(text) => self.and(text),
            Err(text) => {
                self.is_error = true;
                let done = std::mem::replace(&mut self.text, text);
                self.and(done)
            }
        }
    }

    /// A string field of the data.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.data.get(name)?.as_str()
    }

    /// The tool read a failed execution: a result that is marked as an error.
    pub(super) fn failed(text: impl Into<String>, data: &impl Serialize) -> Self {
        Self { is_error: true, ..Self::new(text, data) }
    }
}

/// The result of a failed call.
#[derive(Debug)]
pub(super) enum ToolError {
    /// The tool failed, with a reason for the caller.
    Reported { message: String, code: &'static str, details: Option<Value> },
    /// The client cancelled its request: no response is sent.
    Cancelled,
}

impl ToolError {
    /// An invalid argument.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::Reported { message: message.into(), code: ErrorCode::ValidationError.as_str(), details: None }
    }

    /// A client without a name and a session has no current execution.
    pub(super) fn nameless() -> Self {
        Self::Reported {
            message: "No current execution: this client has neither a name nor a session. Pass executionId, or name the \
                      client in the address (/mcp?client=NAME)."
                .to_owned(),
            code: ErrorCode::ExecutionNotFound.as_str(),
            details: None,
        }
    }
}

impl ToolError {
    /// A failed verb, for a client with these sets of tools.
    pub(super) fn from_verb(error: OpError, sets: &ToolSets) -> Self {
        let mut message = error.message;
        let details =
            error.details.as_ref().and_then(vm_system_protocol::json::JsonText::to_value).unwrap_or_default();
        let next = match error.code {
            ErrorCode::AnswerInvalid if details["task_failed"] == true => Some(
                "It was the last attempt: the task has failed, and the program gets an error.".to_owned(),
            ),
            ErrorCode::TaskNotPending if details["task_id"].is_string() => {
                let task = details["task_id"].as_str().unwrap_or_default();
                Some(format!("The pending task is {task}; getTask shows it."))
            }
            ErrorCode::TaskAmbiguous if details["task_ids"].is_array() => {
                let ids = details["task_ids"].as_array().into_iter().flatten();
                let ids: Vec<&str> = ids.filter_map(Value::as_str).collect();
                Some(format!("Name one of them as taskId: {}.", ids.join(", ")))
            }
            code => next_step(code, sets),
        };
        if let Some(next) = next {
            message.push_str(". ");
            message.push_str(&next);
        }
        // The thing that is taken, and the remedy, depend on the tool.
        if error.code == ErrorCode::Conflict
            && let Some(hint) = &error.hint
        {
            message.push_str(": ");
            message.push_str(&hint.replace("`vm-system session close NAME`", "session_close"));
        }
        // The hint is the source line with a caret below.
        if error.code == ErrorCode::CompileError
            && let Some(hint) = &error.hint
        {
            message.push_str(hint);
        }
        let details = error.details.and_then(|details| details.to_value());
        Self::Reported { message, code: error.code.as_str(), details }
    }
}

/// The remedy of an agent for a failure, in terms of tools.
pub(super) fn next_step(code: ErrorCode, sets: &ToolSets) -> Option<String> {
    let step = match code {
        ErrorCode::ProgramNotFound => {
            return Some(format!(
                "load adds one; {} shows the loaded programs.",
                sets.named("list_programs")
            ));
        }
        ErrorCode::SessionNotFound => {
            return Some(format!(
                "session_create creates one; {} shows the sessions.",
                sets.named("list_sessions")
            ));
        }
        ErrorCode::ExecutionNotFound => "list_executions shows the executions; start begins one.",
        ErrorCode::TemplateNotFound => "Without templateId the session has default limits.",
        ErrorCode::TaskNotPending => "getTask shows the status, and the task if one is pending.",
        ErrorCode::TaskAmbiguous => "Name one of them as taskId.",
        ErrorCode::AnswerInvalid => "Submit an answer that matches; getTask shows the task and its schema.",
        ErrorCode::SessionNotReady => "Create another session with session_create.",
        ErrorCode::SessionBusy => {
            "Wait until its execution has ended; if that waits for an answer, submitTask submits it, and cancel ends it."
        }
        ErrorCode::CapacityExceeded => "Try again later.",
        _ => return None,
    };
    Some(step.to_owned())
}

/// The result in the form of the protocol.
pub(super) fn result(outcome: Result<ToolOutput, ToolError>) -> CallToolResult {
    match outcome {
        Ok(ToolOutput { text, more, data, is_error }) => {
            let texts = std::iter::once(text).chain(more);
            let content = texts.map(|text| ContentBlock::text(cut(text))).collect();
            let mut result =
                if is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
            result.structured_content = Some(data);
            result
        }
        Err(ToolError::Reported { message, code, details }) => {
            let content = vec![ContentBlock::text(cut(format!("Error: {message}")))];
            let mut about = json!({ "code": code });
            if let Some(details) = details {
                about["details"] = details;
            }
            let mut meta = MetaObject::new();
            meta.0.insert(ERROR_META.to_owned(), about);
            CallToolResult::error(content).with_meta(Some(meta))
        }
        Err(ToolError::Cancelled) => {
            CallToolResult::error(vec![ContentBlock::text("Error: the request was cancelled")])
        }
    }
}

/// Key of `_meta` with the code and details of a failed call.
const ERROR_META: &str = "vm-system/error";

/// Cuts a text to the size of one response, with a note about the cut. Not for a text that may have been cut: its length is not
/// that of the whole.
pub(super) fn cut(text: String) -> String {
    beginning(&text, TEXT_BYTES).unwrap_or(text)
}

/// The prompt of a task as text: short enough that further texts fit into the same response, with a note if it was cut.
pub(super) fn prompt(task: &Task) -> String {
    beginning(&task.prompt, PROMPT_BYTES).unwrap_or_else(|| task.prompt.clone())
}

/// The first `most` bytes of a text, with a note about the cut; none if the text is not longer.
fn beginning(text: &str, most: usize) -> Option<String> {
    let short = shortened(text, most)?;
    Some(format!("{short}\n[truncated: {} of {} bytes are shown]", short.len(), text.len()))
}

/// A text in a list: its first `most` bytes, with the size of the whole if it was cut.
pub(super) fn listed(text: &str, most: usize) -> String {
    match shortened(text, most) {
        Some(short) => format!("{short}… ({} bytes)", text.len()),
        None => text.to_owned(),
    }
}

/// The first `most` bytes of a text, at a character boundary; none if the text is not longer.
pub(super) fn shortened(text: &str, most: usize) -> Option<&str> {
    (text.len() > most).then(|| &text[..text.floor_char_boundary(most)])
}
