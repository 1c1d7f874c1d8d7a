//! Copies the state of an execution to a new one, a large state in pieces within the turns of others.
//!
//! The pages need the row of their execution. Until all of them are copied, that row is a placeholder: an execution that has ended
//! with an error, in a closed session, so that nobody goes on from a part of a state. The last piece makes both what the batch
//! says. A placeholder of which the copy was interrupted is deleted in the background (`staged.seq = 0`).

use super::usage::{CountedConnection, counted_page};
use super::{apply_all, durable, executions, exists, int, run, sessions};
use crate::queue::QueuedBatch;
use crate::sqlite::failure::{Constrained as _, SqliteFailure};
use crate::sqlite::write::{Ends, Written};
use rusqlite::{Connection, params};
use std::sync::Arc;
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::limits::DURABLE_PAGE_BYTES;
use vm_system_protocol::model::{ExecutionError, ExecutionStatus, SessionStatus};
use vm_system_record::{Applied, Batch, Entity, INCOMPLETE, StoreError, Write};

/// The bytes that one piece copies, at least one page.
const PIECE_BYTES: u64 = 128 << 10;

/// A copy as its batch describes it.
#[derive(Debug, Clone, Copy)]
struct StateCopy {
    from: ExecutionId,
    checkpoint: u64,
    to: ExecutionId,
}

fn copy_of(batch: &Batch) -> Option<StateCopy> {
    batch.0.iter().find_map(|write| match write {
        Write::CheckpointCopy { from, checkpoint, to, .. } => {
            Some(StateCopy { from: *from, checkpoint: *checkpoint, to: *to })
        }
        _ => None,
    })
}

/// Writes a batch that copies a state, or the next piece of it; `None` for other batches.
pub(super) fn apply(
    c: &CountedConnection<'_>,
    job: &QueuedBatch,
    ends: &Ends<'_>,
) -> Result<Option<Written>, SqliteFailure> {
    let Some(copy) = copy_of(&job.batch) else { return Ok(None) };
    let mut progress = job.progress.clone();
    // Versions of pages that the checkpoint needs are only deleted after this row is gone or marked.
    durable::whole(c, copy.from, copy.checkpoint)?;
    if progress.staging.is_none() {
        placeholder(c, &job.batch, copy.to)?;
        (progress.staging, progress.copied_page) = (Some(copy.to), Some(-1));
    } else if !is_wanted(c, copy.to)? {
        return Err(StoreError::missing(Entity::Execution).into());
    }
    // In the order of the pages: the checkpoint does not change, so a piece continues where the last one ended.
    let (pages, is_last) = next_pages(c, copy, progress.copied_page)?;
    for (page, bytes) in pages {
        let sql = "INSERT INTO state_pages (execution, page, checkpoint, bytes) VALUES (?1, ?2, ?3, ?4)";
        run(c, sql, params![copy.to.as_bytes(), page, int(copy.checkpoint), bytes])?;
        c.count(copy.to, counted_page(bytes.len() as u64));
        progress.copied_page = Some(page);
    }
    if !is_last {
        return Ok(Some(Written::Part(progress)));
    }
    run(c, "DELETE FROM staged WHERE execution = ?1", [copy.to.as_bytes()])?;
    let rows = apply_all(c, &job.batch, &progress, ends)?;
    Ok(Some(Written::All(Applied { rows })))
}

/// A page with its content.
type Page = (i64, Vec<u8>);

/// The pages behind the last one that was copied, and whether these are all.
fn next_pages(
    c: &Connection,
    copy: StateCopy,
    last: Option<i64>,
) -> Result<(Vec<Page>, bool), SqliteFailure> {
    // A bare column beside `max()` comes from the row that has the maximum (SQLite, "Bare columns in an aggregate query").
    let mut statement = c.prepare_cached(
        "SELECT page, bytes, max(checkpoint) FROM state_pages
         WHERE execution = ?1 AND checkpoint <= ?2 AND page > ?3 GROUP BY page ORDER BY page",
    )?;
    let mut rows =
        statement.query(params![copy.from.as_bytes(), int(copy.checkpoint), last.unwrap_or(-1)])?;
    let (mut pages, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        // NULL: the page is gone.
        let Some(content) = row.get::<_, Option<Vec<u8>>>(1)? else { continue };
        if bytes >= PIECE_BYTES {
            return Ok((pages, false));
        }
        bytes += DURABLE_PAGE_BYTES + content.len() as u64;
        pages.push((row.get(0)?, content));
    }
    Ok((pages, true))
}

/// Whether the placeholder is there and is not being deleted.
pub(super) fn is_wanted(c: &Connection, to: ExecutionId) -> Result<bool, SqliteFailure> {
    let sql = "SELECT 1 FROM staged WHERE execution = ?1 AND seq = 0 AND bytes >= 0";
    Ok(exists(c, sql, [to.as_bytes()])?)
}

/// The rows of the new execution and its session, as long as its state is not whole. It can be listed and deleted, which ends what
/// writes its state.
pub(super) fn placeholder(
    c: &CountedConnection<'_>,
    batch: &Batch,
    to: ExecutionId,
) -> Result<(), SqliteFailure> {
    let has_program = !batch.0.iter().any(|write| matches!(write, Write::ProgramVersion(_)));
    for write in &batch.0 {
        match write {
            Write::SessionInsert { owner, session, policy, worktree } => {
                let mut closed = (**session).clone();
                (closed.status, closed.closed_at) = (SessionStatus::Closed, Some(closed.created_at));
                sessions::insert(c, owner, &closed, (policy, worktree.as_deref()))?;
            }
            Write::ExecutionStarted { execution, .. } if execution.id == to => {
                let mut ended = (**execution).clone();
                (ended.status, ended.ended_at) = (ExecutionStatus::Error, Some(ended.started_at));
                ended.result = None;
                let message = "its state is being written, or that was interrupted; deleting it ends that";
                ended.error = Some(ExecutionError::new(INCOMPLETE, message));
                executions::start(c, None, execution, &Arc::new(ended))?;
            }
            Write::ProgramRun { execution, program, version } if has_program => {
                durable::program_run(c, *execution, *program, *version)?;
            }
            _ => {}
        }
    }
    run(c, "INSERT INTO staged (execution, seq, bytes) VALUES (?1, 0, 0)", [to.as_bytes()])
        .constrained(Entity::Checkpoint, Entity::Execution)?;
    Ok(())
}
