//! A worker's messages, and its exit.

use super::input::{DurableAction as Action, DurableRefusal};
use super::machine::{COMMIT_MS, DurableMachine, EXITS_MAX, OWN_EVENTS};
use super::options::task_of_pause;
use super::state::{AfterCommit, EffectCall, NextStep, Stage};
use crate::exit::reason_of;
use crate::{Now, WorkerExitStatus};
use vm_system_protocol::durable::{
    Cause, DurableLimit, End, FromDurable, MESSAGE_BYTES, PROMPT_BYTES, REQUEST_BODY_BYTES, RESULT_BYTES,
    StatePage, Stop, TaskAnswer,
};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::limits::{DURABLE_PAGE_BYTES, DURABLE_ROW_BYTES};
use vm_system_protocol::model::{EventPayload, ExecutionError, ExecutionStatus, ResultValue};
use vm_system_protocol::reason::{CloseReason, LimitKind};
use vm_system_protocol::time::Timestamp;
use vm_system_protocol::worker::WorkerEvent;
use vm_system_record::Write;

/// A first state of at most so many bytes is stored together with the rows of its execution.
const BEGINNING_BYTES: u64 = 1 << 20;
/// Longest text of the mark of dropped output (bytes).
const MARK_BYTES: usize = 256;
const SIGXCPU: i32 = 24;

impl DurableMachine {
    pub(super) fn on_message(&mut self, message: FromDurable, now: Now, actions: &mut Vec<Action>) {
        let fits = match (&self.stage, &message) {
            // Sent before the worker was ended, so it is no violation.
            (Stage::Exiting | Stage::Cold, _) => return,
            (Stage::Restoring, FromDurable::Restored) => {
                // The order before the answer's commit: the worker runs while the store writes.
                self.go_on(now, actions);
                self.store_held_answer(now, actions);
                return;
            }
            (Stage::Running, FromDurable::Restored) if self.worker.owes_restored => {
                self.worker.owes_restored = false;
                self.store_held_answer(now, actions);
                return;
            }
            (Stage::Restoring | Stage::Running, FromDurable::Refused { why }) => {
                let message = format!("the program cannot continue: {why}");
                self.give_up(ExecutionError::new("STATE_DAMAGED", message), now, actions);
                return;
            }
            (Stage::Setting, FromDurable::NotSet) => {
                self.refuse_setter(&DurableRefusal::NoVariable, actions);
                self.clock.hard_stop = None;
                self.stage = Stage::Warm(now.mono_ms + self.spec.warm_ms);
                self.catch_up(now, actions);
                return;
            }
            (
                Stage::Running | Stage::Setting,
                FromDurable::Pages(_) | FromDurable::Checkpoint(_) | FromDurable::SmallCheckpoint { .. },
            )
            | (Stage::Running, FromDurable::Events(_) | FromDurable::Items(_) | FromDurable::Call(_)) => true,
            _ => false,
        };
        let runs = matches!(message, FromDurable::Events(_) | FromDurable::Items(_) | FromDurable::Call(_));
        let is_late = runs && self.worker.owes_response;
        let fits = fits && !self.worker.owes_restored && !is_late;
        let result = match message {
            _ if !fits => Err("out of turn"),
            FromDurable::Pages(pages) if pages.is_empty() => Err("an empty list of pages"),
            FromDurable::Pages(pages) => self.gather_pages(pages),
            FromDurable::Items(items) if items.is_empty() => Err("an empty list of items"),
            FromDurable::Items(items) => self.gather_items(items),
            FromDurable::Events(events) if events.is_empty() => Err("an empty list of events"),
            FromDurable::Events(events) => self.gather_events(events),
            FromDurable::Call(call) => {
                self.end_segment(now);
                if !self.end_out_of_time(now, actions) {
                    self.make_call(call, None, now, actions);
                }
                Ok(())
            }
            FromDurable::SmallCheckpoint { pages, stop } => self.gather_pages(pages).and_then(|()| {
                self.note_heap(&stop);
                self.at_checkpoint(*stop, now, actions)
            }),
            FromDurable::Checkpoint(stop) => {
                self.note_heap(&stop);
                self.at_checkpoint(*stop, now, actions)
            }
            _ => Err("out of turn"),
        };
        if let Err(what) = result {
            self.violation(what, actions);
        }
    }

