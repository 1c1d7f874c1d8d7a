//! A stream with write deadlines: a peer that does not read for too long is disconnected, and one that reads what waits for it more
//! slowly than [`SLOWEST`], because that has memory.

use crate::control::frame::SLOWEST;
use std::future::Future as _;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// A stream with a deadline for each write.
pub(super) struct Deadline<S> {
    stream: S,
    write: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
    /// Since when bytes wait for the peer, and how many of them it has read.
    behind: Option<(Instant, usize)>,
}

impl<S> Deadline<S> {
    pub(super) fn new(stream: S, write: Duration) -> Self {
        Self { stream, write, waiting: None, behind: None }
    }

    /// Counts what the peer has read of that which waits for it.
    fn read(&mut self, result: &Poll<io::Result<usize>>) {
        if let (Poll::Ready(Ok(bytes)), Some((_, read))) = (result, &mut self.behind) {
            *read += bytes;
        }
    }

    /// Returns the result of a write; the deadline runs while the write is pending.
    fn timed<T>(&mut self, context: &mut Context<'_>, result: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.waiting = None;
            return result;
        }
        let (since, read) = *self.behind.get_or_insert_with(|| (Instant::now(), 0));
        let all = self.write + Duration::from_secs((read / SLOWEST) as u64);
        let left = all.saturating_sub(since.elapsed()).min(self.write);
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(left)));
        ready!(waiting.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Deadline<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Deadline<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.read(&result);
        self.timed(context, result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.read(&result);
        self.timed(context, result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_flush(context);
        if matches!(result, Poll::Ready(Ok(()))) {
            // Writers flush when nothing is left to be written.
            self.behind = None;
        }
        self.timed(context, result)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_shutdown(context);
        self.timed(context, result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt as _;

    #[tokio::test]
    async fn a_peer_that_does_not_read_is_disconnected_and_one_that_reads_is_not() {
        let (ours, mut theirs) = tokio::io::duplex(16);
        let mut stream = Deadline::new(ours, Duration::from_mins(1));
        let reading = tokio::spawn(async move {
            let mut received = [0; 80];
            tokio::io::AsyncReadExt::read_exact(&mut theirs, &mut received).await.expect("bytes");
            theirs
        });
        stream.write_all(&[0; 80]).await.expect("the peer reads");
        let _theirs = reading.await.expect("reader");
        stream.write = Duration::from_millis(10);
        let error = stream.write_all(&[0; 80]).await.expect_err("the peer does not read");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
