//! Executions that reach the worker when their start is stored.

use super::*;

/// A ready session with a slow store, and a request that is to be stored first.
fn withheld(wait: bool) -> Bench {
    withheld_with(wait, rights(|_| {}))
}

fn withheld_with(wait: bool, policy: Arc<EffectivePolicy>) -> Bench {
    let mut bench = Bench::ready_with(policy);
    bench.held = Some(Vec::new());
    let request = ExecuteRequest { stored_first: true, wait, ..request(EXECUTION) };
    let policy = Arc::clone(&bench.policy);
    bench.input(SessionInput::Execute { token: Token::new(2), request: Box::new(request), policy });
    bench
}

#[test]
fn the_worker_gets_it_after_the_commit_of_its_start_and_not_before() {
    for wait in [true, false] {
        let mut bench = withheld(wait);
        assert!(!was_dispatched(&bench));
        assert_eq!(bench.machine.running(), Some(EXECUTION), "the session is busy");
        bench.keeps();
        assert!(was_dispatched(&bench));
        assert_eq!(bench.reply(2).is_some(), !wait, "a caller that does not wait for the end");
    }
    let mut bench = Bench::ready();
    bench.held = Some(Vec::new());
    bench.execute(2);
    assert!(was_dispatched(&bench), "others wait for no disk");
}

#[test]
fn nothing_runs_if_its_start_cannot_be_stored_and_the_session_goes_on() {
    for wait in [true, false] {
        let mut bench = withheld(wait);
        bench.loses("the disk is full", false);
        assert!(!was_dispatched(&bench));
        let refusal = Refusal::Storage("the disk is full".to_owned());
        assert_eq!(bench.reply(2), Some(&Err(refusal)), "it did not run");
        assert_eq!(bench.machine.running(), None);
        bench.held = None;
        bench.execute(3);
        bench.ends(Outcome::Ok);
        assert!(matches!(bench.reply(3), Some(Ok(_))), "{:?}", bench.reply(3));
    }
}

#[test]
fn its_clocks_begin_when_the_worker_gets_it() {
    let mut bench = withheld_with(true, rights(|snapshot| snapshot.settings.limits.wall_ms = 10));
    bench.pass_ms(60_000);
    assert_eq!(bench.interrupts, 0);
    bench.keeps();
    bench.pass_ms(9);
    assert_eq!(bench.interrupts, 0);
    bench.pass_ms(1);
    assert_eq!(bench.interrupts, 1);
}

#[test]
fn one_that_is_cancelled_before_its_commit_never_reaches_the_worker() {
    let mut bench = withheld(true);
    bench.input(SessionInput::Cancel { token: Token::new(3), execution: EXECUTION, abandoned: false });
    assert_eq!(bench.ended().status, ExecutionStatus::Cancelled);
    bench.keeps();
    bench.keeps();
    assert!(!was_dispatched(&bench) && bench.interrupts == 0);
    assert!(matches!(bench.reply(2), Some(Ok(Answer::Executed(_)))));
    bench.held = None;
    bench.execute(4);
    assert!(was_dispatched(&bench), "the session is free");
}

#[test]
fn a_session_that_is_closed_meanwhile_ends_in_order() {
    let mut bench = withheld(true);
    bench.input(SessionInput::Close { token: Token::new(3), cause: CloseCause::Request });
    assert_eq!(bench.ended().status, ExecutionStatus::Cancelled);
    assert!(matches!(bench.sent.last(), Some(ToWorker::Shutdown)) && !was_dispatched(&bench));
    bench.held = None;
    bench.input(SessionInput::Exited(WorkerExitStatus::Exited(0)));
    assert_eq!(bench.reason(), "exited");
}

#[test]
fn a_worker_that_reports_it_before_it_has_it_violates_the_protocol() {
    let mut bench = withheld(true);
    bench.ends(Outcome::Ok);
    assert!(bench.killed);
    bench.keeps();
    assert!(!was_dispatched(&bench));
}
