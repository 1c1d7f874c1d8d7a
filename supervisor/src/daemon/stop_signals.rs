//! The signals that stop a daemon: SIGTERM and SIGINT. SIGHUP is taken and does nothing, so that a closed terminal
//! does not end a daemon that was started from it; so is SIGXFSZ, so that a file that may not grow (`LimitFSIZE=`) is the
//! store's error and not the daemon's end.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use std::io;
use std::os::unix::net::UnixStream as StdStream;
use std::sync::Arc;
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;

/// SIGTERM and SIGINT as something to wait for. From its making on they no longer end the process by themselves.
pub(super) struct StopSignals {
    stop: UnixStream,
    hang_up: UnixStream,
}

impl StopSignals {
    /// Must be called inside the runtime.
    pub(super) fn listen() -> io::Result<Self> {
        signal_hook::flag::register(SIGXFSZ, Arc::default())?;
        Ok(Self { stop: pipe(&[SIGTERM, SIGINT])?, hang_up: pipe(&[SIGHUP])? })
    }

    /// Waits for the next one that means stop. Cancel safe.
    pub(super) async fn next(&mut self) {
        let (mut stop, mut hang_up) = ([0], [0]);
        loop {
            tokio::select! {
                read = self.stop.read(&mut stop) => match read {
                    Ok(1) => return,
                    // The writing end lives as long as the process.
                    _ => std::future::pending().await,
                },
                _ = self.hang_up.read(&mut hang_up) => tracing::info!("SIGHUP is ignored"),
            }
        }
    }
}

fn pipe(signals: &[i32]) -> io::Result<UnixStream> {
    let (read, write) = StdStream::pair()?;
    for signal in signals {
        signal_hook::low_level::pipe::register(*signal, write.try_clone()?)?;
    }
    read.set_nonblocking(true)?;
    UnixStream::from_std(read)
}
