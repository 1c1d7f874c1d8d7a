//! Requests of the runtime's callers, and its errors.

use super::failed_starts::TooManyFailedStarts;
use super::libraries::Libraries;
use super::pressure::PressureConfig;
use super::task::FilesError;
use crate::brokers::BrokerConfig;
use crate::egress::EgressConfig;
use crate::script_input::ScriptInput;
use crate::shares::{ShareLimits, ShareRefusal};
use crate::workspaces::Workspaces;
use crate::worktree::{Roots, WorktreeClient, WorktreeError};
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use vm_system_core::durable::DurableRefusal;
use vm_system_core::{LibraryProblem, LoadFailure, Refusal, SpawnFault};
use vm_system_policy::Operator;
use vm_system_protocol::control::{ErrorCode, OpError};
use vm_system_protocol::ids::{SessionId, TemplateId};
use vm_system_protocol::model::Limits;
use vm_system_record::{Owner, PolicySnapshot, RecordedWorktree, StoreError};
use vm_system_spawn::KeptJails;
use vm_system_spawn::helper::HelperProblem;
use vm_system_spawn::{SHORTAGE_HINT, SpawnConfig};

/// Configuration of a runtime.
#[derive(Debug)]
pub struct RuntimeConfig {
    /// Each owner has a jail of its own.
    pub keeper_per_owner: bool,
    /// The jail.
    pub spawn: SpawnConfig,
    /// The jails of an earlier supervisor.
    pub kept: KeptJails,
    /// The processes that carry out host calls.
    pub brokers: BrokerConfig,
    /// The process that makes HTTP requests.
    pub egress: EgressConfig,
    /// Where worktrees may be.
    pub roots: Roots,
    /// Which client names a worktree.
    pub worktree_clients: WorktreeClients,
    /// Where the databases of workspaces are.
    pub workspaces: Workspaces,
    /// The operator's rights for templates.
    pub operator: Operator,
    /// Live sessions at a time.
    pub sessions: ShareLimits,
    /// An idle session is suspended after this time; none: only under memory pressure and on request.
    pub suspend_after: Option<Duration>,
    /// The acts while memory is short.
    pub pressure: PressureConfig,
    /// Work on files of worktrees that is done at a time.
    pub file_calls: ShareLimits,
    /// Executions of durable programs.
    pub durable: super::DurableConfig,
    /// The standard input of scripts; none: they are at its end.
    pub stdin: Option<ScriptInput>,
    /// The limits of TypeScript's compiler, where it checks files of sessions.
    pub type_checks: Limits,
}

/// The client that an owner currently is when it names a worktree. A program opens its worktree again at each file call, long
/// after the request that named it; its owner may have lost a role or a token in the meantime.
#[derive(Clone)]
pub struct WorktreeClients(Arc<dyn Fn(&Owner) -> WorktreeClient + Send + Sync>);

impl WorktreeClients {
    /// `client` is called each time; it must not block.
    pub fn new(client: impl Fn(&Owner) -> WorktreeClient + Send + Sync + 'static) -> Self {
        Self(Arc::new(client))
    }

    /// The client of one owner.
    pub fn client_of(&self, owner: &Owner) -> WorktreeClient {
        (self.0)(owner)
    }
}

impl std::fmt::Debug for WorktreeClients {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WorktreeClients")
    }
}

/// Parameters of a new session.
#[derive(Debug, Clone)]
pub struct CreateSession {
    /// Chosen by the caller.
    pub id: SessionId,
    pub owner: Owner,
    /// Chosen by the client.
    pub name: Option<String>,
    /// The template.
    pub template_id: TemplateId,
    /// The current template; the session keeps the copy.
    pub policy: Arc<PolicySnapshot>,
    /// A label of the client.
    pub workspace_id: String,
    /// A label of the client.
    pub base_commit_oid: String,
    /// Absolute path of an existing folder.
    pub worktree_path: PathBuf,
    /// The user with whose rights an administrator uses it: a name or a number.
    pub as_user: Option<String>,
    /// The current libraries of its template.
    pub libraries: Libraries,
    /// The ended session whose inputs are repeated in it before it is ready.
    pub restores: Option<RestoredSession>,
}

