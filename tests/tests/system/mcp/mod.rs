//! Agents on standard streams, through the real binary: the tools, both generations of the protocol, many agents at a time,
//! agents that misbehave, and the daemon that they start and share.

mod answers;
mod outcomes;
mod toolsets;

use serde_json::{Value, json};
use vm_system_tests::PATIENCE;
use vm_system_tests::command::readable;
use vm_system_tests::mcp::{Agent, OnDemand, text};
use vm_system_tests::place::{TestDir, User};
use vm_system_tests::watch::Watch;

const SUM: &str = "
    let total = 0;
    function main() {
        console.log('begin');
        total = Number(CC('first?')) + Number(CC('second?', { schema: { type: 'number' } })) * 10;
        console.log('sum', total);
        return { total };
    }
";

fn place() -> OnDemand {
    OnDemand::new(TestDir::new(User::AsStarted))
}

#[test]
fn administrator_names_the_user_of_a_session_and_of_a_program() {
    let home = place();
    let mut agent = Agent::start(&home.place, &["--worktree", &home.place.worktree().to_string_lossy()]);
    home.place.write("note", "read");
    let source = "function main() { return fs.readFile('note') }";
    agent.text("load", json!({ "programId": "p", "source": source }));
    let own = User::AsStarted.uid().to_string();
    let session = agent.data("session_create", json!({ "asUser": own }));
    assert_eq!(session["status"], "ready", "{session}");
    let started = agent.data("start", json!({ "programId": "p", "executionId": "e", "asUser": own }));
    assert_eq!(started["result"], "read", "{started}");
    assert_eq!(agent.data("restart", json!({ "programId": "p", "asUser": own }))["result"], "read");
    let (code, other) =
        if User::can_be_switched() { ("OWNER_GONE", "3999999999") } else { ("NOT_PERMITTED", "0") };
    for (tool, arguments) in [
        ("session_create", json!({ "asUser": other })),
        ("start", json!({ "programId": "p", "executionId": "f", "asUser": other })),
        ("restart", json!({ "programId": "p", "asUser": other })),
    ] {
        let refused = agent.tool(tool, arguments);
        assert_eq!(refused["_meta"]["vm-system/error"]["code"], code, "{refused}");
    }
    agent.close();
}

