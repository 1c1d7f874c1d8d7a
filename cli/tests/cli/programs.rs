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
fn a_program_with_prompts_of_the_greatest_length_waits_for_each_answer() {
    let env = TestEnvironment::new();
    let _daemon = daemon(&env);
    env.file(
        "long.js",
        "function main() { return [300, 1000, 1000].map((kb) => CC('p'.repeat(kb * 1024)).length) }",
    );
    let prompt = |shown: &str| json(shown)["task"]["prompt"].as_str().map_or(0, str::len);
    let started = env.run(["program", "start", "long.js", "--name", "l", "--output", "json"]).ok();
    assert_eq!(prompt(&started), 300 * 1024);
    for _ in 0..2 {
        let answered = env.run(["task", "submit", "l", "yes", "--output", "json"]).ok();
        assert_eq!(prompt(&answered), 1000 * 1024);
    }
    let ended = json(&env.run(["task", "submit", "l", "yes", "--output", "json"]).ok());
    assert_eq!(ended["result"]["json"], serde_json::json!([3, 3, 3]));
    env.run(["program", "forget", "l"]).ok();
}

#[test]
fn a_refused_answer_says_what_fits_and_how_many_attempts_are_left() {
    let env = TestEnvironment::new();
    let _daemon = daemon(&env);
    env.file("ask.js", "function main() { return CC('n?', { schema: { type: 'integer' }, retries: 2 }) }");
    env.run(["program", "start", "ask.js", "--name", "a"]).ok();
    let refused = env.run(["task", "submit", "a", "x"]).failed(1);
    assert!(refused.contains(r#"JSON that matches {"type":"integer"}; 2 of 3 attempts left"#), "{refused}");
    assert!(env.run(["task", "submit", "a", "5.5"]).failed(1).contains("; 1 of 3 attempts left"));
    assert!(env.run(["task", "submit", "a", "y"]).failed(1).contains("it was the last attempt"));
}

#[test]
fn an_export_that_fails_leaves_the_file_that_was_there() {
    let env = TestEnvironment::new();
    let _daemon = daemon(&env);
    env.file("kept.json", "kept");
    env.run(["program", "export", "nosuch", "--to", "kept.json"]).failed(1);
    assert_eq!(std::fs::read_to_string(env.work().join("kept.json")).unwrap(), "kept");
    env.file("p.js", "function main() { return 1 }");
    env.run(["program", "load", "p.js"]).ok();
    let noted = env.run(["program", "export", "p", "--to", "kept.json"]);
    assert!(noted.stderr.contains("Exported to kept.json, instead of the file that was there"), "{noted:?}");
    assert!(std::fs::read_to_string(env.work().join("kept.json")).unwrap().contains("main"));
    let noted = env.run(["program", "export", "p", "--to", "new.json"]);
    assert!(noted.stderr.ends_with("Exported to new.json\n"), "{noted:?}");
    assert_eq!(std::fs::read_dir(env.work()).unwrap().count(), 3, "no other file is left");
}

#[test]
fn a_file_whose_name_is_taken_for_a_program_is_named_in_the_hint() {
    let env = TestEnvironment::new();
    let _daemon = daemon(&env);
    env.file("c2.txt", "function main() { return 1 }");
    let error = env.run(["program", "start", "c2.txt"]).failed(1);
    assert!(error.contains("./c2.txt starts it"), "{error}");
    assert_eq!(env.run(["program", "start", "./c2.txt"]).code, Some(0));
    let error = env.run(["program", "start", "-"]).failed(1);
    assert!(error.contains("program load - --name NAME"), "{error}");
}

#[test]
fn an_error_of_a_program_that_was_cut_says_so_with_its_size() {
    let env = TestEnvironment::new();
    let _daemon = daemon(&env);
    env.file("cut.js", "function main() { throw new Error('x'.repeat(100_000)) }");
    let started = env.run(["program", "start", "cut.js", "--name", "c"]);
    assert_eq!(started.code, Some(1));
    assert_eq!(started.stderr.matches("[truncated: ").count(), 1, "one notice");
    let status = json(&env.run(["program", "status", "c", "--output", "json"]).stdout);
    assert_eq!(
        (&status["error"]["truncated"], &status["error"]["full_bytes"]),
        (&true.into(), &100_007.into())
    );
    let events = env.run(["exec", "events", "c", "--output", "json"]).ok();
    assert!(events.contains("\"full_bytes\""), "{}", &events[events.len() - 300..]);
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
    let error = env.run(["program", "start", "ends.js", "--worktree-path", "nowhere"]).failed(1);
    assert!(error.contains("nowhere"), "{error}");
    let error = env.run(["program", "start", "missing.ts"]).failed(1);
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
