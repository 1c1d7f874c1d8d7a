//! Keeps the write-ahead log short without stalling commits: a thread of its own copies it into the database whenever
//! it has grown; only when that falls behind does the writer wait for it.

use super::{Durability, open};
use rusqlite::Connection;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Pages in the log that are worth a checkpoint (4 MiB).
const SOFT_PAGES: i64 = 1_024;
/// Pages in the log at which the writer waits for the checkpoint, so that the log can start over (32 MiB).
const HARD_PAGES: i64 = 8_192;

pub(super) struct Checkpoints {
    connection: Arc<Mutex<Connection>>,
    wake: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpoints {
    pub(super) fn start(
        path: &Path,
        durability: Durability,
        busy_timeout: Duration,
    ) -> Result<Self, rusqlite::Error> {
        let connection = Arc::new(Mutex::new(open::writable(path, durability, busy_timeout)?));
        let (wake, woken) = sync_channel(1);
        let shared = Arc::clone(&connection);
        // Without the thread the writer makes the checkpoints itself, at the hard bound.
        let thread = std::thread::Builder::new()
            .name("store-checkpoint".to_owned())
            .spawn(move || work(&shared, &woken))
            .ok();
        Ok(Self { connection, wake: Some(wake), thread })
    }

    /// After a commit: `writer` is the connection that made it.
    pub(super) fn after_commit(&self, writer: &Connection) {
        let pages = log_pages(writer);
        if pages >= HARD_PAGES {
            checkpoint(&self.connection.lock().unwrap_or_else(PoisonError::into_inner));
        } else if pages >= SOFT_PAGES
            && let Some(wake) = &self.wake
        {
            // Full: it is awake already.
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

/// Copies what no reader needs any more; waits for nobody. A failure leaves the log as it is: nothing is lost, and the
/// next attempt or the next commit meets the same error where somebody can be told.
fn checkpoint(connection: &Connection) {
    let result = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    if let Err(error) = result {
        tracing::warn!(%error, "checkpoint of the store failed");
    }
}

/// Pages in the log that are not in the database yet.
fn log_pages(connection: &Connection) -> i64 {
    connection
        .prepare_cached("PRAGMA wal_checkpoint(NOOP)")
        .and_then(|mut statement| {
            statement.query_row([], |row| Ok(row.get::<_, i64>(1)? - row.get::<_, i64>(2)?))
        })
        .unwrap_or(0)
}
