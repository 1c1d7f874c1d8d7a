//! `on_crash: rollback`: the end of a worker costs the execution, and not the session's state.

use super::{checkpoint, rollback, rolling, session, stopped_processes};
use vm_system_protocol::control::SessionEvents;
use vm_system_protocol::limits::RECOVERIES;
use vm_system_protocol::model::{
    Execution, ExecutionStatus, Session, SessionEventType, SessionStatus, Settings,
};
use vm_system_sandbox::pidfd::PidFd;
use vm_system_tests::client::Client;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::place::User;
use vm_system_tests::{as_both, watch};

as_both!(
    signals_cost_the_execution_and_not_the_state,
    a_worker_that_is_killed_while_it_is_idle_costs_nothing,
    too_many_crashes_end_the_session_and_its_error_says_so,
    a_session_whose_guard_copy_was_killed_ends_by_the_reason_of_its_worker,
    a_worker_that_is_killed_right_after_an_execution_costs_no_session,
    a_session_closes_whatever_its_worker_does,
    the_next_supervisor_makes_a_guard_copy_again,
);

mod cases {
    use super::*;

    pub(super) fn a_worker_that_is_killed_right_after_an_execution_costs_no_session(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        for _ in 0..20 {
            let session = session(&daemon, rolling(Settings::default()));
            client.preview_of(&session, "var n = 41");
            let worker = worker(&mut client, &session);
            let ended = client.eval(&session, "n += 1").expect("acknowledged");
            worker.signal(9).expect("alive");
            watch::wait_until(
                || {
                    serde_json::to_value(&client.session_record(&session).runtime_meta).expect("JSON")["rollback"]
                        .is_object()
                },
                || "it is not rolled back".to_owned(),
            );
            let n = ready_again(&mut client, &session, "n").result.expect("a value").preview;
            let record = client.session_record(&session);
            let facts = serde_json::to_value(&record.runtime_meta).expect("JSON");
            let lacks = facts["rollback"]["lacks"].as_str().unwrap_or_default();
            let expected = if lacks.contains(&ended.id.to_string()) { "41" } else { "42" };
            assert_eq!((record.status, n.as_str()), (SessionStatus::Ready, expected), "{facts}");
            client.close(&session);
        }
        daemon.stop();
    }

    pub(super) fn signals_cost_the_execution_and_not_the_state(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        let session = session(&daemon, rolling(Settings::default()));
        let signals = [("SIGSEGV", 11), ("SIGKILL", 9), ("SIGSYS", 31), ("SIGABRT", 6)];
        for (count, (name, signal)) in signals.into_iter().enumerate() {
            assert_eq!(
                client.preview_of(&session, "globalThis.n = (globalThis.n ?? 0) + 1"),
                (count + 1).to_string()
            );
            let execution = client.start(&session, "n = 'lost'; for (;;) {}");
            worker(&mut client, &session).signal(signal).expect("alive");
            let ended = client.until_final(&execution);
            let error = ended.error.clone().expect("an error");
            let reason = error.reason.as_deref().unwrap_or_default();
            assert!(
                error.code == "WORKER_DIED" && (reason.contains(name) || reason.starts_with("seccomp")),
                "{name}: {ended:?}"
            );
            assert_eq!(
                ready_again(&mut client, &session, "n").result.expect("a value").preview,
                (count + 1).to_string()
            );
        }
        let record = client.session_record(&session);
        let facts = serde_json::to_value(&record.runtime_meta).expect("JSON");
        assert_eq!((record.status, facts["generation"].as_u64()), (SessionStatus::Ready, Some(5)), "{facts}");
        assert!(facts["crash"]["reason"].is_string() && facts["rollback"]["checkpoint"].is_null(), "{facts}");
        let op = SessionEvents { session: session.id.to_string(), after_seq: 0, limit: 100, wait: false };
        let Ok(page) = client.op(op) else { panic!("no events") };
        let rollback = page.events.iter().position(|event| event.kind == SessionEventType::RolledBack);
        let around = &page.events[rollback.expect("4 rollbacks") - 1..][..3];
        assert_eq!(around[0].kind, SessionEventType::ExecutionEnded, "{page:?}");
        assert_eq!(around[1].detail.as_deref(), Some("signal(SIGSEGV)"), "{page:?}");
        assert_eq!(around[2].kind, SessionEventType::Ready, "{page:?}");
        client.close(&session);
        daemon.stop();
    }

