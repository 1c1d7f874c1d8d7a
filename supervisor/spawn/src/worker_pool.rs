//! The pool of prestarted workers: one of each recently requested kind, and for each owner where owners have groups, so that a
//! request does not wait for a start. Decides which request gets a worker and when the next one is due; the spawner starts them.
//!
//! ```text
//!          first message of the last one          started
//!  Empty ────────────────────────────────▶ Due ─▶ Making ─▶ Ready ──taken──▶ Empty
//!    ▲                                              │ taken by a waiting request
//!    └──────────────── the start fails   ◀──────────┘
//! ```
//! - A prestarted worker has run only our code, is identified by the kernel and was inspected from outside, like every
//!   unassigned worker, and is in its owner's group. What belongs to a session (limits, the registration with the keeper) is
//!   added when it is taken.
//! - The keeper does not hold it: it exits when its channel closes, which only we hold. Its exit is not reported.
//! - The next one is started after the first message of the last one, which needs the processor before. One at a time; a
//!   request that finds none ready or starting has one started for itself.
//! - A worker of a zygote that has exited is not used: both may have failed for one reason.

use super::control::lock;
use super::groups::OwnerGroup;
use super::kind::WorkerKind;
use super::unassigned::UnassignedWorker;
use super::zygote::Zygote;
use crate::reactor::WatchedFd;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;
use vm_system_sandbox::socket;

/// Number of prestarted workers: those of the most recent requests.
const MOST: usize = 4;
/// The number where each is in the group of one owner.
const MOST_OF_OWNERS: usize = 16;
/// A kind without requests for this long loses its prestarted worker.
const IDLE: Duration = Duration::from_mins(10);

/// Which requests a prestarted worker is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct PoolKey {
    pub(super) kind: WorkerKind,
    /// `None` where workers are in no group of an owner, or all in the same.
    pub(super) owner: Option<String>,
}

/// A prestarted worker.
pub(super) struct PrestartedWorker {
    /// Weak: the pool does not keep the zygote.
    pub(super) zygote: Weak<Zygote>,
    /// Our end of its channel.
    pub(super) ours: WatchedFd,
    pub(super) worker: UnassignedWorker,
    /// The worker's virtual memory when it was inspected (bytes).
    pub(super) mapped_bytes: u64,
    /// The group of its owner, which it is in.
    pub(super) group: Option<Arc<OwnerGroup>>,
}

impl PrestartedWorker {
    /// Whether the worker can be assigned: it is alive, and so is its zygote. Polls the descriptors, because an exit may not
    /// have been noticed yet. An unassigned worker sends nothing, so its channel is readable only after its exit.
    fn is_usable(&self) -> bool {
        let Some(zygote) = self.zygote.upgrade().filter(|zygote| !zygote.is_lost()) else { return false };
        let mut ends = socket::PollSet::with_capacity(2);
        ends.add(self.ours.get_ref());
        ends.add(&zygote.pidfd);
        matches!(ends.wait(Some(Duration::ZERO)), Ok(false))
    }
}

#[derive(Default)]
enum SlotState {
    #[default]
    Empty,
    /// A worker is to be started.
    Due,
    /// A worker is being started, with the request that waits for it, if any.
    Making(Option<oneshot::Sender<PrestartedWorker>>),
    Ready(Box<PrestartedWorker>),
}

struct Kind {
    state: SlotState,
    last_used: Instant,
}

#[derive(Default)]
struct Table {
    kinds: HashMap<PoolKey, Kind>,
    closed: bool,
}

/// The prestarted workers of one jail.
#[derive(Default)]
pub(super) struct WorkerPool {
    table: Mutex<Table>,
    /// Notified when a worker is due.
    due: Notify,
}

impl std::fmt::Debug for WorkerPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerPool").finish_non_exhaustive()
    }
}

/// The result of a request to the pool.
enum TakeResult {
    Nothing,
    Ready(Box<PrestartedWorker>),
    Starting(oneshot::Receiver<PrestartedWorker>),
}

/// Makes the next worker due when dropped: after the first message of this one, or its exit.
#[derive(Debug)]
pub(super) struct Successor {
    pool: Weak<WorkerPool>,
    key: PoolKey,
}

impl Drop for Successor {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.is_due(&self.key);
        }
    }
}

impl WorkerPool {
    /// A usable worker for such a request, if there is one or one is being started.
    pub(super) async fn take(&self, key: &PoolKey) -> Option<PrestartedWorker> {
        let ready = match self.find(key, Instant::now()) {
            TakeResult::Nothing => return None,
            TakeResult::Ready(ready) => *ready,
            // A start has its own deadlines.
            TakeResult::Starting(ready) => ready.await.ok()?,
        };
        ready.is_usable().then_some(ready)
    }

