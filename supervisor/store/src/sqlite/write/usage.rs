//! Bytes that each owner stores in executions with their parts, keys and lines of the audit log: summed up in memory, and added to the
//! owner's row once for each commit. Triggers (`schema.sql`) count all other rows, of which a batch has few.
//!
//! A trigger for each page looked the owner up, and wrote its row again and again.

use super::run;
use crate::sqlite::failure::SqliteFailure;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use std::cell::RefCell;
use std::ops::Deref;
use vm_system_protocol::ids::ExecutionId;
use vm_system_record::Checkpoint;

/// A connection in a transaction of the writer, with the bytes that the current batch has added and taken away.
pub(in crate::sqlite) struct CountedConnection<'c> {
    connection: &'c Connection,
    usage: RefCell<Usage>,
}

/// Sums of a batch.
#[derive(Default)]
struct Usage {
    /// The executions of the batch: few, so that a list is the fastest map.
    executions: Vec<(ExecutionId, i64)>,
    owners: Vec<(String, i64)>,
}

fn add<K: PartialEq>(sums: &mut Vec<(K, i64)>, key: K, bytes: i64) {
    match sums.iter_mut().find(|(counted, _)| *counted == key) {
        Some((_, sum)) => *sum += bytes,
        None => sums.push((key, bytes)),
    }
}

impl Deref for CountedConnection<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection
    }
}

impl<'c> CountedConnection<'c> {
    pub(in crate::sqlite) fn new(connection: &'c Connection) -> Self {
        Self { connection, usage: RefCell::default() }
    }

    /// Adds bytes to what the owner of an execution stores, or takes them away.
    pub(super) fn count(&self, execution: ExecutionId, bytes: i64) {
        add(&mut self.usage.borrow_mut().executions, execution, bytes);
    }

    /// Adds bytes to what an owner stores, or takes them away.
    pub(super) fn count_of(&self, owner: &str, bytes: i64) {
        let owners = &mut self.usage.borrow_mut().owners;
        match owners.iter_mut().find(|(counted, _)| counted == owner) {
            Some((_, sum)) => *sum += bytes,
            None => owners.push((owner.to_owned(), bytes)),
        }
    }

