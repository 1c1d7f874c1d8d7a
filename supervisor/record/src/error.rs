//! Errors of a batch or a query. Messages name objects of the product, never tables or statements.

use std::fmt;

/// Why a batch or query failed. Nothing of a failed batch was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The batch contradicts the stored rows; the same batch will fail again.
    #[error("{0}")]
    Rejected(Rejection),
    /// The database cannot be written or read at the moment (disk full, read-only, locked, I/O); later batches may
    /// work again. The APIs report `STORAGE_UNAVAILABLE`.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// A stored row or the file itself is damaged.
    #[error("the store is damaged: {0}")]
    Corrupt(String),
    /// Another holder has taken the execution over, or has written a checkpoint: the writer must stop, and begin again from the stored
    /// rows. Only batches with a [`Guard`](crate::Guard).
    #[error("the execution was taken over by another part of the supervisor")]
    Fenced,
    /// The store was shut down.
    #[error("the store is closed")]
    Closed,
}

/// Why a batch was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The id or name is taken.
    #[error("the {0} exists already")]
    Conflict(Entity),
    /// The row or its parent does not exist.
    #[error("there is no such {0}")]
    Missing(Entity),
    /// The row has ended; final states never change.
    #[error("the {0} has ended")]
    Finished(Entity),
    /// The row is larger than permitted.
    #[error("the {0} is too large")]
    TooLarge(Entity),
    /// A limit of what is stored does not allow it.
    #[error("{0}")]
    Limit(StorageLimit),
}

/// A limit of what is stored, by the operator's setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StorageLimit {
    /// The quota of one owner.
    #[error("its owner stores more than owner_quota_mb")]
    OwnerQuota,
    /// Of what one owner writes in a minute.
    #[error("its owner writes more state than owner_write_mb_per_min")]
    WriteRate,
    /// Of the whole database: the programs of those who store most end first.
    #[error("the database is larger than quota_mb, and its owner is one of those who store most")]
    DatabaseQuota,
}

impl StorageLimit {
    /// The operator's setting.
    pub fn setting(self) -> &'static str {
        match self {
            Self::OwnerQuota => "owner_quota_mb",
            Self::WriteRate => "owner_write_mb_per_min",
            Self::DatabaseQuota => "quota_mb",
        }
    }
}

/// The kind of object that a rejection concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Entity {
    /// A template.
    Template,
    /// A capability row of a template.
    Capability,
    /// A startup file of a template.
    StartupFile,
    /// An installed library.
    Library,
    /// A session.
    Session,
    /// An execution.
    Execution,
    /// An event of an execution.
    Event,
    /// A program or one of its versions.
    Program,
    /// A pending task.
    Task,
    /// A checkpoint of an execution.
    Checkpoint,
    /// An idempotency key.
    Key,
    /// A schedule of a program.
    Schedule,
}

impl fmt::Display for Entity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Template => "template",
            Self::Capability => "capability",
            Self::StartupFile => "startup file",
            Self::Library => "library",
            Self::Session => "session",
            Self::Execution => "execution",
            Self::Event => "event",
            Self::Program => "program",
            Self::Task => "task",
            Self::Checkpoint => "checkpoint",
            Self::Key => "idempotency key",
            Self::Schedule => "schedule",
        })
    }
}

impl StoreError {
    pub fn conflict(entity: Entity) -> Self {
        Self::Rejected(Rejection::Conflict(entity))
    }
    pub fn missing(entity: Entity) -> Self {
        Self::Rejected(Rejection::Missing(entity))
    }
    pub fn too_large(entity: Entity) -> Self {
        Self::Rejected(Rejection::TooLarge(entity))
    }
    pub fn finished(entity: Entity) -> Self {
        Self::Rejected(Rejection::Finished(entity))
    }
}
