//! Adopted workers: executions that the store does not have, and reports that no correct worker makes.

mod limits;

use super::*;
use crate::AdoptedExecution;
use crate::durable::SubmittedAnswer;
use vm_system_protocol::broker::DatabaseRequest;
use vm_system_protocol::control::GivenAnswer;
use vm_system_protocol::model::Metrics;
use vm_system_record::{ItemRow, RunningExecutionRow};

const UNRECORDED: ExecutionId = ExecutionId::from_bytes([9; 16]);
const EARLIER: ExecutionId = ExecutionId::from_bytes([8; 16]);
const NONCE: u64 = 5;
/// The last stored number.
const COMMITTED: u64 = 10;

/// An execution that runs.
fn running_execution(id: ExecutionId, metrics: Metrics, started_at: Timestamp) -> Execution {
    Execution {
        id,
        session_id: SessionId::from_bytes([1; 16]),
        kind: ExecutionKind::Repl,
        input: Some("1".to_owned()),
        path: None,
        args: JsonText::empty_object(),
        env: JsonText::empty_object(),
        status: ExecutionStatus::Running,
        started_at,
        ended_at: None,
        result: None,
        error: None,
        metrics,
        degraded: false,
        events: None,
        owner: None,
    }
}

/// A machine that has adopted a worker, with the execution that runs according to the store.
fn adopted(stored: Option<ExecutionId>) -> Bench {
    adopted_with(stored, None)
}

/// The same, with the last task of that execution.
fn adopted_with(stored: Option<ExecutionId>, task: Option<ItemRow>) -> Bench {
    let mut bench = Bench::new(rights(|_| {}), 0);
    let running = stored.map(|id| AdoptedExecution {
        row: RunningExecutionRow {
            execution: running_execution(id, Metrics::default(), Timestamp(bench.now.unix_ms)),
            events: 1,
            output_bytes: 1,
            last_event_at: Timestamp(bench.now.unix_ms),
            task,
        },
        policy: Arc::clone(&bench.policy),
    });
    let mut actions = Vec::new();
    let spec = spec(&bench.policy, 0);
    bench.machine = SessionMachine::adopt(spec, (COMMITTED, NONCE), running, None, bench.now, &mut actions);
    assert!(matches!(
        actions[..],
        [SessionAction::Send(ToWorker::Adopt { last_committed: COMMITTED, nonce: NONCE })]
    ));
    bench.seq = COMMITTED;
    bench
}

impl Bench {
    /// The reply to the adoption, with `repeated` messages to come.
    fn reports(&mut self, repeated: u64, running: Option<ExecutionId>, finished: Option<ExecutionId>) {
        let last_sent = COMMITTED + repeated;
        let message =
            FromWorker::Adopted { nonce: NONCE, acknowledged: COMMITTED, last_sent, running, finished };
        self.input(from_worker(0, message));
    }

    fn prints_in(&mut self, execution: ExecutionId) {
        self.on_worker_message(FromWorker::Events { execution, events: vec![printed(0, "x")] });
    }

    fn calls_in(&mut self, execution: ExecutionId, call: u64) {
        let request = HostRequest::Fs(FsRequest::Exists { path: "a".to_owned() });
        self.on_worker_message(FromWorker::HostCall { execution, call, request });
    }

    fn ends_in(&mut self, execution: ExecutionId) {
        self.on_worker_message(FromWorker::Done(Box::new(Done { execution, ..done(Outcome::Interrupted) })));
    }

    fn recorded_seq(&self) -> u64 {
        let seqs = self.writes.iter().filter_map(|write| match write {
            Write::WorkerSeq { seq, .. } => Some(*seq),
            _ => None,
        });
        seqs.max().unwrap_or(COMMITTED)
    }

    #[track_caller]
    fn is_busy(&mut self, token: u64) {
        self.execute(token);
        assert_eq!(self.reply(token), Some(&Err(Refusal::Busy)));
        self.input(SessionInput::Fork { token: Token::new(token + 1), count: 1 });
        assert_eq!(self.reply(token + 1), Some(&Err(Refusal::Busy)));
    }

