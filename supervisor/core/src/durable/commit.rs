//! Batches: their contents, and what is done once one is stored or not.

use super::input::{DurableAction as Action, DurableRefusal, RunStatus, Unstored};
use super::machine::DurableMachine;
use super::state::{AfterCommit, Gathered, NextStep, Stage};
use crate::{Now, WriteId};
use std::collections::BTreeMap;
use std::sync::Arc;
use vm_system_protocol::durable::DurableLimit;
use vm_system_protocol::limits::DURABLE_PAGE_BYTES;
use vm_system_protocol::model::{Event, ExecutionError, ExecutionStatus, SessionStatus};
use vm_system_protocol::reason::CloseReason;
use vm_system_protocol::time::Timestamp;
use vm_system_record::{Checkpoint, UsedLimits, Write, is_rest};

/// How much larger than twice `max_state_mb` a stored state may be (bytes): frames, parts of long contents, unreachable cells.
const STATE_SLACK: u64 = 16 << 20;
/// Size that old checkpoints may have together, in largest states.
const KEEP_STATES: u64 = 4;
/// A machine that does not know how much its predecessor wrote compacts old versions after this much (bytes).
pub(super) const UNKNOWN_BYTES: u64 = 1 << 20;

impl DurableMachine {
    /// Writes everything unwritten as one batch. The store has at most one batch of an execution at a time: later batches
    /// depend on it, and are lost with it.
    pub(super) fn flush(&mut self, _now: Now, then: AfterCommit, actions: &mut Vec<Action>) {
        self.writes.commit_at = None;
        self.requests.held_answer = None;
        let batch = std::mem::take(&mut self.writes.unwritten);
        if batch.is_empty() && then == AfterCommit::Nothing {
            return;
        }
        self.writes.last_write += 1;
        let id = WriteId(self.writes.last_write);
        if batch.iter().any(|write| matches!(write, Write::Checkpoint(_))) {
            // Kept without the state: if the store refuses the state for its size, the rest is still written.
            self.writes.weighed =
                Some((id, batch.iter().filter(|write| is_independent_of_state(write)).cloned().collect()));
        }
        let alone = self.writes.writing.is_empty();
        self.writes.writing.push((id, then));
        // Their reply is the status as it is now, sent once this batch is stored.
        for token in std::mem::take(&mut self.requests.early) {
            let status = Box::new(self.run_status());
            self.writes.promised.push((id, token, status));
        }
        for (token, was_awaited) in std::mem::take(&mut self.requests.emitters) {
            let status = Box::new(RunStatus { was_awaited, ..self.run_status() });
            self.writes.promised.push((id, token, status));
        }
        if alone {
            actions.push(Action::Write { id, batch });
        } else {
            self.writes.held.push_back((id, batch));
        }
    }

    /// Unwritten rows have waited long enough for a checkpoint: they are stored without one.
    pub(super) fn commit_alone(&mut self, now: Now, actions: &mut Vec<Action>) {
        // The time of the commit stays: it is when the answer is held no longer.
        if self.requests.held_answer.is_some() {
            return;
        }
        self.writes.commit_at = None;
        if self.writes.unwritten.is_empty() {
            return;
        }
        if self.creation_pending() {
            // Before the worker has reported the program's beginning, the stored rows are not enough to resume.
            let Some(pages) = self.start_pages.take() else { return };
            let bytes: u64 = pages.values().map(|bytes| DURABLE_PAGE_BYTES + bytes.len() as u64).sum();
            self.gathered.page_bytes = self.gathered.page_bytes.saturating_sub(bytes);
            self.add_pages("start", pages, now);
            self.next = NextStep::Continue;
            // The stored state has the arguments, and the program must not begin a second time.
            self.fresh = None;
        }
        self.add_progress(self.progress_status());
        self.flush(now, AfterCommit::Nothing, actions);
    }

    /// The gathered pages as the next checkpoint.
    pub(super) fn add_checkpoint(&mut self, cause: &str, now: Now) {
        self.gathered.page_bytes = 0;
        let mut pages = self.start_pages.take().unwrap_or_default();
        pages.append(&mut self.gathered.pages);
        self.add_pages(cause, pages, now);
    }

