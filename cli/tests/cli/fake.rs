//! A supervisor with fixed replies behind a real control socket, for tests of the command line's exact output.

use crate::environment::TestEnvironment;
use std::os::unix::net::UnixListener;
use std::sync::{Arc, Mutex};
use vm_system_api::control::{self, ControlLimits, OwnUser, PeerPolicy, ServerState};
use vm_system_ops::{VerbHandler, VerbRequest};
use vm_system_protocol::control::{
    ErrorCode, ExecEvents, ExecGet, ExecList, ExecStart, ExecutionState, Health, HealthGet, LibraryCatalog,
    LibraryCheck, LibraryInfo, LibraryInstall, LibraryRemove, LibraryVerify, ModuleCatalog, ModuleInfo, Op,
    OpError, Reply, SessionClose, SessionCreate, SessionGet, SessionKill, SessionList, Shutdown,
    TemplateAddCapability, TemplateAddLibrary, TemplateAddModule, TemplateAddStartup, TemplateCreate,
    TemplateDelete, TemplateDeleted, TemplateGet, TemplateList, TemplateName, TemplateRemoveLibrary,
    TemplateRemoveModule, TemplateUpdate, Verb as _,
};
use vm_system_protocol::ids::{CapabilityId, ExecutionId, SessionId, StartupFileId, TemplateId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{
    Capability, ConsoleLevel, Engine, Event, EventPayload, Execution, ExecutionError, ExecutionKind,
    ExecutionStatus, JsType, Metrics, ResultValue, Session, SessionFacts, SessionStatus, Settings,
    StartupFile, StartupMode, Template, TemplateDetail,
};
use vm_system_protocol::time::Timestamp;
use vm_system_store::BoxFuture;

const THEN: Timestamp = Timestamp(1_700_000_000_123);

/// Returns fixed replies and records the requests.
#[derive(Default)]
pub(crate) struct Fake {
    requests: Mutex<Vec<(Op, Option<String>)>>,
}

/// The fake on the socket of an environment, until it goes out of scope.
pub(crate) struct FakeDaemon {
    handler: Arc<Fake>,
    _runtime: tokio::runtime::Runtime,
}

impl FakeDaemon {
    pub(crate) fn start(env: &TestEnvironment) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let handler = Arc::new(Fake::default());
        std::fs::create_dir(env.path("state")).unwrap();
        let inside = runtime.enter();
        let listener = UnixListener::bind(env.socket()).unwrap();
        let peers = PeerPolicy::new(OwnUser::Person(nix::unistd::geteuid().as_raw()), 65_533, None);
        let limits = ControlLimits::default();
        let serving = control::serve(listener, handler.clone(), peers, limits, ServerState::default());
        runtime.spawn(serving.unwrap());
        drop(inside);
        Self { handler, _runtime: runtime }
    }

    pub(crate) fn requests(&self) -> Vec<(Op, Option<String>)> {
        self.handler.requests.lock().unwrap().clone()
    }
}

impl VerbHandler for Fake {
    fn handle(&self, request: VerbRequest) -> BoxFuture<'_, Result<Reply, OpError>> {
        Box::pin(async move {
            let VerbRequest { op, idempotency_key, events, .. } = request;
            self.requests.lock().unwrap().push((op.clone(), idempotency_key.map(|key| key.to_string())));
            if let Some(stream) = events {
                let all = events_of_the_fake();
                // Two batches, which the client must join.
                let (first, second) = all.split_at(3);
                let _ = stream.send(first).await;
                let _ = stream.send(second).await;
            }
            answer(op)
        })
    }
}

