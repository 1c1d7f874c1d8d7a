//! Agents over HTTP: the rules of the HTTP listener apply to them too, sessions belong to their owners, and both generations of
//! the protocol are served.

use super::people::{self, ALICE, BOB, ROOT};
use serde_json::{Value, json};
use std::fmt::Write as _;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::http::{Http, Response};
use vm_system_tests::place::User;
use vm_system_tests::watch;

const ACCEPT: (&str, &str) = ("accept", "application/json, text/event-stream");

/// Sends one message; the response's message is in the last event of its stream, or is its body.
fn post(http: &mut Http, fields: &[(&str, &str)], message: &Value) -> (Response, Value) {
    post_to(http, "/mcp", fields, message)
}

fn post_to(http: &mut Http, path: &str, fields: &[(&str, &str)], message: &Value) -> (Response, Value) {
    let mut all = vec![ACCEPT];
    all.extend(fields);
    let response = http.request("POST", path, &all, Some(&message.to_string()));
    let text = response.text();
    let data =
        text.lines().rev().filter_map(|line| line.strip_prefix("data: ")).find(|data| !data.is_empty());
    let value = serde_json::from_str(data.unwrap_or(&text)).unwrap_or(Value::Null);
    (response, value)
}

fn initialize() -> Value {
    let about = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params })
}

fn tool(name: &str, arguments: &Value) -> Value {
    let params = json!({ "name": name, "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params })
}

/// A session; its id.
fn session(http: &mut Http) -> String {
    let (response, reply) = post(http, &[], &initialize());
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(reply["result"]["protocolVersion"], "2025-11-25", "{reply}");
    let id = response.field("mcp-session-id").expect("a session").to_owned();
    let begun = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(post(http, &[("mcp-session-id", &id)], &begun).0.status, 202);
    id
}

fn call(http: &mut Http, session: &str, name: &str, arguments: &Value) -> Value {
    let (response, mut reply) = post(http, &[("mcp-session-id", session)], &tool(name, arguments));
    assert_eq!(response.status, 200, "{}", response.text());
    reply["result"].take()
}

#[test]
fn an_agent_over_http_drives_a_program_in_a_session_of_its_own() {
    let daemon = people::daemon(&[]);
    let mut alice = daemon.http().bearer(ALICE);
    let one = session(&mut alice);
    let other = session(&mut alice);
    let source = "function main() { return CC('first?') + CC('second?'); }";
    call(&mut alice, &one, "load", &json!({ "programId": "p", "source": source }));
    let started = call(&mut alice, &one, "start", &json!({ "programId": "p", "executionId": "e" }));
    assert_eq!(started["structuredContent"]["task"]["prompt"], "first?", "{started}");
    assert_eq!(call(&mut alice, &one, "getTask", &json!({}))["content"][0]["text"], "first?");
    assert_eq!(call(&mut alice, &other, "getTask", &json!({}))["isError"], true, "each session has its own");
    call(&mut alice, &one, "submitTask", &json!({ "result": "a" }));
    let done = call(&mut alice, &one, "submitTask", &json!({ "result": "b" }));
    assert_eq!(done["structuredContent"]["result"], "ab", "{done}");
    // Files of the client are not available over HTTP.
    let (_, unknown) = post(
        &mut alice,
        &[("mcp-session-id", &one)],
        &tool("loadFile", &json!({ "programId": "p", "filePath": "/etc/passwd" })),
    );
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    let mut bob = daemon.http().bearer(BOB);
    let mine = session(&mut bob);
    let hidden = call(&mut bob, &mine, "getTask", &json!({ "executionId": "e" }));
    assert_eq!(hidden["isError"], true, "{hidden}");
    for id in [one.as_str(), "nonsense"] {
        let (stolen, _) = post(&mut bob, &[("mcp-session-id", id)], &tool("list_programs", &json!({})));
        assert_eq!(stolen.status, 404, "{}", stolen.text());
    }
    let ended = alice.request("DELETE", "/mcp", &[("mcp-session-id", &one)], None);
    assert_eq!(ended.status, 204, "{}", ended.text());
    assert_eq!(
        post(&mut alice, &[("mcp-session-id", &one)], &tool("list_programs", &json!({}))).0.status,
        404
    );
}

/// The result of a tool in the newer generation, which has no sessions. `query` is appended to the path.
fn without_session(http: &mut Http, query: &str, name: &str, arguments: &Value) -> (Response, Value) {
    let mut message = tool(name, arguments);
    message["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let fields = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", name)];
    let (response, mut reply) = post_to(http, &format!("/mcp{query}"), &fields, &message);
    (response, reply["result"].take())
}

#[test]
fn the_newer_generation_needs_no_session() {
    let daemon = Daemon::start(User::AsStarted);
    let (response, reply) = without_session(&mut daemon.http(), "", "server_info", &json!({}));
    assert_eq!(reply["structuredContent"]["name"], "vm-system", "{}", response.text());
    assert!(response.field("mcp-session-id").is_none());
}

#[test]
fn methods_of_the_older_generation_do_not_exist_in_the_newer_one() {
    let daemon = Daemon::start(User::AsStarted);
    let mut http = daemon.http();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    for method in ["initialize", "resources/subscribe", "resources/unsubscribe", "ping", "no/such"] {
        for params in [json!({ "_meta": meta }), json!({ "_meta": meta, "uri": "vm://executions/e" })] {
            let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": &params });
            let name = params["uri"].as_str().map(|uri| ("mcp-name", uri));
            let version = ("mcp-protocol-version", "2026-07-28");
            let fields: Vec<_> = [version, ("mcp-method", method)].into_iter().chain(name).collect();
            let (response, reply) = post(&mut http, &fields, &message);
            assert_eq!(
                (response.status, &reply["error"]["code"]),
                (404, &json!(-32_601)),
                "{method}: {reply}"
            );
        }
    }
    // `Mcp-Name` is required of methods that exist.
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        let params = json!({ "_meta": meta, "uri": "vm://executions/e" });
        let message = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        let fields = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)];
        let (response, reply) = post(&mut http, &fields, &message);
        let error = &reply["error"];
        assert_eq!((response.status, &error["code"], &reply["id"]), (404, &json!(-32_601), &json!(7)));
        assert_eq!(error["data"]["method"], method, "{reply}");
    }
}

