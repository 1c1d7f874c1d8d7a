//! Owns the macrotasks of a session: timers, immediates and `process.nextTick`. Reads no clock: times are passed in.

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

/// Timers in order of their time, then of their creation.
#[derive(Default)]
pub(super) struct Timers {
    due: BTreeMap<(u64, u64), Timer>,
    by_id: HashMap<u64, (u64, u64)>,
    immediates: VecDeque<(u64, QueuedCallback)>,
    ticks: VecDeque<QueuedCallback>,
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

    /// The oldest immediate.
    pub(super) fn take_immediate(&mut self) -> Option<QueuedCallback> {
        self.immediates.pop_front().map(|(_, task)| task)
    }

    /// Takes the next timer that is due. A repeating one is queued again.
    pub(super) fn take_due(&mut self, now: u64) -> Option<QueuedCallback> {
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

    /// The time at which the next timer is due (nanoseconds), if a timer keeps the execution alive.
    pub(super) fn next_due(&self) -> Option<u64> {
        if !self.immediates.is_empty() {
            return Some(0);
        }
        if self.referenced == 0 {
            return None;
        }
        self.due.first_key_value().map(|(key, _)| key.0)
    }

    /// The time at which the next timer is due (nanoseconds), whether or not one keeps the execution alive.
    pub(super) fn first_due(&self) -> Option<u64> {
        if self.immediates.is_empty() { self.due.first_key_value().map(|(key, _)| key.0) } else { Some(0) }
    }

    /// Removes all callbacks.
    pub(super) fn clear(&mut self) {
        self.due.clear();
        self.referenced = 0;
        self.by_id.clear();
        self.immediates.clear();
        self.ticks.clear();
    }
}
