//! `on_crash: restart`.

use super::*;
use crate::{LibraryFailure, LibraryProblem, Respawned, SpawnFailure};
use vm_system_protocol::limits::{RECOVERIES, RECOVERY_WINDOW_MS, RESTART_BACK_OFF_MS};
use vm_system_protocol::model::SessionEventType;

const SEED: [u8; 32] = [7; 32];

impl Bench {
    pub(super) fn restarting() -> Self {
        let policy = rights(|_| {});
        let mut bench = Self::new(Arc::clone(&policy), 0);
        let on_crash = OnCrash::Restart;
        bench.machine = SessionMachine::new(SessionSpec { on_crash, ..spec(&policy, 0) });
        bench.input(SessionInput::Create { token: Token::new(1) });
        bench.input(SessionInput::Spawned);
        bench.on_worker_message(FromWorker::Started { heap_bytes: 1 });
        bench
    }

    /// The next worker exists, with these startup files.
    pub(super) fn respawned(&mut self, startup: Vec<ExecuteRequest>) {
        assert_eq!(std::mem::take(&mut self.respawns), 1, "it was ordered once");
        (self.seq, self.killed) = (0, false);
        let policy = Arc::clone(&self.policy);
        let respawned = Respawned { random_seed: SEED, startup, policy };
        self.input(SessionInput::Respawned(Box::new(respawned)));
    }

    /// The next worker is set up.
    fn starts(&mut self) {
        self.respawned(Vec::new());
        let Some(ToWorker::Start(start)) = self.sent.last() else { panic!("{:?}", self.sent) };
        assert_eq!(start.random_seed, SEED);
        self.on_worker_message(FromWorker::Started { heap_bytes: 5 });
        assert_eq!(self.machine.record().status, SessionStatus::Ready);
    }

    pub(super) fn crashes(&mut self) {
        self.input(SessionInput::Exited(WorkerExitStatus::Signaled(11)));
    }

    /// Details of the restarts' events.
    fn restarts(&self) -> Vec<&str> {
        let details = self.writes.iter().filter_map(|write| match write {
            Write::SessionRestoring { kind: SessionEventType::Restarted, detail, .. } => Some(&**detail),
            _ => None,
        });
        details.collect()
    }

    /// The warnings of executions about restarts.
    fn warnings(&self) -> Vec<String> {
        let events = self.writes.iter().filter_map(|write| match write {
            Write::Events(events) => Some(events.iter()),
            _ => None,
        });
        let warnings = events.flatten().filter_map(|event| match &event.payload {
            EventPayload::System { message, level: ConsoleLevel::Warn, .. } => Some(message.clone()),
            _ => None,
        });
        warnings.collect()
    }

    fn restart_fact(&self) -> serde_json::Value {
        serde_json::to_value(&self.machine.record().runtime_meta).expect("JSON")["restart"].clone()
    }
}

fn startup(id: u8) -> ExecuteRequest {
    ExecuteRequest { kind: ExecutionKind::Startup, ..request(ExecutionId::from_bytes([id; 16])) }
}

#[test]
fn a_crash_ends_the_execution_and_a_new_worker_runs_the_startup_files() {
    let mut bench = Bench::restarting();
    bench.execute(2);
    bench.crashes();
    let Some(Ok(Answer::Executed(ended))) = bench.reply(2) else { panic!("{:?}", bench.replies) };
    let error = ended.record.error.as_ref().expect("an error");
    assert_eq!((error.code.as_str(), error.reason.as_deref()), ("WORKER_DIED", Some("signal(SIGSEGV)")));
    assert_eq!(bench.restarts(), ["signal(SIGSEGV)"]);
    bench.execute_as(3, ExecutionId::from_bytes([3; 16]));
    let Some(Err(refused)) = bench.reply(3) else { panic!("{:?}", bench.replies) };
    assert!(refused.to_string().contains("being restarted, because its worker ended (signal(SIGSEGV))"));
    bench.respawned(vec![startup(40)]);
    bench.on_worker_message(FromWorker::Started { heap_bytes: 5 });
    assert_eq!(bench.machine.running(), Some(ExecutionId::from_bytes([40; 16])));
    assert_eq!(bench.machine.record().status, SessionStatus::Starting);
    bench.on_worker_message(FromWorker::Done(Box::new(Done {
        execution: ExecutionId::from_bytes([40; 16]),
        ..done(Outcome::Ok)
    })));
    assert_eq!(bench.machine.record().status, SessionStatus::Ready);
    assert_eq!(bench.machine.generation(), 2);
    assert!(bench.warnings().is_empty(), "a startup file is no caller");
}

