//! The daemon as a process: one per state directory; stopped, killed, started again.

use crate::environment::{DEADLINE, Run, TestEnvironment, ends, signal_child, wait};
use nix::sys::signal::Signal;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;
use vm_system_sandbox::pidfd::PidFd;

/// Waits until a process has exited (it may be a zombie).
fn gone(pid: u32) {
    if let Ok(process) = PidFd::open(pid) {
        assert!(ends(&process), "process {pid} is still there");
    }
}

/// The processes of the jail: the keeper and its children.
fn jail(env: &TestEnvironment) -> Vec<u32> {
    let info: serde_json::Value =
        serde_json::from_str(&env.run(["ops", "runtime", "--output", "json"]).ok()).unwrap();
    let keeper = info["keeper_pid"].as_u64().unwrap();
    let children = std::fs::read_to_string(format!("/proc/{keeper}/task/{keeper}/children")).unwrap();
    let children = children.split_whitespace().map(|pid| pid.parse().unwrap());
    std::iter::once(u32::try_from(keeper).unwrap()).chain(children).collect()
}

#[test]
fn sigterm_stops_it_and_nothing_is_left() {
    let env = TestEnvironment::new();
    let mut daemon = env.serve();
    env.session();
    let jail = jail(&env);
    assert!(jail.len() >= 3, "keeper, zygote, worker: {jail:?}");
    daemon.signal(Signal::SIGTERM);
    assert_eq!(daemon.next_notice(), "STOPPING=1");
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
    jail.into_iter().for_each(gone);
    assert!(!env.socket().exists());
    env.run(["ops", "health"]).failed(69);
}

#[test]
fn the_verb_stops_it_too_and_closes_its_sessions() {
    let env = TestEnvironment::new();
    let mut daemon = env.serve_with(&["--config", config(&env, "drain_s = 0").to_str().unwrap()]);
    let session = env.session_of(&["--cpu-ms", "60000", "--wall-ms", "60000"]);
    let mut busy = env.command(["exec", "repl", &session, "console.log('up'); for (;;) {}"]).spawn().unwrap();
    first_line(&mut busy);
    env.run(["ops", "shutdown"]).ok();
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
    assert_eq!(wait(&mut busy).code(), Some(130), "{}", daemon.log());
}

#[test]
fn a_killed_daemon_leaves_no_process_and_the_next_one_reports_the_crash() {
    let env = TestEnvironment::new();
    let config = config(&env, "keeper_grace_s = 0");
    let mut daemon = env.serve_with(&["--config", config.to_str().unwrap()]);
    let session = env.session();
    let jail = jail(&env);
    daemon.signal(Signal::SIGKILL);
    daemon.wait();
    assert!(env.socket().exists(), "a killed daemon leaves its socket");
    let _next = env.serve();
    let record: serde_json::Value =
        serde_json::from_str(&env.run(["session", "get", &session, "--output", "json"]).ok()).unwrap();
    assert_eq!(
        (record["status"].as_str(), record["close_reason"].as_str()),
        (Some("crashed"), Some("host_restart"))
    );
    jail.into_iter().for_each(gone);
}

#[test]
fn a_second_one_is_refused_with_the_pid_of_the_first() {
    let env = TestEnvironment::new();
    let daemon = env.serve();
    let state = env.path("state");
    let error = env.run(["serve", "--state-dir", state.to_str().unwrap()]).failed(75);
    assert!(error.contains(&format!("pid {}", daemon.pid())), "{error}");
    let other = env.path("other");
    let (other, socket) = (other.to_str().unwrap(), env.socket());
    let error = env.run(["serve", "--state-dir", other, "--socket", socket.to_str().unwrap()]).failed(75);
    assert!(error.contains("another supervisor listens at"), "{error}");
    env.run(["ops", "health"]).ok();
}

#[test]
fn files_are_closed_to_others() {
    let env = TestEnvironment::new();
    let _daemon = env.serve();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&env.socket()), 0o660);
    assert_eq!(mode(&env.path("state")) & 0o007, 0);
    assert_eq!(mode(&env.path("state").join("vm-system.db")), 0o600);
}

