//! Probes that are more than one system call. Each reports a text, or the error number of what failed.

use super::sys;
use nix::errno::Errno;
use vm_system_sandbox::process::{self, Fork};

/// Most descriptor numbers that are tried.
const NUMBERS: i32 = 4_096;

fn done(result: Result<(), Errno>) -> Result<String, Errno> {
    result.map(|()| super::SUCCEEDED.to_owned())
}

#[cfg(target_arch = "x86_64")]
fn created(number: libc::c_long, flags: i32) -> Result<String, Errno> {
    done(sys::fork_by(number, flags as u64).map(drop))
}

#[cfg(target_arch = "x86_64")]
pub(super) fn fork() -> Result<String, Errno> {
    created(libc::SYS_fork, 0)
}

#[cfg(target_arch = "x86_64")]
pub(super) fn vfork() -> Result<String, Errno> {
    created(libc::SYS_vfork, 0)
}

#[cfg(target_arch = "x86_64")]
pub(super) fn clone_child() -> Result<String, Errno> {
    created(libc::SYS_clone, libc::SIGCHLD)
}

#[cfg(target_arch = "x86_64")]
pub(super) fn clone_thread() -> Result<String, Errno> {
    created(libc::SYS_clone, libc::CLONE_VM | libc::CLONE_SIGHAND | libc::CLONE_THREAD)
}

#[cfg(target_arch = "x86_64")]
pub(super) fn clone_user_namespace() -> Result<String, Errno> {
    created(libc::SYS_clone, libc::CLONE_NEWUSER | libc::SIGCHLD)
}

#[cfg(target_arch = "x86_64")]
pub(super) fn clone_untraced() -> Result<String, Errno> {
    created(libc::SYS_clone, libc::CLONE_UNTRACED | libc::SIGCHLD)
}

#[cfg(target_arch = "x86_64")]
pub(super) fn call_by_interrupt() -> Result<String, Errno> {
    done(sys::call_by_interrupt().map(drop))
}

/// A clone with exactly the flags of an ordered fork, and without an order.
pub(super) fn unordered_fork() -> Result<String, Errno> {
    match process::fork_sibling() {
        Ok(Fork::Child) => process::exit_now(0),
        Ok(Fork::Parent(_)) => done(Ok(())),
        Err(error) => Err(error.raw_os_error().map_or(Errno::UnknownErrno, Errno::from_raw)),
    }
}

/// All open descriptors.
pub(super) fn open_descriptors() -> Result<String, Errno> {
    let open: Vec<String> = (0..NUMBERS).filter(|fd| sys::is_open(*fd)).map(|fd| fd.to_string()).collect();
    Ok(open.join(" "))
}

/// Sends on every number but the channel's.
pub(super) fn send_on_all_others() -> Result<String, Errno> {
    let mut last = Errno::UnknownErrno;
    for fd in (0..NUMBERS).filter(|fd| *fd != 3) {
        match sys::send_to(fd) {
            Ok(()) => return done(Ok(())),
            Err(errno) => last = errno,
        }
    }
    Err(last)
}

/// Names and values of the environment.
pub(super) fn environment() -> Result<String, Errno> {
    Ok(format!("{} variables", std::env::vars_os().count()))
}

pub(super) fn forged_credentials() -> Result<String, Errno> {
    done(sys::send_as_pid_1())
}

/// Takes 16 MiB from the kernel's random numbers.
pub(super) fn drain_random_numbers() -> Result<String, Errno> {
    const ONCE: u64 = 4096;
    for _ in 0..4_096 {
        sys::call(libc::SYS_getrandom, &[super::ProbeArgument::Zeros, super::ProbeArgument::Number(ONCE)])?;
    }
    done(Ok(()))
}

fn spin() -> ! {
    loop {
        std::hint::spin_loop();
    }
}

/// Closes the channel and computes on.
pub(super) fn close_channel() -> Result<String, Errno> {
    sys::close(3)?;
    spin_inside()
}

/// Replaces the channel by `/dev/null` and computes on.
pub(super) fn replace_channel() -> Result<String, Errno> {
    sys::replace_channel(0)?;
    spin_inside()
}

/// In a worker the supervisor ends it; outside, where nobody does, it returns.
fn spin_inside() -> Result<String, Errno> {
    if std::env::args_os().nth(1).is_some_and(|mode| mode == super::OUTSIDE) { done(Ok(())) } else { spin() }
}

pub(super) fn exit_0() -> Result<String, Errno> {
    process::exit_now(0)
}

/// As if SIGKILL had ended it.
pub(super) fn exit_137() -> Result<String, Errno> {
    process::exit_now(137)
}

/// As if its filter had killed it.
pub(super) fn exit_159() -> Result<String, Errno> {
    process::exit_now(159)
}

pub(super) fn access_nothing() -> Result<String, Errno> {
    sys::write_to_nothing();
    done(Ok(()))
}

pub(super) fn unmap_own_stack() -> Result<String, Errno> {
    sys::unmap_own_stack();
    done(Ok(()))
}

pub(super) fn map_address_0() -> Result<String, Errno> {
    done(sys::map_at(0, 4096, libc::MAP_FIXED))
}

/// Address space far beyond the limit of any session.
pub(super) fn map_64_gib() -> Result<String, Errno> {
    done(sys::map_at(0, 64 << 30, libc::MAP_NORESERVE))
}
