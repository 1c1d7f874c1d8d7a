//! [`Runtime`]: the live sessions, and the operations of the verbs on them.

use super::api::{CreateSession, RuntimeConfig, RuntimeError};
use super::command::CallPart;
use super::durable::Durables;
use super::follow::{EventTail, Follower, joined};
use super::fork::ForkSession;
use super::interface::{DrainChange, OwnerRole, RuntimeApi, RuntimeCondition, RuntimeFacts};
use super::module_sets::ModuleSets;
use super::owner_jails::OwnerJails;
use super::registry::{AdmissionError, LiveSession, Registry};
use super::task::{RuntimeContext, spawn_failure};
use super::worktree::WorktreeClient;
use super::{adoption, doctor, followers, pressure};
use crate::brokers::Brokers;
use crate::egress::Egress;
use crate::shares::{Holder, Share, Shares};
use crate::type_checks::TypeChecks;
use crate::worktree::clean_relative;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use vm_system_core::durable::{DurableRefusal, SubmittedAnswer};
use vm_system_core::{
    CloseCause, ExecuteRequest, Executed, Refusal, SessionInput as Input, SessionRequest, Source,
};
use vm_system_protocol::control::{DoctorReport, UpgradeReport, ZygoteInfo};
use vm_system_protocol::ids::{ExecutionId, SessionId, TaskId};
use vm_system_protocol::model::{Execution, Session, SessionCheckpoint, SessionInspection};
use vm_system_record::{Owner, PolicySnapshot, StoreError};
use vm_system_spawn::helper::SpawnHelper;
use vm_system_spawn::{KEEPER_END, KeptJails, KindZygoteInfo, Library, LibraryError, SpawnError, Spawner};
use vm_system_store::{BoxFuture, OpenError, StoreHandle};

/// All live sessions. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Runtime(Arc<RuntimeState>);

/// A runtime, as long as there is one.
#[derive(Debug)]
pub(super) struct WeakRuntime(Weak<RuntimeState>);

impl WeakRuntime {
    pub(super) fn upgrade(&self) -> Option<Runtime> {
        self.0.upgrade().map(Runtime)
    }
}

#[derive(Debug)]
struct RuntimeState {
    shared: Arc<RuntimeContext>,
    durables: Arc<Durables>,
    sessions: Arc<Shares>,
    tasks: TaskTracker,
}

/// Why the runtime could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The jail could not be built.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The store could not be opened.
    #[error(transparent)]
    Open(OpenError),
    /// The sessions of an earlier supervisor could not be read or marked as crashed.
    #[error("the store cannot write: {0}")]
    Store(StoreError),
}

impl Runtime {
    /// The process that starts files agents, if there is one.
    fn helper(&self) -> Option<&SpawnHelper> {
        self.0.shared.roots.agents()?.starter().helper()
    }

