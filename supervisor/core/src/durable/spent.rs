//! The use that an execution has made of its limits since the last submitted answer, and the bounds of its stored record over its whole
//! life. A task that ends without an answer (default, expiry) restores limits only in proportion to the time waited.

use super::input::DurableAction as Action;
use super::machine::DurableMachine;
use crate::Now;
use vm_system_protocol::durable::DurableLimit;
use vm_system_protocol::limits::{DURABLE_RECORD_BYTES, DURABLE_ROW_BYTES};
use vm_system_protocol::model::{ExecutionError, ExecutionStatus, Limits};
use vm_system_protocol::reason::{CloseReason, LimitKind};
use vm_system_record::{ItemOutcome, ItemRow, SpentLimits};

/// Waiting time that restores the limits completely (milliseconds).
pub const REFILL_MS: u64 = 60_000;

/// The used part of the limits.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spent {
    pub(super) wall_ms: u64,
    pub(super) cpu_us: u64,
    pub(super) events: u64,
    pub(super) output: u64,
}

impl From<&SpentLimits> for Spent {
    fn from(stored: &SpentLimits) -> Self {
        let SpentLimits { wall_ms, cpu_us, events, output_bytes, .. } = *stored;
        Self { wall_ms, cpu_us, events, output: output_bytes }
    }
}

impl Spent {
    /// As it is stored, without the calls of host modules, which are counted where they are made.
    pub(super) fn stored(self) -> SpentLimits {
        let Self { wall_ms, cpu_us, events, output: output_bytes } = self;
        SpentLimits { wall_ms, cpu_us, events, output_bytes, ..SpentLimits::default() }
    }

    /// The use that counts after a task with this outcome.
    fn behind_task(self, outcome: ItemOutcome, task: &ItemRow, limits: &Limits, now: Now) -> Self {
        if !answers_itself(outcome) {
            return Self::default();
        }
        self.behind_wait(waited(task, now), limits)
    }

    /// The use that counts after so many milliseconds of waiting.
    fn behind_wait(self, waited: u64, limits: &Limits) -> Self {
        let back = |most: u64| most / REFILL_MS * waited + most % REFILL_MS * waited / REFILL_MS;
        Self {
            wall_ms: self.wall_ms.saturating_sub(back(u64::from(limits.wall_ms))),
            cpu_us: self.cpu_us.saturating_sub(back(u64::from(limits.cpu_ms) * 1_000)),
            events: self.events.saturating_sub(back(u64::from(limits.max_events))),
            output: self.output.saturating_sub(back(u64::from(limits.max_output_kb) << 10)),
        }
    }

    /// The time limit that is used up; output beyond its limits is dropped and ends nothing. A worker checks its clocks only now and then, and never if its segments are
    /// short enough: the sum counts.
    pub(super) fn out_of_time(self, limits: &Limits) -> Option<DurableLimit> {
        if self.cpu_us / 1_000 >= u64::from(limits.cpu_ms) {
            return Some(DurableLimit::Cpu);
        }
        (self.wall_ms >= u64::from(limits.wall_ms)).then_some(DurableLimit::Wall)
    }
}

fn answers_itself(outcome: ItemOutcome) -> bool {
    matches!(outcome, ItemOutcome::Defaulted | ItemOutcome::Expired)
}

/// How long a task has waited, up to the time that counts (milliseconds).
fn waited(task: &ItemRow, now: Now) -> u64 {
    u64::try_from(now.unix_ms.saturating_sub(task.created_at.0)).unwrap_or(0).min(REFILL_MS)
}

impl DurableMachine {
    /// Limits that were restored by waiting in the life of this machine (milliseconds, [`REFILL_MS`] for all of them).
    pub fn refilled_ms(&self) -> u64 {
        self.counters.refilled_ms
    }

    /// From now on this part of the limits is used, also for a worker that begins again.
    pub(super) fn count_from(&mut self, spent: Spent) {
        self.counters.scope = spent;
        self.counters.scope_kept = spent;
    }

    /// Accounts for the end of a task; returns whether the program may continue.
    pub(super) fn settle(
        &mut self,
        (outcome, task): (ItemOutcome, &ItemRow),
        now: Now,
        actions: &mut Vec<Action>,
    ) -> bool {
        let refilled = if answers_itself(outcome) { waited(task, now) } else { REFILL_MS };
        self.counters.refilled_ms = self.counters.refilled_ms.saturating_add(refilled);
        let limits = &self.spec.limits;
        let spent = self.counters.scope_kept.behind_task(outcome, task, limits, now);
        let used_up = spent.out_of_time(limits);
        self.count_from(spent);
        let Some(limit) = used_up else { return true };
        self.end_by_limit(limit, now, actions);
        false
    }

