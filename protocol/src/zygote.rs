//! Supervisor ⇄ zygote. The zygote's side of the channel is in the jail; it is as hostile as a worker.

use crate::codec::{Decode, Encode};

/// What a supervisor tells a zygote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum ToZygote {
    /// Fork; the packet carries one descriptor, the newborn's end of its channel.
    Fork {
        /// Counts the orders of this zygote, from 1.
        order: u64,
        /// The newborn becomes a zygote itself, not a worker.
        as_zygote: bool,
    },
}

/// What a zygote tells the supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
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
}
