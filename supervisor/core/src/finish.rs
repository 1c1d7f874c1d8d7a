//! The end of an execution: its status comes from this machine's own record first, from the worker's report second.

use super::close::StopCause;
use super::execution::{Current, Running};
use super::input::{CloseCause, Executed, Now, SessionAction};
use super::machine::SessionMachine;
use super::messages::{EventRefusal, judge_events};
use super::phase::Phase;
use super::record::{Ended, Pending};
use std::sync::Arc;
use vm_system_protocol::counted::counted;
use vm_system_protocol::limits::EVENT_TEXT_BYTES;
use vm_system_protocol::model::{
    ConsoleLevel, Event, EventPayload, ExecutionError, ExecutionKind, ExecutionStatus, NEVER_SETTLED_CODE,
    ResultValue,
};
use vm_system_protocol::reason::{CloseReason, EXIT_UNSETTLED, LimitKind};
use vm_system_protocol::worker::{Done, Outcome, WorkerEvent};
use vm_system_record::Write;

/// Largest number that the store can hold; the advisory numbers of a worker are capped at it.
pub(super) const STORED_MAX: u64 = i64::MAX as u64;

/// How an execution ended.
#[derive(Debug)]
pub(super) struct ExecutionOutcome {
    pub(super) status: ExecutionStatus,
    pub(super) error: Option<ExecutionError>,
}

impl ExecutionOutcome {
    pub(super) fn error(status: ExecutionStatus, code: &str, message: impl Into<String>) -> Self {
        Self { status, error: Some(ExecutionError::new(code, message)) }
    }

    /// The error of an exception, with what its event says of its size.
    fn thrown(code: &str, message: String, events: &[Event]) -> Self {
        let size = events.iter().rev().find_map(|event| match &event.payload {
            EventPayload::Exception { truncated, full_bytes, .. } => Some((*truncated, *full_bytes)),
            _ => None,
        });
        let (truncated, full_bytes) = match size {
            _ if message.len() > EVENT_TEXT_BYTES => (true, Some(message.len() as u64)),
            size => size.unwrap_or_default(),
        };
        let error = ExecutionError { truncated, full_bytes, ..ExecutionError::new(code, cut(message)) };
        Self { status: ExecutionStatus::Error, error: Some(error) }
    }

    /// The result of an execution that this machine stopped.
    pub(super) fn stopped(stop: StopCause, running: &Running) -> Self {
        let limits = &running.policy.wire.limits;
        match stop {
            StopCause::Cancelled => {
                Self::error(ExecutionStatus::Cancelled, "CANCELLED", "cancelled on request")
            }
            StopCause::Abandoned => Self::error(
                ExecutionStatus::Cancelled,
                "CANCELLED",
                "cancelled because the client that waited for it has disconnected",
            ),
            StopCause::Closing(cause) => Self::error(ExecutionStatus::Cancelled, "CANCELLED", closing(cause)),
            StopCause::Limit(kind) => Self::limit(kind, limits),
        }
    }

    fn limit(kind: LimitKind, limits: &vm_system_protocol::model::Limits) -> Self {
        match kind {
            LimitKind::Cpu => Self::error(
                ExecutionStatus::Timeout,
                "CPU_LIMIT",
                format!("used more than {} ms of CPU time (cpu_ms)", limits.cpu_ms),
            ),
            LimitKind::Wall => Self::error(
                ExecutionStatus::Timeout,
                "WALL_LIMIT",
                format!("took longer than {} ms (wall_ms)", limits.wall_ms),
            ),
            LimitKind::Memory | LimitKind::Pids => Self::error(
                ExecutionStatus::Error,
                "MEMORY_LIMIT",
                format!("used more than {} MiB of memory (mem_mb)", limits.mem_mb),
            ),
            LimitKind::Output => Self::error(
                ExecutionStatus::Error,
                "OUTPUT_LIMIT_EXCEEDED",
                format!("produced more than {} KiB (max_output_kb)", limits.max_output_kb),
            ),
            LimitKind::Events => Self::error(
                ExecutionStatus::Error,
                "OUTPUT_LIMIT_EXCEEDED",
                format!("produced more than {} (max_events)", counted(limits.max_events, "event")),
            ),
        }
    }

