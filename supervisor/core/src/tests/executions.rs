//! Executions: replies, clocks, host calls, stops.

use super::*;
use vm_system_protocol::worker::StdinReply;

#[test]
fn caller_gets_the_execution_with_its_events_after_the_commit() {
    let mut bench = Bench::running();
    bench.prints(10, "hello");
    bench.ends(Outcome::Ok);
    let Some(Ok(Answer::Executed(Executed { record, events }))) = bench.reply(2) else { panic!("no answer") };
    assert_eq!(record.status, ExecutionStatus::Ok);
    let seqs: Vec<u64> =
        events.iter().flatten().flat_map(|batch| batch.iter().map(|event| event.seq)).collect();
    assert_eq!(seqs, [1, 2]);
    assert_eq!(bench.machine.deadline(), None, "an idle session waits for nothing");
}

#[test]
fn the_caller_gets_the_first_lost_write_and_not_its_consequences() {
    for known_before_the_end in [false, true] {
        let mut bench = Bench::ready();
        bench.held = Some(Vec::new());
        bench.execute(2);
        if known_before_the_end {
            bench.loses("the disk is full", false);
        }
        bench.ends(Outcome::Ok);
        if !known_before_the_end {
            bench.loses("the disk is full", false);
        }
        bench.loses("there is no such execution", true);
        let refusal = Refusal::Unrecorded("the disk is full".to_owned());
        assert_eq!(bench.reply(2), Some(&Err(refusal)), "known before the end: {known_before_the_end}");
    }
}

fn acked(bench: &Bench) -> Vec<u64> {
    let acks = bench.sent.iter().filter_map(|message| match message {
        ToWorker::Ack { seq } => Some(*seq),
        _ => None,
    });
    acks.collect()
}

#[test]
fn acknowledgement_is_sent_after_every_few_executions() {
    let mut bench = Bench::running();
    for token in 3..40 {
        bench.ends(Outcome::Ok);
        let (before, committed) = (acked(&bench), bench.seq);
        bench.execute(token);
        let now = acked(&bench);
        if now.len() > before.len() {
            assert_eq!(now.last(), Some(&committed), "everything committed");
            // After `Execute`, so that the worker is not woken for the acknowledgement alone.
            assert!(matches!(bench.sent[..], [.., ToWorker::Execute(_), ToWorker::Ack { .. }]));
        }
        assert!(committed - now.last().unwrap_or(&0) < 8, "a worker never keeps more than a few: {now:?}");
    }
    assert!(acked(&bench).len() < 6, "not for each: {:?}", acked(&bench));
}

#[test]
fn large_messages_are_acknowledged_when_they_are_committed_and_not_with_those_before_them() {
    let mut bench = Bench::running();
    bench.held = Some(Vec::new());
    bench.prints(10, &"x".repeat(100_000));
    bench.prints(20, &"x".repeat(100_000));
    let last = bench.seq;
    bench.keeps();
    assert_eq!(acked(&bench), [last - 1]);
    bench.keeps();
    assert_eq!(acked(&bench), [last - 1, last]);
}

#[test]
fn large_host_calls_are_acknowledged_although_nothing_is_printed() {
    let mut bench = Bench::running();
    for call in 1..=3 {
        let request = HostRequest::Fs(FsRequest::Exists { path: "x".repeat(UNACKED_SURE_BYTES / 2) });
        bench.on_worker_message(FromWorker::HostCall { execution: EXECUTION, call, request });
        bench.input(SessionInput::HostReplied { call, reply: HostReply::Fs(FsReply::Bool(true)) });
        assert_eq!(acked(&bench).last(), Some(&bench.seq), "call {call}");
    }
}

#[test]
fn kept_output_is_acknowledged_after_the_next_execution() {
    let mut bench = Bench::running();
    bench.prints(10, &"x".repeat(4_096));
    bench.ends(Outcome::Ok);
    bench.execute(3);
    assert!(matches!(bench.sent[..], [.., ToWorker::Execute(_), ToWorker::Ack { seq: 3 }]));
}

#[test]
fn event_times_stay_between_the_last_event_and_now() {
    let mut bench = Bench::running();
    bench.pass_ms(100);
    bench.prints(50_000, "in time");
    bench.prints(10_000, "claims to be earlier");
    bench.prints(u64::MAX, "claims to be from the future");
    assert_eq!(bench.times(), [1_000_000, 1_000_050, 1_000_050, 1_000_100]);
}

