//! The interruption of running code: SIGUSR1 sets a flag that the engine's hook reads. The flag is cleared when an
//! execution starts, so that a late signal does not stop the next one.

use crate::sys;
use std::io;
use std::sync::atomic::AtomicBool;

/// The signal that interrupts a worker.
pub const SIGNAL: i32 = libc::SIGUSR1;

/// The signal without effect: a system call that waits for the response to its notification begins again, and is notified again.
pub const REISSUE: i32 = libc::SIGUSR2;

/// Installs both handlers: the first signal stores `true` in `flag` (the flag of the first call stays). Blocking calls are restarted,
/// except polls, which return early.
pub fn install(flag: &'static AtomicBool) -> io::Result<()> {
    sys::install_interrupt_handler(flag)
}
