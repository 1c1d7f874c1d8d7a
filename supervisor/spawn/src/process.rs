//! A worker's process: interrupting, ending and measuring it from outside. Its pid comes from the kernel, and only its
//! pidfd is ever signalled.

use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch::Receiver;
use tokio::time::timeout;
use vm_system_protocol::ids::SessionId;
use vm_system_protocol::keeper::ProcessUsage;
use vm_system_protocol::reason::WorkerExitStatus;
use vm_system_sandbox::pidfd::PidFd;
use vm_system_sandbox::process::ExitStatus;
use vm_system_sandbox::{inspect, interrupt, rlimit};

pub use vm_system_sandbox::inspect::Memory;

use super::control::Control;
use super::groups::OwnerGroup;
use crate::reactor::exit_of;

/// Longest wait for the keeper's report of a wait status after a worker's exit.
const STATUS_TIMEOUT: Duration = Duration::from_secs(2);

/// The keeper's report of an exit.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReportedExit {
    pub(super) exit: WorkerExitStatus,
    pub(super) usage: Option<ProcessUsage>,
}

/// The exit of a process of which nothing else is known.
pub(super) const fn exit_status(ending: ExitStatus) -> WorkerExitStatus {
    match ending {
        ExitStatus::Exited(code) => WorkerExitStatus::Exited(code),
        ExitStatus::Signaled(signal) => WorkerExitStatus::Signaled(signal),
    }
}

/// A worker's process. Cheap to clone.
#[derive(Debug, Clone)]
pub struct WorkerProcess(Arc<WorkerProcessState>);

#[derive(Debug)]
struct WorkerProcessState {
    session: SessionId,
    pid: u32,
    pidfd: Arc<PidFd>,
    exit: Receiver<Option<ReportedExit>>,
    control: Arc<Control>,
    /// The owner's group, which stays while it is used.
    group: Option<Arc<OwnerGroup>>,
}

impl WorkerProcess {
    pub(super) fn new(
        session: SessionId,
        pid: u32,
        pidfd: Arc<PidFd>,
        exit: Receiver<Option<ReportedExit>>,
        control: Arc<Control>,
        group: Option<Arc<OwnerGroup>>,
    ) -> Self {
        Self(Arc::new(WorkerProcessState { session, pid, pidfd, exit, control, group }))
    }

    /// Another handle of the process itself.
    pub(super) fn pidfd(&self) -> &Arc<PidFd> {
        &self.0.pidfd
    }

    /// The group of its owner.
    pub(super) fn group(&self) -> Option<&Arc<OwnerGroup>> {
        self.0.group.as_ref()
    }

    /// The session that it was started for.
    pub fn session(&self) -> SessionId {
        self.0.session
    }

    /// The worker's pid on the host, from the kernel.
    pub fn pid(&self) -> u32 {
        self.0.pid
    }

    /// Stops the running execution at the engine's next poll (tens of microseconds). ESRCH once it has exited.
    pub fn interrupt(&self) -> io::Result<()> {
        self.0.pidfd.signal(interrupt::SIGNAL)
    }

    /// Sends a signal. ESRCH once it has exited.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        self.0.pidfd.signal(signal)
    }

    /// SIGKILL; no error if it has exited already.
    pub fn kill(&self) -> io::Result<()> {
        self.0.pidfd.kill()
    }

    /// Kills a worker that becomes no session's: the keeper holds its channel, so that it would not exit by itself.
    pub fn end(&self) {
        // The kill fails if it has exited already.
        let _ = self.kill();
        self.forget();
    }

    /// Waits for its exit; any number of tasks may wait.
    pub async fn exited(&self) -> WorkerExitStatus {
        let mut exit = self.0.exit.clone();
        let reported = async {
            match exit.wait_for(Option::is_some).await {
                Ok(report) => report.map_or(WorkerExitStatus::Unknown, |report| report.exit),
                Err(_) => WorkerExitStatus::KeeperLost,
            }
        };
        tokio::select! {
            biased;
            exit = reported => return exit,
            // The pidfd reports the exit, but the keeper may be slow, stopped or may have exited.
            () = self.ended() => {}
        }
        let mut exit = self.0.exit.clone();
        match timeout(STATUS_TIMEOUT, exit.wait_for(Option::is_some)).await {
            Ok(Ok(report)) => report.map_or(WorkerExitStatus::Unknown, |report| report.exit),
            Ok(Err(_)) | Err(_) => self.0.pidfd.ending().map_or(WorkerExitStatus::Unknown, exit_status),
        }
    }

    /// The resources that it used, once its exit was reported by its keeper.
    pub fn usage(&self) -> Option<ProcessUsage> {
        self.0.exit.borrow().and_then(|report| report.usage)
    }

    /// Waits for its end, before its keeper has reported how it exited; for ever, if its pidfd cannot be watched.
    pub async fn ended(&self) {
        if exit_of(&self.0.pidfd).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// CPU time it has used since its start (a query takes 0.2 µs).
    pub fn cpu_time(&self) -> io::Result<Duration> {
        self.0.pidfd.cpu_time(self.0.pid)
    }

    /// Sets the hard limit of its total CPU time (whole seconds, rounded up, one more for the soft limit).
    pub fn allow_cpu(&self, total: Duration) -> io::Result<()> {
        rlimit::limit_cpu(self.0.pid, total)?;
        self.0.pidfd.signal(0)
    }

    /// The worker's memory now (a query takes 26 µs when it is idle).
    pub fn memory(&self) -> io::Result<Memory> {
        inspect::memory(&self.0.pidfd)
    }

    /// Whether it is stopped (SIGSTOP, a debugger).
    pub fn is_stopped(&self) -> io::Result<bool> {
        inspect::is_stopped(&self.0.pidfd)
    }

    /// The exit is recorded: the keeper drops the worker's channel and wait status. To be called once for every worker,
    /// otherwise the keeper's tables grow.
    pub fn forget(&self) {
        self.0.control.forget(self.0.session);
    }
}
