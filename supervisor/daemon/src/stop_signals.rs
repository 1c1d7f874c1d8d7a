//! The signals of a daemon: SIGTERM and SIGINT stop it, SIGHUP makes it read its settings again (so closing the terminal
//! does not end a daemon that was started from it). SIGXFSZ is ignored, so that a write above the file size limit
//! (`LimitFSIZE=`) is an error of the store and does not end the daemon.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use std::io;
use std::os::unix::net::UnixStream as StdStream;
use std::sync::Arc;
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;

/// Receives the signals. While it exists, they no longer end the process by themselves.
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

    /// Waits for the next SIGTERM or SIGINT. Cancel safe.
    pub(super) fn stop(&mut self) -> impl Future<Output = ()> {
        next(&mut self.stop)
    }

    /// Two futures: the next SIGTERM or SIGINT, and the next SIGHUP. Both are cancel safe.
    pub(super) fn both(&mut self) -> (impl Future<Output = ()>, impl Future<Output = ()>) {
        (next(&mut self.stop), next(&mut self.hang_up))
    }
}

async fn next(signals: &mut UnixStream) {
    match signals.read(&mut [0]).await {
        Ok(1) => {}
        // The writing end stays open as long as the process runs.
        _ => std::future::pending().await,
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
