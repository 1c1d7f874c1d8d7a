//! The bounded queue between callers and the writer thread. Knows nothing of what is in a batch beyond its weight.

use super::batch::{Applied, Batch, Write};
use super::error::StoreError;
use super::handle::Ticket;
use super::{LAZY_MS, Urgency};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Room of the queue, in units of [`UNIT_BYTES`]; a batch takes one and one more per unit of its content.
const UNITS: u32 = 16_384;
const UNIT_BYTES: usize = 4_096;

/// A batch that waits for its commit.
pub(super) struct Job {
    pub(super) batch: Batch,
    done: oneshot::Sender<Result<Applied, StoreError>>,
    _room: OwnedSemaphorePermit,
}

impl Job {
    /// Tells the caller, if it still listens, and gives the room back.
    pub(super) fn finish(self, result: Result<Applied, StoreError>) {
        let _ = self.done.send(result);
    }
}

/// What the writer finds.
pub(super) enum Turn {
    /// Everything that was queued, in order.
    Work(Vec<Job>),
    /// Nothing for a while.
    Idle,
    /// Nothing, and nothing will come.
    Closed,
}

#[derive(Default)]
struct State {
    jobs: Vec<Job>,
    urgent: bool,
    lazy_since: Option<Instant>,
    closed: bool,
}

pub(super) struct Queue {
    state: Mutex<State>,
    wake: Condvar,
    room: Arc<Semaphore>,
}

impl Queue {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(State::default()),
            wake: Condvar::new(),
            room: Arc::new(Semaphore::new(UNITS as usize)),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing under this lock can panic half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn push(&self, batch: Batch, urgency: Urgency) -> Result<Ticket, StoreError> {
        let units = u32::try_from(1 + bytes(&batch) / UNIT_BYTES).unwrap_or(UNITS).min(UNITS);
        // Closed together with the queue.
        let room = Arc::clone(&self.room).acquire_many_owned(units).await.map_err(|_| StoreError::Closed)?;
        let (done, ticket) = oneshot::channel();
        let mut state = self.state();
        if state.closed {
            return Err(StoreError::Closed);
        }
        state.jobs.push(Job { batch, done, _room: room });
        let wake = match urgency {
            Urgency::Now => !std::mem::replace(&mut state.urgent, true),
            Urgency::Lazy if state.lazy_since.is_none() => {
                state.lazy_since = Some(Instant::now());
                !state.urgent
            }
            Urgency::Lazy => false,
        };
        drop(state);
        if wake {
            self.wake.notify_one();
        }
        Ok(Ticket(ticket))
    }

    /// Blocks until there is work that must not wait longer, or `idle` has passed without any.
    pub(super) fn take(&self, idle: Duration) -> Turn {
        let started = Instant::now();
        let mut state = self.state();
        loop {
            let lazy_left =
                state.lazy_since.map(|since| Duration::from_millis(LAZY_MS).saturating_sub(since.elapsed()));
            if state.urgent || state.closed || lazy_left == Some(Duration::ZERO) {
                if state.jobs.is_empty() {
                    return Turn::Closed;
                }
                state.urgent = false;
                state.lazy_since = None;
                return Turn::Work(std::mem::take(&mut state.jobs));
            }
            let idle_left = idle.saturating_sub(started.elapsed());
            if idle_left.is_zero() && state.jobs.is_empty() {
                return Turn::Idle;
            }
            let wait = lazy_left.unwrap_or(idle_left);
            state = self.wake.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Takes no more; what is queued is still handed out.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.room.close();
        self.wake.notify_one();
    }

    /// As [`Self::close`], and nobody is left to commit: whoever waits is told that the store is closed.
    pub(super) fn abandon(&self) {
        self.close();
        self.state().jobs.clear();
    }

    pub(super) fn len(&self) -> u64 {
        self.state().jobs.len() as u64
    }
}

/// About how much memory a batch's content takes (bytes).
fn bytes(batch: &Batch) -> usize {
    batch.0.iter().map(write_bytes).sum()
}

fn write_bytes(write: &Write) -> usize {
    match write {
        Write::Events(events) => {
            events.iter().map(|event| 64 + event.payload.output_bytes() as usize).sum::<usize>()
        }
        Write::ExecutionStarted { execution, .. } | Write::ExecutionEnded(execution) => {
            execution.input.as_ref().map_or(0, String::len)
                + execution.args.as_str().len()
                + execution.env.as_str().len()
                + execution.result.as_ref().map_or(0, |json| json.as_str().len())
        }
        Write::Checkpoint(checkpoint) => checkpoint
            .pages
            .iter()
            .filter_map(|(_, bytes)| bytes.as_ref())
            .map(|bytes| 64 + bytes.len())
            .sum(),
        Write::ProgramVersion(version) => version.source.len() + version.code.len(),
        Write::KeyAnswer { reply, .. } => reply.len(),
        _ => 256,
    }
}

#[cfg(test)]
mod tests {
    use super::{Queue, Turn, UNIT_BYTES, UNITS};
    use crate::store::{Batch, StoreError, Urgency, Write};
    use std::time::Duration;

