//! Forks of sessions: a worker that is a child of another session's worker. Until the child has completed the handshake on a
//! channel that its parent never had, parent and child are one unit of trust: a protocol violation of either kills both.
//!
//! ```text
//!  we                          parent                       child
//!  mark it, allow one clone
//!  Fork{order} + a way  ─────▶ clone ─────────────────────▶ replaces its channel by the way
//!  1. check the sender  ◀──────────────────────── hello, over the way, attested by the kernel
//!  hello + a channel    ──────────────── over the way ────▶ replaces the way by that
//!  2. same sender?      ◀──────────────────────── hello, over its channel, attested by the kernel
//! ```
//! The *way* is a temporary socket for this fork. The parent may have kept a copy of it, so everything that arrives on it
//! after the first hello is a violation. The parent may receive the channel instead of the child; then the kernel attests the
//! second hello as the parent's, or none arrives. It cannot take the channel and also let its child send the hello: a receive
//! removes the descriptor, the worker's filter refuses `MSG_PEEK`, and no worker can send a descriptor.
//!
//! A child that hides is found by its mark: a resource limit that is set from outside before the order, that children
//! inherit and that nothing in the jail can change.

use super::error::SpawnError;
use super::groups::OwnerGroup;
use super::packets;
use super::process::WorkerProcess;
use super::spawner::{Jail, SpawnEvent, WorkerHandle};
use super::unassigned::{HelloFailure, UnassignedWorker, channel, receive_hello};
use crate::reactor::{WatchedFd, exit_of};
use std::future::Future;
use std::os::fd::{AsFd as _, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};
use vm_system_protocol::hello::Hello;
use vm_system_protocol::ids::SessionId;
use vm_system_protocol::limits::WRITE_MS;
use vm_system_sandbox::pidfd::PidFd;
use vm_system_sandbox::socket::{self, Wait};
use vm_system_sandbox::{inspect, rlimit};

/// Marks are above this value, so that no ordinary limit looks like a mark.
const MARKS: u64 = 1 << 62;

/// From the closing of a killed worker's descriptors to its exit, at most.
const DYING: Duration = Duration::from_secs(1);

/// Why a fork failed.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    /// The worker could not be forked; it is intact.
    #[error(transparent)]
    Failed(#[from] SpawnError),
    /// Parent or child violated the protocol or missed a deadline. Both are killed.
    #[error("{0}")]
    Violation(String),
}

impl ForkError {
    fn violation(what: &str) -> Self {
        Self::Violation(what.to_owned())
    }
}

/// A permitted fork. Resolves when the child is a worker, or when the fork has failed. To be dropped
/// only when the parent has reported the result of its fork or was killed: hidden children are searched after that. A
/// child that is not taken is killed.
#[derive(Debug)]
pub struct ForkUnderWay {
    result: oneshot::Receiver<Result<WorkerHandle, ForkError>>,
    /// Used when the child is received; if it is dropped before, the task of the fork ends the child.
    taken: Option<oneshot::Sender<()>>,
    /// Dropped when the parent's clone is over.
    _over: oneshot::Sender<()>,
}

impl Future for ForkUnderWay {
    type Output = Result<WorkerHandle, ForkError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let result = std::task::ready!(Pin::new(&mut self.result).poll(context));
        if let Some(taken) = self.taken.take() {
            // Fails for a fork that has failed: its task does not wait.
            let _ = taken.send(());
        }
        Poll::Ready(result.unwrap_or_else(|_| Err(SpawnError::WorkerSilent("was given up").into())))
    }
}

/// Permits one fork; returns the descriptor to send with the order.
pub(super) fn begin(
    jail: &Arc<Jail>,
    parent: &WorkerProcess,
    child: SessionId,
) -> Result<(ForkUnderWay, OwnedFd), SpawnError> {
    if jail.control.is_lost() {
        return Err(SpawnError::KeeperLost);
    }
    let (way, childs) = channel()?;
    let mark = MARKS + jail.forks.fetch_add(1, Ordering::Relaxed);
    let parent =
        Parent { pid: parent.pid(), pidfd: Arc::clone(parent.pidfd()), mark, group: parent.group().cloned() };
    // Before the order: a child inherits the mark at its clone, so none can appear without it.
    let marked = rlimit::mark(parent.pid, mark)
        // The mark was set by pid: this check makes sure that the process is still the same.
        .and_then(|()| parent.pidfd.signal(0));
    marked.map_err(|error| SpawnError::Rlimit { pid: parent.pid, error })?;
    jail.orders.mark(MarkedChild { keeper: jail.pid, parent: parent.pid, mark });
    // Last: from here on the filter's notification of one clone is allowed.
    jail.orders.add(parent.pid);
    let (result_sender, result) = oneshot::channel();
    let (over, is_over) = oneshot::channel();
    let (taken, is_taken) = oneshot::channel();
    let fork = SessionFork { jail: Arc::clone(jail), parent, child };
    // The caller may be cancelled at any time; a permitted fork is completed.
    let receiver = ChildReceiver { result: result_sender, is_taken };
    tokio::spawn(fork.see_through(way, receiver, is_over));
    Ok((ForkUnderWay { result, taken: Some(taken), _over: over }, childs))
}

