//! A worker out of another session's worker. Until the child has shaken hands on a channel that its parent never had,
//! parent and child are one unit of trust: one lie, and both are killed.
//!
//! ```text
//!  we                          parent                       child
//!  mark it, allow one clone
//!  Fork{order} + a way  ─────▶ clone ─────────────────────▶ puts the way in the place of its channel
//!  1. who is it?        ◀──────────────────────── hello, over the way, attested by the kernel
//!  hello + a channel    ──────────────── over the way ────▶ puts that in the same place
//!  2. is it the same?   ◀──────────────────────── hello, over its channel, attested by the kernel
//! ```
//! The parent may have kept a copy of the way, so nothing is believed that comes over it after the first hello. It may
//! take the channel out of it in the child's place; then the second hello is attested as the parent's, or none comes. It
//! cannot have both the channel and its child say hello there: a receive takes a descriptor out, the worker's filter
//! knows no peek, and no worker can send one.
//!
//! A child that hides is found by its mark: a resource limit that is set from outside before the order, that children
//! inherit and that nothing in the jail can change.

use super::error::SpawnError;
use super::packets;
use super::process::WorkerProcess;
use super::spawner::{Jail, Newborn, Silence, SpawnEvent, WorkerHandle, channel, newborn};
use std::future::Future;
use std::os::fd::{AsFd as _, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::sync::oneshot;
use tokio::time::Instant;
use vm_system_protocol::hello::Hello;
use vm_system_protocol::ids::SessionId;
use vm_system_protocol::limits::WRITE_MS;
use vm_system_sandbox::pidfd::PidFd;
use vm_system_sandbox::socket::{self, Wait};
use vm_system_sandbox::{inspect, rlimit};

/// Marks are above it, so that nobody's own limit is taken for one.
const MARKS: u64 = 1 << 62;

/// No child.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    /// It could not be made; its parent is well.
    #[error(transparent)]
    Failed(#[from] SpawnError),
    /// Parent or child did what no honest one does, or not in time. Both are killed.
    #[error("{0}")]
    Lie(String),
}

impl ForkError {
    fn lie(what: &str) -> Self {
        Self::Lie(what.to_owned())
    }
}

/// A fork that was allowed. Resolves when the child is a worker of its own, or when there will be none. To be dropped
/// only when the parent has said how its fork went or was killed: from then on a child that hides is looked for. A
/// child that nobody takes is killed.
#[derive(Debug)]
pub struct ForkUnderWay {
    result: oneshot::Receiver<Result<WorkerHandle, ForkError>>,
    /// Its end tells that the parent's clone is over.
    _over: oneshot::Sender<()>,
}

impl Future for ForkUnderWay {
    type Output = Result<WorkerHandle, ForkError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.result)
            .poll(context)
            .map(|result| result.unwrap_or_else(|_| Err(SpawnError::WorkerSilent("was given up").into())))
    }
}

/// Allows one fork; gives what is to be sent with the order.
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
    let parent = Parent { pid: parent.pid(), pidfd: Arc::clone(parent.pidfd()), mark };
    let marked = rlimit::mark(parent.pid, mark)
        // It was marked by number: only now is it certain who.
        .and_then(|()| parent.pidfd.signal(0));
    marked.map_err(|error| SpawnError::Rlimit { pid: parent.pid, error })?;
    jail.orders.add(parent.pid);
    let (told, result) = oneshot::channel();
    let (over, is_over) = oneshot::channel();
    let birth = Birth { jail: Arc::clone(jail), parent, child };
    // Whoever waits may go away at any moment; what was begun is seen through.
    tokio::spawn(birth.see_through(way, told, is_over));
    Ok((ForkUnderWay { result, _over: over }, childs))
}

struct Parent {
    pid: u32,
    pidfd: Arc<PidFd>,
    mark: u64,
}

struct Birth {
    jail: Arc<Jail>,
    parent: Parent,
    child: SessionId,
}

impl Birth {
    async fn see_through(
        self,
        way: AsyncFd<OwnedFd>,
        told: oneshot::Sender<Result<WorkerHandle, ForkError>>,
        over: oneshot::Receiver<()>,
    ) {
        let mut result = self.deliver(way).await;
        let failed = result.is_err();
        let unused = failed && self.jail.orders.take(self.parent.pid);
        if unused && self.parent.pidfd.is_alive() && matches!(result, Err(ForkError::Failed(_))) {
            // Whoever is told to tries, and then the order is used.
            result = Err(ForkError::lie("it let go of the child's way and did not fork"));
        }
        let lied = matches!(result, Err(ForkError::Lie(_)));
        if let Err(error) = &result {
            tracing::warn!(pid = self.parent.pid, %error, "a worker was not forked");
        }
        // Before the parent's death, so that it is known what it died of.
        if let Err(Ok(unwanted)) = told.send(result) {
            let _ = unwanted.process.kill();
            unwanted.process.forget();
        }
        if lied {
            let _ = self.parent.pidfd.kill();
        }
        if failed && !unused {
            if !lied {
                // Its clone may not have come back yet.
                let _ = over.await;
            }
            self.search().await;
        }
    }

