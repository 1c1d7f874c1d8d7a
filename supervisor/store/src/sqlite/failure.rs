//! Maps SQLite's errors to the store's. The only module that interprets SQLite's error codes, for the caller and for the writer.

use rusqlite::ErrorCode;
use rusqlite::ffi;
use vm_system_record::{Entity, StoreError};

/// The message about a disk that fails to read.
pub(super) const READ_ERROR: &str = "the disk reports an error when the database is read (EIO)";
/// The message about an error that looks like damage, before it has been examined.
pub(super) const SUSPECTED: &str = "the disk reports an error when the database is read (EIO), or the database is damaged, which is \
     being examined";

/// An error inside a transaction.
#[derive(Debug)]
pub(super) enum SqliteFailure {
    /// The batch is invalid; the transaction continues without it.
    Batch(StoreError),
    /// The database failed.
    Database(rusqlite::Error),
}

impl From<rusqlite::Error> for SqliteFailure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

impl From<StoreError> for SqliteFailure {
    fn from(error: StoreError) -> Self {
        Self::Batch(error)
    }
}

impl SqliteFailure {
    pub(super) fn into_store_error(self) -> StoreError {
        match self {
            Self::Batch(error) => error,
            Self::Database(error) => store_error(&error),
        }
    }
}

/// Maps violated constraints to rejections.
pub(super) trait Constrained<T> {
    /// A taken key is `Conflict(conflict)`, a missing parent (or a value copied from it) `Missing(missing)`.
    fn constrained(self, conflict: Entity, missing: Entity) -> Result<T, SqliteFailure>;
}

impl<T> Constrained<T> for Result<T, rusqlite::Error> {
    fn constrained(self, conflict: Entity, missing: Entity) -> Result<T, SqliteFailure> {
        self.map_err(|error| match error.sqlite_extended_error_code() {
            Some(ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY) => {
                SqliteFailure::Batch(StoreError::conflict(conflict))
            }
            Some(ffi::SQLITE_CONSTRAINT_FOREIGNKEY | ffi::SQLITE_CONSTRAINT_NOTNULL) => {
                SqliteFailure::Batch(StoreError::missing(missing))
            }
            _ => SqliteFailure::Database(error),
        })
    }
}

/// The caller's error. Messages carry no statement and no path.
pub(super) fn store_error(error: &rusqlite::Error) -> StoreError {
    let text = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "the disk is full",
        Some(ErrorCode::ReadOnly) => "the database is read-only",
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "the database is locked by another process"
        }
        Some(ErrorCode::SystemIoFailure) if is_read_error(error) => READ_ERROR,
        Some(ErrorCode::SystemIoFailure) => "the disk reports an error",
        Some(ErrorCode::CannotOpen) => "the database file cannot be opened",
        Some(ErrorCode::OutOfMemory) => "there is not enough memory",
        Some(ErrorCode::PermissionDenied | ErrorCode::AuthorizationForStatementDenied) => {
            "the database may not be accessed"
        }
        Some(ErrorCode::FileLockingProtocolFailed) => "the database's locks fail",
        Some(ErrorCode::TooBig) => "a value is too large",
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            return StoreError::Corrupt("the database file is damaged".to_owned());
        }
        _ => return StoreError::Corrupt(format!("unexpected database error: {error}")),
    };
    StoreError::Unavailable(text.to_owned())
}

/// Whether the disk fails to read.
pub(super) fn is_read_error(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_extended_error_code(),
        Some(ffi::SQLITE_IOERR_READ | ffi::SQLITE_IOERR_SHORT_READ | ffi::SQLITE_IOERR_CORRUPTFS)
    )
}

/// Whether another attempt, on another connection, may succeed because only a read failed (`second_look.rs`).
pub(super) fn may_pass(error: &rusqlite::Error) -> bool {
    is_damage(error) || is_read_error(error)
}

/// Whether the file is damaged, or a disk that failed to read looks like that.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// Whether every other batch would fail too, so that single retries are useless.
pub(super) fn hopeless(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::ReadOnly)
    )
}

/// Whether the connection must be replaced before the next use.
pub(super) fn poisoned(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::SystemIoFailure
                | ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase
                | ErrorCode::CannotOpen
                | ErrorCode::FileLockingProtocolFailed
                | ErrorCode::ReadOnly
        )
    )
}
