//! Workers before they are assigned to a session: the channel that a worker gets, the fork, the hello by which the kernel identifies it.
//! Knows no limit.

use super::error::SpawnError;
use super::keeper::check_hello;
use super::packets;
use super::zygote::Zygote;
use crate::reactor::WatchedFd;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use vm_system_protocol::limits::HELLO_MS;
use vm_system_sandbox::pidfd::{PidFd, Pids};
use vm_system_sandbox::socket;

/// A channel for a worker: our end is registered and receives only packets with a sender that the kernel attests.
pub(super) fn channel() -> Result<(WatchedFd, OwnedFd), SpawnError> {
    let make = || -> std::io::Result<_> {
        let (ours, worker_end) = socket::pair()?;
        socket::attest_senders(&ours)?;
        socket::refuse_descriptors(&ours)?;
        Ok((packets::register(ours)?, worker_end))
    };
    make().map_err(SpawnError::io("make a worker's channel"))
}

/// A process that has sent its hello on its own channel.
pub(super) struct UnassignedWorker {
    pub(super) pidfd: Arc<PidFd>,
    pub(super) pids: Pids,
    /// The protocol version that it speaks.
    pub(super) protocol: u32,
}

/// Why no hello was received.
pub(super) enum HelloFailure {
    /// The worker's end of the channel was closed, or the worker has exited.
    Closed,
    Other(SpawnError),
}

/// Has a zygote fork a worker.
pub(super) async fn fork_from(zygote: &Zygote) -> Result<(WatchedFd, UnassignedWorker), SpawnError> {
    let (ours, worker_end) = channel()?;
    let ordered = zygote.order(worker_end, false).await?;
    match ordered.unless_stuck(receive_hello(&ours)).await? {
        Ok(worker) => Ok((ours, worker)),
        Err(HelloFailure::Closed) => Err(ordered.why_not().await),
        Err(HelloFailure::Other(error)) => Err(error),
    }
}

pub(super) async fn receive_hello(ours: &WatchedFd) -> Result<UnassignedWorker, HelloFailure> {
    let deadline = Instant::now() + Duration::from_millis(HELLO_MS);
    let hello = packets::receive(ours, |got, bytes| {
        if got.len == 0 {
            return Err(HelloFailure::Closed);
        }
        let clean = !got.truncated && got.fds.is_empty();
        let hello =
            check_hello("the worker", if clean { bytes } else { b"?" }).map_err(HelloFailure::Other)?;
        let sender = got.sender.ok_or(HelloFailure::Other(SpawnError::WorkerSilent("was not attested")))?;
        Ok((sender, hello.protocol))
    });
    let hello = timeout_at(deadline, hello).await;
    let hello = hello.map_err(|_| HelloFailure::Other(SpawnError::WorkerSilent("sent nothing")))?;
    let (pidfd, protocol) = match hello {
        Ok(hello) => hello?,
        Err(error) => {
            return Err(HelloFailure::Other(SpawnError::Io { what: "read a worker's hello", error }));
        }
    };
    let setup = || -> std::io::Result<_> {
        socket::trust_senders(ours)?;
        pidfd.pids()
    };
    let pids = setup().map_err(|_| HelloFailure::Closed)?;
    Ok(UnassignedWorker { pidfd: Arc::new(pidfd), pids, protocol })
}
