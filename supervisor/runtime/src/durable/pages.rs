//! The memory budget for pages that workers have sent and that are not stored yet. A small part needs no reservation; a worker
//! that sends more has reserved all that it may send, or nothing is received from it until it has: no worker waits for a
//! reservation while it holds memory that others wait for.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Pages that every worker may have sent (bytes).
const FREE_BYTES: u64 = 4 << 20;
/// All others together (MiB). One execution may have more than this alone, if its limits allow it.
const BUDGET_MIB: u32 = 1_024;

type Acquiring = Pin<Box<dyn Future<Output = Option<OwnedSemaphorePermit>> + Send>>;

/// The budget of all executions.
#[derive(Debug)]
pub(super) struct PageBudget(Arc<Semaphore>);

/// The reservation of one execution.
#[derive(Default)]
pub(super) struct PageReservation {
    held: Option<OwnedSemaphorePermit>,
    /// The pending reservation.
    pub(super) acquiring: Option<Acquiring>,
}

impl PageBudget {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(BUDGET_MIB as usize)))
    }
}

/// Whether the worker's messages are received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// Paused until there is memory for what the worker may send.
    Waits,
    /// Resumed: the pages that needed memory are stored.
    Continues,
}

impl PageReservation {
    /// To be called after each step with the gathered bytes and their upper bound, and whether earlier pages are stored.
    pub(super) fn adjust(
        &mut self,
        budget: &PageBudget,
        (gathered, most): (u64, u64),
        stored: bool,
    ) -> Option<Change> {
        if gathered > FREE_BYTES {
            return self.needs(budget, most).then_some(Change::Waits);
        }
        if !stored {
            return None;
        }
        let waited = self.is_waiting();
        self.give_back();
        waited.then_some(Change::Continues)
    }

    /// Reserves this many bytes; true if it begins to wait.
    fn needs(&mut self, budget: &PageBudget, most: u64) -> bool {
        if self.held.is_some() || self.acquiring.is_some() {
            return false;
        }
        let mebibytes = u32::try_from(most.div_ceil(1 << 20)).unwrap_or(u32::MAX).min(BUDGET_MIB);
        let semaphore = Arc::clone(&budget.0);
        self.held = Arc::clone(&semaphore).try_acquire_many_owned(mebibytes).ok();
        if self.held.is_none() {
            self.acquiring =
                Some(Box::pin(async move { semaphore.acquire_many_owned(mebibytes).await.ok() }));
        }
        self.is_waiting()
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.acquiring.is_some()
    }

    /// The reservation succeeded.
    pub(super) fn has(&mut self, held: Option<OwnedSemaphorePermit>) {
        (self.held, self.acquiring) = (held, None);
    }

    /// Releases the reservation: all received pages are stored.
    fn give_back(&mut self) {
        (self.held, self.acquiring) = (None, None);
    }
}

#[cfg(test)]
mod tests {
    use super::{BUDGET_MIB, Change, FREE_BYTES, PageBudget, PageReservation};

    #[tokio::test]
    async fn worker_is_resumed_when_its_pages_are_stored_while_it_waits_for_memory() {
        let budget = PageBudget::new();
        let [mut first, mut second] = [(); 2].map(|()| PageReservation::default());
        let (more, most) = (FREE_BYTES + 1, u64::MAX);
        assert_eq!(first.adjust(&budget, (more, most), true), None, "there is enough memory");
        assert_eq!(second.adjust(&budget, (more, most), true), Some(Change::Waits));
        assert_eq!(second.adjust(&budget, (more, most), true), None, "it waits already");
        assert_eq!(second.adjust(&budget, (0, most), false), None, "not stored yet");
        assert_eq!(
            second.adjust(&budget, (0, most), true),
            Some(Change::Continues),
            "its time is counted again"
        );
        assert_eq!(second.adjust(&budget, (0, most), true), None);
    }

    #[tokio::test]
    async fn worker_that_cannot_reserve_everything_holds_nothing_and_is_next() {
        let budget = PageBudget::new();
        let half = u64::from(BUDGET_MIB / 2 + 1) << 20;
        let [mut first, mut second, mut third] = [(); 3].map(|()| PageReservation::default());
        assert!(
            !first.needs(&budget, half) && !first.needs(&budget, half),
            "it has a reservation for all already"
        );
        assert!(second.needs(&budget, half) && !second.needs(&budget, half), "it begins to wait once");
        let mut acquiring = second.acquiring.take().expect("it waits");
        assert!(is_pending(&mut acquiring).await);
        assert!(third.needs(&budget, 1), "not before earlier ones");
        first.give_back();
        second.has(acquiring.await);
        assert!(!second.is_waiting());
        let acquiring = third.acquiring.take().expect("it waits");
        third.has(acquiring.await);
        second.give_back();
        third.give_back();
        assert!(
            !first.needs(&budget, u64::MAX),
            "a worker that may send more than the budget reserves all of it"
        );
    }

    async fn is_pending(acquiring: &mut super::Acquiring) -> bool {
        std::future::poll_fn(|context| std::task::Poll::Ready(acquiring.as_mut().poll(context).is_pending()))
            .await
    }
}
