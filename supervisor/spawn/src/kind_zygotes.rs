//! Zygotes of further worker kinds: one for each set of libraries, one for durable programs, and one for each set of an owner's modules.
//! Each is started at the first request for its kind, and ended when its kind is idle or when there are too many.
//!
//! The code of the first two is the operator's (only administrators install libraries) or our own, so workers of all owners share them.
//! The modules are an owner's: the zygote compiles them and runs none, and only workers of this owner are forked from it. The
//! keeper does not hold them: they end with this supervisor, and the next supervisor starts its own. A zygote that is broken by
//! its libraries affects only sessions with that set.

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

/// Most zygotes of further kinds for all owners at a time.
const KINDS_MAX: usize = 16;
/// Most zygotes of module sets at a time.
pub const MODULE_SETS: usize = 8;
/// Most of them of one owner.
pub const OWNER_MODULE_SETS: usize = 2;
/// A zygote without requests for this long is ended.
const IDLE: Duration = Duration::from_mins(10);
/// How often idle zygotes are searched.
pub(super) const SWEEP: Duration = Duration::from_mins(1);
/// How long a request waits for a zygote that another request is starting: the longest time that this may take.
const TURN: Duration = Duration::from_millis(HELLO_MS + LIBRARY_SET_MS);

/// A kind with its zygote.
#[derive(Debug)]
struct Slot {
    /// Locked while the zygote is started: further requests wait for it in the order of arrival.
    zygote: Arc<tokio::sync::Mutex<Option<PreparedZygote>>>,
    last_used: Instant,
    forks: Arc<AtomicU64>,
}

/// A zygote with its libraries or realm loaded, and the task that waits for its exit.
#[derive(Debug)]
pub(super) struct PreparedZygote {
    zygote: Arc<Zygote>,
    listening: AbortHandle,
}

impl PreparedZygote {
    pub(super) fn new(zygote: Arc<Zygote>) -> Self {
        let listener = Arc::clone(&zygote);
        let listening = tokio::spawn(async move { listener.listen().await }).abort_handle();
        Self { zygote, listening }
    }
}

impl Drop for PreparedZygote {
    fn drop(&mut self) {
        // The channel closes after the last pending fork, and the zygote exits.
        self.listening.abort();
    }
}

/// The zygotes of one jail besides the permanent ones.
#[derive(Debug)]
pub(super) struct KindZygotes {
    slots: Mutex<HashMap<WorkerKind, Slot>>,
    /// How long a request waits for a zygote that another request is starting.
    turn: Duration,
}

impl Default for KindZygotes {
    fn default() -> Self {
        Self { slots: Mutex::default(), turn: TURN }
    }
}

/// Description of a zygote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindZygoteInfo {
    pub kind: WorkerKind,
    /// The zygote's pid on the host.
    pub pid: u32,
    /// Forks that were ordered; of a further kind, workers that were also assigned.
    pub forks: u64,
}

impl KindZygotes {
    /// The zygote of a kind; `make` starts one if none is alive.
    pub(super) async fn get<F: Future<Output = Result<PreparedZygote, SpawnError>>>(
        &self,
        kind: &WorkerKind,
        make: impl FnOnce() -> F,
    ) -> Result<Arc<Zygote>, SpawnError> {
        let (zygote, forks) = self.slot(kind, Instant::now());
        let mut zygote = timeout(self.turn, zygote.lock()).await.map_err(|_| SpawnError::ZygoteFailed {
            kind: kind.to_string(),
            what: "was not ready in time",
        })?;
        if let Some(prepared) = zygote.as_ref().filter(|prepared| !prepared.zygote.is_lost()) {
            return Ok(Arc::clone(&prepared.zygote));
        }
        *zygote = None;
        let prepared = zygote.insert(make().await?);
        forks.store(0, Ordering::Relaxed);
        Ok(Arc::clone(&prepared.zygote))
    }