#[test]
fn the_next_execution_says_once_what_was_lost_also_after_an_adoption() {
    for adopted in [false, true] {
        let mut bench = Bench::restarting();
        bench.crashes();
        assert_eq!(bench.restart_fact()["reported"], false);
        bench.starts();
        if adopted {
            let record = bench.machine.record().clone();
            let spec = SessionSpec { record, on_crash: OnCrash::Restart, ..spec(&bench.policy, 0) };
            let mut out = Vec::new();
            bench.machine = SessionMachine::adopt(spec, (1, 4), None, None, bench.now, &mut out);
            bench.on_worker_message(FromWorker::Adopted {
                nonce: 4,
                acknowledged: 1,
                last_sent: 1,
                running: None,
                finished: None,
            });
            bench.seq = 1;
        }
        for (token, id) in [(2, 2), (3, 3)] {
            let execution = ExecutionId::from_bytes([id; 16]);
            bench.execute_as(token, execution);
            let warnings = bench.warnings();
            assert_eq!(warnings.len(), 1, "{adopted}: {warnings:?}");
            assert!(warnings[0].contains("restarted, because its worker ended (signal(SIGSEGV))"));
            bench.on_worker_message(FromWorker::Done(Box::new(Done { execution, ..done(Outcome::Ok) })));
        }
        assert_eq!(bench.restart_fact()["reported"], true);
        assert_eq!(bench.restart_fact()["reason"], "signal(SIGSEGV)");
    }
}

#[test]
fn each_restart_waits_twice_as_long_and_the_sixth_crash_ends_the_session() {
    let mut bench = Bench::restarting();
    let mut pause = 0;
    for _ in 0..RECOVERIES {
        bench.crashes();
        if pause > 0 {
            assert_eq!(bench.respawns, 0);
            bench.pass_ms(pause - 1);
            assert_eq!(bench.respawns, 0, "{pause}");
            bench.pass_ms(1);
        }
        bench.starts();
        pause = (pause * 2).max(RESTART_BACK_OFF_MS);
    }
    bench.crashes();
    let record = bench.machine.record();
    assert_eq!(
        (record.status, record.close_reason.as_deref()),
        (SessionStatus::Crashed, Some("signal(SIGSEGV)"))
    );
    let error = record.last_error.as_deref().expect("an error");
    assert!(error.contains("it was restarted 5 times within 60 s before"), "{error}");
    assert!(bench.machine.is_released());
}

#[test]
fn crashes_that_are_far_apart_are_followed_at_once() {
    let mut bench = Bench::restarting();
    for _ in 0..3 * RECOVERIES {
        bench.crashes();
        bench.starts();
        bench.pass_ms(RECOVERY_WINDOW_MS);
    }
}

