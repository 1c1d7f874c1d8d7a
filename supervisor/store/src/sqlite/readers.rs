//! A small pool of read-only connections. Every query runs off the reactor, in one read transaction.

use super::database_file::DatabaseFile;
use super::failure::{is_damage, may_pass, store_error};
use super::read::{Read, ReadError};
use super::read_turns::ReadTurns;
use super::writer::WriterShared;
use crate::{DatabaseFault, Lane};
use rusqlite::Connection;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use vm_system_record::StoreError;

/// A read that keeps its result; run again where the first run met a page that cannot be read.
type BoxedRead = Box<dyn FnMut(&Connection) -> Read<()> + Send>;

pub(super) struct Readers {
    file: Arc<DatabaseFile>,
    busy_timeout: Duration,
    shared: Arc<WriterShared>,
    pool: Mutex<Pool>,
    /// A connection was returned, or closed.
    returned: Condvar,
    turns: Arc<ReadTurns>,
}

#[derive(Default)]
struct Pool {
    idle: Vec<Connection>,
    /// Connections that are used by queries.
    used: usize,
}

impl Readers {
    pub(super) fn new(file: Arc<DatabaseFile>, busy_timeout: Duration, shared: Arc<WriterShared>) -> Self {
        Self {
            file,
            busy_timeout,
            shared,
            pool: Mutex::default(),
            returned: Condvar::new(),
            turns: Arc::default(),
        }
    }

    /// Reads off the reactor, in a turn of the lane.
    pub(super) async fn read<T: Send + 'static>(
        self: Arc<Self>,
        lane: Lane,
        read: impl Fn(&Connection) -> Read<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (sender, result) = oneshot::channel();
        let mut sender = Some(sender);
        // Boxed: only what knows the type of the result is compiled for each read.
        let read = Box::new(move |connection: &Connection| {
            let value = read(connection)?;
            // Without a receiver the caller has dropped its future.
            let _ = sender.take().map(|sender| sender.send(value));
            Ok(())
        });
        self.read_in_turn(lane, read).await?;
        result.await.map_err(|_| interrupted())
    }

    async fn read_in_turn(self: Arc<Self>, lane: Lane, mut read: BoxedRead) -> Result<(), StoreError> {
        // The turn belongs to the query, which runs to its end even if the caller has dropped the future meanwhile.
        let turn = self.turns.wait(&lane).await.ok_or(StoreError::Closed)?;
        tokio::task::spawn_blocking(move || {
            let result = self.run(&mut *read);
            drop(turn);
            result
        })
        .await
        .unwrap_or_else(|_| Err(interrupted()))
    }

    fn run(&self, read: &mut dyn FnMut(&Connection) -> Read<()>) -> Result<(), StoreError> {
        let mut connection = self.connection()?;
        let mut result = transaction(&connection, read);
        if let Err(ReadError::Database(error)) = &result
            && may_pass(error)
            && let Ok(other) = self.file.reader(self.busy_timeout, |error| store_error(&error))
        {
            tracing::warn!(%error, "a query met a page that cannot be read: it is tried again");
            connection = other;
            result = transaction(&connection, read);
        }
        {
            let mut pool = self.pool();
            pool.used -= 1;
            // After a failure the connection may be in any state; a new one is cheap.
            if result.is_ok() {
                pool.idle.push(connection);
            }
        }
        self.returned.notify_all();
        result.map_err(|error| self.failed(error))
    }

    /// A connection for one query. While none can be opened, queries share those that are open.
    fn connection(&self) -> Result<Connection, StoreError> {
        let mut pool = self.pool();
        loop {
            if let Some(connection) = pool.idle.pop() {
                pool.used += 1;
                return Ok(connection);
            }
            // Opening may wait for the disk, and other queries return connections meanwhile.
            drop(pool);
            let opened = self.file.reader(self.busy_timeout, |error| self.failed(error.into()));
            pool = self.pool();
            let error = match opened {
                Ok(connection) => {
                    pool.used += 1;
                    return Ok(connection);
                }
                Err(error) => error,
            };
            // Only while the file has no name do queries share connections: any other error is the caller's.
            if self.file.fault().is_none() || (pool.idle.is_empty() && pool.used == 0) {
                return Err(error);
            }
            if pool.idle.is_empty() {
                pool = self.returned.wait(pool).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Damage is reported to health, too.
    fn failed(&self, error: ReadError) -> StoreError {
        let of_file = matches!(&error, ReadError::Database(error) if is_damage(error));
        let of_row = error.is_of_one_row();
        let error = StoreError::from(error);
        if of_file {
            return self.shared.suspected("a query met an invalid page", error);
        }
        if of_row {
            self.shared.set_fault(DatabaseFault::DamagedRow(error.to_string()));
        }
        error
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for running queries and closes the connections.
    pub(super) async fn close(&self) {
        // First the queries that run: each uses a connection.
        self.turns.close().await;
        self.pool().idle.clear();
    }
}

fn transaction(connection: &Connection, read: &mut dyn FnMut(&Connection) -> Read<()>) -> Read<()> {
    // Prepared once; SQLite's own helper compiles both again each time. After a failure the connection is closed.
    let run = |sql| connection.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
    run("BEGIN")?;
    read(connection)?;
    run("COMMIT")?;
    Ok(())
}

fn interrupted() -> StoreError {
    StoreError::Unavailable("a query was interrupted".to_owned())
}
