//! Requests of the runtime's callers, and its errors.

use crate::brokers::BrokerConfig;
use crate::workspaces::Workspaces;
use crate::worktree::{Roots, WorktreeClient, WorktreeError};
use std::path::PathBuf;
use std::sync::Arc;
use vm_system_core::durable::DurableRefusal;
use vm_system_core::{LibraryProblem, LoadFailure, Refusal, SpawnFault};
use vm_system_policy::Operator;
use vm_system_protocol::control::{ErrorCode, OpError};
use vm_system_protocol::ids::{SessionId, TemplateId};
use vm_system_record::{Owner, PolicySnapshot, StoreError};
use vm_system_spawn::{LibrarySet, SpawnConfig};

/// How a runtime is set up.
#[derive(Debug, Clone)]
pub struct RuntimeConfig {
    /// The jail.
    pub spawn: SpawnConfig,
    /// The processes that touch files for sessions.
    pub brokers: BrokerConfig,
    /// Where worktrees may be.
    pub roots: Roots,
    /// Who names them.
    pub worktree_clients: WorktreeClients,
    /// Where the databases of workspaces are.
    pub workspaces: Workspaces,
    /// What the operator offers to templates.
    pub operator: Operator,
    /// Sessions that may live at a time.
    pub max_sessions: usize,
    /// Executions of durable programs.
    pub durable: super::DurableConfig,
}

/// The client as which each owner names a worktree now. A program opens its worktree again at each file call, long after the request that named
/// it, and its owner may have lost a role or a token meanwhile.
#[derive(Clone)]
pub struct WorktreeClients(Arc<dyn Fn(&Owner) -> WorktreeClient + Send + Sync>);

impl WorktreeClients {
    /// With a function that is called each time; it must not block.
    pub fn new(client: impl Fn(&Owner) -> WorktreeClient + Send + Sync + 'static) -> Self {
        Self(Arc::new(client))
    }

    /// Of one owner.
    pub fn of(&self, owner: &Owner) -> WorktreeClient {
        (self.0)(owner)
    }
}

impl std::fmt::Debug for WorktreeClients {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WorktreeClients")
    }
}

/// A session that is to be made.
#[derive(Debug, Clone)]
pub struct CreateSession {
    /// Its id, made by the caller.
    pub id: SessionId,
    pub owner: Owner,
    /// A name that the client gave.
    pub name: Option<String>,
    /// The template.
    pub template_id: TemplateId,
    /// The template as it is now; the session keeps the copy.
    pub policy: Arc<PolicySnapshot>,
    /// A label of the client.
    pub workspace_id: String,
    /// A label of the client.
    pub base_commit_oid: String,
    /// Absolute path of an existing folder.
    pub worktree_path: PathBuf,
    /// Who names it.
    pub worktree_client: WorktreeClient,
    /// What its template's libraries are now.
    pub libraries: Libraries,
}

/// The libraries of a session that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Libraries {
    /// All of them are installed.
    Installed(LibrarySet),
    /// This one is not (`id-version`): the session cannot be.
    Missing(String),
}

/// Why the runtime did not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuntimeError {
    /// It does not live here: it has ended, or never was.
    #[error("the session is not live")]
    NotLive,
    /// The session's state machine refused the request.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The worktree cannot be used.
    #[error(transparent)]
    Worktree(#[from] WorktreeError),
    /// As many sessions as may live.
    #[error("{0} sessions live already, the most that are allowed")]
    Full(usize),
    /// A session with this id exists.
    #[error("a session with this id is live")]
    Duplicate,
    /// The runtime is ending.
    #[error("the supervisor is stopping")]
    ShuttingDown,
    /// The store failed.
    #[error("{0}")]
    Store(StoreError),
    /// The request contradicts itself.
    #[error("{0}")]
    Invalid(String),
    /// The owner task is gone although it should not be.
    #[error("internal error: {0}")]
    Internal(String),
}