fn answer(op: Op) -> Result<Reply, OpError> {
    Ok(match op {
        Op::TemplateCreate(new) => TemplateCreate::any_reply(Template { name: new.name, ..template() }),
        // Behind the first part there is nothing.
        Op::TemplateList(list) if list.page.after.is_some() => TemplateList::any_reply(Vec::new()),
        Op::SessionList(list) if list.page.after.is_some() => SessionList::any_reply(Vec::new()),
        Op::ExecList(list) if list.page.after.is_some() => ExecList::any_reply(Vec::new()),
        Op::TemplateList(_) => {
            let red = Template { name: "\x1b[31mred".into(), ..template() };
            TemplateList::any_reply(vec![template(), red])
        }
        Op::TemplateGet(_) => TemplateGet::any_reply(detail()),
        Op::TemplateUpdate(_) => TemplateUpdate::any_reply(detail()),
        Op::TemplateDelete(_) => {
            let template_id = TemplateId::from_bytes([1; 16]);
            TemplateDelete::any_reply(TemplateDeleted { status: "ok".into(), template_id })
        }
        Op::ModuleCatalog(_) => ModuleCatalog::any_reply(vec![ModuleInfo {
            name: "fs".into(),
            description: "Reads files of the worktree".into(),
        }]),
        Op::SessionCreate(_) => SessionCreate::any_reply(session()),
        Op::SessionGet(_) => SessionGet::any_reply(session()),
        Op::SessionClose(_) => SessionClose::any_reply(session()),
        Op::SessionKill(_) => SessionKill::any_reply(()),
        Op::SessionList(_) => SessionList::any_reply(vec![session()]),
        Op::ExecStart(new) if new.input.as_deref() == Some("slow") => {
            return Err(refused(ErrorCode::SessionBusy));
        }
        Op::ExecStart(new) => {
            let events = (!new.follow).then(events_of_the_fake);
            let execution = execution(new.input.as_deref().unwrap_or_default());
            ExecStart::any_reply(ExecutionState::Execution(Execution { events, ..execution }))
        }
        Op::ExecGet(_) => ExecGet::any_reply(execution("ok")),
        Op::ExecList(_) => ExecList::any_reply(vec![execution("ok")]),
        Op::ExecEvents(list) if !list.follow => {
            let newer = |event: &Event| event.seq > list.after_seq;
            // Two at a time, as if larger replies were impossible.
            ExecEvents::any_reply(events_of_the_fake().into_iter().filter(newer).take(2).collect())
        }
        Op::ExecEvents(_) => ExecEvents::any_reply(Vec::new()),
        Op::ExecCancel(cancel) => {
            return Err(refused(
                cancel.execution.parse::<ErrorText>().map_or(ErrorCode::ExecutionNotFound, |text| text.0),
            ));
        }
        Op::TemplateAddCapability(add) => TemplateAddCapability::any_reply(Capability {
            id: CapabilityId::from_bytes([4; 16]),
            vm_id: TemplateId::from_bytes([1; 16]),
            kind: add.capability.kind,
            name: add.capability.name,
            enabled: add.capability.enabled,
            config: add.capability.config,
        }),
        Op::TemplateAddStartup(add) => TemplateAddStartup::any_reply(StartupFile {
            id: StartupFileId::from_bytes([5; 16]),
            vm_id: TemplateId::from_bytes([1; 16]),
            path: add.file.path,
            order_index: add.file.order_index,
            mode: add.file.mode.parse().unwrap_or(StartupMode::Eval),
        }),
        Op::TemplateAddModule(add) => TemplateAddModule::any_reply(template_name(add.name)),
        Op::TemplateRemoveModule(remove) => TemplateRemoveModule::any_reply(template_name(remove.name)),
        Op::TemplateAddLibrary(add) => TemplateAddLibrary::any_reply(template_name(add.name)),
        Op::TemplateRemoveLibrary(remove) => TemplateRemoveLibrary::any_reply(template_name(remove.name)),
        Op::LibraryCatalog(_) => LibraryCatalog::any_reply(vec![library("a", true), library("b", false)]),
        Op::LibraryInstall(new) => {
            let bytes = Some(new.source.len() as u64);
            LibraryInstall::any_reply(LibraryInfo { global: new.global, bytes, ..library(&new.id, true) })
        }
        Op::LibraryRemove(remove) => LibraryRemove::any_reply(library(&remove.name, true)),
        Op::LibraryVerify(_) => LibraryVerify::any_reply(vec![
            LibraryCheck { name: "a-1.0.0".into(), ok: true, problem: None },
            LibraryCheck { name: "b-1.0.0".into(), ok: false, problem: Some("its file is gone".into()) },
        ]),
        Op::HealthGet(_) => HealthGet::any_reply(Health {
            status: "ok".into(),
            memory: "normal".into(),
            largest_owner: None,
            database: None,
            stuck: None,
        }),
        Op::Shutdown(_) => Shutdown::any_reply(()),
        other => panic!("the fake has no reply to {other:?}"),
    })
}

