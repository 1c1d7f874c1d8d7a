//! Verbs of durable programs. References to programs and executions are text, as in [`super::Op`].

use super::{ArchiveKind, ExportCursor, ExportPart, ListPage, NewImport};
use crate::codec::{Decode, Encode};
use crate::ids::ExecutionId;
use crate::json::JsonText;
use crate::model::{CheckpointInfo, Program, ProgramState, ProgramVersion, Run, Task, TaskStatus};
use serde::Serialize;

/// One verb with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum DurableOp {
    /// Compile a source text and keep it; another text under the same name makes a new version.
    ProgramLoad {
        /// Its name.
        name: String,
        /// The text.
        source: String,
        /// TypeScript (true), JavaScript (false), or whichever it is.
        typescript: Option<bool>,
    },
    /// Programs, newest first.
    ProgramList(ListPage),
    /// One program with its source.
    ProgramGet {
        /// Which.
        program: String,
        /// The source of this version; none = the newest.
        version: Option<u32>,
    },
    /// Versions of a program without their sources, newest first. The place of one is its time, and its number as id.
    ProgramVersions {
        /// Of which.
        program: String,
        /// Which part of the list.
        page: ListPage,
    },
    /// Hide a program; its executions go on.
    ProgramDelete {
        /// Which.
        program: String,
    },
    /// Run a program to its first pause or end, or answer as soon as it is certain to be run.
    ProgramStart(Box<NewRun>),
    /// An execution of a program with its question.
    RunGet {
        /// Which.
        execution: String,
    },
    /// Executions of programs, newest first.
    RunList {
        /// Only of this program.
        program: Option<String>,
        /// Which part of the list.
        page: ListPage,
    },
    /// Pending questions, oldest first.
    TaskList(ListPage),
    /// The question of an execution. Read only.
    TaskGet {
        /// Which execution; or the id of the question itself.
        execution: String,
    },
    /// Answer a question.
    TaskSubmit {
        /// Which execution; or the id of the question itself.
        execution: String,
        /// The question that is answered; none = the pending one, whichever it is.
        task: Option<String>,
        /// The answer.
        result: GivenAnswer,
        /// Reply when the program has run on to its next pause or end (true), or as soon as the answer is stored.
        wait: bool,
    },
    /// The inside of a program that stands still.
    StateGet {
        /// Which execution.
        execution: String,
        /// As of this checkpoint; none = now.
        checkpoint: Option<u64>,
    },
    /// Change a variable of a waiting execution.
    StateSet {
        /// Which execution.
        execution: String,
        /// Which variable.
        name: String,
        /// Its new value.
        value: JsonText,
        /// Which frame, 0 is the innermost.
        frame: u32,
    },
    /// Which states were kept.
    CheckpointList {
        /// Which execution.
        execution: String,
    },
    /// Make a new execution from a checkpoint, which takes over the name; the old one ends as `cancelled`.
    Rewind {
        /// Which execution.
        execution: String,
        /// To where.
        checkpoint: u64,
    },
    /// Make a new execution from a checkpoint.
    Fork {
        /// Which execution.
        execution: String,
        /// From where; none = where it stands.
        checkpoint: Option<u64>,
        /// The name of the new one.
        name: Option<String>,
    },
    /// Forget an execution with its output and states; one that has not ended is ended first. Answered by what it was.
    RunDelete {
        /// Which execution.
        execution: String,
    },
    /// The execution that a client means when it names none: a list of it, or an empty one.
    CurrentGet {
        /// Which client of the caller's, 1–200 characters.
        client: String,
    },
    /// Says which execution a client means from now on. Answered by that execution.
    CurrentSet {
        /// Which client of the caller's, 1–200 characters.
        client: String,
        /// Which execution.
        execution: String,
    },
    /// A part of a program's or an execution's file. Answered by [`DurableReply::Exported`].
    Export {
        /// What it is.
        kind: ArchiveKind,
        /// Which.
        reference: String,
        /// Behind what came before; none = the first part.
        after: Option<Box<ExportCursor>>,
    },
    /// Begin to send a file. Answered by [`DurableReply::Importing`].
    ImportBegin(Box<NewImport>),
    /// A part of the file, at most [`PART_BYTES`](super::PART_BYTES).
    ImportPart {
        /// Which import.
        import: String,
        /// How many bytes came before.
        at: u64,
        /// The part.
        bytes: Vec<u8>,
    },
    /// The file is whole: check it and make what it describes. Answered by a program or an execution.
    ImportEnd {
        /// Which import.
        import: String,
    },
    /// Compile a plan, or say what is wrong with it. Keeps nothing.
    PlanCheck(Box<PlanText>),
    /// Keep the built-in program that walks through a plan, under a name as any program.
    PlanLoad {
        /// The program's name.
        name: String,
        /// A plan that was compiled: the text of `uplan.json`.
        plan: String,
        /// Ids of blocks that are done already.
        done: Vec<String>,
    },
    /// The beginnings of what executions ask, of those that wait for an answer: for lists. Answered by
    /// [`DurableReply::Prompts`].
    Prompts {
        /// Which executions, at most 1 000.
        executions: Vec<ExecutionId>,
        /// Longest beginning (bytes), at most 4 096.
        bytes: u32,
    },
    /// How much there is. Answered by [`DurableReply::Counts`].
    Counts,
}

