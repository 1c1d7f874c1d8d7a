//! Events: the output of an execution, in order.

use super::text_enum;
use crate::codec::{Decode, Encode};
use crate::ids::{ExecutionId, TaskId};
use crate::json::JsonText;
use crate::limits::EVENT_TEXT_BYTES;
use crate::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

text_enum! {
    ConsoleLevel {
        /// `console.log`.
        Log = "log",
        /// `console.warn`.
        Warn = "warn",
        /// `console.error`, `console.trace`, failed `console.assert`.
        Error = "error",
        /// `console.info`.
        Info = "info",
        /// `console.debug`.
        Debug = "debug",
    }
}

text_enum! {
    /// JavaScript's name of a value's type.
    JsType {
        Number = "number",
        String = "string",
        Boolean = "boolean",
        /// Any other object.
        Object = "object",
        Array = "array",
        /// A function or class.
        Function = "function",
        /// `undefined`.
        Undefined = "undefined",
        /// `null`.
        Null = "null",
        /// A `BigInt`.
        Bigint = "bigint",
        Symbol = "symbol",
        /// A `Date`.
        Date = "date",
        /// A `Map`.
        Map = "map",
        /// A `Set`.
        Set = "set",
        Promise = "promise",
        /// An `Error`.
        Error = "error",
    }
}

/// One entry of an execution's output. `seq` is 1, 2, 3, … without a gap.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    pub execution_id: ExecutionId,
    /// Position, from 1.
    #[schemars(range(min = 1))]
    pub seq: u64,
    pub ts: Timestamp,
    /// JSON fields `type` and `payload`.
    #[serde(flatten)]
    pub payload: EventPayload,
}

text_enum! {
    /// The subject of a message of the system, for clients that name a remedy.
    NoteCode {
        /// The session's template does not have the module.
        ModuleNotGranted = "module_not_granted",
        /// No path of the worktree may be changed.
        NoChanges = "no_changes",
        /// No capability allows the request.
        NetNotGranted = "net_not_granted",
    }
}

/// The beginning of the mark at the end of an exception's message that was cut; the length of the whole one follows.
pub const CUT_MESSAGE: &str = "... [truncated: the message has ";

/// Longest code of an exception (bytes).
pub const EXCEPTION_CODE_BYTES: usize = 64;

/// Whether a text is a code as errors of Node and of this system have it: `ERR_INVALID_ARG_TYPE`, `ENOENT`.
pub fn is_exception_code(text: &str) -> bool {
    let is_of_code = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=EXCEPTION_CODE_BYTES).contains(&text.len()) && text.bytes().all(is_of_code)
}

/// The content of an event.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "payload", rename_all = "snake_case")]
pub enum EventPayload {
    /// The input of a repl execution.
    InputEcho {
        /// As the client sent it.
        text: String,
    },
    /// A console call.
    Console {
        level: ConsoleLevel,
        /// Formatted as by Node's `util.format`; at most 256 KiB ([`EVENT_TEXT_BYTES`]): a longer text takes several events.
        text: String,
        /// True: the text continues in the next event, on the same line; in the last event, no line feed ends it. Otherwise absent.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        more: bool,
    },
    /// The value of the last expression or of the file.
    Value(ResultValue),
    /// An uncaught exception.
    Exception {
        /// `ReferenceError: x is not defined`.
        message: String,
        /// The calls in progress, with file and line; may be empty.
        stack: String,
        /// The `code` of the error, or of its cause: `ENOENT`, `MODULE_NOT_FOUND`; `SYNTAX_ERROR` if the code could not be compiled.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
        /// True: the message or the stack was cut for its size. Otherwise absent.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        truncated: bool,
        /// Size of the whole message of an exception that was truncated (bytes), if it was counted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        full_bytes: Option<u64>,
    },
    /// A message of the system.
    System {
        message: String,
        /// The severity.
        level: ConsoleLevel,
        /// The refused thing, if clients can name a remedy.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<NoteCode>,
    },
    /// Output of a command that the script ran.
    Stdout { text: String },
    /// Error output of a command that the script ran.
    Stderr { text: String },
    /// An HTTP request of the script has ended.
    Http(Box<HttpRecord>),
    /// A task was created.
    Task { task_id: TaskId, prompt: String },
}

