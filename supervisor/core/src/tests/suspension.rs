//! Suspension of idle sessions.

use super::*;

const SIGCONT: i32 = 18;
const SIGSTOP: i32 = 19;

impl Bench {
    fn idle(idle_timeout_s: u32, after_ms: Option<u64>) -> Self {
        let mut bench = Self::new(rights(|_| {}), idle_timeout_s);
        bench.machine.suspend_after(after_ms, bench.now);
        bench.input(SessionInput::Create { token: Token::new(1) });
        bench.input(SessionInput::Spawned);
        bench.on_worker_message(FromWorker::Started { heap_bytes: 1 });
        bench
    }

    fn events(&self) -> Vec<SessionEventType> {
        let kinds = self.writes.iter().filter_map(|write| match write {
            Write::SessionEvent { kind, .. } => Some(*kind),
            _ => None,
        });
        kinds.collect()
    }
}

#[test]
fn an_idle_session_is_suspended_and_the_next_execution_wakes_it_first() {
    let mut bench = Bench::idle(0, Some(1_000));
    bench.pass_ms(999);
    assert!(!bench.machine.is_suspended());
    bench.pass_ms(1);
    assert!(bench.machine.is_suspended());
    assert_eq!(bench.machine.shown_record().status, SessionStatus::Suspended);
    assert_eq!(bench.machine.record().status, SessionStatus::Ready, "what is stored");
    bench.execute(2);
    assert_eq!(bench.signals, [SIGSTOP, SIGCONT]);
    assert!(matches!(bench.sent.last(), Some(ToWorker::Execute(_))), "{:?}", bench.sent);
    assert_eq!(bench.events(), [SessionEventType::Suspended, SessionEventType::Resumed]);
    // Never while it is busy; the time begins anew afterwards.
    bench.pass_ms(5_000);
    assert!(!bench.machine.is_suspended());
    bench.ends(Outcome::Ok);
    bench.pass_ms(999);
    assert!(!bench.machine.is_suspended());
    bench.pass_ms(1);
    assert!(bench.machine.is_suspended());
}

#[test]
fn a_session_is_suspended_before_its_idle_timeout_ends_it() {
    let mut bench = Bench::idle(10, Some(60_000));
    bench.pass_ms(5_000);
    assert!(bench.machine.is_suspended());
    bench.pass_ms(5_000);
    assert_eq!(bench.signals, [SIGSTOP, SIGCONT], "it exits by itself");
    assert!(matches!(bench.sent.last(), Some(ToWorker::Shutdown)), "{:?}", bench.sent);
    assert!(!bench.killed);
}

#[test]
fn a_request_suspends_an_idle_session_and_not_a_busy_one() {
    let mut bench = Bench::idle(0, None);
    bench.pass_ms(1_000_000);
    assert!(!bench.machine.is_suspended(), "only on request");
    bench.execute(2);
    bench.input(SessionInput::Request { token: Token::new(3), request: SessionRequest::Suspend });
    assert!(matches!(bench.reply(3), Some(Err(Refusal::Busy))), "{:?}", bench.reply(3));
    bench.input(SessionInput::SuspendIdle);
    assert!(bench.signals.is_empty());
    bench.ends(Outcome::Ok);
    for token in 4..6 {
        bench.input(SessionInput::Request { token: Token::new(token), request: SessionRequest::Suspend });
        let Some(Ok(Answer::Session(session))) = bench.reply(token) else { panic!("no session") };
        assert_eq!(session.status, SessionStatus::Suspended);
    }
    assert_eq!(bench.signals, [SIGSTOP], "once");
    for token in 6..8 {
        bench.input(SessionInput::Request { token: Token::new(token), request: SessionRequest::Resume });
        let Some(Ok(Answer::Session(session))) = bench.reply(token) else { panic!("no session") };
        assert_eq!(session.status, SessionStatus::Ready);
    }
    assert_eq!(bench.signals, [SIGSTOP, SIGCONT], "once");
}

#[test]
fn a_suspended_worker_that_is_killed_ends_its_session_as_any_other() {
    let mut bench = Bench::idle(0, None);
    bench.input(SessionInput::SuspendIdle);
    bench.input(SessionInput::Exited(WorkerExitStatus::Signaled(9)));
    assert_eq!(bench.reason(), "signal(SIGKILL)");
    assert!(!bench.machine.is_suspended());
    assert_eq!(bench.machine.shown_record().status, SessionStatus::Crashed);
}
