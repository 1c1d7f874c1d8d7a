//! Inputs and actions of the session machine, and the data that they carry. Decides nothing.

use super::durable::{DurableRefusal, SubmittedAnswer};
use std::sync::Arc;
use vm_system_policy::{EffectivePolicy, Permit};
use vm_system_protocol::ids::{ExecutionId, TaskId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::keeper::ProcessUsage;
use vm_system_protocol::limits::CHECKPOINTS;
use vm_system_protocol::model::{
    Event, Execution, ExecutionKind, HttpRecord, OnCrash, Session, SessionCheckpoint,
};
use vm_system_protocol::reason::{CloseReason, WorkerExitStatus};
use vm_system_protocol::time::Timestamp;
use vm_system_protocol::worker::{FromWorker, HostReply, SourceFormat, Start, ToWorker};
use vm_system_record::{Owner, PolicySnapshot, RecordedWorktree, Write};

use super::caller::{SessionReply, Token};
use super::request::SessionRequest;
use super::rollback::CopyId;
use super::type_check::CheckedTypes;

/// The time of a step. The machine has no clock of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Now {
    /// A monotonic clock (milliseconds since any fixed point).
    pub mono_ms: u64,
    /// The calendar (milliseconds since the Unix epoch); may jump.
    pub unix_ms: i64,
    /// CPU time of the worker, from the kernel (microseconds); the last known value once it has exited.
    pub cpu_us: u64,
}

/// Identifies a batch that was given to the store; ascending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WriteId(pub u64);

/// The parts from which a session is created.
#[derive(Debug, Clone)]
pub struct SessionSpec {
    /// The record as it will be inserted: status `starting`.
    pub record: Session,
    pub owner: Owner,
    /// Stored with the session.
    pub worktree: Option<Arc<RecordedWorktree>>,
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
    /// The act when the worker exits unexpectedly.
    pub on_crash: OnCrash,
}

/// Where an execution's text comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The client's own text.
    Text {
        text: String,
        /// The file name in stacks; `repl` for repl input.
        file_name: String,
        /// The source's format; by its name when absent.
        format: Option<SourceFormat>,
    },
    /// A file of the worktree.
    File {
        /// Relative to the worktree, validated and cleaned.
        path: String,
        /// The file's format; by its extension when absent.
        format: Option<SourceFormat>,
    },
}

/// A request to run code, from the verb to the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecuteRequest {
    /// Chosen by the caller.
    pub id: ExecutionId,
    pub kind: ExecutionKind,
    pub source: Source,
    /// The value that the script sees as `args` (an object).
    pub args: JsonText,
    /// The variables that the script sees in `process.env`; these override the variables of the policy.
    pub env: Vec<(String, String)>,
    /// The arguments that the script sees in `process.argv` behind the program's and the script's name.
    pub argv: Vec<String>,
    /// The stored form of `args` (secrets redacted).
    pub recorded_args: JsonText,
    /// The stored form of `env` (an object; secrets redacted).
    pub recorded_env: JsonText,
    /// Reply at the end (true), or as soon as the start is stored.
    pub wait: bool,
    /// The reply carries the events.
    pub collect_events: bool,
    /// The worker gets it only when its start is stored: whoever repeats the request finds the record, and never runs it again.
    pub stored_first: bool,
}

/// The text of a file that was requested with [`SessionAction::LoadSource`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedSource {
    pub text: String,
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
    /// The file is larger than `max_source_kb`.
    #[error("{0}")]
    TooLarge(String),
    /// The file cannot be read, or is not UTF-8 text.
    #[error("{0}")]
    Unreadable(String),
    /// The supervisor cannot read files now: another attempt may succeed.
    #[error("{0}")]
    Unavailable(String),
    /// The session's owner may not use the worktree any more.
    #[error("{0}")]
    NotPermitted(String),
    /// The user whose rights use the worktree does not exist any more.
    #[error("{0}")]
    OwnerGone(String),
}

/// The activity of a session's worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    Idle,
    /// It runs an execution, or is being started.
    Busy,
    /// The worker's execution waits for an answer.
    Waiting,
    Suspended,
}

/// Why a session is closed although its worker is healthy.
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
    /// The deadline for workers of other builds.
    Replaced,
}

/// The fault of a worker's channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChannelFault {
    /// The worker's end is closed. It has exited, or will be killed.
    Closed,
    /// The worker sent what no worker sends; the text says what.
    Violation(String),
    /// The worker did not receive a message within the write deadline.
    Stuck,
}

