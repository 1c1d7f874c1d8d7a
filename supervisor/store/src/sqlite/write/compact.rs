//! Deletes page versions that no retained checkpoint needs. The cost grows with the pages of the compacted checkpoints, never
//! with the whole state: each checkpoint's row names the pages that it wrote, or at least those with an older version.

use super::usage::{CountedConnection, checkpoint_bytes, page_bytes};
use super::{delete, int, items, run};
use crate::queue::Progress;
use crate::sqlite::failure::SqliteFailure;
use rusqlite::{Connection, OptionalExtension, params};
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::limits::DURABLE_PAGE_BYTES;
use vm_system_record::{Checkpoint, Entity, StoreError};

/// For a checkpoint with more pages than this, only deleted pages and pages that replace a version are named: finding them costs
/// about as much as later searches for missing versions, but those would all be in one turn.
const MANY: usize = 64;

/// The page list of a checkpoint's row, before its last pages are written; none for the first one, which replaces nothing.
/// `written` has the pages to name among those that earlier pieces wrote.
pub(super) fn pages_of(
    c: &Connection,
    checkpoint: &Checkpoint,
    written: &Progress,
) -> Result<Option<Vec<u8>>, rusqlite::Error> {
    if checkpoint.seq <= 1 {
        return Ok(None);
    }
    let mut numbers = written.replacing.clone();
    if checkpoint.pages.len() > MANY {
        replacing(c, checkpoint, written.pages.., &mut numbers)?;
    } else {
        numbers = checkpoint.pages.iter().map(|(page, _)| *page).collect();
    }
    numbers.sort_unstable();
    Ok(Some(packed(&numbers)))
}