#[test]
fn agents_without_sessions_have_a_current_execution_only_under_a_name() {
    let daemon = Daemon::start(User::AsStarted);
    let mut http = daemon.http();
    let mut call_tool = |query: &str, name: &str, arguments: Value| {
        let (response, reply) = without_session(&mut http, query, name, &arguments);
        assert!(reply.is_object(), "{}", response.text());
        (reply["content"][0]["text"].as_str().expect("a text").to_owned(), reply)
    };
    call_tool("", "load", json!({ "programId": "p", "source": "function main() { return CC(args[0]); }" }));
    let start = |name: &str| json!({ "programId": "p", "executionId": name, "args": [name] });
    assert_eq!(call_tool("?client=a", "start", start("one")).0, "Execution started: one (set as current)");
    assert_eq!(
        call_tool("?client=b%20c", "start", start("two")).0,
        "Execution started: two (set as current)"
    );
    // Without a name, agents of the same owner cannot be distinguished.
    assert_eq!(call_tool("", "start", start("three")).0, "Execution started: three");
    let (text, refused) = call_tool("", "submitTask", json!({ "result": "for which execution?" }));
    assert!(refused["isError"] == true && text.contains("?client=NAME"), "{text}");
    assert_eq!(call_tool("", "set_current", json!({ "executionId": "three" })).1["isError"], true);
    assert_eq!(call_tool("?client=a", "getTask", json!({})).0, "one");
    assert_eq!(call_tool("?client=b+c", "getTask", json!({})).0, "two");
    assert_eq!(call_tool("", "getTask", json!({ "executionId": "three" })).0, "three");
    let (response, _) = without_session(&mut daemon.http(), "?client=", "getTask", &json!({}));
    assert!(response.text().contains("1 to 150 printable characters"), "{}", response.text());
    let (response, _) = without_session(&mut daemon.http(), "?cleint=a", "getTask", &json!({}));
    let refused: Value = serde_json::from_str(&response.text()).expect("JSON");
    let message = "this resource has no query parameter \"cleint\" (it has client, toolsets)";
    assert_eq!((response.status, &refused["error"]["message"]), (400, &json!(message)), "{refused}");
}

#[test]
fn rules_of_the_listener_hold_for_agents() {
    let daemon = people::daemon(&[]);
    let address = daemon.addresses()[0];
    let refused = |http: &mut Http, fields: &[(&str, &str)], status: u16| {
        let (response, _) = post(http, fields, &initialize());
        assert_eq!(response.status, status, "{fields:?}: {}", response.text());
    };
    let mut tcp = Http::tcp(address);
    refused(&mut tcp, &[("host", "evil.example")], 403);
    refused(&mut tcp, &[("origin", "http://evil.example")], 403);
    refused(&mut daemon.http(), &[("authorization", "Bearer wrong")], 401);
    let mut alice = daemon.http().bearer(ALICE);
    let large = "x".repeat(16 << 20);
    let response = alice.request("POST", "/mcp", &[ACCEPT], Some(&json!({ "large": large }).to_string()));
    assert_eq!(response.status, 413);
    let refused: Value = serde_json::from_str(&response.text()).expect("JSON");
    assert_eq!(
        (&refused["jsonrpc"], &refused["error"]["code"]),
        (&json!("2.0"), &json!(-32_600)),
        "{refused}"
    );
    assert!(refused["error"]["message"].as_str().is_some_and(|why| why.contains("16777216")), "{refused}");
    let mut alice = daemon.http().bearer(ALICE);
    let (response, _) = post(&mut alice, &[], &tool("list_programs", &json!({})));
    assert_eq!(response.status, 400, "a call without a session");
}

