//! Durable programs in the form that clients see (REST and the CLI's JSON).

use super::{Execution, ExecutionError, ExecutionStatus, ResultValue, text_enum};
use crate::codec::{Decode, Encode};
use crate::ids::{ExecutionId, ProgramId, TaskId};
use crate::json::JsonText;
use crate::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A program in its newest version.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
pub struct Program {
    pub id: ProgramId,
    /// Unique among the owner's programs.
    pub name: String,
    /// Number of the newest version, from 1: loading another source under the same name makes the next one.
    #[schemars(range(min = 1))]
    pub version: u32,
    /// SHA-256 of the source, in hexadecimal digits.
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    pub source_hash: String,
    /// Number of the format of the compiled code.
    pub format: u32,
    /// When the first version was loaded.
    pub created_at: Timestamp,
    /// When the newest version was loaded.
    pub modified_at: Timestamp,
    /// The source: only in the response about one program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Only in the response about a loaded source: it was read as TypeScript (true) or JavaScript (false).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typescript: Option<bool>,
    /// The owner, `uid:1000` or the name of a token: in lists and single objects, for administrators only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

/// A version of a program.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
pub struct ProgramVersion {
    /// Counts from 1.
    #[schemars(range(min = 1))]
    pub version: u32,
    /// SHA-256 of the source, in hexadecimal digits.
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    pub source_hash: String,
    /// Number of the format of the compiled code.
    pub format: u32,
    pub created_at: Timestamp,
}

/// An error of a source text.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
pub struct Diagnostic {
    pub message: String,
    /// The file, if the program has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line, from 1.
    #[schemars(range(min = 1))]
    pub line: u32,
    /// Column, from 1.
    #[schemars(range(min = 1))]
    pub column: u32,
    pub snippet: String,
}

/// A task of a waiting execution.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    pub id: TaskId,
    pub execution_id: ExecutionId,
    pub prompt: String,
    /// JSON Schema that the answer must match; absent: any text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<JsonText>,
    /// Number of answers that did not match the schema.
    pub attempts: u32,
    pub created_at: Timestamp,
    /// When the task takes its default answer, or fails with a `CCTimeoutError` if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Time of the first answer that did not match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_attempt_at: Option<Timestamp>,
    /// Time of the last answer that did not match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_attempt_at: Option<Timestamp>,
}

text_enum! {
    /// `pending → answered | defaulted | expired | failed | withdrawn`.
    TaskState {
        /// No answer yet.
        Pending = "pending",
        /// An answer was submitted.
        Answered = "answered",
        /// The deadline passed; the answer is the default.
        Defaulted = "defaulted",
        /// The deadline passed, and there is no default.
        Expired = "expired",
        /// Too many answers did not match the schema.
        Failed = "failed",
        /// The execution of the task ended.
        Withdrawn = "withdrawn",
    }
}