    /// Nothing is recorded of the unrecorded executions, and the session accepts another.
    #[track_caller]
    fn goes_on(&mut self, unrecorded: u64) {
        assert!(!self.killed && !self.machine.is_taking_over());
        assert_eq!(self.machine.deadline(), None, "nothing is left to wait for");
        assert_eq!((self.machine.unrecorded_executions(), self.recorded_seq()), (unrecorded, self.seq));
        let (written, sent) = (self.writes.len(), self.sent.len());
        self.execute(90);
        assert!(matches!(self.writes[written], Write::ExecutionStarted { .. }));
        assert!(matches!(self.sent[sent], ToWorker::Execute(_)));
        self.ends(Outcome::Ok);
        assert!(matches!(self.reply(90), Some(Ok(Answer::Executed(_)))));
        assert!(!self.killed);
    }

    fn records_of_executions(&self) -> usize {
        let about = |write: &&Write| !matches!(write, Write::WorkerSeq { .. });
        self.writes.iter().filter(about).count()
    }

    #[track_caller]
    fn is_a_violation(&mut self, what: &str) {
        assert!(self.killed, "{what}");
        self.input(SessionInput::Exited(WorkerExitStatus::Signaled(9)));
        assert_eq!(self.reason(), format!("protocol_violation({what})"));
    }
}

#[test]
fn what_an_earlier_supervisor_gave_up_is_lost_and_no_violation() {
    let gives_up = |bench: &mut Bench, given_up: u64, kept: u64, running, finished| {
        let acknowledged = COMMITTED + given_up;
        let last_sent = acknowledged + kept;
        let message = FromWorker::Adopted { nonce: NONCE, acknowledged, last_sent, running, finished };
        bench.input(from_worker(0, message));
        bench.seq = acknowledged;
    };
    // It runs on.
    let mut bench = adopted(Some(EXECUTION));
    gives_up(&mut bench, 30, 1, Some(EXECUTION), None);
    bench.prints_in(EXECUTION);
    bench.ends_in(EXECUTION);
    assert!(!bench.killed && bench.ended().degraded);
    // It had ended.
    let mut bench = adopted(Some(EXECUTION));
    gives_up(&mut bench, 30, 0, None, Some(EXECUTION));
    let ended = bench.ended();
    assert!(!bench.killed && ended.degraded);
    assert!(ended.error.expect("an error").message.contains("its result is lost"));
    // It had ended, and the worker has run another one since, or runs it.
    for runs in [false, true] {
        let other = ExecutionId::from_bytes([21; 16]);
        let mut bench = adopted(Some(EXECUTION));
        let (running, finished) = if runs { (Some(other), Some(EXECUTION)) } else { (None, Some(other)) };
        gives_up(&mut bench, 30, 2, running, finished);
        bench.prints_in(other);
        assert!(!bench.killed && bench.ended().degraded, "{runs}");
        assert_eq!(bench.code(), "HOST_RESTART");
        bench.ends_in(other);
        assert!(!bench.killed, "{runs}");
    }
    // Executions before it, whose output and ends were lost, are sent again first.
    let earlier = ExecutionId::from_bytes([6; 16]);
    let mut bench = adopted(Some(EXECUTION));
    gives_up(&mut bench, 0, 4, None, Some(EXECUTION));
    bench.prints_in(earlier);
    bench.ends_in(earlier);
    bench.prints_in(EXECUTION);
    bench.ends_in(EXECUTION);
    assert!(!bench.killed);
    assert_eq!(bench.ended().id, EXECUTION);
    // After it, they are a violation.
    let mut bench = adopted(Some(EXECUTION));
    gives_up(&mut bench, 0, 2, Some(EXECUTION), None);
    bench.prints_in(EXECUTION);
    bench.prints_in(earlier);
    assert!(bench.killed);
    // Nothing ran.
    let mut bench = adopted(None);
    gives_up(&mut bench, 3, 0, None, None);
    bench.goes_on(0);
    // Numbers that nobody can have acknowledged.
    let mut bench = adopted(None);
    let message = FromWorker::Adopted {
        nonce: NONCE,
        acknowledged: COMMITTED + 9,
        last_sent: COMMITTED + 8,
        running: None,
        finished: None,
    };
    bench.input(from_worker(0, message));
    assert!(bench.killed);
}

