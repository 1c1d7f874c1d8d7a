//! Keeps the write-ahead log short without stalling commits: a thread of its own copies it into the database whenever
//! it has grown. The writer copies only the last few pages, so that the log can start over, and all of it only when the
//! thread has fallen far behind.

use super::DatabaseLocation;
use rusqlite::Connection;
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
}

impl Checkpoints {
    pub(super) fn start(location: &DatabaseLocation) -> Result<Self, rusqlite::Error> {
        let connection = Arc::new(Mutex::new(location.connect()?));
        let (wake, woken) = sync_channel(1);
        let shared = Arc::clone(&connection);
        // Without the thread the writer runs the checkpoints itself, at the hard bound.
        let thread = std::thread::Builder::new()
            .name("store-checkpoint".to_owned())
            .spawn(move || work(&shared, &woken))
            .ok();
        Ok(Self { connection, wake: Some(wake), thread, unseen_bytes: 0 })
    }

    /// To be called after a commit of `batches` with this much content on the connection `writer`.
    pub(super) fn after_commit(&mut self, writer: &Connection, batches: usize, content_bytes: usize) {
        self.unseen_bytes += batches * BATCH_BYTES + content_bytes;
        if self.unseen_bytes < CHECK_BYTES {
            return;
        }
        self.unseen_bytes = 0;
        let log = Log::of(writer);
        let rest = log.pages - log.copied;
        let short = log.pages / REST_SHARE;
        let worth_it = if log.pages < HARD_PAGES { SOFT_PAGES } else { short };
        if log.pages >= FULL_PAGES {
            checkpoint(&self.connection.lock().unwrap_or_else(PoisonError::into_inner));
        } else if log.pages >= HARD_PAGES && rest <= short {
            // No other connection writes meanwhile, so the checkpoint reaches the end, and the next commit starts the log over.
            // While the thread still copies, the next check is early enough.
            if let Ok(connection) = self.connection.try_lock() {
                checkpoint(&connection);
            }
        } else if rest >= worth_it
            && let Some(wake) = &self.wake
        {
            // Full: the thread is awake already.
            let _ = wake.try_send(());
        }
    }

    /// Ends the thread.
    pub(super) fn stop(mut self) {
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn work(connection: &Mutex<Connection>, woken: &Receiver<()>) {
    while woken.recv().is_ok() {
        checkpoint(&connection.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Copies the pages that no reader needs any more, without waiting. A failure leaves the log unchanged: nothing is lost, and the
/// next attempt or the next commit gets the same error and reports it.
fn checkpoint(connection: &Connection) {
    let result = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    if let Err(error) = result {
        tracing::warn!(%error, "checkpoint of the store failed");
    }
}

/// State of the log.
#[derive(Default)]
struct Log {
    pages: i64,
    /// Pages that are in the database already.
    copied: i64,
}

impl Log {
    fn of(connection: &Connection) -> Self {
        connection
            .prepare_cached("PRAGMA wal_checkpoint(NOOP)")
            .and_then(|mut statement| {
                statement.query_row([], |row| Ok(Self { pages: row.get(1)?, copied: row.get(2)? }))
            })
            .unwrap_or_default()
    }
}
