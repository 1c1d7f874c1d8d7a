//! Requests and deadlines: answers, expired tasks, changed variables, cancellation.

use super::input::{DurableAction as Action, DurableInput as Input, DurableRefusal, RunToken};
use super::machine::{COMMIT_MS, DurableMachine, HOLD_MS};
use super::schema::Schema;
use super::state::{AfterCommit, NextStep, Stage};
use crate::Now;
use serde_json::Value;
use vm_system_protocol::control::GivenAnswer;
use vm_system_protocol::counted::counted;
use vm_system_protocol::ids::TaskId;
use vm_system_protocol::input::{NotForScript, json_for_script, parse_for_script};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{ExecutionError, ExecutionStatus};
use vm_system_protocol::time::Timestamp;
use vm_system_record::{ItemOutcome, ItemRow, WaitKind, Write};

/// Requests that may wait for the batch that is being written. One answer is accepted; all others are from clients that were late.
pub(super) const DEFERRED: usize = 64;
/// Requests that may wait, cancellations included: many late answers must not prevent a cancellation.
const DEFERRED_CANCELS: usize = DEFERRED + 16;

impl DurableMachine {
    /// Input that arrives while a batch is being written is handled after it. An answer without a task id means the task that
    /// its submitter can see, never the next one, which is not stored yet.
    pub(super) fn defer(&mut self, mut input: Input, actions: &mut Vec<Action>) {
        if let Input::Submit { token, task: task @ None, .. } = &mut input {
            match self.only_question() {
                Ok(only) => *task = Some(only),
                Err(why) => return actions.push(Action::Reply { token: *token, result: Err(why) }),
            }
        }
        self.keep_deferred(input, DEFERRED, actions);
    }

    /// The task that an answer without a task's id means: the only one that is pending and that clients can see.
    fn only_question(&self) -> Result<TaskId, DurableRefusal> {
        let is_storing = self.writes.writing.iter().any(|(_, then)| *then == AfterCommit::Wait);
        let tasks: Vec<TaskId> = self
            .visible_questions()
            // The question of a pause that is being stored.
            .filter(|row| !(row.is_pause() && (is_storing || self.stage == Stage::Held)))
            .map(|row| row.id)
            .take(SHOWN_TASKS)
            .collect();
        match tasks[..] {
            [] if self.ended || self.record.status.is_final() => Err(DurableRefusal::Ended),
            [] => Err(DurableRefusal::NotPending),
            [only] => Ok(only),
            _ => Err(DurableRefusal::Ambiguous { tasks }),
        }
    }

    /// Keeps a request until the batch is written, if fewer than `most` wait.
    fn keep_deferred(&mut self, input: Input, most: usize, actions: &mut Vec<Action>) {
        if self.requests.deferred.len() < most {
            return self.requests.deferred.push(input);
        }
        if let Some(token) = input.token() {
            actions.push(Action::Reply { token, result: Err(DurableRefusal::Busy) });
        }
    }

    pub(super) fn submit(
        &mut self,
        (token, wait): (RunToken, bool),
        (task, answer): (Option<TaskId>, &SubmittedAnswer),
        with: Vec<Write>,
        now: Now,
        actions: &mut Vec<Action>,
    ) {
        // After its deadline a task has its result already, even if the timer has not fired yet.
        self.expire_if_due(now, actions);
        let task = match task.map_or_else(|| self.only_question(), Ok) {
            Ok(task) => task,
            Err(why) => return actions.push(Action::Reply { token, result: Err(why) }),
        };
        // The task of a pause that is being stored (`Held`) is visible to nobody yet.
        let waits = self.next == NextStep::Pause && !matches!(self.stage, Stage::Held | Stage::Setting);
        let pause = self.task.as_ref().filter(|row| row.id == task && waits);
        let item = self.items.number_of(task);
        let pending = pause.or_else(|| self.items.get(item?));
        let checked = pending.filter(|_| !self.ended).and_then(|row| answer.for_task(row));
        let Some(checked) = checked else {
            let why = if self.ended { DurableRefusal::Ended } else { DurableRefusal::NotPending };
            actions.push(Action::Reply { token, result: Err(why) });
            return;
        };
        match checked {
            Ok(answer) if item.is_some() && !self.items.has_space_for(answer.len()) => {
                actions.push(Action::Reply { token, result: Err(DurableRefusal::AnswersFull) });
            }
            Ok(answer) => {
                // A program that waits at a pause does not go on with the answer of an item.
                let wait = wait && !(item.is_some() && self.next == NextStep::Pause);
                self.add_waiting_caller(token, wait);
                // In the batch of the answer: a repeated request finds the mark of its key exactly if the answer is stored.
                self.writes.unwritten.extend(with);
                match item {
                    Some(number) => {
                        self.accept_item(number, ItemOutcome::Answered, Some(answer), now);
                        self.item_ended(now, actions);
                    }
                    None => self.accept(ItemOutcome::Answered, answer, now, actions),
                }
                // This caller waits for the commit alone, so the answer does not wait for the next checkpoint.
                if !wait {
                    self.commit_alone(now, actions);
                }
            }
            Err(why) => self.unfit(token, (item, &why), now, actions),
        }
    }

