//! Runs `contract.txt` through the real daemon. Each response must match the table and the schema that `docs/openapi.json` has
//! for its route and status. The body of each successful request must match its schema; and every described field of a request
//! is sent by some line without a validation error.

use super::described::Description;
use super::pattern::{Memory, matches};
use serde_json::Value;
use std::collections::BTreeSet;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::http::{Http, Response};
use vm_system_tests::place::{TestDir, User};
use vm_system_tests::watch::Watch;

const TABLE: &str = include_str!("contract.txt");

/// Codes of the contract; INTERNAL is a bug wherever it is reached.
const CODES: &[&str] = &[
    "VALIDATION_ERROR",
    "INVALID_REQUEST",
    "TEMPLATE_NOT_FOUND",
    "SESSION_NOT_FOUND",
    "EXECUTION_NOT_FOUND",
    "FILE_NOT_FOUND",
    "LIBRARY_NOT_FOUND",
    "LIBRARY_NOT_INSTALLED",
    "NOT_FOUND",
    "METHOD_NOT_ALLOWED",
    "CONFLICT",
    "SESSION_NOT_READY",
    "SESSION_BUSY",
    "INVALID_PATH",
    "OUTPUT_LIMIT_EXCEEDED",
    "STARTUP_MODE_UNSUPPORTED",
    "STARTUP_FAILED",
    "ENGINE_UNSUPPORTED",
    "IDEMPOTENCY_MISMATCH",
    "MODULE_NOT_ALLOWED",
    "LIMIT_NOT_ALLOWED",
    "CAPACITY_EXCEEDED",
    "STORAGE_UNAVAILABLE",
    "NOT_PERMITTED",
    "COMPILE_ERROR",
    "PROGRAM_NOT_FOUND",
    "TASK_NOT_PENDING",
    "ANSWER_INVALID",
];

/// One line of the table.
struct Case {
    number: usize,
    until: bool,
    method: String,
    path: String,
    field: Option<(String, String)>,
    body: String,
    status: u16,
    response: String,
}

impl Case {
    fn parse(number: usize, line: &str) -> Self {
        let columns: Vec<&str> = line.split(" | ").map(str::trim).collect();
        let [request, body, status, response] = columns[..] else { panic!("line {number}: {line}") };
        let (until, request) =
            request.strip_prefix("UNTIL ").map_or((false, request), |request| (true, request));
        let (request, field) = match request.split_once(" [") {
            Some((request, field)) => (request, field.trim_end_matches(']').split_once(": ")),
            None => (request, None),
        };
        let (method, path) = request.split_once(' ').unwrap_or_else(|| panic!("line {number}: {line}"));
        Self {
            number,
            until,
            method: method.to_owned(),
            path: path.to_owned(),
            field: field.map(|(name, value)| (name.to_owned(), value.to_owned())),
            body: body.to_owned(),
            status: status.parse().unwrap_or_else(|_| panic!("line {number}: {status}")),
            response: response.to_owned(),
        }
    }

