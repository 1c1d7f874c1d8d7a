//! Frames on the socket to the supervisor: `length u32` (little endian), then one encoded value. Knows nothing of requests.

use std::io;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::mpsc;
use vm_system_protocol::codec::{self, CodecError};
use vm_system_protocol::egress::{FromEgress, ToEgress};
use vm_system_protocol::limits::EGRESS_MESSAGE_BYTES;

/// Messages that wait are written together up to this size (bytes).
const BATCH_BYTES: usize = 256 * 1024;

/// Receives one message; `None`: the supervisor has closed the channel.
pub async fn receive(socket: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<ToEgress>> {
    let length = match socket.read_u32_le().await {
        Ok(length) => length as usize,
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    };
    if length > EGRESS_MESSAGE_BYTES {
        return Err(io::Error::other(CodecError::TooLarge { len: length, cap: EGRESS_MESSAGE_BYTES }));
    }
    let mut bytes = vec![0; length];
    socket.read_exact(&mut bytes).await?;
    codec::decode(&bytes).map(Some).map_err(io::Error::other)
}

/// Appends a frame with a message.
pub fn frame(message: &FromEgress, to: &mut Vec<u8>) -> io::Result<()> {
    let bytes = codec::encode(message, EGRESS_MESSAGE_BYTES).map_err(io::Error::other)?;
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    to.extend(length.to_le_bytes());
    to.extend(bytes);
    Ok(())
}

/// Writes messages until there are no more senders.
pub async fn write_all(
    mut socket: OwnedWriteHalf,
    mut messages: mpsc::Receiver<FromEgress>,
) -> io::Result<()> {
    let mut batch = Vec::new();
    while let Some(message) = messages.recv().await {
        batch.clear();
        frame(&message, &mut batch)?;
        while batch.len() < BATCH_BYTES
            && let Ok(message) = messages.try_recv()
        {
            frame(&message, &mut batch)?;
        }
        socket.write_all(&batch).await?;
    }
    Ok(())
}
