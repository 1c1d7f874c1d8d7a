//! Why no worker can be started in a jail at this moment, for the supervisor's health: processes that have exited, or that are alive and
//! do nothing. Replaces none of them.

use super::control::lock;
use super::spawner::{Jail, SpawnEvent};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A zygote that has not begun with a fork for this long is reported.
const SLOW_FORK: Duration = Duration::from_millis(500);

impl Jail {
    /// The keeper is alive and does nothing: another jail is needed. Its workers go on.
    pub(super) fn mark_stuck(&self) {
        if !self.stuck.swap(true, Ordering::Relaxed) {
            tracing::warn!(pid = self.pid, "the keeper does not acknowledge a worker");
            let _ = self.events.try_send(SpawnEvent::ZygotesLost);
        }
    }

    /// Why no worker can be started at this moment.
    pub(super) fn problem(&self) -> Option<String> {
        if self.control.is_lost() {
            return Some("the keeper has exited".to_owned());
        }
        if self.stuck.load(Ordering::Relaxed) {
            return Some(format!("the keeper (pid {}) does not respond", self.pid));
        }
        let zygotes = lock(&self.zygotes);
        let mut alive = [&zygotes.current, &zygotes.reserve].into_iter().flatten();
        if alive.clone().all(|zygote| zygote.is_lost()) {
            return Some("no zygote is left in the jail".to_owned());
        }
        let late = alive.find(|zygote| zygote.overdue().is_some_and(|since| since > SLOW_FORK))?;
        Some(format!("the zygote (pid {}) does not begin with a fork", late.pids.here))
    }
}
