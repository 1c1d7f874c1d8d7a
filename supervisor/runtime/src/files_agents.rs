//! Files agents: one process for each user whose worktrees a supervisor started as root uses, with this user's rights. Started on
//! first need, ended when idle.
//!
//! An agent is its user's process. It may exit, stop or send anything at any time: then its callers get an error, it is killed, and
//! the next call starts another one, unless too many failed lately ([`RecentFailures`]). Nothing that an agent sends is used beyond
//! its own user's calls; no descriptor is received from it, and no process is signalled because of it. Users do not wait for each
//! other: each has an agent and a lock of its own.
//!
//! - [`FilesAgents`]: the agents of all users
//! - [`live`]: one agent with its calls

mod live;

use crate::recent_failures::RecentFailures;
use crate::worktree::is_shortage;
use live::{AgentEnd, FilesAgent};
pub(crate) use live::{FilesChild, OpenFolder};
use nix::errno::Errno;
use nix::libc;
use std::collections::HashMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use vm_system_protocol::limits;
use vm_system_sandbox::identity::user_of;
use vm_system_spawn::files_agent::AgentStarter;
use vm_system_spawn::helper::{HelperProblem, SpawnHelper};

/// Agents that are started for one call if idle ones end before they receive it.
const RESTARTS: u32 = 3;
/// How long the name of a user is cached: a change in the user database takes effect within this time.
const NAME_AGE: Duration = Duration::from_secs(10);
/// Users above which those without an agent are forgotten.
const USERS: usize = 4_096;

/// Configuration of files agents.
#[derive(Debug, Clone)]
pub struct FilesAgentConfig {
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
    /// There is no such user any more.
    #[error("{}", no_user(*.uid, .expected.as_deref(), .found.as_deref()))]
    NoUser {
        uid: u32,
        /// The name that it must have, if there is one.
        expected: Option<String>,
        /// The name that the uid has now, if there is one.
        found: Option<String>,
    },
    /// The operator's rules allow no agent for this user.
    #[error("{0}")]
    Refused(String),
    /// It could not be started, or has ended; the next call starts another one.
    #[error("the files agent of uid {uid} is not available: {why}")]
    Lost { uid: u32, why: String },
    /// Nothing starts one for any user before the daemon is restarted.
    #[error(
        "the files agent of uid {uid} cannot be started: the spawn helper has exited; restart the daemon"
    )]
    HelperExited { uid: u32 },
}

fn refused(uid: u32, starter: &AgentStarter) -> String {
    match starter {
        AgentStarter::Sockets(folder) => format!(
            "the daemon does not use files as uid {uid}: there is no socket {}; enable vm-files@{uid}.socket",
            folder.join(uid.to_string()).display()
        ),
        AgentStarter::Helper(_) if uid == 0 => {
            "the daemon does not use files as root: name another user (--as-user; `uid` of a token), or allow root's files \
             with --root-files"
                .to_owned()
        }
        AgentStarter::Helper(_) => format!(
            "the daemon does not use files as uid {uid}: it is below `min_uid`, above `max_uid` or reserved, not in `socket_group`, and of no token"
        ),
    }
}

fn no_user(uid: u32, expected: Option<&str>, found: Option<&str>) -> String {
    match (expected, found) {
        (None, _) => format!("uid {uid} has no passwd entry"),
        (Some(expected), None) => format!("uid {uid} ({expected}) has no passwd entry any more"),
        (Some(expected), Some(found)) => {
            format!("uid {uid} was the user {expected} and is the user {found} now")
        }
    }
}

/// All files agents of a supervisor; cheap to clone.
#[derive(Debug, Clone)]
pub struct FilesAgents(Arc<AgentsState>);

#[derive(Debug)]
struct AgentsState {
    starter: AgentStarter,
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
    failures: RecentFailures,
    /// The name of the user, and when it was looked up.
    name: Option<(Instant, String)>,
}

impl AgentOfUser {
    /// The name of the user, which must be the expected one if there is one. Looked up again after [`NAME_AGE`], and before a refusal.
    /// Blocks.
    fn named(&mut self, uid: u32, expected: Option<&str>) -> Result<String, FilesAgentError> {
        let is_other = |name: &str| expected.is_some_and(|expected| expected != name);
        self.name.take_if(|(since, name)| since.elapsed() >= NAME_AGE || is_other(name));
        if self.name.is_none() {
            let found = user_of(uid).map_err(|errno| match errno {
                short if is_shortage(short) => FilesAgentError::File(short),
                errno => FilesAgentError::Lost {
                    uid,
                    why: format!("the user cannot be looked up: {}", errno.desc()),
                },
            })?;
            self.name = found.map(|user| (Instant::now(), user.name));
        }
        let found = self.name.as_ref().map(|(_, name)| name.clone());
        match found {
            Some(name) if expected.is_none_or(|expected| expected == name) => Ok(name),
            found => Err(FilesAgentError::NoUser { uid, expected: expected.map(str::to_owned), found }),
        }
    }

