//! A count of the commits, which each of them raises: by it a log is known that is older than the database beside it. SQLite would
//! copy the older pages of such a log over newer ones.
//!
//! A checkpoint copies the count into the database file with all else up to some commit. The connection that has recovered the log sees
//! the count of its last commit. If the file has a higher one, the log lacks commits that are in the file, at least in part.

use super::check_file::unchanging;
use super::failure::SqliteFailure;
use rusqlite::Connection;
use std::path::Path;

/// The row in the table of owners that has the count: nearly every commit writes this table, so it is no page more. No owner has
/// a name in parentheses but for those of the supervisor itself.
pub(super) const COUNT: &str = "(commits)";

/// Raises the count, in the transaction of a commit.
pub(super) fn raise(c: &Connection) -> Result<(), SqliteFailure> {
    c.prepare_cached("UPDATE owners SET bytes = bytes + 1 WHERE owner = ?1")?.execute([COUNT])?;
    Ok(())
}

/// The count that a connection sees; none where the table cannot be read.
pub(super) fn seen_by(c: &Connection) -> Option<i64> {
    c.query_row("SELECT bytes FROM owners WHERE owner = ?1", [COUNT], |row| row.get(0)).ok()
}

/// The count in the database file alone, without its log. None as well for a file in the middle of a checkpoint whose table cannot be
/// read. No connection of this process may have the file open: SQLite's locks would be dropped.
pub(super) fn in_file(database: &Path) -> Option<i64> {
    seen_by(&unchanging(database).ok()?)
}

/// How many commits a database file has that are not in its log, which the connection has recovered.
pub(super) fn missing_from_log(in_file: Option<i64>, recovered: &Connection) -> Option<u64> {
    let missing = in_file?.saturating_sub(seen_by(recovered).unwrap_or(-1));
    u64::try_from(missing).ok().filter(|missing| *missing > 0)
}
