//! Live sessions outlive their supervisor: the next one adopts their jail.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use vm_system_protocol::control::{ErrorCode, ExecList, ListPage, SessionGet, SessionList, SessionRename};
use vm_system_protocol::model::{
    CapabilityKind, ExecutionStatus, Limits, Metrics, Session, SessionStatus, Settings,
};
use vm_system_sandbox::pidfd::PidFd;
use vm_system_tests::client::{Client, repl, value};
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::place::{TestDir, User};
use vm_system_tests::rights::Bench;
use vm_system_tests::scene::Scene;
use vm_system_tests::{as_both, observe, watch};

as_both!(
    a_session_and_its_state_survive_their_supervisor,
    a_renamed_session_keeps_its_name_which_no_other_gets,
    a_running_execution_goes_on_and_no_event_is_lost_or_stored_twice,
    limits_of_a_running_execution_go_on_where_they_were,
    a_question_is_answered_under_the_next_supervisor,
    a_worker_that_exited_meanwhile_has_the_reason_of_its_exit,
    an_effect_whose_reply_was_lost_is_an_error_and_is_not_repeated,
    reads_of_a_busy_script_do_not_fail_although_supervisors_exit,
    sessions_survive_a_series_of_supervisors,
    busy_sessions_survive_and_keep_what_was_acknowledged,
    a_stopped_daemon_ends_what_it_adopted,
    a_daemon_that_is_refused_harms_no_session,
    a_daemon_with_too_few_descriptors_harms_no_session,
    a_keeper_without_a_session_ends_with_its_supervisor,
    a_stopped_keeper_does_not_outlive_a_final_stop,
    a_stopped_keeper_is_killed_by_the_next_start,
);

mod cases {
    use super::*;

    fn restart(daemon: Daemon) -> Daemon {
        let (place, _) = daemon.kill();
        Daemon::start_with(place, &DaemonOptions::default())
    }

    pub(super) fn a_session_and_its_state_survive_their_supervisor(user: User) {
        let mut scene = Scene::with_settings(user, Settings::default());
        let session = scene.session();
        scene.client.eval(&session, "globalThis.kept = 41; const fn = () => kept + 1;").expect("runs");
        let before = scene.client.inspect(&session).expect("live");
        let daemon = restart(scene.daemon);
        let mut client = daemon.client();
        assert_eq!(client.session_record(&session).status, SessionStatus::Ready);
        assert_eq!(client.preview_of(&session, "fn()"), "42");
        let after = client.inspect(&session).expect("live");
        assert_eq!((after.pid, after.adopted, before.adopted), (before.pid, true, false));
        // The files of its worktree are there, too, and a fork has its state.
        std::fs::write(daemon.place.worktree().join("file"), "text").expect("ours");
        assert_eq!(client.preview_of(&session, "require('fs').readFileSync('file', 'utf8')"), "'text'");
        let forked = client.fork(&session, 1).expect("forks").remove(0);
        assert_eq!(client.preview_of(&forked, "fn()"), "42");
        client.close(&session);
        drop(client);
        daemon.stop();
    }

    pub(super) fn a_renamed_session_keeps_its_name_which_no_other_gets(user: User) {
        let mut scene = Scene::with_settings(user, Settings::default());
        let (session, other) = (scene.session(), scene.session());
        let rename = |session: &Session, name: &str| SessionRename {
            session: session.id.to_string(),
            name: name.into(),
        };
        scene.client.op(rename(&session, "draft")).expect("free");
        let renamed = scene.client.op(rename(&session, "nightly")).expect("free");
        assert_eq!((renamed.id, renamed.name.as_deref()), (session.id, Some("nightly")));
        let daemon = restart(scene.daemon);
        let mut client = daemon.client();
        let found = |client: &mut Client, name: &str| {
            let found = client.op(SessionGet { session: name.to_owned() });
            found.map(|session| session.id).map_err(|error| error.code)
        };
        assert_eq!(found(&mut client, "nightly"), Ok(session.id));
        assert_eq!(found(&mut client, "draft"), Err(ErrorCode::SessionNotFound));
        let listed = client.op(SessionList::default()).expect("a list");
        let names: Vec<&str> = listed.iter().filter_map(|session| session.name.as_deref()).collect();
        assert_eq!(names, ["nightly"]);
        let taken = client.op(rename(&other, "nightly")).expect_err("another session has it");
        assert_eq!(taken.code, ErrorCode::Conflict);
        let details = taken.details.and_then(|details| details.to_value()).expect("an object");
        assert_eq!(details["session_id"], session.id.to_string());
        client.op(rename(&other, "draft")).expect("no session has it any more");
        // The next supervisor renames what it has adopted, and the worker is still there.
        client.op(rename(&session, "weekly")).expect("free");
        assert_eq!(found(&mut client, "weekly"), Ok(session.id));
        assert_eq!(client.preview_of(&session, "6 * 7"), "42");
        client.close(&session);
        client.close(&other);
        drop(client);
        daemon.stop();
    }

