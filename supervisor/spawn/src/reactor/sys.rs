//! The only unsafe code of this crate: registering a descriptor with the runtime's reactor.

use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A registered descriptor. It cannot be exchanged for another one: the reactor knows it by its number.
#[derive(Debug)]
pub(crate) struct WatchedFd(AsyncFd<OwnedFd>);

impl Deref for WatchedFd {
    type Target = AsyncFd<OwnedFd>;

    fn deref(&self) -> &AsyncFd<OwnedFd> {
        &self.0
    }
}

impl AsFd for WatchedFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Watches a descriptor; it should be in non-blocking mode if it is to be read or written.
pub(crate) fn watch(fd: OwnedFd, interest: Interest) -> io::Result<WatchedFd> {
    // SAFETY: an `OwnedFd` is open and the same descriptor until it is dropped. The `AsyncFd` owns it, and `WatchedFd` lends the
    // `AsyncFd` only shared, so that nothing can replace the descriptor in it.
    unsafe { AsyncFd::register_with_interest(fd, interest) }.map(WatchedFd).map_err(io::Error::from)
}
