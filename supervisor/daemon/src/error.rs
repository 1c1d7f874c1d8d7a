//! Why a supervisor does not start, as messages for the operator.

use super::socket::SocketError;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use vm_system_api::rest::TokenError;
use vm_system_runtime::StartError;
use vm_system_runtime::worktree::WorktreeError;
use vm_system_sandbox::step::StepError;
use vm_system_spawn::SpawnError;
use vm_system_store::OpenError;

/// A supervisor did not come up.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// Its state directory or database.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// Its control socket.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// What every access to a worktree needs.
    #[error("cannot reach files of worktrees: {0}")]
    Files(StepError),
    /// Its jail.
    #[error("cannot build the jail: {0}")]
    Runtime(#[from] StartError),
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
    /// Its tokens.
    #[error(transparent)]
    Tokens(#[from] TokenError),
    /// The folder of the web UI.
    #[error("ui_dir: {0}")]
    Ui(WorktreeError),
    /// An address beyond loopback without tokens.
    #[error("{0} can be reached from other machines, and there is no token: name a file with --tokens")]
    NoTokens(SocketAddr),
    /// A TCP address cannot be taken.
    #[error("cannot listen at {address}: {source}")]
    Listen { address: SocketAddr, source: io::Error },
    /// Signals cannot be waited for.
    #[error("cannot listen for signals: {0}")]
    Signals(io::Error),
    /// A task of ours failed.
    #[error("internal error: {0}")]
    Internal(String),
}

impl DaemonError {
    /// Another supervisor has what this one needs; it may be gone later.
    pub fn is_in_use(&self) -> bool {
        matches!(
            self,
            Self::Store(OpenError::InUse { .. } | OpenError::Locked { .. })
                | Self::Socket(SocketError::InUse { .. })
        ) || matches!(self, Self::Listen { source, .. } if source.kind() == io::ErrorKind::AddrInUse)
    }

    /// The supervisor lacks a right that it needs.
    pub fn is_not_permitted(&self) -> bool {
        let denied = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
        match self {
            Self::Runtime(StartError::Spawn(SpawnError::Rlimit { .. }))
            | Self::Store(OpenError::Denied { .. })
            | Self::Files(_) => true,
            Self::Socket(SocketError::Io { source, .. })
            | Self::Listen { source, .. }
            | Self::Tokens(TokenError::Io { source, .. })
            | Self::Libraries { source, .. } => denied(source),
            _ => false,
        }
    }

    /// The operator's settings contradict each other.
    pub fn is_a_mistake(&self) -> bool {
        match self {
            Self::Roots(_) | Self::Tokens(_) | Self::Ui(_) | Self::NoTokens(_) | Self::Listen { .. } => true,
            Self::Socket(error) => matches!(error, SocketError::NotASocket { .. } | SocketError::NoGroup(_)),
            Self::Store(error) => {
                matches!(error, OpenError::NotAFolder { .. } | OpenError::NoTemporaryFolder { .. })
            }
            _ => false,
        }
    }

    /// What to do about it, where the message does not contain it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Runtime(StartError::Spawn(error)) => Some(error.hint()),
            _ => None,
        }
    }
}
