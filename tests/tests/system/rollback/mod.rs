//! Checkpoints of sessions, rollbacks to them, and `on_crash: rollback`: real processes.

mod abuse;
mod apis;
mod continued;
mod crashes;
mod restarts;

use vm_system_protocol::control::{
    ErrorCode, ExecCancel, OpError, SessionAddCheckpoint, SessionCheckpoints, SessionDeleteCheckpoint,
    SessionRollback,
};
use vm_system_protocol::limits::CHECKPOINTS;
use vm_system_protocol::model::{OnCrash, Session, SessionCheckpoint, SessionStatus, Settings};
use vm_system_tests::as_both;
use vm_system_tests::client::Client;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::place::{TestDir, User};
use vm_system_tests::watch;

as_both!(
    a_rollback_returns_to_the_variables_of_its_checkpoint_any_number_of_times,
    a_frozen_copy_is_stopped_and_ends_with_its_session,
    a_session_that_was_rolled_back_survives_its_supervisor_and_its_checkpoints_do_not,
    a_checkpoint_whose_process_is_killed_is_not_listed_any_more,
);

mod cases {
    use super::*;

    pub(super) fn a_rollback_returns_to_the_variables_of_its_checkpoint_any_number_of_times(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        let session = session(&daemon, Settings::default());
        client.preview_of(&session, "var n = 1; const list = ['a']; const roll = Math.random()");
        let first = checkpoint(&mut client, &session, Some("first")).expect("made");
        assert_eq!((first.number, first.name.as_deref()), (1, Some("first")));
        client.preview_of(&session, "n = 2; list.push('b')");
        let second = checkpoint(&mut client, &session, None).expect("made");
        let pid = client.inspect(&session).expect("live").pid;
        for round in 0..3 {
            client.preview_of(&session, &format!("n = 10 + {round}; list.push('c')"));
            let back = rollback(&mut client, &session, Some("first")).expect("rolled back");
            assert_eq!((back.id, back.status), (session.id, SessionStatus::Ready));
            assert_eq!(client.preview_of(&session, "`${n} ${list}`"), "'1 a'");
        }
        rollback(&mut client, &session, Some("2")).expect("rolled back");
        assert_eq!(client.preview_of(&session, "`${n} ${list}`"), "'2 a,b'");
        rollback(&mut client, &session, None).expect("the newest");
        assert_eq!(client.preview_of(&session, "n"), "2");
        assert_ne!(client.inspect(&session).expect("live").pid, pid);
        let record = client.session_record(&session);
        let facts = serde_json::to_value(&record.runtime_meta).expect("JSON");
        assert_eq!(
            (facts["generation"].as_u64(), facts["checkpoints"].as_array().map(Vec::len)),
            (Some(6), Some(2))
        );
        assert_eq!(facts["rollback"]["checkpoint"].as_u64(), Some(second.number));
        // Random numbers are drawn anew after each rollback.
        rollback(&mut client, &session, None).expect("rolled back");
        let one = client.preview_of(&session, "Math.random()");
        rollback(&mut client, &session, None).expect("rolled back");
        assert_ne!(client.preview_of(&session, "Math.random()"), one);
        // The fork's limits are those of the session.
        let forked = client.fork(&session, 1).expect("forked").remove(0);
        assert_eq!(client.preview_of(&forked, "n"), "2");
        client.close(&session);
        daemon.stop();
    }

    pub(super) fn a_frozen_copy_is_stopped_and_ends_with_its_session(user: User) {
        let (daemon, mut client, session) = begun(user);
        let stopped = || stopped_processes(&daemon);
        assert_eq!(stopped().len(), 0);
        checkpoint(&mut client, &session, None).expect("made");
        checkpoint(&mut client, &session, None).expect("made");
        watch::wait_until(|| stopped().len() == 2, || format!("{} stopped processes", stopped().len()));
        rollback(&mut client, &session, Some("1")).expect("rolled back");
        watch::wait_until(|| stopped().len() == 2, || format!("{} stopped processes", stopped().len()));
        delete(&mut client, &session, "1").expect("deleted");
        watch::wait_until(|| stopped().len() == 1, || format!("{} stopped processes", stopped().len()));
        let refused = delete(&mut client, &session, "1").expect_err("it is gone");
        assert_eq!(refused.code, ErrorCode::NotFound, "{refused:?}");
        client.close(&session);
        watch::wait_until(|| stopped().is_empty(), || format!("{} stopped processes", stopped().len()));
        let refused = rollback(&mut client, &session, None).expect_err("it has ended");
        assert_eq!(refused.code, ErrorCode::SessionNotReady, "{refused:?}");
        daemon.stop();
    }

    pub(super) fn a_session_that_was_rolled_back_survives_its_supervisor_and_its_checkpoints_do_not(
        user: User,
    ) {
        let (daemon, mut client, session) = begun(user);
        checkpoint(&mut client, &session, None).expect("made");
        for _ in 0..20 {
            client.preview_of(&session, "n = 2");
        }
        rollback(&mut client, &session, None).expect("rolled back");
        assert_eq!(client.preview_of(&session, "n += 5"), "6");
        drop(client);
        let (place, _) = daemon.kill();
        let daemon = Daemon::start_with(place, &DaemonOptions::default());
        let mut client = daemon.client();
        assert_eq!(client.preview_of(&session, "n"), "6");
        let facts = serde_json::to_value(&client.session_record(&session).runtime_meta).expect("JSON");
        assert_eq!(facts["checkpoints_lost"]["count"].as_u64(), Some(1), "{facts}");
        assert!(checkpoints(&mut client, &session).is_empty());
        watch::wait_until(|| stopped_processes(&daemon).is_empty(), || "a frozen copy is left".to_owned());
        assert!(daemon.log().contains("the checkpoints of a session ended"), "{}", daemon.log());
        let made = checkpoint(&mut client, &session, None).expect("made");
        assert_eq!(made.number, 2, "numbers are not used again");
        client.preview_of(&session, "n = 0");
        rollback(&mut client, &session, None).expect("rolled back");
        assert_eq!(client.preview_of(&session, "n"), "6");
        drop(client);
        daemon.stop();
    }

