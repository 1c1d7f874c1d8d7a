//! The result of a tool: a text in the wording of the original, and the same as data.

use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde::Serialize;
use serde_json::{Value, json};
use vm_system_protocol::control::{ErrorCode, OpError};

/// Longest text of a result (bytes): an agent reads all of it.
pub(super) const TEXT_BYTES: usize = 256 * 1024;

/// The result of a successful call.
#[derive(Debug)]
pub(super) struct ToolOutput {
    text: String,
    data: Value,
    is_error: bool,
}

impl ToolOutput {
    /// A text, and the same as data that fit the tool's schema.
    pub(super) fn new(text: impl Into<String>, data: &impl Serialize) -> Self {
        Self { text: text.into(), data: json!(data), is_error: false }
    }

    /// Data with itself, as JSON, for the text.
    pub(super) fn json(data: &impl Serialize) -> Self {
        let data = json!(data);
        let text = serde_json::to_string_pretty(&data).unwrap_or_default();
        Self { text, data, is_error: false }
    }

    /// A text among the data.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.data.get(name)?.as_str()
    }

    /// The tool succeeded in reading a failure: a result that is marked as an error.
    pub(super) fn failed(text: impl Into<String>, data: &impl Serialize) -> Self {
        Self { is_error: true, ..Self::new(text, data) }
    }
}

/// The result of a failed call.
#[derive(Debug)]
pub(super) enum ToolError {
    /// The caller can read why, and do better.
    Reported { message: String, code: &'static str, details: Option<Value> },
    /// The client cancelled its request: no response is sent.
    Cancelled,
}

impl ToolError {
    /// An argument that makes no sense.
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

    /// A bug: a reply of another kind than the verb promises.
    pub(super) fn unexpected(what: &impl std::fmt::Debug) -> Self {
        tracing::error!(?what, "a reply of another kind");
        Self::Reported {
            message: "the supervisor answered with something unexpected".to_owned(),
            code: ErrorCode::Internal.as_str(),
            details: None,
        }
    }
}

impl From<OpError> for ToolError {
    fn from(error: OpError) -> Self {
        let mut message = error.message;
        // The line with a caret below it.
        if error.code == ErrorCode::CompileError
            && let Some(hint) = &error.hint
        {
            message.push_str(hint);
        }
        let details = error.details.and_then(|details| details.to_value());
        Self::Reported { message, code: error.code.as_str(), details }
    }
}

/// The response in the form of the protocol.
pub(super) fn result(answer: Result<ToolOutput, ToolError>) -> CallToolResult {
    match answer {
        Ok(ToolOutput { text, data, is_error }) => {
            let content = vec![ContentBlock::text(cut(text))];
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

/// Where `_meta` of a failed call has its code and details.
const ERROR_META: &str = "vm-system/error";

/// As much of a text as fits one response, with a note if that is not all.
pub(super) fn cut(text: String) -> String {
    match shortened(&text, TEXT_BYTES) {
        None => text,
        Some(short) => {
            format!("{short}\n[cut here: {} of {} bytes are shown]", short.len(), text.len())
        }
    }
}

/// The beginning of a text of at most `most` bytes; none if it is not longer.
pub(super) fn shortened(text: &str, most: usize) -> Option<&str> {
    (text.len() > most).then(|| &text[..text.floor_char_boundary(most)])
}
