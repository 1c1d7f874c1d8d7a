//! Filters and parts of lists, and what only reads return. The reads themselves are in the table of the store (`reads.rs`).

use vm_system_protocol::control::Period;
use vm_system_protocol::ids::{ExecutionId, ProgramId, TaskId, TemplateId};
use vm_system_protocol::model::{Event, EventPayload, ExecutionStatus, SessionStatus, TaskState};
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
    Schedule,
}
