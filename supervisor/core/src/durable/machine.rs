//! The machine's state, and the dispatch of inputs.

use super::input::{
    DurableAction as Action, DurableInput as Input, DurableRefusal, DurableSpec, Fresh, LoadFrom, RunStatus,
    RunToken, StoredExecution,
};
use super::items::Items;
use super::spent::Spent;
use super::state::{
    Counters, Gathered, NextStep, Requests, RunActivity, SegmentTimer, Stage, WorkerNotes, WriteQueue,
};
use crate::{Now, WorkerExitStatus};
use std::collections::BTreeMap;
use vm_system_protocol::durable::{DurableLimit, Segment, ToDurable};
use vm_system_protocol::limits::{DURABLE_RECORD_BYTES, DURABLE_ROW_BYTES, INTERRUPT_GRACE_MS};
use vm_system_protocol::model::{Execution, ExecutionError};
use vm_system_protocol::reason::{CloseReason, LimitKind};
use vm_system_record::{ItemRow, Write, is_rest};

/// Longest time for which an unwritten row waits for a checkpoint to be stored with (milliseconds).
pub(super) const COMMIT_MS: u64 = 20;
/// An answer is stored at the latest after this time (ms), also if no worker has restored its state: memory may be short for long.
pub(super) const HOLD_MS: u64 = 500;
/// Exits of workers after the same checkpoint before the execution is given up.
pub(super) const EXITS_MAX: u32 = 3;
/// Supervisors that are killed while they run an execution after the same checkpoint, before it is given up. More than exits of workers:
/// a supervisor that is killed again and again takes all programs along, and few of them have to do with it.
pub(super) const KILLS_MAX: u32 = 10;
/// Longest time for a worker to restore a state from its pages (milliseconds).
const RESTORE_MS: u64 = 30_000;
/// While a program waits for the store, its owner looks this often whether the store fails (milliseconds).
const LOOK_MS: u64 = 1_000;
/// Callers wait for a program that sleeps, unless it sleeps for longer than this (milliseconds).
const WAITED_MS: i64 = 60_000;
/// Events that the machine itself may add to one segment, beyond `max_events`.
pub(super) const OWN_EVENTS: u64 = 8;

/// One execution of a durable program.
#[derive(Debug)]
pub struct DurableMachine {
    pub(super) spec: DurableSpec,
    pub(super) record: Execution,
    /// The question of the pause.
    pub(super) task: Option<ItemRow>,
    pub(super) items: Items,
    pub(super) fresh: Option<Fresh>,
    pub(super) next: NextStep,
    pub(super) stage: Stage,
    /// Number of the last checkpoint that was given to the store.
    pub(super) seq: u64,
    /// The last checkpoint is no pause: the end of the execution removes it.
    pub(super) behind_pause: bool,
    pub(super) gathered: Gathered,
    /// The pages of the program's beginning, until they or a later checkpoint are stored.
    pub(super) start_pages: Option<BTreeMap<u64, Vec<u8>>>,
    pub(super) worker: WorkerNotes,
    pub(super) clock: SegmentTimer,
    pub(super) writes: WriteQueue,
    pub(super) requests: Requests,
    pub(super) counters: Counters,
    pub(super) ended: bool,
    pub(super) released: bool,
}

impl DurableMachine {
    /// A machine for a program that begins; the first input is `Start`.
    pub fn fresh(spec: DurableSpec, record: Execution, mut fresh: Fresh) -> Self {
        let creation = std::mem::take(&mut fresh.creation);
        let mut machine = Self::new(spec, record, NextStep::Begin);
        machine.writes.unwritten = creation;
        machine.fresh = Some(fresh);
        machine
    }

    /// A machine for a stored execution.
    pub fn from_stored(spec: DurableSpec, found: StoredExecution) -> Self {
        let next = super::stored::next(&found);
        let ended = found.record.status.is_final();
        let mut machine = Self::new(spec, found.record, next);
        let unknown = machine.compact_after().saturating_sub(super::commit::UNKNOWN_BYTES);
        machine.counters.unweighed = unknown;
        machine.items = Items::from_stored(found.items, found.last_item, found.mailbox);
        if let Some(last) = found.checkpoint {
            (machine.seq, machine.behind_pause) = (last.seq, !is_rest(&last.cause));
            machine.counters.unweighed = last.unweighed.unwrap_or(unknown);
            machine.counters.written = last.written;
            machine.items.begin_rest(last.at.0);
        }
        machine.task = found.task.filter(|task| task.ended_at.is_none());
        machine.ended = ended;
        // A program cannot renew its limits by a restart of the supervisor, nor kill it again and again.
        machine.count_from(Spent::from(&found.limits.spent));
        (machine.worker.exits, machine.worker.kills) = (found.limits.exits, found.limits.kills);
        machine
    }

