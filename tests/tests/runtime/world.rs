//! A runtime with its own jail, a store in a temporary folder and a worktree.

use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use uuid::Uuid;
use vm_system_core::{ExecuteRequest, Source};
use vm_system_policy::Operator;
use vm_system_protocol::ids::{ExecutionId, SessionId, TemplateId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::limits::FILE_CALLS;
use vm_system_protocol::model::{
    Engine, Execution, ExecutionKind, Session, SessionInspection, SessionStatus, Settings,
};
use vm_system_protocol::worker::SourceFormat;
use vm_system_record::{Owner, PolicySnapshot, Scope, Write};
use vm_system_runtime::WorktreeClients;
use vm_system_runtime::brokers::BrokerConfig;
use vm_system_runtime::client_memory::ReplyMemory;
use vm_system_runtime::egress::EgressConfig;
use vm_system_runtime::shares::{Holder, ShareLimits};
use vm_system_runtime::workspaces::Workspaces;
use vm_system_runtime::worktree::{Roots, WorktreeClient};
use vm_system_runtime::{
    CreateSession, Libraries, PressureConfig, Runtime, RuntimeApi, RuntimeConfig, RuntimeError,
};
use vm_system_spawn::{LibrarySet, SpawnConfig};
use vm_system_store::{Faults, StoreHandle, open_temporary};
use vm_system_tests::records;

/// Most sessions at a time.
pub(crate) const SESSIONS: usize = 8;

/// Longest wait of a test.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct World {
    pub(crate) runtime: Runtime,
    pub(crate) store: StoreHandle,
    pub(crate) faults: Faults,
    pub(crate) worktree: TempDir,
}

pub(crate) fn policy(change: impl FnOnce(&mut PolicySnapshot)) -> Arc<PolicySnapshot> {
    let mut policy = PolicySnapshot {
        engine: Engine::Quickjs,
        settings: Settings::default(),
        modules: vec!["fs".to_owned()],
        libraries: Vec::new(),
        capabilities: Vec::new(),
        startup_files: Vec::new(),
    };
    change(&mut policy);
    Arc::new(policy)
}

pub(crate) const TEMPLATE: TemplateId = TemplateId::from_bytes([1; 16]);

fn template() -> Write {
    records::insert_template(&Owner::new("uid:0"), records::template(TEMPLATE))
}

pub(crate) async fn start(store: StoreHandle) -> Runtime {
    let config = RuntimeConfig {
        keeper_per_owner: false,
        spawn: SpawnConfig::embedded(),
        kept: vm_system_spawn::KeptJails::default(),
        brokers: BrokerConfig::default(),
        egress: EgressConfig::default(),
        roots: Roots::of_this_process().expect("a root"),
        worktree_clients: WorktreeClients::new(|_| WorktreeClient::Administrator),
        workspaces: Workspaces::default(),
        operator: Operator::default(),
        sessions: ShareLimits::at_most(SESSIONS),
        suspend_after: None,
        pressure: PressureConfig::off(),
        file_calls: ShareLimits::at_most(FILE_CALLS),
        durable: vm_system_runtime::DurableConfig::default(),
        stdin: None,
        type_checks: vm_system_runtime::type_checks::limits(&vm_system_protocol::model::Limits::default()),
    };
    Runtime::start(config, std::future::ready(Ok(store))).await.expect("a runtime")
}

impl World {
    pub(crate) async fn new() -> Self {
        let (store, faults) = Faults::wrap(open_temporary().expect("a temporary folder"));
        store.apply(template()).await.expect("a template");
        let runtime = start(store.clone()).await;
        Self { runtime, store, faults, worktree: TempDir::new().expect("a worktree") }
    }

    pub(crate) fn creation(&self, policy: Arc<PolicySnapshot>) -> CreateSession {
        CreateSession {
            id: SessionId::from_uuid(Uuid::now_v7()),
            owner: Owner::new("uid:0"),
            name: None,
            template_id: TEMPLATE,
            policy,
            workspace_id: "w".to_owned(),
            base_commit_oid: "c".to_owned(),
            worktree_path: self.worktree.path().to_owned(),
            as_user: None,
            libraries: Libraries::Installed(LibrarySet::default()),
            restores: None,
        }
    }

    pub(crate) async fn session_with(&self, change: impl FnOnce(&mut PolicySnapshot)) -> SessionId {
        let session = self.runtime.create_session(self.creation(policy(change))).await.expect("a session");
        assert_eq!(session.status, SessionStatus::Ready);
        session.id
    }

