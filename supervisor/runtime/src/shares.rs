//! Shares of a thing of which there is a fixed number for all owners: connections, streams of events, sessions, turns of blocking
//! work, memory. One owner cannot take what others need, administrators keep a reserve, and idle holders make way.
//!
//! - An owner holds at most as much as it leaves free: the first one gets half, the next one half of the rest, and so on. An owner
//!   that holds nothing gets one while anything is free, which one owner alone cannot prevent. `per_owner` may be lower.
//! - The last `reserved` are for administrators, who have no share of their own: whatever is free is theirs.
//! - A holder that marks itself as idle ([`Share::idle`]) makes way: the longest idle of the same owner if that owner's share is
//!   full, the longest idle of the owner that holds most if nothing is free. Its holder sees [`Share::evicted`] and lets go. Until it
//!   has, it counts for the owner it made way for, as one of at most [`LEAVING`], so that what exists is bounded too.
//! - Clients that are not identified have one share together. Within it none of their origins (a uid, an address) can keep the others
//!   away: the longest idle of the origin that holds most makes way.
//! - Requests that wait are served in turns: one of each owner after the other, each owner's in the order of arrival.
//!
//! Decides nothing about what is counted, and has no clock: whoever waits has a deadline of its own.

mod holder;
mod refusal;
#[cfg(test)]
mod tests;

pub use holder::{Holder, Origin};
pub use refusal::ShareRefusal;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

/// How many there are, and who may have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShareLimits {
    /// Of all owners together.
    pub most: usize,
    /// The most of one owner that is no administrator; it also holds at most as much as it leaves free.
    pub per_owner: usize,
    /// For administrators alone.
    pub reserved: usize,
}

/// So few shares stay, whatever is short beside them.
const KEPT: usize = 16;
/// Most evicted shares that have made way for one holder and are not returned yet: above it, the holder gets no more in place of
/// idle ones.
const LEAVING: usize = 16;
/// The same for all unidentified clients together.
const LEAVING_UNIDENTIFIED: usize = 4 * LEAVING;
/// One in so many is kept for administrators.
const RESERVED_PART: usize = 32;

impl ShareLimits {
    /// Without a lower limit of each owner, and with the usual reserve.
    pub const fn at_most(most: usize) -> Self {
        Self { most, per_owner: most, reserved: most / RESERVED_PART }
    }
}

/// All shares of one thing.
#[derive(Debug)]
pub struct Shares {
    limits: ShareLimits,
    what: &'static str,
    setting: &'static str,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    used: usize,
    /// Of them, how many unidentified clients hold.
    unidentified: usize,
    /// Numbers shares, and orders idle ones by the time at which they became idle.
    last: u64,
    shares: HashMap<u64, Held>,
    holders: HashMap<Holder, Holding>,
    /// Evicted shares that are not returned yet, by number, and who has each one's place.
    leaving: HashMap<u64, Option<Holder>>,
    /// Holders with requests that wait, the next one first.
    turns: VecDeque<Holder>,
    closed: bool,
}

/// One share.
#[derive(Debug)]
struct Held {
    holder: Holder,
    amount: usize,
    /// The share's key among its holder's idle shares.
    idle: Option<u64>,
    evicted: CancellationToken,
}

/// The shares of one holder.
#[derive(Debug, Default)]
struct Holding {
    held: usize,
    /// Numbers of idle shares, the longest idle first.
    idle: BTreeMap<u64, u64>,
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    amount: usize,
    granted: oneshot::Sender<Share>,
}