    /// Ends the task; the program resumes with its outcome.
    fn accept(&mut self, outcome: ItemOutcome, answer: String, now: Now, actions: &mut Vec<Action>) {
        let Some(mut row) = self.task.take() else { return };
        if !matches!(self.stage, Stage::Warm(_)) {
            // Held until the state is restored: a state that cannot be must not use the answer up.
            self.requests.held_answer = Some(row.clone());
            self.writes.commit_at = Some(now.mono_ms + HOLD_MS);
        }
        let at = Timestamp(now.unix_ms);
        row.outcome = Some(outcome);
        row.answer = Some(answer.clone());
        let Some(what) = super::stored::answer_of(&row) else { return };
        self.next = NextStep::Answer(what);
        self.record.status = ExecutionStatus::Running;
        self.writes.unwritten.push(Write::ItemEnd {
            execution: row.execution,
            id: row.id,
            outcome,
            answer: Some(answer),
            at,
            taken_at: None,
        });
        if !self.settle((outcome, &row), now, actions) {
            return;
        }
        match self.stage {
            Stage::Warm(_) => self.go_on(now, actions),
            Stage::Cold => self.spawn(now, actions),
            // The next worker is started as soon as this one has exited; one that is being started gets the answer once it is loaded.
            _ => {}
        }
    }

    /// The state is restored: the answer to it is stored, alone if a caller waits for only that.
    pub(super) fn store_held_answer(&mut self, now: Now, actions: &mut Vec<Action>) {
        let has_items = self.next == NextStep::Items && !self.writes.unwritten.is_empty();
        if self.requests.held_answer.take().is_none() && !has_items {
            return;
        }
        if self.requests.early.is_empty() {
            // A worker for a small state is done within the time for which an answer may wait.
            self.writes.commit_at = Some(now.mono_ms + COMMIT_MS);
        } else {
            self.commit_alone(now, actions);
        }
    }

    fn unfit(
        &mut self,
        token: RunToken,
        (item, why): (Option<u64>, &str),
        now: Now,
        actions: &mut Vec<Action>,
    ) {
        let row = match item {
            Some(number) => self.items.get_mut(number),
            None => self.task.as_mut(),
        };
        let Some(row) = row else { return };
        let at = Timestamp(now.unix_ms);
        let (refusal, last) = unfit(row, why, at);
        self.writes.unwritten.push(Write::TaskAttempt { execution: row.execution, id: row.id, at });
        if let Some(message) = last {
            // A client that learns of its last attempt no longer finds the task.
            match item {
                Some(number) => {
                    self.accept_item(number, ItemOutcome::Failed, Some(message), now);
                    self.item_ended(now, actions);
                }
                None => self.accept(ItemOutcome::Failed, message, now, actions),
            }
            self.add_progress(self.progress_status());
        }
        self.flush(now, AfterCommit::Refuse(token, refusal), actions);
    }

