//! Reads and writes frames ([`protocol::control::frame`](vm_system_protocol::control::frame)) over any byte stream.
//!
//! Memory grows with the received bytes, not with the announced length.

use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;
use vm_system_protocol::codec::{self, CodecError, Decode, Encode};
pub use vm_system_protocol::control::frame::encode;
use vm_system_protocol::control::frame::{HEADER_BYTES, WRITE_CHUNK_BYTES, value_len};
use vm_system_runtime::shares::{Share, ShareRefusal};

/// Memory that is allocated before the first byte of a frame's value (bytes).
const FIRST_CLAIM_BYTES: usize = 16 * 1024;

/// Why a frame could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The stream ended inside a frame.
    #[error("the stream ended in the middle of a frame")]
    HalfFrame,
    /// The rest of a frame did not arrive in time.
    #[error("the rest of a frame did not arrive within {0:?}")]
    ReadDeadline(Duration),
    /// There is no memory for the frame.
    #[error("no memory for a frame: {0}")]
    NoMemory(ShareRefusal),
    /// The peer does not read.
    #[error("the peer did not read within {0:?}")]
    WriteDeadline(Duration),
    /// The announced length is above the cap, or the bytes are not a valid value.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// The stream itself failed.
    #[error("stream: {0}")]
    Io(#[from] io::Error),
}

/// Reads one frame; `None` if the stream ends between frames. Waits for the first byte without a deadline, then `deadline` for
/// the rest. Not cancel safe.
pub async fn read<T, R>(reader: &mut R, cap: usize, deadline: Duration) -> Result<Option<T>, FrameError>
where
    T: Decode<()> + Encode,
    R: AsyncRead + Unpin,
{
    let read = read_reserved(reader, cap, deadline, async |_| Ok(None)).await?;
    Ok(read.map(|(value, _)| value))
}

/// As [`read`], but the value of the frame is read only when `reserve` has memory for so many bytes.
pub(super) async fn read_reserved<T, R>(
    reader: &mut R,
    cap: usize,
    deadline: Duration,
    reserve: impl AsyncFnOnce(usize) -> Result<Option<Share>, FrameError>,
) -> Result<Option<(T, Option<Share>)>, FrameError>
where
    T: Decode<()> + Encode,
    R: AsyncRead + Unpin,
{
    let mut header = [0; HEADER_BYTES];
    if reader.read(&mut header[..1]).await? == 0 {
        return Ok(None);
    }
    timeout(deadline, reader.read_exact(&mut header[1..]))
        .await
        .map_err(|_| FrameError::ReadDeadline(deadline))?
        .map_err(half_frame)?;
    let len = value_len(header, cap)?;
    let memory = reserve(len).await?;
    let rest = async {
        let mut bytes = Vec::with_capacity(len.min(FIRST_CLAIM_BYTES));
        reader.take(len as u64).read_to_end(&mut bytes).await?;
        if bytes.len() < len { Err(FrameError::HalfFrame) } else { Ok(bytes) }
    };
    let bytes = timeout(deadline, rest).await.map_err(|_| FrameError::ReadDeadline(deadline))??;
    Ok(Some((codec::decode(&bytes)?, memory)))
}

fn half_frame(error: io::Error) -> FrameError {
    if error.kind() == io::ErrorKind::UnexpectedEof { FrameError::HalfFrame } else { FrameError::Io(error) }
}

/// Slowest reader of a frame (bytes per second), beside `deadline`: what waits for it has memory.
pub(crate) const SLOWEST: usize = 32 * 1024;

/// Writes the bytes of a frame; the peer must read each [`WRITE_CHUNK_BYTES`] within `deadline`, and all of them within that and a
/// second for each [`SLOWEST`] bytes.
pub async fn write<W>(writer: &mut W, bytes: &[u8], deadline: Duration) -> Result<(), FrameError>
where
    W: AsyncWrite + Unpin,
{
    let all = deadline + Duration::from_secs((bytes.len() / SLOWEST) as u64);
    let writing = async {
        for chunk in bytes.chunks(WRITE_CHUNK_BYTES) {
            timeout(deadline, writer.write_all(chunk))
                .await
                .map_err(|_| FrameError::WriteDeadline(deadline))??;
        }
        writer.flush().await?;
        Ok(())
    };
    timeout(all, writing).await.map_err(|_| FrameError::WriteDeadline(all))?
}
