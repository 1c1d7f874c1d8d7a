//! Supervisor ⇄ keeper (pid 1 of the jail). Small messages, one packet each, which may carry descriptors.

use crate::codec::{Decode, Encode};
use crate::ids::SessionId;

/// Messages of a supervisor to the keeper.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ToKeeper {
    /// First message on a connection to the keeper's socket: authenticates a new supervisor. The reply is [`FromKeeper::Peer`].
    Token {
        /// The token of [`ToKeeper::Begin`].
        token: [u8; 32],
    },
    /// Keep a worker: the packet carries the supervisor's end of its channel and its pidfd. The reply is
    /// [`FromKeeper::Kept`].
    Keep {
        session: SessionId,
        /// The worker's pid inside the jail, from the kernel.
        inner_pid: u32,
    },
    /// The session's end is stored: drop the worker's descriptors and wait status.
    Forget { session: SessionId },
    /// Keep a zygote: the packet carries its pidfd and, for a zygote that installed its own filter, the listener of the clone
    /// notifications. A new supervisor gets the listener, but no zygote: it starts workers in a jail of its own.
    KeepZygote {
        /// Names the zygote in later messages.
        zygote: u32,
        /// The zygote's pid inside the jail, from the kernel.
        inner_pid: u32,
    },
    /// First order of a new supervisor: kill all zygotes and list what is kept. The reply is one [`FromKeeper::Listener`], then
    /// [`FromKeeper::Records`] packets.
    List,
    /// End all processes of the jail and exit.
    Shutdown,
    /// The first message of the supervisor that starts the keeper. The packet carries the reading end of the lifeline, if there is
    /// one. The reply is [`FromKeeper::Ready`] or [`FromKeeper::Failed`].
    Begin {
        /// The token that a new supervisor has to send.
        token: [u8; 32],
        /// How long the keeper waits for a new supervisor after the exit of its supervisor (milliseconds; 0: not at all).
        grace_ms: u64,
    },
}

/// Messages of the keeper to a supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum FromKeeper {
    /// A step of the set-up failed; the keeper exits.
    Failed(JailFailure),
    /// The jail is up.
    Ready {
        /// The layers in force, as the keeper found them.
        layers: Vec<LayerReport>,
    },
    /// The reply to a token.
    Peer {
        /// Whether the token was valid.
        accepted: bool,
    },
    /// A worker is kept: from now on the exit of its supervisor does not end it before the grace is over.
    Kept { session: SessionId },
    /// A process of the jail exited.
    Exited {
        /// The pid inside the jail.
        inner_pid: u32,
        /// [`ExitedRole::Unknown`] if the keeper has no record of the process.
        role: ExitedRole,
        /// From `wait4`.
        wait_status: i32,
        /// From `wait4`; none of a worker that had exited before it was kept.
        usage: Option<ProcessUsage>,
    },
    /// Some of the kept workers; the packet carries the descriptors (channel, pidfd) of the running ones, in order.
    Records {
        /// At most [`crate::limits::RECORDS_PER_PACKET`].
        records: Vec<WorkerRecord>,
        /// Whether this is the last packet.
        last: bool,
    },
    /// The packet carries the listener of the clone notifications of all processes of the jail.
    Listener,
}

/// The role of a process that has exited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum ExitedRole {
    Worker(SessionId),
    Zygote(u32),
    /// A child of which the keeper has no record yet.
    Unknown,
}

/// The resources that a process used over its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct ProcessUsage {
    /// CPU time (milliseconds).
    pub cpu_ms: u64,
    /// The most resident memory, with pages that were shared with the zygote (KiB).
    pub peak_memory_kib: u64,
}

/// A kept worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct WorkerRecord {
    pub session: SessionId,
    /// The pid inside the jail.
    pub inner_pid: u32,
    /// The wait status, if the worker has exited.
    pub wait_status: Option<i32>,
}

/// A wall as the keeper found it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct LayerReport {
    /// `namespaces`, `pivot_root`, `capabilities`, `landlock`, `seccomp`, …
    pub name: String,
    /// Whether it is in force.
    pub in_force: bool,
    /// Details: the ABI, or the reason why the wall is missing.
    pub detail: String,
}

/// A step of the set-up that failed.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct JailFailure {
    pub step: String,
    /// The error number; 0 if there is none.
    pub errno: i32,
    /// The setting that fixes the failure.
    pub hint: String,
}
