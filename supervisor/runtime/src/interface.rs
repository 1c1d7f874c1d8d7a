//! The part of the runtime that the verbs need: a trait, so that they are tested without processes. [`super::Runtime`] is its
//! implementation.

use super::shares::Holder;
use super::{CreateSession, Durables, Follower, ForkSession, LargestOwner, RuntimeError};
use std::sync::Arc;
use vm_system_core::durable::SubmittedAnswer;
use vm_system_core::pressure::PressureLevel;
use vm_system_core::{ExecuteRequest, SessionRequest};
use vm_system_protocol::control::{DoctorReport, SandboxLayer, UpgradeReport, ZygoteInfo};
use vm_system_protocol::ids::{ExecutionId, SessionId, TaskId};
use vm_system_protocol::model::{Execution, Session, SessionCheckpoint, SessionInspection};
use vm_system_protocol::time::Timestamp;
use vm_system_record::{Owner, PolicySnapshot};
use vm_system_spawn::Library;
use vm_system_spawn::helper::HelperProblem;
use vm_system_store::BoxFuture;

/// A change of the deadline by which workers of other builds are replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrainChange {
    Keep,
    Set(Timestamp),
    Withdraw,
}

/// The rights of an owner now, which may be others than when it made a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerRole {
    Administrator,
    User,
    /// None any more: its token is gone, or its user may not use the supervisor.
    Revoked,
}

/// Facts about the runtime.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RuntimeFacts {
    /// The keeper's pid on the host.
    pub keeper_pid: Option<u32>,
    /// The walls in force.
    pub sandbox: Vec<SandboxLayer>,
    /// The zygotes; of one owner: those for its sessions alone.
    pub zygotes: Vec<ZygoteInfo>,
    /// Sessions created since the start, without those of programs.
    pub sessions_created: u64,
    /// Executions started in sessions since the start, without those of programs.
    pub executions_started: u64,
}

/// The state of health, which is read often: finding it costs no call of the kernel.
#[derive(Debug, Default)]
pub struct RuntimeCondition {
    /// Why no worker can be started at this moment.
    pub problem: Option<String>,
    /// How short memory is.
    pub memory: PressureLevel,
    /// The owner who holds most, while memory is short.
    pub largest_owner: Option<LargestOwner>,
    /// The fault of the process that starts files agents.
    pub helper_problem: Option<HelperProblem>,
}