    fn note_heap(&mut self, stop: &Stop) {
        let peak = &mut self.record.metrics.heap_peak_bytes;
        *peak = (*peak).max(stop.heap_bytes);
    }

    fn gather_pages(&mut self, pages: Vec<StatePage>) -> Result<(), &'static str> {
        let most = self.state_most();
        for StatePage { number, bytes } in pages {
            if !StatePage::is_possible(number) {
                return Err("an impossible page number");
            }
            self.gathered.page_bytes += bytes.len() as u64 + DURABLE_PAGE_BYTES;
            // A page that is sent again replaces the earlier one, and counts once.
            if let Some(replaced) = self.gathered.pages.insert(number, bytes) {
                self.gathered.page_bytes -= replaced.len() as u64 + DURABLE_PAGE_BYTES;
            }
            // Checked with each page, before the memory of a state that is too large is used.
            if self.gathered.page_bytes > most {
                return Err("a state that is too large");
            }
        }
        Ok(())
    }

    fn gather_events(&mut self, events: Vec<WorkerEvent>) -> Result<(), &'static str> {
        let limits = &self.spec.limits;
        let most = (u64::from(limits.max_output_kb) << 10) + (256 << 10);
        for WorkerEvent { at_us, payload } in events {
            match &payload {
                EventPayload::Console { .. } | EventPayload::Exception { .. } => {}
                // The mark of dropped output counts with the task or the end that it precedes, not with the output.
                EventPayload::System { message, .. }
                    if message.len() <= MARK_BYTES && !self.gathered.mark =>
                {
                    self.gathered.mark = true;
                    self.gathered.events.push((at_us, payload));
                    continue;
                }
                _ => return Err("an event of a kind that workers do not send"),
            }
            self.counters.scope.events += 1;
            self.counters.scope.output += payload.output_bytes();
            let count = u64::from(limits.max_events) + OWN_EVENTS;
            if self.counters.scope.events > count || self.counters.scope.output > most {
                return Err("more output than permitted");
            }
            self.gathered.events.push((at_us, payload));
        }
        Ok(())
    }

    /// The worker has reached a checkpoint.
    fn at_checkpoint(&mut self, stop: Stop, now: Now, actions: &mut Vec<Action>) -> Result<(), &'static str> {
        let Stop { cause, applied, .. } = stop;
        if let (Cause::Edited, Stage::Setting, Some(token)) = (&cause, &self.stage, self.requests.setting) {
            self.requests.setting = None;
            self.clock.hard_stop = None;
            self.stage = Stage::Held;
            self.add_checkpoint(if self.next == NextStep::Pause { "edit" } else { "wait_edit" }, now);
            self.flush(now, AfterCommit::Edited(token), actions);
            return Ok(());
        }
        if self.stage != Stage::Running {
            return Err("a checkpoint out of turn");
        }
        if cause == Cause::Started {
            if self.next != NextStep::Begin || self.seq != 0 || self.start_pages.is_some() {
                return Err("a second beginning");
            }
            // Kept apart: alone they are the beginning, from which another worker can start.
            self.start_pages = Some(std::mem::take(&mut self.gathered.pages));
            if self.requests.early.is_empty() {
                self.writes.commit_at = Some(now.mono_ms + COMMIT_MS);
            } else {
                self.commit_alone(now, actions);
            }
            return Ok(());
        }
        // The store writes a large state in pieces, and for that its execution has to be there.
        if self.creation_pending()
            && self.gathered.page_bytes > BEGINNING_BYTES
            && !matches!(cause, Cause::Ended(_))
        {
            self.commit_alone(now, actions);
        }
        // Before anything is stored: nothing that a worker makes too long gets into the store.
        too_long(&cause)?;
        // The response is part of the next state, or a repetition would make the request again.
        let owed = std::mem::take(&mut self.worker.owes_response);
        if owed != (cause == Cause::Response) && !(owed && matches!(cause, Cause::Ended(_))) {
            return Err("a checkpoint out of turn");
        }
        self.items.note_applied(applied, cause == Cause::Wait)?;
        self.end_segment(now);
        if self.items_fill_record() && !matches!(cause, Cause::Ended(_)) {
            self.record_full(now, actions);
            return Ok(());
        }
        // A pause and an end are stored even if no time is left: the work for them is done.
        let goes_on = matches!(cause, Cause::Effect(_) | Cause::Request(_) | Cause::Response | Cause::Steps);
        if goes_on && self.end_out_of_time(now, actions) {
            return Ok(());
        }
        match cause {
            Cause::Pause { prompt, options } => self.paused(prompt, options.as_ref(), now, actions),
            Cause::Wait => self.waits(now, actions)?,
            Cause::Effect(call) => self.wants_effect(EffectCall::Files(call), now, actions),
            Cause::Request(request) => self.wants_effect(EffectCall::Request(request), now, actions),
            Cause::Steps | Cause::Response => {
                let name = if cause == Cause::Steps { "steps" } else { "response" };
                self.take_checkpoint(name, NextStep::Continue, now);
                self.add_progress(ExecutionStatus::Running);
                self.flush(now, AfterCommit::Continue, actions);
                self.begin_wait(now);
            }
            Cause::Ended(end) => self.program_ended(&end, now, actions)?,
            Cause::Edited | Cause::Started => return Err("a checkpoint out of turn"),
        }
        Ok(())
    }

    /// Ends a program that would continue but has no time left.
    pub(super) fn end_out_of_time(&mut self, now: Now, actions: &mut Vec<Action>) -> bool {
        let Some(limit) = self.counters.scope.out_of_time(&self.spec.limits) else { return false };
        self.end_by_limit(limit, now, actions);
        true
    }

    pub(super) fn end_by_limit(&mut self, limit: DurableLimit, now: Now, actions: &mut Vec<Action>) {
        let (status, failure) = limit_failure(limit);
        self.end(status, failure, now, actions);
    }

    pub(super) fn take_checkpoint(&mut self, cause: &str, next: NextStep, now: Now) {
        self.add_items(now);
        self.add_events(now);
        self.add_checkpoint(cause, now);
        self.take_answers(self.seq);
        self.next = next;
        self.stage = Stage::Held;
        self.worker.effect_known = false;
        // The program has got further: exits are counted at one point, to find a state that ends its workers.
        (self.worker.exits, self.worker.kills) = (0, 0);
        self.fresh = None;
        // A worker that begins again at this checkpoint has used this much of the limits.
        self.counters.scope_kept = self.counters.scope;
    }

    fn paused(&mut self, prompt: String, options: Option<&JsonText>, now: Now, actions: &mut Vec<Action>) {
        let more = options.map_or(0, |options| options.as_str().len());
        if (prompt.len() + more) as u64 + DURABLE_ROW_BYTES > self.record_left() {
            self.record_full(now, actions);
            return;
        }
        let at = Timestamp(now.unix_ms);
        // The id follows from the checkpoint's number: a repeated segment makes the same task.
        let (execution, seq) = (self.spec.execution, self.seq + 1);
        match task_of_pause(execution, seq, prompt, options, at) {
            Ok(task) => {
                let event = EventPayload::Task { task_id: task.id, prompt: task.prompt.clone() };
                let since = now.unix_ms.saturating_sub(self.clock.began.unix_ms);
                self.gathered.events.push((u64::try_from(since).unwrap_or(0) * 1_000, event));
                // The prompt counts as the output of that event.
                self.record.metrics.output_bytes += more as u64;
                self.take_checkpoint("pause", NextStep::Pause, now);
                self.writes.unwritten.push(Write::ItemInsert(Box::new(task.clone())));
                self.task = Some(task);
                self.add_progress(ExecutionStatus::Waiting);
                self.flush(now, AfterCommit::Wait, actions);
                if self.spec.warm_ms == 0 {
                    // No worker is kept warm: it exits while its checkpoint is being stored.
                    self.let_worker_go(actions);
                }
            }
            Err(_) if self.end_out_of_time(now, actions) => {}
            Err(why) => {
                // The program gets the error of its options at once; no task is stored. Its pages stay gathered.
                let segment = self.begin_segment(now, actions);
                let answer = TaskAnswer::Wrong(why);
                let order = vm_system_protocol::durable::ToDurable::Answer { answer, segment };
                actions.push(Action::Send(Box::new(order)));
            }
        }
    }

    /// Nothing is left to do until an item has an answer.
    fn waits(&mut self, now: Now, actions: &mut Vec<Action>) -> Result<(), &'static str> {
        // Before anything is taken over from the worker.
        if self.gathered.items.is_empty() && !self.items.are_awaited() {
            return Err("a program that waits for nothing");
        }
        self.take_checkpoint("wait", NextStep::Items, now);
        self.items.begin_rest(now.unix_ms);
        self.add_progress(self.progress_status());
        self.flush(now, AfterCommit::Wait, actions);
        if self.spec.warm_ms == 0 && self.is_at_rest() {
            // No worker is kept warm: it exits while its checkpoint is being stored.
            self.let_worker_go(actions);
        }
        Ok(())
    }

    fn program_ended(&mut self, end: &End, now: Now, actions: &mut Vec<Action>) -> Result<(), &'static str> {
        let (status, failure) = match end {
            End::Ok { result } => {
                if !result.is_valid() {
                    return Err("a result that is not JSON");
                }
                self.record.result = Some(ResultValue::of_json(result.clone()));
                (ExecutionStatus::Ok, None)
            }
            End::Threw { message, full_bytes, .. } => {
                let error = ExecutionError::new("EXCEPTION", message);
                let (truncated, full_bytes) = (full_bytes.is_some(), *full_bytes);
                (ExecutionStatus::Error, Some(ExecutionError { truncated, full_bytes, ..error }))
            }
            End::Limit(limit) => limit_failure(*limit),
            End::Interrupted => {
                (ExecutionStatus::Cancelled, Some(ExecutionError::new("CANCELLED", "ended on request")))
            }
            End::Corrupt(what) => {
                let message = format!("the program cannot continue: its state is invalid ({what})");
                (ExecutionStatus::Error, Some(ExecutionError::new("STATE_DAMAGED", message)))
            }
        };
        self.stage = Stage::Held;
        // Used by the program, though no checkpoint has them.
        self.take_answers(self.seq + 1);
        self.end(status, failure, now, actions);
        Ok(())
    }

    /// Writes the last batch: the result, and no state, because nothing continues from an end.
    pub(super) fn end(
        &mut self,
        status: ExecutionStatus,
        failure: Option<ExecutionError>,
        now: Now,
        actions: &mut Vec<Action>,
    ) {
        self.record.status = status;
        self.record.error = failure;
        self.refuse_setter(&DurableRefusal::Ended, actions);
        if let Some((token, ..)) = self.requests.set.take() {
            actions.push(Action::Reply { token, result: Err(DurableRefusal::Ended) });
        }
        self.add_events(now);
        // After the events: this drops whatever else was gathered.
        self.drop_state();
        self.add_end(now);
        self.flush(now, AfterCommit::End, actions);
        if !matches!(self.stage, Stage::Cold | Stage::Exiting) {
            self.let_worker_go(actions);
        }
    }

    pub(super) fn give_up(&mut self, error: ExecutionError, now: Now, actions: &mut Vec<Action>) {
        if let Some(task) = self.requests.held_answer.take() {
            // The answer was not used: its task ends without one.
            let id = task.id;
            self.writes
                .unwritten
                .retain(|write| !matches!(write, Write::ItemEnd { id: ended, .. } if *ended == id));
            self.task = Some(task);
        }
        if self.creation_pending() && self.gathered.pages.is_empty() && self.seq == 0 {
            // It fails before its beginning was reported: its rows record that, without a state.
            self.gathered.events.clear();
        }
        self.end(ExecutionStatus::Error, Some(error), now, actions);
    }

    pub(super) fn on_exit(&mut self, exit_status: WorkerExitStatus, now: Now, actions: &mut Vec<Action>) {
        // First: a call below may start the next worker.
        let stage = std::mem::replace(&mut self.stage, Stage::Cold);
        (self.clock.hard_stop, self.clock.waits) = (None, None);
        let verdict = self.worker.verdict.take();
        let why = DurableRefusal::NoWorker("the worker exited while it changed the variable".to_owned());
        self.refuse_setter(&why, actions);
        // An execution whose end is being stored needs no other worker.
        let writing_end = self.writes.writing.iter().any(|(_, then)| *then == AfterCommit::End);
        if self.ended || self.released || writing_end {
            return;
        }
        let expected = stage == Stage::Exiting && verdict == Some(CloseReason::Exited);
        if matches!(stage, Stage::Running | Stage::Calling | Stage::Restoring | Stage::Starting)
            || (stage == Stage::Exiting && !expected)
        {
            self.end_segment(now);
            self.exited_at_work(verdict, exit_status, now, actions);
            return;
        }
        // The worker exited while idle. Deferred requests and pending writes continue from the last checkpoint.
        if self.writes.writing.is_empty() && (!self.is_at_rest() || self.requests.set.is_some()) {
            self.spawn(now, actions);
        }
        self.catch_up(now, actions);
    }

    fn exited_at_work(
        &mut self,
        verdict: Option<CloseReason>,
        exit_status: WorkerExitStatus,
        now: Now,
        actions: &mut Vec<Action>,
    ) {
        let limit = match (&verdict, exit_status) {
            (Some(CloseReason::Limit(LimitKind::Wall)), _) => Some(DurableLimit::Wall),
            (_, WorkerExitStatus::Signaled(SIGXCPU)) => Some(DurableLimit::Cpu),
            _ => None,
        };
        if let Some(limit) = limit {
            return self.end_by_limit(limit, now, actions);
        }
        let reason = verdict.unwrap_or_else(|| reason_of(exit_status));
        // The program caused neither the loss of the jail nor what this supervisor does about its owner's memory.
        let counts = !matches!(exit_status, WorkerExitStatus::KeeperLost | WorkerExitStatus::MemoryShort);
        self.worker.exits += u32::from(counts);
        if self.worker.exits >= EXITS_MAX {
            let message =
                format!("its worker exited {EXITS_MAX} times at the same point, the last time by {reason}");
            self.gathered = super::state::Gathered::default();
            let error = ExecutionError::new("WORKER_DIED", message).because_of(&reason);
            return self.give_up(error, now, actions);
        }
        if counts && !self.creation_pending() {
            // The next supervisor goes on counting. Soon, and not now: the next checkpoint may come first.
            self.add_progress(self.record.status);
            self.writes.commit_at = self.writes.commit_at.or(Some(now.mono_ms + COMMIT_MS));
        }
        if self.writes.writing.is_empty() {
            self.spawn(now, actions);
        }
    }
}

