//! The supervisor's side of the worker's filter: a worker that forks is blocked until the supervisor confirms that the fork was
//! ordered; a worker that makes a forbidden call is blocked until it is killed.

use super::table_worker::FORK;
use crate::sys;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Receives the notifications of all processes under one worker filter.
#[derive(Debug)]
pub struct Listener(OwnedFd);

impl From<OwnedFd> for Listener {
    fn from(fd: OwnedFd) -> Self {
        Self(fd)
    }
}

impl From<Listener> for OwnedFd {
    fn from(listener: Listener) -> Self {
        listener.0
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl std::os::fd::AsRawFd for Listener {
    fn as_raw_fd(&self) -> i32 {
        self.0.as_raw_fd()
    }
}

/// A process that is blocked in a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallNotification {
    id: u64,
    /// The process's pid in our namespace.
    pub pid: u32,
    /// The call.
    pub call: NotifiedCall,
}

/// The call of a [`CallNotification`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotifiedCall {
    /// The fork, with exactly the arguments of the table's row.
    Fork,
    /// Any other call, by its number: forbidden for a worker.
    Forbidden(i32),
}

impl NotifiedCall {
    fn from_data(data: &libc::seccomp_data) -> Self {
        if FORK.matches(data.nr, &data.args) { Self::Fork } else { Self::Forbidden(data.nr) }
    }
}

impl Listener {
    /// A second descriptor of the same listener.
    pub fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// Takes the next notification; `None` if its process is gone. Blocks unless the descriptor is known to be readable.
    pub fn next(&self) -> io::Result<Option<CallNotification>> {
        match sys::notification(self.as_fd()) {
            Ok(notification) => {
                let libc::seccomp_notif { id, pid, data, .. } = notification;
                Ok(Some(CallNotification { id, pid, call: NotifiedCall::from_data(&data) }))
            }
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lets a fork continue; any other call fails. Safe even if the process changes its memory: only registers were checked.
    pub fn allow(&self, request: CallNotification) -> io::Result<CallResponse> {
        match request.call {
            NotifiedCall::Fork => CallResponse::from_result(sys::respond(self.as_fd(), request.id, 0)),
            NotifiedCall::Forbidden(_) => self.refuse(request),
        }
    }

    /// Makes the call fail with EPERM.
    pub fn refuse(&self, request: CallNotification) -> io::Result<CallResponse> {
        CallResponse::from_result(sys::respond(self.as_fd(), request.id, libc::EPERM))
    }
}

/// The effect of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallResponse {
    Taken,
    /// The process has exited, or a signal (a stop, for example) has interrupted its call: then it makes the call again, with another
    /// notification.
    Late,
}

impl CallResponse {
    fn from_result(result: io::Result<()>) -> io::Result<Self> {
        match result {
            Ok(()) => Ok(Self::Taken),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(Self::Late),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seccomp::table_worker::FORK_FLAGS;

    #[test]
    fn only_the_fork_with_the_tables_arguments_counts_as_a_fork() {
        let call = |nr: libc::c_long, flags: u64, stack: u64| {
            NotifiedCall::from_data(&libc::seccomp_data {
                nr: nr as i32,
                arch: 0,
                instruction_pointer: 0,
                args: [flags, stack, 0, 0, 0, 0],
            })
        };
        assert_eq!(call(libc::SYS_clone, FORK_FLAGS, 0), NotifiedCall::Fork);
        for (nr, flags, stack) in [
            (libc::SYS_clone, FORK_FLAGS, 1),
            (libc::SYS_clone, FORK_FLAGS | 1 << 32, 0),
            (libc::SYS_clone, libc::SIGCHLD as u64, 0),
            (libc::SYS_execve, FORK_FLAGS, 0),
        ] {
            assert_eq!(call(nr, flags, stack), NotifiedCall::Forbidden(nr as i32));
        }
    }
}
