//! One files agent with its calls: numbered requests and their replies, the worktrees that it has open, the processes that it has
//! started. A task receives its messages, notices when it does not respond, and reaps it.

use super::{FilesAgentConfig, FilesAgentError};
use nix::errno::Errno;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use vm_system_protocol::codec;
use vm_system_protocol::files_agent::{FilesProcess, FromFilesAgent, ReadTarget, ToFilesAgent};
use vm_system_protocol::limits::{FILE_CALLS, FILES_AGENT_CALLS, FILES_AGENT_ORDER_BYTES, WRITE_MS};
use vm_system_sandbox::beneath::HANDLE_BYTES;
use vm_system_sandbox::process::ExitStatus;
use vm_system_spawn::files_agent::{AgentStarter, FilesAgentChannel, FilesAgentProcess};

/// Why an agent is ended that leaves its orders unread.
const UNREAD: &str = "it does not read its messages";

/// How often calls are checked for being late, and an agent for being idle.
const TICK: Duration = Duration::from_secs(1);

/// Orders that may wait because the socket takes no more. Each call has one order and at most one later (`Close`, `Kill`); calls wait for
/// their replies and have shares ([`FILE_CALLS`]), and the agent refuses more than [`FILES_AGENT_CALLS`]. An agent that leaves more
/// unread does not work: it is ended.
const BACKLOG: usize = 4 * FILES_AGENT_CALLS;
const _: () = assert!(BACKLOG >= 2 * FILE_CALLS);

/// How an agent ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AgentEnd {
    /// Idle, or with its supervisor.
    Stopped,
    Failed {
        why: String,
        at: Instant,
    },
}

/// An agent that was started.
#[derive(Debug)]
pub(crate) struct FilesAgent {
    uid: u32,
    /// The user's name.
    user: String,
    /// Unknown if a service manager has started it.
    pid: Option<u32>,
    stop: CancellationToken,
    channel: FilesAgentChannel,
    /// Messages that the socket did not take at once.
    backlog: mpsc::Sender<Outgoing>,
    /// The backlog is full.
    overrun: CancellationToken,
    calls: Mutex<Calls>,
    start_deadline: Duration,
}

#[derive(Debug)]
struct Outgoing {
    bytes: Vec<u8>,
    descriptor: Option<OwnedFd>,
}

#[derive(Debug)]
struct Calls {
    last: u64,
    /// Receives the agent's first message.
    ready: Option<oneshot::Sender<Result<(), String>>>,
    pending: HashMap<u64, PendingCall>,
    /// Started processes that have not ended.
    processes: HashMap<u64, oneshot::Sender<ExitStatus>>,
    /// Open worktrees.
    worktrees: usize,
    idle_since: Instant,
    last_ping: Option<Instant>,
    end: Option<AgentEnd>,
}

