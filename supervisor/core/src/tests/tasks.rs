//! `CC` in a session: the pause, answers, deadlines, and hostile workers.

use super::*;
use crate::durable::schema::Schema;
use crate::durable::{DurableRefusal, SubmittedAnswer};
use vm_system_protocol::control::GivenAnswer;
use vm_system_protocol::durable::{PROMPT_BYTES, TaskAnswer};
use vm_system_protocol::ids::TaskId;
use vm_system_record::{ItemOutcome, ItemRow};

fn task(number: u64, options: Option<&str>) -> HostRequest {
    let options = options.map(|options| JsonText::from_untrusted(options.to_owned()));
    HostRequest::Ask { number, prompt: "which one?".to_owned(), options }
}

impl Bench {
    fn on_task(&mut self, call: u64, number: u64, options: Option<&str>) {
        let request = task(number, options);
        self.on_worker_message(FromWorker::HostCall { execution: EXECUTION, call, request });
    }

    fn submits(&mut self, token: u64, answer: &str) {
        self.submits_to(token, None, answer);
    }

    fn submits_to(&mut self, token: u64, task: Option<TaskId>, answer: &str) {
        let given = GivenAnswer::Typed(answer.to_owned());
        let written = self.writes.iter().rev().find_map(|write| match write {
            Write::ItemInsert(row) => Some(row),
            _ => None,
        });
        let answer = match written.and_then(|row| Some((row.id, row.schema.as_deref()?))) {
            Some((id, schema)) => {
                let schema = Schema::new(schema).expect("it was checked");
                SubmittedAnswer::check(task.unwrap_or(id), Some(&schema), &given)
            }
            None => SubmittedAnswer::Unchecked(given),
        };
        self.input(SessionInput::Submit {
            token: Token::new(token),
            execution: EXECUTION,
            task,
            answer,
            wait: true,
        });
    }

    fn task(&self) -> ItemRow {
        let written = self.writes.iter().rev().find_map(|write| match write {
            Write::ItemInsert(row) => Some(ItemRow::clone(row)),
            _ => None,
        });
        written.expect("a task was written")
    }

    fn outcomes(&self) -> Vec<ItemOutcome> {
        let ended = self.writes.iter().filter_map(|write| match write {
            Write::ItemEnd { outcome, .. } => Some(*outcome),
            _ => None,
        });
        ended.collect()
    }

    fn answered(&self) -> Option<&TaskAnswer> {
        match self.sent.last() {
            Some(ToWorker::HostReply { reply: HostReply::Answer(answer), .. }) => Some(answer),
            _ => None,
        }
    }

    fn status(&self, token: u64) -> Option<ExecutionStatus> {
        match self.reply(token) {
            Some(Ok(Answer::Executed(executed))) => Some(executed.record.status),
            _ => None,
        }
    }
}

fn not_pending() -> Result<Answer, Refusal> {
    Err(Refusal::Task(DurableRefusal::NotPending))
}

#[test]
fn the_caller_gets_the_pause_and_the_submitter_the_end() {
    let mut bench = Bench::running();
    bench.prints(0, "before");
    bench.on_task(1, 1, None);
    let Some(Ok(Answer::Executed(Executed { record, events }))) = bench.reply(2) else { panic!("no answer") };
    assert_eq!((record.status, record.metrics.events), (ExecutionStatus::Waiting, 3));
    let last = events.iter().flatten().flat_map(|batch| batch.iter()).last().expect("there are events");
    let task = bench.task().id;
    let expected = EventPayload::Task { task_id: task, prompt: "which one?".to_owned() };
    assert_eq!(last.payload, expected);
    bench.submits_to(3, Some(task), "that one");
    assert_eq!(bench.answered(), Some(&TaskAnswer::Text("that one".to_owned())));
    assert_eq!(bench.reply(3), None, "it runs");
    bench.on_task(2, 2, None);
    assert_eq!(bench.status(3), Some(ExecutionStatus::Waiting), "the next pause");
    bench.submits(4, "so");
    bench.ends(Outcome::Ok);
    assert_eq!(bench.status(4), Some(ExecutionStatus::Ok));
    assert_eq!(bench.outcomes(), [ItemOutcome::Answered; 2]);
}

