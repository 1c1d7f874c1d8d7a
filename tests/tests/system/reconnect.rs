//! Clients that wait while the daemon is killed and started again: commands, streams over HTTP, agents on standard streams, and
//! requests that are repeated with their key.

use serde_json::{Value, json};
use std::io::Write as _;
use std::process::{Child, Stdio};
use std::sync::mpsc::Receiver;
use vm_system_protocol::control::{ExecCancel, ExecEvents, ExecList, ExecStart, Verb as _};
use vm_system_protocol::model::{ExecutionStatus, Session, Settings};
use vm_system_tests::client::{record, repl, value};
use vm_system_tests::command::{CommandOutput, command, line_with, lines};
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::http::Http;
use vm_system_tests::place::{TestDir, User};
use vm_system_tests::scene::Scene;
use vm_system_tests::{PATIENCE, as_both, program, watch};

as_both!(
    a_command_that_waits_gets_all_of_its_output,
    a_command_whose_session_is_gone_says_so,
    events_of_a_session_are_followed_across_daemons,
    a_request_with_a_key_waits_for_the_execution_that_it_has_begun,
    an_agent_goes_on_with_the_next_daemon,
);

/// A command of the CLI in the background.
struct Background {
    child: Child,
    lines: Receiver<String>,
}

impl Background {
    fn start(place: &TestDir, arguments: &[&str]) -> Self {
        let mut command = command(place, program::PRODUCT);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it can be started");
        let lines = lines(child.stdout.take().expect("a pipe"));
        Self { child, lines }
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("a line")
    }

