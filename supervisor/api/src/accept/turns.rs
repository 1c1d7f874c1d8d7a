//! Connections that wait to be served, in turns: one of each client after the other, each one's in the order of arrival. A client
//! that connects in a loop has few that are being started, and so many in an interval, and leaves the processor to the others; its own
//! wait, theirs do not.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use vm_system_runtime::shares::{Holder, Share};

const INTERVAL: Duration = Duration::from_millis(10);
/// Connections of one holder in an interval.
const OF_ONE: u32 = 32;
/// Connections of all in an interval.
const OF_ALL: u32 = 4 * OF_ONE;

/// Connections of one holder that are being started. The next one waits here and not in the event loop, where it would be in front of
/// those of others that come after it.
const STARTING_OF_ONE: usize = 8;
/// One that is started for longer waits for something else than the event loop, such as the end of an execution.
const PATIENCE: Duration = Duration::from_millis(100);
/// How often it is looked whether connections have been started, while others of their holder wait.
const LOOK: Duration = Duration::from_millis(1);

/// A connection whose first request is not answered yet. It is dropped as soon as the connection waits for its client, or ends.
#[derive(Debug)]
pub(crate) struct StartingConnection {
    _started: Arc<()>,
}

/// A connection that may be served.
pub(super) struct NextConnection<C> {
    pub(super) connection: C,
    pub(super) share: Share,
    pub(super) starting: StartingConnection,
}

/// Connections and their shares, which are idle.
pub(super) struct Turns<C> {
    /// Of this interval, and those with connections that wait.
    lanes: HashMap<Holder, Lane<C>>,
    /// Holders with connections that wait, the next one first.
    order: VecDeque<Holder>,
    end: Instant,
    left: u32,
}

struct Lane<C> {
    spent: u32,
    /// When each one was started.
    starting: VecDeque<(Instant, Weak<()>)>,
    waiting: VecDeque<(C, Share)>,
}

impl<C> Default for Lane<C> {
    fn default() -> Self {
        Self { spent: 0, starting: VecDeque::new(), waiting: VecDeque::new() }
    }
}

impl<C> Lane<C> {
    /// The longest idle make way first, so that all of them are in front.
    fn close_evicted(&mut self) {
        while self.waiting.front().is_some_and(|(_, share)| share.is_evicted()) {
            self.waiting.pop_front();
        }
    }

    fn forget_started(&mut self, now: Instant) {
        self.starting.retain(|(begin, starting)| {
            starting.strong_count() > 0 && now.saturating_duration_since(*begin) < PATIENCE
        });
    }

    fn start(&mut self, now: Instant) -> StartingConnection {
        let started = Arc::new(());
        self.starting.push_back((now, Arc::downgrade(&started)));
        StartingConnection { _started: started }
    }
}

impl<C> Turns<C> {
    pub(super) fn new(now: Instant) -> Self {
        Self { lanes: HashMap::new(), order: VecDeque::new(), end: now + INTERVAL, left: OF_ALL }
    }

    /// Begins the next interval if it is time.
    pub(super) fn begin(&mut self, now: Instant) {
        if now < self.end {
            return;
        }
        (self.end, self.left) = (now + INTERVAL, OF_ALL);
        self.close_evicted();
        self.lanes.retain(|_, lane| {
            lane.spent = 0;
            lane.forget_started(now);
            !lane.waiting.is_empty() || !lane.starting.is_empty()
        });
    }

    /// How long the next one that waits has to wait; `None`: none waits.
    pub(super) fn until_next(&self, now: Instant) -> Option<Duration> {
        let is_spent = |holder| self.lanes.get(holder).is_none_or(|lane| lane.spent >= OF_ONE);
        let interval = self.end.saturating_duration_since(now);
        match self.order.is_empty() {
            true => None,
            false if self.left == 0 || self.order.iter().all(is_spent) => Some(interval),
            false => Some(interval.min(LOOK)),
        }
    }