#[test]
fn an_execution_whose_end_was_given_up_before_later_messages_were_stored_is_lost_and_no_violation() {
    let later = ExecutionId::from_bytes([23; 16]);
    let lost = |bench: &Bench, case: &str| {
        let ended = bench.ended();
        assert!(!bench.killed && ended.id == EXECUTION, "{case}");
        assert!(ended.error.expect("an error").message.contains("its result is lost"), "{case}");
    };
    // The worker runs nothing; a later execution, or a fork after it, is stored.
    for finished in [EXECUTION, later] {
        let mut bench = adopted(Some(EXECUTION));
        bench.reports(0, None, Some(finished));
        lost(&bench, "idle");
        bench.goes_on(0);
    }
    // It runs one that is not stored, and has sent output of it already, or not.
    for repeated in [0, 1] {
        let mut bench = adopted(Some(EXECUTION));
        bench.reports(repeated, Some(UNRECORDED), Some(later));
        bench.prints_in(UNRECORDED);
        lost(&bench, "runs");
        bench.ends_in(UNRECORDED);
        bench.goes_on(1);
    }
    // It runs: the clock was set back before it began.
    let mut bench = adopted(Some(EXECUTION));
    assert!(!bench.machine.is_busy_briefly(), "it may run for long");
    bench.reports(1, Some(EXECUTION), Some(later));
    bench.prints_in(EXECUTION);
    bench.ends_in(EXECUTION);
    assert!(!bench.killed && bench.ended().error.is_none_or(|error| error.code != "HOST_RESTART"));
}

#[test]
fn ended_executions_that_were_never_recorded_leave_a_session_that_works() {
    let mut bench = adopted(None);
    bench.is_busy(2);
    bench.reports(5, None, Some(UNRECORDED));
    bench.prints_in(EARLIER);
    bench.calls_in(EARLIER, 7);
    bench.ends_in(EARLIER);
    bench.prints_in(UNRECORDED);
    bench.is_busy(4);
    bench.ends_in(UNRECORDED);
    assert_eq!((bench.records_of_executions(), bench.interrupts, bench.host_calls), (0, 0, 0));
    assert_eq!(bench.sent.len(), 0, "a call of an execution that has ended needs no reply");
    bench.goes_on(2);
}

#[test]
fn a_running_execution_that_was_never_recorded_is_interrupted() {
    let mut bench = adopted(None);
    assert!(bench.machine.is_busy_briefly(), "requests wait for the reply of the worker");
    bench.reports(1, Some(UNRECORDED), None);
    bench.prints_in(UNRECORDED);
    assert_eq!(bench.interrupts, 1);
    assert!(bench.machine.is_busy_briefly(), "and for the end of what nobody knows");
    bench.pass_ms(20);
    assert_eq!(bench.interrupts, 2, "the first one is lost if the execution had not begun");
    bench.is_busy(2);
    bench.prints_in(UNRECORDED);
    bench.ends_in(UNRECORDED);
    assert_eq!(bench.records_of_executions(), 0);
    bench.pass_ms(20);
    assert_eq!(bench.interrupts, 2);
    assert!(!bench.machine.is_busy_briefly());
    bench.goes_on(1);
}

