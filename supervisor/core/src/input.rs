//! Inputs and actions of the session machine, and the data that they carry. Decides nothing.

use super::durable::DurableRefusal;
use std::sync::Arc;
use vm_system_policy::{EffectivePolicy, Permit};
use vm_system_protocol::control::GivenAnswer;
use vm_system_protocol::ids::{ExecutionId, TaskId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{Event, Execution, ExecutionKind, Session};
use vm_system_protocol::worker::{FromWorker, HostReply, SourceFormat, Start, ToWorker};
use vm_system_record::{Owner, PolicySnapshot, Write};

use super::exit::WorkerExitStatus;

/// The time of a step. The machine has no clock of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Now {
    /// A clock that never goes back (milliseconds since any fixed point).
    pub mono_ms: u64,
    /// The calendar (milliseconds since the Unix epoch); may jump.
    pub unix_ms: i64,
    /// CPU time of the worker, from the kernel (microseconds); the last known value once it has exited.
    pub cpu_us: u64,
}

/// Names a caller that waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(pub u64);

/// Names a batch that was given to the store; they grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WriteId(pub u64);

/// What a session is made from.
#[derive(Debug, Clone)]
pub struct SessionSpec {
    /// The record as it will be inserted: status `starting`.
    pub record: Session,
    pub owner: Owner,
    /// The copy of the template that is stored with the session.
    pub snapshot: Arc<PolicySnapshot>,
    /// First message to the worker.
    pub start: Start,
    /// Startup files in order; the session is ready when all of them ended `ok`.
    pub startup: Vec<ExecuteRequest>,
    /// The rights of the startup files.
    pub startup_policy: Arc<EffectivePolicy>,
    /// The session ends this long after its creation (seconds), 0 = never.
    pub ttl_s: u32,
    /// The session ends this long after its last execution (seconds), 0 = never.
    pub idle_timeout_s: u32,
}

/// Where an execution's text comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The client's own text.
    Text {
        /// The text.
        text: String,
        /// Its name in stacks; `repl` for repl input.
        file_name: String,
        /// How it is read; by its name when absent.
        format: Option<SourceFormat>,
    },
    /// A file of the worktree.
    File {
        /// Relative to the worktree, validated and cleaned.
        path: String,
        /// How it is read; by its extension when absent.
        format: Option<SourceFormat>,
    },
}

/// Code that a client wants to run, from the verb to the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecuteRequest {
    /// Its id, made by the caller.
    pub id: ExecutionId,
    /// What is run.
    pub kind: ExecutionKind,
    /// Its text.
    pub source: Source,
    /// What the script sees as `args` (an object).
    pub args: JsonText,
    /// What the script sees in `process.env`, over the variables of the policy.
    pub env: Vec<(String, String)>,
    /// What the script sees as `process.argv` behind the program's and the script's name.
    pub argv: Vec<String>,
    /// What is stored of `args` (secrets redacted).
    pub recorded_args: JsonText,
    /// What is stored of `env` (an object; secrets redacted).
    pub recorded_env: JsonText,
    /// Reply when it has ended (true), or as soon as its start is stored.
    pub wait: bool,
    /// The reply carries the events.
    pub collect_events: bool,
}

/// The text of a file that was requested with [`SessionAction::LoadSource`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedSource {
    /// The text.
    pub text: String,
    /// How it is read.
    pub format: SourceFormat,
}

/// Why a file cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadFailure {
    /// The path leaves the worktree or is not a path.
    #[error("{0}")]
    InvalidPath(String),
    /// There is no such regular file.
    #[error("{0}")]
    NotFound(String),
    /// It is larger than `max_source_kb`.
    #[error("{0}")]
    TooLarge(String),
    /// It cannot be read, or is not UTF-8 text.
    #[error("{0}")]
    Unreadable(String),
}

/// Why a session is closed although its worker works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseCause {
    /// Requested by a client.
    Request,
    /// `idle_timeout_s`.
    Idle,
    /// `ttl_s`.
    Expired,
    /// The supervisor stops.
    Shutdown,
}

/// What is wrong with a worker's channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChannelFault {
    /// The worker's end is closed. It has exited, or will be killed.
    Closed,
    /// A packet or its encoding is invalid, with the details.
    Violation(String),
    /// It did not take a message within the write deadline.
    Stuck,
}

/// A library of the template cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct LibraryFailure {
    /// `id-version`.
    pub library: String,
    /// What is wrong with it.
    pub problem: LibraryProblem,
    /// In words, with its name.
    pub text: String,
}

