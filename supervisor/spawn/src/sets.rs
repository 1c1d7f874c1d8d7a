//! Zygotes that have more in them than the one that is always there: one for each kind of worker that was asked for (a set
//! of libraries, durable programs), made when it is first asked for, ended when it was not asked for long, or when there are
//! too many.
//!
//! Their code is the operator's (only administrators install libraries) or ours, so workers of all owners share them. The
//! keeper does not keep them: they end with this supervisor, and the next one makes its own. One that its libraries have
//! broken harms nobody but sessions of that set.

use super::control::lock;
use super::error::SpawnError;
use super::kind::WorkerKind;
use super::zygote::Zygote;
use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};
use vm_system_protocol::limits::{HELLO_MS, LIBRARY_SET_MS};

/// Kinds that have a zygote at a time.
const SETS: usize = 16;
/// A kind that nobody asked for this long loses its zygote.
const IDLE: Duration = Duration::from_mins(10);
/// How often idle ones are looked for.
pub(super) const SWEEP: Duration = Duration::from_mins(1);
/// How long a birth waits for a zygote that others have made: what the making of one may take.
const TURN: Duration = Duration::from_millis(HELLO_MS + LIBRARY_SET_MS);

/// A kind with its zygote.
#[derive(Debug)]
struct Slot {
    /// Held while the zygote is made: who comes meanwhile waits for it, in the order of arrival.
    zygote: Arc<tokio::sync::Mutex<Option<Taught>>>,
    last_used: Instant,
    forks: Arc<AtomicU64>,
}

/// A zygote that has everything in it, and the task that hears its end.
#[derive(Debug)]
pub(super) struct Taught {
    zygote: Arc<Zygote>,
    listening: AbortHandle,
}

impl Taught {
    pub(super) fn new(zygote: Arc<Zygote>) -> Self {
        let heard = Arc::clone(&zygote);
        let listening = tokio::spawn(async move { heard.listen().await }).abort_handle();
        Self { zygote, listening }
    }
}

impl Drop for Taught {
    fn drop(&mut self) {
        // Its channel closes with the last fork that is under way, and it ends.
        self.listening.abort();
    }
}

/// The zygotes of one jail beyond those that are always there.
#[derive(Debug)]
pub(super) struct Sets {
    slots: Mutex<HashMap<WorkerKind, Slot>>,
    /// How long a birth waits for a zygote that others make.
    turn: Duration,
}

impl Default for Sets {
    fn default() -> Self {
        Self { slots: Mutex::default(), turn: TURN }
    }
}

/// Such a zygote, as others are to see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetFacts {
    /// What its workers are born with.
    pub kind: WorkerKind,
    /// Its pid on the host.
    pub pid: u32,
    /// Workers that were forked from it and got a job.
    pub forks: u64,
}

impl Sets {
    /// The zygote of a kind; `make` makes one if there is none that lives.
    pub(super) async fn get<F: Future<Output = Result<Taught, SpawnError>>>(
        &self,
        kind: &WorkerKind,
        make: impl FnOnce() -> F,
    ) -> Result<Arc<Zygote>, SpawnError> {
        let (zygote, forks) = self.slot(kind, Instant::now());
        let mut zygote = timeout(self.turn, zygote.lock()).await.map_err(|_| SpawnError::ZygoteFailed {
            kind: kind.to_string(),
            what: "was not ready in time",
        })?;
        if let Some(taught) = zygote.as_ref().filter(|taught| !taught.zygote.is_lost()) {
            return Ok(Arc::clone(&taught.zygote));
        }
        *zygote = None;
        let taught = zygote.insert(make().await?);
        forks.store(0, Ordering::Relaxed);
        Ok(Arc::clone(&taught.zygote))
    }

    fn slot(
        &self,
        kind: &WorkerKind,
        now: Instant,
    ) -> (Arc<tokio::sync::Mutex<Option<Taught>>>, Arc<AtomicU64>) {
        let mut sets = lock(&self.slots);
        if !sets.contains_key(kind) && sets.len() >= SETS {
            let oldest = sets.iter().min_by_key(|(_, slot)| slot.last_used).map(|(kind, _)| kind.clone());
            oldest.and_then(|oldest| sets.remove(&oldest));
        }
        let slot = sets.entry(kind.clone()).or_insert_with(|| Slot {
            zygote: Arc::default(),
            last_used: now,
            forks: Arc::default(),
        });
        slot.last_used = now;
        (Arc::clone(&slot.zygote), Arc::clone(&slot.forks))
    }

