//! Frozen copies of session workers: stopped processes from which a session can continue, and the requests about them.
//!
//! A copy is a child of the session's worker that has introduced itself and got no `Start`. It is stopped (SIGSTOP), because it may be
//! hostile: it has no processor time. To continue, it runs until it has forked: its child, which the keeper knows by the session's own id, becomes the
//! worker. Parent and child are checked as in every other fork (`vm_system_spawn`).

use super::api::RuntimeError;
use super::command::{CallPart, Command};
use super::facade::Runtime;
use super::link::{LinkEvent, WorkerLink};
use super::memory::Reservation;
use super::owner_memory::OwnedMemory;
use super::session_task::SessionTask;
use super::task::spawn_failure;
use crate::shares::Share;
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;
use vm_system_core::{CopyId, ForkFault, SessionAction as Action, SessionInput as Input, SpawnFailure};
use vm_system_protocol::ids::SessionId;
use vm_system_protocol::limits::HELLO_MS;
use vm_system_protocol::model::SessionCheckpoint;
use vm_system_protocol::worker::{FromWorker, ToWorker};
use vm_system_spawn::{
    ForkError, Received, Spawner, WorkerChannelError, WorkerExitStatus, WorkerHandle, WorkerProcess,
};

/// A copy must report its fork within this time.
const REPORT: Duration = Duration::from_millis(HELLO_MS);

/// Why a copy did not do what was ordered.
#[derive(Debug)]
enum CopyFault {
    /// It was killed, or exited: no message says who did that.
    Exited(WorkerExitStatus),
    Violation(String),
}

impl From<WorkerChannelError> for CopyFault {
    fn from(error: WorkerChannelError) -> Self {
        match error {
            // The copy's exit follows, or has not been reported yet.
            WorkerChannelError::Closed => Self::Exited(WorkerExitStatus::Unknown),
            error => Self::Violation(error.to_string()),
        }
    }
}

impl From<CopyFault> for ForkFault {
    fn from(fault: CopyFault) -> Self {
        match fault {
            CopyFault::Exited(exit) => Self::Failed(SpawnFailure::late(format!("it has exited ({exit:?})"))),
            CopyFault::Violation(what) => Self::Violation(what),
        }
    }
}

/// A frozen copy of a session's worker; to be ended by [`Self::end`]. One that is dropped without that outlives its supervisor.
pub(super) struct FrozenCopy {
    link: WorkerLink,
    jail: Spawner,
    /// Forks ordered so far.
    orders: u64,
    /// The number of its last message; unknown of a copy that an earlier supervisor made.
    last_seq: Option<u64>,
    /// The share of its owner; the guard copy's is the session's.
    _share: Option<Share>,
}

/// The result of a copy's fork.
pub(super) struct Restored {
    copy: CopyId,
    frozen: FrozenCopy,
    result: Result<WorkerHandle, ForkFault>,
}

/// A copy that an earlier supervisor made, with its jail and its share.
pub(super) type AdoptedCopy = (WorkerHandle, Spawner, Share);

/// A copy that forks the session's next worker.
pub(super) struct Restoring {
    process: WorkerProcess,
    pub(super) result: Pin<Box<dyn Future<Output = Box<Restored>> + Send>>,
}

/// The session's frozen copies.
#[derive(Default)]
pub(super) struct SessionCopies {
    frozen: HashMap<CopyId, FrozenCopy>,
    /// A copy that forks the session's next worker.
    pub(super) restoring: Option<Restoring>,
    /// For the checkpoint that is being made.
    pub(super) share: Option<Share>,
}

impl SessionCopies {
    /// Keeps a copy; one that had its name is ended.
    fn keep(&mut self, copy: CopyId, frozen: FrozenCopy) {
        if let Some(earlier) = self.frozen.insert(copy, frozen) {
            earlier.end();
        }
    }