#[test]
fn only_the_first_answer_to_the_right_task_is_accepted() {
    let mut bench = Bench::running();
    bench.submits(3, "early");
    assert_eq!(bench.reply(3), Some(&not_pending()));
    bench.on_task(1, 1, None);
    bench.submits_to(4, Some(TaskId::from_bytes([9; 16])), "another question's");
    assert_eq!(bench.reply(4), Some(&not_pending()));
    bench.submits(5, "first");
    bench.submits(6, "second");
    assert_eq!(bench.reply(6), Some(&not_pending()));
    bench.ends(Outcome::Ok);
    bench.submits(7, "late");
    assert_eq!(bench.reply(7), Some(&not_pending()));
    assert_eq!(bench.status(5), Some(ExecutionStatus::Ok));
}

#[test]
fn an_answer_that_does_not_fit_is_refused_and_counted() {
    let mut bench = Bench::running();
    bench.on_task(1, 1, Some(r#"{"schema":{"type":"number"},"retries":1}"#));
    bench.submits(3, "many");
    assert!(matches!(
        bench.reply(3),
        Some(Err(Refusal::Task(DurableRefusal::Unfit { attempts: 1, left: Some(1), .. })))
    ));
    bench.submits(4, "\"2\"");
    assert!(matches!(
        bench.reply(4),
        Some(Err(Refusal::Task(DurableRefusal::Unfit { attempts: 2, left: Some(0), .. })))
    ));
    assert!(matches!(bench.answered(), Some(TaskAnswer::Failed(why)) if why.contains("2 attempts")));
    assert_eq!(bench.outcomes(), [ItemOutcome::Failed]);
    let mut other = Bench::running();
    other.on_task(1, 1, Some(r#"{"schema":{"type":"number"}}"#));
    other.submits(3, "7");
    assert_eq!(other.answered(), Some(&TaskAnswer::Json(JsonText::from_untrusted("7".to_owned()))));
}

#[test]
fn expired_task_gets_its_default_or_fails() {
    let mut patient = Bench::running();
    patient.on_task(1, 1, Some(r#"{"timeout_ms":500,"default":[1]}"#));
    patient.pass_ms(499);
    assert_eq!(patient.answered(), None);
    patient.pass_ms(1);
    assert_eq!(patient.answered(), Some(&TaskAnswer::Json(JsonText::from_untrusted("[1]".to_owned()))));
    patient.submits(3, "late");
    assert_eq!(patient.reply(3), Some(&not_pending()));
    let mut hasty = Bench::running();
    hasty.on_task(1, 1, Some(r#"{"timeout_ms":0}"#));
    assert_eq!(hasty.status(2), Some(ExecutionStatus::Waiting));
    hasty.pass_ms(0);
    assert!(matches!(hasty.answered(), Some(TaskAnswer::Expired(_))));
    assert_eq!(hasty.outcomes(), [ItemOutcome::Expired]);
}

#[test]
fn options_that_are_wrong_are_the_scripts_error_and_no_task() {
    let mut bench = Bench::running();
    bench.on_task(1, 1, Some(r#"{"shema":{}}"#));
    assert!(matches!(bench.answered(), Some(TaskAnswer::Wrong(why)) if why.contains("shema")));
    assert!(!bench.writes.iter().any(|write| matches!(write, Write::ItemInsert(_))));
    bench.on_task(2, 2, None);
    assert_eq!(bench.status(2), Some(ExecutionStatus::Waiting));
}

#[test]
fn neither_clock_runs_while_an_answer_is_awaited() {
    let mut bench = Bench::running_with(rights(|snapshot| snapshot.settings.limits.wall_ms = 1_000));
    bench.pass_ms(400);
    bench.on_task(1, 1, None);
    bench.pass_ms(30 * 24 * 3_600_000);
    assert_eq!((bench.interrupts, bench.killed), (0, false));
    bench.submits(3, "at last");
    bench.pass_ms(599);
    assert_eq!(bench.interrupts, 0);
    bench.pass_ms(1);
    assert_eq!(bench.interrupts, 1, "the rest of the limit is used up");
    bench.ends(Outcome::Interrupted);
    assert_eq!(bench.code(), "WALL_LIMIT");
    assert_eq!(bench.ended().metrics.host_wait_ms, 30 * 24 * 3_600_000);
}

#[test]
fn whatever_ends_a_waiting_execution_withdraws_its_task() {
    let withdrawn = |bench: &Bench| {
        let position = |is: fn(&Write) -> bool| bench.writes.iter().position(is).expect("written");
        assert!(
            position(|write| matches!(write, Write::ItemsWithdraw { .. }))
                < position(|write| matches!(write, Write::ExecutionEnded(_)))
        );
    };
    let mut cancelled = Bench::running();
    cancelled.on_task(1, 1, None);
    cancelled.input(SessionInput::Cancel { token: Token::new(3), execution: EXECUTION, abandoned: false });
    assert_eq!(cancelled.interrupts, 1);
    assert!(matches!(cancelled.sent.last(), Some(ToWorker::HostReply { reply: HostReply::Failed(_), .. })));
    cancelled.submits(4, "too late");
    assert_eq!(cancelled.reply(4), Some(&not_pending()));
    cancelled.ends(Outcome::Interrupted);
    assert_eq!(cancelled.ended().status, ExecutionStatus::Cancelled);
    withdrawn(&cancelled);
    let mut closed = Bench::running();
    closed.on_task(1, 1, None);
    closed.input(SessionInput::Close { token: Token::new(3), cause: CloseCause::Request });
    closed.ends(Outcome::Interrupted);
    assert_eq!(closed.ended().status, ExecutionStatus::Cancelled);
    withdrawn(&closed);
    let mut exited = Bench::running();
    exited.on_task(1, 1, None);
    exited.input(SessionInput::Exited(WorkerExitStatus::Signaled(11)));
    assert_eq!((exited.ended().status, exited.code().as_str()), (ExecutionStatus::Error, "WORKER_DIED"));
    assert_eq!(exited.reason(), "signal(SIGSEGV)");
    withdrawn(&exited);
}

#[test]
fn a_session_that_waits_is_busy_and_not_idle() {
    let mut bench = Bench::new(rights(|_| {}), 10);
    bench.input(SessionInput::Create { token: Token::new(1) });
    bench.input(SessionInput::Spawned);
    bench.on_worker_message(FromWorker::Started { heap_bytes: 1 });
    bench.execute(2);
    bench.on_task(1, 1, None);
    bench.pass_ms(60_000);
    bench.execute(3);
    assert_eq!(bench.reply(3), Some(&Err(Refusal::Busy)));
    assert!(!bench.sent.iter().any(|message| matches!(message, ToWorker::Shutdown)));
}

#[test]
fn template_without_tasks_is_enforced_against_any_worker() {
    let mut policy = EffectivePolicy::clone(&rights(|_| {}));
    policy.wire.disabled_globals.push("CC".to_owned());
    let mut bench = Bench::running_with(Arc::new(policy));
    bench.on_task(1, 1, None);
    assert!(matches!(bench.answered(), Some(TaskAnswer::Failed(why)) if why.contains("switched off")));
}

#[test]
fn tasks_that_no_honest_worker_sends_are_violations() {
    let long = |bytes: usize| HostRequest::Ask { number: 1, prompt: "x".repeat(bytes), options: None };
    let call = |call, request| FromWorker::HostCall { execution: EXECUTION, call, request };
    for (name, lie) in [
        ("too long", call(1, long(PROMPT_BYTES + 1))),
        ("options that are not JSON", call(1, task(1, Some("{")))),
        ("number 0", call(1, task(0, None))),
        ("number 2 first", call(1, task(2, None))),
        ("call 2 first", call(2, task(1, None))),
    ] {
        let mut bench = Bench::running();
        bench.on_worker_message(lie);
        assert!(bench.killed, "{name}");
        assert!(!bench.writes.iter().any(|write| matches!(write, Write::ItemInsert(_))), "{name}");
    }
    let mut idle = Bench::ready();
    idle.on_task(1, 1, None);
    assert!(idle.killed, "while nothing runs");
    let mut twice = Bench::running();
    twice.on_task(1, 1, None);
    twice.on_task(2, 2, None);
    assert!(twice.killed, "two at once");
    let mut impatient = Bench::running();
    impatient.on_task(1, 1, None);
    impatient.ends(Outcome::Ok);
    assert!(impatient.killed, "an end while it waits");
    let mut chatty = Bench::running_with(rights(|snapshot| snapshot.settings.limits.max_events = 2));
    for number in 1..40 {
        if !chatty.killed {
            chatty.on_task(number, number, Some(r#"{"timeout_ms":0}"#));
            chatty.pass_ms(0);
        }
    }
    chatty.input(SessionInput::Exited(WorkerExitStatus::Signaled(9)));
    assert_eq!(chatty.reason(), "limit(events)");
}