#[test]
fn what_is_refused_over_http_is_an_error_of_json_rpc() {
    let daemon = Daemon::start(User::AsStarted);
    let mut http = daemon.http();
    let call = tool("list_programs", &json!({})).to_string();
    let no_message = r#"{"jsonrpc":"2.0","id":"a"}"#;
    let (plain, json) = (("accept", "application/json"), ("content-type", "text/plain"));
    for (method, fields, body, status, code, id) in [
        ("POST", vec![ACCEPT], Some("{"), 400, -32_700, Value::Null),
        ("POST", vec![ACCEPT], Some("[]"), 400, -32_600, Value::Null),
        ("POST", vec![ACCEPT], Some("7"), 400, -32_600, Value::Null),
        ("POST", vec![ACCEPT], Some(no_message), 400, -32_600, json!("a")),
        ("POST", vec![ACCEPT], Some(call.as_str()), 400, -32_600, json!(2)),
        ("POST", vec![ACCEPT, ("mcp-session-id", "none")], Some(&call), 404, -32_600, json!(2)),
        ("POST", vec![plain], Some(&call), 406, -32_600, json!(2)),
        ("POST", vec![ACCEPT, json], Some(&call), 415, -32_600, json!(2)),
        ("GET", vec![ACCEPT], None, 400, -32_600, Value::Null),
        ("PUT", vec![ACCEPT], Some(&call), 405, -32_600, json!(2)),
    ] {
        let response = http.request(method, "/mcp", &fields, body);
        assert_eq!(response.status, status, "{method} {body:?}: {}", response.text());
        assert_eq!(response.field("content-type"), Some("application/json"), "{method} {body:?}");
        let refused: Value = serde_json::from_str(&response.text()).expect("JSON");
        assert_eq!(
            (&refused["jsonrpc"], &refused["error"]["code"]),
            (&json!("2.0"), &json!(code)),
            "{refused}"
        );
        assert_eq!(refused.get("id"), Some(&id), "{refused}");
        assert!(refused["error"]["message"].as_str().is_some_and(|why| why.len() > 10), "{refused}");
    }
}

/// SHA-256 of the tokens `agent-0-token` to `agent-8-token`.
const AGENTS: [&str; 9] = [
    "a3613bd4eab870ff1f83331dd76815fa4f3b43767779a71db746f241d519bcef",
    "b31af55fb6f579546e600bbb91251f742794917210a4155750df7f68723e239f",
    "7ec66a9df467e46c18d3a41c09269e440f9d0c98b2c3b6c937cf6ba745caced7",
    "cdca3a8b82dc44bc292fbff82669d4fe81253f986a0bab5757c2a95a2e5cb40f",
    "1762657f23021ca1624e16e670e134983641eb7fc228c106f6476a9ef519b664",
    "237752446747f2b6e3e31715e2b6fc2d281e49ca45e82592feda5494e1f6d651",
    "74488c390a4660bf6e53a1e1aaf59bb460f1a2dac6f6bc517690ad492fd4b532",
    "8b840ea1cfc9b8dfd382ee5100f2444420097fc43fb037a0cee8b9cd94cc0d55",
    "f9fbb1362cb58b7cad7cab434b754df6232979a2e416d65ae495f84f0a177fbe",
];

#[test]
fn owners_have_shares_of_the_sessions_and_idle_ones_make_way() {
    let daemon = people::daemon(&[]);
    let mut book = people::book(&["alice", "root"]);
    for (number, sha256) in AGENTS.iter().enumerate() {
        let _ =
            write!(book, "[[token]]\nname = \"agent-{number}\"\nrole = \"user\"\nsha256 = \"{sha256}\"\n");
    }
    people::write_book(&daemon.place, &book);
    daemon.hang_up();
    let is_known = || daemon.http().bearer("agent-8-token").get("/api/v1/templates").status == 200;
    watch::wait_until(is_known, || daemon.log());
    let begin = |http: &mut Http| post(http, &[], &initialize()).0;
    for number in 0..AGENTS.len() {
        let mut http = daemon.http().bearer(&format!("agent-{number}-token"));
        let first = session(&mut http);
        for _ in 0..64 {
            let begun = begin(&mut http);
            assert_eq!(begun.status, 200, "{number}: {}", begun.text());
        }
        let call = tool("list_programs", &json!({}));
        assert_eq!(post(&mut http, &[("mcp-session-id", &first)], &call).0.status, 404, "it has made way");
    }
    for token in [ALICE, ROOT] {
        session(&mut daemon.http().bearer(token));
    }
}

