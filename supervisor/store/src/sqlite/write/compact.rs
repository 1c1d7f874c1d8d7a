//! Deletes page versions that no retained checkpoint needs. The cost grows with the pages of the compacted checkpoints, never
//! with the whole state: each checkpoint's row names the pages that it wrote, or at least those with an older version.

use super::{int, run};
use crate::sqlite::failure::SqliteFailure;
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::{BTreeMap, BTreeSet};
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::limits::DURABLE_PAGE_BYTES;
use vm_system_record::{Checkpoint, Entity, StoreError};

/// For a checkpoint with more pages than this, only deleted pages and pages that replace a version are named: finding them costs
/// about as much as later searches for missing versions, but those would all be in one turn.
const MANY: usize = 64;

/// The page list for a checkpoint's row, before the pages are written; none for the first one: nothing is older.
pub(super) fn pages_of(c: &Connection, checkpoint: &Checkpoint) -> Result<Option<Vec<u8>>, rusqlite::Error> {
    if checkpoint.seq <= 1 {
        return Ok(None);
    }
    let mut numbers: Vec<u64> = checkpoint.pages.iter().map(|(page, _)| *page).collect();
    numbers.sort_unstable();
    if numbers.len() > MANY {
        let sql = "SELECT 1 FROM state_pages WHERE execution = ?1 AND page = ?2 AND checkpoint < ?3";
        let mut older = c.prepare_cached(sql)?;
        let (id, seq) = (checkpoint.execution.as_bytes(), int(checkpoint.seq));
        let gone: BTreeSet<u64> =
            checkpoint.pages.iter().filter(|(_, bytes)| bytes.is_none()).map(|(page, _)| *page).collect();
        let mut replacing = Vec::new();
        for page in numbers {
            if gone.contains(&page) || older.exists(params![id, int(page), seq])? {
                replacing.push(page);
            }
        }
        numbers = replacing;
    }
    Ok(Some(packed(&numbers)))
}

/// Sorted numbers as differences, seven bits a byte, the lowest first.
fn packed(sorted: &[u64]) -> Vec<u8> {
    let mut out = Vec::with_capacity(sorted.len() + 10);
    let mut last = 0;
    for number in sorted {
        let mut left = number - last;
        last = *number;
        while left >= 0x80 {
            out.push(left as u8 | 0x80);
            left >>= 7;
        }
        out.push(left as u8);
    }
    out
}

/// The inverse of [`packed`]; `None` for bytes that are not a packed list.
fn unpacked(bytes: &[u8]) -> Option<Vec<u64>> {
    let (mut out, mut last, mut difference, mut shift) = (Vec::new(), 0_u64, 0_u64, 0);
    for byte in bytes {
        if shift > 63 {
            return None;
        }
        difference |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            last = last.checked_add(difference)?;
            out.push(last);
            (difference, shift) = (0, 0);
        }
    }
    (shift == 0).then_some(out)
}

/// A version is deleted when a newer one is not newer than the oldest checkpoint to keep; if all of them are deleted, so is the
/// one that marks the page as deleted. Versions older than the oldest checkpoint were deleted before: only later writes replace
/// a version.
pub(super) fn compact(
    c: &Connection,
    execution: ExecutionId,
    keep_from: u64,
    keep_bytes: Option<u64>,
) -> Result<u64, SqliteFailure> {
    let keep_from = match keep_bytes {
        Some(bytes) => keep_from.max(oldest_within(c, execution, bytes)?),
        None => keep_from,
    };
    let id = execution.as_bytes();
    let oldest: Option<i64> = c
        .prepare_cached("SELECT min(seq) FROM checkpoints WHERE execution = ?1")?
        .query_row(params![id], |row| row.get(0))
        .optional()?
        .flatten();
    let Some(oldest) = oldest.filter(|oldest| *oldest < int(keep_from)) else { return Ok(0) };
    let pages = match written(c, execution, oldest, keep_from)? {
        Some(newest) => {
            let mut gone = 0;
            for (page, seq) in newest {
                let sql = "DELETE FROM state_pages WHERE execution = ?1 AND page = ?2 AND checkpoint <= ?3
                     AND (checkpoint < ?3 OR bytes IS NULL)";
                gone += run(c, sql, params![id, int(page), seq])?;
            }
            gone
        }
        // Checkpoints of an older version of the schema are among them.
        None => compact_all(c, execution, oldest, keep_from)?,
    };
    let sql = "DELETE FROM checkpoints WHERE execution = ?1 AND seq < ?2";
    Ok(pages + run(c, sql, params![id, int(keep_from)])?)
}

