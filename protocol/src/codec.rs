//! Bytes ⇄ values: the only file that names bincode.
//!
//! Guarantees of [`decode`], whatever the bytes: no panic; memory claimed for containers is bounded by
//! [`AMPLIFICATION`] × the input; trailing bytes and non-canonical encodings are refused, so that a value has exactly
//! one encoding. The wire has no recursive types and no vectors of zero-sized types (bincode's limit bounds neither).

use bincode::config;
pub use bincode::{Decode, Encode};

/// Containers may claim at most this many bytes of memory per byte of input (an empty event takes 2 bytes on the wire
/// and about 100 in memory).
pub const AMPLIFICATION: usize = 64;

/// A message could not be turned into bytes or back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// The bytes are not an encoding of the expected type.
    #[error("undecodable message: {0}")]
    Undecodable(String),
    /// Bytes are left over behind the value.
    #[error("{0} trailing bytes behind the message")]
    Trailing(usize),
    /// The bytes decode, but are not the encoding that we would have written.
    #[error("non-canonical encoding")]
    NonCanonical,
    /// The message is larger than the channel's cap (bytes).
    #[error("message of {len} bytes is over the cap of {cap} bytes")]
    TooLarge {
        /// Size of the message in bytes.
        len: usize,
        /// The channel's cap in bytes.
        cap: usize,
    },
}

/// Encodes a value; fails only above `cap` bytes.
pub fn encode<T: Encode>(value: &T, cap: usize) -> Result<Vec<u8>, CodecError> {
    let bytes = bincode::encode_to_vec(value, config::standard())
        .map_err(|error| CodecError::Undecodable(error.to_string()))?;
    if bytes.len() > cap {
        return Err(CodecError::TooLarge { len: bytes.len(), cap });
    }
    Ok(bytes)
}

/// Decodes exactly one value from all of `bytes`.
pub fn decode<T: Decode<()> + Encode>(bytes: &[u8]) -> Result<T, CodecError> {
    const KIB: usize = 1024;
    // bincode's limit is a const generic; steps of 8 keep the claim proportional to the input.
    match bytes.len() {
        0..=512 => decode_limited::<T, { 512 * AMPLIFICATION }>(bytes),
        513..=4_096 => decode_limited::<T, { 4 * KIB * AMPLIFICATION }>(bytes),
        4_097..=32_768 => decode_limited::<T, { 32 * KIB * AMPLIFICATION }>(bytes),
        32_769..=262_144 => decode_limited::<T, { 256 * KIB * AMPLIFICATION }>(bytes),
        262_145..=2_097_152 => decode_limited::<T, { 2_048 * KIB * AMPLIFICATION }>(bytes),
        _ => decode_limited::<T, { 16_384 * KIB * AMPLIFICATION }>(bytes),
    }
}

fn decode_limited<T: Decode<()> + Encode, const LIMIT: usize>(bytes: &[u8]) -> Result<T, CodecError> {
    let (value, read) = bincode::decode_from_slice::<T, _>(bytes, config::standard().with_limit::<LIMIT>())
        .map_err(|error| CodecError::Undecodable(error.to_string()))?;
    if read != bytes.len() {
        return Err(CodecError::Trailing(bytes.len() - read));
    }
    let mut canonical = Compare { rest: bytes };
    match bincode::encode_into_writer(&value, &mut canonical, config::standard()) {
        Ok(()) if canonical.rest.is_empty() => Ok(value),
        _ => Err(CodecError::NonCanonical),
    }
}

/// Compares what would be written with what was read, without allocating.
struct Compare<'a> {
    rest: &'a [u8],
}

impl bincode::enc::write::Writer for &mut Compare<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), bincode::error::EncodeError> {
        match self.rest.strip_prefix(bytes) {
            Some(rest) => {
                self.rest = rest;
                Ok(())
            }
            None => Err(bincode::error::EncodeError::Other("non-canonical")),
        }
    }
}