    /// The agent, unless it has ended.
    fn live(&mut self) -> Option<Arc<FilesAgent>> {
        let agent = self.agent.clone()?;
        match agent.end() {
            None => return Some(agent),
            Some(AgentEnd::Failed { at, .. }) => self.failures.add(at),
            Some(AgentEnd::Stopped) => {}
        }
        self.agent = None;
        None
    }
}

impl FilesAgents {
    /// No agent is started before the first call.
    pub fn new(starter: AgentStarter, config: FilesAgentConfig) -> Self {
        Self(Arc::new(AgentsState {
            starter,
            config,
            users: Mutex::default(),
            live: Arc::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }))
    }

    /// Opens a folder beneath `root` with the rights of a user, who must have this name if there is one. Blocks; must be called on a
    /// thread of the runtime's blocking pool.
    pub(crate) fn open(
        &self,
        user: (u32, Option<&str>),
        root: BorrowedFd<'_>,
        beneath: &Path,
        cross_mounts: bool,
    ) -> Result<OpenFolder, FilesAgentError> {
        let mut starts = 0;
        loop {
            let agent = self.agent(user)?;
            let opened = agent.open(root, beneath, cross_mounts);
            let was_idle = opened.is_err() && agent.end() == Some(AgentEnd::Stopped);
            // It ended in the moment in which it was needed again.
            if !was_idle || starts >= RESTARTS || self.0.stop.is_cancelled() {
                return opened;
            }
            starts += 1;
        }
    }

    /// Checks that a uid still has this name. Blocks while the user is looked up.
    pub(crate) fn check_name(&self, uid: u32, expected: &str) -> Result<(), FilesAgentError> {
        let user = self.user(uid);
        let mut user = user.lock().unwrap_or_else(PoisonError::into_inner);
        user.named(uid, Some(expected)).map(drop)
    }

    /// Who starts them.
    pub fn starter(&self) -> &AgentStarter {
        &self.0.starter
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

    fn user(&self, uid: u32) -> Arc<Mutex<AgentOfUser>> {
        let mut users = self.0.users.lock().unwrap_or_else(PoisonError::into_inner);
        if users.len() >= USERS {
            users.retain(|_, user| !is_forgettable(user));
        }
        Arc::clone(users.entry(uid).or_default())
    }

    fn agent(&self, (uid, expected): (u32, Option<&str>)) -> Result<Arc<FilesAgent>, FilesAgentError> {
        let user = self.user(uid);
        let mut user = user.lock().unwrap_or_else(PoisonError::into_inner);
        let lost = |why: String| FilesAgentError::Lost { uid, why };
        let name = user.named(uid, expected)?;
        match user.live() {
            Some(agent) if agent.user() == name => return Ok(agent),
            // The uid belongs to another person now, who shares no process with the one before.
            Some(agent) => {
                agent.stop();
                user.agent = None;
            }
            None => {}
        }
        if user.failures.are_too_many() {
            return Err(lost("it failed 5 times within a minute; try again later".to_owned()));
        }
        if self.0.stop.is_cancelled() {
            return Err(lost("the supervisor is stopping".to_owned()));
        }
        if self.live() >= self.0.config.most {
            return Err(lost(format!("{} users have one, and there are no more", self.0.config.most)));
        }
        let started = FilesAgent::start(
            (&self.0.starter, &self.0.config),
            (uid, name),
            &self.0.tasks,
            Arc::clone(&self.0.live),
            self.0.stop.child_token(),
        );
        match started {
            Ok(agent) => {
                tracing::debug!(uid, pid = agent.pid(), "files agent started");
                Ok(Arc::clone(user.agent.insert(agent)))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(FilesAgentError::NoUser { uid, expected: None, found: None })
            }
            Err(error) if error.raw_os_error() == Some(Errno::EPERM as i32) => {
                Err(FilesAgentError::Refused(refused(uid, &self.0.starter)))
            }
            Err(error) => {
                // Descriptors of this daemon or of its helper, or the helper itself: no failure of an agent.
                if let Some(short @ (libc::EMFILE | libc::ENFILE)) = error.raw_os_error() {
                    return Err(FilesAgentError::File(Errno::from_raw(short)));
                }
                match self.0.starter.helper().and_then(SpawnHelper::problem) {
                    Some(HelperProblem::Exited) => return Err(FilesAgentError::HelperExited { uid }),
                    Some(HelperProblem::Silent) => {}
                    None => user.failures.add(Instant::now()),
                }
                Err(lost(error.to_string()))
            }
        }
    }
}

fn is_forgettable(user: &Mutex<AgentOfUser>) -> bool {
    user.try_lock().is_ok_and(|mut user| user.live().is_none() && user.failures.are_none())
}
