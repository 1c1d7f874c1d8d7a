//! Newborns without a job: of each kind of worker that was asked for lately one is born before it is needed, so that an
//! order does not wait for a birth. Decides who takes one and when the next is due; how one is born is the spawner's.
//!
//! ```text
//!          first message of the last one           born
//!  Empty ────────────────────────────────▶ Due ─▶ Making ─▶ Ready ──taken──▶ Empty
//!    ▲                                              │ taken by whoever waits for it
//!    └──────────────── it cannot be made ◀──────────┘
//! ```
//! - It has run none but our code, is known by the kernel's word and was looked at from outside, like every newborn. What is
//!   a session's own (limits, a place with the keeper, whose death it would be) comes when it is taken.
//! - The keeper does not keep it: it ends with its channel, which is ours alone. Nobody hears of its end.
//! - The next one is made when the worker that was born last has said its first word: not while it needs the processor.
//!   One at a time; whoever finds none that is ready or on its way has a birth of its own.
//! - One whose zygote is dead is not used: there may be a reason.

use super::control::lock;
use super::kind::WorkerKind;
use super::spawner::Newborn;
use super::zygote::Zygote;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;
use vm_system_sandbox::socket;

/// Kinds that have one at a time: those that were asked for last.
const KINDS: usize = 4;
/// A kind that nobody asked for this long has none.
const IDLE: Duration = Duration::from_mins(10);

/// A newborn without a job.
pub(super) struct Ready {
    /// Who bore it; it does not keep a zygote that is let go.
    pub(super) zygote: Weak<Zygote>,
    /// Our end of its channel.
    pub(super) ours: AsyncFd<OwnedFd>,
    pub(super) newborn: Newborn,
    /// Its virtual memory when it was looked at (bytes).
    pub(super) mapped_bytes: u64,
}

impl Ready {
    /// Whether it can be given a job: it lives, and so does its zygote. The kernel is asked, because nobody may have heard
    /// of an end yet. A newborn has nothing to say, so its channel is readable when it is dead, and only then.
    fn is_good(&self) -> bool {
        let Some(zygote) = self.zygote.upgrade().filter(|zygote| !zygote.is_lost()) else { return false };
        let mut ends = socket::PollSet::with_capacity(2);
        ends.add(self.ours.get_ref());
        ends.add(&zygote.pidfd);
        matches!(ends.wait(Some(Duration::ZERO)), Ok(false))
    }
}

#[derive(Default)]
enum Place {
    #[default]
    Empty,
    /// One is to be made.
    Due,
    /// One is being made; for whom, if somebody waits for it.
    Making(Option<oneshot::Sender<Ready>>),
    Ready(Box<Ready>),
}

struct Kind {
    place: Place,
    last_asked: Instant,
}

#[derive(Default)]
struct Table {
    kinds: HashMap<WorkerKind, Kind>,
    closed: bool,
}

/// The newborns of one jail that have no job.
#[derive(Default)]
pub(super) struct Reserve {
    table: Mutex<Table>,
    /// One is due.
    due: Notify,
}

impl std::fmt::Debug for Reserve {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reserve").finish_non_exhaustive()
    }
}

/// What an order finds.
enum Found {
    Nothing,
    Ready(Box<Ready>),
    OnItsWay(oneshot::Receiver<Ready>),
}

/// Has the next one made once it is dropped: when its worker has spoken, or will never do so.
#[derive(Debug)]
pub(super) struct Successor {
    reserve: Weak<Reserve>,
    kind: WorkerKind,
}

impl Drop for Successor {
    fn drop(&mut self) {
        if let Some(reserve) = self.reserve.upgrade() {
            reserve.is_due(&self.kind);
        }
    }
}

impl Reserve {
    /// One of this kind that lives, if there is one or will be at once.
    pub(super) async fn take(&self, kind: &WorkerKind) -> Option<Ready> {
        let ready = match self.find(kind, Instant::now()) {
            Found::Nothing => return None,
            Found::Ready(ready) => *ready,
            // Making one has its deadlines.
            Found::OnItsWay(ready) => ready.await.ok()?,
        };
        ready.is_good().then_some(ready)
    }

