//! One logical message ⇄ packets of a `SOCK_SEQPACKET` channel.
//!
//! A packet is a 16-byte header and a piece of the message:
//! `seq u64 · total u32 · offset u32` (little endian), then at least one byte. All pieces of a message carry the same
//! `seq` and `total`; offsets have no gaps. The kernel keeps record boundaries, so a sender that exits in the
//! middle of a message leaves only complete packets. The buffer grows with the received bytes, not to the announced size.

use crate::limits::PACKET_BYTES;

/// Bytes of the header.
pub const HEADER_BYTES: usize = 16;
/// Bytes of a message that fit one packet.
pub const PIECE_BYTES: usize = PACKET_BYTES - HEADER_BYTES;

/// Why a packet was refused. Always fatal for the channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// Shorter than a header and one byte, or longer than [`PACKET_BYTES`].
    #[error("packet of {0} bytes")]
    Size(usize),
    /// The claimed message size is zero or above the channel's cap.
    #[error("message of {total} bytes claimed, cap {cap}")]
    Total {
        /// Claimed size in bytes.
        total: u32,
        /// The channel's cap in bytes.
        cap: usize,
    },
    /// A piece that does not continue the unfinished message.
    #[error("piece out of order")]
    Piece,
    /// A sequence number other than the next one.
    #[error("sequence {got}, expected {expected}")]
    Sequence {
        got: u64,
        /// The expected number.
        expected: u64,
    },
}

/// Splits a message into packets. `message` must not be empty and must be below 4 GiB (the codec's caps ensure both).
pub fn packets(seq: u64, message: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    pieces(seq, message).map(|(header, piece)| [&header, piece].concat())
}

/// As [`packets`], with header and piece apart, for gathering writes.
pub fn pieces(seq: u64, message: &[u8]) -> impl Iterator<Item = ([u8; HEADER_BYTES], &[u8])> + '_ {
    let total = message.len() as u32;
    message.chunks(PIECE_BYTES).enumerate().map(move |(index, piece)| {
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(&seq.to_le_bytes());
        header[8..12].copy_from_slice(&total.to_le_bytes());
        header[12..].copy_from_slice(&((index * PIECE_BYTES) as u32).to_le_bytes());
        (header, piece)
    })
}

/// A complete logical message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The sender's sequence number, from 1.
    pub seq: u64,
    /// The encoded value.
    pub bytes: Vec<u8>,
}

/// The check of sequence numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    /// Exactly this number.
    Exactly(u64),
    /// Any number: the peer's queue still holds messages from before an adoption.
    Any,
}

/// Reassembles messages from packets.
#[derive(Debug)]
pub struct Reassembler {
    cap: usize,
    expect: Expect,
    partial: Option<Partial>,
}

#[derive(Debug)]
struct Partial {
    seq: u64,
    total: u32,
    bytes: Vec<u8>,
}

impl Reassembler {
    /// For a channel with messages of at most `cap` bytes that start at sequence 1.
    pub fn new(cap: usize) -> Self {
        Self { cap, expect: Expect::Exactly(1), partial: None }
    }

    /// After an adoption: accept any sequence until [`Reassembler::expect`] is called. The previous supervisor may have received
    /// the beginning of an unfinished message; its remaining pieces are dropped.
    pub fn accept_any(&mut self) {
        self.expect = Expect::Any;
        self.partial = None;
    }

    /// The next message must have this sequence number.
    pub fn expect(&mut self, seq: u64) {
        self.expect = Expect::Exactly(seq);
    }

    /// Whether a message has begun and not ended.
    pub fn is_partial(&self) -> bool {
        self.partial.is_some()
    }

    /// Takes one packet; returns the message that it completes.
    pub fn push(&mut self, packet: &[u8]) -> Result<Option<Message>, PacketError> {
        if packet.len() <= HEADER_BYTES || packet.len() > PACKET_BYTES {
            return Err(PacketError::Size(packet.len()));
        }
        let (header, piece) = packet.split_at(HEADER_BYTES);
        let seq = u64::from_le_bytes(header[..8].try_into().map_err(|_| PacketError::Piece)?);
        let total = u32::from_le_bytes(header[8..12].try_into().map_err(|_| PacketError::Piece)?);
        let offset = u32::from_le_bytes(header[12..].try_into().map_err(|_| PacketError::Piece)?);
        if total == 0 || total as usize > self.cap {
            return Err(PacketError::Total { total, cap: self.cap });
        }
        match (&self.partial, self.expect) {
            (None, Expect::Any) if offset != 0 => return Ok(None),
            (None, Expect::Exactly(expected)) if seq != expected => {
                return Err(PacketError::Sequence { got: seq, expected });
            }
            _ => {}
        }
        let mut partial = self.partial.take().unwrap_or(Partial { seq, total, bytes: Vec::new() });
        let fits = partial.bytes.len() + piece.len() <= total as usize;
        if partial.seq != seq || partial.total != total || partial.bytes.len() != offset as usize || !fits {
            return Err(PacketError::Piece);
        }
        partial.bytes.extend_from_slice(piece);
        if partial.bytes.len() < total as usize {
            // Only the last piece may be short, so that a message takes no more packets than necessary.
            if piece.len() != PIECE_BYTES {
                return Err(PacketError::Piece);
            }
            self.partial = Some(partial);
            return Ok(None);
        }
        if let Expect::Exactly(expected) = self.expect {
            self.expect = Expect::Exactly(expected.wrapping_add(1));
        }
        Ok(Some(Message { seq, bytes: partial.bytes }))
    }
}