/// Which pages of a part of a checkpoint are gone or replace a version.
pub(super) fn replacing(
    c: &Connection,
    checkpoint: &Checkpoint,
    part: impl std::slice::SliceIndex<[(u64, Option<Vec<u8>>)], Output = [(u64, Option<Vec<u8>>)]>,
    numbers: &mut Vec<u64>,
) -> Result<(), rusqlite::Error> {
    let sql = "SELECT 1 FROM state_pages WHERE execution = ?1 AND page = ?2 AND checkpoint < ?3";
    let mut older = c.prepare_cached(sql)?;
    let (id, seq) = (checkpoint.execution.as_bytes(), int(checkpoint.seq));
    for (page, bytes) in &checkpoint.pages[part] {
        if bytes.is_none() || older.exists(params![id, int(*page), seq])? {
            numbers.push(*page);
        }
    }
    Ok(())
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

/// Whether these bytes are a list of page numbers.
pub(in crate::sqlite) fn is_list_of_pages(bytes: &[u8]) -> bool {
    unpacked(bytes).is_some()
}

/// Page versions that one piece of such work looks at: a few milliseconds.
pub(in crate::sqlite) const PIECE_ROWS: usize = 128;

/// The result of one piece.
pub(in crate::sqlite) struct Piece {
    /// Rows that were deleted.
    pub(in crate::sqlite) rows: u64,
    /// Where the next piece begins: pages of the oldest checkpoint's successor that were looked at; `None`: there is no more.
    pub(in crate::sqlite) next: Option<usize>,
}

/// As much as one piece does at once; the writer goes on with the rest in the background.
pub(super) fn compact(
    c: &CountedConnection<'_>,
    execution: ExecutionId,
    keep_from: u64,
    keep_bytes: Option<u64>,
) -> Result<u64, SqliteFailure> {
    let (mut rows, mut position) = (items::forget_taken(c, execution, keep_from)?, 0);
    while rows < PIECE_ROWS as u64 {
        let piece = compact_piece(c, execution, (keep_from, keep_bytes), position)?;
        rows += piece.rows;
        match piece.next {
            None => break,
            Some(next) => position = next,
        }
    }
    Ok(rows)
}

/// Deletes the oldest checkpoint, or a part of what only it needs: of each page that its successor wrote the versions before, and with
/// them the mark that the page is gone.
pub(in crate::sqlite) fn compact_piece(
    c: &CountedConnection<'_>,
    execution: ExecutionId,
    (keep_from, keep_bytes): (u64, Option<u64>),
    position: usize,
) -> Result<Piece, SqliteFailure> {
    let keep_from = match keep_bytes {
        Some(bytes) => keep_from.max(oldest_within(c, execution, bytes)?),
        None => keep_from,
    };
    let id = execution.as_bytes();
    let ended = Piece { rows: 0, next: None };
    let oldest: Vec<(i64, Option<Vec<u8>>)> = c
        .prepare_cached("SELECT seq, pages FROM checkpoints WHERE execution = ?1 ORDER BY seq LIMIT 2")?
        .query_map(params![id], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    // The last checkpoint is never deleted: the execution continues from it.
    let [(oldest, _), (successor, pages)] = &oldest[..] else { return Ok(ended) };
    if *successor > int(keep_from) {
        return Ok(ended);
    }
    let mut rows = 0;
    match pages.as_deref().and_then(unpacked) {
        Some(numbers) => {
            let part = &numbers[position.min(numbers.len())..];
            for page in part.iter().take(PIECE_ROWS) {
                let sql = "DELETE FROM state_pages WHERE execution = ?1 AND page = ?2 AND checkpoint <= ?3
                     AND (checkpoint < ?3 OR bytes IS NULL) RETURNING length(bytes)";
                rows += c.delete(execution, sql, params![id, int(*page), successor], page_bytes)?;
            }
            if part.len() > PIECE_ROWS {
                // The checkpoint's state is not whole any more: nobody may go back to it.
                let sql = "UPDATE checkpoints SET cause = 'dropped' WHERE execution = ?1 AND seq = ?2";
                run(c, sql, params![id, oldest])?;
                return Ok(Piece { rows, next: Some(position + PIECE_ROWS) });
            }
        }
        // It is of an older version of the schema, or was copied.
        None => rows += compact_all(c, execution, *oldest, successor.cast_unsigned())?,
    }
    let sql = "DELETE FROM checkpoints WHERE execution = ?1 AND seq = ?2 RETURNING length(pages)";
    rows += c.delete(execution, sql, params![id, oldest], checkpoint_bytes)?;
    Ok(Piece { rows, next: Some(0) })
}

/// The same with a scan of all versions.
fn compact_all(
    c: &CountedConnection<'_>,
    execution: ExecutionId,
    oldest: i64,
    keep_from: u64,
) -> Result<u64, rusqlite::Error> {
    let replaced = "DELETE FROM state_pages WHERE execution = ?1 AND checkpoint < ?2 AND EXISTS (
         SELECT 1 FROM state_pages AS newer WHERE newer.execution = ?1 AND newer.page = state_pages.page
         AND newer.checkpoint > state_pages.checkpoint AND newer.checkpoint <= ?2)
         RETURNING length(bytes)";
    let forgotten = "DELETE FROM state_pages WHERE execution = ?1 AND checkpoint > ?2 AND checkpoint <= ?3
         AND bytes IS NULL RETURNING length(bytes)";
    let id = execution.as_bytes();
    Ok(c.delete(execution, replaced, params![id, int(keep_from)], page_bytes)?
        + c.delete(execution, forgotten, params![id, oldest, int(keep_from)], page_bytes)?)
}

/// Of an execution that ends only what it can be taken back to stays: its checkpoints up to the last pause.
pub(super) fn trim(c: &CountedConnection<'_>, execution: ExecutionId) -> Result<u64, SqliteFailure> {
    let id = execution.as_bytes();
    let pause: Option<i64> = c
        .prepare_cached(
            "SELECT seq FROM checkpoints WHERE execution = ?1 AND cause IN ('pause', 'edit', 'wait', 'wait_edit')
             ORDER BY seq DESC LIMIT 1",
        )?
        .query_row(params![id], |row| row.get(0))
        .optional()?;
    let pause = pause.unwrap_or(0);
    let bytes: Option<i64> = c
        .prepare_cached("SELECT sum(bytes) FROM checkpoints WHERE execution = ?1 AND seq > ?2")?
        .query_row(params![id, pause], |row| row.get(0))?;
    let Some(bytes) = bytes else { return Ok(0) };
    let sql = "DELETE FROM checkpoints WHERE execution = ?1 AND seq > ?2 RETURNING length(pages)";
    let rows = c.delete(execution, sql, params![id, pause], checkpoint_bytes)?;
    run(
        c,
        "INSERT INTO staged (execution, seq, bytes) VALUES (?1, ?2, ?3)
         ON CONFLICT (execution) DO UPDATE SET seq = min(seq, excluded.seq), bytes = bytes + excluded.bytes",
        params![id, pause + 1, bytes],
    )?;
    let swept = sweep_piece(c, execution, pause + 1, FROM_THE_FIRST)?;
    Ok(rows + swept.rows)
}

/// A page version by page and checkpoint, before all others.
pub(in crate::sqlite) const FROM_THE_FIRST: PagePosition = (-1, 0);
/// Page and checkpoint of the last version that was looked at.
pub(in crate::sqlite) type PagePosition = (i64, i64);

/// The result of a piece of sweeping.
pub(in crate::sqlite) struct Swept {
    /// Rows that were deleted.
    pub(in crate::sqlite) rows: u64,
    /// Where the next piece begins; `None`: there is no more.
    pub(in crate::sqlite) next: Option<PagePosition>,
}

/// Deletes pages of an execution that belong to no checkpoint, those from `seq` on; behind the last of them their mark.
pub(in crate::sqlite) fn sweep_piece(
    c: &CountedConnection<'_>,
    execution: ExecutionId,
    seq: i64,
    (page, checkpoint): PagePosition,
) -> Result<Swept, SqliteFailure> {
    let id = execution.as_bytes();
    let end: Option<PagePosition> = c
        .prepare_cached(
            "SELECT page, checkpoint FROM state_pages WHERE execution = ?1 AND (page, checkpoint) > (?2, ?3)
             ORDER BY page, checkpoint LIMIT 1 OFFSET ?4",
        )?
        .query_row(params![id, page, checkpoint, PIECE_ROWS as i64], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let (last_page, last_checkpoint) = end.unwrap_or((i64::MAX, i64::MAX));
    let rows = c.delete(
        execution,
        "DELETE FROM state_pages WHERE execution = ?1 AND (page, checkpoint) > (?2, ?3)
             AND (page, checkpoint) <= (?4, ?5) AND checkpoint >= ?6 RETURNING length(bytes)",
        params![id, page, checkpoint, last_page, last_checkpoint, seq],
        page_bytes,
    )?;
    if end.is_some() {
        return Ok(Swept { rows, next: end });
    }
    if seq == 0 {
        // It is being deleted, or it is what an interrupted copy left.
        let deleted = delete::delete_run(c, execution)?;
        return Ok(Swept {
            rows: rows + deleted.rows,
            next: (!deleted.is_gone).then_some((i64::MAX, i64::MAX)),
        });
    }
    run(c, "DELETE FROM staged WHERE execution = ?1", params![id])?;
    Ok(Swept { rows, next: None })
}

/// Removes the rest of an interrupted checkpoint before the next one is written.
pub(super) fn sweep_all(c: &CountedConnection<'_>, execution: ExecutionId) -> Result<(), SqliteFailure> {
    let seq: Option<i64> = c
        .prepare_cached("SELECT seq FROM staged WHERE execution = ?1")?
        .query_row(params![execution.as_bytes()], |row| row.get(0))
        .optional()?;
    let mut from = seq.map(|seq| (seq, FROM_THE_FIRST));
    while let Some((seq, position)) = from {
        from = sweep_piece(c, execution, seq, position)?.next.map(|position| (seq, position));
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::{CountedConnection, MANY, compact, packed, unpacked};
    use crate::queue::Progress;
    use crate::sqlite::read::costs::filled;
    use crate::sqlite::write::durable::checkpoint;
    use vm_system_protocol::ids::ExecutionId;
    use vm_system_protocol::time::Timestamp;
    use vm_system_record::Checkpoint;

    #[test]
    fn a_large_checkpoint_names_only_the_pages_that_replace_a_version() {
        let (_folder, c) = filled();
        let c = CountedConnection::new(&c);
        let execution = c
            .query_row("SELECT id FROM executions WHERE owner = 'me'", [], |row| row.get(0))
            .map(ExecutionId::from_bytes)
            .expect("it was made");
        let many = MANY as u64;
        let write = |seq, pages: std::ops::Range<u64>| {
            let pages = pages.map(|page| (page, Some(vec![1]))).collect();
            let (at, cause) = (Timestamp(0), "pause".to_owned());
            let written = Checkpoint { execution, seq, at, cause, pages, unweighed: None, written: 0 };
            assert!(checkpoint(&c, &written, &Progress::default()).is_ok());
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
