//! Files agents: one process for each user whose worktrees a supervisor started as root uses, with this user's rights. Started on
//! first need, ended when idle.
//!
//! An agent is its user's process. It may exit, stop or send anything at any time: then its callers get an error, it is killed, and
//! the next call starts another one, at most [`FAILURES`] times within [`FAILURE_WINDOW`]. Nothing that an agent sends is used beyond
//! its own user's calls; no descriptor is received from it, and no process is signalled because of it. Users do not wait for each
//! other: each has an agent and a lock of its own.
//!
//! - [`FilesAgents`]: the agents of all users
//! - [`live`]: one agent with its calls

mod live;

use live::{AgentEnd, FilesAgent};
pub(crate) use live::{FilesChild, OpenFolder};
use nix::errno::Errno;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use vm_system_protocol::limits;

/// An agent that failed this often …
const FAILURES: usize = 5;
/// … within this time is not started again before the oldest failure is past it.
const FAILURE_WINDOW: Duration = Duration::from_mins(1);
/// Agents that are started for one call if idle ones end before they receive it.
const RESTARTS: u32 = 3;
/// Users above which those without an agent are forgotten.
const USERS: usize = 4_096;

/// Configuration of files agents.
#[derive(Debug, Clone)]
pub struct FilesAgentConfig {
    /// The binary that becomes the agent with the hidden mode `files-agent`.
    pub program: PathBuf,
    /// Longest start.
    pub start_deadline: Duration,
    /// An agent with a call that takes longer must respond to a ping …
    pub late: Duration,
    /// … within this time.
    pub ping_deadline: Duration,
    /// An agent without open worktrees for this long is ended.
    pub idle: Duration,
    /// Agents at a time.
    pub most: usize,
}

impl Default for FilesAgentConfig {
    fn default() -> Self {
        Self {
            program: PathBuf::from(vm_system_sandbox::process::SELF),
            start_deadline: Duration::from_millis(limits::FILES_AGENT_START_MS),
            late: Duration::from_millis(limits::FILE_CALL_MS),
            ping_deadline: Duration::from_millis(limits::FILES_AGENT_PING_MS),
            idle: Duration::from_millis(limits::FILES_AGENT_IDLE_MS),
            most: limits::FILES_AGENTS,
        }
    }
}

/// Why an agent did not do something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilesAgentError {
    /// An error of the file system.
    #[error("{}", .0.desc())]
    File(Errno),
    #[error("uid {0} has no passwd entry")]
    NoUser(u32),
    /// It could not be started, or has ended; the next call starts another one.
    #[error("the files agent of uid {uid} is not available: {why}")]
    Lost { uid: u32, why: String },
}

/// All files agents of a supervisor; cheap to clone.
#[derive(Debug, Clone)]
pub struct FilesAgents(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    config: FilesAgentConfig,
    users: Mutex<HashMap<u32, Arc<Mutex<AgentOfUser>>>>,
    live: Arc<AtomicUsize>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// The agent of one user; its lock is held while the agent is started.
#[derive(Debug, Default)]
struct AgentOfUser {
    agent: Option<Arc<FilesAgent>>,
    failures: VecDeque<Instant>,
}

impl AgentOfUser {
    /// The agent, unless it has ended.
    fn live(&mut self) -> Option<Arc<FilesAgent>> {
        let agent = self.agent.clone()?;
        match agent.end() {
            None => return Some(agent),
            Some(AgentEnd::Failed { at, .. }) => self.failures.push_back(at),
            Some(AgentEnd::Stopped) => {}
        }
        self.agent = None;
        None
    }

    fn forget_old_failures(&mut self) {
        while self.failures.front().is_some_and(|at| at.elapsed() > FAILURE_WINDOW) {
            self.failures.pop_front();
        }
    }
}

impl FilesAgents {
    /// No process is started before the first call.
    pub fn new(config: FilesAgentConfig) -> Self {
        Self(Arc::new(Shared {
            config,
            users: Mutex::default(),
            live: Arc::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }))
    }

    /// Opens a folder beneath `root` with the rights of a user. Blocks; must be called on a thread of the runtime's blocking pool.
    pub(crate) fn open(
        &self,
        uid: u32,
        root: BorrowedFd<'_>,
        beneath: &Path,
        cross_mounts: bool,
    ) -> Result<OpenFolder, FilesAgentError> {
        let mut starts = 0;
        loop {
            let agent = self.agent(uid)?;
            let opened = agent.open(root, beneath, cross_mounts);
            let was_idle = opened.is_err() && agent.end() == Some(AgentEnd::Stopped);
            // It ended in the moment in which it was needed again.
            if !was_idle || starts >= RESTARTS || self.0.stop.is_cancelled() {
                return opened;
            }
            starts += 1;
        }
    }

    /// Agents that have been started and not reaped.
    pub fn live(&self) -> usize {
        self.0.live.load(Ordering::Relaxed)
    }

    /// Ends all agents and refuses new ones; returns when all have exited or at the deadline.
    pub async fn shutdown(&self, deadline: Duration) {
        self.0.stop.cancel();
        self.0.tasks.close();
        if tokio::time::timeout(deadline, self.0.tasks.wait()).await.is_err() {
            tracing::warn!(live = self.live(), "files agents did not end in time");
        }
    }

    fn agent(&self, uid: u32) -> Result<Arc<FilesAgent>, FilesAgentError> {
        let user = {
            let mut users = self.0.users.lock().unwrap_or_else(PoisonError::into_inner);
            if users.len() >= USERS {
                users.retain(|_, user| !is_forgettable(user));
            }
            Arc::clone(users.entry(uid).or_default())
        };
        let mut user = user.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(agent) = user.live() {
            return Ok(agent);
        }
        user.forget_old_failures();
        let lost = |why: String| FilesAgentError::Lost { uid, why };
        if user.failures.len() >= FAILURES {
            return Err(lost("it failed 5 times within a minute; try again later".to_owned()));
        }
        if self.0.stop.is_cancelled() {
            return Err(lost("the supervisor is stopping".to_owned()));
        }
        if self.live() >= self.0.config.most {
            return Err(lost(format!("{} users have one, and there are no more", self.0.config.most)));
        }
        let started = FilesAgent::start(
            &self.0.config,
            uid,
            (&self.0.tasks, Arc::clone(&self.0.live), self.0.stop.child_token()),
        );
        match started {
            Ok(agent) => {
                tracing::debug!(uid, pid = agent.pid(), "files agent started");
                Ok(Arc::clone(user.agent.insert(agent)))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(FilesAgentError::NoUser(uid)),
            Err(error) => {
                user.failures.push_back(Instant::now());
                Err(lost(error.to_string()))
            }
        }
    }
}

fn is_forgettable(user: &Mutex<AgentOfUser>) -> bool {
    user.try_lock().is_ok_and(|mut user| {
        user.forget_old_failures();
        user.live().is_none() && user.failures.is_empty()
    })
}
