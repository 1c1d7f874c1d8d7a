//! `typecheck` of templates, through the real daemon: a small compiler in `node_modules` finds the text `wrong`. TypeScript's own is in
//! `npm.rs`.

use vm_system_protocol::control::{
    ErrorCode, ExecCancel, ExecStart, NewCapability, NewStartupFile, SessionList, TemplateAddCapability,
    TemplateAddStartup, TemplateChange, TemplateCreate, TemplateUpdate,
};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{
    CapabilityKind, ConsoleLevel, Engine, Event, EventPayload, Execution, ExecutionKind, ExecutionStatus,
    Limits, RuntimeSettings, Session, SessionStatus, Settings, TypeCheck,
};
use vm_system_tests::client::{Client, record};
use vm_system_tests::daemon::Daemon;
use vm_system_tests::place::User;

const COMPILER: &str = include_str!("../../stub-typescript.js");
const RUNS: &str = "console.log('it runs');";

struct Bench {
    daemon: Daemon,
    client: Client,
}

impl Bench {
    fn new() -> Self {
        let daemon = Daemon::start(User::AsStarted);
        daemon.place.write("node_modules/typescript/index.js", COMPILER);
        let client = daemon.client();
        Self { daemon, client }
    }

    fn template(&mut self, typecheck: TypeCheck) -> String {
        let runtime = RuntimeSettings { typecheck, ..RuntimeSettings::default() };
        self.client.template(Settings { runtime, ..Settings::default() }, &["fs"])
    }

    fn session(&mut self, template: &str) -> Session {
        self.client.session(template, &self.daemon.place.worktree()).expect("a session")
    }

    /// Runs a file with this text.
    fn run(&mut self, session: &Session, name: &str, text: &str) -> Ran {
        self.daemon.place.write(name, text);
        let execution = self.client.run_file(session, name).expect("an execution");
        Ran::of_execution(execution)
    }

    /// Begins to run a file of the worktree.
    fn start(&mut self, session: &Session, name: &str) -> Execution {
        let new = ExecStart {
            path: Some(name.to_owned()),
            wait: false,
            ..ExecStart::new(session.id.to_string(), ExecutionKind::RunFile)
        };
        let Ok(started) = self.client.op(new) else { panic!("no start") };
        record(started)
    }

    fn checkers(&mut self) -> Vec<Session> {
        let list = SessionList::default();
        let Ok(sessions) = self.client.op(list) else { panic!("no list") };
        let is_checker =
            |session: &Session| session.name.as_deref().is_some_and(|name| name.starts_with("typecheck-"));
        sessions.into_iter().filter(is_checker).collect()
    }
}

/// The record and the events of an execution.
#[derive(Debug)]
struct Ran {
    status: ExecutionStatus,
    /// Code and message.
    error: Option<(String, String)>,
    /// Of the supervisor, without what modules were used.
    notices: Vec<(ConsoleLevel, String)>,
    has_run: bool,
}

impl Ran {
    fn of_execution(execution: Execution) -> Self {
        let events = execution.events.unwrap_or_default();
        let notice = |event: &Event| match &event.payload {
            EventPayload::System { message, level, .. } if *level != ConsoleLevel::Info => {
                Some((*level, message.clone()))
            }
            _ => None,
        };
        Self {
            status: execution.status,
            error: execution.error.map(|error| (error.code, error.message)),
            notices: events.iter().filter_map(notice).collect(),
            has_run: events.iter().any(|event| matches!(event.payload, EventPayload::Console { .. })),
        }
    }

    #[track_caller]
    fn is_refused(&self, code: &str, message: &str) {
        let error = self.error.as_ref().map(|(code, message)| (code.as_str(), message.as_str()));
        assert_eq!((self.status, error), (ExecutionStatus::Error, Some((code, message))));
        assert!(!self.has_run);
    }

    #[track_caller]
    fn is_fine(&self) {
        assert_eq!(
            (self.status, self.has_run, self.notices.len()),
            (ExecutionStatus::Ok, true, 0),
            "{self:?}"
        );
    }
}

