//! A runtime without processes that stores rows like the real one, and verbs on top of it.

use crate::{
    Caller, ClientPresence, IdempotencyKey, Ops, OpsOptions, RuntimeApi, RuntimeCondition, RuntimeFacts,
    VerbHandler as _, VerbRequest,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use vm_system_core::durable::SubmittedAnswer;
use vm_system_core::{ExecuteRequest, SessionRequest, Source};
use vm_system_core::{LoadFailure, Refusal};
use vm_system_protocol::control::{
    DoctorReport, ErrorCode, ExecStart, Op, OpError, Reply, SandboxLayer, SessionCreate, TemplateCreate,
    UpgradeReport, Verb,
};
use vm_system_protocol::ids::{ExecutionId, SessionId, TaskId};
use vm_system_protocol::model::{
    ConsoleLevel, Engine, Event, EventPayload, Execution, ExecutionError, ExecutionKind, ExecutionStatus,
    Metrics, Session, SessionCheckpoint, SessionFacts, SessionInspection, SessionStatus, Settings,
};
use vm_system_protocol::reason::CloseReason;
use vm_system_protocol::time::Timestamp;
use vm_system_record::{Owner, PolicySnapshot, SessionChange, Write};
use vm_system_runtime::client_memory::ReplyMemory;
use vm_system_runtime::shares::Holder;
use vm_system_runtime::{CreateSession, DrainChange, Follower, ForkSession, RuntimeError};
use vm_system_spawn::Library;
use vm_system_spawn::libraries::LibraryStore;
use vm_system_store::{BoxFuture, Faults, StoreHandle, open_temporary};

/// The next actions of the fake.
#[derive(Default)]
pub(super) struct FakeScript {
    /// The next call is refused with this.
    pub(super) refuse: Option<RuntimeError>,
    /// The next session fails in its startup file.
    pub(super) fail_startup: bool,
    /// The next execution ends with this error.
    pub(super) fail: Option<ExecutionError>,
    /// The next execution waits for this before it ends.
    pub(super) hold: Option<Arc<Notify>>,
    /// Everything that was started, with the given policy.
    pub(super) started: Vec<(ExecuteRequest, Option<Arc<PolicySnapshot>>)>,
    live: BTreeMap<SessionId, Owner>,
    killed: Vec<(SessionId, i32)>,
    degraded: BTreeMap<ExecutionId, Arc<Execution>>,
}

#[derive(Clone)]
pub(super) struct Fake {
    store: StoreHandle,
    script: Arc<Mutex<FakeScript>>,
    pub(super) executing: Arc<Notify>,
}

impl Fake {
    pub(super) fn script(&self) -> MutexGuard<'_, FakeScript> {
        self.script.lock().expect("no test panics while it holds this")
    }

    fn refusal(&self) -> Result<(), RuntimeError> {
        self.script().refuse.take().map_or(Ok(()), Err)
    }

    pub(super) fn degrade(&self, execution: Execution) {
        self.script().degraded.insert(execution.id, Arc::new(execution));
    }

    pub(super) fn killed(&self) -> Vec<(SessionId, i32)> {
        self.script().killed.clone()
    }

    async fn create(&self, request: CreateSession) -> Result<Session, RuntimeError> {
        self.refusal()?;
        let CreateSession {
            id,
            owner,
            name,
            template_id,
            policy,
            workspace_id,
            base_commit_oid,
            worktree_path,
            as_user: _,
            libraries: _,
            restores,
        } = request;
        let mut session = Session {
            id,
            name,
            template_id,
            vm_id: template_id,
            workspace_id,
            base_commit_oid,
            worktree_path: worktree_path.display().to_string(),
            status: if restores.is_some() { SessionStatus::Starting } else { SessionStatus::Ready },
            created_at: Timestamp(1),
            closed_at: None,
            last_error: None,
            close_reason: None,
            runtime_meta: SessionFacts::default(),
            engine: Engine::Quickjs,
            execution_id: None,
            owner: None,
        };
        let failed = std::mem::take(&mut self.script().fail_startup);
        if failed {
            session.status = SessionStatus::Crashed;
        }
        let made = Arc::new(session.clone());
        let write = Write::SessionInsert { owner: owner.clone(), session: made, policy, worktree: None };
        self.store.apply(write).await.map_err(RuntimeError::Store)?;
        if failed {
            return Err(RuntimeError::Refused(Refusal::StartupFailed("setup.js: boom".to_owned())));
        }
        self.script().live.insert(id, owner);
        Ok(session)
    }

    async fn fork(&self, request: ForkSession) -> Result<Vec<Session>, RuntimeError> {
        self.live(request.parent)?;
        self.refusal()?;
        let scope = vm_system_record::Scope::All;
        let row = self.store.session(&scope, request.parent).await.map_err(RuntimeError::Store)?;
        let row = row.ok_or(RuntimeError::NotLive)?;
        let template =
            self.store.template(&scope, row.session.template_id).await.map_err(RuntimeError::Store)?;
        let template = template.ok_or(RuntimeError::NotLive)?;
        let snapshot = Arc::new(PolicySnapshot::from(&template.detail));
        let mut sessions = Vec::new();
        for id in request.children {
            let session = Session { id, name: None, ..row.session.clone() };
            let (owner, policy) = (row.owner.clone(), Arc::clone(&snapshot));
            let made = Arc::new(session.clone());
            let insert = Write::SessionInsert { owner: owner.clone(), session: made, policy, worktree: None };
            self.store.apply(insert).await.map_err(RuntimeError::Store)?;
            self.script().live.insert(id, owner);
            sessions.push(session);
        }
        Ok(sessions)
    }

    async fn close(&self, id: SessionId) -> Result<Option<Session>, RuntimeError> {
        if self.script().live.remove(&id).is_none() {
            return Ok(None);
        }
        let end = Write::SessionEnd {
            id,
            status: SessionStatus::Closed,
            at: Timestamp(9),
            reason: CloseReason::Exited,
            last_error: None,
        };
        self.store.apply(end).await.map_err(RuntimeError::Store)?;
        let row = self.store.session(&vm_system_record::Scope::All, id).await.map_err(RuntimeError::Store)?;
        Ok(row.map(|row| row.session))
    }

    async fn run(
        &self,
        session: SessionId,
        request: ExecuteRequest,
        template: Option<Arc<PolicySnapshot>>,
        follower: Option<Follower>,
    ) -> Result<Execution, RuntimeError> {
        self.live(session)?;
        self.refusal()?;
        let (fail, hold) = {
            let mut script = self.script();
            script.started.push((request.clone(), template));
            (script.fail.take(), script.hold.take())
        };
        let (input, path) = match request.source {
            Source::Text { text, .. } if request.kind == ExecutionKind::Repl => (Some(text), None),
            Source::Text { file_name: path, .. } | Source::File { path, .. } => (None, Some(path)),
        };
        let mut execution = Execution {
            id: request.id,
            session_id: session,
            kind: request.kind,
            input,
            path,
            args: request.recorded_args,
            env: request.recorded_env,
            status: ExecutionStatus::Running,
            started_at: Timestamp(5),
            ended_at: None,
            result: None,
            error: None,
            metrics: Metrics::default(),
            degraded: false,
            events: None,
            owner: None,
        };
        let begin = Write::ExecutionStarted { name: None, execution: Arc::new(execution.clone()) };
        self.store.apply(begin).await.map_err(RuntimeError::Store)?;
        self.executing.notify_one();
        if let Some(hold) = hold {
            hold.notified().await;
        }
        if !request.wait {
            return Ok(execution);
        }
        let events: Vec<Event> = (1..=3).map(|seq| line(request.id, seq)).collect();
        execution.status = if fail.is_some() { ExecutionStatus::Error } else { ExecutionStatus::Ok };
        execution.error = fail;
        execution.ended_at = Some(Timestamp(6));
        let end =
            vec![Write::Events(events.clone().into()), Write::ExecutionEnded(Arc::new(execution.clone()))];
        self.store.apply(end).await.map_err(RuntimeError::Store)?;
        match follower {
            Some(follower) => drop(follower.send(&events).await),
            None => execution.events = Some(events),
        }
        Ok(execution)
    }

    fn live(&self, id: SessionId) -> Result<(), RuntimeError> {
        if self.script().live.contains_key(&id) { Ok(()) } else { Err(RuntimeError::NotLive) }
    }
}

