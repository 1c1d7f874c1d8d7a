//! Owns the engine's interface to the process: the [`Host`] of an execution, and the interrupt flag. Must not know the channel.

use std::sync::atomic::AtomicBool;
use std::time::Duration;
use vm_system_protocol::worker::{HostReply, HostRequest, WorkerEvent};

/// Set by the interrupt signal's handler; ends the running execution when the engine polls it next, which the script cannot
/// prevent. Cleared when an execution starts, so that a late signal does not stop the next one.
pub static INTERRUPT: AtomicBool = AtomicBool::new(false);

/// The services of the process that an execution uses.
pub trait Host {
    /// Sends one event of the running execution; it is within the limits and cut to size. May block (back-pressure).
    fn emit(&mut self, event: WorkerEvent);
    /// Makes a host call and blocks for the reply. On an interrupt it returns any `Failed` reply.
    fn call(&mut self, request: HostRequest) -> HostReply;
    /// Called about every millisecond while JavaScript runs: sends pending messages, reads received ones, does not block.
    fn poll(&mut self);
    /// Waits for the next timer, at most this long; returns early on an interrupt.
    fn sleep(&mut self, at_most: Duration);
}