/// How much there is of a caller's own; of everybody's for an administrator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, Serialize)]
pub struct ProgramCounts {
    /// Programs that are loaded.
    pub programs: u64,
    /// Executions of programs.
    pub executions: u64,
}

/// A plan as it was written: whoever names the files reads them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode)]
pub struct PlanText {
    /// What the file is called, for people.
    pub file: String,
    /// Its text.
    pub text: String,
    /// Name and text of each file that it lists; one that is missing does not exist.
    pub parts: Vec<(String, String)>,
}

/// A plan that was compiled.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize)]
pub struct CompiledPlan {
    /// Always true: a plan in which something is wrong is an error.
    pub valid: bool,
    /// How many blocks it has.
    pub blocks: u32,
    /// Their ids, in the order of execution.
    pub block_ids: Vec<String>,
    /// The plan: the contents of `uplan.json`.
    pub plan: JsonText,
}

/// An answer as somebody gave it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum GivenAnswer {
    /// As somebody typed it: where the question has a schema, the JSON that it is, or else a string that needs no quotes.
    Typed(String),
    /// A value of this type: `"42"` is a string and never a number. Where the question has no schema, a string is the
    /// answer itself, and anything else its JSON.
    Json(JsonText),
}

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct NewRun {
    /// The program.
    pub program: String,
    /// A name for the execution.
    pub name: Option<String>,
    /// Visible as `args`.
    pub args: Vec<String>,
    /// Visible as `env`.
    pub env: Vec<(String, String)>,
    /// The template; none = the built-in one.
    pub template: Option<String>,
    /// The folder whose files the program may use; none = no files.
    pub worktree_path: Option<String>,
    /// Reply when it stands at its first pause or its end (true), or as soon as its beginning is stored.
    pub wait: bool,
}

impl Default for NewRun {
    /// Nothing given; waited for.
    fn default() -> Self {
        Self {
            program: String::new(),
            name: None,
            args: Vec::new(),
            env: Vec::new(),
            template: None,
            worktree_path: None,
            wait: true,
        }
    }
}

/// The answer of such a verb.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize)]
#[serde(untagged)]
pub enum DurableReply {
    /// A program.
    Program(Box<Program>),
    /// Programs.
    Programs(Vec<Program>),
    /// Versions of a program.
    Versions(Vec<ProgramVersion>),
    /// An execution of a program.
    Run(Box<Run>),
    /// Executions of programs.
    Runs(Vec<Run>),
    /// Questions.
    Tasks(Vec<Task>),
    /// Where an execution stands.
    TaskStatus(Box<TaskStatus>),
    /// The inside of a program.
    State(Box<ProgramState>),
    /// Kept states.
    Checkpoints(Vec<CheckpointInfo>),
    /// A compiled plan.
    Plan(Box<CompiledPlan>),
    /// A part of a file.
    Exported(Box<ExportPart>),
    /// The id of an import that is under way.
    Importing(String),
    /// Executions with the beginnings of what they ask.
    Prompts(Vec<(ExecutionId, String)>),
    /// How much there is.
    Counts(ProgramCounts),
}
