//! A simulated store: refuses what the real store refuses, and records which batches were lost.

use crate::WriteId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use vm_system_protocol::ids::{ExecutionId, TaskId};
use vm_system_protocol::model::{
    ConsoleLevel, Event, EventPayload, Execution, ExecutionKind, ExecutionStatus, SessionEventType,
    SessionFacts, SessionStatus,
};
use vm_system_protocol::time::Timestamp;
use vm_system_record::{ItemOutcome, ItemRow, Write};

#[derive(Default)]
pub(super) struct Database {
    pub(super) queue: VecDeque<(WriteId, Vec<Write>)>,
    pub(super) session: Option<SessionStatus>,
    pub(super) executions: BTreeMap<ExecutionId, Stored>,
    /// Executions of which a batch was lost.
    pub(super) holes: BTreeSet<ExecutionId>,
    /// Executions that lost a write before an exit of the supervisor, which nobody may have marked.
    pub(super) unmarked: BTreeSet<ExecutionId>,
    /// Highest worker sequence that was committed, or given up with a lost batch.
    pub(super) worker_seq: u64,
    pub(super) let_go_seq: u64,
    pub(super) end_lost: bool,
    pub(super) questions: BTreeMap<TaskId, ItemRow>,
    /// The session's facts.
    pub(super) facts: Option<SessionFacts>,
    /// A restart was stored, and no execution says so yet.
    unreported: bool,
    /// An execution after a restart does not say so.
    pub(super) silent: Option<ExecutionId>,
}

pub(super) struct Stored {
    pub(super) record: Execution,
    pub(super) events: u64,
    pub(super) output_bytes: u64,
    pub(super) last_ts: Timestamp,
}

pub(super) enum BatchOutcome {
    Committed(WriteId),
    Lost(WriteId),
    Rejected(WriteId, String),
}

impl Database {
    /// Returns the result of the oldest batch.
    pub(super) fn turn(&mut self, fail: bool) -> Option<BatchOutcome> {
        let (id, batch) = self.queue.pop_front()?;
        if fail {
            self.lose(&batch);
            return Some(BatchOutcome::Lost(id));
        }
        if let Some(why) = batch_error(self, &batch) {
            self.lose(&batch);
            return Some(BatchOutcome::Rejected(id, why));
        }
        let begun = batch.iter().find_map(|write| match write {
            Write::ExecutionStarted { execution, .. }
                if execution.kind != ExecutionKind::Startup && !has_end(&batch) =>
            {
                Some(execution.id)
            }
            _ => None,
        });
        // The end of the worker may be what stores the start.
        let unreported = self.unreported;
        for write in batch {
            self.apply(write);
        }
        if let Some(begun) = begun.filter(|_| unreported && self.unreported) {
            self.silent = Some(begun);
        }
        Some(BatchOutcome::Committed(id))
    }

    fn lose(&mut self, batch: &[Write]) {
        let of_task = batch.iter().any(|write| {
            matches!(
                write,
                Write::ItemInsert(_) | Write::ItemEnd { .. } | Write::ItemsWithdraw { .. } | Write::Events(_)
            )
        });
        for write in batch {
            match write {
                Write::ExecutionStarted { execution: record, .. } | Write::ExecutionEnded(record) => {
                    self.holes.insert(record.id);
                }
                Write::Events(events) => {
                    self.holes.extend(events.first().map(|event| event.execution_id));
                    self.unreported &= !events.iter().any(is_report);
                }
                Write::WorkerSeq { seq, .. } => self.let_go_seq = self.let_go_seq.max(*seq),
                Write::SessionEnd { .. } => self.end_lost = true,
                Write::ItemInsert(row) => drop(self.holes.insert(row.execution)),
                // Alone it is what the execution has used so far.
                Write::RunProgress { id: execution, .. } if of_task => drop(self.holes.insert(*execution)),
                _ => {}
            }
        }
    }

