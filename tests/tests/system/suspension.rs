//! Suspension of idle sessions and memory pressure: real processes.

use serde_json::json;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use vm_system_protocol::control::{
    ErrorCode, ExecCancel, HealthGet, OpError, ProgramStart, RunFork, RunRewind, SessionAddCheckpoint,
    SessionEvents, SessionGet, SessionList, SessionResume, SessionSuspend,
};
use vm_system_protocol::model::{
    ExecutionStatus, OnCrash, Session, SessionEventType, SessionStatus, Settings,
};
use vm_system_sandbox::pidfd::PidFd;
use vm_system_tests::client::Client;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::other_user::{OtherUser, shared_daemon};
use vm_system_tests::place::{TestDir, User};
use vm_system_tests::programs::{code, id};
use vm_system_tests::{as_both, skip, watch};

as_both!(
    a_suspended_session_is_stopped_and_wakes_for_whatever_needs_it,
    an_idle_session_is_suspended_by_itself_and_a_busy_one_is_not,
    a_suspended_session_survives_its_supervisor,
    short_memory_suspends_and_then_refuses,
);

fn suspend(client: &mut Client, session: &Session) -> Result<Session, OpError> {
    client.op(SessionSuspend { session: session.id.to_string() })
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
    let op = SessionEvents { session: session.id.to_string(), after_seq: 0, limit: 1_000, wait: false };
    let page = client.op(op).expect("events");
    page.events.iter().map(|event| event.kind).collect()
}

fn listed(client: &mut Client, status: SessionStatus) -> Vec<Session> {
    let filter = SessionList { status: Some(status), ..SessionList::default() };
    client.op(filter).expect("a list")
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
    total_mb: u64,
}

impl Memory {
    fn in_place(place: &TestDir) -> Self {
        let memory = Self { meminfo: place.path("meminfo"), stalls: place.path("stalls"), total_mb: 8_000 };
        memory.set(4_000, 0);
        memory
    }

    fn set(&self, available_mb: u64, stalled_percent: u32) {
        let [total, available] = [self.total_mb, available_mb].map(|mib| mib * 1_024);
        let meminfo = format!("MemTotal: {total} kB\nMemAvailable: {available} kB\n");
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
    let health = client.op(HealthGet).expect("healthy");
    health.memory
}

fn until_memory_is(daemon: &Daemon, level: &str) {
    watch::wait_until(|| memory_of(&mut daemon.client()) == level, || format!("memory is not {level}"));
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
            watch::wait_until(|| is_stopped(&mut daemon.client(), &session), || "it runs".to_owned());
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
        client.op(ExecCancel { execution: running.id.to_string() }).expect("cancelled");
        client.until_final(&running);
        suspend(&mut client, &session).expect("it is idle");
        let child = client.fork(&session, 1).expect("forked").remove(0);
        assert_eq!(client.preview_of(&child, "n"), "4");
        suspend(&mut client, &session).expect("it is idle");
        let resumed = client.op(SessionResume { session: session.id.to_string() }).expect("resumed");
        assert!(matches!(resumed, session if session.status == SessionStatus::Ready));
        watch::wait_until(|| !is_stopped(&mut daemon.client(), &session), || "it is stopped".to_owned());
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
        client.wait_for(&idle, SessionStatus::Suspended);
        assert_eq!(client.session_record(&busy).status, SessionStatus::Ready);
        let ended = client.until_final(&running);
        assert_eq!(ended.result.map(|result| result.preview).as_deref(), Some("'done'"));
        assert!(!kinds(&mut client, &busy)[..4].contains(&SessionEventType::Suspended));
        client.wait_for(&busy, SessionStatus::Suspended);
        assert_eq!(client.preview_of(&idle, "1 + 1"), "2");
        daemon.stop();
    }

