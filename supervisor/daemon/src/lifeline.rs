//! The lifeline of kept jails: a pipe whose writing end only the service manager holds, in the service's descriptor store
//! (`FileDescriptorStoreMax=`). The store outlives a restart of the daemon and a crash, and is released when the service is stopped;
//! then the pipe hangs up, and keepers without a supervisor end. So a daemon that receives SIGTERM need not know whether another one
//! follows it.

use super::inherited;
use super::notify::{self, Notification};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::pipe2;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use vm_system_sandbox::process;

/// The name of both ends in the descriptor store.
pub(super) const NAME: &str = "lifeline";
/// How long the service manager is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Returns the reading end: that of an earlier daemon of this service, or a new one. Fails where the service manager keeps no
/// descriptors. Blocks.
pub(super) fn take() -> io::Result<Arc<OwnedFd>> {
    for end in stored() {
        if is_reading(&end) && !has_hung_up(&end, Duration::ZERO)? {
            return Ok(Arc::new(end));
        }
    }
    let (reading, writing) = pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    let message =
        Notification { text: &format!("FDSTORE=1\nFDNAME={NAME}"), fds: &[reading.as_fd(), writing.as_fd()] };
    if !notify::send(&message)? {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            "no service manager ($NOTIFY_SOCKET is not set)",
        ));
    }
    drop(writing);
    notify::barrier(PATIENCE)?;
    if has_hung_up(&reading, Duration::ZERO)? {
        let why = "the service manager does not keep descriptors (FileDescriptorStoreMax= is missing)";
        return Err(io::Error::new(io::ErrorKind::Unsupported, why));
    }
    Ok(Arc::new(reading))
}

/// The descriptors that the service manager has passed under the name (`sd_listen_fds(3)`); the others of that name are closed.
fn stored() -> Vec<OwnedFd> {
    let ours = inherited::named_passed().into_iter().filter(|(name, _)| name == NAME);
    ours.filter_map(|(_, number)| process::inherited(number).ok()).collect()
}

/// Whether it is the reading end of a pipe: anything else never hangs up.
fn is_reading(end: &OwnedFd) -> bool {
    let is_pipe =
        nix::sys::stat::fstat(end).is_ok_and(|found| found.st_mode & nix::libc::S_IFMT == nix::libc::S_IFIFO);
    let flags = nix::fcntl::fcntl(end, nix::fcntl::FcntlArg::F_GETFL).unwrap_or(nix::libc::O_WRONLY);
    is_pipe && flags & nix::libc::O_ACCMODE == nix::libc::O_RDONLY
}

/// Whether the last writing end has been closed.
pub(super) fn has_hung_up(reading: &OwnedFd, patience: Duration) -> io::Result<bool> {
    let mut ends = [PollFd::new(reading.as_fd(), PollFlags::empty())];
    let patience = PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX);
    Ok(poll(&mut ends, patience)? > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_end_hangs_up_with_the_last_writing_end() {
        let (reading, writing) = pipe2(nix::fcntl::OFlag::O_CLOEXEC).expect("a pipe");
        let second = writing.try_clone().expect("a copy");
        assert!(is_reading(&reading) && !is_reading(&writing));
        let null = std::fs::File::open("/dev/null").expect("a device").into();
        assert!(!is_reading(&null));
        drop(writing);
        assert!(!has_hung_up(&reading, Duration::ZERO).expect("polled"));
        drop(second);
        assert!(has_hung_up(&reading, Duration::ZERO).expect("polled"));
    }
}