/// The parts that a session which restores another one has from it.
#[derive(Debug, Clone)]
pub struct RestoredSession {
    pub id: SessionId,
    /// The session's worktree, which is opened again; absent in sessions of early versions, whose path is opened.
    pub worktree: Option<Arc<RecordedWorktree>>,
    /// How many inputs are to be repeated, and how many are not.
    pub inputs: u64,
    pub not_repeated: u64,
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuntimeError {
    /// The session has ended, or never existed.
    #[error("the session is not live")]
    NotLive,
    /// The session's state machine refused the request.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The worktree cannot be used.
    #[error(transparent)]
    Worktree(#[from] WorktreeError),
    /// The limit of something that is counted is reached.
    #[error(transparent)]
    Full(#[from] ShareRefusal),
    /// Memory is short: nothing that needs another process is begun for an owner who holds its share.
    #[error(
        "memory is short on this machine, and this owner holds its share ({held_mb} MiB; the share is {share_mb} MiB): nothing new is begun for it until there is more"
    )]
    MemoryPressure {
        /// The memory that the owner's sessions and programs hold.
        held_mb: u64,
        share_mb: u64,
    },
    /// The same for all owners: nothing is held by any of them, or it is not known what each holds.
    #[error("memory is short on this machine: nothing new is begun until there is more")]
    MemoryShort,
    /// A file system did not respond.
    #[error("{0}")]
    Late(String),
    /// A session with this id exists.
    #[error("a session with this id is live")]
    Duplicate,
    /// Sessions of the template die at their start.
    #[error(transparent)]
    FailedStarts(#[from] TooManyFailedStarts),
    /// The runtime is ending.
    #[error("the supervisor is stopping")]
    ShuttingDown,
    /// The store failed.
    #[error("{0}")]
    Store(StoreError),
    /// The request contradicts itself.
    #[error("{0}")]
    Invalid(String),
    /// The owner task ended unexpectedly.
    #[error("internal error: {0}")]
    Internal(String),
}

impl RuntimeError {
    /// The code that clients match on.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::NotLive => ErrorCode::SessionNotReady,
            Self::Refused(refusal) => refusal_code(refusal),
            Self::Worktree(error) => match error {
                WorktreeError::InvalidPath(_) => ErrorCode::InvalidPath,
                WorktreeError::NotFound(_) => ErrorCode::FileNotFound,
                WorktreeError::NotPermitted(_)
                | WorktreeError::UserNotPermitted(_)
                | WorktreeError::RootRemoved(_) => ErrorCode::NotPermitted,
                WorktreeError::OwnerGone(_) => ErrorCode::OwnerGone,
                WorktreeError::Short(_) | WorktreeError::Unavailable(_) => ErrorCode::CapacityExceeded,
                WorktreeError::HelperExited(_) => ErrorCode::SandboxUnavailable,
                WorktreeError::TooLarge { .. }
                | WorktreeError::Unreadable(_)
                | WorktreeError::Worktree(_)
                | WorktreeError::NoSuchUser(_) => ErrorCode::ValidationError,
            },
            Self::Full(_)
            | Self::MemoryPressure { .. }
            | Self::MemoryShort
            | Self::Late(_)
            | Self::FailedStarts(_) => ErrorCode::CapacityExceeded,
            Self::Duplicate => ErrorCode::Conflict,
            Self::ShuttingDown => ErrorCode::ShuttingDown,
            Self::Store(_) => ErrorCode::StorageUnavailable,
            Self::Invalid(_) => ErrorCode::ValidationError,
            Self::Internal(_) => ErrorCode::Internal,
        }
    }
}