pub(super) fn line(execution_id: ExecutionId, seq: u64) -> Event {
    let payload = EventPayload::console(ConsoleLevel::Log, format!("line {seq}"));
    Event { execution_id, seq, ts: Timestamp(5), payload }
}

impl RuntimeApi for Fake {
    fn create_session(&self, request: CreateSession) -> BoxFuture<'_, Result<Session, RuntimeError>> {
        Box::pin(self.create(request))
    }
    fn fork_session(&self, request: ForkSession) -> BoxFuture<'_, Result<Vec<Session>, RuntimeError>> {
        Box::pin(self.fork(request))
    }
    fn checkpoint_session(
        &self,
        id: SessionId,
        name: Option<String>,
    ) -> BoxFuture<'_, Result<SessionCheckpoint, RuntimeError>> {
        let made = SessionCheckpoint { number: 1, name, created_at: Timestamp(1), heap_bytes: 1 };
        let live = self.live(id);
        Box::pin(async move { live.map(|()| made) })
    }
    fn checkpoints(&self, id: SessionId) -> BoxFuture<'_, Result<Vec<SessionCheckpoint>, RuntimeError>> {
        let live = self.live(id);
        Box::pin(async move { live.map(|()| Vec::new()) })
    }
    fn delete_checkpoint(
        &self,
        id: SessionId,
        _checkpoint: String,
    ) -> BoxFuture<'_, Result<(), RuntimeError>> {
        let live = self.live(id);
        Box::pin(async move { live })
    }
    fn request(
        &self,
        id: SessionId,
        request: SessionRequest,
    ) -> BoxFuture<'_, Result<Session, RuntimeError>> {
        Box::pin(async move {
            self.live(id)?;
            let write = match request {
                SessionRequest::FinishRestoration { name, restored } => {
                    let facts =
                        Box::new(SessionFacts { restored: Some(restored), ..SessionFacts::default() });
                    Write::SessionRestored { id, name, facts }
                }
                SessionRequest::Rename { name } => {
                    Write::SessionChange { id, change: SessionChange::Name(name) }
                }
                _ => return Err(RuntimeError::Internal("not simulated".to_owned())),
            };
            self.store.apply(write).await.map_err(RuntimeError::Store)?;
            let row = self.store.session(&vm_system_record::Scope::All, id).await;
            Ok(row.map_err(RuntimeError::Store)?.ok_or(RuntimeError::NotLive)?.session)
        })
    }
    fn check_library(
        &self,
        _owner: Owner,
        library: Library,
    ) -> BoxFuture<'_, Result<Result<(), String>, RuntimeError>> {
        let broken = library.id.starts_with("broken");
        Box::pin(async move { Ok(if broken { Err("it throws".to_owned()) } else { Ok(()) }) })
    }
    fn close_session(&self, id: SessionId) -> BoxFuture<'_, Result<Option<Session>, RuntimeError>> {
        Box::pin(self.close(id))
    }
    fn kill_session(&self, id: SessionId, signal: i32) -> BoxFuture<'_, Result<(), RuntimeError>> {
        Box::pin(async move {
            self.live(id)?;
            self.script().killed.push((id, signal));
            Ok(())
        })
    }
    fn inspect_session(
        &self,
        id: SessionId,
        _holder: Holder,
    ) -> BoxFuture<'_, Result<SessionInspection, RuntimeError>> {
        Box::pin(async move {
            self.live(id)?;
            Ok(SessionInspection {
                session_id: id,
                status: SessionStatus::Ready,
                pid: 42,
                cpu_ms: 0,
                rss_kib: None,
                pss_kib: None,
                uss_kib: None,
                js_heap_bytes: None,
                fds: None,
                seccomp_mode: Some(2),
                no_new_privs: None,
                cap_eff: None,
                namespaces: Vec::new(),
                rlimits: Vec::new(),
                running_execution: None,
                heartbeat_age_ms: 0,
                generation: 1,
                next_cull_at: None,
                adopted: false,
            })
        })
    }
    fn execute(
        &self,
        session: SessionId,
        request: Box<ExecuteRequest>,
        template: Option<Arc<PolicySnapshot>>,
        follower: Option<Follower>,
    ) -> BoxFuture<'_, Result<Execution, RuntimeError>> {
        Box::pin(self.run(session, *request, template, follower))
    }
    fn builds(&self, _change: DrainChange) -> BoxFuture<'_, UpgradeReport> {
        Box::pin(async { UpgradeReport { drain_at: None, builds: Vec::new(), unreached: Vec::new() } })
    }
    fn is_suspended(&self, _id: SessionId) -> bool {
        false
    }
    fn repeat_input(
        &self,
        session: SessionId,
        request: Box<ExecuteRequest>,
        template: Option<Arc<PolicySnapshot>>,
    ) -> BoxFuture<'_, Result<Execution, RuntimeError>> {
        Box::pin(self.run(session, *request, template, None))
    }
    fn submit_answer(
        &self,
        _: ExecutionId,
        _: (Option<TaskId>, SubmittedAnswer),
        _: bool,
    ) -> BoxFuture<'_, Result<Execution, RuntimeError>> {
        Box::pin(async { Err(RuntimeError::NotLive) })
    }

    fn cancel_execution(&self, _id: ExecutionId) -> BoxFuture<'_, Result<(), RuntimeError>> {
        Box::pin(async move { self.refusal() })
    }
    fn abandon_execution(&self, _id: ExecutionId) -> BoxFuture<'_, Result<(), RuntimeError>> {
        Box::pin(async move { self.refusal() })
    }
    fn follow(&self, _id: ExecutionId, _after: u64, _follower: Follower) -> BoxFuture<'_, Option<()>> {
        Box::pin(async move { None })
    }
    fn session_owner(&self, id: SessionId) -> Option<Owner> {
        self.script().live.get(&id).cloned()
    }
    fn live_sessions(&self) -> Vec<SessionId> {
        self.script().live.keys().copied().collect()
    }
    fn degraded(&self, id: ExecutionId) -> Option<Arc<Execution>> {
        self.script().degraded.get(&id).cloned()
    }
    fn condition(&self) -> RuntimeCondition {
        RuntimeCondition::default()
    }
    fn facts(&self, of: Option<&Owner>) -> RuntimeFacts {
        let sessions_created = if of.is_some() { 1 } else { 5 };
        RuntimeFacts { keeper_pid: Some(7), sessions_created, ..RuntimeFacts::default() }
    }
    fn doctor(&self, _: Option<&Owner>) -> BoxFuture<'_, DoctorReport> {
        Box::pin(async move {
            let layer = SandboxLayer {
                name: "seccomp".to_owned(),
                in_force: true,
                required: true,
                detail: String::new(),
            };
            DoctorReport {
                kernel: "6".to_owned(),
                ok: true,
                problem: None,
                layers: vec![layer],
                host: Vec::new(),
                stuck: Vec::new(),
            }
        })
    }
}