/// The task's end of a [`ForkUnderWay`].
struct ChildReceiver {
    result: oneshot::Sender<Result<WorkerHandle, ForkError>>,
    is_taken: oneshot::Receiver<()>,
}

impl ChildReceiver {
    /// Hands over the result; a child that nobody takes is ended.
    async fn send(self, result: Result<WorkerHandle, ForkError>) {
        let child = result.as_ref().ok().map(|handle| handle.process.clone());
        let is_sent = self.result.send(result).is_ok();
        if let Some(child) = child
            && !(is_sent && self.is_taken.await.is_ok())
        {
            child.end();
        }
    }
}

struct Parent {
    pid: u32,
    pidfd: Arc<PidFd>,
    mark: u64,
    /// The child is in the same one: it inherits it.
    group: Option<Arc<OwnerGroup>>,
}

struct SessionFork {
    jail: Arc<Jail>,
    parent: Parent,
    child: SessionId,
}

impl SessionFork {
    async fn see_through(self, way: WatchedFd, receiver: ChildReceiver, over: oneshot::Receiver<()>) {
        let mut senders = Vec::new();
        let mut result = self.deliver(way, &mut senders).await;
        self.jail.orders.is_over(self.parent.pid);
        let failed = result.is_err();
        let unused = failed && self.jail.orders.take(self.parent.pid);
        if unused && matches!(result, Err(ForkError::Failed(_))) && !exits(&self.parent.pidfd).await {
            // A correct worker tries to fork, and then the order is used.
            result = Err(ForkError::violation("it closed the child's socket and did not fork"));
        }
        let violated = matches!(result, Err(ForkError::Violation(_)));
        if let Err(error) = &result {
            tracing::warn!(pid = self.parent.pid, %error, "a worker was not forked");
        }
        // Before any process is killed: a sender may be the parent, and its closing reason must be known before its exit.
        receiver.send(result).await;
        if !failed {
            return;
        }
        for sender in &senders {
            let _ = sender.kill();
        }
        if violated {
            let _ = self.parent.pidfd.kill();
        }
        if !unused {
            if !violated {
                // The parent's clone may not have returned yet: until then a child could still appear.
                let _ = over.await;
            }
            // The search is for children that are alive, and these may be honest.
            for sender in &senders {
                exits(sender).await;
            }
            self.search().await;
        }
    }

    /// `senders` are the processes that sent a hello.
    async fn deliver(
        &self,
        way: WatchedFd,
        senders: &mut Vec<Arc<PidFd>>,
    ) -> Result<WorkerHandle, ForkError> {
        let child = match receive_hello(&way).await {
            Ok(child) => child,
            // The clone failed, or the child exited at once: the parent reports which.
            Err(HelloFailure::Closed) => return Err(SpawnError::WorkerSilent("exited").into()),
            Err(HelloFailure::Other(error)) => {
                return Err(ForkError::Violation(format!("no child sent a valid hello: {error}")));
            }
        };
        senders.push(Arc::clone(&child.pidfd));
        self.raise(&way, &child, senders).await
    }

    /// From the first hello to an independent worker.
    async fn raise(
        &self,
        way: &WatchedFd,
        child: &UnassignedWorker,
        senders: &mut Vec<Arc<PidFd>>,
    ) -> Result<WorkerHandle, ForkError> {
        self.examine(child).await?;
        let (ours, its) = channel()?;
        // The keeper does its part while the child replaces its channel.
        let assignment = self.jail.assign(self.child, &ours, child, self.parent.group.clone()).await?;
        let deadline = Instant::now() + Duration::from_millis(WRITE_MS);
        let hello = Hello::ours().to_packet();
        let sent = packets::send(way, &[&hello], &[its.as_fd()], deadline).await;
        // Only the child may have its end: a copy of ours would keep the channel open after its exit.
        drop(its);
        if sent.is_err() {
            return Err(closed(child, "the child closed its socket before it had a channel").await);
        }
        let again = match receive_hello(&ours).await {
            Ok(again) => again,
            Err(HelloFailure::Closed) => {
                return Err(closed(child, "the child closed its channel without a hello").await);
            }
            Err(HelloFailure::Other(error)) => {
                return Err(ForkError::Violation(format!("the child's channel: {error}")));
            }
        };
        if again.pids != child.pids || !child.pidfd.is_alive() {
            senders.push(again.pidfd);
            return Err(ForkError::violation("another process sent the hello on the child's channel"));
        }
        if speaks(way) {
            return Err(ForkError::violation("another message arrived on the child's socket"));
        }
        // The limits are those that it inherits.
        self.jail.inspect_worker(child)?;
        Ok(assignment.finish(ours).await?)
    }

