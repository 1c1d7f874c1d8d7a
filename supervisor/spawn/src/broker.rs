//! Starts and watches one broker process. Knows nothing of requests.

use crate::reactor::WatchedFd;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use tokio::io::Interest;
use vm_system_policy::BrokerAccess;
use vm_system_sandbox::identity::Identity;
use vm_system_sandbox::inspect;
use vm_system_sandbox::pidfd::PidFd;
use vm_system_sandbox::process::{self, ExitStatus};

/// The hidden mode of a broker.
const MODE: &str = "broker";

/// The hidden mode for one command.
const COMMAND_MODE: &str = "broker-exec";

/// The files that a broker process may use.
#[derive(Debug, Clone, Copy)]
pub struct BrokerFiles<'a> {
    /// The worktree's folder.
    pub worktree: BorrowedFd<'a>,
    /// The user that the process becomes; `None`: the supervisor's user.
    pub user: Option<&'a Identity>,
    /// Folders of other mounts beneath the worktree may be entered.
    pub cross_mounts: bool,
}

impl BrokerFiles<'_> {
    fn user_argument(&self) -> Option<OsString> {
        self.user.map(|user| OsString::from(format!("user={user}")))
    }
}

/// A broker process that has not been reaped.
#[derive(Debug)]
pub struct BrokerProcess {
    pid: u32,
    pidfd: PidFd,
    end: WatchedFd,
}

impl BrokerProcess {
    /// Starts `program broker` with its end of the channel, the worktree's handle, and the handle of the workspace's databases
    /// if there is one; no other descriptor. The arguments name the access and the user that it becomes.
    pub fn start(
        program: &Path,
        access: BrokerAccess,
        channel: BorrowedFd<'_>,
        files: BrokerFiles<'_>,
        workspace: Option<BorrowedFd<'_>>,
    ) -> io::Result<Self> {
        let user = files.user_argument();
        let mut arguments = vec![OsStr::new(MODE)];
        let mut descriptors = vec![channel, files.worktree];
        if access.write {
            arguments.push(OsStr::new("write"));
        }
        if access.database {
            arguments.push(OsStr::new("database"));
            descriptors.extend(workspace);
        }
        if files.cross_mounts {
            arguments.push(OsStr::new("cross-mounts"));
        }
        arguments.extend(user.as_deref());
        Self::spawned(process::spawn(program, &arguments, &descriptors)?)
    }

    /// Starts `program broker-exec`: the process of one command.
    pub fn start_command(
        program: &Path,
        channel: BorrowedFd<'_>,
        files: BrokerFiles<'_>,
    ) -> io::Result<Self> {
        let user = files.user_argument();
        let mut arguments = vec![OsStr::new(COMMAND_MODE)];
        arguments.extend(user.as_deref());
        Self::spawned(process::spawn(program, &arguments, &[channel, files.worktree])?)
    }

    fn spawned(pid: u32) -> io::Result<Self> {
        // Our own child, not reaped yet: the pid is still valid.
        let pidfd = PidFd::open(pid)?;
        let end = crate::reactor::watch(pidfd.try_clone()?.into(), Interest::READABLE)?;
        Ok(Self { pid, pidfd, end })
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Another handle of the process.
    pub fn process(&self) -> io::Result<PidFd> {
        self.pidfd.try_clone()
    }

    /// The first wall that is missing, seen from outside; `None` also where `/proc` hides the process and its own report must
    /// suffice.
    pub fn missing_wall(&self) -> Option<&'static str> {
        let status = inspect::status(self.pid).ok()?;
        if status.seccomp != 2 {
            Some("seccomp")
        } else if !status.no_new_privs {
            Some("no_new_privs")
        } else if status.capabilities != 0 {
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
