//! Owns the macrotasks of a session, in the phases of Node's event loop: timers, finished calls and input, immediates; and
//! `process.nextTick`. Reads no clock: times are passed in.

use rquickjs::{Function, Persistent, Value};
use std::collections::{BTreeMap, HashMap, VecDeque};

/// A callback with its arguments.
#[derive(Clone)]
pub(super) struct QueuedCallback {
    pub(super) callback: Persistent<Function<'static>>,
    pub(super) arguments: Vec<Persistent<Value<'static>>>,
}

struct Timer {
    id: u64,
    task: QueuedCallback,
    /// Interval (milliseconds); `None`: runs once.
    repeat: Option<u64>,
    /// Keeps the execution alive.
    referenced: bool,
}

/// Longest delay; a longer one counts as 1 ms, as in Node (milliseconds).
const LONGEST_DELAY: f64 = 2_147_483_647.0;

/// A timer of this age or less is due in the first iteration already, as in Node, where the main script takes longer (nanoseconds).
const FIRST_ITERATION: u64 = 1_000_000;

/// The part of an iteration of the event loop that runs now.
#[derive(Debug, Default, Clone, Copy)]
enum Phase {
    /// Between two iterations.
    #[default]
    Begin,
    /// Timers that were due at this time.
    Timers { at: u64 },
    /// Callbacks of finished calls up to this id.
    Calls { last: u64 },
    /// Immediates up to this id: what they add runs in the next iteration.
    Immediates { last: u64 },
}

/// The callback that waits for a piece of the standard input.
struct InputWait {
    callback: QueuedCallback,
    /// Keeps the execution alive.
    referenced: bool,
}

/// Timers in order of their time, then of their creation.
#[derive(Default)]
pub(super) struct Timers {
    due: BTreeMap<(u64, u64), Timer>,
    by_id: HashMap<u64, (u64, u64)>,
    calls: VecDeque<(u64, QueuedCallback)>,
    immediates: VecDeque<(u64, QueuedCallback)>,
    ticks: VecDeque<QueuedCallback>,
    input: Option<InputWait>,
    /// The last wait for something from outside was for the standard input.
    input_turn: bool,
    phase: Phase,
    is_later_iteration: bool,
    /// How many pending timers keep the execution alive.
    referenced: usize,
    last_id: u64,
    last_order: u64,
}

/// A delay by Node's rules (milliseconds).
pub(super) fn delay_ms(delay: f64) -> u64 {
    if (1.0..=LONGEST_DELAY).contains(&delay) { delay as u64 } else { 1 }
}

impl Timers {
    /// Adds a timer that is due `delay` ms after `now` (nanoseconds); returns its id.
    pub(super) fn add(&mut self, now: u64, delay: u64, repeats: bool, task: QueuedCallback) -> u64 {
        self.last_id += 1;
        let timer = Timer { id: self.last_id, task, repeat: repeats.then_some(delay), referenced: true };
        self.insert(now, delay, timer);
        self.last_id
    }

    fn insert(&mut self, now: u64, delay: u64, timer: Timer) {
        self.last_order += 1;
        let key = (now.saturating_add(delay * 1_000_000), self.last_order);
        self.referenced += usize::from(timer.referenced);
        self.by_id.insert(timer.id, key);
        self.due.insert(key, timer);
    }

    fn take(&mut self, id: u64) -> Option<Timer> {
        let timer = self.by_id.remove(&id).and_then(|key| self.due.remove(&key))?;
        self.referenced -= usize::from(timer.referenced);
        Some(timer)
    }

    /// Adds an immediate, which runs in the next iteration of the event loop; returns its id.
    pub(super) fn add_immediate(&mut self, task: QueuedCallback) -> u64 {
        self.last_id += 1;
        self.immediates.push_back((self.last_id, task));
        self.last_id
    }

    /// Adds the callback of a call that is finished.
    pub(super) fn add_call(&mut self, task: QueuedCallback) {
        self.last_id += 1;
        self.calls.push_back((self.last_id, task));
    }

    /// Sets the callback that gets the next piece of the standard input; none: nothing waits for it.
    pub(super) fn wait_for_input(&mut self, wait: Option<(QueuedCallback, bool)>) {
        self.input = wait.map(|(callback, referenced)| InputWait { callback, referenced });
    }

    /// Whether a callback waits for the standard input.
    pub(super) fn waits_for_input(&self) -> bool {
        self.input.is_some()
    }

    /// Takes the callback that waits for the standard input, as that of a finished call.
    pub(super) fn take_input_callback(&mut self) -> Option<QueuedCallback> {
        self.begin_calls();
        self.input.take().map(|wait| wait.callback)
    }

