//! Events: the output of an execution, in order.

use super::text_enum;
use crate::codec::{Decode, Encode};
use crate::ids::{ExecutionId, TaskId};
use crate::json::JsonText;
use crate::time::Timestamp;
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
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
pub struct Event {
    pub execution_id: ExecutionId,
    /// Position, from 1.
    pub seq: u64,
    pub ts: Timestamp,
    /// JSON fields `type` and `payload`.
    #[serde(flatten)]
    pub payload: EventPayload,
}

/// The content of an event.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
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
        /// Formatted as by Node's `util.format`.
        text: String,
    },
    /// The value of the last expression.
    Value {
        #[serde(rename = "type")]
        kind: JsType,
        /// For people.
        preview: String,
        /// For programs, if JSON represents the value completely.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        json: Option<JsonText>,
    },
    /// An uncaught exception.
    Exception {
        /// `ReferenceError: x is not defined`.
        message: String,
        /// With file and line; may be empty.
        stack: String,
    },
    /// A message of the system.
    System {
        message: String,
        /// The severity.
        level: ConsoleLevel,
    },
    /// Output of a command that the script ran.
    Stdout { text: String },
    /// Error output of a command that the script ran.
    Stderr { text: String },
    /// A task was created.
    Task { task_id: TaskId, prompt: String },
}

impl EventPayload {
    /// The JSON field `type`.
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::InputEcho { .. } => "input_echo",
            Self::Console { .. } => "console",
            Self::Value { .. } => "value",
            Self::Exception { .. } => "exception",
            Self::System { .. } => "system",
            Self::Stdout { .. } => "stdout",
            Self::Stderr { .. } => "stderr",
            Self::Task { .. } => "task",
        }
    }

    /// Bytes that count against `max_output_kb`: all texts and the JSON.
    pub fn output_bytes(&self) -> u64 {
        let bytes = match self {
            Self::InputEcho { .. } => 0,
            Self::Console { text, .. } | Self::Stdout { text } | Self::Stderr { text } => text.len(),
            Self::Value { preview, json, .. } => {
                preview.len() + json.as_ref().map_or(0, |json| json.as_str().len())
            }
            Self::Exception { message, stack } => message.len() + stack.len(),
            Self::System { message, .. } => message.len(),
            Self::Task { prompt, .. } => prompt.len(),
        };
        bytes as u64
    }
}