impl Shares {
    /// `what` is their plural in messages, `setting` the table of `[shares]` in the operator's file.
    pub fn new(what: &'static str, setting: &'static str, limits: ShareLimits) -> Arc<Self> {
        Arc::new(Self { limits, what, setting, table: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // No code panics while holding it.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One of them now; an idle one makes way if it must.
    pub fn take(self: &Arc<Self>, holder: &Holder) -> Result<Share, ShareRefusal> {
        let mut table = self.lock();
        table.make_way(&self.limits, holder).map_err(|own| self.refused(&table, holder, own))?;
        Ok(self.share(&mut table, holder, 1))
    }

    /// Takes `amount` (at most all that there are) now, unless others wait for them or there are too few; evicts nothing.
    pub fn take_at_once(self: &Arc<Self>, holder: &Holder, amount: usize) -> Option<Share> {
        let mut table = self.lock();
        let amount = self.possible(amount);
        let may = !table.closed && table.is_next(&self.limits, holder, amount);
        may.then(|| self.share(&mut table, holder, amount))
    }

    /// Takes `amount` now, if the holder may have them: in front of its own requests that wait for more.
    pub fn take_in_passing(self: &Arc<Self>, holder: &Holder, amount: usize) -> Option<Share> {
        let mut table = self.lock();
        let amount = self.possible(amount);
        let may = !table.closed && table.may_pass(&self.limits, holder, amount);
        may.then(|| self.share(&mut table, holder, amount))
    }

    /// One of them, however many are taken: of what exists already.
    pub fn take_beyond(self: &Arc<Self>, holder: &Holder) -> Share {
        self.share(&mut self.lock(), holder, 1)
    }

    /// Takes `amount` (at most all that there are), when it is the holder's turn. `None`: [`Shares::close`] was called.
    pub async fn wait(self: &Arc<Self>, holder: &Holder, amount: usize) -> Option<Share> {
        // Dropped last: who gives up may have been the reason why others wait.
        let _regrant = Regrant(self);
        let amount = self.possible(amount);
        let granted = {
            let mut table = self.lock();
            if table.closed {
                return None;
            }
            if table.is_next(&self.limits, holder, amount) {
                return Some(self.share(&mut table, holder, amount));
            }
            table.queue(holder, amount)
        };
        granted.await.ok()
    }

    fn possible(&self, amount: usize) -> usize {
        amount.min(self.limits.most.saturating_sub(self.limits.reserved)).max(1)
    }

    /// Whether the holder gets no more because of what it has itself.
    pub fn is_full_for(&self, holder: &Holder) -> bool {
        self.lock().fits(&self.limits, holder, 1) == Err(true)
    }

    /// Whether something waits for what this holder could return: its own requests, or any while nothing is free.
    pub fn is_wanted_of(&self, holder: &Holder) -> bool {
        let table = self.lock();
        table
            .turns
            .iter()
            .any(|waiting| waiting == holder || table.fits(&self.limits, waiting, 1) == Err(false))
    }

    /// The refusal of a request that has waited for too long.
    pub fn refusal(&self, holder: &Holder) -> ShareRefusal {
        let table = self.lock();
        let own = table.fits(&self.limits, holder, 1).err().unwrap_or(false);
        self.refused(&table, holder, own)
    }

    /// The refusal of a request for so many that has waited for too long.
    pub fn refusal_of(&self, holder: &Holder, amount: usize) -> ShareRefusal {
        let table = self.lock();
        let own = table.fits(&self.limits, holder, self.possible(amount)).err().unwrap_or(true);
        self.refused(&table, holder, own)
    }

    /// Evicts the longest idle share of the owner that holds most; false if none is idle, or if there are too few for them to be the
    /// reason. For what is short beside them, such as descriptors.
    pub fn evict(&self) -> bool {
        let mut table = self.lock();
        table.used > KEPT && table.evict_of_largest(None)
    }

    /// Ends all waiting.
    pub fn close(&self) {
        let dropped = {
            let mut table = self.lock();
            table.closed = true;
            table.turns.clear();
            table.holders.values_mut().map(|holding| std::mem::take(&mut holding.waiting)).collect::<Vec<_>>()
        };
        drop(dropped);
    }

    fn share(self: &Arc<Self>, table: &mut Table, holder: &Holder, amount: usize) -> Share {
        let evicted = CancellationToken::new();
        let number = table.add(holder, amount, evicted.clone());
        Share { shares: Arc::clone(self), number, evicted }
    }

    fn refused(&self, table: &Table, holder: &Holder, own: bool) -> ShareRefusal {
        let Self { limits, what, setting, .. } = *self;
        ShareRefusal {
            holder: holder.clone(),
            held: table.held(holder),
            own,
            limits,
            what,
            setting,
            several: None,
        }
    }

    /// After something was returned: gives it to those who wait.
    fn grant(self: &Arc<Self>) {
        let mut granted = Vec::new();
        {
            let mut table = self.lock();
            while let Some((holder, next)) = table.next_turn(&self.limits) {
                granted.push((next.granted, self.share(&mut table, &holder, next.amount)));
            }
        }
        // Outside of the lock: one that is not received any more is returned.
        for (receiver, share) in granted {
            drop(receiver.send(share));
        }
    }
}

/// Gives what is free to those who wait, when it is dropped.
struct Regrant<'a>(&'a Arc<Shares>);

impl Drop for Regrant<'_> {
    fn drop(&mut self) {
        if !self.0.lock().turns.is_empty() {
            self.0.grant();
        }
    }
}

impl Table {
    /// How much a holder's share has.
    fn held(&self, holder: &Holder) -> usize {
        if holder.is_unidentified() {
            return self.unidentified;
        }
        self.holders.get(holder).map_or(0, |holding| holding.held)
    }

