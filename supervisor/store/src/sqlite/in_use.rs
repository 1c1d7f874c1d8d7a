//! A mark in the database file that a store has it open: its log has what the file lacks. By it a log is known to be lost, or cut: SQLite
//! takes one that is missing, empty, or shorter than it was for one in which less was written.
//!
//! The mark is written when a store begins and copied into the file at once. From then on the log has a valid header and at least the
//! size that the mark has. A stop removes the mark when everything else is copied back.

use super::check_file::unchanging;
use super::failure::{SqliteFailure, may_pass};
use super::open::{WAL_FILLED_BYTES, has_log_mode};
use super::recovery::{path_beside, unusable};
use super::transaction::transaction;
use super::{DatabaseLocation, Durability, wal_check};
use crate::error::OpenError;
use rusqlite::{Connection, OptionalExtension as _};
use std::path::Path;

/// The row of `meta`; its value is the least size of the log, in eight bytes (little-endian).
const KEY: &str = "in_use";
/// Times that the mark is read where the file cannot be read.
const ATTEMPTS: usize = 3;

/// Marks the database of a store that begins, unless it ends with its process. Without the space for it the store opens all the same.
pub(super) fn mark(connection: &Connection, location: &DatabaseLocation) {
    if location.durability == Durability::Off {
        // Without a name its sessions are of no other node either.
        let _ = transaction(connection, |c| name_node(c));
        return;
    }
    // A log that is longer than it was filled may be cut when it starts over (`journal_size_limit`).
    let log_bytes = std::fs::metadata(path_beside(location.file.path(), "-wal"))
        .map_or(0, |log| log.len())
        .min(WAL_FILLED_BYTES);
    let marked = transaction(connection, |c| {
        // The same number again: the first page with a later change counter is in the log, by which one of an earlier time is known
        // (`wal_check.rs`).
        let version: u32 = c.pragma_query_value(None, "user_version", |row| row.get(0))?;
        c.pragma_update(None, "user_version", version)?;
        c.execute("INSERT OR REPLACE INTO meta VALUES (?1, ?2)", (KEY, log_bytes.to_le_bytes()))?;
        name_node(c)
    });
    let copied = marked.and_then(|()| copy_back(connection, "PASSIVE"));
    if let Err(failure) = copied {
        let error = failure.into_store_error();
        tracing::warn!(%error, "the start is not noted in the database: if its log is lost, that will not be noticed");
    }
}

/// The row of `meta` with the node: a random number that the database has for ever, since its sessions are those of the process that has
/// it open. A database that moves to another state directory takes it along.
const NODE: &str = "node";

fn name_node(c: &Connection) -> Result<(), SqliteFailure> {
    c.execute("INSERT OR IGNORE INTO meta VALUES (?1, randomblob(16))", [NODE])?;
    Ok(())
}

/// Whether the process that had the database open before was killed. Unknown: it was not.
pub(super) fn is_marked(connection: &Connection) -> bool {
    let sql = "SELECT 1 FROM meta WHERE key = ?1";
    connection.prepare(sql).and_then(|mut statement| statement.exists([KEY])).unwrap_or(false)
}

/// Copies all of the log back and takes the mark away, in this order: when the store ends.
pub(super) fn copy_back_and_unmark(connection: &Connection) -> Result<(), SqliteFailure> {
    copy_back(connection, "TRUNCATE")?;
    transaction(connection, |c| Ok(c.execute("DELETE FROM meta WHERE key = ?1", [KEY])?))?;
    copy_back(connection, "TRUNCATE")
}

fn copy_back(connection: &Connection, mode: &str) -> Result<(), SqliteFailure> {
    let sql = format!("PRAGMA wal_checkpoint({mode})");
    let is_busy = connection.query_row(&sql, [], |row| row.get::<_, bool>(0))?;
    if is_busy {
        return Err(rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY),
            None,
        )
        .into());
    }
    Ok(())
}

/// Takes the mark away from a copy, which has no log.
pub(super) fn unmark_copy(copy: &Path) -> Result<(), rusqlite::Error> {
    let connection = Connection::open(copy)?;
    connection.execute_batch("PRAGMA journal_mode = off; PRAGMA synchronous = off")?;
    connection.execute("DELETE FROM meta WHERE key = ?1", [KEY]).map(drop)
}

/// Whether a database that no process has open was in use, and its log lacks what it had then. No connection of this process may have
/// the file open.
pub(super) fn lacks_its_log(database: &Path) -> Result<bool, OpenError> {
    let (log, index) = (path_beside(database, "-wal"), path_beside(database, "-shm"));
    let lacks = |bytes| {
        wal_check::lacks(&log, &index, bytes).map_err(|error| unusable(&log, "cannot be checked", &error))
    };
    // The file is read only where it matters: in the middle of a checkpoint it cannot be read without its log. A copy that SQLite made is
    // of another mode until it is opened.
    if !has_log_mode(database) || !lacks(WAL_FILLED_BYTES)? {
        return Ok(false);
    }
    log_bytes_when_marked(database).map_or(Ok(false), lacks)
}

fn log_bytes_when_marked(database: &Path) -> Option<u64> {
    let read = || {
        let sql = "SELECT value FROM meta WHERE key = ?1";
        unchanging(database)?.query_row(sql, [KEY], |row| row.get::<_, [u8; 8]>(0)).optional()
    };
    let read = (0..ATTEMPTS).map(|_| read()).find(|read| !matches!(read, Err(error) if may_pass(error)));
    read?.ok()?.map(u64::from_le_bytes)
}
