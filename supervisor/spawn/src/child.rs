//! A child process of the supervisor that is not in the jail: its pidfd, its end, and reaping it. Knows nothing of its role.

use crate::reactor::WatchedFd;
use std::ffi::OsStr;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use tokio::io::Interest;
use vm_system_sandbox::inspect;
use vm_system_sandbox::pidfd::PidFd;
use vm_system_sandbox::process::{self, ExitStatus};

/// A child process that has not been reaped.
#[derive(Debug)]
pub struct ChildProcess {
    pid: u32,
    pidfd: PidFd,
    end: WatchedFd,
}

impl ChildProcess {
    /// Starts `program arguments…` with these descriptors and no other one. Must be called within a tokio runtime.
    pub(crate) fn start(
        program: &Path,
        arguments: &[&OsStr],
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<Self> {
        let pid = process::spawn(program, arguments, descriptors)?;
        // Our own child, not reaped yet: the pid is still valid.
        let pidfd = PidFd::open(pid)?;
        let end = crate::reactor::watch(pidfd.try_clone()?.into(), Interest::READABLE)?;
        Ok(Self { pid, pidfd, end })
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The first wall of a broker that is missing, seen from outside; `None` also where `/proc` hides the process and its own report
    /// must suffice.
    pub fn missing_wall(&self) -> Option<&'static str> {
        let status = inspect::status(self.pid).ok()?;
        if status.seccomp != 2 {
            Some("seccomp")
        } else if !status.no_new_privs {
            Some("no_new_privs")
        } else if status.capabilities | status.inheritable != 0 {
            Some("capabilities")
        } else {
            None
        }
    }

    /// SIGKILL; no error if the process has exited already.
    pub fn kill(&self) -> io::Result<()> {
        self.pidfd.kill()
    }

    /// Waits for the exit and reaps the process. Must complete once; cancel safe before that.
    pub async fn ended(&mut self) -> io::Result<ExitStatus> {
        // Readable means exited: the wait below does not block.
        let _readable = self.end.readable().await?;
        process::wait_for(self.pid)
    }
}
