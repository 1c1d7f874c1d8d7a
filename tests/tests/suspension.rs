//! Suspension of idle sessions and memory pressure: real processes.

use serde_json::json;
use std::path::PathBuf;
use vm_system_protocol::control::{DurableOp, ErrorCode, NewRun, Op, OpError, Reply, SessionFilter};
use vm_system_protocol::model::{
    ExecutionStatus, OnCrash, Session, SessionEventType, SessionStatus, Settings,
};
use vm_system_sandbox::pidfd::PidFd;
use vm_system_tests::client::Client;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::place::{TestDir, User};
use vm_system_tests::programs::{code, id};
use vm_system_tests::{as_both, watch};

as_both!(
    a_suspended_session_is_stopped_and_wakes_for_whatever_needs_it,
    an_idle_session_is_suspended_by_itself_and_a_busy_one_is_not,
    a_suspended_session_survives_its_supervisor,
    short_memory_suspends_and_then_refuses,
);

fn suspend(client: &mut Client, session: &Session) -> Result<Session, OpError> {
    match client.op(Op::SessionSuspend { session: session.id.to_string() })? {
        Reply::Session(session) => Ok(*session),
        other => panic!("{other:?}"),
    }
}

fn new_session(daemon: &Daemon) -> Session {
    let mut client = daemon.client();
    let template = client.template(Settings::default(), &[]);
    client.session(&template, &daemon.place.worktree()).expect("a session")
}

/// Whether the process of a session is stopped, according to the kernel.
fn is_stopped(client: &mut Client, session: &Session) -> bool {
    let pid = client.inspect(session).expect("live").pid;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it exists");
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
}

fn kinds(client: &mut Client, session: &Session) -> Vec<SessionEventType> {
    let op = Op::SessionEvents { session: session.id.to_string(), after_seq: 0, limit: 1_000, wait: false };
    match client.op(op).expect("events") {
        Reply::SessionEvents(page) => page.events.iter().map(|event| event.kind).collect(),
        other => panic!("{other:?}"),
    }
}

fn listed(client: &mut Client, status: SessionStatus) -> Vec<Session> {
    let filter = SessionFilter { status: Some(status), ..SessionFilter::default() };
    match client.op(Op::SessionList(filter)).expect("a list") {
        Reply::Sessions(sessions) => sessions,
        other => panic!("{other:?}"),
    }
}

fn configured(user: User, config: &str) -> Daemon {
    Daemon::start_with(TestDir::new(user), &options(config))
}

fn options(config: &str) -> DaemonOptions {
    DaemonOptions { config: config.to_owned(), ..DaemonOptions::default() }
}

/// Files of the kernel that a test writes.
struct Memory {
    meminfo: PathBuf,
    stalls: PathBuf,
}

impl Memory {
    fn of(place: &TestDir) -> Self {
        let memory = Self { meminfo: place.path("meminfo"), stalls: place.path("stalls") };
        memory.set(4_000, 0);
        memory
    }

    fn set(&self, available_mb: u64, stalled_percent: u32) {
        let meminfo = format!("MemTotal: 8192000 kB\nMemAvailable: {} kB\n", available_mb * 1_024);
        std::fs::write(&self.meminfo, meminfo).expect("a file");
        let line = format!("avg10={stalled_percent}.00 avg60=0.00 avg300=0.00 total=0");
        std::fs::write(&self.stalls, format!("some {line}\nfull {line}\n")).expect("a file");
    }

    fn config(&self) -> String {
        format!(
            "suspend_after_s = 0\n[memory_pressure]\nsuspend_below_mb = 1000\nrefuse_below_mb = 500\nmeminfo = \"{}\"\nstalls = \"{}\"\n",
            self.meminfo.display(),
            self.stalls.display()
        )
    }
}

fn memory_of(client: &mut Client) -> String {
    match client.op(Op::Health).expect("healthy") {
        Reply::Health(health) => health.memory,
        other => panic!("{other:?}"),
    }
}

fn until_memory_is(daemon: &Daemon, level: &str) {
    watch::until(|| memory_of(&mut daemon.client()) == level, || format!("memory is not {level}"));
}

mod cases {
    use super::*;

