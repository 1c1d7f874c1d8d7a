//! Starts workers, and sends them a program's code and the pages of the state to resume.

use super::Durables;
use crate::shares::{Holder, Share};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;
use vm_system_core::durable::{DurableRefusal, LoadFrom};
use vm_system_protocol::durable::{DurableLimits, PAGE_BATCH_BYTES, StatePage, ToDurable};
use vm_system_protocol::ids::{ExecutionId, ProgramId, SessionId};
use vm_system_protocol::model::Limits;
use vm_system_protocol::worker::ToWorker;
use vm_system_record::{Owner as Principal, StoreError};
use vm_system_spawn::{
    SpawnError, Spawner, WorkerChannelError, WorkerHandle, WorkerKind, WorkerLimits, WorkerProcess,
};

/// Attempts to start one worker.
const TRIES: u32 = 3;
/// How long a start waits for the replacement of a lost jail.
const NEXT_JAIL: Duration = Duration::from_secs(2);

/// A state of at most this size is restored in a fraction of a millisecond (bytes).
const SMALL_BYTES: usize = 64 << 10;

/// Pages by number.
pub(super) type Part = Vec<(u64, Vec<u8>)>;

fn bytes(part: &Part) -> usize {
    part.iter().map(|(_, page)| page.len()).sum()
}

/// Parameters of a worker to start.
#[derive(Debug, Clone)]
pub(super) struct Order {
    pub(super) execution: ExecutionId,
    /// The worker's session.
    pub(super) session: SessionId,
    pub(super) owner: Principal,
    pub(super) program: (ProgramId, u32),
    pub(super) from: LoadFrom,
    /// All pages of the state, if they have been read.
    pub(super) pages: Option<Part>,
    pub(super) limits: Limits,
    pub(super) life: DurableLimits,
}

/// A worker that was sent code and pages.
pub(super) struct LoadedWorker {
    /// The worker's session.
    pub(super) session: SessionId,
    pub(super) handle: WorkerHandle,
    /// The state is small (at most [`SMALL_BYTES`]).
    pub(super) small: bool,
    /// The jail that it runs in.
    pub(super) jail: Spawner,
    /// The slot among all workers.
    pub(super) slot: Share,
    /// The start slot; released once the state is restored.
    pub(super) start_permit: Share,
}

