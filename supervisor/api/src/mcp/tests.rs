//! The table of tools, and how the transport over lines handles what is not a message.

use super::lines::LineTransport;
use super::output::next_step;
use super::tools::{SETS, TOOLS};
use super::{FileRefusal, McpBackend, McpClient, ToolSets, VerbFuture, serve};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use uuid::Uuid;
use vm_system_ops::IdempotencyKey;
use vm_system_protocol::control::{
    CurrentGet, ErrorCode, ExecCancel, ExecStart, ExecutionState, Op, OpError, Reply, Verb as _,
};
use vm_system_protocol::ids::{ExecutionId, SessionId};
use vm_system_protocol::model::{Execution, Metrics};

/// A backend without verbs.
struct NoVerbs;

impl McpBackend for NoVerbs {
    fn client(&self, _: &rmcp::model::Extensions) -> Result<McpClient, String> {
        Ok(McpClient { key: Some("test".to_owned()), ..McpClient::default() })
    }

    fn perform<'a>(
        &'a self,
        _: &'a McpClient,
        op: Op,
        _: IdempotencyKey,
    ) -> VerbFuture<'a, Result<Reply, OpError>> {
        let reply = match op {
            Op::CurrentGet(_) => Ok(CurrentGet::any_reply(None)),
            _ => Err(OpError::new(ErrorCode::ExecutionNotFound, "nothing is here")),
        };
        Box::pin(std::future::ready(reply))
    }

    fn read(&self, path: &Path, _: usize) -> Result<String, FileRefusal> {
        Err(FileRefusal::NotFound(path.display().to_string()))
    }

    fn reads_files(&self) -> bool {
        true
    }
}

/// A supervisor in which every execution runs for ever; the session "busy" refuses executions.
struct Sessions {
    session: SessionId,
    execution: ExecutionId,
    /// The requests that it received.
    requests: mpsc::UnboundedSender<String>,
}

impl Sessions {
    fn execution(&self) -> Execution {
        let begun = json!({
            "id": self.execution, "session_id": self.session, "kind": "repl", "args": {}, "env": {},
            "status": "running", "started_at": "2026-01-01T00:00:00.000Z",
            "metrics": Metrics::default(),
        });
        serde_json::from_value(begun).expect("an execution")
    }
}

impl McpBackend for Sessions {
    fn client(&self, _: &rmcp::model::Extensions) -> Result<McpClient, String> {
        Ok(McpClient::default())
    }

    fn perform<'a>(
        &'a self,
        _: &'a McpClient,
        op: Op,
        _: IdempotencyKey,
    ) -> VerbFuture<'a, Result<Reply, OpError>> {
        let ready = |reply| -> VerbFuture<'a, _> { Box::pin(std::future::ready(reply)) };
        let note = |what: String| self.requests.send(what).expect("the test listens");
        match op {
            Op::ExecStart(new) if new.session == "busy" => {
                note("refused".to_owned());
                ready(Err(OpError::new(ErrorCode::SessionBusy, "another execution runs")))
            }
            Op::ExecStart(_) => ready(Ok(ExecStart::any_reply(ExecutionState::Execution(self.execution())))),
            Op::ExecWait(wait) => {
                note(format!("wait for {}", wait.execution));
                Box::pin(std::future::pending())
            }
            Op::ExecCancel(cancel) => {
                note(format!("cancel {}", cancel.execution));
                ready(Ok(ExecCancel::any_reply(())))
            }
            other => panic!("not expected: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_cancelled_evaluation_ends_its_own_execution_and_no_other() {
    let (sent, mut requests) = mpsc::unbounded_channel();
    let execution = ExecutionId::from_uuid(Uuid::now_v7());
    let session = SessionId::from_uuid(Uuid::now_v7());
    let mut client = Client::connect(Arc::new(Sessions { session, execution, requests: sent }));
    client.initialize().await;
    let cancelled = |id: u32| {
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } })
            .to_string()
    };
    let eval =
        |id: u32, session: &str| tool(id, "session_eval", &json!({ "sessionId": session, "code": "1" }));
    // Refused because another execution runs there, which must not be cancelled.
    client.send(eval(1, "busy").to_string().as_bytes()).await;
    client.send(cancelled(1).as_bytes()).await;
    assert_eq!(requests.recv().await.as_deref(), Some("refused"));
    client.send(eval(2, "s").to_string().as_bytes()).await;
    assert_eq!(requests.recv().await, Some(format!("wait for {execution}")), "nothing else was requested");
    client.send(cancelled(2).as_bytes()).await;
    assert_eq!(requests.recv().await, Some(format!("cancel {execution}")));
}

struct Client {
    read: BufReader<ReadHalf<DuplexStream>>,
    write: WriteHalf<DuplexStream>,
}

impl Client {
    fn start() -> Self {
        Self::connect(Arc::new(NoVerbs))
    }

