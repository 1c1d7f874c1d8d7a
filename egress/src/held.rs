//! Memory for what servers have sent and no exchange has taken yet: of one connection, of one owner and of all. Bytes on the wire say
//! little about it: a field of a head can be one byte. Bounds the connection and the owner; what exceeds a bound ends its connection.

use crate::failure::ExchangeFailure;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Memory of all owners; a part of the address space of the process, with the stacks, code and tables of all connections beside it.
const ALL_BYTES: usize = 1 << 30;
/// Memory of a connection on which nothing is held: buffers of TLS and HTTP.
const CONNECTION_BYTES: usize = 128 * 1024;
/// Memory of heads, interim responses and trailers that wait on a connection, besides those of each exchange.
const HEADS_BYTES: usize = 512 * 1024;
/// The same for each exchange: a head with as many fields and bytes as a response may have, and trailers.
const HEADS_OF_EXCHANGE_BYTES: usize = 320 * 1024;
/// Bytes of bodies that wait on a connection are no more than its window, which the library sees to.
const DATA_BYTES: usize = crate::client::CONNECTION_WINDOW_BYTES as usize;
/// Memory of a head with few fields, and of each further field: the tables of both are larger than what is in them.
const HEAD_BYTES: usize = 1_024;
const FIELD_BYTES: usize = 256;

/// Memory of all owners, in use and at most.
#[derive(Debug)]
pub(crate) struct Memory {
    used: AtomicUsize,
    most: usize,
}

/// Memory of one owner.
#[derive(Debug, Clone)]
pub(crate) struct OwnersMemory {
    own: Arc<AtomicUsize>,
    all: Arc<Memory>,
}

/// Heads and bodies that have arrived from a server.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Arrived {
    /// Heads of responses, interim responses, trailers.
    pub(crate) heads: usize,
    /// The fields in them.
    pub(crate) fields: usize,
    /// Their bytes.
    pub(crate) head_bytes: usize,
    /// Bytes of bodies.
    pub(crate) data: usize,
}

/// Memory of one connection: heads and bodies that no exchange has taken.
#[derive(Debug)]
pub(crate) struct Held {
    memory: OwnersMemory,
    /// Heads, interim responses, trailers; those of an exchange that has ended count until none is under way.
    heads: AtomicUsize,
    /// Bodies.
    data: AtomicUsize,
    exchanges: AtomicUsize,
    /// Exchanges at a time since there was none.
    peak: AtomicUsize,
    failure: OnceLock<ExchangeFailure>,
}

impl Memory {
    pub(crate) fn new() -> Arc<Self> {
        Self::with_most(ALL_BYTES)
    }

    pub(crate) fn with_most(most: usize) -> Arc<Self> {
        Arc::new(Self { used: AtomicUsize::new(0), most })
    }
}

impl OwnersMemory {
    pub(crate) fn new(all: &Arc<Memory>) -> Self {
        Self { own: Arc::default(), all: Arc::clone(all) }
    }

    /// Counts what exists already; whether the owner leaves as much free as it has. The first one may have half, the next one half of
    /// the rest: none can take what the others need.
    fn add(&self, bytes: usize) -> bool {
        let own = self.own.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let used = self.all.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        own <= self.all.most.saturating_sub(used)
    }

    fn subtract(&self, bytes: usize) {
        self.own.fetch_sub(bytes, Ordering::Relaxed);
        self.all.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn failure() -> ExchangeFailure {
        ExchangeFailure::limit(
            "the connections of this owner hold too much that was sent by servers and not read by scripts",
        )
    }
}

impl Held {
    /// Of a new connection.
    pub(crate) fn new(memory: OwnersMemory) -> Result<Self, ExchangeFailure> {
        let [heads, data, exchanges, peak] = [0; 4].map(AtomicUsize::new);
        let has_memory = memory.add(CONNECTION_BYTES);
        // Counted from here on: it is subtracted when this is dropped.
        let held = Self { memory, heads, data, exchanges, peak, failure: OnceLock::new() };
        if has_memory { Ok(held) } else { Err(OwnersMemory::failure()) }
    }

    pub(crate) fn begin_exchange(&self) {
        let exchanges = self.exchanges.fetch_add(1, Ordering::Relaxed) + 1;
        self.peak.fetch_max(exchanges, Ordering::Relaxed);
    }

    pub(crate) fn end_exchange(&self) {
        if self.exchanges.fetch_sub(1, Ordering::Relaxed) == 1 {
            // Heads and bodies of exchanges that were given up have gone with them.
            self.peak.store(0, Ordering::Relaxed);
            for held in [&self.heads, &self.data] {
                self.memory.subtract(held.swap(0, Ordering::Relaxed));
            }
        }
    }

