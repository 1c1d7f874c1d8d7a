//! The same verbs through every API: REST, the CLI and an agent's tools.

use super::session;
use serde_json::{Value, json};
use vm_system_protocol::model::Settings;
use vm_system_tests::daemon::Daemon;
use vm_system_tests::mcp::Agent;
use vm_system_tests::place::User;

#[test]
fn rest_makes_lists_uses_and_deletes_checkpoints() {
    let daemon = Daemon::start(User::AsStarted);
    let mut http = daemon.http();
    let session = session(&daemon, Settings::default()).id.to_string();
    let run = |http: &mut vm_system_tests::http::Http, input: &str| -> Value {
        let body = json!({ "session_id": session, "input": input });
        http.post("/api/v1/executions/repl", &body).json()["result"]["json"].clone()
    };
    run(&mut http, "var x = 20");
    let path = format!("/api/v1/sessions/{session}/checkpoints");
    let made = http.post(&path, &json!({ "name": "start" }));
    assert_eq!((made.status, made.json()["number"].as_u64()), (201, Some(1)), "{}", made.text());
    let key = [("Idempotency-Key", "one")];
    let again = [http.request("POST", &path, &key, None), http.request("POST", &path, &key, None)];
    assert_eq!(again[0].json(), again[1].json(), "a key is used once");
    assert_eq!(http.get(&path).json().as_array().map(Vec::len), Some(2));
    run(&mut http, "x = 0");
    let back = http.post(&format!("/api/v1/sessions/{session}/rollback"), &json!({ "checkpoint": "start" }));
    assert_eq!((back.status, back.json()["status"].as_str()), (200, Some("ready")), "{}", back.text());
    assert_eq!(back.json()["runtime_meta"]["generation"], 2);
    assert_eq!(run(&mut http, "x"), 20);
    let deleted = http.request("DELETE", &format!("{path}/start"), &[], None);
    assert_eq!(
        (deleted.status, deleted.json()["checkpoint"].as_str()),
        (200, Some("start")),
        "{}",
        deleted.text()
    );
    let none = http.post(&format!("/api/v1/sessions/{session}/rollback"), &json!({ "checkpoint": "start" }));
    assert_eq!((none.status, none.code()), (404, "NOT_FOUND".to_owned()), "{}", none.text());
    let events = http.get(&format!("/api/v1/sessions/{session}/events")).json();
    let events: Vec<(&str, &str)> = (events.as_array().into_iter().flatten())
        .map(|event| {
            (event["type"].as_str().unwrap_or_default(), event["detail"].as_str().unwrap_or_default())
        })
        .filter(|(kind, _)| !kind.starts_with("execution"))
        .collect();
    let expected = [
        ("created", ""),
        ("ready", ""),
        ("checkpointed", "1"),
        ("checkpointed", "2"),
        ("rolled_back", "checkpoint 1"),
        ("ready", ""),
    ];
    assert_eq!(events, expected);
    let audit = daemon.cli(&["--output", "json", "ops", "audit"]).ok();
    for verb in ["session checkpoint", "session rollback", "session delete-checkpoint"] {
        assert!(audit.contains(verb), "{verb}: {audit}");
    }
    daemon.stop();
}

#[test]
fn cli_makes_lists_uses_and_deletes_checkpoints() {
    let daemon = Daemon::start(User::AsStarted);
    let session = session(&daemon, Settings::default()).id.to_string();
    daemon.cli(&["exec", "repl", &session, "var x = 20"]).ok();
    assert_eq!(
        daemon.cli(&["session", "checkpoint", &session, "--name", "start"]).ok().trim(),
        "Checkpoint: 1"
    );
    daemon.cli(&["exec", "repl", &session, "x = 0"]).ok();
    let list = daemon.cli(&["session", "checkpoints", &session]).ok();
    assert!(list.contains("start") && list.starts_with("CHECKPOINT"), "{list}");
    let back = daemon.cli(&["session", "rollback", &session]).ok();
    assert_eq!(back.trim(), format!("Rolled back session: {session}"));
    assert!(daemon.cli(&["exec", "repl", &session, "x"]).ok().contains("20"));
    daemon.cli(&["session", "delete-checkpoint", &session, "start"]).ok();
    let none = daemon.cli(&["session", "rollback", &session]);
    assert!(none.code == Some(1) && none.stderr.contains("session checkpoints"), "{none:?}");
    let template = ["template", "create", "--name", "rolling", "--on-crash", "rollback"];
    assert!(daemon.cli(&template).ok().contains("rolling"));
    daemon.stop();
}

#[test]
fn an_agent_returns_to_a_checkpoint() {
    let daemon = Daemon::start(User::AsStarted);
    let mut agent = Agent::start(&daemon.place, &[]);
    let session = agent.data("session_create", json!({ "worktree": daemon.place.worktree() }));
    let id = session["sessionId"].as_str().expect("an id").to_owned();
    agent.text("session_eval", json!({ "sessionId": id, "code": "var plan = ['start']" }));
    let made = agent.data("session_checkpoint", json!({ "sessionId": id, "name": "before" }));
    assert_eq!(made["checkpoint"], 1);
    for checkpoint in [json!("before"), json!(1)] {
        agent.text("session_eval", json!({ "sessionId": id, "code": "plan.push('wrong')" }));
        agent.data("session_rollback", json!({ "sessionId": id, "checkpoint": checkpoint }));
        let value = agent.data("session_eval", json!({ "sessionId": id, "code": "plan.join()" }));
        assert_eq!(value["result"], "start", "{value}");
    }
    let none = agent.fails("session_rollback", json!({ "sessionId": id, "checkpoint": "nowhere" }));
    assert!(none.contains("no checkpoint nowhere"), "{none}");
    drop(agent);
    daemon.stop();
}