/// A task in a list, pending or ended.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
pub struct ListedTask {
    #[serde(flatten)]
    pub task: Task,
    pub status: TaskState,
    /// When it was answered, or ended in another way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// The answer or the default, as JSON if the task has a schema; of an expired or failed task the message of its error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The owner, `uid:1000` or the name of a token: in lists and single objects, for administrators only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

/// The status of an execution: its pending task, or its result. Reading it changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
pub struct TaskStatus {
    pub execution_id: ExecutionId,
    /// The execution's name, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub status: ExecutionStatus,
    /// The oldest pending task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Task>,
    /// How many more tasks are pending.
    pub more_tasks: u32,
    /// Numbers of the things that the execution waits for; absent if it waits for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<WaitingFor>,
    /// The result, if the execution ended `ok`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ResultValue>,
    /// The error, if the execution did not end `ok`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ExecutionError>,
}

/// An execution with its task: an execution of a program, or one in a `quickjs` session that waits for an answer.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ProgramExecution")]
pub struct Run {
    #[serde(flatten)]
    pub execution: Execution,
    /// The execution's name, unique among its owner's executions that have not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The program; absent for an execution of a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program_id: Option<ProgramId>,
    /// Name of the program; absent if the program was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Version of the program that it runs; newer versions do not change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub program_version: Option<u32>,
    /// The oldest pending task, while the execution waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Task>,
    /// Numbers of the things that the execution waits for; absent once it has ended, and while it waits for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<WaitingFor>,
    /// The present act of an execution that runs, as a text; absent in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<String>,
    /// Questions, timers and events for which a program did not wait any more when it ended; at most the first 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub abandoned: Vec<AbandonedItem>,
}

/// The number of things of each kind that an execution waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode, Serialize, Deserialize, JsonSchema)]
pub struct WaitingFor {
    /// Tasks that have no answer.
    pub questions: u32,
    /// Calls of `sleep` whose time has not come.
    pub timers: u32,
    /// Calls of `waitFor` whose event has not come.
    pub events: u32,
    /// The earliest time at which one of them ends by itself; absent if none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wakes_at: Option<Timestamp>,
}

impl WaitingFor {
    /// Whether there is nothing to wait for.
    pub const fn is_nothing(&self) -> bool {
        self.questions == 0 && self.timers == 0 && self.events == 0
    }
}

/// A question, timer or event for which a program no longer waited when it ended.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
pub struct AbandonedItem {
    pub kind: WaitKind,
    /// The prompt of a question (its beginning), the name of an event; absent for a timer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Of a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// The answer or event that had come and that the program did not use, or its first 4 KiB with its size; absent if none had come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

/// A kind of thing for which an execution waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WaitKind {
    /// A client answers it: a task.
    Question,
    /// A time ends it.
    Timer,
    /// An event of a name ends it.
    Event,
}

impl WaitKind {
    const ALL: [(Self, &'static str); 3] =
        [(Self::Question, "question"), (Self::Timer, "timer"), (Self::Event, "event")];

    /// The stored form, which is also that for clients.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, text)| text)
    }

    /// From the stored form.
    pub fn from_text(text: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, stored)| *stored == text).map(|(kind, _)| *kind)
    }
}

/// A stored state of an execution.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Checkpoint")]
pub struct CheckpointInfo {
    pub seq: u64,
    pub at: Timestamp,
    #[schemars(extend("enum" = ["start", "pause", "wait", "effect", "response", "steps", "edit", "wait_edit", "end"]))]
    pub cause: String,
    /// Size of the pages that were written with the checkpoint (bytes).
    pub bytes: u64,
}

/// Frames and variables of a program that waits or has ended.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode, Serialize, Deserialize, JsonSchema)]
pub struct ProgramState {
    /// Calls in progress, innermost first; at most 200.
    pub frames: Vec<ProgramFrame>,
    /// Number of further, outer calls that are not in `frames`.
    pub more_frames: u64,
    /// Global variables with their values as text.
    pub globals: Vec<Variable>,
}

impl ProgramState {
    /// The number of the innermost call that has a variable of this name; 0 if none has, which is where globals are found, too.
    pub fn frame_with(&self, name: &str) -> u32 {
        let has = |frame: &ProgramFrame| frame.variables.iter().any(|variable| variable.name == name);
        let index = self.frames.iter().position(has).unwrap_or(0);
        u32::try_from(index).unwrap_or(0)
    }
}

/// A call in progress.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
pub struct ProgramFrame {
    /// Name of the function; empty at the top level.
    pub function: String,
    /// The file, if the program has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line, from 1.
    #[schemars(range(min = 1))]
    pub line: u32,
    /// Column, from 1.
    #[schemars(range(min = 1))]
    pub column: u32,
    pub source_line: String,
    /// Variables with their values as text.
    pub variables: Vec<Variable>,
    /// Of a suspended call: numbers of the questions, timers and events for which it waits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<u64>,
}

impl ProgramFrame {
    /// `lib/tax.ts:5:10`, or `5:10` in a program of one file.
    pub fn place(&self) -> String {
        let file = self.file.as_deref().map_or_else(String::new, |file| format!("{file}:"));
        format!("{file}{}:{}", self.line, self.column)
    }
}

/// A variable.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
pub struct Variable {
    pub name: String,
    /// The value as text.
    pub value: String,
}
