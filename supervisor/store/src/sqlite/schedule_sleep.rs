//! The sleep until a schedule is due: one timer and one query, however many schedules there are. Knows nothing of what is started.

use super::SqliteStore;
use super::read;
use crate::{Lane, clock};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use vm_system_protocol::model::ExecutionKind;
use vm_system_record::{Batch, Write};

/// Longest sleep: the calendar clock, by which schedules are due, may be set while the timer does not notice.
const AT_MOST: Duration = Duration::from_secs(5);

/// Wakes the one who sleeps.
#[derive(Debug, Default)]
pub(super) struct ScheduleSleep {
    changed: Notify,
    /// A queued time waits for the end of an execution: ends of programs may make a schedule due.
    ends_matter: AtomicBool,
}

impl ScheduleSleep {
    /// A batch is committed.
    pub(super) fn committed(&self, batch: &Batch) {
        let matters = |write: &Write| match write {
            Write::ScheduleInsert { .. } | Write::ScheduleChange(_) => true,
            Write::ExecutionEnded(execution) => {
                execution.kind == ExecutionKind::Program && self.ends_matter.load(Ordering::Relaxed)
            }
            _ => false,
        };
        if batch.0.iter().any(matters) {
            self.changed.notify_one();
        }
    }
}

impl SqliteStore {
    pub(super) async fn sleep_until_a_schedule_is_due(&self) {
        let sleep = &self.shared.schedules;
        // Before the read: an end that is committed during it is not missed.
        sleep.ends_matter.store(true, Ordering::Relaxed);
        let found = Arc::clone(&self.readers).read(Lane::System, read::first_due).await;
        // After a failure the store is tried again after the longest sleep.
        let (first, is_waiting) = found.unwrap_or((None, true));
        sleep.ends_matter.store(is_waiting, Ordering::Relaxed);
        let left = first.map(|due| u64::try_from(due.0.saturating_sub(clock::now().0)).unwrap_or(0));
        let pause = left.map_or(AT_MOST, |left| Duration::from_millis(left).min(AT_MOST));
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = sleep.changed.notified() => {}
        }
    }
}