/// What is wrong with a library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LibraryProblem {
    /// It is not installed.
    NotInstalled,
    /// Its source is not what was installed.
    Corrupt,
    /// It threw, or hit a limit.
    Failed,
}

/// Why a fork made no session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForkFault {
    /// The worker never got the order.
    NotOrdered(SpawnFailure),
    /// There is no child, without a protocol violation.
    Failed(SpawnFailure),
    /// Parent or child violated the protocol, with the details.
    Violation(String),
}

/// An event from outside.
#[derive(Debug)]
pub enum SessionInput {
    /// Make the session. First input of a machine that was not adopted.
    Create {
        /// Who is answered when the session is ready or failed.
        token: Token,
    },
    /// The worker process exists and its channel is open.
    Spawned,
    /// There is no worker.
    SpawnFailed(SpawnFailure),
    /// No worker is made without the libraries of its template.
    LibraryFailed(LibraryFailure),
    /// The worker is blocked in a forbidden system call, which never returns.
    ForbiddenCall(String),
    /// A client wants to run code.
    Execute {
        /// The caller that gets the reply.
        token: Token,
        request: Box<ExecuteRequest>,
        /// The rights of this run.
        policy: Arc<EffectivePolicy>,
    },
    /// A client wants forks of this session.
    Fork {
        /// Who is answered when all of them have their workers, or there will be no more.
        token: Token,
        /// How many; not 0.
        count: u32,
    },
    /// The answer to [`SessionAction::Fork`].
    ForkEnded {
        /// As in the action.
        order: u64,
        /// `Ok`: there is a child, identified by the kernel.
        result: Result<(), ForkFault>,
    },
    /// The answer to [`SessionAction::LoadSource`].
    SourceLoaded {
        execution: ExecutionId,
        /// Its text, or why there is none.
        result: Result<LoadedSource, LoadFailure>,
    },
    /// A message of the worker.
    Message {
        /// Its sequence number.
        seq: u64,
        message: FromWorker,
    },
    /// The worker's channel failed.
    ChannelFailed(ChannelFault),
    /// The answer to [`SessionAction::HostCall`].
    HostReplied {
        /// The call's number.
        call: u64,
        /// The answer.
        reply: HostReply,
    },
    /// A batch is committed.
    Stored(WriteId),
    /// A batch is lost.
    StoreFailed {
        write: WriteId,
        error: String,
        /// It contradicts what is stored: the same batch would fail again.
        permanent: bool,
    },
    /// [`SessionMachine::deadline`](super::SessionMachine::deadline) has come (or not: early ticks do nothing).
    Tick,
    /// A user or agent submits an answer to a task.
    Submit {
        /// The caller that gets the reply.
        token: Token,
        execution: ExecutionId,
        /// `None`: the pending one.
        task: Option<TaskId>,
        /// The answer as it was submitted.
        answer: GivenAnswer,
        /// Answered when the execution waits again or has ended (true), or as soon as the answer is stored.
        wait: bool,
    },
    /// A client wants an execution to end.
    Cancel {
        /// The caller that gets the reply.
        token: Token,
        execution: ExecutionId,
    },
    /// A request or a deadline to end the session.
    Close {
        /// Who is answered when it has.
        token: Token,
        cause: CloseCause,
    },
    /// An operator sends the worker a signal.
    Kill {
        /// Who is answered: for SIGKILL when the end is recorded, else at once.
        token: Token,
        /// The signal's number.
        signal: i32,
    },
    /// The worker has exited; all its messages were delivered before.
    Exited(WorkerExitStatus),
}

