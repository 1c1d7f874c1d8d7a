//! A daemon that is killed while a session is being restarted or rolled back: the next one continues that.

use super::crashes::{ready_again, worker};
use super::restarts::{events_of, restarting, restarts_of, warning_of};
use super::{begun, checkpoint, checkpoints, rollback, rolling, session, stopped_processes};
use vm_system_protocol::control::{ExecList, SessionRollback};
use vm_system_protocol::model::{SessionEventType, SessionStatus, Settings};
use vm_system_sandbox::pidfd::PidFd;
use vm_system_tests::client::Client;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::place::User;
use vm_system_tests::{as_both, watch};

as_both!(
    a_restart_is_made_again_by_the_next_daemon,
    a_rollback_is_continued_by_the_next_daemon,
    a_guard_copy_outlives_its_daemon,
    a_guard_copy_is_used_in_each_outage,
    an_exit_without_a_daemon_counts_once,
);

mod cases {
    use super::*;

    /// Workers that are killed while no daemon is there: one is idle, one runs an execution, one has run none. The worker of a fourth is
    /// killed in an execution that the earlier daemon began.
    pub(super) fn a_guard_copy_outlives_its_daemon(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        let [idle, running, fresh, later] = [(); 4].map(|()| session(&daemon, rolling(Settings::default())));
        let mut workers = Vec::new();
        let mut executions = Vec::new();
        for session in [&idle, &running, &later] {
            client.preview_of(session, "var n = 1");
            assert_eq!(client.preview_of(session, "++n"), "2");
        }
        for session in [&idle, &running, &fresh, &later] {
            workers.push(worker(&mut client, session));
        }
        watch::wait_until(
            || stopped_processes(&daemon).len() == 4,
            || format!("{} guard copies", stopped_processes(&daemon).len()),
        );
        for session in [&running, &later] {
            executions.push(client.start(session, "n = 'lost'; for (;;) {}"));
        }
        drop(client);
        let (place, _) = daemon.kill();
        for worker in &workers[..3] {
            worker.kill().expect("alive");
        }
        let daemon = Daemon::start_with(place, &DaemonOptions::default());
        let mut client = daemon.client();
        workers[3].kill().expect("alive");
        for execution in &executions {
            let error = client.until_final(execution).error.expect("an error");
            assert_eq!(
                (error.code.as_str(), error.reason.as_deref()),
                ("WORKER_DIED", Some("signal(SIGKILL)"))
            );
        }
        for (session, n) in [(&idle, "2"), (&running, "2"), (&fresh, "undefined"), (&later, "2")] {
            let value = ready_again(&mut client, session, "globalThis.n").result.expect("a value");
            assert_eq!(value.preview, n);
            let record = serde_json::to_value(&client.session_record(session).runtime_meta).expect("JSON");
            assert_eq!(
                (&record["rollback"]["reason"], &record["generation"]),
                (&"signal(SIGKILL)".into(), &2.into())
            );
            client.close(session);
        }
        daemon.stop();
    }

    /// No execution ends between two outages in which the worker is killed.
    pub(super) fn a_guard_copy_is_used_in_each_outage(user: User) {
        let mut daemon = Daemon::start(user);
        let session = session(&daemon, rolling(Settings::default()));
        let mut client = daemon.client();
        assert_eq!(client.preview_of(&session, "var n = 7; n"), "7");
        watch::wait_until(|| stopped_processes(&daemon).len() == 1, || "there is no guard copy".to_owned());
        for generation in 2..5 {
            let killed = worker(&mut client, &session);
            drop(client);
            let (place, _) = daemon.kill();
            killed.kill().expect("alive");
            daemon = Daemon::start_with(place, &DaemonOptions::default());
            client = daemon.client();
            watch::wait_until(
                || {
                    let record = client.session_record(&session);
                    let facts = serde_json::to_value(&record.runtime_meta).unwrap_or_default();
                    record.status == SessionStatus::Ready && facts["generation"] == generation
                },
                || format!("it has no worker {generation}"),
            );
        }
        let value = ready_again(&mut client, &session, "n").result.expect("a value");
        assert_eq!(value.preview, "7");
        client.close(&session);
        daemon.stop();
    }

