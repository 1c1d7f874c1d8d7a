//! Supervisor ⇄ keeper (pid 1 of the jail). Small messages, one packet each, descriptors beside them (`jail.md`).

use crate::codec::{Decode, Encode};
use crate::ids::SessionId;

/// What a supervisor tells the keeper.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ToKeeper {
    /// First message on a connection to the keeper's socket: proves the newcomer. Answered by [`FromKeeper::Peer`].
    Token {
        /// As given to the keeper when it was started.
        token: [u8; 32],
    },
    /// Keep a worker: the packet carries the supervisor's end of its channel and its pidfd. Answered by
    /// [`FromKeeper::Kept`].
    Keep {
        /// Which session.
        session: SessionId,
        /// The worker's pid inside the jail, from the kernel.
        inner_pid: u32,
    },
    /// The session's end is recorded; let go of its descriptors and wait status.
    Forget {
        /// Which session.
        session: SessionId,
    },
    /// Keep a zygote: the packet carries the supervisor's end of its channel, its pidfd and, if it brought one, the
    /// listener of the clone notifications. Answered by [`FromKeeper::KeptZygote`].
    KeepZygote {
        /// Names the zygote in later messages.
        zygote: u32,
        /// The zygote's pid inside the jail, from the kernel.
        inner_pid: u32,
    },
    /// Tell everything that is kept. Answered by [`FromKeeper::ZygoteRecord`]s, then [`FromKeeper::Records`] packets.
    List,
    /// End everything and exit.
    Shutdown,
    /// What the supervisor that starts the keeper sends before anything else. Answered by [`FromKeeper::Ready`] or
    /// [`FromKeeper::Failed`].
    Begin {
        /// What a newcomer has to show.
        token: [u8; 32],
        /// How long the keeper waits for a newcomer after it has lost its supervisor (milliseconds; 0: not at all).
        grace_ms: u64,
    },
}

/// What the keeper tells a supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum FromKeeper {
    /// A step of the set-up failed; the keeper exits.
    Failed(JailFailure),
    /// The jail is up.
    Ready {
        /// The layers in force, as the keeper found them.
        layers: Vec<LayerReport>,
    },
    /// The answer to a token.
    Peer {
        /// Whether it was the right one.
        accepted: bool,
    },
    /// A worker is kept: from here on it survives its supervisor.
    Kept {
        /// Which session.
        session: SessionId,
    },
    /// A zygote is kept.
    KeptZygote {
        /// Which.
        zygote: u32,
    },
    /// A process of the jail ended.
    Exited {
        /// Its pid inside the jail.
        inner_pid: u32,
        /// What it was, if the keeper knew it.
        role: ExitedRole,
        /// As `wait4` gave it.
        wait_status: i32,
    },
    /// Some of the kept workers; descriptors (channel, pidfd) of the living ones in order beside it.
    Records {
        /// At most [`crate::limits::RECORDS_PER_PACKET`].
        records: Vec<Record>,
        /// Whether this is the last packet.
        last: bool,
    },
    /// A kept zygote that lives; its channel, its pidfd and, if it brought one, its listener are beside it.
    ZygoteRecord {
        /// Which.
        zygote: u32,
        /// Its pid inside the jail.
        inner_pid: u32,
    },
}

/// What a process that ended was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum ExitedRole {
    /// A kept worker.
    Worker(SessionId),
    /// A zygote.
    Zygote(u32),
    /// A child that nobody asked to keep yet.
    Unknown,
}

/// A kept worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Record {
    /// Which session.
    pub session: SessionId,
    /// Its pid inside the jail.
    pub inner_pid: u32,
    /// Its wait status, if it has ended.
    pub wait_status: Option<i32>,
}

/// A wall as the keeper found it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct LayerReport {
    /// `namespaces`, `pivot_root`, `capabilities`, `landlock`, `seccomp`, …
    pub name: String,
    /// Whether it is in force.
    pub in_force: bool,
    /// Details: ABI, reason it is missing.
    pub detail: String,
}

/// A step of the set-up that failed.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct JailFailure {
    /// Which step.
    pub step: String,
    /// Its errno, 0 if it has none.
    pub errno: i32,
    /// The knob that fixes it.
    pub hint: String,
}
