//! Verbs of executions in sessions.

use crate::codec::{Decode, Encode};
use crate::control::{ListPage, Period};
use crate::json::JsonText;
use crate::model::{ExecutionKind, ExecutionStatus};

/// The path of a repl input of a shell, in which `_` is the value of the last one.
pub const INTERACTIVE_INPUT: &str = "repl.js";
/// The path of a repl input that is TypeScript.
pub const TYPESCRIPT_INPUT: &str = "repl.ts";

/// Run code in a session.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ExecStart {
    pub session: String,
    /// [`ExecutionKind::Repl`] (then `input`) or [`ExecutionKind::RunFile`] (then `path`).
    pub kind: ExecutionKind,
    /// Source text.
    pub input: Option<String>,
    /// File relative to the worktree; with `input` only its name. Of a repl input: none, [`INTERACTIVE_INPUT`] or
    /// [`TYPESCRIPT_INPUT`].
    pub path: Option<String>,
    /// Visible as `args` (an object).
    pub args: JsonText,
    /// Visible in `process.env`.
    pub env: Vec<(String, String)>,
    /// Visible as `process.argv` after the first two entries.
    pub argv: Vec<String>,
    /// Reply when the execution has ended (true), or as soon as it runs.
    pub wait: bool,
    /// Stream the events before the reply.
    pub follow: bool,
}

/// Executions of a session, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ExecList {
    pub session: String,
    /// Only of this status.
    pub status: Option<ExecutionStatus>,
    pub period: Period,
    pub page: ListPage,
}

/// One execution.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ExecGet {
    pub execution: String,
}

/// Events of an execution.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ExecEvents {
    pub execution: String,
    /// Only later events.
    pub after_seq: u64,
    /// At most this many; 0 = all.
    pub limit: u32,
    /// Stream further events until the execution ends.
    pub follow: bool,
}

/// Wait until an execution does not run: it has ended, or has a pending task. Returns at once if that is already so. Except for
/// a program that waits, the reply has the events, as many as fit. An end because of too much output is no error of this verb.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ExecWait {
    pub execution: String,
}

/// End a running execution as `cancelled`.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ExecCancel {
    pub execution: String,
}

impl ExecStart {
    /// An execution with default options: waits for the end, streams no events.
    pub fn new(session: impl Into<String>, kind: ExecutionKind) -> Self {
        Self {
            session: session.into(),
            kind,
            input: None,
            path: None,
            args: JsonText::empty_object(),
            env: Vec::new(),
            argv: Vec::new(),
            wait: true,
            follow: false,
        }
    }
}

impl ExecList {
    /// Executions of a session, whatever their status.
    pub fn all(session: impl Into<String>, page: ListPage) -> Self {
        Self { session: session.into(), status: None, period: Period::default(), page }
    }
}
