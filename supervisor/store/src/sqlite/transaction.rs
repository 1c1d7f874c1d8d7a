//! Transactions of the writer: all batches of a turn in one, each with a savepoint where one is refused.

use super::commit_count;
use super::failure::SqliteFailure;
use super::write::{self, CountedConnection, Ends, Written};
use crate::holds::Holds;
use crate::queue::{Progress, QueuedBatch};
use rusqlite::{Connection, params};
use std::collections::BTreeSet;
use vm_system_protocol::ids::ExecutionId;
use vm_system_record::{Batch, StoreError};

/// The result of each batch of a turn.
pub(super) type Verdicts = Vec<Result<Written, StoreError>>;

pub(super) fn all(jobs: &[QueuedBatch], error: &StoreError) -> Verdicts {
    jobs.iter().map(|_| Err(error.clone())).collect()
}

/// One transaction for all batches. An error means that nothing was written.
pub(super) fn together(
    c: &Connection,
    jobs: &[QueuedBatch],
    (lost, holds): (&BTreeSet<ExecutionId>, &Holds),
) -> Result<Verdicts, rusqlite::Error> {
    match transaction(c, |c| plain(c, jobs, (lost, holds))) {
        Ok(verdicts) => Ok(verdicts),
        Err(SqliteFailure::Database(error)) => Err(error),
        // The caller's error: the others must not fail.
        Err(SqliteFailure::Batch(error)) if jobs.len() == 1 && lost.is_empty() => Ok(all(jobs, &error)),
        // Savepoints only now: they cost a journal for each batch, and refusals are rare.
        Err(SqliteFailure::Batch(_)) => {
            transaction(c, |c| guarded(c, jobs, (lost, holds))).map_err(|failure| match failure {
                SqliteFailure::Database(error) => error,
                SqliteFailure::Batch(_) => rusqlite::Error::InvalidQuery,
            })
        }
    }
}

pub(super) fn alone(c: &Connection, batch: &Batch) -> Result<u64, SqliteFailure> {
    transaction(c, |c| write::apply_all(c, batch, &Progress::default(), &Ends::default()))
}

pub(super) fn transaction<T>(
    c: &Connection,
    body: impl FnOnce(&CountedConnection<'_>) -> Result<T, SqliteFailure>,
) -> Result<T, SqliteFailure> {
    commit(c, body, false)
}

/// Of a body that writes pages and may change no row.
pub(super) fn transaction_on_pages<T>(
    c: &Connection,
    body: impl FnOnce(&CountedConnection<'_>) -> Result<T, SqliteFailure>,
) -> Result<T, SqliteFailure> {
    commit(c, body, true)
}

fn commit<T>(
    c: &Connection,
    body: impl FnOnce(&CountedConnection<'_>) -> Result<T, SqliteFailure>,
    has_pages: bool,
) -> Result<T, SqliteFailure> {
    // Immediate: a transaction that begins by reading cannot write once another connection has written.
    c.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    let before = c.total_changes();
    let counted = CountedConnection::new(c);
    let result = body(&counted).and_then(|value| {
        counted.write_usage()?;
        // A transaction that changed nothing must leave no page in the log, and cost no sync.
        if has_pages || c.total_changes() > before {
            commit_count::raise(c)?;
        }
        c.prepare_cached("COMMIT")?.execute([])?;
        Ok(value)
    });
    // SQLite ends the transaction itself after some errors (disk full, I/O).
    if result.is_err() && !c.is_autocommit() {
        c.prepare_cached("ROLLBACK")?.execute([])?;
    }
    result
}

fn plain(
    c: &CountedConnection<'_>,
    jobs: &[QueuedBatch],
    (lost, holds): (&BTreeSet<ExecutionId>, &Holds),
) -> Result<Verdicts, SqliteFailure> {
    mark_lost(c, lost)?;
    // Not of pieces: a batch that takes several turns is not written together with the start of its execution.
    let ends = Ends::find_among(jobs.iter().filter(|job| job.piece().is_none()).map(|job| &job.batch));
    jobs.iter().map(|job| write::apply(c, job, (&ends, holds)).map(Ok)).collect()
}

fn guarded(
    c: &CountedConnection<'_>,
    jobs: &[QueuedBatch],
    (lost, holds): (&BTreeSet<ExecutionId>, &Holds),
) -> Result<Verdicts, SqliteFailure> {
    mark_lost(c, lost)?;
    // Each batch may fail alone: nothing is merged.
    let ends = Ends::default();
    let mut verdicts = Verdicts::with_capacity(jobs.len());
    for job in jobs {
        c.prepare_cached("SAVEPOINT batch")?.execute([])?;
        let verdict = match write::apply(c, job, (&ends, holds)) {
            Ok(written) => {
                c.write_usage()?;
                Ok(written)
            }
            Err(SqliteFailure::Batch(error)) => {
                c.forget_usage();
                c.prepare_cached("ROLLBACK TO batch")?.execute([])?;
                Err(error)
            }
            Err(failure) => return Err(failure),
        };
        c.prepare_cached("RELEASE batch")?.execute([])?;
        verdicts.push(verdict);
    }
    Ok(verdicts)
}

fn mark_lost(c: &Connection, lost: &BTreeSet<ExecutionId>) -> Result<(), SqliteFailure> {
    for id in lost {
        c.prepare_cached("UPDATE executions SET degraded = 1 WHERE id = ?1")?
            .execute(params![id.as_bytes()])?;
    }
    Ok(())
}
