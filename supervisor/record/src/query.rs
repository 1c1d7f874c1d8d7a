//! What can be asked. Every question has one kind of answer; `handle.rs` pairs them with types.

use super::rows::{
    AuditEntry, CheckpointRow, DueTask, ExecutionRow, KeyRow, LibraryRow, Owner, PolicySnapshot, ProgramCode,
    ProgramRow, RunRow, Scope, SessionRow, Standing, TaskRow, TemplateRow, VersionRow,
};
use std::sync::Arc;
use vm_system_protocol::ids::{ExecutionId, ProgramId, SessionId, TaskId, TemplateId};
use vm_system_protocol::model::{Event, EventPayload, SessionStatus};
use vm_system_protocol::time::Timestamp;

/// A place in a list that is sorted newest first, ties by id: what comes behind it is older.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    /// When the last seen row was made.
    pub at: Timestamp,
    /// Its id.
    pub id: [u8; 16],
}

/// What a page of a list takes at most, but for its last row (bytes): more than any answer has room for.
pub const PAGE_BYTES: usize = 16 << 20;

/// Whether nothing came behind these events, of which so many were asked for: a page that is full ends early.
pub fn is_last_page(events: &[Event], limit: u32) -> bool {
    events.len() < limit as usize && events.iter().map(weight_of_event).sum::<usize>() < PAGE_BYTES
}

/// About what an event takes (bytes).
pub fn weight_of_event(event: &Event) -> usize {
    let echo = if let EventPayload::InputEcho { text } = &event.payload { text.len() } else { 0 };
    64 + echo + event.payload.output_bytes() as usize
}

/// A part of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// At most this many rows.
    pub limit: u32,
    /// Only rows behind this place.
    pub after: Option<Cursor>,
}

impl Page {
    /// The first rows of a list.
    pub const fn first(limit: u32) -> Self {
        Self { limit, after: None }
    }
    /// All rows. For lists that are bounded by what they are about.
    pub const ALL: Self = Self { limit: u32::MAX, after: None };
}

/// Which sessions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionQuery {
    /// Only of this status.
    pub status: Option<SessionStatus>,
    /// Only of this template.
    pub template: Option<TemplateId>,
    /// Only of this workspace.
    pub workspace_id: Option<String>,
    /// Only of this name.
    pub name: Option<String>,
    /// Those of durable programs and not those of scripts. Says nothing where a template or a name is asked for: whatever
    /// has that is wanted.
    pub durable: bool,
}

/// Page, checkpoint, and bytes (none = the page is gone).
pub type PageVersion = (u64, u64, Option<Vec<u8>>);

/// What an id prefix is looked for among.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IdKind {
    /// Active templates.
    Template,
    /// Sessions.
    Session,
    /// Executions.
    Execution,
    /// Active programs.
    Program,
    /// Tasks.
    Task,
}

