//! Text that is stored outside of its cell, as chunks that are named by their content.
//!
//! The cuts follow from the text around them and not from positions. So a text that was built anew, that lost its beginning or got
//! something inserted has most chunks of the old one, and chunks that are stored already are not written again. Equal parts
//! of different texts are one chunk.
//!
//! Owns: the cuts, the numbers of chunks, which cells use them. Must not: encode cells or pages.

use super::packs::{ChangedRecords, Packs, hash};
use crate::heap::text::Text;
use std::collections::HashMap;

/// Set in the numbers of chunks of text; the bits below are a hash of the content.
pub(super) const TEXT_BIT: u64 = 1 << 60;
/// Least and most bytes between two cuts; half of the cuts of arbitrary text are within 1.5 KiB behind the least.
const LEAST: usize = 1 << 10;
const MOST: usize = 8 << 10;
/// A cut is behind a byte where these bits of the rolling hash are zero.
const CUT_BITS: u32 = 11;
/// Bytes that the rolling hash depends on.
const WINDOW: usize = 64;

/// A random number for each byte (splitmix64).
const GEAR: [u64; 256] = {
    let (mut table, mut i, mut state) = ([0; 256], 0, 0x0076_6d5f_7465_7874_u64);
    while i < 256 {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        table[i] = z ^ (z >> 31);
        i += 1;
    }
    table
};

/// Length of the first chunk of a text of which `head` is the beginning: all of it, or [`MOST`] bytes. Between `unit` bytes there is no
/// cut. Text without a cut of its own, such as repeated pieces, is cut where the rolling hash has its highest value, the last such place.
fn first_cut(head: &[u8], unit: usize) -> usize {
    if head.len() <= LEAST {
        return head.len();
    }
    let (mut rolling, mut highest, mut at) = (0_u64, 0, head.len());
    for &byte in &head[LEAST - WINDOW..LEAST - 1] {
        rolling = (rolling << 1).wrapping_add(GEAR[usize::from(byte)]);
    }
    for (i, &byte) in head.iter().enumerate().skip(LEAST - 1) {
        rolling = (rolling << 1).wrapping_add(GEAR[usize::from(byte)]);
        if !(i + 1).is_multiple_of(unit) {
            continue;
        }
        if rolling >> (64 - CUT_BITS) == 0 {
            return i + 1;
        }
        if rolling >= highest {
            (highest, at) = (rolling, i + 1);
        }
    }
    if head.len() < MOST { head.len() } else { at }
}

/// Bytes of a text, and bytes of each of its units.
fn measure(text: Text<'_>) -> (usize, usize) {
    match text {
        Text::Narrow(t) => (t.len(), 1),
        Text::Wide(t) => (t.len() * 2, 2),
    }
}

/// Bytes `from..` of a text, at most [`MOST`].
fn bytes_at(text: Text<'_>, from: usize) -> std::borrow::Cow<'_, [u8]> {
    match text {
        Text::Narrow(t) => t[from..t.len().min(from + MOST)].into(),
        Text::Wide(t) => {
            let units = &t[from / 2..t.len().min(from / 2 + MOST / 2)];
            units.iter().flat_map(|unit| unit.to_le_bytes()).collect()
        }
    }
}

/// A chunk of a text: number, bytes.
type Chunk = (u64, u32);

/// The chunks of all texts, and how many uses each of them has; derived, never stored.
#[derive(Clone, Debug, Default)]
pub(crate) struct Texts {
    of_cell: HashMap<u32, Box<[Chunk]>, foldhash::fast::FixedState>,
    uses: HashMap<u64, u32, foldhash::fast::FixedState>,
}

impl Texts {
    /// Numbers of the chunks of a cell's text.
    pub(super) fn chunks_of(&self, id: u32) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.of_cell.get(&id).map_or(&[][..], |chunks| chunks).iter().map(|(number, _)| *number)
    }

    /// Notes the chunks of a loaded text.
    pub(super) fn loaded(&mut self, id: u32, chunks: Vec<Chunk>) {
        for (number, _) in &chunks {
            *self.uses.entry(*number).or_default() += 1;
        }
        self.of_cell.insert(id, chunks.into());
    }

    /// How many chunks are in use.
    pub(super) fn count(&self) -> usize {
        self.uses.len()
    }

    /// A cell's text has changed, from byte `changed` on; adds the chunks that are not stored yet. Returns how many of the first
    /// chunks are as before.
    pub(super) fn note(
        &mut self,
        id: u32,
        text: Text<'_>,
        changed: usize,
        packs: &Packs,
        fresh: &mut ChangedRecords,
    ) -> usize {
        let old = self.of_cell.remove(&id).unwrap_or_default();
        let (end, unit) = measure(text);
        let (mut chunks, mut at) = (Vec::new(), 0);
        // The last chunk ends where the text ended and not at a cut.
        for &(number, bytes) in &old[..old.len().saturating_sub(1)] {
            if at + bytes as usize > changed.min(end) {
                break;
            }
            at += bytes as usize;
            chunks.push((number, bytes));
        }
        let same = chunks.len();
        while at < end {
            let head = bytes_at(text, at);
            let chunk = &head[..first_cut(&head, unit)];
            let number = number_of(chunk, packs, fresh);
            *self.uses.entry(number).or_default() += 1;
            chunks.push((number, chunk.len() as u32));
            at += chunk.len();
        }
        self.of_cell.insert(id, chunks.into());
        self.release(&old[same.min(old.len())..], fresh);
        same
    }

    /// A cell has no text outside any more.
    pub(super) fn forget(&mut self, id: u32, fresh: &mut ChangedRecords) {
        if let Some(old) = self.of_cell.remove(&id) {
            self.release(&old, fresh);
        }
    }

    fn release(&mut self, chunks: &[Chunk], fresh: &mut ChangedRecords) {
        for (number, _) in chunks {
            if let Some(uses) = self.uses.get_mut(number) {
                *uses -= 1;
                if *uses == 0 {
                    self.uses.remove(number);
                    fresh.insert(*number, None);
                }
            }
        }
    }

    /// Positions of these chunks: cell, first byte, bytes.
    pub(super) fn places(&self, mut wanted: HashMap<u64, usize>) -> Vec<(usize, u32, usize, usize)> {
        let mut found = Vec::with_capacity(wanted.len());
        for (&id, chunks) in &self.of_cell {
            let mut at = 0;
            for &(number, bytes) in chunks {
                if let Some(index) = wanted.remove(&number) {
                    found.push((index, id, at, bytes as usize));
                }
                at += bytes as usize;
            }
            if wanted.is_empty() {
                break;
            }
        }
        found
    }
}

