//! The store's trait: applies batches; what it reads is in [`StoreReads`]. Knows no implementation.

use crate::{SessionWatch, StoreReads, Ticket};
use std::fs::File;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;
use vm_system_protocol::control::CheckReport;
use vm_system_protocol::ids::{ExecutionId, SessionId};
use vm_system_protocol::time::Timestamp;
use vm_system_record::{Batch, ClaimKind, ClaimedRun, Fence, Incarnation, LetGo, Owner, StoreError};

/// A future of a trait method.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// When a batch must be committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// The next commit has the batch: a caller waits for it.
    Now,
    /// The next urgent batch takes it along, after at most [`LAZY_MS`]: the start of a short execution and its end share a commit.
    Lazy,
}

/// A queue within the queue: batches of a lane are committed in the order in which they came, and the lanes take turns. So do their
/// queries.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Lane {
    /// The lane of writes for nobody, and of reads of the supervisor itself and of administrators.
    System,
    /// The lane of an owner's writes and reads.
    Owner(Owner),
}

/// Longest wait of a lazy batch for an urgent one (milliseconds).
pub const LAZY_MS: u64 = 5;

/// A commit that has been in progress for longer is reported.
pub const STALLED_AFTER: Duration = Duration::from_secs(3);

/// Health and size of the store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoreStatus {
    /// `full`, `normal`, or `off`.
    pub durability: &'static str,
    /// Batches that wait for their commit.
    pub queued_batches: u64,
    /// Space in use (bytes), without pages that were freed.
    pub bytes_used: u64,
    /// Bytes of the database file that are free, and used again before it grows.
    pub bytes_free: u64,
    /// Much free space is given back to the file system; not from a file that an older program made.
    pub gives_back: bool,
    /// Above the quota: nothing new should be admitted.
    pub over_quota: bool,
    /// Error of the last commit; none after a successful one.
    pub failing: Option<String>,
    /// Fault of the file system of the database: small writes may still succeed, where the log has space.
    pub disk_problem: Option<String>,
    /// The fault of the database file.
    pub fault: Option<DatabaseFault>,
    /// When the commit began that has been in progress for longer than [`STALLED_AFTER`].
    pub stalled_since: Option<Timestamp>,
}

impl StoreStatus {
    /// Whether nothing can be expected to be stored now: it fails, is stalled, or its file cannot be trusted.
    pub fn is_down(&self) -> bool {
        self.failing.is_some()
            || self.stalled_since.is_some()
            || self.fault.as_ref().is_some_and(DatabaseFault::refuses_work)
    }
}

/// The fault of the database file, until another supervisor is started with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DatabaseFault {
    /// A statement failed as if the file were damaged; a disk that reports an error looks the same (`vdbe.c` of SQLite).
    #[error("the database may be damaged, or its disk fails to read (EIO): {0}; it is being examined")]
    Suspected(String),
    /// A second look, after a pause, found the file damaged, too.
    #[error("the database is damaged: {0}")]
    Damaged(String),
    /// A second look could not read the file.
    #[error("the database cannot be read: {0}")]
    Unreadable(String),
    /// A row has a value that no version of this program has written.
    #[error("the database has a damaged row: {0}")]
    DamagedRow(String),
    /// The file has no name any more: its space is freed when this process ends.
    #[error("the database file was deleted{} while it was in use", replaced(*.is_replaced))]
    Deleted {
        /// Another file has its name.
        is_replaced: bool,
    },
    /// The file has another name.
    #[error("the database file was moved away{} while it was in use", replaced(*.is_replaced))]
    Moved {
        /// Another file has its name.
        is_replaced: bool,
    },
    /// The write-ahead log has another name, or none.
    #[error("the log of the database (-wal) was deleted or moved away while it was in use")]
    LogMissing {
        /// Everything that is recorded has been copied into the database file.
        is_copied: bool,
    },
}

const fn replaced(is_replaced: bool) -> &'static str {
    if is_replaced { " and replaced" } else { "" }
}

