//! The books: idempotency keys, audit log, meta values, and forgetting.

use super::run;
use crate::store::error::{Entity, StoreError};
use crate::store::retention::oldest_id_at;
use crate::store::rows::{AuditEntry, KeyClaim, Owner};
use crate::store::sqlite::failure::{Constrained, Failure};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::time::Timestamp;

pub(super) fn claim(c: &Connection, claim: &KeyClaim) -> Result<u64, Failure> {
    run(
        c,
        "DELETE FROM idempotency_keys WHERE owner = ?1 AND key = ?2 AND created_at < ?3",
        params![claim.owner.as_str(), claim.key, claim.expired_before.0],
    )?;
    run(
        c,
        "INSERT INTO idempotency_keys (owner, key, request_hash, subject, created_at, reply)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![claim.owner.as_str(), claim.key, claim.request_hash, claim.subject, claim.at.0, claim.reply],
    )
    .constrained(Entity::Key, Entity::Key)
}

pub(super) fn answer(c: &Connection, owner: &Owner, key: &str, reply: &[u8]) -> Result<u64, Failure> {
    let sql = "UPDATE idempotency_keys SET reply = ?3 WHERE owner = ?1 AND key = ?2";
    match run(c, sql, params![owner.as_str(), key, reply])? {
        0 => Err(StoreError::missing(Entity::Key).into()),
        rows => Ok(rows),
    }
}

pub(super) fn release(c: &Connection, owner: &Owner, key: &str) -> Result<u64, Failure> {
    let sql = "DELETE FROM idempotency_keys WHERE owner = ?1 AND key = ?2";
    Ok(run(c, sql, params![owner.as_str(), key])?)
}

pub(super) fn audit(c: &Connection, entry: &AuditEntry) -> Result<u64, Failure> {
    Ok(run(
        c,
        "INSERT INTO audit_log (at, owner, verb, subject, outcome, door) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![entry.at.0, entry.owner.as_str(), entry.verb, entry.subject, entry.outcome, entry.door],
    )?)
}

pub(super) fn meta(c: &Connection, key: &str, value: Option<&[u8]>) -> Result<u64, Failure> {
    Ok(match value {
        Some(value) => run(
            c,
            "INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = ?2",
            params![key, value],
        )?,
        None => run(c, "DELETE FROM meta WHERE key = ?1", params![key])?,
    })
}

/// Whole executions and sessions go, oldest first, so that no reader ever sees half of one's events.
pub(super) fn prune(
    c: &Connection,
    before: Timestamp,
    keys_before: Timestamp,
    max_rows: u32,
) -> Result<u64, Failure> {
    let budget = u64::from(max_rows);
    let mut rows = run(
        c,
        "DELETE FROM idempotency_keys WHERE (owner, key) IN
             (SELECT owner, key FROM idempotency_keys WHERE created_at < ?1 ORDER BY created_at LIMIT ?2)",
        params![keys_before.0, max_rows],
    )?;
    rows += run(
        c,
        "DELETE FROM audit_log WHERE id IN (SELECT id FROM audit_log WHERE at < ?1 ORDER BY at LIMIT ?2)",
        params![before.0, budget.saturating_sub(rows).cast_signed()],
    )?;
    rows += prune_executions(c, before, budget.saturating_sub(rows))?;
    rows += prune_sessions(c, before, budget.saturating_sub(rows))?;
    Ok(rows)
}