    async fn deliver(&self, way: AsyncFd<OwnedFd>) -> Result<WorkerHandle, ForkError> {
        let child = match newborn(&way).await {
            Ok(child) => child,
            // It could not clone, or its child died at once: it says which.
            Err(Silence::Closed) => return Err(SpawnError::WorkerSilent("died").into()),
            Err(Silence::Other(error)) => {
                return Err(ForkError::Lie(format!("no child introduced itself: {error}")));
            }
        };
        let result = self.raise(&way, &child).await;
        if result.is_err() {
            let _ = child.pidfd.kill();
        }
        result
    }

    /// From the first hello to a worker of its own.
    async fn raise(&self, way: &AsyncFd<OwnedFd>, child: &Newborn) -> Result<WorkerHandle, ForkError> {
        self.examine(child)?;
        let (ours, its) = channel()?;
        let deadline = Instant::now() + Duration::from_millis(WRITE_MS);
        let welcome = Hello::ours().to_packet();
        let sent = packets::send(way, &[&welcome], &[its.as_fd()], deadline).await;
        drop(its);
        // Whoever died in between did it before anything was its own.
        sent.map_err(|_| ForkError::lie("the child left before it had a channel"))?;
        let again = match newborn(&ours).await {
            Ok(again) => again,
            Err(Silence::Closed) => return Err(ForkError::lie("the child left without a word")),
            Err(Silence::Other(error)) => {
                return Err(ForkError::Lie(format!("the child's channel: {error}")));
            }
        };
        if again.pids != child.pids || !child.pidfd.is_alive() {
            let _ = again.pidfd.kill();
            return Err(ForkError::lie("somebody else spoke on the child's channel"));
        }
        if speaks(way) {
            return Err(ForkError::lie("somebody spoke in the child's name"));
        }
        let settled = self.jail.settle(self.child, None, ours, child, None).await;
        if settled.is_err() {
            self.jail.control.forget(self.child);
        }
        Ok(settled?)
    }

    /// Who said the first hello: a process that is new, made by this very order, in the jail.
    fn examine(&self, child: &Newborn) -> Result<(), ForkError> {
        if child.pids.here == self.parent.pid {
            return Err(ForkError::lie("it introduced itself as its child"));
        }
        if self.jail.control.knows(child.pids.inner) {
            return Err(ForkError::lie("another worker introduced itself as its child"));
        }
        match rlimit::mark_of(child.pids.here) {
            Ok(mark) if mark == self.parent.mark => Ok(()),
            Ok(_) => Err(ForkError::lie("a stranger introduced itself as its child")),
            // It has died meanwhile.
            Err(_) => Err(ForkError::lie("the child left before it had a channel")),
        }
    }

    /// Ends children of this order that did not introduce themselves. Looks at every process: only after a failure.
    async fn search(&self) {
        let (keeper, parent, mark) = (self.jail.pid, self.parent.pid, self.parent.mark);
        let hidden = tokio::task::spawn_blocking(move || end_hidden(keeper, parent, mark)).await;
        if hidden.is_ok_and(|hidden| hidden > 0) {
            let _ = self.jail.events.send(SpawnEvent::UnorderedFork { pid: parent }).await;
        }
    }
}

/// Whether more came over the way than the first hello.
fn speaks(way: &AsyncFd<OwnedFd>) -> bool {
    let mut buffer = [0; 1];
    socket::receive(way.get_ref(), &mut buffer, Wait::No).is_ok_and(|got| got.len > 0)
}

/// How many processes had the mark, besides the parent; they are killed.
fn end_hidden(keeper: u32, parent: u32, mark: u64) -> usize {
    let Ok(processes) = inspect::processes() else { return 0 };
    let mut hidden = 0;
    for pid in processes.into_iter().filter(|pid| *pid != parent) {
        // Those of others may not be asked.
        if rlimit::mark_of(pid).ok() != Some(mark) {
            continue;
        }
        let Ok(process) = PidFd::open(pid) else { continue };
        // Looked at by number: what was seen is the process that is held now, if both are the same before and after.
        // One that has ended and is still to be reaped has no memory.
        let lives = |status: inspect::Status| status.ppid == keeper && status.mapped_bytes > 0;
        let is_ours = inspect::status(pid).is_ok_and(lives);
        if is_ours && rlimit::mark_of(pid).ok() == Some(mark) && process.is_alive() {
            tracing::warn!(pid, "a child that did not introduce itself is killed");
            let _ = process.kill();
            hidden += 1;
        }
    }
    hidden
}
