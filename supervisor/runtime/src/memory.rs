//! The memory budget for replies that are being sent to workers. A worker that does not read its replies keeps its reservation
//! until its write deadline: many such workers delay others of their owner, but do not use up the machine's memory.

use crate::shares::{Holder, Share, ShareLimits, Shares};
use std::sync::{Arc, Mutex, PoisonError};
use vm_system_protocol::broker::{BrokerCall, FsRequest};
use vm_system_protocol::limits::REPLIES_MIB;

/// The budget of all sessions.
#[derive(Debug, Clone)]
pub(super) struct MemoryBudget(Arc<Shares>);

/// The reservations of one session.
#[derive(Debug, Clone, Default)]
pub(super) struct Reservation(Arc<Mutex<Vec<Share>>>);

impl MemoryBudget {
    pub(super) fn new() -> Self {
        // In MiB. No reserve: administrators have no more need of it than others.
        let limits = ShareLimits { reserved: 0, ..ShareLimits::at_most(REPLIES_MIB) };
        Self(Shares::new("MiB for replies", "replies_mib", limits))
    }

    /// Reserves memory for a reply of at most this many bytes.
    pub(super) async fn wait(&self, holder: &Holder, bytes: u64) -> Option<Share> {
        self.0.wait(holder, usize::try_from(bytes >> 20).unwrap_or(usize::MAX)).await
    }
}

impl Reservation {
    /// Keeps the reservation of a reply until it is sent.
    pub(super) fn hold(&self, share: Option<Share>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(share);
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
    use crate::shares::Holder;

    #[tokio::test]
    async fn unreleased_reservation_makes_others_wait() {
        let (budget, reservation) = (MemoryBudget::new(), Reservation::default());
        reservation.hold(budget.wait(&Holder::UNKNOWN, u64::MAX).await);
        let mut other = Box::pin(budget.wait(&Holder::UNKNOWN, 0));
        let waits =
            std::future::poll_fn(|context| std::task::Poll::Ready(other.as_mut().poll(context).is_pending()));
        assert!(waits.await);
        reservation.give_back();
        assert!(other.await.is_some());
    }
}
