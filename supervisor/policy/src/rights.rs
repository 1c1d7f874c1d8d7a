//! The rights of each host module with their defaults, and the intersection of two of them: every field of the result is at
//! most the smaller one of the two.

use super::paths::PathRules;
use std::collections::BTreeSet;
use vm_system_protocol::limits::{FS_DIR_ENTRIES, FS_READ_BYTES};

const MIB: u64 = 1 << 20;

/// The `fs` module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FsRights {
    /// Files that may be read; `None`: none.
    pub read: Option<PathRules>,
    /// Files that may be changed; `None`: none.
    pub write: Option<PathRules>,
    /// Calls of one execution.
    pub max_calls: u32,
    /// Bytes that one execution may read and write together.
    pub max_total_bytes: u64,
    /// Largest file that may be read or result from writing (bytes).
    pub max_file_bytes: u64,
    /// Most entries that one call lists or removes.
    pub max_entries: u32,
    /// Bytes that a session may write in its life.
    pub write_quota_bytes: u64,
}

impl Default for FsRights {
    /// The grant of the module without a row: reading the worktree.
    fn default() -> Self {
        Self {
            read: Some(PathRules::everything()),
            write: None,
            max_calls: 100_000,
            max_total_bytes: 1024 * MIB,
            max_file_bytes: FS_READ_BYTES as u64,
            max_entries: FS_DIR_ENTRIES as u32,
            write_quota_bytes: 256 * MIB,
        }
    }
}

impl FsRights {
    pub(super) fn and(self, other: &Self) -> Self {
        Self {
            read: both(self.read, other.read.as_ref()),
            write: both(self.write, other.write.as_ref()),
            max_calls: self.max_calls.min(other.max_calls),
            max_total_bytes: self.max_total_bytes.min(other.max_total_bytes),
            max_file_bytes: self.max_file_bytes.min(other.max_file_bytes),
            max_entries: self.max_entries.min(other.max_entries),
            write_quota_bytes: self.write_quota_bytes.min(other.write_quota_bytes),
        }
    }
}

/// The paths that both rules cover.
pub(super) fn both(one: Option<PathRules>, other: Option<&PathRules>) -> Option<PathRules> {
    Some(one?.and(other?))
}

/// The `database` module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseRights {
    /// Nothing may be changed.
    pub read_only: bool,
    /// Calls of one execution.
    pub max_calls: u32,
    /// Most rows of a result.
    pub max_rows: u32,
    /// Largest result, and largest single value (bytes).
    pub max_result_bytes: u64,
    /// Largest database file (bytes).
    pub max_database_bytes: u64,
    /// Longest time of one call (milliseconds).
    pub timeout_ms: u32,
}

impl Default for DatabaseRights {
    fn default() -> Self {
        Self {
            read_only: false,
            max_calls: 100_000,
            max_rows: 100_000,
            max_result_bytes: 16 * MIB,
            max_database_bytes: 256 * MIB,
            timeout_ms: 5_000,
        }
    }
}

impl DatabaseRights {
    pub(super) fn and(self, other: &Self) -> Self {
        Self {
            read_only: self.read_only || other.read_only,
            max_calls: self.max_calls.min(other.max_calls),
            max_rows: self.max_rows.min(other.max_rows),
            max_result_bytes: self.max_result_bytes.min(other.max_result_bytes),
            max_database_bytes: self.max_database_bytes.min(other.max_database_bytes),
            timeout_ms: self.timeout_ms.min(other.timeout_ms),
        }
    }
}

/// The `exec` module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecRights {
    /// Names of commands, of those that the operator listed.
    pub commands: BTreeSet<String>,
    /// Calls of one execution.
    pub max_calls: u32,
    /// Longest time of one command (milliseconds).
    pub timeout_ms: u32,
    /// Most kept output of a command, and most kept error output (bytes each).
    pub max_output_bytes: u64,
    /// Memory of each of its processes (bytes).
    pub memory_bytes: u64,
    /// Processes and threads of a command at a time.
    pub processes: u32,
}

impl Default for ExecRights {
    /// The grant of the module without a row: no commands. A row names them.
    fn default() -> Self {
        Self {
            commands: BTreeSet::new(),
            max_calls: 1_000,
            timeout_ms: 10_000,
            max_output_bytes: MIB,
            memory_bytes: 512 * MIB,
            processes: 32,
        }
    }
}

impl ExecRights {
    pub(super) fn and(self, other: &Self) -> Self {
        Self {
            commands: self.commands.intersection(&other.commands).cloned().collect(),
            max_calls: self.max_calls.min(other.max_calls),
            timeout_ms: self.timeout_ms.min(other.timeout_ms),
            max_output_bytes: self.max_output_bytes.min(other.max_output_bytes),
            memory_bytes: self.memory_bytes.min(other.memory_bytes),
            processes: self.processes.min(other.processes),
        }
    }
}