    /// At the end: what was gathered is not stored, and what is stored behind the last pause goes.
    pub(super) fn drop_state(&mut self) {
        self.start_pages = None;
        self.gathered = Gathered::default();
        if self.behind_pause {
            self.behind_pause = false;
            self.writes.unwritten.push(Write::CheckpointsTrim { execution: self.spec.execution });
        }
    }

    fn add_pages(&mut self, cause: &str, pages: BTreeMap<u64, Vec<u8>>, now: Now) {
        self.seq += 1;
        self.behind_pause = !is_rest(cause);
        self.counters.unweighed +=
            pages.values().map(|bytes| DURABLE_PAGE_BYTES + bytes.len() as u64).sum::<u64>();
        let too_large = self.counters.unweighed > self.compact_after();
        if too_large {
            self.counters.unweighed = 0;
        }
        let pages = pages
            .into_iter()
            .map(|(number, bytes)| (number, (!bytes.is_empty()).then_some(bytes)))
            // Before the first checkpoint there are no pages to delete.
            .filter(|(_, bytes)| self.seq > 1 || bytes.is_some())
            .collect();
        let (execution, seq, at) = (self.spec.execution, self.seq, Timestamp(now.unix_ms));
        let (unweighed, written) = (Some(self.counters.unweighed), self.counters.written);
        let checkpoint =
            Checkpoint { execution, seq, at, cause: cause.to_owned(), pages, unweighed, written };
        self.writes.unwritten.push(Write::Checkpoint(Box::new(checkpoint)));
        self.compact(too_large);
    }

    /// Old versions of pages are deleted every few checkpoints. After as many bytes as the largest state may have, the state is
    /// measured: until then a replaced page is counted like an added one.
    fn compact(&mut self, too_large: bool) {
        let history = self.spec.history;
        let batch = (history / 16).clamp(1, 8);
        let too_many = self.seq > history && self.seq.is_multiple_of(batch);
        if history > 0 && (too_many || too_large) {
            let execution = self.spec.execution;
            let keep_from = self.seq.saturating_sub(history);
            let keep_bytes = too_large.then_some(KEEP_STATES * self.compact_after());
            self.writes.unwritten.push(Write::CheckpointCompact { execution, keep_from, keep_bytes });
        }
        if too_large {
            let (execution, most) = (self.spec.execution, self.state_most());
            self.writes.unwritten.push(Write::StateBound { execution, most });
        }
    }

    /// Largest stored state, and most pages that are sent between two checkpoints (bytes). The limit itself is the engine's,
    /// which counts memory.
    pub(super) fn state_most(&self) -> u64 {
        2 * self.compact_after() + STATE_SLACK
    }

    /// Bytes of pages that are written before old ones are compacted (as many as the largest state may have).
    pub(super) fn compact_after(&self) -> u64 {
        u64::from(self.spec.limits.max_state_mb) << 20
    }

    /// The gathered events, numbered.
    pub(super) fn add_events(&mut self, now: Now) {
        self.gathered.mark = false;
        let gathered = std::mem::take(&mut self.gathered.events);
        let metrics = &mut self.record.metrics;
        let begun = self.clock.began.unix_ms;
        let events: Vec<Event> = gathered
            .into_iter()
            .map(|(at_us, payload)| {
                // Numbered here and not by the worker: a segment that is repeated leaves no gap.
                metrics.events += 1;
                metrics.output_bytes += payload.output_bytes();
                let at = begun.saturating_add(i64::try_from(at_us / 1_000).unwrap_or(i64::MAX));
                Event {
                    execution_id: self.spec.execution,
                    seq: metrics.events,
                    // The worker's clock is not trusted: its time is kept within the segment.
                    ts: Timestamp(at.min(now.unix_ms).max(begun.min(now.unix_ms))),
                    payload,
                }
            })
            .collect();
        if !events.is_empty() {
            self.writes.unwritten.push(Write::Events(Arc::from(events)));
        }
    }

    pub(super) fn add_progress(&mut self, status: ExecutionStatus) {
        self.record.status = status;
        let (id, metrics) = (self.spec.execution, self.record.metrics);
        // As of the last checkpoint: what a worker has used after it is used again.
        let (exits, kills) = (self.worker.exits, self.worker.kills);
        let limits = UsedLimits { spent: self.counters.scope_kept.stored(), exits, kills };
        self.writes.unwritten.push(Write::RunProgress {
            id,
            status,
            metrics,
            limits: Some(Box::new(limits)),
        });
    }

