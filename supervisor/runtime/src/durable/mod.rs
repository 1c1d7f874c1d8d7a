//! Executions of durable programs: an owner task for each one that runs or has a warm worker, which drives
//! [`vm_system_core::durable`] with real time, processes and the store. A waiting execution has no owner task, no process, no
//! memory.
//!
//! Reading order:
//! - this file: [`Durables`], its requests
//! - `live`: the owner tasks; finding or starting one
//! - `task`: the owner task; `inputs`: events as inputs; `carry_out`: actions; `hold`: its right to write
//! - `worker`: starts workers and sends them code and pages
//! - `code`: a cache of compiled programs
//! - `stored`: an execution loaded from the store
//! - `files`, `listing`, `filter`: the calls of `fs`; lists of folders; patterns of lists
//! - `requests`: HTTP requests
//! - `pages`: the memory budget for received pages
//! - `single_request`: workers for one request: compiling, inspecting a state
//! - `stuck`: looks for executions that nothing would wake
//! - `alarm`: wakes executions after a start of the supervisor and at the deadlines of tasks

mod alarm;
mod carry_out;
mod code;
mod files;
mod filter;
mod follow;
mod hold;
mod inputs;
mod listing;
mod live;
mod pages;
mod requests;
mod single_request;
mod stored;
mod stuck;
mod task;
mod worker;

pub use live::RunIdentity;
pub use single_request::CompiledSource;
pub use stuck::StuckRun;