    fn apply(&mut self, write: Write) {
        match write {
            Write::SessionInsert { session, .. } => self.session = Some(session.status),
            Write::SessionReady { .. } | Write::SessionRestored { .. } => {
                self.session = Some(SessionStatus::Ready);
            }
            Write::SessionRestoring { kind, detail, .. } => {
                self.session = Some(SessionStatus::Starting);
                self.worker_seq = 0;
                self.let_go_seq = 0;
                // The state of a checkpoint lacks nothing.
                self.unreported = kind == SessionEventType::Restarted
                    || (self.unreported && !detail.starts_with("checkpoint"));
            }
            Write::SessionFacts { facts, .. } => self.facts = Some(*facts),
            // For clients; no input depends on them.
            Write::SessionEvent { .. } | Write::SessionChange { .. } | Write::ExecutionFacts { .. } => {}
            Write::SessionEnd { status, .. } => self.session = Some(status),
            Write::ExecutionStarted { execution: record, .. } => {
                let last_ts = record.started_at;
                let stored =
                    Stored { record: Execution::clone(&record), events: 0, output_bytes: 0, last_ts };
                self.executions.insert(record.id, stored);
            }
            Write::ExecutionEnded(record) => {
                if let Some(stored) = self.executions.get_mut(&record.id) {
                    stored.record = Execution::clone(&record);
                }
            }
            Write::ExecutionDegraded { id } => {
                if let Some(stored) = self.executions.get_mut(&id) {
                    stored.record.degraded = true;
                }
            }
            Write::Events(events) => {
                self.unreported &= !events.iter().any(is_report);
                for event in events.iter() {
                    if let Some(stored) = self.executions.get_mut(&event.execution_id) {
                        stored.events = event.seq;
                        stored.output_bytes += event.payload.output_bytes();
                        stored.last_ts = event.ts;
                    }
                }
            }
            Write::ItemInsert(row) => drop(self.questions.insert(row.id, *row)),
            Write::TaskAttempt { id: task, .. } => {
                if let Some(row) = self.questions.get_mut(&task) {
                    row.attempts += 1;
                }
            }
            Write::ItemEnd { id: task, outcome, answer, at, .. } => {
                if let Some(row) = self.questions.get_mut(&task) {
                    (row.outcome, row.answer, row.ended_at) = (Some(outcome), answer, Some(at));
                }
            }
            Write::ItemsWithdraw { execution, at } => {
                for row in self.questions.values_mut() {
                    if row.execution == execution && row.ended_at.is_none() {
                        (row.outcome, row.ended_at) = (Some(ItemOutcome::Withdrawn), Some(at));
                    }
                }
            }
            Write::RunProgress { id: execution, status, metrics, .. } => {
                if let Some(stored) = self.executions.get_mut(&execution) {
                    (stored.record.status, stored.record.metrics) = (status, metrics);
                }
            }
            Write::WorkerSeq { seq, .. } => {
                self.worker_seq = self.worker_seq.max(seq);
                self.let_go_seq = self.let_go_seq.max(seq);
            }
            other => panic!("a session machine writes no {other:?}"),
        }
    }

    /// The pending task.
    pub(super) fn pending(&self) -> Option<&ItemRow> {
        self.questions.values().find(|row| row.ended_at.is_none())
    }

    /// The last task of an execution.
    pub(super) fn last_task(&self, execution: ExecutionId) -> Option<&ItemRow> {
        let mine = self.questions.values().filter(|row| row.execution == execution);
        mine.max_by_key(|row| row.checkpoint)
    }

    pub(super) fn running(&self) -> Option<&Stored> {
        let unfinished = self.executions.values().filter(|stored| !stored.record.status.is_final());
        unfinished.max_by_key(|stored| stored.record.started_at)
    }

