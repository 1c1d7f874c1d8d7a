//! Packs: a checkpoint appends what it changed to new pages, instead of writing a page for each changed item.
//!
//! A record is the newest content of one number: a heap page, a part of a container, a chunk of text. A pack is a stored page
//! of records. The packs are a log: each begins with its position, of each number the record in the last pack counts, and an empty record
//! means that the number is gone. A pack without a record that counts is removed; others are when their records that count were written
//! again, so that all packs together stay below about twice what counts. Numbers of removed pages are used again: a store that keeps
//! old versions of pages has them under few numbers.
//!
//! Owns: which record of which pack counts, which packs to write again. Must not: know what a record contains.

use super::codec::{ByteReader, ByteWriter};
use super::{FormatError, frame};
use std::collections::{BTreeMap, BTreeSet};

/// Magic of a page.
pub(super) const MAGIC: [u8; 2] = *b"CP";
/// Set in the numbers of packs.
pub(super) const PACK_BIT: u64 = 1 << 61;
/// Packs that a state can have.
const MOST_PACKS: u64 = 1 << 40;
/// Packs that a state can have written in its life.
const MOST_POSITIONS: u64 = 1 << 60;
/// A pack is closed when it has as much content (bytes).
const PACK_BYTES: u64 = 60 << 10;
/// All packs together may be this much (bytes) above twice what counts.
const SLACK: u64 = 4 << 10;
/// Packs that a state has in any case before small ones are joined, and bytes for each further one.
const FEW_PACKS: usize = 8;
const BYTES_OF_A_PACK: u64 = 16 << 10;
/// A checkpoint writes at most so many bytes again, and as many as it has changed.
const AGAIN_BYTES: u64 = 64 << 10;

/// The records of a checkpoint by number; none for a number that is gone.
pub(super) type ChangedRecords = BTreeMap<u64, Option<Vec<u8>>>;

/// Facts about a number that is in a pack.
#[derive(Clone, Debug)]
struct Record {
    /// Hash of the content; none: the number is gone, and an empty record says so
    hash: Option<u64>,
    /// Position of the pack with the record that counts
    pack: u64,
    /// Bytes of that record
    size: u32,
    /// Contents of this number in packs that do not count any more
    stale: u32,
}

/// One stored page of records.
#[derive(Clone, Debug, Default)]
struct Pack {
    /// Number of the page
    page: u64,
    /// Bytes of its records
    bytes: u64,
    /// Bytes of its records that count
    live: u64,
    /// Numbers of its records, and whether they have content
    records: Vec<(u64, bool)>,
}

/// The packs of a state as they are stored; derived, never stored.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packs {
    records: BTreeMap<u64, Record>,
    /// By position in the log, [`PACK_BIT`] more; pages of one record by their number
    log: BTreeMap<u64, Pack>,
    bytes: u64,
    live: u64,
}

/// The hash by which equal contents are recognised.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    use std::hash::{BuildHasher, Hasher};
    let mut h = foldhash::quality::FixedState::default().build_hasher();
    h.write(bytes);
    h.finish()
}

/// The beginning of a pack.
fn begun(position: u64) -> ByteWriter {
    let mut w = ByteWriter::default();
    w.num(position & !PACK_BIT);
    w
}

/// Bytes of a LEB128 number.
fn length(number: u64) -> u64 {
    u64::from((64 - (number | 1).leading_zeros()).div_ceil(7))
}

/// Bytes of a record.
fn size(number: u64, content: Option<&Vec<u8>>) -> u64 {
    length(number) + content.map_or(1, |bytes| length(bytes.len() as u64 + 1) + bytes.len() as u64)
}

/// A stored pack.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoredPack<'b> {
    pub(super) page: u64,
    /// Position in the log
    pub(super) position: u64,
    pub(super) records: &'b [u8],
}

impl<'b> StoredPack<'b> {
    pub(super) fn new(page: u64, body: &'b [u8]) -> Result<Self, FormatError> {
        let mut r = ByteReader::new(body);
        let position = r.num()?;
        if page - PACK_BIT >= MOST_PACKS {
            return Err(FormatError::Invalid("page number"));
        }
        if position >= MOST_POSITIONS {
            return Err(FormatError::Invalid("position of a pack"));
        }
        Ok(Self { page, position, records: r.take(r.remaining())? })
    }
}

impl Packs {
    /// The hash of a number's content; none if it has none.
    pub(super) fn hash_of(&self, number: u64) -> Option<u64> {
        self.records.get(&number)?.hash
    }

