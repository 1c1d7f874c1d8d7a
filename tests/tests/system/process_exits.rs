//! Processes that are killed or stopped during an execution: the error of the caller, the record, and what continues.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use vm_system_protocol::control::{ErrorCode, HealthGet, ServerFrame, SessionInspect};
use vm_system_protocol::model::{ExecutionStatus, Session, SessionStatus, Settings};
use vm_system_sandbox::pidfd::PidFd;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::place::{TestDir, User};
use vm_system_tests::scene::{Scene, small};
use vm_system_tests::watch::Watch;
use vm_system_tests::{as_both, observe};

as_both!(
    a_killed_worker_ends_only_its_session,
    a_stopped_worker_is_killed_at_the_wall_limit,
    a_limit_holds_while_clients_send_requests_without_a_pause,
    killed_zygote_harms_no_session_and_the_next_starts_in_the_same_jail,
    stopped_zygote_is_killed_and_the_reserve_takes_over,
    without_any_zygote_that_answers_health_reports_it_until_there_is_another_jail,
    beside_stopped_zygotes_a_session_is_created_at_the_first_attempt,
    without_any_zygote_the_next_session_starts_in_another_jail,
    beside_a_stopped_keeper_another_jail_is_built_and_sessions_continue,
    a_worker_that_is_killed_beside_a_stopped_keeper_has_not_violated_the_protocol,
    a_killed_keeper_ends_its_sessions_and_a_new_one_takes_over,
    nothing_is_left_when_the_supervisor_is_killed_and_not_restarted,
    next_supervisor_records_the_end_of_the_sessions,
    an_operators_kill_is_a_crash_with_that_reason,
);

mod cases {
    use super::*;
    use nix::libc::{SIGABRT, SIGCONT, SIGKILL, SIGSEGV, SIGSTOP};

    fn signal(pid: u32, signal: i32) {
        PidFd::open(pid).expect("alive").signal(signal).expect("signal");
    }

    pub(super) fn a_killed_worker_ends_only_its_session(user: User) {
        let mut scene = Scene::with_settings(user, Settings::default());
        for (number, name) in
            [(SIGKILL, "signal(SIGKILL)"), (SIGSEGV, "signal(SIGSEGV)"), (SIGABRT, "signal(SIGABRT)")]
        {
            let session = scene.session();
            let pid = scene.client.inspect(&session).expect("live").pid;
            let execution = scene.client.start(&session, "console.log('begun'); for (;;) {}");
            signal(pid, number);
            scene.crashed(&session, name);
            let ended = scene.client.until_final(&execution);
            let error = ended.error.expect("error");
            assert_eq!((ended.status, error.code.as_str()), (ExecutionStatus::Error, "WORKER_DIED"));
            assert_eq!(error.reason.as_deref(), Some(name));
            scene.sibling_is_unharmed();
        }
        scene.end(&[]);
    }

    pub(super) fn a_stopped_worker_is_killed_at_the_wall_limit(user: User) {
        let mut scene = Scene::with_settings(user, small());
        let session = scene.session();
        let pid = scene.client.inspect(&session).expect("live").pid;
        let execution = scene.client.start(&session, "for (;;) {}");
        signal(pid, nix::libc::SIGSTOP);
        let ended = scene.client.until_final(&execution);
        assert_eq!(ended.status, ExecutionStatus::Timeout, "{ended:?}");
        scene.crashed(&session, "limit(wall)");
        let why = scene.client.session_record(&session).last_error.expect("a sentence");
        assert!(why.contains("was stopped from outside"), "{why}");
        assert!(!observe::is_alive(pid));
        scene.end(&[]);
    }