    fn new(spec: DurableSpec, record: Execution, next: NextStep) -> Self {
        Self {
            spec,
            record,
            task: None,
            items: Items::default(),
            fresh: None,
            next,
            stage: Stage::Cold,
            seq: 0,
            behind_pause: false,
            gathered: Gathered::default(),
            start_pages: None,
            worker: WorkerNotes::default(),
            clock: SegmentTimer::default(),
            writes: WriteQueue::default(),
            requests: Requests::default(),
            counters: Counters::default(),
            ended: false,
            released: false,
        }
    }

    /// The present act.
    pub fn activity(&self) -> RunActivity {
        match self.stage {
            Stage::Starting | Stage::Restoring => RunActivity::Starts,
            Stage::Running | Stage::Setting => RunActivity::Computes,
            Stage::Calling => RunActivity::Calls,
            Stage::Exiting => RunActivity::Ends,
            Stage::Cold | Stage::Warm(_) if self.is_at_rest() => RunActivity::Rests,
            Stage::Held | Stage::Cold | Stage::Warm(_) => RunActivity::Stores,
        }
    }

    /// The constant properties of the execution.
    pub fn spec(&self) -> &DurableSpec {
        &self.spec
    }

    pub fn record(&self) -> &Execution {
        &self.record
    }

    /// The oldest question that clients can answer.
    pub fn task(&self) -> Option<&ItemRow> {
        self.visible_questions().next()
    }

    /// Bytes that the program has written to files in its life.
    pub fn written(&self) -> u64 {
        self.counters.written
    }

    /// Approximate memory of received pages that are in no checkpoint yet (bytes).
    pub fn gathered_bytes(&self) -> u64 {
        self.gathered.page_bytes.saturating_add(self.gathered.item_bytes)
    }

    /// Upper bound of [`Self::gathered_bytes`].
    pub fn gathered_most(&self) -> u64 {
        self.state_most()
    }

    /// The machine accepts no more requests: repeat them with the stored rows once this machine is released.
    pub fn is_leaving(&self) -> bool {
        self.released
    }

    /// Nothing is under way that is not in the store: the owner may drop the machine.
    pub fn is_released(&self) -> bool {
        // A batch under way may be refused, which only this machine can handle.
        let idle =
            self.stage == Stage::Cold && self.writes.writing.is_empty() && self.writes.unwritten.is_empty();
        // The tokens of waiting callers are here and nowhere else.
        let has_requests = !self.requests.waiting.is_empty()
            || !self.requests.early.is_empty()
            || !self.requests.emitters.is_empty()
            || self.requests.set.is_some();
        idle && (self.released || self.ended || self.is_at_rest()) && !has_requests
    }

    /// When the machine needs a `Tick` (monotonic milliseconds).
    pub fn deadline(&self, now: Now) -> Option<u64> {
        let warm = if let Stage::Warm(until) = self.stage { Some(until) } else { None };
        // Without a worker it is in memory only for callers that wait.
        let rests = matches!(self.stage, Stage::Warm(_)) || self.stage == Stage::Cold && self.is_at_rest();
        let expiry = self.wakes_at().filter(|_| rests && !self.ended && self.writes.writing.is_empty());
        let expiry = expiry.map(|at| {
            let left = u64::try_from(at.0.saturating_sub(now.unix_ms)).unwrap_or(0);
            now.mono_ms.saturating_add(left)
        });
        let look = self.clock.waits.map(|since| since.saturating_add(LOOK_MS));
        [warm, expiry, self.writes.commit_at, self.clock.hard_stop, look].into_iter().flatten().min()
    }

    /// Handles one input and appends the actions.
    pub fn step(&mut self, input: Input, now: Now, actions: &mut Vec<Action>) {
        self.handle(input, now, actions);
        // Whatever the input was: a program that waits for items goes on as soon as there are answers and nothing is under way.
        self.use_answers(now, actions);
    }