/// A question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Query {
    /// An active template. → [`Answer::Template`]
    Template(Scope, TemplateId),
    /// An active template of an owner by its name. → [`Answer::Template`]
    TemplateByName(Scope, String),
    /// Active templates, newest first. → [`Answer::Templates`]
    Templates(Scope, Page),
    /// Installed libraries by name. → [`Answer::Libraries`]
    Libraries,
    /// → [`Answer::Session`]
    Session(Scope, SessionId),
    /// The snapshot of a session. → [`Answer::Policy`]
    SessionPolicy(SessionId),
    /// Newest first. → [`Answer::Sessions`]
    Sessions(Scope, SessionQuery, Page),
    /// → [`Answer::Execution`]
    Execution(Scope, ExecutionId),
    /// An owner's execution by its name: the unfinished one, else the newest. → [`Answer::Execution`]
    ExecutionByName(Scope, String),
    /// Executions of a session, newest first. → [`Answer::Executions`]
    Executions(Scope, SessionId, Page),
    /// Events of an execution behind a sequence number; limit 0 = all. → [`Answer::Events`]
    Events(ExecutionId, u64, u32),
    /// Ids between two bounds (inclusive), ascending. → [`Answer::Ids`]
    Ids {
        /// Whose.
        scope: Scope,
        /// Of what.
        kind: IdKind,
        /// Smallest.
        from: [u8; 16],
        /// Largest.
        to: [u8; 16],
        /// At most this many.
        limit: u32,
    },
    /// The newest version of an active program. → [`Answer::Program`]
    Program(Scope, ProgramId),
    /// The newest version of an owner's active program by its name. → [`Answer::Program`]
    ProgramByName(Scope, String),
    /// Active programs, newest first. → [`Answer::Programs`]
    Programs(Scope, Page),
    /// Source and code of a version, of deleted programs too. → [`Answer::Code`]
    ProgramCode(ProgramId, u32),
    /// Versions of a program, of deleted ones too, newest first, below a number. → [`Answer::Versions`]
    ProgramVersions {
        /// Which program.
        program: ProgramId,
        /// Only smaller numbers.
        below: Option<u32>,
        /// At most this many.
        limit: u32,
    },
    /// What an execution runs. → [`Answer::Run`]
    ProgramRun(ExecutionId),
    /// The execution that an owner's client means when it names none. → [`Answer::Current`]
    Current(Owner, String),
    /// → [`Answer::Task`]
    Task(Scope, TaskId),
    /// The pending question of an execution. → [`Answer::Task`]
    PendingTask(ExecutionId),
    /// Pending questions, oldest first, behind a place. → [`Answer::Tasks`]
    PendingTasks(Scope, Page),
    /// The beginnings of what these executions ask, of those that wait for an answer. → [`Answer::Prompts`]
    Prompts {
        /// Whose.
        scope: Scope,
        /// Which executions.
        executions: Vec<ExecutionId>,
        /// Longest beginning (bytes).
        bytes: u32,
    },
    /// How many active programs and executions of programs there are. → [`Answer::Counts`]
    ProgramCounts(Scope),
    /// The last question that an execution had asked as of a checkpoint; none = now. → [`Answer::Task`]
    TaskOf(ExecutionId, Option<u64>),
    /// Questions of an execution behind a checkpoint, in the order in which they were asked. → [`Answer::Tasks`]
    TasksOfRun {
        /// Which execution.
        execution: ExecutionId,
        /// Asked behind this checkpoint.
        after: u64,
        /// At most this many.
        limit: u32,
    },
    /// Versions of an execution's pages behind one, by page and checkpoint. → [`Answer::PageVersions`]
    PageVersions {
        /// Which execution.
        execution: ExecutionId,
        /// Behind this page and checkpoint; none = from the first one on.
        after: Option<(u64, u64)>,
        /// No more once there are so many bytes; at least one.
        bytes: usize,
    },
    /// Versions of a program with this source, newest first. → [`Answer::Versions`]
    VersionsOfSource {
        /// Which program.
        program: ProgramId,
        /// SHA-256 of the source.
        source_hash: [u8; 32],
        /// At most this many.
        limit: u32,
    },
    /// Pending questions whose time is over before a moment, the longest first. → [`Answer::Due`]
    DueTasks {
        /// Deadlines up to here.
        until: Timestamp,
        /// Behind this one.
        after: Option<(Timestamp, TaskId)>,
        /// At most this many.
        limit: u32,
    },
    /// Executions of programs that have something to do, by id, behind one. → [`Answer::Ids`]
    RunningPrograms {
        /// Behind this one.
        after: ExecutionId,
        /// At most this many.
        limit: u32,
    },
    /// Executions of programs, newest first. → [`Answer::Runs`]
    Runs {
        /// Whose.
        scope: Scope,
        /// Only of this program.
        program: Option<ProgramId>,
        /// Only this one.
        execution: Option<ExecutionId>,
        /// Which part. Ids of executions begin with their time, and only the id of a place is looked at.
        page: Page,
    },
    /// An execution of a program by its name: the unfinished one, else the newest. → [`Answer::Runs`]
    RunByName(Scope, String),
    /// How an execution of a program goes on. → [`Answer::Standing`]
    Standing(ExecutionId),
    /// The newest checkpoint of an execution. → [`Answer::Checkpoints`]
    LastCheckpoint(ExecutionId),
    /// Checkpoints of an execution in order. → [`Answer::Checkpoints`]
    Checkpoints(ExecutionId),
    /// The state as of a checkpoint: the newest version of each page, by number. → [`Answer::Pages`]
    State {
        /// Of which execution.
        execution: ExecutionId,
        /// As of which checkpoint.
        checkpoint: u64,
        /// Behind this page; none = from the first.
        behind: Option<u64>,
        /// No more pages once there are so many bytes; fewer: they are the last.
        bytes: usize,
    },
    /// An idempotency key. → [`Answer::Key`]
    Key(Owner, String),
    /// Newest first; `before` = number of the last seen entry. → [`Answer::Audit`]
    Audit {
        /// Whose.
        scope: Scope,
        /// Only entries with a smaller number.
        before: Option<u64>,
        /// At most this many.
        limit: u32,
    },
    /// A value of the store's book-keeping. → [`Answer::Meta`]
    Meta(String),
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A template, if there is one.
    Template(Option<Box<TemplateRow>>),
    /// Templates.
    Templates(Vec<TemplateRow>),
    /// Installed libraries.
    Libraries(Vec<LibraryRow>),
    /// A session, if there is one.
    Session(Option<Box<SessionRow>>),
    /// A snapshot, if there is such a session.
    Policy(Option<Arc<PolicySnapshot>>),
    /// Sessions.
    Sessions(Vec<SessionRow>),
    /// An execution, if there is one.
    Execution(Option<Box<ExecutionRow>>),
    /// Executions.
    Executions(Vec<ExecutionRow>),
    /// Events.
    Events(Vec<Event>),
    /// Ids.
    Ids(Vec<[u8; 16]>),
    /// A program, if there is one.
    Program(Option<Box<ProgramRow>>),
    /// Programs.
    Programs(Vec<ProgramRow>),
    /// Source and code, if there is such a version.
    Code(Option<Box<ProgramCode>>),
    /// Versions.
    Versions(Vec<VersionRow>),
    /// Program and version, if the execution runs one.
    Run(Option<(ProgramId, u32)>),
    /// An execution, if one was set.
    Current(Option<ExecutionId>),
    /// A task, if there is one.
    Task(Option<Box<TaskRow>>),
    /// Tasks.
    Tasks(Vec<TaskRow>),
    /// Executions with the beginnings of what they ask, in the order in which they were named.
    Prompts(Vec<(ExecutionId, String)>),
    /// Programs, and executions of programs.
    Counts((u64, u64)),
    /// When questions end.
    Due(Vec<DueTask>),
    /// Executions of programs.
    Runs(Vec<RunRow>),
    /// How it goes on; none if it is no execution of a program.
    Standing(Option<Box<Standing>>),
    /// Checkpoints.
    Checkpoints(Vec<CheckpointRow>),
    /// Pages by number.
    Pages(Vec<(u64, Vec<u8>)>),
    /// Versions of pages.
    PageVersions(Vec<PageVersion>),
    /// A key, if it is taken.
    Key(Option<KeyRow>),
    /// Audit entries with their numbers.
    Audit(Vec<(u64, AuditEntry)>),
    /// A value, if there is one.
    Meta(Option<Vec<u8>>),
}
