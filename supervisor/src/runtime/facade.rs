//! What can be asked of the live sessions.

use super::api::{CreateSession, RuntimeConfig, RuntimeError, StartExecution};
use super::durable::Durables;
use super::follow::{Tail, joined};
use super::inspect::{Facts, inspect};
use super::jails::Jails;
use super::registry::{Live, NoRoom, Registry};
use super::rows::SessionWrites;
use super::session_task::SessionTask;
use super::task::{Answering, Command, FILES, Shared};
use super::{doctor, followers};
use crate::brokers::Brokers;
use crate::core::durable::Refused;
use crate::core::{
    Answer, CloseCause, ExecuteRequest, Executed, Refusal, SessionMachine, SessionSpec, Source,
};
use crate::policy::EffectivePolicy;
use crate::spawn::{SpawnError, Spawner};
use crate::store::{Owner, PolicySnapshot, StoreError, StoreHandle, Write};
use crate::worktree::{clean_relative, run_file_format};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use uuid::Uuid;
use vm_system_protocol::control::{DoctorReport, GivenAnswer, SandboxLayer};
use vm_system_protocol::ids::{ExecutionId, SessionId, TaskId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{
    Engine, Execution, ExecutionKind, Session, SessionInspection, SessionStatus, StartupFile, StartupMode,
};
use vm_system_protocol::time::Timestamp;
use vm_system_protocol::worker::{SourceFormat, Start};

/// Commands that may wait for a session's owner task.
const COMMANDS: usize = 16;

/// All live sessions. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Runtime(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    durables: Arc<Durables>,
    max_sessions: usize,
    tasks: TaskTracker,
}

/// Why the runtime did not come up.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no jail.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The sessions of an earlier supervisor could not be marked as crashed.
    #[error("the store cannot write: {0}")]
    Store(StoreError),
}

impl Runtime {
    /// Builds the jail and marks what an earlier supervisor left behind as `crashed(host_restart)`.
    pub async fn start(config: RuntimeConfig, store: StoreHandle) -> Result<Self, StartError> {
        let registry = Arc::new(Registry::default());
        let jails = Jails::start(config.spawn, Arc::clone(&registry)).await?;
        let restart = Write::HostRestart { at: timestamp(), alive: Vec::new() };
        if let Err(error) = store.apply(restart).await {
            jails.shutdown(Duration::from_secs(1)).await;
            return Err(StartError::Store(error));
        }
        let shared = Shared {
            store,
            brokers: Brokers::new(config.brokers),
            jails,
            registry,
            roots: config.roots,
            workspaces: config.workspaces,
            administrators: config.administrators,
            operator: config.operator,
            started: Instant::now(),
            files: Semaphore::new(FILES),
            rooms: super::room::Rooms::new(),
        };
        let shared = Arc::new(shared);
        let durables = Durables::start(Arc::clone(&shared), config.durable);
        let max_sessions = config.max_sessions;
        let inner = Inner { shared, durables, max_sessions, tasks: TaskTracker::new() };
        Ok(Self(Arc::new(inner)))
    }

    /// Inserts the row, starts the worker, runs the startup files; answers when the session is `ready`.
    pub async fn create_session(&self, request: CreateSession) -> Result<Session, RuntimeError> {
        let shared = &self.0.shared;
        if shared.registry.is_stopping() {
            return Err(RuntimeError::ShuttingDown);
        }
        let worktree =
            shared.open_worktree(request.worktree_path.clone(), request.worktree_client.clone()).await?;
        let (commands, inbox) = commands();
        let CreateSession { id, owner, policy, libraries, .. } = request.clone();
        let live = Arc::new(Live::new(id, owner.clone(), commands, Arc::clone(&policy)));
        self.admit(&live)?;
        let machine = SessionMachine::new(spec(&request, &live.policy(None, &shared.operator)));
        let writes = SessionWrites::new(shared.store.clone(), owner, policy);
        let task = SessionTask::new(machine, (shared, &live), inbox, writes, worktree, libraries);
        self.0.tasks.spawn(task.run());
        match self.ask(&live, |answer| Command::Create { answer }).await? {
            Answer::Session(session) => {
                shared.registry.sessions_created.fetch_add(1, Ordering::Relaxed);
                Ok(*session)
            }
            other => Err(unexpected(&other)),
        }
    }

