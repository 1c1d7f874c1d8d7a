//! Calls of the `exec` module.

use crate::codec::{Decode, Encode};

/// A call of the `exec` module: runs one command, without a shell, to its end.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ExecRequest {
    /// The operator's name for it.
    pub command: String,
    /// Its arguments, without its own name.
    pub arguments: Vec<String>,
    /// Its standard input.
    pub input: Vec<u8>,
    /// Folder in the worktree in which it starts; empty: the worktree.
    pub folder: String,
    /// Its environment beyond `PATH`, `HOME` and `LANG`.
    pub environment: Vec<(String, String)>,
}

/// The program of a command, and its limits.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ExecTerms {
    /// The program that the operator listed (absolute).
    pub program: String,
    /// It can read the worktree.
    pub read: bool,
    /// It may change files of the worktree.
    pub write: bool,
    /// Longest time (milliseconds).
    pub timeout_ms: u32,
    /// Longest standard output and standard error (bytes each); more ends the command.
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
    /// Standard output and standard error.
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// It was killed because it wrote more than the limit.
    pub truncated: bool,
}
