//! Deletes an execution or a session with all that belongs to it, in pieces of bounded size: nobody waits for more than a piece. For
//! readers the execution does not exist from the first piece on, and of the session they find less.

use super::run;
use super::usage::{
    CountedConnection, ITEM_BYTES, MAIL_BYTES, checkpoint_bytes, execution_bytes, page_bytes,
};
use crate::sqlite::failure::SqliteFailure;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use vm_system_protocol::ids::ExecutionId;
use vm_system_record::{Entity, StoreError};

/// The result of one piece of a deletion.
pub(super) struct Deleted {
    pub(super) rows: u64,
    /// Nothing of it is left.
    pub(super) is_gone: bool,
}

/// Rows of one kind that one piece of a deletion takes.
pub(in crate::sqlite) const PIECE_ROWS: i64 = 1_024;

/// Content that one piece of a deletion takes, about (bytes).
const PIECE_BYTES: i64 = 1 << 20;

/// The keys of the next rows of an execution that one piece of its deletion takes, and whether there are no others; `sizes` gives
/// their keys and bytes.
fn piece_of(c: &Connection, sizes: &str, execution: [u8; 16]) -> rusqlite::Result<(Vec<i64>, bool)> {
    let mut statement = c.prepare_cached(sizes)?;
    let mut rows = statement.query(params![execution])?;
    let (mut keys, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        // Rows alone are no bound: one event may have a megabyte.
        if keys.len() as i64 >= PIECE_ROWS || bytes >= PIECE_BYTES {
            return Ok((keys, false));
        }
        keys.push(row.get(0)?);
        bytes += row.get::<_, i64>(1)?;
    }
    Ok((keys, true))
}

/// The bytes of a deleted row.
type BytesOf = fn(&Row<'_>) -> Result<i64, rusqlite::Error>;

/// The numbers of the items of an execution, and their bytes.
const ITEM_SIZES: &str = "SELECT item, octet_length(prompt) + coalesce(octet_length(schema), 0) + coalesce(octet_length(answer), 0)
     FROM items WHERE execution = ?1 ORDER BY item";

/// Deletes an execution, or a piece of a large one, of which the background deletes the rest.
pub(super) fn delete_execution(c: &CountedConnection<'_>, id: [u8; 16]) -> Result<Deleted, SqliteFailure> {
    let deleted = delete_piece(c, id)?;
    if !deleted.is_gone {
        // A job that writes a new execution in pieces finds this mark, and ends; readers leave the execution out.
        let sql = "INSERT INTO staged (execution, seq, bytes) VALUES (?1, 0, -1)
             ON CONFLICT (execution) DO UPDATE SET seq = 0, bytes = -1";
        run(c, sql, params![id])?;
    }
    Ok(deleted)
}

/// The states go first, so that nobody goes back to one that is not whole, then the output, the execution's own row last.
fn delete_piece(c: &CountedConnection<'_>, id: [u8; 16]) -> Result<Deleted, SqliteFailure> {
    let (mut rows, execution) = (0, ExecutionId::from_bytes(id));
    let states: [(&str, BytesOf); 2] = [
        (
            "DELETE FROM checkpoints WHERE execution = ?1 AND seq IN
                 (SELECT seq FROM checkpoints WHERE execution = ?1 ORDER BY seq LIMIT ?2) RETURNING length(pages)",
            checkpoint_bytes,
        ),
        (
            "DELETE FROM state_pages WHERE execution = ?1 AND page <= coalesce(
                 (SELECT page FROM state_pages WHERE execution = ?1 ORDER BY page, checkpoint LIMIT 1 OFFSET ?2),
                 9223372036854775807) RETURNING length(bytes)",
            page_bytes,
        ),
    ];
    for (sql, bytes_of) in states {
        let deleted = c.delete(execution, sql, params![id, PIECE_ROWS], bytes_of)?;
        rows += deleted;
        // A full piece: the background deletes what follows, between the batches of others.
        if deleted >= PIECE_ROWS.cast_unsigned() {
            return Ok(Deleted { rows, is_gone: false });
        }
    }
    let (keys, is_all) = piece_of(
        c,
        "SELECT seq, octet_length(text) + coalesce(octet_length(extra), 0) FROM events WHERE execution = ?1 ORDER BY seq",
        id,
    )?;
    for key in keys {
        rows += run(c, "DELETE FROM events WHERE execution = ?1 AND seq = ?2", params![id, key])?;
    }
    if !is_all {
        return Ok(Deleted { rows, is_gone: false });
    }
    let (keys, is_all) = piece_of(c, ITEM_SIZES, id)?;
    for key in keys {
        let sql = "DELETE FROM items WHERE execution = ?1 AND item = ?2 RETURNING octet_length(prompt)
             + coalesce(octet_length(schema), 0) + coalesce(octet_length(fallback), 0) + coalesce(octet_length(answer), 0)";
        rows += c.delete(execution, sql, params![id, key], |row| Ok(ITEM_BYTES + row.get::<_, i64>(0)?))?;
    }
    if !is_all {
        return Ok(Deleted { rows, is_gone: false });
    }
    let deleted = delete_session_events(c, id)?;
    if deleted >= PIECE_ROWS.cast_unsigned() {
        return Ok(Deleted { rows: rows + deleted, is_gone: false });
    }
    // At most 1 000, of 1 MiB together.
    let mail = "DELETE FROM mailbox WHERE execution = ?1 RETURNING octet_length(name) + octet_length(event)";
    rows += c.delete(execution, mail, params![id], |row| Ok(MAIL_BYTES + row.get::<_, i64>(0)?))?;
    c.count(execution, -execution_bytes(c, execution)?);
    // Before the row that has its owner.
    c.settle(execution)?;
    for sql in [
        "DELETE FROM staged WHERE execution = ?1",
        // None is left of an execution that has ended, but after damage.
        "DELETE FROM open_items WHERE execution = ?1",
        "DELETE FROM program_runs WHERE execution = ?1",
        "DELETE FROM current_executions WHERE execution = ?1",
        "DELETE FROM executions WHERE id = ?1",
    ] {
        rows += run(c, sql, params![id])?;
    }
    Ok(Deleted { rows, is_gone: true })
}

