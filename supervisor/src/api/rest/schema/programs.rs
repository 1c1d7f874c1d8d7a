//! Programs, their questions, and their insides.

use super::Json;
use super::executions::{ExecutionError, ExecutionStatus};
use utoipa::ToSchema;

/// A program in its newest version.
#[derive(ToSchema)]
pub(in crate::api::rest) struct Program {
    #[schema(format = "uuid")]
    id: String,
    /// Unique among the owner's programs.
    name: String,
    /// From 1; loading a source under the same name makes the next one.
    version: u32,
    /// SHA-256, hexadecimal.
    source_hash: String,
    /// Of the compiled code.
    format: u32,
    #[schema(format = "date-time")]
    created_at: String,
    /// When the newest version was loaded.
    #[schema(format = "date-time")]
    modified_at: String,
    /// Only in the answer about one program.
    #[schema(nullable = false)]
    source: Option<String>,
}

/// A version of a program.
#[derive(ToSchema)]
pub(in crate::api::rest) struct ProgramVersion {
    /// From 1.
    version: u32,
    /// SHA-256, hexadecimal.
    source_hash: String,
    /// Of the compiled code.
    format: u32,
    #[schema(format = "date-time")]
    created_at: String,
}

#[derive(ToSchema)]
pub(in crate::api::rest) struct ProgramDeleted {
    /// `ok`.
    status: String,
    #[schema(format = "uuid")]
    program_id: String,
}

#[derive(ToSchema)]
pub(in crate::api::rest) struct ExecutionForgotten {
    /// `ok`.
    status: String,
    #[schema(format = "uuid")]
    execution_id: String,
}

/// A plan that was compiled.
#[derive(ToSchema)]
#[expect(clippy::struct_field_names, reason = "the name of the field in the API")]
pub(in crate::api::rest) struct Plan {
    /// Always true: a plan in which something is wrong is an error.
    valid: bool,
    /// How many blocks it has.
    blocks: u32,
    /// Their ids, in the order of execution.
    block_ids: Vec<String>,
    /// Load it as `plan` of a program.
    #[schema(value_type = Object)]
    plan: Json,
}

/// A question of a waiting execution.
#[derive(ToSchema)]
pub(in crate::api::rest) struct Task {
    #[schema(format = "uuid")]
    id: String,
    #[schema(format = "uuid")]
    execution_id: String,
    prompt: String,
    /// JSON Schema that an answer must fit; absent: any text.
    #[schema(required = false)]
    schema: Json,
    /// Answers that did not fit.
    attempts: u32,
    #[schema(format = "date-time")]
    created_at: String,
    /// When it is answered with its default, or fails.
    #[schema(format = "date-time", nullable = false)]
    deadline: Option<String>,
    /// When the first answer came that did not fit.
    #[schema(format = "date-time", nullable = false)]
    first_attempt_at: Option<String>,
    #[schema(format = "date-time", nullable = false)]
    last_attempt_at: Option<String>,
}

/// Where an execution of a program stands.
#[derive(ToSchema)]
pub(in crate::api::rest) struct TaskState {
    #[schema(format = "uuid")]
    execution_id: String,
    /// Its name, if it has one.
    #[schema(nullable = false)]
    name: Option<String>,
    status: ExecutionStatus,
    /// The question, while it waits.
    #[schema(nullable = false)]
    task: Option<Task>,
    /// Once it ended `ok`, where it has a result.
    #[schema(required = false)]
    result: Json,
    #[schema(nullable = false)]
    error: Option<ExecutionError>,
}

/// A state that was kept.
#[derive(ToSchema)]
pub(in crate::api::rest) struct Checkpoint {
    seq: u64,
    #[schema(format = "date-time")]
    at: String,
    /// `start`, `pause`, `effect`, `steps`, `edit` or `end`.
    cause: String,
    /// Written with it.
    bytes: u64,
}

/// The inside of a program that stands still.
#[derive(ToSchema)]
pub(in crate::api::rest) struct ProgramState {
    /// Calls in progress, innermost first.
    frames: Vec<Frame>,
    globals: Vec<Variable>,
}

/// A call in progress.
#[derive(ToSchema)]
struct Frame {
    /// Empty at the top level.
    function: String,
    /// From 1.
    line: u32,
    /// From 1.
    column: u32,
    source_line: String,
    variables: Vec<Variable>,
}

#[derive(ToSchema)]
struct Variable {
    name: String,
    /// As text.
    value: String,
}
