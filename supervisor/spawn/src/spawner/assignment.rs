//! The assignment of a worker to a session. The keeper holds the worker's channel before it is over, so that the next supervisor finds
//! every session's worker.

use super::super::channel::split;
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

/// A worker that is registered with the keeper. Unless its assignment is finished, dropping this kills it: the keeper holds its
/// channel, so that it would not exit by itself when the request is given up.
pub(crate) struct Assignment<'a> {
    jail: &'a Jail,
    session: SessionId,
    worker: &'a UnassignedWorker,
    group: Option<Arc<OwnerGroup>>,
    exit: watch::Receiver<Option<ReportedExit>>,
    kept: Option<oneshot::Receiver<()>>,
}

impl Drop for Assignment<'_> {
    fn drop(&mut self) {
        if self.kept.is_some() {
            let _ = self.worker.pidfd.kill();
            self.jail.control.forget(self.session);
        }
    }
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
        let kept = Some(self.control.when_kept(session));
        let assignment = Assignment { jail: self, session, worker, group, exit, kept };
        let fds = [ours.as_fd(), worker.pidfd.as_fd()];
        let registered = self.control.send(&ToKeeper::Keep { session, inner_pid }, &fds).await;
        registered.map_err(|_| SpawnError::KeeperLost)?;
        Ok(assignment)
    }
}

impl Assignment<'_> {
    /// Waits for the keeper.
    pub(crate) async fn finish(mut self, ours: WatchedFd) -> Result<WorkerHandle, SpawnError> {
        let limit = Duration::from_millis(HELLO_MS);
        if let Some(kept) = &mut self.kept {
            let Ok(kept) = timeout(limit, kept).await else {
                self.jail.mark_stuck();
                return Err(SpawnError::KeeperLost);
            };
            kept.map_err(|_| SpawnError::KeeperLost)?;
        }
        self.kept = None;
        let (pidfd, control) = (Arc::clone(&self.worker.pidfd), Arc::clone(&self.jail.control));
        let (exit, group) = (self.exit.clone(), self.group.take());
        let process = WorkerProcess::new(self.session, self.worker.pids.here, pidfd, exit, control, group);
        let (sender, receiver) = split(ours, self.worker.protocol);
        Ok(WorkerHandle { sender, receiver, process })
    }
}