    pub(super) fn expire_if_due(&mut self, now: Now, actions: &mut Vec<Action>) {
        // By the calendar: the deadline is older than this process may be.
        let is_due = self.wakes_at().is_some_and(|at| at.0 <= now.unix_ms);
        if !is_due || self.ended || self.released || !self.writes.writing.is_empty() {
            return;
        }
        self.expire_items(now);
        let due = self.pending_pause().filter(|row| row.deadline.is_some_and(|at| at.0 <= now.unix_ms));
        match due.map(when_due) {
            Some((outcome, answer)) => self.accept(outcome, answer, now, actions),
            // Without a worker nothing stores them but this.
            None if self.stage == Stage::Cold && self.is_at_rest() => self.commit_alone(now, actions),
            None => self.use_answers(now, actions),
        }
    }

    pub(super) fn set_variable(
        &mut self,
        token: RunToken,
        frame: u32,
        name: String,
        value: JsonText,
        now: Now,
        actions: &mut Vec<Action>,
    ) {
        let refusal = if self.ended {
            Some(DurableRefusal::Ended)
        } else if !self.is_at_rest() || self.requests.set.is_some() || self.requests.setting.is_some() {
            Some(DurableRefusal::NotPending)
        } else {
            None
        };
        if let Some(why) = refusal {
            actions.push(Action::Reply { token, result: Err(why) });
            return;
        }
        self.requests.set = Some((token, frame, name, value));
        match self.stage {
            Stage::Warm(_) => self.go_on(now, actions),
            Stage::Cold => self.spawn(now, actions),
            _ => {}
        }
    }

    pub(super) fn cancel(&mut self, token: RunToken, with: Vec<Write>, now: Now, actions: &mut Vec<Action>) {
        if self.ended {
            actions.push(Action::Reply { token, result: Err(DurableRefusal::Ended) });
            return;
        }
        if !self.writes.writing.is_empty() {
            return self.keep_deferred(Input::Cancel { token, with }, DEFERRED_CANCELS, actions);
        }
        match self.stage {
            Stage::Running => self.end_segment(now),
            Stage::Calling => self.end_call(now),
            _ => {}
        }
        self.writes.unwritten.extend(with);
        // The reply comes with the stored end, as for those that wait for the execution.
        self.requests.waiting.push(token);
        self.end(
            ExecutionStatus::Cancelled,
            Some(ExecutionError::new("CANCELLED", "ended on request")),
            now,
            actions,
        );
    }

    /// The supervisor stops: accepted requests are stored, deferred ones are refused.
    pub(super) fn stop(&mut self, now: Now, actions: &mut Vec<Action>) {
        self.released = true;
        self.requests.held_answer = None;
        self.refuse_all(&DurableRefusal::Stopping, actions);
        self.refuse_deferred(&DurableRefusal::Stopping, actions);
        if self.creation_pending() {
            self.writes.unwritten.clear();
        } else {
            self.commit_alone(now, actions);
        }
        if !matches!(self.stage, Stage::Cold | Stage::Exiting) {
            self.let_worker_go(actions);
        }
    }
}

/// Tasks that the refusal of an ambiguous answer shows.
const SHOWN_TASKS: usize = 20;
/// The part of a schema that a refusal shows (bytes).
const SHOWN_SCHEMA_BYTES: usize = 1024;

/// Counts an answer that does not fit. Returns the refusal for its submitter, and the program's error message if this was the
/// last permitted attempt.
pub(crate) fn unfit(row: &mut ItemRow, why: &str, at: Timestamp) -> (DurableRefusal, Option<String>) {
    row.attempts = row.attempts.saturating_add(1);
    row.first_attempt_at = row.first_attempt_at.or(Some(at));
    row.last_attempt_at = Some(at);
    let attempts = row.attempts;
    let last = row.retries.is_some_and(|retries| attempts > retries);
    let message = last.then(|| format!("no answer fitted after {}: {why}", counted(attempts, "attempt")));
    let left = row.retries.map(|retries| retries.saturating_add(1).saturating_sub(attempts));
    let schema = row.schema.as_deref().unwrap_or_default();
    let schema = schema[..schema.floor_char_boundary(SHOWN_SCHEMA_BYTES)].to_owned();
    (DurableRefusal::Unfit { why: why.to_owned(), attempts, left, schema }, message)
}

