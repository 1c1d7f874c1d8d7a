//! The bounded queue between callers and the writer thread. Knows nothing of a batch's content beyond its size.
//!
//! Each owner has a lane: a FIFO of its own with a bound of its own, so that nobody waits behind what another owner has queued. The
//! lanes share the writer by deficit round robin (Shreedhar and Varghese, 1995): each gets [`QUANTUM`] bytes in turn, and keeps
//! what is too little for its next batch.

use super::handle::Ticket;
use super::{LAZY_MS, Lane, Urgency};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use vm_system_record::{Applied, Batch, StoreError, Write};

/// Capacity of the queue, in units of [`UNIT_BYTES`]; a batch takes one and one more per unit of its content.
const UNITS: u32 = 16_384;
const UNIT_BYTES: usize = 4_096;
/// Of this capacity one lane has at most so much.
const LANE_UNITS: u32 = 4_096;
/// Capacity that each lane has beside: however full the queue is, a small batch of an owner that has few of them is admitted.
const OWN_UNITS: u32 = 256;
/// What a lane may write each time that it has its turn (bytes).
const QUANTUM: usize = 64 << 10;
/// What one commit writes, but for one large batch (bytes): how long a batch that comes during a commit waits for the next one.
const TURN_BYTES: usize = 1 << 20;
/// What a batch costs beside its content (bytes).
const BATCH_BYTES: usize = 4_096;
const LAZY: Duration = Duration::from_millis(LAZY_MS);
/// For this long after work the writer polls the queue as often as a lazy batch may wait, so that no caller has to wake it.
const VIGIL: Duration = Duration::from_millis(50);
/// Lanes without batches that are remembered at most, beside as many as are in use.
const IDLE_LANES: usize = 64;

/// A batch that waits for its commit.
pub(super) struct QueuedBatch {
    pub(super) batch: Batch,
    /// About how much its content takes (bytes).
    content_bytes: usize,
    done: oneshot::Sender<Result<Applied, StoreError>>,
    _admitted: Admitted,
}

impl QueuedBatch {
    pub(super) fn content_bytes(&self) -> usize {
        self.content_bytes
    }

    fn cost(&self) -> usize {
        BATCH_BYTES + self.content_bytes
    }

    /// Reports the result to the caller, if it still waits, and returns the capacity.
    pub(super) fn finish(self, result: Result<Applied, StoreError>) {
        let _ = self.done.send(result);
    }
}

/// The writer's next work.
pub(super) enum Turn {
    /// The batches of the next commit, in the order of each lane.
    Work(Vec<QueuedBatch>),
    /// No work for a while.
    Idle,
    /// No work, and the queue is closed.
    Closed,
}

/// How much of a lane may be queued.
struct Gate {
    /// Its part of the common capacity.
    lane: Arc<Semaphore>,
    /// What it has beside.
    own: Arc<Semaphore>,
}

impl Gate {
    fn new() -> Self {
        let semaphore = |units| Arc::new(Semaphore::new(units as usize));
        Self { lane: semaphore(LANE_UNITS), own: semaphore(OWN_UNITS) }
    }

    fn close(&self) {
        self.lane.close();
        self.own.close();
    }
}

/// The capacity that a batch holds, until it is written.
struct Admitted {
    _gate: Arc<Gate>,
    _permits: [Option<OwnedSemaphorePermit>; 2],
}

/// The batches of a lane.
#[derive(Default)]
struct LaneQueue {
    jobs: VecDeque<QueuedBatch>,
    /// What it may write without another turn (bytes).
    deficit: usize,
}

#[derive(Default)]
struct State {
    /// Those that have batches.
    lanes: HashMap<Lane, LaneQueue>,
    /// The same lanes, the next one first.
    ring: VecDeque<Lane>,
    gates: HashMap<Lane, Arc<Gate>>,
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

    fn gate(&mut self, lane: &Lane) -> Arc<Gate> {
        if let Some(gate) = self.gates.get(lane) {
            return Arc::clone(gate);
        }
        if self.gates.len() >= IDLE_LANES + 2 * self.lanes.len() {
            // Nobody waits at one that is only here, and no batch has its capacity.
            self.gates.retain(|_, gate| Arc::strong_count(gate) > 1);
        }
        let gate = Arc::new(Gate::new());
        if self.closed {
            gate.close();
        }
        self.gates.insert(lane.clone(), Arc::clone(&gate));
        gate
    }

    fn queue(&mut self, lane: Lane, job: QueuedBatch) {
        let queue = self.lanes.entry(lane.clone()).or_default();
        if queue.jobs.is_empty() {
            self.ring.push_back(lane);
        }
        queue.jobs.push_back(job);
    }

