//! Frozen copies of session workers: stopped processes from which a session can continue, and the requests about them.
//!
//! A copy is a child of the session's worker that has introduced itself and got no `Start`. It is stopped (SIGSTOP), because it may be
//! hostile: it has no processor time. To continue, it runs until it has forked: its child, which the keeper knows by the session's own id, becomes the
//! worker. Parent and child are checked as in every other fork (`vm_system_spawn`).

use super::api::RuntimeError;
use super::facade::{Runtime, unexpected};
use super::fork::end;
use super::link::{LinkEvent, WorkerLink};
use super::memory::Reservation;
use super::owner_memory::OwnedMemory;
use super::session_task::SessionTask;
use super::task::{Command, spawn_failure};
use crate::shares::Share;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;
use vm_system_core::{
    CopyId, ForkFault, SessionAction as Action, SessionInput as Input, SessionReply, SpawnFailure,
};
use vm_system_protocol::ids::SessionId;
use vm_system_protocol::limits::HELLO_MS;
use vm_system_protocol::model::{Session, SessionCheckpoint};
use vm_system_protocol::worker::{FromWorker, ToWorker};
use vm_system_spawn::{ForkError, Spawner, WorkerHandle};

/// A copy must report its fork within this time.
const REPORT: Duration = Duration::from_millis(HELLO_MS);

/// A frozen copy of a session's worker. Killed when it is dropped.
pub(super) struct FrozenCopy {
    link: WorkerLink,
    jail: Spawner,
    /// Forks ordered so far.
    orders: u64,
    /// The share of its owner; the guard copy's is the session's.
    _share: Option<Share>,
}

impl Drop for FrozenCopy {
    fn drop(&mut self) {
        // The kill fails if it has exited already.
        let _ = self.link.process.kill();
        self.link.process.forget();
    }
}

/// The result of a copy's fork.
pub(super) struct Restored {
    copy: CopyId,
    frozen: FrozenCopy,
    result: Result<WorkerHandle, ForkFault>,
}

pub(super) type Restoring = Pin<Box<dyn Future<Output = Box<Restored>> + Send>>;

impl FrozenCopy {
    fn new(handle: WorkerHandle, jail: Spawner, share: Option<Share>, memory: OwnedMemory) -> Self {
        let link = WorkerLink::new(handle, Reservation::default(), memory);
        let copy = Self { link, jail, orders: 0, _share: share };
        copy.stop();
        copy
    }

    fn stop(&self) {
        // It fails if the copy has exited, which its use will show.
        let _ = self.link.process.signal(libc::SIGSTOP);
    }

    /// Has the copy fork a worker for the session; the copy is stopped again.
    async fn restore(mut self, copy: CopyId, session: SessionId) -> Box<Restored> {
        let result = self.fork(session).await;
        self.stop();
        Box::new(Restored { copy, frozen: self, result })
    }

    async fn fork(&mut self, session: SessionId) -> Result<WorkerHandle, ForkFault> {
        let (mut under_way, way) = self
            .jail
            .fork_worker(&self.link.process, session)
            .map_err(|error| ForkFault::NotOrdered(spawn_failure(&error)))?;
        self.orders += 1;
        let order = self.orders;
        if let Some(error) = self.link.outbox.push_with(ToWorker::Fork { order }, Some(way)) {
            return Err(ForkFault::Violation(error.to_string()));
        }
        let _ = self.link.process.signal(libc::SIGCONT);
        // The permission ends only when the copy has reported, or was killed: hidden children are searched after that.
        let (report, child) = tokio::join!(self.report(order), &mut under_way);
        if report.is_err() {
            let _ = self.link.process.kill();
        } else {
            // It keeps its report until then. The message waits in the channel for its next fork.
            let _ = self.link.outbox.push(ToWorker::Ack { seq: order });
        }
        match (report, child) {
            (Ok(Ok(())), Ok(handle)) => Ok(handle),
            (report, Ok(handle)) => {
                end(&handle);
                let what =
                    report.err().unwrap_or_else(|| "a child of a fork that it reported as failed".to_owned());
                Err(ForkFault::Violation(what))
            }
            (_, Err(ForkError::Violation(what))) | (Err(what), Err(ForkError::Failed(_))) => {
                Err(ForkFault::Violation(what))
            }
            (Ok(_), Err(ForkError::Failed(error))) => Err(ForkFault::Failed(spawn_failure(&error))),
        }
    }

