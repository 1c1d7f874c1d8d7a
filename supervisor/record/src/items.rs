//! Rows of what executions wait for: items, and the events that have come for them.

use crate::Owner;
use vm_system_protocol::ids::{ExecutionId, SessionId, TaskId};
use vm_system_protocol::model::{TaskState, WaitKind};
use vm_system_protocol::time::Timestamp;

/// Numbers of pending items in their executions begin behind this one. A pause (`CC`), and a task of a session, has a lower number: that
/// of its checkpoint.
pub const ITEMS_FROM: u64 = 1 << 40;

/// Something for which an execution waits, or has waited. A question is a task for clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemRow {
    pub id: TaskId,
    /// The execution's owner. Ignored on insertion.
    pub owner: Owner,
    /// The execution that waits for the answer.
    pub execution: ExecutionId,
    /// Number in its execution, which no other item of it ever has ([`ITEMS_FROM`]).
    pub item: u64,
    pub kind: WaitKind,
    /// Of an event.
    pub name: Option<String>,
    /// Of a question; else empty.
    pub prompt: String,
    /// JSON schema that an answer must fit.
    pub schema: Option<String>,
    /// Submitted answers that did not fit the schema.
    pub attempts: u32,
    pub created_at: Timestamp,
    pub deadline: Option<Timestamp>,
    /// `None`: pending.
    pub ended_at: Option<Timestamp>,
    pub outcome: Option<ItemOutcome>,
    /// The answer; without one, the message of the error.
    pub answer: Option<String>,
    /// The place of its answer among those of the execution, as the store has counted it. Ignored on insertion.
    pub answer_seq: Option<u64>,
    /// The checkpoint whose state has its answer. A pause has none: its answer is in the state of the next checkpoint.
    pub taken_at: Option<u64>,
    /// The checkpoint at which it was stored first; in a session, the task's number in its execution.
    pub checkpoint: u64,
    /// Most answers that may not fit; `None`: no limit.
    pub retries: Option<u32>,
    /// JSON of the default answer, used at the deadline.
    pub fallback: Option<String>,
    /// Time of the first answer that did not fit.
    pub first_attempt_at: Option<Timestamp>,
    /// Time of the last answer that did not fit.
    pub last_attempt_at: Option<Timestamp>,
}

impl ItemRow {
    /// Whether it is the question of a pause (`CC`), and not one of the pending items.
    pub const fn is_pause(&self) -> bool {
        self.item < ITEMS_FROM
    }
}

/// An event that an execution has got and not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailRow {
    /// The place among the events of the execution, from 1.
    pub seq: u64,
    pub name: String,
    /// JSON.
    pub event: String,
    pub at: Timestamp,
}

/// An execution of a program, as far as that shows whether it can go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfinishedRun {
    pub execution: ExecutionId,
    pub session: SessionId,
    pub owner: Owner,
    /// It runs (true), or waits.
    pub runs: bool,
    /// Why nothing will wake it, if it waits for nothing that can happen.
    pub stuck: Option<&'static str>,
}

/// Whether an execution that goes on from a checkpoint of this cause waits for a client, a time or an event.
pub fn is_rest(cause: &str) -> bool {
    matches!(cause, "pause" | "edit" | "wait" | "wait_edit")
}

/// How an item ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemOutcome {
    /// An answer was submitted.
    Answered,
    /// The deadline passed; the answer is the default.
    Defaulted,
    /// The deadline passed, and there is no default. Of a timer: its time has come.
    Expired,
    /// Too many answers did not fit; without any (`attempts` is 0), its options are wrong.
    Failed,
    /// The execution of the item ended.
    Withdrawn,
}

impl ItemOutcome {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Answered, "answered"),
        (Self::Defaulted, "defaulted"),
        (Self::Expired, "expired"),
        (Self::Failed, "failed"),
        (Self::Withdrawn, "withdrawn"),
    ];

    /// The stored form.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(outcome, _)| *outcome == self).map_or("", |(_, text)| text)
    }

    /// As clients see it.
    pub fn state(self) -> TaskState {
        match self {
            Self::Answered => TaskState::Answered,
            Self::Defaulted => TaskState::Defaulted,
            Self::Expired => TaskState::Expired,
            Self::Failed => TaskState::Failed,
            Self::Withdrawn => TaskState::Withdrawn,
        }
    }

    /// From the stored form.
    pub fn from_text(text: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, stored)| *stored == text).map(|(outcome, _)| *outcome)
    }
}
