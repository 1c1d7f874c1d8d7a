//! Why a supervisor does not start, as messages for the operator.

use super::give::GiveError;
use super::passed::PassedSocketError;
use super::socket::SocketError;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use vm_system_api::rest::TokenError;
use vm_system_runtime::StartError;
use vm_system_runtime::worktree::WorktreeError;
use vm_system_sandbox::cgroup::CgroupError;
use vm_system_sandbox::step::StepError;
use vm_system_spawn::{FULL_HINT, KeptJailsError, SpawnError, is_full};
use vm_system_store::OpenError;

/// Why a supervisor did not start.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The state directory or the database.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The control socket or the HTTP socket.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The key of agents' sessions, or the file of those that have ended.
    #[error("cannot prepare {path}: {source}")]
    SessionKey { path: PathBuf, source: io::Error },
    /// `openat2`, which every access to a worktree needs.
    #[error("cannot reach files of worktrees: {0}")]
    Files(StepError),
    /// The jail, or the sessions of an earlier daemon.
    #[error("{}", of_the_runtime(.0))]
    Runtime(StartError),
    /// The operator's worktree roots.
    #[error("{0}")]
    Roots(WorktreeError),
    /// The folder of the installed libraries.
    #[error("cannot use the folder `libraries` in {}: {source}", path.display())]
    Libraries {
        /// The state directory.
        path: PathBuf,
        source: io::Error,
    },
    /// The folder in which keepers wait for a supervisor.
    #[error("cannot use the folder {} of the keepers: {source}", path.display())]
    Keepers { path: PathBuf, source: io::Error },
    /// The keepers of a newer daemon wait for it.
    #[error(transparent)]
    NewerBuild(KeptJailsError),
    /// The sessions of an earlier daemon cannot be taken over; their keepers are left waiting.
    #[error(
        "the {sessions} sessions of an earlier daemon need {needed} descriptors, and this process may have {limit}"
    )]
    Descriptors { sessions: usize, needed: u64, limit: u64 },
    /// Clients could not be served.
    #[error("this process may have {limit} descriptors, and a daemon needs at least {needed}")]
    FewDescriptors { limit: usize, needed: usize },
    /// The file of tokens.
    #[error(transparent)]
    Tokens(#[from] TokenError),
    /// The folder of the web UI.
    #[error("--ui-dir (`ui_dir` of the file): {0}")]
    Ui(WorktreeError),
    /// An address beyond loopback without tokens.
    #[error("{0} is reachable from other machines, and there are no tokens: give a file with --tokens")]
    NoTokens(SocketAddr),
    /// A TCP address cannot be bound.
    #[error("cannot listen at {address}: {source}")]
    Listen { address: SocketAddr, source: io::Error },
    /// A descriptor of the service manager.
    #[error(transparent)]
    PassedSocket(#[from] PassedSocketError),
    /// A socket of the service manager cannot be used.
    #[error("cannot listen at a socket of the service manager: {0}")]
    Passed(io::Error),
    /// The listeners' threads cannot be started.
    #[error("cannot accept connections: {0}")]
    Serve(io::Error),
    /// There is no user that a daemon of root can become.
    #[error("a daemon that root starts becomes the user `{name}`, which is not possible: {detail}")]
    NoUser { name: String, detail: String, is_default: bool },
    /// A folder cannot be given to the daemon's user.
    #[error("cannot give a folder to the daemon's user: {0}")]
    Give(GiveError),
    /// The cgroup cannot be given to the daemon's user.
    #[error("cannot give the cgroup to the daemon's user: {0}")]
    HandOver(io::Error),
    /// The rights of root cannot be given up.
    #[error("cannot become the daemon's user: {0}")]
    BecomeUser(io::Error),
    /// The process that starts files agents.
    #[error("cannot start the spawn helper: {0}")]
    Helper(io::Error),
    /// The supervisor's own filter.
    #[error("cannot restrict the supervisor's system calls: {0}")]
    Filter(io::Error),
    /// Signal handlers cannot be installed.
    #[error("cannot listen for signals: {0}")]
    Signals(io::Error),
    /// The operator's cgroup.
    #[error(transparent)]
    Cgroup(#[from] CgroupError),
    /// A limit that the operator has set cannot be in force.
    #[error("`{setting}` of [cgroups] needs the controller {controller}: {problem}")]
    CgroupLimit { setting: &'static str, controller: &'static str, problem: String },
    /// The groups of owners.
    #[error("cannot make groups in the daemon's cgroup: {0}")]
    Groups(io::Error),
    /// A task panicked.
    #[error("internal error: {0}")]
    Internal(String),
}

fn of_the_runtime(error: &StartError) -> String {
    match error {
        StartError::Spawn(error) => format!("cannot build the jail: {error}"),
        error => error.to_string(),
    }
}

/// Whether descriptors are exhausted.
fn is_shortage(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(nix::libc::EMFILE | nix::libc::ENFILE))
}

impl From<StartError> for DaemonError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Open(error) => Self::Store(error),
            error => Self::Runtime(error),
        }
    }
}

impl DaemonError {
    /// Another supervisor uses the state directory, a socket or an address; a later attempt may succeed.
    pub fn is_in_use(&self) -> bool {
        matches!(
            self,
            Self::Store(OpenError::InUse { .. } | OpenError::Locked { .. })
                | Self::Socket(SocketError::InUse { .. })
                | Self::Cgroup(CgroupError::InUse(_))
        ) || matches!(self, Self::Listen { source, .. } if source.kind() == io::ErrorKind::AddrInUse)
    }

