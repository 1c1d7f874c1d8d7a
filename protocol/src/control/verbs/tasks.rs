//! Verbs of tasks and their answers.

use crate::codec::{Decode, Encode};
use crate::control::{ListPage, Period};
use crate::ids::ExecutionId;
use crate::json::JsonText;
use crate::model::TaskState;

/// Tasks: pending ones are sorted oldest first, those of one execution in the order in which it created them, all others
/// newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode)]
pub struct TaskList {
    /// Only of this status; absent: pending ones and those that have ended.
    pub status: Option<TaskState>,
    /// Only of this execution.
    pub execution: Option<String>,
    /// Only of executions of this program.
    pub program: Option<String>,
    pub period: Period,
    /// Only of this owner; for administrators.
    pub owner: Option<String>,
    pub page: ListPage,
}

/// The task of an execution. Read only.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct TaskGet {
    /// The execution, or the id of the task.
    pub execution: String,
}

/// Answer a task.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct TaskSubmit {
    /// The execution, or the id of the task.
    pub execution: String,
    /// The task that is answered; none = the pending one.
    pub task: Option<String>,
    pub result: GivenAnswer,
    /// Reply at the program's next pause or end (true), or as soon as the answer is stored.
    pub wait: bool,
}

/// The beginnings of the prompts of waiting executions, for lists.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct TaskPrompts {
    /// At most 1 000.
    pub executions: Vec<ExecutionId>,
    /// Longest beginning (bytes), at most 4 096.
    pub bytes: u32,
}

/// An answer as it was submitted.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum GivenAnswer {
    /// Typed text: if the task has a schema, the text is parsed as JSON; if that fails, it is a string without quotes.
    Typed(String),
    /// A value with its type: `"42"` is a string and never a number. If the task has no schema, a string is the answer itself,
    /// and any other value is answered as its JSON.
    Json(JsonText),
}

impl TaskList {
    /// Pending tasks.
    pub fn pending(page: ListPage) -> Self {
        Self { status: Some(TaskState::Pending), page, ..Self::default() }
    }
}
