//! The memory budget for replies that are being sent to workers. A worker that does not read its replies keeps its reservation
//! until its write deadline: many such workers delay others, but do not use up the machine's memory.

use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use vm_system_protocol::broker::{BrokerCall, FsRequest};
use vm_system_protocol::limits::REPLIES_MIB;

/// The budget of all sessions.
#[derive(Debug, Clone)]
pub(super) struct MemoryBudget(Arc<Semaphore>);

/// The reservations of one session.
#[derive(Debug, Clone, Default)]
pub(super) struct Reservation(Arc<Mutex<Vec<OwnedSemaphorePermit>>>);

impl MemoryBudget {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(REPLIES_MIB)))
    }

    /// Reserves memory for a reply of at most this many bytes.
    pub(super) async fn wait(&self, bytes: u64) -> Option<OwnedSemaphorePermit> {
        let mebibytes = usize::try_from(bytes >> 20).unwrap_or(REPLIES_MIB).clamp(1, REPLIES_MIB);
        Arc::clone(&self.0).acquire_many_owned(u32::try_from(mebibytes).unwrap_or(u32::MAX)).await.ok()
    }
}

impl Reservation {
    /// Keeps the reservation of a reply until it is sent.
    pub(super) fn hold(&self, permit: Option<OwnedSemaphorePermit>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(permit);
    }

    /// Releases all reservations: everything is sent.
    pub(super) fn give_back(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// The largest reply of a broker (bytes).
pub(super) fn largest_reply(call: &BrokerCall) -> u64 {
    match call {
        BrokerCall::Fs { request: FsRequest::ReadFile { .. }, terms } => terms.max_file_bytes,
        BrokerCall::Fs { request: FsRequest::ReadDir { .. }, terms } => u64::from(terms.max_entries) * 256,
        BrokerCall::Fs { .. } => 0,
        BrokerCall::Database { terms, .. } => terms.max_result_bytes,
        BrokerCall::Exec { terms, .. } => 2 * terms.max_output_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::{MemoryBudget, Reservation};

    #[tokio::test]
    async fn unreleased_reservation_makes_others_wait() {
        let (budget, reservation) = (MemoryBudget::new(), Reservation::default());
        reservation.hold(budget.wait(u64::MAX).await);
        let mut other = Box::pin(budget.wait(0));
        let waits =
            std::future::poll_fn(|context| std::task::Poll::Ready(other.as_mut().poll(context).is_pending()));
        assert!(waits.await);
        reservation.give_back();
        assert!(other.await.is_some());
    }
}