    pub(crate) fn add(&self, arrived: &Arrived) {
        // A coded text is shorter than itself.
        let head = arrived.heads * HEAD_BYTES + arrived.fields * FIELD_BYTES + 2 * arrived.head_bytes;
        let heads = self.heads.fetch_add(head, Ordering::Relaxed) + head;
        let before = self.data.load(Ordering::Relaxed);
        let after = before.saturating_add(arrived.data).min(DATA_BYTES);
        self.data.store(after, Ordering::Relaxed);
        let has_memory = self.memory.add(head + (after - before));
        let peak = self.peak.load(Ordering::Relaxed);
        if heads > HEADS_BYTES + peak.saturating_mul(HEADS_OF_EXCHANGE_BYTES) {
            let _ = self.failure.set(ExchangeFailure::limit(
                "the server sent too many heads besides those of its responses (interim responses, trailers)",
            ));
        } else if !has_memory {
            let _ = self.failure.set(OwnersMemory::failure());
        }
    }

    /// An exchange has taken the head of its response, with so many fields.
    pub(crate) fn take_head(&self, fields: usize) {
        self.take(&self.heads, HEAD_BYTES + fields * FIELD_BYTES);
    }

    /// An exchange has taken so many bytes of its body.
    pub(crate) fn take_data(&self, bytes: usize) {
        self.take(&self.data, bytes);
    }

    fn take(&self, held: &AtomicUsize, bytes: usize) {
        let before = held.load(Ordering::Relaxed);
        let taken = before.min(bytes);
        held.store(before - taken, Ordering::Relaxed);
        self.memory.subtract(taken);
    }

    /// Whether the next exchange should begin on another connection: heads of exchanges that have ended still count here.
    pub(crate) fn is_worn(&self) -> bool {
        self.heads.load(Ordering::Relaxed) > HEADS_BYTES / 2
    }

    /// Why the connection was ended; `None`: no bound is exceeded.
    pub(crate) fn failure(&self) -> Option<ExchangeFailure> {
        self.failure.get().cloned()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let held = self.heads.load(Ordering::Relaxed) + self.data.load(Ordering::Relaxed);
        self.memory.subtract(CONNECTION_BYTES + held);
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Arrived, CONNECTION_BYTES, HEADS_BYTES, HEADS_OF_EXCHANGE_BYTES, Held, Memory, OwnersMemory,
    };
    use std::sync::atomic::Ordering;

    fn connection(memory: &OwnersMemory) -> Held {
        Held::new(memory.clone()).expect("there is memory")
    }

    fn data(bytes: usize) -> Arrived {
        Arrived { data: bytes, ..Arrived::default() }
    }

    #[test]
    fn an_owner_holds_no_more_than_it_leaves_free_and_returns_it() {
        let all = Memory::with_most(64 * CONNECTION_BYTES);
        let (first, second) = (OwnersMemory::new(&all), OwnersMemory::new(&all));
        let many: Vec<Held> = std::iter::from_fn(|| Held::new(first.clone()).ok()).take(100).collect();
        assert_eq!(many.len(), 32, "half");
        let other = connection(&second);
        other.begin_exchange();
        other.add(&data(8 * CONNECTION_BYTES));
        assert_eq!(other.failure(), None);
        other.add(&data(8 * CONNECTION_BYTES));
        assert!(other.failure().is_some_and(|failure| failure.code() == "ERR_NET_LIMIT"));
        drop((many, other));
        assert_eq!(all.used.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn heads_that_nobody_takes_are_bounded_however_often_other_exchanges_begin() {
        let all = Memory::new();
        let held = connection(&OwnersMemory::new(&all));
        held.begin_exchange();
        let mut heads = 0;
        while held.failure().is_none() {
            // Interim responses of the first exchange, and a whole one beside it.
            held.add(&Arrived { heads: 1, fields: 1, head_bytes: 5, data: 0 });
            heads += 1;
            held.begin_exchange();
            held.add(&Arrived { heads: 1, fields: 10, head_bytes: 0, data: 0 });
            held.take_head(10);
            held.end_exchange();
        }
        let most = (HEADS_BYTES + 2 * HEADS_OF_EXCHANGE_BYTES) / 1_024;
        assert!(heads < most && held.is_worn(), "{heads}");
        held.end_exchange();
        assert!(!held.is_worn());
        assert_eq!(all.used.load(Ordering::Relaxed), CONNECTION_BYTES);
    }

    #[test]
    fn a_long_conversation_in_which_everything_is_taken_holds_nothing() {
        let held = connection(&OwnersMemory::new(&Memory::new()));
        held.begin_exchange();
        for _ in 0..100_000 {
            held.begin_exchange();
            held.add(&Arrived { heads: 1, fields: 20, head_bytes: 0, data: 0 });
            held.take_head(20);
            held.add(&data(100_000));
            held.take_data(100_000);
            held.end_exchange();
        }
        assert_eq!(held.failure(), None);
        assert!(!held.is_worn());
    }
}
