//! Supervisor ⇄ zygote. The zygote's side of the channel is in the jail and is treated as hostile, like a worker.
//!
//! A zygote of a library set gets [`ToZygote::Library`] and the source for each library, then [`ToZygote::Evaluate`], to which it
//! replies; one of a module set then gets [`ToZygote::Module`] and the text of each module, and [`ToZygote::Compile`], to which it replies.
//! After that it executes fork orders like any other zygote, and never gets more of them. The zygote of durable programs gets
//! [`ToZygote::PreparePrograms`], replies, and executes fork orders.

use crate::codec::{Decode, Encode};

/// Messages of a supervisor to a zygote.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ToZygote {
    /// Fork; the packet carries one descriptor, the child's end of its channel.
    Fork {
        /// Counts the orders of this zygote, from 1.
        order: u64,
        /// The child becomes a zygote, not a worker.
        as_zygote: bool,
    },
    /// A library of the set; its source follows as raw packets of at most
    /// [`PACKET_BYTES`](crate::limits::PACKET_BYTES), together `source_bytes` long.
    Library {
        /// `id-version`.
        name: String,
        /// The name in `require` and `import`.
        id: String,
        /// The global variable.
        global: Option<String>,
        /// Length of the source (bytes).
        source_bytes: u64,
    },
    /// All libraries of the set were sent: evaluate them.
    Evaluate,
    /// Build the realm and prelude of durable programs, which all workers that are forked later share.
    PreparePrograms,
    /// A `CommonJS` module of the set; its text follows like the source of a library.
    Module {
        /// Relative to the worktree.
        path: String,
        /// Length of the text (bytes).
        source_bytes: u64,
    },
    /// All modules of the set were sent: compile them, and run none.
    Compile,
}

/// Messages of a zygote to the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum FromZygote {
    /// Preloaded, filtered, waiting for orders. The first zygote's packet carries the listener of the clone
    /// notifications, which also serves all processes forked from it.
    Ready,
    /// The fork failed. A success is reported by the child's hello.
    ForkFailed {
        order: u64,
        /// The errno of clone.
        errno: i32,
    },
    /// Reply to [`ToZygote::Evaluate`], [`ToZygote::PreparePrograms`] and [`ToZygote::Compile`]: done.
    Loaded,
    /// Reply to [`ToZygote::Evaluate`]: a library failed; the zygote exits.
    LibraryFailed {
        /// `id-version`.
        name: String,
        /// The exception or the limit that was reached; cut to size.
        message: String,
    },
}
