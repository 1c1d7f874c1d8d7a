//! Capabilities, securebits, `no_new_privs`, memory-deny-write-execute, dumpable: privileges that a process drops for good.

use crate::identity::Identity;
use crate::sys::{Call, keep_capabilities};
use nix::unistd::{Gid, Uid, getresgid, getresuid, setgroups, setresgid, setresuid};
use std::io;

/// NOROOT, `NO_SETUID_FIXUP`, `NO_CAP_AMBIENT_RAISE` with their locks, and the lock of `KEEP_CAPS`.
const SECUREBITS: usize = 0xef;
/// More capabilities than any kernel has.
const CAPABILITY_NUMBERS: usize = 64;
/// `CAP_KILL`, `CAP_SETGID`, `CAP_SETUID`: to start a process as another user and to end it.
const OF_STARTERS: &[usize] = &[5, 6, 7];
/// `CAP_SYS_ADMIN`.
const ADMINISTRATION: usize = 21;
/// The spawn helper's capabilities, and `CAP_SYS_ADMIN`: to make user namespaces where the host refuses them to users.
const OF_NAMESPACE_MAKERS: &[usize] = &[5, 6, 7, ADMINISTRATION];

const fn bits(capabilities: &[usize]) -> u64 {
    let (mut bits, mut at) = (0, 0);
    while at < capabilities.len() {
        bits |= 1 << capabilities[at];
        at += 1;
    }
    bits
}

/// The capabilities of a process that starts others as users (bit = number); `makes_namespaces`: and makes user namespaces for them.
pub const fn of_starter(makes_namespaces: bool) -> u64 {
    bits(if makes_namespaces { OF_NAMESPACE_MAKERS } else { OF_STARTERS })
}

/// Drops every capability from every set, locks the securebits, sets `no_new_privs` and makes the process not dumpable
/// (only the owner of its user namespace can access its memory and `/proc` files).
pub fn drop_all() -> io::Result<()> {
    bound(&[])?;
    Call::CLEAR_AMBIENT.make()?;
    match Call::set_securebits(SECUREBITS).make() {
        Ok(_) => {}
        // Needs CAP_SETPCAP, which an ordinary user without a user namespace does not have.
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => {}
        Err(error) => return Err(error),
    }
    keep_capabilities(0)?;
    Call::NO_NEW_PRIVILEGES.make()?;
    Call::NOT_DUMPABLE.make()?;
    Ok(())
}

/// Removes all capabilities but these from the bounding set.
fn bound(kept: &[usize]) -> io::Result<()> {
    for capability in (0..CAPABILITY_NUMBERS).filter(|capability| !kept.contains(capability)) {
        match Call::drop_capability(capability).make() {
            Ok(_) => {}
            // Past the kernel's last capability, or without the right to drop (the sets are emptied by the callers anyway).
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EPERM)) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// For root, single-threaded: keeps only the capabilities to start processes as other users and to end them (KILL, SETGID, SETUID),
/// and with `makes_namespaces` the one to make user namespaces for them (`SYS_ADMIN`), also over an exec. Sets `no_new_privs`, and
/// makes the process not dumpable.
pub fn keep_those_of_a_starter(makes_namespaces: bool) -> io::Result<()> {
    bound(if makes_namespaces { OF_NAMESPACE_MAKERS } else { OF_STARTERS })?;
    Call::CLEAR_AMBIENT.make()?;
    keep_capabilities(of_starter(makes_namespaces))?;
    Call::NO_NEW_PRIVILEGES.make()?;
    Call::NOT_DUMPABLE.make()?;
    Ok(())
}

/// Keeps `CAP_SYS_ADMIN` alone, which must be permitted, and makes it effective.
pub(crate) fn keep_administration() -> io::Result<()> {
    keep_capabilities(bits(&[ADMINISTRATION]))
}

/// For root, before another thread is started: becomes a user for good, without any capability and with an empty bounding set, and
/// checks that the kernel has done so.
pub fn become_user_for_good(user: &Identity) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(user.ids.uid), Gid::from_raw(user.ids.gid));
    if uid.is_root() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // The bounding set needs CAP_SETPCAP, so it is emptied before the user changes.
    bound(&[])?;
    Call::CLEAR_AMBIENT.make()?;
    let groups: Vec<Gid> = user.groups.iter().copied().map(Gid::from_raw).collect();
    setgroups(&groups)?;
    setresgid(gid, gid, gid)?;
    setresuid(uid, uid, uid)?;
    keep_capabilities(0)?;
    Call::NO_NEW_PRIVILEGES.make()?;
    Call::NOT_DUMPABLE.make()?;
    // A change without effect would leave root's rights to a process that reads requests, so the result is checked.
    let (uids, gids) = (getresuid()?, getresgid()?);
    let changed = [uids.real, uids.effective, uids.saved] == [uid; 3]
        && [gids.real, gids.effective, gids.saved] == [gid; 3];
    let status = crate::inspect::status(std::process::id())?;
    let capabilities = status.capabilities | status.inheritable | status.bounding;
    if changed && capabilities == 0 && status.no_new_privs {
        Ok(())
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

/// Forbids making memory executable that is or was writable. `false`: the kernel is older than 6.3.
pub fn deny_write_execute() -> io::Result<bool> {
    match Call::REFUSE_EXEC_GAIN.make() {
        Ok(_) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(false),
        Err(error) => Err(error),
    }
}
