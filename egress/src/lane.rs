//! Lanes: all work of one owner is one task of the event loop, so that owners take turns, not connections. A turn ends after a short
//! time, however much of the owner's work is ready. Does not know what the work is.

use futures_util::FutureExt as _;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use vm_system_protocol::limits::HTTP_EXCHANGES_OF_ALL;
use vm_system_sandbox::process;

/// A turn of an owner. One poll of one connection can exceed it, by what a connection reads at a time.
const TURN: Duration = Duration::from_micros(500);

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Work of one owner that waits for its next turn, which takes all of it: its exchanges, and up to three tasks of the HTTP library for each
/// (a connection, and the body of a request).
const WAITING: usize = 4 * HTTP_EXCHANGES_OF_ALL;
const EXIT_OVERRUN: i32 = 75;

/// Where the work of one owner is done. It ends when nobody can add work and all of it is done.
#[derive(Debug, Clone)]
pub(crate) struct Lane(mpsc::Sender<Work>);

impl Lane {
    pub(crate) fn start() -> Self {
        let (sender, work) = mpsc::channel(WAITING);
        tokio::spawn(drive(work));
        Self(sender)
    }

    /// Adds work, which begins in the owner's next turn.
    pub(crate) fn spawn<F>(&self, work: F)
    where
        F: Future + Send + 'static,
    {
        // An exchange without its work would never end.
        if !self.queue(work) {
            process::exit_now(EXIT_OVERRUN);
        }
    }

    /// Adds work; `false`: as much waits as may.
    fn queue<F>(&self, work: F) -> bool
    where
        F: Future + Send + 'static,
    {
        // As in a task of its own, a panic ends this piece of work and no other.
        let work = AssertUnwindSafe(work).catch_unwind().map(drop);
        // The receiver lives as long as a sender, so the queue is never closed.
        !matches!(self.0.try_send(Box::pin(work)), Err(mpsc::error::TrySendError::Full(_)))
    }
}

impl<F> hyper::rt::Executor<F> for Lane
where
    F: Future + Send + 'static,
{
    fn execute(&self, work: F) {
        self.spawn(work);
    }
}

/// When the turn under way ends.
#[derive(Debug)]
struct Turn {
    base: Instant,
    end_ns: AtomicU64,
}

impl Turn {
    fn elapsed_ns(&self) -> u64 {
        u64::try_from(self.base.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn begin(&self) {
        let end = self.elapsed_ns().saturating_add(TURN.as_nanos() as u64);
        self.end_ns.store(end, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        self.elapsed_ns() >= self.end_ns.load(Ordering::Relaxed)
    }
}

/// Work that is not polled after the end of a turn: the set would go on with whatever is ready.
struct InTurn {
    turn: Arc<Turn>,
    work: Work,
}

impl Future for InTurn {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.turn.is_over() {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.work.as_mut().poll(cx)
    }
}

async fn drive(mut incoming: mpsc::Receiver<Work>) {
    let turn = Arc::new(Turn { base: Instant::now(), end_ns: AtomicU64::new(0) });
    let mut under_way = FuturesUnordered::new();
    poll_fn(|cx| {
        turn.begin();
        loop {
            let closed = loop {
                match incoming.poll_recv(cx) {
                    Poll::Ready(Some(work)) => under_way.push(InTurn { turn: Arc::clone(&turn), work }),
                    Poll::Ready(None) => break true,
                    Poll::Pending => break false,
                }
            };
            match under_way.poll_next_unpin(cx) {
                Poll::Ready(Some(())) if turn.is_over() => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                // A task that ended may have added work.
                Poll::Ready(Some(())) => {}
                Poll::Ready(None) if closed => return Poll::Ready(()),
                Poll::Ready(None) | Poll::Pending => return Poll::Pending,
            }
        }
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::{Lane, WAITING};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use tokio::sync::oneshot;
    use tokio::task::yield_now;

    /// Many pieces of work that are ready again and again hold up another owner by their turn, and not by one poll each.
    #[tokio::test]
    async fn an_owner_with_much_work_takes_turns_with_another_one() {
        let (busy, other) = (Lane::start(), Lane::start());
        let polls = Arc::new(AtomicU64::new(0));
        for _ in 0..1_000 {
            let polls = Arc::clone(&polls);
            busy.spawn(async move {
                loop {
                    polls.fetch_add(1, Ordering::Relaxed);
                    // A poll that takes its time.
                    std::hint::black_box((0..20_000_u64).fold(0, u64::wrapping_add));
                    yield_now().await;
                }
            });
        }
        yield_now().await;
        for _ in 0..20 {
            let (done, is_done) = oneshot::channel();
            let before = polls.load(Ordering::Relaxed);
            other.spawn(async move {
                let _ = done.send(());
            });
            is_done.await.expect("the other owner's work is done");
            let meanwhile = polls.load(Ordering::Relaxed) - before;
            assert!(meanwhile < 500, "{meanwhile} polls of one owner during a single one of the other");
        }
    }

    /// The event loop of the test does not run meanwhile, as during a turn of another owner that does not end.
    #[tokio::test]
    async fn a_lane_without_turns_takes_a_bounded_amount_of_work() {
        let lane = Lane::start();
        for number in 0..WAITING {
            assert!(lane.queue(async {}), "piece {number} of {WAITING}");
        }
        assert!(!lane.queue(async {}), "more than {WAITING} pieces wait");
        yield_now().await;
        assert!(lane.queue(async {}), "a turn takes all that waits");
    }

    #[tokio::test]
    async fn a_panic_ends_one_piece_of_work() {
        let lane = Lane::start();
        let (done, is_done) = oneshot::channel();
        lane.spawn(async { panic!("on purpose") });
        lane.spawn(async move {
            let _ = done.send(());
        });
        is_done.await.expect("the rest goes on");
    }
}