fn store() -> (StoreHandle, Faults) {
    Faults::wrap(open_temporary().expect("a temporary folder can be made"))
}

/// The verbs with a store and a fake runtime.
pub(super) struct OpsBench {
    pub(super) ops: Arc<Ops>,
    pub(super) fake: Fake,
    pub(super) store: StoreHandle,
    pub(super) faults: Faults,
    pub(super) stop: CancellationToken,
}

impl OpsBench {
    pub(super) fn new() -> Self {
        let (store, faults) = store();
        Self::on_store(store, faults)
    }

    /// Without configured roots of worktrees.
    pub(super) fn with_worktrees_anywhere() -> Self {
        let (store, faults) = store();
        Self::with_options(store, faults, OpsOptions { worktrees_confined: false, ..OpsOptions::default() })
    }

    fn on_store(store: StoreHandle, faults: Faults) -> Self {
        Self::with_options(store, faults, OpsOptions::default())
    }

    fn with_options(store: StoreHandle, faults: Faults, options: OpsOptions) -> Self {
        let fake = Fake { store: store.clone(), script: Arc::default(), executing: Arc::default() };
        let stop = CancellationToken::new();
        let runtime: Arc<dyn RuntimeApi> = Arc::new(fake.clone());
        let ops =
            Arc::new(Ops::new(store.clone(), runtime, options, LibraryStore::in_memory(), stop.clone()));
        Self { ops, fake, store, faults, stop }
    }