    /// A deadline is enforced by the clock, also when the relaying thread always has work: one client thread keeps requests
    /// in flight. One daemon at a time: two processes that keep each other busy on one processor can keep the kernel from
    /// running any other for a minute, among them a killed worker and the disk's journal (seen on Linux 6.18
    /// with autogroup on; a loop that yields the processor does the same).
    pub(super) fn a_limit_holds_while_clients_send_requests_without_a_pause(user: User) {
        static ALONE: Mutex<()> = Mutex::new(());
        const IN_FLIGHT: usize = 8;
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut settings = small();
        settings.limits.wall_ms = 500;
        let mut scene = Scene::with_settings(user, settings);
        let session = scene.session();
        let pid = scene.client.inspect(&session).expect("live").pid;
        let execution = scene.client.start(&session, "for (;;) {}");
        signal(pid, nix::libc::SIGSTOP);
        // Handled by the session's owner task.
        let request = || SessionInspect { session: session.id.to_string() };
        let mut client = scene.daemon.client();
        for _ in 0..IN_FLIGHT {
            client.send(request());
        }
        let (begin, mut in_flight) = (Instant::now(), IN_FLIGHT);
        while in_flight > 0 {
            match client.frame() {
                ServerFrame::Reply { result: Ok(_), .. } => {
                    assert!(begin.elapsed() < vm_system_tests::PATIENCE, "the limit does not hold");
                    client.send(request());
                }
                _ => in_flight -= 1,
            }
        }
        assert_eq!(scene.client.until_final(&execution).status, ExecutionStatus::Timeout);
        scene.crashed(&session, "limit(wall)");
        scene.end(&[]);
    }

    /// The zygote and its reserve, which is started after the daemon is ready.
    fn zygotes(scene: &Scene) -> Vec<u32> {
        let mut watch = Watch::begin();
        loop {
            let zygotes: Vec<u32> = scene.daemon.info().zygotes.iter().map(|zygote| zygote.pid).collect();
            if zygotes.len() == 2 {
                return zygotes;
            }
            watch.pause(|| format!("zygotes: {zygotes:?}"));
        }
    }

    /// A session, as soon as one can be created.
    fn next_session(scene: &mut Scene) -> Session {
        let (template, worktree) = (scene.template.clone(), scene.daemon.place.worktree());
        let mut watch = Watch::begin();
        loop {
            match scene.client.session(&template, &worktree) {
                Ok(session) => return session,
                Err(error) => watch.pause(|| format!("{error:?}")),
            }
        }
    }

    pub(super) fn killed_zygote_harms_no_session_and_the_next_starts_in_the_same_jail(user: User) {
        let mut scene = Scene::new(user);
        let session = scene.session();
        let keeper = scene.daemon.info().keeper_pid;
        // Several times: each reserve that takes over starts the next one.
        for _ in 0..3 {
            signal(zygotes(&scene)[0], SIGKILL);
            scene.assert_usable(&session);
            // The first attempt must succeed.
            let next = scene.session();
            scene.assert_usable(&next);
            scene.client.close(&next);
        }
        assert_eq!(scene.daemon.info().keeper_pid, keeper, "the same jail");
        scene.end(&[&session]);
    }

    /// Takes the prestarted worker, so that the next session needs a fork.
    fn stop_zygotes(scene: &mut Scene, count: usize) -> Vec<PidFd> {
        let stopped: Vec<PidFd> =
            zygotes(scene)[..count].iter().map(|pid| PidFd::open(*pid).expect("alive")).collect();
        for zygote in &stopped {
            zygote.signal(SIGSTOP).expect("SIGSTOP");
        }
        stopped
    }

    pub(super) fn stopped_zygote_is_killed_and_the_reserve_takes_over(user: User) {
        let mut scene = Scene::new(user);
        let session = scene.session();
        let keeper = scene.daemon.info().keeper_pid;
        for _ in 0..2 {
            let stopped = stop_zygotes(&mut scene, 1);
            // One may be the prestarted worker; each must succeed at the first attempt.
            for _ in 0..3 {
                let next = scene.session();
                scene.assert_usable(&next);
                scene.client.close(&next);
            }
            observe::all_end(&stopped);
            scene.assert_usable(&session);
        }
        assert_eq!(scene.daemon.info().keeper_pid, keeper, "the same jail");
        scene.end(&[&session]);
    }