/// A library of the template is not available.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct LibraryFailure {
    /// `id-version`.
    pub library: String,
    pub problem: LibraryProblem,
    /// A description that names the library.
    pub text: String,
}

/// The reason why a library cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LibraryProblem {
    /// The library is not installed.
    NotInstalled,
    /// The source differs from what was installed.
    Corrupt,
    /// The library threw, or exceeded a limit.
    Failed,
}

/// Why a fork created no session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForkFault {
    /// The worker never got the fork message.
    NotOrdered(SpawnFailure),
    /// There is no child, without a protocol violation.
    Failed(SpawnFailure),
    /// Parent or child violated the protocol, with the details.
    Violation(String),
}

/// The parts with which a restarted session begins.
#[derive(Debug)]
pub struct Respawned {
    /// For a new worker.
    pub random_seed: [u8; 32],
    /// The session's startup files, with new ids.
    pub startup: Vec<ExecuteRequest>,
    /// The rights of the startup files, as they are now.
    pub policy: Arc<EffectivePolicy>,
}

/// An event from outside.
#[derive(Debug)]
pub enum SessionInput {
    /// Create the session. First input of a machine that was not adopted.
    Create {
        /// The caller that gets the reply when the session is ready or failed.
        token: Token<Session>,
    },
    /// The worker process exists and its channel is open.
    Spawned,
    /// As [`Self::Spawned`], for [`SessionAction::Respawn`].
    Respawned(Box<Respawned>),
    /// No worker could be started.
    SpawnFailed(SpawnFailure),
    /// A library of the template is not available: no worker is started without it.
    LibraryFailed(LibraryFailure),
    /// The worker is blocked in a forbidden system call, which never returns.
    ForbiddenCall(String),
    /// A client's request to run code.
    Execute {
        /// The caller that gets the reply.
        token: Token<Executed>,
        request: Box<ExecuteRequest>,
        /// The rights of this run.
        policy: Arc<EffectivePolicy>,
    },
    /// An input of the session that this one restores.
    Repeat {
        /// The caller that gets the reply.
        token: Token<Executed>,
        request: Box<ExecuteRequest>,
        /// The rights of this run.
        policy: Arc<EffectivePolicy>,
    },
    /// A request to the session whose reply is its record.
    Request {
        /// The caller that gets the reply.
        token: Token<Session>,
        request: SessionRequest,
    },
    /// Stop the worker until a request needs it, if the session is idle: the supervisor does it.
    SuspendIdle,
    /// Sets the deadline by which the worker is replaced, or withdraws it.
    Drain {
        /// The caller that gets the reply when that is stored.
        token: Option<Token<()>>,
        at: Option<Timestamp>,
    },
    /// Memory is short because of this session's owner, and this is one of its largest sessions.
    MemoryShort,
    /// A client's request for forks of this session.
    Fork {
        /// The caller that gets the reply when all forks have their workers, or one failed.
        token: Token<()>,
        /// Number of forks; not 0.
        count: u32,
    },
    /// The result of [`SessionAction::Fork`].
    ForkEnded {
        /// As in the action.
        order: u64,
        /// `Ok`: there is a child, identified by the kernel.
        result: Result<(), ForkFault>,
    },
    /// A client's request for a checkpoint.
    Checkpoint { token: Token<SessionCheckpoint>, name: Option<String> },
    /// A client's request to give up a checkpoint (its number or name).
    DeleteCheckpoint { token: Token<()>, checkpoint: String },
    /// The frozen copy of a checkpoint has exited by itself.
    CheckpointExited { number: u64 },
    /// The result of [`SessionAction::ForkCopy`]: a worker, for which there is a seed of random numbers.
    CopyForked(Result<[u8; 32], ForkFault>),
    /// The result of [`SessionAction::LoadSource`]: the text, or why there is none.
    SourceLoaded { execution: ExecutionId, result: Result<LoadedSource, LoadFailure> },
    /// The result of [`SessionAction::CheckTypes`].
    TypesChecked { execution: ExecutionId, result: CheckedTypes },
    /// A message of the worker.
    Message {
        /// The message's sequence number.
        seq: u64,
        /// The message's length as it was sent.
        bytes: u64,
        message: FromWorker,
    },
    /// The worker's channel failed.
    ChannelFailed(ChannelFault),
    /// The reply to [`SessionAction::HostCall`].
    HostReplied {
        /// The call's number.
        call: u64,
        reply: HostReply,
    },
    /// An HTTP request of the session has ended.
    HttpEnded(HttpRecord),
    /// A batch is committed.
    Stored(WriteId),
    /// A batch is lost.
    StoreFailed {
        write: WriteId,
        error: String,
        /// The batch contradicts what is stored: it would fail again.
        permanent: bool,
    },
    /// [`SessionMachine::deadline`](super::SessionMachine::deadline) has passed (early ticks do nothing).
    Tick,
    /// A user or agent submits an answer to a task.
    Submit {
        /// The caller that gets the reply.
        token: Token<Executed>,
        execution: ExecutionId,
        /// `None`: the pending one.
        task: Option<TaskId>,
        /// The answer as it was submitted.
        answer: SubmittedAnswer,
        /// Reply when the execution waits again or has ended (true), or as soon as the answer is stored.
        wait: bool,
    },
    /// A client's request to end an execution.
    Cancel {
        /// The caller that gets the reply.
        token: Token<()>,
        execution: ExecutionId,
        /// Not a request: the last client that waited for it has gone, which its record says.
        abandoned: bool,
    },
    /// A request or a deadline to end the session.
    Close {
        /// The caller that gets the reply when the session has ended.
        token: Token<Session>,
        cause: CloseCause,
    },
    /// An operator sends the worker a signal.
    Kill {
        /// The caller that gets the reply: for SIGKILL when the end is recorded, else at once.
        token: Token<()>,
        /// The signal's number.
        signal: i32,
    },
    /// The worker was stopped (SIGSTOP, a debugger) when it was killed.
    WorkerStopped,
    /// The resources that the worker used over its life; before its exit, if they are known.
    WorkerUsage(ProcessUsage),
    /// The worker has exited; all its messages were delivered before.
    Exited(WorkerExitStatus),
}

