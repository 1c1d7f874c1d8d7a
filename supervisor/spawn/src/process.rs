//! A worker's process: interrupting, ending and measuring it from outside. Its pid comes from the kernel, and only its
//! pidfd is ever signalled.

use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::sync::watch::Receiver;
use tokio::time::timeout;
use vm_system_protocol::ids::SessionId;
use vm_system_sandbox::pidfd::PidFd;
use vm_system_sandbox::process::ExitStatus;
use vm_system_sandbox::{inspect, interrupt, rlimit};

pub use vm_system_sandbox::inspect::Memory;

use super::control::Control;
use crate::reactor::watch;

/// After a worker's end the keeper tells its wait status within this time, or never.
const STATUS_PATIENCE: Duration = Duration::from_secs(2);

/// How a worker ended, by the kernel's word. What it means is for those to say who know what was done to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerDeath {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal: SIGSYS is seccomp, SIGXCPU the CPU limit.
    Signaled(i32),
    /// With its keeper.
    KeeperLost,
    /// It is dead, and nobody can say how.
    Unknown,
}

impl From<ExitStatus> for WorkerDeath {
    fn from(ending: ExitStatus) -> Self {
        match ending {
            ExitStatus::Exited(code) => Self::Exited(code),
            ExitStatus::Signaled(signal) => Self::Signaled(signal),
        }
    }
}

/// A worker's process. Cheap to clone.
#[derive(Debug, Clone)]
pub struct WorkerProcess(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    session: SessionId,
    pid: u32,
    pidfd: Arc<PidFd>,
    death: Receiver<Option<WorkerDeath>>,
    control: Arc<Control>,
}

impl WorkerProcess {
    pub(super) fn new(
        session: SessionId,
        pid: u32,
        pidfd: Arc<PidFd>,
        death: Receiver<Option<WorkerDeath>>,
        control: Arc<Control>,
    ) -> Self {
        Self(Arc::new(Inner { session, pid, pidfd, death, control }))
    }

    /// Another handle of the process itself.
    pub(super) fn pidfd(&self) -> &Arc<PidFd> {
        &self.0.pidfd
    }

    /// Under which name it was born.
    pub fn session(&self) -> SessionId {
        self.0.session
    }

    /// Its pid on the host, from the kernel.
    pub fn pid(&self) -> u32 {
        self.0.pid
    }

    /// Stops the running execution at the engine's next look (tens of microseconds). ESRCH once it is dead.
    pub fn interrupt(&self) -> io::Result<()> {
        self.0.pidfd.signal(interrupt::SIGNAL)
    }

    /// Sends a signal. ESRCH once it is dead.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        self.0.pidfd.signal(signal)
    }

    /// SIGKILL; that it is already dead is fine.
    pub fn kill(&self) -> io::Result<()> {
        self.0.pidfd.kill()
    }

    /// Waits until it is dead; any number may wait.
    pub async fn exited(&self) -> WorkerDeath {
        let mut death = self.0.death.clone();
        let told = async {
            match death.wait_for(Option::is_some).await {
                Ok(death) => death.unwrap_or(WorkerDeath::Unknown),
                Err(_) => WorkerDeath::KeeperLost,
            }
        };
        tokio::select! {
            biased;
            death = told => return death,
            // Dead by the kernel's word, but the keeper may be slow, stopped or dead.
            () = self.is_dead() => {}
        }
        let mut death = self.0.death.clone();
        match timeout(STATUS_PATIENCE, death.wait_for(Option::is_some)).await {
            Ok(Ok(death)) => death.unwrap_or(WorkerDeath::Unknown),
            Ok(Err(_)) | Err(_) => self.0.pidfd.ending().map_or(WorkerDeath::Unknown, WorkerDeath::from),
        }
    }

    /// Resolves when the pidfd says so; never, if it cannot be watched.
    async fn is_dead(&self) {
        let watched = self.0.pidfd.try_clone().and_then(|pidfd| watch(pidfd.into(), Interest::READABLE));
        let Ok(pidfd) = watched else {
            return std::future::pending().await;
        };
        if pidfd.readable().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// CPU time it has used since its birth (0.2 µs to ask).
    pub fn cpu_time(&self) -> io::Result<Duration> {
        self.0.pidfd.cpu_time(self.0.pid)
    }

    /// Moves the hard stop of its total CPU time (whole seconds, rounded up, one more for the polite limit).
    pub fn allow_cpu(&self, total: Duration) -> io::Result<()> {
        rlimit::limit_cpu(self.0.pid, total)?;
        self.0.pidfd.signal(0)
    }

    /// Its memory now (26 µs to ask when it is idle).
    pub fn memory(&self) -> io::Result<Memory> {
        inspect::memory(&self.0.pidfd)
    }

    /// Its end is recorded: the keeper lets go of its channel and wait status. To be called once for every worker,
    /// else the keeper's tables grow.
    pub fn forget(&self) {
        self.0.control.forget(self.0.session);
    }
}