    /// It has other walls, so that it would end the keeper if that were its to adopt. A root of a container may lack what a jail
    /// without user namespaces needs.
    pub(super) fn a_daemon_that_is_refused_harms_no_session(user: User) {
        let walls = if user == User::AsStarted && User::can_be_switched() { "full" } else { "no-userns" };
        let arguments = vec!["--sandbox".to_owned(), walls.to_owned()];
        let options = DaemonOptions { arguments, ..DaemonOptions::default() };
        let mut scene =
            Scene::on_daemon(Daemon::start_with(TestDir::new(user), &options), Settings::default());
        let session = scene.session();
        scene.client.eval(&session, "globalThis.kept = 41").expect("runs");
        let refused =
            scene.daemon.cli(&["serve", "--state-dir", &scene.daemon.place.path("state").to_string_lossy()]);
        assert!(refused.code == Some(75) && refused.stderr.contains("in use"), "{}", refused.stderr);
        assert_eq!(scene.client.preview_of(&session, "kept + 1"), "42");
        scene.end(&[&session]);
    }

    pub(super) fn a_keeper_without_a_session_ends_with_its_supervisor(user: User) {
        // Longer than the test waits.
        let config = "keeper_grace_s = 3000\n".to_owned();
        let options = DaemonOptions { config, ..DaemonOptions::default() };
        let daemon = Daemon::start_with(TestDir::new(user), &options);
        let mut client = daemon.client();
        let template = client.template(Settings::default(), &[]);
        let session = client.session(&template, &daemon.place.worktree()).expect("session");
        client.eval(&session, "1 + 1").expect("runs");
        client.close(&session);
        drop(client);
        let (_place, family) = daemon.kill();
        observe::all_end(&family);
    }

    /// The keeper of the present supervisor.
    fn keeper(daemon: &Daemon) -> PidFd {
        PidFd::open(daemon.info().keeper_pid.expect("a jail")).expect("it runs")
    }

    pub(super) fn a_stopped_keeper_does_not_outlive_a_final_stop(user: User) {
        let mut scene = Scene::with_settings(user, Settings::default());
        let session = scene.session();
        let adopted = keeper(&scene.daemon);
        drop(scene.client);
        let daemon = restart(scene.daemon);
        let mut client = daemon.client();
        assert_eq!(client.preview_of(&session, "6 * 7"), "42");
        drop(client);
        for keeper in [&adopted, &keeper(&daemon)] {
            keeper.signal(nix::libc::SIGSTOP).expect("it runs");
        }
        daemon.stop();
        observe::all_end(&[adopted]);
    }

    pub(super) fn a_stopped_keeper_is_killed_by_the_next_start(user: User) {
        let mut scene = Scene::with_settings(user, Settings::default());
        let session = scene.session();
        let stopped = keeper(&scene.daemon);
        drop(scene.client);
        stopped.signal(nix::libc::SIGSTOP).expect("it runs");
        let daemon = restart(scene.daemon);
        observe::all_end(&[stopped]);
        let mut client = daemon.client();
        let record = client.wait_for(&session, SessionStatus::Crashed);
        assert_eq!(record.close_reason.as_deref(), Some("host_restart"));
        drop(client);
        daemon.stop();
    }

