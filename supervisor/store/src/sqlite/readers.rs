//! A small pool of read-only connections. Every query runs off the reactor, in one read transaction.

use super::open;
use super::{failure::store_error, read};
use rusqlite::Connection;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use vm_system_record::{Query, QueryResult, StoreError};

/// Queries at a time; the rest wait. More would only compete for the same disk and cores.
const CONNECTIONS: u32 = 4;

pub(super) struct Readers {
    path: PathBuf,
    busy_timeout: Duration,
    idle: Mutex<Vec<Connection>>,
    capacity: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn new(path: PathBuf, busy_timeout: Duration) -> Self {
        Self {
            path,
            busy_timeout,
            idle: Mutex::default(),
            capacity: Arc::new(Semaphore::new(CONNECTIONS as usize)),
        }
    }

    pub(super) async fn read(self: Arc<Self>, query: Query) -> Result<QueryResult, StoreError> {
        // The permit belongs to the query, which runs to its end even if the caller has dropped the future.
        let permit = Arc::clone(&self.capacity).acquire_owned().await.map_err(|_| StoreError::Closed)?;
        tokio::task::spawn_blocking(move || {
            let result = self.run(&query);
            drop(permit);
            result
        })
        .await
        .unwrap_or_else(|_| Err(StoreError::Unavailable("a query was interrupted".to_owned())))
    }

    fn run(&self, query: &Query) -> Result<QueryResult, StoreError> {
        let connection = match self.idle().pop() {
            Some(connection) => connection,
            None => open::read_only(&self.path, self.busy_timeout).map_err(|error| store_error(&error))?,
        };
        let result = transaction(&connection, query);
        // After a failure the connection may be in any state; a new one is cheap.
        if result.is_ok() {
            self.idle().push(connection);
        }
        result
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for running queries and closes the connections.
    pub(super) async fn close(&self) {
        if let Ok(all) = self.capacity.acquire_many(CONNECTIONS).await {
            all.forget();
        }
        self.capacity.close();
        self.idle().clear();
    }
}

fn transaction(connection: &Connection, query: &Query) -> Result<QueryResult, StoreError> {
    let judged = |error: rusqlite::Error| store_error(&error);
    // Prepared once; SQLite's own helper compiles both again each time. After a failure the connection is closed.
    let run = |sql| connection.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
    run("BEGIN").map_err(judged)?;
    let result = read::run_query(connection, query)?;
    run("COMMIT").map_err(judged)?;
    Ok(result)
}