    /// Whether a holder may have so many more; the error says whether its own share is full.
    fn fits(&self, limits: &ShareLimits, holder: &Holder, amount: usize) -> Result<(), bool> {
        let is_admin = matches!(holder, Holder::Administrator(_));
        let reserved = if is_admin { 0 } else { limits.reserved };
        let free = limits.most.saturating_sub(reserved).saturating_sub(self.used);
        let held = self.held(holder);
        let after = held + amount;
        let own_is_full = held > 0 && (after > limits.per_owner || after > free.saturating_sub(amount));
        if own_is_full && !is_admin {
            Err(true)
        } else if amount > free {
            Err(false)
        } else {
            Ok(())
        }
    }

    /// Makes capacity for one more share of a holder. If there is none, one idle share is evicted: the holder's own if its part is full
    /// (it may have become smaller because other owners came), else one of the holder that has most.
    fn make_way(&mut self, limits: &ShareLimits, holder: &Holder) -> Result<(), bool> {
        let Err(own) = self.fits(limits, holder, 1) else { return Ok(()) };
        let leaving =
            |of: &dyn Fn(&Holder) -> bool| self.leaving.values().flatten().filter(|&place| of(place)).count();
        let all_leave = leaving(&|place| place == holder) >= LEAVING
            || holder.is_unidentified() && leaving(&Holder::is_unidentified) >= LEAVING_UNIDENTIFIED;
        let evicted = match own {
            _ if all_leave => false,
            true => self.evict_of(holder),
            false => self.evict_of_largest(Some(holder)),
        };
        if evicted { Ok(()) } else { Err(own) }
    }

    fn evict_of(&mut self, holder: &Holder) -> bool {
        self.evict_longest_idle(Some(holder), |other| other.shares_with(holder))
    }

    fn evict_of_largest(&mut self, place: Option<&Holder>) -> bool {
        self.evict_longest_idle(place, |_| true)
    }

    /// Evicts the longest idle of the largest share among these holders, and there of the origin that holds most.
    fn evict_longest_idle(&mut self, place: Option<&Holder>, among: impl Fn(&Holder) -> bool) -> bool {
        let longest_idle = |(holder, holding): (&Holder, &Holding)| {
            let (since, share) = holding.idle.first_key_value()?;
            // Of several that hold as much: the longest idle.
            Some((self.held(holder), holding.held, std::cmp::Reverse(*since), *share))
        };
        let victim = self.holders.iter().filter(|(holder, _)| among(holder)).filter_map(longest_idle).max();
        victim.is_some_and(|(.., share)| self.evict(share, place))
    }

    fn evict(&mut self, share: u64, place: Option<&Holder>) -> bool {
        let Some(held) = self.remove(share) else { return false };
        self.leaving.insert(share, place.cloned());
        held.evicted.cancel();
        true
    }

    fn add(&mut self, holder: &Holder, amount: usize, evicted: CancellationToken) -> u64 {
        self.last += 1;
        self.used += amount;
        self.hold(holder, amount);
        self.shares.insert(self.last, Held { holder: holder.clone(), amount, idle: None, evicted });
        self.last
    }

