//! Verbs of the supervisor itself, its audit log and its database.

use crate::codec::{Decode, Encode};
use crate::time::Timestamp;

/// Check that the supervisor responds.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct HealthGet;

/// The live sessions.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct RuntimeSummaryGet;

/// Version, layers in force, zygotes, totals, store lag.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct RuntimeInfoGet;

/// The layers of the jail, and the layers that the host supports.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Doctor;

/// Stop the supervisor: drain, TERM, KILL.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Shutdown;

/// The audit log, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct AuditList {
    /// Only entries with a smaller number.
    pub before: Option<u64>,
    /// At most this many.
    pub limit: u32,
}

/// Copy the control database for this client. Administrators only, as the two below.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct BackupBegin;

/// A part of a copy.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct BackupPart {
    pub backup: String,
    /// Offset in the file (bytes).
    pub at: u64,
}

/// The copy is not needed any more.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct BackupEnd {
    pub backup: String,
}

/// Check the control database. Administrators only.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct DatabaseCheck;

/// Which builds the workers run. Administrators only, as the next.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Upgrade;

/// By when workers of other builds than the supervisor's are replaced; none: not at all. The reply is as for [`Upgrade`].
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct UpgradeDrain {
    pub drain_by: Option<Timestamp>,
}
