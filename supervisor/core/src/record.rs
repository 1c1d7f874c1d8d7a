//! The machine's record of batches: pending, committed and lost; and the consequences of each commit.
//!
//! A worker keeps its messages until they are acknowledged. A number is acknowledged only after a batch that carries it
//! (`WorkerSeq`) was committed, or was given up as lost and marked so. Acknowledgements are cumulative and not urgent: they are
//! sent after every few `Execute`s, or when the worker keeps many messages, so that neither a reply to a caller nor a short
//! execution waits for an acknowledgement. A worker that keeps too much waits: what it keeps is counted here as it counts it.

mod owed;

use super::caller::Token;
use super::durable::DurableRefusal;
use super::execution::Current;
use super::input::{Executed, Now, Refusal, SessionAction, WriteId};
use super::machine::SessionMachine;
use super::phase::{Phase, PhaseChange};
use owed::Owed;
use std::collections::VecDeque;
use std::sync::Arc;
use vm_system_protocol::ids::{ExecutionId, TaskId};
use vm_system_protocol::limits::UNACKED_SURE_BYTES;
use vm_system_protocol::model::{ConsoleLevel, Event, EventPayload, Execution, Session, SessionCheckpoint};
use vm_system_protocol::reason::CloseReason;
use vm_system_protocol::worker::ToWorker;
use vm_system_record::{SessionChange, Write};

/// Committed messages above which a worker gets an acknowledgement.
const ACK_MESSAGES: u64 = 16;
const ACK_BYTES: u64 = 64 * 1024;
/// Messages without a record of their own (host calls) above which they get a batch. With [`ACK_BYTES`] less than
/// [`UNACKED_SURE_BYTES`], up to which a worker does not wait.
const UNRECORDED_MESSAGES: u64 = 32;
const UNRECORDED_BYTES: u64 = 1024 * 1024;
const _: () = assert!(ACK_BYTES + UNRECORDED_BYTES < UNACKED_SURE_BYTES as u64);
/// Kept bytes above which the acknowledgement is sent after the next `Execute`, while the worker is awake.
const ACK_BEHIND_BYTES: u64 = 4 * 1024;
const ACK_BEHIND_MESSAGES: u64 = 8;
/// Most unstored ends of executions; with more the session refuses executions.
const UNSAVED_MAX: usize = 16;
/// An execution whose end is in a batch.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) executed: Executed,
    pub(super) token: Option<Token<Executed>>,
    /// The store does not have the start; it would refuse the end alone.
    pub(super) start_lost: bool,
    /// The execution had tasks: a task that is still pending in the store is withdrawn with the end.
    pub(super) had_task: bool,
    /// Error of the first write that was lost before this batch.
    pub(super) lost: Option<String>,
}

/// The purpose of a batch, besides its rows.
#[derive(Debug, Default)]
pub(super) enum Mark {
    #[default]
    Nothing,
    /// The start of an execution; a caller may wait only for that.
    Started {
        token: Option<Token<Executed>>,
        record: Arc<Execution>,
    },
    SessionInserted,
    SessionReady,
    SessionEnded,
    /// A new task; the caller that waits for the execution gets the status `waiting`.
    TaskInserted {
        token: Option<Token<Executed>>,
        task: TaskId,
        executed: Executed,
    },
    /// An accepted answer, for a caller that does not wait for the execution.
    Taken {
        token: Token<Executed>,
        executed: Executed,
    },
    /// An answer that did not fit.
    Refused {
        token: Token<Executed>,
        why: DurableRefusal,
    },
    /// The list of checkpoints, which has this new one.
    CheckpointMade {
        token: Token<SessionCheckpoint>,
        checkpoint: SessionCheckpoint,
    },
    /// Facts of the session that a caller has changed.
    FactsChanged {
        token: Token<()>,
    },
    /// The session's new generation, before its worker exists.
    Restoring,
    /// The session is ready after a rollback.
    RolledBack {
        token: Option<Token<Session>>,
    },
    /// The session is ready: all inputs of another one were repeated.
    Restored {
        token: Token<Session>,
    },
    /// A change that the session's record has from now on.
    Changed {
        token: Token<Session>,
        change: SessionChange,
    },
    /// A retry of the first owed write.
    Retry,
}

