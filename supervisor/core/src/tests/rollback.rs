//! Checkpoints, rollbacks on request, and `on_crash: rollback`.

use super::*;
use crate::rollback::fork_order;
use crate::{ForkFault, SpawnFailure, copy_name};
use vm_system_protocol::limits::{CHECKPOINTS, RECOVERIES};
use vm_system_protocol::model::SessionCheckpoint;

const SEED: [u8; 32] = [9; 32];

impl Bench {
    fn rolling(on_crash: OnCrash) -> Self {
        let policy = rights(|_| {});
        let mut bench = Self::new(Arc::clone(&policy), 0);
        bench.machine = SessionMachine::new(SessionSpec { on_crash, ..spec(&policy, 0) });
        bench
    }

    fn begin(&mut self) {
        self.input(SessionInput::Create { token: Token::new(1) });
        self.input(SessionInput::Spawned);
        self.on_worker_message(FromWorker::Started { heap_bytes: 1 });
    }

    /// The worker forks as it was ordered.
    fn fork_succeeds(&mut self) {
        let order = self.forks.last().copied().expect("an order");
        self.on_worker_message(FromWorker::Forked { order });
        self.input(SessionInput::ForkEnded { order, result: Ok(()) });
    }

    /// The worker has exited, and a copy's fork continues.
    fn continues(&mut self) {
        assert!(self.machine.awaits_fork_of_copy());
        (self.seq, self.killed) = (0, false);
        self.input(SessionInput::CopyForked(Ok(SEED)));
        let Some(ToWorker::Start(start)) = self.sent.last() else { panic!("{:?}", self.sent) };
        assert_eq!(start.random_seed, SEED);
        self.on_worker_message(FromWorker::Started { heap_bytes: 5 });
    }

    fn facts(&self) -> serde_json::Value {
        serde_json::to_value(&self.machine.record().runtime_meta).expect("JSON")
    }
}

#[test]
fn a_rollback_replaces_the_worker_and_keeps_session_and_checkpoint() {
    let mut bench = Bench::rolling(OnCrash::Close);
    bench.begin();
    bench.input(SessionInput::Checkpoint { token: Token::new(10), name: Some("a".to_owned()) });
    bench.fork_succeeds();
    let Some((_, Ok(Answer::Checkpoint(made)))) = bench.replies.last() else { panic!("{:?}", bench.replies) };
    assert_eq!((made.number, made.name.as_deref()), (1, Some("a")));
    for generation in 2..4 {
        bench.input(SessionInput::Request {
            token: Token::new(10 + generation),
            request: SessionRequest::Rollback { checkpoint: Some("a".to_owned()) },
        });
        assert!(bench.killed);
        assert_eq!(bench.machine.record().status, SessionStatus::Starting);
        bench.input(SessionInput::Exited(WorkerExitStatus::Signaled(9)));
        assert!(bench.writes.iter().any(|write| matches!(write, Write::SessionRestoring { .. })));
        bench.continues();
        let Some((_, Ok(Answer::Session(session)))) = bench.replies.last() else {
            panic!("{:?}", bench.replies)
        };
        assert_eq!(session.status, SessionStatus::Ready);
        assert_eq!(
            (bench.machine.generation(), bench.facts()["generation"].as_u64()),
            (generation, Some(generation))
        );
        assert_eq!(bench.machine.checkpoints().len(), 1);
    }
    bench.input(SessionInput::Request {
        token: Token::new(30),
        request: SessionRequest::Rollback { checkpoint: Some("b".to_owned()) },
    });
    assert!(matches!(bench.replies.last(), Some((_, Err(Refusal::NoCheckpoint(_))))), "{:?}", bench.replies);
}

#[test]
fn checkpoints_are_bounded_and_their_names_are_unique() {
    let mut bench = Bench::rolling(OnCrash::Close);
    bench.begin();
    for number in 0..CHECKPOINTS {
        let token = Token::new(10 + number as u64);
        bench.input(SessionInput::Checkpoint { token, name: (number == 0).then(|| "a".to_owned()) });
        bench.fork_succeeds();
        if number == 0 {
            bench.input(SessionInput::Checkpoint { token: Token::new(90), name: Some("a".to_owned()) });
            assert!(matches!(bench.replies.last(), Some((_, Err(Refusal::CheckpointExists(_))))));
        }
    }
    bench.input(SessionInput::Checkpoint { token: Token::new(91), name: None });
    assert!(
        matches!(bench.replies.last(), Some((_, Err(Refusal::TooManyCheckpoints)))),
        "{:?}",
        bench.replies
    );
    bench.input(SessionInput::DeleteCheckpoint { token: Token::new(92), checkpoint: "a".to_owned() });
    assert_eq!(bench.dropped, [CopyId::Checkpoint(1)]);
    bench.input(SessionInput::Checkpoint { token: Token::new(93), name: None });
    bench.fork_succeeds();
    assert_eq!(bench.machine.checkpoints().last().map(|last| last.number), Some(CHECKPOINTS as u64 + 1));
}

