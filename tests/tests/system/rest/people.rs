//! A daemon with people: alice and bob are users, root is an administrator, each with a token.

use serde_json::{Value, json};
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::http::Http;
use vm_system_tests::place::{TestDir, User};

/// Tokens with the SHA-256 of each (hexadecimal), role and name.
pub(super) const ALICE: &str = "alice-token";
pub(super) const BOB: &str = "bob-token";
pub(super) const ROOT: &str = "root-token";
const TOKENS: &[(&str, &str, &str)] = &[
    ("alice", "user", "9c220f200955d76c0a38d308225e0ef10c5f971acaf2f8d1d8f732affa5bd1dc"),
    ("bob", "user", "97dd3707015dcf069cf73022ed7173b1165db6eff24b441cb57fd069a8c4e525"),
    ("root", "admin", "2cff60a244379d429c1877c36ee7f37da39ad06073d31b8d90fccd15376f2adf"),
];

/// The text of a file of tokens.
pub(super) fn book(names: &[&str]) -> String {
    let entry = |(name, role, sha256): &(&str, &str, &str)| {
        format!("[[token]]\nname = \"{name}\"\nrole = \"{role}\"\nsha256 = \"{sha256}\"\n")
    };
    TOKENS.iter().filter(|(name, ..)| names.contains(name)).map(entry).collect()
}

/// Writes the file of tokens, readable by its owner only.
pub(super) fn write_book(place: &TestDir, text: &str) {
    let path = place.path("tokens.toml");
    std::fs::write(&path, text).expect("tokens");
    place.give_to_daemon(&path);
}

/// A daemon on loopback and on the Unix socket, with all three tokens.
pub(super) fn daemon(arguments: &[&str]) -> Daemon {
    daemon_as(User::AsStarted, arguments)
}

/// As [`daemon`], of another user.
pub(super) fn daemon_as(user: User, arguments: &[&str]) -> Daemon {
    let place = TestDir::new(user);
    place.write("app.js", "1");
    write_book(&place, &book(&["alice", "bob", "root"]));
    let mut all: Vec<String> = vec!["--listen".to_owned(), "127.0.0.1:0".to_owned(), "--tokens".to_owned()];
    all.push(place.path("tokens.toml").to_string_lossy().into_owned());
    all.extend(arguments.iter().map(|argument| (*argument).to_owned()));
    // Users may choose worktrees only below the operator's roots.
    let root = place.path("");
    let root = root.display();
    let config = format!("[[worktree_root]]\npath = \"{root}\"\nowners = [\"alice\", \"bob\"]\n");
    Daemon::start_with(place, &DaemonOptions { arguments: all, config, ..DaemonOptions::default() })
}

/// The rows of one owner: a template with one of each part, a session, an execution, a program with a task.
#[derive(Debug)]
pub(super) struct Belongings {
    pub(super) template: String,
    pub(super) capability: String,
    pub(super) file: String,
    pub(super) session: String,
    pub(super) execution: String,
    pub(super) program: String,
    /// A schedule of the program, which cancels the execution before.
    pub(super) schedule: String,
    /// A waiting execution of the program, and its last checkpoint.
    pub(super) run: String,
    pub(super) checkpoint: u64,
}

/// Creates all of it.
pub(super) fn belongings(http: &mut Http, daemon: &Daemon, name: &str) -> Belongings {
    let mut create = |path: &str, body: &Value| {
        let response = http.post(&format!("/api/v1{path}"), body);
        assert_eq!(response.status, 201, "{path}: {}", response.text());
        response.json()
    };
    let id = |value: &Value| value["id"].as_str().expect("an id").to_owned();
    let template = id(&create("/templates", &json!({ "name": name })));
    let worktree = daemon.place.worktree();
    let session = json!({
        "template_id": template, "workspace_id": name, "base_commit_oid": "c", "worktree_path": worktree,
    });
    let session = id(&create("/sessions", &session));
    let execution = id(&create("/executions/repl", &json!({ "session_id": session, "input": "1" })));
    let parts = format!("/templates/{template}");
    let capability = id(&create(&format!("{parts}/capabilities"), &json!({ "kind": "env", "name": "X" })));
    let file = id(&create(&format!("{parts}/startup-files"), &json!({ "path": "app.js" })));
    let source = "function main() { let x = 1; const a = CC('how many?'); return x + Number(a); }";
    let program = id(&create("/programs", &json!({ "name": name, "source": source })));
    let schedule = json!({ "name": name, "cron": "0 0 29 2 *", "program": program, "overlap": "cancel" });
    let schedule = id(&create("/schedules", &schedule));
    let run = id(&create("/executions/program", &json!({ "program_id": program })));
    let kept = http.get(&format!("/api/v1/executions/{run}/checkpoints")).json();
    let numbers = kept.as_array().expect("a list").iter().filter_map(|kept| kept["seq"].as_u64());
    let checkpoint = numbers.max().expect("the pause was kept");
    Belongings { template, capability, file, session, execution, program, schedule, run, checkpoint }
}