    /// Rows of the end: the execution's and its session's.
    pub(super) fn add_end(&mut self, now: Now) {
        let at = Timestamp(now.unix_ms);
        self.record.ended_at = Some(at);
        let has_open = self.items.has_open();
        self.items.drop_open();
        if has_open {
            // The pause, too.
            self.task = None;
            self.writes.unwritten.push(Write::ItemsWithdraw { execution: self.spec.execution, at });
        }
        if let Some(task) = self.task.take() {
            let outcome = vm_system_record::ItemOutcome::Withdrawn;
            self.writes.unwritten.push(Write::ItemEnd {
                execution: task.execution,
                id: task.id,
                outcome,
                answer: None,
                at,
                taken_at: None,
            });
        }
        // The session of a program ends with its execution, in the same batch.
        self.writes.unwritten.push(Write::ExecutionEnded(Arc::new(self.record.clone())));
        self.writes.unwritten.push(Write::SessionEnd {
            id: self.spec.session,
            status: SessionStatus::Closed,
            at,
            reason: CloseReason::Exited,
            last_error: self.record.error.as_ref().map(|error| error.message.clone()),
        });
    }

    pub(super) fn stored(&mut self, id: WriteId, now: Now, actions: &mut Vec<Action>) {
        let Some(position) = self.writes.writing.iter().position(|(writing, _)| *writing == id) else {
            return;
        };
        let (_, then) = self.writes.writing.remove(position);
        self.writes.weighed.take_if(|(weighed, _)| *weighed == id);
        // Only now: no caller gets a reply that a power cut could take back.
        for (_, token, status) in self.writes.promised.extract_if(.., |(writing, ..)| *writing == id) {
            actions.push(Action::Reply { token, result: Ok(status) });
        }
        if let Some((id, batch)) = self.writes.held.pop_front() {
            actions.push(Action::Write { id, batch });
        }
        match then {
            AfterCommit::Nothing => {}
            AfterCommit::Refuse(token, why) => actions.push(Action::Reply { token, result: Err(why) }),
            AfterCommit::Continue => {
                // Behind the commit: a program that is continued after a crash begins at this state, and did nothing after it.
                if self.stage == Stage::Held && self.has_time_left(now, actions) {
                    self.go_on(now, actions);
                }
            }
            AfterCommit::Effect(call) => {
                if self.stage == Stage::Held && self.has_time_left(now, actions) {
                    self.make_effect(call, now, actions);
                }
            }
            AfterCommit::Wait => {
                if self.stage == Stage::Held {
                    self.stage = Stage::Warm(now.mono_ms + self.spec.warm_ms);
                }
                // Only now, because clients see its questions from here on.
                self.items.are_stored();
                if self.is_at_rest() {
                    self.reply_at_rest(now, actions);
                }
            }
            AfterCommit::Edited(token) => {
                if self.stage == Stage::Held {
                    self.stage = Stage::Warm(now.mono_ms + self.spec.warm_ms);
                }
                actions.push(Action::Reply { token, result: Ok(Box::new(self.run_status())) });
            }
            AfterCommit::End => {
                // Not before the commit: a store that refuses the end leaves an execution that can be resumed.
                self.ended = true;
                self.reply_all(actions);
                if !matches!(self.stage, Stage::Cold | Stage::Exiting) {
                    self.let_worker_go(actions);
                }
            }
        }
        if self.writes.writing.is_empty() {
            self.items.are_stored();
            self.after_writing(now, actions);
        }
    }

    /// Whether the program may go on after it has waited for the store; ends it if not.
    fn has_time_left(&mut self, now: Now, actions: &mut Vec<Action>) -> bool {
        self.end_wait(now);
        !self.end_out_of_time(now, actions)
    }

    /// Continues what had to wait for the store.
    fn after_writing(&mut self, now: Now, actions: &mut Vec<Action>) {
        let idle = self.stage == Stage::Cold && !self.ended && !self.released;
        if idle && (!self.is_at_rest() || self.requests.set.is_some()) {
            self.spawn(now, actions);
        }
        self.catch_up(now, actions);
    }

