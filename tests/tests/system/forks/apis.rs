//! The same verb through every API: REST, the CLI and an agent's tool.

use serde_json::{Value, json};
use vm_system_tests::daemon::Daemon;
use vm_system_tests::mcp::Agent;
use vm_system_tests::place::User;

#[test]
fn rest_forks_with_and_without_a_body_and_repeats_its_response_for_a_key() {
    let daemon = Daemon::start(User::AsStarted);
    let mut http = daemon.http();
    let parent = prepared(&daemon, "var x = 20");
    let path = format!("/api/v1/sessions/{parent}/fork");
    let one = http.request("POST", &path, &[], None);
    assert_eq!((one.status, one.json().as_array().map(Vec::len)), (201, Some(1)), "{}", one.text());
    let key = [("Idempotency-Key", "forks")];
    let three = http.request("POST", &path, &key, Some(r#"{"count":3}"#));
    assert_eq!((three.status, three.json().as_array().map(Vec::len)), (201, Some(3)), "{}", three.text());
    assert_eq!(http.request("POST", &path, &key, Some(r#"{"count":3}"#)).json(), three.json());
    for fork in three.json().as_array().expect("a list") {
        assert_eq!(fork["runtime_meta"]["forked_from"], parent.as_str());
        let body = json!({ "session_id": fork["id"], "input": "x + 1" });
        let ran = http.post("/api/v1/executions/repl", &body).json();
        assert_eq!(ran["result"]["json"], 21, "{ran}");
    }
    for (body, code) in [
        (json!({ "count": 0 }), "VALIDATION_ERROR"),
        (json!({ "count": 65 }), "VALIDATION_ERROR"),
        (json!({ "count": -1 }), "INVALID_REQUEST"),
        (json!({ "copies": 1 }), "INVALID_REQUEST"),
    ] {
        assert_eq!(http.post(&path, &body).code(), code, "{body}");
    }
    let nobodys = "/api/v1/sessions/00000000-0000-4000-8000-000000000000/fork";
    assert_eq!(http.post(nobodys, &json!({})).code(), "SESSION_NOT_FOUND");
    let audit = daemon.cli(&["--output", "json", "ops", "audit"]).ok();
    assert!(audit.contains("session fork"), "{audit}");
    daemon.stop();
}

#[test]
fn the_session_of_a_program_is_not_forked() {
    let daemon = Daemon::start(User::AsStarted);
    let mut http = daemon.http();
    let program = json!({ "name": "p", "source": "function main() { return CC('?') }" });
    assert_eq!(http.post("/api/v1/programs", &program).status, 201);
    let run = http.post("/api/v1/executions/program", &json!({ "name": "p" })).json();
    let session = run["session_id"].as_str().expect("a session");
    let refused = http.post(&format!("/api/v1/sessions/{session}/fork"), &json!({}));
    assert_eq!(refused.code(), "ENGINE_UNSUPPORTED", "{}", refused.text());
    assert!(refused.text().contains("program fork"), "{}", refused.text());
    daemon.stop();
}

#[test]
fn cli_forks_and_prints_the_sessions() {
    let daemon = Daemon::start(User::AsStarted);
    let parent = prepared(&daemon, "var x = 20");
    let short = &parent[..13];
    let output = daemon.cli(&["session", "fork", short, "--count", "2"]).ok();
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(lines.len(), 2, "{output}");
    assert!(lines.iter().all(|line| line.starts_with("Forked session: ")), "{output}");
    let id = daemon.cli(&["--quiet", "session", "fork", short]).ok();
    assert!(daemon.cli(&["exec", "repl", id.trim(), "x + 1"]).ok().contains("21"));
    let document: Value =
        serde_json::from_str(&daemon.cli(&["--output", "json", "session", "fork", short]).ok())
            .expect("JSON");
    assert_eq!(document[0]["runtime_meta"]["forked_from"], parent.as_str(), "{document}");
    let wrong = daemon.cli(&["session", "fork", short, "--count", "65"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    daemon.stop();
}

#[test]
fn an_agent_forks_a_prepared_session_to_try_several_ways() {
    let daemon = Daemon::start(User::AsStarted);
    let mut agent = Agent::start(&daemon.place, &[]);
    let session = agent.data("session_create", json!({ "worktree": daemon.place.worktree() }));
    let id = session["sessionId"].as_str().expect("an id").to_owned();
    agent.text("session_eval", json!({ "sessionId": id, "code": "var plan = ['start']" }));
    let forked = agent.data("session_fork", json!({ "sessionId": id, "count": 2 }));
    let copies = forked["sessions"].as_array().expect("a list").clone();
    assert_eq!(copies.len(), 2, "{forked}");
    for (copy, way) in copies.iter().zip(["left", "right"]) {
        assert_eq!(copy["forkedFrom"], id.as_str());
        let code = format!("plan.push('{way}'); plan.join()");
        let value = agent.data("session_eval", json!({ "sessionId": copy["sessionId"], "code": code }));
        assert_eq!(value["result"], format!("start,{way}"), "{value}");
    }
    let text = agent.text("session_fork", json!({ "sessionId": id }));
    assert!(text.starts_with("Session forked: "), "{text}");
    let none = agent.fails("session_fork", json!({ "sessionId": id, "count": 1_000 }));
    assert!(none.contains("1 to 64"), "{none}");
    drop(agent);
    daemon.stop();
}

/// A session after this code.
fn prepared(daemon: &Daemon, code: &str) -> String {
    let mut client = daemon.client();
    let template = client.template(vm_system_protocol::model::Settings::default(), &[]);
    let session = client.session(&template, &daemon.place.worktree()).expect("session");
    client.preview_of(&session, code);
    session.id.to_string()
}