    fn handle(&mut self, input: Input, now: Now, actions: &mut Vec<Action>) {
        match input {
            Input::Start { token, wait } => {
                self.add_waiting_caller(token, wait);
                self.spawn(now, actions);
            }
            Input::Submit { .. }
            | Input::Set { .. }
            | Input::Emit { .. }
            | Input::Wake { token: Some(_) }
                if self.is_busy() =>
            {
                self.defer(input, actions);
            }
            Input::Wake { token } => self.wake(token, now, actions),
            Input::Submit { token, task, answer, with, wait } => {
                self.submit((token, wait), (task, &answer), with, now, actions);
            }
            Input::Set { token, frame, name, value } => {
                self.set_variable(token, frame, name, value, now, actions);
            }
            Input::Emit { token, name, event, with } => self.emit(token, (name, event), with, now, actions),
            Input::Cancel { token, with } => self.cancel(token, with, now, actions),
            Input::Loaded { small } => self.loaded(small, now, actions),
            Input::NotLoaded { why, permanent } => self.not_loaded(why, permanent, now, actions),
            Input::Message(message) => self.on_message(message, now, actions),
            Input::Violation(what) => self.violation(&what, actions),
            Input::Exited(exit_status) => self.on_exit(exit_status, now, actions),
            Input::ForbiddenCall(call) => {
                self.worker.verdict.get_or_insert(CloseReason::Seccomp(call));
                self.on_exit(WorkerExitStatus::Unknown, now, actions);
            }
            Input::Stored(id) => self.stored(id, now, actions),
            Input::NotStored { write, why, error } => self.not_stored(write, why, error, now, actions),
            Input::Called { result, written } => {
                self.counters.written = written;
                self.called(result, now, actions);
            }
            Input::Responded { result, notes } => self.responded(result, notes, now, actions),
            Input::Stalled => self.clock.waits = self.clock.hard_stop.map(|_| now.mono_ms),
            Input::Continues => {
                self.look(now);
                self.clock.waits = None;
            }
            Input::StoreFails => self.forgive_wait(now),
            Input::Tick => self.tick(now, actions),
            Input::Pressure => {
                if matches!(self.stage, Stage::Warm(_)) {
                    self.let_worker_go(actions);
                }
            }
            Input::Stop => self.stop(now, actions),
        }
    }

    /// A batch is being written, or a variable is being changed: requests are deferred until then.
    fn is_busy(&self) -> bool {
        !self.writes.writing.is_empty() || self.stage == Stage::Setting
    }

    /// Handles the deferred requests.
    pub(super) fn catch_up(&mut self, now: Now, actions: &mut Vec<Action>) {
        if self.is_busy() {
            return;
        }
        for input in std::mem::take(&mut self.requests.deferred) {
            self.step(input, now, actions);
        }
    }

    fn wake(&mut self, token: Option<RunToken>, now: Now, actions: &mut Vec<Action>) {
        self.requests.waiting.extend(token);
        if self.stage == Stage::Cold && !self.ended {
            if self.is_at_rest() {
                self.expire_if_due(now, actions);
            } else {
                self.spawn(now, actions);
            }
        }
        let at_rest = self.ended || self.is_at_rest() && self.writes.writing.is_empty();
        if at_rest && token.is_some() {
            self.reply_at_rest(now, actions);
        }
    }

    pub(super) fn spawn(&mut self, now: Now, actions: &mut Vec<Action>) {
        let ended = if self.worker.exits >= EXITS_MAX {
            Some(format!("its worker exited {EXITS_MAX} times at the same point"))
        } else {
            (self.worker.kills >= KILLS_MAX).then(|| {
                format!("the supervisor was killed {KILLS_MAX} times while it ran at the same point")
            })
        };
        if let Some(what) = ended {
            return self.give_up(ExecutionError::new("WORKER_DIED", what), now, actions);
        }
        self.gathered = Gathered::default();
        self.items.forget_sent();
        (self.start_pages, self.clock.waits) = (None, None);
        // The worker begins again at the checkpoint: the use of limits after it was lost with the last worker.
        self.counters.scope = self.counters.scope_kept;
        self.stage = Stage::Starting;
        // A machine that was about to be released stays.
        self.released = false;
        self.worker.verdict = None;
        self.worker.owes_restored = false;
        self.worker.owes_response = false;
        self.worker.effect_known = self.next == NextStep::Effect;
        let from = if self.seq == 0 { LoadFrom::Beginning } else { LoadFrom::Checkpoint(self.seq) };
        actions.push(Action::Spawn(from));
    }