    pub(super) fn a_suspended_session_survives_its_supervisor(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        let session = new_session(&daemon);
        client.preview_of(&session, "var n = 1");
        suspend(&mut client, &session).expect("it is idle");
        watch::wait_until(|| is_stopped(&mut daemon.client(), &session), || "it runs".to_owned());
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
        let memory = Memory::in_place(&place);
        let options = options(&memory.config());
        let daemon = Daemon::start_with(place, &options);
        let mut client = daemon.client();
        let (idle, busy) = (new_session(&daemon), new_session(&daemon));
        assert_eq!(memory_of(&mut client), "normal");
        client.load("CC('one'); CC('two'); 3");
        let program = client.start_program(ProgramStart::default()).expect("started");
        let mut settings = Settings::default();
        settings.runtime.on_crash = OnCrash::Restart;
        let restarting = client.template(settings, &[]);
        let restarting = client.session(&restarting, &daemon.place.worktree()).expect("a session");
        let running = client.start(&busy, "for (;;) {}");
        memory.set(900, 0);
        until_memory_is(&daemon, "high");
        client.wait_for(&idle, SessionStatus::Suspended);
        assert_eq!(client.session_record(&busy).status, SessionStatus::Ready, "never a busy one");
        // Sessions are made as before, and woken.
        let third = new_session(&daemon);
        assert_eq!(client.preview_of(&idle, "1 + 1"), "2");
        memory.set(900, 50);
        until_memory_is(&daemon, "critical");
        let template = client.template(Settings::default(), &[]);
        let worktree = daemon.place.worktree();
        let checkpoint = SessionAddCheckpoint { session: third.id.to_string(), name: None };
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
        let fork = RunFork { execution: execution.clone(), checkpoint: None, name: None };
        let rewind = RunRewind { execution: execution.clone(), checkpoint: 1 };
        let refused = [client.start_program(ProgramStart::default()), client.op(fork), client.op(rewind)];
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
        let ended = client.wait_for(&restarting, SessionStatus::Crashed).close_reason.expect("a reason");
        assert!(ended.starts_with("spawn_failed(") && ended.contains("memory is short"), "{ended}");
        // Running code goes on, and sessions that exist run more.
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
        client.op(ExecCancel { execution: running.id.to_string() }).expect("cancelled");
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

/// The id of a new session of a user, from its template `theirs`.
fn session_of(user: OtherUser, daemon: &Daemon, worktree: &Path) -> String {
    user.session(daemon, worktree).ok().trim().to_owned()
}

/// Two users of one daemon, each with a folder and a template `theirs`.
struct TwoOwners {
    memory: Memory,
    daemon: Daemon,
    greedy: OtherUser,
    other: OtherUser,
    folders: [PathBuf; 2],
    /// The files of the kernel, and the folders.
    _kept: [TempDir; 2],
}

impl TwoOwners {
    /// Of a daemon for which memory is not short, with this limit of refusals; none without root.
    fn new(refuse: &str) -> Option<Self> {
        if !User::can_be_switched() {
            skip("root", "other users need root");
            return None;
        }
        let files = tempfile::tempdir().expect("a folder");
        std::fs::set_permissions(files.path(), Permissions::from_mode(0o755)).expect("chmod");
        let [meminfo, stalls] = ["meminfo", "stalls"].map(|name| files.path().join(name));
        // An eighth of it is what an owner holds above its share to be the cause.
        let memory = Memory { meminfo, stalls, total_mb: 1_000 };
        memory.set(4_000, 0);
        let config = memory.config().replace("refuse_below_mb = 500", refuse);
        let (daemon, worktrees) = shared_daemon(&config, &[]);
        let (greedy, other) = (OtherUser::named("bin"), OtherUser::named("sys"));
        let folders = [greedy, other].map(|user| user.folder(worktrees.path().join(user.uid.to_string())));
        let limits = ["--mem-mb", "600", "--cpu-ms", "60000", "--wall-ms", "60000"];
        for user in [greedy, other] {
            user.cli(&daemon, &[&["template", "create", "--name", "theirs"], &limits[..]].concat()).ok();
        }
        Some(Self { memory, daemon, greedy, other, folders, _kept: [files, worktrees] })
    }
}

#[test]
fn while_one_owner_holds_the_memory_others_begin_new_things_and_its_largest_work_ends() {
    let Some(two) = TwoOwners::new("refuse_below_mb = 100") else { return };
    let TwoOwners { memory, daemon, greedy, other, folders, _kept } = two;
    let run =
        |user: OtherUser, session: &str, code: &str| user.cli(&daemon, &["exec", "repl", session, code]).ok();
    let small = session_of(greedy, &daemon, &folders[0]);
    let large = session_of(greedy, &daemon, &folders[0]);
    let bystander = session_of(other, &daemon, &folders[1]);
    run(greedy, &large, "var kept = new Uint8Array(300 << 20).fill(7); kept.length");
    run(other, &bystander, "var n = 1");
    let script = folders[0].join("loops.js");
    // A worker that holds next to nothing would not be ended.
    let source = "const kept = new Uint8Array(32 << 20).fill(7); for (;;) {}";
    std::fs::write(&script, source).expect("a file");
    let script = script.to_string_lossy();
    let start =
        ["-q", "program", "start", &script, "--name", "loops", "--no-wait", "--template-id", "programs"];
    let limits = ["--cpu-ms", "60000", "--wall-ms", "60000"];
    greedy
        .cli(
            &daemon,
            &[&["template", "create", "--name", "programs", "--engine", "cvm"], &limits[..]].concat(),
        )
        .ok();
    greedy.cli(&daemon, &start).ok();
    memory.set(50, 0);
    until_memory_is(&daemon, "critical");
    // The owner of the greedy sessions is refused, others are not.
    let refused = greedy.session(&daemon, &folders[0]).fails(75);
    assert!(refused.contains("this owner holds its share"), "{refused}");
    let new = session_of(other, &daemon, &folders[1]);
    assert_eq!(run(other, &new, "6 * 7").trim(), "42");
    // Administrators see who it is, and others do not.
    let health = daemon.cli(&["--output", "json", "ops", "health"]).ok();
    let health: serde_json::Value = serde_json::from_str(&health).expect("JSON");
    let largest = &health["largest_owner"];
    assert_eq!(largest["owner"], format!("uid:{}", greedy.uid), "{health}");
    assert!(largest["held_mb"].as_u64() > Some(300) && largest["share_mb"].as_u64() < Some(300), "{health}");
    let seen = other.cli(&daemon, &["--output", "json", "ops", "health"]).ok();
    assert!(seen.contains("critical") && !seen.contains("owner"), "{seen}");
    // Memory stays short: the worker of the program ends first, then the large session, and nothing else.
    let mut client = daemon.client();
    let mut record = |session: &str| match client.op(SessionGet { session: session.to_owned() }) {
        Ok(session) => session,
        other => panic!("{other:?}"),
    };
    watch::wait_until(|| record(&large).status == SessionStatus::Crashed, || "it has not ended".to_owned());
    let ended = record(&large);
    assert_eq!(ended.close_reason.as_deref(), Some("killed(memory_pressure)"));
    assert!(ended.last_error.as_deref().is_some_and(|why| why.contains("more than its share")), "{ended:?}");
    let log = std::fs::read_to_string(daemon.place.path("daemon.log")).expect("a log");
    let program = log.find("ended a program's worker of the largest owner").expect("in the log");
    assert!(log.find("ends a session of the largest owner").is_some_and(|at| at > program), "{log}");
    // Without it its owner is no cause: the program goes on with another worker.
    let workers = || {
        let summary = greedy.cli(&daemon, &["--output", "json", "ops", "runtime-summary"]).ok();
        let summary: serde_json::Value = serde_json::from_str(&summary).expect("JSON");
        summary["active_sessions"].as_u64()
    };
    watch::wait_until(|| workers() == Some(2), || format!("{:?} workers", workers()));
    assert_eq!(run(other, &bystander, "n += 1").trim(), "2");
    assert_eq!(run(greedy, &small, "6 * 7").trim(), "42");
    memory.set(4_000, 0);
    until_memory_is(&daemon, "normal");
    session_of(greedy, &daemon, &folders[0]);
    assert_eq!(run(other, &bystander, "n += 1").trim(), "3");
    let health = daemon.cli(&["--output", "json", "ops", "health"]).ok();
    assert!(!health.contains("owner"), "{health}");
    greedy.cli(&daemon, &["exec", "cancel", "loops"]).ok();
    daemon.stop();
}

#[test]
fn a_program_of_the_owner_who_holds_the_memory_waits_for_it_and_can_be_cancelled_meanwhile() {
    let Some(two) = TwoOwners::new("refuse_below_mb = 100\nend_largest = false") else { return };
    let TwoOwners { memory, daemon, greedy, other, folders, _kept } = two;
    let large = session_of(greedy, &daemon, &folders[0]);
    session_of(other, &daemon, &folders[1]);
    let code = "var kept = new Uint8Array(300 << 20).fill(7); kept.length";
    greedy.cli(&daemon, &["exec", "repl", &large, code]).ok();
    let script = folders[0].join("waits.js");
    std::fs::write(&script, "CC('go on?')").expect("a file");
    for name in ["first", "second"] {
        greedy.cli(&daemon, &["program", "start", &script.to_string_lossy(), "--name", name]).ok();
    }
    // The worker that waited for an answer has gone.
    let workers = || {
        let summary = greedy.cli(&daemon, &["--output", "json", "ops", "runtime-summary"]).ok();
        let summary: serde_json::Value = serde_json::from_str(&summary).expect("JSON");
        summary["active_sessions"].as_u64()
    };
    watch::wait_until(|| workers() == Some(1), || format!("{:?} workers", workers()));
    memory.set(50, 0);
    until_memory_is(&daemon, "critical");
    let status = |name: &str| {
        let status = greedy.cli(&daemon, &["--output", "json", "program", "status", name]).ok();
        let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
        status["status"].as_str().unwrap_or_default().to_owned()
    };
    for name in ["first", "second"] {
        greedy.cli(&daemon, &["task", "submit", name, "yes", "--no-wait"]).ok();
    }
    greedy.cli(&daemon, &["exec", "cancel", "first"]).ok();
    watch::wait_until(|| status("first") == "cancelled", || status("first"));
    assert_eq!((status("second").as_str(), workers()), ("running", Some(1)), "it has no worker");
    memory.set(4_000, 0);
    watch::wait_until(|| status("second") == "ok", || status("second"));
    daemon.stop();
}