    fn find(&self, kind: &WorkerKind, now: Instant) -> Found {
        let mut table = lock(&self.table);
        let Some(known) = table.kinds.get_mut(kind) else { return Found::Nothing };
        known.last_asked = now;
        match std::mem::take(&mut known.place) {
            // Whoever has a birth of its own says again when the next one is due.
            Place::Empty | Place::Due => Found::Nothing,
            Place::Ready(ready) => Found::Ready(ready),
            Place::Making(None) => {
                let (sender, receiver) = oneshot::channel();
                known.place = Place::Making(Some(sender));
                Found::OnItsWay(receiver)
            }
            taken @ Place::Making(Some(_)) => {
                known.place = taken;
                Found::Nothing
            }
        }
    }

    /// For a worker that was just born: the next of its kind is due when it has spoken.
    pub(super) fn successor(self: &Arc<Self>, kind: &WorkerKind) -> Successor {
        Successor { reserve: Arc::downgrade(self), kind: kind.clone() }
    }

    fn is_due(&self, kind: &WorkerKind) {
        if self.note(kind, Instant::now()) {
            self.due.notify_one();
        }
    }

    fn note(&self, kind: &WorkerKind, now: Instant) -> bool {
        let mut table = lock(&self.table);
        if table.closed {
            return false;
        }
        if !table.kinds.contains_key(kind) && table.kinds.len() >= KINDS {
            let oldest =
                table.kinds.iter().min_by_key(|(_, known)| known.last_asked).map(|(kind, _)| kind.clone());
            oldest.and_then(|oldest| table.kinds.remove(&oldest));
        }
        let known =
            table.kinds.entry(kind.clone()).or_insert_with(|| Kind { place: Place::Empty, last_asked: now });
        let is_empty = matches!(known.place, Place::Empty);
        if is_empty {
            known.place = Place::Due;
        }
        is_empty
    }

    /// Waits until one is to be made, and says of which kind. Whoever asks makes it and [puts](Self::put) it here.
    pub(super) async fn wanted(&self) -> WorkerKind {
        loop {
            if let Some(kind) = self.next_due() {
                return kind;
            }
            self.due.notified().await;
        }
    }

    fn next_due(&self) -> Option<WorkerKind> {
        let mut table = lock(&self.table);
        let (kind, known) = table.kinds.iter_mut().find(|(_, known)| matches!(known.place, Place::Due))?;
        known.place = Place::Making(None);
        Some(kind.clone())
    }

    /// What came of making one; nobody wants it any more if its kind is forgotten.
    pub(super) fn put(&self, kind: &WorkerKind, made: Option<Ready>) {
        let mut table = lock(&self.table);
        let Some(known) = table.kinds.get_mut(kind) else { return };
        let Place::Making(waiting) = std::mem::take(&mut known.place) else { return };
        let Some(made) = made else { return };
        let left = match waiting {
            Some(waiting) => waiting.send(made).err(),
            None => Some(made),
        };
        if let Some(ready) = left {
            known.place = Place::Ready(Box::new(ready));
        }
    }

    /// Lets those go that nobody asked for long, and those that nobody will get.
    pub(super) fn sweep(&self, now: Instant) {
        let mut table = lock(&self.table);
        table.kinds.retain(|_, known| now.saturating_duration_since(known.last_asked) < IDLE);
        for known in table.kinds.values_mut() {
            if matches!(&known.place, Place::Ready(ready) if !ready.is_good()) {
                known.place = Place::Empty;
            }
        }
    }

    /// Ends all of them for good.
    pub(super) fn close(&self) {
        let kinds = {
            let mut table = lock(&self.table);
            table.closed = true;
            std::mem::take(&mut table.kinds)
        };
        for known in kinds.into_values() {
            if let Place::Ready(ready) = known.place {
                // It would end by itself; this way it is certain.
                let _ = ready.newborn.pidfd.kill();
            }
        }
    }

    /// Pids on the host of those that wait.
    pub(super) fn pids(&self) -> Vec<u32> {
        let table = lock(&self.table);
        let pid = |known: &Kind| match &known.place {
            Place::Ready(ready) => Some(ready.newborn.pids.here),
            _ => None,
        };
        table.kinds.values().filter_map(pid).collect()
    }
}
