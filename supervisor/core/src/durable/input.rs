//! Inputs and actions of the durable machine, and the data that they carry. Decides nothing.

use super::answers::SubmittedAnswer;
use crate::{Token, WorkerExitStatus, WriteId};
use vm_system_protocol::durable::{DurableLimits, FromDurable, HostCall, HttpResponse, ToDurable};
use vm_system_protocol::egress::HttpRequest;
use vm_system_protocol::ids::{ExecutionId, SessionId, TaskId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{EventPayload, Execution, Limits, WaitingFor};
use vm_system_protocol::worker::HostError;
use vm_system_record::{CheckpointRow, ItemRow, MailRow, StorageLimit, UsedLimits, Write};

/// Most events that an execution keeps.
pub const MAILBOX_EVENTS: usize = 1_000;
/// Largest size of their names and contents (bytes).
pub const MAILBOX_BYTES: usize = 1 << 20;

/// Identifies a caller that waits for the status of the execution.
pub type RunToken = Token<RunStatus>;

/// The constant properties of an execution.
#[derive(Debug, Clone)]
pub struct DurableSpec {
    pub execution: ExecutionId,
    pub session: SessionId,
    pub limits: Limits,
    /// A checkpoint after this many instructions without one.
    pub checkpoint_steps: u64,
    /// A checkpoint after computing this long without one (milliseconds).
    pub checkpoint_ms: u32,
    /// How long a worker is kept after a pause (milliseconds).
    pub warm_ms: u64,
    /// Earlier checkpoints that are kept for a rewind; 0 = all.
    pub history: u64,
}

impl DurableSpec {
    /// The limits over the whole life, in the form that the worker gets.
    pub fn life(&self) -> DurableLimits {
        life(&self.limits)
    }
}

/// Limits over a program's whole life, in the form that a worker gets.
pub fn life(limits: &Limits) -> DurableLimits {
    DurableLimits {
        heap_bytes: u64::from(limits.max_state_mb) << 20,
        stack_depth: limits.max_stack_depth,
        steps: if limits.max_steps == 0 { u64::MAX } else { limits.max_steps },
    }
}

/// Start parameters of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fresh {
    /// Visible as `args`.
    pub args: Vec<String>,
    /// Visible as `env`.
    pub env: Vec<(String, String)>,
    /// Seeds `Math.random`.
    pub seed: u64,
    /// The writes that insert the rows of session and execution.
    pub creation: Vec<Write>,
}

/// The stored data of an execution.
#[derive(Debug, Clone)]
pub struct StoredExecution {
    pub record: Execution,
    /// The last checkpoint.
    pub checkpoint: Option<CheckpointRow>,
    /// The question of the last pause.
    pub task: Option<ItemRow>,
    /// Pending items, and those whose answers are in no state, in the order of their answers.
    pub items: Vec<ItemRow>,
    /// Number of the last item; 0: there was none.
    pub last_item: u64,
    /// Events that were not used, in their order.
    pub mailbox: Vec<MailRow>,
    /// The use of limits as of the last checkpoint, and the exits of workers since.
    pub limits: UsedLimits,
}

/// An event from outside.
#[derive(Debug, Clone)]
pub enum DurableInput {
    /// Run the program from its beginning.
    Start {
        token: RunToken,
        /// Reply at the first pause or end (true), or as soon as the start is stored.
        wait: bool,
    },
    /// Resume as the stored rows require.
    Wake {
        /// Gets a reply when the program waits or has ended.
        token: Option<RunToken>,
    },
    /// An answer to the pending task.
    Submit {
        token: RunToken,
        /// `None`: the pending one.
        task: Option<TaskId>,
        /// The answer as it was submitted.
        answer: SubmittedAnswer,
        /// Writes for the same batch, if the answer is accepted.
        with: Vec<Write>,
        /// Reply when the program pauses again or ends (true), or as soon as the answer is stored.
        wait: bool,
    },
    /// An event for the execution.
    Emit {
        token: RunToken,
        name: String,
        /// Valid JSON.
        event: JsonText,
        with: EventWrites,
    },
    /// Change a variable of a program that waits.
    Set {
        token: RunToken,
        /// Number of the frame.
        frame: u32,
        name: String,
        value: JsonText,
    },
    /// End the execution.
    Cancel {
        token: RunToken,
        /// Writes for the same batch.
        with: Vec<Write>,
    },
    /// A worker was started, and code and pages were sent to it.
    Loaded {
        /// The state is small: the next message may be sent without waiting for `Restored`.
        small: bool,
    },
    /// No worker could be started, for this reason.
    NotLoaded {
        why: String,
        /// A retry would fail again.
        permanent: bool,
    },
    /// A message of the worker.
    Message(FromDurable),
    /// The worker broke the protocol below the level of messages.
    Violation(String),
    /// The worker has exited.
    Exited(WorkerExitStatus),
    /// The worker was killed: it made this forbidden system call.
    ForbiddenCall(String),
    /// A batch is stored.
    Stored(WriteId),
    /// A batch was not stored.
    NotStored {
        write: WriteId,
        why: Unstored,
        /// Message for users.
        error: String,
    },
    /// A host call was carried out.
    Called {
        result: Result<JsonText, String>,
        /// Bytes that the program has written to files so far.
        written: u64,
    },
    /// A request was made, or refused.
    Responded {
        result: Result<HttpResponse, HostError>,
        /// Events about it: the record of each request that was made, or a denial.
        notes: Vec<EventPayload>,
    },
    /// No messages are received from the worker until there is memory for them; the worker has to wait.
    Stalled,
    /// There is memory again.
    Continues,
    /// The store reports that it fails or is stalled. To be given before a `Tick` while [`DurableMachine::waits_for_store`]: this time
    /// of waiting counts for no limit.
    ///
    /// [`DurableMachine::waits_for_store`]: super::DurableMachine::waits_for_store
    StoreFails,
    /// The deadline may have passed.
    Tick,
    /// Other executions need workers.
    Pressure,
    /// The supervisor stops.
    Stop,
}