impl RuntimeError {
    /// The remedy, where the code alone is not enough.
    fn hint(&self) -> Option<Cow<'static, str>> {
        let hint = match self {
            Self::Full(refusal) => return Some(Cow::Owned(refusal.hint())),
            Self::Refused(Refusal::SpawnFailed(failure) | Refusal::Fork(failure)) => Some(failure.hint),
            Self::Refused(Refusal::NoCheckpoint(_)) => Some("`session checkpoints SESSION` shows them"),
            Self::Refused(Refusal::TooManyCheckpoints | Refusal::CheckpointExists(_)) => {
                Some("`session delete-checkpoint SESSION CHECKPOINT` gives one up")
            }
            Self::Worktree(WorktreeError::Short(_)) => Some(SHORTAGE_HINT),
            Self::Worktree(WorktreeError::HelperExited(_)) => Some(HelperProblem::Exited.hint()),
            Self::Worktree(WorktreeError::Unavailable(_)) => Some(
                "`vm-system ops health` says whether any can be started; the daemon's log has why it ended",
            ),
            Self::Refused(Refusal::Load(LoadFailure::Unavailable(_))) => Some(
                "a mount beneath the worktree's root may be stuck (FUSE, a server that is gone), or descriptors or memory are short: \
                 try again later",
            ),
            Self::MemoryPressure { .. } | Self::MemoryShort => Some(
                "try again later, or close sessions; `ops health` shows the state of the memory, the operator's limits are in [memory_pressure]",
            ),
            Self::Late(_) => {
                Some("is a mount beneath the worktree's root stuck (FUSE, a server that is gone)?")
            }
            Self::FailedStarts(_) => Some(
                "`session list` shows the sessions; what do the template's startup files and libraries do?",
            ),
            Self::Refused(Refusal::Unrecorded(_)) => Some(
                "do not repeat it unless it may run twice; it is marked `degraded` as soon as the store can write again",
            ),
            Self::Worktree(WorktreeError::OwnerGone(_))
            | Self::Refused(Refusal::Load(LoadFailure::OwnerGone(_))) => Some(OWNER_GONE_HINT),
            Self::Worktree(WorktreeError::RootRemoved(_)) => {
                Some("configure the root again, or start anew with a folder beneath another root")
            }
            Self::Worktree(WorktreeError::NoSuchUser(_)) => {
                Some("a user of the daemon's machine, by name or number")
            }
            Self::Worktree(WorktreeError::Worktree(_)) => {
                Some("a worktree is an existing folder of the daemon's machine")
            }
            Self::Worktree(WorktreeError::NotPermitted(_)) => Some(
                "a daemon of root uses a folder with the rights of the client's user (or of --as-user); a token without `uid`, and \
                 users of any other daemon, name folders beneath a [[worktree_root]] whose `owners` list them; the path has \
                 no `..` and no link, and enters no other mount",
            ),
            _ => None,
        };
        hint.map(Cow::Borrowed)
    }
}

/// The remedy for [`ErrorCode::OwnerGone`].
pub const OWNER_GONE_HINT: &str = "the files stay closed until the user database has this user again; to go on as another user, export \
                                   the execution and import it with --worktree-path (an administrator also with --as-user)";

fn refusal_code(refusal: &Refusal) -> ErrorCode {
    match refusal {
        Refusal::NotReady(_) | Refusal::DiedAtStart(_) => ErrorCode::SessionNotReady,
        Refusal::Busy => ErrorCode::SessionBusy,
        Refusal::NoSuchExecution => ErrorCode::ExecutionNotFound,
        Refusal::Load(LoadFailure::InvalidPath(_)) => ErrorCode::InvalidPath,
        Refusal::Load(LoadFailure::NotFound(_)) => ErrorCode::FileNotFound,
        Refusal::Load(LoadFailure::NotPermitted(_)) => ErrorCode::NotPermitted,
        Refusal::Load(LoadFailure::OwnerGone(_)) => ErrorCode::OwnerGone,
        Refusal::Load(LoadFailure::Unavailable(_)) | Refusal::TooManyCheckpoints => {
            ErrorCode::CapacityExceeded
        }
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
        Refusal::NoCheckpoint(_) => ErrorCode::NotFound,
        Refusal::CancelledEarly | Refusal::CheckpointExists(_) => ErrorCode::Conflict,
        Refusal::Task(DurableRefusal::Unfit { .. }) => ErrorCode::AnswerInvalid,
        Refusal::Task(_) => ErrorCode::TaskNotPending,
    }
}

impl From<FilesError> for RuntimeError {
    fn from(error: FilesError) -> Self {
        match error {
            FilesError::Busy(refusal) => Self::Full(refusal),
            late @ FilesError::Late(_) => Self::Late(late.to_string()),
            FilesError::Stopping => Self::ShuttingDown,
        }
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
