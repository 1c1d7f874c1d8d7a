//! User namespaces for users who may not make any: hosts refuse it to processes without `CAP_SYS_ADMIN`. A process that has the
//! capability makes them; their owner, who has every right in them, enters them without any right outside.

use crate::identity::Identity;
use crate::namespaces::{self, Ids};
use crate::pidfd::PidFd;
use crate::process::{self, Fork};
use crate::socket::{self, PollSet, Wait};
use crate::step::{JailStep, StepError};
use crate::{privileges, selftest};
use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Gid, Uid};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

/// Longest time until the child has made the namespace, whose owner could stop it.
const PATIENCE: Duration = Duration::from_secs(1);

/// Makes a user namespace that `user` owns and in which it is uid 0, as it would be in one that it makes itself. For a single-threaded
/// process with `CAP_SYS_ADMIN`, `CAP_SETUID` and `CAP_SETGID` that is not dumpable. Blocks for at most a second.
pub fn make_for(user: Ids) -> io::Result<OwnedFd> {
    if user.uid == 0 {
        return Err(Errno::EPERM.into());
    }
    let (ours, theirs) = socket::pair()?;
    let pid = match process::fork()? {
        Fork::Parent(pid) => pid,
        Fork::Child => {
            drop(ours);
            process::exit_now(make_in_child(&theirs, user));
        }
    };
    drop(theirs);
    let made = receive(&ours, pid, user);
    if let Ok(child) = PidFd::open(pid) {
        let _ = child.kill();
    }
    process::wait_for(pid)?;
    made
}

/// The child: owns nothing that the namespace's owner could reach before it is killed. Its real uid stays root's, and it is not
/// dumpable, so that the owner cannot trace it.
fn make_in_child(parent: &OwnedFd, user: Ids) -> i32 {
    let make = || -> io::Result<File> {
        let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
        nix::unistd::setegid(gid)?;
        nix::unistd::seteuid(uid)?;
        // The change made the capability ineffective.
        privileges::keep_administration()?;
        unshare(CloneFlags::CLONE_NEWUSER)?;
        File::open("/proc/self/ns/user")
    };
    let sent = make().and_then(|namespace| socket::send(parent, &[b"1"], &[namespace.as_fd()], Wait::Yes));
    match sent {
        Ok(()) => {
            // Until it is killed: the maps are written through this process.
            let _ = socket::receive(parent, &mut [0], Wait::Yes);
            0
        }
        Err(error) => {
            let errno = error.raw_os_error().unwrap_or(libc::EIO);
            let _ = socket::send(parent, &[&errno.to_le_bytes()], &[], Wait::Yes);
            1
        }
    }
}

fn receive(child: &OwnedFd, pid: u32, user: Ids) -> io::Result<OwnedFd> {
    let mut polled = PollSet::with_capacity(1);
    polled.add(child);
    if !polled.wait(Some(PATIENCE))? {
        return Err(Errno::ETIMEDOUT.into());
    }
    let mut errno = [0; 4];
    let packet = socket::receive(child, &mut errno, Wait::No)?;
    let Some(namespace) = packet.fds.into_iter().next() else {
        let errno = if packet.len == errno.len() { i32::from_le_bytes(errno) } else { libc::EIO };
        return Err(io::Error::from_raw_os_error(errno));
    };
    fs::write(format!("/proc/{pid}/setgroups"), "deny")?;
    fs::write(format!("/proc/{pid}/uid_map"), format!("0 {} 1", user.uid))?;
    fs::write(format!("/proc/{pid}/gid_map"), format!("0 {} 1", user.gid))?;
    Ok(namespace)
}

/// Checks that a user may make user namespaces that have capabilities, tried in a child process that becomes this user. For root,
/// single-threaded. The error says what is refused.
pub fn may_make(user: &Identity) -> Result<(), StepError> {
    selftest::steps_in_child(JailStep::UserNamespace, || {
        namespaces::become_ordinary_user(user)?;
        namespaces::enter(user.clone(), None)
    })
}
