//! The bounded queue between callers and the writer thread. Knows nothing of a batch's content beyond its size.
//!
//! Each owner has a lane: a FIFO of its own with a bound of its own, so that nobody waits behind what another owner has queued. The
//! lanes share the writer by deficit round robin (Shreedhar and Varghese, 1995): each gets [`QUANTUM`] bytes in turn, and keeps
//! what is too little for its next batch. A checkpoint that is larger than a turn is written in pieces within the turns of all.

#[cfg(test)]
mod tests;

use super::admission::{Admission, Booking};
use super::handle::Ticket;
use super::{LAZY_MS, Lane, Urgency};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use vm_system_protocol::ids::ExecutionId;
use vm_system_record::{Applied, Batch, Rejection, StoreError, Write};

/// Capacity of the queue, in units of [`UNIT_BYTES`]; a batch takes one and one more per unit of its content.
const UNITS: u32 = 16_384;
const UNIT_BYTES: usize = 4_096;
/// Of this capacity one lane has at most so much.
const LANE_UNITS: u32 = 1_024;
/// Capacity that each lane has beside: however full the queue is, a small batch of an owner that has few of them is admitted.
const OWN_UNITS: u32 = 256;
/// What a lane may write each time that it has its turn (bytes).
const QUANTUM: usize = 64 << 10;
/// What one commit writes, but for one large batch (bytes): how long a batch that comes during a commit waits for the next one.
const TURN_BYTES: usize = 1 << 20;
/// What a piece of a copied state costs (bytes): about what it is in the file.
const COPY_BYTES: usize = TURN_BYTES;
/// What a batch costs beside its content (bytes).
const BATCH_BYTES: usize = 4_096;
/// How long the writer waits for the log to be copied back, if no small batch comes before.
const LOG_WAIT: Duration = Duration::from_millis(10);
const LAZY: Duration = Duration::from_millis(LAZY_MS);
/// For this long after work the writer polls the queue as often as a lazy batch may wait, so that no caller has to wake it.
const VIGIL: Duration = Duration::from_millis(50);
/// Lanes without batches that are remembered at most, beside as many as are in use.
const IDLE_LANES: usize = 64;

/// What earlier turns have written of a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// The execution with a checkpoint of which a part is written.
    pub(super) staging: Option<ExecutionId>,
    /// Pages of it that are written.
    pub(super) pages: usize,
    /// Of these, the numbers of those that are gone or replace a version.
    pub(super) replacing: Vec<u64>,
    /// What is written of its content (bytes).
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
    /// About how much its content takes (bytes).
    content_bytes: usize,
    /// It may be written in pieces.
    in_pieces: bool,
    import: Option<ExecutionId>,
    /// It copies a state, in pieces if that is large.
    is_copy: bool,
    /// What this turn may write of it, if not all (bytes).
    allowance: usize,
    done: oneshot::Sender<Result<Applied, StoreError>>,
    _admitted: Admitted,
    _booking: Option<Booking>,
}

impl QueuedBatch {
    /// What this turn may write of it (bytes); `None`: all that is left.
    pub(super) fn piece(&self) -> Option<usize> {
        (self.allowance < self.cost()).then_some(self.allowance).filter(|_| self.allowance > 0)
    }

    /// What this turn writes, about (bytes).
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

    /// What is left of it (bytes).
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

impl LaneQueue {
    /// Takes the first small batch that need not wait for the checkpoints before it, which are written in pieces: it is about other
    /// executions. Small batches keep their order.
    fn pass(&mut self, most: usize) -> Option<QueuedBatch> {
        let (mut large, mut made) = (Vec::new(), Vec::new());
        let index = self.jobs.iter().position(|job| {
            large.extend(job.states_of());
            made.extend(job.makes());
            !job.is_large()
        })?;
        let job = self.jobs.get(index)?;
        // Deleting what is being made ends that.
        let ends = matches!(&job.batch.0[..], [Write::RunDelete { id }] if made.contains(id));
        let follows = large.iter().any(|execution| job.batch.follows(*execution));
        let may_pass = job.cost() <= most && (ends || !follows);
        if may_pass { self.jobs.remove(index) } else { None }
    }
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

