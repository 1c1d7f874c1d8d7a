//! Bytes ⇄ values: the only file that uses bincode.
//!
//! Guarantees of [`decode`], whatever the bytes: no panic; the memory that a container may allocate is bounded by
//! [`claim_limit`] of the input's size; trailing bytes and non-canonical encodings are refused, so that a value has exactly
//! one encoding. The wire has no recursive types and no vectors of zero-sized types (bincode's limit bounds neither).

use bincode::config;
pub use bincode::{Decode, Encode};

/// Containers may claim this many bytes of memory per byte of input: an empty string takes 1 byte on the wire and 24 in
/// memory, which no other element of a list exceeds.
pub const AMPLIFICATION: usize = 32;

const KIB: usize = 1024;
/// Sizes of input (bytes) from which the next larger claim is allowed. bincode's limit is a const generic and so grows in
/// steps; a factor of 4 keeps the claim proportional to the input.
const STEPS: [usize; 9] =
    [KIB / 2, 2 * KIB, 8 * KIB, 32 * KIB, 128 * KIB, 512 * KIB, 2_048 * KIB, 8_192 * KIB, 32_768 * KIB];

/// The most that containers may claim at any moment while `len` bytes are decoded (bytes). The received bytes are
/// held in addition, so that the peak is below three times this value, whatever the bytes.
pub const fn claim_limit(len: usize) -> usize {
    let mut step = 0;
    while step + 1 < STEPS.len() && len > STEPS[step] {
        step += 1;
    }
    STEPS[step] * AMPLIFICATION
}

/// A message could not be turned into bytes or back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// The bytes are not an encoding of the expected type.
    #[error("undecodable message: {0}")]
    Undecodable(String),
    /// Bytes are left over after the value.
    #[error("{0} trailing bytes after the message")]
    Trailing(usize),
    /// The bytes decode, but are not the encoding that [`encode`] writes.
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
    match STEPS.iter().position(|step| bytes.len() <= *step) {
        Some(0) => decode_limited::<T, { STEPS[0] * AMPLIFICATION }>(bytes),
        Some(1) => decode_limited::<T, { STEPS[1] * AMPLIFICATION }>(bytes),
        Some(2) => decode_limited::<T, { STEPS[2] * AMPLIFICATION }>(bytes),
        Some(3) => decode_limited::<T, { STEPS[3] * AMPLIFICATION }>(bytes),
        Some(4) => decode_limited::<T, { STEPS[4] * AMPLIFICATION }>(bytes),
        Some(5) => decode_limited::<T, { STEPS[5] * AMPLIFICATION }>(bytes),
        Some(6) => decode_limited::<T, { STEPS[6] * AMPLIFICATION }>(bytes),
        Some(7) => decode_limited::<T, { STEPS[7] * AMPLIFICATION }>(bytes),
        _ => decode_limited::<T, { STEPS[8] * AMPLIFICATION }>(bytes),
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

/// Compares the written bytes with the bytes that were read, without allocating.
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
