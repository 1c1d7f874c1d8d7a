//! Processes by descriptor: a pid can be reused by another process, a pidfd always means the same one.

use crate::process::ExitStatus;
use crate::sys;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

const INFO_PID: u64 = 1;
const INFO_EXIT: u64 = 1 << 3;

/// A process, running or exited.
#[derive(Debug)]
pub struct PidFd(OwnedFd);

impl From<OwnedFd> for PidFd {
    fn from(fd: OwnedFd) -> Self {
        Self(fd)
    }
}

impl From<PidFd> for OwnedFd {
    fn from(pidfd: PidFd) -> Self {
        pidfd.0
    }
}

impl AsFd for PidFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for PidFd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// The pid of a process in our namespace and in the process's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pids {
    /// In our namespace.
    pub here: u32,
    /// In the process's innermost namespace.
    pub inner: u32,
}

impl PidFd {
    /// Opens a process of our pid namespace; the pid of an own unreaped child cannot mean another process.
    pub fn open(pid: u32) -> io::Result<Self> {
        sys::pidfd_open(pid).map(Self)
    }

    /// A second descriptor of the same process.
    pub fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// The pid in our namespace; an error (ESRCH) once the process was reaped.
    pub fn pid(&self) -> io::Result<u32> {
        match sys::pidfd_info(self.as_fd(), INFO_PID) {
            Ok(info) => Ok(info.tgid),
            // Kernels before 6.13.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Err(error),
            Err(_) => self.pids().map(|pids| pids.here),
        }
    }

    /// The pids here and in the process's own namespace, from `/proc/self/fdinfo`.
    pub fn pids(&self) -> io::Result<Pids> {
        let text = crate::inspect::read_whole(&format!("/proc/self/fdinfo/{}", self.as_raw_fd()))?;
        parse_pids(&text).ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))
    }

    /// Sends a signal; ESRCH once the process has ended.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        sys::pidfd_send_signal(self.as_fd(), signal)
    }

    /// SIGKILL; a process that has already ended is fine.
    pub fn kill(&self) -> io::Result<()> {
        match self.signal(libc::SIGKILL) {
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            result => result,
        }
    }

    /// Whether the process exists and can be signalled.
    pub fn is_alive(&self) -> bool {
        self.signal(0).is_ok()
    }

    /// The wait status; `None` until the process was reaped, or if the kernel (< 6.15) does not report it to a non-parent.
    pub fn ending(&self) -> Option<ExitStatus> {
        let info = sys::pidfd_info(self.as_fd(), INFO_EXIT).ok()?;
        (info.mask & INFO_EXIT != 0).then(|| ExitStatus::from_wait_status(info.exit_code))
    }

    /// CPU time used so far, all threads. `pid` is the process's pid here.
    pub fn cpu_time(&self, pid: u32) -> io::Result<Duration> {
        let time = sys::cpu_time(pid)?;
        // The clock is identified by pid. The process still exists, so that the pid cannot have meant another one.
        self.signal(0)?;
        Ok(time)
    }
}

fn parse_pids(fdinfo: &str) -> Option<Pids> {
    let numbers = fdinfo
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?
        .split_ascii_whitespace()
        .map(|number| number.parse::<u32>().ok().filter(|pid| *pid > 0))
        .collect::<Option<Vec<_>>>()?;
    Some(Pids { here: *numbers.first()?, inner: *numbers.last()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fdinfo_has_both_pids() {
        let text = "pos:\t0\nflags:\t02000002\nmnt_id:\t15\nino:\t3\nPid:\t4711\nNSpid:\t4711\t7\n";
        assert_eq!(parse_pids(text), Some(Pids { here: 4711, inner: 7 }));
        assert_eq!(parse_pids("Pid:\t-1\nNSpid:\t-1\n"), None);
        assert_eq!(parse_pids("Pid:\t0\nNSpid:\t0\n"), None);
        assert_eq!(parse_pids(""), None);
    }

    #[test]
    fn an_exited_child_is_detected_and_can_be_killed_again_without_effect() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep");
        let pidfd = PidFd::open(child.id()).expect("pidfd");
        assert!(pidfd.is_alive());
        assert_eq!(pidfd.pid().expect("pid"), child.id());
        assert_eq!(pidfd.pids().expect("pids").here, child.id());
        pidfd.cpu_time(child.id()).expect("cpu time");
        pidfd.kill().expect("kill");
        child.wait().expect("reap");
        assert!(!pidfd.is_alive());
        pidfd.kill().expect("killing an exited process is no error");
        assert!(pidfd.cpu_time(child.id()).is_err());
        match pidfd.ending() {
            Some(ending) => assert_eq!(ending, ExitStatus::Signaled(libc::SIGKILL)),
            None => vm_system_testkit::skip("pidfd-exit-code", "exit codes by pidfd need kernel >= 6.15"),
        }
    }
}