    /// What the copy reports of its fork: the errno of a clone that failed. Anything else is a violation.
    async fn report(&mut self, order: u64) -> Result<Result<(), i32>, String> {
        let event = timeout(REPORT, self.link.next(true)).await.map_err(|_| "it did not report its fork")?;
        match event {
            LinkEvent::Received(received) if received.seq != order => {
                Err(format!("sequence {}, expected {order}", received.seq))
            }
            LinkEvent::Received(received) => match received.message {
                FromWorker::Forked { order: of } if of == order => Ok(Ok(())),
                FromWorker::ForkFailed { order: of, errno } if of == order => Ok(Err(errno)),
                _ => Err("another message than the report about its fork".to_owned()),
            },
            LinkEvent::ReceiveFailed(error) | LinkEvent::SendFailed(error) => Err(error.to_string()),
            LinkEvent::Exited(exit) => Err(format!("it has exited ({exit:?})")),
        }
    }
}

impl SessionTask {
    /// The child of the current fork becomes a frozen copy.
    pub(super) fn freeze(&mut self, copy: CopyId) {
        let (Some(handle), Some(jail)) = (self.take_forked(), self.worker.jail.clone()) else { return };
        let share = match copy {
            CopyId::Checkpoint(number) => {
                let (process, commands) = (handle.process.clone(), self.live.commands.clone());
                // Ends with the copy.
                tokio::spawn(async move {
                    process.exited().await;
                    let _ = commands.send(Command::CheckpointExited { number }).await;
                });
                self.copies.share.take()
            }
            CopyId::Guard => None,
        };
        let memory = self.owned(&handle.process);
        self.copies.frozen.insert(copy, FrozenCopy::new(handle, jail, share, memory));
    }

    pub(super) fn drop_copy(&mut self, copy: CopyId) {
        self.copies.frozen.remove(&copy);
    }

    /// Has a copy fork the session's next worker.
    pub(super) fn fork_copy(&mut self, copy: CopyId) {
        self.forget_worker();
        if let Some(frozen) = self.copies.frozen.remove(&copy) {
            self.copies.restoring = Some(Box::pin(frozen.restore(copy, self.live.id)));
        } else {
            let failure = SpawnFailure::late("there is no frozen copy".to_owned());
            self.next.push(Input::CopyForked(Err(ForkFault::Failed(failure))));
        }
    }

    /// Handles the result of a copy's fork.
    pub(super) fn restored(&mut self, restored: Box<Restored>, actions: &mut Vec<Action>) {
        let Restored { copy, frozen, result } = *restored;
        self.copies.restoring = None;
        if !matches!(result, Err(ForkFault::Violation(_))) {
            self.copies.frozen.insert(copy, frozen);
        }
        let result = match result {
            Ok(unwanted) if !self.machine.awaits_fork_of_copy() => return end(&unwanted),
            Ok(handle) => {
                self.connect_next(handle);
                Ok(super::specs::seed())
            }
            Err(fault) => {
                tracing::warn!(session = %self.live.id, ?fault, "a session cannot continue from its frozen copy");
                Err(fault)
            }
        };
        self.step(Input::CopyForked(result), actions);
    }
}

impl Runtime {
    pub(super) async fn checkpoint(
        &self,
        session: SessionId,
        name: Option<String>,
    ) -> Result<SessionCheckpoint, RuntimeError> {
        let live = self.live(session)?;
        self.shared().pressure.admit(&live.owner)?;
        let share = self.share_of(&live)?;
        match self.request(&live, |responder| Command::Checkpoint { name, share, responder }).await? {
            SessionReply::Checkpoint(checkpoint) => Ok(*checkpoint),
            other => Err(unexpected(&other)),
        }
    }

    pub(super) async fn checkpoints_of(
        &self,
        session: SessionId,
    ) -> Result<Vec<SessionCheckpoint>, RuntimeError> {
        let live = self.live(session)?;
        let (responder, response) = oneshot::channel();
        live.commands.send(Command::Checkpoints { responder }).await.map_err(|_| RuntimeError::NotLive)?;
        response.await.map_err(|_| RuntimeError::NotLive)
    }

    pub(super) async fn delete_checkpoint_of(
        &self,
        session: SessionId,
        checkpoint: String,
    ) -> Result<(), RuntimeError> {
        let live = self.live(session)?;
        self.request(&live, |responder| Command::DeleteCheckpoint { checkpoint, responder }).await.map(|_| ())
    }

    pub(super) async fn roll_back(
        &self,
        session: SessionId,
        checkpoint: Option<String>,
    ) -> Result<Session, RuntimeError> {
        let live = self.live(session)?;
        match self.request(&live, |responder| Command::Rollback { checkpoint, responder }).await? {
            SessionReply::Session(session) => Ok(*session),
            other => Err(unexpected(&other)),
        }
    }
}
