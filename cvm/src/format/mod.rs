//! Stored bytes: programs and pages of state.
//!
//! Reading order: this file (framing), `codec` (numbers and values), `cells`, `texts`, `packs`, `frame_page`, `pages`, `unit`,
//! `generation`, `verify_code`, `scopes`, `references`, `verify_state`. All input is hostile: lengths are checked against the remaining bytes before anything is
//! allocated, nothing recurses, and nothing runs before it was verified.

mod cells;
mod codec;
mod frame_page;
mod generation;
mod packs;
mod pages;
mod references;
mod scopes;
#[cfg(test)]
mod tests;
mod texts;
mod unit;
mod verify_code;
mod verify_state;

#[cfg(test)]
pub(crate) use generation::write_generation;
pub(crate) use generation::{read_generation, read_generation_natives};
pub(crate) use pages::Versions;
pub use pages::{CheckpointPages, VmPage};

/// Version of the stored format; increases with every change of the format.
pub(crate) const VERSION: u8 = 1;

/// Why stored bytes are refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FormatError {
    /// Not written by this engine
    #[error("not a stored program or page")]
    Magic,
    /// Written in a format that this engine does not support
    #[error("format version {0} is not supported")]
    Version(u8),
    /// Length and header differ
    #[error("the stored length is wrong")]
    Length,
    /// The bytes changed after they were written
    #[error("the checksum is wrong")]
    Checksum,
    /// The bytes end too early
    #[error("the stored bytes end too early")]
    End,
    /// A value that this format does not allow
    #[error("invalid {0}")]
    Invalid(&'static str),
    /// The state was saved for another program
    #[error("the state belongs to another program")]
    Program,
    /// The program was compiled for a generation of the builtins that this engine does not have
    #[error("generation {0} of the builtins is not known here: a newer release made this program")]
    Generation(u32),
}

/// Bytes of a header.
const HEADER: usize = 11;

/// FNV-1a over the page's number and content: detects damage, not forgery.
pub(crate) fn checksum(number: u64, body: &[u8]) -> u32 {
    let mut h: u64 = 0xcbf2_9ce4_8422_2325 ^ number;
    for chunk in body.chunks(8) {
        let mut word = [0u8; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        h = (h ^ u64::from_le_bytes(word)).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
    }
    h = (h ^ body.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (h ^ (h >> 32)) as u32
}

/// Puts the header in front of a body.
pub(crate) fn frame(magic: [u8; 2], number: u64, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER + body.len());
    out.extend_from_slice(&magic);
    out.push(VERSION);
    out.extend_from_slice(&(body.len() as u32).to_le_bytes());
    out.extend_from_slice(&checksum(number, body).to_le_bytes());
    out.extend_from_slice(body);
    out
}

/// The body, if the header is valid.
pub(crate) fn unframe(magic: [u8; 2], number: u64, bytes: &[u8]) -> Result<&[u8], FormatError> {
    let (header, body) = bytes.split_at_checked(HEADER).ok_or(FormatError::End)?;
    if header[..2] != magic {
        return Err(FormatError::Magic);
    }
    if header[2] != VERSION {
        return Err(FormatError::Version(header[2]));
    }
    if u32::from_le_bytes([header[3], header[4], header[5], header[6]]) as usize != body.len() {
        return Err(FormatError::Length);
    }
    if u32::from_le_bytes([header[7], header[8], header[9], header[10]]) != checksum(number, body) {
        return Err(FormatError::Checksum);
    }
    Ok(body)
}
