//! A URL can do all that the control socket can.

use super::scene::{
    SERVER_USER, command_at, daemon, http_url, run_at, server_user, session, token_file, unix_url,
};
use nix::libc::SIGINT;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;
use vm_system_sandbox::pidfd::PidFd;
use vm_system_tests::command::{command, run, wait};
use vm_system_tests::place::User;
use vm_system_tests::{PATIENCE, as_both, program};

as_both!(
    verbs_do_the_same_over_every_url,
    owners_are_those_of_the_rest_api,
    events_are_followed_and_questions_answered,
    ctrl_c_cancels_the_execution,
    variables_name_the_daemon_and_the_token,
);

/// An agent that calls one tool.
pub(super) const AGENT: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"list_executions","arguments":{}}}
"#;

mod cases {
    use super::*;

    pub(super) fn verbs_do_the_same_over_every_url(user: User) {
        let daemon = daemon(user, "");
        for (number, url) in [unix_url(&daemon), http_url(&daemon)].iter().enumerate() {
            let template = format!("t{number}");
            let session = session(&daemon, url, "alice", &template);
            let alice = |arguments: &[&str]| run_at(&daemon, url, "alice", arguments).ok();
            assert_eq!(alice(&["exec", "repl", &session, "6 * 7"]), "42\n", "{url}");
            assert_eq!(alice(&["exec", "run-file", &session, "app.js"]), "from the file\n", "{url}");
            assert_eq!(alice(&["run", "--session", &session, "-e", "[1, 2]"]), "[ 1, 2 ]\n", "{url}");
            let shell = &mut command_at(&daemon, url, "alice", &["repl", &session]);
            assert_eq!(run(shell, "var x = 20\nx + 1\n").ok(), "21\n", "{url}");
            // A reply of many frames' chunks.
            let long = alice(&["exec", "repl", &session, "console.log('x'.repeat(400000))"]);
            assert_eq!(long.len(), 400_001, "{url}");
            assert!(alice(&["template", "list"]).contains(&template), "{url}");
            assert!(alice(&["ops", "health", "--output", "json"]).contains("ok"), "{url}");
            let agent = run(&mut command_at(&daemon, url, "alice", &["mcp"]), AGENT).ok();
            assert!(agent.contains("\"id\":2") && !agent.contains("\"isError\":true"), "{url}: {agent}");
            alice(&["session", "close", &session]);
        }
        // Without a token: the daemon's own user, as over the control socket.
        let local = daemon.cli(&["template", "list", "--output", "json"]).ok();
        assert!(local.contains("\"t0\"") && local.contains("\"t1\""), "{local}");
        for url in [unix_url(&daemon), http_url(&daemon)] {
            assert_eq!(
                run_at(&daemon, &url, "", &["template", "list", "--output", "json"]).ok(),
                local,
                "{url}"
            );
        }
        let audit = daemon.cli(&["ops", "audit", "--output", "csv"]).ok();
        assert!(audit.contains("alice,control,template create"), "{audit}");
        daemon.stop();
    }

    pub(super) fn owners_are_those_of_the_rest_api(user: User) {
        let daemon = daemon(user, "");
        let url = http_url(&daemon);
        let session = session(&daemon, &url, "alice", "hers");
        for arguments in [&["session", "get", &session][..], &["exec", "repl", &session, "1"]] {
            let refused = run_at(&daemon, &url, "bob", arguments).fails(1);
            assert!(refused.contains("SESSION_NOT_FOUND"), "{refused}");
        }
        assert!(!run_at(&daemon, &url, "bob", &["template", "list"]).ok().contains("hers"));
        let refused = run_at(&daemon, &url, "alice", &["ops", "shutdown"]).fails(77);
        assert!(refused.contains("NOT_PERMITTED"), "{refused}");
        // The same objects by REST.
        let path = format!("/api/v1/sessions/{session}");
        assert_eq!(daemon.http().bearer("alice-token").get(&path).status, 200);
        assert_eq!(daemon.http().bearer("bob-token").get(&path).status, 404);
        // An administrator without a token.
        run_at(&daemon, &url, "", &["session", "get", &session]).ok();
        daemon.stop();
    }

