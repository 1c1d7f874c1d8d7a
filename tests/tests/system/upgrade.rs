//! Sessions whose workers are of another build than their supervisor: of the oldest protocol version that it speaks, of others, and
//! their replacement by a deadline (`ops upgrade`). With the feature `next-protocol` the build under test is of the next version, and
//! the oldest one is that of the product.

use vm_system_protocol::hello::{PROTOCOL, SUPPORTED, UnsupportedProtocol};
use vm_system_protocol::model::{
    ExecutionStatus, OnCrash, RuntimeSettings, Session, SessionStatus, Settings,
};
use vm_system_sandbox::pidfd::PidFd;
use vm_system_tests::client::{Client, value};
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::place::{TestDir, User};
use vm_system_tests::scene::Scene;
use vm_system_tests::{as_both, observe, program, watch};

const OLDEST: u32 = *SUPPORTED.start();

as_both!(
    sessions_of_the_oldest_spoken_version_go_on,
    sessions_of_a_build_that_is_too_old_end_by_name,
    a_build_that_is_older_than_its_keepers_harms_no_session,
    sessions_of_other_builds_are_shown_and_replaced_by_a_deadline,
    a_deadline_outlives_its_supervisor_and_can_be_withdrawn,
);

mod cases {
    use super::*;

    /// A scene with a daemon of another build, whose keepers speak this version.
    fn other_build(user: User, protocol: u32, config: &str) -> Scene {
        let options = DaemonOptions {
            program: program::of_other_build(protocol),
            config: config.to_owned(),
            ..DaemonOptions::default()
        };
        Scene::on_daemon(Daemon::start_with(TestDir::new(user), &options), Settings::default())
    }

    /// The next daemon is of the build under test.
    fn upgraded(daemon: Daemon) -> Daemon {
        Daemon::start_with(daemon.kill().0, &DaemonOptions::default())
    }

    fn waits(client: &mut Client, execution: &str) -> bool {
        client.execution_record(execution).status == ExecutionStatus::Waiting
    }

    fn fact(client: &mut Client, session: &Session, name: &str) -> serde_json::Value {
        let facts = serde_json::to_value(&client.session_record(session).runtime_meta).expect("facts");
        facts.get(name).cloned().unwrap_or_default()
    }

    fn report(daemon: &Daemon, arguments: &[&str]) -> serde_json::Value {
        let output = daemon.cli(&[&["ops", "upgrade", "--output", "json"], arguments].concat());
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        serde_json::from_str(&output.stdout).expect("JSON")
    }

    pub(super) fn sessions_of_the_oldest_spoken_version_go_on(user: User) {
        const LINES: usize = 300;
        let mut scene = other_build(user, OLDEST, "");
        let [prints, waiting, idle] = [0; 3].map(|_| scene.session());
        scene.client.eval(&idle, "globalThis.kept = 41").expect("runs");
        let code = format!(
            "let n = 0; const from = Date.now();
             while (n < {LINES}) {{ console.log(n++); while (Date.now() < from + n * (2000 / {LINES})); }} n"
        );
        let printing = scene.client.start(&prints, &code);
        let question = scene.client.start(&waiting, "CC('how many?') * 2");
        let pending = question.id.to_string();
        watch::wait_until(|| waits(&mut scene.client, &pending), || "it does not wait".to_owned());
        drop(scene.client);
        let daemon = upgraded(scene.daemon);
        let mut client = daemon.client();
        client.submit(&pending, "21").expect("taken");
        assert_eq!(client.until_final(&question).status, ExecutionStatus::Ok);
        assert_eq!(value(&client.events(&pending)), Some("42"));
        let ended = client.until_final(&printing);
        assert_eq!(ended.status, ExecutionStatus::Ok, "{:?}", ended.error);
        let events = client.events(&printing.id.to_string());
        assert_eq!(value(&events), Some(LINES.to_string().as_str()));
        let numbers: Vec<u64> = events.iter().map(|event| event.seq).collect();
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
        assert!(numbers.len() > LINES);
        // A fork is a child of the older worker; a new session is of the new build.
        let forked = client.fork(&idle, 1).expect("forks").remove(0);
        assert_eq!(client.preview_of(&forked, "kept + 1"), "42");
        let builds = report(&daemon, &[])["builds"].clone();
        assert_eq!((&builds[0]["current"], &builds[0]["protocol"]), (&true.into(), &PROTOCOL.into()));
        assert_eq!((&builds[1]["current"], &builds[1]["protocol"]), (&false.into(), &OLDEST.into()));
        drop(client);
        daemon.stop();
    }