    /// The outcome that the worker reported, without a contradicting record of this machine.
    fn reported(outcome: Outcome, running: &Running, events: &[Event]) -> Self {
        match outcome {
            Outcome::Ok => Self { status: ExecutionStatus::Ok, error: None },
            Outcome::Exception { message } => Self::thrown("EXCEPTION", message, events),
            Outcome::SyntaxError { message } => Self::thrown("SYNTAX_ERROR", message, events),
            Outcome::Limit(kind) => Self::limit(kind, &running.policy.wire.limits),
            Outcome::Exit { code } => match events.last().map(|event| &event.payload) {
                Some(EventPayload::Exception { message, .. }) if code == EXIT_UNSETTLED => {
                    Self::thrown(NEVER_SETTLED_CODE, message.clone(), events)
                }
                _ => Self { status: ExecutionStatus::Error, error: Some(ExecutionError::exit(code)) },
            },
            Outcome::Interrupted => Self::error(
                ExecutionStatus::Cancelled,
                "CANCELLED",
                "interrupted by a signal that this system did not send",
            ),
        }
    }

    /// The worker exited during the execution, with `reason`.
    fn of_exit(reason: &CloseReason, closing: Option<CloseCause>, running: &Running) -> Self {
        let stop = running.stopping.stop;
        if let Some(cause) = closing {
            let cancelled = stop.filter(|stop| stop.is_of_client());
            return Self::stopped(cancelled.unwrap_or(StopCause::Closing(cause)), running);
        }
        match (reason, stop) {
            (CloseReason::Limit(kind), _) => return Self::limit(*kind, &running.policy.wire.limits),
            (CloseReason::KilledByOperator | CloseReason::Cancelled, Some(stop)) if stop.is_of_client() => {
                return Self::stopped(stop, running);
            }
            _ => {}
        }
        let mut ending =
            Self::error(ExecutionStatus::Error, "WORKER_DIED", format!("the worker exited: {reason}"));
        if let Some(error) = &mut ending.error {
            error.reason = Some(reason.to_string());
        }
        ending
    }
}

/// Why an execution ends with its session.
fn closing(cause: CloseCause) -> &'static str {
    match cause {
        CloseCause::Request => "cancelled on request: its session was closed",
        CloseCause::Idle => "its session was idle for too long (idle_timeout_s)",
        CloseCause::Expired => "its session has expired (ttl_s)",
        CloseCause::Shutdown => "the daemon stops, and keeps no sessions",
        CloseCause::Replaced => {
            "its worker was of another build than its daemon's, and the deadline for such workers has passed (`ops upgrade --drain-by`)"
        }
    }
}

impl SessionMachine {
    /// Handles `Done` of the running execution.
    pub(super) fn done(&mut self, done: Done, now: Now, out: &mut Vec<SessionAction>) {
        let Some(Current::Running(running)) = &self.current else { return };
        match judge_done(running, &done) {
            Ok(()) => {}
            Err(EventRefusal::Forbidden(what)) => return self.violation(what, now, out),
            Err(EventRefusal::TooMuch(kind)) => return self.condemn(CloseReason::Limit(kind), now, out),
        }
        let Some(Current::Running(mut running)) = self.current.take() else { return };
        let result = match (&done.outcome, done.events.last()) {
            (Outcome::Ok, Some(WorkerEvent { payload: EventPayload::Value(value), .. })) => {
                Some(value.clone())
            }
            _ => None,
        };
        let mut events = host_use(&mut running, now, out);
        events.extend(running.number_all(done.events, now));
        let ending = match running.stopping.stop {
            Some(stop) => ExecutionOutcome::stopped(stop, &running),
            None => ExecutionOutcome::reported(done.outcome, &running, &events),
        };
        // A stop that came first decides: the value of an execution that was cancelled is not shown as its result.
        let result = result.filter(|_| ending.status == ExecutionStatus::Ok);
        self.peer.heap_bytes = done.usage.heap_bytes.min(STORED_MAX);
        // Before the batch is built, so that it has the number of this message and the worker may forget it.
        self.ledger.settle(self.peer.next_seq - 1);
        let kind = running.record.kind;
        let (id, status) = (running.id(), ending.status);
        let what = describe(&running, &ending, &events);
        let heap_peak = done.usage.heap_peak_bytes.min(STORED_MAX);
        let (batch, pending) = conclude(*running, ending, result, events, heap_peak, now);
        self.persist(pending, batch, true, out);
        if self.ending.closing.is_some() {
            self.shut_down(now, out);
        } else if kind == ExecutionKind::Startup && self.phase() == Phase::Starting {
            self.startup_ended(&what, status, now, out);
        } else {
            self.rest_changed(Some(id), now, out);
        }
    }

