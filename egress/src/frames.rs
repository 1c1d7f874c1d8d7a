//! The frames of HTTP/2 that a server sends, followed as far as memory needs it: how many heads and fields there are, how many bytes of
//! bodies. Decodes no field, and leaves errors to the library, which ends the connection.

use crate::held::Arrived;
use crate::metered::{Allowance, write_through};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const FRAME_HEAD: usize = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PUSH_PROMISE: u8 = 5;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const PRIORITY: u8 = 0x20;
const PRIORITY_BYTES: usize = 5;
const PROMISE_BYTES: usize = 4;

/// The frame that is arriving.
#[derive(Debug, Default)]
struct Frames {
    head: [u8; FRAME_HEAD],
    /// Bytes of the head that have arrived.
    have: usize,
    /// Bytes of the payload that have not.
    left: usize,
    /// Of them, bytes before the fields.
    before: usize,
    /// Of them, bytes after the fields.
    padding: usize,
    fields: Fields,
}

impl Frames {
    fn kind(&self) -> u8 {
        self.head[3]
    }

    fn has_flag(&self, flag: u8) -> bool {
        self.head[4] & flag != 0
    }

    /// Counts the heads, fields and bytes of bodies that begin in these bytes.
    fn follow(&mut self, mut bytes: &[u8]) -> Arrived {
        let mut arrived = Arrived::default();
        while !bytes.is_empty() {
            if self.have < FRAME_HEAD {
                let (part, rest) = bytes.split_at(bytes.len().min(FRAME_HEAD - self.have));
                self.head[self.have..self.have + part.len()].copy_from_slice(part);
                self.have += part.len();
                bytes = rest;
                if self.have == FRAME_HEAD {
                    self.begin(&mut arrived);
                }
            } else {
                let (part, rest) = bytes.split_at(bytes.len().min(self.left));
                if matches!(self.kind(), HEADERS | PUSH_PROMISE | CONTINUATION) {
                    self.block(part, &mut arrived);
                }
                self.left -= part.len();
                bytes = rest;
            }
            if self.have == FRAME_HEAD && self.left == 0 {
                self.end();
            }
        }
        arrived
    }

    fn begin(&mut self, arrived: &mut Arrived) {
        let [first, second, third, ..] = self.head;
        self.left = usize::from(first) << 16 | usize::from(second) << 8 | usize::from(third);
        (self.before, self.padding) = (0, 0);
        match self.kind() {
            // The library stores them as a whole.
            DATA => arrived.data += self.left,
            HEADERS => {
                arrived.heads += 1;
                self.before = if self.has_flag(PRIORITY) { PRIORITY_BYTES } else { 0 };
            }
            PUSH_PROMISE => {
                arrived.heads += 1;
                self.before = PROMISE_BYTES;
            }
            _ => {}
        }
        if self.has_flag(PADDED) && matches!(self.kind(), HEADERS | PUSH_PROMISE) {
            // Known with its first byte.
            self.before += 1;
            self.padding = usize::MAX;
        }
    }

    /// Part of the payload of a frame that has fields.
    fn block(&mut self, part: &[u8], arrived: &mut Arrived) {
        if self.padding == usize::MAX {
            self.padding = part.first().copied().unwrap_or_default().into();
        }
        let (before, part) = part.split_at(part.len().min(self.before));
        self.before -= before.len();
        let left = self.left - before.len();
        let fields = &part[..part.len().min(left.saturating_sub(self.padding))];
        arrived.fields += self.fields.follow(fields);
        arrived.head_bytes += fields.len();
    }

    fn end(&mut self) {
        if matches!(self.kind(), HEADERS | PUSH_PROMISE | CONTINUATION) && self.has_flag(END_HEADERS) {
            self.fields = Fields::default();
        }
        self.have = 0;
    }
}

/// Position in a block of fields (HPACK): the meaning of its next byte.
#[derive(Debug, Default, Clone, Copy)]
enum Fields {
    #[default]
    Begin,
    /// Of a number that goes on; so many texts follow it.
    Number { texts: u8 },
    /// The length of the first of so many texts.
    Length { texts: u8 },
    /// The length goes on.
    LongLength { texts: u8, length: usize, shift: u32 },
    /// Of a text, with so many texts after it.
    Text { texts: u8, left: usize },
}

