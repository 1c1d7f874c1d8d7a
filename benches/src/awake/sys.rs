//! The only unsafe code of the benchmarks: a thread's scheduling policy.

use std::io;

/// Makes the calling thread run only while no other thread is ready to run on its processor.
pub(super) fn only_when_idle() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: 0 means the calling thread, and the kernel only reads the parameters, which outlive the call.
    let set = unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
