//! Capabilities, securebits, `no_new_privs`, memory-deny-write-execute, dumpable: privileges that a process drops for good.

use crate::sys::{Call, clear_capabilities};
use std::io;

/// NOROOT, `NO_SETUID_FIXUP`, `NO_CAP_AMBIENT_RAISE` with their locks, and the lock of `KEEP_CAPS`.
const SECUREBITS: usize = 0xef;
/// More capabilities than any kernel has.
const CAPABILITY_NUMBERS: usize = 64;

/// Drops every capability from every set, locks the securebits, sets `no_new_privs` and makes the process not dumpable
/// (only the owner of its user namespace can access its memory and `/proc` files).
pub fn drop_all() -> io::Result<()> {
    for capability in 0..CAPABILITY_NUMBERS {
        match Call::drop_capability(capability).make() {
            Ok(_) => {}
            // Past the kernel's last capability, or without the right to drop (the sets are emptied below anyway).
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EPERM)) => break,
            Err(error) => return Err(error),
        }
    }
    Call::CLEAR_AMBIENT.make()?;
    match Call::set_securebits(SECUREBITS).make() {
        Ok(_) => {}
        // Needs CAP_SETPCAP, which an ordinary user without a user namespace does not have.
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => {}
        Err(error) => return Err(error),
    }
    clear_capabilities()?;
    Call::NO_NEW_PRIVILEGES.make()?;
    Call::NOT_DUMPABLE.make()?;
    Ok(())
}

/// Forbids making memory executable that is or was writable. `false`: the kernel is older than 6.3.
pub fn deny_write_execute() -> io::Result<bool> {
    match Call::REFUSE_EXEC_GAIN.make() {
        Ok(_) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(false),
        Err(error) => Err(error),
    }
}