fn prune_executions(c: &Connection, before: Timestamp, budget: u64) -> Result<u64, Failure> {
    // Ids are time-ordered, so the primary key finds the oldest without an index of its own.
    let ids: Vec<[u8; 16]> = c
        .prepare_cached("SELECT id FROM executions WHERE id < ?1 AND ended_at < ?2 ORDER BY id LIMIT ?3")?
        .query_map(params![oldest_id_at(before), before.0, budget.cast_signed()], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    delete_executions(c, &ids, budget)
}

fn delete_executions(c: &Connection, ids: &[[u8; 16]], budget: u64) -> Result<u64, Failure> {
    let mut rows = 0;
    for id in ids {
        if rows >= budget {
            break;
        }
        rows += delete_execution(c, *id)?;
    }
    Ok(rows)
}

/// As [`prune`], of one owner's executions and sessions alone: the oldest sessions first.
pub(super) fn prune_owner(
    c: &Connection,
    owner: &Owner,
    before: Timestamp,
    max_rows: u32,
) -> Result<u64, Failure> {
    let budget = u64::from(max_rows);
    // In the order of two indexes, so that nothing is sorted and nothing of others is looked at.
    let ids: Vec<[u8; 16]> = c
        .prepare_cached(
            "SELECT executions.id FROM sessions CROSS JOIN executions ON executions.session = sessions.id
             WHERE sessions.owner = ?1 AND executions.ended_at < ?2
             ORDER BY sessions.created_at, sessions.id, executions.started_at, executions.id LIMIT ?3",
        )?
        .query_map(params![owner.as_str(), before.0, max_rows], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let rows = delete_executions(c, &ids, budget)?;
    let left = budget.saturating_sub(rows).cast_signed();
    let gone = c
        .prepare_cached(
            "SELECT id, policy, template FROM sessions WHERE owner = ?1 AND closed_at < ?2
                 AND NOT EXISTS (SELECT 1 FROM executions WHERE session = sessions.id)
             ORDER BY created_at, id LIMIT ?3",
        )?
        .query_map(params![owner.as_str(), before.0, left], gone_session)?
        .collect::<Result<Vec<_>, _>>()?;
    Ok(rows + delete_sessions(c, gone)?)
}

fn delete_execution(c: &Connection, id: [u8; 16]) -> Result<u64, Failure> {
    let mut rows = 0;
    for sql in [
        "DELETE FROM events WHERE execution = ?1",
        "DELETE FROM state_pages WHERE execution = ?1",
        "DELETE FROM checkpoints WHERE execution = ?1",
        "DELETE FROM tasks WHERE execution = ?1",
        "DELETE FROM program_runs WHERE execution = ?1",
        "DELETE FROM current_executions WHERE execution = ?1",
        "DELETE FROM executions WHERE id = ?1",
    ] {
        rows += run(c, sql, params![id])?;
    }
    Ok(rows)
}

pub(super) fn delete_run(c: &Connection, id: ExecutionId) -> Result<u64, Failure> {
    let ended: Option<(bool, [u8; 16])> = c
        .prepare_cached("SELECT ended_at IS NOT NULL, session FROM executions WHERE id = ?1")?
        .query_row(params![id.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    match ended {
        None => Err(StoreError::missing(Entity::Execution).into()),
        Some((false, _)) => Err(StoreError::conflict(Entity::Execution).into()),
        Some((true, session)) => {
            let rows = delete_execution(c, *id.as_bytes())?;
            let sql = "DELETE FROM sessions WHERE id = ?1 AND closed_at IS NOT NULL
                 AND NOT EXISTS (SELECT 1 FROM executions WHERE session = ?1)";
            Ok(rows + run(c, sql, params![session])?)
        }
    }
}

fn prune_sessions(c: &Connection, before: Timestamp, budget: u64) -> Result<u64, Failure> {
    // Only what has no executions left: those that end later than their session's age limit keep it.
    let gone = c
        .prepare_cached(
            "SELECT id, policy, template FROM sessions WHERE closed_at < ?1 AND closed_at IS NOT NULL
                 AND NOT EXISTS (SELECT 1 FROM executions WHERE session = sessions.id)
             ORDER BY closed_at LIMIT ?2",
        )?
        .query_map(params![before.0, budget.cast_signed()], gone_session)?
        .collect::<Result<Vec<_>, _>>()?;
    delete_sessions(c, gone)
}

/// A session, its policy and its template.
type GoneSession = ([u8; 16], [u8; 32], [u8; 16]);

fn gone_session(row: &Row<'_>) -> rusqlite::Result<GoneSession> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
}

fn delete_sessions(c: &Connection, gone: Vec<GoneSession>) -> Result<u64, Failure> {
    let mut rows = 0;
    for (session, policy, template) in gone {
        rows += run(c, "DELETE FROM sessions WHERE id = ?1", params![session])?;
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
    }
    Ok(rows)
}