    fn connect(backend: Arc<dyn McpBackend>) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (read, write) = tokio::io::split(theirs);
        tokio::spawn(serve(backend, LineTransport::new(read, write)));
        let (read, write) = tokio::io::split(ours);
        Self { read: BufReader::new(read), write }
    }

    async fn send(&mut self, line: &[u8]) {
        self.write.write_all(line).await.expect("open");
        self.write.write_all(b"\n").await.expect("open");
    }

    async fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.read.read_line(&mut line).await.expect("open");
        serde_json::from_str(&line).expect("JSON")
    }

    async fn request(&mut self, message: Value) -> Value {
        self.send(message.to_string().as_bytes()).await;
        self.receive().await
    }

    async fn initialize(&mut self) {
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" }
        });
        let response = self
            .request(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }))
            .await;
        assert_eq!(response["result"]["protocolVersion"], "2025-11-25", "{response}");
    }
}

fn tool(id: u32, name: &str, arguments: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": name, "arguments": arguments } })
}

#[test]
fn every_tool_has_a_name_of_its_own_a_description_and_schemas_of_objects() {
    let mut names = HashSet::new();
    for row in TOOLS.iter() {
        let listed = serde_json::to_value(row.listed()).expect("a tool");
        assert!(names.insert(row.name), "{} is listed twice", row.name);
        assert!(listed["description"].as_str().is_some_and(|text| text.len() > 20), "{listed}");
        for schema in ["inputSchema", "outputSchema"] {
            assert_eq!(listed[schema]["type"], "object", "{}", row.name);
            let known = listed[schema]["properties"].as_object().expect("properties");
            for field in listed[schema]["required"].as_array().expect("required") {
                assert!(known.contains_key(field.as_str().expect("a name")), "{} {field}", row.name);
            }
        }
    }
}

/// The schemas in a schema, itself included.
fn schemas_in<'a>(value: &'a Value, found: &mut Vec<&'a serde_json::Map<String, Value>>) {
    match value {
        Value::Object(object) => {
            found.push(object);
            object.values().for_each(|part| schemas_in(part, found));
        }
        Value::Array(parts) => parts.iter().for_each(|part| schemas_in(part, found)),
        _ => {}
    }
}

#[test]
fn schemas_of_tools_have_no_formats_of_rust_types_and_every_integer_has_bounds() {
    // Formats that JSON Schema has; SDKs print a warning for each other one.
    const KNOWN: &[&str] = &["date-time", "uuid", "uri"];
    for row in TOOLS.iter() {
        let listed = serde_json::to_value(row.listed()).expect("a tool");
        let mut schemas = Vec::new();
        schemas_in(&listed["inputSchema"], &mut schemas);
        schemas_in(&listed["outputSchema"], &mut schemas);
        for schema in schemas {
            // A field may be called `format`.
            if let Some(Value::String(format)) = schema.get("format") {
                assert!(KNOWN.contains(&format.as_str()), "{}: {format}", row.name);
            }
            if schema.get("type") == Some(&json!("integer")) {
                let is_bounded = ["minimum", "maximum"].iter().all(|bound| {
                    schema.get(*bound).and_then(Value::as_i64).is_some_and(|bound| bound.abs() < 1 << 53)
                });
                assert!(is_bounded, "{}: {schema:?}", row.name);
            }
        }
    }
}

/// Names of tools in a text that are not listed with these sets, nor said how to list. Names that are words of English are not looked
/// for, except where the text is a call.
fn unlisted_in(text: &str, sets: &ToolSets) -> Vec<&'static str> {
    let is_part = |char: char| char.is_alphanumeric() || char == '_';
    let unlisted = TOOLS.iter().filter(|row| !row.is_in(sets));
    let is_named = |name: &str| {
        text.match_indices(name).any(|(at, _)| {
            let (before, after) = (&text[..at], &text[at + name.len()..]);
            let is_word = name.bytes().all(|byte| byte.is_ascii_lowercase());
            !before.ends_with(is_part)
                && !after.starts_with(is_part)
                && !after.starts_with(" (listed with `vm-system mcp --toolsets ")
                && (!is_word || after.starts_with(" executionId="))
        })
    };
    unlisted.map(|row| row.name).filter(|name| is_named(name)).collect()
}

/// The string literals of a source text, without its tests and comments.
fn literals(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code = lines.collect::<Vec<_>>().join("\n").replace("'\"'", "");
    let mut found = Vec::new();
    let mut chars = code.chars();
    while chars.by_ref().any(|char| char == '"') {
        let mut literal = String::new();
        while let Some(char) = chars.next().filter(|char| *char != '"') {
            match char {
                // A line that goes on: the spaces at its begin are not part of the text.
                '\\' => match chars.next() {
                    Some('\n') => {
                        let rest = chars.as_str().trim_start();
                        chars = rest.chars();
                    }
                    Some(other) => literal.push(other),
                    None => {}
                },
                char => literal.push(char),
            }
        }
        found.push(literal);
    }
    found
}

fn sources(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.file_name().is_some_and(|name| name != "tests.rs") {
            found.push(std::fs::read_to_string(&path).expect("a source"));
        }
    }
}

