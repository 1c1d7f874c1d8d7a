//! Shared code of the benchmarks: figures, and the peers that are installed. Starts nothing by itself.
//!
//! Figures are printed, never asserted. Compare by ratio, in one run, on a quiet machine.

pub mod awake;
pub mod cost;
pub mod durable_peer;
pub mod figure;
pub mod floor;
pub mod peer;
pub mod written;
