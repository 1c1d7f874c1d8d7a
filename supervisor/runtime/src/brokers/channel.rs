//! Frames on a broker's socket, the supervisor's side: `length u32` (little endian), then one encoded value. Memory grows
//! with the bytes that arrive, never with the announced length.

use std::io;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, Interest};
use tokio::net::UnixStream;
use vm_system_protocol::broker::{FromBroker, ToBroker};
use vm_system_protocol::codec::{self, CodecError};
use vm_system_protocol::limits::{HOST_MESSAGE_BYTES, WORKER_MESSAGE_BYTES};
use vm_system_sandbox::pidfd::PidFd;
use vm_system_sandbox::socket;

/// Messages above this are decoded off the runtime's threads (bytes).
const LARGE_BYTES: usize = 1 << 20;

/// The channel cannot be used any more.
#[derive(Debug, thiserror::Error)]
pub(super) enum BrokerChannelError {
    /// The broker has closed its end.
    #[error("it ended")]
    Closed,
    /// Error of the socket.
    #[error("its channel failed: {0}")]
    Io(#[source] io::Error),
    /// The bytes are not a valid message.
    #[error("it broke the protocol: {0}")]
    Violation(#[from] CodecError),
}

impl From<io::Error> for BrokerChannelError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
                Self::Closed
            }
            _ => Self::Io(error),
        }
    }
}

/// The supervisor's end of the channel.
#[derive(Debug)]
pub(super) struct Channel {
    stream: UnixStream,
}

impl Channel {
    pub(super) fn new(stream: UnixStream) -> Self {
        Self { stream }
    }

    pub(super) async fn send(&mut self, message: &ToBroker) -> Result<(), BrokerChannelError> {
        let bytes = codec::encode(message, WORKER_MESSAGE_BYTES)?;
        let len = u32::try_from(bytes.len())
            .map_err(|_| CodecError::TooLarge { len: bytes.len(), cap: WORKER_MESSAGE_BYTES })?;
        self.stream.write_all(&len.to_le_bytes()).await?;
        Ok(self.stream.write_all(&bytes).await?)
    }

    pub(super) async fn receive(&mut self) -> Result<FromBroker, BrokerChannelError> {
        let len = self.stream.read_u32_le().await?;
        self.receive_content(len as usize).await
    }

    /// The first message, and the process that has sent it, as the kernel attests; it need not be the one that was started.
    /// [`socket::attest_senders`] must have been called before that.
    pub(super) async fn receive_attested(&mut self) -> Result<(FromBroker, PidFd), BrokerChannelError> {
        let mut len = [0; size_of::<u32>()];
        let stream = &self.stream;
        let read = stream
            .async_io(Interest::READABLE, || socket::receive(stream, &mut len, socket::Wait::No))
            .await?;
        let Some(sender) = read.sender.filter(|_| read.len == len.len()) else {
            return Err(BrokerChannelError::Closed);
        };
        socket::trust_senders(&self.stream)?;
        Ok((self.receive_content(u32::from_le_bytes(len) as usize).await?, sender))
    }

    async fn receive_content(&mut self, len: usize) -> Result<FromBroker, BrokerChannelError> {
        if len > HOST_MESSAGE_BYTES {
            return Err(CodecError::TooLarge { len, cap: HOST_MESSAGE_BYTES }.into());
        }
        let mut bytes = Vec::new();
        if (&mut self.stream).take(len as u64).read_to_end(&mut bytes).await? < len {
            return Err(BrokerChannelError::Closed);
        }
        if len <= LARGE_BYTES {
            return Ok(codec::decode(&bytes)?);
        }
        let decoded = tokio::task::spawn_blocking(move || codec::decode(&bytes)).await;
        Ok(decoded.map_err(|_| BrokerChannelError::Closed)??)
    }
}
