//! Calls of the `exec` module.

use crate::codec::{Decode, Encode};

/// A call of the `exec` module: one command, started without a shell, waited for to its end.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ExecRequest {
    /// The operator's name for it.
    pub command: String,
    /// Its arguments, without its own name.
    pub arguments: Vec<String>,
    /// What it reads.
    pub input: Vec<u8>,
    /// Folder in the worktree in which it starts; empty: the worktree.
    pub folder: String,
    /// Its environment beyond `PATH`, `HOME` and `LANG`.
    pub environment: Vec<(String, String)>,
}

/// What a command is, and what it may use up.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ExecTerms {
    /// The program that the operator listed (absolute).
    pub program: String,
    /// It sees the worktree.
    pub read: bool,
    /// It may change files of the worktree.
    pub write: bool,
    /// Longest time (milliseconds).
    pub timeout_ms: u32,
    /// Most that is kept of its output and of its errors (bytes each).
    pub max_output_bytes: u64,
    /// Memory of each of its processes (bytes).
    pub memory_bytes: u64,
    /// Its processes and threads at a time.
    pub processes: u32,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ExecReply {
    /// Its exit code, if it ended by itself.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// It was ended at its time limit.
    pub timed_out: bool,
    /// What it put out.
    pub stdout: Vec<u8>,
    /// Its errors.
    pub stderr: Vec<u8>,
    /// It put out more than is kept, and was ended for it.
    pub truncated: bool,
}
