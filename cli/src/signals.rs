//! Signals as something to wait for.

use crate::error::CliError;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io;
use std::os::unix::net::UnixStream as StdStream;
use tokio::net::UnixStream;

/// Ctrl-C and its like. From its making on these signals no longer end the process by themselves.
pub(crate) struct Interrupts {
    pipe: UnixStream,
}

impl Interrupts {
    /// Everything that asks a command to end. Must be called inside the runtime.
    pub(crate) fn listen() -> Result<Self, CliError> {
        Self::to(&[SIGINT, SIGTERM, SIGHUP])
    }

    /// Ctrl-C alone, for a shell that waits for its terminal most of the time and must not survive the others there.
    pub(crate) fn listen_to_ctrl_c() -> Result<Self, CliError> {
        Self::to(&[SIGINT])
    }

    fn to(signals: &[i32]) -> Result<Self, CliError> {
        Self::register(signals)
            .map_err(|error| CliError::internal(format!("cannot listen for signals: {error}")))
    }

    fn register(signals: &[i32]) -> io::Result<Self> {
        let (read, write) = StdStream::pair()?;
        for signal in signals {
            signal_hook::low_level::pipe::register(*signal, write.try_clone()?)?;
        }
        read.set_nonblocking(true)?;
        Ok(Self { pipe: UnixStream::from_std(read)? })
    }

    /// Waits for the next one. Cancel safe.
    pub(crate) async fn next(&self) {
        loop {
            // An error cannot come up: the writing ends live as long as the process.
            let _ = self.pipe.readable().await;
            if matches!(self.pipe.try_read(&mut [0]), Ok(1)) {
                return;
            }
        }
    }

    /// Forgets those that came while nothing was running.
    pub(crate) fn forget(&self) {
        while matches!(self.pipe.try_read(&mut [0; 64]), Ok(1..)) {}
    }
}
