//! `CC` in a session: a live pause. The worker is blocked in a host call until an answer is submitted; the execution is
//! `waiting`, and its task is stored in the same table as the tasks of programs. [`durable`](super::durable) has the rules of
//! tasks for both engines: options, schema, deadline.
//!
//! - The caller that waits for the execution gets its reply at the pause, once the task is stored; the client that submits the
//!   answer waits from then on. No answer can be submitted before.
//! - Neither clock runs: the wall clock is paused as during any host call, and a waiting worker uses no CPU time.
//! - The pause ends with its worker at the latest. The end of the execution withdraws the task in the same batch.

use super::caller::Token;
use super::durable::{DurableRefusal, SubmittedAnswer, answer_of, task_of_pause, unfit, when_due};
use super::execution::{Current, Running};
use super::input::{Executed, Now, Refusal, SessionAction};
use super::machine::SessionMachine;
use super::messages::EventRefusal;
use super::record::{Mark, Pending};
use std::sync::Arc;
use vm_system_protocol::durable::{PROMPT_BYTES, TaskAnswer};
use vm_system_protocol::ids::{ExecutionId, TaskId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{Event, EventPayload, ExecutionKind, ExecutionStatus};
use vm_system_protocol::reason::CloseReason;
use vm_system_protocol::time::Timestamp;
use vm_system_protocol::worker::HostReply;
use vm_system_record::{ItemOutcome, ItemRow, Write};

/// Bound of the number of a task within its execution; the number of tasks is also bounded by `max_events`.
const NUMBER_MAX: u64 = 1 << 32;

/// The task that an execution waits for.
#[derive(Debug)]
pub(super) struct PendingTask {
    row: ItemRow,
    /// The task is committed, so that it can be answered.
    stored: bool,
    /// The deadline (`mono_ms`).
    until: Option<u64>,
}

impl PendingTask {
    fn new(row: ItemRow, stored: bool, now: Now) -> Self {
        let left = |at: Timestamp| u64::try_from(at.0.saturating_sub(now.unix_ms)).unwrap_or(0);
        let until = row.deadline.map(|at| now.mono_ms.saturating_add(left(at)));
        Self { row, stored, until }
    }

    /// The deadline, once the task is stored: a client that gets the status of a pause must find its task.
    pub(super) fn due_at(&self) -> Option<u64> {
        self.until.filter(|_| self.stored)
    }
}

/// A task as requested by the worker.
pub(super) struct TaskRequest {
    pub(super) number: u64,
    pub(super) prompt: String,
    pub(super) options: Option<JsonText>,
}

impl SessionMachine {
    /// The running execution begins a task in host call `call`.
    pub(super) fn on_task(
        &mut self,
        call: u64,
        request: TaskRequest,
        now: Now,
        out: &mut Vec<SessionAction>,
    ) {
        // Only an adopted worker may name a task a second time.
        let repeating = self.peer.adoption.is_of_previous();
        let Some(Current::Running(running)) = &mut self.current else { return };
        match judge(running, &request, repeating) {
            Ok(()) => {}
            Err(EventRefusal::Forbidden(what)) => return self.violation(what, now, out),
            Err(EventRefusal::TooMuch(kind)) => return self.condemn(CloseReason::Limit(kind), now, out),
        }
        let TaskRequest { number, prompt, options } = request;
        if number < running.tasks.count {
            // It has its answer: the worker goes on with its next message.
            return;
        }
        if number == running.tasks.count {
            return self.repeat_task(call, now, out);
        }
        // Counted even if the task is refused: the worker's next task has the next number.
        running.tasks.count = number;
        let refused = if running.record.kind == ExecutionKind::Startup {
            Some("a startup file cannot use CC: its session does not exist yet")
        } else if running.policy.wire.disabled_globals.iter().any(|name| name == "CC") {
            Some("CC is switched off by the session's template")
        } else {
            None
        };
        let at = Timestamp(now.unix_ms);
        let task = match refused {
            Some(why) => Err(TaskAnswer::Failed(why.to_owned())),
            None => {
                task_of_pause(running.id(), number, prompt, options.as_ref(), at).map_err(TaskAnswer::Wrong)
            }
        };
        match task {
            Ok(row) => self.wait_for_answer(row, now, out),
            Err(answer) => self.answer_call(call, HostReply::Answer(answer), now, out),
        }
    }

    /// The pause: all of its writes are one batch.
    fn wait_for_answer(&mut self, row: ItemRow, now: Now, out: &mut Vec<SessionAction>) {
        let Some(Current::Running(running)) = &mut self.current else { return };
        let id = running.id();
        let payload = EventPayload::Task { task_id: row.id, prompt: row.prompt.clone() };
        let events: Arc<[Event]> = Arc::new([running.number(now.unix_ms, payload)]);
        // Among the events of the first reply: whoever started the execution sees the question for which it waits.
        running.collect(&events);
        let metrics = running.metrics(now, 0);
        let record = Arc::make_mut(&mut running.record);
        record.status = ExecutionStatus::Waiting;
        record.metrics = metrics;
        let mut batch = Vec::with_capacity(4);
        if running.loss.lost.is_some() {
            // The end of an earlier task may be among the lost writes.
            batch.push(Write::ItemsWithdraw { execution: id, at: Timestamp(now.unix_ms) });
        }
        // Event, task and status are one batch: a client that sees `waiting` finds the task.
        batch.push(Write::Events(Arc::clone(&events)));
        batch.push(Write::ItemInsert(Box::new(row.clone())));
        batch.push(Write::RunProgress { id, status: ExecutionStatus::Waiting, metrics, limits: None });
        let executed = Executed {
            record: Arc::clone(&running.record),
            // Taken: the first caller gets the events up to the pause, and whoever answers gets the rest.
            events: running.collected.take().map(|(batches, _)| batches),
        };
        let mark = Mark::TaskInserted { token: running.token.take(), task: row.id, executed };
        running.tasks.pending = Some(PendingTask::new(row, false, now));
        let pending = Pending { execution: Some(id), publish: Some(events), mark, ..Pending::default() };
        self.persist(pending, batch, true, out);
    }

    /// After an adoption: a task that the store has already. Its answer may be lost with the previous supervisor, or
    /// the worker has the answer and continues.
    fn repeat_task(&mut self, call: u64, now: Now, out: &mut Vec<SessionAction>) {
        let Some(Current::Running(running)) = &mut self.current else { return };
        let Some(row) = running.tasks.known.take() else { return };
        if row.ended_at.is_none() {
            Arc::make_mut(&mut running.record).status = ExecutionStatus::Waiting;
            running.tasks.pending = Some(PendingTask::new(row, true, now));
            return;
        }
        let withdrawn = || TaskAnswer::Failed("the task was withdrawn".to_owned());
        let answer = answer_of(&row).unwrap_or_else(withdrawn);
        self.answer_call(call, HostReply::Answer(answer), now, out);
    }

    /// The task is stored: the caller that waits for the execution gets the status `waiting`.
    pub(super) fn on_task_stored(
        &mut self,
        token: Option<Token<Executed>>,
        task: TaskId,
        executed: Executed,
        out: &mut Vec<SessionAction>,
    ) {
        if let Some(Current::Running(running)) = &mut self.current
            && let Some(pending) = running.tasks.pending.as_mut().filter(|pending| pending.row.id == task)
        {
            // From now on the task can be answered, and its deadline counts.
            pending.stored = true;
        }
        if let Some(token) = token {
            Self::reply(token, Ok(executed), out);
        }
    }

    /// The task could not be stored: `CC` throws an error, and the caller continues to wait for the execution.
    pub(super) fn task_lost(
        &mut self,
        token: Option<Token<Executed>>,
        execution: ExecutionId,
        error: &str,
        now: Now,
        out: &mut Vec<SessionAction>,
    ) {
        let running = match &mut self.current {
            Some(Current::Running(running)) if running.id() == execution => running,
            _ => {
                if let Some(token) = token {
                    Self::reply(token, Err(Refusal::Storage(error.to_owned())), out);
                }
                return;
            }
        };
        // The caller got no reply for the pause, so it waits for the end, unless another one does already.
        running.token = running.token.or(token);
        if running.tasks.pending.take().is_some() {
            Arc::make_mut(&mut running.record).status = ExecutionStatus::Running;
            if let Some(call) = running.host.map(|wait| wait.call) {
                let why = format!("the task could not be stored: {error}");
                self.answer_call(call, HostReply::Answer(TaskAnswer::Failed(why)), now, out);
            }
        }
    }

    /// A client submits an answer.
    pub(super) fn submit(
        &mut self,
        (token, wait): (Token<Executed>, bool),
        execution: ExecutionId,
        (task, given): (Option<TaskId>, &SubmittedAnswer),
        now: Now,
        out: &mut Vec<SessionAction>,
    ) {
        if self.is_catching_up() {
            // The worker has not repeated the question yet: nobody knows whether the answer fits.
            return Self::reply(token, Err(Refusal::Busy), out);
        }
        // After its deadline a task has its result already, even if the timer has not fired yet.
        self.expire_task(now, out);
        let usable = self.channel_usable();
        let running = match &mut self.current {
            Some(Current::Running(running)) if running.id() == execution && usable => running,
            _ => return Self::reply(token, Err(Refusal::Task(DurableRefusal::NotPending)), out),
        };
        let fits =
            // The commit of a task may still fail, and an answer to it would have no row.
            |pending: &&mut PendingTask| pending.stored && task.is_none_or(|task| pending.row.id == task);
        let Some(pending) = running.tasks.pending.as_mut().filter(fits) else {
            return Self::reply(token, Err(Refusal::Task(DurableRefusal::NotPending)), out);
        };
        let Some(checked) = given.for_task(&pending.row) else {
            return Self::reply(token, Err(Refusal::Task(DurableRefusal::NotPending)), out);
        };
        match checked {
            Ok(answer) => {
                if wait {
                    running.token = Some(token);
                }
                let outcome = match given {
                    SubmittedAnswer::Recorded { outcome, .. } => *outcome,
                    _ => ItemOutcome::Answered,
                };
                // The worker goes on before the commit: if that fails, the execution is marked, and does not hang.
                let batch = self.go_on_with(outcome, answer, now, out);
                let mark = match &self.current {
                    Some(Current::Running(running)) if !wait => {
                        let executed = Executed { record: Arc::clone(&running.record), events: None };
                        Mark::Taken { token, executed }
                    }
                    _ => Mark::default(),
                };
                let pending = Pending { execution: Some(execution), mark, ..Pending::default() };
                self.persist(pending, batch, true, out);
            }
            Err(why) => {
                let at = Timestamp(now.unix_ms);
                let (refusal, last) = unfit(&mut pending.row, &why, at);
                // Committed before the refusal is sent: no attempt goes uncounted.
                let mut batch = vec![Write::TaskAttempt { execution, id: pending.row.id, at }];
                if let Some(message) = last {
                    batch.extend(self.go_on_with(ItemOutcome::Failed, message, now, out));
                }
                let mark = Mark::Refused { token, why: refusal };
                let pending = Pending { execution: Some(execution), mark, ..Pending::default() };
                self.persist(pending, batch, true, out);
            }
        }
    }

    /// Ends the task if its deadline has passed.
    pub(super) fn expire_task(&mut self, now: Now, out: &mut Vec<SessionAction>) {
        if !self.channel_usable() {
            return;
        }
        let Some(Current::Running(running)) = &self.current else { return };
        let due = |pending: &&PendingTask| pending.due_at().is_some_and(|at| at <= now.mono_ms);
        let Some(pending) = running.tasks.pending.as_ref().filter(due) else { return };
        let execution = running.id();
        let (outcome, answer) = when_due(&pending.row);
        let batch = self.go_on_with(outcome, answer, now, out);
        self.persist(Pending { execution: Some(execution), ..Pending::default() }, batch, true, out);
    }

    /// Resumes the script with the outcome of its task; returns the writes about it.
    fn go_on_with(
        &mut self,
        outcome: ItemOutcome,
        answer: String,
        now: Now,
        out: &mut Vec<SessionAction>,
    ) -> Vec<Write> {
        let Some(Current::Running(running)) = &mut self.current else { return Vec::new() };
        let (Some(mut pending), Some(wait)) = (running.tasks.pending.take(), running.host) else {
            return Vec::new();
        };
        Arc::make_mut(&mut running.record).status = ExecutionStatus::Running;
        pending.row.outcome = Some(outcome);
        pending.row.answer = Some(answer.clone());
        let (execution, task) = (running.id(), pending.row.id);
        if let Some(what) = answer_of(&pending.row) {
            self.answer_call(wait.call, HostReply::Answer(what), now, out);
        }
        let Some(Current::Running(running)) = &mut self.current else { return Vec::new() };
        let (metrics, at) = (running.metrics(now, 0), Timestamp(now.unix_ms));
        vec![
            Write::ItemEnd { execution, id: task, outcome, answer: Some(answer), at, taken_at: None },
            Write::RunProgress { id: execution, status: ExecutionStatus::Running, metrics, limits: None },
        ]
    }

    /// The worker continues without an answer from this supervisor: the previous supervisor had sent it.
    pub(super) fn answered_elsewhere(
        &mut self,
        pending: &PendingTask,
        now: Now,
        out: &mut Vec<SessionAction>,
    ) {
        let Some(Current::Running(running)) = &mut self.current else { return };
        Arc::make_mut(&mut running.record).status = ExecutionStatus::Running;
        let (execution, metrics) = (running.id(), running.metrics(now, 0));
        let at = Timestamp(now.unix_ms);
        let outcome = ItemOutcome::Withdrawn;
        let batch = vec![
            Write::ItemEnd { execution, id: pending.row.id, outcome, answer: None, at, taken_at: None },
            Write::RunProgress { id: execution, status: ExecutionStatus::Running, metrics, limits: None },
        ];
        self.persist(Pending { execution: Some(execution), ..Pending::default() }, batch, false, out);
    }
}

/// Checks a task: a violation is what no correct worker requests.
fn judge(running: &Running, request: &TaskRequest, repeating: bool) -> Result<(), EventRefusal> {
    let TaskRequest { number, prompt, options } = request;
    let bytes = prompt.len() + options.as_ref().map_or(0, |options| options.as_str().len());
    if bytes > PROMPT_BYTES {
        return Err(EventRefusal::Forbidden("a prompt that is too long"));
    }
    if options.as_ref().is_some_and(|options| !options.is_valid()) {
        return Err(EventRefusal::Forbidden("invalid JSON in the options of a task"));
    }
    // One before the stored one is sent again if a batch with the number of its message was lost.
    let again = repeating && *number <= running.tasks.count && running.tasks.known.is_some();
    // After an adoption it is unknown how many tasks were refused before they were stored.
    let next =
        *number == running.tasks.count.saturating_add(1) || (repeating && *number > running.tasks.count);
    if *number == 0 || *number > NUMBER_MAX || !(again || next) {
        return Err(EventRefusal::Forbidden("a task out of order"));
    }
    running.check_output_limits(1, prompt.len() as u64)
}