/// The same with a scan of all versions.
fn compact_all(
    c: &Connection,
    execution: ExecutionId,
    oldest: i64,
    keep_from: u64,
) -> Result<u64, rusqlite::Error> {
    let replaced = "DELETE FROM state_pages WHERE execution = ?1 AND checkpoint < ?2 AND EXISTS (
         SELECT 1 FROM state_pages AS newer WHERE newer.execution = ?1 AND newer.page = state_pages.page
         AND newer.checkpoint > state_pages.checkpoint AND newer.checkpoint <= ?2)";
    let forgotten = "DELETE FROM state_pages WHERE execution = ?1 AND checkpoint > ?2 AND checkpoint <= ?3
         AND bytes IS NULL";
    let id = execution.as_bytes();
    Ok(run(c, replaced, params![id, int(keep_from)])?
        + run(c, forgotten, params![id, oldest, int(keep_from)])?)
}

/// Of an execution that ends only what it can be taken back to stays: its checkpoints up to the last pause.
pub(super) fn trim(c: &Connection, execution: ExecutionId) -> Result<u64, SqliteFailure> {
    let id = execution.as_bytes();
    let pause: Option<i64> = c
        .prepare_cached(
            "SELECT seq FROM checkpoints WHERE execution = ?1 AND cause IN ('pause', 'edit')
             ORDER BY seq DESC LIMIT 1",
        )?
        .query_row(params![id], |row| row.get(0))
        .optional()?;
    let pause = pause.unwrap_or(0);
    let pages =
        run(c, "DELETE FROM state_pages WHERE execution = ?1 AND checkpoint > ?2", params![id, pause])?;
    Ok(pages + run(c, "DELETE FROM checkpoints WHERE execution = ?1 AND seq > ?2", params![id, pause])?)
}

/// Refuses the batch if a state is too large: sums up its newest pages. Only the length of each page is read.
pub(super) fn bound(c: &Connection, execution: ExecutionId, most: u64) -> Result<u64, SqliteFailure> {
    let sql = "SELECT page, length(bytes) FROM state_pages WHERE execution = ?1 ORDER BY page, checkpoint";
    let mut statement = c.prepare_cached(sql)?;
    let mut rows = statement.query([execution.as_bytes()])?;
    let (mut bytes, mut newest) = (0_u64, (-1_i64, 0_u64));
    while let Some(row) = rows.next()? {
        let (page, length) = (row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?);
        if page != newest.0 {
            bytes = bytes.saturating_add(newest.1);
        }
        newest = (page, length.map_or(0, |length| DURABLE_PAGE_BYTES + length.cast_unsigned()));
    }
    if bytes.saturating_add(newest.1) > most {
        Err(StoreError::too_large(Entity::Checkpoint).into())
    } else {
        Ok(0)
    }
}

/// The oldest checkpoint after which at most this many bytes were written.
fn oldest_within(c: &Connection, execution: ExecutionId, bytes: u64) -> Result<u64, rusqlite::Error> {
    let mut statement =
        c.prepare_cached("SELECT seq, bytes FROM checkpoints WHERE execution = ?1 ORDER BY seq DESC")?;
    let rows = statement.query_map([execution.as_bytes()], |row| {
        Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get::<_, i64>(1)?.cast_unsigned()))
    })?;
    let (mut oldest, mut behind) = (0, 0_u64);
    for row in rows {
        if behind > bytes {
            break;
        }
        let (seq, written) = row?;
        oldest = seq;
        behind = behind.saturating_add(written);
    }
    Ok(oldest)
}

