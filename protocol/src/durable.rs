//! Supervisor ⇄ a worker that runs a durable program. Travels inside [`ToWorker`](crate::worker::ToWorker) and
//! [`FromWorker`](crate::worker::FromWorker); the first order that a worker gets decides which engine it is.
//!
//! The two take turns: the worker is given something to do and talks until a message that hands the turn back
//! ([`FromDurable::ends_turn`]). Code and pages are opaque bytes to the supervisor.

use crate::codec::{Decode, Encode};
use crate::json::JsonText;
use crate::model::{Diagnostic, ProgramState};
use crate::worker::WorkerEvent;

/// Page bytes that are gathered in one message (bytes); a larger page goes alone.
pub const PAGE_BATCH_BYTES: usize = 1024 * 1024;
/// Page bytes that travel with their checkpoint (bytes); more come in messages of their own.
pub const STOP_PAGES_BYTES: usize = 64 * 1024;
/// Longest prompt (bytes); a program that asks more gets a `CCError`.
pub const PROMPT_BYTES: usize = 1024 * 1024;
/// Largest result of a program (bytes of JSON).
pub const RESULT_BYTES: usize = 4 * 1024 * 1024;
/// Longest message of an uncaught exception (bytes).
pub const MESSAGE_BYTES: usize = 64 * 1024;
/// Largest compiled program (bytes).
pub const CODE_BYTES: usize = 7 * 1024 * 1024;

/// What a supervisor tells such a worker.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ToDurable {
    /// Compile; the worker is of no other use. Answered by `Compiled` or `NotCompiled`.
    Compile {
        /// The source text.
        source: String,
        /// Name in stacks.
        file_name: String,
        /// TypeScript (true), JavaScript (false), or whichever it is.
        typescript: Option<bool>,
    },
    /// The program that everything after this is about. Not answered.
    Load {
        /// As `Compiled` gave it.
        code: Vec<u8>,
        /// In force from here on.
        limits: DurableLimits,
    },
    /// Pages of the state to go on with. Not answered.
    Pages(Vec<StatePage>),
    /// Makes a state of the pages that came. Answered by `Restored` or `Refused`.
    Restore,
    /// Runs the program from its beginning. Ends with a message that ends the turn.
    Start {
        /// Visible as `args`.
        args: Vec<String>,
        /// Visible as `env`.
        env: Vec<(String, String)>,
        /// Seeds `Math.random`.
        seed: u64,
        /// What this run may use.
        segment: Segment,
    },
    /// Goes on with what was restored, or from a checkpoint that the worker made by itself.
    GoOn {
        /// What this run may use.
        segment: Segment,
    },
    /// Goes on from a pause.
    Answer {
        /// The answer.
        answer: TaskAnswer,
        /// What this run may use.
        segment: Segment,
    },
    /// Goes on from a call.
    HostResult {
        /// JSON of the result, or the message of an `Error`.
        result: Result<JsonText, String>,
        /// What this run may use.
        segment: Segment,
    },
    /// Answered by `View`.
    Inspect,
    /// Changes a variable. Answered by `NotSet`, or by pages and a checkpoint with cause `Edited`.
    Set {
        /// Which frame, 0 is the innermost.
        frame: u32,
        /// Which variable.
        name: String,
        /// Its new value.
        value: JsonText,
    },
}

/// What such a worker tells the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum FromDurable {
    /// Ends the turn.
    Compiled {
        /// Opaque; goes into `Load`.
        code: Vec<u8>,
    },
    /// Ends the turn.
    NotCompiled(Vec<Diagnostic>),
    /// The state stands as it was saved. Ends the turn.
    Restored,
    /// Code or pages cannot be used. Ends the turn.
    Refused {
        /// Why.
        why: String,
    },
    /// Output of the running segment.
    Events(Vec<WorkerEvent>),
    /// Pages of the checkpoint that follows; an empty one is to be forgotten.
    Pages(Vec<StatePage>),
    /// All that changed since the last one was told; the state stands here.
    Checkpoint(Box<Stop>),
    /// Reads something without a checkpoint. Ends the turn.
    Call(HostCall),
    /// Ends the turn.
    View(Box<ProgramState>),
    /// There is no such variable. Ends the turn.
    NotSet,
    /// As `Checkpoint`, with the last of its pages: a usual step is one message.
    Stands {
        /// The pages; an empty one is to be forgotten.
        pages: Vec<StatePage>,
        /// As in `Checkpoint`.
        stop: Box<Stop>,
    },
}