/// The number of a chunk with this content, which is new or that of an equal one.
fn number_of(chunk: &[u8], packs: &Packs, fresh: &mut ChangedRecords) -> u64 {
    let (name, content) = (name(chunk), hash(chunk));
    let mut number = TEXT_BIT | (name & (TEXT_BIT - 1));
    loop {
        match fresh.get(&number) {
            Some(Some(bytes)) if bytes == chunk => return number,
            Some(Some(_)) => {}
            // Nothing used it a moment ago.
            Some(None) => {
                if packs.hash_of(number) == Some(content) {
                    fresh.remove(&number);
                } else {
                    fresh.insert(number, Some(chunk.to_vec()));
                }
                return number;
            }
            None => match packs.hash_of(number) {
                Some(known) if known == content => return number,
                Some(_) => {}
                None => {
                    fresh.insert(number, Some(chunk.to_vec()));
                    return number;
                }
            },
        }
        // Another content has this number.
        number = TEXT_BIT | ((number + 1) & (TEXT_BIT - 1));
    }
}

/// The content of one chunk.
pub(super) fn chunk_of(text: Text<'_>, from: usize, bytes: usize) -> Vec<u8> {
    if from >= measure(text).0 {
        return Vec::new();
    }
    let head = bytes_at(text, from);
    head[..bytes.min(head.len())].to_vec()
}

fn name(bytes: &[u8]) -> u64 {
    use std::hash::{BuildHasher, Hasher};
    let mut h = foldhash::quality::FixedState::with_seed(0x0063_6875_6e6b).build_hasher();
    h.write(bytes);
    h.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks(text: &[u8]) -> Vec<Vec<u8>> {
        let (mut packs, mut texts, mut fresh) = (Packs::default(), Texts::default(), ChangedRecords::new());
        texts.note(1, Text::Narrow(text), 0, &packs, &mut fresh);
        let numbers: Vec<u64> = texts.chunks_of(1).collect();
        let all = numbers.iter().map(|number| fresh[number].clone().expect("it is new")).collect();
        packs.commit(fresh, |_| Vec::new());
        all
    }

    fn letters(count: usize) -> Vec<u8> {
        let mut seed = 7_u64;
        let letter = |_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            b'a' + (seed >> 60) as u8
        };
        (0..count).map(letter).collect()
    }

    /// Bytes of chunks of `b` that `a` does not have.
    fn differ(a: &[u8], b: &[u8]) -> usize {
        let old = chunks(a);
        chunks(b).iter().filter(|chunk| !old.contains(chunk)).map(Vec::len).sum()
    }

    #[test]
    fn chunks_of_a_text_are_the_text() {
        for text in [letters(100_000), b"x".repeat(100_000), letters(1), letters(LEAST), letters(MOST + 1)] {
            let chunks = chunks(&text);
            assert!(chunks.iter().all(|chunk| !chunk.is_empty() && chunk.len() <= MOST));
            assert!(chunks.concat() == text);
        }
    }

    #[test]
    fn a_text_that_moves_or_gets_an_insertion_has_most_chunks_of_the_old_one() {
        let random = letters(200_000);
        let repeated = random[..300].repeat(700);
        let mut constant = b"x".repeat(100_000);
        constant.extend_from_slice(&random[..100_000]);
        for text in [random.clone(), repeated, constant] {
            let moved = [&text[1..], &random[500..800]].concat();
            assert!(differ(&text, &moved) <= 4 * MOST, "{}", differ(&text, &moved));
            let inserted = [&text[..70_001], b"inserted", &text[70_001..]].concat();
            assert!(differ(&text, &inserted) <= 4 * MOST, "{}", differ(&text, &inserted));
        }
    }

    #[test]
    fn text_that_grows_is_cut_as_if_it_were_cut_at_once() {
        let text = letters(50_000);
        let (packs, mut texts, mut fresh) = (Packs::default(), Texts::default(), ChangedRecords::new());
        let mut at = 0;
        while at < text.len() {
            let end = text.len().min(at + 777);
            texts.note(1, Text::Narrow(&text[..end]), at, &packs, &mut fresh);
            at = end;
        }
        let whole = chunks(&text);
        let grown: Vec<Vec<u8>> =
            texts.chunks_of(1).map(|number| fresh[&number].clone().expect("used")).collect();
        assert!(grown == whole);
    }

    #[test]
    fn contents_with_the_same_number_are_kept_apart() {
        let (packs, mut fresh) = (Packs::default(), ChangedRecords::new());
        let number = number_of(b"content", &packs, &mut fresh);
        fresh.insert(number, Some(b"another".to_vec()));
        let next = number_of(b"content", &packs, &mut fresh);
        assert_ne!(next, number);
        assert_eq!(number_of(b"content", &packs, &mut fresh), next);
    }
}