impl SessionInput {
    /// Whether it needs an idle session: it waits while the session is busy briefly.
    pub const fn needs_idle_session(&self) -> bool {
        match self {
            Self::Fork { .. } | Self::Checkpoint { .. } | Self::Execute { .. } => true,
            Self::Request { request, .. } => request.needs_idle_session(),
            _ => false,
        }
    }

    /// Whether the worker of a suspended session must run for it.
    pub(super) const fn needs_worker(&self) -> bool {
        matches!(
            self,
            Self::Execute { .. }
                | Self::Repeat { .. }
                | Self::Request {
                    request: SessionRequest::FinishRestoration { .. }
                        | SessionRequest::Resume
                        | SessionRequest::Rollback { .. },
                    ..
                }
                | Self::Fork { .. }
                | Self::Checkpoint { .. }
                | Self::Kill { .. }
        )
    }
}

/// An effect for the owner task to carry out.
#[derive(Debug)]
pub enum SessionAction {
    /// Start a worker; result: [`SessionInput::Spawned`], [`SessionInput::SpawnFailed`] or [`SessionInput::LibraryFailed`].
    Spawn,
    /// Start a worker that replaces the one that has exited; result: [`SessionInput::Respawned`], [`SessionInput::SpawnFailed`] or
    /// [`SessionInput::LibraryFailed`].
    Respawn,
    /// Permit the worker one fork, and order it. Results: [`SessionInput::ForkEnded`], and a message of the worker.
    Fork {
        /// Identifies the fork.
        order: u64,
    },
    /// The child of the current fork belongs to its new session from now on.
    ForkTaken,
    /// The child of the current fork is stopped, and kept as this copy.
    Freeze { copy: CopyId },
    /// Kill a frozen copy.
    DropCopy { copy: CopyId },
    /// Have a frozen copy fork: the child becomes this session's worker. The last worker has exited. Result:
    /// [`SessionInput::CopyForked`].
    ForkCopy { copy: CopyId },
    /// No more forks for the caller, and the worker's clone is over. A child that was not taken is to be killed.
    ForksOver,
    /// Send a message to the worker, in order.
    Send(ToWorker),
    /// Limit of the worker's CPU time, enforced by the kernel.
    AllowCpu {
        /// Milliseconds since the worker's start.
        total_ms: u64,
    },
    /// Set the worker's interrupt flag.
    Interrupt,
    /// SIGKILL.
    Kill,
    /// An operator's signal.
    Signal(i32),
    /// Read a file of the worktree; result: [`SessionInput::SourceLoaded`].
    LoadSource {
        /// The execution that needs the file.
        execution: ExecutionId,
        /// Relative to the worktree.
        path: String,
        /// The file's format, if known.
        format: Option<SourceFormat>,
        /// The rights under which the file is loaded.
        policy: Arc<EffectivePolicy>,
    },
    /// Check the types of a file of the worktree; result: [`SessionInput::TypesChecked`].
    CheckTypes { execution: ExecutionId, path: String, text: String, policy: Arc<EffectivePolicy> },
    /// Carry out a host call that the policy allows. Result: [`SessionInput::HostReplied`].
    HostCall {
        /// The call's number.
        call: u64,
        /// The execution that makes the call.
        execution: ExecutionId,
        /// The call, with its bounds.
        permit: Permit,
        /// The rights of the execution.
        policy: Arc<EffectivePolicy>,
    },
    /// An execution that used host modules has ended: close what it left open.
    EndHostUse,
    /// Cancel the pending host call, file or check.
    DropHostWork,
    /// Write a batch. Batches are committed in the order of these actions.
    Write {
        /// Returned in [`SessionInput::Stored`] or [`SessionInput::StoreFailed`].
        id: WriteId,
        /// Applied all or none.
        batch: Vec<Write>,
        /// A caller waits for the batch; other batches may be committed together with the next urgent one.
        urgent: bool,
    },
    /// Reply to a caller. Each token gets exactly one reply.
    Reply(SessionReply),
    /// Send followers events that are committed (or, on a degraded execution, lost).
    Publish {
        execution: ExecutionId,
        /// In order.
        events: Arc<[Event]>,
    },
    /// No more events of this execution will be published.
    PublishEnd { execution: ExecutionId },
    /// The store lost (part of) this record; show this one instead of the stored one.
    Degraded(Arc<Execution>),
    /// The store has this record now.
    Restored(ExecutionId),
    /// The end of the session is recorded; drop everything.
    Release,
}