impl FromDurable {
    /// Whether it is the supervisor's turn behind this message.
    pub fn ends_turn(&self) -> bool {
        match self {
            Self::Events(_) | Self::Pages(_) => false,
            Self::Checkpoint(stop) | Self::Stands { stop, .. } => stop.cause != Cause::Started,
            _ => true,
        }
    }
}

/// A page of state.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct StatePage {
    /// Its number.
    pub number: u64,
    /// Opaque; empty = the page is gone.
    pub bytes: Vec<u8>,
}

impl StatePage {
    /// Whether a state can have a page of this number (docs/durable-state.md, "What is stored"): the frame page, pages of 64
    /// cells, parts of long contents.
    pub fn is_possible(number: u64) -> bool {
        const CELLS: u64 = 1 << 32;
        const PARTS: std::ops::Range<u64> = (1 << 62)..(1 << 62) + (CELLS << 24);
        number <= CELLS / 64 || PARTS.contains(&number)
    }
}

/// Limits over the whole life of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct DurableLimits {
    /// Accounted bytes of the heap.
    pub heap_bytes: u64,
    /// Frames.
    pub stack_depth: u32,
    /// Instructions; `u64::MAX` = no limit.
    pub steps: u64,
}

/// What one run between two pauses may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Segment {
    /// What `Date` shows, in milliseconds since the epoch; time goes on from there.
    pub now_ms: i64,
    /// CPU time (milliseconds).
    pub cpu_ms: u32,
    /// Wall-clock time (milliseconds).
    pub wall_ms: u32,
    /// Events.
    pub max_events: u32,
    /// Text in those events (bytes).
    pub max_output_bytes: u64,
    /// A checkpoint after so many instructions without another one.
    pub checkpoint_steps: u64,
    /// A checkpoint after so much time without another one (milliseconds).
    pub checkpoint_ms: u32,
}

/// The answer to a pause.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum TaskAnswer {
    /// A string.
    Text(String),
    /// A value that fits the schema.
    Json(JsonText),
    /// Attempts are used up: `CCError`.
    Failed(String),
    /// The time is over and there is no default: `CCTimeoutError`.
    Expired(String),
    /// The question itself is wrong: `TypeError`.
    Wrong(String),
}

/// A checkpoint's cause and what the segment used so far.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Stop {
    /// Why the program stands here.
    pub cause: Cause,
    /// CPU time since the segment began (microseconds); advisory.
    pub cpu_us: u64,
    /// Accounted bytes of the heap; advisory.
    pub heap_bytes: u64,
}

/// Why a program stands at a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Cause {
    /// Nothing ran yet. The worker goes on by itself.
    Started,
    /// It computed for long.
    Steps,
    /// It waits for an answer.
    Pause {
        /// The prompt.
        prompt: String,
        /// The options object.
        options: Option<JsonText>,
    },
    /// It wants something done that others can see.
    Effect(HostCall),
    /// A variable was changed from outside; it still waits for its answer.
    Edited,
    /// It ended.
    Ended(End),
}

/// A call of the host.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct HostCall {
    /// `readFile`, `writeFile`, `listFiles`.
    pub name: String,
    /// Arguments: an array.
    pub args: JsonText,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum End {
    /// With a result.
    Ok {
        /// `null` for what JSON has no word for.
        result: JsonText,
    },
    /// By an exception that nobody caught.
    Threw {
        /// First line.
        message: String,
        /// Text with stack.
        stack: String,
    },
    /// By a limit.
    Limit(DurableLimit),
    /// By the interrupt signal.
    Interrupted,
    /// The state is not one that the engine makes.
    Corrupt(String),
}

/// Which limit ended a program.
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