impl RuntimeError {
    /// What clients match on.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::NotLive => ErrorCode::SessionNotReady,
            Self::Refused(refusal) => refusal_code(refusal),
            Self::Worktree(error) => match error {
                WorktreeError::InvalidPath(_) => ErrorCode::InvalidPath,
                WorktreeError::NotFound(_) => ErrorCode::FileNotFound,
                WorktreeError::NotPermitted(_) => ErrorCode::NotPermitted,
                WorktreeError::TooLarge { .. }
                | WorktreeError::Unreadable(_)
                | WorktreeError::Worktree(_) => ErrorCode::ValidationError,
            },
            Self::Full(_) => ErrorCode::CapacityExceeded,
            Self::Duplicate => ErrorCode::Conflict,
            Self::ShuttingDown => ErrorCode::ShuttingDown,
            Self::Store(_) => ErrorCode::StorageUnavailable,
            Self::Invalid(_) => ErrorCode::ValidationError,
            Self::Internal(_) => ErrorCode::Internal,
        }
    }
}

impl RuntimeError {
    /// What to do about it, where its code alone is not enough.
    fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Refused(Refusal::SpawnFailed(failure) | Refusal::Fork(failure)) => Some(failure.hint),
            Self::Refused(Refusal::Unrecorded(_)) => Some(
                "do not repeat it unless it may run twice; it is marked `degraded` as soon as the store can write again",
            ),
            Self::Worktree(WorktreeError::NotPermitted(_)) => Some(
                "users name folders of their own beneath the operator's `worktree_roots`; a token names folders beneath a \
                 [[worktree_root]] whose `owners` list it; the path has no `..` and no link, and enters no other mount",
            ),
            Self::Full(_) => Some("close a session that is no longer used, or raise max_sessions"),
            _ => None,
        }
    }
}

fn refusal_code(refusal: &Refusal) -> ErrorCode {
    match refusal {
        Refusal::NotReady(_) => ErrorCode::SessionNotReady,
        Refusal::Busy => ErrorCode::SessionBusy,
        Refusal::NoSuchExecution => ErrorCode::ExecutionNotFound,
        Refusal::Load(LoadFailure::InvalidPath(_)) => ErrorCode::InvalidPath,
        Refusal::Load(LoadFailure::NotFound(_)) => ErrorCode::FileNotFound,
        Refusal::SourceTooLarge { .. }
        | Refusal::Load(LoadFailure::TooLarge(_) | LoadFailure::Unreadable(_)) => ErrorCode::ValidationError,
        Refusal::SpawnFailed(failure) | Refusal::Fork(failure) => match failure.fault {
            SpawnFault::Host => ErrorCode::SandboxUnavailable,
            SpawnFault::Busy => ErrorCode::CapacityExceeded,
            SpawnFault::Wrong => ErrorCode::Internal,
        },
        Refusal::StartupFailed(_) => ErrorCode::StartupFailed,
        Refusal::Library(failure) => match failure.problem {
            LibraryProblem::NotInstalled => ErrorCode::LibraryNotInstalled,
            LibraryProblem::Corrupt => ErrorCode::LibraryCorrupt,
            LibraryProblem::Failed => ErrorCode::StartupFailed,
        },
        Refusal::Storage(_) | Refusal::Unrecorded(_) => ErrorCode::StorageUnavailable,
        Refusal::CancelledEarly => ErrorCode::Conflict,
        Refusal::Task(DurableRefusal::Unfit { .. }) => ErrorCode::AnswerInvalid,
        Refusal::Task(_) => ErrorCode::TaskNotPending,
    }
}

impl From<RuntimeError> for OpError {
    fn from(error: RuntimeError) -> Self {
        let mut api_error = Self::new(error.code(), error.to_string());
        if matches!(error, RuntimeError::Refused(Refusal::Unrecorded(_))) {
            api_error = api_error.of_what_ran();
        }
        match error.hint() {
            Some(hint) => api_error.with_hint(hint),
            None => api_error,
        }
    }
}
