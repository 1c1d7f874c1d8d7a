//! Durable programs on the command line: the output of a step, the position of an error, and the sessions of executions.

use crate::environment::{DEADLINE, Daemon, TestEnvironment};
use std::time::Instant;

/// Creates a task, writes to both streams, and throws.
const OUT: &str = "console.log('hi');\nfunction f(){ throw new TypeError('bad') }\n\
    function main(){ const x = CC('q?'); console.log('after', x); console.error('careful'); f() }\n";

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A daemon that keeps no worker of a waiting program.
fn daemon(env: &TestEnvironment) -> Daemon {
    let config = env.path("config.toml");
    std::fs::write(&config, "[durable]\nwarm_ms = 0\n").unwrap();
    env.serve_with(&["--config", config.to_str().unwrap()])
}

#[test]
fn a_step_prints_its_output_and_an_error_with_its_position() {
    let env = TestEnvironment::new();
    let _daemon = daemon(&env);
    env.file("out.js", OUT);
    let started = env.run(["program", "start", "out.js", "--name", "o"]);
    assert_eq!(started.code, Some(0), "{started:?}");
    assert!(started.stdout.starts_with("hi\nExecution: "), "{started:?}");
    let answered = env.run(["task", "submit", "o", "yes"]);
    assert_eq!(answered.code, Some(1), "{answered:?}");
    assert!(answered.stdout.starts_with("after yes\nExecution: "), "this step's output alone: {answered:?}");
    assert!(answered.stderr.starts_with("careful\n"), "{answered:?}");
    let error = "Error: TypeError: bad (EXCEPTION)\n    at f (out";
    let id = json(&env.run(["program", "status", "o", "--output", "json"]).stdout)["id"].clone();
    let id = id.as_str().unwrap();
    for shown in [answered.stdout, env.run(["task", "get", id]).ok(), env.run(["program", "status", id]).ok()]
    {
        assert!(shown.contains(error) && shown.contains(":2:"), "{shown}");
    }
    let events = env.run(["exec", "events", id]).ok();
    let (_, exception) = events.split_once("TypeError: bad\n").unwrap_or_else(|| panic!("{events}"));
    assert!(exception.starts_with("    at f (out"), "{events}");
    let document = env.run(["task", "get", id, "--output", "json"]).ok();
    assert_eq!(json(&document)["error"]["code"], "EXCEPTION");
}

#[test]
fn sessions_of_programs_are_listed_only_on_request_and_with_their_engine() {
    let env = TestEnvironment::new();
    let _daemon = daemon(&env);
    env.file("out.js", OUT);
    let run = json(&env.run(["program", "start", "out.js", "--output", "json"]).ok());
    let (execution, session) = (run["id"].as_str().unwrap(), run["session_id"].as_str().unwrap());
    let list = |args: &[&str]| {
        let all = ["session", "list", "--output", "json"].iter().chain(args);
        json(&env.run(all).ok())
    };
    assert_eq!(list(&[]), serde_json::json!([]));
    let deadline = Instant::now() + DEADLINE;
    // The worker exits after the answer.
    while list(&["--engine", "cvm"])[0]["status"] != "waiting" {
        assert!(Instant::now() < deadline, "{}", list(&["--engine", "cvm"]));
    }
    let waiting = list(&["--engine", "cvm", "--status", "waiting"]);
    assert_eq!(
        (waiting[0]["id"].as_str(), waiting[0]["execution_id"].as_str()),
        (Some(session), Some(execution))
    );
    assert_eq!(waiting[0]["engine"], "cvm");
    assert_eq!(list(&["--engine", "cvm", "--status", "ready"]), serde_json::json!([]));
    let summary = json(&env.run(["ops", "runtime-summary", "--output", "json"]).ok());
    assert_eq!(summary["active_sessions"], 0);
    let error = env.run(["session", "inspect", session]).failed(1);
    assert!(error.contains("its program waits"), "{error}");
    let closed = env.run(["session", "close", session]);
    assert!(closed.stderr.contains(execution) && closed.stderr.contains("has ended too"), "{closed:?}");
    let ended = env.run(["program", "status", execution]).ok();
    assert!(ended.contains("Status: cancelled"), "{ended}");
}