    /// Ends all copies.
    pub(super) fn end_all(&mut self) {
        self.frozen.drain().for_each(|(_, frozen)| frozen.end());
        if let Some(restoring) = self.restoring.take() {
            restoring.process.end();
        }
        self.share = None;
    }
}

impl FrozenCopy {
    fn new(handle: WorkerHandle, jail: Spawner, share: Option<Share>, memory: OwnedMemory) -> Self {
        let link = WorkerLink::new(handle, Reservation::default(), memory);
        let copy = Self { link, jail, orders: 0, last_seq: Some(0), _share: share };
        copy.stop();
        copy
    }

    /// A copy that an earlier supervisor made.
    fn adopted(handle: WorkerHandle, jail: Spawner, share: Option<Share>, memory: OwnedMemory) -> Self {
        let mut copy = Self::new(handle, jail, share, memory);
        copy.last_seq = None;
        copy
    }

    /// Kills it.
    fn end(&self) {
        self.link.process.end();
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

    /// Passes over what it has sent to an earlier supervisor, which may have ordered a fork.
    async fn catch_up(&mut self) -> Result<(), CopyFault> {
        let nonce = uuid::Uuid::new_v4().as_u64_pair().0;
        // Everything that it keeps is about earlier forks.
        let adopt = ToWorker::Adopt { last_committed: u64::MAX, nonce };
        if let Some(error) = self.link.outbox.push(adopt) {
            return Err(error.into());
        }
        let _ = self.link.process.signal(libc::SIGCONT);
        loop {
            if let FromWorker::Adopted { nonce: of, last_sent, .. } = self.next_message().await?.message
                && of == nonce
            {
                self.last_seq = Some(last_sent);
                return Ok(());
            }
        }
    }

    async fn next_message(&mut self) -> Result<Received, CopyFault> {
        match self.link.next(true).await {
            LinkEvent::Received(received) => Ok(received),
            LinkEvent::ReceiveFailed(error) | LinkEvent::SendFailed(error) => Err(error.into()),
            LinkEvent::Exited(exit) => Err(CopyFault::Exited(exit)),
        }
    }

    async fn fork(&mut self, session: SessionId) -> Result<WorkerHandle, ForkFault> {
        if self.last_seq.is_none() {
            let late = |_| CopyFault::Violation("it did not reply to its adoption".to_owned());
            timeout(REPORT, self.catch_up()).await.map_err(late).flatten()?;
        }
        let (mut under_way, way) = self
            .jail
            .fork_worker(&self.link.process, session)
            .map_err(|error| ForkFault::NotOrdered(spawn_failure(&error)))?;
        self.orders += 1;
        let order = self.orders;
        if let Some(error) = self.link.outbox.push_with(ToWorker::Fork { order }, Some(way)) {
            return Err(CopyFault::from(error).into());
        }
        let _ = self.link.process.signal(libc::SIGCONT);
        // The permission ends only when the copy has reported, or was killed: hidden children are searched after that.
        let (report, child) = tokio::join!(self.report(order), &mut under_way);
        if report.is_err() {
            let _ = self.link.process.kill();
        } else {
            // It keeps its report until then. The message waits in the channel for its next fork.
            let seq = self.last_seq.unwrap_or(0);
            let _ = self.link.outbox.push(ToWorker::Ack { seq });
        }
        match (report, child) {
            (Ok(Ok(())), Ok(handle)) => Ok(handle),
            (report, Ok(handle)) => {
                handle.process.end();
                let lied = || "a child of a fork that it reported as failed".to_owned();
                Err(report.err().unwrap_or_else(|| CopyFault::Violation(lied())).into())
            }
            (_, Err(ForkError::Violation(what))) => Err(ForkFault::Violation(what)),
            (Err(fault), Err(ForkError::Failed(_))) => Err(fault.into()),
            (Ok(_), Err(ForkError::Failed(error))) => Err(ForkFault::Failed(spawn_failure(&error))),
        }
    }

    /// The copy's report of its fork: the errno of a clone that failed. Anything else is a violation.
    async fn report(&mut self, order: u64) -> Result<Result<(), i32>, CopyFault> {
        let violation = |what: &str| CopyFault::Violation(what.to_owned());
        let received = timeout(REPORT, self.next_message()).await;
        let received = received.map_err(|_| violation("it did not report its fork"))??;
        let expected = self.last_seq.unwrap_or(0).wrapping_add(1);
        self.last_seq = Some(expected);
        match received.message {
            _ if received.seq != expected => {
                Err(violation(&format!("sequence {}, expected {expected}", received.seq)))
            }
            FromWorker::Forked { order: of } if of == order => Ok(Ok(())),
            FromWorker::ForkFailed { order: of, errno } if of == order => Ok(Err(errno)),
            _ => Err(violation("another message than the report about its fork")),
        }
    }
}

impl SessionTask {
    /// The child of the current fork becomes a frozen copy.
    pub(super) fn freeze(&mut self, copy: CopyId) {
        let (Some(handle), Some(jail)) = (self.take_forked(), self.worker.jail.clone()) else { return };
        let share = match copy {
            CopyId::Checkpoint(_) => self.copies.share.take(),
            CopyId::Guard => None,
        };
        self.watch_checkpoint(copy, &handle);
        let memory = self.owned(&handle.process);
        self.copies.keep(copy, FrozenCopy::new(handle, jail, share, memory));
    }