    fn slot(
        &self,
        kind: &WorkerKind,
        now: Instant,
    ) -> (Arc<tokio::sync::Mutex<Option<PreparedZygote>>>, Arc<AtomicU64>) {
        let mut kind_zygotes = lock(&self.slots);
        if !kind_zygotes.contains_key(kind) {
            let most = if kind.owner().is_some() { MODULE_SETS } else { KINDS_MAX };
            limit(&mut kind_zygotes, OWNER_MODULE_SETS, |known| {
                known.owner().is_some() && known.owner() == kind.owner()
            });
            limit(&mut kind_zygotes, most, |known| known.owner().is_some() == kind.owner().is_some());
        }
        let slot = kind_zygotes.entry(kind.clone()).or_insert_with(|| Slot {
            zygote: Arc::default(),
            last_used: now,
            forks: Arc::default(),
        });
        slot.last_used = now;
        (Arc::clone(&slot.zygote), Arc::clone(&slot.forks))
    }

    /// The zygote of a kind if one is alive. Does not count as a request.
    pub(super) fn present(&self, kind: &WorkerKind) -> Option<Arc<Zygote>> {
        let slot = Arc::clone(&lock(&self.slots).get(kind)?.zygote);
        let prepared = slot.try_lock().ok()?;
        prepared.as_ref().map(|prepared| Arc::clone(&prepared.zygote)).filter(|zygote| !zygote.is_lost())
    }

