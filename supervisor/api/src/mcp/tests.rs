//! The table of tools, and how the transport over lines handles what is not a message.

use super::lines::LineTransport;
use super::tools::TOOLS;
use super::{FileRefusal, McpBackend, McpClient, VerbFuture, serve};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use uuid::Uuid;
use vm_system_protocol::control::{DurableOp, DurableReply, ErrorCode, Op, OpError, Reply};
use vm_system_protocol::ids::{ExecutionId, SessionId};
use vm_system_protocol::model::{Execution, Metrics};

/// A backend without verbs.
struct NoVerbs;

impl McpBackend for NoVerbs {
    fn client(&self, _: &rmcp::model::Extensions) -> Result<McpClient, String> {
        Ok(McpClient { key: Some("test".to_owned()), ..McpClient::default() })
    }

    fn perform<'a>(&'a self, _: &'a McpClient, op: Op, _: String) -> VerbFuture<'a, Result<Reply, OpError>> {
        let reply = match op {
            Op::Durable(DurableOp::CurrentGet { .. }) => Ok(Reply::Durable(DurableReply::Runs(Vec::new()))),
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

    fn perform<'a>(&'a self, _: &'a McpClient, op: Op, _: String) -> VerbFuture<'a, Result<Reply, OpError>> {
        let ready = |reply| -> VerbFuture<'a, _> { Box::pin(std::future::ready(reply)) };
        let note = |what: String| self.requests.send(what).expect("the test listens");
        match op {
            Op::ExecStart(new) if new.session == "busy" => {
                note("refused".to_owned());
                ready(Err(OpError::new(ErrorCode::SessionBusy, "another execution runs")))
            }
            Op::ExecStart(_) => ready(Ok(Reply::Execution(Box::new(self.execution())))),
            Op::ExecWait { execution } => {
                note(format!("wait for {execution}"));
                Box::pin(std::future::pending())
            }
            Op::ExecCancel { execution } => {
                note(format!("cancel {execution}"));
                ready(Ok(Reply::Done))
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
    let mut client = Client::of(Arc::new(Sessions { session, execution, requests: sent }));
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
        Self::of(Arc::new(NoVerbs))
    }

    fn of(backend: Arc<dyn McpBackend>) -> Self {
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
