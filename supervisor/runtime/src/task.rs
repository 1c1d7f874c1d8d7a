//! Shared state of all sessions, requests to an owner task, and errors of lower layers as inputs of the machines.

use super::api::{RuntimeError, WorktreeClients};
use super::callers::Responder;
use super::followers::Batches;
use super::fork::ForkedWorker;
use super::inspect::Facts;
use super::jails::Jails;
use super::memory::MemoryBudget;
use super::registry::Registry;
use crate::brokers::Brokers;
use crate::workspaces::Workspaces;
use crate::worktree::{Roots, Worktree, WorktreeClient};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::Instant;
use vm_system_core::{
    ChannelFault, CloseCause, ExecuteRequest, LibraryFailure, LibraryProblem, Refusal, SessionInput as Input,
    SessionReply, SpawnFailure, SpawnFault, WorkerExitStatus,
};
use vm_system_policy::{EffectivePolicy, Operator};
use vm_system_protocol::control::GivenAnswer;
use vm_system_protocol::ids::{ExecutionId, SessionId, TaskId};
use vm_system_protocol::model::Event;
use vm_system_spawn::{LibraryError, SpawnError, WorkerChannelError, WorkerExit};
use vm_system_store::StoreHandle;

/// Most files of all sessions that are opened or read at a time.
pub(super) const FILES: usize = 64;

/// Shared state of all sessions.
#[derive(Debug)]
pub(super) struct RuntimeContext {
    pub(super) store: StoreHandle,
    pub(super) brokers: Brokers,
    pub(super) jails: Arc<Jails>,
    pub(super) registry: Arc<Registry>,
    pub(super) roots: Roots,
    pub(super) worktree_clients: WorktreeClients,
    pub(super) workspaces: Workspaces,
    pub(super) operator: Operator,
    pub(super) started: Instant,
    pub(super) files: Semaphore,
    pub(super) budget: MemoryBudget,
}

impl RuntimeContext {
    /// Does blocking work on files, after a wait for a slot. `None`: the runtime is stopping.
    pub(super) async fn files<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let _turn = self.files.acquire().await.ok()?;
        tokio::task::spawn_blocking(work).await.ok()
    }

    /// Opens a worktree, if the operator permits it to the client.
    pub(super) async fn open_worktree(
        &self,
        path: PathBuf,
        client: WorktreeClient,
    ) -> Result<Worktree, RuntimeError> {
        if let Some(opened) = Worktree::open_cached(&path, &self.roots, &client) {
            return Ok(opened);
        }
        let roots = self.roots.clone();
        let opened = self.files(move || Worktree::open(&path, &roots, &client)).await;
        Ok(opened.ok_or(RuntimeError::ShuttingDown)??)
    }
}

/// A request to an owner task.
#[derive(Debug)]
pub(super) enum Command {
    Create {
        responder: SessionResponder,
    },
    Fork {
        children: Vec<SessionId>,
        made: mpsc::Sender<ForkedWorker>,
        responder: SessionResponder,
    },
    Execute {
        request: Box<ExecuteRequest>,
        policy: Arc<EffectivePolicy>,
        follower: Option<mpsc::Sender<Arc<[Event]>>>,
        responder: SessionResponder,
    },
    Submit {
        execution: ExecutionId,
        task: Option<TaskId>,
        given: GivenAnswer,
        wait: bool,
        responder: SessionResponder,
    },
    Cancel {
        execution: ExecutionId,
        responder: SessionResponder,
    },
    Close {
        cause: CloseCause,
        responder: SessionResponder,
    },
    Kill {
        signal: i32,
        responder: SessionResponder,
    },
    Follow {
        execution: ExecutionId,
        responder: oneshot::Sender<Option<Batches>>,
    },
    Inspect {
        responder: oneshot::Sender<Facts>,
    },
    Violation(String),
    Forbidden(String),
}

/// Receives the result of a request.
pub(super) type SessionResponder = Responder<SessionReply, Refusal>;

/// The machine's input when no worker was started.
pub(super) fn no_worker(error: SpawnError) -> Input {
    match error {
        SpawnError::Library(error) => Input::LibraryFailed(library_failure(&error)),
        error => Input::SpawnFailed(spawn_failure(&error)),
    }
}

pub(super) fn spawn_failure(error: &SpawnError) -> SpawnFailure {
    let fault = match error {
        SpawnError::WrongHello { .. } | SpawnError::NotJailed(_) => SpawnFault::Wrong,
        _ if error.is_temporary() => SpawnFault::Busy,
        _ => SpawnFault::Host,
    };
    SpawnFailure { why: error.to_string(), fault, hint: error.hint() }
}

pub(super) fn fault(error: WorkerChannelError) -> ChannelFault {
    match error {
        WorkerChannelError::Closed => ChannelFault::Closed,
        WorkerChannelError::WriteTimeout => ChannelFault::Stuck,
        WorkerChannelError::MessageTimeout => {
            ChannelFault::Violation("did not complete a message".to_owned())
        }
        WorkerChannelError::Violation(what) => ChannelFault::Violation(what),
        WorkerChannelError::TooLarge(what) => ChannelFault::Violation(format!("cannot be sent: {what}")),
        WorkerChannelError::Io(error) => ChannelFault::Violation(format!("channel: {error}")),
    }
}

fn library_failure(error: &LibraryError) -> LibraryFailure {
    let problem = match error {
        LibraryError::NotInstalled(_) => LibraryProblem::NotInstalled,
        LibraryError::Corrupt { .. } => LibraryProblem::Corrupt,
        LibraryError::Failed { .. } => LibraryProblem::Failed,
    };
    LibraryFailure { library: error.library().to_owned(), problem, text: error.to_string() }
}

/// The exit status for the machines.
pub(super) fn exit_status(exit: WorkerExit) -> WorkerExitStatus {
    match exit {
        WorkerExit::Exited(code) => WorkerExitStatus::Exited(code),
        WorkerExit::Signaled(signal) => WorkerExitStatus::Signaled(signal),
        WorkerExit::OutOfMemory => WorkerExitStatus::OutOfMemory,
        WorkerExit::KeeperLost => WorkerExitStatus::KeeperLost,
        WorkerExit::Unknown => WorkerExitStatus::Unknown,
    }
}