/// Each page that was written after the oldest checkpoint and up to the one to keep, with its last checkpoint. `None`: unknown.
fn written(
    c: &Connection,
    execution: ExecutionId,
    oldest: i64,
    keep_from: u64,
) -> Result<Option<BTreeMap<u64, i64>>, rusqlite::Error> {
    let sql =
        "SELECT seq, pages FROM checkpoints WHERE execution = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq";
    let mut statement = c.prepare_cached(sql)?;
    let mut rows = statement.query(params![execution.as_bytes(), oldest, int(keep_from)])?;
    let mut newest = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let seq: i64 = row.get(0)?;
        let bytes = row.get_ref(1)?.as_blob_or_null()?;
        let Some(numbers) = bytes.and_then(unpacked) else { return Ok(None) };
        newest.extend(numbers.into_iter().map(|page| (page, seq)));
    }
    Ok(Some(newest))
}

#[cfg(test)]
mod tests {
    use super::{MANY, compact, packed, unpacked};
    use crate::sqlite::read::costs::filled;
    use crate::sqlite::write::durable::checkpoint;
    use vm_system_protocol::ids::ExecutionId;
    use vm_system_protocol::time::Timestamp;
    use vm_system_record::Checkpoint;

    #[test]
    fn a_large_checkpoint_names_only_the_pages_that_replace_a_version() {
        let (_folder, c) = filled();
        let execution = c
            .query_row("SELECT id FROM executions WHERE owner = 'me'", [], |row| row.get(0))
            .map(ExecutionId::from_bytes)
            .expect("it was made");
        let many = MANY as u64;
        let write = |seq, pages: std::ops::Range<u64>| {
            let pages = pages.map(|page| (page, Some(vec![1]))).collect();
            let (at, cause) = (Timestamp(0), "pause".to_owned());
            let written = Checkpoint { execution, seq, at, cause, pages, unweighed: None, written: 0 };
            assert!(checkpoint(&c, &written).is_ok());
            c.query_row("SELECT pages FROM checkpoints WHERE seq = ?1", [seq.cast_signed()], |row| row.get(0))
                .expect("it was just written")
        };
        let named = |bytes: Option<Vec<u8>>| bytes.as_deref().and_then(unpacked);
        assert_eq!(named(write(1, 0..10)), None);
        assert_eq!(named(write(2, 5..6 + many)), Some((5..10).collect()));
        assert_eq!(named(write(3, 8..9)), Some(vec![8]));
        let versions = |sql: &str| c.query_row(sql, [], |row| row.get::<_, i64>(0)).expect("a number");
        assert!(matches!(compact(&c, execution, 3, None), Ok(8)), "5 to 9, 8 again, and two checkpoints");
        assert_eq!(versions("SELECT count(*) FROM state_pages"), many.cast_signed() + 6, "one of each");
        assert_eq!(versions("SELECT checkpoint FROM state_pages WHERE page = 8"), 3);
    }

    #[test]
    fn unpacked_page_numbers_equal_the_packed_ones() {
        for numbers in
            [vec![], vec![0], vec![0, 1, 2, 64, 65], vec![3, 1 << 62, (1 << 62) + (1 << 24), i64::MAX as u64]]
        {
            assert_eq!(unpacked(&packed(&numbers)), Some(numbers));
        }
        assert_eq!(packed(&[0, 1, 2, 130, 1 << 62]).len(), 5 + 9);
    }

    #[test]
    fn invalid_packed_lists_are_refused() {
        for bytes in [&[0x80][..], &[0xff; 11], &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1]]
        {
            assert_eq!(unpacked(bytes), None, "{bytes:?}");
        }
    }
}