/// A batch without a result yet.
#[derive(Debug, Default)]
pub(super) struct Pending {
    pub(super) id: u64,
    /// The last of the worker's messages that it records.
    pub(super) worker: Option<Position>,
    pub(super) execution: Option<ExecutionId>,
    pub(super) publish: Option<Arc<[Event]>>,
    pub(super) ended: Option<Box<Ended>>,
    pub(super) mark: Mark,
    /// An earlier batch of the same execution was lost after this one was given to the store.
    pub(super) lost_before: Option<String>,
}

/// A place in the sequence of a worker's messages.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Position {
    seq: u64,
    /// Length of all messages up to this one, as they were sent (bytes).
    bytes: u64,
}

impl Position {
    fn is_far_behind(self, other: Self, messages: u64, bytes: u64) -> bool {
        other.seq - self.seq >= messages || other.bytes - self.bytes >= bytes
    }
}

/// Batches without a result, owed writes, and sequence numbers.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    last_id: u64,
    pending: VecDeque<Pending>,
    /// Length of all messages that have arrived (bytes).
    received_bytes: u64,
    /// Up to here the messages need nothing but their record.
    settled: Position,
    /// Up to here they are in a batch.
    recorded: Position,
    /// Up to here they are committed.
    committed: Position,
    /// Up to here they are acknowledged to the worker.
    acked: Position,
    owed: VecDeque<Owed>,
    retry_at: Option<u64>,
    retry_pause_ms: u64,
    retrying: bool,
    released: bool,
    last_error: String,
}

impl Ledger {
    /// Initial state after an adoption.
    pub(super) fn resume(&mut self, last_committed: u64) {
        let position = Position { seq: last_committed, bytes: 0 };
        self.received_bytes = 0;
        self.settled = position;
        self.recorded = position;
        self.committed = position;
        self.acked = position;
    }

    /// Another worker begins with number 1; batches of the earlier one acknowledge nothing any more.
    pub(super) fn begin_worker(&mut self) {
        self.resume(0);
        // Otherwise the commit of an older batch would acknowledge numbers that the next worker has not reached.
        for pending in &mut self.pending {
            pending.worker = None;
        }
    }

    /// A message has arrived.
    pub(super) fn received(&mut self, bytes: u64) {
        self.received_bytes = self.received_bytes.saturating_add(bytes);
    }

    /// All messages up to this number are handled; only their record is missing. None has arrived after it.
    pub(super) fn settle(&mut self, seq: u64) {
        self.settled = Position { seq: self.settled.seq.max(seq), bytes: self.received_bytes };
    }

    /// Whether so many messages are settled and in no batch that they need one.
    pub(super) fn is_record_due(&self) -> bool {
        self.recorded.is_far_behind(self.settled, UNRECORDED_MESSAGES, UNRECORDED_BYTES)
    }

    pub(super) fn retry_at(&self) -> Option<u64> {
        self.retry_at
    }

    /// Why executions are refused, if too many ends are unstored, or the end of a rollback is.
    pub(super) fn refuses_more(&self) -> Option<String> {
        let is_unready = || self.owed.iter().any(|owed| matches!(owed, Owed::Ready { .. }));
        (self.owed.len() >= UNSAVED_MAX || is_unready()).then(|| self.last_error.clone())
    }

    /// Whether no write is owed and every batch has its result.
    fn is_square(&self) -> bool {
        self.pending.is_empty() && self.owed.is_empty()
    }

    fn take(&mut self, id: u64) -> Option<Pending> {
        let at = self.pending.iter().position(|pending| pending.id == id)?;
        self.pending.remove(at)
    }
}

