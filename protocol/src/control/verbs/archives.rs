//! Verbs that export and import programs and executions, in parts.

use crate::codec::{Decode, Encode};
use crate::control::{ArchiveKind, ExportCursor};

/// A part of the export of a program or an execution.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ArchiveExport {
    pub kind: ArchiveKind,
    pub reference: String,
    /// The position after the previous part; none = the first part.
    pub after: Option<ExportCursor>,
}

/// Begin an import.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode)]
pub struct ImportBegin {
    /// The required kind of the file; none = any.
    pub kind: Option<ArchiveKind>,
    /// Replaces the execution's or the program's name in the file.
    pub name: Option<String>,
    /// Executions: replaces the program's name in the file.
    pub program_name: Option<String>,
    /// Executions: the template with the limits; none = the built-in one.
    pub template: Option<String>,
    /// Executions: the folder with the files that the program may use; none = no files.
    pub worktree_path: Option<String>,
    /// Executions: as in [`SessionCreate`](super::SessionCreate).
    pub as_user: Option<String>,
}

/// A part of the file, at most [`PART_BYTES`](crate::control::PART_BYTES).
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ImportPart {
    pub import: String,
    /// Number of bytes before this part.
    pub at: u64,
    pub bytes: Vec<u8>,
}

/// The file is complete: check it and create its program or execution, which is the reply.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ImportEnd {
    pub import: String,
}

/// Give up an import that is not complete: its file is dropped at once.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ImportDrop {
    pub import: String,
}