#[test]
fn a_program_that_computes_is_an_active_session() {
    let env = TestEnvironment::new();
    let _daemon = daemon(&env);
    env.file("busy.js", "function main() { for (;;) {} }");
    let run = json(&env.run(["program", "start", "busy.js", "--no-wait", "--output", "json"]).ok());
    let session = run["session_id"].as_str().unwrap();
    let deadline = Instant::now() + DEADLINE;
    loop {
        let summary = json(&env.run(["ops", "runtime-summary", "--output", "json"]).ok());
        if summary["active_session_ids"][0] == session {
            break;
        }
        assert!(Instant::now() < deadline, "{summary}");
    }
    let ready = ["session", "list", "--engine", "cvm", "--status", "ready", "--output", "json"];
    assert_eq!(json(&env.run(ready).ok())[0]["id"], session);
    env.run(["exec", "cancel", run["id"].as_str().unwrap()]).ok();
}

#[test]
fn the_built_in_template_is_listed_and_cannot_be_changed() {
    let env = TestEnvironment::new();
    let _daemon = daemon(&env);
    assert!(env.run(["template", "list"]).ok().contains("cvm (built in)"));
    let detail = json(&env.run(["template", "get", "cvm", "--output", "json"]).ok());
    assert_eq!(detail["template"]["built_in"], true);
    assert_eq!(
        (&detail["capabilities"][0]["kind"], &detail["capabilities"][0]["name"]),
        (&"fs".into(), &"write".into())
    );
    for verb in [
        &["delete", "cvm"][..],
        &["update", "cvm", "--cpu-ms", "9"],
        &["add-capability", "cvm", "--kind", "env", "--name", "HOME", "--enabled"],
    ] {
        let error = env.run(["template"].iter().chain(verb)).failed(77);
        assert!(error.contains("built in") && error.contains("--engine cvm"), "{error}");
    }
    let error = env.run(["template", "create", "--name", "cvm", "--engine", "cvm"]).failed(1);
    assert!(error.contains("the built-in template"), "{error}");
    env.file("ends.js", "1");
    env.run(["program", "start", "ends.js", "--template-id", "cvm"]).ok();
    assert_eq!(env.run(["template", "list"]).ok().matches("cvm").count(), 2, "its name and its engine, once");
}

#[test]
fn invalid_arguments_are_refused_when_a_program_starts() {
    let env = TestEnvironment::new();
    let _daemon = daemon(&env);
    env.file("ends.js", "1");
    let error = env.run(["program", "start", "ends.js", "--worktree-path", "nowhere"]).failed(2);
    assert!(error.contains("nowhere"), "{error}");
    let error = env.run(["program", "start", "missing.ts"]).failed(2);
    assert!(error.contains("neither a file nor a program is called missing.ts"), "{error}");
    let first = json(&env.run(["program", "start", "ends.js", "--output", "json"]).ok());
    let taken = env.run(["program", "start", "ends.js", "--name", first["id"].as_str().unwrap()]).failed(1);
    assert!(taken.contains("is the id of another execution"), "{taken}");
    let own = "123e4567-e89b-42d3-a456-426614174000";
    env.run(["program", "start", "ends.js", "--name", own]).ok();
    assert!(env.run(["program", "status", own]).ok().contains(own), "a client's own id is a name");
}

#[test]
fn pending_tasks_are_listed_with_execution_and_program() {
    let env = TestEnvironment::new();
    let _daemon = daemon(&env);
    env.file("prompts.js", "function main() { return CC('which one?') }");
    env.run(["program", "start", "prompts.js", "--name", "curious"]).ok();
    let list = env.run(["task", "list"]).ok();
    let row = list.lines().nth(1).unwrap();
    assert!(row.contains("curious") && row.contains(" prompts ") && row.ends_with("which one?"), "{list}");
}

#[test]
fn the_ending_of_a_file_decides_its_language_and_otherwise_its_syntax() {
    let env = TestEnvironment::new();
    let _daemon = daemon(&env);
    let typed = "class A { private x = 1 }\nfunction main() { return 1 }\n";
    for (file, source, language) in [
        ("typed.ts", typed, Some("TypeScript")),
        ("typed.txt", typed, Some("TypeScript")),
        ("typed.js", typed, None),
        ("plain.js", "function main() { return 1 < 2 > (0) }", Some("JavaScript")),
        ("plain.txt", "function main() { return 1 < 2 > (0) }", Some("JavaScript")),
        ("plain.ts", "function main() { return 1 }", Some("TypeScript")),
        ("neither.txt", "class A { constructor() {} constructor() {} }", None),
    ] {
        env.file(file, source);
        let loaded = env.run(["program", "load", file]);
        match language {
            Some(language) => assert!(loaded.ok().contains(&format!(", {language} (ID: ")), "{file}"),
            None => assert!(loaded.failed(1).contains("error: "), "{file}"),
        }
    }
}