impl SessionMachine {
    /// Gives a batch to the store.
    pub(super) fn persist(
        &mut self,
        mut pending: Pending,
        mut batch: Vec<Write>,
        urgent: bool,
        out: &mut Vec<SessionAction>,
    ) -> WriteId {
        let session = self.id();
        let ledger = &mut self.ledger;
        ledger.last_id += 1;
        pending.id = ledger.last_id;
        // Numbers of the replaced worker mean nothing for the next one.
        let is_of_next = matches!(pending.mark, Mark::Restoring);
        if ledger.settled.seq > ledger.recorded.seq && !is_of_next {
            // The number is committed with the effects up to it: an adopted worker repeats exactly the rest.
            ledger.recorded = ledger.settled;
            pending.worker = Some(ledger.settled);
            batch.push(Write::WorkerSeq { session, seq: ledger.settled.seq });
        }
        let id = WriteId(pending.id);
        out.push(SessionAction::Write { id, batch, urgent });
        ledger.pending.push_back(pending);
        id
    }

    pub(super) fn stored(&mut self, write: WriteId, now: Now, out: &mut Vec<SessionAction>) {
        let Some(pending) = self.ledger.take(write.0) else { return };
        // Before the replies: a caller that follows its execution stops at the reply, and has all events by then.
        Self::publish(&pending, out);
        if let Some(ended) = pending.ended {
            self.end_stored(*ended, pending.lost_before, now, out);
        }
        match pending.mark {
            Mark::Nothing | Mark::SessionInserted => {}
            Mark::Started { token, record } => {
                self.start_stored(write, now, out);
                if let Some(token) = token {
                    Self::reply(token, Ok(Executed { record, events: None }), out);
                }
            }
            Mark::SessionReady => {
                if self.phase() == Phase::Ready
                    && let Some(token) = self.creation.creator.take()
                {
                    Self::reply(token, Ok(self.record.clone()), out);
                }
            }
            Mark::SessionEnded => self.session_end_stored(out),
            Mark::TaskInserted { token, task, executed } => self.on_task_stored(token, task, executed, out),
            Mark::Taken { token, executed } => Self::reply(token, Ok(executed), out),
            Mark::Refused { token, why } => Self::reply(token, Err(Refusal::Task(why)), out),
            Mark::CheckpointMade { token, checkpoint } => Self::reply(token, Ok(checkpoint), out),
            Mark::FactsChanged { token } => Self::reply(token, Ok(()), out),
            Mark::Restoring => self.restoring_stored(now, out),
            Mark::Restored { token } => {
                let session = self.record.clone();
                Self::reply(token, Ok(session), out);
            }
            Mark::RolledBack { token } => {
                if let Some(token) = token {
                    let session = self.record.clone();
                    Self::reply(token, Ok(session), out);
                }
            }
            Mark::Changed { token, change } => {
                change.apply(&mut self.record);
                let session = self.shown_record();
                Self::reply(token, Ok(session), out);
            }
            Mark::Retry => self.retried(true, now, out),
        }
        if let Some(position) = pending.worker {
            self.committed(position, out);
        }
    }

    fn end_stored(
        &mut self,
        mut ended: Ended,
        lost_before: Option<String>,
        now: Now,
        out: &mut Vec<SessionAction>,
    ) {
        if let Some(error) = lost_before {
            // The end of the execution is stored, an earlier write is not: the mark follows.
            Self::degrade(&mut ended.executed.record, &error, out);
            self.ledger.owe(Owed::Mark(ended.executed.record.id), now);
        }
        if let Some(token) = ended.token {
            Self::reply(token, Ok(ended.executed), out);
        }
    }

