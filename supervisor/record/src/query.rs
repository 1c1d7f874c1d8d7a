//! The queries and their results. Every query has one kind of result; `handle.rs` of the store pairs them with types.

use super::rows::{
    AuditEntry, CheckpointRow, DueTask, ExecutionRow, KeyRow, LibraryRow, LiveSessionRow, Owner,
    PolicySnapshot, ProgramCode, ProgramRow, RunHead, RunRow, Scope, SessionRow, TaskRow, TemplateRow,
    VersionRow,
};
use std::sync::Arc;
use vm_system_protocol::control::Period;
use vm_system_protocol::ids::{ExecutionId, ProgramId, SessionId, TaskId, TemplateId};
use vm_system_protocol::model::{
    Event, EventPayload, ExecutionStatus, SessionEvent, SessionStatus, TaskState,
};
use vm_system_protocol::time::Timestamp;

/// A position in a list that is sorted newest first, ties by id: older rows follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    /// Creation time of the last returned row.
    pub at: Timestamp,
    pub id: [u8; 16],
}

/// Largest page of a list, without its last row (bytes): more than fits into any response.
pub const PAGE_BYTES: usize = 16 << 20;

/// Whether no events follow these, of which `limit` were requested: a page that reaches `bytes` ends early.
pub fn is_last_page(events: &[Event], limit: u32, bytes: usize) -> bool {
    events.len() < limit as usize && events.iter().map(weight_of_event).sum::<usize>() < bytes
}

/// Approximate size of an event (bytes).
pub fn weight_of_event(event: &Event) -> usize {
    let echo = if let EventPayload::InputEcho { text } = &event.payload { text.len() } else { 0 };
    64 + echo + event.payload.output_bytes() as usize
}

/// A part of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// At most this many rows.
    pub limit: u32,
    /// Only rows after this position.
    pub after: Option<Cursor>,
}

impl Page {
    /// The first rows of a list.
    pub const fn first(limit: u32) -> Self {
        Self { limit, after: None }
    }
    /// All rows. Only for lists with a bounded length.
    pub const ALL: Self = Self { limit: u32::MAX, after: None };
}

/// A filter of sessions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionQuery {
    pub status: Option<SessionStatus>,
    pub template: Option<TemplateId>,
    pub workspace_id: Option<String>,
    pub name: Option<String>,
    /// Sessions of durable programs instead of sessions of scripts. Ignored with a template or a name.
    pub durable: bool,
}

/// A filter of the executions of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExecutionQuery {
    pub status: Option<ExecutionStatus>,
    /// Of the start.
    pub period: Period,
}

/// A filter of executions of programs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunQuery {
    pub status: Option<ExecutionStatus>,
    pub program: Option<ProgramId>,
    pub name: Option<String>,
    /// Of the start.
    pub period: Period,
}

/// A filter of tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TaskQuery {
    /// `None`: pending ones and those that have ended.
    pub status: Option<TaskState>,
    pub execution: Option<ExecutionId>,
    pub program: Option<ProgramId>,
    /// Of the creation.
    pub period: Period,
}

impl TaskQuery {
    /// Pending tasks.
    pub const PENDING: Self = Self {
        status: Some(TaskState::Pending),
        execution: None,
        program: None,
        period: Period { since: None, until: None },
    };
}

/// A filter of programs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProgramQuery {
    pub name: Option<String>,
    /// Of the first version.
    pub period: Period,
}

/// Page, checkpoint, and bytes (none = the page was deleted).
pub type PageVersion = (u64, u64, Option<Vec<u8>>);

/// The beginning of a pending prompt, for lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptBeginning {
    pub execution: ExecutionId,
    pub task: TaskId,
    pub text: String,
    /// Of the whole prompt.
    pub full_bytes: usize,
}

/// The kind of rows among which an id prefix is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IdKind {
    /// Active templates.
    Template,
    Session,
    Execution,
    /// Active programs.
    Program,
    Task,
}

