//! The HTTP requests of sessions: the egress process, which makes them all, and the exchanges of each session.
//!
//! Callers check the effective policy first; this module knows no policy, no worker and no store. What a worker numbers is looked
//! up among the exchanges of its own session. The egress process reads what servers send: its messages are checked like those of any
//! other process, and one that exits or breaks the protocol is replaced by the next request; those under way fail.
//!
//! - [`Egress`]: finds or starts the process
//! - [`process`]: one process with its channel
//! - [`client`]: the exchanges of one session

mod client;
mod process;

pub(crate) use client::HttpClient;

use crate::recent_failures::RecentFailures;
use crate::shares::{Holder, ShareLimits, Shares};
use process::EgressProcess;
use std::hash::{BuildHasher as _, RandomState};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use vm_system_protocol::limits::{EGRESS_PING_MS, EGRESS_START_MS, HTTP_EXCHANGES_OF_ALL};
use vm_system_protocol::time::Timestamp;
use vm_system_protocol::worker::HostError;
use vm_system_sandbox::namespaces::Ids;

/// Configuration of the egress process.
#[derive(Debug, Clone)]
pub struct EgressConfig {
    /// The binary that becomes the process with the hidden mode `egress`.
    pub program: PathBuf,
    /// The egress process's user, if the supervisor is root.
    pub service_ids: Ids,
    /// The socket at which a service manager starts it; none: the supervisor starts it.
    pub socket: Option<PathBuf>,
    pub start_deadline: Duration,
    /// Interval of the pings while there are exchanges; after two without a message it is replaced.
    pub ping: Duration,
    /// Exchanges of all sessions at a time.
    pub exchanges: ShareLimits,
    /// Where the daemon listens itself.
    pub own_ports: Vec<u16>,
}

impl Default for EgressConfig {
    fn default() -> Self {
        Self {
            program: PathBuf::from(vm_system_sandbox::process::SELF),
            service_ids: vm_system_spawn::SpawnConfig::embedded().service_ids,
            socket: None,
            start_deadline: Duration::from_millis(EGRESS_START_MS),
            ping: Duration::from_millis(EGRESS_PING_MS),
            exchanges: ShareLimits::at_most(HTTP_EXCHANGES_OF_ALL),
            own_ports: Vec::new(),
        }
    }
}

/// The egress process of a supervisor; cheap to clone.
#[derive(Debug, Clone)]
pub struct Egress(Arc<EgressState>);

#[derive(Debug)]
struct EgressState {
    config: EgressConfig,
    /// Held while a process is started.
    current: Mutex<Current>,
    exchanges: Arc<Shares>,
    /// Gives owners the numbers by which they share connections.
    numbers: RandomState,
    live: AtomicUsize,
    last_failure: StdMutex<Option<EgressFailure>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// For reports of health, which are not stored.
fn calendar() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// The last time that a process failed.
#[derive(Debug, Clone)]
struct EgressFailure {
    at: Timestamp,
    why: String,
    /// It could not be started, and no later one could.
    at_start: bool,
}

impl EgressState {
    fn last_failure(&self) -> MutexGuard<'_, Option<EgressFailure>> {
        // No code panics while holding it.
        self.last_failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_failure(&self, why: &str, at_start: bool) {
        *self.last_failure() = Some(EgressFailure { at: calendar(), why: why.to_owned(), at_start });
    }
}

#[derive(Debug, Default)]
struct Current {
    process: Option<Arc<EgressProcess>>,
    failures: RecentFailures,
}

impl Egress {
    /// No process is started before the first request.
    pub fn new(config: EgressConfig) -> Self {
        let exchanges = Shares::new("requests over the network", "http_exchanges", config.exchanges);
        Self(Arc::new(EgressState {
            config,
            current: Mutex::default(),
            exchanges,
            numbers: RandomState::new(),
            live: AtomicUsize::new(0),
            last_failure: StdMutex::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }))
    }

    /// Whether the supervisor is stopping.
    pub(crate) fn is_stopped(&self) -> bool {
        self.0.stop.is_cancelled()
    }

    /// Processes that have been started and not ended.
    pub fn live(&self) -> usize {
        self.0.live.load(Ordering::Relaxed)
    }

