//! The record of the end of a worker that nobody requested: one sentence for people (`last_error`), and facts for programs (`crash` in
//! the session's `runtime_meta`). Pure functions.

use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::keeper::ProcessUsage;
use vm_system_protocol::model::LastCrash;
use vm_system_protocol::reason::{CloseReason, LimitKind};

/// The facts of an end.
pub(super) struct CrashRecord<'a> {
    pub(super) reason: &'a CloseReason,
    /// The execution that ran.
    pub(super) execution: Option<ExecutionId>,
    /// The resources that the worker used over its life.
    pub(super) usage: Option<ProcessUsage>,
    /// The worker was stopped from outside when this system killed it.
    pub(super) was_stopped: bool,
}

impl CrashRecord<'_> {
    /// The session's error; none for an end in good order. `requested`: the session was being closed.
    pub(super) fn describe(&self, requested: bool) -> Option<String> {
        match self.reason {
            CloseReason::Exited | CloseReason::Idle | CloseReason::Expired => None,
            CloseReason::Replaced => Some(format!("{}{}", crate::drain::WHY, self.circumstances())),
            CloseReason::SpawnFailed(why) => Some(format!("the worker could not be started: {why}")),
            CloseReason::StartupFailed(what) => Some(format!("startup failed: {what}")),
            reason if requested => Some(format!("the worker did not exit in good order: {reason}")),
            reason => {
                let why = match reason {
                    CloseReason::Limit(LimitKind::Wall) if self.was_stopped => {
                        "because its process was stopped from outside (SIGSTOP, a debugger) until wall_ms had passed"
                    }
                    reason => explain(reason),
                };
                Some(format!("the worker ended: {reason}, {why}{}", self.circumstances()))
            }
        }
    }

    fn circumstances(&self) -> String {
        let execution = self.execution.map(|id| format!(", during execution {id}"));
        let usage = self.usage.map(|ProcessUsage { cpu_ms, peak_memory_kib }| {
            let mib = peak_memory_kib / 1_024;
            format!(", after {cpu_ms} ms of CPU time, with at most {mib} MiB of memory")
        });
        execution.into_iter().chain(usage).collect()
    }

    /// The same for programs.
    pub(super) fn fact(&self) -> LastCrash {
        LastCrash {
            reason: self.reason.to_string(),
            execution_id: self.execution,
            cpu_ms: self.usage.map(|usage| usage.cpu_ms),
            peak_memory_kib: self.usage.map(|usage| usage.peak_memory_kib),
        }
    }
}

/// The meaning of a reason, as the rest of a sentence.
fn explain(reason: &CloseReason) -> &'static str {
    match reason {
        CloseReason::KilledByOperator => "on request",
        CloseReason::Cancelled => "because its execution was cancelled and did not stop",
        CloseReason::Limit(LimitKind::Memory) => "because it used more memory than mem_mb allows",
        CloseReason::Limit(LimitKind::Pids) => "because it created more processes or threads than it may",
        CloseReason::Limit(LimitKind::Cpu) => {
            "because it used more CPU time than cpu_ms allows and did not stop"
        }
        CloseReason::Limit(LimitKind::Wall) => "because it took longer than wall_ms allows and did not stop",
        CloseReason::Limit(LimitKind::Output) => "because it put out more than max_output_kb allows",
        CloseReason::Limit(LimitKind::Events) => "because it put out more events than max_events allows",
        CloseReason::Seccomp(_) => "because it made a system call that workers may not make",
        CloseReason::Signal(name) => match name.as_str() {
            "SIGSEGV" | "SIGBUS" => "because it accessed invalid memory",
            "SIGILL" | "SIGTRAP" => "because it executed an invalid instruction",
            "SIGFPE" => "because of an arithmetic error",
            "SIGABRT" => "because it aborted itself",
            "SIGKILL" => "by a process outside of this system, or by the kernel",
            _ => "which this system did not send",
        },
        CloseReason::Unknown => "because its process ended: how is not known, its keeper has not reported it",
        CloseReason::HungUp => {
            "because its end of the channel was closed and no exit was reported: it was killed, or closed it itself"
        }
        CloseReason::ProtocolViolation(_) => "because it sent what a worker cannot send in its state",
        CloseReason::KeeperLost => "because the process that holds its jail has exited",
        CloseReason::HostRestart => "because its supervisor has exited",
        CloseReason::Replaced => crate::drain::WHY,
        CloseReason::OutOfMemory => {
            "because its owner, or the service, had no memory left: the kernel chose it, whatever its own limit (mem_mb) is"
        }
        CloseReason::MemoryShort => {
            "because memory was short on this machine, and its owner held more than its share: of this owner the largest sessions ended, until enough was free, and this was one of them"
        }
        CloseReason::ExitedUnasked(_) => "without a request",
        CloseReason::InternalError(_) => {
            "because of a fault of this service, which ended the session to be safe: please report it"
        }
        CloseReason::Exited
        | CloseReason::SpawnFailed(_)
        | CloseReason::StartupFailed(_)
        | CloseReason::Idle
        | CloseReason::Expired => "in good order",
    }
}

#[cfg(test)]
mod tests {
    use super::CrashRecord;
    use vm_system_protocol::ids::ExecutionId;
    use vm_system_protocol::keeper::ProcessUsage;
    use vm_system_protocol::reason::{CloseReason, LimitKind};