    pub(super) fn sessions_of_a_build_that_is_too_old_end_by_name(user: User) {
        let mut scene = other_build(user, OLDEST - 1, "");
        let session = scene.session();
        let execution = scene.client.start(&session, "for (;;) {}");
        drop(scene.client);
        let daemon = upgraded(scene.daemon);
        let mut client = daemon.client();
        let ended = client.session_record(&session);
        let why = UnsupportedProtocol(OLDEST - 1).to_string();
        assert_eq!(
            (ended.status, ended.close_reason.as_deref()),
            (SessionStatus::Crashed, Some("host_restart"))
        );
        assert!(
            ended.last_error.as_ref().is_some_and(|error| error.contains(&why)),
            "{:?}",
            ended.last_error
        );
        let error = client.execution_record(&execution.id.to_string()).error.expect("an error");
        assert!(error.message.contains(&why), "{error:?}");
        let template = client.template(Settings::default(), &[]);
        let next = client.session(&template, &daemon.place.worktree()).expect("a session");
        assert_eq!(client.preview_of(&next, "6 * 7"), "42");
        drop(client);
        daemon.stop();
    }

    pub(super) fn a_build_that_is_older_than_its_keepers_harms_no_session(user: User) {
        let mut scene = other_build(user, PROTOCOL + 1, "keeper_grace_s = 3000\n");
        let session = scene.session();
        let worker = scene.client.inspect(&session).expect("live").pid;
        let worker = PidFd::open(worker).expect("alive");
        let keeper = scene.daemon.info().keeper_pid.expect("a jail");
        let keeper = PidFd::open(keeper).expect("alive");
        drop(scene.client);
        let (mut place, _) = scene.daemon.kill();
        for _ in 0..2 {
            let refused = Daemon::try_start(place, &DaemonOptions::default());
            let Err((left, log)) = refused else { panic!("it starts") };
            let why = format!("it speaks protocol version {}", PROTOCOL + 1);
            assert!(log.contains(&why) && log.contains("start the newer build again"), "{log}");
            assert!(worker.is_alive() && keeper.is_alive(), "its session has ended");
            place = left;
        }
        // Without the newer build its sessions end, and this one starts.
        keeper.kill().expect("it runs");
        observe::all_end(&[worker]);
        let daemon = Daemon::start_with(place, &DaemonOptions::default());
        let mut client = daemon.client();
        assert_eq!(client.session_record(&session).close_reason.as_deref(), Some("host_restart"));
        drop(client);
        daemon.stop();
    }

    fn restarts() -> Settings {
        let runtime = RuntimeSettings { on_crash: OnCrash::Restart, ..RuntimeSettings::default() };
        Settings { runtime, ..Settings::default() }
    }