    pub(super) fn push(&mut self, holder: Holder, connection: C, share: Share) {
        let lane = self.lanes.entry(holder.clone()).or_default();
        if lane.waiting.is_empty() && !self.order.contains(&holder) {
            self.order.push_back(holder);
        }
        lane.waiting.push_back((connection, share));
    }

    /// The next one that may be served now.
    pub(super) fn next(&mut self, now: Instant) -> Option<NextConnection<C>> {
        for _ in 0..self.order.len() {
            if self.left == 0 {
                return None;
            }
            let holder = self.order.pop_front()?;
            let Some(lane) = self.lanes.get_mut(&holder) else { continue };
            lane.close_evicted();
            lane.forget_started(now);
            let may = lane.spent < OF_ONE && lane.starting.len() < STARTING_OF_ONE;
            let next = if may { lane.waiting.pop_front() } else { None };
            let next = next.map(|(connection, share)| {
                lane.spent += 1;
                self.left -= 1;
                NextConnection { connection, share, starting: lane.start(now) }
            });
            if !lane.waiting.is_empty() {
                self.order.push_back(holder);
            }
            if next.is_some() {
                return next;
            }
        }
        None
    }

    /// Closes the connection of a holder that has waited longest; its share is for another one.
    pub(super) fn replace_oldest(&mut self, holder: &Holder) -> Option<Share> {
        self.lanes.get_mut(holder)?.waiting.pop_front().map(|(_, share)| share)
    }

    /// Spends one turn of a holder, if it has one in this interval.
    pub(super) fn spend(&mut self, holder: &Holder) -> bool {
        let lane = self.lanes.entry(holder.clone()).or_default();
        let may = lane.spent < OF_ONE && self.left > 0;
        if may {
            lane.spent += 1;
            self.left -= 1;
        }
        may
    }

    /// Closes the connections of a holder that have made way for others.
    pub(super) fn close_evicted_of(&mut self, holder: &Holder) {
        if let Some(lane) = self.lanes.get_mut(holder) {
            lane.close_evicted();
        }
    }

    /// Closes all connections that have made way for others.
    pub(super) fn close_evicted(&mut self) {
        self.lanes.values_mut().for_each(Lane::close_evicted);
        self.order.retain(|holder| self.lanes.get(holder).is_some_and(|lane| !lane.waiting.is_empty()));
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Holder, INTERVAL, Instant, LOOK, OF_ALL, OF_ONE, PATIENCE, STARTING_OF_ONE, StartingConnection, Turns,
    };
    use std::sync::Arc;
    use vm_system_record::Owner;
    use vm_system_runtime::shares::{ShareLimits, Shares};

    fn shares() -> Arc<Shares> {
        Shares::new("connections", "connections", ShareLimits { most: 1 << 12, per_owner: 8, reserved: 0 })
    }

    fn owner(name: &str) -> Holder {
        Holder::Owner(Owner::new(name))
    }

