//! Supervisor ⇄ a worker that runs a durable program. The messages are sent inside [`ToWorker`](crate::worker::ToWorker) and
//! [`FromWorker`](crate::worker::FromWorker); the first order decides the engine of a worker.
//!
//! The two take turns: after an order the worker sends messages, the last of which ends its turn (each variant says so).
//! Code and pages are opaque bytes to the supervisor.

use crate::codec::{Decode, Encode};
use crate::egress::{HttpHeader, HttpRequest};
use crate::json::JsonText;
use crate::model::{Diagnostic, ProgramState};
use crate::worker::{HostError, WorkerEvent};

/// Page bytes in one message (bytes); a larger page is sent alone.
pub const PAGE_BATCH_BYTES: usize = 1024 * 1024;
/// Page bytes in the message of a checkpoint (bytes); more are sent in separate messages.
pub const STOP_PAGES_BYTES: usize = 64 * 1024;
/// Longest prompt (bytes); a longer one is a `CCError`.
pub const PROMPT_BYTES: usize = 1024 * 1024;
/// Largest result of a program (bytes of JSON).
pub const RESULT_BYTES: usize = 4 * 1024 * 1024;
/// Most pending items of one program: questions, timers and events.
pub const PENDING_ITEMS: u32 = 1_000;
/// Text of all pending items of one program (bytes); a further one is refused.
pub const PENDING_ITEMS_BYTES: u64 = 16 * 1024 * 1024;
/// Longest name of an event (bytes).
pub const EVENT_NAME_BYTES: usize = 256;
/// Largest content of an event (bytes of JSON).
pub const EVENT_BYTES: usize = 1024 * 1024;
/// Most answers in one order.
pub const ANSWERS: usize = 128;
/// Text of the answers in one order (bytes), unless the first is longer.
pub const ANSWERS_BYTES: usize = 1024 * 1024;
/// Longest message of an uncaught exception (bytes).
pub const MESSAGE_BYTES: usize = 64 * 1024;
/// Largest body of a program's HTTP request (bytes).
pub const REQUEST_BODY_BYTES: usize = 4 * 1024 * 1024;
/// Largest body of a response that a program receives (bytes).
pub const RESPONSE_BODY_BYTES: usize = 16 * 1024 * 1024;
/// Largest compiled program (bytes).
pub const CODE_BYTES: usize = 7 * 1024 * 1024;

/// Messages of a supervisor to a worker that runs a durable program.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ToDurable {
    /// Compile; the worker is used for nothing else. The reply is `Compiled` or `NotCompiled`.
    Compile {
        source: String,
        /// Name in stacks.
        file_name: String,
        /// TypeScript (true), JavaScript (false); none = decided by compiling it.
        typescript: Option<bool>,
    },
    /// The program of all later orders. Has no reply.
    Load {
        /// As in `Compiled`.
        code: Vec<u8>,
        /// In force from this order on.
        limits: DurableLimits,
    },
    /// Pages of the state to restore. Has no reply.
    Pages(Vec<StatePage>),
    /// Restores the state from the pages. The reply is `Restored` or `Refused`.
    Restore,
    /// Runs the program from its beginning. Ends with a message that ends the turn.
    Start {
        /// Visible as `args`.
        args: Vec<String>,
        /// Visible as `env`.
        env: Vec<(String, String)>,
        /// Seeds `Math.random`.
        seed: u64,
        /// The limits of this run.
        segment: Segment,
    },
    /// Continues from the restored state, or from a checkpoint that the worker made by itself.
    Continue {
        /// The limits of this run.
        segment: Segment,
    },
    /// Continues from a pause.
    Answer {
        answer: TaskAnswer,
        /// The limits of this run.
        segment: Segment,
    },
    /// Continues from a checkpoint with cause `Wait`. The worker applies the answers one after the other, each with what follows from
    /// it, until the program waits for something else; the others are sent again once it waits for its items.
    Answers {
        /// In the order in which they were accepted.
        answers: Vec<AnsweredItem>,
        /// The limits of this run.
        segment: Segment,
    },
    /// Continues from a host call.
    HostResult {
        /// JSON of the result, or the message of an `Error`.
        result: Result<JsonText, String>,
        /// The limits of this run.
        segment: Segment,
    },
    /// The reply is `View`.
    Inspect,
    /// Changes a variable. The reply is `NotSet`, or pages and a checkpoint with cause `Edited`.
    Set {
        /// 0 is the innermost.
        frame: u32,
        name: String,
        /// The new value.
        value: JsonText,
    },
    /// Continues from an HTTP request: the worker puts the response into the state, and its next message is a checkpoint with cause
    /// `Response`, or with cause `Ended` if the state has become too large.
    Response {
        result: Result<HttpResponse, HostError>,
        /// The limits of this run.
        segment: Segment,
    },
}

