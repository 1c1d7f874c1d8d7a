//! Brokers: jailed processes of sessions that use host modules, one for files and one for databases, started on first use and ended
//! with the session. Files are used with the rights of the worktree, databases with those of the service user.
//!
//! Callers check the effective policy first; this module knows no policy, no worker and no store. Every
//! wait has a deadline, every queue a bound, and a broker's messages are checked like those of any other process: a broker
//! that is late, exits or breaks the protocol costs its caller an error, is killed, and is replaced on the next call.
//!
//! - [`Brokers`]: the interface for callers; finds or starts the owner task
//! - [`owner`]: one task per session and kind of broker: owns the process, serves one call after the other
//! - [`live`]: one broker process with its channel: start, exchange, end
//! - [`databases`]: what a broker for databases may add to its workspace
//! - [`channel`]: frames on the socket

mod channel;
mod databases;
mod live;
mod owner;

use crate::shares::{Holder, ShareLimits, Shares};
use crate::workspaces::{WorkspaceKey, Workspaces};
use crate::worktree::Worktree;
use owner::{BrokerJob, BrokerTask, Work};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use vm_system_protocol::broker::{BrokerCall, BrokerReply};
use vm_system_protocol::ids::{ExecutionId, SessionId};
use vm_system_protocol::limits;
use vm_system_protocol::worker::HostError;
use vm_system_sandbox::namespaces::Ids;
use vm_system_spawn::OwnerGroups;

/// Configuration of brokers.
#[derive(Debug, Clone)]
pub struct BrokerConfig {
    /// The binary that becomes the broker with the hidden mode `broker`.
    pub program: PathBuf,
    /// The user of brokers for databases, if the supervisor is root.
    pub service_ids: Ids,
    /// Longest start of a broker.
    pub start_deadline: Duration,
    /// Longest call; the wait for a slot among all sessions is not included.
    pub call_deadline: Duration,
    /// A broker without a call for this long is ended; the next call starts another.
    pub idle: Duration,
    /// Calls of all sessions at a time.
    pub calls: ShareLimits,
    /// The groups of owners, which brokers and commands are moved into.
    pub groups: Option<OwnerGroups>,
    /// Files agents are units of a service manager: their processes stay there, within the limits of these units.
    pub agents_have_units: bool,
}

impl Default for BrokerConfig {
    fn default() -> Self {
        Self {
            program: PathBuf::from(vm_system_sandbox::process::SELF),
            service_ids: vm_system_spawn::SpawnConfig::embedded().service_ids,
            start_deadline: Duration::from_millis(limits::BROKER_START_MS),
            call_deadline: Duration::from_millis(limits::BROKER_CALL_MS),
            idle: Duration::from_millis(limits::BROKER_IDLE_MS),
            calls: ShareLimits::at_most(limits::BROKER_CALLS),
            groups: None,
            agents_have_units: false,
        }
    }
}

/// One call with everything that a broker needs for it.
#[derive(Debug)]
pub struct AllowedCall {
    /// The execution that makes the call.
    pub execution: ExecutionId,
    /// The call, as the policy permits it.
    pub request: BrokerCall,
    /// The execution's policy permits changing files; the walls of the file broker permit no more.
    pub write: bool,
    /// The files, if a broker has to be started.
    pub worktree: Worktree,
    /// Where the databases of workspaces are.
    pub workspaces: Workspaces,
    /// The workspace with the databases, if a broker has to be started.
    pub workspace: WorkspaceKey,
    /// Has the share of the call.
    pub holder: Holder,
}

/// The calls that a broker serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum BrokerKind {
    /// Files and commands.
    Files,
    Databases,
}

impl BrokerKind {
    fn kind_of(request: &BrokerCall) -> Self {
        match request {
            BrokerCall::Fs { .. } | BrokerCall::Exec { .. } => Self::Files,
            BrokerCall::Database { .. } => Self::Databases,
        }
    }
}

/// Why a call has no reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallFailure {
    /// An error of the call: there is no such file, the file may not be changed, …
    Refused(HostError),
    /// No reply: the broker exited, was late, could not be spawned, is overloaded, or is being ended. The call may have been
    /// carried out.
    Unanswered(HostError),
}

impl From<CallFailure> for HostError {
    fn from(failure: CallFailure) -> Self {
        match failure {
            CallFailure::Refused(error) | CallFailure::Unanswered(error) => error,
        }
    }
}

/// All brokers of a supervisor; cheap to clone.
#[derive(Debug, Clone)]
pub struct Brokers {
    shared: Arc<BrokersState>,
}