    pub(super) fn a_daemon_with_too_few_descriptors_harms_no_session(user: User) {
        let mut scene = Scene::with_settings(user, Settings::default());
        let sessions: Vec<Session> = (0..12).map(|_| scene.session()).collect();
        for session in &sessions {
            scene.client.eval(session, "globalThis.kept = 41").expect("runs");
        }
        drop(scene.client);
        let (mut place, _) = scene.daemon.kill();
        for descriptors in [24, 40, 64, 90] {
            let few = DaemonOptions { descriptors: Some(descriptors), ..DaemonOptions::default() };
            let refused = Daemon::try_start(place, &few);
            let (left, log) = refused.err().unwrap_or_else(|| panic!("it started with {descriptors}"));
            if descriptors >= 64 {
                assert!(log.contains("sessions of an earlier daemon need "), "{descriptors}: {log}");
                assert!(
                    log.contains(&format!("may have {descriptors}")) && log.contains("LimitNOFILE="),
                    "{log}"
                );
            }
            place = left;
        }
        let daemon = Daemon::start_with(place, &DaemonOptions::default());
        let mut client = daemon.client();
        for session in &sessions {
            assert_eq!(client.preview_of(session, "kept + 1"), "42");
        }
        drop(client);
        daemon.stop();
    }

    pub(super) fn a_running_execution_goes_on_and_no_event_is_lost_or_stored_twice(user: User) {
        const LINES: usize = 900;
        let mut scene = Scene::with_settings(user, Settings::default());
        let session = scene.session();
        // Prints at a rate that fills several batches, also while no supervisor is there.
        let code = format!(
            "let n = 0; const until = Date.now() + 2000;
             while (n < {LINES}) {{ console.log(n++); while (Date.now() < until - 2000 + n * (2000 / {LINES})); }} n"
        );
        let execution = scene.client.start(&session, &code);
        let mut daemon = scene.daemon;
        drop(scene.client);
        for _ in 0..3 {
            daemon = restart(daemon);
        }
        let mut client = daemon.client();
        let ended = client.until_final(&execution);
        assert_eq!(ended.status, ExecutionStatus::Ok, "{:?}", ended.error);
        let events = client.events(&execution.id.to_string());
        let lines: Vec<String> = events.iter().filter_map(console_text).collect();
        let expected: Vec<String> = (0..LINES).map(|line| line.to_string()).collect();
        assert_eq!(lines, expected);
        assert_eq!(value(&events), Some(LINES.to_string().as_str()));
        assert!(ended.metrics.duration_ms >= 1_900, "{:?}", ended.metrics);
        let numbers: Vec<u64> = events.iter().map(|event| event.seq).collect();
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
        assert!(!ended.degraded);
        drop(client);
        daemon.stop();
    }

    /// One runs code that polls, the other a native that never does: only the supervisor ends that one.
    pub(super) fn limits_of_a_running_execution_go_on_where_they_were(user: User) {
        let wall_ms = 5_000;
        let limits = Limits { cpu_ms: 60_000, wall_ms, mem_mb: 256, ..Limits::default() };
        let mut scene = Scene::with_settings(user, Settings { limits, ..Settings::default() });
        let (polls, never) = (scene.session(), scene.session());
        let begun = Instant::now();
        let code = "var o = { length: 2 ** 53 - 1 }; Array.prototype.reverse.call(o)";
        let runs = [(&polls, "for (;;) {}"), (&never, code)];
        let executions = runs.map(|(session, code)| scene.client.start(session, code));
        // Late enough for limits that start anew to end much later.
        let mut used_ms = Vec::new();
        for execution in &executions {
            let mut metrics = Metrics::default();
            let is_far = || {
                metrics = scene.client.execution_record(&execution.id.to_string()).metrics;
                metrics.duration_ms >= 3_000
            };
            watch::wait_until(is_far, || "nothing is stored of what it has used".to_owned());
            used_ms.push(metrics.cpu_ms);
        }
        drop(scene.client);
        let daemon = restart(scene.daemon);
        let mut client = daemon.client();
        for (execution, used_ms) in executions.iter().zip(used_ms) {
            let ended = client.until_final(execution);
            let error = ended.error.expect("a limit");
            assert_eq!((ended.status, &*error.code), (ExecutionStatus::Timeout, "WALL_LIMIT"));
            assert!(used_ms > 0 && ended.metrics.cpu_ms >= used_ms, "{used_ms}: {:?}", ended.metrics);
        }
        // Five seconds, at most one that was not stored, the restart, and the grace of an interrupt.
        let took = begun.elapsed();
        assert!(took >= Duration::from_secs(5), "{took:?}");
        assert!(took < Duration::from_millis(7_900), "its limits started anew: {took:?}");
        assert_eq!(client.preview_of(&polls, "1 + 1"), "2");
        let ended = client.wait_for(&never, SessionStatus::Crashed);
        assert_eq!(ended.close_reason.as_deref(), Some("limit(wall)"));
        drop(client);
        daemon.stop();
    }