#[test]
fn with_error_nothing_of_a_file_runs_and_with_warn_it_runs_after_the_notice() {
    let mut bench = Bench::new();
    let template = bench.template(TypeCheck::Error);
    let session = bench.session(&template);
    let wrong = format!("{RUNS}\n  'wrong'");
    let ran = bench.run(&session, "inner/a.ts", &wrong);
    ran.is_refused("TYPE_ERRORS", "inner/a.ts:2:4: error TS9: found");
    bench.run(&session, "inner/a.ts", RUNS).is_fine();
    let ran = bench.run(&session, "often.ts", &format!("{RUNS} 'wrong', 'often'"));
    ran.is_refused("TYPE_ERRORS", "often.ts:1:26: error TS9: found (and 249 more errors)");
    let last = (ConsoleLevel::Error, "… and 150 more".to_owned());
    assert_eq!((ran.notices.len(), ran.notices.last()), (101, Some(&last)));

    let warning = bench.template(TypeCheck::Warn);
    let warned = bench.session(&warning);
    let ran = bench.run(&warned, "a.ts", &wrong);
    let notice = (ConsoleLevel::Warn, "a.ts:2:4: error TS9: found".to_owned());
    assert_eq!((ran.status, ran.has_run, ran.notices), (ExecutionStatus::Ok, true, vec![notice]));
    bench.run(&warned, "a.ts", RUNS).is_fine();

    // Both templates let files be read: one session has the compiler, which was loaded once.
    let checkers = bench.checkers();
    let [checker] = &checkers[..] else { panic!("{checkers:?}") };
    assert_eq!(bench.client.preview_of(checker, "loaded"), "1");
    bench.client.close(checker);
    bench.run(&session, "a.ts", RUNS).is_fine();
    assert_ne!(bench.checkers()[0].id, checkers[0].id);

    // Code that is sent is not checked.
    assert_eq!(bench.client.preview_of(&session, "'wrong'"), "'wrong'");
    bench.daemon.stop();
}

#[test]
fn the_stricter_of_template_and_session_is_in_force() {
    let mut bench = Bench::new();
    let template = bench.template(TypeCheck::Off);
    let session = bench.session(&template);
    let wrong = format!("{RUNS} 'wrong'");
    bench.run(&session, "a.ts", &wrong).is_fine();
    assert!(bench.checkers().is_empty(), "what nobody wants costs nothing");
    let settings = Some(JsonText::from_value(&serde_json::json!({ "runtime": { "typecheck": "error" } })));
    let change = TemplateChange { name: None, settings };
    bench.client.op(TemplateUpdate { template, change }).expect("a change");
    bench.run(&session, "a.ts", &wrong).is_refused("TYPE_ERRORS", "a.ts:1:26: error TS9: found");

    let runtime = RuntimeSettings { typecheck: TypeCheck::Warn, ..RuntimeSettings::default() };
    let create = TemplateCreate {
        name: "programs".to_owned(),
        engine: Engine::Cvm,
        settings: Settings { runtime, ..Settings::default() },
        modules: Vec::new(),
    };
    let error = bench.client.op(create).expect_err("a program has no worktree when it is compiled");
    assert_eq!(error.code, ErrorCode::ValidationError);
    assert!(error.hint.unwrap_or_default().contains("check --program"));
    bench.daemon.stop();
}

#[test]
fn a_startup_file_with_errors_refuses_the_session() {
    let mut bench = Bench::new();
    let template = bench.template(TypeCheck::Error);
    let file = NewStartupFile { path: "setup.ts".to_owned(), order_index: 0, mode: "eval".to_owned() };
    let add = TemplateAddStartup { template: template.clone(), file };
    bench.client.op(add).expect("a startup file");
    bench.daemon.place.write("setup.ts", "globalThis.ready = 1; 'wrong'");
    let error = bench.client.session(&template, &bench.daemon.place.worktree()).expect_err("errors");
    assert!(error.message.contains("setup.ts:1:24: error TS9: found"), "{}", error.message);
    bench.daemon.place.write("setup.ts", "globalThis.ready = 1");
    let session = bench.session(&template);
    assert_eq!(bench.client.preview_of(&session, "ready"), "1");
    bench.daemon.stop();
}