    pub(super) fn without_any_zygote_that_answers_health_reports_it_until_there_is_another_jail(user: User) {
        let mut scene = Scene::new(user);
        let session = scene.session();
        let stopped = stop_zygotes(&mut scene, 2);
        // In turns with others, each by a client of its own, so that forks are due while health is read.
        let (template, worktree) = (scene.template.clone(), scene.daemon.place.worktree());
        let mut creator = scene.daemon.client();
        let creating = std::thread::spawn(move || {
            let mut watch = Watch::begin();
            for _ in 0..2 {
                while let Err(error) = creator.session(&template, &worktree) {
                    watch.pause(|| format!("{error:?}"));
                }
            }
        });
        let mut watch = Watch::begin();
        let problem = loop {
            match scene.client.op(HealthGet) {
                Err(problem) => break problem,
                Ok(_) => watch.pause(|| "health is ok".to_owned()),
            }
        };
        assert_eq!(problem.code, ErrorCode::SandboxUnavailable, "{problem:?}");
        assert!(problem.message.contains("zygote"), "{problem:?}");
        creating.join().expect("two sessions");
        observe::all_end(&stopped);
        let mut watch = Watch::begin();
        while let Err(problem) = scene.client.op(HealthGet) {
            watch.pause(|| format!("{problem:?}"));
        }
        scene.assert_usable(&session);
        scene.daemon.stop();
    }

    pub(super) fn beside_stopped_zygotes_a_session_is_created_at_the_first_attempt(user: User) {
        let mut scene = Scene::new(user);
        let session = scene.session();
        let keeper = scene.daemon.info().keeper_pid;
        let stopped = stop_zygotes(&mut scene, 2);
        let (template, worktree) = (scene.template.clone(), scene.daemon.place.worktree());
        // One may be the prestarted worker.
        let creators: Vec<_> = (0..3)
            .map(|_| {
                let mut creator = scene.daemon.client();
                let (template, worktree) = (template.clone(), worktree.clone());
                std::thread::spawn(move || creator.session(&template, &worktree))
            })
            .collect();
        for creator in creators {
            creator.join().expect("a reply").expect("the first attempt");
        }
        observe::all_end(&stopped);
        assert_ne!(scene.daemon.info().keeper_pid, keeper, "another jail");
        scene.assert_usable(&session);
        scene.daemon.stop();
    }

    pub(super) fn a_worker_that_is_killed_beside_a_stopped_keeper_has_not_violated_the_protocol(user: User) {
        let mut scene = Scene::new(user);
        let (idle, busy) = (scene.session(), scene.session());
        scene.client.start(&busy, "console.log('begun'); for (;;) {}");
        let keeper = PidFd::open(scene.daemon.info().keeper_pid.expect("a jail")).expect("alive");
        let pids = [&idle, &busy].map(|session| scene.client.inspect(session).expect("live").pid);
        keeper.signal(SIGSTOP).expect("SIGSTOP");
        for (session, pid) in [&idle, &busy].into_iter().zip(pids) {
            signal(pid, SIGKILL);
            let ended = scene.client.wait_for(session, SessionStatus::Crashed);
            let reason = ended.close_reason.expect("a reason");
            // A kernel from 6.15 reports it without the keeper, once the process is reaped.
            assert!(matches!(&*reason, "unknown" | "signal(SIGKILL)"), "{reason}");
            let why = ended.last_error.expect("a sentence");
            assert!(!why.contains("violation"), "{why}");
        }
        keeper.signal(SIGCONT).expect("SIGCONT");
        scene.sibling_is_unharmed();
        scene.end(&[]);
    }

    pub(super) fn beside_a_stopped_keeper_another_jail_is_built_and_sessions_continue(user: User) {
        let mut scene = Scene::new(user);
        let session = scene.session();
        let pid = scene.daemon.info().keeper_pid.expect("a jail");
        let keeper = PidFd::open(pid).expect("alive");
        keeper.signal(SIGSTOP).expect("SIGSTOP");
        // The first attempt waits for the next jail.
        let next = scene.session();
        assert_ne!(scene.daemon.info().keeper_pid, Some(pid), "another jail");
        scene.assert_usable(&session);
        scene.assert_usable(&next);
        // The old jail ends with its last worker.
        for old in [session, next] {
            scene.client.close(&old);
        }
        scene.sibling_is_unharmed();
        scene.daemon.stop();
        observe::all_end(&[keeper]);
    }