    /// Counts so many more for a holder.
    fn hold(&mut self, holder: &Holder, amount: usize) -> &mut Holding {
        if holder.is_unidentified() {
            self.unidentified += amount;
        }
        let holding = self.holders.entry(holder.clone()).or_default();
        holding.held += amount;
        holding
    }

    fn remove(&mut self, share: u64) -> Option<Held> {
        let held = self.shares.remove(&share)?;
        self.used -= held.amount;
        self.leave(&held);
        Some(held)
    }

    /// Takes a share away from its holder.
    fn leave(&mut self, held: &Held) {
        if held.holder.is_unidentified() {
            self.unidentified -= held.amount;
        }
        let Some(holding) = self.holders.get_mut(&held.holder) else { return };
        holding.held -= held.amount;
        if let Some(idle) = held.idle {
            holding.idle.remove(&idle);
        }
        if holding.held == 0 && holding.waiting.is_empty() {
            self.holders.remove(&held.holder);
        }
    }

    /// Whether a holder gets so many now: none of its own requests waits, and no other one for lack of free ones.
    fn is_next(&self, limits: &ShareLimits, holder: &Holder, amount: usize) -> bool {
        let waits = |other: &Holder| {
            let first =
                self.holders.get(other)?.waiting.iter().find(|waiting| !waiting.granted.is_closed())?;
            Some(other == holder || self.blocks(limits, (other, first.amount), holder))
        };
        self.fits(limits, holder, amount).is_ok()
            && !self.turns.iter().any(|other| waits(other).unwrap_or(false))
    }

    /// Whether a holder gets so many now: no other one waits for lack of free ones.
    fn may_pass(&self, limits: &ShareLimits, holder: &Holder, amount: usize) -> bool {
        let blocks = |other: &Holder| {
            let waiting = &self.holders.get(other)?.waiting;
            let first = waiting.iter().find(|waiting| !waiting.granted.is_closed())?;
            Some(other != holder && self.blocks(limits, (other, first.amount), holder))
        };
        self.fits(limits, holder, amount).is_ok()
            && !self.turns.iter().any(|other| blocks(other).unwrap_or(false))
    }

    /// Whether a request that waits keeps others of `holder` waiting: there are too few free ones for it, and smaller requests would
    /// take them for ever. What is reserved is free for administrators.
    fn blocks(&self, limits: &ShareLimits, (other, amount): (&Holder, usize), holder: &Holder) -> bool {
        let has_reserve = limits.reserved > 0 && matches!(holder, Holder::Administrator(_));
        !has_reserve && self.fits(limits, other, amount) == Err(false)
    }

    fn queue(&mut self, holder: &Holder, amount: usize) -> oneshot::Receiver<Share> {
        let (granted, receiver) = oneshot::channel();
        let waiting = &mut self.holders.entry(holder.clone()).or_default().waiting;
        // Requests that gave up leave the queue, so that it is no longer than the number of requests.
        while waiting.front().is_some_and(|first| first.granted.is_closed()) {
            waiting.pop_front();
        }
        waiting.push_back(Waiting { amount, granted });
        if !self.turns.contains(holder) {
            self.turns.push_back(holder.clone());
        }
        receiver
    }

