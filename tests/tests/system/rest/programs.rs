//! Programs and their tasks over HTTP: what the table of the contract cannot express.

use super::people::{self, ALICE};
use serde_json::{Value, json};
use vm_system_tests::daemon::Daemon;
use vm_system_tests::http::Http;
use vm_system_tests::place::User;

const SUM: &str = "
    function ask(question) { return Number(CC(question)); }
    function main() {
        const first = ask('first?');
        return first + ask('second?') * 10;
    }
";

fn start(http: &mut Http, source: &str, execution: &str) -> Value {
    let loaded = http.post("/api/v1/programs", &json!({ "name": "program", "source": source }));
    assert_eq!(loaded.status, 201, "{}", loaded.text());
    let body = json!({ "name": "program", "execution_id": execution });
    let started = http.post("/api/v1/executions/program", &body);
    assert_eq!(started.status, 201, "{}", started.text());
    started.json()
}

fn submit(http: &mut Http, execution: &str, body: &Value) -> Value {
    let response = http.post(&format!("/api/v1/executions/{execution}/task"), body);
    assert_eq!(response.status, 200, "{}", response.text());
    response.json()
}

#[test]
fn an_error_of_a_source_has_its_position() {
    let daemon = Daemon::start(User::AsStarted);
    let mut http = daemon.http();
    let body = json!({ "name": "p", "source": "function main() {\n  return 1 +;\n}" });
    let response = http.post("/api/v1/programs", &body);
    assert_eq!((response.status, response.code().as_str()), (422, "COMPILE_ERROR"));
    let details = &response.json()["error"]["details"];
    assert_eq!((&details["line"], &details["snippet"]), (&json!(2), &json!("  return 1 +;")), "{details}");
    assert!(details["column"].is_u64(), "{details}");
    let mut message = |name: &str, source: &str, typescript: Option<bool>| {
        let body = json!({ "name": name, "source": source, "typescript": typescript });
        let response = http.post("/api/v1/programs", &body);
        assert_eq!(response.status, 422, "{}", response.text());
        response.json()["error"]["message"].as_str().expect("a text").to_owned()
    };
    for (name, source, language, end) in [
        ("p", "function main() { return 1 +; }", None, "(read as JavaScript)"),
        ("p", "interface A { x: number }\nlet y: = 1", None, "(read as TypeScript)"),
        ("p.js", "let x: number = 1;", None, "(read as JavaScript; it is TypeScript)"),
        ("p", "let x: number = 1;", Some(false), "(read as JavaScript; it is TypeScript)"),
    ] {
        let shown = message(name, source, language);
        assert!(shown.ends_with(end) && shown.matches("read as").count() == 1, "{shown}");
    }
    for (source, language) in [("let x = ;", Some(true)), ("let x = ;", Some(false)), ("nosuch()", None)] {
        let shown = message("p", source, language);
        assert!(!shown.contains("read as"), "{shown}");
    }
    drop(http);
    daemon.stop();
}

#[test]
fn one_of_two_answers_to_a_task_is_refused() {
    let daemon = Daemon::start(User::AsStarted);
    let mut http = daemon.http();
    let run = start(&mut http, SUM, "twice");
    let id = run["id"].as_str().expect("an id").to_owned();
    let body = json!({ "task_id": run["task"]["id"], "result": "2" });
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let submit = || daemon.http().post(&format!("/api/v1/executions/{id}/task"), &body).status;
        let all: Vec<_> = (0..8).map(|_| scope.spawn(submit)).collect();
        all.into_iter().map(|one| one.join().expect("a response")).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 409).count(), 7, "{statuses:?}");
    assert_eq!(submit(&mut http, &id, &json!({ "result": 3 }))["result"]["json"], 32);
    drop(http);
    daemon.stop();
}

#[test]
fn rewound_execution_has_its_task_and_its_name_again() {
    let daemon = Daemon::start(User::AsStarted);
    let mut http = daemon.http();
    let first = start(&mut http, SUM, "story");
    submit(&mut http, "story", &json!({ "result": "1" }));
    let kept = http.get("/api/v1/executions/story/checkpoints").json();
    let pauses = kept.as_array().expect("a list").iter().filter(|kept| kept["cause"] == "pause");
    let pause = pauses.filter_map(|kept| kept["seq"].as_u64()).min().expect("the first pause");
    let body = json!({ "checkpoint": pause });
    let rewound = http.post("/api/v1/executions/story/rewind", &body);
    assert_eq!(rewound.status, 200, "{}", rewound.text());
    let rewound = rewound.json();
    assert_eq!((&rewound["name"], &rewound["task"]["prompt"]), (&json!("story"), &json!("first?")));
    assert_ne!(rewound["id"], first["id"]);
    let old = http.get(&format!("/api/v1/executions/{}", first["id"].as_str().expect("an id"))).json();
    assert_eq!(old["status"], "cancelled");
    submit(&mut http, "story", &json!({ "result": "5" }));
    assert_eq!(submit(&mut http, "story", &json!({ "result": "6" }))["result"]["json"], 65);
    drop(http);
    daemon.stop();
}

#[test]
fn execution_has_its_program_and_task_also_after_its_program_was_deleted() {
    let daemon = Daemon::start(User::AsStarted);
    let mut http = daemon.http();
    let started = start(&mut http, SUM, "story");
    assert_eq!(http.get("/api/v1/executions/story").json(), started);
    assert_eq!(started["task"]["prompt"], "first?");
    submit(&mut http, "story", &json!({ "result": 1 }));
    assert_eq!(http.get("/api/v1/executions/story").json()["task"]["prompt"], "second?");
    assert_eq!(http.request("DELETE", "/api/v1/programs/program", &[], None).status, 200);
    let list = http.get("/api/v1/executions?kind=program").json();
    assert_eq!((list.as_array().map(Vec::len), &list[0]["name"]), (Some(1), &json!("story")), "{list}");
    for wrong in ["?kind=repl", "?kind=program&session_id=x", "?limit=1"] {
        assert_eq!(http.get(&format!("/api/v1/executions{wrong}")).status, 400, "{wrong}");
    }
    let unknown = http.get("/api/v1/executions/saga/task");
    assert_eq!((unknown.status, &unknown.json()["error"]["code"]), (404, &json!("EXECUTION_NOT_FOUND")));
    for path in ["saga", "saga/events", "saga/state", "saga/checkpoints"] {
        assert_eq!(http.get(&format!("/api/v1/executions/{path}")).status, 404, "{path}");
    }
    drop(http);
    daemon.stop();
}

#[test]
fn the_same_key_starts_and_answers_once() {
    let daemon = people::daemon(&[]);
    let mut http = daemon.http().bearer(ALICE);
    let loaded = http.post("/api/v1/programs", &json!({ "name": "p", "source": SUM }));
    assert_eq!(loaded.status, 201, "{}", loaded.text());
    let post = |http: &mut Http, path: &str, key: &str, body: &Value| {
        let fields = [("content-type", "application/json"), ("idempotency-key", key)];
        http.request("POST", &format!("/api/v1{path}"), &fields, Some(&body.to_string())).json()
    };
    let body = json!({ "name": "p", "execution_id": "once" });
    let first = post(&mut http, "/executions/program", "start", &body);
    assert_eq!(post(&mut http, "/executions/program", "start", &body), first);
    let body = json!({ "result": "4" });
    let second = post(&mut http, "/executions/once/task", "answer", &body);
    assert_eq!(second["task"]["prompt"], "second?", "{second}");
    assert_eq!(post(&mut http, "/executions/once/task", "answer", &body), second);
    drop(http);
    daemon.stop();
}
