//! Carries the packets of a files agent's channel. Knows nothing of messages. The spawn helper starts the agent ([`crate::helper`]).
//!
//! An agent is a process of its user, which may send anything: no descriptor is received from it.

use crate::packets;
use crate::reactor::WatchedFd;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use tokio::time::Instant;
use vm_system_sandbox::socket::{self, Wait};

/// The supervisor's end of an agent's channel.
#[derive(Debug)]
pub struct FilesAgentChannel {
    /// `None` only while it is dropped.
    socket: Option<WatchedFd>,
    /// The kernel refuses descriptors at the sender.
    refuses_descriptors: bool,
}

impl FilesAgentChannel {
    /// A channel, and the agent's end of it. Must be called within a tokio runtime.
    pub fn pair() -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = socket::pair()?;
        let refuses_descriptors = socket::refuse_descriptors(&ours)?;
        Ok((Self { socket: Some(packets::register(ours)?), refuses_descriptors }, theirs))
    }

    fn socket(&self) -> io::Result<&WatchedFd> {
        self.socket.as_ref().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Waits for one packet and shows it to `take`; `None`: the agent has closed its end. `InvalidData`: a packet that is too long or
    /// has descriptors. Cancel safe.
    pub async fn receive<T>(&self, mut take: impl FnMut(&[u8]) -> T) -> io::Result<Option<T>> {
        let socket = self.socket()?;
        loop {
            let mut guard = socket.readable().await?;
            let result = guard.try_io(|socket| {
                packets::with_buffer(|buffer| {
                    let (len, truncated) =
                        socket::receive_bytes(socket.get_ref(), buffer, Wait::No, self.refuses_descriptors)?;
                    match (len, truncated) {
                        (_, true) => Err(io::ErrorKind::InvalidData.into()),
                        (0, false) => Ok(None),
                        (len, false) => Ok(Some(take(&buffer[..len]))),
                    }
                })
            });
            match result {
                Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
                Ok(result) => return result,
                // Not ready after all.
                Err(_) => {}
            }
        }
    }

    /// Sends one packet now, with at most one descriptor; `WouldBlock`: the agent does not read fast enough.
    pub fn try_send(&self, bytes: &[u8], descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
        socket::send(self.socket()?.get_ref(), &[bytes], descriptor.as_slice(), Wait::No)
    }

    /// Sends one packet before the deadline. Not sent at all if cancelled or too late.
    pub async fn send(
        &self,
        bytes: &[u8],
        descriptor: Option<&OwnedFd>,
        deadline: Instant,
    ) -> io::Result<()> {
        let descriptor = descriptor.map(|descriptor| descriptor.as_fd());
        packets::send(self.socket()?, &[bytes], descriptor.as_slice(), deadline).await
    }
}

impl Drop for FilesAgentChannel {
    /// Descriptors that were not received are closed with the socket, which can take as long as the agent's user likes (`SO_LINGER`).
    fn drop(&mut self) {
        let socket = self.socket.take();
        if !self.refuses_descriptors {
            std::thread::spawn(move || drop(socket));
        }
    }
}
