//! Merges the start and the end of an execution that are committed together: the row of a short execution is inserted once,
//! instead of inserted, added to the index of unfinished executions, updated and removed from it. Writes nothing.

use std::collections::{HashMap, HashSet};
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::model::Execution;
use vm_system_record::{Batch, Write};

/// The ends that are written with their starts. The result is the same as with separate writes.
#[derive(Default)]
pub(crate) struct Ends<'a>(HashMap<ExecutionId, &'a Execution>);

impl<'a> Ends<'a> {
    /// The ends among batches that become durable together, in order.
    pub(crate) fn find_among(batches: impl Iterator<Item = &'a Batch>) -> Self {
        let mut started = HashSet::new();
        let mut ends = HashMap::new();
        let mut separate = HashSet::new();
        for write in batches.flat_map(|batch| &batch.0) {
            match write {
                Write::ExecutionStarted { name, execution } => {
                    if ends.remove(&execution.id).is_some() {
                        // It was deleted meanwhile: one end would be that of both starts.
                        separate.insert(execution.id);
                    } else if name.is_none()
                        && !execution.status.is_final()
                        && !separate.contains(&execution.id)
                    {
                        // A name is taken while its execution is unfinished, so the order of such writes matters.
                        started.insert(execution.id);
                    }
                }
                Write::ExecutionEnded(execution) => {
                    if started.remove(&execution.id) {
                        ends.insert(execution.id, &**execution);
                    } else {
                        // An end without a preceding start may be a wrong one, which is refused.
                        ends.remove(&execution.id);
                        separate.insert(execution.id);
                    }
                }
                // Independent of whether an execution is unfinished.
                Write::Events(_)
                | Write::Guard(_)
                | Write::WorkerSeq { .. }
                | Write::SessionInsert { .. }
                | Write::SessionReady { .. }
                | Write::SessionRestoring { .. }
                | Write::SessionRestored { .. }
                | Write::SessionChange { .. }
                | Write::ExecutionFacts { .. }
                | Write::SessionFacts { .. }
                | Write::KeyClaim(_)
                | Write::KeyTakeOver { .. }
                | Write::KeyResponse { .. }
                | Write::KeyRelease { .. }
                | Write::Audit(_) => {}
                _ => started.clear(),
            }
        }
        Self(ends)
    }

    pub(super) fn end_of(&self, execution: ExecutionId) -> Option<&'a Execution> {
        self.0.get(&execution).copied()
    }
}