/// An honest worker keeps to these bounds by itself; a worker that exceeds one is hostile.
fn too_long(cause: &Cause) -> Result<(), &'static str> {
    match cause {
        Cause::Pause { prompt, options } => {
            let bytes = prompt.len() + options.as_ref().map_or(0, |options| options.as_str().len());
            if bytes > PROMPT_BYTES { Err("a prompt that is too long") } else { Ok(()) }
        }
        Cause::Ended(End::Ok { result }) if result.as_str().len() > RESULT_BYTES => {
            Err("a result that is too long")
        }
        Cause::Ended(End::Threw { message: text, .. } | End::Corrupt(text)) if text.len() > MESSAGE_BYTES => {
            Err("a message that is too long")
        }
        Cause::Request(request) if request.data.len() > REQUEST_BODY_BYTES || !request.end => {
            Err("a request that is too long, or not complete")
        }
        _ => Ok(()),
    }
}

fn limit_failure(limit: DurableLimit) -> (ExecutionStatus, Option<ExecutionError>) {
    let (status, code, message) = match limit {
        DurableLimit::Heap => {
            (ExecutionStatus::Error, "MEMORY_LIMIT", "the state is larger than max_state_mb")
        }
        DurableLimit::Stack => (ExecutionStatus::Error, "STACK_LIMIT", "more frames than max_stack_depth"),
        DurableLimit::Steps => (ExecutionStatus::Error, "STEP_LIMIT", "more instructions than max_steps"),
        DurableLimit::Cpu => (ExecutionStatus::Timeout, "CPU_LIMIT", "more CPU time than cpu_ms"),
        DurableLimit::Wall => (ExecutionStatus::Timeout, "WALL_LIMIT", "more time than wall_ms"),
        DurableLimit::Events => {
            (ExecutionStatus::Error, "OUTPUT_LIMIT_EXCEEDED", "more events than max_events")
        }
        DurableLimit::Output => {
            (ExecutionStatus::Error, "OUTPUT_LIMIT_EXCEEDED", "more output than max_output_kb")
        }
        DurableLimit::Result => (ExecutionStatus::Error, "OUTPUT_LIMIT_EXCEEDED", "the result is too large"),
    };
    let reason = match limit {
        DurableLimit::Heap => Some(LimitKind::Memory),
        DurableLimit::Cpu => Some(LimitKind::Cpu),
        DurableLimit::Wall => Some(LimitKind::Wall),
        DurableLimit::Events => Some(LimitKind::Events),
        DurableLimit::Output => Some(LimitKind::Output),
        _ => None,
    };
    let reason = reason.map(|kind| CloseReason::Limit(kind).to_string());
    (status, Some(ExecutionError::new(code, message).because(reason)))
}
