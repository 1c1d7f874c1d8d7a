//! Frames of the control socket as bytes: `length u32` (little endian), then the value. Does no I/O: both ends read and write.

use crate::codec::{self, CodecError, Encode};

/// Bytes of a frame before its value.
pub const HEADER_BYTES: usize = 4;
/// The deadline for a write applies to each piece of this size (bytes).
pub const WRITE_CHUNK_BYTES: usize = 64 * 1024;

/// The bytes of a frame; fails only above `cap` bytes of value.
pub fn encode<T: Encode>(value: &T, cap: usize) -> Result<Vec<u8>, CodecError> {
    let value = codec::encode(value, cap)?;
    let len = u32::try_from(value.len()).map_err(|_| CodecError::TooLarge { len: value.len(), cap })?;
    let mut bytes = Vec::with_capacity(HEADER_BYTES + value.len());
    bytes.extend_from_slice(&len.to_le_bytes());
    bytes.extend_from_slice(&value);
    Ok(bytes)
}

/// The length of the value that a header announces (bytes); refused above `cap`.
pub fn value_len(header: [u8; HEADER_BYTES], cap: usize) -> Result<usize, CodecError> {
    let len = u32::from_le_bytes(header) as usize;
    if len > cap { Err(CodecError::TooLarge { len, cap }) } else { Ok(len) }
}
