//! Gives free pages of the database file back to the file system, in pieces while the writer has nothing else to do: what was deleted
//! leaves them, and they are used again before the file grows. A file without pointer maps keeps its size.

use super::failure::SqliteFailure;
use super::transaction::transaction_on_pages;
use rusqlite::Connection;
use std::time::{Duration, Instant};

/// Free pages that are kept for what is written next (16 MiB).
const KEPT_PAGES: u64 = 4_096;
/// Giving back begins when so many are free, and more than a quarter of the file (32 MiB).
const BEGIN_PAGES: u64 = 8_192;
/// Pages of one piece: about as much work as a commit.
const PIECE_PAGES: u64 = 64;
/// Between two pieces (at most 12 MiB/s).
const PAUSE: Duration = Duration::from_millis(20);

/// How far giving back is.
#[derive(Debug)]
pub(super) struct FreeSpace {
    /// The file has pointer maps: any page can be moved.
    is_possible: bool,
    /// When the next piece is due; none: there is nothing to give back.
    next_at: Option<Instant>,
}

/// Size of a database.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DatabasePages {
    pub(super) pages: u64,
    pub(super) free: u64,
    pub(super) page_bytes: u64,
}

impl DatabasePages {
    pub(super) fn measure(connection: &Connection) -> Self {
        let pragma = |name| number(connection, name).unwrap_or(0);
        Self { pages: pragma("page_count"), free: pragma("freelist_count"), page_bytes: pragma("page_size") }
    }

    pub(super) fn bytes(self) -> u64 {
        self.pages.saturating_mul(self.page_bytes)
    }

    pub(super) fn used_bytes(self) -> u64 {
        self.pages.saturating_sub(self.free).saturating_mul(self.page_bytes)
    }

    pub(super) fn free_bytes(self) -> u64 {
        self.free.saturating_mul(self.page_bytes)
    }
}

fn number(connection: &Connection, pragma: &str) -> Result<u64, rusqlite::Error> {
    connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0)).map(i64::cast_unsigned)
}

/// Whether a database has pointer maps, by which free pages can be given back in pieces.
pub(super) fn has_pointer_maps(connection: &Connection) -> Result<bool, rusqlite::Error> {
    number(connection, "auto_vacuum").map(|mode| mode == 2)
}

impl FreeSpace {
    pub(super) fn new(connection: &Connection) -> Self {
        Self { is_possible: has_pointer_maps(connection).unwrap_or(false), next_at: None }
    }

    pub(super) fn is_possible(&self) -> bool {
        self.is_possible
    }

    /// To be called when the size was read.
    pub(super) fn measured(&mut self, size: DatabasePages, now: Instant) {
        // Free pages are used again: giving them back pays only if many stay free.
        let is_much = size.free >= BEGIN_PAGES && size.free >= size.pages / 4;
        if self.is_possible && is_much && self.next_at.is_none() {
            tracing::info!(
                bytes = size.free_bytes(),
                "free space of the database file is given back, but for 16 MiB"
            );
            self.next_at = Some(now);
        }
    }

    /// When the next piece is due, if there is one.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.next_at
    }

    /// Does a piece if one is due; returns how many pages it gave back. The file gets smaller when the log is copied into it.
    pub(super) fn piece(&mut self, connection: &Connection, now: Instant) -> Result<u64, SqliteFailure> {
        if self.next_at.is_none_or(|at| at > now) {
            return Ok(0);
        }
        // After a failure it begins again when the size is read again.
        self.next_at = None;
        // Some stay free: the next writes take them without enlarging the file.
        let pages = number(connection, "freelist_count")?.saturating_sub(KEPT_PAGES).min(PIECE_PAGES);
        if pages > 0 {
            transaction_on_pages(connection, |c| give_back(c, pages))?;
            self.next_at = Some(Instant::now() + PAUSE);
        }
        Ok(pages)
    }
}

fn give_back(c: &Connection, pages: u64) -> Result<(), SqliteFailure> {
    // One page for each row of the result.
    let mut statement = c.prepare(&format!("PRAGMA incremental_vacuum({pages})"))?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(())
}
