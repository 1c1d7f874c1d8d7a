//! Results of verbs of durable programs.

use crate::codec::{Decode, Encode};
use crate::ids::{ExecutionId, TaskId};
use crate::json::JsonText;
use schemars::JsonSchema;
use serde::Serialize;

/// The prompt of an execution that waits.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize)]
pub struct PendingPrompt {
    pub execution: ExecutionId,
    pub task: TaskId,
    /// The prompt's beginning; one that is not the whole prompt ends with its size.
    pub text: String,
}

/// Counts of the caller's programs and executions; of all owners' for an administrator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, Serialize)]
pub struct ProgramCounts {
    /// Loaded programs.
    pub programs: u64,
    pub executions: u64,
}

/// A compiled plan.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, JsonSchema)]
pub struct CompiledPlan {
    /// Always true: a plan with errors is an error reply.
    pub valid: bool,
    /// Number of blocks.
    pub blocks: u32,
    /// Ids of the blocks, in the order of execution.
    pub block_ids: Vec<String>,
    /// The plan, which `plan` of a new program takes: the contents of `uplan.json`.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub plan: JsonText,
}

/// The executions that an event has reached.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, JsonSchema)]
pub struct EmittedEvent {
    /// How many executions got it.
    pub received: u64,
    /// Of them the first ones, at most 1 000.
    pub receivers: Vec<EventReceiver>,
}

/// An execution that got an event.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, JsonSchema)]
pub struct EventReceiver {
    pub execution_id: ExecutionId,
    /// The execution's name, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// It waited for the event (true), or keeps it until it does.
    pub awaited: bool,
}
