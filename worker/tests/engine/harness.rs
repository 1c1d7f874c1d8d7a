//! A session with a host in memory.
#![allow(dead_code)] // each test binary uses its part

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use vm_system_protocol::broker::{DirEntry, FileKind, FileStat, FsReply, FsRequest};
use vm_system_protocol::ids::{ExecutionId, SessionId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{
    ConsoleLevel, EventPayload, ExecutionKind, JsType, Limits, Resolver, ResultValue,
};
use vm_system_protocol::worker::{
    Done, Execute, HostError, HostReply, HostRequest, Outcome, PackageFile, Policy, SourceFormat, Start,
    WorkerEvent,
};
use vm_system_worker::engine::{Host, INTERRUPT, JsSession, LibrarySource, ModuleText, Preloaded, preload};

/// The requests and events that the engine sent, and the configuration of the host's replies.
#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) files: BTreeMap<String, String>,
    /// The texts of the modules that the zygote has compiled.
    pub(crate) compiled: BTreeMap<String, String>,
    pub(crate) events: Vec<EventPayload>,
    pub(crate) requests: Vec<HostRequest>,
    /// Refuses host modules, like a supervisor with a policy without host modules.
    pub(crate) refuses: bool,
    /// Replies to the requests that this host does not handle itself.
    pub(crate) replies: VecDeque<HostReply>,
    /// Interrupt at the n-th poll or sleep.
    pub(crate) interrupt_after: Option<u32>,
    /// Time that each host call takes.
    pub(crate) call_takes: Duration,
}

impl Memory {
    fn count_down(&mut self) {
        if let Some(left) = &mut self.interrupt_after {
            *left = left.saturating_sub(1);
            if *left == 0 {
                INTERRUPT.store(true, std::sync::atomic::Ordering::Relaxed);
            }
        }
    }

    /// The `package.json` that applies to a file.
    fn package_of(&self, path: &str) -> Option<PackageFile> {
        let mut folder = path;
        loop {
            folder = folder.rsplit_once('/').map_or("", |(folder, _)| folder);
            if folder == "node_modules" || folder.ends_with("/node_modules") {
                return None;
            }
            let path = format!("{folder}{}package.json", if folder.is_empty() { "" } else { "/" });
            match self.files.get(&path) {
                Some(source) => return Some(PackageFile { path, source: source.clone() }),
                None if folder.is_empty() => return None,
                None => {}
            }
        }
    }
}

impl Host for Memory {
    fn emit(&mut self, event: WorkerEvent) {
        self.events.push(event.payload);
    }

    fn call(&mut self, request: HostRequest) -> HostReply {
        self.requests.push(request.clone());
        let until = std::time::Instant::now() + self.call_takes;
        while std::time::Instant::now() < until {
            std::hint::spin_loop();
        }
        let missing = |code: &str, what: &str| {
            HostReply::Failed(HostError {
                code: code.to_owned(),
                message: match code {
                    "ENOENT" => format!("ENOENT: no such file or directory, open '{what}'"),
                    _ => format!("Cannot find {what}"),
                },
            })
        };
        if self.refuses && !matches!(request, HostRequest::LoadModule { .. }) {
            return missing("MODULE_NOT_ALLOWED", "the right");
        }
        match request {
            HostRequest::LoadModule { candidates, .. }
                if candidates.iter().any(|path| path.contains("hangs")) =>
            {
                let message = "the file system did not respond".to_owned();
                HostReply::Failed(HostError { code: "ETIMEDOUT".to_owned(), message })
            }
            HostRequest::LoadModule { candidates, package, import } => {
                match candidates.into_iter().find(|path| self.files.contains_key(path)) {
                    Some(path) => {
                        let format = match path.rsplit('.').next() {
                            Some("mjs") => SourceFormat::Module,
                            Some("json") => SourceFormat::Json,
                            Some("ts") if import => SourceFormat::TypeScriptModule,
                            Some("ts") => SourceFormat::TypeScript,
                            _ => SourceFormat::CommonJs,
                        };
                        let package = if package { self.package_of(&path) } else { None };
                        if self.compiled.get(&path) == Some(&self.files[&path]) {
                            return HostReply::Compiled { path, format, package };
                        }
                        HostReply::Module { source: self.files[&path].clone(), path, format, package }
                    }
                    None => missing("MODULE_NOT_FOUND", "it"),
                }
            }
            HostRequest::Fs(FsRequest::ReadFile { path }) => match self.files.get(&path) {
                Some(text) => HostReply::Fs(FsReply::Bytes(text.clone().into_bytes())),
                None => missing("ENOENT", &path),
            },
            HostRequest::Fs(FsRequest::Exists { path }) => {
                HostReply::Fs(FsReply::Bool(self.files.contains_key(&path)))
            }
            HostRequest::Fs(FsRequest::Stat { path, .. }) => match self.files.get(&path) {
                Some(text) => HostReply::Fs(FsReply::Stat(FileStat {
                    kind: FileKind::File,
                    size: text.len() as u64,
                    mode: 0o100_644,
                    mtime_ms: 1_000,
                    ctime_ms: 2_000,
                    atime_ms: 3_000,
                })),
                None => missing("ENOENT", &path),
            },
            // Folders without an end.
            HostRequest::Fs(FsRequest::ReadDir { path }) if path.starts_with("endless") => {
                let folder = |number| DirEntry { name: format!("d{number}"), kind: FileKind::Directory };
                HostReply::Fs(FsReply::Entries((0..1_000).map(folder).collect()))
            }
            HostRequest::Fs(FsRequest::ReadDir { .. }) => HostReply::Fs(FsReply::Entries(
                self.files
                    .keys()
                    .filter(|path| !path.contains('/'))
                    .map(|path| DirEntry { name: path.clone(), kind: FileKind::File })
                    .collect(),
            )),
            HostRequest::Fs(FsRequest::Access { path, .. }) => match self.files.get(&path) {
                Some(_) => HostReply::Fs(FsReply::Done),
                None => missing("ENOENT", &path),
            },
            HostRequest::Fs(FsRequest::Write { path, data, how, .. }) => {
                let text = String::from_utf8_lossy(&data).into_owned();
                let file = self.files.entry(path).or_default();
                if how.append {
                    file.push_str(&text);
                } else {
                    *file = text;
                }
                HostReply::Fs(FsReply::Done)
            }
            _ => self.replies.pop_front().unwrap_or_else(|| missing("EIO", "a reply")),
        }
    }