    fn console_text(event: &vm_system_protocol::model::Event) -> Option<String> {
        match &event.payload {
            vm_system_protocol::model::EventPayload::Console { text, .. } => Some(text.clone()),
            _ => None,
        }
    }

    pub(super) fn a_question_is_answered_under_the_next_supervisor(user: User) {
        let mut scene = Scene::with_settings(user, Settings::default());
        let session = scene.session();
        let execution = scene.client.start(&session, "const answer = CC('how many?'); answer * 2");
        let id = execution.id.to_string();
        let mut client = scene.client;
        let waits = |client: &mut vm_system_tests::client::Client| {
            client.execution_record(&id).status == ExecutionStatus::Waiting
        };
        watch::wait_until(|| waits(&mut client), || "it does not wait".to_owned());
        drop(client);
        let daemon = restart(scene.daemon);
        let mut client = daemon.client();
        assert!(waits(&mut client), "it waits still");
        client.submit(&id, "21").expect("taken");
        let ended = client.until_final(&execution);
        assert_eq!(ended.status, ExecutionStatus::Ok, "{:?}", ended.error);
        assert_eq!(value(&client.events(&id)), Some("42"));
        drop(client);
        daemon.stop();
    }

    pub(super) fn a_worker_that_exited_meanwhile_has_the_reason_of_its_exit(user: User) {
        let mut scene = Scene::with_settings(user, Settings::default());
        let (idle, busy, other) = (scene.session(), scene.session(), scene.session());
        scene.client.eval(&other, "var x = 1").expect("runs");
        let execution = scene.client.start(&busy, "for (;;) {}");
        let workers = [&idle, &busy].map(|session| scene.client.inspect(session).expect("live").pid);
        let workers = workers.map(|pid| PidFd::open(pid).expect("alive"));
        drop(scene.client);
        let (place, _) = scene.daemon.kill();
        for worker in &workers {
            worker.signal(nix::libc::SIGSEGV).expect("alive");
        }
        observe::all_end(&workers);
        let daemon = Daemon::start_with(place, &DaemonOptions::default());
        let mut client = daemon.client();
        for session in [&idle, &busy] {
            let record = client.wait_for(session, SessionStatus::Crashed);
            assert_eq!(record.close_reason.as_deref(), Some("signal(SIGSEGV)"));
        }
        let ended = client.execution_record(&execution.id.to_string());
        assert_eq!(ended.error.expect("an error").reason.as_deref(), Some("signal(SIGSEGV)"));
        assert_eq!(client.preview_of(&other, "x"), "1");
        drop(client);
        daemon.stop();
    }