#[test]
fn sighup_does_not_end_it() {
    let env = TestEnvironment::new();
    let daemon = env.serve();
    daemon.signal(Signal::SIGHUP);
    env.run(["ops", "health"]).ok();
}

#[test]
fn an_invalid_config_file_is_a_usage_error_with_its_line() {
    let env = TestEnvironment::new();
    let config = config(&env, "durabilty = \"full\"");
    let args = ["serve", "--config", config.to_str().unwrap(), "--state-dir", "state"];
    let error = env.run(args).failed(2);
    assert!(error.contains("config.toml") && error.contains("durabilty"), "{error}");
    // Values that are found to be wrong when they are used.
    for (text, line, why) in [
        ("\n[http]\ntokens = \"/no/such/file\"", 3, "the tokens in /no/such/file"),
        ("[http]\nui_dir = \"/no/such/folder\"", 2, "/no/such/folder"),
        ("[http]\nui_dir = \"/etc/passwd\"", 2, "/etc/passwd"),
        ("\n\nsecrets = \"/no/such/file\"", 3, "the secrets in /no/such/file"),
        ("[http]\n\nlisten = [\"0.0.0.0:0\"]", 3, "there are no tokens"),
        ("[cgroups]\nsubtree = \"/etc\"", 2, "/etc is not a folder of a cgroup"),
        ("\nworktree_roots = [\"/etc/passwd\"]", 2, "worktree root /etc/passwd"),
    ] {
        let config = self::config(&env, text);
        let error =
            env.run(["serve", "--config", config.to_str().unwrap(), "--state-dir", "state"]).failed(2);
        assert!(
            error.contains(&format!("config.toml: line {line}: ")) && error.contains(why),
            "{text}: {error}"
        );
    }
}

#[test]
fn a_client_that_disconnects_in_mid_reply_does_not_affect_others() {
    let env = TestEnvironment::new();
    let _daemon = env.serve();
    let session = env.session();
    for _ in 0..5 {
        let code = "for (let i = 0; i < 900; i++) console.log('x'.repeat(400))";
        let mut child = env.command(["exec", "repl", &session, code]).spawn().unwrap();
        first_line(&mut child);
        signal_child(&child, Signal::SIGKILL);
        wait(&mut child);
        let start = Instant::now();
        // The execution continues to its end without the client.
        while env.run(["exec", "repl", &session, "1"]).code == Some(75) {
            assert!(start.elapsed() < DEADLINE);
        }
    }
    assert_eq!(env.run(["exec", "repl", &session, "6 * 7"]).ok(), "42\n");
}

fn config(env: &TestEnvironment, text: &str) -> std::path::PathBuf {
    env.file("config.toml", text)
}

/// Waits for the first line that a child prints, and leaves its pipe open.
pub(crate) fn first_line(child: &mut std::process::Child) -> String {
    use std::io::Read as _;
    let stdout = child.stdout.as_mut().expect("a pipe");
    let mut line = Vec::new();
    let mut byte = [0];
    while stdout.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
        line.push(byte[0]);
    }
    String::from_utf8(line).unwrap()
}

#[test]
fn two_daemons_with_two_state_directories_are_independent() {
    let (one, two) = (TestEnvironment::new(), TestEnvironment::new());
    let (_first, _second) = (one.serve(), two.serve());
    let session = one.session();
    assert_eq!(one.run(["exec", "repl", &session, "1"]).ok(), "1\n");
    two.run(["exec", "repl", &session, "1"]).failed(1);
    let found = two
        .command(["ops", "health", "--socket"])
        .arg(one.socket())
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(found.status.success());
}

