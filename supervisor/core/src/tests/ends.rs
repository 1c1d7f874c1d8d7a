//! How sessions end, and their closing reasons.

use super::*;
use vm_system_protocol::worker::EXIT_OUT_OF_MEMORY;

#[test]
fn execution_that_exceeds_the_grace_is_killed_with_the_reason_of_the_stop() {
    let mut wall = Bench::running_with(rights(|snapshot| snapshot.settings.limits.wall_ms = 10));
    wall.pass_ms(10);
    wall.pass_ms(INTERRUPT_GRACE_MS);
    assert!(wall.killed);
    wall.input(SessionInput::Exited(WorkerExitStatus::Signaled(9)));
    assert_eq!((wall.ended().status, wall.reason().as_str()), (ExecutionStatus::Timeout, "limit(wall)"));

    let mut cancel = Bench::running();
    cancel.input(SessionInput::Cancel { token: Token::new(3), execution: EXECUTION, abandoned: false });
    cancel.pass_ms(INTERRUPT_GRACE_MS);
    cancel.input(SessionInput::Exited(WorkerExitStatus::Signaled(9)));
    assert_eq!(
        (cancel.ended().status, cancel.reason().as_str()),
        (ExecutionStatus::Cancelled, "killed(cancel)")
    );
}

#[test]
fn session_is_busy_briefly_from_a_cancel_to_the_end_of_the_execution_or_the_worker() {
    let cancelled = || {
        let mut bench = Bench::running();
        assert!(!bench.machine.is_busy_briefly(), "nobody has cancelled it");
        bench.input(SessionInput::Cancel { token: Token::new(3), execution: EXECUTION, abandoned: false });
        assert!(bench.machine.is_busy_briefly());
        bench
    };
    let mut ends = cancelled();
    ends.ends(Outcome::Interrupted);
    assert!(!ends.machine.is_busy_briefly());
    let mut killed = cancelled();
    killed.pass_ms(INTERRUPT_GRACE_MS);
    assert!(killed.killed && !killed.machine.is_busy_briefly());
    let mut closed = cancelled();
    closed.input(SessionInput::Close { token: Token::new(4), cause: CloseCause::Request });
    assert!(!closed.machine.is_busy_briefly(), "a session that closes accepts no request again");
    let mut limited = Bench::running_with(rights(|snapshot| snapshot.settings.limits.wall_ms = 10));
    limited.pass_ms(10);
    assert!(!limited.machine.is_busy_briefly());
}

#[test]
fn closing_reason_of_an_exit_comes_from_the_kernel() {
    for (exit_status, reason) in [
        (WorkerExitStatus::Signaled(11), "signal(SIGSEGV)"),
        (WorkerExitStatus::Signaled(9), "signal(SIGKILL)"),
        (WorkerExitStatus::Signaled(31), "seccomp(unknown)"),
        (WorkerExitStatus::Signaled(24), "limit(cpu)"),
        (WorkerExitStatus::Signaled(40), "signal(SIG40)"),
        (WorkerExitStatus::Exited(3), "exited(3)"),
        (WorkerExitStatus::Exited(0), "exited(0)"),
        (WorkerExitStatus::KeeperLost, "keeper_lost"),
        (WorkerExitStatus::Unknown, "unknown"),
    ] {
        let mut bench = Bench::running();
        bench.input(SessionInput::Exited(exit_status));
        assert_eq!(bench.reason(), reason, "{exit_status:?}");
        assert_eq!(bench.machine.record().status, SessionStatus::Crashed);
        let ended = bench.ended();
        if exit_status == WorkerExitStatus::Signaled(24) {
            assert_eq!(ended.status, ExecutionStatus::Timeout);
        } else {
            let error = ended.error.expect("on_worker_message why");
            assert_eq!((error.code.as_str(), error.reason.as_deref()), ("WORKER_DIED", Some(reason)));
        }
        assert!(bench.reply(2).is_some() && bench.machine.is_released());
    }
}

#[test]
fn a_worker_whose_allocator_gave_up_has_used_too_much_memory() {
    let mut bench = Bench::running();
    bench.input(SessionInput::Exited(WorkerExitStatus::Exited(EXIT_OUT_OF_MEMORY)));
    assert_eq!(bench.reason(), "limit(memory)");
    let ended = bench.ended();
    assert_eq!(ended.status, ExecutionStatus::Error);
    assert_eq!(ended.error.expect("an error").code, "MEMORY_LIMIT");
}

#[test]
fn a_forbidden_call_is_named_although_the_kernel_only_saw_our_kill() {
    let mut bench = Bench::running();
    bench.input(SessionInput::ForbiddenCall("ptrace".to_owned()));
    assert!(bench.killed);
    bench.input(SessionInput::Exited(WorkerExitStatus::Signaled(9)));
    assert_eq!(bench.reason(), "seccomp(ptrace)");
    let error = bench.ended().error.expect("on_worker_message why");
    assert_eq!((error.code.as_str(), error.reason.as_deref()), ("WORKER_DIED", Some("seccomp(ptrace)")));
}

