//! Packets over tokio: never blocks the runtime, never leaves a stale readiness behind.

use crate::reactor::WatchedFd;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use tokio::io::Interest;
use tokio::time::Instant;
use vm_system_protocol::limits::PACKET_BYTES;
use vm_system_sandbox::socket::{self, ReceivedPacket, Wait};

thread_local! {
    /// One buffer per runtime thread: an idle session holds none.
    static BUFFER: std::cell::RefCell<Vec<u8>> = std::cell::RefCell::new(vec![0; PACKET_BYTES]);
}

/// Work with this thread's buffer of [`PACKET_BYTES`].
pub(super) fn with_buffer<T>(work: impl FnOnce(&mut [u8]) -> T) -> T {
    BUFFER.with_borrow_mut(|buffer| work(buffer))
}

/// Registers our end of a socket with the runtime, for reading only. Otherwise each message that the peer reads would wake
/// this task because the socket is writable again.
pub(super) fn register(socket: OwnedFd) -> io::Result<WatchedFd> {
    socket::set_nonblocking(&socket)?;
    crate::reactor::watch(socket, Interest::READABLE)
}

/// Waits for one packet and shows it to `take`. Cancel safe.
pub(super) async fn receive<T>(
    socket: &WatchedFd,
    take: impl FnOnce(ReceivedPacket, &[u8]) -> T,
) -> io::Result<T> {
    let mut take = Some(take);
    loop {
        let mut guard = socket.readable().await?;
        let result = guard.try_io(|socket| {
            with_buffer(|buffer| {
                let got = socket::receive(socket.get_ref(), buffer, Wait::No)?;
                let len = got.len;
                Ok(take.take().map(|take| take(got, &buffer[..len])))
            })
        });
        match result {
            Ok(Ok(Some(value))) => return Ok(value),
            // Reported once when the peer closed with unread data of ours; its earlier packets can still be received.
            Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionReset => {}
            Ok(Err(error)) => return Err(error),
            // Not ready after all.
            Ok(Ok(None)) | Err(_) => {}
        }
    }
}

/// Sends one packet before the deadline. Not sent at all if cancelled or too late.
pub(super) async fn send(
    socket: &WatchedFd,
    parts: &[&[u8]],
    fds: &[BorrowedFd<'_>],
    deadline: Instant,
) -> io::Result<()> {
    match socket::send(socket.get_ref(), parts, fds, Wait::No) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
        result => return result,
    }
    // Rare: the peer does not read fast enough. A separate descriptor, watched until it is writable.
    let full = crate::reactor::watch(socket.get_ref().try_clone()?, Interest::WRITABLE)?;
    loop {
        let mut guard = tokio::time::timeout_at(deadline, full.writable())
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        if let Ok(result) = guard.try_io(|socket| socket::send(socket.get_ref(), parts, fds, Wait::No)) {
            return result;
        }
    }
}
