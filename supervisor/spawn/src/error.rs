//! Why a keeper or a worker could not be started. Every message states what happened and what to do.

use std::io;
use vm_system_protocol::hello::UnsupportedProtocol;
use vm_system_protocol::keeper::JailFailure;
use vm_system_sandbox::inspect::InspectError;

/// A keeper, zygote or worker could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The keeper's program could not be executed.
    #[error("cannot start the keeper ({program}): {error}")]
    Exec {
        /// The program.
        program: String,
        error: io::Error,
    },
    /// A socket could not be created, bound or used.
    #[error("cannot {what}: {error}")]
    Io {
        /// The failed operation.
        what: &'static str,
        error: io::Error,
    },
    /// A wall could not be built.
    #[error("the sandbox could not be built: {}", describe(.0))]
    Jail(JailFailure),
    /// The keeper exited or sent nothing during the start.
    #[error("the keeper {what} during its start; run `vm-system ops doctor`")]
    KeeperSilent {
        /// The act that took the place of the expected one.
        what: &'static str,
    },
    /// A process of the jail uses another protocol version, or none.
    #[error("{who} did not begin with the hello of this build: {what}")]
    WrongHello {
        /// Keeper, zygote or worker.
        who: &'static str,
        /// The defect that was found.
        what: String,
    },
    /// A process of the jail speaks a protocol version that this build does not.
    #[error("{who} is of another build: {unsupported}")]
    Unsupported {
        /// Keeper, zygote or worker.
        who: &'static str,
        unsupported: UnsupportedProtocol,
    },
    /// The process that tests the walls did not report.
    #[error("the process that tests this machine's walls {what}")]
    Examiner {
        /// The act that took the place of the expected one.
        what: &'static str,
    },
    /// A process is not behind all its walls.
    #[error(transparent)]
    NotJailed(#[from] InspectError),
    /// The zygote could not fork.
    #[error("the zygote could not fork: {0}")]
    Fork(io::Error),
    /// The worker sent no hello in time, or exited.
    #[error("the worker {0} before its hello")]
    WorkerSilent(&'static str),
    /// The limits could not be set from outside.
    #[error("cannot set the resource limits of process {pid} of the jail: {error}")]
    Rlimit { pid: u32, error: io::Error },
    /// A process could not be moved into its owner's group, or the group could not be made.
    #[error("cannot use the cgroup of an owner: {0}")]
    Cgroup(io::Error),
    /// The keeper exited, and all its workers.
    #[error("the keeper has exited")]
    KeeperLost,
    /// A library of the session cannot be loaded: no worker is started without it.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// There is no zygote of the worker's kind. The jail is intact: the next request starts another zygote.
    #[error("the zygote of {kind} {what}")]
    ZygoteFailed {
        /// The zygote's [`super::WorkerKind`], as text.
        kind: String,
        /// The act that took the place of the fork.
        what: &'static str,
    },
    /// No zygote is left to fork from; running workers continue.
    #[error("no zygote is left in this jail")]
    NoZygote,
}

/// The reason why a library cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LibraryError {
    /// The library is not installed.
    #[error("the library {0} is not installed")]
    NotInstalled(String),
    /// The source differs from what was installed.
    #[error("the library {name} is damaged: {problem}")]
    Corrupt {
        /// `id-version`.
        name: String,
        /// The defect that was found.
        problem: String,
    },
    /// The evaluation failed.
    #[error("the library {name} failed: {message}")]
    Failed {
        /// `id-version`.
        name: String,
        /// The exception, or the exceeded limit.
        message: String,
    },
}

impl LibraryError {
    /// `id-version`.
    pub fn library(&self) -> &str {
        match self {
            Self::NotInstalled(name) | Self::Corrupt { name, .. } | Self::Failed { name, .. } => name,
        }
    }
}

impl SpawnError {
    /// Whether a later retry may help: processes, descriptors, memory or time ran short, or a jail is being replaced.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Exec { error, .. }
            | Self::Io { error, .. }
            | Self::Fork(error)
            | Self::Cgroup(error)
            | Self::NotJailed(InspectError::Unreadable { error, .. }) => is_short(error),
            Self::Jail(failure) => is_short(&io::Error::from_raw_os_error(failure.errno)),
            // The worker exited meanwhile.
            Self::Rlimit { error, .. } => error.raw_os_error() == Some(libc::ESRCH),
            Self::KeeperSilent { .. }
            | Self::WorkerSilent(_)
            | Self::KeeperLost
            | Self::NoZygote
            | Self::ZygoteFailed { .. }
            | Self::Examiner { .. } => true,
            Self::WrongHello { .. } | Self::Unsupported { .. } | Self::NotJailed(_) | Self::Library(_) => {
                false
            }
        }
    }

    /// The remedy, where the message does not contain it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Rlimit { error, .. } if error.kind() == io::ErrorKind::PermissionDenied => RLIMIT_HINT,
            Self::Library(_) => "`vm-system libs verify` shows which libraries are damaged",
            Self::Exec { error, .. } if !is_short(error) => {
                "does the binary still exist, and may the service user execute it?"
            }
            Self::Io { error, .. } if is_full(error) => FULL_HINT,
            Self::KeeperLost | Self::NoZygote => "another jail is being built: try again in a moment",
            _ if self.is_temporary() => SHORTAGE_HINT,
            _ => "`vm-system ops doctor` shows which walls this host has and what to do about the others",
        }
    }

    pub(super) fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Io { what, error }
    }
}

/// The remedy if the kernel has no more of something for us.
pub const SHORTAGE_HINT: &str =
    "processes, descriptors or memory may be short (LimitNPROC=, LimitNOFILE=, MemoryMax=): try again later";

/// The remedy if a file system is full.
pub const FULL_HINT: &str = "delete files of this file system, or give it more space or inodes (`df`, `df -i`, a quota): live sessions \
     wait for a start that succeeds";

/// Whether a file system has no space or no inode, or a quota is used up.
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn is_short(error: &io::Error) -> bool {
    let short = [libc::EAGAIN, libc::ENOMEM, libc::EMFILE, libc::ENFILE];
    error.raw_os_error().is_some_and(|errno| short.contains(&errno))
}

/// Root changes to the service user before it builds the jail. With user namespaces it owns the workers' namespace and may
/// therefore limit them; without, it needs the same user or the capability.
const RLIMIT_HINT: &str = "without user namespaces a supervisor of root needs CAP_SYS_RESOURCE to limit its workers: \
     give it that capability, start it as the service user instead of root, or do without `--sandbox no-userns`";

fn describe(failure: &JailFailure) -> String {
    let JailFailure { step, errno, hint } = failure;
    match errno {
        0 => format!("step \"{step}\" failed; {hint}"),
        _ => format!("step \"{step}\" failed: {}; to fix: {hint}", io::Error::from_raw_os_error(*errno)),
    }
}
