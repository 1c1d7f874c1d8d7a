//! Other names of sessions.

use super::*;

impl Bench {
    fn rename(&mut self, token: u64, name: &str) {
        let request = SessionRequest::Rename { name: name.to_owned() };
        self.input(SessionInput::Request { token: Token::new(token), request });
    }

    fn name(&self) -> Option<&str> {
        self.machine.record().name.as_deref()
    }
}

#[test]
fn a_session_has_its_other_name_when_that_is_stored() {
    let mut bench = Bench::running();
    let before = bench.name().map(str::to_owned);
    bench.held = Some(Vec::new());
    bench.rename(3, "lost");
    assert_eq!((bench.reply(3), bench.name()), (None, before.as_deref()));
    bench.loses("full", false);
    assert!(
        matches!(bench.reply(3), Some(Err(Refusal::Storage(why))) if why == "full"),
        "{:?}",
        bench.reply(3)
    );
    assert_eq!(bench.name(), before.as_deref());
    bench.rename(4, "kept");
    bench.keeps();
    let Some(Ok(Answer::Session(session))) = bench.reply(4) else { panic!("no session") };
    assert_eq!((session.name.as_deref(), bench.name()), (Some("kept"), Some("kept")));
    assert_eq!(bench.machine.running(), Some(EXECUTION), "its execution goes on");
    bench.held = None;
    bench.ends(Outcome::Ok);
    assert!(!bench.ended().degraded, "it has lost nothing");
}

#[test]
fn a_session_that_ends_or_is_suspended_is_renamed_only_in_the_latter_case() {
    let mut bench = Bench::ready();
    bench.input(SessionInput::SuspendIdle);
    bench.rename(3, "asleep");
    let Some(Ok(Answer::Session(session))) = bench.reply(3) else { panic!("no session") };
    assert_eq!((session.name.as_deref(), session.status), (Some("asleep"), SessionStatus::Suspended));
    assert!(bench.machine.is_suspended(), "its worker need not run for that");
    bench.input(SessionInput::Exited(WorkerExitStatus::Exited(0)));
    bench.rename(4, "late");
    assert!(matches!(bench.reply(4), None | Some(Err(Refusal::NotReady(_)))), "{:?}", bench.reply(4));
    assert_eq!(bench.name(), Some("asleep"));
}
