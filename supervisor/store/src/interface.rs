//! The store's trait: applies batches, runs queries. Knows no implementation.

use crate::Ticket;
use std::future::Future;
use std::pin::Pin;
use vm_system_record::{Batch, Owner, Query, QueryResult, StoreError};

/// A future of a trait method.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// When a batch must be committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// With the next commit: a caller waits for it.
    Now,
    /// With the next urgent batch, after at most [`LAZY_MS`]: the start of a short execution and its end share a commit.
    Lazy,
}

/// A queue within the queue: batches of a lane are committed in the order in which they came, and the lanes take turns.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Lane {
    /// What the supervisor writes for nobody.
    System,
    /// What is written for an owner.
    Owner(Owner),
}

/// Longest wait of a lazy batch for an urgent one (milliseconds).
pub const LAZY_MS: u64 = 5;

/// Health and size of the store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoreStatus {
    /// `full`, `normal`, or `off`.
    pub durability: &'static str,
    /// Batches that wait for their commit.
    pub queued_batches: u64,
    /// Space in use (bytes), without pages that were freed.
    pub bytes_used: u64,
    /// Above the quota: nothing new should be admitted.
    pub over_quota: bool,
    /// Error of the last commit; none after a successful one.
    pub failing: Option<String>,
}

/// The control database.
pub trait Store: Send + Sync {
    /// Queues a batch, waiting while its lane or the queue is full; batches of one caller in one lane are committed in the order of
    /// their calls. The ticket resolves when the batch is committed or has failed.
    fn submit(&self, lane: Lane, batch: Batch, urgency: Urgency)
    -> BoxFuture<'_, Result<Ticket, StoreError>>;
    /// Reads from the last commit.
    fn read(&self, query: Query) -> BoxFuture<'_, Result<QueryResult, StoreError>>;
    /// Health and size; cheap.
    fn status(&self) -> StoreStatus;
    /// Whether an owner stores more than its quota; cheap.
    fn is_full(&self, owner: &Owner) -> bool;
    /// Commits the queued batches and closes; later calls get [`StoreError::Closed`].
    fn shutdown(&self) -> BoxFuture<'_, ()>;
}