    fn poll(&mut self) {
        self.count_down();
    }

    fn sleep(&mut self, at_most: Duration) {
        self.count_down();
        if !INTERRUPT.load(std::sync::atomic::Ordering::Relaxed) {
            // Waits like a real host; no interrupt can arrive during the wait.
            std::thread::park_timeout(at_most.min(Duration::from_millis(20)));
        }
    }
}

/// A session and its memory.
pub(crate) struct Engine {
    pub(crate) session: JsSession,
    pub(crate) memory: Memory,
    pub(crate) policy: Policy,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) args: String,
    /// Behind the program's and the script's name, as the supervisor sends it.
    pub(crate) argv: Vec<String>,
}

impl Engine {
    pub(crate) fn new() -> Self {
        Self::with_limits(Limits { cpu_ms: 60_000, wall_ms: 60_000, ..Limits::default() })
    }

    pub(crate) fn with_limits(limits: Limits) -> Self {
        Self::start(limits, [7; 32], true)
    }

    pub(crate) fn with_libraries(libraries: Vec<LibrarySource>) -> Self {
        let limits = Limits { cpu_ms: 60_000, wall_ms: 60_000, ..Limits::default() };
        Self::with_limits_and_libraries(limits, libraries)
    }

    pub(crate) fn with_limits_and_libraries(limits: Limits, libraries: Vec<LibrarySource>) -> Self {
        let mut preloaded = preload().expect("the engine starts");
        preloaded.load_libraries(libraries).expect("the libraries evaluate");
        Self::with_preloaded(preloaded, limits, [7; 32], true)
    }

    /// An engine with modules that the zygote has compiled, and the files that they are.
    pub(crate) fn with_compiled(limits: Limits, modules: &[(&str, &str)]) -> Self {
        let mut preloaded = preload().expect("the engine starts");
        let texts = modules.iter().map(|(path, source)| ((*path).to_owned(), (*source).to_owned()));
        let texts: BTreeMap<String, String> = texts.collect();
        let module =
            |(path, source): (&String, &String)| ModuleText { path: path.clone(), source: source.clone() };
        preloaded.compile(texts.iter().map(module).collect());
        let mut engine = Self::with_preloaded(preloaded, limits, [7; 32], true);
        engine.memory.files = texts.clone();
        engine.memory.compiled = texts;
        engine
    }

    pub(crate) fn start(limits: Limits, seed: [u8; 32], console: bool) -> Self {
        Self::with_preloaded(preload().expect("the engine starts"), limits, seed, console)
    }

