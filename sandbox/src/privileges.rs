//! Capabilities, securebits, `no_new_privs`, memory-deny-write-execute, dumpable: what a process may never get back.

use crate::sys::{clear_capabilities, prctl};
use std::io;

/// NOROOT, `NO_SETUID_FIXUP`, `NO_CAP_AMBIENT_RAISE` with their locks, and the lock of `KEEP_CAPS`.
const SECUREBITS: libc::c_ulong = 0xef;
/// `PR_MDWE_REFUSE_EXEC_GAIN`.
const REFUSE_EXEC_GAIN: libc::c_ulong = 1;
/// More capabilities than any kernel has.
const CAPABILITY_NUMBERS: libc::c_ulong = 64;

/// Drops every capability from every set, locks the securebits, sets `no_new_privs` and makes the process not dumpable
/// (its memory and `/proc` files are for the owner of its user namespace only).
pub fn drop_all() -> io::Result<()> {
    for capability in 0..CAPABILITY_NUMBERS {
        match prctl(libc::PR_CAPBSET_DROP, [capability, 0, 0, 0]) {
            Ok(_) => {}
            // Past the kernel's last capability, or without the right to drop (which an empty set below makes moot).
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EPERM)) => break,
            Err(error) => return Err(error),
        }
    }
    prctl(libc::PR_CAP_AMBIENT, [libc::PR_CAP_AMBIENT_CLEAR_ALL as libc::c_ulong, 0, 0, 0])?;
    match prctl(libc::PR_SET_SECUREBITS, [SECUREBITS, 0, 0, 0]) {
        Ok(_) => {}
        // Needs CAP_SETPCAP, which a plain user without a user namespace never had.
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => {}
        Err(error) => return Err(error),
    }
    clear_capabilities()?;
    prctl(libc::PR_SET_NO_NEW_PRIVS, [1, 0, 0, 0])?;
    prctl(libc::PR_SET_DUMPABLE, [0, 0, 0, 0])?;
    Ok(())
}

/// No memory that was or is writable may become executable (kernel >= 6.3: `false` where it is older).
pub fn deny_write_execute() -> io::Result<bool> {
    match prctl(libc::PR_SET_MDWE, [REFUSE_EXEC_GAIN, 0, 0, 0]) {
        Ok(_) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(false),
        Err(error) => Err(error),
    }
}