#[test]
fn outcomes_have_their_status_and_code() {
    let text = || "x".to_owned();
    for (outcome, status, code) in [
        (Outcome::Ok, ExecutionStatus::Ok, ""),
        (Outcome::Exception { message: text() }, ExecutionStatus::Error, "EXCEPTION"),
        (Outcome::SyntaxError { message: text() }, ExecutionStatus::Error, "SYNTAX_ERROR"),
        (Outcome::Exit { code: 3 }, ExecutionStatus::Error, "EXIT"),
        (Outcome::Exit { code: 13 }, ExecutionStatus::Error, "EXIT"),
        (Outcome::Limit(LimitKind::Cpu), ExecutionStatus::Timeout, "CPU_LIMIT"),
        (Outcome::Limit(LimitKind::Wall), ExecutionStatus::Timeout, "WALL_LIMIT"),
        (Outcome::Limit(LimitKind::Memory), ExecutionStatus::Error, "MEMORY_LIMIT"),
        (Outcome::Limit(LimitKind::Output), ExecutionStatus::Error, "OUTPUT_LIMIT_EXCEEDED"),
        (Outcome::Limit(LimitKind::Events), ExecutionStatus::Error, "OUTPUT_LIMIT_EXCEEDED"),
    ] {
        let mut bench = Bench::running();
        bench.ends(outcome.clone());
        assert_eq!((bench.ended().status, bench.code().as_str()), (status, code), "{outcome:?}");
        assert!(!bench.killed, "{outcome:?}: a soft limit does not end the session");
        bench.execute(3);
        assert_eq!(bench.machine.running(), Some(EXECUTION));
    }
}

#[test]
fn a_second_execution_is_refused_at_once() {
    let mut bench = Bench::running();
    bench.execute(3);
    assert_eq!(bench.reply(3), Some(&Err(Refusal::Busy)));
}

#[test]
fn the_wall_clock_is_paused_during_a_host_call() {
    let mut bench = Bench::running_with(rights(|snapshot| snapshot.settings.limits.wall_ms = 1_000));
    bench.pass_ms(400);
    bench.calls(1);
    bench.pass_ms(30_000);
    assert_eq!(bench.interrupts, 0);
    bench.input(SessionInput::HostReplied { call: 1, reply: HostReply::Fs(FsReply::Bool(true)) });
    bench.pass_ms(599);
    assert_eq!(bench.interrupts, 0);
    bench.pass_ms(1);
    assert_eq!(bench.interrupts, 1);
    bench.ends(Outcome::Interrupted);
    let ended = bench.ended();
    assert_eq!((ended.status, bench.code().as_str()), (ExecutionStatus::Timeout, "WALL_LIMIT"));
    assert_eq!(ended.metrics.host_wait_ms, 30_000);
}

#[test]
fn the_wall_clock_goes_on_while_a_script_waits_for_its_input_and_nothing_else_ends_the_wait() {
    let long = crate::deadlines::HOST_CALL_MS + 1_000;
    let limit = u32::try_from(2 * long).unwrap();
    let mut bench = Bench::running_with(rights(|snapshot| snapshot.settings.limits.wall_ms = limit));
    let request = || HostRequest::Stdin { max_bytes: 1, wait_ms: u64::MAX };
    bench.on_worker_message(FromWorker::HostCall { execution: EXECUTION, call: 1, request: request() });
    bench.pass_ms(long);
    assert_eq!((bench.host_calls, bench.interrupts), (1, 0), "a wait for a person is no hang");
    assert!(!matches!(bench.sent.last(), Some(ToWorker::HostReply { .. })));
    let reply = HostReply::Stdin(StdinReply::Data(vec![1]));
    bench.input(SessionInput::HostReplied { call: 1, reply });
    bench.on_worker_message(FromWorker::HostCall { execution: EXECUTION, call: 2, request: request() });
    bench.pass_ms(long - 1);
    assert_eq!(bench.interrupts, 0);
    bench.pass_ms(1);
    assert_eq!(bench.interrupts, 1);
    assert!(matches!(
        bench.sent.last(),
        Some(ToWorker::HostReply { call: 2, reply: HostReply::Failed(error) }) if error.code == "ECANCELED"
    ));
    bench.ends(Outcome::Interrupted);
    let ended = bench.ended();
    assert_eq!((ended.status, bench.code().as_str()), (ExecutionStatus::Timeout, "WALL_LIMIT"));
    assert_eq!(ended.metrics.host_wait_ms, 0);
}

#[test]
fn host_without_a_reply_fails_the_call_and_not_the_session() {
    let mut bench = Bench::running();
    bench.calls(1);
    bench.pass_ms(crate::deadlines::HOST_CALL_MS);
    assert!(matches!(
        bench.sent.last(),
        Some(ToWorker::HostReply { call: 1, reply: HostReply::Failed(error) }) if error.code == "ETIMEDOUT"
    ));
    bench.input(SessionInput::HostReplied { call: 1, reply: HostReply::Fs(FsReply::Bool(true)) });
    bench.ends(Outcome::Ok);
    assert_eq!(bench.ended().status, ExecutionStatus::Ok);
}

