//! Runs one [`Query`] on a read-only connection and returns its [`QueryResult`]. Every list is read in the order of an index.

mod audit_and_keys;
#[cfg(test)]
pub(super) mod costs;
mod durable;
mod executions;
mod lists;
mod merge;
mod pages;
mod sessions;
mod templates;

use crate::sqlite::failure::store_error;
use rusqlite::types::Value;
use rusqlite::{Connection, Row, StatementStatus, params_from_iter};
use std::str::FromStr;
use vm_system_protocol::control::Period;
use vm_system_protocol::time::Timestamp;
use vm_system_record::{Cursor, PAGE_BYTES, Page, Query, QueryResult, Scope, StoreError};

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

type Read<T> = Result<T, ReadError>;

pub(super) fn run_query(c: &Connection, query: &Query) -> Read<QueryResult> {
    Ok(match query {
        Query::Template(scope, id) => QueryResult::Template(templates::by_id(c, scope, *id)?.map(Box::new)),
        Query::TemplateByName(scope, name) => {
            QueryResult::Template(templates::by_name(c, scope, name)?.map(Box::new))
        }
        Query::Templates(scope, page) => QueryResult::Templates(templates::list(c, scope, *page)?),
        Query::Libraries => QueryResult::Libraries(templates::libraries(c)?),
        Query::Session(scope, id) => QueryResult::Session(sessions::by_id(c, scope, *id)?.map(Box::new)),
        Query::SessionPolicy(id) => QueryResult::Policy(sessions::policy(c, *id)?),
        Query::Sessions(scope, filter, page) => {
            QueryResult::Sessions(sessions::list(c, scope, filter, *page)?)
        }
        Query::SessionEvents { session, after, limit } => {
            QueryResult::SessionEvents(sessions::events(c, *session, *after, *limit)?)
        }
        Query::LiveSessions => QueryResult::LiveSessions(sessions::live(c)?),
        Query::Execution(scope, id) => {
            QueryResult::Execution(executions::by_id(c, scope, *id)?.map(Box::new))
        }
        Query::ExecutionByName(owner, name) => {
            QueryResult::Execution(executions::by_name(c, owner, name)?.map(Box::new))
        }
        Query::Executions(scope, session, filter, page) => {
            QueryResult::Executions(executions::list(c, scope, *session, *filter, *page)?)
        }
        Query::Events(execution, after, limit) => {
            QueryResult::Events(executions::events(c, *execution, *after, *limit, PAGE_BYTES)?)
        }
        Query::SomeEvents { execution, after_seq, limit, bytes } => {
            QueryResult::Events(executions::events(c, *execution, *after_seq, *limit, *bytes)?)
        }
        Query::Ids { scope, kind, from, to, limit } => {
            QueryResult::Ids(audit_and_keys::ids(c, scope, *kind, *from, *to, *limit)?)
        }
        Query::Program(scope, id) => QueryResult::Program(durable::program(c, scope, *id)?.map(Box::new)),
        Query::ProgramByName(scope, name) => {
            QueryResult::Program(durable::program_by_name(c, scope, name)?.map(Box::new))
        }
        Query::Programs(scope, filter, page) => {
            QueryResult::Programs(lists::programs(c, scope, filter, *page)?)
        }
        Query::ProgramCode(id, version) => QueryResult::Code(durable::code(c, *id, *version)?.map(Box::new)),
        Query::ProgramVersions { program, below, limit } => {
            QueryResult::Versions(durable::versions(c, *program, *below, *limit)?)
        }
        Query::ProgramRun(execution) => QueryResult::Run(durable::run(c, *execution)?),
        Query::Current(owner, client) => QueryResult::Current(durable::current(c, owner, client)?),
        Query::Task(scope, id) => QueryResult::Task(durable::task(c, scope, *id)?.map(Box::new)),
        Query::PendingTask(execution) => {
            QueryResult::Task(durable::pending_task(c, *execution)?.map(Box::new))
        }
        Query::Prompts { scope, executions, bytes } => {
            QueryResult::Prompts(durable::prompts(c, scope, executions, *bytes)?)
        }
        Query::ProgramCounts(scope) => QueryResult::Counts(durable::counts(c, scope)?),
        Query::Tasks(scope, filter, page) => QueryResult::Tasks(lists::tasks(c, scope, filter, *page)?),
        Query::TaskOf(execution, at) => {
            QueryResult::Task(durable::task_of(c, *execution, *at)?.map(Box::new))
        }
        Query::DueTasks { until, after, limit } => {
            QueryResult::Due(durable::due_tasks(c, *until, *after, *limit)?)
        }
        Query::RunningPrograms { after, limit } => QueryResult::Ids(durable::running(c, *after, *limit)?),
        Query::Runs(scope, filter, page) => QueryResult::Runs(lists::runs(c, scope, filter, *page)?),
        Query::RunById(scope, id) => {
            QueryResult::Runs(durable::run_by_id(c, scope, *id)?.into_iter().collect())
        }
        Query::TasksOfRun { execution, after, limit } => {
            QueryResult::Tasks(durable::tasks_of_run(c, *execution, *after, *limit)?)
        }
        Query::PageVersions { execution, after, bytes } => {
            QueryResult::PageVersions(durable::page_versions(c, *execution, *after, *bytes)?)
        }
        Query::VersionsOfSource { program, source_hash, limit } => {
            QueryResult::Versions(durable::versions_of_source(c, *program, source_hash, *limit)?)
        }
        Query::RunByName(owner, name) => QueryResult::Runs(match executions::by_name(c, owner, name)? {
            Some(row) => durable::run_by_id(c, &Scope::All, row.execution.id)?.into_iter().collect(),
            None => Vec::new(),
        }),
        Query::RunHead(execution) => QueryResult::RunHead(durable::run_head(c, *execution)?.map(Box::new)),
        Query::LastCheckpoint(execution) => {
            QueryResult::Checkpoints(durable::last_checkpoint(c, *execution)?)
        }
        Query::Checkpoints(execution) => QueryResult::Checkpoints(durable::checkpoints(c, *execution)?),
        Query::State { execution, checkpoint, behind, bytes } => {
            QueryResult::Pages(pages::state(c, *execution, *checkpoint, *behind, *bytes)?)
        }
        Query::Key(owner, key) => QueryResult::Key(audit_and_keys::key(c, owner, key)?),
        Query::Audit { scope, before, limit } => {
            QueryResult::Audit(audit_and_keys::audit(c, scope, *before, *limit)?)
        }
        Query::Meta(key) => QueryResult::Meta(audit_and_keys::meta(c, key)?),
    })
}

/// A `SELECT` that is composed from the conditions of a query. The statement consists of fixed texts only; all
/// values are parameters.
struct Select {
    sql: String,
    values: Vec<Value>,
    conditions: usize,
    /// Its order must come from an index: the cost of a page must not grow with the table.
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
