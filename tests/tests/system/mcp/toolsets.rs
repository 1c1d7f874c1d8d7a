//! Which tools are listed: about ten by default, further sets on request. Every tool can be called, listed or not.

use super::place;
use serde_json::{Value, json};
use vm_system_tests::command::command;
use vm_system_tests::mcp::{Agent, text};
use vm_system_tests::program;

const BASIC: [&str; 10] = [
    "cancel",
    "getTask",
    "get_state",
    "list_executions",
    "load",
    "session_close",
    "session_create",
    "session_eval",
    "start",
    "submitTask",
];

fn names(listed: &Value) -> Vec<&str> {
    let tools = listed["tools"].as_array().expect("tools").iter();
    let mut names: Vec<&str> = tools.map(|tool| tool["name"].as_str().expect("a name")).collect();
    names.sort_unstable();
    names
}

fn initialized(agent: &mut Agent) -> Value {
    let about = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about });
    agent.request("initialize", params);
    agent.send_line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    agent.request("tools/list", json!({}))
}

#[test]
fn ten_tools_are_listed_and_the_others_can_be_called() {
    let home = place();
    let mut agent = Agent::spawn(&home.place, &[]);
    let listed = initialized(&mut agent);
    assert_eq!(names(&listed), BASIC);
    // An agent reads the whole list before anything else: about 4 000 tokens.
    assert!(listed.to_string().len() < 20_000, "{}", listed.to_string().len());
    let call = json!({ "name": "list_programs", "arguments": {} });
    assert_eq!(text(&agent.request("tools/call", call)), "No programs loaded");
    agent.close();
    let mut agent = Agent::spawn(&home.place, &["--toolsets", "branch, plans"]);
    let listed = initialized(&mut agent);
    for tool in ["rewind", "fork", "set_variable", "parsePlan", "loadFile", "start"] {
        assert!(names(&listed).contains(&tool), "{tool}");
    }
    assert!(!names(&listed).contains(&"get_output"));
    agent.close();
}

#[test]
fn a_program_is_driven_with_the_basic_tools_alone() {
    let home = place();
    home.place.write("p.ts", "function main(): string { console.log('out'); return CC('a?') + CC('b?'); }");
    let mut agent = Agent::spawn(&home.place, &[]);
    initialized(&mut agent);
    let mut call = |name: &str, arguments: Value| {
        assert!(BASIC.contains(&name), "{name}");
        agent.request("tools/call", json!({ "name": name, "arguments": arguments }))
    };
    let loaded = call("load", json!({ "programId": "p", "filePath": "p.ts" }));
    assert_eq!(text(&loaded), "Program loaded successfully from p.ts: p");
    for execution in ["one", "two", "three"] {
        call("start", json!({ "programId": "p", "executionId": execution }));
    }
    let waiting = call("list_executions", json!({ "status": "waiting" }));
    let listed = waiting["structuredContent"]["executions"].as_array().expect("a list").clone();
    assert_eq!(listed.len(), 3, "{waiting}");
    assert!(listed.iter().all(|one| one["summary"]["currentPrompt"] == "a?"), "{waiting}");
    let cancelled = call("cancel", json!({ "executionId": "two" }));
    assert_eq!(cancelled["structuredContent"]["status"], "cancelled", "{cancelled}");
    assert_eq!(text(&cancelled), "Requested the cancellation of two. Status: cancelled");
    call("submitTask", json!({ "executionId": "one", "result": "x" }));
    call("submitTask", json!({ "executionId": "one", "result": "y" }));
    for (status, expected) in [("ok", "one"), ("cancelled", "two"), ("waiting", "three")] {
        let found = call("list_executions", json!({ "status": status }));
        let found = &found["structuredContent"]["executions"];
        assert_eq!(
            (found[0]["executionId"].as_str(), found.as_array().map(Vec::len)),
            (Some(expected), Some(1))
        );
    }
    let again = call("cancel", json!({ "executionId": "one" }));
    assert_eq!(again["structuredContent"]["status"], "ok", "an ended execution keeps its status: {again}");
    let expected = "Nothing to cancel: one had already ended (ok). getTask executionId=one shows its result; start begins \
                    another execution.";
    assert_eq!(text(&again), expected);
    let taken = call("start", json!({ "programId": "p", "executionId": "three" }));
    assert!(taken["isError"] == true && text(&taken).contains(": choose another name, or end"), "{taken}");
}

