//! The replacement of workers of other builds by a deadline.

use super::*;
use crate::Respawned;

const HOUR_MS: u64 = 3_600_000;
/// Before any limit of an execution.
const SOON_MS: u64 = 500;

impl Bench {
    fn with_on_crash(on_crash: OnCrash) -> Self {
        let policy = rights(|_| {});
        let mut bench = Self::new(Arc::clone(&policy), 0);
        bench.machine = SessionMachine::new(SessionSpec { on_crash, ..spec(&policy, 0) });
        bench.input(SessionInput::Create { token: Token::new(1) });
        bench.input(SessionInput::Spawned);
        bench.on_worker_message(FromWorker::Started { heap_bytes: 1 });
        bench
    }

    /// A session whose deadline is in an hour.
    fn drained(&mut self) -> Timestamp {
        let at = Timestamp(self.now.unix_ms + HOUR_MS as i64);
        self.input(SessionInput::Drain { token: None, at: Some(at) });
        at
    }

    fn drain_fact(&self) -> serde_json::Value {
        serde_json::to_value(&self.machine.record().runtime_meta).expect("JSON")["drain_at"].clone()
    }

    fn is_killed_by_us(&mut self) {
        assert!(self.killed);
        self.input(SessionInput::Exited(WorkerExitStatus::Signaled(9)));
    }
}

#[test]
fn a_session_ends_at_its_deadline_and_says_what_to_do() {
    let mut bench = Bench::with_on_crash(OnCrash::Close);
    bench.held = Some(Vec::new());
    let at = Timestamp(bench.now.unix_ms + SOON_MS as i64);
    bench.input(SessionInput::Drain { token: Some(Token::new(7)), at: Some(at) });
    assert!(bench.reply(7).is_none(), "it is not stored yet");
    for write in bench.held.take().expect("a slow store") {
        bench.input(SessionInput::Stored(write));
    }
    assert_eq!(bench.reply(7), Some(&Ok(Answer::Done)));
    assert_eq!(bench.drain_fact(), serde_json::json!(at));
    assert_eq!(bench.machine.next_cull_at(bench.now), Some(at));
    bench.execute(2);
    bench.pass_ms(SOON_MS - 1);
    assert_eq!((bench.machine.running(), bench.interrupts), (Some(EXECUTION), 0));
    bench.pass_ms(1);
    assert!(bench.interrupts > 0, "its execution is ended first");
    bench.ends(Outcome::Interrupted);
    let error = bench.ended().error.expect("an error");
    assert!(error.code == "CANCELLED" && error.message.contains("--drain-by"), "{error:?}");
    assert!(matches!(bench.sent.last(), Some(ToWorker::Shutdown)), "{:?}", bench.sent);
    bench.input(SessionInput::Exited(WorkerExitStatus::Exited(0)));
    let record = bench.machine.record();
    assert_eq!((record.status, record.close_reason.as_deref()), (SessionStatus::Closed, Some("replaced")));
    assert!(record.last_error.as_ref().is_some_and(|why| why.contains("session restore")), "{record:?}");
}

#[test]
fn an_idle_session_that_restarts_is_replaced_at_once_and_a_busy_one_when_it_is_idle() {
    for is_busy in [false, true] {
        let mut bench = Bench::with_on_crash(OnCrash::Restart);
        if is_busy {
            bench.execute(2);
        }
        bench.drained();
        assert_eq!(bench.killed, !is_busy);
        if is_busy {
            bench.ends(Outcome::Ok);
            assert!(matches!(bench.reply(2), Some(Ok(Answer::Executed(_)))), "{:?}", bench.replies);
        }
        bench.is_killed_by_us();
        assert_eq!((bench.respawns, bench.machine.generation()), (1, 2));
        assert_eq!(bench.drain_fact(), serde_json::Value::Null, "the next worker is of this build");
        bench.pass_ms(2 * HOUR_MS);
        assert_eq!(bench.machine.record().closed_at, None);
    }
}

#[test]
fn a_session_that_restarts_is_replaced_at_its_deadline_while_it_is_busy() {
    let mut bench = Bench::with_on_crash(OnCrash::Restart);
    bench.execute(2);
    bench.calls(1);
    bench.input(SessionInput::Drain { token: None, at: Some(Timestamp(bench.now.unix_ms + 5)) });
    assert!(!bench.killed);
    bench.pass_ms(5);
    bench.is_killed_by_us();
    let Some(Ok(Answer::Executed(ended))) = bench.reply(2) else { panic!("{:?}", bench.replies) };
    assert_eq!(ended.record.error.as_ref().and_then(|error| error.reason.as_deref()), Some("replaced"));
    assert_eq!(bench.respawns, 1);
}

#[test]
fn replacements_are_no_crashes_that_count() {
    let mut bench = Bench::with_on_crash(OnCrash::Restart);
    for _ in 0..10 {
        bench.seq = 0;
        bench.killed = false;
        bench.drained();
        bench.is_killed_by_us();
        assert_eq!(std::mem::take(&mut bench.respawns), 1, "at once");
        let respawned =
            Respawned { random_seed: [1; 32], startup: Vec::new(), policy: Arc::clone(&bench.policy) };
        bench.input(SessionInput::Respawned(Box::new(respawned)));
        bench.on_worker_message(FromWorker::Started { heap_bytes: 1 });
    }
    assert_eq!(bench.machine.record().status, SessionStatus::Ready);
}

#[test]
fn a_deadline_is_kept_by_the_next_supervisor_until_it_is_withdrawn() {
    let mut bench = Bench::with_on_crash(OnCrash::Close);
    let at = bench.drained();
    let record = bench.machine.record().clone();
    let mut out = Vec::new();
    bench.machine = SessionMachine::adopt(
        SessionSpec { record, ..spec(&bench.policy, 0) },
        (1, 4),
        None,
        None,
        bench.now,
        &mut out,
    );
    assert_eq!(bench.machine.drain_at(), Some(at));
    bench.input(SessionInput::Drain { token: None, at: None });
    assert_eq!((bench.machine.drain_at(), bench.drain_fact()), (None, serde_json::Value::Null));
    assert!(matches!(bench.writes.last(), Some(Write::SessionFacts { .. })), "{:?}", bench.writes.last());
}
