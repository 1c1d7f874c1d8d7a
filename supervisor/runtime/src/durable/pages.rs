//! The memory budget for pages that workers have sent and that are not stored yet. A small part needs no reservation; a worker
//! that sends more has reserved all that it may send, or nothing is received from it until it has: no worker waits for a
//! reservation while it holds memory that others wait for.

use super::unreserved;
use crate::shares::{Holder, Share, Shares};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// Pages that every worker may have sent (bytes).
const FREE_BYTES: u64 = 4 << 20;
/// All others together (MiB), shared out by owner.
const BUDGET_MIB: usize = 1_024;
/// Most of it for one execution. An execution that may send more is a large one: it reserves this much, and has more alone.
const EXECUTION_MIB: usize = BUDGET_MIB / 2;
/// Large executions at a time, so that what exists is bounded. What one owner's large execution leaves is for all others.
const LARGE: usize = 1;

/// The memory for pages of all executions.
#[derive(Debug)]
pub(super) struct PageBudget {
    /// In MiB.
    memory: Arc<Shares>,
    large: Arc<Shares>,
}

impl PageBudget {
    pub(super) fn new() -> Arc<Self> {
        let (memory, large) =
            (unreserved("MiB of pages", BUDGET_MIB), unreserved("executions with large states", LARGE));
        Arc::new(Self { memory, large })
    }

    /// This much (MiB), if nobody waits for it.
    fn take_at_once(&self, holder: &Holder, mebibytes: usize) -> Option<Reserved> {
        let large = if mebibytes > EXECUTION_MIB { Some(self.large.take_at_once(holder, 1)?) } else { None };
        let memory = self.memory.take_at_once(holder, mebibytes.min(EXECUTION_MIB))?;
        Some(Reserved { _memory: memory, _large: large })
    }

    /// This much (MiB), when it is the holder's turn. Holds no memory while it waits.
    async fn wait(self: Arc<Self>, holder: Holder, mebibytes: usize) -> Option<Reserved> {
        let large = if mebibytes > EXECUTION_MIB { Some(self.large.wait(&holder, 1).await?) } else { None };
        let memory = self.memory.wait(&holder, mebibytes.min(EXECUTION_MIB)).await?;
        Some(Reserved { _memory: memory, _large: large })
    }
}

/// Returned when it is dropped.
#[derive(Debug)]
pub(super) struct Reserved {
    _memory: Share,
    _large: Option<Share>,
}

type Acquiring = Pin<Box<dyn Future<Output = Option<Reserved>> + Send>>;

/// The reservation of one execution.
#[derive(Default)]
pub(super) struct PageReservation {
    held: Option<Reserved>,
    /// The pending reservation.
    pub(super) acquiring: Option<Acquiring>,
}

/// The change of whether the worker's messages are received.
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
        (budget, holder): (&Arc<PageBudget>, &Holder),
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
    fn needs(&mut self, (budget, holder): (&Arc<PageBudget>, &Holder), most: u64) -> bool {
        if self.held.is_some() || self.acquiring.is_some() {
            return false;
        }
        let mebibytes = usize::try_from(most.div_ceil(1 << 20)).unwrap_or(usize::MAX);
        self.held = budget.take_at_once(holder, mebibytes);
        if self.held.is_none() {
            self.acquiring = Some(Box::pin(Arc::clone(budget).wait(holder.clone(), mebibytes)));
        }
        self.is_waiting()
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.acquiring.is_some()
    }

    /// The reservation succeeded.
    pub(super) fn has(&mut self, held: Option<Reserved>) {
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
    use crate::shares::Holder;
    use vm_system_record::Owner;

    fn owner(name: &str) -> Holder {
        Holder::new(Owner::new(name), false)
    }

    #[tokio::test]
    async fn worker_is_resumed_when_its_pages_are_stored_while_it_waits_for_memory() {
        let budget = PageBudget::new();
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
        let budget = PageBudget::new();
        let (one, other) = ((&budget, &owner("a")), (&budget, &owner("b")));
        // Two of them are more than the budget.
        let half = ((BUDGET_MIB / 2) << 20) as u64;
        let mut little = PageReservation::default();
        assert!(!little.needs((&budget, &owner("d")), 1 << 20));
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
    }

    #[tokio::test]
    async fn large_execution_leaves_half_to_others_and_large_ones_take_turns() {
        let budget = PageBudget::new();
        let (one, other) = ((&budget, &owner("a")), (&budget, &owner("b")));
        let ordinary = ((BUDGET_MIB / 4) << 20) as u64;
        let [mut first, mut next, mut third, mut small] = [(); 4].map(|()| PageReservation::default());
        assert!(!first.needs(one, u64::MAX), "a worker may send more than the budget");
        assert!(next.needs(one, u64::MAX) && third.needs(other, u64::MAX), "one of them at a time");
        let [mut next, mut third] =
            [&mut next, &mut third].map(|waiting| waiting.acquiring.take().expect("it waits"));
        assert!(is_pending(&mut next).await && is_pending(&mut third).await);
        assert!(!small.needs(other, ordinary), "what one owner leaves is there for others at once");
        first.give_back();
        let second = next.await.expect("memory");
        assert!(is_pending(&mut third).await);
        // The first owner's next one waits behind the other owner.
        let mut last = PageReservation::default();
        assert!(last.needs(one, u64::MAX));
        let mut last = last.acquiring.take().expect("it waits");
        assert!(is_pending(&mut last).await);
        drop(second);
        small.give_back();
        let turn = third.await.expect("memory");
        assert!(is_pending(&mut last).await);
        drop(turn);
        drop(last.await.expect("memory"));
    }

    #[tokio::test]
    async fn one_owner_leaves_memory_for_others() {
        let budget = PageBudget::new();
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