    /// Restores limits in proportion to the time in which nothing of the execution ran.
    pub(super) fn give_back(&mut self, waited_ms: u64) {
        let waited = waited_ms.min(REFILL_MS);
        self.counters.refilled_ms = self.counters.refilled_ms.saturating_add(waited);
        let spent = self.counters.scope_kept.behind_wait(waited, &self.spec.limits);
        self.count_from(spent);
    }

    /// Bytes of output and tasks that still fit into the record.
    pub(super) fn record_left(&self) -> u64 {
        let gathered = self.counters.scope.output.saturating_sub(self.counters.scope_kept.output);
        let lines = self.counters.scope.events.saturating_sub(self.counters.scope_kept.events);
        let metrics = &self.record.metrics;
        let rows = DURABLE_ROW_BYTES.saturating_mul(metrics.events.saturating_add(lines));
        DURABLE_RECORD_BYTES
            .saturating_sub(metrics.output_bytes)
            .saturating_sub(gathered)
            .saturating_sub(rows)
    }

    /// Ends the execution: its record has reached the largest size.
    pub(super) fn record_full(&mut self, now: Now, actions: &mut Vec<Action>) {
        let what = "its output and tasks are larger than the record of one execution may be";
        let reason = CloseReason::Limit(LimitKind::Output);
        let error = ExecutionError::new("OUTPUT_LIMIT_EXCEEDED", what).because_of(&reason);
        self.end(ExecutionStatus::Error, Some(error), now, actions);
    }
}

#[cfg(test)]
mod tests {
    use super::super::input::{DurableAction, DurableInput, DurableSpec, Fresh, RunToken, Unstored};
    use super::super::{DurableMachine, SubmittedAnswer, fresh_record};
    use crate::{Now, WriteId};
    use vm_system_protocol::control::GivenAnswer;
    use vm_system_protocol::durable::{Cause, FromDurable, Stop};
    use vm_system_protocol::ids::{ExecutionId, SessionId};
    use vm_system_protocol::json::JsonText;
    use vm_system_protocol::limits::{DURABLE_RECORD_BYTES, DURABLE_ROW_BYTES};
    use vm_system_protocol::model::{ConsoleLevel, EventPayload, ExecutionStatus, Limits};
    use vm_system_protocol::time::Timestamp;
    use vm_system_protocol::worker::WorkerEvent;

    const PROMPT: usize = 100_000;

    /// A program that repeats the same task for ever.
    struct Prompter {
        machine: DurableMachine,
        now_ms: u64,
    }

    impl Prompter {
        fn new() -> Self {
            let spec = DurableSpec {
                execution: ExecutionId::from_bytes([1; 16]),
                session: SessionId::from_bytes([2; 16]),
                limits: Limits::default(),
                checkpoint_steps: u64::MAX,
                checkpoint_ms: 1_000,
                warm_ms: u64::MAX / 2,
                history: 3,
            };
            let json = |text: &str| JsonText::from_untrusted(text.to_owned());
            let status = ExecutionStatus::Running;
            let record =
                fresh_record(spec.execution, spec.session, status, json("[]"), json("{}"), Timestamp(0));
            let fresh = Fresh { args: Vec::new(), env: Vec::new(), seed: 1, creation: Vec::new() };
            let mut prompter = Self { machine: DurableMachine::fresh(spec, record, fresh), now_ms: 0 };
            prompter.step(DurableInput::Start { token: RunToken::new(1), wait: true });
            prompter.step(DurableInput::Loaded { small: false });
            prompter.on_worker_message(Cause::Started);
            prompter
        }

        /// Stores every batch at once.
        fn step(&mut self, input: DurableInput) {
            let now = Now { mono_ms: self.now_ms, unix_ms: self.now_ms.cast_signed(), cpu_us: 0 };
            let mut actions = Vec::new();
            self.machine.step(input, now, &mut actions);
            let writes: Vec<WriteId> = actions
                .into_iter()
                .filter_map(|action| match action {
                    DurableAction::Write { id, .. } => Some(id),
                    _ => None,
                })
                .collect();
            for id in writes {
                self.step(DurableInput::Stored(id));
            }
        }

