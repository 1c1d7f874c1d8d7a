//! The bounded queue between callers and the writer thread. Knows nothing of a batch's content beyond its size.

use super::handle::Ticket;
use super::{LAZY_MS, Urgency};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use vm_system_record::{Applied, Batch, StoreError, Write};

/// Capacity of the queue, in units of [`UNIT_BYTES`]; a batch takes one and one more per unit of its content.
const UNITS: u32 = 16_384;
const UNIT_BYTES: usize = 4_096;
const LAZY: Duration = Duration::from_millis(LAZY_MS);
/// For this long after work the writer polls the queue as often as a lazy batch may wait, so that no caller has to wake it.
const VIGIL: Duration = Duration::from_millis(50);

/// A batch that waits for its commit.
pub(super) struct QueuedBatch {
    pub(super) batch: Batch,
    /// About how much its content takes (bytes).
    content_bytes: usize,
    done: oneshot::Sender<Result<Applied, StoreError>>,
    _permit: OwnedSemaphorePermit,
}

impl QueuedBatch {
    pub(super) fn content_bytes(&self) -> usize {
        self.content_bytes
    }

    /// Reports the result to the caller, if it still waits, and returns the capacity.
    pub(super) fn finish(self, result: Result<Applied, StoreError>) {
        let _ = self.done.send(result);
    }
}

/// The writer's next work.
pub(super) enum Turn {
    /// Everything that was queued, in order.
    Work(Vec<QueuedBatch>),
    /// No work for a while.
    Idle,
    /// No work, and the queue is closed.
    Closed,
}

#[derive(Default)]
struct State {
    jobs: Vec<QueuedBatch>,
    urgent: bool,
    /// Latest time to write the oldest lazy batch.
    lazy_until: Option<Instant>,
    /// When the sleeping writer wakes up by itself.
    sleeps_until: Option<Instant>,
    closed: bool,
}

impl State {
    /// Whether the writer must be woken for a batch; true only once until it wakes up. A
    /// writer that wakes up in time by itself is not woken: for the start of a short execution it would wake up only to wait
    /// for the end.
    fn wakes_writer(&mut self, urgency: Urgency) -> bool {
        let wanted_by = match urgency {
            Urgency::Now => {
                self.urgent = true;
                None
            }
            Urgency::Lazy => Some(*self.lazy_until.get_or_insert_with(|| Instant::now() + LAZY)),
        };
        let is_late =
            self.sleeps_until.is_some_and(|wakes_up| wanted_by.is_none_or(|wanted_by| wakes_up > wanted_by));
        if is_late {
            self.sleeps_until = None;
        }
        is_late
    }
}

pub(super) struct Queue {
    state: Mutex<State>,
    wake: Condvar,
    capacity: Arc<Semaphore>,
}

impl Queue {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(State::default()),
            wake: Condvar::new(),
            capacity: Arc::new(Semaphore::new(UNITS as usize)),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing under this lock can panic half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn push(&self, batch: Batch, urgency: Urgency) -> Result<Ticket, StoreError> {
        let content_bytes = bytes(&batch);
        let units = u32::try_from(1 + content_bytes / UNIT_BYTES).unwrap_or(UNITS).min(UNITS);
        // Closed together with the queue.
        let permit =
            Arc::clone(&self.capacity).acquire_many_owned(units).await.map_err(|_| StoreError::Closed)?;
        let (done, ticket) = oneshot::channel();
        let mut state = self.state();
        if state.closed {
            return Err(StoreError::Closed);
        }
        state.jobs.push(QueuedBatch { batch, content_bytes, done, _permit: permit });
        let wake = state.wakes_writer(urgency);
        drop(state);
        if wake {
            self.wake.notify_one();
        }
        Ok(Ticket(ticket))
    }

    /// Blocks until there is work that must not wait longer, or until `idle` has passed.
    pub(super) fn take(&self, idle: Duration) -> Turn {
        let called = Instant::now();
        let idle_from = called + idle;
        let mut state = self.state();
        loop {
            let now = Instant::now();
            let is_due = state.lazy_until.is_some_and(|until| until <= now);
            if state.urgent || state.closed || is_due {
                if state.jobs.is_empty() {
                    return Turn::Closed;
                }
                state.urgent = false;
                state.lazy_until = None;
                return Turn::Work(std::mem::take(&mut state.jobs));
            }
            if idle_from <= now && state.jobs.is_empty() {
                return Turn::Idle;
            }
            let wakes_up = match state.lazy_until {
                Some(until) => until,
                None if now < called + VIGIL => idle_from.min(now + LAZY),
                None => idle_from,
            };
            state.sleeps_until = Some(wakes_up);
            let slept = self.wake.wait_timeout(state, wakes_up.saturating_duration_since(now));
            state = slept.unwrap_or_else(PoisonError::into_inner).0;
            state.sleeps_until = None;
        }
    }

