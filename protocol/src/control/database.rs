//! Copies and checks of the control database, for its operator.

use crate::codec::{Decode, Encode};
use crate::time::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

/// A copy of the database that the daemon keeps for its client until it is transferred.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize)]
pub struct BackupInfo {
    /// Names the copy in further requests.
    pub id: String,
    /// Size of the file.
    pub bytes: u64,
    /// SHA-256 of the file (hexadecimal).
    pub sha256: String,
    /// When it was begun: everything that was acknowledged before is in it.
    pub at: Timestamp,
}

/// The result of a check of the control database.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode, Serialize)]
pub struct CheckReport {
    /// Nothing was found.
    pub ok: bool,
    /// The schema version of the database; absent if it cannot be read.
    pub schema: Option<u32>,
    /// Size of the database file and of its log.
    pub bytes: u64,
    /// The time of the newest record that can be read: of later ones nothing is left.
    pub newest_record: Option<Timestamp>,
    /// The findings, at most [`CHECK_FINDINGS`] of them.
    pub findings: Vec<CheckFinding>,
    /// The number of further findings.
    pub more: u64,
}

/// Most findings of a report.
pub const CHECK_FINDINGS: usize = 1_000;

/// Something that a check found.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize)]
pub struct CheckFinding {
    /// Which check: `log`, `structure`, `reading`, `references`, `events`, `executions`, `checkpoints`, `counters`.
    pub check: String,
    /// The kind of object that is damaged: `execution`, `session`, `program`, `owner`; absent: it is not known, or no single
    /// object.
    pub object: Option<String>,
    /// The object's id, or the owner's name.
    pub id: Option<String>,
    pub detail: String,
}

impl CheckReport {
    /// Adds a finding, or counts it.
    pub fn add(&mut self, check: &str, about: Option<(&str, String)>, detail: impl Into<String>) {
        self.ok = false;
        if self.findings.len() >= CHECK_FINDINGS {
            self.more += 1;
            return;
        }
        let (object, id) = about.map(|(object, id)| (object.to_owned(), id)).unzip();
        self.findings.push(CheckFinding { check: check.to_owned(), object, id, detail: detail.into() });
    }
}

/// The size of the database file.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, JsonSchema)]
pub struct DatabaseSize {
    /// Bytes in use; `quota_mb` counts these.
    pub used_bytes: u64,
    /// Bytes of deleted records, used again before the file grows.
    pub free_bytes: u64,
    /// Much free space is given back to the file system.
    pub gives_back: bool,
}
