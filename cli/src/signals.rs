//! Signals as futures.

use crate::error::{CliError, exit};
use nix::errno::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::cell::Cell;
use std::io;
use std::os::unix::net::UnixStream as StdStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep_until};

/// Receives the signals that end a command. While it exists, these signals no longer end the process by themselves.
pub(crate) struct Interrupts {
    pipe: UnixStream,
    /// The last received signal.
    last: Arc<AtomicUsize>,
    /// When the command is interrupted without a signal.
    deadline: Cell<Option<Instant>>,
    time_is_over: Cell<bool>,
}

impl Interrupts {
    /// All signals that end a command. Must be called inside the runtime.
    pub(crate) fn listen() -> Result<Self, CliError> {
        Self::to(&[SIGINT, SIGTERM, SIGHUP])
    }

    /// Only Ctrl-C, for a shell, which must not survive the other signals while it waits for its terminal.
    pub(crate) fn listen_to_ctrl_c() -> Result<Self, CliError> {
        Self::to(&[SIGINT])
    }

    fn to(signals: &[i32]) -> Result<Self, CliError> {
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
        Ok(Self {
            pipe: UnixStream::from_std(read)?,
            last,
            deadline: Cell::new(None),
            time_is_over: Cell::new(false),
        })
    }

    /// Interrupts the command once, after this time.
    pub(crate) fn interrupt_after(&self, time: Duration) {
        self.deadline.set(Instant::now().checked_add(time));
    }

    /// Whether the time was the reason of the interruption.
    pub(crate) fn time_is_over(&self) -> bool {
        self.time_is_over.get()
    }

    /// Waits for the next signal, or the end of the time. Cancel safe.
    pub(crate) async fn next(&self) {
        let Some(deadline) = self.deadline.get() else { return self.signal().await };
        tokio::select! {
            () = self.signal() => {}
            () = sleep_until(deadline) => {
                self.deadline.set(None);
                self.time_is_over.set(true);
            }
        }
    }

    async fn signal(&self) {
        loop {
            // The channel cannot close: its senders exist as long as the process.
            let _ = self.pipe.readable().await;
            if matches!(self.pipe.try_read(&mut [0]), Ok(1)) {
                return;
            }
        }
    }

    /// The exit code of a command that a signal ended: 128 plus the signal, as in shells; or that of a time limit.
    pub(crate) fn exit_code(&self) -> u8 {
        if self.time_is_over() {
            return exit::TIMEOUT;
        }
        u8::try_from(self.last.load(Ordering::Relaxed)).map_or(exit::INTERRUPTED, |signal| 128 + signal)
    }

    /// Drops the signals that were received while nothing was running.
    pub(crate) fn forget(&self) {
        while matches!(self.pipe.try_read(&mut [0; 64]), Ok(1..)) {}
    }
}