    /// Refuses new batches; queued ones are still returned.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.capacity.close();
        self.wake.notify_one();
    }

    /// As [`Self::close`], for a writer that has ended: callers get the error that the store is closed.
    pub(super) fn abandon(&self) {
        self.close();
        self.state().jobs.clear();
    }

    pub(super) fn len(&self) -> u64 {
        self.state().jobs.len() as u64
    }
}

/// Approximate memory of a batch's content (bytes).
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
                + execution.error.as_ref().map_or(0, |error| error.message.len())
        }
        Write::Checkpoint(checkpoint) => usize::try_from(checkpoint.bytes()).unwrap_or(usize::MAX),
        Write::ProgramVersion(version) => version.source.len() + version.code.len(),
        Write::KeyResponse { reply, .. } => reply.len(),
        Write::TaskInsert(task) => {
            let texts = [&task.schema, &task.fallback, &task.answer];
            256 + task.prompt.len() + texts.into_iter().flatten().map(String::len).sum::<usize>()
        }
        Write::TaskEnd { answer, .. } => 256 + answer.as_ref().map_or(0, String::len),
        Write::SessionEnd { last_error, .. } => 256 + last_error.as_ref().map_or(0, String::len),
        _ => 256,
    }
}

#[cfg(test)]
mod tests {
    use super::{Queue, State, Turn, UNIT_BYTES, UNITS};
    use crate::Urgency;
    use std::time::Duration;
    use vm_system_record::{Batch, StoreError, Write};

    fn meta(bytes: usize) -> Batch {
        Write::KeyResponse {
            owner: vm_system_record::Owner::new("o"),
            key: String::new(),
            reply: vec![0; bytes],
        }
        .into()
    }

    #[tokio::test]
    async fn full_queue_makes_the_next_caller_wait_until_a_turn_is_done() {
        let queue = Queue::new();
        let huge = (UNITS as usize - 1) * UNIT_BYTES;
        let _first = queue.push(meta(huge), Urgency::Now).await.expect("the store accepts it");
        let second = queue.push(meta(1), Urgency::Now);
        tokio::pin!(second);
        assert!(futures_poll(&mut second).is_none());
        let Turn::Work(jobs) = queue.take(Duration::ZERO) else { panic!("there is work") };
        assert!(futures_poll(&mut second).is_none());
        for job in jobs {
            job.finish(Err(StoreError::Closed));
        }
        second.await.expect("the store accepts it again");
    }

    #[tokio::test]
    async fn lazy_batch_leaves_with_the_next_urgent_one() {
        let queue = Queue::new();
        let _lazy = queue.push(meta(1), Urgency::Lazy).await.expect("the store accepts it");
        let _urgent = queue.push(meta(2), Urgency::Now).await.expect("the store accepts it");
        let Turn::Work(jobs) = queue.take(Duration::ZERO) else { panic!("there is work") };
        assert_eq!(jobs.len(), 2);
        assert!(matches!(queue.take(Duration::ZERO), Turn::Idle));
    }

    #[tokio::test]
    async fn lone_lazy_batch_leaves_by_itself() {
        let queue = Queue::new();
        let _lazy = queue.push(meta(1), Urgency::Lazy).await.expect("the store accepts it");
        assert!(matches!(queue.take(Duration::ZERO), Turn::Work(jobs) if jobs.len() == 1));
    }

    #[test]
    fn lazy_batch_wakes_only_a_writer_that_would_sleep_too_long() {
        let mut state = State::default();
        assert!(!state.wakes_writer(Urgency::Lazy), "a writer at work scanned before it sleeps");
        let until = state.lazy_until.expect("it has a latest time");
        state.sleeps_until = Some(until);
        assert!(!state.wakes_writer(Urgency::Lazy));
        state.sleeps_until = Some(until + Duration::from_millis(1));
        assert!(state.wakes_writer(Urgency::Lazy));
        assert!(!state.wakes_writer(Urgency::Lazy), "it has been woken");
    }

    #[test]
    fn urgent_batch_wakes_a_sleeping_writer_once() {
        let mut state = State { sleeps_until: Some(std::time::Instant::now()), ..State::default() };
        assert!(state.wakes_writer(Urgency::Now));
        assert!(!state.wakes_writer(Urgency::Now));
        assert!(state.urgent);
    }

    #[tokio::test]
    async fn closed_queue_returns_its_rest_and_refuses_more() {
        let queue = Queue::new();
        let _ticket = queue.push(meta(1), Urgency::Lazy).await.expect("the store accepts it");
        queue.close();
        assert_eq!(queue.push(meta(1), Urgency::Now).await.map(|_| ()), Err(StoreError::Closed));
        assert!(matches!(queue.take(Duration::from_mins(1)), Turn::Work(jobs) if jobs.len() == 1));
        assert!(matches!(queue.take(Duration::from_mins(1)), Turn::Closed));
    }

    #[tokio::test]
    async fn abandoned_queue_fails_the_batches_that_wait() {
        let queue = Queue::new();
        let ticket = queue.push(meta(1), Urgency::Now).await.expect("the store accepts it");
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