/// The outcome of a task at its deadline.
pub(crate) fn when_due(row: &ItemRow) -> (ItemOutcome, String) {
    if let Some(json) = &row.fallback {
        return (ItemOutcome::Defaulted, json.clone());
    }
    let what = if row.kind == WaitKind::Event { "event" } else { "answer" };
    (ItemOutcome::Expired, format!("no {what} came in time"))
}

/// An answer as it was submitted. Whether one fits a schema takes too long for a state machine: that is found out before.
#[derive(Debug, Clone)]
pub enum SubmittedAnswer {
    /// For a task without a schema.
    Unchecked(GivenAnswer),
    /// For this task: the answer as it is stored, or the reason why it does not fit.
    Checked { task: TaskId, result: Result<String, String> },
    /// How the same task of another session ended, and its answer or error as stored.
    Recorded { task: TaskId, outcome: ItemOutcome, answer: String },
}

impl SubmittedAnswer {
    /// Checks an answer to a task. Takes up to some tenths of a second.
    pub fn check(task: TaskId, schema: Option<&Schema>, given: &GivenAnswer) -> Self {
        Self::Checked { task, result: as_stored(schema, given) }
    }

    /// The answer for this task as it is stored, or the reason why it does not fit. `None`: it was checked for another task, or
    /// not at all.
    pub fn for_task(&self, row: &ItemRow) -> Option<Result<String, String>> {
        match self {
            Self::Unchecked(given) => row.schema.is_none().then(|| as_stored(None, given)),
            Self::Checked { task, result } => (*task == row.id).then(|| result.clone()),
            Self::Recorded { task, answer, .. } => (*task == row.id).then(|| Ok(answer.clone())),
        }
    }
}

/// The answer as it is stored: text as it is, or JSON that fits the task's schema.
fn as_stored(schema: Option<&Schema>, answer: &GivenAnswer) -> Result<String, String> {
    match (answer, schema) {
        (GivenAnswer::Typed(text), None) => Ok(text.clone()),
        (GivenAnswer::Typed(text), Some(schema)) => typed(text, schema),
        (GivenAnswer::Json(json), schema) => {
            let value = json_for_script(json.as_str())?;
            match (schema, value) {
                (None, Value::String(text)) => Ok(text),
                (None, _) => Ok(json.as_str().trim().to_owned()),
                (Some(schema), value) => schema.fits(&value).map(|()| value.to_string()),
            }
        }
    }
}

/// An answer as it was typed: JSON, also in a fence of Markdown, or a string that need not be quoted where the schema names one. JSON
/// that no program can hold is no string, unless the schema allows nothing else.
fn typed(answer: &str, schema: &Schema) -> Result<String, String> {
    let text_fits = |text: &str| {
        let text = Value::from(text);
        schema.names_strings().then(|| schema.fits(&text).map(|()| text.to_string()))
    };
    let content = fenced(answer).map(str::trim);
    let bare = || match (text_fits(answer), content.and_then(text_fits)) {
        (_, Some(Ok(text))) => Some(Ok(text)),
        (whole, _) => whole,
    };
    let parsed = match (parse_for_script(answer), content) {
        // The text inside of a fence is what was meant to be JSON.
        (Err(NotForScript::NotJson(_)), Some(content)) => parse_for_script(content),
        (parsed, _) => parsed,
    };
    match parsed {
        Ok(value) => match schema.fits(&value) {
            Ok(()) => Ok(value.to_string()),
            Err(why) => bare().and_then(Result::ok).ok_or(why),
        },
        Err(NotForScript::Unsupported(why)) if !schema.is_for_strings() => Err(why),
        Err(error) => bare().unwrap_or_else(|| Err(error.why())),
    }
}

/// The content of an answer that is one fenced block of Markdown: three backticks, a word, a line, the content, three backticks.
fn fenced(answer: &str) -> Option<&str> {
    let inside = answer.trim().strip_prefix("```")?.strip_suffix("```")?;
    let (word, content) = inside.split_once('\n')?;
    (word.trim().chars().all(char::is_alphanumeric) && !content.contains("```")).then_some(content)
}

