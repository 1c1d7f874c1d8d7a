//! Frames of the control socket over any byte stream, for both ends: `length u32` (little endian), then the value.
//!
//! Memory grows with the bytes that really came, never with the length that was announced.

use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;
use vm_system_protocol::codec::{self, CodecError, Decode, Encode};

/// A write deadline holds for this many bytes (bytes).
pub const WRITE_CHUNK_BYTES: usize = 64 * 1024;
/// Memory claimed before the first byte of a frame's value is there (bytes).
const FIRST_CLAIM_BYTES: usize = 16 * 1024;

/// A frame could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The stream ended inside a frame.
    #[error("the stream ended in the middle of a frame")]
    HalfFrame,
    /// The announced length is over the cap.
    #[error("a frame of {len} bytes is over the cap of {cap} bytes")]
    TooLarge {
        /// Announced length (bytes).
        len: usize,
        /// The cap (bytes).
        cap: usize,
    },
    /// The frame's rest did not come in time.
    #[error("the rest of a frame did not come within {0:?}")]
    ReadDeadline(Duration),
    /// The peer does not take what is sent.
    #[error("the peer did not take what was sent within {0:?}")]
    WriteDeadline(Duration),
    /// The bytes are not the value that belongs here.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// The stream itself failed.
    #[error("stream: {0}")]
    Io(#[from] io::Error),
}

/// Reads one frame; `None` where the stream ends between frames. Waits for its first byte as long as it takes, then
/// `deadline` for the rest. Not cancel safe.
pub async fn read<T, R>(reader: &mut R, cap: usize, deadline: Duration) -> Result<Option<T>, FrameError>
where
    T: Decode<()> + Encode,
    R: AsyncRead + Unpin,
{
    let mut length = [0; 4];
    if reader.read(&mut length[..1]).await? == 0 {
        return Ok(None);
    }
    let rest = async {
        reader.read_exact(&mut length[1..]).await.map_err(half_frame)?;
        let len = u32::from_le_bytes(length) as usize;
        if len > cap {
            return Err(FrameError::TooLarge { len, cap });
        }
        let mut bytes = Vec::with_capacity(len.min(FIRST_CLAIM_BYTES));
        reader.take(len as u64).read_to_end(&mut bytes).await?;
        if bytes.len() < len { Err(FrameError::HalfFrame) } else { Ok(bytes) }
    };
    let bytes = timeout(deadline, rest).await.map_err(|_| FrameError::ReadDeadline(deadline))??;
    Ok(Some(codec::decode(&bytes)?))
}

fn half_frame(error: io::Error) -> FrameError {
    if error.kind() == io::ErrorKind::UnexpectedEof { FrameError::HalfFrame } else { FrameError::Io(error) }
}

/// The bytes of a frame, its length in front.
pub fn encode<T: Encode>(value: &T, cap: usize) -> Result<Vec<u8>, CodecError> {
    let value = codec::encode(value, cap)?;
    let len = u32::try_from(value.len()).map_err(|_| CodecError::TooLarge { len: value.len(), cap })?;
    let mut bytes = Vec::with_capacity(4 + value.len());
    bytes.extend_from_slice(&len.to_le_bytes());
    bytes.extend_from_slice(&value);
    Ok(bytes)
}

/// Writes the bytes of a frame; each [`WRITE_CHUNK_BYTES`] must be taken within `deadline`.
pub async fn write<W>(writer: &mut W, bytes: &[u8], deadline: Duration) -> Result<(), FrameError>
where
    W: AsyncWrite + Unpin,
{
    for chunk in bytes.chunks(WRITE_CHUNK_BYTES) {
        timeout(deadline, writer.write_all(chunk))
            .await
            .map_err(|_| FrameError::WriteDeadline(deadline))??;
    }
    Ok(())
}