/// Why no worker was started.
#[derive(Debug, thiserror::Error)]
pub(super) enum WorkerStartError {
    #[error("{0}")]
    Spawn(#[from] SpawnError),
    #[error("{0}")]
    Store(#[from] StoreError),
    #[error("it could not be sent its program: {0}")]
    Channel(#[from] WorkerChannelError),
    #[error("its program is not in the store")]
    NoCode,
    #[error("the supervisor is stopping")]
    Stopping,
}

impl WorkerStartError {
    /// Whether a retry may succeed.
    fn may_pass(&self) -> bool {
        matches!(self, Self::Spawn(_) | Self::Channel(_))
    }

    /// Whether a retry needs another jail.
    fn is_of_the_jail(&self) -> bool {
        matches!(self, Self::Spawn(SpawnError::KeeperLost | SpawnError::NoZygote))
    }
}

impl From<WorkerStartError> for DurableRefusal {
    fn from(error: WorkerStartError) -> Self {
        match error {
            WorkerStartError::Store(error) => Self::Storage(error.to_string()),
            WorkerStartError::Stopping => Self::Stopping,
            other => Self::NoWorker(other.to_string()),
        }
    }
}

/// A message of the durable engine for a worker.
pub(super) fn order(what: ToDurable) -> ToWorker {
    ToWorker::Durable(Box::new(what))
}

/// A unique name of a worker in its jail: a session's next worker may be started while the previous one exits.
pub(super) fn name() -> SessionId {
    SessionId::from_uuid(Uuid::now_v7())
}

/// A worker's hard memory limit above the engine's own limit: the state, its copies while pages are written, and `mem_mb` for the
/// rest.
pub(super) fn memory(limits: &Limits) -> WorkerLimits {
    let mib = u64::from(limits.mem_mb) + 4 * u64::from(limits.max_state_mb);
    WorkerLimits { memory_bytes: mib << 20, cpu: None }
}

impl Durables {
    /// Ends a worker that is not needed any more, without waiting for it. `holds` is dropped when it has exited.
    pub(super) fn end(&self, process: WorkerProcess, holds: impl Send + 'static) {
        // The kill fails only if the worker has exited already.
        let _ = process.kill();
        let shared = Arc::clone(&self.shared);
        self.tasks.spawn(async move {
            process.exited().await;
            drop(shared.registry.take_forbidden(process.pid()));
            process.forget();
            drop(holds);
        });
    }

    /// The slots of a worker; if its owner gets none, warm workers are released. Only who has the first waits for the second.
    pub(super) async fn start_slot(&self, holder: &Holder) -> Result<(Share, Share), WorkerStartError> {
        let mut slot = pin!(self.slots.wait(holder, 1));
        let slot = tokio::select! {
            biased;
            slot = &mut slot => slot,
            // It is in the queue now.
            () = std::future::ready(()) => {
                self.pressure.notify_waiters();
                slot.await
            }
        };
        let slot = slot.ok_or(WorkerStartError::Stopping)?;
        let start_permit = self.starts.wait(holder, 1).await.ok_or(WorkerStartError::Stopping)?;
        Ok((slot, start_permit))
    }

    /// Starts a worker and sends it code and pages. The exit of a jail or a worker meanwhile is no reason to give
    /// up: it is retried.
    pub(super) async fn start_worker(&self, order: Order) -> Result<LoadedWorker, WorkerStartError> {
        let holder = self.shared.holder(&order.owner);
        tokio::select! {
            () = self.shared.pressure.not_caused_by(&order.owner) => {}
            () = self.stop.cancelled() => return Err(WorkerStartError::Stopping),
        }
        let (slot, start_permit) = self.start_slot(&holder).await?;
        let (program, version) = order.program;
        let code = self.code(program, version).await?.ok_or(WorkerStartError::NoCode)?;
        let mut tries = 0;
        loop {
            tries += 1;
            let jails = self.shared.jails.jails_of(&order.owner).await?;
            let mut changes = jails.changes();
            let jail = jails.present();
            let error = match self.start_in(&jail, &order, &code).await {
                Ok((handle, small)) => {
                    return Ok(LoadedWorker {
                        session: order.session,
                        handle,
                        small,
                        jail,
                        slot,
                        start_permit,
                    });
                }
                Err(error) => error,
            };
            if tries == TRIES || !error.may_pass() {
                return Err(error);
            }
            if error.is_of_the_jail() {
                // Without a new jail the next attempt reports why.
                let _ = tokio::time::timeout(NEXT_JAIL, changes.changed()).await;
            }
        }
    }

    async fn start_in(
        &self,
        jail: &Spawner,
        order: &Order,
        code: &Arc<Vec<u8>>,
    ) -> Result<(WorkerHandle, bool), WorkerStartError> {
        // The store is read while the worker is being started.
        let limits = memory(&order.limits);
        let spawned = jail.spawn_worker(name(), order.owner.as_str(), &limits, &WorkerKind::Program);
        let (spawned, first) = tokio::join!(spawned, self.part(order, None));
        let mut handle = spawned?;
        let (sent, small) = match first {
            Ok(first) => {
                let small = bytes(&first) <= SMALL_BYTES;
                (self.reply_all(&mut handle, order, code, first).await, small)
            }
            Err(error) => (Err(error.into()), false),
        };
        if let Err(error) = sent {
            self.end(handle.process.clone(), (handle, jail.clone()));
            return Err(error);
        }
        Ok((handle, small))
    }

    async fn reply_all(
        &self,
        handle: &mut WorkerHandle,
        what: &Order,
        code: &Arc<Vec<u8>>,
        first: Part,
    ) -> Result<(), WorkerStartError> {
        let load = ToDurable::Load { code: code.as_ref().clone(), limits: what.life };
        handle.sender.send(&order(load)).await?;
        if what.from == LoadFrom::Beginning {
            return Ok(());
        }
        self.send_checkpoint(handle, what, first).await
    }

    /// Sends the pages of a stored state, of which `first` are the first, and the message to restore it.
    pub(super) async fn send_checkpoint(
        &self,
        handle: &mut WorkerHandle,
        what: &Order,
        first: Part,
    ) -> Result<(), WorkerStartError> {
        let mut part = first;
        loop {
            let behind = part.last().map(|(number, _)| *number).filter(|_| bytes(&part) >= PAGE_BATCH_BYTES);
            let pages = part.into_iter().map(|(number, bytes)| StatePage { number, bytes }).collect();
            let pages = order(ToDurable::Pages(pages));
            let Some(behind) = behind else {
                handle.sender.send(&pages).await?;
                break;
            };
            // The next part is read while this one is sent.
            let (sent, next) = tokio::join!(handle.sender.send(&pages), self.part(what, Some(behind)));
            sent?;
            part = next?;
        }
        Ok(handle.sender.send(&order(ToDurable::Restore)).await?)
    }

    /// The next pages of the state; less than a message's capacity means that they are the last.
    pub(super) async fn part(&self, what: &Order, behind: Option<u64>) -> Result<Part, StoreError> {
        let LoadFrom::Checkpoint(checkpoint) = what.from else { return Ok(Part::new()) };
        if let (Some(all), None) = (&what.pages, behind) {
            return Ok(all.clone());
        }
        self.shared.store.state_part(what.execution, checkpoint, behind, PAGE_BATCH_BYTES).await
    }
}