#[test]
fn a_host_call_of_an_execution_that_was_never_recorded_fails() {
    let file = HostRequest::Fs(FsRequest::Exists { path: "a".to_owned() });
    let question = HostRequest::Ask { number: 1, prompt: "?".to_owned(), options: None };
    for (request, repeated) in [(file.clone(), 1), (question, 1), (file, 0)] {
        let mut bench = adopted(None);
        bench.reports(repeated, Some(UNRECORDED), None);
        bench.on_worker_message(FromWorker::HostCall { execution: UNRECORDED, call: 7, request });
        let Some(ToWorker::HostReply { call: 7, reply: HostReply::Failed(error) }) = bench.sent.last() else {
            panic!("{:?}", bench.sent)
        };
        assert_eq!((error.code.as_str(), bench.host_calls), ("EHOSTRESTART", 0));
        bench.ends_in(UNRECORDED);
        assert_eq!(bench.records_of_executions(), 0);
        bench.goes_on(1);
        bench.execute(91);
        bench.calls(8);
        assert_eq!((bench.killed, bench.host_calls), (false, 1), "calls are numbered on");
    }
}

#[test]
fn the_end_of_the_stored_execution_is_recorded_before_the_unrecorded_ones_are_discarded() {
    for (running, repeated) in [(None, 4), (Some(UNRECORDED), 3)] {
        let mut bench = adopted(Some(EXECUTION));
        let finished = if running.is_some() { EXECUTION } else { UNRECORDED };
        bench.reports(repeated, running, Some(finished));
        bench.prints(0, "kept");
        bench.ends(Outcome::Ok);
        assert_eq!(bench.ended().status, ExecutionStatus::Ok);
        let recorded = bench.records_of_executions();
        bench.prints_in(UNRECORDED);
        bench.ends_in(UNRECORDED);
        assert_eq!(bench.records_of_executions(), recorded);
        bench.goes_on(1);
    }
}

#[test]
fn an_unrecorded_execution_that_does_not_stop_ends_the_session_without_an_accusation() {
    let mut bench = adopted(None);
    bench.reports(0, Some(UNRECORDED), None);
    bench.pass_ms(INTERRUPT_GRACE_MS - 1);
    assert!(!bench.killed);
    bench.pass_ms(1);
    assert!(bench.killed);
    bench.input(SessionInput::Exited(WorkerExitStatus::Signaled(9)));
    assert_eq!(bench.reason(), "host_restart");
    assert!(bench.machine.is_released() && bench.machine.deadline().is_none());
}

#[test]
fn a_session_closes_although_an_unrecorded_execution_runs() {
    let mut bench = adopted(None);
    bench.reports(0, Some(UNRECORDED), None);
    bench.input(SessionInput::Close { token: Token::new(2), cause: CloseCause::Request });
    assert!(matches!(bench.sent.last(), Some(ToWorker::Shutdown)));
    bench.ends_in(UNRECORDED);
    bench.input(SessionInput::Exited(WorkerExitStatus::Exited(0)));
    assert_eq!(bench.reason(), "exited");
    assert!(bench.machine.is_released() && bench.machine.deadline().is_none());
}

#[test]
fn a_stored_execution_that_the_worker_never_received_ends() {
    let mut bench = adopted(Some(EXECUTION));
    bench.reports(0, None, None);
    assert_eq!(bench.code(), "HOST_RESTART");
    bench.goes_on(0);
    // Closed before the worker's reply.
    let mut closed = adopted(Some(EXECUTION));
    closed.input(SessionInput::Close { token: Token::new(2), cause: CloseCause::Request });
    closed.reports(0, None, None);
    assert!(matches!(closed.sent.last(), Some(ToWorker::Shutdown)));
    closed.input(SessionInput::Exited(WorkerExitStatus::Exited(0)));
    assert!(closed.machine.is_released());
}

#[test]
fn discarded_messages_are_acknowledged() {
    let mut bench = adopted(None);
    bench.reports(0, Some(UNRECORDED), None);
    for _ in 0..40 {
        bench.prints_in(UNRECORDED);
    }
    let acked = bench.sent.iter().filter_map(|message| match message {
        ToWorker::Ack { seq } => Some(*seq),
        _ => None,
    });
    assert!(acked.max() > Some(COMMITTED + 20), "a worker waits for acknowledgements: {:?}", bench.sent);
}

