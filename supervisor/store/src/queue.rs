//! The bounded queue between callers and the writer thread. Knows nothing of a batch's content beyond its size.
//!
//! Each owner has a lane: a FIFO of its own with a bound of its own, so that nobody waits behind what another owner has queued. The
//! lanes share the writer by deficit round robin (Shreedhar and Varghese, 1995): each gets [`QUANTUM`] bytes in turn, and keeps
//! what is too little for its next batch. A checkpoint that is larger than a turn is written in pieces within the turns of all;
//! whole batches are committed before them, also those of its own lane that are about other executions.

mod sizes;
#[cfg(test)]
mod tests;

pub(super) use sizes::write_bytes;

use super::admission::{Admission, Booking};
use super::handle::Ticket;
use super::{LAZY_MS, Lane, Urgency};
use sizes::{bytes, file_bytes, has_state, imported, is_divisible};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use vm_system_protocol::ids::ExecutionId;
use vm_system_record::{Applied, Batch, Rejection, StoreError, Write};

/// Capacity of the queue, in units of [`UNIT_BYTES`]; a batch takes one and one more per unit of its content.
const UNITS: u32 = 16_384;
const UNIT_BYTES: usize = 4_096;
/// The part of this capacity that one lane may take.
const LANE_UNITS: u32 = 1_024;
/// Capacity that each lane has beside: however full the queue is, a small batch of an owner that has few of them is admitted.
const OWN_UNITS: u32 = 256;
/// The bytes that a lane may write each time that it has its turn.
const QUANTUM: usize = 64 << 10;
/// The bytes of the file that one commit writes of whole batches, but for one large one, and of pieces: how long a batch that comes
/// during a commit waits for the next one. 512 KiB are about 5 ms of the writer and a flush.
const TURN_BYTES: usize = 512 << 10;
/// The cost of a piece of a copied state (bytes): about what it is in the file.
const COPY_BYTES: usize = TURN_BYTES;
/// The cost of a batch beside its content (bytes).
const BATCH_BYTES: usize = 4_096;
/// How long the writer waits for the log to be copied back, if no small batch comes before.
const LOG_WAIT: Duration = Duration::from_millis(10);
const LAZY: Duration = Duration::from_millis(LAZY_MS);
/// For this long after work the writer polls the queue as often as a lazy batch may wait, so that no caller has to wake it.
const POLLED_AFTER_WORK: Duration = Duration::from_millis(50);
/// Lanes without batches that are remembered at most, beside as many as are in use.
const IDLE_LANES: usize = 64;

/// The part of a batch that earlier turns have written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// The execution with a checkpoint of which a part is written.
    pub(super) staging: Option<ExecutionId>,
    /// Pages of it that are written.
    pub(super) pages: usize,
    /// Of these, the numbers of those that are gone or replace a version.
    pub(super) replacing: Vec<u64>,
    /// The bytes of the file that are written of it.
    pub(super) bytes: usize,
    /// The last page that was copied, if a state is copied; -1 before the first one.
    pub(super) copied_page: Option<i64>,
    /// How many writes of an import are done, or will be with the last piece.
    pub(super) staged_writes: Option<usize>,
}

impl Progress {
    /// Whether the batch writes the state of a new execution in pieces, and there is a placeholder of that.
    pub(super) fn is_copied(&self) -> bool {
        self.copied_page.is_some() || self.staged_writes.is_some()
    }
}

/// A batch that waits for its commit.
pub(super) struct QueuedBatch {
    pub(super) batch: Batch,
    pub(super) progress: Progress,
    lane: Lane,
    /// About how much its content takes in the file (bytes).
    content_bytes: usize,
    /// It may be written in pieces.
    in_pieces: bool,
    import: Option<ExecutionId>,
    /// It copies a state, in pieces if that is large.
    is_copy: bool,
    /// The bytes that this turn may write of it, if not all.
    allowance: usize,
    done: oneshot::Sender<Result<Applied, StoreError>>,
    _admitted: Admitted,
    _booking: Option<Booking>,
}

impl QueuedBatch {
    /// The bytes that this turn may write of it; `None`: all that is left.
    pub(super) fn piece(&self) -> Option<usize> {
        (self.allowance < self.cost()).then_some(self.allowance).filter(|_| self.allowance > 0)
    }

