//! The stream of a connection, metered: what it reads at a time, and what a server may send besides the heads and bodies of responses.
//! A server can repeat without end what no limit of a response counts: interim responses, records of TLS, frames of HTTP/2 and
//! whatever else the libraries above read and drop. Here all of it is bytes. Does not know a protocol.

use crate::failure::ExchangeFailure;
use crate::held::Held;
use std::io;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};

/// Bytes that a connection reads before it lets others go on. The libraries above read on while there is anything to read.
const TURN_BYTES: usize = 16 * 1024;
/// A read counts at least as much (bytes).
const READ_BYTES: usize = 512;
/// The bytes that a server may send for each exchange besides the body of its response: heads, interim responses, trailers,
/// framing.
const EXCHANGE_BYTES: i64 = 256 * 1024;
/// The bytes that the framing of each byte of a body may take: the smallest record of TLS with the smallest frame, and more.
const FRAMING: i64 = 64;

/// The bytes that a server may still send on one connection.
#[derive(Debug)]
pub(crate) struct Allowance {
    left: AtomicI64,
    /// Above it, bytes of bodies add nothing: a body that was received is no reserve for later.
    full: AtomicI64,
    /// Heads and bodies that it has sent, until an exchange takes them.
    pub(crate) held: Held,
}

impl Allowance {
    pub(crate) fn new(held: Held) -> Arc<Self> {
        let [left, full] = [EXCHANGE_BYTES; 2].map(AtomicI64::new);
        Arc::new(Self { left, full, held })
    }

    /// Allows for `bytes` of bodies that may arrive before an exchange takes them.
    pub(crate) fn read_ahead(&self, bytes: u32) {
        self.full.fetch_add(bytes.into(), Ordering::Relaxed);
        self.left.fetch_add(bytes.into(), Ordering::Relaxed);
    }

    /// An exchange begins on this connection.
    pub(crate) fn begin_exchange(self: &Arc<Self>) -> OpenExchange {
        self.left.fetch_add(EXCHANGE_BYTES, Ordering::Relaxed);
        self.held.begin_exchange();
        OpenExchange(Arc::clone(self))
    }

    /// An exchange has received so many bytes of its body.
    pub(crate) fn body(&self, bytes: usize) {
        self.held.take_data(bytes);
        let more = i64::try_from(bytes).unwrap_or(i64::MAX).saturating_mul(FRAMING);
        let full = self.full.load(Ordering::Relaxed);
        let _ = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            (left < full).then(|| left.saturating_add(more).min(full))
        });
    }

    fn spend(&self, bytes: usize) {
        self.left.fetch_sub(i64::try_from(bytes).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    /// Why the connection was ended; `None`: the server has not exceeded its allowance.
    pub(crate) fn failure(&self) -> Option<ExchangeFailure> {
        let flooded = (self.left.load(Ordering::Relaxed) < 0).then(|| {
            ExchangeFailure::limit(format!(
                "the server sent more than {} KiB besides the body of its response (interim responses, records of TLS, frames of \
                 HTTP/2)",
                EXCHANGE_BYTES / 1024
            ))
        });
        flooded.or_else(|| self.held.failure())
    }
}

/// An exchange on a connection, from its request to its last piece.
#[derive(Debug)]
pub(crate) struct OpenExchange(Arc<Allowance>);

impl Deref for OpenExchange {
    type Target = Allowance;

    fn deref(&self) -> &Allowance {
        &self.0
    }
}

impl Drop for OpenExchange {
    fn drop(&mut self) {
        self.held.end_exchange();
    }
}

/// Writes of a stream that has another one in its field `stream`, unchanged.
macro_rules! write_through {
    ($stream:ident) => {
        impl<S: AsyncWrite + Unpin> AsyncWrite for $stream<S> {
            fn poll_write(
                mut self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                bytes: &[u8],
            ) -> std::task::Poll<std::io::Result<usize>> {
                std::pin::Pin::new(&mut self.stream).poll_write(cx, bytes)
            }

            fn poll_write_vectored(
                mut self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                bytes: &[std::io::IoSlice<'_>],
            ) -> std::task::Poll<std::io::Result<usize>> {
                std::pin::Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
            }

            fn is_write_vectored(&self) -> bool {
                self.stream.is_write_vectored()
            }

            fn poll_flush(
                mut self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                std::pin::Pin::new(&mut self.stream).poll_flush(cx)
            }

            fn poll_shutdown(
                mut self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                std::pin::Pin::new(&mut self.stream).poll_shutdown(cx)
            }
        }
    };
}
pub(crate) use write_through;

/// A stream that reads a little at a time, and fails when the server exceeds its allowance.
#[derive(Debug)]
pub(crate) struct MeteredStream<S> {
    stream: S,
    allowance: Arc<Allowance>,
    /// Read since others could go on (bytes).
    in_turn: usize,
}

impl<S> MeteredStream<S> {
    pub(crate) fn new(stream: S, allowance: Arc<Allowance>) -> Self {
        Self { stream, allowance, in_turn: 0 }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for MeteredStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.in_turn >= TURN_BYTES {
            this.in_turn = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some(failure) = this.allowance.failure() {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::QuotaExceeded, failure)));
        }
        let before = buffer.filled().len();
        let mut turn = (&mut this.stream).take((TURN_BYTES - this.in_turn) as u64);
        let Poll::Ready(result) = Pin::new(&mut turn).poll_read(cx, buffer) else {
            this.in_turn = 0;
            return Poll::Pending;
        };
        let bytes = buffer.filled().len() - before;
        this.in_turn += bytes.max(READ_BYTES);
        this.allowance.spend(bytes);
        Poll::Ready(result)
    }
}

write_through!(MeteredStream);
