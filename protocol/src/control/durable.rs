//! Verbs of durable programs. References to programs and executions are text, as in [`super::Op`].

use super::{
    ArchiveKind, ExportCursor, ExportPart, ListPage, NewImport, ProgramFilter, RunFilter, TaskFilter,
};
use crate::codec::{Decode, Encode};
use crate::ids::{ExecutionId, TaskId};
use crate::json::JsonText;
use crate::model::{CheckpointInfo, ListedTask, Program, ProgramState, ProgramVersion, Run, TaskStatus};
use serde::Serialize;

/// One verb with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum DurableOp {
    /// Compile a source text and store it; another text under the same name creates a new version.
    ProgramLoad(Box<ProgramText>),
    /// Programs, newest first.
    ProgramList(ProgramFilter),
    /// One program with its source.
    ProgramGet {
        program: String,
        /// The source of this version; none = the newest.
        version: Option<u32>,
    },
    /// Versions of a program without their sources, newest first. The cursor of a version is its time, with its number as id.
    ProgramVersions {
        program: String,
        page: ListPage,
    },
    /// Delete a program; its executions continue.
    ProgramDelete {
        program: String,
    },
    /// Run a program, or with `NAME@VERSION` that version of it. Replies at its first pause or end, or as soon as its start is stored.
    ProgramStart(Box<NewRun>),
    /// An execution of a program with its task.
    RunGet {
        execution: String,
    },
    /// Executions of programs, newest first.
    RunList(RunFilter),
    TaskList(TaskFilter),
    /// The task of an execution. Read only.
    TaskGet {
        /// The execution, or the id of the task.
        execution: String,
    },
    /// Answer a task.
    TaskSubmit {
        /// The execution, or the id of the task.
        execution: String,
        /// The task that is answered; none = the pending one.
        task: Option<String>,
        result: GivenAnswer,
        /// Reply at the program's next pause or end (true), or as soon as the answer is stored.
        wait: bool,
    },
    /// The frames and variables of a program that does not run.
    StateGet {
        execution: String,
        /// As of this checkpoint; none = now.
        checkpoint: Option<u64>,
    },
    /// Change a variable of a waiting execution.
    StateSet {
        execution: String,
        name: String,
        /// The new value.
        value: JsonText,
        /// 0 is the innermost; none = the innermost one that has the variable.
        frame: Option<u32>,
    },
    CheckpointList {
        execution: String,
    },
    /// Create an execution from a checkpoint, which takes over the name; the old execution ends as `cancelled`.
    Rewind {
        execution: String,
        checkpoint: u64,
    },
    /// Create an execution from a checkpoint.
    Fork {
        execution: String,
        /// None = the current state.
        checkpoint: Option<u64>,
        /// The name of the new execution.
        name: Option<String>,
    },
    /// Delete an execution with its output and states; an unfinished one is ended first. Replies with the deleted execution.
    RunDelete {
        execution: String,
    },
    /// The client's current execution, the default of requests without one. The reply is a list with it, or an empty list.
    CurrentGet {
        /// The name of a client of the caller, 1–200 characters.
        client: String,
    },
    /// Sets a client's current execution. Replies with that execution.
    CurrentSet {
        /// The name of a client of the caller, 1–200 characters.
        client: String,
        execution: String,
    },
    /// A part of the export of a program or an execution. The reply is [`DurableReply::Exported`].
    Export {
        kind: ArchiveKind,
        reference: String,
        /// The position after the previous part; none = the first part.
        after: Option<Box<ExportCursor>>,
    },
    /// Begin an import. The reply is [`DurableReply::Importing`].
    ImportBegin(Box<NewImport>),
    /// A part of the file, at most [`PART_BYTES`](super::PART_BYTES).
    ImportPart {
        import: String,
        /// Number of bytes before this part.
        at: u64,
        bytes: Vec<u8>,
    },
    /// The file is complete: check it and create its program or execution, which is the reply.
    ImportEnd {
        import: String,
    },
    /// Compile a plan, or report its errors. Stores nothing.
    PlanCheck(Box<PlanText>),
    /// Store the built-in program for a plan under a name, like any program.
    PlanLoad {
        /// The program's name.
        name: String,
        /// A compiled plan: the text of `uplan.json`.
        plan: String,
        /// Ids of blocks that are done already.
        done: Vec<String>,
    },
    /// The beginnings of the prompts of waiting executions, for lists. The reply is [`DurableReply::Prompts`].
    Prompts {
        /// At most 1 000.
        executions: Vec<ExecutionId>,
        /// Longest beginning (bytes), at most 4 096.
        bytes: u32,
    },
    /// Counts of programs and executions. The reply is [`DurableReply::Counts`].
    Counts,
    /// Give up an import that is not complete: its file is dropped at once. The reply is [`DurableReply::Importing`].
    ImportDrop {
        import: String,
    },
}