    fn loaded(&mut self, small: bool, now: Now, actions: &mut Vec<Action>) {
        if self.stage != Stage::Starting {
            return;
        }
        if self.seq == 0 {
            self.go_on(now, actions);
        // A small state is restored soon: the order follows at once, and the confirmation is owed.
        } else if small && !self.is_at_rest() {
            self.worker.owes_restored = true;
            self.go_on(now, actions);
        } else {
            self.stage = Stage::Restoring;
            // A worker that does not restore its state would keep its slot.
            self.clock.hard_stop = Some(now.mono_ms + RESTORE_MS);
        }
    }

    fn not_loaded(&mut self, why: String, permanent: bool, now: Now, actions: &mut Vec<Action>) {
        self.stage = Stage::Cold;
        if permanent && !self.creation_pending() {
            let message = format!("the program cannot continue: {why}");
            let error =
                ExecutionError::new("WORKER_DIED", message).because_of(&CloseReason::SpawnFailed(why));
            return self.give_up(error, now, actions);
        }
        // The answer was accepted: it is stored without a worker, and the next one gets it.
        self.requests.held_answer = None;
        self.refuse_all(&DurableRefusal::NoWorker(why), actions);
        self.released = true;
        if self.creation_pending() {
            self.writes.unwritten.clear();
        } else {
            // The stored rows are to show that it can be resumed; the write is retried later.
            self.commit_alone(now, actions);
        }
    }

    /// Nothing of this execution is in the store yet.
    pub(super) fn creation_pending(&self) -> bool {
        self.writes.unwritten.iter().any(|write| matches!(write, Write::ExecutionStarted { .. }))
    }

    /// Sends the worker its next message.
    pub(super) fn go_on(&mut self, now: Now, actions: &mut Vec<Action>) {
        self.clock.hard_stop = None;
        if let Some((token, frame, name, value)) = self.requests.set.take() {
            if self.is_at_rest() {
                self.stage = Stage::Setting;
                self.requests.setting = Some(token);
                self.clock.hard_stop = Some(now.mono_ms + RESTORE_MS);
                actions.push(Action::Send(Box::new(ToDurable::Set { frame, name, value })));
                return;
            }
            // The answer came first.
            actions.push(Action::Reply { token, result: Err(DurableRefusal::NotPending) });
        }
        let answers = if self.next == NextStep::Items { self.answers_to_send(now) } else { Vec::new() };
        if self.is_at_rest() {
            self.stage = Stage::Warm(now.mono_ms + self.spec.warm_ms);
            return;
        }
        if self.next == NextStep::Items && self.end_out_of_time(now, actions) {
            return;
        }
        let segment = self.begin_segment(now, actions);
        let order = match &self.next {
            NextStep::Begin => {
                let Some(fresh) = &self.fresh else { return };
                ToDurable::Start {
                    args: fresh.args.clone(),
                    env: fresh.env.clone(),
                    seed: fresh.seed,
                    segment,
                }
            }
            NextStep::Answer(answer) => ToDurable::Answer { answer: answer.clone(), segment },
            NextStep::Items => ToDurable::Answers { answers, segment },
            NextStep::Continue | NextStep::Effect | NextStep::Pause => ToDurable::Continue { segment },
        };
        self.stage = Stage::Running;
        if !self.writes.unwritten.is_empty() {
            // The rows wait for the next checkpoint, so that both are one commit, but no longer than this.
            self.writes.commit_at = self.writes.commit_at.or(Some(now.mono_ms + COMMIT_MS));
        }
        actions.push(Action::Send(Box::new(order)));
    }

