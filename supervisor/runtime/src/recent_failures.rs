//! How often a kind of process failed lately: one that fails again and again is not started for ever.

use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// The number of failures after which …
const MOST: usize = 5;
/// … within this time is not started again before the oldest failure is past it.
const WINDOW: Duration = Duration::from_mins(1);

/// The failures of one kind of process within a minute.
#[derive(Debug, Default)]
pub(crate) struct RecentFailures(VecDeque<Instant>);

impl RecentFailures {
    /// A failure at this time; later than the ones before.
    pub(crate) fn add(&mut self, at: Instant) {
        self.0.push_back(at);
    }

    /// Whether the process must not be started now.
    pub(crate) fn are_too_many(&mut self) -> bool {
        self.count() >= MOST
    }

    /// Until the process may be started again; none: now.
    pub(crate) fn pause(&mut self) -> Option<Duration> {
        let decisive = self.count().checked_sub(MOST)?;
        self.0.get(decisive).map(|at| WINDOW.saturating_sub(at.elapsed()))
    }

    /// Whether there are none.
    pub(crate) fn are_none(&mut self) -> bool {
        self.count() == 0
    }

    fn count(&mut self) -> usize {
        while self.0.front().is_some_and(|at| at.elapsed() > WINDOW) {
            self.0.pop_front();
        }
        self.0.len()
    }
}