    fn end(self) -> CommandOutput {
        let stdout = self.lines.iter().fold(String::new(), |text, line| text + &line + "\n");
        let output = self.child.wait_with_output().expect("it ends");
        CommandOutput {
            code: output.status.code(),
            stdout,
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

fn restart(daemon: Daemon) -> Daemon {
    let (place, _) = daemon.kill();
    Daemon::start_with(place, &DaemonOptions::default())
}

/// Prints 0 to 39 in about a second.
const LINES: &str =
    "for (let n = 0; n < 40; n++) { console.log(n); await new Promise(go => setTimeout(go, 25)) } 'end'";

fn expected(from: usize) -> String {
    (from..40).fold(String::new(), |text, line| text + &line.to_string() + "\n")
}

mod cases {
    use super::*;

    pub(super) fn a_command_that_waits_gets_all_of_its_output(user: User) {
        let mut scene = Scene::with_settings(user, Settings::default());
        let session = scene.session();
        let id = session.id.to_string();
        let waiting = Background::start(&scene.daemon.place, &["exec", "repl", &id, LINES]);
        assert_eq!(waiting.line(), "0");
        let execution = scene.client.inspect(&session).expect("live").running_execution.expect("it runs");
        let execution = execution.to_string();
        let following = Background::start(
            &scene.daemon.place,
            &["exec", "events", &execution, "--follow", "--output", "json"],
        );
        let first: Value = serde_json::from_str(&following.line()).expect("an event");
        assert_eq!(first["seq"], 1);
        drop(scene.client);
        let daemon = restart(scene.daemon);
        // A browser's next attempt, with the last number that it has.
        let mut stream = daemon.http();
        let fields = [("accept", "text/event-stream"), ("last-event-id", "5")];
        stream.send(&stream.request_bytes(
            "GET",
            &format!("/api/v1/executions/{execution}/events"),
            &fields,
            None,
        ));
        assert_eq!(stream.head().expect("a head").0, 200);
        let text = rest_of(&mut stream);
        let ids: Vec<u64> = text.lines().filter_map(|line| line.strip_prefix("id: ")?.parse().ok()).collect();
        assert!(ids == (6..=42).collect::<Vec<_>>() && text.contains("event: end\n"), "{text}");
        let output = waiting.end();
        assert_eq!((output.code, output.stdout), (Some(0), expected(1) + "'end'\n"), "{}", output.stderr);
        assert!(output.stderr.contains("connecting again"), "{}", output.stderr);
        let followed = following.end();
        let numbers: Vec<u64> = followed
            .stdout
            .lines()
            .map(|line| {
                serde_json::from_str::<Value>(line).expect("an event")["seq"].as_u64().expect("a number")
            })
            .collect();
        assert_eq!(numbers, (2..=numbers.len() as u64 + 1).collect::<Vec<_>>(), "{}", followed.stderr);
        assert_eq!(numbers.len(), 41, "echo, 40 lines and the value");
        let mut client = daemon.client();
        let page = vm_system_protocol::control::ListPage::default();
        let Ok(all) = client.op(ExecList::all(id, page)) else { panic!("a list") };
        assert_eq!(all.len(), 1, "it ran once");
        drop(client);
        daemon.stop();
    }

    pub(super) fn a_command_whose_session_is_gone_says_so(user: User) {
        let mut scene = Scene::with_settings(user, Settings::default());
        let session = scene.session();
        let waiting =
            Background::start(&scene.daemon.place, &["exec", "repl", &session.id.to_string(), LINES]);
        assert_eq!(waiting.line(), "0");
        drop(scene.client);
        let place = scene.daemon.kill_everything();
        let daemon = Daemon::start_with(place, &DaemonOptions::default());
        let output = waiting.end();
        assert_ne!(output.code, Some(0), "{}", output.stdout);
        assert!(output.stderr.contains("worker"), "{}", output.stderr);
        let patience = ["--reconnect", "0", "exec", "repl", &session.id.to_string(), "1"];
        let refused = daemon.cli(&patience).fails(1);
        assert!(refused.contains("SESSION_NOT_READY"), "{refused}");
        daemon.stop();
    }

    pub(super) fn events_of_a_session_are_followed_across_daemons(user: User) {
        let mut scene = Scene::with_settings(user, Settings::default());
        let session = scene.session();
        let id = session.id.to_string();
        let following = Background::start(
            &scene.daemon.place,
            &["session", "events", &id, "--follow", "--output", "json"],
        );
        let event = || serde_json::from_str::<Value>(&following.line()).expect("an event");
        let mut seen = vec![event(), event()];
        scene.client.eval(&session, "1").expect("runs");
        seen.extend([event(), event()]);
        let fork = scene.client.fork(&session, 1).expect("forks").remove(0);
        seen.push(event());
        assert_eq!(seen[4]["other_session_id"], fork.id.to_string());
        drop(scene.client);
        let daemon = restart(scene.daemon);
        seen.push(event());
        let mut client = daemon.client();
        client.close(&session);
        let last = following.end();
        seen.extend(last.stdout.lines().map(|line| serde_json::from_str(line).expect("an event")));
        assert_eq!(last.code, Some(0), "{}", last.stderr);
        let kinds: Vec<&str> = seen.iter().filter_map(|event| event["type"].as_str()).collect();
        let life =
            ["created", "ready", "execution_started", "execution_ended", "forked", "adopted", "closed"];
        assert_eq!(kinds, life, "{seen:?}");
        let numbers: Vec<u64> = seen.iter().filter_map(|event| event["seq"].as_u64()).collect();
        assert_eq!(numbers, (1..=7).collect::<Vec<_>>());

        // The same over HTTP: only what follows the last one.
        let mut http = daemon.http();
        let path = format!("/api/v1/sessions/{id}/events");
        let listed = http.get(&path).json();
        assert_eq!(listed.as_array().expect("a list"), &seen);
        let mut stream = daemon.http();
        let fields = [("accept", "text/event-stream"), ("last-event-id", "5")];
        stream.send(&stream.request_bytes("GET", &path, &fields, None));
        assert_eq!(stream.head().expect("a head").0, 200);
        let text = rest_of(&mut stream);
        let ids: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
        assert!(ids == ["6", "7"] && text.contains("event: end\n"), "{text}");
        let nothing = [("accept", "text/event-stream"), ("last-event-id", "7")];
        let mut again = daemon.http();
        again.send(&again.request_bytes("GET", &path, &nothing, None));
        assert_eq!(again.head().expect("a head").0, 204);
        drop(client);
        daemon.stop();
    }

    fn rest_of(http: &mut Http) -> String {
        let mut text = String::new();
        while let Some(chunk) = http.chunk() {
            text.push_str(&String::from_utf8(chunk).expect("text"));
        }
        text
    }

    pub(super) fn a_request_with_a_key_waits_for_the_execution_that_it_has_begun(user: User) {
        let mut scene = Scene::with_settings(user, Settings::default());
        let session = scene.session();
        let body = json!({ "session_id": session.id.to_string(), "input": LINES }).to_string();
        let key = [("idempotency-key", "once"), ("content-type", "application/json")];
        let mut http = scene.daemon.http();
        let path = "/api/v1/executions/repl";
        http.send(&http.request_bytes("POST", path, &key, Some(&body)));
        let has_output = |client: &mut vm_system_tests::client::Client, session: &Session| {
            let running = client.inspect(session).ok().and_then(|live| live.running_execution);
            let Some(id) = running else { return false };
            // The execution's row may not be there yet.
            let op = ExecEvents { execution: id.to_string(), after_seq: 0, limit: 0, follow: false };
            matches!(client.op(op), Ok(events) if events.len() > 2)
        };
        watch::wait_until(|| has_output(&mut scene.client, &session), || "nothing runs".to_owned());
        drop(scene.client);
        let daemon = restart(scene.daemon);
        let mut again = daemon.http();
        let response = again.request("POST", path, &key, Some(&body));
        assert_eq!(response.status, 201, "{}", response.text());
        let ended: Value = response.json();
        assert_eq!(
            (&ended["status"], &ended["result"]["preview"]),
            (&"ok".into(), &"'end'".into()),
            "{ended}"
        );
        assert_eq!(ended["events"].as_array().map(Vec::len), Some(42));
        // And over the control socket, with the events.
        let mut client = daemon.client();
        let mut op = repl(&session, "globalThis.runs = (globalThis.runs ?? 0) + 1", true);
        op.follow = true;
        for _ in 0..2 {
            let id = client.send_with_key(op.clone(), Some("twice"));
            let (events, reply) = client.response(id);
            let Ok(Ok(state)) = reply.map(ExecStart::reply_from) else { panic!("another reply") };
            let execution = record(state);
            assert_eq!((execution.status, value(&events)), (ExecutionStatus::Ok, Some("1")));
        }
        drop(client);
        daemon.stop();
    }

    pub(super) fn an_agent_goes_on_with_the_next_daemon(user: User) {
        let mut scene = Scene::with_settings(user, Settings::default());
        let session = scene.session();
        drop(scene.client);
        let mut agent = Background::start(&scene.daemon.place, &["mcp", "--no-start"]);
        let mut stdin = agent.child.stdin.take().expect("a pipe");
        let mut send = |message: Value| writeln!(stdin, "{message}").expect("it reads");
        send(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } }));
        assert!(agent.line().contains("protocolVersion"));
        send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        let call = |id: u32, code: &str| {
            let arguments = json!({ "sessionId": session.id.to_string(), "code": code });
            json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
                "params": { "name": "session_eval", "arguments": arguments } })
        };
        send(call(2, "globalThis.n = 1"));
        assert!(agent.line().contains("\"id\":2"));
        let (place, _) = scene.daemon.kill();
        // While no daemon is there.
        send(call(3, "++n"));
        let mut daemon = Daemon::start_with(place, &DaemonOptions::default());
        let answer = agent.line();
        assert!(answer.contains("\"id\":3") && !answer.contains("\"isError\":true"), "{answer}");
        assert_eq!(daemon.client().preview_of(&session, "n"), "2");

        // One call through more daemons than connections are tried in a row.
        let notices = lines(agent.child.stderr.take().expect("a pipe"));
        let until = |text: &str| drop(line_with(&notices, text));
        until("connected again");
        send(call(4, "await new Promise(go => setTimeout(go, 20_000))"));
        let running = || daemon.client().inspect(&session).expect("live").running_execution;
        watch::wait_until(|| running().is_some(), || "nothing runs".to_owned());
        for _ in 0..4 {
            let (place, _) = daemon.kill();
            until("connecting again");
            daemon = Daemon::start_with(place, &DaemonOptions::default());
            until("connected again");
        }
        let execution = daemon.client().inspect(&session).expect("live").running_execution.expect("it runs");
        daemon.client().op(ExecCancel { execution: execution.to_string() }).expect("cancelled");
        let answer = agent.line();
        assert!(answer.contains("\"id\":4") && answer.contains("cancelled on request"), "{answer}");
        drop(stdin);
        agent.end();
        daemon.stop();
    }
}
