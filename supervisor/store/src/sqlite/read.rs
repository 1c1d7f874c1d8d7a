//! The reads of [`StoreReads`](crate::StoreReads), each on a read-only connection, under the same name. Every list is read in the
//! order of an index.

mod audit_and_keys;
mod claims;
#[cfg(test)]
pub(super) mod costs;
mod durable;
mod executions;
mod lists;
mod merge;
mod pages;
mod schedules;
mod sessions;
mod templates;

pub(super) use audit_and_keys::{audit, ids, key, key_subjects, meta};
pub(super) use claims::{claimable, first_wake, goes_on, unfinished_runs};
pub(super) use durable::{
    abandoned, checkpoints, current, event_waiters, items_at, items_of_run, last_checkpoint, mailbox,
    page_versions, pending_task, program, program_by_name, program_code, program_counts, program_run,
    program_versions, prompts, run_by_id, run_by_name, run_head, task, task_of, versions_of_source,
    waiting_for,
};
pub(super) use executions::{execution, execution_by_name, executions, some_events};
pub(super) use lists::{programs, runs, tasks};
pub(super) use pages::state_part;
pub(super) use schedules::{due_schedules, first_due, schedule, schedule_by_name, schedule_count, schedules};
pub(super) use sessions::{live_sessions, session, session_events, session_policy, sessions};
pub(super) use templates::{libraries, template, template_by_name, templates};

use crate::sqlite::failure::store_error;
use rusqlite::types::Value;
use rusqlite::{Connection, Row, StatementStatus, params_from_iter};
use std::str::FromStr;
use vm_system_protocol::control::Period;
use vm_system_protocol::time::Timestamp;
use vm_system_record::{Cursor, PAGE_BYTES, Page, Scope, StoreError};

/// Why a query failed.
pub(super) enum ReadError {
    Database(rusqlite::Error),
    Damaged(&'static str),
}

impl ReadError {
    /// The row has an invalid value; the database itself can be read.
    pub(super) fn is_of_one_row(&self) -> bool {
        use rusqlite::Error as Sql;
        match self {
            Self::Damaged(_) => true,
            Self::Database(error) => matches!(
                error,
                Sql::FromSqlConversionFailure(..)
                    | Sql::IntegralValueOutOfRange(..)
                    | Sql::InvalidColumnType(..)
                    | Sql::Utf8Error(..)
            ),
        }
    }
}

impl From<rusqlite::Error> for ReadError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

impl From<ReadError> for StoreError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Database(error) => store_error(&error),
            ReadError::Damaged(what) => Self::Corrupt(format!("a stored {what} cannot be read")),
        }
    }
}

pub(super) type Read<T> = Result<T, ReadError>;

/// A `SELECT` that is composed from the conditions of a query. The statement consists of fixed texts only; all
/// values are parameters.
struct Select {
    sql: String,
    values: Vec<Value>,
    conditions: usize,
    /// The order of the rows must come from an index: the cost of a page must not grow with the table.
    paged: bool,
}

impl Select {
    fn new(head: &str) -> Self {
        Self { sql: head.to_owned(), values: Vec::new(), conditions: 0, paged: false }
    }

    fn and(&mut self, condition: &str) -> &mut Self {
        self.sql.push_str(if self.conditions == 0 { " WHERE " } else { " AND " });
        self.sql.push_str(condition);
        self.conditions += 1;
        self
    }

    /// A condition that ends in an operator, and its operand.
    fn and_value(&mut self, condition: &str, value: impl Into<Value>) -> &mut Self {
        self.and(condition).value(value)
    }

    fn value(&mut self, value: impl Into<Value>) -> &mut Self {
        self.sql.push_str(" ?");
        self.values.push(value.into());
        self
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.sql.push_str(text);
        self
    }

    fn scope(&mut self, scope: &Scope) -> &mut Self {
        match scope {
            Scope::All => self,
            Scope::Owner(owner) => self.and_value("owner =", owner.as_str().to_owned()),
        }
    }

    /// Newest first by `column`, ties by id, after the page's cursor.
    fn newest_first(&mut self, column: &str, page: Page) -> &mut Self {
        self.paged = true;
        if let Some(Cursor { at, id }) = page.after {
            self.and(&format!("({column}, id) < (")).value(at.0).text(",").value(id.to_vec()).text(")");
        }
        self.text(&format!(" ORDER BY {column} DESC, id DESC LIMIT")).value(i64::from(page.limit))
    }