    pub(super) fn an_effect_whose_reply_was_lost_is_an_error_and_is_not_repeated(user: User) {
        let mut bench = Bench::with_modules(user, &["fs"], &DaemonOptions::default());
        bench.row(CapabilityKind::Fs, "write", "{}");
        let session = bench.session();
        let code = "
            let said = [];
            for (let n = 0; n < 2; n++) {
                try { require('fs').appendFileSync('lines', `${n}\\n`); said.push('ok') } catch (error) { said.push(error.code) }
                const until = Date.now() + 700; while (Date.now() < until);
            }
            said.join()";
        let execution = bench.client.start(&session, code);
        let lines = bench.daemon.place.worktree().join("lines");
        watch::wait_until(|| lines.exists(), || "nothing is written".to_owned());
        drop(bench.client);
        let daemon = restart(bench.daemon);
        let mut client = daemon.client();
        let ended = client.until_final(&execution);
        assert_eq!(ended.status, ExecutionStatus::Ok, "{:?}", ended.error);
        // However far each call was: it was carried out at most once, and its result is known or said to be unknown.
        let said = client.events(&execution.id.to_string());
        let said = value(&said).expect("a value").trim_matches('\'').to_owned();
        let text = std::fs::read_to_string(&lines).expect("text");
        for (line, result) in said.split(',').enumerate() {
            let count = text.matches(&format!("{line}\n")).count();
            match result {
                "ok" => assert_eq!(count, 1, "{text:?}, {said}"),
                "EHOSTRESTART" => assert!(count <= 1, "{text:?}, {said}"),
                other => panic!("{other} of {said}"),
            }
        }
        drop(client);
        daemon.stop();
    }

    pub(super) fn reads_of_a_busy_script_do_not_fail_although_supervisors_exit(user: User) {
        let mut bench = Bench::with_modules(user, &["fs"], &DaemonOptions::default());
        let session = bench.session();
        std::fs::write(bench.daemon.place.worktree().join("in"), "text").expect("written");
        let code = "
            const fs = require('fs');
            const failed = [];
            for (let n = 1; !fs.existsSync('stop'); n++) {
                try { fs.readFileSync('in', 'utf8') } catch (error) { failed.push(error.message) }
                if (n % 100 === 0) console.log('many');
            }
            failed.join()";
        let execution = bench.client.start(&session, code);
        drop(bench.client);
        let mut daemon = bench.daemon;
        for _ in 0..3 {
            let mut client = daemon.client();
            let id = execution.id.to_string();
            let mut events = || client.events(&id).len();
            let before = events();
            watch::wait_until(|| events() > before, || "it does not go on".to_owned());
            drop(client);
            daemon = restart(daemon);
        }
        std::fs::write(daemon.place.worktree().join("stop"), "").expect("written");
        let mut client = daemon.client();
        let ended = client.until_final(&execution);
        assert_eq!(ended.status, ExecutionStatus::Ok, "{:?}", ended.error);
        assert_eq!(value(&client.events(&execution.id.to_string())), Some("''"));
        drop(client);
        daemon.stop();
    }

    pub(super) fn sessions_survive_a_series_of_supervisors(user: User) {
        let mut scene = Scene::with_settings(user, Settings::default());
        let session = scene.session();
        scene.client.eval(&session, "var count = 0").expect("runs");
        let mut daemon = scene.daemon;
        drop(scene.client);
        for round in 1..=5 {
            daemon = restart(daemon);
            let mut client = daemon.client();
            assert_eq!(client.preview_of(&session, "++count"), round.to_string());
            // Others are made beside it, in a jail of the new supervisor, and are adopted later.
            let template = client.template(Settings::default(), &[]);
            let beside = client.session(&template, &daemon.place.worktree()).expect("a session");
            assert_eq!(client.preview_of(&beside, "1 + 1"), "2");
        }
        daemon.stop();
    }

    /// The results that one client saw of its session.
    #[derive(Default)]
    struct Acknowledged {
        executions: Vec<String>,
        count: u64,
    }

    /// Counts in a session until the daemon is killed.
    fn count_until_killed(mut client: Client, session: &Session, total: &AtomicU64) -> Acknowledged {
        let mut seen = Acknowledged::default();
        loop {
            match client.try_op(repl(session, "globalThis.count = (globalThis.count ?? 0) + 1", true)) {
                Ok(Ok(state)) => {
                    let execution = state.execution();
                    let result = execution.result.as_ref().expect("a result");
                    seen.count = result.preview.parse().expect("a number");
                    seen.executions.push(execution.id.to_string());
                    total.fetch_add(1, Ordering::Relaxed);
                }
                Ok(Err(error)) if error.code == ErrorCode::SessionBusy => {}
                Ok(other) => panic!("{other:?}"),
                Err(_killed) => return seen,
            }
        }
    }

