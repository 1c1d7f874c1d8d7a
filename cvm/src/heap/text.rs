//! Strings: Latin-1 or UTF-16 text, views on append-only buffers, concatenation.
//!
//! Owns: the storage of text. `a + b` appends in place if `a` ends where its buffer ends, so that building a string piece
//! by piece costs its length and a checkpoint stores only the new end. Must not: use objects or code.

use super::{Cell, Heap, StrCell};
use crate::pure::units::Units;
use crate::value::{Id, Value};
use std::hash::{BuildHasher, Hasher};

/// Borrowed text.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Text<'a> {
    /// Latin-1
    Narrow(&'a [u8]),
    /// UTF-16
    Wide(&'a [u16]),
}

/// Shared append-only text; `Wide` holds at least one unit above 255.
#[derive(Clone, Debug)]
pub(crate) enum Buf {
    /// Latin-1
    Narrow(Vec<u8>),
    /// UTF-16
    Wide(Vec<u16>),
}

/// Below this many units a concatenation is a plain copy.
const SHARE_FROM: usize = 32;

impl Buf {
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Buf::Narrow(t) => t.len(),
            Buf::Wide(t) => t.len() * 2,
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Buf::Narrow(t) => t.len(),
            Buf::Wide(t) => t.len(),
        }
    }

    pub(crate) fn prefix(&self, len: usize) -> Text<'_> {
        match self {
            Buf::Narrow(t) => Text::Narrow(t.get(..len).unwrap_or(t)),
            Buf::Wide(t) => Text::Wide(t.get(..len).unwrap_or(t)),
        }
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Text<'_>) -> bool {
        match (self, other) {
            (Text::Narrow(a), Text::Narrow(b)) => a == b,
            (Text::Wide(a), Text::Wide(b)) => a == b,
            _ => false,
        }
    }
}

impl Units for Text<'_> {
    #[inline]
    fn count(&self) -> usize {
        self.len()
    }
    #[inline]
    fn unit(&self, index: usize) -> u16 {
        self.unit_at(index)
    }
}

impl<'a> Text<'a> {
    /// Number of UTF-16 units.
    #[inline]
    pub(crate) fn len(self) -> usize {
        match self {
            Text::Narrow(t) => t.len(),
            Text::Wide(t) => t.len(),
        }
    }

    /// Whether there are no units.
    pub(crate) fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The unit at `i`; 0 past the end.
    #[inline]
    pub(crate) fn unit_at(self, i: usize) -> u16 {
        match self {
            Text::Narrow(t) => t.get(i).map_or(0, |&b| u16::from(b)),
            Text::Wide(t) => t.get(i).copied().unwrap_or(0),
        }
    }

    /// All units.
    pub(crate) fn units(self) -> impl DoubleEndedIterator<Item = u16> + ExactSizeIterator + 'a {
        (0..self.len()).map(move |i| self.unit_at(i))
    }

    /// UTF-16 copy.
    pub(crate) fn to_wide(self) -> Vec<u16> {
        match self {
            Text::Narrow(t) => t.iter().map(|&b| u16::from(b)).collect(),
            Text::Wide(t) => t.to_vec(),
        }
    }

    /// UTF-8 copy; a lone surrogate becomes U+FFFD.
    pub(crate) fn to_utf8(self) -> String {
        match self {
            Text::Narrow(t) => t.iter().map(|&b| char::from(b)).collect(),
            Text::Wide(t) => String::from_utf16_lossy(t),
        }
    }

    /// Units `from..to`, clamped.
    pub(crate) fn slice(self, from: usize, to: usize) -> Text<'a> {
        let to = to.min(self.len());
        let from = from.min(to);
        match self {
            Text::Narrow(t) => Text::Narrow(&t[from..to]),
            Text::Wide(t) => Text::Wide(&t[from..to]),
        }
    }

    /// Order by UTF-16 units.
    pub(crate) fn compare(self, other: Text<'_>) -> std::cmp::Ordering {
        match (self, other) {
            (Text::Narrow(a), Text::Narrow(b)) => a.cmp(b),
            (Text::Wide(a), Text::Wide(b)) => a.cmp(b),
            _ => self.units().cmp(other.units()),
        }
    }

    /// The array index below 2^31 - 1 that this text spells canonically.
    #[inline]
    pub(crate) fn as_index(self) -> Option<u32> {
        let Text::Narrow(t) = self else { return None };
        if t.is_empty() || t.len() > 10 || (t[0] == b'0' && t.len() > 1) {
            return None;
        }
        let mut n: u64 = 0;
        for &b in t {
            if !b.is_ascii_digit() {
                return None;
            }
            n = n * 10 + u64::from(b - b'0');
        }
        (n <= u64::from(crate::value::Key::MAX_INDEX)).then_some(n as u32)
    }

    pub(crate) fn hash64(self) -> u64 {
        let mut h = foldhash::fast::FixedState::default().build_hasher();
        match self {
            Text::Narrow(t) => h.write(t),
            Text::Wide(t) => t.iter().for_each(|&u| h.write_u16(u)),
        }
        h.finish()
    }
}