/// An execution with its output.
#[derive(Debug, Clone, PartialEq)]
pub struct Executed {
    /// The record, without events.
    pub record: Arc<Execution>,
    /// The events in order, in the batches in which they were stored; `None` when not requested, or too many to be kept in
    /// memory.
    pub events: Option<Vec<Arc<[Event]>>>,
}

/// Why no worker could be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpawnFailure {
    /// Message for users.
    pub why: String,
    /// The kind of the fault, which says whether a retry may help.
    pub fault: SpawnFault,
    /// The remedy of the user or operator.
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
    /// Nobody: a later retry helps.
    Busy,
    /// The developers: it is a bug.
    Wrong,
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The session cannot run executions, with the reason.
    #[error("the session is not ready: {0}")]
    NotReady(String),
    /// The worker died before the session was ready.
    #[error("the session is not ready: it ended while starting ({0})")]
    DiedAtStart(CloseReason),
    /// Another execution is under way.
    #[error("the session is busy: one execution at a time")]
    Busy,
    /// No such execution runs in this session.
    #[error("no such execution is running in this session")]
    NoSuchExecution,
    /// The source text is larger than `max_source_kb`.
    #[error("the source of {size_bytes} bytes is over the limit of {limit_kb} KiB (max_source_kb)")]
    SourceTooLarge {
        /// Size of the text (bytes).
        size_bytes: u64,
        /// The limit (KiB).
        limit_kb: u32,
    },
    /// The file cannot be run.
    #[error(transparent)]
    Load(#[from] LoadFailure),
    /// No worker could be started.
    #[error("the worker could not be started: {}", .0.why)]
    SpawnFailed(SpawnFailure),
    /// The worker could not be forked.
    #[error("the worker could not be forked: {}", .0.why)]
    Fork(SpawnFailure),
    /// The session has no such checkpoint.
    #[error("the session has no checkpoint {0}")]
    NoCheckpoint(String),
    /// The name is taken.
    #[error("the session has a checkpoint {0:?} already")]
    CheckpointExists(String),
    /// The session has as many checkpoints as it may.
    #[error("the session has {CHECKPOINTS} checkpoints, which is the most")]
    TooManyCheckpoints,
    /// A startup file failed, with its path and error.
    #[error("startup failed: {0}")]
    StartupFailed(String),
    /// A library of the template is not available.
    #[error(transparent)]
    Library(#[from] LibraryFailure),
    /// The store refused the write.
    #[error("the store could not write: {0}")]
    Storage(String),
    /// The execution ran, and the store refused its record.
    #[error("it ran, but the store could not write its result: {0}")]
    Unrecorded(String),
    /// The execution was cancelled before it ran.
    #[error("cancelled before it ran")]
    CancelledEarly,
    /// An answer was refused.
    #[error(transparent)]
    Task(DurableRefusal),
}
