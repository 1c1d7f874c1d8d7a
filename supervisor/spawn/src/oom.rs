//! Watches a counter of processes of an owner, or of this service, that the kernel has killed for lack of memory. The counter does
//! not name the process.

use super::control::lock;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;
use vm_system_sandbox::oom_kills::OomKills;

/// From the kernel's kill to the report of the exit, on a machine without memory.
const RECENT: Duration = Duration::from_secs(2);

/// The counter of an owner's cgroup, or, without groups of owners, of the supervisor's, which is that of its workers.
#[derive(Debug)]
pub(super) struct OomWatch {
    /// None where the kernel does not count.
    kills: Option<OomKills>,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    count: u64,
    rose_at: Option<Instant>,
}

impl OomWatch {
    /// Counts from now on.
    pub(super) fn begin() -> Self {
        Self::counting(OomKills::of_this_process())
    }

    /// Of this counter, from now on.
    pub(super) fn counting(kills: Option<OomKills>) -> Self {
        let count = kills.as_ref().and_then(|kills| kills.count().ok()).unwrap_or(0);
        Self { kills, seen: Mutex::new(Seen { count, rose_at: None }) }
    }

    /// Whether a rise of the counter was seen within the last moments. To be called at each start of a worker too, so that a rise is
    /// not seen long after the kill.
    pub(super) fn has_just_killed(&self) -> bool {
        let Some(count) = self.kills.as_ref().and_then(|kills| kills.count().ok()) else { return false };
        let mut seen = lock(&self.seen);
        if count > seen.count {
            *seen = Seen { count, rose_at: Some(Instant::now()) };
        }
        seen.rose_at.is_some_and(|at| at.elapsed() < RECENT)
    }
}