    /// The batches of the next commit. One that is larger than a commit waits until its lane has saved enough for it.
    fn next_turn(&mut self) -> Vec<QueuedBatch> {
        let (mut turn, mut left) = (Vec::new(), TURN_BYTES);
        while left > 0
            && let Some(lane) = self.ring.pop_front()
        {
            let Some(queue) = self.lanes.get_mut(&lane) else { continue };
            queue.deficit += QUANTUM;
            while left > 0
                && let Some(job) = queue.jobs.pop_front_if(|job| job.cost() <= queue.deficit)
            {
                queue.deficit -= job.cost();
                left = left.saturating_sub(job.cost());
                turn.push(job);
            }
            if queue.jobs.is_empty() {
                self.lanes.remove(&lane);
            } else {
                self.ring.push_back(lane);
            }
        }
        turn
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

    pub(super) async fn push(
        &self,
        lane: Lane,
        batch: Batch,
        urgency: Urgency,
    ) -> Result<Ticket, StoreError> {
        let content_bytes = bytes(&batch);
        let units = u32::try_from(1 + content_bytes / UNIT_BYTES).unwrap_or(UNITS).min(UNITS);
        let gate = self.state().gate(&lane);
        let admitted = self.admit(gate, units).await?;
        let (done, ticket) = oneshot::channel();
        let mut state = self.state();
        if state.closed {
            return Err(StoreError::Closed);
        }
        state.queue(lane, QueuedBatch { batch, content_bytes, done, _admitted: admitted });
        let wake = state.wakes_writer(urgency);
        drop(state);
        if wake {
            self.wake.notify_one();
        }
        Ok(Ticket(ticket))
    }

    /// A small batch takes what its lane has for such. Others wait first for their lane, then for the common capacity: the owners
    /// wait there for each other, and not for all that one of them has.
    async fn admit(&self, gate: Arc<Gate>, units: u32) -> Result<Admitted, StoreError> {
        if let Ok(own) = Arc::clone(&gate.own).try_acquire_many_owned(units) {
            return Ok(Admitted { _gate: gate, _permits: [Some(own), None] });
        }
        // All are closed together with the queue.
        let lane = Arc::clone(&gate.lane).acquire_many_owned(units.min(LANE_UNITS)).await;
        let lane = lane.map_err(|_| StoreError::Closed)?;
        let common = Arc::clone(&self.capacity).acquire_many_owned(units).await;
        let common = common.map_err(|_| StoreError::Closed)?;
        Ok(Admitted { _gate: gate, _permits: [Some(lane), Some(common)] })
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
                if state.lanes.is_empty() {
                    return Turn::Closed;
                }
                let turn = state.next_turn();
                // What is left has waited long enough.
                state.urgent = !state.lanes.is_empty();
                state.lazy_until = None;
                return Turn::Work(turn);
            }
            if idle_from <= now && state.lanes.is_empty() {
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
        let mut state = self.state();
        state.closed = true;
        state.gates.values().for_each(|gate| gate.close());
        drop(state);
        self.capacity.close();
        self.wake.notify_one();
    }

    /// As [`Self::close`], for a writer that has ended: callers get the error that the store is closed.
    pub(super) fn abandon(&self) {
        self.close();
        let mut state = self.state();
        state.ring.clear();
        state.lanes.clear();
    }

    pub(super) fn len(&self) -> u64 {
        self.state().lanes.values().map(|queue| queue.jobs.len() as u64).sum()
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
    use super::{LANE_UNITS, Lane, QUANTUM, Queue, State, TURN_BYTES, Turn, UNIT_BYTES, UNITS};
    use crate::Urgency;
    use std::time::Duration;
    use vm_system_record::{Batch, Owner, StoreError, Write};

    fn meta(bytes: usize) -> Batch {
        Write::KeyResponse {
            owner: vm_system_record::Owner::new("o"),
            key: String::new(),
            reply: vec![0; bytes],
        }
        .into()
    }

    fn lane(n: usize) -> Lane {
        Lane::Owner(Owner::new(format!("owner-{n}")))
    }

    fn taken(queue: &Queue) -> Vec<usize> {
        let Turn::Work(jobs) = queue.take(Duration::ZERO) else { panic!("there is work") };
        jobs.into_iter().map(|job| job.content_bytes()).collect()
    }

    #[tokio::test]
    async fn full_lane_makes_its_next_caller_wait_until_a_turn_is_done_and_no_other_lane() {
        let queue = Queue::new();
        let huge = LANE_UNITS as usize * UNIT_BYTES;
        let _first = queue.push(lane(1), meta(huge), Urgency::Now).await.expect("the store accepts it");
        let second = queue.push(lane(1), meta(huge), Urgency::Now);
        tokio::pin!(second);
        assert!(futures_poll(&mut second).is_none());
        for n in 1..4 {
            let other = queue.push(lane(n), meta(1), Urgency::Now);
            tokio::pin!(other);
            assert!(futures_poll(&mut other).is_some(), "a small batch is admitted");
        }
        assert!(futures_poll(&mut second).is_none());
        let Turn::Work(jobs) = queue.take(Duration::ZERO) else { panic!("there is work") };
        for job in jobs {
            job.finish(Err(StoreError::Closed));
        }
        second.await.expect("the store accepts it again");
    }

    #[tokio::test]
    async fn full_queue_makes_large_batches_of_all_wait_and_no_small_one() {
        let queue = Queue::new();
        let huge = LANE_UNITS as usize * UNIT_BYTES;
        for n in 0..UNITS / LANE_UNITS {
            let full = queue.push(lane(n as usize), meta(huge - UNIT_BYTES), Urgency::Now);
            full.await.expect("the store accepts it");
        }
        let large = queue.push(lane(9), meta(2 << 20), Urgency::Now);
        tokio::pin!(large);
        assert!(futures_poll(&mut large).is_none());
        let small = queue.push(lane(9), meta(1), Urgency::Now);
        tokio::pin!(small);
        assert!(futures_poll(&mut small).is_some());
    }

    #[tokio::test]
    async fn an_owner_that_queues_much_leaves_the_others_their_part_of_every_turn() {
        let queue = Queue::new();
        let part = QUANTUM / 2;
        for _ in 0..100 {
            let _much = queue.push(lane(1), meta(part), Urgency::Now).await.expect("the store accepts it");
        }
        for (n, bytes) in [(2, 7), (3, TURN_BYTES / 2), (4, 9)] {
            let _little = queue.push(lane(n), meta(bytes), Urgency::Now).await.expect("the store accepts it");
        }
        let first = taken(&queue);
        assert!(
            first.iter().sum::<usize>() < TURN_BYTES + QUANTUM && first.contains(&7) && first.contains(&9),
            "{first:?}"
        );
        let second = taken(&queue);
        assert!(
            first.iter().chain(&second).any(|bytes| *bytes == TURN_BYTES / 2),
            "it has saved enough for it"
        );
        let of_first = |turn: &[usize]| turn.iter().filter(|bytes| **bytes == part).count();
        assert!(of_first(&first) >= 10 && of_first(&second) >= 10, "{first:?} {second:?}");
    }

    #[tokio::test]
    async fn batches_of_a_lane_keep_their_order_and_a_huge_one_is_handed_out() {
        let queue = Queue::new();
        let sizes = [5, 3 * TURN_BYTES, 4, QUANTUM, 1];
        for bytes in sizes {
            let _ticket = queue.push(lane(1), meta(bytes), Urgency::Now).await.expect("the store accepts it");
        }
        let mut seen = Vec::new();
        while queue.len() > 0 {
            seen.extend(taken(&queue));
        }
        assert_eq!(seen, sizes);
        assert!(matches!(queue.take(Duration::ZERO), Turn::Idle));
    }

    #[tokio::test]
    async fn lanes_of_owners_that_come_once_are_forgotten() {
        let queue = Queue::new();
        for n in 0..10_000 {
            let _ticket = queue.push(lane(n), meta(1), Urgency::Now).await.expect("the store accepts it");
            drop(taken(&queue));
        }
        assert!(queue.state().gates.len() < 100, "{}", queue.state().gates.len());
    }

    #[tokio::test]
    async fn lazy_batch_leaves_with_the_next_urgent_one() {
        let queue = Queue::new();
        let _lazy = queue.push(Lane::System, meta(1), Urgency::Lazy).await.expect("the store accepts it");
        let _urgent = queue.push(Lane::System, meta(2), Urgency::Now).await.expect("the store accepts it");
        let Turn::Work(jobs) = queue.take(Duration::ZERO) else { panic!("there is work") };
        assert_eq!(jobs.len(), 2);
        assert!(matches!(queue.take(Duration::ZERO), Turn::Idle));
    }

    #[tokio::test]
    async fn lone_lazy_batch_leaves_by_itself() {
        let queue = Queue::new();
        let _lazy = queue.push(Lane::System, meta(1), Urgency::Lazy).await.expect("the store accepts it");
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
        let _ticket = queue.push(Lane::System, meta(1), Urgency::Lazy).await.expect("the store accepts it");
        queue.close();
        assert_eq!(
            queue.push(Lane::System, meta(1), Urgency::Now).await.map(|_| ()),
            Err(StoreError::Closed)
        );
        assert!(matches!(queue.take(Duration::from_mins(1)), Turn::Work(jobs) if jobs.len() == 1));
        assert!(matches!(queue.take(Duration::from_mins(1)), Turn::Closed));
    }

    #[tokio::test]
    async fn abandoned_queue_fails_the_batches_that_wait() {
        let queue = Queue::new();
        let ticket = queue.push(Lane::System, meta(1), Urgency::Now).await.expect("the store accepts it");
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
