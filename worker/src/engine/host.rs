//! Owns the engine's view of the outside: the [`Host`] that an execution is given, and the interrupt flag.
//! Must not know how messages travel.

use std::sync::atomic::AtomicBool;
use std::time::Duration;
use vm_system_protocol::worker::{HostReply, HostRequest, WorkerEvent};

/// Set by the interrupt signal's handler; ends the running execution as soon as the engine looks, which nothing in
/// the script can prevent. Cleared when an execution starts, so that a late signal does not stop the next one.
pub static INTERRUPT: AtomicBool = AtomicBool::new(false);

/// What an execution needs from the process it runs in.
pub trait Host {
    /// Takes one event of the running execution; it is within the limits and cut to size. May block (back-pressure).
    fn emit(&mut self, event: WorkerEvent);
    /// Asks the supervisor and blocks for the answer. When an interrupt comes first, any `Failed` reply will do.
    fn call(&mut self, request: HostRequest) -> HostReply;
    /// Called about every millisecond while JavaScript is busy: send what waits, read what came, do not block.
    fn poll(&mut self);
    /// Nothing to do until a timer: wait at most this long, less if an interrupt comes.
    fn sleep(&mut self, at_most: Duration);
}