    /// The supervisor exits: what it had not marked as lost stays so, and another one ends all unfinished executions but the newest.
    pub(super) fn supervisor_exits(&mut self, at: Timestamp) {
        self.queue.clear();
        self.unmarked.extend(&self.holes);
        let newest = self.running().map(|stored| stored.record.id);
        for stored in self.executions.values_mut().filter(|stored| !stored.record.status.is_final()) {
            if newest != Some(stored.record.id) {
                stored.record.status = ExecutionStatus::Error;
                stored.record.ended_at = Some(at);
                stored.record.degraded = true;
                stored.record.metrics.events = stored.events;
            }
        }
        for row in self.questions.values_mut().filter(|row| row.ended_at.is_none()) {
            if self.executions.get(&row.execution).is_some_and(|stored| stored.record.status.is_final()) {
                (row.outcome, row.ended_at) = (Some(ItemOutcome::Withdrawn), Some(at));
            }
        }
    }
}

/// Whether it ends an execution: a start in it is one that was lost.
fn has_end(batch: &[Write]) -> bool {
    batch.iter().any(|write| matches!(write, Write::ExecutionEnded(_)))
}

/// Whether an event says that the session was restarted.
fn is_report(event: &Event) -> bool {
    matches!(&event.payload, EventPayload::System { message, level: ConsoleLevel::Warn, .. }
        if message.starts_with("the session was restarted"))
}

/// The store's result for a whole batch. `started` are the executions that the batch itself begins.
fn batch_error(database: &Database, batch: &[Write]) -> Option<String> {
    let mut started = BTreeSet::new();
    let mut inserted = database.session.is_some();
    for write in batch {
        let known = |id| database.executions.get(&id).map(|stored| stored.record.status.is_final());
        match write {
            Write::SessionInsert { .. } if inserted => {
                return Some("the session exists already".to_owned());
            }
            Write::SessionInsert { .. } => inserted = true,
            Write::SessionReady { .. } | Write::SessionRestoring { .. } | Write::SessionEnd { .. }
                if !inserted =>
            {
                return Some("there is no such session".to_owned());
            }
            Write::SessionReady { .. } | Write::SessionRestoring { .. } | Write::SessionEnd { .. }
                if matches!(database.session, Some(SessionStatus::Closed | SessionStatus::Crashed)) =>
            {
                return Some("the session has ended".to_owned());
            }
            Write::ExecutionStarted { execution: record, .. } if known(record.id).is_some() => {
                return Some("the execution exists already".to_owned());
            }
            Write::ExecutionStarted { execution: record, .. } => {
                started.insert(record.id);
            }
            Write::ExecutionEnded(record) => match known(record.id) {
                Some(true) => return Some("the execution has ended".to_owned()),
                None if !started.contains(&record.id) => {
                    return Some("there is no such execution".to_owned());
                }
                _ => {}
            },
            Write::ItemInsert(row)
                if known(row.execution) != Some(false) && !started.contains(&row.execution) =>
            {
                return Some("there is no such unfinished execution".to_owned());
            }
            Write::ItemInsert(row) => {
                let withdrawn = batch.iter().any(|write| matches!(write, Write::ItemsWithdraw { .. }));
                let pending = database.last_task(row.execution).is_some_and(|row| row.ended_at.is_none());
                if database.questions.contains_key(&row.id) || (pending && !withdrawn) {
                    return Some("the task exists already".to_owned());
                }
            }
            Write::TaskAttempt { id: task, .. } | Write::ItemEnd { id: task, .. }
                if database.questions.get(task).is_none_or(|row| row.ended_at.is_some()) =>
            {
                return Some("there is no such pending task".to_owned());
            }
            Write::ExecutionDegraded { id } if known(*id).is_none() => {
                return Some("there is no such execution".to_owned());
            }
            Write::Events(events) => {
                let id = events.first().map(|event| event.execution_id)?;
                if known(id).is_none() && !started.contains(&id) {
                    return Some("there is no such execution".to_owned());
                }
            }
            _ => {}
        }
    }
    None
}