/// Messages of a worker that runs a durable program.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum FromDurable {
    /// Ends the turn.
    Compiled {
        /// Opaque; for `Load`.
        code: Vec<u8>,
        /// The text was read as TypeScript (true) or JavaScript (false).
        typescript: bool,
    },
    /// Ends the turn.
    NotCompiled(Vec<Diagnostic>),
    /// The state was restored. Ends the turn.
    Restored,
    /// Code or pages are invalid. Ends the turn.
    Refused { why: String },
    /// Output of the running segment.
    Events(Vec<WorkerEvent>),
    /// Items that the program has created since the last such message.
    Items(Vec<CreatedItem>),
    /// Pages of the checkpoint that follows; an empty page is to be removed.
    Pages(Vec<StatePage>),
    /// A checkpoint: all pages that changed since the last one were sent.
    Checkpoint(Box<Stop>),
    /// A host call that needs no checkpoint, because it only reads. Ends the turn.
    Call(HostCall),
    /// Ends the turn.
    View(Box<ProgramState>),
    /// There is no such variable. Ends the turn.
    NotSet,
    /// As `Checkpoint`, with the last of its pages, so that a small checkpoint is one message.
    SmallCheckpoint {
        /// An empty page is to be removed.
        pages: Vec<StatePage>,
        /// As in `Checkpoint`.
        stop: Box<Stop>,
    },
}

/// A page of state.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct StatePage {
    pub number: u64,
    /// Opaque; empty = the page is removed.
    pub bytes: Vec<u8>,
}

impl StatePage {
    /// Whether a state can have a page of this number (docs/durable-state.md, "What is stored"): the frame page, packs; in states
    /// that were stored before there were packs, pages of 64 cells and parts of long contents.
    pub fn is_possible(number: u64) -> bool {
        const CELLS: u64 = 1 << 32;
        const PARTS: std::ops::Range<u64> = (1 << 62)..(1 << 62) + (CELLS << 24);
        const PACKS: std::ops::Range<u64> = (1 << 61)..(1 << 61) + (1 << 40);
        number <= CELLS / 64 || PACKS.contains(&number) || PARTS.contains(&number)
    }
}

/// Limits of a program from its start to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct DurableLimits {
    /// Accounted bytes of the heap.
    pub heap_bytes: u64,
    pub stack_depth: u32,
    /// Instructions; `u64::MAX` = no limit.
    pub steps: u64,
}

/// The limits of one run between two pauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Segment {
    /// The time of `Date` at the start of the segment, in milliseconds since the epoch.
    pub now_ms: i64,
    /// CPU time (milliseconds).
    pub cpu_ms: u32,
    /// Wall-clock time (milliseconds).
    pub wall_ms: u32,
    pub max_events: u32,
    /// Text in those events (bytes).
    pub max_output_bytes: u64,
    /// Most instructions without a checkpoint.
    pub checkpoint_steps: u64,
    /// Longest time without a checkpoint (milliseconds).
    pub checkpoint_ms: u32,
}

/// Something for which the program waits from now on, besides a pause: a promise that an answer settles.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct CreatedItem {
    /// Counts up in the execution, from 1.
    pub number: u64,
    /// Time since the segment began (microseconds).
    pub at_us: u64,
    pub content: ItemContent,
}

