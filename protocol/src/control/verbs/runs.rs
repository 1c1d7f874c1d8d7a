//! Verbs of executions of programs: their states, checkpoints, and the current one of a client.

use crate::codec::{Decode, Encode};
use crate::control::{GivenAnswer, ListPage, Period};
use crate::json::JsonText;
use crate::model::ExecutionStatus;

/// An execution of a program with its task.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct RunGet {
    pub execution: String,
}

/// Executions of programs, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode)]
pub struct RunList {
    /// Only of this status.
    pub status: Option<ExecutionStatus>,
    /// Only of this program.
    pub program: Option<String>,
    /// Only with exactly this name.
    pub name: Option<String>,
    pub period: Period,
    /// Only of this owner; for administrators.
    pub owner: Option<String>,
    pub page: ListPage,
}

/// Delete an execution with its output and states; an unfinished one is ended first. Replies with the deleted execution.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct RunDelete {
    pub execution: String,
}

/// Create an execution from a checkpoint, which takes over the name; the old execution ends as `cancelled`.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct RunRewind {
    pub execution: String,
    pub checkpoint: u64,
}

/// Create an execution from a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct RunFork {
    pub execution: String,
    /// None = the current state.
    pub checkpoint: Option<u64>,
    /// The name of the new execution.
    pub name: Option<String>,
}

/// Create an execution from a checkpoint, with other answers and other values of variables.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct RunRerun {
    pub execution: String,
    pub checkpoint: u64,
    /// In the order in which the program gets them.
    pub answers: Vec<OtherAnswer>,
    /// Changed before an answer is used.
    pub variables: Vec<OtherValue>,
    /// The name of the new execution.
    pub name: Option<String>,
    /// The old execution ends as `cancelled`; the new one takes over its name, unless it has one of its own.
    pub end_old: bool,
}

/// An answer to a task that was open at a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct OtherAnswer {
    /// The id of the task, or a beginning of it that no other open task has.
    pub task: String,
    pub result: GivenAnswer,
}

/// The value of a variable.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct OtherValue {
    pub name: String,
    pub value: JsonText,
    /// As in [`StateSet`].
    pub frame: Option<u32>,
}

/// The frames and variables of a program that does not run.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct StateGet {
    pub execution: String,
    /// As of this checkpoint; none = now.
    pub checkpoint: Option<u64>,
}

/// Change a variable of a waiting execution.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct StateSet {
    pub execution: String,
    pub name: String,
    /// The new value.
    pub value: JsonText,
    /// 0 is the innermost; none = the innermost one that has the variable.
    pub frame: Option<u32>,
}

/// The checkpoints of an execution.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct CheckpointList {
    pub execution: String,
}

/// The client's current execution, the default of requests without one.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct CurrentGet {
    /// The name of a client of the caller, 1–200 characters.
    pub client: String,
}

/// Sets a client's current execution. Replies with that execution.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct CurrentSet {
    /// The name of a client of the caller, 1–200 characters.
    pub client: String,
    pub execution: String,
}