    /// A new supervisor on the same database: memory is lost.
    pub(super) fn restarted(&self) -> Self {
        Self::on_store(self.store.clone(), self.faults.clone())
    }

    pub(super) async fn request<V: Verb>(&self, verb: V) -> Result<V::Reply, OpError> {
        self.ops.call(&alice(), verb, None, None).await
    }

    pub(super) async fn request_with_key<V: Verb>(&self, verb: V, key: &str) -> Result<V::Reply, OpError> {
        self.ops.call(&alice(), verb, Some(key), None).await
    }

    pub(super) async fn as_admin<V: Verb>(&self, verb: V) -> Result<V::Reply, OpError> {
        self.ops.call(&admin(), verb, None, None).await
    }

    pub(super) async fn refused(&self, op: impl Into<Op>) -> ErrorCode {
        self.ops.any(&alice(), op.into(), None, None).await.expect_err("the verb is refused").code
    }

    /// A template of Alice's; its id.
    pub(super) async fn template(&self, name: &str) -> String {
        let template = self.request(template(name)).await.expect("the name is new");
        template.id.to_string()
    }

    /// A live session of Alice's; its id.
    pub(super) async fn session(&self) -> String {
        let template = self.template(&uuid::Uuid::new_v4().to_string()).await;
        let session = self.request(new_session(&template)).await.expect("nothing is refused");
        session.id.to_string()
    }

