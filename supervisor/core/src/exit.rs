//! Why a worker died: from what this side decided before, and from what the kernel says.

use vm_system_protocol::reason::{CloseReason, LimitKind};

/// How a worker ended, as the kernel says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Signaled(i32),
    /// Its keeper died, and all of the jail with it.
    KeeperLost,
    /// The kernel no longer knows.
    Unknown,
}

/// What a worker did that let our interruption kill it.
pub(super) const NO_HANDLER: &str = "was ended by an interruption that it must handle";

/// What a worker did that closed its channel and lived on.
pub(super) const HANG_UP: &str = "closed its channel";

const SIGKILL: i32 = 9;
/// Interrupts a busy worker (`sandbox::interrupt`).
const SIGUSR1: i32 = 10;
const SIGXCPU: i32 = 24;
const SIGSYS: i32 = 31;

/// The reason of a death. `verdict` is what this side had decided to kill for; `asked` is the reason under which the
/// session was being closed; `operator_signal` is what an operator sent last; `interrupted` is whether we interrupted it.
pub(super) fn judge(
    verdict: Option<&CloseReason>,
    asked: Option<CloseReason>,
    operator_signal: Option<i32>,
    interrupted: bool,
    death: ExitStatus,
) -> CloseReason {
    // A worker that broke the protocol may have ended itself before our signal came: the breach says more. A channel
    // that is closed is no breach if the worker had died and only the news came late.
    if let Some(violation @ CloseReason::ProtocolViolation(what)) = verdict
        && what != HANG_UP
    {
        return violation.clone();
    }
    match death {
        ExitStatus::KeeperLost => CloseReason::KeeperLost,
        // Our own kill, or one that we can no longer tell from it.
        ExitStatus::Signaled(SIGKILL) | ExitStatus::Unknown if verdict.is_some() || asked.is_some() => {
            verdict.cloned().or(asked).unwrap_or(CloseReason::Exited)
        }
        ExitStatus::Signaled(signal) if operator_signal == Some(signal) => CloseReason::KilledByOperator,
        ExitStatus::Signaled(SIGUSR1) if interrupted => CloseReason::ProtocolViolation(NO_HANDLER.to_owned()),
        // Before anybody listened, or from a foreign architecture's table.
        ExitStatus::Signaled(SIGSYS) => CloseReason::Seccomp("unknown".to_owned()),
        ExitStatus::Signaled(SIGXCPU) => CloseReason::Limit(LimitKind::Cpu),
        ExitStatus::Signaled(signal) => CloseReason::Signal(signal_name(signal)),
        ExitStatus::Exited(0) => match (verdict, asked) {
            (Some(verdict), _) => verdict.clone(),
            (None, Some(asked)) => asked,
            (None, None) => CloseReason::ExitedUnasked(0),
        },
        ExitStatus::Exited(code) => CloseReason::ExitedUnasked(code),
        ExitStatus::Unknown => CloseReason::Signal("unknown".to_owned()),
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