/// Kind and texts of a new item.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ItemContent {
    /// `CC.async`; as in `Pause`.
    Question { prompt: String, options: Option<JsonText> },
    /// `sleep`
    Timer {
        /// Time until it ends (milliseconds).
        duration_ms: u64,
    },
    /// `waitFor`
    Event {
        name: String,
        /// Time until it ends without an event (milliseconds).
        timeout_ms: Option<u64>,
        /// The value then.
        fallback: Option<JsonText>,
    },
    /// A question or an event that is larger than permitted; the message of the error with which it ends.
    Refused { why: String },
}

impl ItemContent {
    /// Size of its texts (bytes).
    pub fn bytes(&self) -> usize {
        let json = |json: &Option<JsonText>| json.as_ref().map_or(0, |json| json.as_str().len());
        match self {
            Self::Question { prompt, options } => prompt.len() + json(options),
            Self::Timer { .. } => 0,
            Self::Event { name, fallback, .. } => name.len() + json(fallback),
            Self::Refused { why } => why.len(),
        }
    }
}

/// An answer to an item.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct AnsweredItem {
    /// As in `CreatedItem`.
    pub number: u64,
    /// None: its time has come (of a timer).
    pub answer: Option<TaskAnswer>,
}

/// The answer to a pause, or to an item.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum TaskAnswer {
    Text(String),
    /// A value that fits the schema.
    Json(JsonText),
    /// Attempts are used up: `CCError`.
    Failed(String),
    /// The deadline has passed and there is no default: `CCTimeoutError`.
    Expired(String),
    /// The task itself is invalid: `TypeError`.
    Wrong(String),
}

/// A checkpoint's cause and the segment's usage so far.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Stop {
    /// The cause.
    pub cause: Cause,
    /// CPU time since the segment began (microseconds); advisory.
    pub cpu_us: u64,
    /// Accounted bytes of the heap; advisory.
    pub heap_bytes: u64,
    /// How many of the answers that were sent since the last stop are applied in this state.
    pub applied: u32,
}

/// Why a checkpoint was made.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Cause {
    /// At the start, before the first instruction. The worker continues by itself.
    Started,
    /// After many instructions.
    Steps,
    /// The program waits for an answer.
    Pause { prompt: String, options: Option<JsonText> },
    /// Nothing is left to do until an item is answered.
    Wait,
    /// Before a host call with a visible effect.
    Effect(HostCall),
    /// A variable was changed by a client; the program still waits.
    Edited,
    /// The program ended.
    Ended(End),
    /// Before an HTTP request; all of its body is in it, at most [`REQUEST_BODY_BYTES`].
    Request(Box<HttpRequest>),
    /// The response of a request is in the state. The worker waits for `Continue`.
    Response,
}

/// A host call of a durable program.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct HostCall {
    /// `readFile`, `writeFile`, `listFiles`.
    pub name: String,
    /// An array.
    pub args: JsonText,
}

/// The response to an HTTP request of a durable program.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct HttpResponse {
    pub status: u16,
    /// The text of the status, which HTTP/2 does not have.
    pub reason: String,
    pub headers: Vec<HttpHeader>,
    /// All of it, as it was transferred; at most [`RESPONSE_BODY_BYTES`].
    pub body: Vec<u8>,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum End {
    /// The program ended with a result.
    Ok {
        /// `null` for what JSON cannot represent.
        result: JsonText,
    },
    /// By an uncaught exception.
    Threw {
        /// First line.
        message: String,
        /// Text with stack.
        stack: String,
        /// Size of the whole message, if it or the stack was cut (bytes).
        full_bytes: Option<u64>,
    },
    /// By a limit.
    Limit(DurableLimit),
    /// By the interrupt signal.
    Interrupted,
    /// The state is not one that the engine can produce.
    Corrupt(String),
}

/// The limit that ended a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum DurableLimit {
    /// `max_state_mb`.
    Heap,
    /// `max_stack_depth`.
    Stack,
    /// `max_steps`.
    Steps,
    /// `cpu_ms`.
    Cpu,
    /// `wall_ms`.
    Wall,
    /// `max_events`.
    Events,
    /// `max_output_kb`.
    Output,
    /// The result is too large.
    Result,
}
