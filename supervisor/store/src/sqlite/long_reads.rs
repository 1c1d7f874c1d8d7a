//! Connections for what reads the whole database: a backup, a check. One at a time, on a thread that may block, and interrupted
//! when the store is closed. Queries do not wait for them.

use super::database_file::DatabaseFile;
use super::failure::store_error;
use super::second_look::{self, Look};
use rusqlite::{Connection, InterruptHandle};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use vm_system_record::StoreError;

pub(super) struct LongReads {
    file: Arc<DatabaseFile>,
    busy_timeout: Duration,
    /// Held by the one that works.
    turn: Mutex<()>,
    state: Mutex<LongReadState>,
    closed: Condvar,
}

#[derive(Default)]
struct LongReadState {
    is_closed: bool,
    working: Option<InterruptHandle>,
}

/// A connection of its own. Between two statements its user calls [`LongRead::go_on`].
pub(super) struct LongRead<'a> {
    pub(super) connection: Connection,
    reads: &'a LongReads,
}

impl LongRead<'_> {
    /// Refused once the store is being closed.
    pub(super) fn go_on(&self) -> Result<(), StoreError> {
        if self.reads.state().is_closed { Err(StoreError::Closed) } else { Ok(()) }
    }
}

impl LongReads {
    pub(super) fn new(file: Arc<DatabaseFile>, busy_timeout: Duration) -> Self {
        Self { file, busy_timeout, turn: Mutex::default(), state: Mutex::default(), closed: Condvar::new() }
    }

    /// Runs `work` when those before it have ended.
    pub(super) fn run<T>(
        &self,
        work: impl FnOnce(&LongRead<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if self.state().is_closed {
            return Err(StoreError::Closed);
        }
        let read = LongRead {
            connection: self.file.reader(self.busy_timeout, |error| store_error(&error))?,
            reads: self,
        };
        self.state().working = Some(read.connection.get_interrupt_handle());
        let result = read.go_on().and_then(|()| work(&read));
        let mut state = self.state();
        state.working = None;
        // An interrupted statement fails for this reason.
        if state.is_closed { Err(StoreError::Closed) } else { result }
    }

    /// As [`Self::run`], with a second look where `work` fails as `Corrupt`.
    pub(super) fn look_again<T>(
        &self,
        work: impl Fn(&LongRead<'_>) -> Result<T, StoreError>,
    ) -> Look<Result<T, StoreError>> {
        let read = || self.file.read_to_the_end(&|| !self.is_closed());
        second_look::attempt(|| self.run(&work), read, |time| self.pause(time))
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state().is_closed
    }

    /// Waits; false once the store is being closed.
    pub(super) fn pause(&self, time: Duration) -> bool {
        let waited = self.closed.wait_timeout_while(self.state(), time, |state| !state.is_closed);
        !waited.unwrap_or_else(PoisonError::into_inner).0.is_closed
    }

    /// Interrupts what works, and refuses all others.
    pub(super) fn interrupt(&self) {
        let mut state = self.state();
        state.is_closed = true;
        if let Some(working) = &state.working {
            working.interrupt();
        }
        self.closed.notify_all();
    }

    /// As [`Self::interrupt`], and waits for the end of what works. Blocks.
    pub(super) fn close(&self) {
        self.interrupt();
        drop(self.turn.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn state(&self) -> MutexGuard<'_, LongReadState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