    /// The supervisor lacks a required right.
    pub fn is_not_permitted(&self) -> bool {
        let denied = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
        match self {
            Self::Runtime(StartError::Spawn(SpawnError::Rlimit { .. }))
            | Self::Store(OpenError::Denied { .. })
            | Self::Files(_) => true,
            Self::Socket(SocketError::Io { source, .. })
            | Self::Cgroup(CgroupError::Io { error: source, .. })
            | Self::Listen { source, .. }
            | Self::SessionKey { source, .. }
            | Self::Keepers { source, .. }
            | Self::Tokens(TokenError::Io { source, .. })
            | Self::Libraries { source, .. } => denied(source),
            _ => false,
        }
    }

    /// A file or folder that the operator has named is not there, or cannot be used.
    pub fn is_unusable_path(&self) -> bool {
        match self {
            Self::Store(OpenError::Unusable { .. }) => true,
            Self::Tokens(TokenError::Io { source, .. })
            | Self::Give(GiveError::Io { source, .. })
            | Self::Socket(SocketError::Io { source, .. }) => matches!(
                source.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::ReadOnlyFilesystem
            ),
            _ => false,
        }
    }

    /// The setting of the operator's file whose value the error is about, if it is about one.
    pub fn setting(&self) -> Option<[&'static str; 2]> {
        match self {
            Self::Tokens(TokenError::Io { .. } | TokenError::Exposed { .. }) => Some(["http", "tokens"]),
            Self::Ui(_) => Some(["http", "ui_dir"]),
            Self::NoTokens(_) | Self::Listen { .. } => Some(["http", "listen"]),
            Self::Cgroup(_) => Some(["cgroups", "subtree"]),
            Self::CgroupLimit { setting, .. } => Some(["cgroups", setting]),
            _ => None,
        }
    }

    /// The operator's settings are wrong.
    pub fn is_a_mistake(&self) -> bool {
        match self {
            Self::Roots(_)
            | Self::Tokens(_)
            | Self::Ui(_)
            | Self::NoTokens(_)
            | Self::PassedSocket(_)
            | Self::CgroupLimit { .. }
            | Self::NoUser { .. }
            | Self::Listen { .. } => true,
            Self::Give(error) => !matches!(error, GiveError::Io { .. }),
            Self::Cgroup(error) => matches!(error, CgroupError::NotCgroup(_) | CgroupError::Shared { .. }),
            Self::Socket(error) => matches!(
                error,
                SocketError::NotASocket { .. } | SocketError::TooLong { .. } | SocketError::NoGroup(_)
            ),
            Self::Store(error) => {
                use OpenError::{NoTemporaryFolder, NotAFolder, NotPrivate};
                matches!(error, NotAFolder { .. } | NoTemporaryFolder { .. } | NotPrivate { .. })
            }
            _ => false,
        }
    }

    /// The error of a file or folder of the daemon's own.
    fn of_a_file(&self) -> Option<&io::Error> {
        match self {
            Self::SessionKey { source, .. }
            | Self::Libraries { source, .. }
            | Self::Keepers { source, .. }
            | Self::Give(GiveError::Io { source, .. })
            | Self::Socket(SocketError::Io { source, .. }) => Some(source),
            _ => None,
        }
    }

    /// The remedy, if the message does not contain it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            _ if self.of_a_file().is_some_and(is_full) => Some(FULL_HINT),
            _ if self.of_a_file().is_some_and(|error| error.kind() == io::ErrorKind::ReadOnlyFilesystem) => {
                Some("remount the file system for writing, after a check if it was damaged")
            }
            Self::Runtime(StartError::Spawn(error)) => Some(error.hint()),
            Self::Cgroup(error) => Some(error.hint()),
            Self::Give(error) => Some(error.hint()),
            Self::NoUser { is_default: true, .. } => Some(
                "make it (`useradd --system --no-create-home --shell /usr/sbin/nologin vm-system`), or name another \
                 user without rights with --user ($VM_SYSTEM_USER, or `user` of the file)",
            ),
            Self::NoUser { .. } => Some("name an existing user without rights of root"),
            Self::Store(OpenError::Denied { .. }) => Some(
                "a daemon that root starts becomes another user (--user), who needs access to the folders above, too",
            ),
            Self::Socket(SocketError::Io { source, .. })
                if source.kind() == io::ErrorKind::PermissionDenied =>
            {
                Some(
                    "the folder of the socket must belong to the daemon's user: choose a folder of its own, such as \
                 /run/vm-system",
                )
            }
            Self::Descriptors { .. } => Some(
                "raise the limit (LimitNOFILE= of the unit, `ulimit -n`) and start again: the sessions wait for a daemon as long as \
                 `keeper_grace_s` says",
            ),
            Self::NewerBuild(_) => Some(
                "start the newer build again to keep these sessions; without it they end when `keeper_grace_s` is over, or when the \
                 service or that process is stopped, and this build starts then",
            ),
            Self::FewDescriptors { .. } => Some(
                "raise the limit of descriptors (LimitNOFILE= of the unit, `ulimit -Hn`) and start again",
            ),
            Self::Keepers { source, .. } if is_shortage(source) => {
                Some("raise the limit of descriptors (LimitNOFILE= of the unit, `ulimit -n`) and start again")
            }
            Self::PassedSocket(_) => Some(
                "the socket unit names it: FileDescriptorName=http for HTTP (Unix or TCP), FileDescriptorName=control for the \
                 control socket",
            ),
            Self::CgroupLimit { .. } => {
                Some("start the daemon as a service with Delegate=yes, or remove the setting")
            }
            _ => None,
        }
    }
}
