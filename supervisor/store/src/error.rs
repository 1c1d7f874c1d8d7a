//! Why a database cannot be opened, and what to do.

use std::path::PathBuf;

/// Why a store could not be opened. The message contains what to do.
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
        /// Its owner, if the lock file names it.
        pid: Option<u32>,
    },
    /// A newer version of the program has migrated the database.
    #[error(
        "{} has schema version {found}, this program supports up to {known}: start the newer program, or restore a backup",
        path.display()
    )]
    Newer {
        /// The database file.
        path: PathBuf,
        found: u32,
        /// The newest version that this program supports.
        known: u32,
    },
    /// The database was created by a program before the first release.
    #[error(
        "{} has schema version {found}, of a program before the first release: move it away, or choose another --state-dir",
        path.display()
    )]
    Unreleased {
        /// The database file.
        path: PathBuf,
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
        detail: String,
    },
    /// Another process holds the database without the lock file (a shell, a backup tool).
    #[error("{} is locked by another process: end it and try again", path.display())]
    Locked {
        /// The database file.
        path: PathBuf,
    },
    /// The directory or file belongs to another user.
    #[error("{}: permission denied: start as its owner, or choose another --state-dir", path.display())]
    Denied {
        /// The directory or file.
        path: PathBuf,
    },
    /// The state directory is not a folder.
    #[error("{} is not a folder: choose another --state-dir", path.display())]
    NotAFolder { path: PathBuf },
    /// The folder of a temporary database could not be created.
    #[error("{}: cannot create a folder for temporary files ({detail}): set TMPDIR to a folder that you may write", path.display())]
    NoTemporaryFolder {
        /// The parent folder.
        path: PathBuf,
        detail: String,
    },
    /// The directory or file cannot be used.
    #[error("{}: {detail}", path.display())]
    Unusable {
        /// The directory or file.
        path: PathBuf,
        detail: String,
    },
}