    /// A batch is lost. `permanent`: it contradicts what is stored, a retry is useless.
    pub(super) fn store_failed(
        &mut self,
        write: WriteId,
        error: &str,
        permanent: bool,
        now: Now,
        out: &mut Vec<SessionAction>,
    ) {
        let Some(pending) = self.ledger.take(write.0) else { return };
        if !permanent || self.ledger.last_error.is_empty() {
            error.clone_into(&mut self.ledger.last_error);
        }
        Self::publish(&pending, out);
        let is_start = matches!(pending.mark, Mark::Started { .. });
        match pending.ended {
            Some(mut ended) => {
                // Batches after the first lost one are refused because rows that they depend on are missing.
                let first = ended.lost.or(pending.lost_before);
                let error = first.as_deref().unwrap_or(error);
                Self::degrade(&mut ended.executed.record, error, out);
                let record = Arc::clone(&ended.executed.record);
                self.ledger
                    .owe(Owed::End { record, with_start: ended.start_lost, had_task: ended.had_task }, now);
                if let Some(token) = ended.token {
                    Self::reply(token, Err(Refusal::Unrecorded(error.to_owned())), out);
                }
            }
            // The worker never got such an execution: nothing ran, so there is nothing to mark or to owe.
            None if is_start && self.start_not_stored(write, error, now, out) => {}
            None => self.lost(pending.execution, is_start, error),
        }
        match pending.mark {
            Mark::Nothing | Mark::Started { token: None, .. } => {}
            Mark::Started { token: Some(token), .. }
            | Mark::Taken { token, .. }
            | Mark::Refused { token, .. } => {
                Self::reply(token, Err(Refusal::Storage(error.to_owned())), out);
            }
            Mark::Changed { token, .. } => {
                Self::reply(token, Err(Refusal::Storage(error.to_owned())), out);
            }
            Mark::FactsChanged { token } => {
                Self::reply(token, Err(Refusal::Storage(error.to_owned())), out);
            }
            Mark::SessionInserted | Mark::SessionReady => {
                // No client can reach a session that failed to start.
                if let Some(token) = self.creation.creator.take() {
                    Self::reply(token, Err(Refusal::Storage(error.to_owned())), out);
                }
                let why = format!("its record could not be stored: {error}");
                self.condemn(CloseReason::SpawnFailed(why), now, out);
            }
            Mark::CheckpointMade { token, checkpoint } => {
                self.checkpoint_lost(checkpoint.number, out);
                Self::reply(token, Err(Refusal::Storage(error.to_owned())), out);
            }
            Mark::Restoring => self.restoring_not_stored(error, now, out),
            Mark::RolledBack { token } if permanent => {
                if let Some(token) = token {
                    Self::reply(token, Err(Refusal::Storage(error.to_owned())), out);
                }
                let why = format!("the end of its rollback could not be stored: {error}");
                self.condemn(CloseReason::SpawnFailed(why), now, out);
            }
            Mark::RolledBack { token } => {
                // The rollback itself is stored.
                if let Some(token) = token {
                    let session = self.record.clone();
                    Self::reply(token, Ok(session), out);
                }
                self.ledger.owe(Owed::Ready { generation: self.copies.generation }, now);
            }
            Mark::Restored { token } => {
                Self::reply(token, Err(Refusal::Storage(error.to_owned())), out);
                let why = format!("the end of its restoration could not be stored: {error}");
                self.condemn(CloseReason::SpawnFailed(why), now, out);
            }
            Mark::SessionEnded => {
                self.report_end(Err(error), out);
                // No retry could succeed. The session is not kept: its worker is gone, and a later supervisor closes the row.
                if permanent {
                    self.enter(Phase::Released, PhaseChange::Released);
                } else {
                    self.ledger.owe(Owed::SessionEnd, now);
                }
            }
            Mark::TaskInserted { token, executed, .. } => {
                self.task_lost(token, executed.record.id, error, now, out);
            }
            // Given up: the writes behind it may be accepted.
            Mark::Retry if permanent => self.retried(false, now, out),
            Mark::Retry => {
                self.ledger.retrying = false;
                self.ledger.postpone(now);
            }
        }
        // The loss is recorded here; a worker that kept its messages for ever could not continue.
        if let Some(position) = pending.worker {
            self.committed(position, out);
        }
    }

