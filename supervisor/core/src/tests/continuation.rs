//! A session whose worker was being replaced when its supervisor exited, and rollbacks whose generation is not stored.

use super::*;
use crate::{Continuation, SpawnFailure, copy_name};
use vm_system_protocol::limits::RECOVERIES;

const SEED: [u8; 32] = [8; 32];

/// A session with a checkpoint.
fn with_checkpoint() -> Bench {
    let mut bench = Bench::ready();
    bench.input(SessionInput::Checkpoint { token: Token::new(2), name: None });
    let order = bench.forks.last().copied().expect("an order");
    bench.on_worker_message(FromWorker::Forked { order });
    bench.input(SessionInput::ForkEnded { order, result: Ok(()) });
    assert!(matches!(bench.reply(2), Some(Ok(Answer::Checkpoint(_)))), "{:?}", bench.replies);
    bench
}

fn of_crash(on_crash: OnCrash) -> Bench {
    let policy = rights(|_| {});
    let mut bench = Bench::new(Arc::clone(&policy), 0);
    bench.machine = SessionMachine::new(SessionSpec { on_crash, ..spec(&policy, 0) });
    bench.input(SessionInput::Create { token: Token::new(1) });
    bench.input(SessionInput::Spawned);
    bench.on_worker_message(FromWorker::Started { heap_bytes: 1 });
    bench
}

impl Bench {
    fn recorded(&self) -> Option<Continuation> {
        Continuation::recorded(&self.machine.record().runtime_meta)
    }

    /// The next supervisor begins, if the row says what was begun.
    pub(super) fn next_supervisor(&mut self, on_crash: OnCrash) {
        let continuation = self.recorded().expect("it was recorded");
        let record = self.machine.record().clone();
        let spec = SessionSpec { record, on_crash, ..spec(&self.policy, 0) };
        let mut out = Vec::new();
        (self.seq, self.killed) = (0, false);
        self.forks.clear();
        self.machine = SessionMachine::continue_replacement(spec, continuation, self.now, &mut out);
        let writes = out.into_iter().filter_map(|action| match action {
            SessionAction::Write { id, batch, .. } => {
                self.writes.extend(batch);
                Some(id)
            }
            _ => None,
        });
        let writes: Vec<WriteId> = writes.collect();
        for id in writes {
            self.input(SessionInput::Stored(id));
        }
    }

    fn details(&self) -> Vec<&str> {
        let details = self.writes.iter().filter_map(|write| match write {
            Write::SessionRestoring { detail, .. } => Some(&**detail),
            _ => None,
        });
        details.collect()
    }

    fn restored(&mut self) {
        assert!(self.machine.awaits_fork_of_copy());
        self.input(SessionInput::CopyForked(Ok(SEED)));
        self.on_worker_message(FromWorker::Started { heap_bytes: 5 });
        assert_eq!(self.machine.record().status, SessionStatus::Ready);
    }
}

#[test]
fn a_session_that_is_being_created_is_not_continued() {
    assert_eq!(Bench::ready().recorded(), None);
    assert_eq!(with_checkpoint().recorded(), None);
}

#[test]
fn the_next_supervisor_restarts_a_session_again() {
    let mut bench = of_crash(OnCrash::Restart);
    bench.input(SessionInput::Exited(WorkerExitStatus::Signaled(11)));
    assert_eq!(bench.recorded().expect("recorded").copy, None);
    bench.respawns = 0;
    bench.next_supervisor(OnCrash::Restart);
    assert_eq!(bench.details(), ["signal(SIGSEGV)", "signal(SIGSEGV)"]);
    // It counts as the second restart within the window.
    assert_eq!(bench.respawns, 0);
    bench.pass_ms(1_000);
    assert_eq!(bench.respawns, 1);
    let policy = Arc::clone(&bench.policy);
    let respawned = crate::Respawned { random_seed: SEED, startup: Vec::new(), policy };
    bench.input(SessionInput::Respawned(Box::new(respawned)));
    bench.on_worker_message(FromWorker::Started { heap_bytes: 5 });
    assert_eq!((bench.machine.record().status, bench.machine.generation()), (SessionStatus::Ready, 3));
}

#[test]
fn a_session_whose_restart_ends_its_supervisors_ends() {
    let mut bench = of_crash(OnCrash::Restart);
    bench.input(SessionInput::Exited(WorkerExitStatus::Signaled(11)));
    for _ in 0..RECOVERIES - 1 {
        bench.next_supervisor(OnCrash::Restart);
        assert_eq!(bench.machine.record().status, SessionStatus::Starting);
    }
    bench.next_supervisor(OnCrash::Restart);
    assert_eq!(bench.reason(), "host_restart");
    assert!(bench.machine.is_released());
}