    pub(crate) async fn session(&self) -> SessionId {
        self.session_with(|_| {}).await
    }

    pub(crate) async fn run(&self, session: SessionId, source: &str) -> Result<Execution, RuntimeError> {
        self.execute(repl(session, source)).await
    }

    pub(crate) async fn execute(&self, (session, request): Run) -> Result<Execution, RuntimeError> {
        self.runtime.execute(session, Box::new(request), None, None).await
    }

    /// The stored row of a session.
    pub(crate) async fn stored(&self, session: SessionId) -> Session {
        let row = self.store.session(&Scope::All, session).await.expect("readable").expect("a row");
        row.session
    }

    /// The stored row of an execution.
    pub(crate) async fn stored_execution(&self, id: ExecutionId) -> Option<Execution> {
        let row = self.store.execution(&Scope::All, id).await.expect("readable");
        row.map(|row| row.execution)
    }

    pub(crate) async fn inspect(&self, session: SessionId) -> SessionInspection {
        self.runtime
            .inspect_session(session, Holder::Owner(Owner::new("tests")))
            .await
            .expect("a live session")
    }

    /// Another session of the same jail still works.
    pub(crate) async fn assert_unharmed(&self, sibling: SessionId) {
        let execution = self.run(sibling, "echo:unharmed").await.expect("the sibling replies");
        assert_eq!(execution.result_json(), Some("\"unharmed\""));
    }

    /// Starts an execution and waits until its first event is stored.
    pub(crate) async fn busy(&self, session: SessionId, source: &str) -> ExecutionId {
        let mut request = repl(session, source);
        (request.1.wait, request.1.collect_events) = (false, false);
        let id = request.1.id;
        let running = self.execute(request).await.expect("it runs");
        assert_eq!(running.status, vm_system_protocol::model::ExecutionStatus::Running);
        id
    }

    /// The stored execution, once it has ended.
    pub(crate) async fn end_of(&self, id: ExecutionId) -> Execution {
        let (follower, mut events) = vm_system_runtime::follower(64, ReplyMemory::default());
        let followed = self.runtime.follow(id, 0, follower);
        let drain = async { while events.recv().await.is_some() {} };
        tokio::join!(followed, drain);
        self.stored_execution(id).await.expect("a row")
    }

    /// Waits until a condition of the runtime holds; it is checked after each change.
    pub(crate) async fn wait_until(&self, mut so: impl FnMut(&Runtime) -> bool) {
        let mut changes = self.runtime.changes();
        let seen = async {
            while !so(&self.runtime) {
                changes.changed().await.expect("the runtime exists");
            }
        };
        tokio::time::timeout(PATIENCE, seen).await.expect("it never came to be");
    }

    /// Waits until a session has ended.
    pub(crate) async fn gone(&self, session: SessionId) {
        self.wait_until(|runtime| !runtime.live_sessions().contains(&session)).await;
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.worktree.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        std::fs::write(path, text).expect("a file");
    }

    pub(crate) async fn end(self) {
        self.runtime.shutdown(Duration::from_secs(5)).await;
    }
}

/// Code for a session.
pub(crate) type Run = (SessionId, ExecuteRequest);

pub(crate) fn repl(session: SessionId, source: &str) -> Run {
    let source = Source::Text {
        text: source.to_owned(),
        file_name: "repl".to_owned(),
        format: Some(SourceFormat::Script),
    };
    (session, request(ExecutionKind::Repl, source))
}

pub(crate) fn run_file(session: SessionId, path: &str) -> Run {
    (session, request(ExecutionKind::RunFile, Source::File { path: path.to_owned(), format: None }))
}

fn request(kind: ExecutionKind, source: Source) -> ExecuteRequest {
    ExecuteRequest {
        id: ExecutionId::from_uuid(Uuid::now_v7()),
        kind,
        source,
        args: JsonText::empty_object(),
        env: Vec::new(),
        argv: Vec::new(),
        recorded_args: JsonText::empty_object(),
        recorded_env: JsonText::empty_object(),
        wait: true,
        collect_events: true,
        stored_first: false,
    }
}

/// False for a zombie.
pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z'))
}

pub(crate) fn signal(pid: u32, signal: nix::sys::signal::Signal) {
    let pid = nix::unistd::Pid::from_raw(i32::try_from(pid).expect("a pid"));
    nix::sys::signal::kill(pid, signal).expect("a signal");
}