#[cfg(test)]
mod tests {
    use super::super::task_of_pause;
    use super::{Schema, SubmittedAnswer};
    use vm_system_protocol::control::GivenAnswer;
    use vm_system_protocol::ids::{ExecutionId, TaskId};
    use vm_system_protocol::json::JsonText;
    use vm_system_protocol::time::Timestamp;

    #[test]
    fn texts_and_json_may_be_fenced() {
        let enumeration = r#"{"enum":["yes","no"]}"#;
        for (schema, answer, expected) in [
            (enumeration, "```\nyes\n```", Some("\"yes\"")),
            (enumeration, "```text\nno\n```", Some("\"no\"")),
            (enumeration, "yes", Some("\"yes\"")),
            (enumeration, "```\nperhaps\n```", None),
            (r#"{"type":"number"}"#, "```json\n5\n```", Some("5")),
            (r#"{"type":"string"}"#, "```\nlet x\n```", Some("\"let x\"")),
        ] {
            let schema = Schema::new(schema).expect("a schema");
            let typed = super::typed(answer, &schema);
            assert_eq!(typed.as_deref().ok(), expected, "{answer}: {typed:?}");
        }
    }

    #[test]
    fn json_that_no_program_can_hold_is_no_text() {
        let any = r#"{"type":["string","number","array","object"]}"#;
        let deep = format!("{}1{}", "[".repeat(130), "]".repeat(130));
        for (schema, answer, expected) in [
            (any, "1e400", Err("out of range")),
            (any, r#"{"a":1e400}"#, Err("out of range")),
            (any, deep.as_str(), Err("nested too deeply")),
            (any, r#""\ud800""#, Err("surrogate pair")),
            (any, "9007199254740993", Err("send it as a string")),
            (any, r#"{"a":9007199254740993}"#, Err("send it as a string")),
            (any, "9007199254740993.0", Err("send it as a string")),
            (any, "```json\n1e400\n```", Err("out of range")),
            (any, "1e400 apples", Ok("\"1e400 apples\"")),
            (any, "5", Ok("5")),
            (any, "five", Ok("\"five\"")),
            // A card number.
            (r#"{"type":"string"}"#, "9007199254740993", Ok("\"9007199254740993\"")),
            (r#"{"enum":["1e400","b"]}"#, "1e400", Ok("\"1e400\"")),
        ] {
            let schema = Schema::new(schema).expect("a schema");
            let typed = super::typed(answer, &schema);
            match expected {
                Ok(expected) => assert_eq!(typed.as_deref(), Ok(expected), "{answer}"),
                Err(reason) => {
                    assert!(typed.as_ref().is_err_and(|why| why.contains(reason)), "{answer}: {typed:?}");
                }
            }
        }
    }

    #[test]
    fn answer_is_used_only_for_the_task_for_which_it_was_checked() {
        let options = JsonText::from_untrusted(r#"{"schema":{"type":"number"}}"#.to_owned());
        let execution = ExecutionId::from_bytes([1; 16]);
        let task = task_of_pause(execution, 1, "which one?".to_owned(), Some(&options), Timestamp(0));
        let mut row = task.expect("a task");
        let schema = Schema::new(row.schema.as_deref().expect("it has one")).expect("a schema");
        let given = GivenAnswer::Typed("1".to_owned());
        let checked = SubmittedAnswer::check(row.id, Some(&schema), &given);
        assert_eq!(checked.for_task(&row), Some(Ok("1".to_owned())));
        let unfit = GivenAnswer::Typed("one".to_owned());
        let unfit = SubmittedAnswer::check(row.id, Some(&schema), &unfit).for_task(&row);
        assert!(unfit.is_some_and(|result| result.is_err()));
        let of_another = SubmittedAnswer::check(TaskId::from_bytes([2; 16]), Some(&schema), &given);
        assert_eq!(of_another.for_task(&row), None);
        let unchecked = SubmittedAnswer::Unchecked(given);
        assert_eq!(unchecked.for_task(&row), None);
        row.schema = None;
        assert_eq!(unchecked.for_task(&row), Some(Ok("1".to_owned())));
    }
}
