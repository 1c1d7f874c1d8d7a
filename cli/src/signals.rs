//! Signals as futures.

use crate::error::{CliError, exit};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep_until};

/// Receives the signals that end a command. While it exists, these signals no longer end the process by themselves.
#[derive(Clone)]
pub(crate) struct Interrupts(Rc<Listener>);

struct Listener {
    pipe: UnixStream,
    /// The last received signal.
    last: Arc<AtomicUsize>,
    /// When the command is interrupted without a signal.
    deadline: Cell<Option<Instant>>,
    time_is_over: Cell<bool>,
    /// A signal was received.
    was_received: Cell<bool>,
}

/// How long the last output of an interrupted command waits for its reader.
const READER_WAIT: Duration = Duration::from_secs(2);

impl Interrupts {
    /// All signals that end a command. Must be called inside the runtime.
    pub(crate) fn listen() -> Result<Self, CliError> {
        Self::listen_to(&[SIGINT, SIGTERM, SIGHUP])
    }

    /// Only Ctrl-C, for a shell, which must not survive the other signals while it waits for its terminal.
    pub(crate) fn listen_to_ctrl_c() -> Result<Self, CliError> {
        Self::listen_to(&[SIGINT])
    }

    fn listen_to(signals: &[i32]) -> Result<Self, CliError> {
        Self::register(signals).map_err(|error| {
            let failed = CliError::internal(format!("cannot listen for signals: {error}"));
            match error.raw_os_error().map(Errno::from_raw) {
                Some(Errno::EMFILE) => failed.with_hint("raise the limit of open files: `ulimit -n 1024`"),
                _ => failed,
            }
        })
    }

    fn register(signals: &[i32]) -> io::Result<Self> {
        let (read, write) = StdStream::pair()?;
        let last = Arc::new(AtomicUsize::new(SIGINT as usize));
        for signal in signals {
            // The signal is stored before a waiting task is woken.
            signal_hook::flag::register_usize(*signal, Arc::clone(&last), *signal as usize)?;
            signal_hook::low_level::pipe::register(*signal, write.try_clone()?)?;
        }
        read.set_nonblocking(true)?;
        Ok(Self(Rc::new(Listener {
            pipe: UnixStream::from_std(read)?,
            last,
            deadline: Cell::new(None),
            time_is_over: Cell::new(false),
            was_received: Cell::new(false),
        })))
    }

    /// Interrupts the command once, after this time.
    pub(crate) fn interrupt_after(&self, time: Duration) {
        self.0.deadline.set(Instant::now().checked_add(time));
    }

    /// Whether the time was the reason of the interruption.
    pub(crate) fn time_is_over(&self) -> bool {
        self.0.time_is_over.get()
    }

    /// Waits for the next signal, or the end of the time. Cancel safe.
    pub(crate) async fn next(&self) {
        let Some(deadline) = self.0.deadline.get() else { return self.signal().await };
        tokio::select! {
            () = self.signal() => {}
            () = sleep_until(deadline) => {
                self.0.deadline.set(None);
                self.0.time_is_over.set(true);
            }
        }
    }

    async fn signal(&self) {
        loop {
            // The channel cannot close: its senders exist as long as the process.
            let _ = self.0.pipe.readable().await;
            if matches!(self.0.pipe.try_read(&mut [0]), Ok(1)) {
                self.0.was_received.set(true);
                return;
            }
        }
    }

    /// Blocks until a stream can be written; false if a signal arrives before, or the time is over. The signal stays to be received.
    /// After an interruption it waits only for a moment.
    pub(crate) fn until_writable(&self, stream: BorrowedFd<'_>) -> io::Result<bool> {
        let is_interrupted = self.0.was_received.get() || self.0.time_is_over.get();
        let deadline = match self.0.deadline.get() {
            None if is_interrupted => Instant::now().checked_add(READER_WAIT),
            deadline => deadline,
        };
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let timeout = left.map_or(PollTimeout::NONE, |left| {
                // Rounded up: not before the deadline.
                PollTimeout::try_from(left.as_millis().saturating_add(1)).unwrap_or(PollTimeout::MAX)
            });
            let mut polled = [
                PollFd::new(stream, PollFlags::POLLOUT),
                PollFd::new(self.0.pipe.as_fd(), PollFlags::POLLIN),
            ];
            match poll(&mut polled, timeout) {
                Ok(0) if deadline.is_some_and(|deadline| deadline <= Instant::now()) => {
                    if !is_interrupted {
                        self.0.deadline.set(None);
                        self.0.time_is_over.set(true);
                    }
                    return Ok(false);
                }
                Ok(0) | Err(Errno::EINTR) => {}
                Ok(_) => return Ok(polled[1].revents().is_none_or(|events| events.is_empty())),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The exit code of a command that a signal ended: 128 plus the signal, as in shells; or that of a time limit.
    pub(crate) fn exit_code(&self) -> u8 {
        if self.time_is_over() {
            return exit::TIMEOUT;
        }
        u8::try_from(self.0.last.load(Ordering::Relaxed)).map_or(exit::INTERRUPTED, |signal| 128 + signal)
    }

    /// Drops the signals that were received while nothing was running.
    pub(crate) fn forget(&self) {
        self.0.was_received.set(false);
        while matches!(self.0.pipe.try_read(&mut [0; 64]), Ok(1..)) {}
    }
}
