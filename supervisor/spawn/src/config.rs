//! Configuration of a keeper and its workers. Plain data.

use super::error::SpawnError;
use super::groups::Cgroups;
use crate::helper::SpawnHelper;
use crate::keepers::LiveKeepers;
use crate::libraries::LibraryStore;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use vm_system_sandbox::process::SELF;

/// The service user and group that a supervisor of root changes to.
pub use vm_system_sandbox::namespaces::Ids as ServiceIds;

/// `nobody` and `nogroup`, on every distribution.
const NOBODY: ServiceIds = ServiceIds { uid: 65534, gid: 65534 };

/// The walls to install. Chosen by the operator only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SandboxMode {
    /// All.
    #[default]
    Full,
    /// No namespaces, for hosts that refuse user namespaces; seccomp, Landlock, rlimits and the rest stay.
    NoUserns,
}

impl SandboxMode {
    pub(super) const fn argument(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::NoUserns => "no-userns",
        }
    }
}

/// Configuration of a keeper.
#[derive(Debug, Clone)]
pub struct SpawnConfig {
    /// The binary with the hidden modes.
    pub program: PathBuf,
    pub sandbox: SandboxMode,
    /// The user and group to change to when started as root.
    pub service_ids: ServiceIds,
    /// Folder in which keepers wait for the next supervisor. Only the daemon's user may enter it. `None`: no adoption.
    pub keepers: Option<PathBuf>,
    /// Whether a reserve zygote is kept, so that new sessions can start after the first one exits.
    pub reserve_zygote: bool,
    /// Whether one worker of each recently requested kind is prestarted.
    pub prestart_workers: bool,
    /// How long the keeper and its workers outlive the supervisor; zero: not at all.
    pub grace: Duration,
    /// The reading end of a pipe: once it has hung up, a keeper without a supervisor ends at once.
    pub lifeline: Option<Arc<OwnedFd>>,
    /// Sources of installed libraries.
    pub library_store: LibraryStore,
    /// All keepers of these jails.
    pub keepers_alive: LiveKeepers,
    /// Makes the user namespaces of jails, where the host refuses them to users.
    pub namespace_maker: Option<SpawnHelper>,
    /// The groups of owners.
    pub cgroups: Cgroups,
    /// The owner of all workers of this jail; `None`: any.
    pub owner: Option<String>,
}

impl SpawnConfig {
    /// For use inside one process: this binary, all walls, no adoption, everything ends with the process.
    pub fn embedded() -> Self {
        Self {
            program: PathBuf::from(SELF),
            sandbox: SandboxMode::Full,
            service_ids: NOBODY,
            keepers: None,
            reserve_zygote: false,
            prestart_workers: false,
            grace: Duration::ZERO,
            lifeline: None,
            library_store: LibraryStore::in_memory(),
            keepers_alive: LiveKeepers::default(),
            namespace_maker: None,
            cgroups: Cgroups::Unused("only a daemon makes groups of owners".to_owned()),
            owner: None,
        }
    }
}

impl SpawnConfig {
    /// A user namespace for a jail, where this user may not make one.
    pub(super) async fn user_namespace(&self) -> Result<Option<OwnedFd>, SpawnError> {
        match &self.namespace_maker {
            Some(maker) if self.sandbox == SandboxMode::Full => {
                let made = maker.make_user_namespace().await;
                made.map(Some).map_err(SpawnError::io("have the spawn helper make a user namespace"))
            }
            _ => Ok(None),
        }
    }
}

/// A worker's hard limits, above the soft limits of its engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerLimits {
    /// Heap (bytes); the process's other memory is added.
    pub memory_bytes: u64,
    /// CPU time of its whole life. `None`: set per execution with [`super::WorkerProcess::allow_cpu`].
    pub cpu: Option<Duration>,
}
