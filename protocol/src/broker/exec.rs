//! Calls of the `exec` module.

use crate::codec::{Decode, Encode};

/// A call of the `exec` module: runs one command, without a shell, to its end.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ExecRequest {
    /// The operator's name of the command.
    pub command: String,
    /// Without the command's own name.
    pub arguments: Vec<String>,
    /// Standard input.
    pub input: Vec<u8>,
    /// Working directory, beneath the worktree; empty: the worktree.
    pub folder: String,
    /// Variables besides `PATH`, `HOME` and `LANG`.
    pub environment: Vec<(String, String)>,
}

/// The program of a command, and its limits.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ExecTerms {
    /// The program that the operator listed (absolute).
    pub program: String,
    /// The command can read the worktree.
    pub read: bool,
    /// The command may change files of the worktree.
    pub write: bool,
    /// Longest time (milliseconds).
    pub timeout_ms: u32,
    /// Longest standard output and standard error (bytes each); more ends the command.
    pub max_output_bytes: u64,
    /// Memory of each process of the command (bytes).
    pub memory_bytes: u64,
    /// Processes and threads of the command at a time.
    pub processes: u32,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ExecReply {
    /// The exit code, if the command exited by itself.
    pub code: Option<i32>,
    /// The signal that ended the command.
    pub signal: Option<i32>,
    /// The command was killed at its time limit.
    pub timed_out: bool,
    /// Standard output and standard error.
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// The command was killed because it wrote more than the limit.
    pub truncated: bool,
}
