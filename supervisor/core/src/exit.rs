//! The closing reason of an exited worker: from this machine's own decision, and from the wait status.

use vm_system_protocol::reason::{CloseReason, LimitKind};
use vm_system_protocol::worker::EXIT_OUT_OF_MEMORY;

/// How a worker exited, from the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerExitStatus {
    /// By itself, with this exit code.
    Exited(i32),
    /// By this signal.
    Signaled(i32),
    /// By SIGKILL, at a time at which the kernel killed a process of this service for lack of memory.
    OutOfMemory,
    /// By this supervisor, because memory was short; what it ran is not the reason.
    MemoryShort,
    /// Lost with its keeper, whose exit ends all processes of the jail.
    KeeperLost,
    /// The wait status is lost.
    Unknown,
}

/// Violation of a worker that removed its handler of the interrupt signal.
pub(super) const NO_HANDLER: &str = "was ended by an interruption that it must handle";

/// Violation of a worker that closed its channel and did not exit.
pub(super) const HANG_UP: &str = "closed its channel";

const SIGKILL: i32 = 9;
/// Interrupts a busy worker (`sandbox::interrupt`).
const SIGUSR1: i32 = 10;
const SIGXCPU: i32 = 24;
const SIGSYS: i32 = 31;

/// The closing reason for an exit. `verdict` is this machine's reason for a kill; `closing` is the reason under which the
/// session was being closed; `operator_signal` is the operator's last signal; `interrupted` is whether this machine interrupted
/// the worker.
pub(super) fn judge(
    verdict: Option<&CloseReason>,
    closing: Option<CloseReason>,
    operator_signal: Option<i32>,
    interrupted: bool,
    status: WorkerExitStatus,
) -> CloseReason {
    // A worker that broke the protocol may have exited before our signal arrived: the violation is the better reason. A closed
    // channel is no violation if the worker had exited and only the report was late.
    if let Some(violation @ CloseReason::ProtocolViolation(what)) = verdict
        && what != HANG_UP
    {
        return violation.clone();
    }
    match status {
        WorkerExitStatus::KeeperLost => CloseReason::KeeperLost,
        // Our own kill, or one that cannot be distinguished from it.
        WorkerExitStatus::Signaled(SIGKILL) | WorkerExitStatus::OutOfMemory | WorkerExitStatus::Unknown
            if verdict.is_some() || closing.is_some() =>
        {
            verdict.cloned().or(closing).unwrap_or(CloseReason::Exited)
        }
        WorkerExitStatus::Signaled(signal) if operator_signal == Some(signal) => {
            CloseReason::KilledByOperator
        }
        WorkerExitStatus::OutOfMemory => CloseReason::OutOfMemory,
        WorkerExitStatus::MemoryShort => CloseReason::MemoryShort,
        WorkerExitStatus::Signaled(SIGUSR1) if interrupted => {
            CloseReason::ProtocolViolation(NO_HANDLER.to_owned())
        }
        // A call before the filter had a listener, or with a foreign architecture's number.
        WorkerExitStatus::Signaled(SIGSYS) => CloseReason::Seccomp("unknown".to_owned()),
        WorkerExitStatus::Signaled(SIGXCPU) => CloseReason::Limit(LimitKind::Cpu),
        WorkerExitStatus::Signaled(signal) => CloseReason::Signal(signal_name(signal)),
        WorkerExitStatus::Exited(0) => match (verdict, closing) {
            (Some(verdict), _) => verdict.clone(),
            (None, Some(closing)) => closing,
            (None, None) => CloseReason::ExitedUnasked(0),
        },
        WorkerExitStatus::Exited(EXIT_OUT_OF_MEMORY) => CloseReason::Limit(LimitKind::Memory),
        WorkerExitStatus::Exited(code) => CloseReason::ExitedUnasked(code),
        WorkerExitStatus::Unknown => CloseReason::Signal("unknown".to_owned()),
    }
}

/// `SIGSEGV` for 11; `SIG40` for one without a name (signal(7), x86 and arm numbering).
pub fn signal_name(signal: i32) -> String {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE",
        "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ",
        "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
    ];
    match usize::try_from(signal).ok().and_then(|number| NAMES.get(number.wrapping_sub(1))) {
        Some(name) => format!("SIG{name}"),
        None => format!("SIG{signal}"),
    }
}
