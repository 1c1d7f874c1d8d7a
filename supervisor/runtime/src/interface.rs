//! What the verbs need from the live sessions: a trait, so that they are tested without processes. [`super::Runtime`] is its
//! implementation.

use super::{CreateSession, Durables, Follower, ForkSession, RuntimeError};
use std::sync::Arc;
use vm_system_core::ExecuteRequest;
use vm_system_protocol::control::{DoctorReport, GivenAnswer, SandboxLayer, ZygoteInfo};
use vm_system_protocol::ids::{ExecutionId, SessionId, TaskId};
use vm_system_protocol::model::{Execution, Session, SessionInspection};
use vm_system_record::{Owner, PolicySnapshot};
use vm_system_store::BoxFuture;

/// The runtime about itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RuntimeFacts {
    /// The keeper's pid on the host.
    pub keeper_pid: Option<u32>,
    /// The walls in force.
    pub sandbox: Vec<SandboxLayer>,
    /// Its zygotes.
    pub zygotes: Vec<ZygoteInfo>,
    /// Sessions made since the start.
    pub sessions_created: u64,
    /// Executions begun since the start.
    pub executions_started: u64,
}

/// What the verbs do with live sessions.
pub trait RuntimeApi: Send + Sync {
    /// Inserts the row, starts the worker, runs the startup files; the session is `ready` then.
    fn create_session(&self, request: CreateSession) -> BoxFuture<'_, Result<Session, RuntimeError>>;
    /// Makes sessions that go on from where an idle one is; all of them are `ready` then. All or none: what was made before
    /// another one failed is ended.
    fn fork_session(&self, request: ForkSession) -> BoxFuture<'_, Result<Vec<Session>, RuntimeError>>;
    /// Ends a session in good order; that is stored then. `None`: it is not live (any more), which is fine.
    fn close_session(&self, id: SessionId) -> BoxFuture<'_, Result<Option<Session>, RuntimeError>>;
    /// Sends a worker a signal; after SIGKILL (9) the session's end is stored when this resolves.
    fn kill_session(&self, id: SessionId, signal: i32) -> BoxFuture<'_, Result<(), RuntimeError>>;
    /// A live session as the kernel sees it.
    fn inspect_session(&self, id: SessionId) -> BoxFuture<'_, Result<SessionInspection, RuntimeError>>;
    /// Runs code in a live session, with the rights of its template as that is now (`None`: it was deleted, the session goes on
    /// with its own). With `wait`, a follower gets the events while it runs, and the record then carries none. Order of checks:
    /// live session, path, busy, file; a check that fails leaves no row behind.
    fn execute(
        &self,
        session: SessionId,
        request: Box<ExecuteRequest>,
        template: Option<Arc<PolicySnapshot>>,
        follower: Option<Follower>,
    ) -> BoxFuture<'_, Result<Execution, RuntimeError>>;
    /// Submits an answer to the task of a session's execution; the record, without events, as of its next pause or its end, or
    /// (without `wait`) as soon as the answer is stored.
    fn submit_answer(
        &self,
        id: ExecutionId,
        given: (Option<TaskId>, GivenAnswer),
        wait: bool,
    ) -> BoxFuture<'_, Result<Execution, RuntimeError>>;
    /// Ends a running execution; it is being ended when this resolves. That it does not run (any more) is fine.
    fn cancel_execution(&self, id: ExecutionId) -> BoxFuture<'_, Result<(), RuntimeError>>;
    /// Passes on the events of an unfinished execution that are newer than `after_seq`, stored ones included, and returns
    /// when it has ended or the follower is gone. `None`: there is none; everything is in the store.
    fn follow(&self, id: ExecutionId, after_seq: u64, follower: Follower) -> BoxFuture<'_, Option<()>>;
    /// The owner of a live session: keeps the store out of the hot path.
    fn session_owner(&self, id: SessionId) -> Option<Owner>;
    /// Sorted.
    fn live_sessions(&self) -> Vec<SessionId>;
    /// The record of an execution that the store could not take (completely), to be returned instead of what is stored.
    fn degraded(&self, id: ExecutionId) -> Option<Arc<Execution>>;
    /// About itself.
    fn facts(&self) -> RuntimeFacts;
    /// Executions of durable programs; none where there is no such engine.
    fn durables(&self) -> Option<&Arc<Durables>> {
        None
    }
    /// The walls in force, and what this machine could do.
    fn doctor(&self) -> BoxFuture<'_, DoctorReport>;
}