    /// The keepers of the workers that exited stay, because of another session in each.
    pub(super) fn an_exit_without_a_daemon_counts_once(user: User) {
        let mut daemon = Daemon::start(user);
        let restarted = restarting(&daemon, "globalThis.n = 0");
        for _ in 0..3 {
            session(&daemon, Settings::default());
            let mut client = daemon.client();
            let worker = worker(&mut client, &restarted);
            drop(client);
            let (place, _) = daemon.kill();
            worker.kill().expect("alive");
            daemon = Daemon::start_with(place, &DaemonOptions::default());
            ready_again(&mut daemon.client(), &restarted, "n");
        }
        for n in ["'first'", "'second'"] {
            let mut client = daemon.client();
            client.preview_of(&restarted, &format!("n = {n}"));
            drop(client);
            let (place, _) = daemon.kill();
            daemon = Daemon::start_with(place, &DaemonOptions::default());
            let mut client = daemon.client();
            let value = ready_again(&mut client, &restarted, "n").result.expect("a value");
            assert_eq!(value.preview, n);
            assert_eq!(restarts_of(&mut client, &restarted).len(), 3);
        }
        daemon.stop();
    }

    pub(super) fn a_restart_is_made_again_by_the_next_daemon(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        let session = restarting(&daemon, "globalThis.begun = 'yes'");
        client.preview_of(&session, "globalThis.n = 1");
        // The startup file of the next worker waits for another file.
        let waits = "while (!require('fs').existsSync('go')); globalThis.begun = 'yes'";
        std::fs::write(daemon.place.worktree().join("begin.js"), waits).expect("worktree");
        worker(&mut client, &session).kill().expect("alive");
        let is_starting_up = |client: &mut Client| {
            let events = events_of(client, &session);
            let restart = events.iter().position(|event| event.kind == SessionEventType::Restarted);
            restart.is_some_and(|at| {
                events[at..].iter().any(|event| event.kind == SessionEventType::ExecutionStarted)
            })
        };
        watch::wait_until(|| is_starting_up(&mut client), || "it is not restarted".to_owned());
        drop(client);
        let (place, _) = daemon.kill();
        place.write("go", "");
        let daemon = Daemon::start_with(place, &DaemonOptions::default());
        let mut client = daemon.client();
        client.wait_for(&session, SessionStatus::Ready);
        assert_eq!(restarts_of(&mut client, &session), ["signal(SIGKILL)", "signal(SIGKILL)"]);
        let next = client.eval(&session, "`${begun} ${typeof n}`").expect("ready");
        assert_eq!(next.result.as_ref().expect("a value").preview, "'yes undefined'");
        let warning = warning_of(&mut client, &next).expect("it says so");
        assert!(warning.contains("restarted, because its worker ended (signal(SIGKILL))"), "{warning}");
        // The startup file that was running has ended.
        let page = vm_system_protocol::control::ListPage::first(50);
        let list = ExecList::all(session.id.to_string(), page);
        let Ok(executions) = client.op(list) else { panic!("no list") };
        assert!(executions.iter().all(|execution| execution.status.is_final()), "{executions:#?}");
        drop(client);
        daemon.stop();
    }

    pub(super) fn a_rollback_is_continued_by_the_next_daemon(user: User) {
        let (daemon, mut client, session) = begun(user);
        checkpoint(&mut client, &session, None).expect("made");
        client.preview_of(&session, "n = 2");
        checkpoint(&mut client, &session, None).expect("made");
        client.preview_of(&session, "n = 3");
        // Without its keeper, the copy cannot fork.
        let keeper = PidFd::open(daemon.info().keeper_pid.expect("a jail")).expect("alive");
        keeper.signal(nix::libc::SIGSTOP).expect("alive");
        let mut other = daemon.client();
        other.send(SessionRollback { session: session.id.to_string(), checkpoint: Some("1".to_owned()) });
        let is_stored = |client: &mut Client| {
            events_of(client, &session).iter().any(|event| event.kind == SessionEventType::RolledBack)
        };
        watch::wait_until(|| is_stored(&mut client), || "it is not rolled back".to_owned());
        assert_eq!(client.session_record(&session).status, SessionStatus::Starting);
        drop((client, other));
        let (place, _) = daemon.kill();
        keeper.signal(nix::libc::SIGCONT).expect("alive");
        let daemon = Daemon::start_with(place, &DaemonOptions::default());
        let mut client = daemon.client();
        client.wait_for(&session, SessionStatus::Ready);
        assert_eq!(client.preview_of(&session, "n"), "1");
        let events = events_of(&mut client, &session);
        let details: Vec<_> = events
            .iter()
            .filter(|event| event.kind == SessionEventType::RolledBack)
            .filter_map(|event| event.detail.as_deref())
            .collect();
        assert_eq!(details, ["checkpoint 1", "checkpoint 1"]);
        // The checkpoint from which it was continued is there; the other one ended with the earlier daemon.
        let left: Vec<u64> = checkpoints(&mut client, &session).iter().map(|made| made.number).collect();
        assert_eq!(left, [1]);
        client.preview_of(&session, "n = 4");
        rollback(&mut client, &session, None).expect("rolled back");
        assert_eq!(client.preview_of(&session, "n"), "1");
        client.close(&session);
        daemon.stop();
    }
}