    pub(super) fn sessions_of_other_builds_are_shown_and_replaced_by_a_deadline(user: User) {
        let mut scene = other_build(user, PROTOCOL, "");
        let [idle, waiting] = [0; 2].map(|_| scene.session());
        let template = scene.client.template(restarts(), &[]);
        let worktree = scene.daemon.place.worktree();
        let restarting = [0; 2].map(|_| scene.client.session(&template, &worktree).expect("a session"));
        let [calm, busy] = &restarting;
        for session in restarting.iter().chain([&idle]) {
            scene.client.eval(session, "globalThis.kept = 41").expect("runs");
        }
        let running =
            scene.client.start(busy, "const from = Date.now(); while (Date.now() < from + 2500); kept");
        let question = scene.client.start(&waiting, "CC('how many?')").id.to_string();
        watch::wait_until(|| waits(&mut scene.client, &question), || "it does not wait".to_owned());
        drop(scene.client);
        let daemon = upgraded(scene.daemon);
        let mut client = daemon.client();
        let new = client.session(&template, &worktree).expect("a session");
        let shown = report(&daemon, &[]);
        let (own, other) = (&shown["builds"][0], &shown["builds"][1]);
        assert_eq!(
            (&own["current"], &own["idle"], &other["current"]),
            (&true.into(), &1.into(), &false.into())
        );
        // One more is idle: the scene's own.
        assert_eq!(
            [&other["idle"], &other["busy"], &other["waiting"]].map(serde_json::Value::as_u64),
            [Some(3), Some(1), Some(1)],
            "{shown}"
        );
        assert_ne!(own["build"], other["build"]);
        let set = report(&daemon, &["--drain-by", "8s"]);
        assert_eq!(set["unreached"], serde_json::json!([]));
        assert_eq!(fact(&mut client, &idle, "drain_at"), set["drain_at"]);
        assert!(client.inspect(&idle).expect("live").next_cull_at.is_some());
        assert_eq!(fact(&mut client, &new, "drain_at"), serde_json::Value::Null);
        // Idle: at once. Busy: at the end of its execution, which loses nothing.
        client.wait_for(calm, SessionStatus::Ready);
        let restarted = |client: &mut Client, session: &Session| {
            let facts = fact(client, session, "restart");
            facts["reason"] == "replaced" && client.session_record(session).status == SessionStatus::Ready
        };
        watch::wait_until(|| restarted(&mut client, calm), || "it is not restarted".to_owned());
        assert_eq!(client.preview_of(calm, "typeof kept"), "'undefined'");
        let ended = client.until_final(&running);
        assert_eq!(
            (ended.status, ended.result.map(|value| value.preview)),
            (ExecutionStatus::Ok, Some("41".to_owned()))
        );
        watch::wait_until(|| restarted(&mut client, busy), || "it is not restarted".to_owned());
        assert_eq!(fact(&mut client, busy, "drain_at"), serde_json::Value::Null);
        let output = daemon.cli(&["ops", "upgrade", "--wait"]);
        assert!(output.code == Some(0) && output.stdout.contains("All sessions run"), "{}", output.stdout);
        assert!(output.stderr.contains("sessions of other builds, to be replaced by"), "{}", output.stderr);
        for session in [&idle, &waiting] {
            // The row follows the end of the process, on which the command has waited.
            let ended = client.wait_for(session, SessionStatus::Closed);
            assert_eq!(ended.close_reason.as_deref(), Some("replaced"));
            assert!(
                ended.last_error.as_ref().is_some_and(|why| why.contains("session restore")),
                "{ended:?}"
            );
        }
        assert_eq!(client.preview_of(&new, "1 + 1"), "2");
        drop(client);
        daemon.stop();
    }

    pub(super) fn a_deadline_outlives_its_supervisor_and_can_be_withdrawn(user: User) {
        let mut scene = other_build(user, PROTOCOL, "");
        let session = scene.session();
        drop(scene.client);
        let daemon = upgraded(scene.daemon);
        let set = report(&daemon, &["--drain-by", "1h"]);
        let mut client = daemon.client();
        let forked = client.fork(&session, 1).expect("forks").remove(0);
        drop(client);
        let daemon = upgraded(daemon);
        let mut client = daemon.client();
        for one in [&session, &forked] {
            assert_eq!(fact(&mut client, one, "drain_at"), set["drain_at"]);
        }
        assert_eq!(report(&daemon, &[])["drain_at"], set["drain_at"]);
        let withdrawn = report(&daemon, &["--cancel"]);
        assert_eq!(withdrawn.get("drain_at"), None);
        assert_eq!(fact(&mut client, &session, "drain_at"), serde_json::Value::Null);
        // One that passes while no supervisor is there is in force at the next start.
        report(&daemon, &["--drain-by", "1s"]);
        drop(client);
        let daemon = upgraded(daemon);
        let mut client = daemon.client();
        client.wait_for(&session, SessionStatus::Closed);
        client.wait_for(&forked, SessionStatus::Closed);
        drop(client);
        daemon.stop();
    }
}