#[test]
fn doctor_reports_every_wall_with_and_without_a_daemon() {
    let env = TestEnvironment::new();
    let walls = |list: &serde_json::Value, field: &str| -> Vec<String> {
        let list = list.as_array().expect("a list of walls");
        let explained = list.iter().filter(|wall| wall[field] == true || wall["detail"] != "");
        explained.map(|wall| wall["name"].as_str().expect("a name").to_owned()).collect()
    };
    let check = |output: &str| {
        let report: serde_json::Value = serde_json::from_str(output).expect("JSON");
        assert_eq!((&report["ok"], report["problem"].is_null()), (&true.into(), true), "{output}");
        let (jail, host) = (walls(&report["layers"], "in_force"), walls(&report["host"], "works"));
        // A missing wall has its reason as detail.
        assert_eq!(jail.len(), report["layers"].as_array().map_or(0, Vec::len), "{output}");
        assert_eq!(host.len(), report["host"].as_array().map_or(0, Vec::len), "{output}");
        for wall in ["namespaces", "empty root", "no privileges", "seccomp", "resource limits", "Landlock"] {
            assert!(jail.iter().any(|name| name == wall) && host.iter().any(|name| name == wall), "{wall}");
        }
    };
    check(&env.run(["-q", "ops", "doctor", "--output", "json"]).ok());
    let _daemon = env.serve();
    check(&env.run(["ops", "doctor", "--output", "json"]).ok());
    let table = env.run(["ops", "doctor"]).ok();
    assert!(table.contains("In the jail:") && table.contains("Tried on this machine:"), "{table}");
}

#[test]
fn a_daemon_in_the_background_is_ready_when_its_command_returns() {
    let env = TestEnvironment::new();
    let state = env.path("state");
    let elsewhere = env.path("run").join("elsewhere.sock");
    let detach = ["serve", "--detach", "--wait-ready=30s", "--durability", "normal", "--state-dir"];
    let serve = |more: &[&str]| {
        let mut command = env.command(detach);
        command.arg(&state).args(more).env_remove("VM_SYSTEM_SOCKET");
        Run::from_output(&command.output().unwrap())
    };
    assert!(serve(&["--ui-dir", "/nowhere"]).failed(1).contains("/nowhere"));
    let started = serve(&["--socket", elsewhere.to_str().unwrap(), "--output", "json"]).ok();
    let started: serde_json::Value = serde_json::from_str(&started).unwrap();
    assert_eq!(started["socket"], elsewhere.to_str().unwrap());
    // Found through the state directory, in which the daemon has recorded its socket.
    let in_state = ["--state-dir", state.to_str().unwrap()];
    let health = env.run(in_state.iter().chain(&["ops", "health"])).ok();
    let facts: Vec<_> = health.lines().map(|line| line.split_whitespace().next().unwrap_or("")).collect();
    assert_eq!(
        facts,
        ["status", "memory", "database.used_bytes", "database.free_bytes", "database.gives_back", "stuck"],
        "{health}"
    );
    let error = serve(&[]).failed(75);
    let pid = started["pid"].as_u64().unwrap();
    assert!(error.contains(&format!("(pid {pid}, socket {})", elsewhere.display())), "{error}");
    // The next one can start at once.
    for _ in 0..2 {
        env.run(in_state.iter().chain(&["ops", "shutdown"])).ok();
        serve(&["--socket", elsewhere.to_str().unwrap()]).ok();
    }
    let stopping = env.run(in_state.iter().chain(&["ops", "shutdown", "--no-wait"])).ok();
    assert_eq!(stopping, "The daemon is stopping.\n");
    let log = std::fs::read_to_string(state.join("daemon.log")).unwrap();
    assert!(log.contains("ready") && !log.contains("WARN"), "{log}");
}

#[test]
fn a_client_can_wait_for_a_daemon_that_is_starting() {
    let env = TestEnvironment::new();
    let mut waiting = env.command(["ops", "health", "--wait-ready=30s"]).spawn().unwrap();
    let daemon = env.serve();
    assert!(wait(&mut waiting).success());
    drop(daemon);
    let error = env.run(["ops", "health", "--wait-ready=100ms"]).failed(69);
    assert!(error.contains("no supervisor responds"), "{error}");
}

#[test]
fn hints_repeat_the_options_that_name_the_daemon() {
    let env = TestEnvironment::new();
    let error = env.run(["--state-dir", "/nowhere/the state", "session", "list"]).failed(69);
    assert!(error.contains("`vm-system --state-dir '/nowhere/the state' serve --detach`"), "{error}");
    let _daemon = env.serve();
    let socket = env.socket();
    let error = env.run(["exec", "list", "none", "--socket", socket.to_str().unwrap()]).failed(1);
    assert!(!error.contains("`vm-system session"), "{error}");
}
