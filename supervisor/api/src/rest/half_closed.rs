//! Clients of the Unix socket that have finished to send and still wait for their response: the HTTP library would end the connection
//! at the end of the input. It is hidden from the library until the response is sent, or the client has hung up. Over TCP the two
//! look the same, and the end of the input is the end of the client.

use crate::accept::StartingConnection;
use std::future::Future;
use std::io::{self, IoSlice};
use std::os::fd::AsFd as _;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use vm_system_spawn::reactor;

type HangUp = Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

/// The stream of a client.
pub(super) trait ClientStream: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Resolves when the client does not read either; `None`: that cannot be known.
    fn hung_up(&self) -> io::Result<Option<HangUp>>;
}

impl ClientStream for UnixStream {
    fn hung_up(&self) -> io::Result<Option<HangUp>> {
        let socket = self.as_fd().try_clone_to_owned()?;
        Ok(Some(Box::pin(reactor::hung_up(socket))))
    }
}

impl ClientStream for TcpStream {
    fn hung_up(&self) -> io::Result<Option<HangUp>> {
        Ok(None)
    }
}

/// How far the exchange under way is, shared by the connection and its requests.
#[derive(Debug, Clone)]
pub(super) struct ResponseProgress(Arc<Progress>);

#[derive(Debug)]
struct Progress {
    state: AtomicU8,
    /// Until the connection waits for its client.
    starting: Mutex<Option<StartingConnection>>,
}

/// No request is under way.
const IDLE: u8 = 0;
/// The head of a request was read.
const BEGUN: u8 = 1;
/// The body of the response was given to the library, which writes it.
const WRITTEN: u8 = 2;

impl ResponseProgress {
    /// Of a connection that is being started.
    pub(super) fn new(starting: StartingConnection) -> Self {
        Self(Arc::new(Progress { state: AtomicU8::new(IDLE), starting: Mutex::new(Some(starting)) }))
    }

    pub(super) fn begin(&self) {
        self.0.state.store(BEGUN, Ordering::Relaxed);
    }

    pub(super) fn written(&self) {
        self.0.state.store(WRITTEN, Ordering::Relaxed);
    }

    /// Nothing can be done before the client sends something.
    pub(super) fn waits_for_client(&self) {
        drop(self.0.starting.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    fn flushed(&self) {
        // Only the end of the exchange: parts of a response are flushed, too.
        let _ = self.0.state.compare_exchange(WRITTEN, IDLE, Ordering::Relaxed, Ordering::Relaxed);
    }

    fn is_idle(&self) -> bool {
        self.0.state.load(Ordering::Relaxed) == IDLE
    }
}

/// A stream whose end of the input waits for the response.
pub(super) struct HalfClosed<S> {
    stream: S,
    progress: ResponseProgress,
    input: ClientInput,
}

/// The input of a client.
enum ClientInput {
    Open,
    /// It has ended, and with it the client if that did not wait for a response.
    Ended,
    /// It has ended; the client may wait until it hangs up.
    EndedBefore(HangUp),
}

impl<S> HalfClosed<S> {
    pub(super) fn new(stream: S, progress: ResponseProgress) -> Self {
        Self { stream, progress, input: ClientInput::Open }
    }
}

impl<S: ClientStream> AsyncRead for HalfClosed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if matches!(this.input, ClientInput::Open) {
            let before = buffer.filled().len();
            let Poll::Ready(read) = Pin::new(&mut this.stream).poll_read(context, buffer) else {
                if this.progress.is_idle() {
                    this.progress.waits_for_client();
                }
                return Poll::Pending;
            };
            read?;
            if buffer.filled().len() > before || buffer.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
            let hang_up = if this.progress.is_idle() { None } else { this.stream.hung_up()? };
            this.input = hang_up.map_or(ClientInput::Ended, ClientInput::EndedBefore);
        }
        if let ClientInput::EndedBefore(hang_up) = &mut this.input
            && !this.progress.is_idle()
        {
            ready!(hang_up.as_mut().poll(context))?;
            this.input = ClientInput::Ended;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for HalfClosed<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        self.progress.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
