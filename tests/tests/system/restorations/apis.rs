//! The same verb through every API: REST, the CLI and an agent's tools.

use super::new_session;
use serde_json::json;
use vm_system_protocol::model::Settings;
use vm_system_tests::daemon::Daemon;
use vm_system_tests::mcp::Agent;
use vm_system_tests::place::User;

#[test]
fn rest_restores_and_shows_restorations() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    let session = new_session(&mut client, &daemon, Settings::default(), &["fs"]);
    client.preview_of(&session, "var n = 1");
    client.preview_of(&session, "require('fs').writeFileSync('a', 'x'); n += 1");
    let mut http = daemon.http();
    let path = format!("/api/v1/sessions/{}/restore", session.id);
    let live = http.post(&path, &json!({}));
    assert_eq!((live.status, live.code()), (409, "CONFLICT".to_owned()), "{}", live.text());
    client.close(&session);
    let refused = http.post(&path, &json!({}));
    assert_eq!(refused.status, 409, "{}", refused.text());
    assert_eq!(refused.json()["error"]["details"]["inputs"][0]["effects"], json!(["files"]));
    let wrong = http.post(&path, &json!({ "inputs": [{ "input": 1, "envs": {} }] }));
    assert_eq!((wrong.status, wrong.code()), (400, "VALIDATION_ERROR".to_owned()), "{}", wrong.text());
    let key = [("Idempotency-Key", "one")];
    let body = json!({ "repeat_effects": true }).to_string();
    let first = http.request("POST", &path, &key, Some(&body));
    assert_eq!((first.status, first.json()["status"].as_str()), (201, Some("done")), "{}", first.text());
    let again = http.request("POST", &path, &key, Some(&body));
    assert_eq!(first.json(), again.json(), "a key is used once");
    let new = first.json()["session"]["id"].as_str().expect("an id").to_owned();
    let shown = http.get(&format!("/api/v1/sessions/{new}/restoration"));
    assert_eq!(shown.json(), first.json());
    let none = http.get(&format!("/api/v1/sessions/{}/restoration", session.id));
    assert_eq!((none.status, none.code()), (404, "NOT_FOUND".to_owned()), "{}", none.text());
    let input = json!({ "session_id": new, "input": "n" });
    assert_eq!(http.post("/api/v1/executions/repl", &input).json()["result"]["preview"], "2");
    let audit = daemon.cli(&["--output", "json", "ops", "audit"]).ok();
    assert!(audit.contains("session restore"), "{audit}");
    daemon.stop();
}

#[test]
fn cli_restores_and_reads_inputs_from_a_file() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    let session = new_session(&mut client, &daemon, Settings::default(), &[]);
    let id = session.id.to_string();
    daemon.place.write("a.js", "globalThis.n = args.secret.length");
    daemon.cli(&["exec", "run-file", &id, "a.js", "--args", r#"{"secret":"one"}"#]).ok();
    daemon.cli(&["exec", "repl", &id, "Math.random()"]).ok();
    daemon.cli(&["session", "close", &id]).ok();
    let shown = daemon.cli(&["session", "get", &id]).ok();
    assert!(shown.contains(&format!("vm-system session restore {id}")), "{shown}");
    let refused = daemon.cli(&["session", "restore", &id]).fails(1);
    assert!(refused.contains("input 1 (args.secret)") && refused.contains("--inputs"), "{refused}");
    daemon.place.write("inputs.json", r#"[{ "input": 1, "args": { "secret": "one" } }]"#);
    let restored = daemon.cli(&["session", "restore", &id, "--inputs", "inputs.json"]).ok();
    assert!(restored.starts_with("Restored session: "), "{restored}");
    assert!(restored.contains("Repeated inputs: 2 of 2\nDifferent results: 1\n  input 2: 0."), "{restored}");
    let new = restored.lines().next().and_then(|line| line.rsplit(' ').next()).expect("an id").to_owned();
    assert!(daemon.cli(&["exec", "repl", &new, "n"]).ok().contains('3'));
    assert!(
        daemon.cli(&["session", "restoration", &new]).ok().starts_with(&format!("Restored session: {new}"))
    );
    let wrong = daemon.cli(&["session", "restore", &id, "--inputs", "a.js"]).fails(1);
    assert!(wrong.contains("a.js"), "{wrong}");
    daemon.stop();
}

#[test]
fn an_agent_restores_a_session() {
    let daemon = Daemon::start(User::AsStarted);
    let mut agent = Agent::start(&daemon.place, &[]);
    let session = agent.data("session_create", json!({ "worktree": daemon.place.worktree() }));
    let id = session["sessionId"].as_str().expect("an id").to_owned();
    agent.text("session_eval", json!({ "sessionId": id, "code": "var plan = ['start']" }));
    agent.data("session_close", json!({ "sessionId": id }));
    let restored = agent.data("session_restore", json!({ "sessionId": id }));
    assert_eq!((&restored["status"], &restored["repeated"]), (&json!("done"), &json!(1)), "{restored}");
    let new = restored["session"]["sessionId"].clone();
    let value = agent.data("session_eval", json!({ "sessionId": new, "code": "plan.join()" }));
    assert_eq!(value["result"], "start", "{value}");
    assert_eq!(agent.data("session_restoration", json!({ "sessionId": new })), restored);
    drop(agent);
    daemon.stop();
}