/// The operations of the verbs on live sessions.
pub trait RuntimeApi: Send + Sync {
    /// Inserts the row, starts the worker, runs the startup files; resolves when the session is `ready`.
    fn create_session(&self, request: CreateSession) -> BoxFuture<'_, Result<Session, RuntimeError>>;
    /// Creates sessions that continue from an idle one; resolves when all are `ready`. All or none: sessions that were created
    /// before another one failed are ended.
    fn fork_session(&self, request: ForkSession) -> BoxFuture<'_, Result<Vec<Session>, RuntimeError>>;
    /// Keeps a frozen copy of an idle session's worker; resolves when the record of it is stored.
    fn checkpoint_session(
        &self,
        id: SessionId,
        name: Option<String>,
    ) -> BoxFuture<'_, Result<SessionCheckpoint, RuntimeError>>;
    /// The checkpoints of a live session, oldest first.
    fn checkpoints(&self, id: SessionId) -> BoxFuture<'_, Result<Vec<SessionCheckpoint>, RuntimeError>>;
    /// Gives up a checkpoint (its number or name).
    fn delete_checkpoint(&self, id: SessionId, checkpoint: String)
    -> BoxFuture<'_, Result<(), RuntimeError>>;
    /// Makes a request to a live session; resolves when its effect is recorded, or it is refused.
    fn request(&self, id: SessionId, request: SessionRequest)
    -> BoxFuture<'_, Result<Session, RuntimeError>>;
    /// Evaluates a library by itself in a throw-away zygote; inside: why it does not load. Its source is stored.
    fn check_library(
        &self,
        owner: Owner,
        library: Library,
    ) -> BoxFuture<'_, Result<Result<(), String>, RuntimeError>>;
    /// Ends a session in order; resolves when the end is stored. `None`: the session is not live, which is no error.
    fn close_session(&self, id: SessionId) -> BoxFuture<'_, Result<Option<Session>, RuntimeError>>;
    /// Sends a worker a signal; after SIGKILL (9) the session's end is stored when this resolves.
    fn kill_session(&self, id: SessionId, signal: i32) -> BoxFuture<'_, Result<(), RuntimeError>>;
    /// A live session as the kernel sees it; `holder` is who requests that, and waits for its turn.
    fn inspect_session(
        &self,
        id: SessionId,
        holder: Holder,
    ) -> BoxFuture<'_, Result<SessionInspection, RuntimeError>>;
    /// Runs code in a live session, with the rights of its current template (`None`: it was deleted, the session continues
    /// with its own). With `wait`, a follower gets the events while it runs, and the record then carries none. Order of checks:
    /// live session, path, busy, file; a check that fails leaves no row behind.
    fn execute(
        &self,
        session: SessionId,
        request: Box<ExecuteRequest>,
        template: Option<Arc<PolicySnapshot>>,
        follower: Option<Follower>,
    ) -> BoxFuture<'_, Result<Execution, RuntimeError>>;
    /// Whether the worker of a live session is stopped.
    fn is_suspended(&self, id: SessionId) -> bool;
    /// Repeats an input of the session that this one restores; resolves at its end, or when it waits for an answer.
    fn repeat_input(
        &self,
        session: SessionId,
        request: Box<ExecuteRequest>,
        template: Option<Arc<PolicySnapshot>>,
    ) -> BoxFuture<'_, Result<Execution, RuntimeError>>;
    /// Submits an answer to the task of a session's execution; the record, without events, as of its next pause or its end, or
    /// (without `wait`) as soon as the answer is stored.
    fn submit_answer(
        &self,
        id: ExecutionId,
        given: (Option<TaskId>, SubmittedAnswer),
        wait: bool,
    ) -> BoxFuture<'_, Result<Execution, RuntimeError>>;
    /// Begins to end a running execution. No error if it does not run.
    fn cancel_execution(&self, id: ExecutionId) -> BoxFuture<'_, Result<(), RuntimeError>>;
    /// The same when the last client that waited for it has gone, which its record says.
    fn abandon_execution(&self, id: ExecutionId) -> BoxFuture<'_, Result<(), RuntimeError>>;
    /// Sends the events of an unfinished execution that are newer than `after_seq`, stored ones included, and returns
    /// when it has ended or the follower is closed. `None`: no such execution runs; all events are in the store.
    fn follow(&self, id: ExecutionId, after_seq: u64, follower: Follower) -> BoxFuture<'_, Option<()>>;
    /// The builds that the workers of all sessions run, after this change of the deadline of those of other builds than the
    /// supervisor's.
    fn builds(&self, change: DrainChange) -> BoxFuture<'_, UpgradeReport>;
    /// The rights of an owner now.
    fn role_of(&self, _: &Owner) -> OwnerRole {
        OwnerRole::User
    }
    /// The owner of a live session: keeps the store out of the hot path.
    fn session_owner(&self, id: SessionId) -> Option<Owner>;
    /// Sorted.
    fn live_sessions(&self) -> Vec<SessionId>;
    /// The record of an execution that the store could not write (completely), to be returned instead of the stored one.
    fn degraded(&self, id: ExecutionId) -> Option<Arc<Execution>>;
    /// The state of health.
    fn condition(&self) -> RuntimeCondition;
    /// The facts, with the figures and zygotes of one owner, or of all.
    fn facts(&self, of: Option<&Owner>) -> RuntimeFacts;
    /// Executions of durable programs; none without the durable engine.
    fn durables(&self) -> Option<&Arc<Durables>> {
        None
    }
    /// The walls in force, and what this host supports; with what concerns one owner, or all.
    fn doctor(&self, of: Option<&Owner>) -> BoxFuture<'_, DoctorReport>;
}