    /// A state is not stored: it is larger than any honest worker's, or than what its owner may store. The execution ends at the state
    /// before.
    fn give_back_state(&mut self, rest: Vec<Write>, now: Now, actions: &mut Vec<Action>) {
        // Later batches build on the refused state.
        self.writes.held.clear();
        for (_, then) in std::mem::take(&mut self.writes.writing) {
            match then {
                AfterCommit::Refuse(token, why) => actions.push(Action::Reply { token, result: Err(why) }),
                AfterCommit::Edited(token) => {
                    actions.push(Action::Reply { token, result: Err(DurableRefusal::Ended) });
                }
                _ => {}
            }
        }
        // These callers get their reply with the batch that records the end.
        let promised = std::mem::take(&mut self.writes.promised);
        self.requests.early.extend(promised.into_iter().map(|(_, token, _)| token));
        let (execution, at) = (self.spec.execution, Timestamp(now.unix_ms));
        self.writes.unwritten = rest;
        // The execution's task was in that batch, or is pending in the store from before.
        self.task = None;
        self.items.drop_open();
        self.writes.unwritten.push(Write::ItemsWithdraw { execution, at });
        self.gathered = Gathered::default();
        self.record.result = None;
        // Unknown of the one before.
        self.behind_pause = self.seq > 1;
    }

    /// The batch that need not be stored if the execution is ended next: its state.
    pub fn withdrawable(&self) -> Option<WriteId> {
        let (id, _) = self.writes.weighed.as_ref()?;
        self.writes.writing.first().filter(|(first, _)| first == id).map(|(first, _)| *first)
    }

    /// The store has refused a batch: this machine differs from the stored rows. It gives up all it holds; the execution is
    /// resumed from the rows.
    pub(super) fn not_stored(
        &mut self,
        id: WriteId,
        why: Unstored,
        error: String,
        now: Now,
        actions: &mut Vec<Action>,
    ) {
        if !self.writes.writing.iter().any(|(writing, _)| *writing == id) {
            return;
        }
        let weighed = self.writes.weighed.take().filter(|(weighed, _)| *weighed == id);
        match (why, weighed) {
            // No honest worker sends so much: its engine ends the program at `max_state_mb` before.
            (Unstored::TooLarge, Some((_, rest))) => {
                self.give_back_state(rest, now, actions);
                return self.end_by_limit(DurableLimit::Heap, now, actions);
            }
            (Unstored::Limit(limit), Some((_, rest))) => {
                self.give_back_state(rest, now, actions);
                let reason = Some(format!("limit({})", limit.setting()));
                let error = ExecutionError::new("STORAGE_LIMIT", limit.to_string()).because(reason);
                return self.end(ExecutionStatus::Error, Some(error), now, actions);
            }
            (Unstored::Withdrawn, Some((_, rest))) => return self.give_back_state(rest, now, actions),
            _ => {}
        }
        let why = if why == Unstored::Conflict && self.seq <= 1 {
            DurableRefusal::NameTaken
        } else {
            DurableRefusal::Storage(error)
        };
        self.writes.held.clear();
        for (_, then) in std::mem::take(&mut self.writes.writing) {
            if let AfterCommit::Refuse(token, _) | AfterCommit::Edited(token) = then {
                actions.push(Action::Reply { token, result: Err(why.clone()) });
            }
        }
        for (_, token, _) in std::mem::take(&mut self.writes.promised) {
            actions.push(Action::Reply { token, result: Err(why.clone()) });
        }
        self.refuse_all(&why, actions);
        self.refuse_deferred(&why, actions);
        self.writes.unwritten.clear();
        self.writes.commit_at = None;
        self.released = true;
        if !matches!(self.stage, Stage::Cold | Stage::Exiting) {
            self.let_worker_go(actions);
        }
    }
}

/// Whether a write is independent of the state that the step leads to.
fn is_independent_of_state(write: &Write) -> bool {
    !matches!(
        write,
        Write::Checkpoint(_)
            | Write::CheckpointCompact { .. }
            | Write::StateBound { .. }
            | Write::ItemInsert(_)
            | Write::ItemsTaken { .. }
            | Write::MailTake { .. }
            | Write::RunProgress { .. }
            | Write::ExecutionEnded(_)
            | Write::SessionEnd { .. }
    )
}