#[test]
fn agent_drives_a_program_and_gets_the_originals_texts() {
    let home = place();
    let mut agent = Agent::start(&home.place, &[]);
    assert_eq!(agent.data("server_info", json!({}))["programs"], 0);
    assert_eq!(agent.text("list_programs", json!({})), "No programs loaded");
    let none = agent.fails("getTask", json!({}));
    assert!(none.contains("No current execution set. Use list_executions"), "{none}");

    let loaded = agent.text("load", json!({ "programId": "sum", "source": SUM }));
    assert_eq!(loaded, "Program loaded successfully: sum");
    let wrong = agent.fails("load", json!({ "programId": "bad", "source": "let a = 1;\nlet b = ;" }));
    assert!(wrong.starts_with("Error: ") && wrong.contains(":2:9"), "{wrong}");

    let start = json!({ "programId": "sum", "executionId": "one" });
    let started = agent.tool("start", start.clone());
    assert_eq!(text(&started), "Execution started: one (set as current)");
    assert_eq!(started["structuredContent"]["task"]["prompt"], "first?");
    let again = agent.fails("start", start);
    assert!(again.starts_with("Error: "), "{again}");

    for _ in 0..2 {
        let task = agent.tool("getTask", json!({}));
        assert_eq!(text(&task), "first?");
        assert_eq!(task["structuredContent"]["state"], "AWAITING_COGNITIVE_RESULT");
    }
    let first = agent.data("getTask", json!({}))["task"]["id"].clone();
    let resumed = agent.tool("submitTask", json!({ "result": "2", "taskId": first }));
    assert_eq!(text(&resumed), "Execution resumed");
    assert_eq!(resumed["structuredContent"]["task"]["prompt"], "second?");
    let stale = agent.tool("submitTask", json!({ "result": "3", "taskId": first }));
    assert_eq!(stale["isError"], true);
    assert_eq!(stale["_meta"]["vm-system/error"]["code"], "TASK_NOT_PENDING", "{stale}");
    agent.fails("submitTask", json!({ "result": "many" }));
    let execution = agent.data("get_execution", json!({}));
    assert_eq!(execution["currentTask"]["attempts"], 1, "{execution}");
    assert!(execution["currentTask"]["lastAttemptAt"].is_string(), "{execution}");

    let status = agent.data("status", json!({ "executionId": "one" }));
    assert!(status["variables"].as_array().is_some_and(|all| !all.is_empty()), "{status}");
    assert!(status["pc"].as_str().is_some_and(|pc| pc.starts_with("5:")), "{status}");
    let listed = agent.data("list_executions", json!({}));
    assert_eq!(listed["executions"][0]["summary"]["currentPrompt"], "second?");
    assert_eq!(listed["executions"][0]["isCurrent"], true);

    agent.text("submitTask", json!({ "result": 4 }));
    let done = agent.tool("getTask", json!({}));
    assert_eq!(text(&done), r#"Execution completed with result: {"total":42}"#);
    assert_eq!(done["structuredContent"]["state"], "COMPLETED");
    let output = agent.data("get_output", json!({}));
    assert_eq!(output["lines"], json!(["begin", "sum 42"]));
    let rest = agent.data("get_output", json!({ "after": output["next"] }));
    assert_eq!(rest["lines"], json!([]));

    let started = agent.text("restart", json!({ "programId": "sum", "executionId": "one" }));
    assert_eq!(started, "Execution started: one (set as current)");
    agent.close();
}

#[test]
fn rewinding_forking_and_changing_variables_are_tools() {
    let home = place();
    let mut agent = Agent::start(&home.place, &[]);
    agent.text(
        "load",
        json!({ "programId": "p", "source": "function main() { let n = 1; CC('a?'); CC('b?'); return n; }" }),
    );
    agent.text("start", json!({ "programId": "p", "executionId": "e" }));
    let state = agent.data("get_state", json!({}));
    let first =
        state["checkpoints"].as_array().expect("checkpoints").last().expect("one")["checkpoint"].clone();
    agent.text("submitTask", json!({ "result": "x" }));
    assert_eq!(agent.text("set_variable", json!({ "name": "n", "value": 7 })), "Variable set: n");
    let forked = agent.data("fork", json!({ "newExecutionId": "branch" }));
    assert_eq!(forked["task"]["prompt"], "b?");
    agent.text("submitTask", json!({ "executionId": "branch", "result": "x" }));
    let done = agent.data("getTask", json!({ "executionId": "branch" }));
    assert_eq!(done["result"], 7, "{done}");
    let back = agent.data("rewind", json!({ "checkpoint": first }));
    assert_eq!((&back["executionId"], &back["task"]["prompt"]), (&json!("e"), &json!("a?")), "{back}");
    assert_eq!(agent.text("getTask", json!({})), "a?", "the current one is the one that has the name");
    let why = agent.fails("rewind", json!({ "checkpoint": 9999 }));
    assert!(why.contains("9999"), "{why}");
}

#[test]
fn deleting_needs_a_token_that_is_valid_once() {
    let home = place();
    let mut agent = Agent::start(&home.place, &[]);
    agent.text("load", json!({ "programId": "p", "source": "function main() { return CC('?'); }" }));
    agent.text("start", json!({ "programId": "p", "executionId": "e" }));
    for (tool, field, id) in [("delete_execution", "executionId", "e"), ("delete_program", "programId", "p")]
    {
        let guessed = agent.fails(tool, json!({ field: id, "confirmToken": format!("delete-{id}-0") }));
        assert!(guessed.contains("Invalid confirmation token"), "{guessed}");
        let unconfirmed = agent.data(tool, json!({ field: id }));
        assert_eq!(
            (&unconfirmed["confirmationRequired"], &unconfirmed["deleted"]),
            (&json!(true), &json!(false))
        );
        let token = unconfirmed["token"].clone();
        let gone = agent.text(tool, json!({ field: id, "confirmToken": token }));
        assert!(gone.ends_with(&format!("deleted: {id}")), "{gone}");
        agent.fails(tool, json!({ field: id, "confirmToken": token }));
    }
    assert_eq!(agent.data("list_executions", json!({}))["executions"], json!([]));
    assert!(agent.fails("getTask", json!({})).contains("No current execution"));
}

#[test]
fn files_are_read_beneath_the_allowed_folders_only() {
    let home = place();
    home.place.write("programs/p.ts", "function main(): string { return CC('?' as string); }");
    std::fs::write(home.place.path("secret.ts"), "1").expect("file");
    let mut agent = Agent::start(&home.place, &[]);
    let loaded = agent.text("loadFile", json!({ "programId": "p", "filePath": "programs/p.ts" }));
    assert_eq!(loaded, "Program loaded successfully from programs/p.ts: p");
    let none = agent.fails("loadFile", json!({ "programId": "p", "filePath": "none.ts" }));
    assert_eq!(none, "Error: File not found: none.ts");
    for outside in ["../secret.ts", "/etc/hostname"] {
        let denied = agent.fails("loadFile", json!({ "programId": "p", "filePath": outside }));
        assert!(denied.starts_with("Error: Permission denied: "), "{denied}");
    }
}

#[test]
fn sessions_run_javascript_and_keep_their_variables() {
    let home = place();
    home.place.write("app.js", "console.log('args', args.n); args.n + 1");
    let mut agent = Agent::start(&home.place, &[]);
    let worktree = home.place.worktree();
    let session = agent.data("session_create", json!({ "worktree": worktree }));
    let id = session["sessionId"].as_str().expect("an id").to_owned();
    agent.text("session_eval", json!({ "sessionId": id, "code": "var x = 20" }));
    let value = agent.data("session_eval", json!({ "sessionId": id, "code": "console.log('hi'); x + 1" }));
    assert_eq!((&value["result"], &value["output"]), (&json!(21), &json!(["hi"])), "{value}");
    let thrown = agent.tool("session_eval", json!({ "sessionId": id, "code": "nope()" }));
    assert_eq!(thrown["isError"], true);
    assert!(text(&thrown).contains("ReferenceError"), "{thrown}");
    let ran =
        agent.data("session_run_file", json!({ "sessionId": id, "path": "app.js", "args": { "n": 3 } }));
    assert_eq!(ran["output"], json!(["args 3"]), "{ran}");
    let events = agent.data("get_events", json!({ "executionId": value["executionId"], "limit": 1 }));
    assert_eq!((&events["next"], &events["truncated"]), (&json!(1), &json!(true)), "{events}");
    let flood = agent.data(
        "session_eval",
        json!({ "sessionId": id, "code": "for (let i = 0; i < 300; i++) console.log('x'.repeat(1000))" }),
    );
    assert_eq!(flood["truncated"], true);
    assert!(flood["output"].as_array().is_some_and(|lines| lines.len() < 20));
    assert!(agent.data("session_inspect", json!({ "sessionId": id }))["inspection"].is_object());
    assert_eq!(
        agent.data("list_sessions", json!({ "status": "ready" }))["sessions"].as_array().map(Vec::len),
        Some(1)
    );
    assert_eq!(agent.data("session_close", json!({ "sessionId": id }))["status"], "closed");
}

#[test]
fn requests_of_the_newer_generation_need_no_handshake() {
    let home = place();
    let mut agent = Agent::spawn(&home.place, &[]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let found = agent.request("server/discover", json!({ "_meta": meta }));
    assert!(
        found["supportedVersions"].as_array().is_some_and(|all| all.contains(&json!("2026-07-28"))),
        "{found}"
    );
    assert!(
        found["supportedVersions"].as_array().is_some_and(|all| all.contains(&json!("2025-11-25"))),
        "{found}"
    );
    let tools = agent.request("tools/list", json!({ "_meta": meta }));
    assert!(tools["tools"].as_array().is_some_and(|all| all.len() == 10));
    let call = json!({ "name": "server_info", "arguments": {}, "_meta": meta });
    let called = agent.request("tools/call", call);
    assert_eq!(called["structuredContent"]["name"], "vm-system", "{called}");
    agent.close();
}

/// Waits until the client is notified that this document has changed.
fn updated(agent: &mut Agent, uri: &str) -> Value {
    let about = |message: &Value| {
        message["method"] == "notifications/resources/updated" && message["params"]["uri"] == uri
    };
    if let Some(at) = agent.received.iter().position(about) {
        return agent.received.remove(at);
    }
    loop {
        let message = agent.receive();
        if about(&message) {
            return message;
        }
        agent.received.push(message);
    }
}

#[test]
fn client_is_notified_that_an_execution_has_changed() {
    let home = place();
    let mut agent = Agent::start(&home.place, &[]);
    let program = json!({ "programId": "p", "source": "function main() { CC('a?'); return CC('b?'); }" });
    agent.text("load", program);
    let id = agent.data("start", json!({ "programId": "p", "executionId": "e" }))["id"].clone();
    let uri = format!("vm://executions/{}", id.as_str().expect("an id"));
    for named in [&uri, "vm://executions/e"] {
        agent.request("resources/subscribe", json!({ "uri": named }));
    }
    agent.text("submitTask", json!({ "result": "1" }));
    updated(&mut agent, &uri);
    updated(&mut agent, "vm://executions/e");
    agent.request("resources/unsubscribe", json!({ "uri": "vm://executions/e" }));
    agent.text("submitTask", json!({ "result": "2" }));
    updated(&mut agent, &uri);
    for wrong in ["vm://programs/p", "vm://executions/e/output", "file:///etc/passwd", "vm://executions/none"]
    {
        let request = agent.send_request("resources/subscribe", json!({ "uri": wrong }));
        assert!(agent.response(request)["error"]["code"].is_i64(), "{wrong}");
    }
    agent.close();
}

#[test]
fn newer_generation_is_notified_by_a_request_that_stays_open() {
    let home = place();
    let mut agent = Agent::spawn(&home.place, &["--client", "listener"]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let call = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments, "_meta": meta });
    let source = "function main() { return CC('a?'); }";
    agent.request("tools/call", call("load", json!({ "programId": "p", "source": source })));
    agent.request("tools/call", call("start", json!({ "programId": "p", "executionId": "e" })));
    let wanted = json!({ "resourceSubscriptions": ["vm://executions/e", "file:///etc/passwd"] });
    let listening =
        agent.send_request("subscriptions/listen", json!({ "notifications": wanted, "_meta": meta }));
    let acknowledged = agent.receive();
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged", "{acknowledged}");
    assert!(!acknowledged.to_string().contains("passwd"), "{acknowledged}");
    updated(&mut agent, "vm://executions/e");
    agent.request("tools/call", call("submitTask", json!({ "executionId": "e", "result": "x" })));
    updated(&mut agent, "vm://executions/e");
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": { "requestId": listening, "_meta": meta } });
    assert!(agent.send_line(cancel.to_string()));
    agent.close();
}

#[test]
fn an_execution_that_is_started_as_a_task_is_a_task_of_mcp() {
    let home = place();
    let mut agent = Agent::spawn(&home.place, &[]);
    let with_extensions = |extensions: Value| {
        json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": { "extensions": extensions },
        })
    };
    let meta = with_extensions(json!({ "io.modelcontextprotocol/tasks": {} }));
    let call = |name: &str, arguments: Value, meta: &Value| json!({ "name": name, "arguments": arguments, "_meta": meta });
    let source = "function main() {
        const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
        const kinds = { type: 'array', items: { type: 'string' } };
        return CC('how?') + CC('how many?', { schema }).n + CC('which?', { schema: kinds }).join();
    }";
    agent.request("tools/call", call("load", json!({ "programId": "p", "source": source }), &meta));
    let start = |id: &str| json!({ "programId": "p", "executionId": id, "asTask": true });
    let plain = agent.request("tools/call", call("start", start("plain"), &with_extensions(json!({}))));
    assert_eq!(
        plain["structuredContent"]["task"]["prompt"], "how?",
        "a client that does not know tasks: {plain}"
    );
    let task = agent.request("tools/call", call("start", start("task"), &meta));
    assert_eq!(task["resultType"], "task", "{task}");
    let id = task["taskId"].clone();
    let get = |agent: &mut Agent| agent.request("tasks/get", json!({ "taskId": id, "_meta": meta }));
    // The task exists at once, while the execution still runs.
    let mut watch = Watch::begin();
    while get(&mut agent)["status"] != "input_required" {
        watch.pause(|| "it needs no input".to_owned());
    }
    let answer = |task: &Value, content: Value| {
        let requests = task["inputRequests"].as_object().expect("an input request");
        let (key, _) = requests.iter().next().expect("one");
        json!({ "taskId": task["taskId"], "inputResponses": { key: { "action": "accept", "content": content } }, "_meta": meta })
    };
    let first = get(&mut agent);
    let (_, input) = first["inputRequests"].as_object().and_then(|all| all.iter().next()).expect("one");
    assert_eq!(
        (&input["method"], &input["params"]["message"]),
        (&json!("elicitation/create"), &json!("how?"))
    );

    let daemon = home.daemon().expect("a daemon");
    daemon.kill().expect("SIGKILL");
    assert!(readable(&daemon, PATIENCE));
    agent.request("tasks/update", answer(&first, json!({ "answer": "so " })));
    let second = get(&mut agent);
    let (_, input) = second["inputRequests"].as_object().and_then(|all| all.iter().next()).expect("one");
    assert_eq!(input["params"]["requestedSchema"]["properties"]["n"]["type"], "integer", "{input}");
    // A second answer to the same task has no effect.
    agent.request("tasks/update", answer(&first, json!({ "answer": "not so" })));
    agent.request("tasks/update", answer(&second, json!({ "n": 7 })));
    // A form cannot express a list: the schema is part of the message.
    let third = get(&mut agent);
    let (key, input) = third["inputRequests"].as_object().and_then(|all| all.iter().next()).expect("one");
    let message = input["params"]["message"].as_str().expect("a text");
    assert!(message.starts_with("which?\n\nThe answer is JSON that matches this schema: "), "{message}");
    assert!(message.contains(r#""type":"array""#), "{message}");
    let unfit = json!({ "taskId": id, "_meta": meta,
        "inputResponses": { key: { "action": "accept", "content": { "answer": "a" } } } });
    let unfit = agent.send_request("tasks/update", unfit);
    assert_eq!(agent.response(unfit)["error"]["code"], -32_602);
    agent.request("tasks/update", answer(&third, json!({ "answer": r#"["a", "b"]"# })));
    let done = get(&mut agent);
    assert_eq!(done["status"], "completed", "{done}");
    assert_eq!(done["result"]["structuredContent"]["result"], "so 7a,b", "{done}");

    let other = agent.request("tools/call", call("start", start("other"), &meta));
    let other = json!({ "taskId": other["taskId"], "_meta": meta });
    agent.request("tasks/cancel", other.clone());
    assert_eq!(agent.request("tasks/get", other)["status"], "cancelled");
    let unknown = agent.send_request("tasks/get", json!({ "taskId": "none", "_meta": meta }));
    assert!(agent.response(unknown)["error"].is_object());
    agent.close();
}

#[test]
fn prompts_and_resources_are_offered() {
    let home = place();
    let mut agent = Agent::start(&home.place, &[]);
    agent.text(
        "load",
        json!({ "programId": "p", "source": "function main() { console.log('printed'); return CC('?'); }" }),
    );
    let id = agent.data("start", json!({ "programId": "p", "executionId": "e" }))["id"].clone();
    let id = id.as_str().expect("an id");
    let prompts = agent.request("prompts/list", json!({}));
    assert_eq!(prompts["prompts"].as_array().map(Vec::len), Some(2));
    let prompt = json!({ "name": "run_program", "arguments": { "programId": "p" } });
    let prompt = agent.request("prompts/get", prompt);
    assert!(
        prompt["messages"][0]["content"]["text"].as_str().is_some_and(|text| text.contains("submitTask"))
    );
    let listed = agent.request("resources/list", json!({}));
    assert_eq!(listed["resources"].as_array().map(Vec::len), Some(2), "{listed}");
    assert!(agent.request("resources/templates/list", json!({}))["resourceTemplates"].is_array());
    let mut read = |uri: String| {
        let result = agent.request("resources/read", json!({ "uri": uri }));
        result["contents"][0]["text"].as_str().expect("text").to_owned()
    };
    assert!(read(format!("vm://executions/{id}")).contains("AWAITING_COGNITIVE_RESULT"));
    assert_eq!(read(format!("vm://executions/{id}/output")), "printed");
    assert!(read(format!("vm://executions/{id}/events")).contains("\"printed\""));
    assert!(read("vm://programs/p".to_owned()).contains("function main"));
    for unknown in ["vm://executions/nothing", "vm://programs/../x", "file:///etc/passwd"] {
        let request = agent.send_request("resources/read", json!({ "uri": unknown }));
        let response = agent.response(request);
        assert_eq!(response["error"]["code"], -32002, "{unknown}: {response}");
        assert_eq!(response["error"]["data"]["uri"], unknown, "{response}");
    }
}

#[test]
fn long_calls_report_progress_and_can_be_cancelled() {
    let home = place();
    let mut agent = Agent::start(&home.place, &[]);
    let session = agent.data("session_create", json!({ "worktree": home.place.worktree() }));
    let id = session["sessionId"].clone();
    let call = json!({
        "name": "session_eval",
        "arguments": { "sessionId": id, "code": "for (;;) {}" },
        "_meta": { "progressToken": "t" },
    });
    let request = agent.send_request("tools/call", call);
    let progress = agent.receive();
    assert_eq!(progress["method"], "notifications/progress", "{progress}");
    assert_eq!(progress["params"]["progressToken"], "t");
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": request } });
    agent.send_line(cancel.to_string());
    // The next request to the session waits until the execution has ended.
    let value = agent.tool("session_eval", json!({ "sessionId": id, "code": "1 + 1" }));
    assert_eq!(value["structuredContent"]["result"], 2);
    assert!(
        agent.received.iter().all(|message| message["id"] != json!(request)),
        "no response to a cancelled request"
    );
}

#[test]
fn killed_daemon_is_started_again_and_waiting_executions_continue() {
    let home = place();
    let mut agent = Agent::start(&home.place, &["--client", "me"]);
    agent.text("load", json!({ "programId": "sum", "source": SUM }));
    agent.text("start", json!({ "programId": "sum", "executionId": "e" }));
    let daemon = home.daemon().expect("a daemon");
    daemon.kill().expect("SIGKILL");
    assert!(readable(&daemon, PATIENCE));
    assert_eq!(agent.text("getTask", json!({})), "first?");
    agent.text("submitTask", json!({ "result": "1" }));
    agent.close();
    let mut other = Agent::start(&home.place, &["--client", "me"]);
    assert_eq!(other.text("getTask", json!({})), "second?", "the same client has its current execution");
    let mut other_client = Agent::start(&home.place, &[]);
    assert!(other_client.fails("getTask", json!({})).contains("No current execution"));
}

#[test]
fn idle_daemon_exits() {
    let home = place();
    let mut agent = Agent::start(&home.place, &["--idle-exit", "1"]);
    agent.data("server_info", json!({}));
    let daemon = home.daemon().expect("a daemon");
    agent.close();
    assert!(readable(&daemon, PATIENCE), "it is still there");
    assert!(home.daemon().is_none());
}

#[test]
fn twenty_agents_at_once_share_one_daemon_and_do_not_disturb_each_other() {
    let home = place();
    let mut agents: Vec<Agent> = (0..20).map(|_| Agent::spawn(&home.place, &[])).collect();
    let first: Vec<u64> = agents
        .iter_mut()
        .map(|agent| {
            let about = json!({ "name": "test", "version": "1" });
            agent.send_request(
                "initialize",
                json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about }),
            );
            agent.send_request("tools/call", json!({ "name": "server_info", "arguments": {} }))
        })
        .collect();
    for (agent, request) in agents.iter_mut().zip(first) {
        let response = agent.response(request);
        assert_eq!(response["result"]["structuredContent"]["name"], "vm-system", "{response}");
    }
    let log = std::fs::read_to_string(home.place.path("state/daemon.log")).expect("its log");
    assert_eq!(log.matches("ready pid=").count(), 1, "one daemon for all:\n{log}");
    let handles: Vec<_> = agents
        .into_iter()
        .enumerate()
        .map(|(number, mut agent)| {
            std::thread::spawn(move || {
                let mut tool = |name: &str, arguments: Value| {
                    let result = agent.request("tools/call", json!({ "name": name, "arguments": arguments }));
                    assert_ne!(result["isError"], true, "{name}: {result}");
                    text(&result)
                };
                let program = format!("p{number}");
                let source = format!("function main() {{ return CC('{number} a?') + CC('{number} b?'); }}");
                tool("load", json!({ "programId": program, "source": source }));
                tool("start", json!({ "programId": program, "executionId": format!("e{number}") }));
                for part in ["a", "b"] {
                    assert_eq!(tool("getTask", json!({})), format!("{number} {part}?"));
                    tool("submitTask", json!({ "result": format!("{number}{part}") }));
                }
                let done = tool("getTask", json!({}));
                assert_eq!(done, format!("Execution completed with result: \"{number}a{number}b\""));
                agent.close();
            })
        })
        .collect();
    for handle in handles {
        handle.join().expect("an agent");
    }
}

#[test]
fn agents_that_misbehave_harm_no_other() {
    let home = place();
    let mut good = Agent::start(&home.place, &[]);
    good.text("load", json!({ "programId": "p", "source": "function main() { return CC('?'); }" }));
    good.text("start", json!({ "programId": "p", "executionId": "e" }));
    // Half a message, then the end.
    let mut half = Agent::start(&home.place, &[]);
    half.send_line(r#"{"jsonrpc":"2.0","id":7,"method":"tools/ca"#);
    half.close();
    Agent::spawn(&home.place, &[]).close();
    // Every invalid message gets an error, and the connection continues.
    let mut rude = Agent::start(&home.place, &[]);
    for (line, code) in [("{", -32700), ("\u{0}\u{1}", -32700), ("[]", -32600), ("{\"id\":1}", -32600)] {
        rude.send_line(line);
        assert_eq!(rude.receive()["error"]["code"], code, "{line:?}");
    }
    rude.send_line(vec![b'x'; (16 << 20) + 1]);
    assert_eq!(rude.receive()["error"]["code"], -32600);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    rude.send_line(deep);
    assert_eq!(rude.receive()["error"]["code"], -32700);
    let request = rude.send_request("no/such/method", json!({}));
    assert_eq!(rude.response(request)["error"]["code"], -32601);
    // A flood: each request gets its result, or an error with a code.
    let last = (0..500)
        .map(|_| rude.send_request("tools/call", json!({ "name": "list_programs", "arguments": {} })))
        .last();
    let mut received = 0;
    while received < 500 {
        let response = rude.receive();
        assert!(response.get("result").is_some() || response["error"]["code"] == -32000, "{response}");
        received += 1;
    }
    assert!(last.is_some());
    rude.close();
    // A client that never reads its responses.
    let mut unread = Agent::start(&home.place, &[]);
    for _ in 0..50 {
        unread.send_request("tools/list", json!({}));
    }
    drop(unread);
    assert_eq!(good.text("getTask", json!({})), "?");
}

#[test]
fn docs_list_the_current_tools() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/mcp-tools.md");
    let current = vm_system_api::mcp::reference();
    if std::env::var_os("VM_SYSTEM_BLESS").is_some() {
        std::fs::write(&path, &current).expect("docs/mcp-tools.md");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == current, "docs/mcp-tools.md is out of date: VM_SYSTEM_BLESS=1 writes it");
}

#[test]
fn the_first_folder_of_the_originals_variable_is_the_worktree() {
    let home = place();
    let folder = home.place.path("programs");
    std::fs::create_dir(&folder).expect("a folder");
    std::fs::write(folder.join("data.txt"), "content").expect("a file");
    let paths = format!("/nowhere:{}:{}", folder.display(), home.place.worktree().display());
    let mut agent = Agent::start_in(&home.place, &[], &[("CVM_SANDBOX_PATHS", &paths)]);
    let source = "function main() { return [fs.readFile('data.txt'), fs.listFiles().length]; }";
    agent.text("load", json!({ "programId": "p", "source": source }));
    let done = agent.data("start", json!({ "programId": "p", "executionId": "e" }));
    assert_eq!(done["result"], json!(["content", 1]), "{done}");
}
