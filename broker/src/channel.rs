//! Frames on the broker's socket: `length u32` (little endian), then one encoded value. Knows nothing of requests.
//!
//! A byte stream instead of packets: a broker exits with its supervisor, so that no other process ever takes over a channel in
//! the middle of a message.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use vm_system_protocol::broker::{FromBroker, ToBroker};
use vm_system_protocol::codec::{self, CodecError};
use vm_system_protocol::limits::{HOST_MESSAGE_BYTES, WORKER_MESSAGE_BYTES};

/// The channel failed and cannot be used again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SupervisorChannelError {
    #[error("the channel to the supervisor failed: {0}")]
    Io(#[from] io::Error),
    /// A message that cannot be decoded, or a reply above its cap.
    #[error(transparent)]
    Codec(#[from] CodecError),
}

impl AsFd for SupervisorChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The broker's end of the channel.
#[derive(Debug)]
pub(crate) struct SupervisorChannel {
    socket: File,
}

impl SupervisorChannel {
    /// `socket` is a connected stream socket in blocking mode, used through plain reads and writes.
    pub(crate) fn new(socket: File) -> Self {
        Self { socket }
    }

    /// Waits for a message; `None` when the supervisor has closed the channel.
    pub(crate) fn receive(&mut self) -> Result<Option<ToBroker>, SupervisorChannelError> {
        let mut len = [0; 4];
        match self.socket.read_exact(&mut len) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let len = u32::from_le_bytes(len) as usize;
        if len > WORKER_MESSAGE_BYTES {
            return Err(CodecError::TooLarge { len, cap: WORKER_MESSAGE_BYTES }.into());
        }
        let mut bytes = Vec::new();
        // Grows with the bytes received, not to the announced length.
        (&mut self.socket).take(len as u64).read_to_end(&mut bytes)?;
        Ok(Some(codec::decode(&bytes)?))
    }

    /// Sends a message.
    pub(crate) fn send(&mut self, message: &FromBroker) -> Result<(), SupervisorChannelError> {
        let bytes = codec::encode(message, HOST_MESSAGE_BYTES)?;
        let len = u32::try_from(bytes.len())
            .map_err(|_| CodecError::TooLarge { len: bytes.len(), cap: HOST_MESSAGE_BYTES })?;
        self.socket.write_all(&len.to_le_bytes())?;
        Ok(self.socket.write_all(&bytes)?)
    }
}