    /// The batches of the next commit, and parts of some; only batches that fit into a quantum if `small_only`. One that is larger
    /// than a commit and cannot be written in pieces waits until its lane has saved enough for it.
    fn next_turn(&mut self, small_only: bool) -> Vec<QueuedBatch> {
        let (mut turn, mut left) = (Vec::new(), TURN_BYTES);
        let (mut begun, mut passed_over) = (Vec::new(), 0);
        while left > 0
            && passed_over < self.ring.len()
            && let Some(lane) = self.ring.pop_front()
        {
            let Some(queue) = self.lanes.get_mut(&lane) else { continue };
            queue.deficit += QUANTUM;
            passed_over += 1;
            while left > 0
                && let Some(job) = queue.jobs.front_mut()
            {
                let missing = job.cost() - job.allowance;
                let (in_turns, is_large) = (job.is_large(), job.cost() > QUANTUM);
                if in_turns && missing > queue.deficit {
                    // The rest of the deficit is for the checkpoint.
                    let mut most = (queue.deficit / 2).min(left);
                    while let Some(small) = queue.pass(most) {
                        most -= small.cost();
                        queue.deficit -= small.cost();
                        left -= small.cost();
                        passed_over = 0;
                        turn.push(small);
                    }
                }
                if small_only && is_large {
                    queue.deficit = queue.deficit.min(QUANTUM);
                    break;
                }
                passed_over = 0;
                let Some(job) = queue.jobs.front_mut() else { break };
                if missing <= queue.deficit {
                    queue.deficit -= missing;
                    left = left.saturating_sub(missing);
                    job.allowance = 0;
                    turn.extend(queue.jobs.pop_front());
                    continue;
                }
                if job.in_pieces {
                    let part = queue.deficit.min(left);
                    if job.allowance == 0 {
                        begun.push(lane.clone());
                    }
                    job.allowance += part;
                    queue.deficit -= part;
                    left -= part;
                }
                break;
            }
            if queue.jobs.is_empty() {
                self.lanes.remove(&lane);
            } else {
                self.ring.push_back(lane);
            }
        }
        for lane in begun {
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
        let content_bytes = bytes(&batch);
        let units = u32::try_from(1 + content_bytes / UNIT_BYTES).unwrap_or(u32::MAX);
        let booking = match &lane {
            Lane::Owner(owner) if batch.0.iter().any(has_state) => {
                let booked = self.admission.book(owner, file_bytes(&batch), Instant::now());
                Some(booked.map_err(|limit| StoreError::Rejected(Rejection::Limit(limit)))?)
            }
            _ => None,
        };
        let gate = self.state().gate(&lane);
        let admitted = self.admit(gate, units).await?;
        let (done, ticket) = oneshot::channel();
        let mut state = self.state();
        if state.closed {
            return Err(StoreError::Closed);
        }
        let import = imported(&batch).filter(|_| content_bytes > TURN_BYTES);
        let in_pieces = import.is_some() || (content_bytes > TURN_BYTES && is_divisible(&batch));
        let is_copy = batch.0.iter().any(|write| matches!(write, Write::CheckpointCopy { .. }));
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

    /// A small batch takes what its lane has for such. Others wait first for their lane, then for the common capacity: the owners
    /// wait there for each other, and not for all that one of them has.
    async fn admit(&self, gate: Arc<Gate>, units: u32) -> Result<Admitted, StoreError> {
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

    /// Takes back a batch of which there is more to write: it is the next one of its lane. Of one that had nothing more to write in
    /// pieces the rest is written at once, for which its lane saves.
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
                let small_only = small_only && !state.closed;
                let turn = state.next_turn(small_only);
                // What is left has waited long enough.
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

/// Whether a write adds to the states that its owner stores.
fn has_state(write: &Write) -> bool {
    matches!(write, Write::Checkpoint(_) | Write::CheckpointCopy { .. })
}

/// Whether a batch may be written in pieces: the pages of a checkpoint of an execution that is in the store.
fn is_divisible(batch: &Batch) -> bool {
    let begins = |write: &Write| matches!(write, Write::ExecutionStarted { .. });
    let has_pages = |write: &&Write| matches!(write, Write::Checkpoint(_));
    batch.0.iter().filter(has_pages).count() == 1 && !batch.0.iter().any(begins)
}

/// The execution that a batch creates together with states of it.
fn imported(batch: &Batch) -> Option<ExecutionId> {
    batch.0.iter().find_map(|write| match write {
        Write::Checkpoint(checkpoint) => {
            let begins = |write: &Write| matches!(write, Write::ExecutionStarted { execution, .. } if execution.id == checkpoint.execution);
            batch.0.iter().any(begins).then_some(checkpoint.execution)
        }
        _ => None,
    })
}

/// About what a batch takes in the database file (bytes).
fn file_bytes(batch: &Batch) -> u64 {
    let size = |write: &Write| match write {
        Write::Checkpoint(checkpoint) => checkpoint.file_bytes(),
        write => write_bytes(write) as u64,
    };
    batch.0.iter().map(size).sum()
}

/// Approximate memory of a batch's content (bytes).
fn bytes(batch: &Batch) -> usize {
    batch.0.iter().map(write_bytes).sum()
}

pub(super) fn write_bytes(write: &Write) -> usize {
    match write {
        Write::Events(events) => {
            events.iter().map(|event| 64 + event.payload.output_bytes() as usize).sum::<usize>()
        }
        Write::ExecutionStarted { execution, .. } | Write::ExecutionEnded(execution) => {
            execution.input.as_ref().map_or(0, String::len)
                + execution.args.as_str().len()
                + execution.env.as_str().len()
                + execution.result.as_ref().map_or(0, vm_system_protocol::model::ResultValue::bytes)
                + execution.error.as_ref().map_or(0, |error| error.message.len())
        }
        Write::Checkpoint(checkpoint) => usize::try_from(checkpoint.bytes()).unwrap_or(usize::MAX),
        Write::ProgramVersion(version) | Write::ProgramImport(version) => {
            version.source.len() + version.code.len()
        }
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