use super::api::RuntimeError;
use super::link::LastReceived;
use super::shares::{ShareLimits, Shares};
use super::task::RuntimeContext;
use live::{LiveRun, QueuedRequest};
use std::collections::BTreeMap;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use vm_system_core::durable::{
    DurableInput as Input, DurableMachine, DurableRefusal, DurableSpec, EventWrites, Fresh, RunActivity,
    RunStatus, SubmittedAnswer,
};
use vm_system_policy::{EffectivePolicy, Operator, Snapshot, effective};
use vm_system_protocol::control::OtherValue;
use vm_system_protocol::ids::{ExecutionId, ProgramId, SessionId, TaskId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{Diagnostic, Execution, ProgramState};
use vm_system_record::{
    Owner as Principal, PolicySnapshot, RecordedWorktree, StoreError, TemplateRow, Write,
};
use vm_system_spawn::WorkerProcess;

/// Configuration of durable executions.
#[derive(Debug, Clone)]
pub struct DurableConfig {
    /// How long a worker is kept after a pause, for an answer that comes at once.
    pub warm: Duration,
    /// Most workers of durable executions at a time; others wait.
    pub workers: usize,
    /// Most workers that are being started and loaded at a time, of one owner; of all owners together twice as many.
    pub starts: usize,
    /// A checkpoint after computing this long without one.
    pub checkpoint: Duration,
    /// A checkpoint after this many instructions without one.
    pub checkpoint_steps: u64,
    /// Earlier checkpoints that are kept for a rewind; 0 = all.
    pub history: u64,
}

impl Default for DurableConfig {
    fn default() -> Self {
        Self {
            warm: Duration::from_secs(2),
            workers: 256,
            starts: 4,
            checkpoint: Duration::from_secs(1),
            checkpoint_steps: u64::MAX,
            history: 100,
        }
    }
}

/// Parameters of a new execution of a program.
#[derive(Debug, Clone)]
pub struct StartProgram {
    /// The initial record.
    pub record: Execution,
    pub identity: Arc<RunIdentity>,
    /// The session's copy of the template.
    pub policy: Arc<PolicySnapshot>,
    /// Empty = no files.
    pub worktree_path: String,
    /// As [`Durables::check_worktree`] has returned it.
    pub worktree: Option<Arc<RecordedWorktree>>,
    /// Start parameters.
    pub fresh: Fresh,
}

/// Compilations at a time. One owner alone has two: a long one leaves the other free for short ones.
const COMPILATIONS: usize = 4;
/// Inspections at a time: restoring a large state is slow.
const INSPECTIONS: usize = 4;

/// Shares without a reserve: administrators have no more need of it than others.
fn unreserved(what: &'static str, most: usize) -> Arc<Shares> {
    Shares::new(what, "durable", ShareLimits { reserved: 0, ..ShareLimits::at_most(most) })
}

/// A program's running worker.
#[derive(Debug, Clone)]
pub(super) struct ProgramWorker {
    pub(super) execution: ExecutionId,
    pub(super) process: WorkerProcess,
    pub(super) last_received: LastReceived,
}

/// All durable executions.
#[derive(Debug)]
pub struct Durables {
    shared: Arc<RuntimeContext>,
    config: DurableConfig,
    live: Mutex<HashMap<ExecutionId, LiveRun>>,
    /// The number of the last caller.
    callers: AtomicU64,
    following: follow::Following,
    code: Mutex<code::Codes>,
    /// Workers.
    slots: Arc<Shares>,
    /// In turns of their owners: many programs of one that go on at once do not delay the next one of another.
    starts: Arc<Shares>,
    wakes: Arc<Semaphore>,
    compilations: Arc<Shares>,
    inspections: Arc<Shares>,
    /// Findings of the search for executions that nothing wakes.
    stuck: stuck::Findings,
    /// Running workers, for inspection and signals.
    workers: Mutex<HashMap<SessionId, ProgramWorker>>,
    /// The memory budget for pages that are not stored yet.
    page_budget: Arc<pages::PageBudget>,
    /// An execution waits for a worker: warm workers are to be released.
    pressure: Notify,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Durables {
    pub(super) fn start(shared: Arc<RuntimeContext>, config: DurableConfig) -> Arc<Self> {
        let durables = Arc::new(Self {
            shared,
            live: Mutex::default(),
            callers: AtomicU64::default(),
            following: follow::Following::default(),
            workers: Mutex::default(),
            stuck: stuck::Findings::default(),
            code: Mutex::default(),
            slots: Shares::new("workers of programs", "durable", ShareLimits::at_most(config.workers.max(1))),
            starts: unreserved("starts of workers", 2 * config.starts.max(1)),
            wakes: Arc::new(Semaphore::new(2 * config.starts.max(1))),
            compilations: unreserved("compilations", COMPILATIONS),
            inspections: unreserved("inspections", INSPECTIONS),
            page_budget: pages::PageBudget::new(),
            pressure: Notify::new(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            config,
        });
        durables.tasks.spawn(alarm::run(Arc::clone(&durables)));
        durables.tasks.spawn(stuck::run(Arc::clone(&durables)));
        durables
    }

    /// Compiles a source in a worker of its own.
    pub async fn compile(
        &self,
        source: String,
        file_name: String,
        typescript: Option<bool>,
        owner: &Principal,
    ) -> Result<Result<CompiledSource, Vec<Diagnostic>>, RuntimeError> {
        single_request::compile(self, owner, source, file_name, typescript).await
    }

    /// Refuses an owner who holds its share a new execution while memory is short. One that exists continues: it is given up by its owner only.
    pub fn admit(&self, owner: &Principal) -> Result<(), RuntimeError> {
        self.shared.pressure.admit(owner)
    }

    /// Runs a program to its first pause or end, or (without `wait`) until its start is stored.
    pub async fn run(self: &Arc<Self>, start: StartProgram, wait: bool) -> Result<RunStatus, DurableRefusal> {
        let policy = Arc::new(policy(&start.policy, None, &self.shared.operator));
        let spec = self.spec(&start.record, &policy);
        let id = start.record.id;
        let program = (start.identity.program, start.identity.version);
        let owner = start.identity.owner.clone();
        let context = task::ProgramContext {
            program,
            worktree: start.worktree_path,
            recorded: start.worktree,
            user_gone: None,
            reported: Arc::default(),
            owner,
            policy,
        };
        let machine = DurableMachine::fresh(spec, start.record, start.fresh);
        let (command, response) = self.queued(|token| Input::Start { token, wait });
        self.begin(id, (machine, context), start.identity, command)?;
        response.await.unwrap_or(Err(DurableRefusal::Stopping))
    }

    /// Submits the answer to a task and runs the program to its next pause or end, or (without `wait`) until the answer is
    /// stored. The writes become durable together with the answer.
    pub async fn submit(
        self: &Arc<Self>,
        execution: ExecutionId,
        identity: Arc<RunIdentity>,
        (task, answer): (Option<TaskId>, SubmittedAnswer),
        wait: bool,
        with: Vec<Write>,
    ) -> Result<RunStatus, DurableRefusal> {
        self.request(execution, Some(identity), |token| Input::Submit { token, task, answer, with, wait })
            .await
    }

    /// Gives an execution an event, which it gets at once if it waits for one of this name, and else when it does. The writes become
    /// durable together with the event.
    pub async fn emit(
        self: &Arc<Self>,
        execution: ExecutionId,
        (name, event): (String, JsonText),
        with: EventWrites,
    ) -> Result<RunStatus, DurableRefusal> {
        self.request(execution, None, |token| Input::Emit { token, name, event, with }).await
    }

    /// Changes a variable of a waiting program.
    pub async fn set(
        self: &Arc<Self>,
        execution: ExecutionId,
        frame: u32,
        name: String,
        value: JsonText,
    ) -> Result<RunStatus, DurableRefusal> {
        self.request(execution, None, |token| Input::Set { token, frame, name, value }).await
    }

    /// Ends an execution; the writes become durable together with its end.
    pub async fn cancel(
        self: &Arc<Self>,
        execution: ExecutionId,
        with: Vec<Write>,
    ) -> Result<RunStatus, DurableRefusal> {
        self.request(execution, None, |token| Input::Cancel { token, with }).await
    }

    /// Continues an execution if there is something to do.
    pub fn wake(self: &Arc<Self>, execution: ExecutionId) {
        if let Err(error) = self.hand_over(execution, None, QueuedRequest::wake(None)) {
            tracing::warn!(%execution, %error, "an execution does not continue; it is retried");
        }
    }

    /// As [`Durables::wake`]; returns when the execution waits or has ended.
    pub async fn resume(self: &Arc<Self>, execution: ExecutionId) -> Result<RunStatus, DurableRefusal> {
        self.request(execution, None, |token| Input::Wake { token: Some(token) }).await
    }

    /// Frames and variables of a program at a checkpoint.
    pub async fn look(&self, execution: ExecutionId, checkpoint: u64) -> Result<ProgramState, RuntimeError> {
        single_request::inspect(self, execution, checkpoint).await
    }

    /// The pages of a stored checkpoint that change with these variables; the inner error is the first one that cannot be set.
    pub async fn edit(
        &self,
        execution: ExecutionId,
        checkpoint: u64,
        variables: &[OtherValue],
    ) -> Result<Result<BTreeMap<u64, Option<Vec<u8>>>, String>, RuntimeError> {
        single_request::edit(self, execution, checkpoint, variables).await
    }

    /// Checks that a worker can restore a stored checkpoint; the inner error is the reason as text.
    pub async fn verify_stored(
        &self,
        execution: ExecutionId,
        checkpoint: u64,
    ) -> Result<Result<(), String>, RuntimeError> {
        single_request::verify_stored(self, execution, checkpoint).await
    }

    /// Checks that a worker can restore each of these stored checkpoints; the inner error is the number of the first that it
    /// cannot, and the reason as text.
    pub async fn verify_all_stored(
        &self,
        execution: ExecutionId,
        checkpoints: &[u64],
    ) -> Result<Result<(), (u64, String)>, RuntimeError> {
        single_request::verify_all_stored(self, execution, checkpoints).await
    }

    /// Checks that a worker with these limits can restore each of these numbered states; the inner error is the number of the first
    /// that it cannot, and the reason as text.
    pub async fn verify<'a>(
        &self,
        owner: &Principal,
        snapshot: &PolicySnapshot,
        code: Vec<u8>,
        states: impl Iterator<Item = (u64, BTreeMap<u64, &'a [u8]>)> + Send,
    ) -> Result<Result<(), (u64, String)>, RuntimeError> {
        let limits = policy(snapshot, None, &self.shared.operator).wire.limits;
        single_request::verify(self, owner, limits, code, states).await
    }

    /// The running worker of an execution, by its session; none during a long wait.
    pub(super) fn worker(&self, session: SessionId) -> Option<ProgramWorker> {
        live::lock(&self.workers).get(&session).cloned()
    }

    /// The record of a folder that an owner's program is to use; an administrator's with the rights of the user `as_user`. An error
    /// now would otherwise come with the first file call, perhaps days later.
    pub async fn check_worktree(
        &self,
        path: PathBuf,
        owner: &Principal,
        as_user: Option<String>,
    ) -> Result<Option<Arc<RecordedWorktree>>, RuntimeError> {
        let opened = self.shared.open_worktree(path, owner, as_user).await?;
        Ok(opened.recorded().cloned())
    }

    /// Sessions of programs that have a process now.
    pub fn live_sessions(&self) -> Vec<SessionId> {
        live::lock(&self.workers).keys().copied().collect()
    }

    /// The present act of an execution's owner task; none if it has none.
    pub fn activity(&self, execution: ExecutionId) -> Option<RunActivity> {
        live::lock(&self.live).get(&execution).map(LiveRun::activity)
    }

    fn has_owner_task(&self, execution: ExecutionId) -> bool {
        live::lock(&self.live).get(&execution).is_some_and(LiveRun::is_alive)
    }

    /// How many executions have an owner task.
    pub fn live(&self) -> usize {
        live::lock(&self.live).len()
    }

    /// Accepted requests are stored and workers end; waiting executions resume after the next start.
    pub(super) async fn shutdown(&self, deadline: Duration) {
        self.stop.cancel();
        self.tasks.close();
        if tokio::time::timeout(deadline, self.tasks.wait()).await.is_err() {
            tracing::warn!(left = self.live(), "durable executions did not stop in time");
        }
    }

    fn spec(&self, record: &Execution, policy: &EffectivePolicy) -> DurableSpec {
        DurableSpec {
            execution: record.id,
            session: record.session_id,
            limits: policy.wire.limits.clone(),
            checkpoint_steps: self.config.checkpoint_steps.max(1),
            checkpoint_ms: u32::try_from(self.config.checkpoint.as_millis()).unwrap_or(u32::MAX).max(1),
            warm_ms: u64::try_from(self.config.warm.as_millis()).unwrap_or(u64::MAX),
            history: self.config.history,
        }
    }

    /// A version's code, from the cache or the store.
    async fn code(&self, program: ProgramId, version: u32) -> Result<Option<Arc<Vec<u8>>>, StoreError> {
        if let Some(code) = live::lock(&self.code).get((program, version)) {
            return Ok(Some(code));
        }
        let Some(found) = self.shared.store.program_code(program, version).await? else { return Ok(None) };
        let code = Arc::new(found.code);
        live::lock(&self.code).keep((program, version), &code);
        Ok(Some(code))
    }
}

/// The current rights of a session. `fs` is part of the engine: capability rows narrow what it reads and grant what it writes. Rows
/// of kind `net` apply as in other sessions.
fn policy(snapshot: &PolicySnapshot, template: Option<&TemplateRow>, operator: &Operator) -> EffectivePolicy {
    let modules = || vec!["fs".to_owned()];
    let mine = Snapshot {
        settings: snapshot.settings.clone(),
        modules: modules(),
        capabilities: snapshot.capabilities.clone(),
    };
    let now = template.map(|row| Snapshot {
        settings: row.detail.settings.clone(),
        modules: modules(),
        capabilities: row.detail.capabilities.clone(),
    });
    effective(&mine, now.as_ref(), operator)
}
