//! Programs, checkpoints and pages of durable executions. Code and pages are opaque bytes.

use super::usage::{CHECKPOINT_BYTES, CountedConnection, counted_page};
use super::{compact, exists, int, run};
use crate::queue::Progress;
use crate::sqlite::failure::{Constrained, SqliteFailure};
use rusqlite::{Connection, OptionalExtension, params};
use vm_system_protocol::ids::{ExecutionId, ProgramId};
use vm_system_protocol::limits::DURABLE_PAGE_BYTES;
use vm_system_protocol::time::Timestamp;
use vm_system_record::{CLIENTS_OF_AN_OWNER, Checkpoint, Entity, NewProgramVersion, Owner, StoreError};

pub(super) fn program_version(c: &Connection, new: &NewProgramVersion) -> Result<u64, SqliteFailure> {
    let known: Option<([u8; 16], i64)> = c
        .prepare_cached("SELECT id, version FROM programs WHERE owner = ?1 AND name = ?2 AND is_active = 1")?
        .query_row(params![new.owner.as_str(), new.name], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    if let Some((id, newest)) = known {
        let same = "SELECT 1 FROM program_versions WHERE program = ?1 AND version = ?2 AND source_hash = ?3
             AND format = ?4 AND code = ?5";
        if exists(c, same, params![id, newest, new.source_hash, new.format, new.code])? {
            return Ok(0);
        }
    }
    let (id, version) = if let Some((id, newest)) = known {
        run(
            c,
            "UPDATE programs SET version = ?2, modified_at = ?3 WHERE id = ?1",
            params![id, newest + 1, new.at.0],
        )?;
        (id, newest + 1)
    } else {
        run(
            c,
            "INSERT INTO programs (id, owner, name, is_active, version, created_at, modified_at)
             VALUES (?1, ?2, ?3, 1, 1, ?4, ?4)",
            params![new.id.as_bytes(), new.owner.as_str(), new.name, new.at.0],
        )
        .constrained(Entity::Program, Entity::Program)?;
        (*new.id.as_bytes(), 1)
    };
    version_row(c, id, version, new)
}

fn version_row(
    c: &Connection,
    program: [u8; 16],
    version: i64,
    new: &NewProgramVersion,
) -> Result<u64, SqliteFailure> {
    run(
        c,
        "INSERT INTO program_versions (program, version, source_hash, format, created_at, source, code)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![program, version, new.source_hash, new.format, new.at.0, new.source, new.code],
    )
    .constrained(Entity::Program, Entity::Program)
}

/// The rest of an interrupted import is deleted as the versions of deleted programs are.
pub(super) fn program_import(c: &Connection, new: &NewProgramVersion) -> Result<u64, SqliteFailure> {
    let version = c
        .prepare_cached(
            "INSERT INTO programs (id, owner, name, is_active, version, created_at, modified_at)
             VALUES (?1, ?2, ?3, 0, 1, ?4, ?4)
             ON CONFLICT (id) DO UPDATE SET version = version + 1, modified_at = excluded.modified_at
             WHERE is_active = 0 RETURNING version",
        )?
        .query_row(params![new.id.as_bytes(), new.owner.as_str(), new.name, new.at.0], |row| row.get(0))
        .optional()?;
    match version {
        Some(version) => version_row(c, *new.id.as_bytes(), version, new),
        None => Err(StoreError::conflict(Entity::Program).into()),
    }
}

pub(super) fn program_imported(c: &Connection, id: ProgramId) -> Result<u64, SqliteFailure> {
    let sql = "UPDATE programs SET is_active = 1 WHERE id = ?1 AND is_active = 0
         AND EXISTS (SELECT 1 FROM program_versions WHERE program = ?1 AND version = programs.version)";
    match run(c, sql, [id.as_bytes()]).constrained(Entity::Program, Entity::Program)? {
        0 => Err(StoreError::missing(Entity::Program).into()),
        rows => Ok(rows),
    }
}

pub(super) fn program_run(
    c: &Connection,
    execution: ExecutionId,
    program: ProgramId,
    version: u32,
) -> Result<u64, SqliteFailure> {
    let rows = run(
        c,
        "INSERT INTO program_runs (execution, owner, program, version, started_at)
         SELECT id, owner, ?2, ?3, started_at FROM executions WHERE id = ?1",
        params![execution.as_bytes(), program.as_bytes(), version],
    )
    .constrained(Entity::Execution, Entity::Program)?;
    if rows == 0 { Err(StoreError::missing(Entity::Execution).into()) } else { Ok(rows) }
}

/// Whether the row of [`program_run`] is there.
pub(super) fn has_run(c: &Connection, execution: ExecutionId) -> Result<bool, SqliteFailure> {
    Ok(exists(c, "SELECT 1 FROM program_runs WHERE execution = ?1", [execution.as_bytes()])?)
}

pub(super) fn program_delete(c: &Connection, id: ProgramId, at: Timestamp) -> Result<u64, SqliteFailure> {
    // The rows stay for executions that run the program; the retention deletes them with the last version.
    let sql = "UPDATE programs SET is_active = 0, modified_at = ?2 WHERE id = ?1 AND is_active = 1";
    match run(c, sql, params![id.as_bytes(), at.0])? {
        0 => Err(StoreError::missing(Entity::Program).into()),
        rows => Ok(rows),
    }
}

/// One row for each client; the least recently used are deleted.
pub(super) fn current_set(
    c: &Connection,
    owner: &Owner,
    client: &str,
    execution: ExecutionId,
    at: Timestamp,
) -> Result<u64, SqliteFailure> {
    let rows = run(
        c,
        "INSERT INTO current_executions (owner, client, execution, at) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (owner, client) DO UPDATE SET execution = ?3, at = ?4",
        params![owner.as_str(), client, execution.as_bytes(), at.0],
    )
    .constrained(Entity::Execution, Entity::Execution)?;
    let sql = "DELETE FROM current_executions WHERE owner = ?1 AND client IN
             (SELECT client FROM current_executions WHERE owner = ?1 ORDER BY at DESC, client LIMIT -1 OFFSET ?2)";
    run(c, sql, params![owner.as_str(), CLIENTS_OF_AN_OWNER])?;
    Ok(rows)
}

/// Writes a part of a checkpoint's pages, at least one: they belong to no checkpoint before its row is there.
pub(super) fn stage(
    c: &CountedConnection<'_>,
    checkpoint: &Checkpoint,
    written: &Progress,
    most_bytes: usize,
) -> Result<Progress, SqliteFailure> {
    let execution = checkpoint.execution.as_bytes();
    // Pages that an earlier attempt has left would become part of this state.
    if written.pages == 0 {
        compact::sweep_all(c, checkpoint.execution)?;
        let sql = "INSERT INTO staged (execution, seq, bytes) VALUES (?1, ?2, 0)";
        run(c, sql, params![execution, int(checkpoint.seq)])
            .constrained(Entity::Checkpoint, Entity::Execution)?;
    }
    let mut progress = Progress { staging: Some(checkpoint.execution), ..written.clone() };
    stage_pages(c, checkpoint, &mut progress, most_bytes)?;
    let part = &checkpoint.pages[written.pages..progress.pages];
    let added: u64 = part.iter().map(|(_, page)| DURABLE_PAGE_BYTES + length(page.as_ref())).sum();
    let added = int(added);
    run(c, "UPDATE staged SET bytes = bytes + ?2 WHERE execution = ?1", params![execution, added])?;
    Ok(progress)
}

fn length(page: Option<&Vec<u8>>) -> u64 {
    page.map_or(0, Vec::len) as u64
}

/// Writes a part of a checkpoint's pages, at least one if there are any.
fn stage_pages(
    c: &CountedConnection<'_>,
    checkpoint: &Checkpoint,
    progress: &mut Progress,
    most_bytes: usize,
) -> Result<(), SqliteFailure> {
    let (first, bytes_before) = (progress.pages, progress.bytes);
    while let Some((_, bytes)) = checkpoint.pages.get(progress.pages)
        && (progress.pages == first || progress.bytes - bytes_before < most_bytes)
    {
        progress.pages += 1;
        progress.bytes += Checkpoint::page_file_bytes(length(bytes.as_ref())) as usize;
    }
    let part = first..progress.pages;
    if checkpoint.seq > 1 {
        compact::replacing(c, checkpoint, part.clone(), &mut progress.replacing)?;
    }
    insert_pages(c, checkpoint, part)
}

/// Writes a part of the checkpoint of an execution that is being imported; true with its last page and its row.
pub(super) fn stage_import(
    c: &CountedConnection<'_>,
    checkpoint: &Checkpoint,
    progress: &mut Progress,
    most_bytes: usize,
) -> Result<bool, SqliteFailure> {
    stage_pages(c, checkpoint, progress, most_bytes)?;
    if progress.pages < checkpoint.pages.len() {
        return Ok(false);
    }
    // Behind the last page: without this row nobody sees a state that is not whole.
    row(c, checkpoint, progress)?;
    Ok(true)
}

fn insert_pages(
    c: &CountedConnection<'_>,
    checkpoint: &Checkpoint,
    part: std::ops::Range<usize>,
) -> Result<(), SqliteFailure> {
    for (page, bytes) in &checkpoint.pages[part.clone()] {
        run(
            c,
            "INSERT INTO state_pages (execution, page, checkpoint, bytes) VALUES (?1, ?2, ?3, ?4)",
            params![checkpoint.execution.as_bytes(), int(*page), int(checkpoint.seq), bytes],
        )
        .constrained(Entity::Checkpoint, Entity::Execution)?;
    }
    let part = &checkpoint.pages[part];
    c.count(checkpoint.execution, part.iter().map(|(_, bytes)| counted_page(length(bytes.as_ref()))).sum());
    Ok(())
}

/// The row of a checkpoint, and those of its pages that are not written yet.
pub(super) fn checkpoint(
    c: &CountedConnection<'_>,
    checkpoint: &Checkpoint,
    written: &Progress,
) -> Result<u64, SqliteFailure> {
    if written.pages == 0 {
        compact::sweep_all(c, checkpoint.execution)?;
    } else {
        let sql = "DELETE FROM staged WHERE execution = ?1";
        run(c, sql, params![checkpoint.execution.as_bytes()])?;
    }
    row(c, checkpoint, written)?;
    insert_pages(c, checkpoint, written.pages..checkpoint.pages.len())?;
    Ok(1 + checkpoint.pages.len() as u64)
}

/// The row of a checkpoint of which so many pages are written.
fn row(c: &CountedConnection<'_>, checkpoint: &Checkpoint, written: &Progress) -> Result<(), SqliteFailure> {
    let list = compact::pages_of(c, checkpoint, written)?;
    c.count(checkpoint.execution, CHECKPOINT_BYTES + length(list.as_ref()).cast_signed());
    run(
        c,
        "INSERT INTO checkpoints (execution, seq, at, cause, bytes, pages, unweighed, written)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            checkpoint.execution.as_bytes(),
            int(checkpoint.seq),
            checkpoint.at.0,
            checkpoint.cause,
            int(checkpoint.bytes()),
            list,
            checkpoint.unweighed.map(int),
            int(checkpoint.written)
        ],
    )
    .constrained(Entity::Checkpoint, Entity::Execution)?;
    Ok(())
}

