//! The results of [`crate::run`], and the values with which a host resumes a program.
//!
//! Owns: these types. Must not: use the heap.

use crate::state::VmLimitKind;

/// The name of the host call of an HTTP request.
pub const FETCH: &str = "fetch";

/// Console severity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// `console.log`, `console.info`
    Log,
    /// `console.warn`
    Warn,
    /// `console.error`
    Error,
    /// `console.debug`
    Debug,
}

/// One console call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConsoleLine {
    /// Severity
    pub level: Level,
    /// Formatted text, without a line end
    pub text: String,
}

/// Console output that was dropped because there was too much of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DroppedOutput {
    /// Lines
    pub lines: u64,
    /// Text in them
    pub bytes: u64,
}

/// The request for which a program waits.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum PendingRequest {
    /// `CC(prompt, options)`
    Task {
        /// The prompt
        prompt: String,
        /// The options object as JSON, if there is one
        options: Option<String>,
    },
    /// A host function
    Host {
        /// `readFile`, `writeFile`, `listFiles` or `fetch`
        name: String,
        /// Arguments as JSON, an array
        args: String,
    },
}

/// Why [`crate::run`] returned.
#[derive(Clone, PartialEq, Debug)]
pub enum RunOutcome {
    /// The program ended; its result as JSON (`null` for parts that JSON cannot represent) and as console text
    Done {
        /// JSON text
        json: String,
        /// Text as the console shows it
        text: String,
    },
    /// An uncaught exception: text with stack
    Throw(String),
    /// A pause; resume with [`crate::resume_pause`]
    Pause {
        /// The prompt
        prompt: String,
        /// The options object as JSON
        options: Option<String>,
    },
    /// A host call; resume with [`crate::resume_host`]
    Host {
        /// `readFile`, `writeFile`, `listFiles`, or [`crate::FETCH`]: an HTTP request
        name: String,
        /// Arguments as JSON, an array; of a request: its method, its URL, names and values of its header fields in turn with a
        /// character for each byte, and its body in base64 or null
        args: String,
    },
    /// The fuel of this call is used up; [`crate::run`] may be called again
    OutOfFuel,
    /// A limit ended the program
    Limit(VmLimitKind),
    /// The state is invalid, and the program cannot continue; the defect
    Corrupt(&'static str),
}

/// The answer to a pause.
#[derive(Clone, PartialEq, Debug)]
pub enum PauseAnswer {
    /// A plain string
    Text(String),
    /// JSON text that fits the task's schema
    Json(String),
    /// Attempts are used up: `CCError` with this message
    Error(String),
    /// The deadline has passed and there is no default: `CCTimeoutError`
    Timeout(String),
    /// The task itself is invalid: `TypeError` with this message
    Wrong(String),
}

/// The result of a host call.
#[derive(Clone, PartialEq, Debug)]
pub enum HostResult {
    /// JSON text
    Json(String),
    /// An `Error` with this message
    Error(String),
    /// The response to a request
    Response(Box<HostResponse>),
    /// A request was refused or has failed: the `cause` of what `fetch` throws
    Failed {
        /// `ECONNREFUSED`; may be empty
        code: String,
        /// The error's message
        message: String,
    },
}

/// The response to an HTTP request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostResponse {
    /// 200
    pub status: u16,
    /// The text of the status; may be empty
    pub reason: String,
    /// Names in lower case, and values
    pub headers: Vec<(String, Vec<u8>)>,
    /// All of it, decoded
    pub body: Vec<u8>,
}
