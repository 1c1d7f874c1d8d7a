//! Fault injection for tests: a decorator of any [`Store`] that fails on request, as a full or broken disk would. Stores
//! nothing itself.

use super::handle::{StoreHandle, Ticket};
use super::reads::prelude::*;
use super::reads::{OwnedArgument, for_each_read};
use super::{BoxFuture, Lane, SessionWatch, Store, StoreReads, StoreStatus, Urgency};
use std::collections::BTreeSet;
use std::fs::File;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use vm_system_protocol::control::CheckReport;
use vm_system_record::{Batch, ClaimKind, ClaimedRun, Fence, Incarnation, LetGo, Write};

/// Makes a store fail.
#[derive(Clone)]
pub struct Faults {
    switches: Arc<Mutex<Switches>>,
    full: watch::Sender<FullLanes>,
    /// Batches that have waited for capacity.
    waited: watch::Sender<u64>,
}

/// The lanes whose batches wait for capacity.
#[derive(Debug, Clone, PartialEq, Eq)]
enum FullLanes {
    None,
    All,
    Of(Owner),
}

impl FullLanes {
    fn have(&self, lane: &Lane) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Of(owner) => *lane == Lane::Owner(owner.clone()),
        }
    }
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            switches: Arc::default(),
            full: watch::Sender::new(FullLanes::None),
            waited: watch::Sender::new(0),
        }
    }
}

#[derive(Default)]
struct Switches {
    writing: Option<String>,
    reading: Option<String>,
    over_quota: bool,
    live: Option<Incarnation>,
    /// Executions with lost writes: marked with the next batch, as by the SQLite store.
    lost: BTreeSet<ExecutionId>,
}

impl Faults {
    /// Wraps `store` so that it fails as this value requests.
    pub fn wrap(store: StoreHandle) -> (StoreHandle, Self) {
        let faults = Self::default();
        let store = FaultyStore { store: store.into_store(), faults: faults.clone() };
        (StoreHandle::new(Arc::new(store)), faults)
    }

    /// From now on every batch is `Unavailable(why)`; none = works again.
    pub fn set(&self, why: Option<&str>) {
        self.switches().writing = why.map(str::to_owned);
    }
    /// From now on every read is `Unavailable(why)`; none = works again.
    pub fn set_reading(&self, why: Option<&str>) {
        self.switches().reading = why.map(str::to_owned);
    }
    /// Sets whether batches wait for capacity of the queue, as they do behind a slow disk.
    pub fn set_full(&self, full: bool) {
        self.full.send_replace(if full { FullLanes::All } else { FullLanes::None });
    }
    /// From now on the batches of this owner wait for capacity of the queue, and no others.
    pub fn set_full_for(&self, owner: &Owner) {
        self.full.send_replace(FullLanes::Of(owner.clone()));
    }
    /// Waits until a batch waits for capacity, or has waited for it.
    pub async fn until_a_batch_waits(&self) {
        // Cannot fail: the sender is a field of this value.
        let _ = self.waited.subscribe().wait_for(|waited| *waited > 0).await;
    }
    /// Sets whether the status reports that the quota is exceeded.
    pub fn set_over_quota(&self, over: bool) {
        self.switches().over_quota = over;
    }

    /// Sets another process that is live, as there may be with a store of several.
    pub fn set_live(&self, other: Option<Incarnation>) {
        self.switches().live = other;
    }

    fn switches(&self) -> MutexGuard<'_, Switches> {
        self.switches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The executions to mark before a batch that succeeds, or why the batch fails.
    fn judge_batch(&self, batch: &Batch) -> Result<BTreeSet<ExecutionId>, StoreError> {
        let mut switches = self.switches();
        match switches.writing.clone() {
            None => Ok(std::mem::take(&mut switches.lost)),
            Some(why) => {
                switches.lost.extend(batch.incomplete());
                Err(StoreError::Unavailable(why))
            }
        }
    }
}

struct FaultyStore {
    store: Arc<dyn Store>,
    faults: Faults,
}

impl Store for FaultyStore {
    fn submit(
        &self,
        lane: Lane,
        batch: Batch,
        urgency: Urgency,
    ) -> BoxFuture<'_, Result<Ticket, StoreError>> {
        Box::pin(async move {
            if self.faults.full.borrow().have(&lane) {
                self.faults.waited.send_modify(|waited| *waited += 1);
            }
            // Cannot fail: the sender is a field of this value.
            let _ = self.faults.full.subscribe().wait_for(|full| !full.have(&lane)).await;
            let lost = match self.faults.judge_batch(&batch) {
                Ok(lost) => lost,
                Err(error) => return Ok(Ticket::failed(error)),
            };
            for id in lost {
                // Refused if the execution's row was lost: there is nothing to mark.
                let mark = Write::ExecutionDegraded { id };
                self.store.submit(lane.clone(), mark.into(), urgency).await?;
            }
            self.store.submit(lane, batch, urgency).await
        })
    }

    fn now(&self) -> Timestamp {
        self.store.now()
    }

    fn incarnation(&self) -> Incarnation {
        self.store.incarnation()
    }

    fn is_live(&self, other: Incarnation) -> bool {
        self.faults.switches().live == Some(other) || self.store.is_live(other)
    }

    fn claim(&self, which: ClaimKind, limit: u32) -> BoxFuture<'_, Result<Vec<ClaimedRun>, StoreError>> {
        match self.faults.switches().reading.clone() {
            Some(why) => Box::pin(std::future::ready(Err(StoreError::Unavailable(why)))),
            None => self.store.claim(which, limit),
        }
    }

    fn wakes(&self) -> BoxFuture<'_, ()> {
        self.store.wakes()
    }

    fn schedule_wakes(&self) -> BoxFuture<'_, ()> {
        self.store.schedule_wakes()
    }

    fn first_fence(&self) -> Fence {
        self.store.first_fence()
    }

    fn expect(&self, execution: ExecutionId, fence: Fence) {
        self.store.expect(execution, fence);
    }

    fn let_go(&self, execution: ExecutionId, fence: Fence, left: LetGo) {
        self.store.let_go(execution, fence, left);
    }

    fn watch_session(&self, session: SessionId) -> SessionWatch {
        self.store.watch_session(session)
    }

    fn backup(&self) -> BoxFuture<'_, Result<File, StoreError>> {
        self.store.backup()
    }

    fn check(&self) -> BoxFuture<'_, Result<CheckReport, StoreError>> {
        self.store.check()
    }

    fn is_full(&self, owner: &Owner) -> bool {
        self.store.is_full(owner)
    }

    fn status(&self) -> StoreStatus {
        let status = self.store.status();
        let switches = self.faults.switches();
        StoreStatus {
            over_quota: status.over_quota || switches.over_quota,
            failing: switches.writing.clone().or(status.failing),
            ..status
        }
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        self.store.shutdown()
    }
}

macro_rules! read_unless_faulty {
    ($($(#[$doc:meta])* $name:ident[$($lent:ident: $borrowed:ty),*]($($arg:ident: $copied:ty),*) -> $result:ty;)*) => {
        impl StoreReads for FaultyStore {
            $(
                fn $name(
                    &self,
                    lane: Lane,
                    $($lent: OwnedArgument<$borrowed>,)*
                    $($arg: $copied),*
                ) -> BoxFuture<'_, Result<$result, StoreError>> {
                    match self.faults.switches().reading.clone() {
                        Some(why) => Box::pin(std::future::ready(Err(StoreError::Unavailable(why)))),
                        None => self.store.$name(lane, $($lent,)* $($arg),*),
                    }
                }
            )*
        }
    };
}
for_each_read!(read_unless_faulty);