    /// The zygote of a kind if there is one that lives. Nobody has asked for it.
    pub(super) fn present(&self, kind: &WorkerKind) -> Option<Arc<Zygote>> {
        let slot = Arc::clone(&lock(&self.slots).get(kind)?.zygote);
        let taught = slot.try_lock().ok()?;
        taught.as_ref().map(|taught| Arc::clone(&taught.zygote)).filter(|zygote| !zygote.is_lost())
    }

    /// Somebody got a worker of this kind, whenever it was born.
    pub(super) fn was_asked_for(&self, kind: &WorkerKind) {
        if let Some(slot) = lock(&self.slots).get_mut(kind) {
            slot.last_used = Instant::now();
            slot.forks.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Ends the zygotes of idle kinds.
    pub(super) fn sweep(&self, now: Instant) {
        lock(&self.slots).retain(|_, slot| now.saturating_duration_since(slot.last_used) < IDLE);
    }

    /// Those that live; one that is just being made is not among them.
    pub(super) fn facts(&self) -> Vec<SetFacts> {
        let sets = lock(&self.slots);
        let facts = |(kind, slot): (&WorkerKind, &Slot)| {
            let taught = slot.zygote.try_lock().ok()?;
            let zygote = &taught.as_ref().filter(|taught| !taught.zygote.is_lost())?.zygote;
            let forks = slot.forks.load(Ordering::Relaxed);
            Some(SetFacts { kind: kind.clone(), pid: zygote.pids.here, forks })
        };
        let mut all: Vec<SetFacts> = sets.iter().filter_map(facts).collect();
        all.sort_by_cached_key(|set| (set.kind.engine(), set.kind.libraries()));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::super::kind::{Library, LibrarySet};
    use super::*;

    /// The first is the one of programs: nobody has a place of his own.
    fn set(n: usize) -> WorkerKind {
        if n == 0 {
            return WorkerKind::Program;
        }
        WorkerKind::Session(LibrarySet::new(vec![Library {
            name: format!("l{n}-1.0.0"),
            id: format!("l{n}"),
            global: None,
            hash: [0; 32],
        }]))
    }

    fn known(sets: &Sets) -> Vec<usize> {
        (0..2 * SETS).filter(|n| lock(&sets.slots).contains_key(&set(*n))).collect()
    }

    #[test]
    fn the_set_that_was_not_asked_for_longest_makes_room() {
        let (sets, begin) = (Sets::default(), Instant::now());
        let at = |seconds: usize| begin + Duration::from_secs(seconds as u64);
        for n in 0..SETS {
            sets.slot(&set(n), at(n));
        }
        sets.slot(&set(0), at(SETS));
        assert_eq!(known(&sets), (0..SETS).collect::<Vec<_>>(), "there is room for so many");
        sets.slot(&set(SETS), at(SETS + 1));
        assert_eq!(known(&sets), [0].into_iter().chain(2..=SETS).collect::<Vec<_>>());
        // One that has its place takes nobody else's.
        sets.slot(&set(2), at(SETS + 2));
        assert_eq!(lock(&sets.slots).len(), SETS);
    }

    #[tokio::test]
    async fn nobody_waits_for_ever_for_a_zygote_that_others_make() {
        let sets = Sets { turn: Duration::ZERO, ..Sets::default() };
        let (slot, _) = sets.slot(&set(0), Instant::now());
        let making = slot.lock().await;
        let make = || async { panic!("somebody else does") };
        let late = sets.get(&set(0), make).await.expect_err("it takes too long");
        assert_eq!(late.to_string(), "the zygote of durable programs was not ready in time");
        assert!(late.is_temporary());
        drop(making);
    }

    #[test]
    fn an_idle_set_ends_and_one_that_is_asked_for_stays() {
        let (sets, begin) = (Sets::default(), Instant::now());
        sets.slot(&set(0), begin);
        sets.slot(&set(2), begin);
        let soon = begin + IDLE.saturating_sub(Duration::from_millis(1));
        sets.sweep(soon);
        assert_eq!(known(&sets), [0, 2]);
        sets.slot(&set(2), soon);
        sets.sweep(begin + IDLE);
        assert_eq!(known(&sets), [2]);
        sets.sweep(soon + IDLE);
        assert!(known(&sets).is_empty());
    }
}
