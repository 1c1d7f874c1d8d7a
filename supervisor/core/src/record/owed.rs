//! Writes that the store has refused and owes of executions and of the session. They are retried, one after the other.

use super::{Ledger, Mark, Pending};
use crate::input::{Now, SessionAction};
use crate::machine::SessionMachine;
use crate::phase::Phase;
use std::sync::Arc;
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::model::{Execution, ExecutionStatus, Metrics};
use vm_system_protocol::reason::CloseReason;
use vm_system_record::Write;

/// First and longest pause before a write is retried (milliseconds).
const RETRY_MIN_MS: u64 = 500;
const RETRY_MAX_MS: u64 = 30_000;

/// A write that the store must still get, in a batch of its own.
#[derive(Debug)]
pub(super) enum Owed {
    /// The end of an execution, marked as degraded.
    End { record: Arc<Execution>, with_start: bool, had_task: bool },
    /// The mark of a degraded execution.
    Mark(ExecutionId),
    /// The session's worker of this generation is ready, after a rollback. Until it is stored, no execution runs: another supervisor
    /// would roll back again.
    Ready { generation: u64 },
    /// The end of the session.
    SessionEnd,
}

impl Ledger {
    pub(super) fn owe(&mut self, owed: Owed, now: Now) {
        self.owed.push_back(owed);
        if self.retry_at.is_none() && !self.retrying {
            self.postpone(now);
        }
    }

    pub(super) fn postpone(&mut self, now: Now) {
        // Doubled: a full disk stays full for a while, and every session with an unstored write retries.
        self.retry_pause_ms = (self.retry_pause_ms * 2).clamp(RETRY_MIN_MS, RETRY_MAX_MS);
        self.retry_at = Some(now.mono_ms + self.retry_pause_ms);
    }
}

impl SessionMachine {
    /// Retries the first unstored write. One at a time: a write that is refused for ever must not make the others
    /// fail.
    pub(crate) fn retry_owed(&mut self, out: &mut Vec<SessionAction>) {
        self.ledger.retry_at = None;
        if self.ledger.retrying {
            return;
        }
        // The worker has been replaced since, or the session has ended.
        let current = Some(self.copies.generation).filter(|_| self.phase() == Phase::Ready);
        let is_past =
            |owed: &mut Owed| matches!(owed, Owed::Ready { generation } if Some(*generation) != current);
        while self.ledger.owed.pop_front_if(is_past).is_some() {}
        let batch = match self.ledger.owed.front() {
            None => return,
            Some(Owed::End { record, with_start, had_task }) => {
                let (execution, at) = (record.id, record.ended_at.unwrap_or(record.started_at));
                let start = with_start
                    .then(|| Write::ExecutionStarted { name: None, execution: Arc::new(as_started(record)) });
                // In the same batch as the end: no answer can be accepted for an execution that has ended.
                let withdrawn = had_task.then_some(Write::ItemsWithdraw { execution, at });
                let end = Write::ExecutionEnded(Arc::clone(record));
                start.into_iter().chain(withdrawn).chain([end]).collect()
            }
            Some(Owed::Mark(execution)) => vec![Write::ExecutionDegraded { id: *execution }],
            Some(Owed::Ready { .. }) => {
                // The lost batch had the number of the worker's first message, which is not to be repeated.
                let (id, seq) = (self.id(), self.ledger.recorded.seq);
                vec![Write::SessionReady { id }, Write::WorkerSeq { session: id, seq }]
            }
            Some(Owed::SessionEnd) => vec![self.end_write()],
        };
        self.ledger.retrying = true;
        self.persist(Pending { mark: Mark::Retry, ..Pending::default() }, batch, true, out);
    }

    /// The store has accepted an owed write, or will never accept it.
    pub(in crate::record) fn retried(&mut self, taken: bool, now: Now, out: &mut Vec<SessionAction>) {
        self.ledger.retrying = false;
        // The store works again, so the next failure begins with the shortest pause.
        self.ledger.retry_pause_ms = 0;
        match self.ledger.owed.pop_front() {
            Some(Owed::End { record, .. }) if taken => out.push(SessionAction::Restored(record.id)),
            Some(Owed::Mark(execution)) if taken => out.push(SessionAction::Restored(execution)),
            Some(Owed::SessionEnd) => self.session_end_stored(out),
            _ => {}
        }
        if !self.ledger.owed.is_empty() {
            self.ledger.retry_at = Some(now.mono_ms);
        }
    }

    fn end_write(&self) -> Write {
        Write::SessionEnd {
            id: self.id(),
            status: self.record.status,
            at: self.record.closed_at.unwrap_or(self.record.created_at),
            reason: self.ending.verdict.clone().unwrap_or(CloseReason::Exited),
            last_error: self.record.last_error.clone(),
        }
    }
}

/// The record as it was at the start.
fn as_started(record: &Execution) -> Execution {
    Execution {
        status: ExecutionStatus::Running,
        ended_at: None,
        result: None,
        error: None,
        metrics: Metrics::default(),
        ..record.clone()
    }
}
