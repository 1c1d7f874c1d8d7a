//! What goes into the machine and what comes out of it.

use crate::{ExitStatus, Token, WriteId};
use vm_system_protocol::control::GivenAnswer;
use vm_system_protocol::durable::{DurableLimits, FromDurable, HostCall, ToDurable};
use vm_system_protocol::ids::{ExecutionId, SessionId, TaskId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{Execution, Limits};
use vm_system_record::{TaskRow, Write};

/// What an execution is, whatever happens to it.
#[derive(Debug, Clone)]
pub struct DurableSpec {
    /// The execution.
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
    /// The limits over the whole life, as the worker is told them.
    pub fn life(&self) -> DurableLimits {
        life(&self.limits)
    }
}

/// Limits over a program's whole life, as a worker is told them.
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
    /// The execution.
    pub record: Execution,
    /// Number and cause of its last checkpoint.
    pub checkpoint: Option<(u64, String)>,
    /// What was written of its state since that was last weighed (bytes); none = nobody knows.
    pub unweighed: Option<u64>,
    /// What it has written to files so far (bytes).
    pub written: u64,
    /// Its last question.
    pub task: Option<TaskRow>,
}

/// Something that happened.
#[derive(Debug, Clone)]
pub enum DurableInput {
    /// The program is to be run from its beginning.
    Start {
        /// Who asks.
        token: Token,
        /// Answered when it first stands still (true), or as soon as its beginning is stored.
        wait: bool,
    },
    /// Whatever the store says is to be done, is to be done.
    Wake,
    /// An answer to the pending question.
    Submit {
        /// Who asks.
        token: Token,
        /// Which question; none = the pending one.
        task: Option<TaskId>,
        /// The answer as it was given.
        answer: GivenAnswer,
        /// Writes that belong into the same batch, if it is taken.
        with: Vec<Write>,
        /// Answered when the program stands still again (true), or as soon as the answer is stored.
        wait: bool,
    },
    /// A variable is to be changed.
    Set {
        /// Who asks.
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
        /// Who asks.
        token: Token,
        /// Writes that belong into the same batch.
        with: Vec<Write>,
    },
    /// A worker was born, and told code and pages as was ordered.
    Loaded {
        /// Making a state of them takes no time worth measuring: what comes next may be told at once.
        small: bool,
    },
    /// There is no worker, for this reason.
    NotLoaded {
        /// Why.
        why: String,
        /// Trying again is of no use.
        permanent: bool,
    },
    /// The worker said something.
    Message(FromDurable),
    /// The worker broke the protocol below the level of messages.
    Violation(String),
    /// The worker is dead.
    Exited(ExitStatus),
    /// The worker is dead: it made this system call, which it may not make.
    ForbiddenCall(String),
    /// A batch is stored.
    Stored(WriteId),
    /// A batch is not stored.
    NotStored {
        /// Which.
        write: WriteId,
        /// What it means.
        why: Unstored,
        /// Why, in words.
        error: String,
    },
    /// A host call was made.
    Called {
        /// What came of it.
        result: Result<JsonText, String>,
        /// What the program has written to files so far (bytes).
        written: u64,
    },
    /// Nothing more of what the worker says is heard until there is room for it; it has to wait for that.
    Stalled,
    /// There is room.
    GoesOn,
    /// Time has passed.
    Tick,
    /// Others need workers.
    Pressure,
    /// The supervisor stops.
    Stop,
}

/// What it means that a batch is not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unstored {
    /// A name was taken meanwhile.
    Conflict,
    /// The state is larger than any may be.
    TooLarge,
    /// The store does not work.
    Failed,
}

/// From where a worker goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadFrom {
    /// The beginning: only the code is told.
    Beginning,
    /// This checkpoint: code, pages, `Restore`.
    Checkpoint(u64),
}

/// A host call to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostWork {
    /// What.
    pub call: HostCall,
    /// Names the effect for whoever makes it: the same number of the same execution is the same effect.
    pub effect: Option<u64>,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum DurableAction {
    /// A worker is to be born and loaded.
    Spawn(LoadFrom),
    /// Send to the worker.
    Send(Box<ToDurable>),
    /// The worker may use so much CPU time from its birth (milliseconds) before the kernel ends it.
    AllowCpu(u64),
    /// Kill the worker; how it ends is to be told.
    Kill,
    /// The worker stands still and is of no more use: it may end whenever it does. `Exited` is to come at once, or when a
    /// worker that is on its way is there.
    LetGo,
    /// Write a batch.
    Write {
        /// Its name.
        id: WriteId,
        /// What.
        batch: Vec<Write>,
    },
    /// Make a host call; a new one replaces one that is under way.
    Host(HostWork),
    /// Answer a caller.
    Reply {
        /// Who.
        token: Token,
        /// What.
        result: Result<Box<RunStatus>, Refused>,
    },
}

/// Where an execution stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunStatus {
    /// Its record.
    pub record: Execution,
    /// Its question, while it waits.
    pub task: Option<TaskRow>,
}

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
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
    /// Somebody else was quicker.
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