    #[test]
    fn one_sentence_explains_the_end() {
        let reason = CloseReason::OutOfMemory;
        let execution = ExecutionId::from_bytes([1; 16]);
        let usage = ProcessUsage { cpu_ms: 312, peak_memory_kib: 61 * 1_024 };
        let record = CrashRecord {
            reason: &reason,
            execution: Some(execution),
            usage: Some(usage),
            was_stopped: false,
        };
        assert_eq!(
            record.describe(false).expect("a crash"),
            format!(
                "the worker ended: killed(out_of_memory), because its owner, or the service, had no memory left: the kernel chose it, \
                 whatever its own limit (mem_mb) is, during execution {execution}, after 312 ms of CPU time, with at most 61 MiB of memory"
            )
        );
        let idle = CrashRecord {
            reason: &CloseReason::Signal("SIGSEGV".to_owned()),
            execution: None,
            usage: None,
            was_stopped: false,
        };
        assert_eq!(
            idle.describe(false).as_deref(),
            Some("the worker ended: signal(SIGSEGV), because it accessed invalid memory")
        );
        assert_eq!(CrashRecord { reason: &CloseReason::Exited, ..idle }.describe(true), None);
    }

    /// The sentence of every reason, except of ends in good order. A new reason does not compile without a row.
    fn sentence(reason: &CloseReason) -> Option<&'static str> {
        Some(match reason {
            CloseReason::Exited | CloseReason::Idle | CloseReason::Expired => return None,
            CloseReason::ExitedUnasked(_) => "the worker ended: exited(3), without a request",
            CloseReason::KilledByOperator => "the worker ended: killed(operator), on request",
            CloseReason::Cancelled => {
                "the worker ended: killed(cancel), because its execution was cancelled and did not stop"
            }
            CloseReason::Limit(kind) => match kind {
                LimitKind::Memory => {
                    "the worker ended: limit(memory), because it used more memory than mem_mb allows"
                }
                LimitKind::Cpu => {
                    "the worker ended: limit(cpu), because it used more CPU time than cpu_ms allows and did not stop"
                }
                LimitKind::Wall => {
                    "the worker ended: limit(wall), because it took longer than wall_ms allows and did not stop"
                }
                LimitKind::Output => {
                    "the worker ended: limit(output), because it put out more than max_output_kb allows"
                }
                LimitKind::Events => {
                    "the worker ended: limit(events), because it put out more events than max_events allows"
                }
                LimitKind::Pids => {
                    "the worker ended: limit(pids), because it created more processes or threads than it may"
                }
            },
            CloseReason::Seccomp(_) => {
                "the worker ended: seccomp(openat), because it made a system call that workers may not make"
            }
            CloseReason::Signal(_) => "the worker ended: signal(SIGSEGV), because it accessed invalid memory",
            CloseReason::ProtocolViolation(_) => {
                "the worker ended: protocol_violation(x), because it sent what a worker cannot send in its state"
            }
            CloseReason::KeeperLost => {
                "the worker ended: keeper_lost, because the process that holds its jail has exited"
            }
            CloseReason::HostRestart => "the worker ended: host_restart, because its supervisor has exited",
            CloseReason::SpawnFailed(_) => "the worker could not be started: x",
            CloseReason::StartupFailed(_) => "startup failed: x",
            CloseReason::Replaced => crate::drain::WHY,
            CloseReason::Unknown => {
                "the worker ended: unknown, because its process ended: how is not known, its keeper has not reported it"
            }
            CloseReason::HungUp => {
                "the worker ended: hung_up, because its end of the channel was closed and no exit was reported: it was killed, or \
                 closed it itself"
            }
            CloseReason::InternalError(_) => {
                "the worker ended: internal_error(x), because of a fault of this service, which ended the session to be safe: please \
                 report it"
            }
            CloseReason::OutOfMemory => {
                "the worker ended: killed(out_of_memory), because its owner, or the service, had no memory left: the \
                 kernel chose it, whatever its own limit (mem_mb) is"
            }
            CloseReason::MemoryShort => {
                "the worker ended: killed(memory_pressure), because memory was short on this machine, and its owner held \
                 more than its share: of this owner the largest sessions ended, until enough was free, and this was one of them"
            }
        })
    }

    #[test]
    fn every_reason_has_its_sentence() {
        let text = || "x".to_owned();
        let limits = [
            LimitKind::Memory,
            LimitKind::Cpu,
            LimitKind::Wall,
            LimitKind::Output,
            LimitKind::Events,
            LimitKind::Pids,
        ];
        let others = [
            CloseReason::Exited,
            CloseReason::ExitedUnasked(3),
            CloseReason::KilledByOperator,
            CloseReason::Cancelled,
            CloseReason::Seccomp("openat".to_owned()),
            CloseReason::Signal("SIGSEGV".to_owned()),
            CloseReason::ProtocolViolation(text()),
            CloseReason::KeeperLost,
            CloseReason::HostRestart,
            CloseReason::Replaced,
            CloseReason::SpawnFailed(text()),
            CloseReason::StartupFailed(text()),
            CloseReason::Idle,
            CloseReason::Expired,
            CloseReason::OutOfMemory,
            CloseReason::MemoryShort,
            CloseReason::Unknown,
            CloseReason::HungUp,
            CloseReason::InternalError(text()),
        ];
        for reason in limits.map(CloseReason::Limit).into_iter().chain(others) {
            let record = CrashRecord { reason: &reason, execution: None, usage: None, was_stopped: false };
            assert_eq!(record.describe(false).as_deref(), sentence(&reason), "{reason}");
        }
    }

    #[test]
    fn a_worker_that_was_stopped_is_not_said_to_have_run() {
        let reason = CloseReason::Limit(LimitKind::Wall);
        let record = CrashRecord { reason: &reason, execution: None, usage: None, was_stopped: true };
        let text = record.describe(false).expect("a crash");
        assert!(text.contains("was stopped from outside") && !text.contains("did not stop"), "{text}");
    }
}
