//! The assignment of a worker to a session. The keeper holds the worker's channel before it is over, so that the next supervisor finds
//! every session's worker.

use super::super::channel::split;
use super::super::control::Control;
use super::super::error::SpawnError;
use super::super::groups::OwnerGroup;
use super::super::process::{ReportedExit, WorkerProcess};
use super::super::unassigned::UnassignedWorker;
use super::{Jail, WorkerHandle};
use crate::reactor::WatchedFd;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;
use vm_system_protocol::ids::SessionId;
use vm_system_protocol::keeper::ToKeeper;
use vm_system_protocol::limits::HELLO_MS;
use vm_system_sandbox::pidfd::PidFd;

/// A worker that is registered with the keeper. If this is dropped before the assignment is finished, a task ends the worker: the keeper
/// holds its channel, so that it would not exit by itself when the request is given up.
pub(crate) struct Assignment<'a> {
    jail: &'a Jail,
    session: SessionId,
    worker: &'a UnassignedWorker,
    group: Option<Arc<OwnerGroup>>,
    exit: watch::Receiver<Option<ReportedExit>>,
    kept: oneshot::Receiver<()>,
    /// Used when the assignment is finished.
    finished: oneshot::Sender<()>,
}

impl Jail {
    /// Registers a worker, which is in its owner's group, with the keeper.
    pub(crate) async fn assign<'a>(
        &'a self,
        session: SessionId,
        ours: &WatchedFd,
        worker: &'a UnassignedWorker,
        group: Option<Arc<OwnerGroup>>,
    ) -> Result<Assignment<'a>, SpawnError> {
        let inner_pid = worker.pids.inner;
        let Some(exit) = self.control.watch(inner_pid, Arc::clone(&worker.pidfd), group.as_deref()) else {
            let _ = worker.pidfd.kill();
            return Err(SpawnError::KeeperLost);
        };
        let kept = self.control.when_kept(session);
        let (finished, is_finished) = oneshot::channel();
        tokio::spawn(end_unfinished(
            session,
            Arc::clone(&worker.pidfd),
            Arc::clone(&self.control),
            is_finished,
        ));
        let assignment = Assignment { jail: self, session, worker, group, exit, kept, finished };
        let fds = [ours.as_fd(), worker.pidfd.as_fd()];
        let registered = self.control.send(&ToKeeper::Keep { session, inner_pid }, &fds).await;
        registered.map_err(|_| SpawnError::KeeperLost)?;
        Ok(assignment)
    }
}

impl Assignment<'_> {
    /// Ends the worker. At once: the next attempt for its session must not be forgotten by the keeper in place of this one.
    pub(crate) fn give_up(self) {
        end(self.session, &self.worker.pidfd, &self.jail.control);
        // The task has nothing to do then.
        let _ = self.finished.send(());
    }

    /// Waits for the keeper.
    pub(crate) async fn finish(mut self, ours: WatchedFd) -> Result<WorkerHandle, SpawnError> {
        let limit = Duration::from_millis(HELLO_MS);
        match timeout(limit, &mut self.kept).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => {
                self.give_up();
                return Err(SpawnError::KeeperLost);
            }
            Err(_) => {
                self.jail.mark_stuck();
                self.give_up();
                return Err(SpawnError::KeeperLost);
            }
        }
        // The task exists until then.
        let _ = self.finished.send(());
        let (pidfd, control) = (Arc::clone(&self.worker.pidfd), Arc::clone(&self.jail.control));
        let process =
            WorkerProcess::new(self.session, self.worker.pids.here, pidfd, self.exit, control, self.group);
        let (sender, receiver) = split(ours, self.worker.protocol);
        Ok(WorkerHandle { sender, receiver, process })
    }
}

/// Ends a worker whose assignment was given up.
async fn end_unfinished(
    session: SessionId,
    worker: Arc<PidFd>,
    control: Arc<Control>,
    is_finished: oneshot::Receiver<()>,
) {
    if is_finished.await.is_err() {
        end(session, &worker, &control);
    }
}

fn end(session: SessionId, worker: &PidFd, control: &Control) {
    // The kill fails if it has exited already.
    let _ = worker.kill();
    control.forget(session);
}