    /// Builds the jail while the store opens, and takes over the sessions of an earlier supervisor whose workers still run or were being
    /// replaced; the others become `crashed(host_restart)`. Adopted sessions accept executions when this returns, unless a worker does not reply within a
    /// second. After an error both are closed, and the keepers wait for the next attempt.
    pub async fn start(
        config: RuntimeConfig,
        store: impl Future<Output = Result<StoreHandle, OpenError>>,
    ) -> Result<Self, StartError> {
        let registry = Arc::new(Registry::default());
        let KeptJails { jails: kept, ended } = config.kept;
        let spawn = config.spawn.clone();
        let jails = OwnerJails::start(config.spawn, config.keeper_per_owner, Arc::clone(&registry));
        let (jails, store) = match tokio::join!(jails, store) {
            (Ok(jails), Ok(store)) => (jails, store),
            (Err(error), Ok(store)) => {
                store.shutdown().await;
                return Err(error.into());
            }
            (Ok(jails), Err(error)) => {
                jails.shutdown(Duration::from_secs(1)).await;
                return Err(StartError::Open(error));
            }
            (Err(error), Err(_)) => return Err(error.into()),
        };
        let taken = async {
            let rows = store.live_sessions().await?;
            let earlier = rows.iter().map(|row| row.row.session.id).collect();
            let taken = adoption::take_over(kept, &spawn, rows, &registry).await;
            let why = (!ended.is_empty()).then(|| ended.join("; "));
            let [alive, continued] = taken.sessions();
            adoption::store_ends(&store, (alive, continued), earlier, why).await?;
            Ok(taken)
        };
        let taken = match taken.await {
            Ok(taken) => taken,
            Err(error) => {
                jails.shutdown(Duration::from_secs(1)).await;
                store.shutdown().await;
                return Err(StartError::Store(error));
            }
        };
        let shared = RuntimeContext {
            store,
            brokers: Brokers::new(config.brokers),
            egress: Egress::new(config.egress),
            module_sets: ModuleSets::new(Arc::clone(&jails)),
            jails,
            registry,
            roots: config.roots,
            workspaces: config.workspaces,
            worktree_clients: config.worktree_clients,
            operator: config.operator,
            started: Instant::now(),
            suspend_after: config.suspend_after,
            pressure: Arc::default(),
            files: Shares::new("file calls", "file_calls", config.file_calls),
            inspections: Shares::new("inspections", "inspections", super::inspect::INSPECTIONS),
            budget: super::memory::MemoryBudget::new(),
            failed_starts: super::failed_starts::FailedStarts::default(),
            stdin: config.stdin,
            type_checks: TypeChecks::new(config.type_checks),
            left: CancellationToken::new(),
        };
        let shared = Arc::new(shared);
        let watch =
            pressure::watch(config.pressure, Arc::clone(&shared.pressure), Arc::clone(&shared.registry));
        let durables = Durables::start(Arc::clone(&shared), config.durable);
        let sessions = Shares::new("sessions", "sessions", config.sessions);
        let runtime = Self(Arc::new(RuntimeState { shared, durables, sessions, tasks: TaskTracker::new() }));
        runtime.shared().type_checks.connect(WeakRuntime(Arc::downgrade(&runtime.0)));
        runtime.continue_sessions(taken).await;
        // Ends with the runtime.
        tokio::spawn(watch);
        Ok(runtime)
    }

    async fn with_events(
        store: &StoreHandle,
        executed: Executed,
        wanted: bool,
    ) -> Result<Execution, RuntimeError> {
        let Executed { record, events } = executed;
        let mut record = Arc::unwrap_or_clone(record);
        if wanted {
            record.events = Some(match events {
                Some(batches) => joined(&batches),
                None => store.events(record.id, 0, 0).await.map_err(RuntimeError::Store)?,
            });
        }
        Ok(record)
    }

    /// The live session in which an execution runs.
    pub fn session_of_execution(&self, id: ExecutionId) -> Option<SessionId> {
        self.session_of(id).map(|live| live.id)
    }