    /// The next request that waits and can be served now.
    fn next_turn(&mut self, limits: &ShareLimits) -> Option<(Holder, Waiting)> {
        let mut passed = VecDeque::new();
        let mut blocking: Option<(Holder, usize)> = None;
        let mut next = None;
        while let Some(holder) = self.turns.pop_front() {
            let Some(holding) = self.holders.get_mut(&holder) else { continue };
            while holding.waiting.front().is_some_and(|first| first.granted.is_closed()) {
                holding.waiting.pop_front();
            }
            let Some(amount) = holding.waiting.front().map(|first| first.amount) else {
                if holding.held == 0 {
                    self.holders.remove(&holder);
                }
                continue;
            };
            let is_blocked = blocking
                .as_ref()
                .is_some_and(|(other, amount)| self.blocks(limits, (other, *amount), &holder));
            match self.fits(limits, &holder, amount) {
                Ok(()) if !is_blocked => {
                    let waiting = self.holders.get_mut(&holder).map(|holding| &mut holding.waiting)?;
                    next = waiting.pop_front().map(|first| (holder.clone(), first));
                    if !waiting.is_empty() {
                        self.turns.push_back(holder);
                    }
                    break;
                }
                Err(false) if blocking.is_none() => {
                    blocking = Some((holder.clone(), amount));
                }
                _ => {}
            }
            passed.push_back(holder);
        }
        // Holders that were passed keep their places.
        passed.append(&mut self.turns);
        self.turns = passed;
        next
    }
}

/// The amount that one holder has; returned when it is dropped.
#[derive(Debug)]
pub struct Share {
    shares: Arc<Shares>,
    number: u64,
    evicted: CancellationToken,
}

impl Share {
    /// Resolves when this share has made way for another one: its holder ends what it is for.
    pub fn evicted(&self) -> WaitForCancellationFuture<'_> {
        self.evicted.cancelled()
    }

    /// Whether it has made way for another one.
    pub fn is_evicted(&self) -> bool {
        self.evicted.is_cancelled()
    }

    /// How many it is.
    pub fn amount(&self) -> usize {
        self.shares.lock().shares.get(&self.number).map_or(0, |held| held.amount)
    }

    /// Returns all but so many of it.
    pub fn reduce(&self, amount: usize) {
        let waits = {
            let mut table = self.shares.lock();
            let Table { shares, holders, used, unidentified, turns, .. } = &mut *table;
            let Some(held) = shares.get_mut(&self.number) else { return };
            let returned = held.amount.saturating_sub(amount);
            held.amount -= returned;
            *used -= returned;
            if held.holder.is_unidentified() {
                *unidentified -= returned;
            }
            if let Some(holding) = holders.get_mut(&held.holder) {
                holding.held -= returned;
            }
            returned > 0 && !turns.is_empty()
        };
        if waits {
            self.shares.grant();
        }
    }

    /// From now on it makes way for another one; of several, the one for which this was called first.
    pub fn idle(&self) {
        let mut table = self.shares.lock();
        table.last += 1;
        let since = table.last;
        let Table { shares, holders, .. } = &mut *table;
        let Some(held) = shares.get_mut(&self.number) else { return };
        let Some(holding) = holders.get_mut(&held.holder) else { return };
        if let Some(before) = held.idle.replace(since) {
            holding.idle.remove(&before);
        }
        holding.idle.insert(since, self.number);
    }

    /// From now on it stays until it is returned.
    pub fn busy(&self) {
        let mut table = self.shares.lock();
        let Table { shares, holders, .. } = &mut *table;
        let Some(held) = shares.get_mut(&self.number) else { return };
        if let (Some(idle), Some(holding)) = (held.idle.take(), holders.get_mut(&held.holder)) {
            holding.idle.remove(&idle);
        }
    }

    /// Makes it the share of another holder, as soon as it is known who that is.
    pub fn assign(&self, holder: &Holder) -> Result<(), ShareRefusal> {
        let mut table = self.shares.lock();
        let limits = &self.shares.limits;
        if table.shares.get(&self.number).is_none_or(|held| held.holder == *holder) {
            return Ok(());
        }
        // Judged as if it were returned first.
        let Some(held) = table.remove(self.number) else { return Ok(()) };
        let way = table.make_way(limits, holder);
        let of = if way.is_ok() { holder.clone() } else { held.holder.clone() };
        table.used += held.amount;
        let holding = table.hold(&of, held.amount);
        if let Some(idle) = held.idle {
            holding.idle.insert(idle, self.number);
        }
        table.shares.insert(self.number, Held { holder: of, ..held });
        way.map_err(|own| self.shares.refused(&table, holder, own))
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let waits = {
            let mut table = self.shares.lock();
            table.leaving.remove(&self.number);
            table.remove(self.number).is_some() && !table.turns.is_empty()
        };
        if waits {
            self.shares.grant();
        }
    }
}
