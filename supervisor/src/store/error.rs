//! How the store fails. Knows no SQLite: its messages name things of the domain, never tables or statements.

use std::fmt;
use std::path::PathBuf;

/// A batch or query that did not succeed. Nothing of a failed batch was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The batch contradicts what is stored; the same batch will fail again.
    #[error("{0}")]
    Rejected(Rejection),
    /// The database cannot be written or read at the moment (disk full, read-only, locked, I/O); later batches may
    /// work again. Doors say `STORAGE_UNAVAILABLE`.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// A stored row or the file itself is damaged.
    #[error("the store is damaged: {0}")]
    Corrupt(String),
    /// The store was shut down.
    #[error("the store is closed")]
    Closed,
}

/// Why a batch was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// Its id or name is taken.
    #[error("the {0} exists already")]
    Conflict(Entity),
    /// It is not there, or what it belongs to is not.
    #[error("there is no such {0}")]
    Missing(Entity),
    /// It has ended; final states never change.
    #[error("the {0} has ended")]
    Finished(Entity),
    /// It is larger than it may be.
    #[error("the {0} is too large")]
    TooLarge(Entity),
}

/// What a rejection is about.
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
    /// A pending question.
    Task,
    /// A checkpoint of an execution.
    Checkpoint,
    /// An idempotency key.
    Key,
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
        })
    }
}

impl StoreError {
    pub(crate) fn conflict(entity: Entity) -> Self {
        Self::Rejected(Rejection::Conflict(entity))
    }
    pub(crate) fn missing(entity: Entity) -> Self {
        Self::Rejected(Rejection::Missing(entity))
    }
    pub(crate) fn too_large(entity: Entity) -> Self {
        Self::Rejected(Rejection::TooLarge(entity))
    }
    pub(crate) fn finished(entity: Entity) -> Self {
        Self::Rejected(Rejection::Finished(entity))
    }
}

/// Why a store could not be opened. The message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another supervisor owns the state directory.
    #[error(
        "{} is in use by another supervisor{}: stop it first, or choose another --state-dir",
        path.display(), pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default()
    )]
    InUse {
        /// The state directory.
        path: PathBuf,
        /// Its owner, if the lock file says so.
        pid: Option<u32>,
    },
    /// A newer version of the program has migrated the database.
    #[error(
        "{} has schema version {found}, this program knows up to {known}: start the newer program, or restore a backup",
        path.display()
    )]
    Newer {
        /// The database file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest version that this program knows.
        known: u32,
    },
    /// A program before the first release has made the database.
    #[error(
        "{} has schema version {found}, of a program before the first release: move it away, or choose another --state-dir",
        path.display()
    )]
    Unreleased {
        /// The database file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// The file is not a database of ours, or damaged.
    #[error(
        "{} is damaged or not a database ({detail}): move it away and restore a backup, or start with an empty state directory",
        path.display()
    )]
    Corrupt {
        /// The database file.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// Another process holds the database without the lock file (a shell, a backup tool).
    #[error("{} is locked by another process: end it and try again", path.display())]
    Locked {
        /// The database file.
        path: PathBuf,
    },
    /// Somebody else's.
    #[error("{}: permission denied: start as its owner, or choose another --state-dir", path.display())]
    Denied {
        /// The directory or file.
        path: PathBuf,
    },
    /// The state directory is something else.
    #[error("{} is no folder: choose another --state-dir", path.display())]
    NotAFolder {
        /// What was named.
        path: PathBuf,
    },
    /// There is no folder for a database that ends with its process.
    #[error("{}: no folder for temporary files can be made ({detail}): set TMPDIR to a folder that you may write", path.display())]
    NoTemporaryFolder {
        /// Where it was to be made.
        path: PathBuf,
        /// What happened.
        detail: String,
    },
    /// The directory or file cannot be used.
    #[error("{}: {detail}", path.display())]
    Unusable {
        /// The directory or file.
        path: PathBuf,
        /// What happened.
        detail: String,
    },
}
