//! Inputs and actions of the durable machine, and the data that they carry. Decides nothing.

use crate::{Token, WorkerExitStatus, WriteId};
use vm_system_protocol::control::GivenAnswer;
use vm_system_protocol::durable::{DurableLimits, FromDurable, HostCall, ToDurable};
use vm_system_protocol::ids::{ExecutionId, SessionId, TaskId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{Execution, Limits};
use vm_system_record::{TaskRow, Write};

/// What an execution is, whatever happens to it.
#[derive(Debug, Clone)]
pub struct DurableSpec {
    pub execution: ExecutionId,
    /// Its session.
    pub session: SessionId,
    /// The limits in force.
    pub limits: Limits,
    /// A checkpoint after so many instructions without another one.
    pub checkpoint_steps: u64,
    /// A checkpoint after so much computing without another one (milliseconds).
    pub checkpoint_ms: u32,
    /// How long a worker is kept after a pause (milliseconds).
    pub warm_ms: u64,
    /// Checkpoints that are kept to go back to; 0 = all.
    pub history: u64,
}

impl DurableSpec {
    /// The limits over the whole life, as they are sent to the worker.
    pub fn life(&self) -> DurableLimits {
        life(&self.limits)
    }
}

/// Limits over a program's whole life, as they are sent to a worker.
pub fn life(limits: &Limits) -> DurableLimits {
    DurableLimits {
        heap_bytes: u64::from(limits.max_state_mb) << 20,
        stack_depth: limits.max_stack_depth,
        steps: if limits.max_steps == 0 { u64::MAX } else { limits.max_steps },
    }
}

/// What a program is started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fresh {
    /// Visible as `args`.
    pub args: Vec<String>,
    /// Visible as `env`.
    pub env: Vec<(String, String)>,
    /// Seeds `Math.random`.
    pub seed: u64,
    /// The writes that make the rows of session and execution.
    pub creation: Vec<Write>,
}

/// What the store has of an execution.
#[derive(Debug, Clone)]
pub struct StoredExecution {
    pub record: Execution,
    /// Number and cause of its last checkpoint.
    pub checkpoint: Option<(u64, String)>,
    /// What was written of its state since that was last measured (bytes); `None`: unknown.
    pub unweighed: Option<u64>,
    /// What it has written to files so far (bytes).
    pub written: u64,
    /// Its last task.
    pub task: Option<TaskRow>,
}

/// An event from outside.
#[derive(Debug, Clone)]
pub enum DurableInput {
    /// The program is to be run from its beginning.
    Start {
        token: Token,
        /// Reply when it first pauses or ends (true), or as soon as its beginning is stored.
        wait: bool,
    },
    /// Resume as the stored rows require.
    Wake,
    /// An answer to the pending task.
    Submit {
        token: Token,
        /// `None`: the pending one.
        task: Option<TaskId>,
        /// The answer as it was submitted.
        answer: GivenAnswer,
        /// Writes that belong into the same batch, if it is taken.
        with: Vec<Write>,
        /// Reply when the program pauses again or ends (true), or as soon as the answer is stored.
        wait: bool,
    },
    /// A variable is to be changed.
    Set {
        token: Token,
        /// Which frame.
        frame: u32,
        /// Which variable.
        name: String,
        /// Its new value.
        value: JsonText,
    },
    /// The execution is to be ended.
    Cancel {
        token: Token,
        /// Writes that belong into the same batch.
        with: Vec<Write>,
    },
    /// A worker was started, and code and pages were sent to it as ordered.
    Loaded {
        /// The state is small: its next message may be sent at once.
        small: bool,
    },
    /// There is no worker, for this reason.
    NotLoaded {
        why: String,
        /// Trying again is of no use.
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
    /// A batch is not stored.
    NotStored {
        write: WriteId,
        why: Unstored,
        /// Message for users.
        error: String,
    },
    /// A host call was made.
    Called {
        /// What came of it.
        result: Result<JsonText, String>,
        /// What the program has written to files so far (bytes).
        written: u64,
    },
    /// No message of the worker is received until there is memory for it; the worker has to wait.
    Stalled,
    /// There is memory again.
    GoesOn,
    /// Time has passed.
    Tick,
    /// Others need workers.
    Pressure,
    /// The supervisor stops.
    Stop,
}

/// Why a batch was not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unstored {
    /// A name was taken meanwhile.
    Conflict,
    /// The state is larger than any may be.
    TooLarge,
    /// The store does not work.
    Failed,
}

/// Where a worker resumes.
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
    /// Names the effect for whoever makes it: the same number of the same execution is the same effect.
    pub effect: Option<u64>,
}

/// An effect for the owner task to carry out.
#[derive(Debug, Clone, PartialEq)]
pub enum DurableAction {
    /// Start a worker and load the state.
    Spawn(LoadFrom),
    /// Send to the worker.
    Send(Box<ToDurable>),
    /// The worker may use this much CPU time in its life (milliseconds) before the kernel kills it.
    AllowCpu(u64),
    /// Kill the worker, and report its exit as an input.
    Kill,
    /// The worker is idle and not needed any more: it may exit at any time. `Exited` is to be reported at once, or when a
    /// worker that is being started is there.
    LetGo,
    /// Write a batch.
    Write { id: WriteId, batch: Vec<Write> },
    /// Make a host call; a new one replaces one that is under way.
    Host(HostCallRequest),
    /// Reply to a caller.
    Reply { token: Token, result: Result<Box<RunStatus>, DurableRefusal> },
}

/// The status of an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunStatus {
    pub record: Execution,
    /// Its pending task.
    pub task: Option<TaskRow>,
}

/// Why a request was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurableRefusal {
    /// It does not wait, or not for this task.
    #[error("the execution does not wait for this answer")]
    NotPending,
    /// It has ended.
    #[error("the execution has ended")]
    Ended,
    /// The answer does not fit.
    #[error("the answer does not fit the task's schema: {why}")]
    Unfit {
        /// Where and why.
        why: String,
        /// How many did not fit so far.
        attempts: u32,
        /// It was the last one that the program lets go by.
        last: bool,
    },
    /// There is no such variable.
    #[error("there is no variable of this name that can be set there")]
    NoVariable,
    /// Another execution took the name meanwhile.
    #[error("the name is taken by another unfinished execution")]
    NameTaken,
    /// There is no worker.
    #[error("no worker: {0}")]
    NoWorker(String),
    /// The store did not take it.
    #[error("{0}")]
    Storage(String),
    /// The supervisor stops; what was taken goes on after its next start.
    #[error("the supervisor is stopping")]
    Stopping,
}