#[derive(Debug)]
struct PendingCall {
    kind: CallKind,
    since: Instant,
    /// The content of a file that has arrived so far.
    bytes: Vec<u8>,
    responder: oneshot::Sender<Result<FilesReply, Errno>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallKind {
    Open,
    Read { cap: u64 },
    Start,
    Ping,
}

#[derive(Debug)]
enum FilesReply {
    Opened(OpenedFolder),
    Read(ReadTarget),
    Started(oneshot::Receiver<ExitStatus>),
    Pong,
}

type PendingReply = oneshot::Receiver<Result<FilesReply, Errno>>;

/// The agent's description of a folder that it has opened.
#[derive(Debug)]
struct OpenedFolder {
    /// Device and inode.
    folder: (u64, u64),
    handle: Option<Vec<u8>>,
}

/// An act that no agent does.
struct Violation(&'static str);

impl FilesAgent {
    /// Starts an agent and waits until it is ready. `NotFound`: the user has no passwd entry; EPERM: the user may have no agent. Blocks.
    pub(super) fn start(
        (starter, config): (&AgentStarter, &FilesAgentConfig),
        (uid, user): (u32, String),
        tasks: &TaskTracker,
        live: Arc<AtomicUsize>,
        stop: CancellationToken,
    ) -> io::Result<Arc<Self>> {
        let (channel, process) = starter.start(uid)?;
        let (ready, is_ready) = oneshot::channel();
        let start_deadline = config.start_deadline;
        let (mut agent, outgoing) = Self::new((uid, user), channel, ready, stop.clone());
        (agent.pid, agent.start_deadline) = (process.pid(), start_deadline);
        let agent = Arc::new(agent);
        live.fetch_add(1, Ordering::Relaxed);
        tasks.spawn(run(Arc::clone(&agent), config.clone(), process, outgoing, (live, stop)));
        let why = match Handle::current().block_on(timeout(start_deadline, is_ready)) {
            Ok(Ok(Ok(()))) => return Ok(agent),
            Ok(Ok(Err(why))) => why,
            Ok(Err(_)) => agent.lost().to_string(),
            Err(_) => format!("it was not ready within {} ms", start_deadline.as_millis()),
        };
        agent.stop();
        Err(io::Error::other(why))
    }

    /// An agent that has not sent its first message, and the queue of what its socket does not take at once.
    fn new(
        (uid, user): (u32, String),
        channel: FilesAgentChannel,
        ready: oneshot::Sender<Result<(), String>>,
        stop: CancellationToken,
    ) -> (Self, mpsc::Receiver<Outgoing>) {
        let (backlog, outgoing) = mpsc::channel(BACKLOG);
        let calls = Calls {
            last: 0,
            ready: Some(ready),
            pending: HashMap::new(),
            processes: HashMap::new(),
            worktrees: 0,
            idle_since: Instant::now(),
            last_ping: None,
            end: None,
        };
        let agent = Self {
            uid,
            user,
            pid: None,
            stop,
            channel,
            backlog,
            overrun: CancellationToken::new(),
            calls: Mutex::new(calls),
            start_deadline: Duration::ZERO,
        };
        (agent, outgoing)
    }

    /// The name of its user.
    pub(super) fn user(&self) -> &str {
        &self.user
    }

    /// Ends it with the processes that it has started.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.pid
    }

    pub(super) fn end(&self) -> Option<AgentEnd> {
        self.calls().end.clone()
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        // No code panics while holding it.
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lost(&self) -> FilesAgentError {
        let why = match self.end() {
            Some(AgentEnd::Failed { why, .. }) => why,
            Some(AgentEnd::Stopped) | None => "it was ended".to_owned(),
        };
        FilesAgentError::Lost { uid: self.uid, why }
    }

    /// Opens a folder. Blocks.
    pub(super) fn open(
        self: &Arc<Self>,
        root: BorrowedFd<'_>,
        beneath: &Path,
        cross_mounts: bool,
    ) -> Result<OpenFolder, FilesAgentError> {
        let path = beneath.as_os_str().as_bytes().to_vec();
        let message = |call| ToFilesAgent::Open { call, path, cross_mounts };
        let (worktree, reply) = self.request(CallKind::Open, message, Some(root))?;
        match self.wait(reply)? {
            FilesReply::Opened(opened) => Ok(OpenFolder { agent: Arc::clone(self), worktree, opened }),
            _ => Err(self.lost()),
        }
    }

    fn request(
        &self,
        kind: CallKind,
        message: impl FnOnce(u64) -> ToFilesAgent,
        descriptor: Option<BorrowedFd<'_>>,
    ) -> Result<(u64, PendingReply), FilesAgentError> {
        let (responder, reply) = oneshot::channel();
        let call = {
            let mut calls = self.calls();
            if calls.end.is_some() {
                drop(calls);
                return Err(self.lost());
            }
            calls.last += 1;
            let call = calls.last;
            let pending = PendingCall { kind, since: Instant::now(), bytes: Vec::new(), responder };
            calls.pending.insert(call, pending);
            call
        };
        let sent = self.send(&message(call), descriptor);
        if let Err(error) = sent {
            self.calls().pending.remove(&call);
            return Err(error);
        }
        Ok((call, reply))
    }

    fn send(
        &self,
        message: &ToFilesAgent,
        descriptor: Option<BorrowedFd<'_>>,
    ) -> Result<(), FilesAgentError> {
        let bytes = codec::encode(message, FILES_AGENT_ORDER_BYTES)
            .map_err(|_| FilesAgentError::File(Errno::ENAMETOOLONG))?;
        match self.channel.try_send(&bytes, descriptor) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let descriptor = descriptor.map(|descriptor| descriptor.try_clone_to_owned()).transpose();
                let descriptor = descriptor.map_err(|_| FilesAgentError::File(Errno::EMFILE))?;
                self.backlog.try_send(Outgoing { bytes, descriptor }).map_err(|error| {
                    if matches!(error, mpsc::error::TrySendError::Full(_)) {
                        self.overrun.cancel();
                    }
                    self.lost()
                })
            }
            Err(_) => Err(self.lost()),
            Ok(()) => Ok(()),
        }
    }

