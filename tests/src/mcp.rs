//! An agent: `vm-system mcp` in a test's folder, driven line by line. Every structured result of a tool is checked against the
//! schema that the tool announces.

use crate::PATIENCE;
use crate::client::Client;
use crate::command::{command, lines, readable, wait};
use crate::place::TestDir;
use crate::program;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::Receiver;
use vm_system_protocol::control::{RuntimeInfoGet, Shutdown};
use vm_system_sandbox::pidfd::PidFd;

/// The server process of an agent. Killed when the test ends, if it was not closed before.
#[derive(Debug)]
pub struct Agent {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    next: u64,
    schemas: HashMap<String, Value>,
    /// Messages that were received before an awaited response.
    pub received: Vec<Value>,
}

impl Agent {
    /// Starts the process without a handshake.
    pub fn spawn(place: &TestDir, arguments: &[&str]) -> Self {
        Self::spawn_in(place, arguments, &[])
    }

    fn spawn_in(place: &TestDir, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut mcp = command(place, program::PRODUCT);
        mcp.arg("mcp").arg("--socket").arg(place.socket()).arg("--state-dir").arg(place.path("state"));
        mcp.args(arguments)
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        let mut child = mcp.spawn().expect("vm-system mcp");
        let lines = lines(child.stdout.take().expect("piped"));
        let stdin = child.stdin.take();
        Self { child, stdin, lines, next: 0, schemas: HashMap::new(), received: Vec::new() }
    }

    /// Starts it with all tools and makes the handshake of the older generation.
    pub fn start(place: &TestDir, arguments: &[&str]) -> Self {
        Self::start_in(place, arguments, &[])
    }

    /// As [`Agent::start`], with variables of its environment.
    pub fn start_in(place: &TestDir, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let arguments: Vec<&str> = ["--toolsets", "all"].iter().chain(arguments).copied().collect();
        let mut agent = Self::spawn_in(place, &arguments, environment);
        let about = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about });
        let result = agent.request("initialize", params);
        assert_eq!(result["protocolVersion"], "2025-11-25");
        agent.send_line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        let tools = agent.request("tools/list", json!({}));
        for tool in tools["tools"].as_array().expect("tools") {
            let name = tool["name"].as_str().expect("a name").to_owned();
            agent.schemas.insert(name, tool["outputSchema"].clone());
        }
        agent
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a line unchanged; false if the process no longer reads.
    pub fn send_line(&mut self, line: impl AsRef<[u8]>) -> bool {
        let Some(stdin) = &mut self.stdin else { return false };
        stdin.write_all(line.as_ref()).and_then(|()| stdin.write_all(b"\n")).is_ok()
    }

    /// The next message.
    #[track_caller]
    pub fn receive(&mut self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("a message");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Sends a request and does not wait; its id.
    pub fn send_request(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        let mut message = json!({ "jsonrpc": "2.0", "id": self.next, "method": method });
        message["params"] = params;
        assert!(self.send_line(message.to_string()), "the server is gone");
        self.next
    }

    /// The whole response to a request.
    #[track_caller]
    pub fn response(&mut self, id: u64) -> Value {
        loop {
            let message = self.receive();
            if message["id"] == json!(id) {
                return message;
            }
            self.received.push(message);
        }
    }

    /// Sends a request; its result.
    #[track_caller]
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send_request(method, params);
        let mut response = self.response(id);
        assert!(response.get("error").is_none(), "{method}: {response}");
        response["result"].take()
    }

    /// Calls a tool; its whole result. Its data must match the tool's schema.
    #[track_caller]
    pub fn tool(&mut self, name: &str, arguments: Value) -> Value {
        let mut call = json!({ "name": name });
        call["arguments"] = arguments;
        let result = self.request("tools/call", call);
        if let Some(data) = result.get("structuredContent") {
            let schema = &self.schemas[name];
            fits(data, schema).unwrap_or_else(|why| panic!("{name}: {why}\n{data}"));
        } else {
            assert_eq!(result["isError"], true, "{name}: no data: {result}");
        }
        result
    }

    /// Calls a tool that must succeed; its data.
    #[track_caller]
    pub fn data(&mut self, name: &str, arguments: Value) -> Value {
        let mut result = self.tool(name, arguments);
        assert_ne!(result["isError"], true, "{name}: {result}");
        result["structuredContent"].take()
    }

    /// Calls a tool that must succeed; its text.
    #[track_caller]
    pub fn text(&mut self, name: &str, arguments: Value) -> String {
        let result = self.tool(name, arguments);
        assert_ne!(result["isError"], true, "{name}: {result}");
        text(&result)
    }

    /// Calls a tool that must fail; its text.
    #[track_caller]
    pub fn fails(&mut self, name: &str, arguments: Value) -> String {
        let result = self.tool(name, arguments);
        assert_eq!(result["isError"], true, "{name}: {result}");
        text(&result)
    }

    /// Closes its input; it must exit by itself.
    #[track_caller]
    pub fn close(mut self) {
        self.stdin = None;
        assert_eq!(wait(&mut self.child, PATIENCE), Some(Some(0)), "the end of vm-system mcp");
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All texts of a tool's result.
#[track_caller]
pub fn texts(result: &Value) -> Vec<&str> {
    let texts = result["content"].as_array().expect("content").iter();
    texts.map(|content| content["text"].as_str().expect("a text")).collect()
}

/// The first text of a tool's result.
#[track_caller]
pub fn text(result: &Value) -> String {
    result["content"][0]["text"].as_str().expect("a text").to_owned()
}

/// Checks a value against a schema: the keywords that our schemas use.
pub fn fits(value: &Value, schema: &Value) -> Result<(), String> {
    let right = match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_u64(),
        _ => true,
    };
    if !right {
        return Err(format!("{value} is no {}", schema["type"]));
    }
    if let Some(all) = schema["enum"].as_array().filter(|all| !all.contains(value)) {
        return Err(format!("{value} is not one of {all:?}"));
    }
    for item in value.as_array().into_iter().flatten() {
        fits(item, &schema["items"])?;
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        if value.get(name.as_str().unwrap_or_default()).is_none() {
            return Err(format!("{name} is missing"));
        }
    }
    for (name, field) in value.as_object().into_iter().flatten() {
        match schema["properties"].get(name) {
            Some(known) => fits(field, known).map_err(|why| format!("{name}: {why}"))?,
            None if schema["additionalProperties"] == json!(false) => {
                return Err(format!("{name} is unknown"));
            }
            None => {}
        }
    }
    Ok(())
}

/// A folder in which agents start their daemon on demand. That daemon is ended with the test.
#[derive(Debug)]
pub struct OnDemand {
    /// The folder.
    pub place: TestDir,
}

impl OnDemand {
    /// Starts no process.
    pub fn new(place: TestDir) -> Self {
        Self { place }
    }

    /// The running daemon, if there is one.
    pub fn daemon(&self) -> Option<PidFd> {
        UnixStream::connect(self.place.socket()).ok()?;
        match Client::connect(&self.place.socket()).op(RuntimeInfoGet) {
            Ok(info) => PidFd::open(info.pid).ok(),
            _ => None,
        }
    }
}

impl Drop for OnDemand {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = std::fs::read_to_string(self.place.path("state/daemon.log")).unwrap_or_default();
            eprintln!("---- the daemon's log ----\n{log}");
        }
        if let Some(daemon) = self.daemon() {
            let _ = Client::connect(&self.place.socket()).op(Shutdown);
            if !readable(&daemon, PATIENCE) {
                let _ = daemon.kill();
            }
        }
    }
}