    /// Keeps a copy that an earlier supervisor made.
    pub(super) fn keep_adopted(&mut self, copy: CopyId, (handle, jail, share): AdoptedCopy) {
        let memory = self.owned(&handle.process);
        self.watch_checkpoint(copy, &handle);
        let share = matches!(copy, CopyId::Checkpoint(_)).then_some(share);
        self.worker.jail = Some(jail.clone());
        self.copies.keep(copy, FrozenCopy::adopted(handle, jail, share, memory));
    }

    /// Reports the exit of a checkpoint. Ends with it.
    fn watch_checkpoint(&self, copy: CopyId, handle: &WorkerHandle) {
        let CopyId::Checkpoint(number) = copy else { return };
        let (process, commands) = (handle.process.clone(), self.live.commands.clone());
        tokio::spawn(async move {
            process.exited().await;
            let _ = commands.send(Command::Notice(Input::CheckpointExited { number })).await;
        });
    }

    pub(super) fn drop_copy(&mut self, copy: CopyId) {
        if let Some(frozen) = self.copies.frozen.remove(&copy) {
            frozen.end();
        }
    }

    /// Has a copy fork the session's next worker.
    pub(super) fn fork_copy(&mut self, copy: CopyId) {
        self.forget_worker();
        if let Some(frozen) = self.copies.frozen.remove(&copy) {
            let process = frozen.link.process.clone();
            let result = Box::pin(frozen.restore(copy, self.live.id));
            if let Some(earlier) = self.copies.restoring.replace(Restoring { process, result }) {
                earlier.process.end();
            }
        } else {
            let failure = SpawnFailure::late("there is no frozen copy".to_owned());
            self.next.push(Input::CopyForked(Err(ForkFault::Failed(failure))));
        }
    }

    /// Handles the result of a copy's fork.
    pub(super) fn restored(&mut self, restored: Box<Restored>, actions: &mut Vec<Action>) {
        let Restored { copy, frozen, result } = *restored;
        self.copies.restoring = None;
        if matches!(result, Err(ForkFault::Violation(_))) {
            frozen.end();
        } else {
            self.copies.keep(copy, frozen);
        }
        let result = match result {
            Ok(unwanted) if !self.machine.awaits_fork_of_copy() => return unwanted.process.end(),
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
        let part = Some(CallPart::Copy(share));
        live.call_with(|token| Input::Checkpoint { token, name }, part).await
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
        self.live(session)?.call(|token| Input::DeleteCheckpoint { token, checkpoint }).await
    }
}
