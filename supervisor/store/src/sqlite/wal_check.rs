//! Checks a write-ahead log before SQLite opens its database. SQLite's recovery ends at the first frame with a wrong checksum, without
//! an error, and the next commit overwrites what follows. Here the rest of the log is read too: it shows whether the end is the
//! normal one or commits are lost. Only reads files, and before SQLite has them open.
//!
//! Formats: `walformat.html` of SQLite's documentation, sections 2 (log) and 3 (its index).
//!
//! The evidence. Each frame has the checksum of all frames up to itself, so a frame can be checked against the checksum that
//! is stored in the frame before it, even if that one is damaged. Two observations show that commits are lost:
//! - The index of the log (`-shm`) is of the same generation (equal salts), and counts more committed frames than the log has before
//!   its first wrong frame. SQLite counts a frame after it was written, under `full` after it was flushed.
//! - At least two commits end at or behind the first wrong frame, and no index of the same generation ends at the last readable
//!   commit or the one before. Under `full` each commit is flushed before the next one is written, so a power cut can damage the last
//!   one only. Commits that SQLite refused after it had written them (a full disk) stay behind the end of the log until later ones
//!   overwrite them, and look the same; after a kill the index shows that they do not count.
//!
//! One commit behind the first wrong frame, without an index of the same generation, is what a power cut leaves of a transaction
//! that was not acknowledged; damage in the last transaction looks the same. A log without a readable frame is judged by its index
//! alone. Frames with other salts are of an earlier generation,
//! which is in the database already; zeros are space for later frames. A log that was deleted, or is shorter than it was at the start,
//! is known by a mark in the database (`in_use.rs`). Not detectable without an index: a log of which the end was overwritten from the
//! end of a commit on, or cut there behind its size at the start; a change in the database file itself, which has no checksums.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
/// Without its lowest bit, which is set for checksums of big-endian words.
const MAGIC: u32 = 0x377f_0682;
const FORMAT: u32 = 3_007_000;
/// Page size of our databases, for a log whose header is unreadable (bytes).
const PAGE_BYTES: usize = 4_096;
/// One copy of the index's header (bytes); its checksum is in the last eight.
const INDEX_HEADER_BYTES: usize = 48;
/// Two copies of the header, and the number of frames that were copied to the database.
const INDEX_BYTES: usize = 2 * INDEX_HEADER_BYTES + 4;

/// The state of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WalVerdict {
    /// All that was committed to it is readable.
    Whole,
    /// It ends with a transaction that is not readable, as after a power cut.
    Torn,
    /// Committed transactions are not readable.
    Damaged(WalDamage),
    /// It is older than the index or the database beside it.
    Older(OlderThan),
    /// The database was in use, and its log is missing, empty, or shorter than it was (`in_use.rs`).
    Lost,
}

/// The proof that a log is older.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OlderThan {
    /// The index is of a later generation of the log, with commits.
    Index,
    /// The database has a later change counter than all that is in the log.
    Database,
}

/// Most generations by which an index is later: a log counts them up from a random number. Beyond that the two are unrelated.
const GENERATIONS: u32 = 1 << 20;
/// Where the first page of a database has its change counter.
const COUNTER_AT: usize = 24;

/// Where a log is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WalDamage {
    /// Number of the first frame that is not what was written, from 1; 0 is the header of the log.
    pub(super) frame: u64,
    /// Commits that are recognisable in it and behind it.
    pub(super) commits: u64,
    /// Frames of commits that are lost, if the index says so.
    pub(super) lost_frames: Option<u64>,
    /// The database has commits from behind the damage, by the index: what is readable of the log is older, and must not be copied
    /// over them.
    pub(super) is_older: bool,
}

type Words = (u32, u32);