#[test]
fn an_unknown_execution_is_a_violation_where_nothing_explains_it() {
    let mut idle = adopted(None);
    idle.reports(0, None, None);
    idle.prints_in(UNRECORDED);
    idle.is_a_violation("a message about an execution while nothing runs");

    let mut later = adopted(None);
    later.reports(1, None, Some(EARLIER));
    later.ends_in(EARLIER);
    later.ends_in(EARLIER);
    later.is_a_violation("a message about an execution while nothing runs");

    let mut another = adopted(None);
    another.reports(0, Some(UNRECORDED), None);
    another.prints_in(EARLIER);
    another.is_a_violation("a message about an execution while nothing runs");

    // The worker cannot begin another before it has sent the end of the stored one.
    let mut between = adopted(Some(EXECUTION));
    between.reports(2, Some(UNRECORDED), None);
    between.prints_in(EXECUTION);
    between.prints_in(UNRECORDED);
    between.is_a_violation("unknown execution id");
}

#[test]
fn a_report_that_contradicts_the_store_is_a_violation() {
    const WITHOUT_END: &str = "neither runs an execution nor has ended it";
    let mut below = adopted(None);
    below.seq = 0;
    let message = FromWorker::Adopted {
        nonce: NONCE,
        acknowledged: COMMITTED - 1,
        last_sent: COMMITTED - 1,
        running: None,
        finished: None,
    };
    below.input(from_worker(0, message));
    below.is_a_violation("Adopted with a number below the last stored one");

    let mut many = adopted(None);
    many.reports(1 << 30, None, None);
    many.is_a_violation("Adopted with more messages than a worker keeps");

    let mut began = adopted(Some(EXECUTION));
    began.reports(1, None, None);
    began.prints(0, "x");
    began.is_a_violation(WITHOUT_END);

    let mut replaced = adopted(Some(EXECUTION));
    replaced.reports(1, Some(UNRECORDED), None);
    replaced.prints_in(EXECUTION);
    replaced.is_a_violation(WITHOUT_END);
}

#[test]
fn discarded_messages_are_in_order() {
    let mut gap = adopted(None);
    gap.reports(3, None, Some(UNRECORDED));
    gap.seq += 1;
    gap.prints_in(UNRECORDED);
    gap.is_a_violation("sequence 12, expected 11");

    let mut call = adopted(None);
    call.reports(2, Some(UNRECORDED), None);
    call.calls_in(UNRECORDED, 3);
    call.calls_in(UNRECORDED, 5);
    call.is_a_violation("a host call out of order");

    let mut deaf = adopted(None);
    deaf.reports(0, Some(UNRECORDED), None);
    deaf.input(SessionInput::Exited(WorkerExitStatus::Signaled(10)));
    assert_eq!(deaf.reason(), "protocol_violation(was ended by an interruption that it must handle)");
}

#[test]
fn only_the_adopted_execution_learns_that_its_transaction_was_rolled_back() {
    let mut bench = adopted(Some(EXECUTION));
    bench.reports(0, Some(EXECUTION), None);
    bench.ends(Outcome::Ok);
    bench.execute(2);
    let request = HostRequest::Database(DatabaseRequest::Configure { database: "a".to_owned() });
    bench.on_worker_message(FromWorker::HostCall { execution: EXECUTION, call: 7, request });
    let Some(ToWorker::HostReply { reply: HostReply::Failed(error), .. }) = bench.sent.last() else {
        panic!("the policy has no databases: {:?}", bench.sent)
    };
    assert_ne!(error.code, "EHOSTRESTART");
}

#[test]
fn only_the_call_that_has_no_reply_yet_is_carried_out_again() {
    let mut bench = adopted(Some(EXECUTION));
    let calls = 30;
    bench.reports(calls, Some(EXECUTION), None);
    for call in 7..7 + calls {
        bench.calls(call);
    }
    assert_eq!((bench.host_calls, bench.killed), (1, false), "the worker has the replies of the others");
    let reply = HostReply::Fs(FsReply::Done);
    bench.input(SessionInput::HostReplied { call: 6 + calls, reply });
    assert!(matches!(bench.sent.last(), Some(ToWorker::HostReply { call: 36, .. })), "{:?}", bench.sent);
    bench.calls(37);
    assert_eq!(bench.host_calls, 2);
}

