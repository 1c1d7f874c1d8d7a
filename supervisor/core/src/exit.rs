//! The closing reason of an exited worker: from this machine's own decision, and from the wait status.

use vm_system_protocol::reason::{CloseReason, LimitKind, WorkerExitStatus};
use vm_system_protocol::worker::EXIT_OUT_OF_MEMORY;

/// Violation of a worker that removed its handler of the interrupt signal.
pub(super) const NO_HANDLER: &str = "was ended by an interruption that it must handle";

const SIGKILL: i32 = 9;
/// Interrupts a busy worker (`sandbox::interrupt`).
const SIGUSR1: i32 = 10;
const SIGXCPU: i32 = 24;
const SIGSYS: i32 = 31;

/// The closing reason for an exit. `verdict` is this machine's reason for a kill; `closing` is the reason under which the
/// session was being closed; `operator_signal` is the operator's last signal; `interrupted` is whether this machine interrupted
/// the worker.
pub(super) fn close_reason(
    verdict: Option<&CloseReason>,
    closing: Option<CloseReason>,
    operator_signal: Option<i32>,
    interrupted: bool,
    status: WorkerExitStatus,
) -> CloseReason {
    // A worker that broke the protocol may have exited before our signal arrived: the violation is the better reason. A closed
    // channel (`HungUp`) is none if the worker had exited and only the report was late: its status follows.
    if let Some(violation @ CloseReason::ProtocolViolation(_)) = verdict {
        return violation.clone();
    }
    match status {
        // Our own kill, or one that cannot be distinguished from it.
        WorkerExitStatus::Signaled(SIGKILL) | WorkerExitStatus::OutOfMemory | WorkerExitStatus::Unknown
            if verdict.is_some() || closing.is_some() =>
        {
            verdict.cloned().or(closing).unwrap_or(CloseReason::Exited)
        }
        WorkerExitStatus::Signaled(signal) if operator_signal == Some(signal) => {
            CloseReason::KilledByOperator
        }
        WorkerExitStatus::Signaled(SIGUSR1) if interrupted => {
            CloseReason::ProtocolViolation(NO_HANDLER.to_owned())
        }
        WorkerExitStatus::Exited(0) => verdict.cloned().or(closing).unwrap_or(CloseReason::ExitedUnasked(0)),
        status => reason_of(status),
    }
}

/// The closing reason for an exit of a worker that nobody had decided to end.
pub(super) fn reason_of(status: WorkerExitStatus) -> CloseReason {
    match status {
        WorkerExitStatus::KeeperLost => CloseReason::KeeperLost,
        WorkerExitStatus::OutOfMemory => CloseReason::OutOfMemory,
        WorkerExitStatus::MemoryShort => CloseReason::MemoryShort,
        // A call before the filter had a listener, or with a foreign architecture's number.
        WorkerExitStatus::Signaled(SIGSYS) => CloseReason::Seccomp("unknown".to_owned()),
        WorkerExitStatus::Signaled(SIGXCPU) => CloseReason::Limit(LimitKind::Cpu),
        WorkerExitStatus::Signaled(signal) => CloseReason::Signal(signal_name(signal)),
        WorkerExitStatus::Exited(EXIT_OUT_OF_MEMORY) => CloseReason::Limit(LimitKind::Memory),
        WorkerExitStatus::Exited(code) => CloseReason::ExitedUnasked(code),
        WorkerExitStatus::Unknown => CloseReason::Unknown,
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