    pub(super) fn a_worker_that_is_killed_while_it_is_idle_costs_nothing(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        let session = session(&daemon, rolling(Settings::default()));
        client.preview_of(&session, "var n = 41");
        guarded(&daemon, 1);
        worker(&mut client, &session).kill().expect("alive");
        assert_eq!(ready_again(&mut client, &session, "n + 1").result.expect("a value").preview, "42");
        // The session's checkpoints stay, too.
        checkpoint(&mut client, &session, None).expect("made");
        client.preview_of(&session, "n = 0");
        guarded(&daemon, 2);
        worker(&mut client, &session).kill().expect("alive");
        assert_eq!(ready_again(&mut client, &session, "n").result.expect("a value").preview, "0");
        rollback(&mut client, &session, None).expect("rolled back");
        assert_eq!(client.preview_of(&session, "n"), "41");
        client.close(&session);
        watch::wait_until(|| stopped_processes(&daemon).is_empty(), || "a copy is left".to_owned());
        daemon.stop();
    }

    pub(super) fn too_many_crashes_end_the_session_and_its_error_says_so(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        let session = session(&daemon, rolling(Settings::default()));
        for _ in 0..RECOVERIES {
            ready_again(&mut client, &session, "1");
            guarded(&daemon, 1);
            worker(&mut client, &session).kill().expect("alive");
        }
        ready_again(&mut client, &session, "1");
        guarded(&daemon, 1);
        worker(&mut client, &session).kill().expect("alive");
        let record = client.wait_for(&session, SessionStatus::Crashed);
        assert_eq!(record.close_reason.as_deref(), Some("signal(SIGKILL)"));
        let error = record.last_error.expect("an error");
        assert!(error.contains(&format!("rolled back {RECOVERIES} times within 60 s")), "{error}");
        watch::wait_until(|| stopped_processes(&daemon).is_empty(), || "a copy is left".to_owned());
        daemon.stop();
    }

    pub(super) fn a_session_whose_guard_copy_was_killed_ends_by_the_reason_of_its_worker(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        let session = session(&daemon, rolling(Settings::default()));
        guarded(&daemon, 1);
        for copy in stopped_processes(&daemon) {
            copy.kill().expect("alive");
        }
        guarded(&daemon, 0);
        worker(&mut client, &session).signal(11).expect("alive");
        let record = client.wait_for(&session, SessionStatus::Crashed);
        assert_eq!(record.close_reason.as_deref(), Some("signal(SIGSEGV)"), "{record:?}");
        daemon.stop();
    }

    pub(super) fn a_session_closes_whatever_its_worker_does(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        for operator in [true, false] {
            let session = session(&daemon, rolling(Settings::default()));
            client.preview_of(&session, "1");
            if operator {
                let op =
                    vm_system_protocol::control::SessionKill { session: session.id.to_string(), signal: 9 };
                client.op(op).expect("killed");
                let record = client.wait_for(&session, SessionStatus::Crashed);
                assert_eq!(record.close_reason.as_deref(), Some("killed(operator)"));
            } else {
                client.close(&session);
                assert_eq!(client.session_record(&session).status, SessionStatus::Closed);
            }
        }
        watch::wait_until(|| stopped_processes(&daemon).is_empty(), || "a copy is left".to_owned());
        daemon.stop();
    }

    pub(super) fn the_next_supervisor_makes_a_guard_copy_again(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        let session = session(&daemon, rolling(Settings::default()));
        client.preview_of(&session, "var n = 1");
        drop(client);
        let (place, _) = daemon.kill();
        let daemon = Daemon::start_with(place, &DaemonOptions::default());
        let mut client = daemon.client();
        assert_eq!(client.preview_of(&session, "n += 1"), "2");
        let execution = client.start(&session, "n = 0; for (;;) {}");
        worker(&mut client, &session).kill().expect("alive");
        client.until_final(&execution);
        assert_eq!(ready_again(&mut client, &session, "n").result.expect("a value").preview, "2");
        drop(client);
        daemon.stop();
    }
}

/// The session's worker.
pub(super) fn worker(client: &mut Client, session: &Session) -> PidFd {
    PidFd::open(client.inspect(session).expect("live").pid).expect("alive")
}

/// Waits for the guard copy of a session that has been idle.
fn guarded(daemon: &Daemon, copies: usize) {
    watch::wait_until(
        || stopped_processes(daemon).len() == copies,
        || format!("{} stopped processes of {copies}", stopped_processes(daemon).len()),
    );
}

/// Runs code as soon as the session's rollback is over.
#[track_caller]
pub(super) fn ready_again(client: &mut Client, session: &Session, code: &str) -> Execution {
    let mut ran = None;
    watch::wait_until(
        || match client.eval(session, code) {
            Ok(execution) => ran.insert(execution).status == ExecutionStatus::Ok,
            Err(_) => false,
        },
        || "it is not ready again".to_owned(),
    );
    ran.expect("an execution")
}