/// The prompt of an execution that waits.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize)]
pub struct PendingPrompt {
    pub execution: ExecutionId,
    pub task: TaskId,
    /// Its beginning; one that is not the whole prompt ends with its size.
    pub text: String,
}

/// Counts of the caller's programs and executions; of all owners' for an administrator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, Serialize)]
pub struct ProgramCounts {
    /// Loaded programs.
    pub programs: u64,
    pub executions: u64,
}

/// A program to compile; the client reads the files.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode)]
pub struct ProgramText {
    /// The program's name.
    pub name: String,
    pub source: String,
    /// TypeScript (true), JavaScript (false); none = decided by compiling it.
    pub typescript: Option<bool>,
    /// Name of the source's file: it and the others may import it. None = the program's name, in a program of one file.
    pub file: Option<String>,
    /// Name, relative to the source's folder, and text of each other file that may be imported.
    pub files: Vec<(String, String)>,
}

/// The source of a plan; the client reads the files.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode)]
pub struct PlanText {
    /// The file's name, for messages.
    pub file: String,
    pub text: String,
    /// Name and text of each file that the plan lists, except files that do not exist.
    pub parts: Vec<(String, String)>,
}

/// A compiled plan.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize)]
pub struct CompiledPlan {
    /// Always true: a plan with errors is an error reply.
    pub valid: bool,
    /// Number of blocks.
    pub blocks: u32,
    /// Ids of the blocks, in the order of execution.
    pub block_ids: Vec<String>,
    /// The plan: the contents of `uplan.json`.
    pub plan: JsonText,
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

/// The options of a new execution of a program.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct NewRun {
    /// The program, or `NAME@VERSION`; a program with exactly that name is meant first.
    pub program: String,
    /// A name for the execution.
    pub name: Option<String>,
    /// Visible as `args`.
    pub args: Vec<String>,
    /// Visible as `env`.
    pub env: Vec<(String, String)>,
    /// The template; none = the built-in one.
    pub template: Option<String>,
    /// The folder with the files that the program may use; none = no files.
    pub worktree_path: Option<String>,
    /// As in [`NewSession`](super::NewSession).
    pub as_user: Option<String>,
    /// Reply at the first pause or end (true), or as soon as the start is stored.
    pub wait: bool,
}

impl Default for NewRun {
    /// Without options; the reply comes at the first pause or end.
    fn default() -> Self {
        Self {
            program: String::new(),
            name: None,
            args: Vec::new(),
            env: Vec::new(),
            template: None,
            worktree_path: None,
            as_user: None,
            wait: true,
        }
    }
}

/// The reply of a verb of durable programs.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize)]
#[serde(untagged)]
pub enum DurableReply {
    Program(Box<Program>),
    Programs(Vec<Program>),
    Versions(Vec<ProgramVersion>),
    /// An execution of a program.
    Run(Box<Run>),
    Runs(Vec<Run>),
    Tasks(Vec<ListedTask>),
    /// The status of an execution.
    TaskStatus(Box<TaskStatus>),
    /// The frames and variables of a program.
    State(Box<ProgramState>),
    /// Stored checkpoints.
    Checkpoints(Vec<CheckpointInfo>),
    /// A compiled plan.
    Plan(Box<CompiledPlan>),
    /// A part of a file.
    Exported(Box<ExportPart>),
    /// The id of an unfinished import.
    Importing(String),
    Prompts(Vec<PendingPrompt>),
    Counts(ProgramCounts),
}