    fn wait(&self, reply: PendingReply) -> Result<FilesReply, FilesAgentError> {
        match reply.blocking_recv() {
            Ok(result) => result.map_err(FilesAgentError::File),
            Err(_) => Err(self.lost()),
        }
    }

    /// Takes a message of the agent.
    fn take(&self, message: FromFilesAgent) -> Result<(), Violation> {
        match message {
            FromFilesAgent::Ready => self.take_ready(Ok(())),
            FromFilesAgent::NotReady { message } => self.take_ready(Err(message)),
            FromFilesAgent::Piece { call, bytes } => self.take_piece(call, &bytes),
            FromFilesAgent::Opened { call, device, inode, handle } => self.reply(call, |kind, _| {
                let fits = handle.as_ref().is_none_or(|handle| handle.len() <= HANDLE_BYTES);
                let opened = OpenedFolder { folder: (device, inode), handle };
                (kind == CallKind::Open && fits).then_some(FilesReply::Opened(opened))
            }),
            FromFilesAgent::Read { call, target } => {
                self.reply(call, |kind, bytes| whole(kind, bytes, target))
            }
            FromFilesAgent::Started { call } => {
                let (ended, is_ended) = oneshot::channel();
                self.calls().processes.insert(call, ended);
                self.reply(call, |kind, _| (kind == CallKind::Start).then_some(FilesReply::Started(is_ended)))
            }
            FromFilesAgent::Pong { call } => {
                self.reply(call, |kind, _| (kind == CallKind::Ping).then_some(FilesReply::Pong))
            }
            FromFilesAgent::Failed { call, errno } => {
                let pending = self.calls().pending.remove(&call).ok_or(Violation("a reply to no call"))?;
                let _ = pending.responder.send(Err(Errno::from_raw(errno)));
                Ok(())
            }
            FromFilesAgent::Ended { process, wait_status } => {
                let ended = self.calls().processes.remove(&process);
                let ended = ended.ok_or(Violation("the end of an unknown process"))?;
                let _ = ended.send(ExitStatus::from_wait_status(wait_status));
                self.calls().idle_since = Instant::now();
                Ok(())
            }
        }
    }

    fn take_ready(&self, result: Result<(), String>) -> Result<(), Violation> {
        let ready = self.calls().ready.take().ok_or(Violation("a second greeting"))?;
        let _ = ready.send(result);
        Ok(())
    }