#[test]
fn messages_up_to_16_mib_are_read() {
    let daemon = Daemon::start(User::AsStarted);
    let mut http = daemon.http();
    let id = session(&mut http);
    let source = format!("function main() {{ return '{}'.length; }}", "x".repeat(900_000));
    let loaded = call(&mut http, &id, "load", &json!({ "programId": "p", "source": source }));
    assert_ne!(loaded["isError"], true, "{loaded}");
    let source = "function main() { return CC('?').length; }";
    call(&mut http, &id, "load", &json!({ "programId": "q", "source": source }));
    call(&mut http, &id, "start", &json!({ "programId": "q", "executionId": "e" }));
    let done = call(&mut http, &id, "submitTask", &json!({ "result": "x".repeat(6 << 20) }));
    assert_eq!(done["structuredContent"]["result"], 6 << 20, "{done}");
}

#[test]
fn sessions_continue_after_a_restart_of_the_daemon() {
    let daemon = Daemon::start(User::AsStarted);
    let mut http = daemon.http();
    let (one, ended) = (session(&mut http), session(&mut http));
    let source = "function main() { return CC('first?') + CC('second?'); }";
    call(&mut http, &one, "load", &json!({ "programId": "p", "source": source }));
    call(&mut http, &one, "start", &json!({ "programId": "p", "executionId": "e" }));
    assert_eq!(http.request("DELETE", "/mcp", &[("mcp-session-id", &ended)], None).status, 204);
    let gone = |http: &mut Http, id: &str| {
        let (refused, _) = post(http, &[("mcp-session-id", id)], &tool("list_programs", &json!({})));
        assert_eq!(refused.status, 404, "{}", refused.text());
    };
    gone(&mut http, &ended);
    let deleted = ended;
    let place = daemon.stop();

    let daemon = Daemon::start_with(place, &DaemonOptions::default());
    let mut http = daemon.http();
    // Without a new handshake, with the current execution of the session.
    assert_eq!(call(&mut http, &one, "getTask", &json!({}))["content"][0]["text"], "first?");
    call(&mut http, &one, "submitTask", &json!({ "result": "a" }));
    let subscribe = json!({ "jsonrpc": "2.0", "id": 3, "method": "resources/subscribe", "params": { "uri": "vm://executions/e" } });
    let (subscribed, reply) = post(&mut http, &[("mcp-session-id", &one)], &subscribe);
    assert_eq!((subscribed.status, &reply["result"]), (200, &json!({})), "{reply}");
    let forged = format!("{}A", &one[..one.len() - 1]);
    if forged != one {
        gone(&mut http, &forged);
    }
    // Ended before the restart.
    gone(&mut http, &deleted);
    let ended = http.request("DELETE", "/mcp", &[("mcp-session-id", &one)], None);
    assert_eq!(ended.status, 204, "{}", ended.text());
    gone(&mut http, &one);

    // Continued by one daemon, ended there, and unknown to the next, also one that follows a crash.
    let place = daemon.kill_everything();
    let daemon = Daemon::start_with(place, &DaemonOptions::default());
    for id in [&one, &deleted] {
        gone(&mut daemon.http(), id);
    }
}

#[test]
fn concurrent_requests_continue_a_session_together() {
    let daemon = Daemon::start(User::AsStarted);
    let id = session(&mut daemon.http());
    let daemon = Daemon::start_with(daemon.stop(), &DaemonOptions::default());
    std::thread::scope(|scope| {
        for number in 0..8 {
            let (daemon, id) = (&daemon, &id);
            scope.spawn(move || {
                // Requests at the same time have different ids.
                let mut message = tool("server_info", &json!({}));
                message["id"] = json!(number);
                let (response, reply) = post(&mut daemon.http(), &[("mcp-session-id", id)], &message);
                assert_eq!(reply["result"]["structuredContent"]["name"], "vm-system", "{}", response.text());
            });
        }
    });
}

#[test]
fn a_session_lists_the_sets_of_tools_that_its_address_names() {
    let daemon = Daemon::start(User::AsStarted);
    let mut http = daemon.http();
    let id = session(&mut http);
    let mut listed = |query: &str| {
        let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {} });
        post_to(&mut http, &format!("/mcp{query}"), &[("mcp-session-id", &id)], &list).1
    };
    let count = |reply: &Value| reply["result"]["tools"].as_array().map(Vec::len);
    assert_eq!(count(&listed("")), Some(10));
    assert_eq!(count(&listed("?toolsets=branch")), Some(14));
    let unknown = listed("?toolsets=nonsense");
    assert!(
        unknown["error"]["message"].as_str().is_some_and(|why| why.contains("the sets are")),
        "{unknown}"
    );
}