/// Writes for the batch of an event that is accepted.
#[derive(Debug, Clone, Default)]
pub struct EventWrites {
    /// If the execution waits for it.
    pub awaited: Vec<Write>,
    /// If the execution keeps it until it waits for it; none: then it is refused.
    pub kept: Option<Vec<Write>>,
}

impl DurableInput {
    /// The caller of a request that may have to wait for the store.
    pub(super) const fn token(&self) -> Option<RunToken> {
        match self {
            Self::Submit { token, .. }
            | Self::Set { token, .. }
            | Self::Emit { token, .. }
            | Self::Cancel { token, .. }
            | Self::Wake { token: Some(token) } => Some(*token),
            _ => None,
        }
    }
}

/// Why a batch was not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unstored {
    /// A name was taken in the meantime.
    Conflict,
    /// The state is larger than permitted.
    TooLarge,
    /// A limit of what is stored does not allow it.
    Limit(StorageLimit),
    /// The store did not have it yet, and the execution is to be ended.
    Withdrawn,
    /// The store does not work.
    Failed,
}

/// Where a worker resumes the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadFrom {
    /// The beginning: only the code is sent.
    Beginning,
    /// This checkpoint: code, pages, `Restore`.
    Checkpoint(u64),
}

/// A host call to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostCallRequest {
    pub call: HostCall,
    /// Identifies the effect: the same number of the same execution is the same effect.
    pub effect: Option<u64>,
}

/// An HTTP request to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestEffect {
    pub request: Box<HttpRequest>,
    /// As in [`HostCallRequest`].
    pub effect: u64,
}

/// An effect for the owner task to carry out.
#[derive(Debug, Clone, PartialEq)]
pub enum DurableAction {
    /// Start a worker and load the state.
    Spawn(LoadFrom),
    /// Send to the worker.
    Send(Box<ToDurable>),
    /// CPU time that the worker may use in its life (milliseconds) before the kernel kills it.
    AllowCpu(u64),
    /// Kill the worker, and report its exit as an input.
    Kill,
    /// The idle worker is not needed any more: it may exit at any time. Report `Exited` at once, or when a worker that is being
    /// started is ready.
    LetGo,
    /// Write a batch.
    Write { id: WriteId, batch: Vec<Write> },
    /// Make a host call; a new one replaces a pending one.
    Host(HostCallRequest),
    /// Make an HTTP request, and report `Responded`; it replaces a pending call.
    Request(RequestEffect),
    /// Reply to a caller.
    Reply { token: RunToken, result: Result<Box<RunStatus>, DurableRefusal> },
}

/// The status of an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunStatus {
    pub record: Execution,
    /// The oldest pending question.
    pub task: Option<ItemRow>,
    pub waiting_for: WaitingFor,
    /// It has ended, and items are left for which it did not wait.
    pub abandons: bool,
    /// Of the reply to an event: the execution waited for it (true), or keeps it until it does.
    pub was_awaited: bool,
}

/// Why a request was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurableRefusal {
    /// The execution does not wait, or not for this task.
    #[error("the execution does not wait for this answer: no task is pending, or another one")]
    NotPending,
    /// Several tasks are pending, and the answer names none.
    #[error("several tasks are pending: the answer has to name one of them")]
    Ambiguous {
        /// Some of them, oldest first.
        tasks: Vec<TaskId>,
    },
    /// More events than the mailbox of an execution keeps.
    #[error("the execution has {MAILBOX_EVENTS} events, or {} KiB of them, for which it has not waited yet", MAILBOX_BYTES >> 10)]
    MailboxFull,
    /// An event only for an execution that waits for it.
    #[error("the execution does not wait for this event")]
    NotAwaited,
    /// More unused answers than are kept.
    #[error(
        "the execution has many MiB of answers that it has not used yet: submit this one when it has gone on"
    )]
    AnswersFull,
    /// The execution has ended.
    #[error("the execution has ended")]
    Ended,
    /// The answer does not fit.
    #[error("the answer does not fit the task's schema: {why}")]
    Unfit {
        /// Where and why.
        why: String,
        /// Rejected answers so far.
        attempts: u32,
        /// Attempts that are left, if their number is limited.
        left: Option<u32>,
        /// The beginning of the schema.
        schema: String,
    },
    /// There is no such variable.
    #[error("there is no variable of this name that can be set there")]
    NoVariable,
    /// Another execution took the name in the meantime.
    #[error("the name is taken by another unfinished execution")]
    NameTaken,
    /// No worker could be started.
    #[error("no worker: {0}")]
    NoWorker(String),
    /// The user whose rights use its worktree does not exist any more.
    #[error("{0}")]
    OwnerGone(String),
    /// The store refused the write.
    #[error("{0}")]
    Storage(String),
    /// As many requests as may wait for the store wait already.
    #[error("too many requests wait for this execution: the store has to write what came before them")]
    Busy,
    /// The supervisor stops; accepted requests continue after its next start.
    #[error("the supervisor is stopping")]
    Stopping,
}
