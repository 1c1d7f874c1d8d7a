//! Which tools are listed: about ten by default, further sets on request. Every tool can be called, listed or not.

use super::place;
use serde_json::{Value, json};
use vm_system_tests::mcp::{Agent, text};

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
    let expected = "Nothing to cancel: one had already ended (ok). get_execution executionId=one shows its result; start begins \
                    another execution.";
    assert_eq!(text(&again), expected);
    let taken = call("start", json!({ "programId": "p", "executionId": "three" }));
    assert!(taken["isError"] == true && text(&taken).contains(": choose another name, or end"), "{taken}");
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
