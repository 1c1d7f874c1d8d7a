//! TCP connections on which nothing is sent for a long time: a stream of events of a script that waits.

use nix::sys::socket::{setsockopt, sockopt};
use std::io;
use std::os::fd::AsFd;

/// Silence before the kernel probes the peer (seconds).
const IDLE_S: u32 = 60;
/// Time between two probes (seconds).
const INTERVAL_S: u32 = 15;
/// Probes without a reply after which the connection has failed.
const PROBES: u32 = 4;

/// Makes a TCP connection fail about two minutes after its peer's machine is gone.
pub fn keep_alive(stream: &impl AsFd) -> io::Result<()> {
    setsockopt(stream, sockopt::KeepAlive, &true)?;
    setsockopt(stream, sockopt::TcpKeepIdle, &IDLE_S)?;
    setsockopt(stream, sockopt::TcpKeepInterval, &INTERVAL_S)?;
    setsockopt(stream, sockopt::TcpKeepCount, &PROBES)?;
    Ok(())
}
