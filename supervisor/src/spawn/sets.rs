//! Zygotes that have libraries: one for each set that sessions ask for, made when it is first asked for, ended when it was
//! not asked for long, or when there are too many.
//!
//! Their code is the operator's (only administrators install libraries), so sessions of all owners share them. The keeper
//! does not keep them: they end with this supervisor, and the next one makes its own. One that its libraries have broken
//! harms nobody but sessions of that set.

use super::control::lock;
use super::error::{LibraryError, SpawnError};
use super::zygote::Zygote;
use crate::libraries::Shelf;
use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use vm_system_protocol::limits::LIBRARY_SET_BYTES;

/// Sets that have a zygote at a time.
const SETS: usize = 16;
/// A set that no session asked for this long loses its zygote.
const IDLE: Duration = Duration::from_mins(10);
/// How often idle sets are looked for.
pub(super) const SWEEP: Duration = Duration::from_mins(1);

/// An installed library by the hash of its source.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Library {
    /// `id-version`.
    pub name: String,
    /// What `require` and `import` call it.
    pub id: String,
    /// The global variable that it becomes.
    pub global: Option<String>,
    /// SHA-256 of its source.
    pub hash: [u8; 32],
}

/// The libraries of a session, sorted by name. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct LibrarySet(Arc<[Library]>);

impl LibrarySet {
    /// A set, in any order.
    pub fn new(mut libraries: Vec<Library>) -> Self {
        libraries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Self(libraries.into())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `id-version` of each.
    pub fn names(&self) -> Vec<String> {
        self.0.iter().map(|library| library.name.clone()).collect()
    }

    /// Their sources, as they were installed.
    pub(super) async fn sources(&self, shelf: &Shelf) -> Result<Vec<(Library, String)>, SpawnError> {
        let (libraries, shelf) = (Arc::clone(&self.0), shelf.clone());
        let read = tokio::task::spawn_blocking(move || {
            let mut bytes = 0;
            let read = libraries.iter().map(|library| {
                let name = library.name.clone();
                let source = shelf.get(&library.hash).map_err(|error| LibraryError::Corrupt {
                    name: name.clone(),
                    problem: error.to_string(),
                })?;
                bytes += source.len();
                if bytes > LIBRARY_SET_BYTES {
                    let message = format!(
                        "the libraries of its template have more than {LIBRARY_SET_BYTES} bytes together"
                    );
                    return Err(LibraryError::Failed { name, message });
                }
                Ok((library.clone(), source))
            });
            read.collect::<Result<Vec<_>, _>>()
        });
        match read.await {
            Ok(read) => Ok(read?),
            Err(error) => Err(SpawnError::Io { what: "read libraries", error: std::io::Error::other(error) }),
        }
    }
}

/// A set with its zygote.
#[derive(Debug)]
struct Slot {
    /// Held while the zygote is made: who comes meanwhile waits for it.
    zygote: Arc<tokio::sync::Mutex<Option<Taught>>>,
    last_used: Instant,
    forks: Arc<AtomicU64>,
}

/// A zygote that has its libraries, and the task that hears its end.
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

/// The zygotes of all sets of one jail.
#[derive(Debug, Default)]
pub(super) struct Sets(Mutex<HashMap<LibrarySet, Slot>>);

/// A zygote of a set, as others are to see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetFacts {
    /// Its libraries.
    pub libraries: Vec<String>,
    /// Its pid on the host.
    pub pid: u32,
    /// Sessions that were forked from it.
    pub forks: u64,
}

impl Sets {
    /// The zygote of a set; `make` makes one if there is none that lives.
    pub(super) async fn get<F: Future<Output = Result<Taught, SpawnError>>>(
        &self,
        set: &LibrarySet,
        make: impl FnOnce() -> F,
    ) -> Result<Arc<Zygote>, SpawnError> {
        let (zygote, forks) = self.slot(set, Instant::now());
        let mut zygote = zygote.lock().await;
        if let Some(taught) = zygote.as_ref().filter(|taught| !taught.zygote.is_lost()) {
            forks.fetch_add(1, Ordering::Relaxed);
            return Ok(Arc::clone(&taught.zygote));
        }
        *zygote = None;
        let taught = zygote.insert(make().await?);
        forks.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::clone(&taught.zygote))
    }

    fn slot(
        &self,
        set: &LibrarySet,
        now: Instant,
    ) -> (Arc<tokio::sync::Mutex<Option<Taught>>>, Arc<AtomicU64>) {
        let mut sets = lock(&self.0);
        if !sets.contains_key(set) && sets.len() >= SETS {
            let oldest = sets.iter().min_by_key(|(_, slot)| slot.last_used).map(|(set, _)| set.clone());
            oldest.and_then(|oldest| sets.remove(&oldest));
        }
        let slot = sets.entry(set.clone()).or_insert_with(|| Slot {
            zygote: Arc::default(),
            last_used: now,
            forks: Arc::default(),
        });
        slot.last_used = now;
        (Arc::clone(&slot.zygote), Arc::clone(&slot.forks))
    }

    /// Ends the zygotes of idle sets.
    pub(super) fn sweep(&self, now: Instant) {
        lock(&self.0).retain(|_, slot| now.saturating_duration_since(slot.last_used) < IDLE);
    }

    /// Those that live; one that is just being made is not among them.
    pub(super) fn facts(&self) -> Vec<SetFacts> {
        let sets = lock(&self.0);
        let facts = |(set, slot): (&LibrarySet, &Slot)| {
            let taught = slot.zygote.try_lock().ok()?;
            let zygote = &taught.as_ref().filter(|taught| !taught.zygote.is_lost())?.zygote;
            let forks = slot.forks.load(Ordering::Relaxed);
            Some(SetFacts { libraries: set.names(), pid: zygote.pids.here, forks })
        };
        let mut all: Vec<SetFacts> = sets.iter().filter_map(facts).collect();
        all.sort_unstable_by(|a, b| a.libraries.cmp(&b.libraries));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(n: usize) -> LibrarySet {
        LibrarySet::new(vec![Library {
            name: format!("l{n}-1.0.0"),
            id: format!("l{n}"),
            global: None,
            hash: [0; 32],
        }])
    }

    fn known(sets: &Sets) -> Vec<usize> {
        (0..2 * SETS).filter(|n| lock(&sets.0).contains_key(&set(*n))).collect()
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
        assert_eq!(lock(&sets.0).len(), SETS);
    }

    #[test]
    fn an_idle_set_ends_and_one_that_is_asked_for_stays() {
        let (sets, begin) = (Sets::default(), Instant::now());
        sets.slot(&set(1), begin);
        sets.slot(&set(2), begin);
        let soon = begin + IDLE.saturating_sub(Duration::from_millis(1));
        sets.sweep(soon);
        assert_eq!(known(&sets), [1, 2]);
        sets.slot(&set(2), soon);
        sets.sweep(begin + IDLE);
        assert_eq!(known(&sets), [2]);
        sets.sweep(soon + IDLE);
        assert!(known(&sets).is_empty());
    }
}
