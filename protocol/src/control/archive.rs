//! Export and import of programs and executions. The file is text that the supervisor writes and reads; doors carry it in
//! parts, so that nobody has to hold a whole state.

use crate::codec::{Decode, Encode};
use serde::Serialize;

/// Largest part of a file in one request (bytes).
pub const PART_BYTES: usize = 1 << 20;

/// What is exported or imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum ArchiveKind {
    /// A program with all its versions.
    Program,
    /// An execution with what it runs and all that is kept of it.
    Execution,
}

/// How far an export is. Whoever exports gives it back as it came.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize)]
pub struct ExportCursor {
    /// Of what.
    pub id: [u8; 16],
    /// Which checkpoint is the last one in the file; 0 = none.
    pub checkpoint: u64,
    /// The chain of hashes over the records so far.
    pub chain: [u8; 32],
    /// Records so far.
    pub records: u64,
    /// What comes next.
    pub place: ExportPlace,
}

/// What comes next.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize)]
pub enum ExportPlace {
    /// Versions of a program behind this one.
    Versions(u32),
    /// Questions behind this checkpoint.
    Tasks(u64),
    /// Events behind this number.
    Events(u64),
    /// Versions of pages behind this page and checkpoint.
    Pages(u64, u64),
}

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize)]
pub struct ExportPart {
    /// Text that is appended to what came before.
    pub text: String,
    /// How far it is; none behind the last part.
    pub next: Option<ExportCursor>,
}

/// What becomes of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode)]
pub struct NewImport {
    /// What the file must be; none = whichever it is.
    pub kind: Option<ArchiveKind>,
    /// The execution's or the program's name, instead of the one in the file.
    pub name: Option<String>,
    /// Executions: the name of the program that is made of theirs, instead of the one in the file.
    pub program_name: Option<String>,
    /// Executions: the template with the limits; none = the built-in one.
    pub template: Option<String>,
    /// Executions: the folder whose files the program may use; none = no files.
    pub worktree_path: Option<String>,
}