/// An effect for the owner task to carry out.
#[derive(Debug)]
pub enum SessionAction {
    /// Start a worker; answered by [`SessionInput::Spawned`], [`SessionInput::SpawnFailed`] or [`SessionInput::LibraryFailed`].
    Spawn,
    /// Allow the worker one fork, and order it. Answered by [`SessionInput::ForkEnded`], and by a message of the worker.
    Fork {
        /// Names it.
        order: u64,
    },
    /// The child of the current fork belongs to its new session from now on.
    ForkTaken,
    /// Nothing more is forked for the caller, and the worker's clone is over. A child that was not taken is to be killed.
    ForksOver,
    /// Send a message to the worker, in order.
    Send(ToWorker),
    /// Let the worker use this much CPU time in all (milliseconds) before the kernel stops it.
    AllowCpu {
        /// Since the worker's start.
        total_ms: u64,
    },
    /// Set the worker's interrupt flag.
    Interrupt,
    /// SIGKILL.
    Kill,
    /// An operator's signal.
    Signal(i32),
    /// Read a file of the worktree; answered by [`SessionInput::SourceLoaded`].
    LoadSource {
        /// For which execution.
        execution: ExecutionId,
        /// Relative to the worktree.
        path: String,
        /// How it is read, if that is known.
        format: Option<SourceFormat>,
        /// With what rights it is loaded.
        policy: Arc<EffectivePolicy>,
    },
    /// Make a script's host call, which the policy allows. Answered by [`SessionInput::HostReplied`].
    HostCall {
        /// The call's number.
        call: u64,
        /// For which execution.
        execution: ExecutionId,
        /// The call, with its bounds.
        permit: Permit,
        /// The rights of the execution.
        policy: Arc<EffectivePolicy>,
    },
    /// An execution that used host modules has ended: close what it left open.
    EndHostUse,
    /// Cancel the pending host call or file.
    DropHostWork,
    /// Write a batch. Batches are committed in the order of these actions.
    Write {
        /// Comes back in [`SessionInput::Stored`] or [`SessionInput::StoreFailed`].
        id: WriteId,
        /// All of them or none.
        batch: Vec<Write>,
        /// A caller waits for it; other batches may be committed together with the next urgent one.
        urgent: bool,
    },
    /// Reply to a caller. Each token gets exactly one reply.
    Reply { token: Token, result: Result<SessionReply, Refusal> },
    /// Show followers events that are committed (or, on a degraded execution, lost).
    Publish {
        execution: ExecutionId,
        /// In order.
        events: Arc<[Event]>,
    },
    /// No more events of this execution will be published.
    PublishEnd { execution: ExecutionId },
    /// The store lost (part of) this record; show this one instead of what is stored.
    Degraded(Arc<Execution>),
    /// The store has this record now.
    Restored(ExecutionId),
    /// The end of the session is recorded; let go of everything.
    Release,
}

/// The reply to a request that succeeded.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionReply {
    /// It is done, or under way.
    Done,
    /// The session as it is now.
    Session(Box<Session>),
    /// The execution as it is now.
    Executed(Executed),
}

/// An execution with its output.
#[derive(Debug, Clone, PartialEq)]
pub struct Executed {
    /// The record, without events.
    pub record: Arc<Execution>,
    /// Its events in order, in the batches in which they were stored; `None` when they were not requested or are too
    /// many to be kept in memory.
    pub events: Option<Vec<Arc<[Event]>>>,
}

/// Why there is no worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpawnFailure {
    /// Message for users.
    pub why: String,
    /// Whether trying again may help.
    pub fault: SpawnFault,
    /// What to do about it.
    pub hint: &'static str,
}

impl SpawnFailure {
    /// For a worker that was started and did not become ready in time.
    pub fn late(why: String) -> Self {
        Self { why, fault: SpawnFault::Busy, hint: "the host may be overloaded: try again later" }
    }
}

/// Who can fix the cause of a worker that could not be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpawnFault {
    /// The operator: it fails again until the host's configuration changes.
    Host,
    /// No one: a later retry helps.
    Busy,
    /// The developers: it is a bug.
    Wrong,
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The session takes no executions, with the reason.
    #[error("the session is not ready: {0}")]
    NotReady(String),
    /// Another execution is under way.
    #[error("the session is busy: one execution at a time")]
    Busy,
    /// Nothing of this name runs here.
    #[error("no such execution is running in this session")]
    NoSuchExecution,
    /// The source text is larger than `max_source_kb`.
    #[error("the source of {size_bytes} bytes is over the limit of {limit_kb} KiB (max_source_kb)")]
    SourceTooLarge {
        /// Its size (bytes).
        size_bytes: u64,
        /// The limit (KiB).
        limit_kb: u32,
    },
    /// The file cannot be run.
    #[error(transparent)]
    Load(#[from] LoadFailure),
    /// There is no worker.
    #[error("the worker could not be started: {}", .0.why)]
    SpawnFailed(SpawnFailure),
    /// The worker could not be forked.
    #[error("the session could not be forked: {}", .0.why)]
    Fork(SpawnFailure),
    /// A startup file failed, with its path and error.
    #[error("startup failed: {0}")]
    StartupFailed(String),
    /// A library of the template cannot be had.
    #[error(transparent)]
    Library(#[from] LibraryFailure),
    /// The store did not take it.
    #[error("the store could not write: {0}")]
    Storage(String),
    /// The execution ran, and the store did not take its record.
    #[error("it ran, but the store could not write what came of it: {0}")]
    Unrecorded(String),
    /// The execution was cancelled before it ran.
    #[error("cancelled before it ran")]
    CancelledEarly,
    /// An answer was not taken.
    #[error(transparent)]
    Task(DurableRefusal),
}