    /// The sender of the first hello must be a new process of the jail, forked by this order.
    async fn examine(&self, child: &UnassignedWorker) -> Result<(), ForkError> {
        if child.pids.here == self.parent.pid {
            return Err(ForkError::violation("it sent the hello of its child"));
        }
        if self.jail.control.knows(child.pids.inner) {
            return Err(ForkError::violation("another worker sent the hello of its child"));
        }
        match rlimit::mark_of(child.pids.here) {
            Ok(mark) if mark == self.parent.mark => Ok(()),
            Ok(_) => Err(ForkError::violation("another process sent the hello of its child")),
            Err(_) => Err(closed(child, "the limits of its child cannot be read").await),
        }
    }

    /// Kills children of this order that sent no hello. Inspects every process, so it is only called after a failure.
    async fn search(&self) {
        let (parent, mark) = (self.parent.pid, self.parent.mark);
        let child = MarkedChild { keeper: self.jail.pid, parent, mark };
        let hidden = tokio::task::spawn_blocking(move || end_hidden(child)).await;
        if hidden.is_ok_and(|hidden| hidden > 0) {
            let _ = self.jail.events.send(SpawnEvent::UnorderedFork { pid: parent }).await;
        }
    }
}

/// The result of a fork after its child has closed its socket: a child that was killed has violated nothing.
async fn closed(child: &UnassignedWorker, what: &str) -> ForkError {
    if exits(&child.pidfd).await {
        return SpawnError::WorkerSilent("exited").into();
    }
    ForkError::violation(what)
}

/// Whether the process has exited or does so now: the kernel closes the descriptors of a killed process before it reports the exit.
async fn exits(process: &PidFd) -> bool {
    !process.is_alive() || matches!(timeout(DYING, exit_of(process)).await, Ok(Ok(())))
}

/// Whether more than the first hello arrived on the socket.
fn speaks(way: &WatchedFd) -> bool {
    let mut buffer = [0; 1];
    socket::receive(way.get_ref(), &mut buffer, Wait::No).is_ok_and(|got| got.len > 0)
}

/// The child of an ordered fork, among all processes: marks are numbers of one jail.
#[derive(Debug, Clone, Copy)]
pub(super) struct MarkedChild {
    pub(super) keeper: u32,
    pub(super) parent: u32,
    pub(super) mark: u64,
}

impl MarkedChild {
    /// Whether it is this process, and has not exited: one that has exited and is not reaped has no memory. Processes of other users
    /// cannot be read.
    pub(super) fn is(self, pid: u32) -> bool {
        let lives = |status: inspect::Status| status.ppid == self.keeper && status.mapped_bytes > 0;
        pid != self.parent
            && rlimit::mark_of(pid).ok() == Some(self.mark)
            && inspect::status(pid).is_ok_and(lives)
    }
}

/// Kills all processes with the mark except the parent; returns their number.
fn end_hidden(child: MarkedChild) -> usize {
    let Ok(processes) = inspect::processes() else { return 0 };
    let mut hidden = 0;
    for pid in processes.into_iter().filter(|pid| child.is(*pid)) {
        let Ok(process) = PidFd::open(pid) else { continue };
        // Inspected by pid: it is the process of the pidfd if both checks have the same result.
        if child.is(pid) && process.is_alive() {
            tracing::warn!(pid, "a child without a hello is killed");
            let _ = process.kill();
            hidden += 1;
        }
    }
    hidden
}

#[cfg(test)]
mod tests {
    use super::{ChildReceiver, ForkUnderWay, channel};
    use crate::channel::split;
    use crate::control::Control;
    use crate::process::WorkerProcess;
    use crate::spawner::WorkerHandle;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::Command;
    use std::sync::Arc;
    use tokio::sync::oneshot;
    use vm_system_protocol::hello::PROTOCOL;
    use vm_system_protocol::ids::SessionId;
    use vm_system_sandbox::pidfd::PidFd;

    #[tokio::test]
    async fn child_that_was_sent_and_is_not_received_is_killed() {
        let mut process = Command::new("sleep").arg("600").spawn().expect("a process");
        let pidfd = Arc::new(PidFd::open(process.id()).expect("it runs"));
        let (keepers, _keeper) = channel().expect("a socket pair");
        let control = Arc::new(Control::new(keepers, PROTOCOL));
        let exit = control.watch(1, Arc::clone(&pidfd), None).expect("the keeper is not lost");
        let session = SessionId::from_bytes([1; 16]);
        let child = WorkerProcess::new(session, process.id(), pidfd, exit, control, None);
        let (ours, _its) = channel().expect("a socket pair");
        let (sender, receiver) = split(ours, PROTOCOL);
        let (result_sender, result) = oneshot::channel();
        let (over, _is_over) = oneshot::channel();
        let (taken, is_taken) = oneshot::channel();
        let under_way = ForkUnderWay { result, taken: Some(taken), _over: over };
        let sending = ChildReceiver { result: result_sender, is_taken };
        let sending = tokio::spawn(sending.send(Ok(WorkerHandle { sender, receiver, process: child })));
        // It sends the child, and waits.
        tokio::task::yield_now().await;
        drop(under_way);
        sending.await.expect("no panic");
        let status = process.wait().expect("our child");
        assert_eq!(status.signal(), Some(nix::libc::SIGKILL));
    }
}