#[test]
fn worker_killed_by_our_interrupt_signal_has_removed_its_handler() {
    let mut bench = Bench::running();
    bench.input(SessionInput::Cancel { token: Token::new(3), execution: EXECUTION, abandoned: false });
    bench.input(SessionInput::Exited(WorkerExitStatus::Signaled(10)));
    assert_eq!(bench.reason(), "protocol_violation(was ended by an interruption that it must handle)");

    let mut others = Bench::running();
    others.input(SessionInput::Exited(WorkerExitStatus::Signaled(10)));
    assert_eq!(others.reason(), "signal(SIGUSR1)", "this machine had not interrupted it");
}

#[test]
fn closing_cancels_the_running_execution_and_waits_for_the_exit() {
    let mut bench = Bench::running();
    bench.input(SessionInput::Close { token: Token::new(3), cause: CloseCause::Request });
    assert_eq!(bench.interrupts, 1);
    bench.ends(Outcome::Interrupted);
    assert_eq!(bench.ended().status, ExecutionStatus::Cancelled);
    assert!(matches!(bench.sent.last(), Some(ToWorker::Shutdown)));
    assert_eq!(bench.reply(3), None);
    bench.input(SessionInput::Exited(WorkerExitStatus::Exited(0)));
    assert!(
        matches!(bench.reply(3), Some(Ok(Answer::Session(session))) if session.status == SessionStatus::Closed)
    );
    assert_eq!(bench.reason(), "exited");
}

#[test]
fn a_worker_that_does_not_exit_is_killed_and_the_session_is_closed_all_the_same() {
    let mut bench = Bench::ready();
    bench.input(SessionInput::Close { token: Token::new(3), cause: CloseCause::Request });
    bench.pass_ms(CLOSE_GRACE_MS);
    assert!(bench.killed);
    bench.input(SessionInput::Exited(WorkerExitStatus::Signaled(9)));
    assert_eq!((bench.machine.record().status, bench.reason().as_str()), (SessionStatus::Closed, "exited"));
}

#[test]
fn operators_signal_is_the_reason_only_if_it_kills() {
    let mut bench = Bench::ready();
    bench.input(SessionInput::Kill { token: Token::new(3), signal: 15 });
    assert_eq!(bench.reply(3), Some(&Ok(Answer::Done)));
    bench.input(SessionInput::Exited(WorkerExitStatus::Signaled(15)));
    assert_eq!(bench.reason(), "killed(operator)");
    let mut other = Bench::ready();
    other.input(SessionInput::Kill { token: Token::new(3), signal: 19 });
    other.input(SessionInput::Exited(WorkerExitStatus::Signaled(11)));
    assert_eq!(other.reason(), "signal(SIGSEGV)");
}

#[test]
fn unreported_exit_is_recorded_after_its_deadline() {
    let mut bench = Bench::running();
    bench.input(SessionInput::Kill { token: Token::new(3), signal: 9 });
    bench.pass_ms(crate::deadlines::EXIT_MS);
    assert_eq!(bench.reason(), "killed(operator)");
    assert!(bench.machine.is_released());
}

#[test]
fn an_idle_session_ends_but_not_while_something_runs() {
    let mut bench = Bench::new(rights(|_| {}), 10);
    bench.input(SessionInput::Create { token: Token::new(1) });
    bench.input(SessionInput::Spawned);
    bench.on_worker_message(FromWorker::Started { heap_bytes: 1 });
    bench.pass_ms(9_000);
    bench.execute(2);
    bench.pass_ms(9_000);
    bench.ends(Outcome::Ok);
    bench.pass_ms(9_999);
    assert!(!bench.sent.iter().any(|message| matches!(message, ToWorker::Shutdown)));
    bench.pass_ms(1);
    assert!(matches!(bench.sent.last(), Some(ToWorker::Shutdown)));
    bench.input(SessionInput::Exited(WorkerExitStatus::Exited(0)));
    assert_eq!(bench.reason(), "idle");
}

#[test]
fn session_that_is_closed_before_its_creation_is_created_and_closed() {
    let mut bench = Bench::new(rights(|_| {}), 0);
    bench.input(SessionInput::Close { token: Token::new(1), cause: CloseCause::Shutdown });
    assert!(bench.reply(1).is_none(), "there is no session to close yet");
    bench.input(SessionInput::Create { token: Token::new(2) });
    let Some(Ok(Answer::Session(record))) = bench.reply(1) else { panic!("{:?}", bench.replies) };
    assert_eq!(record.status, SessionStatus::Closed);
    assert!(matches!(bench.reply(2), Some(Err(Refusal::NotReady(_)))), "{:?}", bench.replies);
    assert!(bench.machine.is_released() && !bench.killed);
}
