//! Export and import of programs and executions. The file is text that the supervisor writes and reads; it is transferred
//! in parts, so that no process has to hold a whole state.

use crate::codec::{Decode, Encode};
use serde::Serialize;

/// Largest part of a file in one request (bytes).
pub const PART_BYTES: usize = 1 << 20;

/// The kind of an exported or imported object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum ArchiveKind {
    /// A program with all its versions.
    Program,
    /// An execution with its program, states, tasks and events.
    Execution,
}

/// The position of an export. The client returns it unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize)]
pub struct ExportCursor {
    pub id: [u8; 16],
    /// The last checkpoint in the file; 0 = none.
    pub checkpoint: u64,
    /// The hash chain over the records so far.
    pub chain: [u8; 32],
    /// Number of records so far.
    pub records: u64,
    /// The next record.
    pub place: ExportPlace,
}

/// The next record of an export.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize)]
pub enum ExportPlace {
    /// Versions of a program after this one.
    Versions(u32),
    /// Tasks after this checkpoint.
    Tasks(u64),
    /// Events after this number.
    Events(u64),
    /// Versions of pages after this page and checkpoint.
    Pages(u64, u64),
}

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize)]
pub struct ExportPart {
    /// Text to append to the previous parts.
    pub text: String,
    /// The position after this part; none after the last part.
    pub next: Option<ExportCursor>,
}
