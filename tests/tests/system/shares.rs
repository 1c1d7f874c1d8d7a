//! The most that one user can take of each thing that is counted: other users and root still get theirs.

use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::http::Http;
use vm_system_tests::other_user::{OtherUser, shared_daemon, shared_daemon_with};
use vm_system_tests::place::User;
use vm_system_tests::{observe, program, skip, watch};

/// Connections of one user; ends with this value.
struct Crowd {
    process: Child,
    /// How many it has.
    count: usize,
    /// Why there is no further one.
    refusal: String,
}

impl Crowd {
    fn gather(user: OtherUser, arguments: &[&str]) -> Self {
        let mut command = user.command(&program::path(program::CROWD, User::Unprivileged));
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("crowd");
        let mut line = String::new();
        let output = process.stdout.take().expect("piped");
        BufReader::new(output).read_line(&mut line).expect("its line");
        let (count, refusal) = line.trim_end().split_once(' ').expect("two parts");
        Self { process, count: count.parse().expect("a number"), refusal: refusal.to_owned() }
    }

    fn of_clients(user: OtherUser, daemon: &Daemon, count: usize) -> Self {
        let socket = daemon.place.socket();
        Self::gather(user, &["clients", socket.to_str().expect("UTF-8"), &count.to_string()])
    }

    /// Connections that are closed as soon as they are open; returns after some thousands of them.
    fn passing(user: OtherUser, socket: &Path) -> Self {
        Self::gather(user, &["passing", socket.to_str().expect("UTF-8"), "5000"])
    }

