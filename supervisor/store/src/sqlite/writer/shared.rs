//! State that the writer publishes for other threads: sizes, failures, and the fault of the database file.

use crate::session_watches::SessionWatches;
use crate::sqlite::failure::SUSPECTED;
use crate::sqlite::schedule_sleep::ScheduleSleep;
use crate::{DatabaseFault, STALLED_AFTER, clock};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;
use vm_system_protocol::time::Timestamp;
use vm_system_record::{StoreError, earlier};

/// State of the writer that other threads read.
#[derive(Default)]
pub(in crate::sqlite) struct WriterShared {
    pub(super) bytes_used: AtomicU64,
    pub(super) bytes_free: AtomicU64,
    pub(super) gives_back: AtomicBool,
    pub(super) over_quota: AtomicBool,
    failing: Mutex<Option<String>>,
    disk_problem: Mutex<Option<String>>,
    fault: Mutex<Option<DatabaseFault>>,
    /// Begins to examine the database, after a pause.
    pub(in crate::sqlite) look_again: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// Who waits for events of sessions.
    pub(in crate::sqlite) watches: Arc<SessionWatches>,
    /// Wakes who waits for schedules.
    pub(in crate::sqlite) schedules: ScheduleSleep,
    /// When the current work began; none while the writer waits for work.
    busy_since: Mutex<Option<Instant>>,
}

impl WriterShared {
    pub(in crate::sqlite) fn bytes_used(&self) -> u64 {
        self.bytes_used.load(Ordering::Relaxed)
    }
    pub(in crate::sqlite) fn bytes_free(&self) -> u64 {
        self.bytes_free.load(Ordering::Relaxed)
    }
    pub(in crate::sqlite) fn gives_back(&self) -> bool {
        self.gives_back.load(Ordering::Relaxed)
    }
    pub(in crate::sqlite) fn over_quota(&self) -> bool {
        self.over_quota.load(Ordering::Relaxed)
    }
    pub(in crate::sqlite) fn failing(&self) -> Option<String> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
    pub(super) fn set_failing(&self, failing: Option<String>) {
        *self.failing.lock().unwrap_or_else(PoisonError::into_inner) = failing;
    }

    pub(in crate::sqlite) fn disk_problem(&self) -> Option<String> {
        self.disk_problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
    pub(super) fn set_disk_problem(&self, problem: Option<String>) {
        *self.disk_problem.lock().unwrap_or_else(PoisonError::into_inner) = problem;
    }

    /// Damage that was found in the file.
    pub(in crate::sqlite) fn fault(&self) -> Option<DatabaseFault> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reports a row that cannot be decoded until the end of this process, unless something more serious is reported.
    pub(in crate::sqlite) fn set_fault(&self, fault: DatabaseFault) -> bool {
        let mut known = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = known.as_ref().is_none_or(|known| known.severity() < fault.severity());
        if is_news {
            tracing::error!(%fault, hint = fault.hint(), "the database cannot be trusted any more");
            *known = Some(fault);
        }
        is_news
    }

    /// A statement, or a check, met damage, or a disk that reported an error: a second look decides.
    pub(in crate::sqlite) fn suspect(&self, what: &str) {
        if self.set_fault(DatabaseFault::Suspected(what.to_owned()))
            && let Some(look_again) = self.look_again.get()
        {
            look_again();
        }
    }

    /// As [`Self::suspect`]; the error for the caller. Damage is not called so before it was looked at twice.
    pub(in crate::sqlite) fn suspected(&self, what: &str, error: StoreError) -> StoreError {
        self.suspect(what);
        match self.fault() {
            Some(DatabaseFault::Damaged(_)) => error,
            Some(DatabaseFault::Unreadable(why)) => StoreError::Unavailable(why),
            _ => StoreError::Unavailable(SUSPECTED.to_owned()),
        }
    }

    /// A look at the whole database found nothing.
    pub(in crate::sqlite) fn is_in_order(&self) {
        tracing::warn!("the database is in order: the disk had reported an error, or the file was repaired");
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The time at which the current work began, if it takes too long.
    pub(in crate::sqlite) fn stalled_since(&self) -> Option<Timestamp> {
        let busy_for =
            self.busy_since.lock().unwrap_or_else(PoisonError::into_inner).map(|since| since.elapsed());
        let stalled_for = busy_for.filter(|busy_for| *busy_for >= STALLED_AFTER)?;
        Some(earlier(clock::now(), stalled_for))
    }

    pub(super) fn set_busy(&self, is_busy: bool) {
        let since = is_busy.then(Instant::now);
        *self.busy_since.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }
}