    /// Resolves whenever a session has ended, a record was degraded or restored, or a jail was replaced.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.0.shared.registry.changes()
    }

    /// The current jail: its keeper, zygotes and walls.
    pub fn jail(&self) -> Spawner {
        self.0.shared.jails.common().present()
    }

    /// Refuses new sessions, closes all, then kills the remaining ones, and ends the jail and the brokers. All have ended
    /// when this returns; the store is still open.
    pub async fn shutdown(&self, deadline: Duration) {
        let shared = &self.0.shared;
        let until = Instant::now() + deadline;
        for live in shared.registry.stop() {
            let close = |token| Input::Close { token, cause: CloseCause::Shutdown };
            let (command, _) = live.request(close, None);
            if let Err(unsent) = live.commands.try_send(command) {
                let (commands, command) = (live.commands.clone(), unsent.into_inner());
                self.0.tasks.spawn(async move { drop(commands.send(command).await) });
            }
        }
        self.0.tasks.close();
        if tokio::time::timeout_at(until, self.0.tasks.wait()).await.is_err() {
            tracing::warn!(
                left = shared.registry.ids().len(),
                "sessions did not close in time; killing them"
            );
        }
        self.0
            .durables
            .shutdown(Duration::from_secs(1).max(until.saturating_duration_since(Instant::now())))
            .await;
        // The remaining workers are killed with the jail; their ends are recorded as they are reported.
        let left = Duration::from_secs(1).max(until.saturating_duration_since(Instant::now()));
        tokio::join!(
            shared.jails.shutdown(left),
            shared.brokers.shutdown(left),
            shared.egress.shutdown(left)
        );
        if let Some(agents) = shared.roots.agents() {
            agents.shutdown(left).await;
        }
        let _ = tokio::time::timeout(left, self.0.tasks.wait()).await;
        // Also those of adopted sessions, and of jails that were replaced.
        shared.jails.common().config().keepers_alive.end(KEEPER_END).await;
        shared.files.close();
    }

    /// Leaves the sessions to the next supervisor, as if this one had been killed: workers and frozen copies go on. When this returns, or
    /// its deadline has passed, no session records or acknowledges anything.
    pub async fn leave(&self, deadline: Duration) {
        let shared = &self.0.shared;
        // Before the owner tasks end: a jail that nobody uses any more would be ended with its workers.
        shared.jails.common().config().keepers_alive.leave();
        shared.left.cancel();
        self.0.tasks.close();
        if tokio::time::timeout(deadline, self.0.tasks.wait()).await.is_err() {
            tracing::debug!(left = self.0.tasks.len(), "tasks of sessions still run");
        }
    }

    /// Executions of durable programs.
    pub fn durables(&self) -> &Arc<Durables> {
        &self.0.durables
    }

    pub fn store(&self) -> &StoreHandle {
        &self.0.shared.store
    }

    /// Begins to end a running execution. No error if it does not run.
    async fn end_execution(&self, execution: ExecutionId, abandoned: bool) -> Result<(), RuntimeError> {
        let Some(live) = self.session_of(execution) else { return Ok(()) };
        match live.call(|token| Input::Cancel { token, execution, abandoned }).await {
            Ok(()) | Err(RuntimeError::NotLive | RuntimeError::Refused(Refusal::NoSuchExecution)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(super) fn session_of(&self, execution: ExecutionId) -> Option<Arc<LiveSession>> {
        self.0.shared.registry.session_of(execution)
    }

    pub(super) fn shared(&self) -> &Arc<RuntimeContext> {
        &self.0.shared
    }

    pub(super) fn tasks(&self) -> &TaskTracker {
        &self.0.tasks
    }

    /// Admits a session, up to the limit.
    pub(super) fn admit(&self, live: &Arc<LiveSession>) -> Result<(), RuntimeError> {
        let shares = (0..live.processes()).map(|_| self.share_of(live)).collect::<Result<_, _>>()?;
        let admitted = self.0.shared.registry.insert(Arc::clone(live), shares);
        admitted.map_err(|refused| match refused {
            AdmissionError::Duplicate => RuntimeError::Duplicate,
            AdmissionError::Stopping => RuntimeError::ShuttingDown,
        })
    }

    /// A share of all sessions for one more process of a session.
    pub(super) fn share_of(&self, live: &LiveSession) -> Result<Share, RuntimeError> {
        Ok(self.0.sessions.take(&self.0.shared.holder(&live.owner))?)
    }

    /// Admits a session of an earlier supervisor, whatever its owner has already; `false`: the runtime is stopping.
    pub(super) fn readmit(&self, live: &Arc<LiveSession>) -> bool {
        let holder = self.0.shared.holder(&live.owner);
        let shares = (0..live.processes()).map(|_| self.0.sessions.take_beyond(&holder)).collect();
        self.0.shared.registry.insert(Arc::clone(live), shares).is_ok()
    }

    /// As [`Self::share_of`], for a process that an earlier supervisor started.
    pub(super) fn share_of_adopted(&self, live: &LiveSession) -> Share {
        self.0.sessions.take_beyond(&self.0.shared.holder(&live.owner))
    }

    pub(super) fn live(&self, id: SessionId) -> Result<Arc<LiveSession>, RuntimeError> {
        self.0.shared.registry.get(id).ok_or(RuntimeError::NotLive)
    }
}

impl RuntimeApi for Runtime {
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
        Box::pin(self.checkpoint(id, name))
    }

    fn checkpoints(&self, id: SessionId) -> BoxFuture<'_, Result<Vec<SessionCheckpoint>, RuntimeError>> {
        Box::pin(self.checkpoints_of(id))
    }

    fn delete_checkpoint(
        &self,
        id: SessionId,
        checkpoint: String,
    ) -> BoxFuture<'_, Result<(), RuntimeError>> {
        Box::pin(self.delete_checkpoint_of(id, checkpoint))
    }

    fn request(
        &self,
        id: SessionId,
        request: SessionRequest,
    ) -> BoxFuture<'_, Result<Session, RuntimeError>> {
        Box::pin(async move { self.live(id)?.call(|token| Input::Request { token, request }).await })
    }

    fn check_library(
        &self,
        owner: Owner,
        library: Library,
    ) -> BoxFuture<'_, Result<Result<(), String>, RuntimeError>> {
        Box::pin(async move {
            let checked = async {
                let jail = self.0.shared.jails.jails_of(&owner).await?.present();
                jail.check_library(library).await
            };
            match checked.await {
                Ok(()) => Ok(Ok(())),
                Err(SpawnError::Library(LibraryError::Failed { message, .. })) => Ok(Err(message)),
                Err(SpawnError::Library(error)) => Ok(Err(error.to_string())),
                Err(error) => Err(Refusal::SpawnFailed(spawn_failure(&error)).into()),
            }
        })
    }
    fn close_session(&self, id: SessionId) -> BoxFuture<'_, Result<Option<Session>, RuntimeError>> {
        Box::pin(async move {
            let Some(live) = self.0.shared.registry.get(id) else { return Ok(None) };
            match live.call(|token| Input::Close { token, cause: CloseCause::Request }).await {
                Ok(session) => Ok(Some(session)),
                Err(RuntimeError::NotLive) => Ok(None),
                Err(error) => Err(error),
            }
        })
    }

    fn kill_session(&self, id: SessionId, signal: i32) -> BoxFuture<'_, Result<(), RuntimeError>> {
        Box::pin(async move {
            if !(1..=64).contains(&signal) {
                return Err(RuntimeError::Invalid(format!("{signal} is not a signal number")));
            }
            if let Some(worker) = self.0.durables.worker(id) {
                // The program resumes from its last checkpoint.
                return worker.process.signal(signal).map_err(|_| RuntimeError::NotLive);
            }
            self.live(id)?.call(|token| Input::Kill { token, signal }).await
        })
    }

    fn inspect_session(
        &self,
        id: SessionId,
        holder: Holder,
    ) -> BoxFuture<'_, Result<SessionInspection, RuntimeError>> {
        Box::pin(self.inspect(id, holder))
    }

    fn execute(
        &self,
        session: SessionId,
        mut request: Box<ExecuteRequest>,
        template: Option<Arc<PolicySnapshot>>,
        follower: Option<Follower>,
    ) -> BoxFuture<'_, Result<Execution, RuntimeError>> {
        Box::pin(async move {
            let live = self.live(session)?;
            let policy = live.policy(template.as_ref(), &self.0.shared.operator);
            if let Source::File { path, .. } = &mut request.source {
                *path = clean_relative(path)?;
            }
            let (id, wants_events) = (request.id, request.collect_events);
            let follower = follower.filter(|_| request.wait);
            let (sender, batches) = follower.as_ref().map(|_| followers::channel()).unzip();
            let part = sender.map(|sender| CallPart::Follower(id, sender));
            let (command, response) = live.request(|token| Input::Execute { token, request, policy }, part);
            live.commands.send(command).await.map_err(|_| RuntimeError::NotLive)?;
            let (result, tail) = match (follower, batches) {
                (Some(follower), Some(batches)) => {
                    let mut tail = EventTail::new(0, follower);
                    (tail.live_until(batches, response).await, Some(tail))
                }
                _ => (response.await, None),
            };
            let executed: Executed = result.map_err(|_| RuntimeError::NotLive)??;
            if let Some(mut tail) = tail {
                // A follower that was too slow for the live events gets the rest from the store.
                if tail.is_behind(&executed.record) {
                    tail.stored(&self.store().for_owner(&live.owner), id)
                        .await
                        .map_err(RuntimeError::Store)?;
                }
                return Ok(Arc::unwrap_or_clone(executed.record));
            }
            Self::with_events(&self.store().for_owner(&live.owner), executed, wants_events).await
        })
    }

    fn is_suspended(&self, id: SessionId) -> bool {
        self.0.shared.registry.get(id).is_some_and(|live| live.suspended.load(Ordering::Relaxed))
    }

    fn repeat_input(
        &self,
        session: SessionId,
        request: Box<ExecuteRequest>,
        template: Option<Arc<PolicySnapshot>>,
    ) -> BoxFuture<'_, Result<Execution, RuntimeError>> {
        Box::pin(self.repeat(session, request, template))
    }

    fn submit_answer(
        &self,
        execution: ExecutionId,
        (task, answer): (Option<TaskId>, SubmittedAnswer),
        wait: bool,
    ) -> BoxFuture<'_, Result<Execution, RuntimeError>> {
        Box::pin(async move {
            let not_pending = || RuntimeError::Refused(Refusal::Task(DurableRefusal::NotPending));
            let live = self.session_of(execution).ok_or_else(not_pending)?;
            let submit = |token| Input::Submit { token, execution, task, answer, wait };
            match live.call::<Executed>(submit).await {
                Ok(executed) => Ok(Arc::unwrap_or_clone(executed.record)),
                // The execution ended meanwhile.
                Err(RuntimeError::NotLive) => Err(not_pending()),
                Err(error) => Err(error),
            }
        })
    }

    fn cancel_execution(&self, execution: ExecutionId) -> BoxFuture<'_, Result<(), RuntimeError>> {
        Box::pin(self.end_execution(execution, false))
    }

    fn abandon_execution(&self, execution: ExecutionId) -> BoxFuture<'_, Result<(), RuntimeError>> {
        Box::pin(self.end_execution(execution, true))
    }

    fn follow(&self, id: ExecutionId, after_seq: u64, follower: Follower) -> BoxFuture<'_, Option<()>> {
        Box::pin(self.follow_events(id, after_seq, follower))
    }

    fn builds(&self, change: DrainChange) -> BoxFuture<'_, UpgradeReport> {
        Box::pin(self.report_builds(change))
    }

    fn role_of(&self, owner: &Owner) -> OwnerRole {
        match self.0.shared.worktree_clients.client_of(owner) {
            WorktreeClient::Administrator | WorktreeClient::AdministratorAs(_) => OwnerRole::Administrator,
            WorktreeClient::Revoked => OwnerRole::Revoked,
            WorktreeClient::User(_) | WorktreeClient::Token { .. } => OwnerRole::User,
        }
    }

    fn session_owner(&self, id: SessionId) -> Option<Owner> {
        self.0.shared.registry.get(id).map(|live| live.owner.clone())
    }

    fn live_sessions(&self) -> Vec<SessionId> {
        self.0.shared.registry.ids()
    }

    fn degraded(&self, execution: ExecutionId) -> Option<Arc<Execution>> {
        self.0.shared.registry.degraded(execution)
    }

    fn condition(&self) -> RuntimeCondition {
        let RuntimeContext { jails, pressure, .. } = &*self.0.shared;
        RuntimeCondition {
            problem: jails.common().problem(),
            memory: pressure.level(),
            largest_owner: pressure.largest(),
            helper_problem: self.helper().and_then(SpawnHelper::problem),
        }
    }

    fn facts(&self, of: Option<&Owner>) -> RuntimeFacts {
        let RuntimeContext { jails, registry, .. } = &*self.0.shared;
        let jails = jails.common();
        let jail = jails.present();
        let info = |zygote: KindZygoteInfo| ZygoteInfo {
            engine: zygote.kind.engine().to_owned(),
            libraries: zygote.kind.libraries(),
            modules: u32::try_from(zygote.kind.modules()).unwrap_or(u32::MAX),
            pid: zygote.pid,
            forks: zygote.forks,
        };
        let is_shown =
            |zygote: &KindZygoteInfo| of.is_none_or(|owner| zygote.kind.owner() == Some(owner.as_str()));
        let counts = registry.counts_of(of);
        RuntimeFacts {
            keeper_pid: Some(jail.keeper_pid()),
            sandbox: doctor::layers(
                &jail,
                jails.config(),
                self.0.shared.roots.agents(),
                Some((&self.0.shared.egress, of.is_none())),
            ),
            zygotes: jail.zygotes().into_iter().filter(is_shown).map(info).collect(),
            sessions_created: counts.sessions_created,
            executions_started: counts.executions_started,
        }
    }

    fn durables(&self) -> Option<&Arc<Durables>> {
        Some(&self.0.durables)
    }

    fn doctor(&self, of: Option<&Owner>) -> BoxFuture<'_, DoctorReport> {
        let all = of.is_none();
        Box::pin(async move {
            let jails = self.0.shared.jails.common();
            let processes = (self.0.shared.roots.agents(), Some((&self.0.shared.egress, all)));
            doctor::report(jails.config(), processes, Ok(&jails.present())).await
        })
    }
}