#[test]
fn javascript_is_checked_if_a_configuration_says_so() {
    let mut bench = Bench::new();
    let template = bench.template(TypeCheck::Error);
    let session = bench.session(&template);
    let wrong = format!("{RUNS} 'wrong'");
    bench.run(&session, "a.js", &wrong).is_fine();
    bench.daemon.place.write("tsconfig.json", r#"{"compilerOptions": {}}"#);
    bench.run(&session, "a.js", &wrong).is_fine();
    bench.daemon.place.write("tsconfig.json", r#"{"compilerOptions": {"checkJs": true}}"#);
    bench.run(&session, "a.js", &wrong).is_refused("TYPE_ERRORS", "a.js:1:26: error TS9: found");
    bench.daemon.stop();
}

#[test]
fn without_a_compiler_error_refuses_and_warn_says_so_once() {
    let mut bench = Bench::new();
    std::fs::remove_dir_all(bench.daemon.place.worktree().join("node_modules")).expect("removed");
    let why = "types were not checked: the worktree has no package typescript in node_modules; \
               `npm install --save-dev typescript@5` installs it there";
    let template = bench.template(TypeCheck::Error);
    let session = bench.session(&template);
    bench.run(&session, "a.ts", RUNS).is_refused("TYPE_CHECK_FAILED", why);
    let template = bench.template(TypeCheck::Warn);
    let session = bench.session(&template);
    let ran = bench.run(&session, "a.ts", RUNS);
    assert_eq!((ran.has_run, ran.notices), (true, vec![(ConsoleLevel::Warn, why.to_owned())]));
    bench.daemon.stop();
}

#[test]
fn the_compiler_reads_what_import_may_load_and_what_it_returns_is_not_believed() {
    let mut bench = Bench::new();
    let template = bench.template(TypeCheck::Error);
    let read = serde_json::json!({ "paths": ["*.ts", "node_modules/**"] });
    for (name, config) in [("write", JsonText::empty_object()), ("read", JsonText::from_value(&read))] {
        let (kind, name) = (CapabilityKind::Fs, name.to_owned());
        let capability = NewCapability { kind, name, enabled: true, config };
        bench.client.op(TemplateAddCapability { template: template.clone(), capability }).expect("a row");
    }
    let session = bench.session(&template);
    bench.daemon.place.write("hidden.txt", "secret");
    for (text, expected) in [
        ("compiler writes", "EACCES"),
        ("compiler reads", "EACCES"),
        ("compiler lies, wrong", "no list of diagnostics"),
        ("compiler calls CC", "called CC()"),
    ] {
        let ran = bench.run(&session, "a.ts", &format!("{RUNS} '{text}'"));
        let (code, message) = ran.error.clone().unwrap_or_default();
        assert!(code == "TYPE_CHECK_FAILED" && message.contains(expected) && !ran.has_run, "{text}: {ran:?}");
    }
    assert!(!bench.daemon.place.worktree().join("written.txt").exists());
    // A checker without a result is not used again.
    let live = |session: &Session| session.status == SessionStatus::Ready;
    assert_eq!(bench.checkers().iter().filter(|checker| live(checker)).count(), 0);
    bench.run(&session, "a.ts", RUNS).is_fine();
    bench.daemon.stop();
}

#[test]
fn the_text_that_is_checked_is_the_one_that_runs() {
    let mut bench = Bench::new();
    let template = bench.template(TypeCheck::Error);
    let (first, second) = (bench.session(&template), bench.session(&template));
    bench.daemon.place.write("a.ts", "'compiler hangs'");
    let hanging = bench.start(&first, "a.ts");
    bench.daemon.place.write("b.ts", "wrong");
    // The check of the second session waits for the checker of both.
    let waiting = bench.start(&second, "b.ts");
    bench.daemon.place.write("b.ts", "right");
    bench.client.op(ExecCancel { execution: hanging.id.to_string() }).expect("cancelled");
    let ended = bench.client.until_final(&waiting);
    assert_eq!(ended.error.map(|error| error.code).as_deref(), Some("TYPE_ERRORS"));
    bench.daemon.stop();
}

#[test]
fn a_cancelled_execution_cancels_its_check_and_the_checker_goes_on() {
    let mut bench = Bench::new();
    let template = bench.template(TypeCheck::Error);
    let session = bench.session(&template);
    bench.run(&session, "a.ts", RUNS).is_fine();
    bench.daemon.place.write("b.ts", "'compiler hangs'");
    let started = bench.start(&session, "b.ts");
    let busy = bench.client.run_file(&session, "a.ts").expect_err("the session is busy");
    assert_eq!(busy.code, ErrorCode::SessionBusy);
    bench.client.op(ExecCancel { execution: started.id.to_string() }).expect("cancelled");
    let ended = bench.client.until_final(&started);
    assert_eq!(ended.status, ExecutionStatus::Cancelled);
    bench.run(&session, "a.ts", RUNS).is_fine();
    bench.daemon.stop();
}

#[test]
fn a_compiler_that_takes_all_memory_ends_at_a_bound_of_its_own_or_at_that_of_the_session() {
    let mut bench = Bench::new();
    bench.daemon.place.write("fills.ts", "'compiler fills'");
    for (mem_mb, bound) in [(16, 512), (640, 640)] {
        let limits = Limits { mem_mb, ..Limits::default() };
        let runtime = RuntimeSettings { typecheck: TypeCheck::Error, ..RuntimeSettings::default() };
        let template = bench.client.template(Settings { limits, runtime, ..Settings::default() }, &["fs"]);
        let session = bench.session(&template);
        let why = format!(
            "types were not checked: the compiler needs more than {bound} MiB of memory; a larger `mem_mb` of the template gives it as \
             much (`vm-system template update TEMPLATE --mem-mb N`)"
        );
        bench.run(&session, "fills.ts", "'compiler fills'").is_refused("TYPE_CHECK_FAILED", &why);
        // The next check has a new checker.
        bench.run(&session, "a.ts", RUNS).is_fine();
    }
    bench.daemon.stop();
}