/// Reads the log, and the index and the database beside it if they are there.
pub(super) fn check(log: &Path, index: &Path, database: &Path) -> io::Result<WalVerdict> {
    let index = Index::read(index)?;
    let Some(file) = open(log)? else {
        // SQLite deletes a log after its index, and when all of it is in the database.
        let lost = index.map_or(0, |index| index.committed.saturating_sub(index.copied));
        let damage = WalDamage { frame: 0, commits: 0, lost_frames: Some(lost), is_older: false };
        return Ok(if lost > 0 { WalVerdict::Damaged(damage) } else { WalVerdict::Whole });
    };
    let mut file = BufReader::with_capacity(1 << 20, file);
    let mut header = [0; HEADER_BYTES];
    if !fill(&mut file, &mut header)? {
        header = [0; HEADER_BYTES];
    }
    let header = LogHeader::parse(&header);
    let Scan { salts, frames, committed, committed_before, ends_at, commits, counter, .. } =
        Scan::run(&mut file, &header)?;
    if let (Some(salts), Some(index)) = (salts, &index) {
        // A log that starts over counts in the index first, with no frame; its header is on the disk before its first commit counts.
        let later_by = index.salts.0.wrapping_sub(salts.0);
        if header.is_valid && index.committed > 0 && (1..GENERATIONS).contains(&later_by) {
            return Ok(WalVerdict::Older(OlderThan::Index));
        }
    }
    // Page 1 goes into the database by way of the log alone, and is not changed after that without a new frame.
    if let (Some(counter), Some(in_database)) = (counter, change_counter(database)?)
        && (1..u32::MAX / 2).contains(&in_database.wrapping_sub(counter))
    {
        return Ok(WalVerdict::Older(OlderThan::Database));
    }
    // A log without a header and frames has no generation: it must have what the index counts.
    let index =
        index.filter(|index| salts.is_none_or(|salts| salts == index.salts) || header.salts == index.salts);
    // SQLite counts the frames of a commit directly after it wrote them.
    let is_exact =
        index.as_ref().is_some_and(|index| [committed, committed_before].contains(&index.committed));
    let index = index.filter(|index| index.committed > committed);
    let is_older = salts.is_some() && index.as_ref().is_some_and(|index| index.copied > committed);
    let lost_frames = index.map(|index| index.committed.saturating_sub(index.copied.max(committed)));
    let is_lost = if salts.is_some() { lost_frames.is_some() } else { lost_frames > Some(0) };
    Ok(if is_lost || (commits >= 2 && !is_exact) {
        let frame = ends_at.unwrap_or(frames + 1);
        WalVerdict::Damaged(WalDamage { frame, commits, lost_frames, is_older })
    } else if commits >= 1 {
        WalVerdict::Torn
    } else {
        WalVerdict::Whole
    })
}

/// Whether a log has no valid header, or no space for a frame, or fewer than these bytes, and no index of it shows how much of it counts
/// ([`check`] compares them). A header without a valid frame is what is left where a log was starting over, when everything was copied.
pub(super) fn lacks(log: &Path, index: &Path, least_bytes: u64) -> io::Result<bool> {
    let mut header = [0; HEADER_BYTES];
    let mut bytes = 0;
    if let Some(mut file) = open(log)? {
        bytes = file.metadata()?.len();
        if !fill(&mut file, &mut header)? {
            header = [0; HEADER_BYTES];
        }
    }
    let header = LogHeader::parse(&header);
    let least_bytes = least_bytes.max((HEADER_BYTES + FRAME_HEADER_BYTES + header.page_bytes) as u64);
    if header.is_valid && bytes >= least_bytes {
        return Ok(false);
    }
    Ok(Index::read(index)?.is_none_or(|index| header.is_valid && index.salts != header.salts))
}

/// The change counter of a database: each connection that writes its first page raises it.
fn change_counter(database: &Path) -> io::Result<Option<u32>> {
    let Some(mut file) = open(database)? else { return Ok(None) };
    let mut beginning = [0; COUNTER_AT + 4];
    Ok(fill(&mut file, &mut beginning)?.then(|| word(&beginning, COUNTER_AT)))
}

/// Whether a log is beside an empty database, or beside none: SQLite would delete the log. A new database gets its first page before its
/// log.
pub(super) fn is_without_database(database: &Path, log: &Path) -> io::Result<bool> {
    let bytes = |path: &Path| match std::fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata.len())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    Ok(bytes(database)?.unwrap_or(0) == 0 && bytes(log)? > Some(HEADER_BYTES as u64))
}