    pub(super) fn events_are_followed_and_questions_answered(user: User) {
        let daemon = daemon(user, "");
        let url = http_url(&daemon);
        let session = session(&daemon, &url, "alice", "waits");
        let code = "console.log('first'); const a = CC('how many?'); console.log('then', a); a";
        let waiting = run_at(&daemon, &url, "alice", &["--output", "json", "exec", "repl", &session, code]);
        let execution = serde_json::from_str::<Value>(&waiting.stdout).expect("JSON")["id"].clone();
        let execution = execution.as_str().expect("an id").to_owned();
        let follow = ["exec", "events", &execution, "--follow"];
        let mut follower = command_at(&daemon, &url, "alice", &follow);
        let mut follower = follower.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("follower");
        let mut lines = BufReader::new(follower.stdout.take().expect("piped"));
        let mut seen = String::new();
        // The echo of the input, the line, the question.
        while seen.matches('\n').count() < 3 {
            assert!(lines.read_line(&mut seen).expect("events") > 0, "{seen}");
        }
        assert!(!seen.contains("then seven"), "{seen}");
        run_at(&daemon, &url, "alice", &["task", "submit", &execution, "seven"]).ok();
        lines.read_to_string(&mut seen).expect("events");
        assert!(seen.contains("then seven"), "{seen}");
        assert_eq!(wait(&mut follower, PATIENCE), Some(Some(0)));
        daemon.stop();
    }

    pub(super) fn ctrl_c_cancels_the_execution(user: User) {
        let daemon = daemon(user, "");
        let url = http_url(&daemon);
        let session = session(&daemon, &url, "alice", "loops");
        let code = "console.log('begun'); for (;;) {}";
        let mut running = command_at(&daemon, &url, "alice", &["run", "--session", &session, "-e", code]);
        let mut running = running.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("run");
        let mut line = String::new();
        let output = running.stdout.take().expect("piped");
        BufReader::new(output).read_line(&mut line).expect("a line");
        assert_eq!(line, "begun\n");
        PidFd::open(running.id()).expect("our child").signal(SIGINT).expect("SIGINT");
        assert_eq!(wait(&mut running, PATIENCE), Some(Some(130)));
        let list = run_at(&daemon, &url, "alice", &["exec", "list", &session]).ok();
        assert!(list.contains("cancelled"), "{list}");
        assert_eq!(run_at(&daemon, &url, "alice", &["exec", "repl", &session, "1 + 1"]).ok(), "2\n");
        daemon.stop();
    }

    pub(super) fn variables_name_the_daemon_and_the_token(user: User) {
        let daemon = daemon(user, "");
        let mut created = command(&daemon.place, program::PRODUCT);
        created
            .env("VM_SYSTEM_URL", http_url(&daemon))
            .env(SERVER_USER, server_user(&daemon))
            .env("VM_SYSTEM_TOKEN_FILE", token_file(&daemon, "alice"));
        // As scripts of the original call it: `--db` before the verb is the daemon's.
        run(created.args(["--db", "x.db", "template", "create", "--name", "hers"]), "").ok();
        assert!(!daemon.place.worktree().join("x.db").exists());
        assert!(run_at(&daemon, &unix_url(&daemon), "alice", &["template", "list"]).ok().contains("hers"));
        // A flag takes precedence; the embedded supervisor of `run` needs no daemon.
        let mut local = command(&daemon.place, program::PRODUCT);
        local.env("VM_SYSTEM_URL", "http://127.0.0.1:1").arg("--socket").arg(daemon.place.socket());
        assert!(run(local.args(["template", "list"]), "").ok().contains("hers"));
        let mut local = command(&daemon.place, program::PRODUCT);
        local.env("VM_SYSTEM_URL", "http://127.0.0.1:1");
        assert_eq!(run(local.args(["run", "-e", "1 + 1"]), "").ok(), "2\n");
        daemon.stop();
    }
}
