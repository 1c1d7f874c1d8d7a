//! Runs tests in a session, in this process: the engine with its globals, as scripts find it, without a jail.

use crate::engine::{Ending, Engine, ScriptRun};
use crate::protocol::{Job, TestMode};
use std::path::Path;
use std::time::Duration;
use vm_system_protocol::ids::{ExecutionId, SessionId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{EventPayload, ExecutionKind, Limits, Resolver};
use vm_system_protocol::worker::{
    Done, Execute, HostError, HostReply, HostRequest, Outcome, Policy, SourceFormat, Start, WorkerEvent,
};
use vm_system_worker::engine::{Host, JsSession, preload};

/// The engine of sessions.
#[derive(Clone, Copy, Debug)]
pub struct QuickJs;

/// Limits of one test.
const CPU_MS: u32 = 50_000;
const MEM_MB: u32 = 1_024;

/// The host of test262's `INTERPRETING.md`, as far as one realm and one thread allow.
const HOST: &str = "globalThis.print = (text) => console.log(String(text));
globalThis.$262 = {
    global: globalThis,
    gc() {},
    detachArrayBuffer(buffer) { if (!buffer.detached) buffer.transfer(); },
    evalScript(text) { return (0, eval)(text); },
    agent: { start() { throw new SyntaxError('agents are not supported'); } },
};
";

/// Behind a test: the suite's host ignores rejections that nothing handles.
const END: &str = "\n;process.on('unhandledRejection', () => {});";

/// The files that modules import, and what was printed.
struct TestHost<'a> {
    root: &'a Path,
    printed: Vec<String>,
}

impl Host for TestHost<'_> {
    fn emit(&mut self, event: WorkerEvent) {
        if let EventPayload::Console { text, .. } = event.payload {
            self.printed.push(text);
        }
    }

    fn call(&mut self, request: HostRequest) -> HostReply {
        let failed = |code: &str| {
            HostReply::Failed(HostError { code: code.to_owned(), message: "not found".to_owned() })
        };
        let HostRequest::LoadModule { candidates, .. } = request else { return failed("MODULE_NOT_ALLOWED") };
        let found = candidates.into_iter().find_map(|path| {
            let source = std::fs::read_to_string(self.root.join(&path)).ok()?;
            Some((path, source))
        });
        let Some((path, source)) = found else { return failed("MODULE_NOT_FOUND") };
        let is_json = Path::new(&path).extension().is_some_and(|extension| extension == "json");
        let format = if is_json { SourceFormat::Json } else { SourceFormat::Module };
        HostReply::Module { path, source, format, package: None }
    }

    fn poll(&mut self) {}

    fn sleep(&mut self, at_most: Duration) {
        std::thread::park_timeout(at_most);
    }
}

impl Engine for QuickJs {
    fn run(&self, job: &Job, mode: TestMode) -> ScriptRun {
        let mut host = TestHost { root: &job.root, printed: Vec::new() };
        let ending = in_session(job, mode, &mut host);
        ScriptRun { ending, printed: host.printed }
    }
}

fn in_session(job: &Job, mode: TestMode, host: &mut TestHost<'_>) -> Ending {
    let preloaded = match preload() {
        Ok(preloaded) => preloaded,
        Err(error) => return Ending::Stopped(format!("the engine does not start: {error}")),
    };
    let limits = Limits { cpu_ms: CPU_MS, wall_ms: CPU_MS, mem_mb: MEM_MB, ..Limits::default() };
    let start = Start {
        session: SessionId::from_bytes([1; 16]),
        limits: limits.clone(),
        random_seed: [7; 32],
        console: true,
    };
    let policy = Policy {
        limits,
        resolver: Resolver::default(),
        strict: false,
        modules: Vec::new(),
        refused_modules: Vec::new(),
        disabled_globals: Vec::new(),
    };
    let mut session = JsSession::start(preloaded, &start);
    let mut run = |name: &str, format: SourceFormat, source: String| {
        let execute = Execute {
            execution: ExecutionId::from_bytes([2; 16]),
            kind: ExecutionKind::RunFile,
            source,
            file_name: name.to_owned(),
            format,
            args: JsonText::empty_object(),
            env: Vec::new(),
            argv: vec!["vm-system".to_owned(), name.to_owned()],
            policy: policy.clone(),
        };
        session.execute(&execute, host)
    };
    if !job.prelude.is_empty() {
        match ending(&run("harness.js", SourceFormat::Script, format!("{HOST}{}", job.prelude))) {
            Ending::Finished => {}
            other => return Ending::Stopped(format!("the harness: {}", other.describe())),
        }
    }
    let (format, head) = match mode {
        TestMode::Script => (SourceFormat::Script, ""),
        TestMode::StrictScript => (SourceFormat::Script, "\"use strict\";\n"),
        TestMode::Module => (SourceFormat::Module, ""),
    };
    // Only where there may be one: tests change what the globals of sessions use.
    let may_reject = ["Promise", "async", "import("].iter().any(|word| job.source.contains(word));
    let end = if may_reject && !job.prelude.is_empty() { END } else { "" };
    let done = run(&job.path, format, format!("{head}{}{end}", job.source));
    ending(&done)
}

fn ending(done: &Done) -> Ending {
    match &done.outcome {
        Outcome::Ok => Ending::Finished,
        Outcome::SyntaxError { message } => Ending::SyntaxError(message.clone()),
        Outcome::Exception { message } => {
            let name = message.trim_start_matches("Uncaught ");
            let end = name.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(name.len());
            Ending::Threw { name: name[..end].to_owned(), message: message.clone() }
        }
        other => Ending::Stopped(format!("{other:?}")),
    }
}