/// A query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Query {
    /// An active template. → [`QueryResult::Template`]
    Template(Scope, TemplateId),
    /// An active template of an owner by its name. → [`QueryResult::Template`]
    TemplateByName(Scope, String),
    /// Active templates, newest first. → [`QueryResult::Templates`]
    Templates(Scope, Page),
    /// Installed libraries by name. → [`QueryResult::Libraries`]
    Libraries,
    /// → [`QueryResult::Session`]
    Session(Scope, SessionId),
    /// The snapshot of a session. → [`QueryResult::Policy`]
    SessionPolicy(SessionId),
    /// Newest first. → [`QueryResult::Sessions`]
    Sessions(Scope, SessionQuery, Page),
    /// → [`QueryResult::Execution`]
    Execution(Scope, ExecutionId),
    /// An owner's execution by its name: the unfinished one, else the newest. → [`QueryResult::Execution`]
    ExecutionByName(Owner, String),
    /// Executions of a session, newest first. → [`QueryResult::Executions`]
    Executions(Scope, SessionId, ExecutionQuery, Page),
    /// Events of an execution after a sequence number; limit 0 = all. → [`QueryResult::Events`]
    Events(ExecutionId, u64, u32),
    /// The same, until their content reaches some bytes; at least one. → [`QueryResult::Events`]
    SomeEvents {
        execution: ExecutionId,
        /// Only later events.
        after_seq: u64,
        /// At most this many.
        limit: u32,
        bytes: usize,
    },
    /// Ids between two bounds (inclusive), ascending. → [`QueryResult::Ids`]
    Ids {
        scope: Scope,
        kind: IdKind,
        /// Smallest.
        from: [u8; 16],
        /// Largest.
        to: [u8; 16],
        /// At most this many.
        limit: u32,
    },
    /// The newest version of an active program. → [`QueryResult::Program`]
    Program(Scope, ProgramId),
    /// The newest version of an owner's active program by its name. → [`QueryResult::Program`]
    ProgramByName(Scope, String),
    /// Active programs, newest first. → [`QueryResult::Programs`]
    Programs(Scope, ProgramQuery, Page),
    /// Source and code of a version, of deleted programs too. → [`QueryResult::Code`]
    ProgramCode(ProgramId, u32),
    /// Versions of a program, of deleted ones too, newest first, below a number. → [`QueryResult::Versions`]
    ProgramVersions {
        program: ProgramId,
        /// Only smaller numbers.
        below: Option<u32>,
        /// At most this many.
        limit: u32,
    },
    /// Program and version that an execution runs. → [`QueryResult::Run`]
    ProgramRun(ExecutionId),
    /// The current execution of an owner's client. → [`QueryResult::Current`]
    Current(Owner, String),
    /// → [`QueryResult::Task`]
    Task(Scope, TaskId),
    /// The pending task of an execution. → [`QueryResult::Task`]
    PendingTask(ExecutionId),
    /// Pending tasks oldest first, those of an execution in the order of their checkpoints, others newest first. → [`QueryResult::Tasks`]
    Tasks(Scope, TaskQuery, Page),
    /// The beginnings of the pending prompts of these executions. → [`QueryResult::Prompts`]
    Prompts {
        scope: Scope,
        executions: Vec<ExecutionId>,
        /// Longest beginning (bytes).
        bytes: u32,
    },
    /// Number of active programs, and of executions of programs. → [`QueryResult::Counts`]
    ProgramCounts(Scope),
    /// The last task of an execution as of a checkpoint; `None`: now. → [`QueryResult::Task`]
    TaskOf(ExecutionId, Option<u64>),
    /// Tasks of an execution after a checkpoint, oldest first. → [`QueryResult::Tasks`]
    TasksOfRun {
        execution: ExecutionId,
        /// Only those of later checkpoints.
        after: u64,
        /// At most this many.
        limit: u32,
    },
    /// Versions of an execution's pages after a position, by page and checkpoint. → [`QueryResult::PageVersions`]
    PageVersions {
        execution: ExecutionId,
        /// Only after this page and checkpoint; none = from the first one on.
        after: Option<(u64, u64)>,
        /// The list ends after this many bytes; at least one row.
        bytes: usize,
    },
    /// Versions of a program with this source, newest first. → [`QueryResult::Versions`]
    VersionsOfSource {
        program: ProgramId,
        /// SHA-256 of the source.
        source_hash: [u8; 32],
        /// At most this many.
        limit: u32,
    },
    /// Pending tasks with a deadline up to a point in time, earliest first. → [`QueryResult::Due`]
    DueTasks {
        /// Latest deadline.
        until: Timestamp,
        /// Only rows after this one.
        after: Option<(Timestamp, TaskId)>,
        /// At most this many.
        limit: u32,
    },
    /// Executions of programs that can be resumed now, by id, after one. → [`QueryResult::Ids`]
    RunningPrograms {
        /// Only rows after this one.
        after: ExecutionId,
        /// At most this many.
        limit: u32,
    },
    /// Executions of programs, newest first. → [`QueryResult::Runs`]
    Runs(Scope, RunQuery, Page),
    /// One execution of a program. → [`QueryResult::Runs`]
    RunById(Scope, ExecutionId),
    /// An execution of a program by its name: the unfinished one, else the newest. → [`QueryResult::Runs`]
    RunByName(Owner, String),
    /// The rows that are needed to resume an execution of a program. → [`QueryResult::RunHead`]
    RunHead(ExecutionId),
    /// The newest checkpoint of an execution. → [`QueryResult::Checkpoints`]
    LastCheckpoint(ExecutionId),
    /// Checkpoints of an execution in order. → [`QueryResult::Checkpoints`]
    Checkpoints(ExecutionId),
    /// The state as of a checkpoint: the newest version of each page, by number. → [`QueryResult::Pages`]
    State {
        execution: ExecutionId,
        checkpoint: u64,
        /// Only pages after this one; none = from the first one on.
        behind: Option<u64>,
        /// The list ends after this many bytes; fewer: these are the last pages.
        bytes: usize,
    },
    /// An idempotency key. → [`QueryResult::Key`]
    Key(Owner, String),
    /// Newest first; `before` = number of the last seen entry. → [`QueryResult::Audit`]
    Audit {
        scope: Scope,
        /// Only entries with a smaller number.
        before: Option<u64>,
        /// At most this many.
        limit: u32,
    },
    /// The events of a session after a number. → [`QueryResult::SessionEvents`]
    SessionEvents {
        session: SessionId,
        after: u64,
        /// At most about this many.
        limit: u32,
    },
    /// All starting and ready sessions with workers of their own, for the start of a supervisor. → [`QueryResult::LiveSessions`]
    LiveSessions,
    /// A meta value of the store. → [`QueryResult::Meta`]
    Meta(String),
}

