//! What a tool answers: a text in the original's words, and the same as data.

use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde::Serialize;
use serde_json::{Value, json};
use vm_system_protocol::control::{ErrorCode, OpError};

/// Longest text of an answer (bytes): an agent reads all of it.
pub(super) const TEXT_BYTES: usize = 256 * 1024;

/// A tool did what it was asked to.
#[derive(Debug)]
pub(super) struct Outcome {
    text: String,
    data: Value,
    is_error: bool,
}

impl Outcome {
    /// A text, and the same as data that fit the tool's schema.
    pub(super) fn new(text: impl Into<String>, data: &impl Serialize) -> Self {
        Self { text: text.into(), data: json!(data), is_error: false }
    }

    /// Data whose text is themselves.
    pub(super) fn json(data: &impl Serialize) -> Self {
        let data = json!(data);
        let text = serde_json::to_string_pretty(&data).unwrap_or_default();
        Self { text, data, is_error: false }
    }

    /// A text among the data.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.data.get(name)?.as_str()
    }

    /// The tool looked, and what it found is a failure.
    pub(super) fn failed(text: impl Into<String>, data: &impl Serialize) -> Self {
        Self { is_error: true, ..Self::new(text, data) }
    }
}

/// A tool did not do what it was asked to.
#[derive(Debug)]
pub(super) enum Failure {
    /// The caller can read why, and do better.
    Told { message: String, code: &'static str, details: Option<Value> },
    /// The client took its request back: nobody waits for an answer.
    Cancelled,
}

impl Failure {
    /// An argument that makes no sense.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::Told { message: message.into(), code: ErrorCode::ValidationError.as_str(), details: None }
    }

    /// A client without a name and a session has no current execution.
    pub(super) fn nameless() -> Self {
        Self::Told {
            message: "No current execution: this client has neither a name nor a session. Pass executionId, or name the \
                      client in the address (/mcp?client=NAME)."
                .to_owned(),
            code: ErrorCode::ExecutionNotFound.as_str(),
            details: None,
        }
    }

    /// A bug: an answer of another kind than the verb promises.
    pub(super) fn unexpected(what: &impl std::fmt::Debug) -> Self {
        tracing::error!(?what, "an answer of another kind");
        Self::Told {
            message: "the supervisor answered with something unexpected".to_owned(),
            code: ErrorCode::Internal.as_str(),
            details: None,
        }
    }
}

impl From<OpError> for Failure {
    fn from(error: OpError) -> Self {
        let mut message = error.message;
        // The line with a caret below it.
        if error.code == ErrorCode::CompileError
            && let Some(hint) = &error.hint
        {
            message.push_str(hint);
        }
        let details = error.details.and_then(|details| details.to_value());
        Self::Told { message, code: error.code.as_str(), details }
    }
}

/// The answer as the protocol wants it.
pub(super) fn result(answer: Result<Outcome, Failure>) -> CallToolResult {
    match answer {
        Ok(Outcome { text, data, is_error }) => {
            let content = vec![ContentBlock::text(cut(text))];
            let mut result =
                if is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
            result.structured_content = Some(data);
            result
        }
        Err(Failure::Told { message, code, details }) => {
            let content = vec![ContentBlock::text(cut(format!("Error: {message}")))];
            let mut about = json!({ "code": code });
            if let Some(details) = details {
                about["details"] = details;
            }
            let mut meta = MetaObject::new();
            meta.0.insert(ERROR_META.to_owned(), about);
            CallToolResult::error(content).with_meta(Some(meta))
        }
        Err(Failure::Cancelled) => {
            CallToolResult::error(vec![ContentBlock::text("Error: the request was cancelled")])
        }
    }
}

/// Where `_meta` of a failed call has its code and details.
const ERROR_META: &str = "vm-system/error";

/// As much of a text as one answer has room for; says so if that is not all.
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
