//! The lingering close of a connection whose client is still sending the body of a refused request. A socket that is closed with
//! unread bytes resets the connection, and the client may lose a response that has not reached it yet.

use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Most connections that linger at the same time; one more is closed at once.
pub(super) const LINGERING: usize = 32;
/// Bytes of one read.
const BUFFER_BYTES: usize = 64 * 1024;

/// Bounds of one connection.
pub(super) struct LingerBounds {
    /// The most that is read.
    bytes: usize,
    time: Duration,
    /// The longest pause between two reads.
    silence: Duration,
}

impl LingerBounds {
    /// After a request that was refused early.
    pub(super) const ALL: Self =
        Self { bytes: 256 << 20, time: Duration::from_secs(30), silence: Duration::from_secs(5) };
    /// Of a connection that was refused, whose client is not known.
    pub(super) const REFUSED: Self =
        Self { bytes: 16 << 20, time: Duration::from_secs(5), silence: Duration::from_secs(2) };
}

/// Reads and discards what the client still sends, until it closes its side or a bound is reached. The write half is shut down
/// already: the client sees the end of the response.
pub(super) async fn linger(stream: &mut (impl AsyncRead + Unpin), all: &Semaphore, bounds: &LingerBounds) {
    let Ok(_permit) = all.try_acquire() else { return };
    let discard = async {
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut left = bounds.bytes;
        while let Ok(Ok(read @ 1..)) = timeout(bounds.silence, stream.read(&mut buffer)).await {
            let Some(rest) = left.checked_sub(read) else { return };
            left = rest;
        }
    };
    let _ = timeout(bounds.time, discard).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncWriteExt as _, DuplexStream, duplex};
    use tokio::task::JoinHandle;

    const LONG: Duration = Duration::from_hours(1);
    const SHORT: Duration = Duration::from_millis(10);

    /// A client that sends without an end; the task returns how much it has sent when the connection is closed.
    fn endless() -> (DuplexStream, JoinHandle<usize>) {
        let (ours, mut theirs) = duplex(1024);
        let sending = tokio::spawn(async move {
            let mut sent = 0;
            while theirs.write_all(&[0; 1024]).await.is_ok() {
                sent += 1024;
            }
            sent
        });
        (ours, sending)
    }

    #[tokio::test]
    async fn a_client_that_never_ends_is_read_up_to_each_bound() {
        let all = Semaphore::new(1);
        let (mut fast, sending) = endless();
        let of_size = LingerBounds { bytes: 100 * 1024, time: LONG, silence: LONG };
        linger(&mut fast, &all, &of_size).await;
        drop(fast);
        let sent = sending.await.expect("the client");
        assert!((100 * 1024..=103 * 1024).contains(&sent), "{sent}");

        let (mut slow, _sending) = endless();
        linger(&mut slow, &all, &LingerBounds { bytes: usize::MAX, time: SHORT, silence: LONG }).await;

        let (mut silent, _theirs) = duplex(16);
        linger(&mut silent, &all, &LingerBounds { bytes: usize::MAX, time: LONG, silence: SHORT }).await;
    }

    #[tokio::test]
    async fn it_ends_with_the_client_and_only_so_many_linger() {
        let none = LingerBounds { bytes: usize::MAX, time: LONG, silence: LONG };
        let all = Semaphore::new(1);
        let (mut ours, mut theirs) = duplex(16);
        let sending = tokio::spawn(async move { theirs.write_all(&[0; 100]).await });
        linger(&mut ours, &all, &none).await;
        sending.await.expect("the client").expect("all was read");
        let _taken = all.try_acquire().expect("the permit was returned");
        let (mut refused, _theirs) = duplex(16);
        linger(&mut refused, &all, &none).await;
    }
}