    /// Whether it could make requests and how it is started; for all owners, its state and its last failure, too.
    pub(crate) fn describe(&self, all: bool) -> (bool, String) {
        let (is_there, by) = match &self.0.config.socket {
            Some(socket) => {
                let path = socket.display();
                match std::fs::symlink_metadata(socket) {
                    Ok(_) => (true, format!("started by the service manager at {path}")),
                    Err(error) => (
                        false,
                        format!("there is no socket {path} ({error}); enable vm-system-egress.socket"),
                    ),
                }
            }
            None => (true, "started by this daemon on the first request".to_owned()),
        };
        let pid = self.0.current.try_lock().ok().and_then(|current| current.process.as_ref()?.pid());
        let failure = self.0.last_failure().clone();
        let could_start = failure.as_ref().is_none_or(|failure| !failure.at_start);
        if !all {
            return (is_there && could_start, by);
        }
        let failed = failure.map(|EgressFailure { at, why, .. }| format!("failed at {at}: {why}"));
        let state = match (self.live(), pid, failed) {
            (0, _, Some(failed)) => format!("not running, {failed}"),
            (0, _, None) => "not running".to_owned(),
            (_, pid, failed) => {
                let state = pid.map_or_else(|| "running".to_owned(), |pid| format!("pid {pid}"));
                failed.map_or(state.clone(), |failed| format!("{state}, the one before {failed}"))
            }
        };
        (is_there && could_start, format!("{state}; {by}"))
    }

    /// The number under which an owner's requests share connections.
    fn number_of(&self, holder: &Holder) -> u64 {
        self.0.numbers.hash_one(holder.owner())
    }

    /// The process for the next request, which is started if there is none.
    async fn process(&self) -> Result<Arc<EgressProcess>, HostError> {
        let mut current = self.0.current.lock().await;
        if let Some(process) = &current.process {
            if process.is_usable() {
                return Ok(Arc::clone(process));
            }
            if process.has_failed() {
                current.failures.add(Instant::now());
            }
            current.process = None;
        }
        if self.0.stop.is_cancelled() {
            return Err(unavailable("the supervisor is stopping"));
        }
        if current.failures.are_too_many() {
            return Err(unavailable("the egress process failed 5 times within a minute; try again later"));
        }
        match EgressProcess::start(&self.0).await {
            Ok(process) => {
                tracing::debug!(pid = process.pid(), "egress process started");
                if let Some(failure) = &mut *self.0.last_failure() {
                    failure.at_start = false;
                }
                Ok(Arc::clone(current.process.insert(process)))
            }
            Err(why) => {
                tracing::warn!(why, "the egress process is not available");
                self.0.note_failure(&why, true);
                current.failures.add(Instant::now());
                Err(unavailable(&format!("the egress process is not available: {why}")))
            }
        }
    }

    /// Ends the process and refuses new requests; returns when it has exited or at the deadline.
    pub async fn shutdown(&self, deadline: Duration) {
        self.0.stop.cancel();
        self.0.exchanges.close();
        self.0.tasks.close();
        if tokio::time::timeout(deadline, self.0.tasks.wait()).await.is_err() {
            tracing::warn!("the egress process did not end in time");
        }
    }
}

fn unavailable(why: &str) -> HostError {
    HostError { code: "ERR_NET_UNAVAILABLE".to_owned(), message: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::{Egress, EgressConfig};
    use std::os::unix::net::UnixListener;

    #[tokio::test]
    async fn a_process_that_could_not_be_started_is_described_with_the_reason_and_the_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("egress.sock");
        let listener = UnixListener::bind(&socket).expect("a socket");
        let egress = Egress::new(EgressConfig { socket: Some(socket), ..EgressConfig::default() });
        let (is_there, text) = egress.describe(true);
        assert!(is_there && text.starts_with("not running; "), "{text}");
        let ends = std::thread::spawn(move || drop(listener.accept().expect("a connection")));
        egress.process().await.expect_err("it ended before it was ready");
        ends.join().expect("no panic");
        egress.0.tasks.close();
        egress.0.tasks.wait().await;
        let (is_there, text) = egress.describe(true);
        assert!(!is_there && text.starts_with("not running, failed at 20"), "{text}");
        assert!(text.contains("Z: it ended; started by the service manager"), "{text}");
        let (is_there, text) = egress.describe(false);
        assert!(!is_there && text.starts_with("started by the service manager at /"), "{text}");
    }
}