    #[test]
    fn connections_of_one_client_wait_and_those_of_another_do_not() {
        let shares = Shares::new("connections", "connections", ShareLimits::at_most(1 << 12));
        let mut turns = Turns::new(Instant::now());
        let arrive = |turns: &mut Turns<&'static str>, name| {
            turns.push(owner(name), name, shares.take(&owner(name)).expect("free"));
        };
        let served = |turns: &mut Turns<&'static str>| {
            let now = Instant::now();
            std::iter::from_fn(|| turns.next(now).map(|turn| turn.connection)).collect::<Vec<_>>()
        };
        for _ in 0..1_000 {
            arrive(&mut turns, "flood");
        }
        assert_eq!(served(&mut turns), vec!["flood"; OF_ONE as usize]);
        assert!(turns.until_next(Instant::now()).is_some());
        arrive(&mut turns, "other");
        assert_eq!(served(&mut turns), ["other"], "at once");
        assert!(!turns.spend(&owner("flood")) && turns.spend(&owner("other")));
        arrive(&mut turns, "other");
        let end = turns.end;
        turns.begin(end);
        assert_eq!(served(&mut turns)[..3], ["flood", "other", "flood"], "one of each after the other");
        // More clients than all turns of an interval: none is passed over for ever.
        let names: Vec<&'static str> = (0..2 * OF_ALL).map(|n| &*n.to_string().leak()).collect();
        for name in &names {
            arrive(&mut turns, name);
        }
        let mut all = Vec::new();
        for _ in 0..3 {
            let end = turns.end;
            turns.begin(end);
            let served = served(&mut turns);
            assert!(served.len() <= OF_ALL as usize);
            all.extend(served);
        }
        assert!(names.iter().all(|name| all.contains(name)), "{all:?}");
    }

    #[test]
    fn a_client_has_few_that_are_being_started_however_long_that_takes() {
        let shares = Shares::new("connections", "connections", ShareLimits::at_most(1 << 12));
        let begin = Instant::now();
        let mut turns = Turns::new(begin);
        let arrive = |turns: &mut Turns<&'static str>, name| {
            turns.push(owner(name), name, shares.take(&owner(name)).expect("free"));
        };
        for _ in 0..100 {
            arrive(&mut turns, "flood");
        }
        let start = |turns: &mut Turns<&'static str>, now| -> Vec<(&'static str, StartingConnection)> {
            std::iter::from_fn(|| turns.next(now).map(|turn| (turn.connection, turn.starting))).collect()
        };
        let mut starting = start(&mut turns, begin);
        assert_eq!(starting.len(), STARTING_OF_ONE);
        // The clock alone brings no turn.
        let later = begin + 5 * INTERVAL;
        turns.begin(later);
        assert!(start(&mut turns, later).is_empty());
        assert_eq!(turns.until_next(later), Some(LOOK));
        arrive(&mut turns, "other");
        let other = start(&mut turns, later);
        assert_eq!(other.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["other"], "at once");
        // Each connection that was started lets one more begin.
        starting.truncate(STARTING_OF_ONE - 3);
        starting.extend(start(&mut turns, later));
        assert_eq!(starting.len(), STARTING_OF_ONE);
        // Connections that wait for something else do not keep others of their client away for ever.
        let late = begin + PATIENCE;
        turns.begin(late);
        assert_eq!(start(&mut turns, late).len(), STARTING_OF_ONE - 3);
    }

    #[test]
    fn those_that_made_way_are_closed_and_nothing_is_kept_of_clients_that_have_gone() {
        let shares = shares();
        let mut turns = Turns::new(Instant::now());
        let flood = owner("flood");
        for number in 0..100 {
            turns.close_evicted_of(&flood);
            let share = shares.take(&flood).expect("its oldest makes way");
            share.idle();
            turns.push(flood.clone(), number, share);
        }
        turns.close_evicted_of(&flood);
        assert!(shares.is_full_for(&flood));
        let share = turns.replace_oldest(&flood).expect("it waits");
        turns.push(flood.clone(), 100, share);
        let now = Instant::now();
        let served: Vec<i32> = std::iter::from_fn(|| turns.next(now).map(|turn| turn.connection)).collect();
        assert_eq!(served, (93..=100).collect::<Vec<_>>(), "the newest that have a share");
        assert_eq!(turns.until_next(Instant::now()), None);
        turns.begin(turns.end + INTERVAL);
        assert!(turns.lanes.is_empty() && turns.order.is_empty());
        // One that made way for another client's connection is closed at the next interval.
        let share = shares.take(&flood).expect("free");
        share.idle();
        turns.push(flood.clone(), 0, share);
        let _others: Vec<_> = (0..8).filter_map(|_| shares.take(&flood).ok()).collect();
        turns.begin(turns.end + INTERVAL);
        assert_eq!(turns.until_next(Instant::now()), None);
        assert!(turns.lanes.is_empty());
    }
}