    pub(super) fn a_checkpoint_whose_process_is_killed_is_not_listed_any_more(user: User) {
        let (daemon, mut client, session) = begun(user);
        checkpoint(&mut client, &session, None).expect("made");
        watch::wait_until(|| stopped_processes(&daemon).len() == 1, || "it is not stopped".to_owned());
        for copy in stopped_processes(&daemon) {
            copy.kill().expect("alive");
        }
        watch::wait_until(|| checkpoints(&mut client, &session).is_empty(), || "it is listed".to_owned());
        assert_eq!(client.preview_of(&session, "n"), "1");
        let refused = rollback(&mut client, &session, None).expect_err("there is none");
        assert_eq!(refused.code, ErrorCode::NotFound, "{refused:?}");
        daemon.stop();
    }
}

#[test]
fn checkpoints_are_bounded_per_session_and_count_among_all_sessions() {
    let place = TestDir::new(User::AsStarted);
    let options = DaemonOptions { config: "max_sessions = 14\n".to_owned(), ..DaemonOptions::default() };
    let daemon = Daemon::start_with(place, &options);
    let mut client = daemon.client();
    let first = session(&daemon, Settings::default());
    let second = session(&daemon, Settings::default());
    for _ in 0..CHECKPOINTS {
        checkpoint(&mut client, &first, None).expect("made");
    }
    let refused = checkpoint(&mut client, &first, None).expect_err("too many of one session");
    assert_eq!(refused.code, ErrorCode::CapacityExceeded, "{refused:?}");
    let mut made = 0;
    let refused = loop {
        match checkpoint(&mut client, &second, None) {
            Ok(_) => made += 1,
            Err(refused) => break refused,
        }
    };
    assert!(made <= 14 - 2 - CHECKPOINTS && made > 0, "{made}");
    assert_eq!(refused.code, ErrorCode::CapacityExceeded, "{refused:?}");
    // A share is returned with its checkpoint.
    delete(&mut client, &first, "3").expect("deleted");
    checkpoint(&mut client, &second, None).expect("there is one more");
    client.close(&first);
    for _ in 0..CHECKPOINTS - made - 1 {
        checkpoint(&mut client, &second, None).expect("the session's shares were returned");
    }
    daemon.stop();
}

#[test]
fn only_idle_sessions_have_checkpoints_made_and_are_rolled_back() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    let session = session(&daemon, Settings::default());
    checkpoint(&mut client, &session, Some("a")).expect("made");
    let running = client.start(&session, "for (;;) {}");
    assert_eq!(checkpoint(&mut client, &session, None).expect_err("busy").code, ErrorCode::SessionBusy);
    assert_eq!(rollback(&mut client, &session, None).expect_err("busy").code, ErrorCode::SessionBusy);
    client.op(ExecCancel { execution: running.id.to_string() }).expect("cancelled");
    client.until_final(&running);
    for name in ["", "7", "a/b", &"x".repeat(65)] {
        let refused = checkpoint(&mut client, &session, Some(name)).expect_err("no name");
        assert_eq!(refused.code, ErrorCode::ValidationError, "{name:?}");
    }
    assert_eq!(checkpoint(&mut client, &session, Some("a")).expect_err("taken").code, ErrorCode::Conflict);
    daemon.stop();
}

/// Processes of the daemon that are stopped.
fn stopped_processes(daemon: &Daemon) -> Vec<vm_system_sandbox::pidfd::PidFd> {
    let mut all = daemon.family();
    all.retain(|process| {
        let stat = process.pid().and_then(|pid| std::fs::read_to_string(format!("/proc/{pid}/stat")));
        stat.is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T')))
    });
    all
}

fn checkpoint(
    client: &mut Client,
    session: &Session,
    name: Option<&str>,
) -> Result<SessionCheckpoint, OpError> {
    let op = SessionAddCheckpoint { session: session.id.to_string(), name: name.map(str::to_owned) };
    client.op(op)
}

fn checkpoints(client: &mut Client, session: &Session) -> Vec<SessionCheckpoint> {
    client.op(SessionCheckpoints { session: session.id.to_string() }).expect("a list")
}

fn delete(client: &mut Client, session: &Session, checkpoint: &str) -> Result<(), OpError> {
    let (session, checkpoint) = (session.id.to_string(), checkpoint.to_owned());
    client.op(SessionDeleteCheckpoint { session, checkpoint })
}

fn rollback(client: &mut Client, session: &Session, to: Option<&str>) -> Result<Session, OpError> {
    let (session, checkpoint) = (session.id.to_string(), to.map(str::to_owned));
    client.op(SessionRollback { session, checkpoint })
}

fn rolling(mut settings: Settings) -> Settings {
    settings.runtime.on_crash = OnCrash::Rollback;
    settings
}

/// A daemon with a session in which `n` is 1.
fn begun(user: User) -> (Daemon, Client, Session) {
    let daemon = Daemon::start(user);
    let mut client = daemon.client();
    let session = session(&daemon, Settings::default());
    client.preview_of(&session, "var n = 1");
    (daemon, client, session)
}

fn session(daemon: &Daemon, settings: Settings) -> Session {
    let mut client = daemon.client();
    let template = client.template(settings, &[]);
    client.session(&template, &daemon.place.worktree()).expect("session")
}