    pub(super) fn a_suspended_session_is_stopped_and_wakes_for_whatever_needs_it(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        let session = new_session(&daemon);
        client.preview_of(&session, "var n = 1");
        assert!(!is_stopped(&mut client, &session));
        for round in 1..4 {
            let suspended = suspend(&mut client, &session).expect("it is idle");
            assert_eq!((suspended.id, suspended.status), (session.id, SessionStatus::Suspended));
            watch::until(|| is_stopped(&mut daemon.client(), &session), || "it runs".to_owned());
            assert_eq!(client.session_record(&session).status, SessionStatus::Suspended);
            assert_eq!(client.inspect(&session).expect("live").status, SessionStatus::Suspended);
            assert_eq!(listed(&mut client, SessionStatus::Suspended).len(), 1);
            assert!(listed(&mut client, SessionStatus::Ready).is_empty());
            assert_eq!(client.preview_of(&session, "n += 1"), (round + 1).to_string());
            assert_eq!(client.session_record(&session).status, SessionStatus::Ready);
        }
        let running = client.start(&session, "for (;;) {}");
        let busy = suspend(&mut client, &session).expect_err("it is busy");
        assert_eq!(busy.code, ErrorCode::SessionBusy, "{busy:?}");
        client.op(Op::ExecCancel { execution: running.id.to_string() }).expect("cancelled");
        client.until_final(&running);
        suspend(&mut client, &session).expect("it is idle");
        let child = client.fork(&session, 1).expect("forked").remove(0);
        assert_eq!(client.preview_of(&child, "n"), "4");
        suspend(&mut client, &session).expect("it is idle");
        let resumed = client.op(Op::SessionResume { session: session.id.to_string() }).expect("resumed");
        assert!(matches!(resumed, Reply::Session(session) if session.status == SessionStatus::Ready));
        watch::until(|| !is_stopped(&mut daemon.client(), &session), || "it is stopped".to_owned());
        suspend(&mut client, &session).expect("it is idle");
        client.close(&session);
        let record = client.session_record(&session);
        assert_eq!((record.status, record.close_reason.as_deref()), (SessionStatus::Closed, Some("exited")));
        let ended = suspend(&mut client, &session).expect_err("it has ended");
        assert_eq!(ended.code, ErrorCode::SessionNotReady, "{ended:?}");
        let kinds = kinds(&mut client, &session);
        let count = |kind| kinds.iter().filter(|one| **one == kind).count();
        assert_eq!(
            (count(SessionEventType::Suspended), count(SessionEventType::Resumed)),
            (6, 6),
            "{kinds:?}"
        );
        daemon.stop();
    }

    pub(super) fn an_idle_session_is_suspended_by_itself_and_a_busy_one_is_not(user: User) {
        let daemon = configured(user, "suspend_after_s = 1\n");
        let mut client = daemon.client();
        let (idle, busy) = (new_session(&daemon), new_session(&daemon));
        let wait = "await new Promise(go => setTimeout(go, 3000)); 'done'";
        let running = client.start(&busy, wait);
        client.until(&idle, SessionStatus::Suspended);
        assert_eq!(client.session_record(&busy).status, SessionStatus::Ready);
        let ended = client.until_final(&running);
        assert_eq!(ended.result.map(|result| result.preview).as_deref(), Some("'done'"));
        assert!(!kinds(&mut client, &busy)[..4].contains(&SessionEventType::Suspended));
        client.until(&busy, SessionStatus::Suspended);
        assert_eq!(client.preview_of(&idle, "1 + 1"), "2");
        daemon.stop();
    }

    pub(super) fn a_suspended_session_survives_its_supervisor(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        let session = new_session(&daemon);
        client.preview_of(&session, "var n = 1");
        suspend(&mut client, &session).expect("it is idle");
        watch::until(|| is_stopped(&mut daemon.client(), &session), || "it runs".to_owned());
        drop(client);
        let (place, _) = daemon.kill();
        let daemon = Daemon::start_with(place, &DaemonOptions::default());
        let mut client = daemon.client();
        assert_eq!(client.preview_of(&session, "n += 1"), "2");
        assert!(client.inspect(&session).expect("live").adopted);
        assert!(!is_stopped(&mut client, &session));
        suspend(&mut client, &session).expect("it is idle");
        assert_eq!(client.preview_of(&session, "n += 1"), "3");
        daemon.stop();
    }