    /// Time and output that are left since the last pause.
    pub(super) fn begin_segment(&mut self, now: Now, actions: &mut Vec<Action>) -> Segment {
        let limits = &self.spec.limits;
        let left = |most: u64, used: u64| most.saturating_sub(used).max(1);
        let wall_ms = left(u64::from(limits.wall_ms), self.counters.scope.wall_ms);
        let cpu_ms = left(u64::from(limits.cpu_ms), self.counters.scope.cpu_us / 1_000);
        // Output beyond is dropped: half of the record is kept for tasks and requests, which end the program when it is full.
        let record_left = self.record_left().saturating_sub(DURABLE_RECORD_BYTES / 2);
        let events = u64::from(limits.max_events).saturating_sub(self.counters.scope.events);
        let events = events.min(record_left / DURABLE_ROW_BYTES);
        let output = (u64::from(limits.max_output_kb) << 10).saturating_sub(self.counters.scope.output);
        let output = output.min(record_left);
        self.clock.began = now;
        self.clock.hard_stop = Some(now.mono_ms + wall_ms + INTERRUPT_GRACE_MS);
        // The kernel's limit lies behind the engine's, for code that the engine does not interrupt in time.
        actions.push(Action::AllowCpu(now.cpu_us / 1_000 + cpu_ms + INTERRUPT_GRACE_MS));
        Segment {
            now_ms: now.unix_ms,
            cpu_ms: u32::try_from(cpu_ms).unwrap_or(u32::MAX),
            wall_ms: u32::try_from(wall_ms).unwrap_or(u32::MAX),
            max_events: u32::try_from(events).unwrap_or(u32::MAX),
            max_output_bytes: output,
            checkpoint_steps: self.spec.checkpoint_steps,
            checkpoint_ms: self.spec.checkpoint_ms,
        }
    }

    /// The segment is over, or paused.
    pub(super) fn end_segment(&mut self, now: Now) {
        (self.clock.hard_stop, self.clock.waits) = (None, None);
        let wall = now.mono_ms.saturating_sub(self.clock.began.mono_ms);
        let cpu = now.cpu_us.saturating_sub(self.clock.began.cpu_us);
        // Segments add up until the next pause: a program cannot renew its limits by checkpoints.
        self.counters.scope.wall_ms += wall;
        self.counters.scope.cpu_us += cpu;
        self.record.metrics.duration_ms += wall;
        self.record.metrics.cpu_ms += cpu / 1_000;
        self.clock.began = now;
    }

    /// The program waits for the store, or for memory of pages that are not stored.
    pub fn waits_for_store(&self) -> bool {
        self.clock.waits.is_some()
    }

    /// The program has waited for the store for all its time: a `Tick` ends it, and its state need not be stored.
    pub fn is_overdue(&self, now: Now) -> bool {
        self.stage == Stage::Held && self.clock.hard_stop.is_some_and(|at| at <= now.mono_ms)
    }

    /// From now on the program waits until its state is stored, and then goes on: that time is its own.
    pub(super) fn begin_wait(&mut self, now: Now) {
        if self.stage == Stage::Held {
            let left = u64::from(self.spec.limits.wall_ms).saturating_sub(self.counters.scope.wall_ms);
            (self.clock.hard_stop, self.clock.waits) = (Some(now.mono_ms + left), Some(now.mono_ms));
        }
    }

    /// The program has waited for the store.
    pub(super) fn end_wait(&mut self, now: Now) {
        let waited = now.mono_ms.saturating_sub(self.clock.began.mono_ms);
        self.counters.scope.wall_ms += waited;
        // A worker that begins again at this state does not get it back.
        self.counters.scope_kept.wall_ms += waited;
        self.record.metrics.duration_ms += waited;
        (self.clock.hard_stop, self.clock.waits) = (None, None);
        self.clock.began = now;
    }

    /// The time since the last look does not count.
    fn forgive_wait(&mut self, now: Now) {
        let Some(since) = self.clock.waits.replace(now.mono_ms) else {
            self.clock.waits = None;
            return;
        };
        let waited = now.mono_ms.saturating_sub(since);
        // The store failed meanwhile, for which the program is not to blame: its deadline moves.
        self.clock.hard_stop = self.clock.hard_stop.map(|at| at.saturating_add(waited));
        self.clock.began.mono_ms = self.clock.began.mono_ms.saturating_add(waited);
    }

    /// The time since the last look counts: the store works, also where the worker waits for memory of its pages.
    fn look(&mut self, now: Now) {
        if let Some(since) = &mut self.clock.waits
            && now.mono_ms >= since.saturating_add(LOOK_MS)
        {
            *since = now.mono_ms;
        }
    }