        fn on_worker_message(&mut self, cause: Cause) {
            let stop = Stop { cause, cpu_us: 0, heap_bytes: 0, applied: 0 };
            self.step(DurableInput::Message(FromDurable::Checkpoint(Box::new(stop))));
        }

        /// One console line of so many bytes.
        fn print(&mut self, bytes: usize) {
            let (text, level) = ("x".repeat(bytes), ConsoleLevel::Log);
            let payload = EventPayload::Console { level, text, more: false };
            self.step(DurableInput::Message(FromDurable::Events(vec![WorkerEvent { at_us: 0, payload }])));
        }

        /// Begins a task that expires after `wait_ms`, or is answered then. False: the execution was ended.
        fn ask(&mut self, wait_ms: u64, answered: bool) -> bool {
            self.on_task("p".repeat(PROMPT), wait_ms, answered)
        }

        fn on_task(&mut self, prompt: String, wait_ms: u64, answered: bool) -> bool {
            let options = format!("{{\"timeout_ms\": {}, \"default\": 0}}", wait_ms + u64::from(answered));
            let options = Some(JsonText::from_untrusted(options));
            self.on_worker_message(Cause::Pause { prompt, options });
            self.now_ms += wait_ms;
            if answered {
                let (token, answer) =
                    (RunToken::new(2), SubmittedAnswer::Unchecked(GivenAnswer::Typed("yes".to_owned())));
                let (task, with, wait) = (None, Vec::new(), true);
                self.step(DurableInput::Submit { token, task, answer, with, wait });
            } else {
                self.step(DurableInput::Tick);
            }
            self.machine.record().status == ExecutionStatus::Running
        }

        fn error(&self) -> &str {
            self.machine.record().error.as_ref().map_or("", |error| error.code.as_str())
        }
    }

    /// A program whose state waits for the store; the batch.
    fn waiting() -> (Prompter, WriteId) {
        let mut prompter = Prompter::new();
        let stop = Stop { cause: Cause::Steps, cpu_us: 0, heap_bytes: 0, applied: 0 };
        let now = Now { mono_ms: 0, unix_ms: 0, cpu_us: 0 };
        let mut actions = Vec::new();
        let message = FromDurable::Checkpoint(Box::new(stop));
        prompter.machine.step(DurableInput::Message(message), now, &mut actions);
        let write = actions.iter().find_map(|action| match action {
            DurableAction::Write { id, .. } => Some(*id),
            _ => None,
        });
        (prompter, write.expect("a state"))
    }

    #[test]
    fn waiting_for_the_store_ends_at_the_limit_of_time() {
        let wall_ms = u64::from(Limits::default().wall_ms);
        let (mut prompter, write) = waiting();
        prompter.now_ms = wall_ms - 1;
        prompter.step(DurableInput::Tick);
        assert_eq!(prompter.machine.record().status, ExecutionStatus::Running);
        prompter.now_ms = wall_ms;
        let now = Now { mono_ms: wall_ms, unix_ms: 0, cpu_us: 0 };
        assert_eq!((prompter.machine.is_overdue(now), prompter.machine.withdrawable()), (true, Some(write)));
        prompter.step(DurableInput::NotStored { write, why: Unstored::Withdrawn, error: String::new() });
        prompter.step(DurableInput::Tick);
        assert_eq!(prompter.error(), "WALL_LIMIT");
        assert_eq!(prompter.machine.record().metrics.duration_ms, wall_ms);

        // It was stored in the meantime, and too late.
        let (mut prompter, write) = waiting();
        prompter.now_ms = wall_ms;
        prompter.step(DurableInput::Stored(write));
        assert_eq!(prompter.error(), "WALL_LIMIT");

        let (mut prompter, write) = waiting();
        prompter.now_ms = wall_ms / 2;
        prompter.step(DurableInput::Stored(write));
        assert_eq!((prompter.error(), prompter.machine.counters.scope.wall_ms), ("", wall_ms / 2));
    }

    #[test]
    fn no_program_is_ended_because_the_store_fails() {
        let (mut prompter, write) = waiting();
        let wall_ms = u64::from(Limits::default().wall_ms);
        while prompter.now_ms < 2 * wall_ms {
            prompter.now_ms =
                prompter.machine.deadline(Now { mono_ms: 0, unix_ms: 0, cpu_us: 0 }).expect("a look");
            prompter.step(DurableInput::StoreFails);
            prompter.step(DurableInput::Tick);
        }
        prompter.step(DurableInput::Stored(write));
        assert_eq!((prompter.error(), prompter.machine.counters.scope.wall_ms), ("", 0));
    }