    /// Numbers with content from `first` to `last`.
    pub(super) fn numbers(&self, first: u64, last: u64) -> impl Iterator<Item = u64> + '_ {
        let range = if first <= last { first..=last } else { 0..=0 };
        self.records.range(range).filter(|(_, record)| record.hash.is_some()).map(|(&number, _)| number)
    }

    /// Stored pages, for a caller that wants to remove them all.
    pub(super) fn stored(&self) -> impl Iterator<Item = u64> + '_ {
        self.log.values().map(|pack| pack.page)
    }

    /// A stored page of one record, as states had them before there were packs.
    pub(super) fn add_single(&mut self, number: u64, bytes: &[u8]) {
        self.log.entry(number).or_default().page = number;
        self.place(number, number, Some(hash(bytes)), bytes.len() as u64 + 1);
    }

    /// The records of a stored pack, which is behind all that were added before.
    pub(super) fn add_pack<'b>(
        &mut self,
        pack: &StoredPack<'b>,
        mut each: impl FnMut(u64, Option<&'b [u8]>),
    ) -> Result<(), FormatError> {
        let position = PACK_BIT | pack.position;
        self.log.entry(position).or_default().page = pack.page;
        let mut r = ByteReader::new(pack.records);
        while !r.is_at_end() {
            let before = r.remaining();
            let number = r.num()?;
            if number == 0 || number >> 63 != 0 || (PACK_BIT..PACK_BIT << 1).contains(&number) {
                return Err(FormatError::Invalid("record"));
            }
            let content = match usize::try_from(r.num()?).map_err(|_| FormatError::End)? {
                0 => None,
                n => Some(r.take(n - 1)?),
            };
            each(number, content);
            self.place(number, position, content.map(hash), (before - r.remaining()) as u64);
        }
        Ok(())
    }

    /// A record was stored: it counts from now on.
    fn place(&mut self, number: u64, pack: u64, hash: Option<u64>, size: u64) {
        let entry = self.log.entry(pack).or_default();
        entry.bytes += size;
        entry.records.push((number, hash.is_some()));
        self.bytes += size;
        match self.records.get(&number) {
            // A mark that no older content needs.
            None if hash.is_none() => return,
            Some(old) if hash.is_none() && old.hash.is_none() && old.stale == 0 => return,
            _ => self.retire(number),
        }
        let new = Record { hash, pack, size: size as u32, stale: 0 };
        let record = self.records.entry(number).or_insert(Record { stale: 0, ..new });
        *record = Record { stale: record.stale, ..new };
        self.count(pack, size);
    }

    fn count(&mut self, pack: u64, size: u64) {
        if let Some(entry) = self.log.get_mut(&pack) {
            entry.live += size;
            self.live += size;
        }
    }

    /// The record of this number does not count any more.
    fn retire(&mut self, number: u64) {
        let Some(record) = self.records.get_mut(&number) else { return };
        let size = u64::from(std::mem::take(&mut record.size));
        record.stale += u32::from(record.hash.is_some());
        let pack = record.pack;
        if let Some(entry) = self.log.get_mut(&pack) {
            entry.live = entry.live.saturating_sub(size);
            self.live = self.live.saturating_sub(size);
        }
    }

    /// Drops a pack of which no record counts, or of which the others are written again; returns the number of its page.
    fn drop_pack(&mut self, pack: u64) -> Option<u64> {
        let entry = self.log.remove(&pack)?;
        self.bytes = self.bytes.saturating_sub(entry.bytes);
        self.live = self.live.saturating_sub(entry.live);
        for (number, has_content) in entry.records {
            let Some(record) = self.records.get_mut(&number) else { continue };
            let counts = record.pack == pack && record.size > 0;
            if has_content && !(counts && record.hash.is_some()) {
                record.stale = record.stale.saturating_sub(1);
            }
            if record.hash.is_none() && record.stale == 0 {
                // Nothing is left that its mark hides.
                self.retire(number);
                self.records.remove(&number);
            }
        }
        Some(entry.page)
    }

    /// Adds the records of a checkpoint, and returns the pages to store; an empty one is to be removed. `again` has the content of a
    /// number that did not change.
    pub(super) fn commit(
        &mut self,
        mut fresh: ChangedRecords,
        mut again: impl FnMut(&[u64]) -> Vec<Vec<u8>>,
    ) -> BTreeMap<u64, Vec<u8>> {
        let next = self.log.range(PACK_BIT..PACK_BIT << 1).next_back().map_or(PACK_BIT, |(last, _)| last + 1);
        let mut added = 0;
        for (&number, content) in &fresh {
            added += size(number, content.as_ref());
            self.retire(number);
            if content.is_none()
                && let Some(record) = self.records.get_mut(&number)
            {
                record.hash = None;
            }
        }
        let mut removed = BTreeSet::new();
        self.drop_empty(&mut removed);
        let mut budget = added + AGAIN_BYTES;
        while let Some(victims) = self.victims(added) {
            let mut done = false;
            for victim in victims {
                let Some(pack) = self.log.get(&victim) else { continue };
                if pack.live > budget {
                    continue;
                }
                budget -= pack.live;
                added += pack.live;
                done = true;
                let counts = |number: &u64| {
                    self.records.get(number).is_some_and(|record| record.pack == victim && record.size > 0)
                };
                let numbers: Vec<u64> =
                    pack.records.iter().map(|(number, _)| *number).filter(counts).collect();
                let (kept, marks): (Vec<u64>, Vec<u64>) =
                    numbers.into_iter().partition(|number| self.hash_of(*number).is_some());
                fresh.extend(kept.iter().copied().zip(again(&kept).into_iter().map(Some)));
                fresh.extend(marks.into_iter().map(|number| (number, None)));
                removed.extend(self.drop_pack(victim));
            }
            if !done {
                break;
            }
            self.drop_empty(&mut removed);
        }
        let mut pages: BTreeMap<u64, Vec<u8>> = removed.into_iter().map(|page| (page, Vec::new())).collect();
        self.append(next, fresh, &mut pages);
        pages
    }

    /// Writes the records to new packs, under the lowest numbers that no pack has.
    fn append(&mut self, mut next: u64, fresh: ChangedRecords, pages: &mut BTreeMap<u64, Vec<u8>>) {
        let used: BTreeSet<u64> = self.log.values().map(|pack| pack.page).collect();
        let mut unused = (PACK_BIT..).filter(|page| !used.contains(page));
        let mut page = unused.next().unwrap_or(PACK_BIT);
        let mut w = begun(next);
        let mut is_empty = true;
        for (number, content) in fresh {
            // A mark that hides nothing is not written.
            if content.is_none() && self.records.get(&number).is_none_or(|record| record.stale == 0) {
                self.records.remove(&number);
                continue;
            }
            let size = size(number, content.as_ref());
            if !is_empty && w.out.len() as u64 + size > PACK_BYTES {
                next += 1;
                let full = std::mem::replace(&mut w, begun(next));
                pages.insert(page, frame(MAGIC, page, &full.out));
                page = unused.next().unwrap_or(PACK_BIT);
            }
            is_empty = false;
            w.num(number);
            match &content {
                None => w.num(0),
                Some(bytes) => {
                    w.count(bytes.len() + 1);
                    w.out.extend_from_slice(bytes);
                }
            }
            self.log.entry(next).or_default().page = page;
            self.place_again(number, next, content.as_deref().map(hash), size);
        }
        if !is_empty {
            pages.insert(page, frame(MAGIC, page, &w.out));
        }
    }

    /// As [`Packs::place`] for a number whose last record does not count any more.
    fn place_again(&mut self, number: u64, pack: u64, hash: Option<u64>, size: u64) {
        let entry = self.log.entry(pack).or_default();
        entry.bytes += size;
        entry.records.push((number, hash.is_some()));
        self.bytes += size;
        let stale = self.records.get(&number).map_or(0, |record| record.stale);
        self.records.insert(number, Record { hash, pack, size: size as u32, stale });
        self.count(pack, size);
    }

    fn drop_empty(&mut self, removed: &mut BTreeSet<u64>) {
        loop {
            let empty: Vec<u64> =
                self.log.iter().filter(|(_, pack)| pack.live == 0).map(|(&pack, _)| pack).collect();
            if empty.is_empty() {
                return;
            }
            for pack in empty {
                removed.extend(self.drop_pack(pack));
            }
        }
    }

    /// Packs to write again, if those that are stored and `added` bytes are too large together, or are too many.
    fn victims(&self, added: u64) -> Option<Vec<u64>> {
        let (bytes, live) = (self.bytes + added, self.live + added);
        if self.log.len() > FEW_PACKS + usize::try_from(bytes / BYTES_OF_A_PACK).unwrap_or(usize::MAX) {
            let mut smallest: Vec<(u64, u64)> = self.log.iter().map(|(&pack, of)| (of.live, pack)).collect();
            smallest.sort_unstable();
            smallest.truncate(FEW_PACKS);
            return Some(smallest.into_iter().map(|(_, pack)| pack).collect());
        }
        if bytes <= live.saturating_mul(2) + SLACK {
            return None;
        }
        // The one of which the smallest share counts.
        let worst = self.log.iter().min_by(|(_, a), (_, b)| {
            (u128::from(a.live) * u128::from(b.bytes)).cmp(&(u128::from(b.live) * u128::from(a.bytes)))
        });
        worst.map(|(&pack, _)| vec![pack])
    }
}