    /// An execution that has ended, in a session of its own; its id.
    pub(super) async fn execution(&self) -> String {
        let session = self.session().await;
        let execution = self.request(repl(&session, "1")).await.expect("nothing is refused");
        execution.execution().id.to_string()
    }
}

impl Ops {
    /// One verb, called like an API does.
    pub(super) async fn call<V: Verb>(
        &self,
        caller: &Caller,
        verb: V,
        key: Option<&str>,
        events: Option<Follower>,
    ) -> Result<V::Reply, OpError> {
        Ok(V::reply_from(self.any(caller, verb.into(), key, events).await?)?)
    }

    pub(super) async fn any(
        &self,
        caller: &Caller,
        op: Op,
        key: Option<&str>,
        events: Option<Follower>,
    ) -> Result<Reply, OpError> {
        let request = VerbRequest {
            caller: caller.clone(),
            idempotency_key: key.map(IdempotencyKey::parse).transpose()?,
            op,
            events,
            memory: ReplyMemory::default(),
            presence: ClientPresence::default(),
        };
        self.handle(request).await
    }
}

pub(super) fn alice() -> Caller {
    Caller { owner: Owner::new("alice"), admin: false, api: "rest" }
}
pub(super) fn bob() -> Caller {
    Caller { owner: Owner::new("bob"), admin: false, api: "rest" }
}
pub(super) fn admin() -> Caller {
    Caller { owner: Owner::new("root"), admin: true, api: "control" }
}

pub(super) fn template(name: &str) -> TemplateCreate {
    TemplateCreate {
        name: name.to_owned(),
        engine: Engine::Quickjs,
        settings: Settings::default(),
        modules: Vec::new(),
    }
}

pub(super) fn with_settings(change: impl FnOnce(&mut Settings)) -> TemplateCreate {
    let mut settings = Settings::default();
    change(&mut settings);
    TemplateCreate { name: "t".to_owned(), engine: Engine::Quickjs, settings, modules: Vec::new() }
}

pub(super) fn new_session(template: &str) -> SessionCreate {
    SessionCreate {
        template: template.to_owned(),
        workspace_id: "w".to_owned(),
        base_commit_oid: "c".to_owned(),
        worktree_path: "/".to_owned(),
        as_user: None,
        name: None,
        ttl_s: None,
        idle_timeout_s: None,
    }
}

pub(super) fn new_execution(session: &str) -> ExecStart {
    ExecStart { input: Some("1".to_owned()), ..ExecStart::new(session, ExecutionKind::Repl) }
}

pub(super) fn repl(session: &str, input: &str) -> ExecStart {
    ExecStart { input: Some(input.to_owned()), ..new_execution(session) }
}

pub(super) fn run_file(session: &str, path: &str) -> ExecStart {
    ExecStart {
        kind: ExecutionKind::RunFile,
        input: None,
        path: Some(path.to_owned()),
        ..new_execution(session)
    }
}

pub(super) fn file_missing() -> RuntimeError {
    RuntimeError::Refused(Refusal::Load(LoadFailure::NotFound("a.js".to_owned())))
}