    fn of_streams(user: OtherUser, daemon: &Daemon, path: &str, count: usize) -> Self {
        let socket = daemon.place.http_socket();
        Self::gather(user, &["streams", socket.to_str().expect("UTF-8"), path, &count.to_string()])
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

fn needs_root() -> bool {
    if !User::can_be_switched() {
        skip("root", "other users need root");
    }
    User::can_be_switched()
}

#[test]
fn idle_connections_of_one_user_keep_no_client_away_from_the_control_socket() {
    if !needs_root() {
        return;
    }
    let (daemon, _worktrees) = shared_daemon("[shares.connections]\nmost = 64\n", &[]);
    let (greedy, other) = (OtherUser::named("bin"), OtherUser::named("sys"));
    let idle = Crowd::of_clients(greedy, &daemon, 300);
    assert_eq!((idle.count, idle.refusal.as_str()), (300, "none"), "its own idle connections make way");
    daemon.cli(&["session", "list"]).ok();
    other.cli(&daemon, &["session", "list"]).ok();
    greedy.cli(&daemon, &["session", "list"]).ok();
    // Connections that other users hold longer than that stay.
    let mut root = daemon.client();
    let _more = Crowd::of_clients(greedy, &daemon, 100);
    root.op(vm_system_protocol::control::HealthGet).expect("still connected");
    drop(idle);
    daemon.stop();
}

#[test]
fn connections_that_come_and_go_keep_nobody_away_and_use_up_no_descriptors() {
    if !needs_root() {
        return;
    }
    let more = "[shares.connections]\nmost = 64\n[shares.http_connections]\nmost = 64\n";
    let (daemon, _worktrees) = shared_daemon(more, &[]);
    let (greedy, other) = (OtherUser::named("bin"), OtherUser::named("sys"));
    other.cli(&daemon, &["session", "list"]).ok();
    let before = observe::descriptors(daemon.pid());
    for socket in [daemon.place.socket(), daemon.place.http_socket()] {
        let flood = Crowd::passing(greedy, &socket);
        for _ in 0..20 {
            daemon.client().op(vm_system_protocol::control::HealthGet).expect("root is served");
            other.cli(&daemon, &["session", "list"]).ok();
            // At most the shares, those that have made way, and a few that are being refused.
            let more = observe::descriptors(daemon.pid()).saturating_sub(before);
            assert!(more <= 64 + 64 + 32, "{more} more descriptors");
        }
        drop(flood);
    }
    daemon.stop();
}

#[test]
fn half_requests_of_one_user_keep_nobody_away_from_any_listener() {
    const REQUESTS: usize = 20;
    if !needs_root() {
        return;
    }
    let (daemon, _worktrees) = shared_daemon("", &["--listen", "127.0.0.1:0"]);
    let (http, control) = (daemon.place.http_socket(), daemon.place.socket());
    let [http, control] = [&http, &control].map(|path| path.to_str().expect("UTF-8"));
    let tcp = daemon.addresses()[0].to_string();
    // Over loopback the user database decides who is in the group.
    let (known, unknown, other) = (
        OtherUser::named("bin"),
        OtherUser { uid: 54_321, ..OtherUser::named("bin") },
        OtherUser::named("daemon"),
    );
    known.cli(&daemon, &["session", "list"]).ok();
    // The other one is not known to the daemon when the first flood begins.
    for flooding in [unknown, known] {
        for target in [http, control, &tcp] {
            let flood = Crowd::gather(flooding, &["heads", target, "12000"]);
            for server in [http, &tcp] {
                let served = Crowd::gather(other, &["queries", server, &REQUESTS.to_string()]);
                assert_eq!(
                    (served.count, served.refusal.as_str()),
                    (REQUESTS, "none"),
                    "{flooding:?} at {target}"
                );
            }
            let reached = Crowd::gather(other, &["reaches", control, &REQUESTS.to_string()]);
            assert_eq!(
                (reached.count, reached.refusal.as_str()),
                (REQUESTS, "none"),
                "{flooding:?} at {target}"
            );
            other.cli(&daemon, &["session", "list"]).ok();
            drop(flood);
        }
    }
    daemon.stop();
}

/// A running execution of the user, for streams.
fn execution(user: OtherUser, daemon: &Daemon, worktrees: &tempfile::TempDir) -> String {
    let folder = user.folder(worktrees.path().join("theirs"));
    user.cli(daemon, &["template", "create", "--name", "theirs"]).ok();
    let session = user.session(daemon, &folder).ok().trim().to_owned();
    let started =
        user.cli(daemon, &["--output", "json", "exec", "repl", &session, "CC('wait')", "--no-wait"]);
    let started: Value = serde_json::from_str(&started.ok()).expect("JSON");
    started["id"].as_str().expect("an id").to_owned()
}

#[test]
fn one_user_has_a_share_of_the_streams_of_events() {
    if !needs_root() {
        return;
    }
    let (daemon, worktrees) = shared_daemon("[shares.streams]\nmost = 40\nreserved = 2\n", &[]);
    let greedy = OtherUser::named("bin");
    let events = format!("/api/v1/executions/{}/events", execution(greedy, &daemon, &worktrees));
    let streams = Crowd::of_streams(greedy, &daemon, &events, 40);
    assert_eq!((streams.count, streams.refusal.as_str()), (19, "Some(503)"), "half of what is not reserved");
    let mut http = Http::unix(&daemon.place.http_socket());
    http.send(&http.request_bytes("GET", &events, &[("accept", "text/event-stream")], None));
    assert_eq!(http.head().expect("a response").0, 200, "others still get one");
    drop(streams);
    daemon.stop();
}

#[test]
fn one_user_has_a_share_of_the_sessions() {
    if !needs_root() {
        return;
    }
    let more = "max_sessions = 9\n[shares.sessions]\nper_owner = 3\nreserved = 1\n";
    let (daemon, worktrees) = shared_daemon(more, &[]);
    let (greedy, other) = (OtherUser::named("bin"), OtherUser::named("sys"));
    let [own, others] = [greedy, other].map(|user| {
        user.cli(&daemon, &["template", "create", "--name", "theirs"]).ok();
        user.folder(worktrees.path().join(user.uid.to_string()))
    });
    for _ in 0..3 {
        greedy.session(&daemon, &own).ok();
    }
    let refused = greedy.session(&daemon, &own).fails(75);
    assert!(refused.contains("CAPACITY_EXCEEDED") && refused.contains("[shares.sessions]"), "{refused}");
    other.session(&daemon, &others).ok();
    daemon.stop();
}

#[test]
fn one_user_cannot_take_the_descriptors_of_all() {
    const DESCRIPTORS: u64 = 256;
    if !needs_root() {
        return;
    }
    let options = DaemonOptions { descriptors: Some(DESCRIPTORS), ..DaemonOptions::default() };
    let (daemon, worktrees) = shared_daemon_with("", &[], options);
    let (greedy, other) = (OtherUser::named("bin"), OtherUser::named("sys"));
    let [own, others] = [greedy, other].map(|user| {
        let template = ["template", "create", "--name", "theirs", "--module", "fs", "--module", "database"];
        user.cli(&daemon, &template).ok();
        user.folder(worktrees.path().join(user.uid.to_string()))
    });
    let doctor = daemon.cli(&["ops", "doctor"]).ok();
    let row =
        doctor.lines().find(|line| line.contains("256 descriptors")).unwrap_or_else(|| panic!("{doctor}"));
    assert!(row.contains("shares.sessions") && row.contains("LimitNOFILE="), "{row}");
    // Sessions with both brokers, until there are no more; then as many connections as it gets.
    let mut count = 0;
    let refused = loop {
        let created = greedy.session(&daemon, &own);
        if created.code != Some(0) {
            break created.fails(75);
        }
        let calls =
            "require('fs').readdirSync('.'); require('database').exec('create table if not exists t (x)')";
        let called = greedy.cli(&daemon, &["exec", "repl", created.stdout.trim(), calls]);
        called.ok();
        count += 1;
        assert!(count < DESCRIPTORS, "there is no limit");
    };
    assert!(refused.contains("[shares.sessions]") && refused.contains("LimitNOFILE="), "{refused}");
    assert!(count >= 3, "{count} sessions");
    let _idle = Crowd::of_clients(greedy, &daemon, 100);
    // A user who was not looked up before, root, and a session of the first: all are served.
    let session = other.session(&daemon, &others).ok().trim().to_owned();
    let read = other.cli(&daemon, &["exec", "repl", &session, "require('fs').readdirSync('.').length"]).ok();
    assert!(read.contains('0'), "{read}");
    daemon.cli(&["ops", "health"]).ok();
    let program = others.join("program.js");
    std::fs::write(&program, "function main() { return CC('one?'); }").expect("written");
    let started = other.cli(&daemon, &["program", "start", &program.to_string_lossy(), "--name", "p"]).ok();
    assert!(started.contains("one?"), "{started}");
    other.cli(&daemon, &["task", "submit", "p", "yes"]).ok();
    let free = DESCRIPTORS as usize - observe::descriptors(daemon.pid());
    assert!(free >= 32, "{free} descriptors are free");
    daemon.stop();
}

#[test]
fn one_user_has_a_share_of_the_workers_of_programs() {
    if !needs_root() {
        return;
    }
    let (daemon, worktrees) = shared_daemon("[durable]\nworkers = 4\n", &[]);
    let (greedy, other) = (OtherUser::named("bin"), OtherUser::named("sys"));
    let source = |user: OtherUser, text: &str| {
        let path = user.folder(worktrees.path().join(user.uid.to_string())).join("program.js");
        std::fs::write(&path, text).expect("written");
        path.to_string_lossy().into_owned()
    };
    let limits = ["--engine", "cvm", "--cpu-ms", "600000", "--wall-ms", "3600000"];
    greedy.cli(&daemon, &[&["template", "create", "--name", "long"], &limits[..]].concat()).ok();
    let endless = source(greedy, "function main() { for (;;) {} }");
    // Compiling needs a worker, too.
    greedy.cli(&daemon, &["program", "load", &endless]).ok();
    // Starts that get no worker wait for one.
    let starts = (0..8).map(|_| {
        let mut start = greedy.command(&program::path(program::PRODUCT, User::Unprivileged));
        start.args(["program", "start", "program", "--template-id", "long", "--no-wait"]);
        start.env("VM_SYSTEM_SOCKET", daemon.place.socket()).stdout(Stdio::null()).stderr(Stdio::null());
        start.spawn().expect("started")
    });
    let starts: Vec<Child> = starts.collect();
    let takes_all_it_gets = || {
        greedy.cli(&daemon, &["program", "runs"]).ok().lines().filter(|line| line.contains("running")).count()
            >= 2
    };
    watch::wait_until(takes_all_it_gets, || "its programs do not run".to_owned());
    let short = source(other, "function main() { return 6 * 7; }");
    // Each time a worker becomes free, requests of both wait for it.
    for _ in 0..10 {
        let result = other.cli(&daemon, &["program", "start", &short]).ok();
        assert!(result.contains("42"), "{result}");
    }
    for mut start in starts {
        start.kill().expect("killed");
        start.wait().expect("reaped");
    }
    daemon.stop();
}

#[test]
fn half_frames_of_one_user_take_its_share_of_memory_and_no_more() {
    if !needs_root() {
        return;
    }
    let (daemon, _worktrees) = shared_daemon("[shares.memory_mb]\nmost = 64\n", &[]);
    let (greedy, other) = (OtherUser::named("bin"), OtherUser::named("sys"));
    let socket = daemon.place.socket();
    let halves = Crowd::gather(greedy, &["halves", socket.to_str().expect("UTF-8"), "40", "8"]);
    // 16 MiB for each frame of 8 (its bytes and its value) of half of 62 MiB, and what the kernel keeps for each connection.
    assert!(halves.count <= 8 + 40, "the daemon has taken {} MiB of 320", halves.count);
    let large = format!("[{}]", "0,".repeat(1 << 20));
    let refused = other.cli(&daemon, &["exec", "repl", "nothing", &large[..100_000]]).fails(1);
    assert!(refused.contains("SESSION_NOT_FOUND"), "others are served: {refused}");
    drop(halves);
    daemon.stop();
}

/// An execution with about so many MiB of output.
fn output(user: OtherUser, daemon: &Daemon, worktrees: &tempfile::TempDir, mib: usize) -> String {
    let folder = user.folder(worktrees.path().join(format!("output-{}", user.uid)));
    user.cli(daemon, &["template", "create", "--name", "theirs", "--max-output-kb", "8192"]).ok();
    let session = user.session(daemon, &folder).ok().trim().to_owned();
    let code = format!("for (let i = 0; i < {mib} * 16; i++) console.log('x'.repeat(65000))");
    let run = ["--output", "json", "exec", "repl", &session, &code];
    let ended: Value = serde_json::from_str(&user.cli(daemon, &run).ok()).expect("JSON");
    ended["id"].as_str().expect("an id").to_owned()
}

#[test]
fn replies_that_one_user_does_not_read_take_its_share_of_memory_and_others_get_theirs() {
    if !needs_root() {
        return;
    }
    let (daemon, worktrees) = shared_daemon("[shares.memory_mb]\nmost = 64\n", &[]);
    let (greedy, other) = (OtherUser::named("bin"), OtherUser::named("sys"));
    let execution = output(greedy, &daemon, &worktrees, 7);
    let before = observe::anonymous_kib(daemon.pid());
    let socket = daemon.place.socket();
    let unread = Crowd::gather(greedy, &["unread", socket.to_str().expect("UTF-8"), "10", &execution]);
    assert_eq!((unread.count, unread.refusal.as_str()), (10, "none"));
    for _ in 0..30 {
        other.cli(&daemon, &["session", "list"]).ok();
        let grown = observe::anonymous_kib(daemon.pid()).saturating_sub(before);
        // 300 replies of 7 MiB; the budget is 64 MiB, and the heap keeps some of what was used once.
        assert!(grown < 400 * 1024, "the daemon has grown by {grown} KiB");
    }
    // Another user's large reply is not kept waiting by those.
    let own = output(other, &daemon, &worktrees, 7);
    assert!(other.cli(&daemon, &["exec", "events", &own]).ok().len() > 7_000_000);
    drop(unread);
    daemon.stop();
}