/// State that the owner tasks share with [`Brokers`].
#[derive(Debug)]
struct BrokersState {
    config: BrokerConfig,
    sessions: Mutex<HashMap<(SessionId, BrokerKind), Entry>>,
    /// Bounds the replies in memory.
    calls: Arc<Shares>,
    live: AtomicUsize,
    tasks: TaskTracker,
    stopped: CancellationToken,
}

#[derive(Debug)]
struct Entry {
    jobs: mpsc::Sender<BrokerJob>,
    stop: CancellationToken,
}

impl Brokers {
    /// No process is started before the first call. Must be used inside a tokio runtime.
    pub fn new(config: BrokerConfig) -> Self {
        let calls = Shares::new("calls of host modules", "host_calls", config.calls);
        let shared = BrokersState {
            config,
            sessions: Mutex::default(),
            calls,
            live: AtomicUsize::new(0),
            tasks: TaskTracker::new(),
            stopped: CancellationToken::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Carries out one call of a session whose effective policy allows it. Dropping the future gives up the reply, not
    /// the broker.
    pub async fn call(&self, session: SessionId, call: AllowedCall) -> Result<BrokerReply, CallFailure> {
        let (responder, reply) = oneshot::channel();
        let kind = BrokerKind::kind_of(&call.request);
        let work = BrokerJob::Call(Box::new(Work { call, responder }));
        self.shared.enqueue((session, kind), work).map_err(CallFailure::Unanswered)?;
        reply.await.unwrap_or_else(|_| Err(CallFailure::Unanswered(broker_error("the session has ended"))))
    }

    /// Whether calls are refused because the supervisor is stopping.
    pub fn is_stopped(&self) -> bool {
        self.shared.stopped.is_cancelled()
    }

    /// An execution of the session is over: its databases close what the execution left open. Does not wait; a broker that does
    /// not get the message closes it at the next call.
    pub fn execution_ended(&self, session: SessionId) {
        if let Some(entry) = self.shared.sessions().get(&(session, BrokerKind::Databases)) {
            let _ = entry.jobs.try_send(BrokerJob::ExecutionEnded);
        }
    }

    /// The session has ended: its brokers are killed. Idempotent; does not wait.
    pub fn end(&self, session: SessionId) {
        let mut sessions = self.shared.sessions();
        for kind in [BrokerKind::Files, BrokerKind::Databases] {
            if let Some(entry) = sessions.remove(&(session, kind)) {
                entry.stop.cancel();
            }
        }
    }

    /// Ends all brokers and refuses new calls; returns when all have exited or at the deadline.
    pub async fn shutdown(&self, deadline: Duration) {
        self.shared.stopped.cancel();
        self.shared.sessions().clear();
        self.shared.tasks.close();
        if tokio::time::timeout(deadline, self.shared.tasks.wait()).await.is_err() {
            tracing::warn!(live = self.live(), "brokers did not end in time");
        }
    }

    /// Broker processes that have been started and not reaped.
    pub fn live(&self) -> usize {
        self.shared.live.load(Ordering::Relaxed)
    }
}

impl BrokersState {
    fn sessions(&self) -> MutexGuard<'_, HashMap<(SessionId, BrokerKind), Entry>> {
        // No holder of the lock can leave the map half changed.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a job to the owner task, which is started if necessary. All of it under the lock, so that an owner task cannot end
    /// between the look-up and the request.
    fn enqueue(self: &Arc<Self>, broker: (SessionId, BrokerKind), job: BrokerJob) -> Result<(), HostError> {
        let mut sessions = self.sessions();
        if self.stopped.is_cancelled() {
            return Err(broker_error("the supervisor is stopping"));
        }
        let entry = sessions.entry(broker).or_insert_with(|| {
            let (jobs, queue) = mpsc::channel(limits::BROKER_QUEUE);
            let stop = self.stopped.child_token();
            self.tasks.spawn(BrokerTask::new(Arc::clone(self), broker, stop.clone()).run(queue));
            Entry { jobs, stop }
        });
        entry.jobs.try_send(job).map_err(|refused| match refused {
            mpsc::error::TrySendError::Full(_) => HostError {
                code: "EAGAIN".to_owned(),
                message: "EAGAIN: too many calls of this session are under way".to_owned(),
            },
            mpsc::error::TrySendError::Closed(_) => broker_error("the session has ended"),
        })
    }

    /// Removes an idle owner task: true if its queue is empty and it is removed.
    fn retire(&self, broker: (SessionId, BrokerKind), queue: &mpsc::Receiver<BrokerJob>) -> bool {
        let mut sessions = self.sessions();
        queue.is_empty() && sessions.remove(&broker).is_some()
    }
}

/// A failure of the broker itself, not of the file system. Without host paths.
fn broker_error(why: &str) -> HostError {
    HostError { code: "EBROKER".to_owned(), message: format!("EBROKER: {why}") }
}
