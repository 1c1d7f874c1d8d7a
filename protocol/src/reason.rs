//! Why a session or a worker ended. Closing reasons are data: every end of a worker has one.

use crate::codec::{Decode, Encode};
use serde::{Serialize, Serializer};
use std::fmt;

/// Message of the exception of an execution whose top level awaits what nothing is left to settle.
pub const NEVER_SETTLED: &str = "top-level await never settled: nothing is left that could resolve it";

/// Exit code for [`NEVER_SETTLED`], as of Node.
pub const EXIT_UNSETTLED: i32 = 13;

/// A limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Encode, Decode)]
pub enum LimitKind {
    /// `mem_mb`.
    Memory,
    /// `cpu_ms`.
    Cpu,
    /// `wall_ms`.
    Wall,
    /// `max_output_kb`.
    Output,
    /// `max_events`.
    Events,
    /// Processes or threads.
    Pids,
}

impl LimitKind {
    /// The name inside `limit(…)`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Cpu => "cpu",
            Self::Wall => "wall",
            Self::Output => "output",
            Self::Events => "events",
            Self::Pids => "pids",
        }
    }
}

/// Why a session is closed or crashed, or the worker of a program's execution died. Stored and shown as text: `limit(memory)`, `signal(SIGSEGV)`, …
#[derive(Debug, Clone, PartialEq, Eq, Hash, Encode, Decode)]
pub enum CloseReason {
    /// Closed on request; the worker exited.
    Exited,
    /// The worker exited with this code and without a request to exit.
    ExitedUnasked(i32),
    /// An operator killed the worker.
    KilledByOperator,
    /// The hard limit of this kind ended the worker.
    Limit(LimitKind),
    /// A system call outside the filter.
    Seccomp(String),
    /// A signal that the supervisor did not send.
    Signal(String),
    /// The worker violated the protocol, with the details.
    ProtocolViolation(String),
    /// The keeper exited, and its jail with it.
    KeeperLost,
    /// The worker was gone when a supervisor started.
    HostRestart,
    /// The worker never became ready, with the cause.
    SpawnFailed(String),
    /// A startup file or library failed, with its name.
    StartupFailed(String),
    /// No execution for `idle_timeout_s`.
    Idle,
    /// `ttl_s` is over.
    Expired,
    /// The kernel killed the worker because the supervisor's cgroup, or the machine, had no memory left.
    OutOfMemory,
    /// Memory was short, and the session was the largest one of the owner who was the cause.
    MemoryShort,
    /// The worker was of another build than its supervisor's, and the deadline of an administrator for such workers has passed.
    Replaced,
    /// A client cancelled the execution, which did not end: the worker was killed.
    Cancelled,
    /// The worker's process ended, and its keeper has not reported how.
    Unknown,
    /// The worker closed its channel, and no exit was reported: it was killed.
    HungUp,
    /// The supervisor met a state that it must not have, with the details, and killed the worker.
    InternalError(String),
}

/// How a worker's process exited, from the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerExitStatus {
    /// By itself, with this exit code.
    Exited(i32),
    /// By this signal: SIGSYS is seccomp, SIGXCPU the CPU limit.
    Signaled(i32),
    /// By SIGKILL, at a time at which the kernel killed a process of this service for lack of memory.
    OutOfMemory,
    /// By the supervisor, because memory was short; the worker's code is not the reason.
    MemoryShort,
    /// Lost with its keeper, whose exit ends all processes of the jail.
    KeeperLost,
    /// The wait status is lost.
    Unknown,
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited => f.write_str("exited"),
            Self::ExitedUnasked(code) => write!(f, "exited({code})"),
            Self::KilledByOperator => f.write_str("killed(operator)"),
            Self::Limit(kind) => write!(f, "limit({})", kind.name()),
            Self::Seccomp(syscall) => write!(f, "seccomp({syscall})"),
            Self::Signal(name) => write!(f, "signal({name})"),
            Self::ProtocolViolation(what) => write!(f, "protocol_violation({what})"),
            Self::KeeperLost => f.write_str("keeper_lost"),
            Self::HostRestart => f.write_str("host_restart"),
            Self::SpawnFailed(why) => write!(f, "spawn_failed({why})"),
            Self::StartupFailed(what) => write!(f, "startup_failed({what})"),
            Self::Idle => f.write_str("idle"),
            Self::Expired => f.write_str("expired"),
            Self::OutOfMemory => f.write_str("killed(out_of_memory)"),
            Self::MemoryShort => f.write_str("killed(memory_pressure)"),
            Self::Cancelled => f.write_str("killed(cancel)"),
            Self::Replaced => f.write_str("replaced"),
            Self::Unknown => f.write_str("unknown"),
            Self::HungUp => f.write_str("hung_up"),
            Self::InternalError(what) => write!(f, "internal_error({what})"),
        }
    }
}

impl Serialize for CloseReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