#[test]
fn a_worker_that_does_not_send_what_it_announced_is_ended_by_its_wall_limit() {
    let mut bench = adopted(Some(EXECUTION));
    bench.reports(2, Some(EXECUTION), None);
    bench.calls(7);
    bench.pass_ms(u64::from(bench.policy.wire.limits.wall_ms));
    assert_eq!((bench.host_calls, bench.interrupts > 0), (0, true));
    bench.pass_ms(INTERRUPT_GRACE_MS);
    assert!(bench.killed);
}

#[test]
fn a_repeated_database_call_that_had_its_reply_is_not_the_one_that_reports_the_lost_transaction() {
    let mut bench = adopted(Some(EXECUTION));
    bench.reports(2, Some(EXECUTION), None);
    let calls = |bench: &mut Bench, call| {
        let request = HostRequest::Database(DatabaseRequest::Configure { database: "a".to_owned() });
        bench.on_worker_message(FromWorker::HostCall { execution: EXECUTION, call, request });
    };
    calls(&mut bench, 7);
    bench.prints_in(EXECUTION);
    calls(&mut bench, 8);
    let Some(ToWorker::HostReply { call: 8, reply: HostReply::Failed(error) }) = bench.sent.last() else {
        panic!("{:?}", bench.sent)
    };
    assert_eq!(error.code, "EHOSTRESTART", "{}", error.message);
}

/// The number of its message was in a batch that was lost, and the next task was stored.
#[test]
fn a_task_before_the_stored_one_is_passed_over_when_the_worker_repeats_it() {
    let ask = |number| FromWorker::HostCall {
        execution: EXECUTION,
        call: number,
        request: HostRequest::Ask { number, prompt: "which?".to_owned(), options: None },
    };
    let mut earlier = Bench::running();
    earlier.on_worker_message(ask(1));
    let stored = earlier.writes.iter().find_map(|write| match write {
        Write::ItemInsert(row) => Some(ItemRow { checkpoint: 2, ..ItemRow::clone(row) }),
        _ => None,
    });
    let mut bench = adopted_with(Some(EXECUTION), stored);
    bench.reports(2, Some(EXECUTION), None);
    bench.on_worker_message(ask(1));
    bench.on_worker_message(ask(2));
    assert!(!bench.killed, "{:?}", bench.machine.record().close_reason);
    assert!(!bench.writes.iter().any(|write| matches!(write, Write::ItemInsert(_))), "there is no new task");
}

/// The end of the session was not stored before the earlier supervisor was killed.
#[test]
fn a_session_that_was_being_closed_is_closed() {
    for (status, expected) in [
        (WorkerExitStatus::Exited(0), (SessionStatus::Closed, "exited")),
        (WorkerExitStatus::Exited(1), (SessionStatus::Crashed, "exited(1)")),
    ] {
        let mut bench = adopted(None);
        bench.input(SessionInput::Exited(status));
        let record = bench.machine.record();
        assert_eq!((record.status, record.close_reason.as_deref()), (expected.0, Some(expected.1)));
    }
    let mut bench = adopted(None);
    bench.reports(0, None, None);
    bench.input(SessionInput::Exited(WorkerExitStatus::Exited(0)));
    assert_eq!(bench.reason(), "exited(0)", "it was not closed by this supervisor");
}

#[test]
fn an_answer_that_comes_before_the_worker_has_repeated_its_question_is_refused_as_busy() {
    let mut bench = adopted(Some(EXECUTION));
    assert!(bench.machine.is_catching_up());
    bench.input(SessionInput::Submit {
        token: Token::new(7),
        execution: EXECUTION,
        task: None,
        answer: SubmittedAnswer::Unchecked(GivenAnswer::Typed("1".to_owned())),
        wait: false,
    });
    assert!(matches!(bench.reply(7), Some(Err(Refusal::Busy))), "{:?}", bench.replies);
}