    fn send(&self, http: &mut Http, memory: &Memory) -> Response {
        let path = format!("/api/v1{}", memory.filled(&self.path));
        let body = memory.filled(&self.body);
        let typed = body.split_once(':').filter(|(kind, _)| kind.contains('/') && !kind.contains(['{', '"']));
        let (kind, body) = match typed {
            Some((kind, text)) => (kind, Some(text)),
            None => ("application/json", (body != "-").then_some(body.as_str())),
        };
        let mut fields = vec![("content-type", if body.is_some() { kind } else { "" })];
        fields.extend(self.field.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        http.request(&self.method, &path, &fields, body)
    }

    /// The JSON that is sent, if it is an object.
    fn object(&self, memory: &Memory) -> Option<Value> {
        let body = serde_json::from_str(&memory.filled(&self.body)).ok();
        body.filter(Value::is_object)
    }

    /// Why a response does not match its line, if it does not.
    fn judge(&self, response: &Response, memory: &mut Memory, described: &Description) -> Result<(), String> {
        if response.status != self.status {
            return Err(format!("status {} instead of {}", response.status, self.status));
        }
        let body: Value = serde_json::from_slice(&response.body).map_err(|error| error.to_string())?;
        if self.response != "-" && !self.response.starts_with(['{', '[']) {
            let code = response.code();
            return if code == self.response {
                described.refusal(&body)
            } else {
                Err(format!("code {code}"))
            };
        }
        described.judge(&self.method, &self.path, response.status, &body)?;
        if let Some(sent) = self.object(memory) {
            described.judge_request(&self.method, &self.path, &sent)?;
        }
        if self.response == "-" {
            return Ok(());
        }
        let pattern = serde_json::from_str(&self.response).map_err(|error| format!("the table: {error}"))?;
        matches(&pattern, &body, memory)
    }
}

struct Scene {
    daemon: Daemon,
    http: Http,
    memory: Memory,
}

impl Scene {
    fn new(config: &str) -> Self {
        let place = TestDir::new(User::AsStarted);
        place.write("app.js", "console.log(args.n, __ARGS__.n, process.env.WHO); 1");
        place.write("boot/first.js", "var order = ['first']");
        place.write("boot/second.js", "order.push('second')");
        place.write("boot/bad.js", "null.boom");
        std::fs::write(place.path("secret.js"), "'outside'").expect("secret");
        std::os::unix::fs::symlink("../secret.js", place.worktree().join("link.js")).expect("link");
        let mut memory = Memory::default();
        memory.keep("worktree", &place.worktree().to_string_lossy());
        memory.keep("unknown", "00000000-0000-4000-8000-000000000000");
        memory.keep("long", &"x".repeat(2_000));
        let options = DaemonOptions { config: config.to_owned(), ..DaemonOptions::default() };
        let daemon = Daemon::start_with(place, &options);
        let http = daemon.http();
        Self { daemon, http, memory }
    }
}

#[test]
fn every_line_of_the_contract_holds() {
    let mut scene = Scene::new("");
    let described = Description::read(&scene.http.get("/api/v1/openapi.json").json());
    let (mut codes, mut sent) = (BTreeSet::new(), BTreeSet::new());
    let mut wrong = Vec::new();
    for (index, line) in TABLE.lines().enumerate() {
        if line.is_empty() || line.starts_with(['#', '>']) {
            continue;
        }
        if let Some(config) = line.strip_prefix("@daemon ") {
            let before = std::mem::replace(&mut scene, Scene::new(&config.replace("; ", "\n")));
            drop(before.http);
            before.daemon.stop();
            continue;
        }
        let case = Case::parse(index + 1, line);
        let mut watch = Watch::begin();
        loop {
            let response = case.send(&mut scene.http, &scene.memory);
            let verdict = case.judge(&response, &mut scene.memory, &described);
            if let Err(why) = &verdict
                && case.until
            {
                watch.pause(|| format!("line {}: {why}", case.number));
                continue;
            }
            // A request with an unknown field gets one of these codes.
            if !["VALIDATION_ERROR", "INVALID_REQUEST"].contains(&response.code().as_str())
                && let Some(body) = case.object(&scene.memory)
                && let Some(schema) = described.request_schema(&case.method, &case.path)
            {
                let fields = body.as_object().into_iter().flat_map(|fields| fields.keys());
                sent.extend(fields.map(|field| format!("{schema}.{field}")));
            }
            codes.insert(response.code());
            assert!(response.field("x-request-id").is_some(), "line {}", case.number);
            if let Err(why) = verdict {
                wrong.push(format!("line {}: {line}\n    {why}\n    {}", case.number, response.text()));
            }
            break;
        }
    }
    assert!(wrong.is_empty(), "{} lines do not hold:\n{}", wrong.len(), wrong.join("\n"));
    let unsent: Vec<_> = described.request_fields().difference(&sent).cloned().collect();
    assert!(unsent.is_empty(), "no line sends {unsent:?}");
    for code in CODES {
        assert!(codes.contains(*code), "no line reaches {code}");
    }
    assert!(!codes.contains("INTERNAL"));
    scene.daemon.stop();
}