    /// The bytes that this turn writes, about.
    pub(super) fn turn_bytes(&self) -> usize {
        self.piece().unwrap_or_else(|| self.cost())
    }

    pub(super) fn lane(&self) -> &Lane {
        &self.lane
    }

    /// Whether it takes several turns.
    fn is_large(&self) -> bool {
        self.in_pieces || self.is_copy
    }

    /// The executions of which it writes or reads a state during several turns.
    fn states_of(&self) -> impl Iterator<Item = ExecutionId> {
        self.batch
            .0
            .iter()
            .filter(|_| self.is_large())
            .flat_map(|write| match write {
                Write::Checkpoint(checkpoint) => [Some(checkpoint.execution), None],
                Write::CheckpointCopy { from, to, .. } => [Some(*from), Some(*to)],
                _ => [None, None],
            })
            .flatten()
    }

    /// The new execution of which it writes the state in pieces.
    fn makes(&self) -> Option<ExecutionId> {
        let copied = |write: &Write| match write {
            Write::CheckpointCopy { to, .. } => Some(*to),
            _ => None,
        };
        self.import.or_else(|| self.batch.0.iter().find_map(copied))
    }

    /// The new execution that it writes with its states in pieces.
    pub(super) fn import(&self) -> Option<ExecutionId> {
        self.import
    }

    pub(super) fn is_copy(&self) -> bool {
        self.is_copy
    }

    /// The bytes that are left of it.
    fn cost(&self) -> usize {
        if self.is_copy {
            return COPY_BYTES;
        }
        BATCH_BYTES + self.content_bytes.saturating_sub(self.progress.bytes)
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
    /// The lane's part of the common capacity.
    lane: Arc<Semaphore>,
    /// The lane's capacity for small batches beside it.
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
    /// The bytes that the lane may write without another turn.
    deficit: usize,
    /// Of what it had, the part for batches that pass a checkpoint (bytes).
    saved: usize,
}

impl LaneQueue {
    /// Takes the batches that need not wait for the checkpoints before them, which are written in pieces: they are about other
    /// executions than these, and than batches that wait for these. What is about one execution keeps its order. What is saved
    /// for such batches stays if it is too little for the next one.
    fn pass(&mut self, most: usize) -> Vec<QueuedBatch> {
        let (mut held, mut made, mut passed) = (HashSet::new(), Vec::new(), Vec::new());
        let (mut index, mut is_saving) = (0, false);
        while let Some(job) = self.jobs.get(index) {
            // The executions are noted: a batch about one of them must not pass it.
            if job.is_large() {
                held.extend(job.states_of());
                made.extend(job.makes());
                index += 1;
                continue;
            }
            // Deleting what is being made ends that.
            let ends = matches!(&job.batch.0[..], [Write::RunDelete { id }] if made.contains(id));
            match job.batch.subjects() {
                // It may be about any of them, as what is behind it.
                None => break,
                Some(subjects) if !ends && subjects.iter().any(|subject| held.contains(subject)) => {
                    held.extend(subjects);
                    index += 1;
                }
                Some(_) if job.cost() > most => break,
                Some(_) if job.cost() > self.saved => {
                    // The savings stay for this batch: smaller ones behind it would use them up again and again.
                    is_saving = true;
                    break;
                }
                Some(_) => {
                    self.saved -= job.cost();
                    passed.extend(self.jobs.remove(index));
                }
            }
        }
        if !is_saving {
            self.deficit += std::mem::take(&mut self.saved);
        }
        passed
    }
}

#[derive(Default)]
struct State {
    /// The lanes that have batches.
    lanes: HashMap<Lane, LaneQueue>,
    /// The same lanes, the next one first.
    ring: VecDeque<Lane>,
    gates: HashMap<Lane, Arc<Gate>>,
    urgent: bool,
    /// Latest time to write the oldest lazy batch.
    lazy_until: Option<Instant>,
    /// When the sleeping writer wakes up by itself.
    sleeps_until: Option<Instant>,
    /// Lanes with a piece that the turn before left to the next one, because it had whole batches.
    begun: Vec<Lane>,
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

