//! The memory of requests and replies between clients and the supervisor: bytes are reserved before they are read or built, and until
//! they are gone. A client that does not read its replies, or sends its requests slowly, makes others of its owner wait.
//!
//! Requests and replies have a budget each: a request that waits for the memory of its reply keeps its own, so that with one budget
//! requests could wait for each other for ever. Requests and replies up to [`SMALL_BYTES`] are not reserved: the number of connections
//! and of requests in progress bounds them.

use crate::shares::{Holder, Share, ShareLimits, ShareRefusal, Shares};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The size up to which nothing is reserved (bytes).
pub const SMALL_BYTES: usize = 16 * 1024;
/// How long a request waits for memory.
pub const MEMORY_WAIT: Duration = Duration::from_secs(10);
/// Memory of requests, and as much of replies, unless the operator sets another number (MiB).
pub const MEMORY_MIB: usize = 512;

/// The budgets of all clients.
#[derive(Debug, Clone)]
pub struct ClientMemory {
    requests: Arc<Shares>,
    replies: Arc<Shares>,
}

impl Default for ClientMemory {
    fn default() -> Self {
        Self::new(ShareLimits::at_most(MEMORY_MIB * 1024))
    }
}

const fn kib(bytes: usize) -> usize {
    bytes.div_ceil(1024)
}

impl ClientMemory {
    /// Budgets with limits in KiB.
    pub fn new(limits: ShareLimits) -> Self {
        let shares = |what| Shares::new(what, "memory_mb", limits);
        Self { requests: shares("KiB of memory for requests"), replies: shares("KiB of memory for replies") }
    }

    /// Reserves memory for a request of so many bytes, which is decoded while its bytes are still there.
    pub async fn request(&self, holder: &Holder, bytes: usize) -> Result<Option<Share>, ShareRefusal> {
        if bytes <= SMALL_BYTES {
            return Ok(None);
        }
        let amount = kib(2 * bytes);
        match tokio::time::timeout(MEMORY_WAIT, self.requests.wait(holder, amount)).await {
            Ok(Some(share)) => Ok(Some(share)),
            _ => Err(self.requests.refusal_of(holder, amount)),
        }
    }

    /// For the reply of one request of this holder.
    pub fn reply(&self, holder: Holder) -> ReplyMemory {
        let (budget, held) = (Arc::clone(&self.replies), Mutex::default());
        ReplyMemory(Some(Arc::new(ReplyReservation { budget, holder, held, gone: CancellationToken::new() })))
    }
}

/// The memory of the reply of one request, and whether its client has gone. The default has no bound: requests within the process.
#[derive(Debug, Clone, Default)]
pub struct ReplyMemory(Option<Arc<ReplyReservation>>);

#[derive(Debug)]
struct ReplyReservation {
    budget: Arc<Shares>,
    holder: Holder,
    held: Mutex<Option<Share>>,
    gone: CancellationToken,
}

impl ReplyReservation {
    fn held(&self) -> MutexGuard<'_, Option<Share>> {
        // Nothing panics while holding it.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReplyMemory {
    /// Reserves memory for a reply of at most so many bytes, before it is built. What is reserved already counts.
    pub async fn reserve(&self, bytes: usize) -> Result<(), ShareRefusal> {
        let Some(inner) = &self.0 else { return Ok(()) };
        if inner.held().is_some() {
            return Ok(());
        }
        let amount = kib(bytes);
        match tokio::time::timeout(MEMORY_WAIT, inner.budget.wait(&inner.holder, amount)).await {
            Ok(Some(share)) => {
                *inner.held() = Some(share);
                Ok(())
            }
            _ => Err(inner.budget.refusal_of(&inner.holder, amount)),
        }
    }

    /// The reservation of a reply that has this size, to be kept until it is sent. An error: there is none, and too little is free for
    /// a reply that was not reserved before.
    pub fn settle(&self, bytes: usize) -> Result<Option<Share>, ShareRefusal> {
        let Some(inner) = &self.0 else { return Ok(None) };
        let held = inner.held().take();
        if bytes <= SMALL_BYTES {
            return Ok(None);
        }
        let amount = kib(bytes);
        if let Some(share) = held.filter(|share| share.amount() >= amount) {
            share.reduce(amount);
            return Ok(Some(share));
        }
        let share = inner.budget.take_in_passing(&inner.holder, amount);
        share.map(Some).ok_or_else(|| inner.budget.refusal_of(&inner.holder, amount))
    }

    /// Memory for a part of a stream, when it is the holder's turn: its reader waits.
    pub(crate) async fn part(&self, bytes: usize) -> Option<Share> {
        let inner = self.0.as_ref().filter(|_| bytes > SMALL_BYTES)?;
        inner.budget.wait(&inner.holder, kib(bytes)).await
    }

    /// Nobody waits for the reply any more.
    pub fn client_left(&self) {
        if let Some(inner) = &self.0 {
            inner.gone.cancel();
        }
    }

    /// Resolves when nobody waits for the reply any more.
    pub async fn client_gone(&self) {
        match &self.0 {
            Some(inner) => inner.gone.cancelled().await,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ClientMemory, SMALL_BYTES};
    use crate::shares::{Holder, ShareLimits};
    use vm_system_record::Owner;

    fn owner(name: &str) -> Holder {
        Holder::Owner(Owner::new(name))
    }

    #[tokio::test]
    async fn replies_that_nobody_reads_keep_memory_from_their_owner_and_not_from_others() {
        let memory = ClientMemory::new(ShareLimits::at_most(64 * 1024));
        let mut unread = Vec::new();
        loop {
            let reply = memory.reply(owner("greedy"));
            let mut reserving = Box::pin(reply.reserve(8 << 20));
            let Some(reserved) = now(&mut reserving).await else { break };
            reserved.expect("it was its turn");
            unread.extend(reply.settle(8 << 20).expect("it is reserved"));
        }
        assert_eq!(unread.len(), 3, "an owner leaves as many free as it has, and there is a reserve");
        let other = memory.reply(owner("other"));
        let mut others = Box::pin(other.reserve(8 << 20));
        assert!(matches!(now(&mut others).await, Some(Ok(()))), "others have memory");
        let small = memory.reply(owner("greedy"));
        assert!(small.settle(SMALL_BYTES).expect("small replies need none").is_none());
        let refusal = small.settle(SMALL_BYTES + (8 << 20)).expect_err("and large ones are refused");
        assert!(refusal.hint().contains("[shares.memory_mb]"), "{}", refusal.hint());
        drop(unread.pop());
        let next = memory.reply(owner("greedy"));
        let mut again = Box::pin(next.reserve(8 << 20));
        assert!(matches!(now(&mut again).await, Some(Ok(()))), "one was sent");
    }

    #[tokio::test]
    async fn what_a_reply_does_not_need_is_given_back_at_once() {
        let memory = ClientMemory::new(ShareLimits { reserved: 0, ..ShareLimits::at_most(32 * 1024) });
        let first = memory.reply(owner("o"));
        first.reserve(32 << 20).await.expect("all of it");
        let waiting = memory.reply(owner("other"));
        let mut second = Box::pin(waiting.reserve(16 << 20));
        assert!(now(&mut second).await.is_none());
        let kept = first.settle(1 << 20).expect("reserved");
        second.await.expect("the rest is free");
        drop(kept);
    }

    async fn now<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        std::future::poll_fn(|context| {
            std::task::Poll::Ready(match std::pin::Pin::new(&mut *future).poll(context) {
                std::task::Poll::Ready(value) => Some(value),
                std::task::Poll::Pending => None,
            })
        })
        .await
    }
}