    fn take_piece(&self, call: u64, bytes: &[u8]) -> Result<(), Violation> {
        let mut calls = self.calls();
        let pending = calls.pending.get_mut(&call).ok_or(Violation("content for no call"))?;
        let CallKind::Read { cap } = pending.kind else { return Err(Violation("content for another call")) };
        // More than the cap is never kept: an empty piece would be endless.
        if bytes.is_empty() || (pending.bytes.len() + bytes.len()) as u64 > cap {
            return Err(Violation("content above the cap"));
        }
        pending.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Ends a call with what `of` makes of its kind and of the content so far.
    fn reply(
        &self,
        call: u64,
        of: impl FnOnce(CallKind, Vec<u8>) -> Option<FilesReply>,
    ) -> Result<(), Violation> {
        let pending = {
            let mut calls = self.calls();
            if calls.ready.is_some() {
                return Err(Violation("a reply before the greeting"));
            }
            let pending = calls.pending.remove(&call).ok_or(Violation("a reply to no call"))?;
            calls.worktrees += usize::from(pending.kind == CallKind::Open);
            pending
        };
        let Some(reply) = of(pending.kind, pending.bytes) else {
            let what = "a reply of another kind";
            // Before the caller notices that it gets no reply.
            self.calls().end = Some(failed(format!("it broke the protocol: {what}")));
            return Err(Violation(what));
        };
        let Err(unused) = pending.responder.send(Ok(reply)) else { return Ok(()) };
        // The caller has given up.
        match unused {
            Ok(FilesReply::Opened(_)) => self.close(call),
            Ok(FilesReply::Started(_)) => self.kill(call),
            _ => {}
        }
        Ok(())
    }

    fn close(&self, worktree: u64) {
        {
            let mut calls = self.calls();
            calls.worktrees = calls.worktrees.saturating_sub(1);
            calls.idle_since = Instant::now();
        }
        // An agent that has ended has closed it.
        let _ = self.send(&ToFilesAgent::Close { worktree }, None);
    }

    fn kill(&self, process: u64) {
        let _ = self.send(&ToFilesAgent::Kill { process }, None);
    }

    /// The act that is due: a ping, or the agent's end.
    fn tick(&self, config: &FilesAgentConfig) -> Option<AgentEnd> {
        let now = Instant::now();
        let ping = {
            let mut calls = self.calls();
            let used = calls.worktrees > 0 || !calls.pending.is_empty() || !calls.processes.is_empty();
            if !used && calls.ready.is_none() && now - calls.idle_since >= config.idle {
                // Together with the check: no call begins in between.
                calls.end = Some(AgentEnd::Stopped);
                return Some(AgentEnd::Stopped);
            }
            let mut pending = calls.pending.values();
            if pending.any(|call| call.kind == CallKind::Ping && now - call.since >= config.ping_deadline) {
                return Some(failed("it does not respond".to_owned()));
            }
            let is_due = calls.last_ping.is_none_or(|at| now - at >= config.late);
            let ping = is_due && calls.pending.values().any(|call| now - call.since >= config.late);
            if ping {
                calls.last_ping = Some(now);
            }
            ping
        };
        if ping {
            let _ = self.request(CallKind::Ping, |call| ToFilesAgent::Ping { call }, None);
        }
        None
    }
}

fn failed(why: String) -> AgentEnd {
    AgentEnd::Failed { why, at: Instant::now() }
}

/// The reply to a read: within the cap, and a file's content complete.
fn whole(kind: CallKind, mut bytes: Vec<u8>, target: ReadTarget) -> Option<FilesReply> {
    let CallKind::Read { cap } = kind else { return None };
    let target = match target {
        ReadTarget::File(last) if (bytes.len() + last.len()) as u64 <= cap => {
            bytes.extend_from_slice(&last);
            ReadTarget::File(bytes)
        }
        ReadTarget::File(_) => return None,
        other => other,
    };
    Some(FilesReply::Read(target))
}

/// An agent's task: until it exits, fails or is not needed.
async fn run(
    agent: Arc<FilesAgent>,
    config: FilesAgentConfig,
    process: FilesAgentProcess,
    mut outgoing: mpsc::Receiver<Outgoing>,
    (live, stop): (Arc<AtomicUsize>, CancellationToken),
) {
    let mut tick = interval(TICK.min(config.idle).min(config.ping_deadline).max(Duration::from_millis(1)));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let sending = async {
        while let Some(Outgoing { bytes, descriptor }) = outgoing.recv().await {
            let deadline = Instant::now() + Duration::from_millis(WRITE_MS);
            if agent.channel.send(&bytes, descriptor.as_ref(), deadline).await.is_err() {
                break;
            }
        }
    };
    tokio::pin!(sending);
    let end = loop {
        tokio::select! {
            () = stop.cancelled() => break AgentEnd::Stopped,
            () = &mut sending => break failed(UNREAD.to_owned()),
            () = agent.overrun.cancelled() => break failed(UNREAD.to_owned()),
            received = agent.channel.receive(codec::decode::<FromFilesAgent>) => {
                let why = match received {
                    Ok(Some(Ok(message))) => match agent.take(message) {
                        Ok(()) => continue,
                        Err(Violation(what)) => format!("it broke the protocol: {what}"),
                    },
                    Ok(Some(Err(error))) => format!("it broke the protocol: {error}"),
                    Ok(None) => "it exited".to_owned(),
                    Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                        "it broke the protocol: a message that is too long or has descriptors".to_owned()
                    }
                    Err(error) => format!("its channel failed: {error}"),
                };
                break failed(why);
            }
            _ = tick.tick() => {
                if let Some(end) = agent.tick(&config) {
                    break end;
                }
            }
        }
    };
    let uid = agent.uid;
    if let AgentEnd::Failed { why, .. } = &end {
        tracing::warn!(uid, pid = agent.pid, why, "files agent failed");
    }
    let dropped = {
        let mut calls = agent.calls();
        calls.end = Some(end);
        (calls.ready.take(), std::mem::take(&mut calls.pending), std::mem::take(&mut calls.processes))
    };
    drop(dropped);
    // An agent of a service manager ends with its channel.
    agent.channel.close();
    if let Err(error) = process.end().await {
        tracing::warn!(uid, %error, "files agent could not be reaped");
    }
    live.fetch_sub(1, Ordering::Relaxed);
}