fn detail() -> TemplateDetail {
    TemplateDetail {
        template: template(),
        settings: Settings::default(),
        capabilities: Vec::new(),
        startup_files: Vec::new(),
    }
}

fn template_name(name: String) -> TemplateName {
    TemplateName { template_id: TemplateId::from_bytes([1; 16]), name }
}

/// An error code by its text.
struct ErrorText(ErrorCode);

impl std::str::FromStr for ErrorText {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        ErrorCode::ALL.iter().find(|code| code.as_str() == text).map(|code| Self(*code)).ok_or(())
    }
}

fn refused(code: ErrorCode) -> OpError {
    OpError::new(code, "it was refused\x1b[31m")
}

fn template() -> Template {
    Template {
        id: TemplateId::from_bytes([1; 16]),
        name: "t".into(),
        engine: Engine::Quickjs,
        is_active: true,
        built_in: false,
        exposed_modules: vec!["fs".into()],
        libraries: Vec::new(),
        created_at: THEN,
        updated_at: THEN,
    }
}

fn library(id: &str, installed: bool) -> LibraryInfo {
    LibraryInfo {
        name: format!("{id}-1.0.0"),
        id: id.to_owned(),
        version: "1.0.0".into(),
        global: Some(id.to_owned()),
        installed,
        sha256: installed.then(|| "ab".repeat(32)),
        bytes: installed.then_some(7),
        installed_at: installed.then_some(THEN),
    }
}

fn session() -> Session {
    Session {
        id: SessionId::from_bytes([2; 16]),
        name: Some("nightly".into()),
        template_id: TemplateId::from_bytes([1; 16]),
        vm_id: TemplateId::from_bytes([1; 16]),
        workspace_id: "w".into(),
        base_commit_oid: "c".into(),
        worktree_path: "/work".into(),
        status: SessionStatus::Crashed,
        created_at: THEN,
        closed_at: Some(THEN),
        last_error: None,
        close_reason: Some("killed(operator)".into()),
        runtime_meta: SessionFacts::default(),
        engine: Engine::Quickjs,
        execution_id: None,
        owner: None,
    }
}

fn execution(input: &str) -> Execution {
    let (status, error) = match input {
        "timeout" => (ExecutionStatus::Timeout, Some("WALL_LIMIT")),
        "cancelled" => (ExecutionStatus::Cancelled, Some("CANCELLED")),
        "error" => (ExecutionStatus::Error, Some("WORKER_DIED")),
        _ => (ExecutionStatus::Ok, None),
    };
    Execution {
        id: ExecutionId::from_bytes([3; 16]),
        session_id: SessionId::from_bytes([2; 16]),
        kind: ExecutionKind::Repl,
        input: Some(input.to_owned()),
        path: None,
        args: JsonText::empty_object(),
        env: JsonText::empty_object(),
        status,
        started_at: THEN,
        ended_at: Some(THEN),
        result: Some(ResultValue::of_json(JsonText::from_untrusted("[1,{\"a\":null}]".into()))),
        error: error.map(|code| ExecutionError::new(code, "it ended")),
        metrics: Metrics { duration_ms: 7, ..Metrics::default() },
        degraded: false,
        events: None,
        owner: None,
    }
}

fn events_of_the_fake() -> Vec<Event> {
    let console = |level, text: &str| EventPayload::console(level, text.to_owned());
    let payloads = [
        EventPayload::InputEcho { text: "typed".into() },
        console(ConsoleLevel::Log, "to stdout \x1b[31m"),
        console(ConsoleLevel::Warn, "to stderr"),
        console(ConsoleLevel::Info, "two\nlines"),
        EventPayload::Value(ResultValue {
            kind: JsType::Number,
            preview: "42".into(),
            json: Some(JsonText::from_untrusted("42".into())),
            truncated: false,
            full_bytes: None,
        }),
        EventPayload::Value(ResultValue {
            kind: JsType::Undefined,
            preview: "undefined".into(),
            json: None,
            truncated: false,
            full_bytes: None,
        }),
    ];
    let execution_id = ExecutionId::from_bytes([3; 16]);
    (1..).zip(payloads).map(|(seq, payload)| Event { execution_id, seq, ts: THEN, payload }).collect()
}
