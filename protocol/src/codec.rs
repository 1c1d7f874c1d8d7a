//! Bytes ⇄ values: the only file that uses bincode.
//!
//! Guarantees of [`decode`], whatever the bytes: no panic; the memory that a container may allocate is bounded by
//! [`claim_limit`] of the input's size; trailing bytes and non-canonical encodings are refused, so that a value has exactly
//! one encoding. The wire has no recursive types and no vectors of zero-sized types (bincode's limit bounds neither).

use bincode::config;
use bincode::de::read::Reader;
use bincode::de::{Decoder as _, DecoderImpl};
use bincode::error::DecodeError;
pub use bincode::{Decode, Encode};

/// Containers may claim this many bytes of memory per byte of input: an empty string takes 1 byte on the wire and 24 in
/// memory, which no other element of a list exceeds.
pub const AMPLIFICATION: usize = 32;

const KIB: usize = 1024;
/// Sizes of input (bytes) from which the next larger claim is allowed; a factor of 4 keeps the claim proportional to the input.
const STEPS: [usize; 9] =
    [KIB / 2, 2 * KIB, 8 * KIB, 32 * KIB, 128 * KIB, 512 * KIB, 2_048 * KIB, 8_192 * KIB, 32_768 * KIB];
/// The most that containers may claim of any input (bytes). bincode's limit is a const generic, and each one would be another copy of
/// all decoders in the binary: [`decode`] claims what an input may not have before it begins.
const MOST_CLAIMED: usize = STEPS[STEPS.len() - 1] * AMPLIFICATION;

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
    let undecodable = |error: DecodeError| CodecError::Undecodable(error.to_string());
    let limited = config::standard().with_limit::<MOST_CLAIMED>();
    let mut decoder = DecoderImpl::new(Unread(bytes), limited, ());
    decoder.claim_bytes_read(MOST_CLAIMED - claim_limit(bytes.len())).map_err(undecodable)?;
    let value = T::decode(&mut decoder).map_err(undecodable)?;
    let Unread(rest) = decoder.reader();
    if !rest.is_empty() {
        return Err(CodecError::Trailing(rest.len()));
    }
    let mut canonical = Compare { rest: bytes };
    match bincode::encode_into_writer(&value, &mut canonical, config::standard()) {
        Ok(()) if canonical.rest.is_empty() => Ok(value),
        _ => Err(CodecError::NonCanonical),
    }
}

/// The bytes that are not read yet. bincode's own reader does not say how many are left.
struct Unread<'a>(&'a [u8]);

impl Reader for Unread<'_> {
    #[inline]
    fn read(&mut self, bytes: &mut [u8]) -> Result<(), DecodeError> {
        let Some((read, rest)) = self.0.split_at_checked(bytes.len()) else {
            return Err(DecodeError::UnexpectedEnd { additional: bytes.len() - self.0.len() });
        };
        bytes.copy_from_slice(read);
        self.0 = rest;
        Ok(())
    }

    #[inline]
    fn peek_read(&mut self, len: usize) -> Option<&[u8]> {
        self.0.get(..len)
    }

    #[inline]
    fn consume(&mut self, len: usize) {
        self.0 = self.0.get(len..).unwrap_or_default();
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
