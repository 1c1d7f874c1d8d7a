//! Child processes that try what must be refused and report by their wait status. Run by the keeper inside the finished jail,
//! before it reports success: this detects a kernel or container that silently ignores a wall.

use crate::process::{self, ExitStatus, Fork};
use crate::seccomp::{self, bpf};
use crate::step::{AtStep as _, JailStep, StepError};
use crate::sys::{self, Call};
use std::io::{self, Read as _, Write as _};

/// One attempt, made by a separate child.
#[derive(Debug, Clone, Copy)]
pub struct Probe {
    /// The act that the child tries.
    pub name: &'static str,
    attempt: fn() -> io::Result<i64>,
}

const fn probe(name: &'static str, attempt: fn() -> io::Result<i64>) -> Probe {
    Probe { name, attempt }
}

/// Calls that the worker's filter must kill.
pub const FILTERED: &[Probe] = &[
    probe("getpid", || Call::GETPID.make()),
    probe("openat", || Call::OPENAT.make()),
    probe("socket", || Call::SOCKET.make()),
    probe("execve", || Call::EXECVE.make()),
    probe("clone of a child", || process::clone_child().map(|_| 0)),
    probe("executable memory", || Call::EXECUTABLE_PAGE.make()),
];

/// Calls that must fail without any filter, because of the layers below it.
pub const BENEATH: &[Probe] = &[
    probe("a nested user namespace", || Call::NEW_USER_NAMESPACE.make()),
    probe("making a directory", || {
        nix::unistd::mkdir("/probe", nix::sys::stat::Mode::S_IRWXU)?;
        Ok(0)
    }),
    probe("the host's /proc", || std::fs::metadata("/proc/self/status").map(|_| 0)),
    probe("listing the root", || match std::fs::read_dir("/") {
        Ok(mut entries) => entries.next().map(|_| 0).ok_or_else(|| io::ErrorKind::NotFound.into()),
        Err(error) => Err(error),
    }),
    probe("setuid", || Call::BECOME_UID_1.make()),
    probe("setting the host name", || sys::set_host_name(b"x")),
];

/// A wall that did not hold.
#[derive(Debug, thiserror::Error)]
pub enum SelfTestError {
    /// The attempt ended in another way than expected.
    #[error("{attempt} was not refused: the child's exit status is {ending:?}")]
    NotRefused {
        /// The name of the probe.
        attempt: &'static str,
        /// The child's wait status.
        ending: ExitStatus,
    },
    /// The child could not be started.
    #[error("the self-test could not run: {0}")]
    Io(#[from] io::Error),
}

const REFUSED: i32 = 7;
const ALLOWED: i32 = 8;
const NO_FILTER: i32 = 9;
const FIRST_ALLOWED: i32 = 10;

/// Under `table`, the filter must kill the child of each attempt.
pub fn filter_kills(table: &[bpf::FilterRow], probes: &[Probe]) -> Result<(), SelfTestError> {
    for probe in probes {
        let ending = in_child(|| {
            if seccomp::install(table).is_err() {
                return NO_FILTER;
            }
            let _ = (probe.attempt)();
            ALLOWED
        })?;
        if ending != ExitStatus::Signaled(seccomp::KILLED_BY) {
            return Err(SelfTestError::NotRefused { attempt: probe.name, ending });
        }
    }
    Ok(())
}

/// Each attempt under the zygotes' program must fail with ENOSYS while there is no listener.
pub fn filter_holds_unattended(table: &[bpf::FilterRow], probes: &[Probe]) -> Result<(), SelfTestError> {
    let ending = in_child(|| {
        if seccomp::install_unattended(table).is_err() {
            return NO_FILTER;
        }
        let refused =
            |probe: &Probe| (probe.attempt)().is_err_and(|error| error.raw_os_error() == Some(libc::ENOSYS));
        let allowed = probes.iter().position(|probe| !refused(probe));
        allowed.map_or(REFUSED, |at| FIRST_ALLOWED + at as i32)
    })?;
    all_refused(ending, probes)
}

/// Each attempt must fail with an error, without a filter. One child makes all attempts and reports the first that succeeded.
pub fn layers_refuse(probes: &[Probe]) -> Result<(), SelfTestError> {
    let ending = in_child(|| {
        let allowed = probes.iter().position(|probe| (probe.attempt)().is_ok());
        allowed.map_or(REFUSED, |at| FIRST_ALLOWED + at as i32)
    })?;
    all_refused(ending, probes)
}

fn all_refused(ending: ExitStatus, probes: &[Probe]) -> Result<(), SelfTestError> {
    match ending {
        ExitStatus::Exited(REFUSED) => Ok(()),
        ExitStatus::Exited(code) => {
            let probe = usize::try_from(code - FIRST_ALLOWED).ok().and_then(|at| probes.get(at));
            Err(SelfTestError::NotRefused { attempt: probe.map_or("an attempt", |probe| probe.name), ending })
        }
        ExitStatus::Signaled(_) => Err(SelfTestError::NotRefused { attempt: "an attempt", ending }),
    }
}

/// Runs the steps of a jail in a child, which reports a failure as step and errno. A child that fails otherwise has failed at `step`.
pub(crate) fn steps_in_child(
    step: JailStep,
    steps: impl FnOnce() -> Result<(), StepError>,
) -> Result<(), StepError> {
    let (mut reader, mut writer) = io::pipe().at_step(step)?;
    let ended = in_child(|| match steps() {
        Ok(()) => 0,
        Err(error) => {
            let mut report = [0; 5];
            report[0] = error.step as u8;
            report[1..].copy_from_slice(&error.errno.to_le_bytes());
            i32::from(writer.write_all(&report).is_err()) + 1
        }
    });
    drop(writer);
    match ended.at_step(step)? {
        ExitStatus::Exited(0) => Ok(()),
        ExitStatus::Exited(1) => {
            let mut report = [0; 5];
            let _ = reader.read_exact(&mut report);
            let [number, errno @ ..] = report;
            let step = JailStep::from_number(number).unwrap_or(step);
            Err(StepError { step, errno: i32::from_le_bytes(errno) })
        }
        _ => Err(StepError { step, errno: 0 }),
    }
}

/// The wait status of a child that does `work` and exits with its result (101 after a panic, which must not unwind into the
/// parent's code). For processes that never had a second thread.
pub fn in_child(work: impl FnOnce() -> i32) -> io::Result<ExitStatus> {
    match process::fork()? {
        Fork::Child => {
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            process::exit_now(result.unwrap_or(101))
        }
        Fork::Parent(pid) => process::wait_for(pid),
    }
}