    fn with_preloaded(preloaded: Preloaded, limits: Limits, seed: [u8; 32], console: bool) -> Self {
        let start = Start {
            session: SessionId::from_bytes([1; 16]),
            limits: limits.clone(),
            random_seed: seed,
            console,
        };
        let session = JsSession::start(preloaded, &start);
        let policy = Policy {
            limits,
            resolver: Resolver::default(),
            strict: false,
            modules: vec!["fs".to_owned()],
            refused_modules: Vec::new(),
            disabled_globals: Vec::new(),
        };
        let (env, argv) = (Vec::new(), Vec::new());
        Self { session, memory: Memory::default(), policy, env, args: "{}".to_owned(), argv }
    }

    pub(crate) fn file(mut self, path: &str, text: &str) -> Self {
        self.memory.files.insert(path.to_owned(), text.to_owned());
        self
    }

    pub(crate) fn run(
        &mut self,
        kind: ExecutionKind,
        name: &str,
        format: SourceFormat,
        source: &str,
    ) -> Done {
        let job = Execute {
            execution: ExecutionId::from_bytes([2; 16]),
            kind,
            source: source.to_owned(),
            file_name: name.to_owned(),
            format,
            args: JsonText::from_untrusted(self.args.clone()),
            env: self.env.clone(),
            argv: ["vm-system", name].map(str::to_owned).into_iter().chain(self.argv.clone()).collect(),
            policy: self.policy.clone(),
        };
        self.memory.events.clear();
        self.session.execute(&job, &mut self.memory)
    }

    /// One repl input.
    pub(crate) fn repl(&mut self, source: &str) -> Done {
        self.run(ExecutionKind::Repl, "repl", SourceFormat::Script, source)
    }

    /// A script file.
    pub(crate) fn script(&mut self, name: &str, source: &str) -> Done {
        self.run(ExecutionKind::RunFile, name, SourceFormat::Script, source)
    }

    /// A module file.
    pub(crate) fn module(&mut self, name: &str, source: &str) -> Done {
        self.run(ExecutionKind::RunFile, name, SourceFormat::Module, source)
    }

    /// The preview of a repl input's value; panics with the outcome if there is no value.
    pub(crate) fn value(&mut self, source: &str) -> String {
        let done = self.repl(source);
        match done.events.last().map(|event| &event.payload) {
            Some(EventPayload::Value(value)) if done.outcome == Outcome::Ok => value.preview.clone(),
            _ => panic!("{source}: {:?} {:?}", done.outcome, done.events),
        }
    }

    /// Message and stack of a repl input's exception.
    pub(crate) fn exception(&mut self, source: &str) -> (String, String) {
        let done = self.repl(source);
        exception_of(&done).unwrap_or_else(|| panic!("{source}: {:?} {:?}", done.outcome, done.events))
    }

    /// The console output of a repl input, line by line.
    pub(crate) fn logs(&mut self, source: &str) -> Vec<String> {
        let done = self.repl(source);
        assert_eq!(done.outcome, Outcome::Ok, "{source}: {:?}", done.events);
        self.console()
    }

    /// Texts of the console events of the last execution.
    pub(crate) fn console(&self) -> Vec<String> {
        self.memory
            .events
            .iter()
            .filter_map(|event| match event {
                EventPayload::Console { text, .. } => Some(text.clone()),
                _ => None,
            })
            .collect()
    }

    /// Levels of the console events of the last execution.
    pub(crate) fn levels(&self) -> Vec<ConsoleLevel> {
        self.memory
            .events
            .iter()
            .filter_map(|event| match event {
                EventPayload::Console { level, .. } => Some(*level),
                _ => None,
            })
            .collect()
    }
}

pub(crate) fn exception_of(done: &Done) -> Option<(String, String)> {
    done.events.iter().find_map(|event| match &event.payload {
        EventPayload::Exception { message, stack, .. } => Some((message.clone(), stack.clone())),
        _ => None,
    })
}

pub(crate) fn value_of(done: &Done) -> Option<(JsType, String, Option<String>)> {
    done.events.iter().find_map(|event| match &event.payload {
        EventPayload::Value(ResultValue { kind, preview, json, .. }) => {
            Some((*kind, preview.clone(), json.as_ref().map(|json| json.as_str().to_owned())))
        }
        _ => None,
    })
}

/// The JSON of the value; panics if there is none.
pub(crate) fn json_of(done: &Done) -> String {
    value_of(done).and_then(|value| value.2).unwrap_or_else(|| panic!("{:?} {:?}", done.outcome, done.events))
}

/// Default limits with generous times, changed by `change`.
pub(crate) fn limits(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits { cpu_ms: 60_000, wall_ms: 60_000, ..Limits::default() };
    change(&mut limits);
    limits
}