    /// Output of an execution is lost: its end will carry the mark, if the end is not under way already.
    pub(super) fn lost(&mut self, execution: Option<ExecutionId>, is_start: bool, error: &str) {
        let Some(execution) = execution else { return };
        match &mut self.current {
            Some(Current::Running(running)) if running.id() == execution => {
                running.loss.lost.get_or_insert_with(|| error.to_owned());
                running.loss.start_lost |= is_start;
            }
            _ => {
                for pending in &mut self.ledger.pending {
                    if let Some(ended) = &mut pending.ended
                        && ended.executed.record.id == execution
                    {
                        pending.lost_before.get_or_insert_with(|| error.to_owned());
                        ended.start_lost |= is_start;
                    }
                }
            }
        }
    }

    /// Marks a record, and shows it with the fallback event instead of the stored record.
    fn degrade(record: &mut Arc<Execution>, error: &str, out: &mut Vec<SessionAction>) {
        Arc::make_mut(record).degraded = true;
        let mut shown = Execution::clone(record);
        let message =
            format!("the store could not write; what it has of this execution is incomplete: {error}");
        shown.events = Some(vec![Event {
            execution_id: shown.id,
            seq: shown.metrics.events + 1,
            ts: shown.ended_at.unwrap_or(shown.started_at),
            payload: EventPayload::System { message, level: ConsoleLevel::Error, code: None },
        }]);
        out.push(SessionAction::Degraded(Arc::new(shown)));
    }

    fn session_end_stored(&mut self, out: &mut Vec<SessionAction>) {
        if self.phase() != Phase::Released {
            self.enter(Phase::Released, PhaseChange::Released);
            self.report_end(Ok(()), out);
        }
    }

    /// Releases the machine once the end is recorded and no write is owed.
    pub(super) fn release_if_done(&mut self, out: &mut Vec<SessionAction>) {
        // A machine that was dropped earlier could not owe what the store may still refuse.
        if self.phase() == Phase::Released && !self.ledger.released && self.ledger.is_square() {
            self.ledger.released = true;
            out.push(SessionAction::Release);
        }
    }

    /// Whether the machine is released: no input changes anything any more.
    pub fn is_released(&self) -> bool {
        self.ledger.released
    }

    fn publish(pending: &Pending, out: &mut Vec<SessionAction>) {
        let Some(execution) = pending.execution else { return };
        if let Some(events) = &pending.publish {
            out.push(SessionAction::Publish { execution, events: Arc::clone(events) });
        }
        // After the last events: followers stop at it.
        if pending.ended.is_some() {
            out.push(SessionAction::PublishEnd { execution });
        }
    }

    fn committed(&mut self, position: Position, out: &mut Vec<SessionAction>) {
        let ledger = &mut self.ledger;
        if position.seq > ledger.committed.seq {
            ledger.committed = position;
        }
        if ledger.acked.is_far_behind(ledger.committed, ACK_MESSAGES, ACK_BYTES) {
            self.ack_now(out);
        }
    }

    /// Called after `Execute` was sent: the worker is awake then and is not woken for the acknowledgement alone.
    pub(super) fn ack_behind_job(&mut self, out: &mut Vec<SessionAction>) {
        let ledger = &self.ledger;
        if ledger.acked.is_far_behind(ledger.committed, ACK_BEHIND_MESSAGES, ACK_BEHIND_BYTES) {
            self.ack_now(out);
        }
    }

    /// Sends the worker an acknowledgement, if there is anything new and its channel is usable.
    fn ack_now(&mut self, out: &mut Vec<SessionAction>) {
        let listens =
            self.channel_usable() && !self.peer.adoption.is_awaited() && self.phase() != Phase::Closing;
        let ledger = &mut self.ledger;
        if listens && ledger.committed.seq > ledger.acked.seq {
            ledger.acked = ledger.committed;
            out.push(SessionAction::Send(ToWorker::Ack { seq: ledger.committed.seq }));
        }
    }
}