#[test]
fn texts_name_no_tool_that_is_not_listed_without_saying_how_it_is() {
    let none = ToolSets::default();
    for row in TOOLS.iter() {
        let set = SETS.iter().find(|(_, sets)| *sets == [row.set]).map_or("default", |(name, _)| name);
        let sets: ToolSets = set.parse().expect("a set");
        let [description, input, output] = row.texts();
        for text in [description, input, output] {
            assert!(unlisted_in(&text, &sets).is_empty(), "{}: {:?}", row.name, unlisted_in(&text, &sets));
        }
    }
    for code in vm_system_protocol::control::ErrorCode::ALL {
        let step = next_step(*code, &none).unwrap_or_default();
        assert!(unlisted_in(&step, &none).is_empty(), "{code:?}: {step}");
    }
    let mut texts = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/mcp"), &mut texts);
    let descriptions: Vec<String> = TOOLS.iter().map(|row| row.texts()[0].clone()).collect();
    let mut seen = 0;
    for literal in texts.iter().flat_map(|source| literals(source)) {
        // Names as such, and descriptions, which were looked at.
        let is_known = descriptions.contains(&literal) || TOOLS.iter().any(|row| row.name == literal);
        seen += usize::from(is_known);
        assert!(
            is_known || unlisted_in(&literal, &none).is_empty(),
            "{:?}: {literal}",
            unlisted_in(&literal, &none)
        );
    }
    assert!(seen > 2 * TOOLS.len(), "names and descriptions were found: {seen}");
    assert_eq!(none.named("getTask"), "getTask");
    let all: ToolSets = "all".parse().expect("a set");
    assert_eq!(all.named("get_events"), "get_events");
    assert_eq!(unlisted_in("call get_events", &none), ["get_events"]);
    assert_eq!(unlisted_in("cancel shows status; status executionId=x", &none), ["status"]);
    assert!(unlisted_in(&none.named("get_events"), &none).is_empty());
}

#[tokio::test]
async fn an_invalid_message_gets_an_error_and_the_connection_stays_open() {
    let mut client = Client::start();
    client.send(b"{\"jsonrpc\":").await;
    let error = client.receive().await;
    assert_eq!((&error["error"]["code"], error.get("id")), (&json!(-32700), Some(&Value::Null)), "{error}");
    client.send(b"\xff\xfe").await;
    assert_eq!(client.receive().await["error"]["code"], -32700);
    for invalid in [
        json!([]),
        json!(7),
        json!({}),
        json!({ "id": 3, "method": 7 }),
        json!({ "jsonrpc": "1.0", "id": 4 }),
    ] {
        assert_eq!(client.request(invalid.clone()).await["error"]["code"], -32600, "{invalid}");
    }
    // Before the handshake, notifications and responses are ignored.
    client.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    client.send(br#"{"jsonrpc":"2.0","id":9,"result":{}}"#).await;
    client.send(b"").await;
    client.initialize().await;
    let unknown =
        client.request(json!({ "jsonrpc": "2.0", "id": 1, "method": "no/such", "params": {} })).await;
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    let bad =
        client.request(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {} })).await;
    assert_eq!(bad["error"]["code"], -32602, "{bad}");
    let missing = client.request(tool(3, "no_such_tool", &json!({}))).await;
    assert_eq!(missing["error"]["code"], -32602, "{missing}");
}

#[tokio::test]
async fn an_overlong_line_is_dropped_and_reported() {
    let mut client = Client::start();
    client.initialize().await;
    let chunk = vec![b'x'; 1 << 20];
    for _ in 0..17 {
        client.write.write_all(&chunk).await.expect("open");
    }
    client.send(b"").await;
    let error = client.receive().await;
    assert_eq!(error["error"]["code"], -32600, "{error}");
    let response = client.request(json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" })).await;
    assert_eq!(response["id"], 1);
}

#[tokio::test]
async fn wrong_arguments_are_an_error_that_the_agent_can_read() {
    let mut client = Client::start();
    client.initialize().await;
    for (name, arguments) in [
        ("load", json!({})),
        ("load", json!({ "programId": 1, "source": "" })),
        ("start", json!({ "programId": "p", "executionId": "e", "executionID": "f" })),
        ("get_output", json!({ "after": -1 })),
        ("set_current", json!({})),
    ] {
        let response = client.request(tool(1, name, &arguments)).await;
        assert_eq!(response["result"]["isError"], true, "{name} {arguments}: {response}");
        let text = response["result"]["content"][0]["text"].as_str().expect("text");
        assert!(text.starts_with("Error: "), "{text}");
    }
    let none = client.request(tool(2, "getTask", &json!({}))).await;
    let text = none["result"]["content"][0]["text"].as_str().expect("text");
    assert!(text.contains("No current execution set"), "{text}");
}

#[test]
fn a_client_whose_name_the_verbs_would_refuse_has_no_key() {
    assert_eq!(super::key_of_client(" the agent ").as_deref(), Some("client the agent"));
    for refused in ["", " ", "\u{1b}[31m", "a\u{202e}b", &"x".repeat(151)] {
        assert_eq!(super::key_of_client(refused), None, "{refused:?}");
    }
}
