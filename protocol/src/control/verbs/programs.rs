//! Verbs of durable programs and plans.

use crate::codec::{Decode, Encode};
use crate::control::{ListPage, Period};
use serde::{Deserialize, Serialize};

/// Compile a source text and store it; another text under the same name creates a new version.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode)]
pub struct ProgramLoad {
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

/// Programs, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode)]
pub struct ProgramList {
    /// Only with exactly this name.
    pub name: Option<String>,
    pub period: Period,
    /// Only of this owner; for administrators.
    pub owner: Option<String>,
    pub page: ListPage,
}

/// One program with its source.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ProgramGet {
    pub program: String,
    /// The source of this version; none = the newest.
    pub version: Option<u32>,
}

/// Versions of a program without their sources, newest first. The cursor of a version is its time, with its number as id.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ProgramVersions {
    pub program: String,
    pub page: ListPage,
}

/// Delete a program; its executions continue.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ProgramDelete {
    pub program: String,
}

/// Run a program, or with `NAME@VERSION` that version of it. Replies at its first pause or end, or as soon as its start is stored.
/// A schedule stores it as JSON: another field is another schema version.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramStart {
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
    /// As in [`SessionCreate`](super::SessionCreate).
    pub as_user: Option<String>,
    /// Reply at the first pause or end (true), or as soon as the start is stored.
    #[serde(skip)]
    pub wait: bool,
}

/// Counts of programs and executions.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ProgramTotals;

/// Compile a plan, or report its errors. Stores nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode)]
pub struct PlanCheck {
    /// The file's name, for messages.
    pub file: String,
    pub text: String,
    /// Name and text of each file that the plan lists, except files that do not exist.
    pub parts: Vec<(String, String)>,
}

/// Store the built-in program for a plan under a name, like any program.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct PlanLoad {
    /// The program's name.
    pub name: String,
    /// A compiled plan: the text of `uplan.json`.
    pub plan: String,
    /// Ids of blocks that are done already.
    pub done: Vec<String>,
}

impl Default for ProgramStart {
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
