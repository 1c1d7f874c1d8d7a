//! The results of [`crate::run`], and the values with which a host resumes a program.
//!
//! A program waits in three ways. [`RunOutcome::Pause`] (`CC(…)`) and [`RunOutcome::Host`] stop it in the middle of an expression: one
//! request at a time, no jobs run meanwhile, and the answer goes to [`crate::resume_pause`] or [`crate::resume_host`]. An *item*
//! (`CC.async(…)`, `sleep(…)`, `waitFor(…)`) is a promise that the host settles: the program goes on, and [`RunOutcome::Wait`] is
//! returned when nothing is left to run but items are pending.
//!
//! A host of programs with items
//! - calls [`crate::VmState::take_new_items`] after each [`crate::run`], and stores them together with the next checkpoint: the state
//!   itself holds only the numbers and kinds of items;
//! - may get answers at any time, and keeps them in their order. In phase [`crate::RunPhase::Wait`] it applies the first one with
//!   [`crate::resume_item`] and calls [`crate::run`], which runs the jobs of this answer and nothing else. The next answer follows when
//!   that returned `Wait` again. After `Pause`, `Host` and `OutOfFuel` the program gets no item's answer: what runs between two waits
//!   does not depend on when answers come;
//! - reads [`crate::VmState::open_items`] when the program has ended, in whatever way: these items are withdrawn.
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

/// A kind of item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ItemKind {
    /// `CC.async(prompt, options)`
    Question,
    /// `sleep(ms)`
    Timer,
    /// `waitFor(name, options)`
    Event,
}

/// An item that is pending, or was when its program ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenItem {
    /// Number in its execution, from 1; no other item of the execution ever has it
    pub number: u64,
    /// Kind
    pub kind: ItemKind,
}

/// An item that the program made since the last call of [`crate::VmState::take_new_items`].
#[derive(Clone, PartialEq, Debug)]
pub struct NewItem {
    /// As [`OpenItem::number`]; new items have ascending numbers without a gap
    pub number: u64,
    /// The request, which the state does not keep
    pub request: ItemRequest,
}

/// The request of a new item.
#[derive(Clone, PartialEq, Debug)]
pub enum ItemRequest {
    /// `CC.async(prompt, options)`
    Question {
        /// The prompt
        prompt: String,
        /// The options object as JSON, as of [`RunOutcome::Pause`]
        options: Option<String>,
    },
    /// `sleep(ms)`
    Timer {
        /// Milliseconds, rounded up, at most [`crate::MOST_TIMER_MS`]
        duration_ms: u64,
    },
    /// `waitFor(name, options)`
    Event {
        /// The event's name: 1 to [`crate::MOST_EVENT_NAME_BYTES`] bytes
        name: String,
        /// The option `timeout_ms`, as of `Timer`
        timeout_ms: Option<u64>,
        /// The option `default` as JSON: the value if the time is over
        default: Option<String>,
    },
}

impl ItemRequest {
    /// The kind of its item.
    pub fn kind(&self) -> ItemKind {
        match self {
            ItemRequest::Question { .. } => ItemKind::Question,
            ItemRequest::Timer { .. } => ItemKind::Timer,
            ItemRequest::Event { .. } => ItemKind::Event,
        }
    }
}

/// The settlement of an item.
#[derive(Clone, PartialEq, Debug)]
pub enum ItemAnswer {
    /// The answer to a question, or the value of an event. `Error` and `Wrong` settle an item of any kind: the host has refused it
    Answer(PauseAnswer),
    /// The time of a timer has come: `undefined`
    Elapsed,
}

impl ItemAnswer {
    /// Whether an item of this kind can be settled so.
    pub fn fits(&self, kind: ItemKind) -> bool {
        match self {
            ItemAnswer::Elapsed => kind == ItemKind::Timer,
            ItemAnswer::Answer(PauseAnswer::Error(_) | PauseAnswer::Wrong(_)) => true,
            ItemAnswer::Answer(_) => kind != ItemKind::Timer,
        }
    }
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
    /// Nothing is left to run, and items are pending; resume with [`crate::resume_item`]
    Wait {
        /// Texts with stacks of rejections that nothing has handled, each in one outcome only. They are no end: something may handle
        /// them later. At most [`crate::MOST_REJECTIONS`]; further ones follow with the next `Wait`
        rejections: Vec<String>,
    },
    /// The fuel of this call is used up; [`crate::run`] may be called again
    OutOfFuel,
    /// A limit ended the program
    Limit(VmLimitKind),
    /// The state is invalid, and the program cannot continue; the defect
    Corrupt(&'static str),
}

/// The answer to a pause, or to an item.
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
