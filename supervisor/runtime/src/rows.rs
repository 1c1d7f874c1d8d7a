//! The session machine's writes as the store's, and the store's outcomes as the machine's inputs.

use super::writes::{WriteOutcome, Writes};
use std::sync::Arc;
use vm_system_core::{SessionInput as Input, SessionWrite as Write, WriteId};
use vm_system_record::{Batch, Owner, PolicySnapshot, StoreError, Write as Stored};
use vm_system_store::{StoreHandle, Urgency};

/// The batches of one session.
pub(super) struct SessionWrites {
    writes: Writes<()>,
    /// What a session's row has besides its record; given away with the insert.
    row: Option<(Owner, Arc<PolicySnapshot>)>,
}

impl SessionWrites {
    pub(super) fn new(store: StoreHandle, owner: Owner, policy: Arc<PolicySnapshot>) -> Self {
        Self { writes: Writes::new(store), row: Some((owner, policy)) }
    }

    /// Takes a batch; an input if the store refuses it at once.
    pub(super) fn push(&mut self, id: WriteId, batch: Vec<Write>, urgent: bool) -> Option<Input> {
        let writes = batch.into_iter().filter_map(|write| self.translate(write)).collect();
        let urgency = if urgent { Urgency::Now } else { Urgency::Lazy };
        self.writes.push((id, ()), Batch(writes), urgency).map(input)
    }

    /// As [`Writes::is_behind`].
    pub(super) fn is_behind(&self) -> bool {
        self.writes.is_behind()
    }

    /// What came of the next batch. Cancel safe.
    pub(super) async fn next(&mut self) -> Input {
        input(self.writes.next().await)
    }

    fn translate(&mut self, write: Write) -> Option<Stored> {
        Some(match write {
            Write::SessionInserted(session) => {
                let (owner, policy) = self.row.take()?;
                Stored::SessionInsert { owner, session, policy }
            }
            Write::SessionReady { session } => Stored::SessionReady { id: session },
            Write::SessionEnded { session, status, at, reason, last_error } => {
                Stored::SessionEnd { id: session, status, at, reason, last_error }
            }
            Write::ExecutionStarted(execution) => Stored::ExecutionStarted { name: None, execution },
            Write::Events(events) => Stored::Events(events),
            Write::ExecutionEnded(execution) => Stored::ExecutionEnded(execution),
            Write::ExecutionDegraded(id) => Stored::ExecutionDegraded { id },
            Write::TaskInserted(task) => Stored::TaskInsert(task),
            Write::TaskAttempt { task, at } => Stored::TaskAttempt { id: task, at },
            Write::TaskEnded { task, outcome, answer, at } => {
                Stored::TaskEnd { id: task, outcome, answer, at }
            }
            Write::TasksWithdrawn { execution, at } => Stored::TasksWithdraw { execution, at },
            Write::Progress { execution, status, metrics } => {
                Stored::RunProgress { id: execution, status, metrics }
            }
            Write::WorkerSeq { session, seq } => Stored::WorkerSeq { session, seq },
        })
    }
}

fn input(outcome: WriteOutcome<()>) -> Input {
    let WriteOutcome { id: write, result, .. } = outcome;
    match result {
        Ok(_) => Input::Stored(write),
        Err(error) => {
            let permanent = matches!(error, StoreError::Rejected(_) | StoreError::Closed);
            Input::StoreFailed { write, error: error.to_string(), permanent }
        }
    }
}