#[test]
fn a_module_that_is_not_granted_never_reaches_the_host() {
    let mut bench = Bench::running_with(rights(|snapshot| snapshot.modules.clear()));
    bench.calls(1);
    assert_eq!(bench.host_calls, 0);
    assert!(matches!(
        bench.sent.last(),
        Some(ToWorker::HostReply { reply: HostReply::Failed(error), .. }) if error.code == "MODULE_NOT_ALLOWED"
    ));
}

#[test]
fn machines_own_record_decides_between_timeout_and_cancelled() {
    let mut cancelled = Bench::running();
    cancelled.input(SessionInput::Cancel { token: Token::new(3), execution: EXECUTION, abandoned: false });
    assert_eq!(cancelled.reply(3), Some(&Ok(Answer::Done)));
    cancelled.ends(Outcome::Limit(LimitKind::Wall));
    assert_eq!(cancelled.ended().status, ExecutionStatus::Cancelled);
    let mut late = Bench::running_with(rights(|snapshot| snapshot.settings.limits.wall_ms = 10));
    late.pass_ms(10);
    late.input(SessionInput::Cancel { token: Token::new(3), execution: EXECUTION, abandoned: false });
    late.ends(Outcome::Interrupted);
    assert_eq!(late.ended().status, ExecutionStatus::Timeout, "the first reason is kept");
}

#[test]
fn an_execution_whose_client_has_gone_says_so_however_it_ends() {
    for dies in [false, true] {
        let mut bench = Bench::running();
        bench.input(SessionInput::Cancel { token: Token::new(3), execution: EXECUTION, abandoned: true });
        assert_eq!(bench.reply(3), Some(&Ok(Answer::Done)));
        assert_eq!(bench.interrupts, 1);
        if dies {
            bench.pass_ms(INTERRUPT_GRACE_MS);
            bench.input(SessionInput::Exited(WorkerExitStatus::Signaled(9)));
        } else {
            bench.ends(Outcome::Interrupted);
        }
        let ended = bench.ended();
        assert_eq!(ended.status, ExecutionStatus::Cancelled);
        let message = &ended.error.as_ref().expect("a reason").message;
        assert!(message.contains("has disconnected"), "{message}");
    }
}

#[test]
fn cancel_fails_the_pending_host_call() {
    let mut bench = Bench::running();
    bench.calls(1);
    bench.input(SessionInput::Cancel { token: Token::new(3), execution: EXECUTION, abandoned: false });
    assert_eq!(bench.interrupts, 1);
    assert!(matches!(bench.sent.last(), Some(ToWorker::HostReply { call: 1, reply: HostReply::Failed(_) })));
    bench.ends(Outcome::Interrupted);
    assert_eq!(bench.ended().status, ExecutionStatus::Cancelled);
    assert!(!bench.killed);
}

#[test]
fn interrupt_is_repeated_because_the_first_may_arrive_before_the_execution_begins() {
    let mut bench = Bench::running();
    bench.input(SessionInput::Cancel { token: Token::new(3), execution: EXECUTION, abandoned: false });
    for repeated in 2..5 {
        bench.pass_ms(crate::deadlines::INTERRUPT_AGAIN_MS);
        assert_eq!(bench.interrupts, repeated);
    }
    bench.ends(Outcome::Interrupted);
    bench.pass_ms(crate::deadlines::INTERRUPT_AGAIN_MS);
    assert_eq!(bench.interrupts, 4, "never after the end");
    assert!(!bench.killed);
}

#[test]
fn cpu_time_is_judged_by_the_kernels_clock() {
    let mut bench = Bench::running_with(rights(|snapshot| snapshot.settings.limits.cpu_ms = 100));
    // It slept: wall time passed, CPU time did not.
    bench.pass_ms(5_000);
    assert_eq!(bench.interrupts, 0);
    bench.now.cpu_us = 300_000;
    bench.pass_ms(5_000);
    assert_eq!(bench.interrupts, 1);
    bench.ends(Outcome::Interrupted);
    assert_eq!((bench.ended().status, bench.code().as_str()), (ExecutionStatus::Timeout, "CPU_LIMIT"));
    assert_eq!(bench.ended().metrics.cpu_ms, 300);
}

#[test]
fn result_is_the_value_event_at_the_end_of_an_execution_without_an_error() {
    let value = ResultValue::of_json(JsonText::from_untrusted("[1]".to_owned()));
    let event = WorkerEvent { at_us: 0, payload: EventPayload::Value(value.clone()) };
    let with = |events, outcome| {
        let mut bench = Bench::running();
        bench.on_worker_message(FromWorker::Done(Box::new(Done { events, ..done(outcome) })));
        bench.ended().result
    };
    assert_eq!(with(vec![printed(0, "x"), event.clone()], Outcome::Ok), Some(value));
    assert_eq!(with(vec![event.clone(), printed(0, "x")], Outcome::Ok), None);
    assert_eq!(with(vec![event], Outcome::Exit { code: 1 }), None);
}