    fn tick(&mut self, now: Now, actions: &mut Vec<Action>) {
        if self.writes.commit_at.is_some_and(|at| at <= now.mono_ms) {
            self.requests.held_answer = None;
            self.commit_alone(now, actions);
        }
        self.look(now);
        if self.is_overdue(now) {
            self.end_wait(now);
            self.end_by_limit(DurableLimit::Wall, now, actions);
        } else if self.clock.hard_stop.is_some_and(|at| at <= now.mono_ms) {
            self.clock.hard_stop = None;
            let reason = match self.stage {
                Stage::Running => CloseReason::Limit(LimitKind::Wall),
                _ => CloseReason::ProtocolViolation("did not answer in time".to_owned()),
            };
            self.kill(reason, actions);
        }
        if matches!(self.stage, Stage::Warm(_) | Stage::Cold) {
            self.expire_if_due(now, actions);
        }
        if let Stage::Warm(until) = self.stage
            && until <= now.mono_ms
        {
            self.let_worker_go(actions);
        }
    }

    /// The worker is not needed now; its state is in the store.
    pub(super) fn let_worker_go(&mut self, actions: &mut Vec<Action>) {
        self.refuse_setter(&DurableRefusal::NoWorker("it was ended in the meantime".to_owned()), actions);
        // The exit is expected, and does not count against the program.
        self.worker.verdict = Some(CloseReason::Exited);
        (self.clock.hard_stop, self.clock.waits) = (None, None);
        self.stage = Stage::Exiting;
        actions.push(Action::LetGo);
    }

    pub(super) fn kill(&mut self, reason: CloseReason, actions: &mut Vec<Action>) {
        self.refuse_setter(&DurableRefusal::NoWorker(reason.to_string()), actions);
        // The first reason is kept: later ones follow from the kill.
        self.worker.verdict.get_or_insert(reason);
        (self.clock.hard_stop, self.clock.waits) = (None, None);
        self.stage = Stage::Exiting;
        actions.push(Action::Kill);
    }

    pub(super) fn violation(&mut self, what: &str, actions: &mut Vec<Action>) {
        // A worker that is being ended may still have messages under way.
        if !matches!(self.stage, Stage::Cold | Stage::Exiting | Stage::Starting) {
            self.kill(CloseReason::ProtocolViolation(what.to_owned()), actions);
        }
    }

    /// Adds a caller that gets its reply when the program pauses or ends, or as soon as its request is stored.
    pub(super) fn add_waiting_caller(&mut self, token: RunToken, wait: bool) {
        if wait {
            self.requests.waiting.push(token);
        } else {
            self.requests.early.push(token);
        }
    }

    pub(super) fn run_status(&self) -> RunStatus {
        RunStatus {
            record: self.record.clone(),
            task: self.task().cloned(),
            waiting_for: self.waiting_for(),
            abandons: self.items.are_abandoned(),
            was_awaited: false,
        }
    }

    /// Replies to callers that wait until the program needs an answer or an event, has ended, or sleeps for long.
    pub(super) fn reply_at_rest(&mut self, now: Now, actions: &mut Vec<Action>) {
        let until = now.unix_ms.saturating_add(WAITED_MS);
        let is_far = self.wakes_at().is_none_or(|at| at.0 > until);
        if self.ended || self.task().is_some() || self.items.has_event() || is_far {
            self.reply_all(actions);
        }
    }

    pub(super) fn reply_all(&mut self, actions: &mut Vec<Action>) {
        for token in std::mem::take(&mut self.requests.waiting) {
            actions.push(Action::Reply { token, result: Ok(Box::new(self.run_status())) });
        }
    }

    /// Refuses the pending change of a variable: the worker will not make it.
    pub(super) fn refuse_setter(&mut self, why: &DurableRefusal, actions: &mut Vec<Action>) {
        if let Some(token) = self.requests.setting.take() {
            actions.push(Action::Reply { token, result: Err(why.clone()) });
        }
    }

    pub(super) fn refuse_deferred(&mut self, why: &DurableRefusal, actions: &mut Vec<Action>) {
        for input in std::mem::take(&mut self.requests.deferred) {
            if let Some(token) = input.token() {
                actions.push(Action::Reply { token, result: Err(why.clone()) });
            }
        }
    }

    pub(super) fn refuse_all(&mut self, why: &DurableRefusal, actions: &mut Vec<Action>) {
        self.refuse_setter(why, actions);
        let set = self.requests.set.take().map(|(token, ..)| token);
        let emitters = self.requests.emitters.drain(..).map(|(token, _)| token);
        let waiting = self.requests.waiting.drain(..).chain(self.requests.early.drain(..));
        for token in waiting.chain(emitters).chain(set) {
            actions.push(Action::Reply { token, result: Err(why.clone()) });
        }
    }
}
