//! What the verbs need from the live sessions: a trait, so that they are tested without processes.

use crate::runtime::{CreateSession, Durables, Follower, ForkSession, Runtime, RuntimeError, StartExecution};
use crate::spawn::WorkerKind;
use crate::store::{BoxFuture, Owner};
use std::sync::Arc;
use vm_system_protocol::control::{DoctorReport, GivenAnswer, SandboxLayer, ZygoteInfo};
use vm_system_protocol::ids::{ExecutionId, SessionId, TaskId};
use vm_system_protocol::model::{Execution, Session, SessionInspection};

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

/// The live sessions. Meanings and errors: [`Runtime`]'s methods of the same names.
pub trait RuntimeApi: Send + Sync {
    /// Makes a session and its row.
    fn create_session(&self, request: CreateSession) -> BoxFuture<'_, Result<Session, RuntimeError>>;
    /// Makes sessions out of a live one, and their rows.
    fn fork_session(&self, request: ForkSession) -> BoxFuture<'_, Result<Vec<Session>, RuntimeError>>;
    /// `None`: it does not live.
    fn close_session(&self, id: SessionId) -> BoxFuture<'_, Result<Option<Session>, RuntimeError>>;
    /// Sends a worker a signal.
    fn kill_session(&self, id: SessionId, signal: i32) -> BoxFuture<'_, Result<(), RuntimeError>>;
    /// A live session as the kernel sees it.
    fn inspect_session(&self, id: SessionId) -> BoxFuture<'_, Result<SessionInspection, RuntimeError>>;
    /// Runs code and makes its row.
    fn execute(&self, start: StartExecution) -> BoxFuture<'_, Result<Execution, RuntimeError>>;
    /// Answers the question of a session's execution.
    fn submit_answer(
        &self,
        id: ExecutionId,
        given: (Option<TaskId>, GivenAnswer),
        wait: bool,
    ) -> BoxFuture<'_, Result<Execution, RuntimeError>>;
    /// Not running is fine.
    fn cancel_execution(&self, id: ExecutionId) -> BoxFuture<'_, Result<(), RuntimeError>>;
    /// `None`: it does not run; everything is in the store.
    fn follow(&self, id: ExecutionId, after_seq: u64, follower: Follower) -> BoxFuture<'_, Option<()>>;
    /// Whose a live session is.
    fn session_owner(&self, id: SessionId) -> Option<Owner>;
    /// Sorted.
    fn live_sessions(&self) -> Vec<SessionId>;
    /// The record of an execution that the store could not take completely.
    fn degraded(&self, id: ExecutionId) -> Option<Arc<Execution>>;
    /// About itself.
    fn facts(&self) -> RuntimeFacts;
    /// Executions of durable programs; none where there is no such engine.
    fn durables(&self) -> Option<&Arc<Durables>> {
        None
    }
    /// The host, wall by wall.
    fn doctor(&self) -> BoxFuture<'_, DoctorReport>;
}

impl RuntimeApi for Runtime {
    fn create_session(&self, request: CreateSession) -> BoxFuture<'_, Result<Session, RuntimeError>> {
        Box::pin(self.create_session(request))
    }

    fn fork_session(&self, request: ForkSession) -> BoxFuture<'_, Result<Vec<Session>, RuntimeError>> {
        Box::pin(self.fork_session(request))
    }

    fn close_session(&self, id: SessionId) -> BoxFuture<'_, Result<Option<Session>, RuntimeError>> {
        Box::pin(self.close_session(id))
    }

    fn kill_session(&self, id: SessionId, signal: i32) -> BoxFuture<'_, Result<(), RuntimeError>> {
        Box::pin(self.kill_session(id, signal))
    }

    fn inspect_session(&self, id: SessionId) -> BoxFuture<'_, Result<SessionInspection, RuntimeError>> {
        Box::pin(self.inspect_session(id))
    }

    fn execute(&self, start: StartExecution) -> BoxFuture<'_, Result<Execution, RuntimeError>> {
        Box::pin(self.execute(start))
    }

    fn submit_answer(
        &self,
        id: ExecutionId,
        given: (Option<TaskId>, GivenAnswer),
        wait: bool,
    ) -> BoxFuture<'_, Result<Execution, RuntimeError>> {
        Box::pin(self.submit_answer(id, given, wait))
    }

    fn cancel_execution(&self, id: ExecutionId) -> BoxFuture<'_, Result<(), RuntimeError>> {
        Box::pin(self.cancel_execution(id))
    }

    fn follow(&self, id: ExecutionId, after_seq: u64, follower: Follower) -> BoxFuture<'_, Option<()>> {
        Box::pin(self.follow(id, after_seq, follower))
    }

    fn session_owner(&self, id: SessionId) -> Option<Owner> {
        self.session_owner(id)
    }

    fn live_sessions(&self) -> Vec<SessionId> {
        self.live_sessions()
    }

    fn degraded(&self, id: ExecutionId) -> Option<Arc<Execution>> {
        self.degraded(id)
    }

    fn facts(&self) -> RuntimeFacts {
        let jail = self.jail();
        let (sessions_created, executions_started) = self.totals();
        let info = |kind: &WorkerKind, pid, forks| ZygoteInfo {
            engine: kind.engine().to_owned(),
            libraries: kind.libraries(),
            pid,
            forks,
        };
        let further = jail.further_zygotes().into_iter().map(|set| info(&set.kind, set.pid, set.forks));
        let plain = WorkerKind::plain();
        RuntimeFacts {
            keeper_pid: Some(jail.keeper_pid()),
            sandbox: self.layers(),
            zygotes: jail.zygote_pids().into_iter().map(|pid| info(&plain, pid, 0)).chain(further).collect(),
            sessions_created,
            executions_started,
        }
    }

    fn durables(&self) -> Option<&Arc<Durables>> {
        Some(Self::durables(self))
    }

    fn doctor(&self) -> BoxFuture<'_, DoctorReport> {
        Box::pin(self.doctor())
    }
}
