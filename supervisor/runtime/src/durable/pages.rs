//! The memory budget for pages that workers have sent and that are not stored yet. A small part needs no reservation; a worker
//! that sends more has reserved all that it may send, or nothing is received from it until it has: no worker waits for a
//! reservation while it holds memory that others wait for.

use crate::shares::{Holder, Share, Shares};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// Pages that every worker may have sent (bytes).
const FREE_BYTES: u64 = 4 << 20;
/// All others together (MiB), shared out by owner. One execution may have more than this alone, if its limits allow it.
pub(super) const BUDGET_MIB: usize = 1_024;

type Acquiring = Pin<Box<dyn Future<Output = Option<Share>> + Send>>;

/// The reservation of one execution.
#[derive(Default)]
pub(super) struct PageReservation {
    held: Option<Share>,
    /// The pending reservation.
    pub(super) acquiring: Option<Acquiring>,
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
        (budget, holder): (&Arc<Shares>, &Holder),
        (gathered, most): (u64, u64),
        stored: bool,
    ) -> Option<Change> {
        if gathered > FREE_BYTES {
            return self.needs((budget, holder), most).then_some(Change::Waits);
        }
        if !stored {
            return None;
        }
        let waited = self.is_waiting();
        self.give_back();
        waited.then_some(Change::Continues)
    }

    /// Reserves this many bytes; true if it begins to wait.
    fn needs(&mut self, (budget, holder): (&Arc<Shares>, &Holder), most: u64) -> bool {
        if self.held.is_some() || self.acquiring.is_some() {
            return false;
        }
        let mebibytes = usize::try_from(most.div_ceil(1 << 20)).unwrap_or(usize::MAX);
        self.held = budget.take_at_once(holder, mebibytes);
        if self.held.is_none() {
            let (budget, holder) = (Arc::clone(budget), holder.clone());
            self.acquiring = Some(Box::pin(async move { budget.wait(&holder, mebibytes).await }));
        }
        self.is_waiting()
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.acquiring.is_some()
    }

    /// The reservation succeeded.
    pub(super) fn has(&mut self, held: Option<Share>) {
        (self.held, self.acquiring) = (held, None);
    }

    /// Releases the reservation: all received pages are stored.
    fn give_back(&mut self) {
        (self.held, self.acquiring) = (None, None);
    }
}

#[cfg(test)]
mod tests {
    use super::{BUDGET_MIB, Change, FREE_BYTES, PageReservation};
    use crate::durable::unreserved;
    use crate::shares::Holder;
    use vm_system_record::Owner;

    fn owner(name: &str) -> Holder {
        Holder::new(Owner::new(name), false)
    }

    #[tokio::test]
    async fn worker_is_resumed_when_its_pages_are_stored_while_it_waits_for_memory() {
        let budget = unreserved("MiB of pages", BUDGET_MIB);
        let of = (&budget, &owner("a"));
        let [mut first, mut second] = [(); 2].map(|()| PageReservation::default());
        let (more, most) = (FREE_BYTES + 1, u64::MAX);
        assert_eq!(first.adjust(of, (more, most), true), None, "there is enough memory");
        assert_eq!(second.adjust(of, (more, most), true), Some(Change::Waits));
        assert_eq!(second.adjust(of, (more, most), true), None, "it waits already");
        assert_eq!(second.adjust(of, (0, most), false), None, "not stored yet");
        assert_eq!(second.adjust(of, (0, most), true), Some(Change::Continues), "its time is counted again");
        assert_eq!(second.adjust(of, (0, most), true), None);
    }

    #[tokio::test]
    async fn worker_that_cannot_reserve_everything_holds_nothing_and_is_next() {
        let budget = unreserved("MiB of pages", BUDGET_MIB);
        let (one, other) = ((&budget, &owner("a")), (&budget, &owner("b")));
        let half = ((BUDGET_MIB / 2 + 1) << 20) as u64;
        let [mut first, mut second, mut third] = [(); 3].map(|()| PageReservation::default());
        assert!(!first.needs(one, half) && !first.needs(one, half), "it has a reservation for all already");
        assert!(second.needs(other, half) && !second.needs(other, half), "it begins to wait once");
        let mut acquiring = second.acquiring.take().expect("it waits");
        assert!(is_pending(&mut acquiring).await);
        let late = (&budget, &owner("c"));
        assert!(third.needs(late, 1), "not before earlier ones");
        let mut last = third.acquiring.take().expect("it waits");
        assert!(is_pending(&mut last).await, "not before earlier ones");
        first.give_back();
        second.has(acquiring.await);
        assert!(!second.is_waiting());
        third.has(last.await);
        second.give_back();
        third.give_back();
        assert!(
            !first.needs(one, u64::MAX),
            "a worker that may send more than the budget reserves all of it"
        );
    }

    #[tokio::test]
    async fn one_owner_leaves_memory_for_others() {
        let budget = unreserved("MiB of pages", BUDGET_MIB);
        let greedy = owner("a");
        let part = ((BUDGET_MIB / 4) << 20) as u64;
        let mut reservations = [(); 4].map(|()| PageReservation::default());
        let waiting = reservations
            .iter_mut()
            .filter_map(|one| one.needs((&budget, &greedy), part).then_some(()))
            .count();
        assert_eq!(waiting, 2, "half of it");
        let mut other = PageReservation::default();
        assert!(!other.needs((&budget, &owner("b")), part), "another owner has some at once");
    }

    async fn is_pending(acquiring: &mut super::Acquiring) -> bool {
        std::future::poll_fn(|context| std::task::Poll::Ready(acquiring.as_mut().poll(context).is_pending()))
            .await
    }
}
