//! Executions.

use super::{Event, ResultValue, text_enum};
use crate::codec::{Decode, Encode};
use crate::ids::{ExecutionId, SessionId};
use crate::json::JsonText;
use crate::reason::CloseReason;
use crate::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

text_enum! {
    ExecutionKind {
        /// Input of a client.
        Repl = "repl",
        /// A file of the worktree.
        RunFile = "run_file",
        /// A startup file of the template.
        Startup = "startup",
        /// A durable program.
        Program = "program",
    }
}

text_enum! {
    /// `running → ok | error | timeout | cancelled`, and `running ⇄ waiting` while a task is pending.
    ExecutionStatus {
        /// The code runs.
        Running = "running",
        /// A task is pending.
        Waiting = "waiting",
        /// Ended without an error.
        Ok = "ok",
        /// Ended by an exception, a limit or the worker's exit.
        Error = "error",
        /// Ended by `cpu_ms` or `wall_ms`.
        Timeout = "timeout",
        /// Ended on request.
        Cancelled = "cancelled",
    }
}

impl ExecutionStatus {
    /// Whether the execution has ended; final statuses never change.
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Running | Self::Waiting)
    }
}

/// One run of code.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
pub struct Execution {
    pub id: ExecutionId,
    pub session_id: SessionId,
    pub kind: ExecutionKind,
    /// Source text of a repl execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// File of a run-file or startup execution, relative to the worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The client's arguments: an object; of a program, a list of texts. Values named `secret` are redacted.
    pub args: JsonText,
    /// The client's variables: an object of texts.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub env: JsonText,
    pub status: ExecutionStatus,
    pub started_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Value of the last expression or of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ResultValue>,
    /// The error, if the execution did not end `ok`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ExecutionError>,
    pub metrics: Metrics,
    /// True: a write of this record or its events failed, and the stored data may be incomplete. Otherwise absent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub degraded: bool,
    /// The events: only in the response to the request that started the execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<Event>>,
    /// The owner, `uid:1000` or the name of a token: in lists and single objects, for administrators only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

impl Execution {
    /// The JSON of the result, if it has one.
    pub fn result_json(&self) -> Option<&str> {
        self.result.as_ref()?.json_text()
    }
}

/// Why an execution did not end `ok`.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
pub struct ExecutionError {
    /// One of [`EXECUTION_CODES`].
    pub code: String,
    pub message: String,
    /// For `WORKER_DIED`: how the worker exited, as text of [`CloseReason`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// For `EXIT`: the number of `process.exit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// True: the message, or the stack in the exception event, was cut for its size. Otherwise absent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Size of the whole message of an error that was truncated (bytes), if it was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_bytes: Option<u64>,
}

/// The code of an execution whose top level awaits what nothing is left to settle.
pub const NEVER_SETTLED_CODE: &str = "NEVER_SETTLED";

/// The code of an execution whose code could not be compiled.
pub const SYNTAX_ERROR_CODE: &str = "SYNTAX_ERROR";

/// The codes of executions that did not end `ok`, with their meaning.
pub const EXECUTION_CODES: &[(&str, &str)] = &[
    ("CANCELLED", "Ended on request, with its session, or by a signal."),
    ("CPU_LIMIT", "It used more CPU time than `cpu_ms`."),
    ("EXCEPTION", "The code threw an exception that it did not catch, or a promise was rejected."),
    ("EXIT", "The code called `process.exit` with another number than 0."),
    ("HOST_RESTART", "The daemon or the machine was restarted while it ran."),
    ("INCOMPLETE", "The state of a branch is still being copied."),
    ("MEMORY_LIMIT", "It used more memory than `mem_mb`, or its state is larger than `max_state_mb`."),
    (NEVER_SETTLED_CODE, "The top level of the code awaits what nothing is left to settle."),
    ("OUTPUT_LIMIT_EXCEEDED", "It had more output or events than `max_output_kb` or `max_events`."),
    (
        "STACK_LIMIT",
        "A program of an earlier version had more nested calls than `max_stack_depth`: a `RangeError` now.",
    ),
    (
        "STATE_DAMAGED",
        "The stored state or code of a program is damaged, or a newer release wrote it: no worker can continue it.",
    ),
    ("STEP_LIMIT", "A program executed more instructions than `max_steps`."),
    ("STORAGE_LIMIT", "Its stored states would have exceeded the quota of its owner or of the execution."),
    (SYNTAX_ERROR_CODE, "The code could not be compiled."),
    ("TYPE_CHECK_FAILED", "Types could not be checked, which `typecheck: error` demands; nothing of it ran."),
    ("TYPE_ERRORS", "TypeScript's compiler found errors, and `typecheck` is `error`; nothing of it ran."),
    ("WALL_LIMIT", "It took longer than `wall_ms`."),
    ("WORKER_DIED", "The worker process exited; `reason` says why."),
];

impl ExecutionError {
    /// An error with one of the [`EXECUTION_CODES`].
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        debug_assert!(EXECUTION_CODES.iter().any(|(known, _)| *known == code), "{code} is not documented");
        let (truncated, full_bytes) = (false, None);
        Self {
            code: code.to_owned(),
            message: message.into(),
            reason: None,
            exit_code: None,
            truncated,
            full_bytes,
        }
    }

    /// The error of code that called `process.exit` with another number than 0.
    pub fn exit(code: i32) -> Self {
        Self { exit_code: Some(code), ..Self::new("EXIT", format!("process.exit({code})")) }
    }

    /// The same with the reason of the worker's death.
    #[must_use]
    pub fn because_of(self, reason: &CloseReason) -> Self {
        self.because(Some(reason.to_string()))
    }

    /// The same with a reason.
    #[must_use]
    pub fn because(self, reason: Option<String>) -> Self {
        Self { reason, ..self }
    }
}

/// Resources that an execution used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode, Serialize, Deserialize, JsonSchema)]
pub struct Metrics {
    /// Wall-clock time from dispatch to end (milliseconds).
    pub duration_ms: u64,
    /// CPU time, measured by the kernel (milliseconds).
    pub cpu_ms: u64,
    /// Time in which the script waited for host calls (milliseconds).
    pub host_wait_ms: u64,
    /// Events recorded.
    pub events: u64,
    /// Text and values in those events (bytes).
    pub output_bytes: u64,
    /// Peak of the JavaScript heap, reported by the worker; advisory (bytes).
    pub heap_peak_bytes: u64,
}