#[test]
fn texts_for_an_agent_with_ten_tools_lead_on_with_these_or_say_how_others_are_listed() {
    let home = place();
    home.place.write("app.mjs", "export const out = 7");
    let mut agent = Agent::spawn(&home.place, &["--worktree", &home.place.worktree().to_string_lossy()]);
    initialized(&mut agent);
    let mut call = |name: &str, arguments: Value| {
        assert!(BASIC.contains(&name), "{name}");
        agent.request("tools/call", json!({ "name": name, "arguments": arguments }))
    };
    let missing = text(&call("start", json!({ "programId": "none", "executionId": "e" })));
    assert!(
        missing.contains("load adds one; list_programs (listed with `vm-system mcp --toolsets admin`"),
        "{missing}"
    );
    let missing = text(&call("session_eval", json!({ "sessionId": "none", "code": "1" })));
    assert!(missing.contains("session_create creates one; list_sessions (listed with "), "{missing}");
    let session = call("session_create", json!({}))["structuredContent"]["sessionId"].clone();
    let mut eval = |code: &str| {
        let arguments = json!({ "sessionId": session, "code": code });
        text(&agent.request("tools/call", json!({ "name": "session_eval", "arguments": arguments })))
    };
    let long = eval("for (let line = 0; line < 500; line++) console.log('x'.repeat(100))");
    assert!(long.contains("for get_events (listed with `vm-system mcp --toolsets sessions`"), "{long}");
    // As the command line says it.
    let module = eval("import { out } from './app.mjs'; out");
    assert!(module.contains("write `await import(\"…\")` or `require(\"…\")`"), "{module}");
    assert!(!eval("let a = ;").contains("import"));
    assert_eq!(eval("(await import('./app.mjs')).out"), "7");
    for write in
        ["require('fs').writeFileSync('a', 'b')", "try { require('fs').writeFileSync('a', 'b') } catch {}"]
    {
        let refused = eval(write);
        let template = refused.split("add-capability ").nth(1).and_then(|rest| rest.split(' ').next());
        let granted = format!("add-capability {} --kind fs --name write --enabled", template.expect("an id"));
        assert!(refused.contains(&granted), "{refused}");
    }
    agent.close();
}

#[test]
fn what_the_refusal_of_a_write_names_gives_the_right_to_the_next_session() {
    let home = place();
    let mut agent = Agent::start(&home.place, &["--worktree", &home.place.worktree().to_string_lossy()]);
    let write = "require('fs').writeFileSync('a', 'b'); require('fs').readFileSync('a', 'utf8')";
    let session = agent.data("session_create", json!({}))["sessionId"].clone();
    let refused = agent.fails("session_eval", json!({ "sessionId": session, "code": write }));
    let named = refused.split("`vm-system ").nth(1).and_then(|rest| rest.split('`').next());
    let mut command = command(&home.place, program::PRODUCT);
    command.arg("--socket").arg(home.place.socket()).args(named.expect("a command").split(' '));
    let ended = command.output().expect("vm-system");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let session = agent.data("session_create", json!({}))["sessionId"].clone();
    assert_eq!(agent.text("session_eval", json!({ "sessionId": session, "code": write })), "'b'");
    agent.close();
}

#[test]
fn a_file_of_the_worktree_is_run_by_its_absolute_path() {
    let home = place();
    home.place.write("in/app.js", "__filename");
    let mut agent = Agent::start(&home.place, &["--worktree", &home.place.worktree().to_string_lossy()]);
    let session = agent.data("session_create", json!({}))["sessionId"].clone();
    let run = |path: String| json!({ "sessionId": session, "path": path });
    let worktree = home.place.worktree();
    let file = worktree.join("in/app.js").display().to_string();
    let by_host = agent.data("session_run_file", run(file));
    let by_worktree = agent.data("session_run_file", run("in/app.js".to_owned()));
    assert_eq!((&by_host["status"], &by_host["value"]), (&json!("ok"), &by_worktree["value"]));
    let outside = worktree.parent().expect("a folder").join("app.js").display().to_string();
    assert!(agent.fails("session_run_file", run(outside)).contains("relative to the session's worktree"));
    agent.close();
}

