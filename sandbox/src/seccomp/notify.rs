//! The supervisor's side of the one clone row: a worker that forks waits until somebody says that it was ordered.

use crate::sys;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Where the notifications of all processes under one worker filter arrive.
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

/// A process that waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    id: u64,
    /// Its pid in our namespace.
    pub pid: u32,
}

impl Listener {
    /// A second descriptor of the same listener.
    pub fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// Takes the next request; `None` if whoever asked is gone. Blocks unless the descriptor is known to be readable.
    pub fn next(&self) -> io::Result<Option<Request>> {
        match sys::notification(self.as_fd()) {
            Ok(notification) => Ok(Some(Request { id: notification.id, pid: notification.pid })),
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lets the call go on as it is. Safe although the caller could change its memory: the filter looked at registers.
    pub fn allow(&self, request: Request) -> io::Result<()> {
        gone_is_fine(sys::answer(self.as_fd(), request.id, 0))
    }

    /// Makes the call fail with EPERM.
    pub fn refuse(&self, request: Request) -> io::Result<()> {
        gone_is_fine(sys::answer(self.as_fd(), request.id, libc::EPERM))
    }
}

fn gone_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
        result => result,
    }
}