/// Deletes a piece of the events of a session up to the end of one of its executions, the oldest first: with tasks an execution has any
/// number of them. The newest event stays, so that no number is used twice.
fn delete_session_events(c: &Connection, execution: [u8; 16]) -> Result<u64, SqliteFailure> {
    let sql = "SELECT session, ended_at FROM executions WHERE id = ?1 AND kind <> 'program'";
    let ended: Option<([u8; 16], Option<i64>)> = c
        .prepare_cached(sql)?
        .query_row(params![execution], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((session, Some(ended_at))) = ended else { return Ok(0) };
    let sql = "DELETE FROM session_events WHERE session = ?1
         AND seq < (SELECT max(seq) FROM session_events WHERE session = ?1)
         AND seq < coalesce((SELECT seq FROM session_events WHERE session = ?1 AND at > ?2 ORDER BY seq LIMIT 1),
             9223372036854775807)
         AND seq < coalesce((SELECT seq FROM session_events WHERE session = ?1 ORDER BY seq LIMIT 1 OFFSET ?3),
             9223372036854775807)";
    Ok(run(c, sql, params![session, ended_at, PIECE_ROWS])?)
}

/// All pieces at once: for a deletion that shares its batch with other writes.
pub(super) fn delete_whole_run(c: &CountedConnection<'_>, id: ExecutionId) -> Result<u64, SqliteFailure> {
    let mut rows = 0;
    loop {
        let deleted = delete_run(c, id)?;
        rows += deleted.rows;
        if deleted.is_gone {
            return Ok(rows);
        }
    }
}

pub(super) fn delete_run(c: &CountedConnection<'_>, id: ExecutionId) -> Result<Deleted, SqliteFailure> {
    let ended: Option<(bool, [u8; 16])> = c
        .prepare_cached("SELECT ended_at IS NOT NULL, session FROM executions WHERE id = ?1")?
        .query_row(params![id.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    match ended {
        None => Err(StoreError::missing(Entity::Execution).into()),
        Some((false, _)) => Err(StoreError::conflict(Entity::Execution).into()),
        Some((true, session)) => {
            let mut deleted = delete_execution(c, *id.as_bytes())?;
            if !deleted.is_gone {
                return Ok(deleted);
            }
            let gone = c
                .prepare_cached(
                    "SELECT id, policy, template FROM sessions WHERE id = ?1 AND closed_at IS NOT NULL
                         AND NOT EXISTS (SELECT 1 FROM executions WHERE session = ?1)",
                )?
                .query_row(params![session], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
                .optional()?;
            if let Some(gone) = gone {
                // The retention deletes the rest of it.
                deleted.rows += delete_session(c, &gone)?.rows;
            }
            Ok(deleted)
        }
    }
}

/// A session, its policy and its template.
pub(super) type GoneSession = ([u8; 16], [u8; 32], [u8; 16]);

pub(super) fn gone_session(row: &Row<'_>) -> rusqlite::Result<GoneSession> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
}

/// Deletes a session by its id, policy and template, or a piece of its events, of which there may be many more than of executions;
/// policy and template are deleted with their last session. These, and less than a piece of events, are not counted.
pub(super) fn delete_session(
    c: &CountedConnection<'_>,
    (session, policy, template): &GoneSession,
) -> Result<Deleted, SqliteFailure> {
    let sql = "DELETE FROM session_events WHERE session = ?1 AND seq < coalesce(
         (SELECT seq FROM session_events WHERE session = ?1 ORDER BY seq LIMIT 1 OFFSET ?2), 9223372036854775807)";
    let deleted = run(c, sql, params![session, PIECE_ROWS])?;
    if deleted >= PIECE_ROWS.cast_unsigned() {
        return Ok(Deleted { rows: deleted, is_gone: false });
    }
    let rows = run(c, "DELETE FROM sessions WHERE id = ?1", params![session])?;
    run(
        c,
        "DELETE FROM policies WHERE hash = ?1 AND NOT EXISTS (SELECT 1 FROM sessions WHERE policy = ?1)",
        params![policy],
    )?;
    run(
        c,
        "DELETE FROM templates WHERE id = ?1 AND is_active = 0
             AND NOT EXISTS (SELECT 1 FROM sessions WHERE template = ?1)",
        params![template],
    )?;
    Ok(Deleted { rows, is_gone: true })
}