    /// The worker never received the execution, or its end was lost with an earlier supervisor.
    pub(super) fn lost_with_supervisor(&mut self, message: &str, now: Now, out: &mut Vec<SessionAction>) {
        let Some(Current::Running(mut running)) = self.current.take() else { return };
        let ending = ExecutionOutcome::error(ExecutionStatus::Error, "HOST_RESTART", message);
        let text = message.to_owned();
        let event = running.number(
            now.unix_ms,
            EventPayload::System { message: text, level: ConsoleLevel::Error, code: None },
        );
        let (batch, pending) = conclude(*running, ending, None, vec![event], 0, now);
        self.persist(pending, batch, true, out);
        match self.ending.closing {
            Some(_) => self.shut_down(now, out),
            None => self.rest(now),
        }
    }

    /// Records the end of an execution that the worker never got.
    pub(super) fn end_withheld(
        &mut self,
        running: Running,
        ending: ExecutionOutcome,
        events: Vec<Event>,
        now: Now,
        out: &mut Vec<SessionAction>,
    ) {
        let (kind, status) = (running.record.kind, ending.status);
        let what = describe(&running, &ending, &events);
        let (batch, pending) = conclude(running, ending, None, events, 0, now);
        self.persist(pending, batch, true, out);
        match self.ending.closing {
            Some(_) => self.shut_down(now, out),
            None if kind == ExecutionKind::Startup && self.phase() == Phase::Starting => {
                self.startup_ended(&what, status, now, out);
            }
            None => self.rest(now),
        }
    }

    /// The worker exited during an execution: the writes that record it.
    pub(super) fn cut_short(
        &self,
        mut running: Running,
        reason: &CloseReason,
        now: Now,
    ) -> (Vec<Write>, Pending) {
        let ending = ExecutionOutcome::of_exit(reason, self.ending.closing, &running);
        // The session's broker ends with it.
        let mut events = host_use(&mut running, now, &mut Vec::new());
        let text = format!("the worker ended in the middle of this execution: {reason}");
        events.push(running.number(
            now.unix_ms,
            EventPayload::System { message: text, level: ConsoleLevel::Error, code: None },
        ));
        conclude(running, ending, None, events, 0, now)
    }
}

/// Events about the host modules that an execution used; closes what the execution left open.
fn host_use(running: &mut Running, now: Now, out: &mut Vec<SessionAction>) -> Vec<Event> {
    if running.usage.has_used("database") || running.usage.has_used("http") {
        out.push(SessionAction::EndHostUse);
    }
    let lines = running.usage.summary().into_iter();
    lines.map(|line| running.number_own(line, (ConsoleLevel::Info, None), now)).collect()
}

fn judge_done(running: &Running, done: &Done) -> Result<(), EventRefusal> {
    judge_events(running, &done.events)?;
    match done.outcome {
        Outcome::Limit(LimitKind::Pids) => {
            return Err(EventRefusal::Forbidden("a limit that workers do not enforce"));
        }
        Outcome::Exit { code } if !(1..=255).contains(&code) => {
            return Err(EventRefusal::Forbidden("an impossible exit code"));
        }
        _ => {}
    }
    Ok(())
}