/// A folder that an agent has open; closed when it is dropped.
#[derive(Debug)]
pub(crate) struct OpenFolder {
    agent: Arc<FilesAgent>,
    worktree: u64,
    opened: OpenedFolder,
}

impl Drop for OpenFolder {
    fn drop(&mut self) {
        self.agent.close(self.worktree);
    }
}

impl OpenFolder {
    /// Whether its agent has not ended.
    pub(crate) fn is_usable(&self) -> bool {
        self.agent.end().is_none()
    }

    /// Whether both are the same folder, opened by the same agent.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.agent, &other.agent) && self.opened.folder == other.opened.folder
    }

    /// The name of the user whose rights use it.
    pub(crate) fn user(&self) -> &str {
        self.agent.user()
    }

    /// The folder's file handle, as the agent reports it.
    pub(crate) fn handle(&self) -> Option<Vec<u8>> {
        self.opened.handle.clone()
    }

    /// The target of a path; through links if they are to be followed. Blocks.
    pub(crate) fn read(&self, path: &str, links: bool, cap: u64) -> Result<ReadTarget, FilesAgentError> {
        let message =
            |call| ToFilesAgent::Read { call, worktree: self.worktree, path: path.to_owned(), links, cap };
        let (_, reply) = self.agent.request(CallKind::Read { cap }, message, None)?;
        match self.agent.wait(reply)? {
            FilesReply::Read(target) => Ok(target),
            _ => Err(self.agent.lost()),
        }
    }

    /// Starts a process for this folder, with its end of a channel. If the future is dropped, the process is killed.
    pub(crate) async fn start(
        &self,
        process: FilesProcess,
        channel: &OwnedFd,
    ) -> Result<FilesChild, FilesAgentError> {
        let message = |call| ToFilesAgent::Start { call, worktree: self.worktree, process };
        let (process, reply) = self.agent.request(CallKind::Start, message, Some(channel.as_fd()))?;
        let lost = || self.agent.lost();
        let late =
            |_| FilesAgentError::Lost { uid: self.agent.uid, why: "it did not start a process".to_owned() };
        match timeout(self.agent.start_deadline, reply).await.map_err(late)?.map_err(|_| lost())? {
            Ok(FilesReply::Started(ended)) => {
                Ok(FilesChild { agent: Arc::clone(&self.agent), process, ended })
            }
            Ok(_) => Err(lost()),
            Err(errno) => Err(FilesAgentError::File(errno)),
        }
    }
}

/// A process that an agent has started.
#[derive(Debug)]
pub(crate) struct FilesChild {
    agent: Arc<FilesAgent>,
    process: u64,
    ended: oneshot::Receiver<ExitStatus>,
}

impl FilesChild {
    /// Orders the agent to kill the process.
    pub(crate) fn kill(&self) {
        self.agent.kill(self.process);
    }

    /// Waits for its exit, as the agent reports it, or for the agent's. Must complete once; cancel safe before that.
    pub(crate) async fn ended(&mut self) -> io::Result<ExitStatus> {
        (&mut self.ended).await.map_err(|_| io::Error::other(self.agent.lost().to_string()))
    }
}

#[cfg(test)]
mod tests;