    pub(super) fn short_memory_suspends_and_then_refuses(user: User) {
        let place = TestDir::new(user);
        let memory = Memory::of(&place);
        let options = options(&memory.config());
        let daemon = Daemon::start_with(place, &options);
        let mut client = daemon.client();
        let (idle, busy) = (new_session(&daemon), new_session(&daemon));
        assert_eq!(memory_of(&mut client), "normal");
        client.load("CC('one'); CC('two'); 3");
        let program = client.start_program(NewRun::default()).expect("started");
        let mut settings = Settings::default();
        settings.runtime.on_crash = OnCrash::Restart;
        let restarting = client.template(settings, &[]);
        let restarting = client.session(&restarting, &daemon.place.worktree()).expect("a session");
        let running = client.start(&busy, "for (;;) {}");
        memory.set(900, 0);
        until_memory_is(&daemon, "high");
        client.until(&idle, SessionStatus::Suspended);
        assert_eq!(client.session_record(&busy).status, SessionStatus::Ready, "never a busy one");
        // Sessions are made as before, and woken.
        let third = new_session(&daemon);
        assert_eq!(client.preview_of(&idle, "1 + 1"), "2");
        memory.set(900, 50);
        until_memory_is(&daemon, "critical");
        let template = client.template(Settings::default(), &[]);
        let worktree = daemon.place.worktree();
        let checkpoint = Op::SessionCheckpoint { session: third.id.to_string(), name: None };
        for refused in [
            client.session(&template, &worktree).map(drop),
            client.fork(&third, 1).map(drop),
            client.op(checkpoint).map(drop),
        ] {
            let refused = refused.expect_err("memory is short");
            assert_eq!(refused.code, ErrorCode::CapacityExceeded, "{refused:?}");
            assert!(refused.hint.as_deref().is_some_and(|hint| hint.contains("ops health")), "{refused:?}");
        }
        // Nor is a program begun, in any way; one that waits goes on.
        let execution = id(&program);
        let fork = DurableOp::Fork { execution: execution.clone(), checkpoint: None, name: None };
        let rewind = DurableOp::Rewind { execution: execution.clone(), checkpoint: 1 };
        let refused = [client.start_program(NewRun::default()), client.run_op(fork), client.run_op(rewind)];
        for refused in refused {
            assert_eq!(code(refused), ErrorCode::CapacityExceeded);
        }
        assert_eq!(
            client.submit(&execution, "1").expect("it goes on").execution.status,
            ExecutionStatus::Waiting
        );
        // A worker that exits is not replaced.
        let pid = client.inspect(&restarting).expect("live").pid;
        PidFd::open(pid).expect("alive").kill().expect("alive");
        let ended = client.until(&restarting, SessionStatus::Crashed).close_reason.expect("a reason");
        assert!(ended.starts_with("spawn_failed(") && ended.contains("memory is short"), "{ended}");
        // What runs goes on, and sessions that exist run code.
        assert_eq!(client.preview_of(&idle, "1 + 2"), "3");
        let body = json!({
            "template_id": template, "workspace_id": "w", "base_commit_oid": "c", "worktree_path": worktree,
        });
        let http = daemon.http().post("/api/v1/sessions", &body);
        assert_eq!((http.status, http.code()), (503, "CAPACITY_EXCEEDED".to_owned()), "{}", http.text());
        assert!(http.field("retry-after").is_some(), "{http:?}");
        assert!(daemon.cli(&["ops", "health"]).ok().contains("critical"));
        memory.set(4_000, 0);
        until_memory_is(&daemon, "normal");
        new_session(&daemon);
        client.op(Op::ExecCancel { execution: running.id.to_string() }).expect("cancelled");
        daemon.stop();
    }
}

#[test]
fn the_cli_and_rest_suspend_and_resume() {
    let daemon = Daemon::start(User::AsStarted);
    let id = new_session(&daemon).id.to_string();
    assert_eq!(daemon.cli(&["session", "suspend", &id]).ok().trim(), format!("Suspended session: {id}"));
    assert!(daemon.cli(&["session", "list", "--status", "suspended"]).ok().contains(&id));
    assert_eq!(daemon.cli(&["session", "resume", &id]).ok().trim(), format!("Resumed session: {id}"));
    let mut http = daemon.http();
    let path = format!("/api/v1/sessions/{id}");
    let suspended = http.post(&format!("{path}/suspend"), &json!({}));
    assert_eq!((suspended.status, &suspended.json()["status"]), (200, &json!("suspended")));
    assert_eq!(http.get(&path).json()["status"], "suspended");
    let resumed = http.post(&format!("{path}/resume"), &json!({}));
    assert_eq!((resumed.status, &resumed.json()["status"]), (200, &json!("ready")), "{}", resumed.text());
    let audit = daemon.cli(&["--output", "json", "ops", "audit"]).ok();
    assert!(audit.contains("session suspend") && audit.contains("session resume"), "{audit}");
    daemon.stop();
}

#[test]
fn limits_of_memory_that_contradict_each_other_are_refused() {
    for (config, says) in [
        ("[memory_pressure]\nsuspend_below_mb = 1\nrefuse_below_mb = 2\n", "refuse_below_mb (2)"),
        ("[memory_pressure]\nsuspend_stalled_percent = 101\n", "at most 100"),
        ("[memory_pressure]\nmeminfo = \"a\"\n", "must be absolute"),
    ] {
        let started = Daemon::try_start(TestDir::new(User::AsStarted), &options(config));
        let (_, log) = started.expect_err("it is refused");
        assert!(log.contains(says), "{log}");
    }
}