    #[test]
    fn tasks_that_end_without_an_answer_do_not_count_as_output() {
        let mut prompter = Prompter::new();
        let rounds = 3 * Limits::default().max_events;
        assert!((0..rounds).all(|_| prompter.on_task("p".repeat(1_000), 1, false)), "{}", prompter.error());
        let scope = prompter.machine.counters.scope;
        assert_eq!((scope.events, scope.output), (0, 0));
    }

    #[test]
    fn waiting_restores_output_in_proportion_and_an_answer_completely() {
        let most = u64::from(Limits::default().max_output_kb) << 10;
        let mut prompter = Prompter::new();
        prompter.print(most as usize / 2);
        assert!(prompter.on_task(String::new(), 12_000, false));
        assert_eq!(
            prompter.machine.counters.scope.output,
            most / 2 - most / 60_000 * 12_000 - most % 60_000 / 5
        );
        prompter.print(1_000);
        assert!(prompter.on_task(String::new(), 1, true));
        assert_eq!(prompter.machine.counters.scope.output, 0);
    }

    #[test]
    fn mark_of_dropped_output_comes_once_and_does_not_count() {
        let mark = || {
            let payload =
                EventPayload::System { message: "dropped".to_owned(), level: ConsoleLevel::Warn, code: None };
            FromDurable::Events(vec![WorkerEvent { at_us: 0, payload }])
        };
        let mut prompter = Prompter::new();
        for _ in 0..2 * Limits::default().max_events {
            prompter.step(DurableInput::Message(mark()));
            assert!(prompter.on_task(String::new(), 0, false), "{}", prompter.error());
        }
        prompter.step(DurableInput::Message(mark()));
        assert_eq!(prompter.machine.worker.verdict, None);
        prompter.step(DurableInput::Message(mark()));
        assert!(prompter.machine.worker.verdict.is_some(), "a second one is a violation");
    }

    #[test]
    fn output_fills_half_of_the_record_and_then_none_is_permitted() {
        let mut prompter = Prompter::new();
        let segment = |prompter: &mut Prompter| {
            let now = Now { mono_ms: prompter.now_ms, unix_ms: 0, cpu_us: 0 };
            let segment = prompter.machine.begin_segment(now, &mut Vec::new());
            (segment.max_events, segment.max_output_bytes)
        };
        let limits = Limits::default();
        assert_eq!(segment(&mut prompter), (limits.max_events, u64::from(limits.max_output_kb) << 10));
        prompter.machine.record.metrics.output_bytes = DURABLE_RECORD_BYTES / 2 - 2 * DURABLE_ROW_BYTES;
        prompter.machine.record.metrics.events = 0;
        assert_eq!(segment(&mut prompter), (2, 2 * DURABLE_ROW_BYTES));
        prompter.machine.record.metrics.output_bytes = DURABLE_RECORD_BYTES / 2;
        assert_eq!(segment(&mut prompter), (0, 0));
        assert!(prompter.ask(1, true), "tasks still fit");
    }

    #[test]
    fn record_has_a_largest_size_whatever_the_number_of_answers() {
        let mut prompter = Prompter::new();
        let most = DURABLE_RECORD_BYTES / (PROMPT as u64 + DURABLE_ROW_BYTES);
        let rounds = (0..=most).take_while(|_| prompter.ask(1, true)).count() as u64;
        assert!((most - 5..=most).contains(&rounds), "{rounds}");
        assert_eq!(prompter.error(), "OUTPUT_LIMIT_EXCEEDED");
    }

    #[test]
    fn tasks_without_a_prompt_fill_the_record_too() {
        let mut prompter = Prompter::new();
        assert!(prompter.on_task(String::new(), 1, true));
        prompter.machine.record.metrics.events = DURABLE_RECORD_BYTES / DURABLE_ROW_BYTES - 10;
        let rounds = (0..20).take_while(|_| prompter.on_task(String::new(), 1, true)).count();
        assert!((1..=10).contains(&rounds), "{rounds}");
        assert_eq!(prompter.error(), "OUTPUT_LIMIT_EXCEEDED");
    }
}