    /// The batches of the next commit, and parts of some; only batches that fit into a quantum if `small_only`. One that is larger
    /// than a commit and cannot be written in pieces waits until its lane has saved enough for it. Pieces wait once for a commit of
    /// whole batches: of two callers, the one of a small batch would wait for all that the other one writes.
    fn next_turn(&mut self, small_only: bool) -> Vec<QueuedBatch> {
        let (mut turn, mut left) = (Vec::new(), TURN_BYTES);
        let waited = !self.begun.is_empty();
        let begun = self.begun.iter().filter_map(|lane| self.lanes.get(lane)?.jobs.front());
        let mut left_for_pieces = TURN_BYTES.saturating_sub(begun.map(|job| job.allowance).sum());
        let mut passed_over = 0;
        while left > 0
            && passed_over < self.ring.len()
            && let Some(lane) = self.ring.pop_front()
        {
            let Some(queue) = self.lanes.get_mut(&lane) else { continue };
            // Deficit round robin: in each round all lanes may write the same number of bytes, however many batches they have.
            queue.deficit += QUANTUM;
            passed_over += 1;
            while left > 0
                && let Some(job) = queue.jobs.front()
            {
                let (missing, is_large) = (job.cost() - job.allowance, job.cost() > QUANTUM);
                if job.is_large() && missing > queue.deficit {
                    // The rest of the deficit is for the checkpoint.
                    let half = queue.deficit / 2;
                    queue.deficit -= half;
                    queue.saved += half;
                    let passing = queue.pass(if small_only { QUANTUM } else { usize::MAX });
                    if !passing.is_empty() {
                        passed_over = 0;
                    }
                    left = left.saturating_sub(passing.iter().map(QueuedBatch::cost).sum());
                    turn.extend(passing);
                }
                let Some(job) = queue.jobs.front_mut() else { break };
                if small_only && is_large {
                    // A lane that must not write now does not save up turns against the others.
                    queue.deficit = queue.deficit.min(QUANTUM);
                    break;
                }
                if missing <= queue.deficit {
                    passed_over = 0;
                    queue.deficit -= missing;
                    left = left.saturating_sub(missing);
                    job.allowance = 0;
                    turn.extend(queue.jobs.pop_front());
                    continue;
                }
                if !job.in_pieces {
                    // It is behind nothing but its own cost.
                    passed_over = 0;
                    break;
                }
                let part = queue.deficit.min(left_for_pieces);
                if part > 0 {
                    passed_over = 0;
                    if job.allowance == 0 {
                        self.begun.push(lane.clone());
                    }
                    job.allowance += part;
                    left_for_pieces -= part;
                }
                queue.deficit = (queue.deficit - part).min(QUANTUM);
                break;
            }
            if queue.jobs.is_empty() {
                self.lanes.remove(&lane);
            } else {
                self.ring.push_back(lane);
            }
        }
        if small_only || !(turn.is_empty() || waited) {
            return turn;
        }
        for lane in std::mem::take(&mut self.begun) {
            let Some(queue) = self.lanes.get_mut(&lane) else { continue };
            turn.extend(queue.jobs.pop_front_if(|job| job.allowance > 0));
            if queue.jobs.is_empty() {
                self.lanes.remove(&lane);
                self.ring.retain(|other| *other != lane);
            }
        }
        turn
    }
}

pub(super) struct Queue {
    state: Mutex<State>,
    wake: Condvar,
    capacity: Arc<Semaphore>,
    admission: Arc<Admission>,
}

impl Queue {
    pub(super) fn new(admission: Arc<Admission>) -> Self {
        Self {
            admission,
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
        let units = u32::try_from(1 + bytes(&batch) / UNIT_BYTES).unwrap_or(u32::MAX);
        let file_bytes = file_bytes(&batch);
        let content_bytes = usize::try_from(file_bytes).unwrap_or(usize::MAX);
        // Before the wait for capacity: an owner over its quota must not hold memory of the queue.
        let booking = match &lane {
            Lane::Owner(owner) if batch.0.iter().any(has_state) => {
                let booked = self.admission.book(owner, file_bytes, Instant::now());
                Some(booked.map_err(|limit| StoreError::Rejected(Rejection::Limit(limit)))?)
            }
            _ => None,
        };
        // The lock is released before the wait for admission.
        let gate = self.state().gate(&lane);
        let admitted = self.admit(gate, units).await?;
        let (done, ticket) = oneshot::channel();
        let mut state = self.state();
        // Checked again: the queue may have been closed during the wait, and nobody would take the batch.
        if state.closed {
            return Err(StoreError::Closed);
        }
        // Small batches are written at once: only a large one would hold up the batches of other owners.
        let is_copy = batch.0.iter().any(|write| matches!(write, Write::CheckpointCopy { .. }));
        // A copy is written in pieces of its own.
        let import = imported(&batch).filter(|_| content_bytes > TURN_BYTES && !is_copy);
        let in_pieces = import.is_some() || (content_bytes > TURN_BYTES && is_divisible(&batch));
        let job = QueuedBatch {
            batch,
            progress: Progress::default(),
            lane: lane.clone(),
            content_bytes,
            in_pieces,
            import,
            is_copy,
            allowance: 0,
            done,
            _admitted: admitted,
            _booking: booking,
        };
        state.queue(lane, job);
        let wake = state.wakes_writer(urgency);
        drop(state);
        if wake {
            self.wake.notify_one();
        }
        Ok(Ticket(ticket))
    }

    /// Admits a batch. A small one takes capacity that its lane has for small batches. Others wait first for their lane, then for the
    /// common capacity: so owners wait for each other there, and not for everything that one of them has queued.
    async fn admit(&self, gate: Arc<Gate>, units: u32) -> Result<Admitted, StoreError> {
        // Even a lane that is full of large batches can end an execution or store an answer.
        if let Ok(own) = Arc::clone(&gate.own).try_acquire_many_owned(units) {
            return Ok(Admitted { _gate: gate, _permits: [Some(own), None] });
        }
        // However large it is: one that is larger leaves the rest to the other lanes. What gathers it bounds its memory.
        let units = units.min(LANE_UNITS);
        // All are closed together with the queue.
        let lane = Arc::clone(&gate.lane).acquire_many_owned(units).await;
        let lane = lane.map_err(|_| StoreError::Closed)?;
        let common = Arc::clone(&self.capacity).acquire_many_owned(units).await;
        let common = common.map_err(|_| StoreError::Closed)?;
        Ok(Admitted { _gate: gate, _permits: [Some(lane), Some(common)] })
    }

    /// Takes back a batch of which there is more to write: it is the next one of its lane. If nothing more
    /// of it can be written in pieces, the rest is written at once, and its lane saves turns for that.
    pub(super) fn put_back(&self, mut job: QueuedBatch, progress: Progress) {
        if progress != job.progress {
            job.allowance = 0;
        }
        job.progress = progress;
        let mut state = self.state();
        let lane = job.lane.clone();
        let queue = state.lanes.entry(lane.clone()).or_default();
        let is_new = queue.jobs.is_empty();
        queue.jobs.push_front(job);
        if is_new {
            state.ring.push_back(lane);
        }
        // A caller waits for the rest of it.
        state.urgent = true;
    }

    /// Wakes a writer that waits for the log.
    pub(super) fn log_was_copied(&self) {
        self.wake.notify_one();
    }

    /// Blocks until there is work that must not wait longer, or until `idle` has passed. If `small_only`, what is large waits: too
    /// much of the log is not copied back.
    pub(super) fn take(&self, idle: Duration, small_only: bool) -> Turn {
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
                // A closed queue is emptied, however long the log is.
                let small_only = small_only && !state.closed;
                let turn = state.next_turn(small_only);
                // The batches that are left have waited long enough.
                state.urgent = !state.lanes.is_empty();
                state.lazy_until = None;
                if turn.is_empty() {
                    state.sleeps_until = Some(now + LOG_WAIT);
                    let slept = self.wake.wait_timeout(state, LOG_WAIT);
                    state = slept.unwrap_or_else(PoisonError::into_inner).0;
                    state.sleeps_until = None;
                    return Turn::Idle;
                }
                return Turn::Work(turn);
            }
            if idle_from <= now && state.lanes.is_empty() {
                return Turn::Idle;
            }
            let wakes_up = match state.lazy_until {
                Some(until) => until,
                None if now < called + POLLED_AFTER_WORK => idle_from.min(now + LAZY),
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
        // Callers that wait for their lane would never be admitted.
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
        state.begun.clear();
    }

    pub(super) fn len(&self) -> u64 {
        self.state().lanes.values().map(|queue| queue.jobs.len() as u64).sum()
    }
}