    fn find(&self, key: &PoolKey, now: Instant) -> TakeResult {
        let mut table = lock(&self.table);
        let Some(known) = table.kinds.get_mut(key) else { return TakeResult::Nothing };
        known.last_used = now;
        match std::mem::take(&mut known.state) {
            // The worker that the request starts makes the next one due.
            SlotState::Empty | SlotState::Due => TakeResult::Nothing,
            SlotState::Ready(ready) => TakeResult::Ready(ready),
            SlotState::Making(None) => {
                let (sender, receiver) = oneshot::channel();
                known.state = SlotState::Making(Some(sender));
                TakeResult::Starting(receiver)
            }
            taken @ SlotState::Making(Some(_)) => {
                known.state = taken;
                TakeResult::Nothing
            }
        }
    }

    /// For a new worker: the next one of its kind is due after its first message.
    pub(super) fn successor(self: &Arc<Self>, key: &PoolKey) -> Successor {
        Successor { pool: Arc::downgrade(self), key: key.clone() }
    }

    fn is_due(&self, key: &PoolKey) {
        if self.note(key, Instant::now()) {
            self.due.notify_one();
        }
    }

    fn note(&self, key: &PoolKey, now: Instant) -> bool {
        let mut table = lock(&self.table);
        if table.closed {
            return false;
        }
        let most = if key.owner.is_some() { MOST_OF_OWNERS } else { MOST };
        // Each kind holds a process: the one that was used longest ago makes way.
        if !table.kinds.contains_key(key) && table.kinds.len() >= most {
            let oldest =
                table.kinds.iter().min_by_key(|(_, known)| known.last_used).map(|(key, _)| key.clone());
            oldest.and_then(|oldest| table.kinds.remove(&oldest));
        }
        let known = table
            .kinds
            .entry(key.clone())
            .or_insert_with(|| Kind { state: SlotState::Empty, last_used: now });
        let is_empty = matches!(known.state, SlotState::Empty);
        if is_empty {
            known.state = SlotState::Due;
        }
        is_empty
    }

    /// Waits until a worker is due, and returns which. The caller starts it and [puts](Self::put) it here.
    pub(super) async fn due(&self) -> PoolKey {
        loop {
            if let Some(key) = self.next_due() {
                return key;
            }
            self.due.notified().await;
        }
    }

    fn next_due(&self) -> Option<PoolKey> {
        let mut table = lock(&self.table);
        let (key, known) = table.kinds.iter_mut().find(|(_, known)| matches!(known.state, SlotState::Due))?;
        known.state = SlotState::Making(None);
        Some(key.clone())
    }

    /// Stores the result of a start; it is dropped if its kind was evicted meanwhile.
    pub(super) fn put(&self, key: &PoolKey, made: Option<PrestartedWorker>) {
        let mut table = lock(&self.table);
        let Some(known) = table.kinds.get_mut(key) else { return };
        let SlotState::Making(waiting) = std::mem::take(&mut known.state) else { return };
        let Some(made) = made else { return };
        let left = match waiting {
            Some(waiting) => waiting.send(made).err(),
            None => Some(made),
        };
        if let Some(ready) = left {
            known.state = SlotState::Ready(Box::new(ready));
        }
    }

    /// Ends workers of idle kinds, and unusable ones.
    pub(super) fn sweep(&self, now: Instant) {
        let mut table = lock(&self.table);
        table.kinds.retain(|_, known| now.saturating_duration_since(known.last_used) < IDLE);
        for known in table.kinds.values_mut() {
            if matches!(&known.state, SlotState::Ready(ready) if !ready.is_usable()) {
                known.state = SlotState::Empty;
            }
        }
    }

    /// Ends all prestarted workers; no more are started.
    pub(super) fn close(&self) {
        let kinds = {
            let mut table = lock(&self.table);
            // Before the kinds are taken: a worker that is being started is then dropped when it is put here.
            table.closed = true;
            std::mem::take(&mut table.kinds)
        };
        for known in kinds.into_values() {
            if let SlotState::Ready(ready) = known.state {
                // It would exit by itself; the kill makes it certain.
                let _ = ready.worker.pidfd.kill();
            }
        }
    }

    /// Pids on the host.
    pub(super) fn pids(&self) -> Vec<u32> {
        let table = lock(&self.table);
        let pid = |known: &Kind| match &known.state {
            SlotState::Ready(ready) => Some(ready.worker.pids.here),
            _ => None,
        };
        table.kinds.values().filter_map(pid).collect()
    }
}