#[test]
fn the_next_supervisor_forks_the_same_copy_again() {
    let mut bench = with_checkpoint();
    let name = copy_name(bench.machine.id(), bench.forks[0]);
    bench.input(SessionInput::Request {
        token: Token::new(3),
        request: SessionRequest::Rollback { checkpoint: None },
    });
    assert_eq!(bench.recorded().expect("recorded").copy, Some((CopyId::Checkpoint(1), name)));
    bench.next_supervisor(OnCrash::Close);
    assert_eq!(bench.details(), ["checkpoint 1", "checkpoint 1"]);
    assert_eq!((bench.machine.checkpoints().len(), bench.machine.lost_checkpoints()), (1, 0));
    bench.restored();
    assert_eq!(bench.machine.generation(), 3);

    let mut bench = of_crash(OnCrash::Rollback);
    let order = bench.forks.last().copied().expect("the guard copy");
    bench.on_worker_message(FromWorker::Forked { order });
    bench.input(SessionInput::ForkEnded { order, result: Ok(()) });
    bench.input(SessionInput::Exited(WorkerExitStatus::Signaled(11)));
    let name = copy_name(bench.machine.id(), order);
    assert_eq!(bench.recorded().expect("recorded").copy, Some((CopyId::Guard, name)));
    bench.next_supervisor(OnCrash::Rollback);
    bench.restored();
    assert!(bench.forks.is_empty(), "the guard copy is there");
}

#[test]
fn a_copy_that_cannot_be_forked_after_an_adoption_ends_the_session() {
    let mut bench = with_checkpoint();
    bench.input(SessionInput::Request {
        token: Token::new(3),
        request: SessionRequest::Rollback { checkpoint: None },
    });
    bench.next_supervisor(OnCrash::Close);
    let why = SpawnFailure::late("it is gone".to_owned());
    bench.input(SessionInput::CopyForked(Err(crate::ForkFault::Failed(why))));
    assert_eq!(bench.reason(), "spawn_failed(it could not continue from its frozen copy: it is gone)");
}

#[test]
fn a_rollback_that_is_not_stored_changes_nothing() {
    for exited in [false, true] {
        let mut bench = with_checkpoint();
        let facts = bench.machine.record().runtime_meta.clone();
        bench.held = Some(Vec::new());
        bench.input(SessionInput::Request {
            token: Token::new(3),
            request: SessionRequest::Rollback { checkpoint: None },
        });
        assert!(!bench.killed, "the worker goes on until the rollback is stored");
        if exited {
            bench.input(SessionInput::Exited(WorkerExitStatus::Signaled(11)));
        }
        bench.loses("the disk is full", false);
        assert!(matches!(bench.reply(3), Some(Err(Refusal::Storage(_)))), "{:?}", bench.replies);
        if exited {
            assert_eq!(bench.reason(), "signal(SIGSEGV)");
            continue;
        }
        let record = bench.machine.record();
        assert_eq!((record.status, &record.runtime_meta), (SessionStatus::Ready, &facts));
        bench.held = None;
        bench.execute(4);
        bench.ends(Outcome::Ok);
        assert!(matches!(bench.reply(4), Some(Ok(_))), "{:?}", bench.replies);
    }
}

#[test]
fn a_session_ends_on_request_while_its_rollback_is_being_stored() {
    for kill in [false, true] {
        let mut bench = with_checkpoint();
        bench.held = Some(Vec::new());
        bench.input(SessionInput::Request {
            token: Token::new(3),
            request: SessionRequest::Rollback { checkpoint: None },
        });
        if kill {
            bench.input(SessionInput::Kill { token: Token::new(4), signal: 9 });
        } else {
            bench.input(SessionInput::Close { token: Token::new(4), cause: CloseCause::Request });
        }
        assert!(bench.killed);
        bench.keeps();
        bench.input(SessionInput::Exited(WorkerExitStatus::Signaled(9)));
        bench.keeps();
        assert!(matches!(bench.reply(3), Some(Err(Refusal::NotReady(_)))), "{:?}", bench.replies);
        assert_eq!(bench.reason(), if kill { "killed(operator)" } else { "exited" });
        assert!(bench.machine.is_released());
    }
}