    /// Some executions reach the worker and not the store: the session goes on without them.
    pub(super) fn busy_sessions_survive_and_keep_what_was_acknowledged(user: User) {
        let mut scene = Scene::with_settings(user, Settings::default());
        let sessions = [scene.session(), scene.session(), scene.session()];
        let mut daemon = scene.daemon;
        drop(scene.client);
        for round in 0..6 {
            let total = AtomicU64::new(0);
            let (next, seen) = std::thread::scope(|scope| {
                // Two clients in each: the second begins before the end of the first is stored.
                let clients = sessions.iter().flat_map(|session| [session, session]);
                let clients: Vec<_> = clients
                    .map(|session| {
                        let (client, total) = (daemon.client(), &total);
                        scope.spawn(move || (session, count_until_killed(client, session, total)))
                    })
                    .collect();
                let enough = 30 + 7 * round;
                watch::wait_until(
                    || total.load(Ordering::Relaxed) >= enough,
                    || "too few executions".to_owned(),
                );
                let (place, _) = daemon.kill();
                let seen: Vec<_> =
                    clients.into_iter().map(|client| client.join().expect("no panic")).collect();
                (Daemon::start_with(place, &DaemonOptions::default()), seen)
            });
            daemon = next;
            let mut client = daemon.client();
            for (session, acknowledged) in &seen {
                let record = client.session_record(session);
                assert_eq!(record.status, SessionStatus::Ready, "round {round}: {:?}", record.close_reason);
                let mut execution = None;
                watch::wait_until(
                    || match client.eval(session, "globalThis.count ?? 0") {
                        Ok(done) => execution.insert(done).status.is_final(),
                        // A worker that could not reply within the first second.
                        Err(error) => {
                            assert_eq!(error.code, ErrorCode::SessionBusy, "{error:?}");
                            false
                        }
                    },
                    || "busy".to_owned(),
                );
                let result = execution.and_then(|execution| execution.result).expect("a result");
                let count: u64 = result.preview.parse().expect("a number");
                assert!(count >= acknowledged.count, "{count} after {}", acknowledged.count);
                for id in &acknowledged.executions {
                    assert_eq!(client.execution_record(id).status, ExecutionStatus::Ok, "{id}");
                }
            }
            for session in &sessions {
                let page = ListPage::first(100);
                let list = ExecList::all(session.id.to_string(), page);
                let Ok(all) = client.op(list) else { panic!("no list") };
                assert!(all.iter().all(|execution| execution.status.is_final()), "{all:?}");
            }
        }
        daemon.stop();
    }

    pub(super) fn a_stopped_daemon_ends_what_it_adopted(user: User) {
        let mut scene = Scene::with_settings(user, Settings::default());
        let session = scene.session();
        let pid = scene.client.inspect(&session).expect("live").pid;
        let worker = PidFd::open(pid).expect("alive");
        drop(scene.client);
        let daemon = restart(scene.daemon);
        let keepers = daemon.place.path("state/keepers");
        let place = daemon.stop();
        assert!(!worker.is_alive());
        // Spare files are kept for starts without space.
        let is_address = |name: &std::ffi::OsStr| !name.to_string_lossy().contains("spare");
        let addresses = std::fs::read_dir(&keepers).into_iter().flatten().flatten();
        let addresses = addresses.filter(|entry| is_address(&entry.file_name())).count();
        assert_eq!(addresses, 0, "{}", keepers.display());
        let daemon = Daemon::start_with(place, &DaemonOptions::default());
        let record = daemon.client().session_record(&session);
        assert_eq!((record.status, record.close_reason.as_deref()), (SessionStatus::Closed, Some("exited")));
        daemon.stop();
    }
}
