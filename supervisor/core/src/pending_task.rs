//! `CC` in a session: a live pause. The worker stands in a host call until somebody answers; the execution is `waiting`
//! and its question lies in the same table as a program's. What a question is, whether an answer fits and what its time
//! being over means is decided in [`durable`](super::durable), for both engines.
//!
//! - The caller who waits for the execution is answered at the pause, once the question is stored; whoever submits the
//!   answer takes his place. Before that nobody can answer.
//! - Neither clock runs: the wall clock stands still as during any host call, and a worker that waits uses no CPU time.
//! - It lives as long as its worker. Whatever ends the execution withdraws the question in the same batch.

use super::durable::{Refused, answer_of, judged, task_of_pause, unfit, when_due};
use super::execution::{Current, Running};
use super::input::{Action, Executed, Now, Refusal, Token, Write};
use super::machine::SessionMachine;
use super::messages::Unfit;
use super::record::{Mark, Pending};
use std::sync::Arc;
use vm_system_protocol::control::GivenAnswer;
use vm_system_protocol::durable::{PROMPT_BYTES, TaskAnswer};
use vm_system_protocol::ids::{ExecutionId, TaskId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{Event, EventPayload, ExecutionKind, ExecutionStatus};
use vm_system_protocol::reason::CloseReason;
use vm_system_protocol::time::Timestamp;
use vm_system_protocol::worker::HostReply;
use vm_system_record::{TaskOutcome, TaskRow};

/// Questions of one execution are numbered below this; their number is also bounded by `max_events`.
const NUMBER_MAX: u64 = 1 << 32;

/// The question that an execution waits for.
#[derive(Debug)]
pub(super) struct PendingTask {
    row: TaskRow,
    /// Somebody can know it, so that it can be answered.
    stored: bool,
    /// When its time is over (`mono_ms`).
    until: Option<u64>,
}

impl PendingTask {
    fn new(row: TaskRow, stored: bool, now: Now) -> Self {
        let left = |at: Timestamp| u64::try_from(at.0.saturating_sub(now.unix_ms)).unwrap_or(0);
        let until = row.deadline.map(|at| now.mono_ms.saturating_add(left(at)));
        Self { row, stored, until }
    }

    /// When something is to be done about it. Nothing before it is stored: whoever is told of a pause must find one.
    pub(super) fn due_at(&self) -> Option<u64> {
        self.until.filter(|_| self.stored)
    }
}

/// A question as the worker put it.
pub(super) struct Question {
    pub(super) number: u64,
    pub(super) prompt: String,
    pub(super) options: Option<JsonText>,
}

impl SessionMachine {
    /// The running execution, which stands in host call `call`, asks.
    pub(super) fn ask(&mut self, call: u64, question: Question, now: Now, out: &mut Vec<Action>) {
        let repeating = self.peer.repeating;
        let Some(Current::Running(running)) = &mut self.current else { return };
        match judge(running, &question, repeating) {
            Ok(()) => {}
            Err(Unfit::Forbidden(what)) => return self.violation(what, now, out),
            Err(Unfit::TooMuch(kind)) => return self.condemn(CloseReason::Limit(kind), now, out),
        }
        let Question { number, prompt, options } = question;
        if number == running.question.asked {
            return self.ask_again(call, now, out);
        }
        running.question.asked = number;
        let refused = if running.record.kind == ExecutionKind::Startup {
            Some("a startup file cannot ask: its session is not there yet")
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

    /// The pause: everything about it is one batch.
    fn wait_for_answer(&mut self, row: TaskRow, now: Now, out: &mut Vec<Action>) {
        let Some(Current::Running(running)) = &mut self.current else { return };
        let id = running.id();
        let payload = EventPayload::Task { task_id: row.id, prompt: row.prompt.clone() };
        let events: Arc<[Event]> = Arc::new([running.number(now.unix_ms, payload)]);
        running.collect(&events);
        let metrics = running.metrics(now, 0);
        let record = Arc::make_mut(&mut running.record);
        record.status = ExecutionStatus::Waiting;
        record.metrics = metrics;
        let mut batch = Vec::with_capacity(4);
        if running.loss.lost.is_some() {
            // The end of an earlier question may be among what was lost.
            batch.push(Write::QuestionsWithdrawn { execution: id, at: Timestamp(now.unix_ms) });
        }
        batch.push(Write::Events(Arc::clone(&events)));
        batch.push(Write::Asked(Box::new(row.clone())));
        batch.push(Write::Progress { execution: id, status: ExecutionStatus::Waiting, metrics });
        let executed = Executed {
            record: Arc::clone(&running.record),
            events: running.collected.take().map(|(batches, _)| batches),
        };
        let mark = Mark::Asked { token: running.token.take(), task: row.id, executed };
        running.question.asking = Some(PendingTask::new(row, false, now));
        let pending = Pending { execution: Some(id), publish: Some(events), mark, ..Pending::default() };
        self.persist(pending, batch, true, out);
    }

    /// After an adoption: a question that the store has already. Its answer may have got lost with the previous
    /// supervisor, or the worker has it and goes on.
    fn ask_again(&mut self, call: u64, now: Now, out: &mut Vec<Action>) {
        let Some(Current::Running(running)) = &mut self.current else { return };
        let Some(row) = running.question.known_question.take() else { return };
        if row.ended_at.is_none() {
            Arc::make_mut(&mut running.record).status = ExecutionStatus::Waiting;
            running.question.asking = Some(PendingTask::new(row, true, now));
            return;
        }
        let withdrawn = || TaskAnswer::Failed("the question was withdrawn".to_owned());
        let answer = answer_of(&row).unwrap_or_else(withdrawn);
        self.answer_call(call, HostReply::Answer(answer), now, out);
    }

    /// The question is stored: whoever waited for the execution is told that it waits.
    pub(super) fn question_stored(
        &mut self,
        token: Option<Token>,
        task: TaskId,
        executed: Executed,
        out: &mut Vec<Action>,
    ) {
        if let Some(Current::Running(running)) = &mut self.current
            && let Some(asking) = running.question.asking.as_mut().filter(|asking| asking.row.id == task)
        {
            asking.stored = true;
        }
        if let Some(token) = token {
            Self::reply(token, Ok(super::SessionReply::Executed(executed)), out);
        }
    }

    /// Nobody can see the question: the script hears that it cannot ask, and whoever waited for it goes on waiting.
    pub(super) fn question_lost(
        &mut self,
        token: Option<Token>,
        execution: ExecutionId,
        error: &str,
        now: Now,
        out: &mut Vec<Action>,
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
        running.token = running.token.or(token);
        if running.question.asking.take().is_some() {
            Arc::make_mut(&mut running.record).status = ExecutionStatus::Running;
            if let Some(call) = running.host.map(|wait| wait.call) {
                let why = format!("the question could not be stored: {error}");
                self.answer_call(call, HostReply::Answer(TaskAnswer::Failed(why)), now, out);
            }
        }
    }

    /// Somebody answers.
    pub(super) fn submit(
        &mut self,
        (token, wait): (Token, bool),
        execution: ExecutionId,
        (task, answer): (Option<TaskId>, &GivenAnswer),
        now: Now,
        out: &mut Vec<Action>,
    ) {
        // A question whose time is over is answered already, even if nobody has looked yet.
        self.expire_question(now, out);
        let speaking = self.channel_usable();
        let running = match &mut self.current {
            Some(Current::Running(running)) if running.id() == execution && speaking => running,
            _ => return Self::reply(token, Err(Refusal::Task(Refused::NotPending)), out),
        };
        let fits = |asking: &&mut PendingTask| asking.stored && task.is_none_or(|task| asking.row.id == task);
        let Some(asking) = running.question.asking.as_mut().filter(fits) else {
            return Self::reply(token, Err(Refusal::Task(Refused::NotPending)), out);
        };
        match judged(&asking.row, answer) {
            Ok(answer) => {
                if wait {
                    running.token = Some(token);
                }
                let batch = self.go_on_with(TaskOutcome::Answered, answer, now, out);
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
                let (refusal, last) = unfit(&mut asking.row, &why, at);
                let mut batch = vec![Write::AnswerUnfit { task: asking.row.id, at }];
                if let Some(message) = last {
                    batch.extend(self.go_on_with(TaskOutcome::Failed, message, now, out));
                }
                let mark = Mark::Refused { token, why: refusal };
                let pending = Pending { execution: Some(execution), mark, ..Pending::default() };
                self.persist(pending, batch, true, out);
            }
        }
    }

    /// The time of the question is over, if it is.
    pub(super) fn expire_question(&mut self, now: Now, out: &mut Vec<Action>) {
        if !self.channel_usable() {
            return;
        }
        let Some(Current::Running(running)) = &self.current else { return };
        let due = |asking: &&PendingTask| asking.due_at().is_some_and(|at| at <= now.mono_ms);
        let Some(asking) = running.question.asking.as_ref().filter(due) else { return };
        let execution = running.id();
        let (outcome, answer) = when_due(&asking.row);
        let batch = self.go_on_with(outcome, answer, now, out);
        self.persist(Pending { execution: Some(execution), ..Pending::default() }, batch, true, out);
    }

    /// The script goes on with what came of its question; what is to be written about it.
    fn go_on_with(
        &mut self,
        outcome: TaskOutcome,
        answer: String,
        now: Now,
        out: &mut Vec<Action>,
    ) -> Vec<Write> {
        let Some(Current::Running(running)) = &mut self.current else { return Vec::new() };
        let (Some(mut asking), Some(wait)) = (running.question.asking.take(), running.host) else {
            return Vec::new();
        };
        Arc::make_mut(&mut running.record).status = ExecutionStatus::Running;
        asking.row.outcome = Some(outcome);
        asking.row.answer = Some(answer.clone());
        let (execution, task) = (running.id(), asking.row.id);
        if let Some(what) = answer_of(&asking.row) {
            self.answer_call(wait.call, HostReply::Answer(what), now, out);
        }
        let Some(Current::Running(running)) = &mut self.current else { return Vec::new() };
        let (metrics, at) = (running.metrics(now, 0), Timestamp(now.unix_ms));
        vec![
            Write::QuestionEnded { task, outcome, answer: Some(answer), at },
            Write::Progress { execution, status: ExecutionStatus::Running, metrics },
        ]
    }

    /// The worker goes on although nobody here has answered: it had its answer from the previous supervisor.
    pub(super) fn answered_elsewhere(&mut self, asking: &PendingTask, now: Now, out: &mut Vec<Action>) {
        let Some(Current::Running(running)) = &mut self.current else { return };
        Arc::make_mut(&mut running.record).status = ExecutionStatus::Running;
        let (execution, metrics) = (running.id(), running.metrics(now, 0));
        let at = Timestamp(now.unix_ms);
        let outcome = TaskOutcome::Withdrawn;
        let batch = vec![
            Write::QuestionEnded { task: asking.row.id, outcome, answer: None, at },
            Write::Progress { execution, status: ExecutionStatus::Running, metrics },
        ];
        self.persist(Pending { execution: Some(execution), ..Pending::default() }, batch, false, out);
    }
}

/// What no honest worker asks.
fn judge(running: &Running, question: &Question, repeating: bool) -> Result<(), Unfit> {
    let Question { number, prompt, options } = question;
    let bytes = prompt.len() + options.as_ref().map_or(0, |options| options.as_str().len());
    if bytes > PROMPT_BYTES {
        return Err(Unfit::Forbidden("a question that is too long"));
    }
    if options.as_ref().is_some_and(|options| !options.is_valid()) {
        return Err(Unfit::Forbidden("invalid JSON in the options of a question"));
    }
    let again = repeating && *number == running.question.asked && running.question.known_question.is_some();
    // Behind an adoption nobody knows how many were refused before they were stored.
    let next = *number == running.question.asked.saturating_add(1)
        || (repeating && *number > running.question.asked);
    if *number == 0 || *number > NUMBER_MAX || !(again || next) {
        return Err(Unfit::Forbidden("a question out of order"));
    }
    running.has_room_for(1, prompt.len() as u64)
}