    /// Runs code. Order of checks: live session, path, busy, file; a check that fails leaves no row behind.
    pub async fn execute(&self, start: StartExecution) -> Result<Execution, RuntimeError> {
        let live = self.live(start.session)?;
        let policy = live.policy(start.policy_now.as_ref(), &self.0.shared.operator);
        let source = source(&start, &policy)?;
        let StartExecution { id, kind, args, env, argv, recorded_args, recorded_env, wait, follower, .. } =
            start;
        let follower = follower.filter(|_| wait);
        let request = Box::new(ExecuteRequest {
            id,
            kind,
            source,
            args,
            env: merged(&policy.env, env),
            argv,
            recorded_args,
            recorded_env,
            policy,
            wait,
            collect_events: wait && follower.is_none(),
        });
        let (answer, answered) = oneshot::channel();
        let (sender, batches) = follower.as_ref().map(|_| followers::channel()).unzip();
        let command = Command::Execute { request, follower: sender, answer };
        live.commands.send(command).await.map_err(|_| RuntimeError::NotLive)?;
        let (result, tail) = match (follower, batches) {
            (Some(follower), Some(batches)) => {
                let mut tail = Tail::new(0, follower);
                (tail.live_until(batches, answered).await, Some(tail))
            }
            _ => (answered.await, None),
        };
        let executed = match result.map_err(|_| RuntimeError::NotLive)?? {
            Answer::Executed(executed) => executed,
            other => return Err(unexpected(&other)),
        };
        if let Some(mut tail) = tail {
            // A follower that was too slow for the live events gets the rest from the store.
            if tail.is_behind(&executed.record) {
                tail.stored(self.store(), id).await.map_err(RuntimeError::Store)?;
            }
            return Ok(Arc::unwrap_or_clone(executed.record));
        }
        self.with_events(executed, wait).await
    }

    async fn with_events(&self, executed: Executed, wanted: bool) -> Result<Execution, RuntimeError> {
        let Executed { record, events } = executed;
        let mut record = Arc::unwrap_or_clone(record);
        if wanted {
            record.events = Some(match events {
                Some(batches) => joined(&batches),
                None => self.store().events(record.id, 0, 0).await.map_err(RuntimeError::Store)?,
            });
        }
        Ok(record)
    }

    /// Answers the question of a session's execution; gives the record as of its next pause or its end, or (without `wait`) as soon
    /// as the answer is stored; without events.
    pub async fn submit_answer(
        &self,
        execution: ExecutionId,
        (task, given): (Option<TaskId>, GivenAnswer),
        wait: bool,
    ) -> Result<Execution, RuntimeError> {
        let not_pending = || RuntimeError::Refused(Refusal::Task(Refused::NotPending));
        let live = self.session_of(execution).ok_or_else(not_pending)?;
        match self.ask(&live, |answer| Command::Submit { execution, task, given, wait, answer }).await {
            Ok(Answer::Executed(executed)) => Ok(Arc::unwrap_or_clone(executed.record)),
            Ok(other) => Err(unexpected(&other)),
            // It ended while it was asked.
            Err(RuntimeError::NotLive) => Err(not_pending()),
            Err(error) => Err(error),
        }
    }