/// Refuses a checkpoint that is not there, or of which versions of pages are being deleted.
pub(super) fn whole(c: &Connection, execution: ExecutionId, checkpoint: u64) -> Result<(), SqliteFailure> {
    let sql = "SELECT 1 FROM checkpoints WHERE execution = ?1 AND seq = ?2 AND cause <> 'dropped'";
    if exists(c, sql, params![execution.as_bytes(), int(checkpoint)])? {
        Ok(())
    } else {
        Err(StoreError::missing(Entity::Checkpoint).into())
    }
}

/// The row of a copied checkpoint, behind its pages.
pub(super) fn copy_row(
    c: &CountedConnection<'_>,
    from: ExecutionId,
    checkpoint: u64,
    to: ExecutionId,
    at: Timestamp,
) -> Result<u64, SqliteFailure> {
    let rows = run(
        c,
        "INSERT INTO checkpoints (execution, seq, at, cause, bytes, unweighed, written)
         SELECT ?3, seq, ?4, cause,
             (SELECT coalesce(sum(?5 + length(bytes)), 0) FROM state_pages WHERE execution = ?3), unweighed, written
         FROM checkpoints WHERE execution = ?1 AND seq = ?2",
        params![from.as_bytes(), int(checkpoint), to.as_bytes(), at.0, int(DURABLE_PAGE_BYTES)],
    )
    .constrained(Entity::Checkpoint, Entity::Execution)?;
    c.count(to, CHECKPOINT_BYTES * rows.cast_signed());
    Ok(rows)
}