impl Fields {
    /// The number of fields that begin in these bytes.
    fn follow(&mut self, mut bytes: &[u8]) -> usize {
        let mut fields = 0;
        while let [byte, rest @ ..] = bytes {
            let byte = *byte;
            bytes = rest;
            *self = match *self {
                Self::Begin if byte & 0xe0 == 0x20 => Self::number(byte, 0x1f, 0),
                Self::Begin => {
                    fields += 1;
                    let (mask, most) = match byte {
                        0x80.. => (0x7f, 0),
                        0x40.. => (0x3f, 2),
                        _ => (0x0f, 2),
                    };
                    // Without an index the name is a text, too.
                    Self::number(byte, mask, if byte & mask == 0 { most } else { most / 2 })
                }
                Self::Number { texts } if byte & 0x80 != 0 => Self::Number { texts },
                Self::Number { texts } => Self::next_text(texts),
                Self::Length { texts } if byte & 0x7f == 0x7f => {
                    Self::LongLength { texts, length: 0x7f, shift: 0 }
                }
                Self::Length { texts } => Self::text(texts, usize::from(byte & 0x7f)),
                Self::LongLength { texts, length, shift } => {
                    // The library refuses longer ones.
                    let more = usize::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
                    let length = length.saturating_add(more);
                    if byte & 0x80 == 0 {
                        Self::text(texts, length)
                    } else {
                        Self::LongLength { texts, length, shift: shift.saturating_add(7) }
                    }
                }
                Self::Text { texts, left } => {
                    let skipped = bytes.len().min(left - 1);
                    bytes = &bytes[skipped..];
                    Self::text_rest(texts, left - 1 - skipped)
                }
            };
        }
        fields
    }

    fn number(byte: u8, mask: u8, texts: u8) -> Self {
        if byte & mask == mask { Self::Number { texts } } else { Self::next_text(texts) }
    }

    fn next_text(texts: u8) -> Self {
        if texts == 0 { Self::Begin } else { Self::Length { texts } }
    }

    /// After the length of the first of so many texts.
    fn text(texts: u8, length: usize) -> Self {
        Self::text_rest(texts - 1, length)
    }

    fn text_rest(texts: u8, left: usize) -> Self {
        if left == 0 { Self::next_text(texts) } else { Self::Text { texts, left } }
    }
}

/// A stream of HTTP/2 that fails when too much of what has arrived is held.
#[derive(Debug)]
pub(crate) struct FramedStream<S> {
    stream: S,
    allowance: Arc<Allowance>,
    frames: Frames,
}

impl<S> FramedStream<S> {
    pub(crate) fn new(stream: S, allowance: Arc<Allowance>) -> Self {
        Self { stream, allowance, frames: Frames::default() }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for FramedStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, buffer))?;
        let arrived = this.frames.follow(&buffer.filled()[before..]);
        this.allowance.held.add(&arrived);
        Poll::Ready(match this.allowance.held.failure() {
            None => Ok(()),
            Some(failure) => Err(io::Error::new(io::ErrorKind::QuotaExceeded, failure)),
        })
    }
}

write_through!(FramedStream);

#[cfg(test)]
mod tests {
    use super::{Arrived, CONTINUATION, DATA, END_HEADERS, FRAME_HEAD, Frames, HEADERS, PADDED, PRIORITY};

    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
        bytes.extend([kind, flags, 0, 0, 0, 1]);
        assert_eq!(bytes.len(), FRAME_HEAD);
        bytes.extend(payload);
        bytes
    }

    #[test]
    fn heads_fields_and_bodies_are_counted_however_they_are_cut() {
        // An indexed field, one by a long index, a literal with a name, one with an index and a long value, a size of the table.
        let mut fields = vec![0x88, 0xff, 0x01, 0x40, 1, b'a', 1, 0x80, 0x04, 0x7f, 0x81, 0x01];
        fields.extend([0x82; 256]);
        fields.extend([0x3f, 0x80, 0x01, 0x0f, 0x01, 0, 0x10, 0, 0]);
        let padded = [&[3, 0, 0, 0, 0, 9], fields.as_slice(), &[0; 3]].concat();
        let (begin, rest) = fields.split_at(9);
        let bytes = [
            frame(HEADERS, END_HEADERS, &fields),
            frame(DATA, PADDED, &[7; 100]),
            frame(HEADERS, END_HEADERS | PADDED | PRIORITY, &padded),
            frame(6, 0, &[0x88; 8]),
            frame(HEADERS, 0, begin),
            frame(CONTINUATION, 0, &[]),
            frame(CONTINUATION, END_HEADERS, rest),
            frame(HEADERS, END_HEADERS, &[0x88]),
            frame(DATA, 0, &[]),
        ]
        .concat();
        let expected = Arrived { heads: 4, fields: 3 * 6 + 1, head_bytes: 3 * fields.len() + 1, data: 100 };
        for size in [bytes.len(), 1, 2, 7, 100] {
            let mut frames = Frames::default();
            let mut all = Arrived::default();
            for part in bytes.chunks(size) {
                let arrived = frames.follow(part);
                all.heads += arrived.heads;
                all.fields += arrived.fields;
                all.head_bytes += arrived.head_bytes;
                all.data += arrived.data;
            }
            assert_eq!(all, expected, "in pieces of {size} bytes");
        }
    }
}
