//! The control database behind a small trait: [`Store::submit`] a batch, [`Store::read`] a query, with enums of our own.
//!
//! Owns everything durable of the supervisor. No SQLite type leaves this room; nothing here knows sessions' rules
//! beyond what keeps rows consistent (final states stay final, names are unique), no doors, no workers.
//!
//! [`sqlite`] is the one implementation; a command with a supervisor of its own and tests have it in a temporary folder. The trait is
//! where `PostgreSQL` will stand, and where [`faults`] stands in tests.
//!
//! Reading order:
//! - [`batch`], [`query`], [`rows`], [`error`]: the vocabulary
//! - [`handle`]: what callers hold; typed questions
//! - [`lock`], [`retention`], [`queue`]: one owner per state directory; what is forgotten when; back-pressure
//! - [`sqlite`]: opening, writer thread with group commit, readers, checkpoints
//! - [`temporary`]: the folder of a database that ends with its process
//! - [`faults`]: a store that fails on request

mod batch;
mod error;
mod faults;
mod handle;
mod lock;
mod query;
mod queue;
mod retention;
mod rows;
mod sqlite;
mod temporary;
#[cfg(test)]
mod tests;

pub use batch::{Applied, Batch, Write};
pub use error::{Entity, OpenError, Rejection, StoreError};
pub use faults::Faults;
pub use handle::{StoreHandle, Ticket};
pub use lock::StoreLock;
pub(crate) use query::is_last_page;
pub use query::{Answer, Cursor, IdKind, Page, PageVersion, Query, SessionQuery};
pub(crate) use retention::earlier;
pub use retention::{KEY_LIFE, Retention};
pub use rows::{
    AuditEntry, Checkpoint, CheckpointRow, DueTask, ExecutionRow, KeyClaim, KeyRow, LibraryRow,
    NewProgramVersion, Owner, PolicySnapshot, ProgramCode, ProgramRow, RunRow, Scope, SessionRow, Standing,
    TaskOutcome, TaskRow, TemplateRow, VersionRow,
};
pub use sqlite::{Durability, StoreOptions, open_sqlite, open_temporary};

use std::future::Future;
use std::pin::Pin;

/// A future of a trait method.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// When a batch must be committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// With the next commit: somebody waits for it.
    Now,
    /// With the next urgent batch, after at most [`LAZY_MS`]: the start of a short execution and its end share a commit.
    Lazy,
}

/// How long a lazy batch may wait for company (milliseconds).
pub const LAZY_MS: u64 = 5;

/// How the store does.
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
    /// Why the last commit failed; none once one has succeeded again.
    pub failing: Option<String>,
}

/// The control database.
pub trait Store: Send + Sync {
    /// Queues a batch, waiting for room; batches of one caller are committed in the order of their calls. The ticket
    /// resolves when the batch is committed or has failed.
    fn submit(&self, batch: Batch, urgency: Urgency) -> BoxFuture<'_, Result<Ticket, StoreError>>;
    /// Answers from the last commit.
    fn read(&self, query: Query) -> BoxFuture<'_, Result<Answer, StoreError>>;
    /// How it does; cheap.
    fn status(&self) -> StoreStatus;
    /// Commits what is queued and closes; everything later is [`StoreError::Closed`].
    fn shutdown(&self) -> BoxFuture<'_, ()>;
}
