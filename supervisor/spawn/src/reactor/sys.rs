//! The only unsafe code of this crate: registering a descriptor with the runtime's reactor.

use std::io;
use std::os::fd::OwnedFd;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Watches a descriptor; it should be in non-blocking mode if it is to be read or written.
pub(crate) fn watch(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open and the same descriptor until it is dropped, and the `AsyncFd` owns it from here on.
    unsafe { AsyncFd::register_with_interest(fd, interest) }.map_err(io::Error::from)
}