    fn meta(bytes: usize) -> Batch {
        Write::KeyAnswer { owner: crate::store::Owner::new("o"), key: String::new(), reply: vec![0; bytes] }
            .into()
    }

    #[tokio::test]
    async fn full_queue_makes_the_next_caller_wait_until_a_turn_is_done() {
        let queue = Queue::new();
        let huge = (UNITS as usize - 1) * UNIT_BYTES;
        let _first = queue.push(meta(huge), Urgency::Now).await.expect("there is room");
        let second = queue.push(meta(1), Urgency::Now);
        tokio::pin!(second);
        assert!(futures_poll(&mut second).is_none());
        let Turn::Work(jobs) = queue.take(Duration::ZERO) else { panic!("there is work") };
        assert!(futures_poll(&mut second).is_none());
        for job in jobs {
            job.finish(Err(StoreError::Closed));
        }
        second.await.expect("there is room again");
    }

    #[tokio::test]
    async fn lazy_batch_leaves_with_the_next_urgent_one() {
        let queue = Queue::new();
        let _lazy = queue.push(meta(1), Urgency::Lazy).await.expect("there is room");
        let _urgent = queue.push(meta(2), Urgency::Now).await.expect("there is room");
        let Turn::Work(jobs) = queue.take(Duration::ZERO) else { panic!("there is work") };
        assert_eq!(jobs.len(), 2);
        assert!(matches!(queue.take(Duration::ZERO), Turn::Idle));
    }

    #[tokio::test]
    async fn lone_lazy_batch_leaves_by_itself() {
        let queue = Queue::new();
        let _lazy = queue.push(meta(1), Urgency::Lazy).await.expect("there is room");
        assert!(matches!(queue.take(Duration::ZERO), Turn::Work(jobs) if jobs.len() == 1));
    }

    #[tokio::test]
    async fn closed_queue_hands_out_its_rest_and_takes_no_more() {
        let queue = Queue::new();
        let _ticket = queue.push(meta(1), Urgency::Lazy).await.expect("there is room");
        queue.close();
        assert_eq!(queue.push(meta(1), Urgency::Now).await.map(|_| ()), Err(StoreError::Closed));
        assert!(matches!(queue.take(Duration::from_mins(1)), Turn::Work(jobs) if jobs.len() == 1));
        assert!(matches!(queue.take(Duration::from_mins(1)), Turn::Closed));
    }

    #[tokio::test]
    async fn abandoned_queue_tells_whoever_waits() {
        let queue = Queue::new();
        let ticket = queue.push(meta(1), Urgency::Now).await.expect("there is room");
        queue.abandon();
        assert_eq!(ticket.await, Err(StoreError::Closed));
    }

    fn futures_poll<F: Future>(future: &mut std::pin::Pin<&mut F>) -> Option<F::Output> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match future.as_mut().poll(&mut context) {
            std::task::Poll::Ready(value) => Some(value),
            std::task::Poll::Pending => None,
        }
    }
}
