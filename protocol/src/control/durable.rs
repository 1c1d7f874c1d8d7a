//! Verbs of durable programs. References to programs and executions are text, as in [`super::Op`].

use crate::codec::{Decode, Encode};
use crate::json::JsonText;
use crate::model::{CheckpointInfo, Program, ProgramState, Run, Task, TaskStatus};
use serde::Serialize;

/// One verb with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum DurableOp {
    /// Compile a source text and keep it; the same name again makes a new version.
    ProgramLoad {
        /// Its name.
        name: String,
        /// The text.
        source: String,
        /// TypeScript (true), JavaScript (false), or whichever it is.
        typescript: Option<bool>,
    },
    /// Programs, newest first.
    ProgramList,
    /// One program with its source.
    ProgramGet {
        /// Which.
        program: String,
    },
    /// Hide a program; its executions go on.
    ProgramDelete {
        /// Which.
        program: String,
    },
    /// Run a program to its first pause or end.
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
        /// At most this many.
        limit: u32,
    },
    /// Pending questions, oldest first.
    TaskList {
        /// At most this many.
        limit: u32,
    },
    /// The question of an execution. Read only.
    TaskGet {
        /// Which execution.
        execution: String,
    },
    /// Answer a question; replies when the program has run on to its next pause or end.
    TaskSubmit {
        /// Which execution.
        execution: String,
        /// The question that is answered; none = the pending one, whichever it is.
        task: Option<String>,
        /// The answer: any text, or JSON where the question has a schema.
        result: String,
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

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode)]
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
}

/// The answer of such a verb.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize)]
#[serde(untagged)]
pub enum DurableReply {
    /// A program.
    Program(Box<Program>),
    /// Programs.
    Programs(Vec<Program>),
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
}
