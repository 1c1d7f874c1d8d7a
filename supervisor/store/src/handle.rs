//! The callers' interface: a clonable handle with a method for each read. Owns no state.

use super::reads::prelude::*;
use super::reads::{RowsOwner as _, for_each_read};
use super::{Lane, SessionWatch, Store, StoreStatus, Urgency};
use std::fmt;
use std::fs::File;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::oneshot;
use vm_system_protocol::control::CheckReport;
use vm_system_record::{Applied, Batch, ClaimKind, ClaimedRun, Fence, Incarnation, LetGo, PAGE_BYTES};

/// A queued batch. Resolves when it is committed or has failed; dropping the ticket does not cancel the batch.
#[derive(Debug)]
pub struct Ticket(pub(super) oneshot::Receiver<Result<Applied, StoreError>>);

impl Ticket {
    /// The ticket of a batch that was not queued.
    pub(super) fn failed(error: StoreError) -> Self {
        let (sender, ticket) = oneshot::channel();
        // Cannot fail: the receiver exists.
        let _ = sender.send(Err(error));
        Self(ticket)
    }
}

impl Future for Ticket {
    type Output = Result<Applied, StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map(|result| result.unwrap_or(Err(StoreError::Closed)))
    }
}

/// A clonable handle of a store; its batches and reads go into one lane.
#[derive(Clone)]
pub struct StoreHandle {
    store: Arc<dyn Store>,
    lane: Lane,
}

impl fmt::Debug for StoreHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StoreHandle").field(&self.status()).finish()
    }
}

impl StoreHandle {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, lane: Lane::System }
    }

    /// The same store, for what is written and read for an owner.
    #[must_use]
    pub fn for_owner(&self, owner: &Owner) -> Self {
        Self { store: Arc::clone(&self.store), lane: Lane::Owner(owner.clone()) }
    }

    pub(super) fn into_store(self) -> Arc<dyn Store> {
        self.store
    }

    /// Queues a batch for the next commit; waits only while the queue is full.
    pub async fn submit(&self, batch: impl Into<Batch>) -> Result<Ticket, StoreError> {
        self.store.submit(self.lane.clone(), batch.into(), Urgency::Now).await
    }

    /// Queues a batch that may wait for the next urgent one ([`LAZY_MS`](super::LAZY_MS)).
    pub async fn submit_lazy(&self, batch: impl Into<Batch>) -> Result<Ticket, StoreError> {
        self.store.submit(self.lane.clone(), batch.into(), Urgency::Lazy).await
    }

    /// Queues a batch and waits until it is committed.
    pub async fn apply(&self, batch: impl Into<Batch>) -> Result<Applied, StoreError> {
        self.submit(batch).await?.await
    }

    /// The lane of a read: of this handle's owner, else of the owner whose rows it returns.
    fn lane_of_read(&self, owners: &[Option<&Owner>]) -> Lane {
        match (&self.lane, owners.iter().find_map(|owner| *owner)) {
            (Lane::System, Some(owner)) => Lane::Owner(owner.clone()),
            (lane, _) => lane.clone(),
        }
    }

    /// The time, by which everything that is stored is dated, and by which it is due.
    pub fn now(&self) -> Timestamp {
        self.store.now()
    }

    /// This process, in what it writes about itself.
    pub fn incarnation(&self) -> Incarnation {
        self.store.incarnation()
    }

    /// Whether another process may still carry out what it has begun.
    pub fn is_live(&self, other: Incarnation) -> bool {
        self.store.is_live(other)
    }

    /// Takes executions of programs that are to go on and have no holder, at most `limit`. Fewer: there are no more now.
    pub async fn claim(&self, which: ClaimKind, limit: u32) -> Result<Vec<ClaimedRun>, StoreError> {
        self.store.claim(which, limit).await
    }

    /// Resolves when a claim may find an execution that is due.
    pub async fn wakes(&self) {
        self.store.wakes().await;
    }

    /// Resolves when a schedule may be due.
    pub async fn schedule_wakes(&self) {
        self.store.schedule_wakes().await;
    }

    /// The fence of the first holder of an execution, who creates it.
    pub fn first_fence(&self) -> Fence {
        self.store.first_fence()
    }

    /// The holder with this fence, which has read the execution, is about to take it: it is not claimed meanwhile.
    pub fn expect(&self, execution: ExecutionId, fence: Fence) {
        self.store.expect(execution, fence);
    }

    /// The holder with this fence writes nothing more about the execution.
    pub fn let_go(&self, execution: ExecutionId, fence: Fence, left: LetGo) {
        self.store.let_go(execution, fence, left);
    }

    /// Health and size of the store.
    pub fn status(&self) -> StoreStatus {
        self.store.status()
    }

    /// Whether an owner stores more than its quota.
    pub fn is_full(&self, owner: &Owner) -> bool {
        self.store.is_full(owner)
    }

    /// Wakes its caller after commits about a session.
    pub fn watch_session(&self, session: SessionId) -> SessionWatch {
        self.store.watch_session(session)
    }

    /// A copy of everything that is committed, in a file without a name.
    pub async fn backup(&self) -> Result<File, StoreError> {
        self.store.backup().await
    }

    /// Examines everything that is stored.
    pub async fn check(&self) -> Result<CheckReport, StoreError> {
        self.store.check().await
    }

    /// Commits the queued batches and closes.
    pub async fn shutdown(&self) {
        self.store.shutdown().await;
    }

    /// Events of an execution in order; `limit` 0 = all.
    pub async fn events(
        &self,
        execution: ExecutionId,
        after_seq: u64,
        limit: u32,
    ) -> Result<Vec<Event>, StoreError> {
        self.some_events(execution, after_seq, limit, PAGE_BYTES).await
    }

    /// The pages of a state as of a checkpoint, by number.
    pub async fn state(
        &self,
        execution: ExecutionId,
        checkpoint: u64,
    ) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
        self.state_part(execution, checkpoint, None, usize::MAX).await
    }
}

macro_rules! read_through_the_handle {
    ($($(#[$doc:meta])* $name:ident[$($lent:ident: $borrowed:ty),*]($($arg:ident: $copied:ty),*) -> $result:ty;)*) => {
        impl StoreHandle {
            $(
                $(#[$doc])*
                pub async fn $name(&self, $($lent: &$borrowed,)* $($arg: $copied),*) -> Result<$result, StoreError> {
                    let lane = self.lane_of_read(&[$($lent.rows_owner()),*]);
                    self.store.$name(lane, $($lent.to_owned(),)* $($arg),*).await
                }
            )*
        }
    };
}
for_each_read!(read_through_the_handle);