fn open(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether there was enough to fill the buffer.
fn fill(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn word(bytes: &[u8], offset: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[offset..offset + 4]);
    u32::from_be_bytes(word)
}

fn words(bytes: &[u8], offset: usize) -> Words {
    (word(bytes, offset), word(bytes, offset + 4))
}

/// SQLite's checksum of bytes in multiples of eight, continued from `seed`.
fn checksum(is_big_endian: bool, seed: Words, bytes: &[u8]) -> Words {
    let order = |word: u32| if is_big_endian { word } else { word.swap_bytes() };
    bytes.chunks_exact(8).fold(seed, |(mut first, mut second), pair| {
        first = first.wrapping_add(order(word(pair, 0))).wrapping_add(second);
        second = second.wrapping_add(order(word(pair, 4))).wrapping_add(first);
        (first, second)
    })
}

struct LogHeader {
    is_valid: bool,
    is_big_endian: bool,
    page_bytes: usize,
    salts: Words,
    checksum: Words,
}

impl LogHeader {
    fn parse(bytes: &[u8; HEADER_BYTES]) -> Self {
        let magic = word(bytes, 0);
        let page_bytes = word(bytes, 8) as usize;
        let is_big_endian = magic & 1 == 1;
        let stored = words(bytes, 24);
        let is_valid = magic & !1 == MAGIC
            && word(bytes, 4) == FORMAT
            && page_bytes.is_power_of_two()
            && (512..=65_536).contains(&page_bytes)
            && checksum(is_big_endian, (0, 0), &bytes[..24]) == stored;
        Self {
            is_valid,
            // Of an unreadable header any bit may be wrong: then as this machine writes it.
            is_big_endian: if is_valid { is_big_endian } else { cfg!(target_endian = "big") },
            page_bytes: if is_valid { page_bytes } else { PAGE_BYTES },
            salts: words(bytes, 16),
            checksum: stored,
        }
    }
}

/// The log as its index describes it.
struct Index {
    salts: Words,
    /// Frames up to the last commit.
    committed: u64,
    /// Of these, in the database already.
    copied: u64,
}

impl Index {
    /// `None`: there is none, or it was being written when its process ended.
    fn read(path: &Path) -> io::Result<Option<Self>> {
        let Some(mut file) = open(path)? else { return Ok(None) };
        let mut content = [0; INDEX_BYTES];
        if !fill(&mut file, &mut content)? {
            return Ok(None);
        }
        let (header, rest) = content.split_at(INDEX_HEADER_BYTES);
        let (copy, copied) = rest.split_at(INDEX_HEADER_BYTES);
        // In the byte order of the machine, but for the salts, which are as in the log.
        let native = |bytes: &[u8], offset: usize| {
            let read = word(bytes, offset);
            if cfg!(target_endian = "big") { read } else { read.swap_bytes() }
        };
        let computed = checksum(cfg!(target_endian = "big"), (0, 0), &header[..40]);
        let is_valid = header == copy
            && native(header, 0) == FORMAT
            && header[12] != 0
            && computed == (native(header, 40), native(header, 44));
        Ok(is_valid.then(|| Self {
            salts: words(header, 32),
            committed: u64::from(native(header, 16)),
            copied: u64::from(native(copied, 0)),
        }))
    }
}

/// The frames that were read.
struct Scan {
    /// Of the frames that were followed; none if there is no frame and no valid header.
    salts: Option<Words>,
    /// Frames that are complete, with those of earlier generations.
    frames: u64,
    /// Frames up to the last commit that SQLite will find.
    committed: u64,
    /// Frames up to the commit before that one.
    committed_before: u64,
    /// Where SQLite's recovery ends; 0: at the header.
    ends_at: Option<u64>,
    /// Commits of this generation in that frame and behind it.
    commits: u64,
    /// The change counter of the database after the last commit that SQLite will find, if it wrote the first page.
    counter: Option<u32>,
    /// The same of a transaction that is not committed yet.
    next_counter: Option<u32>,
}

impl Scan {
    fn run(file: &mut impl Read, header: &LogHeader) -> io::Result<Self> {
        let mut scan = Self {
            salts: header.is_valid.then_some(header.salts),
            frames: 0,
            committed: 0,
            committed_before: 0,
            ends_at: (!header.is_valid).then_some(0),
            commits: 0,
            counter: None,
            next_counter: None,
        };
        // The checksum of the next frame may continue either one: the one that is stored in the last frame, and the one computed of
        // it.
        let mut seeds = [header.checksum; 2];
        let mut frame = vec![0; FRAME_HEADER_BYTES + header.page_bytes];
        while fill(file, &mut frame)? {
            scan.frames += 1;
            let (head, page) = frame.split_at(FRAME_HEADER_BYTES);
            let (salts, stored) = (words(head, 8), words(head, 16));
            let is_ours = word(head, 0) != 0 && *scan.salts.get_or_insert(salts) == salts;
            if !is_ours {
                scan.ends_at.get_or_insert(scan.frames);
                seeds = [stored; 2];
                continue;
            }
            let computed = seeds.map(|seed| {
                let seed = checksum(header.is_big_endian, seed, &head[..8]);
                checksum(header.is_big_endian, seed, page)
            });
            let follows = computed.contains(&stored);
            let ends_here = !follows && scan.ends_at.is_none();
            if ends_here {
                scan.ends_at = Some(scan.frames);
            }
            let is_commit = word(head, 4) != 0;
            if word(head, 0) == 1 && scan.ends_at.is_none() {
                scan.next_counter = Some(word(page, COUNTER_AT));
            }
            if is_commit && scan.ends_at.is_none() {
                scan.counter = scan.next_counter;
                (scan.committed_before, scan.committed) = (scan.committed, scan.frames);
            } else if is_commit && (follows || ends_here) {
                scan.commits += 1;
            }
            seeds = [stored, if follows { stored } else { computed[0] }];
        }
        Ok(scan)
    }
}

#[cfg(test)]
mod tests;
