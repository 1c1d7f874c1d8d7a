//! The slots of connections. When all are taken, the longest idle connection is closed, so that a client that only holds
//! connections cannot lock out others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Time for an evicted connection to close.
const EVICTION: Duration = Duration::from_secs(1);

/// The connections of one listener.
#[derive(Debug)]
pub(super) struct Slots {
    free: Arc<Semaphore>,
    idle: Mutex<Idle>,
}

/// Idle connections in the order in which they became idle.
#[derive(Debug, Default)]
struct Idle {
    next: u64,
    waiting: BTreeMap<u64, CancellationToken>,
}

impl Slots {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { free: Arc::new(Semaphore::new(most)), idle: Mutex::default() })
    }

    /// A slot for one connection; `None` if all of them are busy.
    pub(super) async fn take(self: &Arc<Self>) -> Option<Arc<Slot>> {
        let permit = match Arc::clone(&self.free).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) if self.evict() => {
                timeout(EVICTION, Arc::clone(&self.free).acquire_owned()).await.ok()?.ok()?
            }
            Err(_) => return None,
        };
        let slot = Slot {
            slots: Arc::clone(self),
            end: CancellationToken::new(),
            idle_as: Mutex::new(None),
            _permit: permit,
        };
        slot.idle();
        Some(Arc::new(slot))
    }

    /// Requests the end of the longest idle connection; false if there is none.
    pub(super) fn evict(&self) -> bool {
        let longest = self.lock().waiting.pop_first();
        if let Some((_, end)) = &longest {
            end.cancel();
        }
        longest.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Idle> {
        // The table is consistent after every statement that holds the lock.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The slot of one connection; free again when it is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    slots: Arc<Slots>,
    /// Cancelled when the connection must free its slot.
    pub(super) end: CancellationToken,
    idle_as: Mutex<Option<u64>>,
    _permit: OwnedSemaphorePermit,
}

impl Slot {
    fn idle_as(&self) -> MutexGuard<'_, Option<u64>> {
        self.idle_as.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks the connection as idle: no request is in progress.
    pub(super) fn idle(&self) {
        let mut table = self.slots.lock();
        let number = table.next;
        table.next += 1;
        table.waiting.insert(number, self.end.clone());
        let before = self.idle_as().replace(number);
        if let Some(before) = before {
            table.waiting.remove(&before);
        }
    }

    /// Marks the connection as busy: a request is in progress.
    pub(super) fn busy(&self) {
        let mut table = self.slots.lock();
        if let Some(number) = self.idle_as().take() {
            table.waiting.remove(&number);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.busy();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn longest_idle_connection_is_closed_and_busy_ones_are_kept() {
        let slots = Slots::new(2);
        let busy = slots.take().await.expect("a free slot");
        busy.busy();
        let idle = slots.take().await.expect("a free slot");
        let ends = idle.end.clone();
        let leaving = tokio::spawn(async move {
            ends.cancelled().await;
            drop(idle);
        });
        let third = slots.take().await.expect("a slot was freed");
        leaving.await.expect("left");
        third.busy();
        assert!(slots.take().await.is_none(), "all are at work");
        assert!(!busy.end.is_cancelled());
        busy.idle();
        let _stays = busy;
        assert!(slots.take().await.is_none(), "requested to end, but it does not");
    }

    #[tokio::test]
    async fn a_connection_that_was_busy_is_idle_from_its_last_request_on() {
        let slots = Slots::new(2);
        let (first, second) =
            (slots.take().await.expect("a free slot"), slots.take().await.expect("a free slot"));
        first.busy();
        first.idle();
        assert!(slots.evict());
        assert!(second.end.is_cancelled() && !first.end.is_cancelled());
        drop(first);
        assert!(!slots.evict());
    }
}