/// The record of an HTTP request; neither header fields nor bodies.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
pub struct HttpRecord {
    pub method: String,
    /// `https://example.com:8443`, without the scheme's own port.
    pub origin: String,
    /// Without the query.
    pub path: String,
    /// Of the response, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100))]
    pub status: Option<u16>,
    /// The code of the error, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Body of the request (bytes).
    pub sent: u64,
    /// Body of the response (bytes).
    pub received: u64,
    /// From the request to the end (milliseconds).
    pub ms: u64,
}

/// The value of an execution: the payload of its value event.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
pub struct ResultValue {
    #[serde(rename = "type")]
    pub kind: JsType,
    /// For people: as `util.inspect` shows it, or the JSON of a program's result; at most 256 KiB ([`EVENT_TEXT_BYTES`]).
    pub preview: String,
    /// For programs, if JSON represents the value completely; never cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<JsonText>,
    /// True: the preview was cut, or the JSON left out, for its size. Otherwise absent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Size of the JSON of a value that was truncated (bytes), if it was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_bytes: Option<u64>,
}

impl ResultValue {
    /// The value of a program, from its JSON, which is checked.
    pub fn of_json(json: JsonText) -> Self {
        let text = json.as_str();
        let kind = match text.trim_start().as_bytes().first() {
            Some(b'"') => JsType::String,
            Some(b'[') => JsType::Array,
            Some(b't' | b'f') => JsType::Boolean,
            Some(b'n') => JsType::Null,
            Some(b'{') | None => JsType::Object,
            Some(_) => JsType::Number,
        };
        let preview = text[..text.floor_char_boundary(EVENT_TEXT_BYTES)].to_owned();
        let truncated = preview.len() < text.len();
        let full_bytes = truncated.then_some(text.len() as u64);
        Self { kind, preview, json: Some(json), truncated, full_bytes }
    }

    /// The JSON, if there is any.
    pub fn json_text(&self) -> Option<&str> {
        self.json.as_ref().map(JsonText::as_str)
    }

    /// Size of the preview and the JSON (bytes).
    pub fn bytes(&self) -> usize {
        self.preview.len() + self.json.as_ref().map_or(0, |json| json.as_str().len())
    }
}

/// The beginning of a console text that fits one event; it is the whole text if it is short.
pub fn console_piece(text: &str) -> &str {
    &text[..text.floor_char_boundary(EVENT_TEXT_BYTES)]
}

impl EventPayload {
    /// A whole text of the console.
    pub const fn console(level: ConsoleLevel, text: String) -> Self {
        Self::Console { level, text, more: false }
    }

    /// The JSON field `type`.
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::InputEcho { .. } => "input_echo",
            Self::Console { .. } => "console",
            Self::Value(_) => "value",
            Self::Exception { .. } => "exception",
            Self::System { .. } => "system",
            Self::Stdout { .. } => "stdout",
            Self::Stderr { .. } => "stderr",
            Self::Http(_) => "http",
            Self::Task { .. } => "task",
        }
    }

    /// Bytes that count against `max_output_kb`: all texts and the JSON.
    pub fn output_bytes(&self) -> u64 {
        let bytes = match self {
            Self::InputEcho { .. } => 0,
            Self::Console { text, .. } | Self::Stdout { text } | Self::Stderr { text } => text.len(),
            Self::Value(value) => value.bytes(),
            Self::Exception { message, stack, .. } => message.len() + stack.len(),
            Self::System { message, .. } => message.len(),
            Self::Http(record) => record.method.len() + record.origin.len() + record.path.len(),
            Self::Task { prompt, .. } => prompt.len(),
        };
        bytes as u64
    }
}