    pub(super) fn without_any_zygote_the_next_session_starts_in_another_jail(user: User) {
        let mut scene = Scene::new(user);
        let session = scene.session();
        for zygote in zygotes(&scene) {
            signal(zygote, SIGKILL);
        }
        scene.assert_usable(&session);
        scene.sibling_is_unharmed();
        let next = scene.session();
        scene.assert_usable(&next);
        scene.assert_usable(&session);
        scene.sibling_is_unharmed();
        scene.daemon.stop();
    }

    pub(super) fn a_killed_keeper_ends_its_sessions_and_a_new_one_takes_over(user: User) {
        let mut scene = Scene::new(user);
        let (idle, busy) = (scene.session(), scene.session());
        let execution = scene.client.start(&busy, "for (;;) {}");
        let keeper = scene.daemon.info().keeper_pid.expect("a keeper");
        let jail = observe::descendants(keeper);
        signal(keeper, SIGKILL);
        scene.crashed(&idle, "keeper_lost");
        scene.crashed(&busy, "keeper_lost");
        let ended = scene.client.until_final(&execution);
        assert_eq!(ended.error.expect("error").reason.as_deref(), Some("keeper_lost"));
        observe::all_end(&jail);
        let next = next_session(&mut scene);
        scene.assert_usable(&next);
        assert_ne!(scene.daemon.info().keeper_pid, Some(keeper));
        scene.daemon.stop();
    }

    pub(super) fn nothing_is_left_when_the_supervisor_is_killed_and_not_restarted(user: User) {
        let options = DaemonOptions { config: "keeper_grace_s = 1".to_owned(), ..DaemonOptions::default() };
        let mut scene = Scene::on_daemon(Daemon::start_with(TestDir::new(user), &options), small());
        let session = scene.session();
        scene.client.start(&session, "for (;;) {}");
        scene.daemon.place.write("file", "x");
        let reader = scene.session();
        let read = scene.run(&reader, "require('fs').readFileSync('file', 'utf8')");
        assert_eq!(read.status, ExecutionStatus::Ok, "a broker runs: {:?}", read.error);
        let (_place, family) = scene.daemon.kill();
        assert!(family.len() >= 3, "keeper, zygote, workers, broker");
        observe::all_end(&family);
    }

    pub(super) fn next_supervisor_records_the_end_of_the_sessions(user: User) {
        let mut scene = Scene::new(user);
        let session = scene.session();
        let closed = scene.session();
        scene.client.close(&closed);
        let finished = scene.run(&session, "1");
        let running = scene.client.start(&session, "for (;;) {}");
        let place = scene.daemon.kill_everything();
        let daemon = Daemon::start_with(place, &DaemonOptions::default());
        let mut client = daemon.client();
        let record = client.session_record(&session);
        assert_eq!(
            (record.status, record.close_reason.as_deref()),
            (SessionStatus::Crashed, Some("host_restart"))
        );
        let sentence = record.last_error.as_deref();
        assert_eq!(sentence, Some("the worker was gone when the supervisor started"));
        let record = client.session_record(&closed);
        assert_eq!((record.status, record.close_reason.as_deref()), (SessionStatus::Closed, Some("exited")));
        assert_eq!(client.execution_record(&finished.id.to_string()).status, ExecutionStatus::Ok);
        let ended = client.execution_record(&running.id.to_string());
        assert_eq!(ended.status, ExecutionStatus::Error);
        assert_eq!(ended.error.expect("error").reason.as_deref(), Some("host_restart"));
        drop(client);
        daemon.stop();
    }

    pub(super) fn an_operators_kill_is_a_crash_with_that_reason(user: User) {
        let mut scene = Scene::new(user);
        let session = scene.session();
        let execution = scene.client.start(&session, "for (;;) {}");
        scene.daemon.cli(&["session", "kill", &session.id.to_string()]).ok();
        scene.crashed(&session, "killed(operator)");
        let ended = scene.client.until_final(&execution);
        assert_eq!(ended.error.expect("error").reason.as_deref(), Some("killed(operator)"));
        scene.end(&[]);
    }
}
