//! Writes a new execution with its states, output and tasks (an import) in pieces within the turns of others. Until the last one its
//! row is a placeholder, as that of a copy (`copies.rs`): nobody goes on from a part of it.

use super::usage::CountedConnection;
use super::{apply_all, copies, durable, executions, items, run};
use crate::queue::{Progress, QueuedBatch, write_bytes};
use crate::sqlite::failure::SqliteFailure;
use crate::sqlite::write::{Ends, Written};
use vm_system_protocol::ids::ExecutionId;
use vm_system_record::{Applied, Entity, StoreError, Write};

/// Whether a write of such a batch is done before the last piece.
pub(super) fn is_staged(write: &Write) -> bool {
    match write {
        Write::Checkpoint(_) | Write::Events(_) => true,
        // A pending one would be offered to be answered.
        Write::ItemInsert(task) => task.ended_at.is_some(),
        _ => false,
    }
}

/// Writes the batch, or its next piece.
pub(super) fn apply(
    c: &CountedConnection<'_>,
    job: &QueuedBatch,
    execution: ExecutionId,
    ends: &Ends<'_>,
) -> Result<Written, SqliteFailure> {
    let mut progress = job.progress.clone();
    if progress.staging.is_none() {
        copies::placeholder(c, &job.batch, execution)?;
        (progress.staging, progress.staged_writes) = (Some(execution), Some(0));
    } else if !copies::is_wanted(c, execution)? {
        return Err(StoreError::missing(Entity::Execution).into());
    }
    let until = job.piece().map(|most| job.progress.bytes.saturating_add(most));
    if !stage(c, job, &mut progress, until)? {
        return Ok(Written::Part(progress));
    }
    run(c, "DELETE FROM staged WHERE execution = ?1", [execution.as_bytes()])?;
    let rows = apply_all(c, &job.batch, &progress, ends)?;
    Ok(Written::All(Applied { rows }))
}

/// Does the next writes until so many bytes are written, at least a part of one; true if all are done.
fn stage(
    c: &CountedConnection<'_>,
    job: &QueuedBatch,
    progress: &mut Progress,
    until: Option<usize>,
) -> Result<bool, SqliteFailure> {
    let begin = progress.bytes;
    while let Some(write) = progress.staged_writes.and_then(|next| job.batch.0.get(next)) {
        if progress.bytes > begin && until.is_some_and(|until| progress.bytes >= until) {
            return Ok(false);
        }
        let left = until.map_or(usize::MAX, |until| until.saturating_sub(progress.bytes));
        let is_done = match write {
            Write::Checkpoint(checkpoint) => durable::stage_import(c, checkpoint, progress, left)?,
            Write::Events(events) => {
                let first = progress.pages;
                let mut bytes = 0;
                let some = events[first..].iter().take_while(|event| {
                    let is_within = bytes < left;
                    bytes += 64 + event.payload.output_bytes() as usize;
                    is_within
                });
                let behind = first + some.count();
                executions::events(c, &events[first..behind])?;
                progress.bytes += bytes;
                progress.pages = behind;
                behind == events.len()
            }
            Write::ItemInsert(task) if is_staged(write) => {
                items::insert(c, task)?;
                progress.bytes += write_bytes(write);
                true
            }
            _ => true,
        };
        if is_done {
            progress.pages = 0;
            progress.replacing.clear();
            progress.staged_writes = progress.staged_writes.map(|next| next + 1);
        }
    }
    // The last turn writes the rest, and must have been given for it.
    Ok(until.is_none())
}