    /// Ends a running execution; that it does not run (any more) is fine. Answers once it is being ended.
    pub async fn cancel_execution(&self, execution: ExecutionId) -> Result<(), RuntimeError> {
        let Some(live) = self.session_of(execution) else { return Ok(()) };
        match self.ask(&live, |answer| Command::Cancel { execution, answer }).await {
            Ok(_) | Err(RuntimeError::NotLive | RuntimeError::Refused(Refusal::NoSuchExecution)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Ends a session in good order and answers when that is stored; that it does not live (any more) is fine (`None`).
    pub async fn close_session(&self, id: SessionId) -> Result<Option<Session>, RuntimeError> {
        let Some(live) = self.0.shared.registry.get(id) else { return Ok(None) };
        match self.ask(&live, |answer| Command::Close { cause: CloseCause::Request, answer }).await {
            Ok(Answer::Session(session)) => Ok(Some(*session)),
            Ok(other) => Err(unexpected(&other)),
            Err(RuntimeError::NotLive) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends a worker a signal; after SIGKILL (9) answers when the session's end is stored.
    pub async fn kill_session(&self, id: SessionId, signal: i32) -> Result<(), RuntimeError> {
        if !(1..=64).contains(&signal) {
            return Err(RuntimeError::Invalid(format!("{signal} is not the number of a signal")));
        }
        if let Some((_, worker)) = self.0.durables.worker(id) {
            // Its program goes on from its last checkpoint.
            return worker.signal(signal).map_err(|_| RuntimeError::NotLive);
        }
        let live = self.live(id)?;
        self.ask(&live, |answer| Command::Kill { signal, answer }).await.map(|_| ())
    }

    /// A live session as the kernel sees it.
    pub async fn inspect_session(&self, id: SessionId) -> Result<SessionInspection, RuntimeError> {
        let facts = if let Some((execution, worker)) = self.0.durables.worker(id) {
            Facts::of_program(execution, worker)
        } else {
            let live = self.live(id)?;
            let (answer, answered) = oneshot::channel();
            live.commands.send(Command::Inspect { answer }).await.map_err(|_| RuntimeError::NotLive)?;
            answered.await.map_err(|_| RuntimeError::NotLive)?
        };
        let inspected = tokio::task::spawn_blocking(move || inspect(id, facts)).await;
        inspected.map_err(|error| RuntimeError::Internal(error.to_string()))?.ok_or(RuntimeError::NotLive)
    }

    /// Whose a live session is: keeps the store out of the hot path.
    pub fn session_owner(&self, id: SessionId) -> Option<Owner> {
        self.0.shared.registry.get(id).map(|live| live.owner.clone())
    }

    /// In which live session an execution runs.
    pub fn session_of_execution(&self, id: ExecutionId) -> Option<SessionId> {
        self.session_of(id).map(|live| live.id)
    }

    /// Sorted.
    pub fn live_sessions(&self) -> Vec<SessionId> {
        self.0.shared.registry.ids()
    }

    /// Resolves whenever a session has ended, a record was degraded or restored, or a jail was replaced.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.0.shared.registry.changes()
    }

    /// The record of an execution that the store could not take (completely), to be shown in place of what is stored.
    pub fn degraded(&self, execution: ExecutionId) -> Option<Arc<Execution>> {
        self.0.shared.registry.degraded(execution)
    }

    /// The present jail: its keeper, zygotes and layers.
    pub fn jail(&self) -> Spawner {
        self.0.shared.jails.present()
    }

    /// The walls in force.
    pub fn layers(&self) -> Vec<SandboxLayer> {
        let jails = &self.0.shared.jails;
        doctor::layers(&jails.present(), jails.config().sandbox)
    }

    /// The walls in force, and what this machine could do.
    pub async fn doctor(&self) -> DoctorReport {
        let jails = &self.0.shared.jails;
        doctor::report(jails.config(), Ok(&jails.present())).await
    }

    /// Sessions made and executions begun since the start.
    pub fn totals(&self) -> (u64, u64) {
        let registry = &self.0.shared.registry;
        (
            registry.sessions_created.load(Ordering::Relaxed),
            registry.executions_started.load(Ordering::Relaxed),
        )
    }

    /// Refuses new sessions, closes all, then kills what is left, and ends the jail and the brokers. All of it is over
    /// when this returns; the store is still open.
    pub async fn shutdown(&self, deadline: Duration) {
        let shared = &self.0.shared;
        let until = Instant::now() + deadline;
        for live in shared.registry.stop() {
            let (answer, _) = oneshot::channel();
            let close = Command::Close { cause: CloseCause::Shutdown, answer };
            if live.commands.try_send(close).is_err() {
                let (answer, _) = oneshot::channel();
                let close = Command::Close { cause: CloseCause::Shutdown, answer };
                let commands = live.commands.clone();
                self.0.tasks.spawn(async move { drop(commands.send(close).await) });
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
        // The jail takes every worker with it that is still there; their ends are recorded as they come.
        let left = Duration::from_secs(1).max(until.saturating_duration_since(Instant::now()));
        tokio::join!(shared.jails.shutdown(left), shared.brokers.shutdown(left));
        let _ = tokio::time::timeout(left, self.0.tasks.wait()).await;
        shared.files.close();
    }

    /// Executions of durable programs.
    pub fn durables(&self) -> &Arc<Durables> {
        &self.0.durables
    }

    pub(super) fn store(&self) -> &StoreHandle {
        &self.0.shared.store
    }

    pub(super) fn session_of(&self, execution: ExecutionId) -> Option<Arc<Live>> {
        self.0.shared.registry.session_of(execution)
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.0.shared
    }

    pub(super) fn tasks(&self) -> &TaskTracker {
        &self.0.tasks
    }

    /// Takes a session in, if there is room for one more.
    pub(super) fn admit(&self, live: &Arc<Live>) -> Result<(), RuntimeError> {
        let admitted = self.0.shared.registry.insert(Arc::clone(live), self.0.max_sessions);
        admitted.map_err(|no_room| match no_room {
            NoRoom::Full => RuntimeError::Full(self.0.max_sessions),
            NoRoom::Duplicate => RuntimeError::Duplicate,
            NoRoom::Stopping => RuntimeError::ShuttingDown,
        })
    }

    pub(super) fn live(&self, id: SessionId) -> Result<Arc<Live>, RuntimeError> {
        self.0.shared.registry.get(id).ok_or(RuntimeError::NotLive)
    }

    pub(super) async fn ask(
        &self,
        live: &Live,
        command: impl FnOnce(Answering) -> Command,
    ) -> Result<Answer, RuntimeError> {
        let (answer, answered) = oneshot::channel();
        live.commands.send(command(answer)).await.map_err(|_| RuntimeError::NotLive)?;
        Ok(answered.await.map_err(|_| RuntimeError::NotLive)??)
    }
}

/// The way to an owner task.
pub(super) fn commands() -> (mpsc::Sender<Command>, mpsc::Receiver<Command>) {
    mpsc::channel(COMMANDS)
}

/// The client's variables over those of the policy.
fn merged(granted: &[(String, String)], given: Vec<(String, String)>) -> Vec<(String, String)> {
    if granted.is_empty() {
        return given;
    }
    let mut all: BTreeMap<String, String> = granted.iter().cloned().collect();
    all.extend(given);
    all.into_iter().collect()
}

pub(super) fn unexpected(answer: &Answer) -> RuntimeError {
    RuntimeError::Internal(format!("an answer of the wrong kind: {answer:?}"))
}

fn timestamp() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

fn spec(request: &CreateSession, policy: &Arc<EffectivePolicy>) -> SessionSpec {
    let settings = &request.policy.settings;
    SessionSpec {
        record: Session {
            id: request.id,
            name: request.name.clone(),
            template_id: request.template_id,
            vm_id: request.template_id,
            workspace_id: request.workspace_id.clone(),
            base_commit_oid: request.base_commit_oid.clone(),
            worktree_path: request.worktree_path.to_string_lossy().into_owned(),
            status: SessionStatus::Starting,
            created_at: timestamp(),
            closed_at: None,
            last_error: None,
            close_reason: None,
            runtime_meta: JsonText::empty_object(),
            engine: Engine::Quickjs,
            execution_id: None,
        },
        start: start_of(request.id, policy, settings.runtime.console),
        startup: request.policy.startup_files.iter().map(|file| startup(file, policy)).collect(),
        ttl_s: settings.runtime.ttl_s,
        idle_timeout_s: settings.runtime.idle_timeout_s,
    }
}

/// What a worker is told first of all.
fn start_of(session: SessionId, policy: &EffectivePolicy, console: bool) -> Start {
    Start { session, limits: policy.wire.limits.clone(), random_seed: seed(), console }
}

/// A session that goes on from where its parent stands: the same place and rights, no name, no startup files.
pub(super) fn spec_of_fork(
    id: SessionId,
    parent: &Session,
    snapshot: &PolicySnapshot,
    policy: &Arc<EffectivePolicy>,
    runtime_meta: JsonText,
) -> SessionSpec {
    let runtime = &snapshot.settings.runtime;
    SessionSpec {
        record: Session {
            id,
            name: None,
            status: SessionStatus::Starting,
            created_at: timestamp(),
            runtime_meta,
            ..parent.clone()
        },
        start: start_of(id, policy, runtime.console),
        startup: Vec::new(),
        ttl_s: runtime.ttl_s,
        idle_timeout_s: runtime.idle_timeout_s,
    }
}

/// 244 random bits from the kernel, in the form of two version 4 UUIDs.
fn seed() -> [u8; 32] {
    let mut seed = [0; 32];
    seed[..16].copy_from_slice(Uuid::new_v4().as_bytes());
    seed[16..].copy_from_slice(Uuid::new_v4().as_bytes());
    seed
}

fn startup(file: &StartupFile, policy: &Arc<EffectivePolicy>) -> ExecuteRequest {
    let format = match file.mode {
        StartupMode::Import => Some(as_module(&file.path)),
        // A script even where files of other kinds are modules.
        StartupMode::Eval => Some(run_file_format(&file.path, false)),
    };
    ExecuteRequest {
        id: ExecutionId::from_uuid(Uuid::now_v7()),
        kind: ExecutionKind::Startup,
        source: Source::File { path: file.path.clone(), format },
        args: JsonText::empty_object(),
        env: policy.env.clone(),
        argv: Vec::new(),
        recorded_args: JsonText::empty_object(),
        recorded_env: JsonText::empty_object(),
        policy: Arc::clone(policy),
        wait: true,
        collect_events: false,
    }
}

fn as_module(path: &str) -> SourceFormat {
    match run_file_format(path, true) {
        SourceFormat::TypeScript | SourceFormat::TypeScriptModule => SourceFormat::TypeScriptModule,
        _ => SourceFormat::Module,
    }
}

fn source(start: &StartExecution, policy: &EffectivePolicy) -> Result<Source, RuntimeError> {
    match (start.kind, &start.input, &start.path) {
        (ExecutionKind::Repl, Some(text), _) => Ok(Source::Text {
            text: text.clone(),
            file_name: "repl".to_owned(),
            format: SourceFormat::Script,
        }),
        (ExecutionKind::RunFile, Some(text), Some(path)) => Ok(Source::Text {
            text: text.clone(),
            file_name: path.clone(),
            format: run_file_format(path, policy.esm),
        }),
        (ExecutionKind::RunFile, None, Some(path)) => {
            Ok(Source::File { path: clean_relative(path)?, format: None })
        }
        (ExecutionKind::Repl, None, _) => {
            Err(RuntimeError::Invalid("a repl execution needs input".to_owned()))
        }
        (ExecutionKind::RunFile, _, None) => {
            Err(RuntimeError::Invalid("a run-file execution needs a path".to_owned()))
        }
        (kind @ (ExecutionKind::Startup | ExecutionKind::Program), _, _) => {
            Err(RuntimeError::Invalid(format!("a client cannot start an execution of kind {kind}")))
        }
    }
}
