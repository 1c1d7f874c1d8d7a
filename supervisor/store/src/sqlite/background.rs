//! Deletions that the writer makes in pieces between the turns: versions of pages that are not kept, pages that belong to no
//! checkpoint, and the rest of large executions. What is lost of this list at an exit is found again: versions by the next compaction
//! of their execution, all else at the next start.

use super::failure::SqliteFailure;
use super::write::{CountedConnection, FROM_THE_FIRST, PagePosition, Written, compact_piece, sweep_piece};
use crate::queue::Progress;
use rusqlite::Connection;
use std::collections::{BTreeMap, BTreeSet};
use vm_system_protocol::ids::ExecutionId;
use vm_system_record::{Batch, StoreError, Write};

/// The checkpoints of an execution that are kept, and how far its compaction is.
#[derive(Debug)]
struct Compaction {
    keep: (u64, Option<u64>),
    position: usize,
}

#[derive(Debug)]
pub(super) struct Background {
    compactions: BTreeMap<ExecutionId, Compaction>,
    /// Executions with a checkpoint that is being written in pieces.
    staging: BTreeSet<ExecutionId>,
    /// There may be pages that belong to no checkpoint.
    may_sweep: bool,
    /// The execution whose pages are being deleted, from which checkpoint on, and how far.
    sweeping: Option<(ExecutionId, i64, PagePosition)>,
}

impl Default for Background {
    /// At first it is unknown what an earlier process has left.
    fn default() -> Self {
        Self { compactions: BTreeMap::new(), staging: BTreeSet::new(), may_sweep: true, sweeping: None }
    }
}

impl Background {
    pub(super) fn has_work(&self) -> bool {
        self.may_sweep || !self.compactions.is_empty()
    }

    /// A turn has written a batch of which so much was written before, or a part of it, or nothing.
    pub(super) fn note_written(
        &mut self,
        batch: &Batch,
        before: &Progress,
        verdict: &Result<Written, StoreError>,
    ) {
        if let Ok(Written::Part(progress)) = verdict {
            self.staging.extend(progress.staging);
            return;
        }
        if let Some(execution) = before.staging {
            self.staging.remove(&execution);
            // The part that was written belongs to no checkpoint now.
            self.may_sweep |= verdict.is_err();
        }
        if verdict.is_err() {
            return;
        }
        for write in &batch.0 {
            match write {
                Write::CheckpointCompact { execution, keep_from, keep_bytes } => {
                    let keep = (*keep_from, *keep_bytes);
                    let known = self.compactions.entry(*execution);
                    known
                        // The batch may have deleted the oldest checkpoint itself.
                        .and_modify(|known| {
                            *known = Compaction { keep: (keep.0, keep.1.or(known.keep.1)), position: 0 };
                        })
                        .or_insert(Compaction { keep, position: 0 });
                }
                Write::CheckpointsTrim { .. }
                | Write::RunDelete { .. }
                | Write::Prune { .. }
                | Write::PruneOwner { .. } => self.has_deleted(),
                _ => {}
            }
        }
    }

    /// Something was deleted, perhaps not all of it.
    pub(super) fn has_deleted(&mut self) {
        self.may_sweep = true;
    }

    /// After a failure: the next batch that requests such work, or the next start, begins it again.
    pub(super) fn give_up(&mut self) {
        self.compactions.clear();
        (self.may_sweep, self.sweeping) = (false, None);
    }

    /// Does a piece of it, inside a transaction.
    pub(super) fn piece(&mut self, c: &CountedConnection<'_>) -> Result<(), SqliteFailure> {
        if let Some(mut next) = self.compactions.first_entry() {
            let piece = compact_piece(c, *next.key(), next.get().keep, next.get().position)?;
            match piece.next {
                Some(position) => next.get_mut().position = position,
                None => drop(next.remove()),
            }
            return Ok(());
        }
        let Some((execution, seq, position)) =
            self.sweeping.take().map_or_else(|| self.abandoned(c), |at| Ok(Some(at)))?
        else {
            self.may_sweep = false;
            return Ok(());
        };
        let swept = sweep_piece(c, execution, seq, position)?;
        self.sweeping = swept.next.map(|position| (execution, seq, position));
        Ok(())
    }

    /// An execution with pages that belong to no checkpoint and will not.
    fn abandoned(&self, c: &Connection) -> Result<Option<(ExecutionId, i64, PagePosition)>, SqliteFailure> {
        let mut statement = c.prepare_cached("SELECT execution, seq FROM staged")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let execution = ExecutionId::from_bytes(row.get(0)?);
            // A batch that is still written in pieces needs its pages.
            if !self.staging.contains(&execution) {
                return Ok(Some((execution, row.get(1)?, FROM_THE_FIRST)));
            }
        }
        Ok(None)
    }
}