#[test]
fn arguments_of_prompts_and_of_addresses_are_completed_with_the_clients_own_names() {
    let home = place();
    let mut agent = Agent::start(&home.place, &[]);
    for program in ["sum", "the sum", "other"] {
        agent.text("load", json!({ "programId": program, "source": "function main() { return CC('a?') }" }));
    }
    agent.text("start", json!({ "programId": "sum", "executionId": "first run" }));
    agent.text("start", json!({ "programId": "other", "executionId": "second" }));
    let mut values = |reference: Value, name: &str, value: &str, given: Value| {
        let argument = json!({ "name": name, "value": value });
        let params = json!({ "ref": reference, "argument": argument, "context": { "arguments": given } });
        agent.request("completion/complete", params)["completion"]["values"].clone()
    };
    let prompt = || json!({ "type": "ref/prompt", "name": "run_program" });
    let address = |uri: &str| json!({ "type": "ref/resource", "uri": uri });
    assert_eq!(values(prompt(), "programId", "SU", json!({})), json!(["sum", "the sum"]));
    assert_eq!(values(prompt(), "executionId", "", json!({})), json!(["second", "first run"]));
    assert_eq!(values(prompt(), "executionId", "", json!({ "programId": "sum" })), json!(["first run"]));
    assert_eq!(values(prompt(), "executionId", "", json!({ "programId": "none" })), json!([]));
    assert_eq!(values(address("vm://executions/{id}/output"), "id", "sec", json!({})), json!(["second"]));
    // A name that cannot stand in an address is no value; the id is.
    let programs = values(address("vm://programs/{id}"), "id", "", json!({}));
    assert_eq!((programs.as_array().map(Vec::len), &programs[0]), (Some(3), &json!("other")));
    assert!(programs[1].as_str().is_some_and(|id| id.len() == 36), "{programs}");
    for (reference, name) in [
        (json!({ "type": "ref/prompt", "name": "write_program" }), "task"),
        (json!({ "type": "ref/prompt", "name": "none" }), "x"),
        (address("vm://none/{id}"), "id"),
    ] {
        assert_eq!(values(reference, name, "", json!({})), json!([]));
    }
    agent.close();
}

#[test]
fn the_life_of_a_session_is_read_in_parts() {
    let home = place();
    let mut agent = Agent::start(&home.place, &[]);
    let worktree = home.place.worktree();
    let session = agent.data("session_create", json!({ "worktree": worktree }));
    let id = session["sessionId"].as_str().expect("an id").to_owned();
    agent.data("session_eval", json!({ "sessionId": id, "code": "1" }));
    agent.data("session_close", json!({ "sessionId": id }));
    let part = agent.data("session_events", json!({ "sessionId": id, "after": 1, "limit": 3 }));
    assert_eq!((&part["next"], &part["truncated"]), (&json!(4), &json!(true)), "{part}");
    assert_eq!((&part["events"][0]["type"], &part["events"][2]["detail"]), (&json!("ready"), &json!("ok")));
    let rest = agent.data("session_events", json!({ "sessionId": id, "after": 4 }));
    assert_eq!((&rest["events"][0]["type"], &rest["truncated"]), (&json!("closed"), &json!(false)), "{rest}");
}

#[test]
fn the_call_after_a_cancelled_one_never_finds_its_session_busy() {
    let home = place();
    let mut agent = Agent::start(&home.place, &[]);
    let session = agent.data("session_create", json!({ "worktree": home.place.worktree() }));
    let id = session["sessionId"].clone();
    for round in 0..50 {
        let endless = json!({ "sessionId": id, "code": "for (;;) {}" });
        let request =
            agent.send_request("tools/call", json!({ "name": "session_eval", "arguments": endless }));
        agent.send_line(
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": request } })
                .to_string(),
        );
        let value = agent.tool("session_eval", json!({ "sessionId": id, "code": "1 + 1" }));
        assert_eq!(value["structuredContent"]["result"], 2, "{round}: {value}");
    }
}
