//! The interruption of running code: SIGUSR1 sets a flag, the engine's hook reads it. The flag is cleared when an
//! execution starts, so that a late signal does not stop the next one.

use crate::sys;
use std::io;
use std::sync::atomic::Ordering;

/// The signal that interrupts a worker.
pub const SIGNAL: i32 = libc::SIGUSR1;

/// Installs the handler; blocking calls are restarted.
pub fn install() -> io::Result<()> {
    sys::install_interrupt_handler()
}

/// Whether an interruption has been asked for since the last [`clear`].
pub fn is_set() -> bool {
    sys::INTERRUPTED.load(Ordering::Relaxed)
}

/// Forgets an interruption that came before.
pub fn clear() {
    sys::INTERRUPTED.store(false, Ordering::Relaxed);
}