    /// Begins the phase of finished calls, for one that comes from outside: immediates come next.
    pub(super) fn begin_calls(&mut self) {
        self.phase = Phase::Calls { last: self.last_id };
    }

    /// Whether the standard input is waited for now; every second time.
    pub(super) fn is_turn_of_input(&mut self) -> bool {
        self.input_turn = !self.input_turn;
        self.input_turn
    }

    /// Adds a tick, which runs before the next promise job.
    pub(super) fn add_tick(&mut self, task: QueuedCallback) {
        self.ticks.push_back(task);
    }

    /// Removes a timer or immediate.
    pub(super) fn remove(&mut self, id: u64) {
        if self.take(id).is_none()
            && let Some(place) = self.immediates.iter().position(|(other, _)| *other == id)
        {
            self.immediates.remove(place);
        }
    }

    /// Sets whether a timer keeps the execution alive.
    pub(super) fn set_referenced(&mut self, id: u64, referenced: bool) {
        if let Some(timer) = self.by_id.get(&id).and_then(|key| self.due.get_mut(key)) {
            self.referenced -= usize::from(timer.referenced);
            timer.referenced = referenced;
            self.referenced += usize::from(referenced);
        }
    }

    /// Whether a timer of this id is pending and keeps the execution alive.
    pub(super) fn is_referenced(&self, id: u64) -> bool {
        self.by_id.get(&id).and_then(|key| self.due.get(key)).is_some_and(|timer| timer.referenced)
    }

    /// Starts a pending timer's delay over.
    pub(super) fn refresh(&mut self, id: u64, now: u64, delay: u64) {
        if let Some(timer) = self.take(id) {
            self.insert(now, delay, timer);
        }
    }

    /// The oldest tick.
    pub(super) fn next_tick(&mut self) -> Option<QueuedCallback> {
        self.ticks.pop_front()
    }

    /// Whether a tick is queued.
    pub(super) fn has_ticks(&self) -> bool {
        !self.ticks.is_empty()
    }

    /// The next callback of this iteration; none: the iteration is over.
    pub(super) fn next(&mut self, now: u64) -> Option<QueuedCallback> {
        loop {
            let last = self.last_id;
            match self.phase {
                Phase::Begin => {
                    let ahead = if self.is_later_iteration { 0 } else { FIRST_ITERATION };
                    self.is_later_iteration = true;
                    self.phase = Phase::Timers { at: now.saturating_add(ahead) };
                }
                Phase::Timers { at } => match self.take_due(at) {
                    None => self.phase = Phase::Calls { last },
                    task => return task,
                },
                Phase::Calls { last: until } => match take_first(&mut self.calls, until) {
                    None => self.phase = Phase::Immediates { last },
                    task => return task,
                },
                Phase::Immediates { last: until } => {
                    let task = take_first(&mut self.immediates, until);
                    if task.is_none() {
                        self.phase = Phase::Begin;
                    }
                    return task;
                }
            }
        }
    }

    /// Takes the next timer that is due. A repeating one is queued again.
    fn take_due(&mut self, now: u64) -> Option<QueuedCallback> {
        let (key, timer) = self.due.first_key_value()?;
        if key.0 > now {
            return None;
        }
        let id = timer.id;
        let timer = self.take(id)?;
        let Some(delay) = timer.repeat else { return Some(timer.task) };
        let task = timer.task.clone();
        self.insert(now, delay, timer);
        Some(task)
    }

    /// Whether something keeps the execution alive.
    pub(super) fn is_alive(&self) -> bool {
        self.referenced > 0
            || !self.immediates.is_empty()
            || !self.calls.is_empty()
            || self.input.as_ref().is_some_and(|wait| wait.referenced)
    }

    /// The time at which the next callback is due (nanoseconds); none: only input can bring one.
    pub(super) fn next_due(&self) -> Option<u64> {
        if !self.immediates.is_empty() || !self.calls.is_empty() {
            return Some(0);
        }
        self.due.first_key_value().map(|(key, _)| key.0)
    }

    /// Removes all callbacks.
    pub(super) fn clear(&mut self) {
        self.due.clear();
        self.referenced = 0;
        self.by_id.clear();
        self.immediates.clear();
        self.calls.clear();
        self.ticks.clear();
        self.input = None;
        self.phase = Phase::Begin;
        self.is_later_iteration = false;
    }
}

/// The first callback, if its id is at most `last`.
fn take_first(queue: &mut VecDeque<(u64, QueuedCallback)>, last: u64) -> Option<QueuedCallback> {
    queue.pop_front_if(|(id, _)| *id <= last).map(|(_, task)| task)
}