#[test]
fn a_crash_costs_the_execution_alone_until_there_are_too_many() {
    let mut bench = Bench::rolling(OnCrash::Rollback);
    bench.begin();
    assert!(bench.machine.is_making_guard());
    bench.fork_succeeds();
    for crash in 0..=RECOVERIES {
        bench.execute_as(20 + crash as u64, ExecutionId::from_bytes([crash as u8 + 1; 16]));
        bench.input(SessionInput::Exited(WorkerExitStatus::Signaled(11)));
        let Some((_, Ok(Answer::Executed(ended)))) = bench.replies.last() else {
            panic!("{:?}", bench.replies)
        };
        let error = ended.record.error.as_ref().expect("an error");
        assert_eq!((error.code.as_str(), error.reason.as_deref()), ("WORKER_DIED", Some("signal(SIGSEGV)")));
        if crash < RECOVERIES {
            bench.continues();
            assert_eq!(bench.machine.record().status, SessionStatus::Ready);
        }
    }
    let record = bench.machine.record();
    assert_eq!(
        (record.status, record.close_reason.as_deref()),
        (SessionStatus::Crashed, Some("signal(SIGSEGV)"))
    );
    assert!(
        record.last_error.as_deref().is_some_and(|error| error.contains("rolled back 5 times")),
        "{record:?}"
    );
}

/// The session continues, and its event says what of the acknowledged state is lost.
fn continues_without(bench: &mut Bench, what: Option<&str>) {
    bench.writes.clear();
    bench.input(SessionInput::Exited(WorkerExitStatus::Signaled(9)));
    let details = bench.writes.iter().filter_map(|write| match write {
        Write::SessionRestoring { detail, .. } => Some(detail.clone()),
        _ => None,
    });
    let expected = what.map_or("signal(SIGKILL)".to_owned(), |what| format!("signal(SIGKILL); {what}"));
    assert_eq!(details.collect::<Vec<_>>(), [expected]);
    assert_eq!(bench.facts()["rollback"]["lacks"].as_str(), what);
    bench.continues();
    assert_eq!(bench.machine.record().status, SessionStatus::Ready);
}

#[test]
fn a_worker_that_exits_before_the_next_guard_copy_exists_costs_the_effect_of_one_execution() {
    let lacks = format!("the state lacks the effect of execution {EXECUTION}, which had ended");
    let mut bench = Bench::rolling(OnCrash::Rollback);
    bench.begin();
    bench.fork_succeeds();
    bench.execute(20);
    bench.ends(Outcome::Ok);
    assert!(bench.machine.is_making_guard());
    continues_without(&mut bench, Some(&lacks));
    // The copy has the state of the worker that continues from it.
    bench.execute(21);
    bench.ends(Outcome::Ok);
    // No copy can be made.
    let order = bench.forks.last().copied().expect("an order");
    bench.on_worker_message(FromWorker::ForkFailed { order, errno: 11 });
    let why = SpawnFailure::late("no process".to_owned());
    bench.input(SessionInput::ForkEnded { order, result: Err(ForkFault::Failed(why)) });
    continues_without(&mut bench, Some(&lacks));
    // The copy exists.
    bench.execute(22);
    bench.ends(Outcome::Ok);
    bench.fork_succeeds();
    assert_eq!(bench.dropped, [CopyId::Guard]);
    continues_without(&mut bench, None);
}

#[test]
fn a_guard_copy_that_was_taken_over_may_be_of_the_time_before_the_last_execution() {
    const NONCE: u64 = 7;
    for (committed, lacks) in
        [(10, None), (11, None), (12, Some("the state may lack the effect of the last execution"))]
    {
        let mut bench = Bench::rolling(OnCrash::Rollback);
        let spec = SessionSpec { on_crash: OnCrash::Rollback, ..spec(&bench.policy, 0) };
        let guard = copy_name(spec.record.id, fork_order(1, 10, true));
        let adopt = (committed, NONCE);
        bench.machine = SessionMachine::adopt(spec, adopt, None, Some(guard), bench.now, &mut Vec::new());
        continues_without(&mut bench, lacks);
    }
}

#[test]
fn a_rollback_whose_end_is_stored_late_costs_no_session() {
    let mut bench = Bench::rolling(OnCrash::Rollback);
    bench.begin();
    bench.fork_succeeds();
    bench.execute(20);
    bench.input(SessionInput::Exited(WorkerExitStatus::Signaled(9)));
    bench.held = Some(Vec::new());
    bench.continues();
    bench.loses("the disk is full", false);
    assert_eq!((bench.machine.record().status, bench.killed), (SessionStatus::Ready, false));
    // Another supervisor would roll back again: no execution is acknowledged until then.
    bench.execute(21);
    assert!(matches!(bench.replies.last(), Some((21, Err(Refusal::Storage(_))))), "{:?}", bench.replies);
    bench.held = None;
    bench.pass_ms(60_000);
    bench.execute(22);
    bench.ends(Outcome::Ok);
    assert!(matches!(bench.replies.last(), Some((22, Ok(_)))), "{:?}", bench.replies);
}