/// The last writes of an execution, and what follows from their commit.
fn conclude(
    mut running: Running,
    ending: ExecutionOutcome,
    result: Option<ResultValue>,
    mut events: Vec<Event>,
    heap_peak_bytes: u64,
    now: Now,
) -> (Vec<Write>, Pending) {
    let lost = running.loss.lost.take();
    if let Some(error) = &lost {
        let message = format!("the store lost output of this execution: {error}");
        events.push(
            running.number(
                now.unix_ms,
                EventPayload::System { message, level: ConsoleLevel::Error, code: None },
            ),
        );
        Arc::make_mut(&mut running.record).degraded = true;
    }
    let mut batch = Vec::with_capacity(3);
    let mut publish = None;
    if !events.is_empty() {
        let events: Arc<[Event]> = events.into();
        running.collect(&events);
        batch.push(Write::Events(Arc::clone(&events)));
        publish = Some(events);
    }
    // The store refuses the end of an execution that it does not have: the start goes into the same batch, in front.
    if running.loss.start_lost {
        batch.insert(0, Write::ExecutionStarted { name: None, execution: Arc::clone(&running.record) });
    }
    let id = running.id();
    let (ended_at, metrics) = (running.ended_at(now), running.metrics(now, heap_peak_bytes));
    let mut record = running.record;
    let ended = Arc::make_mut(&mut record);
    ended.status = ending.status;
    ended.error = ending.error;
    ended.result = result;
    ended.ended_at = Some(ended_at);
    ended.metrics = metrics;
    let had_task = running.tasks.count > 0;
    if had_task {
        batch.push(Write::ItemsWithdraw { execution: id, at: ended_at });
    }
    // Last: rows of an execution that has ended are not changed any more.
    batch.push(Write::ExecutionEnded(Arc::clone(&record)));
    let executed = Executed { record, events: running.collected.map(|(batches, _)| batches) };
    let pending = Pending {
        execution: Some(id),
        publish,
        ended: Some(Box::new(Ended {
            executed,
            token: running.token,
            start_lost: running.loss.start_lost,
            had_task,
            lost,
        })),
        ..Pending::default()
    };
    (batch, pending)
}

/// `setup.js:3: Error: no database`: file, line and message.
fn describe(running: &Running, ending: &ExecutionOutcome, events: &[Event]) -> String {
    let file = running.record.path.as_deref().unwrap_or("startup");
    let Some(error) = &ending.error else { return file.to_owned() };
    let line = events.iter().rev().find_map(|event| match &event.payload {
        EventPayload::Exception { stack, .. } => line_in(file, stack),
        _ => None,
    });
    let message: String = cut(error.message.clone()).chars().take(300).collect();
    match line {
        Some(line) => format!("{file}:{line}: {message}"),
        None => format!("{file}: {message}"),
    }
}

/// The line of the first position in this file that a stack names (`at setup.js:3:7`, `at f (setup.js:3:7)`).
fn line_in(file: &str, stack: &str) -> Option<u32> {
    let positions = stack.lines().filter_map(|line| line.trim_start().strip_prefix("at "));
    positions.into_iter().find_map(|position| {
        let (before, after) = position.split_once(file)?;
        let begins = before.is_empty() || before.ends_with(['(', ' ']);
        let digits: String = after.strip_prefix(':')?.chars().take_while(char::is_ascii_digit).collect();
        if begins { digits.parse().ok() } else { None }
    })
}

/// Cuts a message to the length of an event's text.
fn cut(mut message: String) -> String {
    if message.len() > EVENT_TEXT_BYTES {
        let end = (0..=EVENT_TEXT_BYTES).rev().find(|at| message.is_char_boundary(*at)).unwrap_or(0);
        message.truncate(end);
        message.push('…');
    }
    message
}
