//! Keeps the write-ahead log short without stalling commits: a thread of its own copies it into the database whenever
//! it has grown. The writer copies only the last few pages, so that the log can start over, and all of it only when the
//! thread has fallen far behind.

use super::DatabaseLocation;
use crate::queue::Queue;
use rusqlite::Connection;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Pages in the log, not yet copied, that start a checkpoint (4 MiB).
const SOFT_PAGES: i64 = 1_024;
/// Pages in the log at which it is to start over (16 MiB). Under constant writes a concurrent checkpoint never reaches the
/// end, and without that the log cannot start over: the writer copies the rest once it is short.
const HARD_PAGES: i64 = 4_096;
/// The writer copies a rest of at most this share of the log (1 MiB of 16): about as much work as a few commits, and more the
/// longer the thread has not caught up.
const REST_SHARE: i64 = 16;
/// Pages in the log at which the writer waits until all are copied (256 MiB): the disk is too slow for the writes.
const FULL_PAGES: i64 = 65_536;

/// Bytes of content that a commit may have added before the log is checked again. A check is a statement that SQLite
/// compiles again each time, as much work as the insertion of a row.
const CHECK_BYTES: usize = 1 << 20;
/// Most bytes that a batch adds besides its content: every page of its rows and their indexes.
const BATCH_BYTES: usize = 16 * 4_096;

pub(super) struct Checkpoints {
    connection: Arc<Mutex<Connection>>,
    wake: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
    /// Approximate bytes written since the last check.
    unseen_bytes: usize,
    /// Too much of the log is not copied back.
    behind: bool,
    /// The last copying by the thread failed: it is no use to wait for it.
    failed: Arc<AtomicBool>,
}

impl Checkpoints {
    /// The queue learns when the thread has copied something.
    pub(super) fn start(location: &DatabaseLocation, queue: &Arc<Queue>) -> Result<Self, rusqlite::Error> {
        let connection = Arc::new(Mutex::new(location.connect()?));
        let (wake, woken) = sync_channel(1);
        let (shared, queue) = (Arc::clone(&connection), Arc::clone(queue));
        let failed = Arc::new(AtomicBool::new(false));
        let thread_failed = Arc::clone(&failed);
        // Without the thread the writer runs the checkpoints itself, at the hard bound.
        let thread = std::thread::Builder::new()
            .name("store-checkpoint".to_owned())
            .spawn(move || work(&shared, &woken, &queue, &thread_failed))
            .ok();
        Ok(Self { connection, wake: Some(wake), thread, unseen_bytes: 0, behind: false, failed })
    }

    /// To be called after a commit of `batches` with this much content on the connection `writer`.
    pub(super) fn after_commit(&mut self, writer: &Connection, batches: usize, content_bytes: usize) {
        // An estimate: reading the state of the log after each commit would cost a call of SQLite.
        self.unseen_bytes += batches * BATCH_BYTES + content_bytes;
        if self.unseen_bytes < CHECK_BYTES {
            return;
        }
        self.unseen_bytes = 0;
        let log = Log::of_connection(writer);
        let rest = log.pages - log.copied;
        let short = log.pages / REST_SHARE;
        self.behind = log.is_behind();
        let worth_it = if log.pages < HARD_PAGES { SOFT_PAGES } else { short };
        // Here the writer waits for the copy: a log without a bound fills the disk and slows down each query.
        if log.pages >= FULL_PAGES {
            checkpoint(&self.connection.lock().unwrap_or_else(PoisonError::into_inner));
        } else if log.pages >= HARD_PAGES && rest <= short {
            // No other connection writes meanwhile, so the checkpoint reaches the end, and the next commit starts the log over.
            // While the thread still copies, the next check is early enough.
            if let Ok(connection) = self.connection.try_lock() {
                checkpoint(&connection);
            }
        } else if rest >= worth_it {
            self.wake_thread();
        }
    }

    /// Copies what is left of the log if that is little, so that all of it is copied: no other connection writes meanwhile. Waits for
    /// no reader. More than that is left to the thread.
    pub(super) fn copy_rest(&self, writer: &Connection) {
        let log = Log::of_connection(writer);
        if log.pages - log.copied > HARD_PAGES / REST_SHARE {
            self.wake_thread();
        } else if let Ok(connection) = self.connection.try_lock() {
            checkpoint(&connection);
        }
    }

    fn wake_thread(&self) {
        if let Some(wake) = &self.wake {
            // Full: the thread is awake already.
            let _ = wake.try_send(());
        }
    }

    /// Whether nothing large is to be written before more of the log is copied back, so that the writer never has to wait for all
    /// of it.
    pub(super) fn is_behind(&mut self, writer: &Connection) -> bool {
        if self.behind {
            self.behind = Log::of_connection(writer).is_behind();
            if self.behind {
                self.wake_thread();
            }
        }
        self.behind && self.thread.is_some() && !self.failed.load(Ordering::Relaxed)
    }

    /// Ends the thread.
    pub(super) fn stop(mut self) {
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            // The log is emptied with the last connection, which must be the writer's.
            let _ = thread.join();
        }
    }
}

fn work(connection: &Mutex<Connection>, woken: &Receiver<()>, queue: &Queue, failed: &AtomicBool) {
    while woken.recv().is_ok() {
        let copied = checkpoint(&connection.lock().unwrap_or_else(PoisonError::into_inner));
        failed.store(!copied, Ordering::Relaxed);
        queue.log_was_copied();
    }
}

/// Copies the pages that no reader needs any more, without waiting. A failure leaves the log unchanged: nothing is lost, and the
/// next attempt or the next commit gets the same error and reports it.
fn checkpoint(connection: &Connection) -> bool {
    let result = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    if let Err(error) = &result {
        tracing::warn!(%error, "checkpoint of the store failed");
    }
    result.is_ok()
}

/// State of the log.
#[derive(Default)]
struct Log {
    pages: i64,
    /// Pages that are in the database already.
    copied: i64,
}

impl Log {
    /// 16 MiB are not copied back, or the log does not start over although twice as much is in it.
    fn is_behind(&self) -> bool {
        let rest = self.pages - self.copied;
        rest >= HARD_PAGES || (self.pages >= 2 * HARD_PAGES && rest > self.pages / REST_SHARE)
    }

    fn of_connection(connection: &Connection) -> Self {
        connection
            .prepare_cached("PRAGMA wal_checkpoint(NOOP)")
            .and_then(|mut statement| {
                statement.query_row([], |row| Ok(Self { pages: row.get(1)?, copied: row.get(2)? }))
            })
            .unwrap_or_default()
    }
}
