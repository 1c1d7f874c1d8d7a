//! A session in which the inputs of another one are repeated, and what is stored for that.

use super::*;
use vm_system_protocol::model::RestoredInputs;

impl Bench {
    fn restoration() -> Self {
        let policy = rights(|_| {});
        let mut bench = Self::new(Arc::clone(&policy), 0);
        bench.machine =
            SessionMachine::restoration(SessionSpec { on_crash: OnCrash::Rollback, ..spec(&policy, 0) });
        bench.input(SessionInput::Create { token: Token::new(1) });
        bench.input(SessionInput::Spawned);
        bench.on_worker_message(FromWorker::Started { heap_bytes: 1 });
        bench
    }

    fn finish(&mut self, token: u64) {
        let restored = RestoredInputs { inputs: 1, not_repeated: 0, different: 0 };
        let name = Some("work".to_owned());
        self.input(SessionInput::Request {
            token: Token::new(token),
            request: SessionRequest::FinishRestoration { name, restored },
        });
    }

    fn repeat(&mut self, token: u64) {
        let (request, policy) = (Box::new(request(EXECUTION)), Arc::clone(&self.policy));
        self.input(SessionInput::Repeat { token: Token::new(token), request, policy });
    }

    fn is_stored_as_ready(&self) -> bool {
        let ready =
            |write: &Write| matches!(write, Write::SessionReady { .. } | Write::SessionRestored { .. });
        self.writes.iter().any(ready)
    }
}

#[test]
fn it_is_not_ready_before_the_last_input_was_repeated() {
    let mut bench = Bench::restoration();
    let Some(Ok(Answer::Session(session))) = bench.reply(1) else { panic!("{:?}", bench.replies) };
    assert_eq!((session.status, session.name.as_deref()), (SessionStatus::Starting, None));
    bench.execute(2);
    bench.input(SessionInput::Fork { token: Token::new(3), count: 1 });
    bench.input(SessionInput::Request { token: Token::new(4), request: SessionRequest::Suspend });
    for refused in 2..5 {
        assert!(
            matches!(bench.reply(refused), Some(Err(Refusal::NotReady(_)))),
            "{:?}",
            bench.reply(refused)
        );
    }
    bench.repeat(5);
    assert_eq!(bench.machine.running(), Some(EXECUTION));
    bench.finish(6);
    assert!(matches!(bench.reply(6), Some(Err(Refusal::Busy))), "{:?}", bench.reply(6));
    bench.ends(Outcome::Ok);
    assert!(matches!(bench.reply(5), Some(Ok(Answer::Executed(_)))), "{:?}", bench.reply(5));
    assert!(!bench.is_stored_as_ready() && bench.forks.is_empty(), "no guard copy yet");
    bench.finish(7);
    let Some(Ok(Answer::Session(session))) = bench.reply(7) else { panic!("{:?}", bench.replies) };
    assert_eq!((session.status, session.name.as_deref()), (SessionStatus::Ready, Some("work")));
    assert_eq!(serde_json::to_value(&session.runtime_meta).expect("JSON")["restored"]["inputs"], 1);
    assert!(bench.is_stored_as_ready());
    assert_eq!(bench.forks.len(), 1, "its guard copy");
    bench.repeat(8);
    assert!(matches!(bench.reply(8), Some(Err(Refusal::NotReady(_)))), "{:?}", bench.reply(8));
}

#[test]
fn a_crash_ends_a_restoration() {
    let mut bench = Bench::restoration();
    bench.repeat(2);
    bench.input(SessionInput::Exited(WorkerExitStatus::Signaled(11)));
    assert_eq!(bench.reason(), "signal(SIGSEGV)");
    assert!(!bench.is_stored_as_ready());
}

#[test]
fn a_session_that_accepts_inputs_of_clients_repeats_none() {
    let mut bench = Bench::ready();
    bench.repeat(2);
    bench.finish(3);
    for refused in 2..4 {
        assert!(
            matches!(bench.reply(refused), Some(Err(Refusal::NotReady(_)))),
            "{:?}",
            bench.reply(refused)
        );
    }
}

fn facts_of(bench: &Bench) -> RepeatFacts {
    let mut all = RepeatFacts::default();
    for write in &bench.writes {
        if let Write::ExecutionFacts { facts, .. } = write {
            all.add(*facts);
        }
    }
    all
}

#[test]
fn what_a_record_lacks_and_effects_are_stored_once() {
    let mut bench = Bench::ready();
    let mut new = request(EXECUTION);
    new.argv = vec!["-v".to_owned()];
    let policy = Arc::clone(&bench.policy);
    bench.input(SessionInput::Execute { token: Token::new(2), request: Box::new(new), policy });
    assert_eq!(facts_of(&bench), RepeatFacts::ARGV);
    bench.calls(1);
    assert_eq!(facts_of(&bench), RepeatFacts::ARGV, "reading is no effect, and was denied");
    let mut plain = Bench::running();
    plain.ends(Outcome::Ok);
    assert!(facts_of(&plain).is_empty());
}