    /// Counts a worker of this kind that was assigned.
    pub(super) fn note_use(&self, kind: &WorkerKind) {
        if let Some(slot) = lock(&self.slots).get_mut(kind) {
            slot.last_used = Instant::now();
            slot.forks.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Ends the zygotes of idle kinds.
    pub(super) fn sweep(&self, now: Instant) {
        lock(&self.slots).retain(|_, slot| now.saturating_duration_since(slot.last_used) < IDLE);
    }

    /// The running zygotes, without those that are being started.
    pub(super) fn infos(&self) -> Vec<KindZygoteInfo> {
        let kind_zygotes = lock(&self.slots);
        let infos = |(kind, slot): (&WorkerKind, &Slot)| {
            let prepared = slot.zygote.try_lock().ok()?;
            let zygote = &prepared.as_ref().filter(|prepared| !prepared.zygote.is_lost())?.zygote;
            let forks = slot.forks.load(Ordering::Relaxed);
            Some(KindZygoteInfo { kind: kind.clone(), pid: zygote.pids.here, forks })
        };
        let mut all: Vec<KindZygoteInfo> = kind_zygotes.iter().filter_map(infos).collect();
        all.sort_by_cached_key(|set| (set.kind.engine(), set.kind.libraries(), set.pid));
        all
    }
}

/// Removes the oldest of these kinds if there are too many for one more.
fn limit(slots: &mut HashMap<WorkerKind, Slot>, most: usize, counts: impl Fn(&WorkerKind) -> bool) {
    let counted = || slots.iter().filter(|(known, _)| counts(known));
    if counted().count() >= most {
        let oldest = counted().min_by_key(|(_, slot)| slot.last_used).map(|(known, _)| known.clone());
        oldest.and_then(|oldest| slots.remove(&oldest));
    }
}

#[cfg(test)]
mod tests {
    use super::super::kind::{Library, LibrarySet, ModuleSet, ModuleTexts};
    use super::*;

    /// Kind 0 is the kind of programs: it has no reserved slot.
    fn set(n: usize) -> WorkerKind {
        if n == 0 {
            return WorkerKind::Program;
        }
        WorkerKind::session(LibrarySet::new(vec![Library {
            name: format!("l{n}-1.0.0"),
            id: format!("l{n}"),
            global: None,
            hash: [0; 32],
        }]))
    }

    fn known(kind_zygotes: &KindZygotes) -> Vec<usize> {
        (0..2 * KINDS_MAX).filter(|n| lock(&kind_zygotes.slots).contains_key(&set(*n))).collect()
    }

    #[test]
    fn the_least_recently_used_kind_is_evicted() {
        let (kind_zygotes, begin) = (KindZygotes::default(), Instant::now());
        let at = |seconds: usize| begin + Duration::from_secs(seconds as u64);
        for n in 0..KINDS_MAX {
            kind_zygotes.slot(&set(n), at(n));
        }
        kind_zygotes.slot(&set(0), at(KINDS_MAX));
        assert_eq!(known(&kind_zygotes), (0..KINDS_MAX).collect::<Vec<_>>(), "this many fit");
        kind_zygotes.slot(&set(KINDS_MAX), at(KINDS_MAX + 1));
        assert_eq!(known(&kind_zygotes), [0].into_iter().chain(2..=KINDS_MAX).collect::<Vec<_>>());
        // A known kind evicts no other.
        kind_zygotes.slot(&set(2), at(KINDS_MAX + 2));
        assert_eq!(lock(&kind_zygotes.slots).len(), KINDS_MAX);
    }

    #[test]
    fn modules_take_no_slot_of_libraries_and_few_of_one_owner() {
        let (kind_zygotes, begin) = (KindZygotes::default(), Instant::now());
        let at = |seconds: usize| begin + Duration::from_secs(seconds as u64);
        let of = |owner: &str| {
            WorkerKind::Session(LibrarySet::default(), Some(ModuleSet::new(owner, ModuleTexts::new())))
        };
        for n in 0..KINDS_MAX {
            kind_zygotes.slot(&set(n), begin);
        }
        let knows = |kind: &WorkerKind| lock(&kind_zygotes.slots).contains_key(kind);
        let others = of("uid:2");
        kind_zygotes.slot(&others, at(1));
        let first: Vec<WorkerKind> = (0..OWNER_MODULE_SETS).map(|_| of("uid:1")).collect();
        first.iter().zip(2..).for_each(|(kind, second)| drop(kind_zygotes.slot(kind, at(second))));
        let next = of("uid:1");
        kind_zygotes.slot(&next, at(10));
        assert!(knows(&next) && knows(&first[1]) && !knows(&first[0]), "the oldest of this owner");
        assert!(knows(&others));
        for n in 0..MODULE_SETS {
            kind_zygotes.slot(&of(&format!("uid:{}", 10 + n)), at(20 + n));
        }
        assert!(!knows(&others) && !knows(&next), "the oldest of all owners");
        assert_eq!(known(&kind_zygotes).len(), KINDS_MAX, "libraries and programs stay");
        assert_eq!(lock(&kind_zygotes.slots).len(), KINDS_MAX + MODULE_SETS);
    }

    #[tokio::test]
    async fn a_request_waits_for_the_start_of_a_zygote_for_a_bounded_time() {
        let kind_zygotes = KindZygotes { turn: Duration::ZERO, ..KindZygotes::default() };
        let (slot, _) = kind_zygotes.slot(&set(0), Instant::now());
        let making = slot.lock().await;
        let make = || async { panic!("another request does") };
        let late = kind_zygotes.get(&set(0), make).await.expect_err("it takes too long");
        assert_eq!(late.to_string(), "the zygote of durable programs was not ready in time");
        assert!(late.is_temporary());
        drop(making);
    }

    #[test]
    fn an_idle_kind_ends_and_a_used_one_stays() {
        let (kind_zygotes, begin) = (KindZygotes::default(), Instant::now());
        kind_zygotes.slot(&set(0), begin);
        kind_zygotes.slot(&set(2), begin);
        let soon = begin + IDLE.saturating_sub(Duration::from_millis(1));
        kind_zygotes.sweep(soon);
        assert_eq!(known(&kind_zygotes), [0, 2]);
        kind_zygotes.slot(&set(2), soon);
        kind_zygotes.sweep(begin + IDLE);
        assert_eq!(known(&kind_zygotes), [2]);
        kind_zygotes.sweep(soon + IDLE);
        assert!(known(&kind_zygotes).is_empty());
    }
}