#[test]
fn a_restart_that_fails_is_tried_again_and_then_ends_the_session_by_its_own_reason() {
    let mut bench = Bench::restarting();
    bench.crashes();
    // No process, a library that is gone, a worker that dies while it starts, a startup file that throws.
    assert_eq!(std::mem::take(&mut bench.respawns), 1);
    bench.input(SessionInput::SpawnFailed(SpawnFailure::late("no process".to_owned())));
    bench.pass_ms(10 * RESTART_BACK_OFF_MS);
    assert_eq!(std::mem::take(&mut bench.respawns), 1);
    let text = "lodash-4.17.21 is not installed".to_owned();
    let library = "lodash-4.17.21".to_owned();
    let missing = LibraryFailure { library, problem: LibraryProblem::NotInstalled, text };
    bench.input(SessionInput::LibraryFailed(missing));
    bench.pass_ms(10 * RESTART_BACK_OFF_MS);
    bench.respawned(Vec::new());
    bench.input(SessionInput::Exited(WorkerExitStatus::Exited(3)));
    for left in [true, false] {
        bench.pass_ms(10 * RESTART_BACK_OFF_MS);
        bench.respawned(vec![startup(41)]);
        bench.on_worker_message(FromWorker::Started { heap_bytes: 5 });
        bench.on_worker_message(FromWorker::Done(Box::new(Done {
            execution: ExecutionId::from_bytes([41; 16]),
            ..done(Outcome::Exception { message: "no database".to_owned() })
        })));
        assert!(bench.killed);
        bench.input(SessionInput::Exited(WorkerExitStatus::Signaled(9)));
        assert_eq!(bench.machine.is_released(), !left);
    }
    let record = bench.machine.record();
    let reason = record.close_reason.as_deref().expect("it ended");
    assert!(reason.starts_with("startup_failed(") && reason.contains("no database"), "{reason}");
    let restarts = bench.restarts();
    assert_eq!(restarts.len(), RECOVERIES);
    let expected =
        ["signal(SIGSEGV)", "spawn_failed(", "startup_failed(lodash", "exited(3)", "startup_failed("];
    for (restart, expected) in restarts.iter().zip(expected) {
        assert!(restart.starts_with(expected), "{restart}");
    }
}

#[test]
fn a_request_to_end_the_session_ends_it_at_any_time() {
    // While it waits, while its worker is started, and while that one is set up.
    for step in 0..3 {
        for kill in [true, false] {
            let mut bench = Bench::restarting();
            bench.crashes();
            if step == 0 {
                bench.starts();
                bench.crashes();
            } else if step == 2 {
                bench.respawned(Vec::new());
            }
            if kill {
                bench.input(SessionInput::Kill { token: Token::new(9), signal: 9 });
            } else {
                bench.input(SessionInput::Close { token: Token::new(9), cause: CloseCause::Request });
            }
            if step == 1 {
                bench.respawned(Vec::new());
            }
            if step > 0 {
                bench.input(SessionInput::Exited(WorkerExitStatus::Signaled(9)));
            }
            assert!(bench.machine.is_released(), "step {step}, kill: {kill}");
            assert!(matches!(bench.reply(9), Some(Ok(_))), "{:?}", bench.replies);
            let reason = bench.reason();
            assert_eq!(reason, if kill { "killed(operator)" } else { "exited" }, "step {step}");
        }
    }
}

#[test]
fn a_hostile_worker_and_a_lost_jail_are_replaced_too_and_an_operators_kill_is_final() {
    let mut bench = Bench::restarting();
    bench.on_worker_message(FromWorker::Forked { order: 77 });
    assert!(bench.killed);
    bench.input(SessionInput::Exited(WorkerExitStatus::Signaled(9)));
    bench.starts();
    bench.input(SessionInput::Exited(WorkerExitStatus::KeeperLost));
    bench.pass_ms(RESTART_BACK_OFF_MS);
    bench.starts();
    assert_eq!(bench.restarts().len(), 2);
    assert_eq!(bench.restarts()[1], "keeper_lost");
    bench.input(SessionInput::Kill { token: Token::new(40), signal: 9 });
    bench.input(SessionInput::Exited(WorkerExitStatus::Signaled(9)));
    assert_eq!(bench.reason(), "killed(operator)");
}

#[test]
fn a_session_that_never_became_ready_is_not_restarted() {
    let policy = rights(|_| {});
    let mut bench = Bench::new(Arc::clone(&policy), 0);
    bench.machine = SessionMachine::new(SessionSpec { on_crash: OnCrash::Restart, ..spec(&policy, 0) });
    bench.input(SessionInput::Create { token: Token::new(1) });
    bench.input(SessionInput::Spawned);
    bench.crashes();
    assert!(bench.restarts().is_empty() && bench.machine.is_released());
    assert!(matches!(bench.reply(1), Some(Err(Refusal::DiedAtStart(_)))));
}