impl Heap {
    /// A string of UTF-8 text.
    pub(crate) fn new_str(&mut self, text: &str) -> Id {
        if text.is_ascii() {
            return self.new_narrow(text.as_bytes());
        }
        let units: Vec<u16> = text.encode_utf16().collect();
        self.new_wide(&units)
    }

    /// A string of Latin-1 text; single units are shared.
    pub(crate) fn new_narrow(&mut self, text: &[u8]) -> Id {
        match text {
            [] => crate::builtins::ids::EMPTY,
            [unit] => Id(u32::from(*unit)),
            _ => {
                self.measure(text.len());
                self.alloc(Cell::Str(StrCell::Narrow(text.into(), false)))
            }
        }
    }

    /// A string of UTF-16 text, stored narrow where possible.
    pub(crate) fn new_wide(&mut self, text: &[u16]) -> Id {
        if text.iter().all(|&u| u < 256) {
            let narrow: Vec<u8> = text.iter().map(|&u| u as u8).collect();
            return self.new_narrow(&narrow);
        }
        self.measure(text.len());
        self.alloc(Cell::Str(StrCell::Wide(text.into(), false)))
    }

    /// `text` from unit `from` to `to` as a string.
    pub(crate) fn substring(&mut self, id: Id, from: usize, to: usize) -> Id {
        let text = self.str(id);
        if from == 0 && to >= text.len() {
            return id;
        }
        match text.slice(from, to) {
            Text::Narrow(t) => {
                let copy = t.to_vec();
                self.new_narrow(&copy)
            }
            Text::Wide(t) => {
                let copy = t.to_vec();
                self.new_wide(&copy)
            }
        }
    }

    /// Units of `a + b`.
    pub(crate) fn concat_len(&self, a: Id, b: Id) -> usize {
        self.str(a).len() + self.str(b).len()
    }

    /// The string `a + b`.
    pub(crate) fn concat(&mut self, a: Id, b: Id) -> Id {
        let (left, right) = (self.str(a), self.str(b));
        let (n, m) = (left.len(), right.len());
        if m == 0 {
            return a;
        }
        if n == 0 {
            return b;
        }
        self.measure(n + m);
        let (left, right) = (self.str(a), self.str(b));
        if n + m < SHARE_FROM {
            return match (left, right) {
                (Text::Narrow(l), Text::Narrow(r)) => {
                    let joined = [l, r].concat();
                    self.new_narrow(&joined)
                }
                _ => {
                    let mut joined = left.to_wide();
                    joined.extend(right.units());
                    self.new_wide(&joined)
                }
            };
        }
        if let Some(Cell::Str(StrCell::View(buf, len))) = self.cell(a) {
            let (buf, len) = (*buf, *len as usize);
            if self.append(buf, len, b) {
                return self.alloc(Cell::Str(StrCell::View(buf, (n + m) as u32)));
            }
        }
        let (left, right) = (self.str(a), self.str(b));
        let joined = match (left, right) {
            (Text::Narrow(l), Text::Narrow(r)) => Buf::Narrow([l, r].concat()),
            _ => {
                let mut joined = left.to_wide();
                joined.extend(right.units());
                Buf::Wide(joined)
            }
        };
        let buf = self.alloc(Cell::Buf(Box::new(joined)));
        self.alloc(Cell::Str(StrCell::View(buf, (n + m) as u32)))
    }

    /// Appends `b` to a buffer if `len` is its end; false if another string was appended there already.
    fn append(&mut self, buf: Id, len: usize, b: Id) -> bool {
        let Some(Cell::Buf(target)) = self.cells.get_mut(buf.index()) else { return false };
        if target.len() != len {
            return false;
        }
        // The buffer is taken out of its cell while it grows; `b` may be a view on it.
        let mut target = std::mem::replace(target, Box::new(Buf::Narrow(Vec::new())));
        let before = target.bytes();
        let fits = match (&mut *target, self.cell(b)) {
            (Buf::Narrow(t), Some(Cell::Str(StrCell::View(same, n)))) if *same == buf => {
                t.extend_from_within(..(*n as usize).min(len));
                true
            }
            (Buf::Wide(t), Some(Cell::Str(StrCell::View(same, n)))) if *same == buf => {
                t.extend_from_within(..(*n as usize).min(len));
                true
            }
            (target, _) => match (target, self.str(b)) {
                (Buf::Narrow(t), Text::Narrow(r)) => {
                    t.extend_from_slice(r);
                    true
                }
                (Buf::Wide(t), r) => {
                    t.extend(r.units());
                    true
                }
                _ => false,
            },
        };
        let after = target.bytes();
        if let Some(slot) = self.cells.get_mut(buf.index()) {
            *slot = Cell::Buf(target);
        }
        if fits {
            self.touch_text(buf, before..after);
            self.charge(after - before);
        }
        fits
    }

    /// A value that is a new string.
    pub(crate) fn str_value(&mut self, text: &str) -> Value {
        Value::Str(self.new_str(text))
    }
}
