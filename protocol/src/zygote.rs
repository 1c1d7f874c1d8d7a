//! Supervisor ⇄ zygote. The zygote's side of the channel is in the jail; it is as hostile as a worker.
//!
//! A zygote of a library set: [`ToZygote::Library`] and its source for each library, [`ToZygote::Evaluate`], one answer; then
//! it takes forks like any other. It never gets more libraries afterwards. The zygote of durable programs:
//! [`ToZygote::PreparePrograms`], one answer, forks.

use crate::codec::{Decode, Encode};

/// What a supervisor tells a zygote.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ToZygote {
    /// Fork; the packet carries one descriptor, the newborn's end of its channel.
    Fork {
        /// Counts the orders of this zygote, from 1.
        order: u64,
        /// The newborn becomes a zygote itself, not a worker.
        as_zygote: bool,
    },
    /// A library of the set; its source follows as raw packets of at most
    /// [`PACKET_BYTES`](crate::limits::PACKET_BYTES), together `source_bytes` long.
    Library {
        /// `id-version`.
        name: String,
        /// What `require` and `import` call it.
        id: String,
        /// The global variable that it becomes.
        global: Option<String>,
        /// Length of the source (bytes).
        source_bytes: u64,
    },
    /// All libraries of the set are there: evaluate them.
    Evaluate,
    /// Build what all durable programs share: workers that are forked from now on have it.
    PreparePrograms,
}

/// What a zygote tells the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum FromZygote {
    /// Preloaded, filtered, waiting for orders. The first zygote's packet carries the listener of the clone
    /// notifications; its offspring shares it.
    Ready,
    /// The fork failed with this errno. A success is told by the worker's own hello.
    ForkFailed {
        /// Which order.
        order: u64,
        /// The errno of clone.
        errno: i32,
    },
    /// Answer to [`ToZygote::Evaluate`]: every library is there. Answer to [`ToZygote::PreparePrograms`]: all of it is.
    Loaded,
    /// Answer to [`ToZygote::Evaluate`]: a library cannot be used; the zygote is of no use.
    LibraryFailed {
        /// `id-version`.
        name: String,
        /// What it threw, or which limit it hit; cut to size.
        message: String,
    },
}
