//! Protocol violations of workers, and messages that only exceed a limit.

use super::*;

#[test]
fn message_that_no_honest_worker_sends_is_a_violation() {
    let stranger = ExecutionId::from_bytes([9; 16]);
    let event = |payload| vec![WorkerEvent { at_us: 0, payload }];
    let broken = JsonText::from_untrusted("{\"a\":".to_owned());
    let broken_value = EventPayload::Value(ResultValue {
        kind: JsType::Object,
        preview: String::new(),
        json: Some(broken),
        truncated: false,
        full_bytes: None,
    });
    let exists = || HostRequest::Fs(FsRequest::Exists { path: "a".to_owned() });
    let lies: Vec<(&str, FromWorker)> = vec![
        ("Started twice", FromWorker::Started { heap_bytes: 0 }),
        ("stranger", FromWorker::Events { execution: stranger, events: vec![printed(0, "x")] }),
        ("no events", FromWorker::Events { execution: EXECUTION, events: Vec::new() }),
        (
            "echo",
            FromWorker::Events {
                execution: EXECUTION,
                events: event(EventPayload::InputEcho { text: String::new() }),
            },
        ),
        (
            "stdout",
            FromWorker::Events {
                execution: EXECUTION,
                events: event(EventPayload::Stdout { text: String::new() }),
            },
        ),
        (
            "stderr",
            FromWorker::Events {
                execution: EXECUTION,
                events: event(EventPayload::Stderr { text: String::new() }),
            },
        ),
        ("json", FromWorker::Events { execution: EXECUTION, events: event(broken_value.clone()) }),
        ("result", FromWorker::Done(Box::new(Done { events: event(broken_value), ..done(Outcome::Ok) }))),
        (
            "done of an unknown execution",
            FromWorker::Done(Box::new(Done { execution: stranger, ..done(Outcome::Ok) })),
        ),
        ("pids", FromWorker::Done(Box::new(done(Outcome::Limit(LimitKind::Pids))))),
        ("exit 0", FromWorker::Done(Box::new(done(Outcome::Exit { code: 0 })))),
        ("call 2 first", FromWorker::HostCall { execution: EXECUTION, call: 2, request: exists() }),
        (
            "Adopted",
            FromWorker::Adopted { nonce: 0, acknowledged: 0, last_sent: 0, running: None, finished: None },
        ),
    ];
    for (name, lie) in lies {
        let mut bench = Bench::running();
        bench.on_worker_message(lie);
        assert!(bench.killed, "{name}");
        bench.input(SessionInput::Exited(WorkerExitStatus::Exited(0)));
        assert!(bench.reason().starts_with("protocol_violation("), "{name}: {}", bench.reason());
        assert_eq!(
            (bench.ended().status, bench.code().as_str()),
            (ExecutionStatus::Error, "WORKER_DIED"),
            "{name}"
        );
    }
}

#[test]
fn sequence_numbers_and_repetitions_are_checked() {
    for step in [0, 2] {
        let mut bench = Bench::running();
        bench.seq = bench.seq - 1 + step;
        bench.prints(0, "x");
        assert!(bench.killed, "a sequence {step} further");
    }
    let mut twice = Bench::running();
    twice.ends(Outcome::Ok);
    twice.ends(Outcome::Ok);
    assert!(twice.killed, "Done twice");
    let mut impatient = Bench::running();
    impatient.calls(1);
    impatient.calls(2);
    assert!(impatient.killed, "a host call while one is pending");
    let mut faulty = Bench::running();
    faulty.input(SessionInput::ChannelFailed(ChannelFault::Violation("an empty packet".to_owned())));
    faulty.input(SessionInput::Exited(WorkerExitStatus::Signaled(9)));
    assert_eq!(faulty.reason(), "protocol_violation(an empty packet)");
}

#[test]
fn a_message_before_started_is_a_violation() {
    let mut bench = Bench::new(rights(|_| {}), 0);
    bench.input(SessionInput::Create { token: Token::new(1) });
    bench.input(SessionInput::Spawned);
    bench.prints(0, "x");
    assert!(bench.killed);
}

#[test]
fn a_worker_that_never_starts_is_killed() {
    let mut bench = Bench::new(rights(|_| {}), 0);
    bench.input(SessionInput::Create { token: Token::new(1) });
    bench.input(SessionInput::Spawned);
    bench.pass_ms(HELLO_MS);
    assert!(bench.killed);
    bench.input(SessionInput::Exited(WorkerExitStatus::Signaled(9)));
    assert!(matches!(bench.reply(1), Some(Err(Refusal::SpawnFailed(_)))));
    assert!(bench.machine.is_released());
}

#[test]
fn output_beyond_the_workers_own_limit_ends_the_worker() {
    let mut bench = Bench::running_with(rights(|snapshot| snapshot.settings.limits.max_events = 2));
    for _ in 0..40 {
        bench.prints(0, "x");
    }
    assert!(bench.killed);
    bench.input(SessionInput::Exited(WorkerExitStatus::Signaled(9)));
    assert_eq!((bench.reason().as_str(), bench.code().as_str()), ("limit(events)", "OUTPUT_LIMIT_EXCEEDED"));
    let mut loud = Bench::running_with(rights(|snapshot| snapshot.settings.limits.max_output_kb = 1));
    loud.prints(0, &"x".repeat(600 * 1024));
    loud.input(SessionInput::Exited(WorkerExitStatus::Signaled(9)));
    assert_eq!((loud.reason().as_str(), loud.code().as_str()), ("limit(output)", "OUTPUT_LIMIT_EXCEEDED"));
}

#[test]
fn worker_that_closes_its_channel_and_does_not_exit_is_killed() {
    let mut bench = Bench::ready();
    bench.input(SessionInput::ChannelFailed(ChannelFault::Closed));
    assert!(!bench.killed);
    bench.pass_ms(CLOSE_GRACE_MS);
    assert!(bench.killed);
    bench.input(SessionInput::Exited(WorkerExitStatus::Signaled(9)));
    assert_eq!(bench.reason(), "hung_up");
}

#[test]
fn numbers_and_texts_of_a_worker_are_capped_at_what_can_be_stored() {
    let mut bench = Bench::running();
    let message = "é".repeat(1024 * 1024);
    let usage = Usage { cpu_us: u64::MAX, heap_bytes: u64::MAX, heap_peak_bytes: u64::MAX };
    bench.on_worker_message(FromWorker::Done(Box::new(Done {
        usage,
        ..done(Outcome::Exception { message })
    })));
    let ended = bench.ended();
    assert!(i64::try_from(ended.metrics.heap_peak_bytes).is_ok());
    assert!(ended.error.expect("on_worker_message why").message.len() < 300 * 1024);
}