    /// Adds the sum of an execution to its owner's: before its row is deleted, which has the owner.
    pub(super) fn settle(&self, execution: ExecutionId) -> Result<(), rusqlite::Error> {
        let known = {
            let executions = &mut self.usage.borrow_mut().executions;
            let place = executions.iter().position(|(counted, _)| *counted == execution);
            place.map(|place| executions.swap_remove(place).1)
        };
        match known {
            Some(bytes) if bytes != 0 => {
                let sql = "SELECT owner FROM executions WHERE id = ?1";
                let owner: Option<String> = self
                    .prepare_cached(sql)?
                    .query_row([execution.as_bytes()], |row| row.get(0))
                    .optional()?;
                // One that was begun and deleted in this batch has settled before.
                if let Some(owner) = owner {
                    self.count_of(&owner, bytes);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Writes the sums, at the end of a batch.
    pub(in crate::sqlite) fn write_usage(&self) -> Result<(), rusqlite::Error> {
        let executions: Vec<_> =
            self.usage.borrow().executions.iter().map(|(execution, _)| *execution).collect();
        for execution in executions {
            self.settle(execution)?;
        }
        for (owner, bytes) in self.usage.take().owners.into_iter().filter(|(_, bytes)| *bytes != 0) {
            let sql = "INSERT INTO owners VALUES (?1, max(0, ?2))
                 ON CONFLICT (owner) DO UPDATE SET bytes = max(0, bytes + ?2)";
            run(self, sql, params![owner, bytes])?;
        }
        Ok(())
    }

    /// The batch is refused: what it has written is taken back.
    pub(in crate::sqlite) fn forget_usage(&self) {
        self.usage.take();
    }

    /// Runs a deletion of rows of an execution that returns the bytes of each row; the number of rows.
    pub(super) fn delete(
        &self,
        execution: ExecutionId,
        sql: &str,
        params: impl rusqlite::Params,
        bytes_of: impl Fn(&Row<'_>) -> Result<i64, rusqlite::Error>,
    ) -> Result<u64, rusqlite::Error> {
        let mut statement = self.prepare_cached(sql)?;
        let mut deleted = statement.query(params)?;
        let (mut rows, mut bytes) = (0, 0);
        while let Some(row) = deleted.next()? {
            bytes -= bytes_of(row)?;
            rows += 1;
        }
        self.count(execution, bytes);
        Ok(rows)
    }

    /// As [`Self::delete`], of rows that belong to no execution: owner and bytes are the first two columns.
    pub(super) fn delete_of_owners(
        &self,
        sql: &str,
        params: impl rusqlite::Params,
    ) -> Result<u64, rusqlite::Error> {
        let mut statement = self.prepare_cached(sql)?;
        let mut deleted = statement.query(params)?;
        let mut rows = 0;
        while let Some(row) = deleted.next()? {
            let owner = row.get_ref(0)?.as_str().unwrap_or_default();
            self.count_of(owner, -row.get::<_, i64>(1)?);
            rows += 1;
        }
        Ok(rows)
    }

    /// Counts what a change does to the size of the row of an execution.
    pub(super) fn resize<T>(
        &self,
        execution: ExecutionId,
        change: impl FnOnce() -> Result<T, SqliteFailure>,
    ) -> Result<T, SqliteFailure> {
        let before = execution_bytes(self, execution)?;
        let changed = change()?;
        self.count(execution, execution_bytes(self, execution)? - before);
        Ok(changed)
    }
}

/// The bytes of the row of an execution with its output; 0: there is none.
pub(super) fn execution_bytes(c: &Connection, execution: ExecutionId) -> Result<i64, rusqlite::Error> {
    let sql = "SELECT events, output_bytes, octet_length(args) + octet_length(env) + coalesce(octet_length(input), 0)
         + coalesce(octet_length(result), 0) FROM executions WHERE id = ?1";
    let found = c.prepare_cached(sql)?.query_row([execution.as_bytes()], |row| {
        Ok(EXECUTION_BYTES + output_bytes(row.get(0)?, row.get(1)?) + text_bytes(row.get(2)?))
    });
    Ok(found.optional()?.unwrap_or(0))
}

/// The bytes of so many events with so much text. A damaged size counts up to 2^40 bytes.
pub(super) fn output_bytes(events: i64, output: i64) -> i64 {
    let (events, output) = (events.min(1_000_000_000), output.min(1 << 40));
    128 * events + output + 4_096 * events.min(output / 1_500)
}

/// The bytes of the texts of an execution: what is larger than a part of a page has pages of its own.
pub(super) fn text_bytes(texts: i64) -> i64 {
    texts + 4_096 * (texts / 700).min(1)
}

/// The bytes of a key with its response.
pub(super) fn key_bytes(key: &str, reply: u64) -> i64 {
    256 + key.len() as i64 + counted_page(reply)
}

/// [`key_bytes`] of a row.
pub(super) const KEY_BYTES: &str = "256 + octet_length(key) + CASE WHEN coalesce(length(reply), 0) <= 962
    THEN 60 + coalesce(length(reply), 0) * 3 / 2 ELSE 1024 + (coalesce(length(reply), 0) + 3129) / 4092 * 4096 END";

/// The row of an execution without its texts and its output (bytes).
pub(super) const EXECUTION_BYTES: i64 = 1_024;
/// The row of a line of the audit log without its subject (bytes).
pub(super) const LINE_BYTES: i64 = 256;

/// The bytes that a page takes in the file, of its length in the first column; NULL: the page is gone.
pub(super) fn page_bytes(row: &Row<'_>) -> Result<i64, rusqlite::Error> {
    let length: Option<i64> = row.get(0)?;
    Ok(counted_page(length.unwrap_or(0).cast_unsigned()))
}

/// The bytes of a page with so much content.
pub(super) fn counted_page(content: u64) -> i64 {
    Checkpoint::page_file_bytes(content).cast_signed()
}

/// The bytes of a checkpoint, of the length of its list of pages in the first column.
pub(super) fn checkpoint_bytes(row: &Row<'_>) -> Result<i64, rusqlite::Error> {
    let list: Option<i64> = row.get(0)?;
    Ok(CHECKPOINT_BYTES + list.unwrap_or(0))
}

/// The row of a checkpoint without its list of pages (bytes).
pub(super) const CHECKPOINT_BYTES: i64 = 256;
/// The row of an item without its texts (bytes).
pub(super) const ITEM_BYTES: i64 = 512;
/// The row of an event in a mailbox without its texts (bytes).
pub(super) const MAIL_BYTES: i64 = 128;