impl DatabaseFault {
    /// Which of two reports is the more serious one.
    pub(crate) const fn severity(&self) -> u8 {
        match self {
            Self::DamagedRow(_) => 0,
            Self::Suspected(_) => 1,
            Self::Unreadable(_) => 2,
            _ => 3,
        }
    }

    /// Whether new sessions, executions and templates are to be refused: what is recorded of them may be lost.
    pub const fn refuses_work(&self) -> bool {
        !matches!(self, Self::DamagedRow(_))
    }

    /// The remedy, without paths.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Suspected(_) => {
                "wait: if it is in order, because only the disk reported an error, work is accepted again; the log of the supervisor \
                 has the result"
            }
            Self::Unreadable(_) => {
                "`dmesg` names the disk and the reason: work is accepted again when it can be read; if it stays so, stop the supervisor \
                 and copy its state directory to another disk"
            }
            Self::Damaged(_) | Self::DamagedRow(_) => {
                "stop the supervisor, keep a copy of its state directory, and restore a backup of the database or repair it with \
                 the command .recover of sqlite3"
            }
            Self::Deleted { .. } => {
                "do not stop the supervisor before the content is saved: its log names a copy of the database, or says why there \
                 is none and how to make one"
            }
            Self::Moved { .. } => {
                "stop the supervisor, which completes the moved file, then move that file back and start the supervisor again"
            }
            Self::LogMissing { is_copied: true } => {
                "restart the supervisor: meanwhile all that is recorded is copied into the database file after each commit"
            }
            Self::LogMissing { is_copied: false } => {
                "do not kill the supervisor: what is recorded could not be copied into the database file yet, which is tried again; \
                 restart it when this says that it is copied"
            }
        }
    }
}

/// The control database.
pub trait Store: StoreReads {
    /// Queues a batch, waiting while its lane or the queue is full; batches of one caller in one lane are committed in the order of
    /// their calls. The ticket resolves when the batch is committed or has failed.
    fn submit(&self, lane: Lane, batch: Batch, urgency: Urgency)
    -> BoxFuture<'_, Result<Ticket, StoreError>>;
    /// The time, by which everything that is stored is dated, and by which it is due.
    fn now(&self) -> Timestamp;
    /// This process, in what it writes about itself.
    fn incarnation(&self) -> Incarnation;
    /// Whether another process may still carry out what it has begun.
    fn is_live(&self, other: Incarnation) -> bool;
    /// Takes executions of programs that are to go on and have no holder, at most `limit`. Fewer: there are no more now, and the next
    /// call begins again with the first ones. What could not go on is claimed again after a pause.
    fn claim(&self, which: ClaimKind, limit: u32) -> BoxFuture<'_, Result<Vec<ClaimedRun>, StoreError>>;
    /// Resolves when a claim may find an execution that is due: when the next one is, or is let go; at the latest after a few seconds.
    fn wakes(&self) -> BoxFuture<'_, ()>;
    /// Resolves when a schedule may be due: when the first one is, or was changed; at the latest after a few seconds.
    fn schedule_wakes(&self) -> BoxFuture<'_, ()>;
    /// The fence of the first holder of an execution, who creates it.
    fn first_fence(&self) -> Fence;
    /// The holder with this fence, which has read the execution, is about to take it: it is not claimed meanwhile.
    fn expect(&self, execution: ExecutionId, fence: Fence);
    /// The holder with this fence writes nothing more about the execution.
    fn let_go(&self, execution: ExecutionId, fence: Fence, left: LetGo);
    /// Health and size; cheap.
    fn status(&self) -> StoreStatus;
    /// Whether an owner stores more than its quota; cheap.
    fn is_full(&self, owner: &Owner) -> bool;
    /// Wakes its caller after commits about a session.
    fn watch_session(&self, session: SessionId) -> SessionWatch;
    /// A copy of everything that is committed, in a file without a name.
    fn backup(&self) -> BoxFuture<'_, Result<File, StoreError>>;
    /// Examines everything that is stored.
    fn check(&self) -> BoxFuture<'_, Result<CheckReport, StoreError>>;
    /// Commits the queued batches and closes; later calls get [`StoreError::Closed`].
    fn shutdown(&self) -> BoxFuture<'_, ()>;
}
