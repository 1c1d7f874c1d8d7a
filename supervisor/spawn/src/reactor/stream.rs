//! A connected byte stream in two halves, watched for reading only: otherwise the reactor would wake up each time the peer has
//! read a response, because the socket is writable again. Only a writer that finds the socket's buffer full watches for that.

use super::sys::WatchedFd;
use super::watch;
use nix::sys::socket::{MsgFlags, recv, send};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};

/// The half that reads.
pub struct StreamReader(Arc<WatchedFd>);

/// The half that writes.
pub struct StreamWriter {
    stream: Arc<WatchedFd>,
    /// A separate descriptor, while the socket's buffer is full.
    full: Option<WatchedFd>,
}

/// Splits a stream socket in non-blocking mode.
pub fn split(socket: OwnedFd) -> io::Result<(StreamReader, StreamWriter)> {
    let stream = Arc::new(watch(socket, Interest::READABLE)?);
    Ok((StreamReader(Arc::clone(&stream)), StreamWriter { stream, full: None }))
}

impl StreamReader {
    /// Resolves when the peer has closed both directions: after the end of what it sends, it may still wait for what it gets.
    pub async fn hung_up(&self) -> io::Result<()> {
        hung_up(self.0.get_ref().try_clone()?).await
    }
}

/// Resolves when the peer of a Unix socket has closed both directions.
pub async fn hung_up(socket: OwnedFd) -> io::Result<()> {
    // A socket that is not watched for reading or writing reports its hang-up and errors alone.
    let watched = watch(socket, Interest::PRIORITY)?;
    watched.ready(Interest::PRIORITY).await.map(|_| ())
}

impl AsyncRead for StreamReader {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.0.poll_read_ready(context))?;
            let free = buffer.remaining();
            let result = ready.try_io(|stream| {
                let place = buffer.initialize_unfilled();
                uninterrupted(|| recv(stream.as_raw_fd(), place, MsgFlags::empty()))
            });
            match result {
                Ok(Ok(read)) => {
                    // A short read: the buffer is empty. The reactor reports later data, so no further read is needed.
                    if read > 0 && read < free {
                        ready.clear_ready();
                    }
                    buffer.advance(read);
                    return Poll::Ready(Ok(()));
                }
                Ok(Err(error)) => return Poll::Ready(Err(error)),
                // Not ready after all.
                Err(_) => {}
            }
        }
    }
}

impl StreamWriter {
    fn send(stream: &impl AsRawFd, bytes: &[u8]) -> io::Result<usize> {
        uninterrupted(|| send(stream.as_raw_fd(), bytes, MsgFlags::MSG_NOSIGNAL))
    }
}

impl AsyncWrite for StreamWriter {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let Self { stream, full } = self.get_mut();
        loop {
            let Some(watched) = full else {
                match Self::send(stream.get_ref(), bytes) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    result => return Poll::Ready(result),
                }
                *full = Some(watch(stream.get_ref().try_clone()?, Interest::WRITABLE)?);
                continue;
            };
            let mut ready = ready!(watched.poll_write_ready(context))?;
            if let Ok(result) = ready.try_io(|stream| Self::send(stream, bytes)) {
                drop(ready);
                *full = None;
                return Poll::Ready(result);
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Both halves are dropped together; no separate notification of the peer.
        Poll::Ready(Ok(()))
    }
}

fn uninterrupted(mut call: impl FnMut() -> nix::Result<usize>) -> io::Result<usize> {
    loop {
        match call() {
            Err(nix::errno::Errno::EINTR) => {}
            result => return result.map_err(io::Error::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{hung_up, split};
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    #[tokio::test]
    async fn a_stream_carries_more_than_its_buffer_in_both_directions() {
        const BYTES: usize = 4 << 20;
        let (ours, theirs) = UnixStream::pair().expect("pair");
        ours.set_nonblocking(true).expect("nonblocking");
        theirs.set_nonblocking(true).expect("nonblocking");
        let (mut reader, mut writer) = split(ours.into()).expect("watched");
        let (mut far_reader, mut far_writer) = split(theirs.into()).expect("watched");
        let sent: Vec<u8> = (0..BYTES).map(|place| place as u8).collect();
        let echo = async {
            let mut bytes = vec![0; BYTES];
            far_reader.read_exact(&mut bytes).await.expect("there");
            far_writer.write_all(&bytes).await.expect("back");
            drop((far_reader, far_writer));
        };
        let here = async {
            writer.write_all(&sent).await.expect("there");
            let mut got = Vec::new();
            reader.read_to_end(&mut got).await.expect("until the end");
            got
        };
        let (got, ()) = tokio::join!(here, echo);
        assert!(got == sent, "all bytes in order");
    }

    #[tokio::test]
    async fn a_peer_that_has_finished_to_send_has_not_hung_up() {
        let (ours, theirs) = UnixStream::pair().expect("pair");
        let mut waiting = Box::pin(hung_up(ours.into()));
        theirs.shutdown(Shutdown::Write).expect("shut down");
        let early = tokio::time::timeout(Duration::from_millis(50), &mut waiting).await;
        assert!(early.is_err(), "it still reads");
        drop(theirs);
        waiting.await.expect("watched");
    }
}