impl Query {
    /// The owner whose rows alone it may return; `None`: any.
    pub const fn owner(&self) -> Option<&Owner> {
        match self {
            Self::Template(scope, _)
            | Self::TemplateByName(scope, _)
            | Self::Templates(scope, _)
            | Self::Session(scope, _)
            | Self::Sessions(scope, ..)
            | Self::Execution(scope, _)
            | Self::Executions(scope, ..)
            | Self::Ids { scope, .. }
            | Self::Program(scope, _)
            | Self::ProgramByName(scope, _)
            | Self::Programs(scope, ..)
            | Self::Task(scope, _)
            | Self::Tasks(scope, ..)
            | Self::Prompts { scope, .. }
            | Self::ProgramCounts(scope)
            | Self::Runs(scope, ..)
            | Self::RunById(scope, _)
            | Self::Audit { scope, .. } => match scope {
                Scope::All => None,
                Scope::Owner(owner) => Some(owner),
            },
            Self::Current(owner, _)
            | Self::Key(owner, _)
            | Self::ExecutionByName(owner, _)
            | Self::RunByName(owner, _) => Some(owner),
            _ => None,
        }
    }
}

/// The result of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueryResult {
    /// A template, if there is one.
    Template(Option<Box<TemplateRow>>),
    Templates(Vec<TemplateRow>),
    Libraries(Vec<LibraryRow>),
    /// A session, if there is one.
    Session(Option<Box<SessionRow>>),
    /// A snapshot, if there is such a session.
    Policy(Option<Arc<PolicySnapshot>>),
    Sessions(Vec<SessionRow>),
    LiveSessions(Vec<LiveSessionRow>),
    SessionEvents(Vec<SessionEvent>),
    /// An execution, if there is one.
    Execution(Option<Box<ExecutionRow>>),
    Executions(Vec<ExecutionRow>),
    Events(Vec<Event>),
    Ids(Vec<[u8; 16]>),
    /// A program, if there is one.
    Program(Option<Box<ProgramRow>>),
    Programs(Vec<ProgramRow>),
    /// Source and code, if there is such a version.
    Code(Option<Box<ProgramCode>>),
    Versions(Vec<VersionRow>),
    /// Program and version, if the execution runs one.
    Run(Option<(ProgramId, u32)>),
    /// An execution, if one was set.
    Current(Option<ExecutionId>),
    /// A task, if there is one.
    Task(Option<Box<TaskRow>>),
    Tasks(Vec<TaskRow>),
    /// In the order of the query.
    Prompts(Vec<PromptBeginning>),
    /// Programs, and executions of programs.
    Counts((u64, u64)),
    /// Tasks with their deadlines.
    Due(Vec<DueTask>),
    /// Executions of programs.
    Runs(Vec<RunRow>),
    /// `None`: not an execution of a program.
    RunHead(Option<Box<RunHead>>),
    Checkpoints(Vec<CheckpointRow>),
    /// Pages by number.
    Pages(Vec<(u64, Vec<u8>)>),
    /// Versions of pages.
    PageVersions(Vec<PageVersion>),
    /// A key, if it is claimed.
    Key(Option<KeyRow>),
    /// Audit entries with their numbers.
    Audit(Vec<(u64, AuditEntry)>),
    /// A value, if there is one.
    Meta(Option<Vec<u8>>),
}