    /// As [`Self::newest_first`], of a period. Of two bounds on one side only the narrower one is a condition: SQLite begins at one of
    /// them, and would pass all rows up to the other.
    fn newest_first_in(
        &mut self,
        column: &str,
        Period { since, until }: Period,
        mut page: Page,
    ) -> &mut Self {
        if let Some(since) = since {
            self.and_value(&format!("{column} >="), since.0);
        }
        if let Some(until) = until
            && page.after.is_none_or(|after| after.at >= until)
        {
            self.and_value(&format!("{column} <"), until.0);
            page.after = None;
        }
        self.newest_first(column, page)
    }

    fn rows<T>(&self, c: &Connection, mut map: impl FnMut(&Row<'_>) -> Read<T>) -> Read<Vec<T>> {
        let mut out = Vec::new();
        self.each(c, |row| {
            out.push(map(row)?);
            Ok(true)
        })?;
        Ok(out)
    }

    /// The rows of a list that fit by their `weight` (bytes), at least one. A row that cannot be read is left out
    /// without an effect on the others.
    fn readable_rows<T>(
        &self,
        c: &Connection,
        weight: impl Fn(&T) -> usize,
        mut map: impl FnMut(&Row<'_>) -> Read<T>,
    ) -> Read<Vec<T>> {
        let (mut out, mut left_bytes) = (Vec::new(), PAGE_BYTES);
        self.each(c, |row| {
            match map(row) {
                Ok(value) => {
                    left_bytes = left_bytes.saturating_sub(weight(&value));
                    out.push(value);
                }
                Err(error) => left_out(error)?,
            }
            Ok(left_bytes > 0)
        })?;
        Ok(out)
    }

    fn first<T>(&self, c: &Connection, mut map: impl FnMut(&Row<'_>) -> Read<T>) -> Read<Option<T>> {
        let mut first = None;
        self.each(c, |row| {
            first = Some(map(row)?);
            Ok(false)
        })?;
        Ok(first)
    }

    /// As [`Self::first`], for what is large.
    fn first_boxed<T>(&self, c: &Connection, map: impl FnMut(&Row<'_>) -> Read<T>) -> Read<Option<Box<T>>> {
        Ok(self.first(c, map)?.map(Box::new))
    }

    /// Until there are no more rows or `row` returns false.
    fn each(&self, c: &Connection, mut row: impl FnMut(&Row<'_>) -> Read<bool>) -> Read<()> {
        let mut statement = c.prepare_cached(&self.sql)?;
        let mut rows = statement.query(params_from_iter(self.values.iter()))?;
        while let Some(next) = rows.next()? {
            if !row(next)? {
                break;
            }
        }
        drop(rows);
        #[cfg(test)]
        costs::add(statement.reset_status(StatementStatus::VmStep));
        let sorts = statement.reset_status(StatementStatus::Sort);
        debug_assert!(!self.paged || sorts == 0, "a list without an index in its order: {}", self.sql);
        Ok(())
    }
}

/// Leaves a row that cannot be read out of a list.
fn left_out(error: ReadError) -> Read<()> {
    if !error.is_of_one_row() {
        return Err(error);
    }
    tracing::error!(error = %StoreError::from(error), "a list leaves out a row that cannot be read");
    Ok(())
}

fn parsed<T: FromStr>(row: &Row<'_>, column: usize, what: &'static str) -> Read<T> {
    let text = row.get_ref(column)?.as_str().map_err(|_| ReadError::Damaged(what))?;
    text.parse().map_err(|_| ReadError::Damaged(what))
}

fn count(row: &Row<'_>, column: usize) -> Read<u64> {
    Ok(u64::try_from(row.get::<_, i64>(column)?).unwrap_or(0))
}

fn small(row: &Row<'_>, column: usize, what: &'static str) -> Read<u32> {
    u32::try_from(row.get::<_, i64>(column)?).map_err(|_| ReadError::Damaged(what))
}

fn moment(row: &Row<'_>, column: usize) -> Read<Timestamp> {
    Ok(Timestamp(row.get(column)?))
}

fn maybe_moment(row: &Row<'_>, column: usize) -> Read<Option<Timestamp>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(Timestamp))
}
