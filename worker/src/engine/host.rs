//! Owns the engine's interface to the process: the [`Host`] of an execution, and the interrupt flag. Knows nothing of the channel.

use std::sync::atomic::AtomicBool;
use std::time::Duration;
use vm_system_protocol::worker::{HostReply, HostRequest, WorkerEvent};

/// Set by the interrupt signal's handler; the engine's next poll of the flag ends the running execution, which the script cannot
/// prevent. Cleared when an execution starts, so that a late signal does not stop the next execution.
pub static INTERRUPT: AtomicBool = AtomicBool::new(false);

/// The services of the process that an execution uses.
pub trait Host {
    /// Sends one event of the running execution; the event is within the limits and cut to size. May block (back-pressure).
    fn emit(&mut self, event: WorkerEvent);
    /// Makes a host call and blocks for the reply. After an interrupt the reply is some `Failed`.
    fn call(&mut self, request: HostRequest) -> HostReply;
    /// Called about every millisecond while JavaScript runs: sends pending messages, reads received ones, does not block.
    fn poll(&mut self);
    /// Waits for the next timer, at most this long; returns early on an interrupt.
    fn sleep(&mut self, at_most: Duration);
}