#[test]
fn crashes_that_are_far_apart_are_not_counted_together() {
    let mut bench = Bench::rolling(OnCrash::Rollback);
    bench.begin();
    bench.fork_succeeds();
    for _ in 0..3 * RECOVERIES {
        bench.input(SessionInput::Exited(WorkerExitStatus::OutOfMemory));
        bench.continues();
        bench.now.mono_ms += 15_000;
    }
}

#[test]
fn a_violation_and_an_operators_kill_end_the_session_despite_its_guard() {
    for hostile in [true, false] {
        let mut bench = Bench::rolling(OnCrash::Rollback);
        bench.begin();
        bench.fork_succeeds();
        if hostile {
            bench.on_worker_message(FromWorker::Forked { order: 77 });
        } else {
            bench.input(SessionInput::Kill { token: Token::new(40), signal: 9 });
        }
        bench.input(SessionInput::Exited(WorkerExitStatus::Signaled(9)));
        assert_eq!(bench.machine.record().status, SessionStatus::Crashed);
        assert_eq!(bench.machine.generation(), 1);
    }
}

#[test]
fn a_session_that_ends_because_memory_is_short_does_not_continue() {
    for on_crash in [OnCrash::Rollback, OnCrash::Restart] {
        let mut bench = Bench::rolling(on_crash);
        bench.begin();
        if on_crash == OnCrash::Rollback {
            bench.fork_succeeds();
        }
        bench.input(SessionInput::MemoryShort);
        assert!(bench.killed);
        bench.input(SessionInput::Exited(WorkerExitStatus::Signaled(9)));
        assert_eq!(bench.reason(), "killed(memory_pressure)");
        assert_eq!((bench.machine.record().status, bench.machine.generation()), (SessionStatus::Crashed, 1));
    }
}

#[test]
fn a_copy_that_violates_the_protocol_ends_the_session() {
    let mut bench = Bench::rolling(OnCrash::Rollback);
    bench.begin();
    bench.fork_succeeds();
    bench.input(SessionInput::Exited(WorkerExitStatus::Signaled(11)));
    bench.input(SessionInput::CopyForked(Err(ForkFault::Violation("it sent nothing".to_owned()))));
    let reason = bench.machine.record().close_reason.clone().expect("ended");
    assert_eq!(reason, "protocol_violation(its frozen copy: it sent nothing)");
}

#[test]
fn an_execution_without_a_guard_does_not_run() {
    let mut bench = Bench::rolling(OnCrash::Rollback);
    bench.begin();
    let order = bench.forks.last().copied().expect("an order");
    bench.on_worker_message(FromWorker::ForkFailed { order, errno: 11 });
    let why = SpawnFailure::late("no process".to_owned());
    bench.input(SessionInput::ForkEnded { order, result: Err(ForkFault::Failed(why.clone())) });
    bench.execute(50);
    let order = bench.forks.last().copied().expect("an order");
    bench.on_worker_message(FromWorker::ForkFailed { order, errno: 11 });
    bench.input(SessionInput::ForkEnded { order, result: Err(ForkFault::Failed(why)) });
    assert!(matches!(bench.replies.last(), Some((50, Err(Refusal::Fork(_))))), "{:?}", bench.replies);
    bench.execute(51);
    bench.fork_succeeds();
    assert_eq!(bench.machine.running(), Some(EXECUTION));
}

#[test]
fn checkpoints_of_the_previous_supervisor_are_named_as_lost() {
    let mut bench = Bench::rolling(OnCrash::Close);
    let mut spec = spec(&bench.policy, 0);
    let checkpoint = SessionCheckpoint { number: 2, name: None, created_at: Timestamp(0), heap_bytes: 1 };
    spec.record.runtime_meta = SessionFacts {
        generation: Some(3),
        last_checkpoint: Some(2),
        checkpoints: Some(vec![checkpoint]),
        ..SessionFacts::default()
    };
    bench.machine = SessionMachine::adopt(spec, (0, 1), None, None, bench.now, &mut Vec::new());
    assert_eq!((bench.machine.lost_checkpoints(), bench.machine.generation()), (1, 3));
    let facts = bench.facts();
    assert_eq!(
        (facts["checkpoints_lost"]["count"].as_u64(), facts["checkpoints"].as_array().map(Vec::len)),
        (Some(1), Some(0))
    );
}
