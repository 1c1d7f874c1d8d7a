//! What the keeper is started with. Plain data.

use crate::libraries::Shelf;
use std::path::PathBuf;
use std::time::Duration;
use vm_system_sandbox::process::SELF;

/// Whose jail it is: the user and group that root changes to.
pub use vm_system_sandbox::namespaces::Ids as ServiceIds;

/// `nobody` and `nogroup`, on every distribution.
const NOBODY: ServiceIds = ServiceIds { uid: 65534, gid: 65534 };

/// Which walls are built. Never chosen by us.
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

/// How a keeper is started.
#[derive(Debug, Clone)]
pub struct SpawnConfig {
    /// The binary that knows the hidden modes.
    pub program: PathBuf,
    /// Which walls.
    pub sandbox: SandboxMode,
    /// Whom to become when started as root.
    pub service_ids: ServiceIds,
    /// Where a later supervisor finds the keeper; nothing may exist there. `None`: nobody ever will.
    pub socket_path: Option<PathBuf>,
    /// What a later supervisor has to show.
    pub token: [u8; 32],
    /// Whether a second zygote stands by, so that the first one's death costs no new session its jail.
    pub reserve_zygote: bool,
    /// Whether, of each kind of worker that was asked for lately, one is born before it is needed.
    pub ready_workers: bool,
    /// How long the keeper and its workers outlive us; zero: not at all.
    pub grace: Duration,
    /// Sources of installed libraries.
    pub shelf: Shelf,
}

impl SpawnConfig {
    /// For one process's own use: this binary, all walls, no adoption, everything ends with us.
    pub fn embedded() -> Self {
        Self {
            program: PathBuf::from(SELF),
            sandbox: SandboxMode::Full,
            service_ids: NOBODY,
            socket_path: None,
            token: [0; 32],
            reserve_zygote: false,
            ready_workers: false,
            grace: Duration::ZERO,
            shelf: Shelf::in_memory(),
        }
    }
}

/// A worker's hard stops, behind the soft limits that its engine keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerLimits {
    /// Heap (bytes); what the process needs besides is added.
    pub memory_bytes: u64,
    /// CPU time from birth to death. `None`: set per execution with [`super::WorkerProcess::allow_cpu`].
    pub cpu: Option<Duration>,
}
