//! Why a keeper or a worker could not be started. Every text says what happened and what to do.

use std::io;
use vm_system_protocol::keeper::JailFailure;
use vm_system_sandbox::inspect::InspectError;

/// A keeper, zygote or worker did not come to life.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The keeper's program could not be executed.
    #[error("cannot start the keeper ({program}): {error}")]
    Exec {
        /// What was to be executed.
        program: String,
        /// Why it was not.
        error: io::Error,
    },
    /// A socket could not be made, bound or used.
    #[error("cannot {what}: {error}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        error: io::Error,
    },
    /// A wall could not be built.
    #[error("the sandbox could not be built: {}", describe(.0))]
    Jail(JailFailure),
    /// The keeper ended or said nothing during the start.
    #[error("the keeper {what} during its start; run `vm-system ops doctor`")]
    KeeperSilent {
        /// What it did instead.
        what: &'static str,
    },
    /// Something in the jail speaks another protocol, or none.
    #[error("{who} did not begin with the hello of this build: {what}")]
    WrongHello {
        /// Keeper, zygote or worker.
        who: &'static str,
        /// What was wrong.
        what: String,
    },
    /// A process is not behind all its walls.
    #[error(transparent)]
    NotJailed(#[from] InspectError),
    /// The zygote could not fork.
    #[error("the zygote could not fork: {0}")]
    Fork(io::Error),
    /// The newborn did not say hello in time, or died.
    #[error("the worker {0} before its hello")]
    WorkerSilent(&'static str),
    /// The limits could not be set from outside.
    #[error(
        "cannot limit worker {pid}: {error}; a supervisor needs the same user as its workers, or CAP_SYS_RESOURCE"
    )]
    Rlimit {
        /// The worker.
        pid: u32,
        /// Why not.
        error: io::Error,
    },
    /// The keeper is dead, and all its workers.
    #[error("the keeper is gone")]
    KeeperLost,
    /// No zygote is left to fork from; live workers go on.
    #[error("no zygote is left in this jail")]
    NoZygote,
}

impl SpawnError {
    pub(super) fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Io { what, error }
    }
}

fn describe(failure: &JailFailure) -> String {
    let JailFailure { step, errno, hint } = failure;
    match errno {
        0 => format!("step \"{step}\" failed; {hint}"),
        _ => format!("step \"{step}\" failed: {}; to fix: {hint}", io::Error::from_raw_os_error(*errno)),
    }
}
