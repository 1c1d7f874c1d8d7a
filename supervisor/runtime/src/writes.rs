//! Batches that are being written to the store, in order, and their outcomes. Knows nothing of a batch's content.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use vm_system_core::WriteId;
use vm_system_record::{Applied, Batch, StoreError};
use vm_system_store::{StoreHandle, Ticket, Urgency};

type Submitting = Pin<Box<dyn Future<Output = Result<Ticket, StoreError>> + Send>>;

/// Batches of one owner task, each with a note for its outcome. One batch is submitted at a time, so that the store
/// keeps their order; while the store's queue is full, only the batches wait for it: the owner task stops
/// receiving from its worker ([`Writes::is_behind`]), and so bounds them.
pub(super) struct Writes<N> {
    store: StoreHandle,
    queue: VecDeque<(WriteId, N, Batch, Urgency)>,
    submitting: Option<(WriteId, N, Submitting)>,
    tickets: VecDeque<(WriteId, N, Ticket)>,
}

/// The outcome of a batch.
pub(super) struct WriteOutcome<N> {
    pub(super) id: WriteId,
    pub(super) note: N,
    pub(super) result: Result<Applied, StoreError>,
}

impl<N> Writes<N> {
    pub(super) fn new(store: StoreHandle) -> Self {
        Self { store, queue: VecDeque::new(), submitting: None, tickets: VecDeque::new() }
    }

    /// Queues a batch, and submits it now if the store's queue is not full.
    pub(super) fn push(
        &mut self,
        (id, note): (WriteId, N),
        batch: Batch,
        urgency: Urgency,
    ) -> Option<WriteOutcome<N>> {
        self.queue.push_back((id, note, batch, urgency));
        match self.hand_over(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(failed) => Some(failed),
            Poll::Pending => None,
        }
    }

    /// Whether a batch is not in the store's queue yet.
    pub(super) fn is_behind(&self) -> bool {
        self.submitting.is_some() || !self.queue.is_empty()
    }

    /// Takes a batch back that the store has not taken into its queue; whether it was so.
    pub(super) fn withdraw(&mut self, id: WriteId) -> bool {
        if self.submitting.take_if(|(submitting, ..)| *submitting == id).is_some() {
            return true;
        }
        let before = self.queue.len();
        self.queue.retain(|(queued, ..)| *queued != id);
        self.queue.len() < before
    }

    /// Whether the outcome of every batch is known.
    pub(super) fn is_empty(&self) -> bool {
        !self.is_behind() && self.tickets.is_empty()
    }

    /// The next outcome. Cancel safe.
    pub(super) async fn next(&mut self) -> WriteOutcome<N> {
        poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<WriteOutcome<N>> {
        if let Poll::Ready(failed) = self.hand_over(context) {
            return Poll::Ready(failed);
        }
        let Some((_, _, ticket)) = self.tickets.front_mut() else { return Poll::Pending };
        let Poll::Ready(result) = Pin::new(ticket).poll(context) else { return Poll::Pending };
        match self.tickets.pop_front() {
            Some((id, note, _)) => Poll::Ready(WriteOutcome { id, note, result }),
            None => Poll::Pending,
        }
    }

    /// Resolves only with a batch that the store refuses.
    fn hand_over(&mut self, context: &mut Context<'_>) -> Poll<WriteOutcome<N>> {
        loop {
            if let Some((_, _, submitting)) = &mut self.submitting {
                let Poll::Ready(result) = submitting.as_mut().poll(context) else { return Poll::Pending };
                let Some((id, note, _)) = self.submitting.take() else { return Poll::Pending };
                match result {
                    Ok(ticket) => self.tickets.push_back((id, note, ticket)),
                    Err(error) => return Poll::Ready(WriteOutcome { id, note, result: Err(error) }),
                }
            }
            let Some((id, note, batch, urgency)) = self.queue.pop_front() else { return Poll::Pending };
            let store = self.store.clone();
            let submitting: Submitting = Box::pin(async move {
                match urgency {
                    Urgency::Now => store.submit(batch).await,
                    Urgency::Lazy => store.submit_lazy(batch).await,
                }
            });
            self.submitting = Some((id, note, submitting));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Writes;
    use vm_system_core::WriteId;
    use vm_system_record::Batch;
    use vm_system_store::{Faults, Urgency, open_temporary};

    #[tokio::test]
    async fn batch_that_waits_for_the_queue_can_be_taken_back_and_one_in_the_queue_cannot() {
        let (store, faults) = Faults::wrap(open_temporary().expect("a temporary folder"));
        let mut writes = Writes::new(store);
        let batch = || Batch(Vec::new());
        assert!(writes.push((WriteId(1), 1), batch(), Urgency::Now).is_none());
        assert!(!writes.withdraw(WriteId(1)));
        faults.set_full(true);
        for number in 2..=4 {
            assert!(writes.push((WriteId(number), number), batch(), Urgency::Now).is_none());
        }
        assert!(writes.withdraw(WriteId(2)) && writes.withdraw(WriteId(4)) && !writes.withdraw(WriteId(2)));
        faults.set_full(false);
        for number in [1, 3] {
            assert_eq!(writes.next().await.id, WriteId(number));
        }
        assert!(writes.is_empty());
    }

    #[tokio::test]
    async fn batches_wait_in_their_order_for_a_full_store_queue() {
        let (store, faults) = Faults::wrap(open_temporary().expect("a temporary folder"));
        faults.set_full(true);
        let mut writes = Writes::new(store);
        for number in 1..=3 {
            assert!(writes.push((WriteId(number), number), Batch(Vec::new()), Urgency::Now).is_none());
        }
        assert!(writes.is_behind() && !writes.is_empty());
        faults.set_full(false);
        for number in 1..=3 {
            let outcome = writes.next().await;
            assert_eq!((outcome.id, outcome.note, outcome.result.is_ok()), (WriteId(number), number, true));
        }
        assert!(writes.is_empty());
    }
}
