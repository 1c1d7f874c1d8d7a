//! Idempotency keys, audit log, meta values, and the retention: which old rows are deleted, step by step ([`super::delete`] deletes
//! them).

use super::delete::{Deleted, delete_execution, delete_session, gone_session};
use super::run;
use super::usage::{CountedConnection, KEY_BYTES, LINE_BYTES, key_bytes};
use crate::sqlite::failure::{Constrained, SqliteFailure};
use rusqlite::{Connection, OptionalExtension as _, params};
use vm_system_protocol::time::Timestamp;
use vm_system_record::{AuditEntry, Entity, Incarnation, KeyClaim, Owner, StoreError, oldest_id_at};

pub(super) fn claim(c: &CountedConnection<'_>, claim: &KeyClaim) -> Result<u64, SqliteFailure> {
    // An expired key is free: the same text may name another request.
    c.delete_of_owners(
        &format!("DELETE FROM idempotency_keys WHERE owner = ?1 AND key = ?2 AND created_at < ?3 RETURNING owner, {KEY_BYTES}"),
        params![claim.owner.as_str(), claim.key, claim.expired_before.0],
    )?;
    let rows = run(
        c,
        "INSERT INTO idempotency_keys (owner, key, request_hash, subject, created_at, reply, holder)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            claim.owner.as_str(),
            claim.key,
            claim.request_hash,
            claim.subject,
            claim.at.0,
            claim.reply,
            claim.holder.0
        ],
    )
    .constrained(Entity::Key, Entity::Key)?;
    c.count_of(claim.owner.as_str(), key_bytes(&claim.key, claim.reply.as_ref().map_or(0, Vec::len) as u64));
    Ok(rows)
}

/// Compares and sets: of several that find the same holder ended, one goes on.
pub(super) fn take_over(
    c: &Connection,
    owner: &Owner,
    key: &str,
    (from, to): (Option<Incarnation>, Incarnation),
) -> Result<u64, SqliteFailure> {
    let sql = "UPDATE idempotency_keys SET holder = ?4 WHERE owner = ?1 AND key = ?2 AND holder IS ?3 AND reply IS NULL";
    match run(c, sql, params![owner.as_str(), key, from.map(|from| from.0), to.0])? {
        0 => Err(StoreError::conflict(Entity::Key).into()),
        rows => Ok(rows),
    }
}

pub(super) fn respond(
    c: &CountedConnection<'_>,
    owner: &Owner,
    key: &str,
    reply: &[u8],
) -> Result<u64, SqliteFailure> {
    let sql = "SELECT coalesce(length(reply), 0) FROM idempotency_keys WHERE owner = ?1 AND key = ?2";
    let before: Option<i64> =
        c.prepare_cached(sql)?.query_row(params![owner.as_str(), key], |row| row.get(0)).optional()?;
    let Some(before) = before else { return Err(StoreError::missing(Entity::Key).into()) };
    let sql = "UPDATE idempotency_keys SET reply = ?3 WHERE owner = ?1 AND key = ?2";
    let rows = run(c, sql, params![owner.as_str(), key, reply])?;
    c.count_of(owner.as_str(), key_bytes(key, reply.len() as u64) - key_bytes(key, before.cast_unsigned()));
    Ok(rows)
}

pub(super) fn release(c: &CountedConnection<'_>, owner: &Owner, key: &str) -> Result<u64, SqliteFailure> {
    let sql =
        format!("DELETE FROM idempotency_keys WHERE owner = ?1 AND key = ?2 RETURNING owner, {KEY_BYTES}");
    Ok(c.delete_of_owners(&sql, params![owner.as_str(), key])?)
}

/// All lines of the audit log count: some changes, such as suspending a session again and again, leave nothing else.
pub(super) fn audit(c: &CountedConnection<'_>, entry: &AuditEntry) -> Result<u64, SqliteFailure> {
    let rows = run(
        c,
        "INSERT INTO audit_log (at, owner, verb, subject, outcome, api) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![entry.at.0, entry.owner.as_str(), entry.verb, entry.subject, entry.outcome, entry.api],
    )?;
    c.count_of(entry.owner.as_str(), LINE_BYTES + entry.subject.len() as i64);
    Ok(rows)
}

pub(super) fn meta(c: &Connection, key: &str, value: Option<&[u8]>) -> Result<u64, SqliteFailure> {
    Ok(match value {
        Some(value) => run(
            c,
            "INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = ?2",
            params![key, value],
        )?,
        None => run(c, "DELETE FROM meta WHERE key = ?1", params![key])?,
    })
}

/// The position of a scan in order of creation: the next step continues after it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::sqlite) struct ScanPosition {
    executions: [u8; 16],
    versions: i64,
}

/// The result of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sqlite) struct PruneStep {
    /// Number of deleted rows.
    pub(in crate::sqlite) rows: u64,
    /// The scan is not over: there may be more to delete.
    pub(in crate::sqlite) more: bool,
    /// Where the next step continues.
    pub(in crate::sqlite) position: ScanPosition,
}

/// Pages of the database file that one step frees, about (4 KiB each): rows may be large.
const STEP_PAGES: i64 = 1_024;

/// How much more one step may delete.
struct StepBudget {
    max_rows: u64,
    /// Free pages at its begin.
    free_pages: i64,
}

impl StepBudget {
    fn new(c: &Connection, max_rows: u64) -> rusqlite::Result<Self> {
        Ok(Self { max_rows, free_pages: free_pages(c)? })
    }

    /// Whether a step that has deleted so many rows ends. Not before it has deleted something.
    fn is_spent(&self, c: &Connection, rows: u64) -> rusqlite::Result<bool> {
        // Two bounds: a few rows may have megabytes, and many small ones free hardly a page.
        Ok(rows >= self.max_rows || free_pages(c)? - self.free_pages >= STEP_PAGES)
    }

    fn rows_left(&self, rows: u64) -> u64 {
        self.max_rows.saturating_sub(rows)
    }
}

fn free_pages(c: &Connection) -> rusqlite::Result<i64> {
    c.prepare_cached("PRAGMA freelist_count")?.query_row([], |row| row.get(0))
}

/// Rows of a kind that one step scans: unfinished rows, however many, do not block the deletion of others.
const SCAN_ROWS: u64 = 4_096;

/// A whole scan, up to its bound.
pub(super) fn prune(
    c: &CountedConnection<'_>,
    before: Timestamp,
    keys_before: Timestamp,
    max_rows: u32,
) -> Result<u64, SqliteFailure> {
    let (mut rows, mut position) = (0, ScanPosition::default());
    loop {
        let left = max_rows.saturating_sub(u32::try_from(rows).unwrap_or(u32::MAX));
        let step = prune_step(c, before, keys_before, left, position)?;
        rows += step.rows;
        if !step.more || rows >= u64::from(max_rows) {
            return Ok(rows);
        }
        position = step.position;
    }
}

/// Deletes whole executions and sessions, oldest first, so that no reader ever sees a part of an execution's events.
pub(in crate::sqlite) fn prune_step(
    c: &CountedConnection<'_>,
    before: Timestamp,
    keys_before: Timestamp,
    max_rows: u32,
    position: ScanPosition,
) -> Result<PruneStep, SqliteFailure> {
    let budget = StepBudget::new(c, max_rows.into())?;
    let mut rows = c.delete_of_owners(
        &format!(
            "DELETE FROM idempotency_keys WHERE (owner, key) IN
                 (SELECT owner, key FROM idempotency_keys WHERE created_at < ?1 ORDER BY created_at LIMIT ?2)
             RETURNING owner, {KEY_BYTES}"
        ),
        params![keys_before.0, max_rows],
    )?;
    // The first lines are the oldest unless the calendar was changed: lines that are too new stay.
    rows += c.delete_of_owners(
        &format!(
            "DELETE FROM audit_log WHERE at < ?1 AND id IN (SELECT id FROM audit_log ORDER BY id LIMIT ?2)
             RETURNING owner, {LINE_BYTES} + octet_length(subject)"
        ),
        params![before.0, budget.rows_left(rows).cast_signed()],
    )?;
    // Executions, then sessions, then versions: each is deleted only when nothing refers to it any more.
    let mut step = PruneStep { rows, more: budget.is_spent(c, rows)?, position };
    prune_executions(c, before, &budget, &mut step)?;
    prune_sessions(c, before, &budget, &mut step.rows)?;
    prune_versions(c, before, &budget, &mut step)?;
    step.more |= budget.is_spent(c, step.rows)?;
    Ok(step)
}

fn prune_executions(
    c: &CountedConnection<'_>,
    before: Timestamp,
    budget: &StepBudget,
    step: &mut PruneStep,
) -> Result<(), SqliteFailure> {
    // Ids are time-ordered, so the primary key finds the oldest without an index of its own.
    let mut statement = c.prepare_cached(
        "SELECT id, ended_at < ?3 AND NOT EXISTS (SELECT 1 FROM staged WHERE execution = id AND seq = 0)
         FROM executions WHERE id > ?1 AND id < ?2 ORDER BY id LIMIT ?4",
    )?;
    let scanned = params![step.position.executions, oldest_id_at(before), before.0, SCAN_ROWS.cast_signed()];
    let seen: Vec<([u8; 16], Option<bool>)> =
        statement.query_map(scanned, |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
    step.more |= seen.len() as u64 == SCAN_ROWS;
    for (id, may_go) in seen {
        // Before each execution: callers wait for one deletion more than the bound at most.
        if budget.is_spent(c, step.rows)? {
            step.more = true;
            break;
        }
        if may_go == Some(true) {
            let deleted = delete_execution(c, id)?;
            step.rows += deleted.rows;
            if !deleted.is_gone {
                step.more = true;
                break;
            }
        }
        // Only behind what is done: an execution that was deleted in part is the next step's first.
        step.position.executions = id;
    }
    Ok(())
}

/// Deletes versions of programs that are not the newest and that no execution uses any more; deleted programs are removed
/// with their last version.
fn prune_versions(
    c: &Connection,
    before: Timestamp,
    budget: &StepBudget,
    step: &mut PruneStep,
) -> Result<(), SqliteFailure> {
    let mut statement = c.prepare_cached(
        "SELECT v.rowid, v.created_at, v.program, p.is_active = 0, (p.is_active = 0 OR p.version <> v.version)
             AND NOT EXISTS (SELECT 1 FROM program_runs WHERE program = v.program AND version = v.version)
         FROM program_versions AS v CROSS JOIN programs AS p ON p.id = v.program
         WHERE v.rowid > ?1 ORDER BY v.rowid LIMIT ?2",
    )?;
    let mut gone = Vec::new();
    let mut rows = statement.query(params![step.position.versions, SCAN_ROWS.cast_signed()])?;
    let (mut seen, mut scanned) = (0, 0);
    while let Some(row) = rows.next()? {
        if step.rows + gone.len() as u64 >= budget.max_rows {
            step.more = true;
            break;
        }
        let version: i64 = row.get(0)?;
        let old = row.get::<_, i64>(1)? < before.0;
        // Rows that are too new are scanned again, unless later ones are old: then their time is wrong.
        seen += 1;
        if old {
            scanned = seen;
            step.position.versions = version;
        }
        if old && row.get(4)? {
            gone.push((version, row.get::<_, [u8; 16]>(2)?, row.get::<_, bool>(3)?));
        }
    }
    drop(rows);
    step.more |= scanned == SCAN_ROWS;
    for (version, program, deleted) in gone {
        if budget.is_spent(c, step.rows)? {
            step.more = true;
            step.position.versions = step.position.versions.min(version - 1);
            break;
        }
        step.rows += run(c, "DELETE FROM program_versions WHERE rowid = ?1", params![version])?;
        if deleted {
            let sql = "DELETE FROM programs WHERE id = ?1
                 AND NOT EXISTS (SELECT 1 FROM program_versions WHERE program = ?1)";
            step.rows += run(c, sql, params![program])?;
        }
    }
    Ok(())
}

/// Deletes what is in a list, in pieces, until the budget is spent.
fn delete_each<T>(
    c: &CountedConnection<'_>,
    all: &[T],
    budget: &StepBudget,
    rows: &mut u64,
    delete: impl Fn(&CountedConnection<'_>, &T) -> Result<Deleted, SqliteFailure>,
) -> Result<(), SqliteFailure> {
    for one in all {
        let mut is_gone = false;
        while !is_gone && !budget.is_spent(c, *rows)? {
            let deleted = delete(c, one)?;
            *rows += deleted.rows;
            is_gone = deleted.is_gone;
        }
    }
    Ok(())
}

/// As [`prune`], for one owner's executions and sessions only: the oldest sessions first.
pub(super) fn prune_owner(
    c: &CountedConnection<'_>,
    owner: &Owner,
    before: Timestamp,
    max_rows: u32,
) -> Result<u64, SqliteFailure> {
    let (budget, mut rows) = (StepBudget::new(c, max_rows.into())?, 0);
    // In the order of two indexes, so that nothing is sorted and no rows of others are read.
    let ids: Vec<[u8; 16]> = c
        .prepare_cached(
            "SELECT executions.id FROM sessions CROSS JOIN executions ON executions.session = sessions.id
             WHERE sessions.owner = ?1 AND executions.ended_at < ?2
                 AND NOT EXISTS (SELECT 1 FROM staged WHERE execution = executions.id AND seq = 0)
             ORDER BY sessions.created_at, sessions.id, executions.started_at, executions.id LIMIT ?3",
        )?
        .query_map(params![owner.as_str(), before.0, max_rows], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    delete_each(c, &ids, &budget, &mut rows, |c, id| delete_execution(c, *id))?;
    let left = budget.rows_left(rows).cast_signed();
    let gone = c
        .prepare_cached(
            "SELECT id, policy, template FROM sessions WHERE owner = ?1 AND closed_at < ?2
                 AND NOT EXISTS (SELECT 1 FROM executions WHERE session = sessions.id)
             ORDER BY created_at, id LIMIT ?3",
        )?
        .query_map(params![owner.as_str(), before.0, left], gone_session)?
        .collect::<Result<Vec<_>, _>>()?;
    delete_each(c, &gone, &budget, &mut rows, delete_session)?;
    // Versions of deleted programs are deleted by age.
    unused_versions(c, owner, before, &budget, &mut rows)?;
    Ok(rows)
}

/// Deletes versions of one owner's programs as [`prune_versions`] does, except the newest of each.
fn unused_versions(
    c: &Connection,
    owner: &Owner,
    before: Timestamp,
    budget: &StepBudget,
    rows: &mut u64,
) -> Result<(), SqliteFailure> {
    let gone: Vec<i64> = c
        .prepare_cached(
            "SELECT v.rowid FROM programs AS p CROSS JOIN program_versions AS v ON v.program = p.id
             WHERE p.owner = ?1 AND p.is_active = 1 AND p.version <> v.version AND v.created_at < ?2
                 AND NOT EXISTS (SELECT 1 FROM program_runs WHERE program = v.program AND version = v.version)
             ORDER BY p.created_at, p.id, v.version LIMIT ?3",
        )?
        .query_map(params![owner.as_str(), before.0, budget.rows_left(*rows).cast_signed()], |row| {
            row.get(0)
        })?
        .collect::<Result<_, _>>()?;
    for version in gone {
        if budget.is_spent(c, *rows)? {
            break;
        }
        *rows += run(c, "DELETE FROM program_versions WHERE rowid = ?1", params![version])?;
    }
    Ok(())
}

fn prune_sessions(
    c: &CountedConnection<'_>,
    before: Timestamp,
    budget: &StepBudget,
    rows: &mut u64,
) -> Result<(), SqliteFailure> {
    // Only sessions without executions: an execution that ends after its session's age limit keeps the session.
    let gone = c
        .prepare_cached(
            "SELECT id, policy, template FROM sessions WHERE closed_at < ?1 AND closed_at IS NOT NULL
                 AND NOT EXISTS (SELECT 1 FROM executions WHERE session = sessions.id)
             ORDER BY closed_at LIMIT ?2",
        )?
        .query_map(params![before.0, budget.rows_left(*rows).cast_signed()], gone_session)?
        .collect::<Result<Vec<_>, _>>()?;
    delete_each(c, &gone, budget, rows, delete_session)
}

#[cfg(test)]
mod tests {
    use super::super::delete::delete_run;
    use super::{CountedConnection, SCAN_ROWS, ScanPosition, prune_owner, prune_step};
    use crate::sqlite::read::costs::filled;
    use vm_system_protocol::ids::ExecutionId;
    use vm_system_protocol::time::Timestamp;
    use vm_system_record::Owner;

    #[test]
    fn events_of_sessions_and_large_texts_are_deleted_in_pieces() {
        let (_folder, c) = filled();
        let c = CountedConnection::new(&c);
        // Tasks make any number of events of one execution; a line may be as large as a turn.
        c.execute_batch(
            "UPDATE executions SET ended_at = 5, kind = 'repl' WHERE owner = 'me';
             UPDATE sessions SET durable = 0 WHERE owner = 'me';
             WITH RECURSIVE n(i) AS (VALUES (1000) UNION ALL SELECT i + 1 FROM n WHERE i < 5999)
                 INSERT INTO session_events SELECT sessions.id, i, 0, 'execution_waiting', NULL, NULL, NULL FROM n
                     CROSS JOIN sessions WHERE owner = 'me';
             WITH RECURSIVE n(i) AS (VALUES (1000) UNION ALL SELECT i + 1 FROM n WHERE i < 1009)
                 INSERT INTO events SELECT executions.id, i, 0, 'console', NULL, printf('%.1000000c', 'x'), NULL FROM n
                     CROSS JOIN executions WHERE owner = 'me';",
        )
        .expect("rows of a schema of our own");
        let count = |table: &str| {
            let sql = format!("SELECT count(*) FROM {table} WHERE owner = 'me'");
            c.query_row(&sql, [], |row| row.get::<_, i64>(0)).expect("a number")
        };
        let texts = || {
            let sql = "SELECT count(*) FROM events WHERE seq >= 1000";
            c.query_row(sql, [], |row| row.get::<_, i64>(0)).expect("a number")
        };
        let step = || {
            let rows = prune_owner(&c, &Owner::new("me"), Timestamp(10), 1).expect("rows of our own");
            // The background finishes what is begun.
            c.execute_batch("DELETE FROM staged").expect("a table of ours");
            rows
        };
        for closed in [false, true] {
            if closed {
                c.execute_batch("UPDATE sessions SET closed_at = 5 WHERE owner = 'me'")
                    .expect("a table of ours");
            }
            let (mut most_rows, mut most_texts) = (0, 0);
            while count(if closed { "sessions" } else { "executions" }) > 0 {
                let before = texts();
                most_rows = most_rows.max(step());
                most_texts = most_texts.max(before - texts());
            }
            assert!(most_rows < 1_100 && most_texts < 4, "{most_rows} rows, {most_texts} MB in one step");
            let left = "SELECT count(*) FROM session_events WHERE seq >= 1000";
            let left: i64 = c.query_row(left, [], |row| row.get(0)).expect("a number");
            assert!(left <= 3, "{left}: of each live session the newest one");
            c.execute_batch(
                "WITH RECURSIVE n(i) AS (VALUES (10000) UNION ALL SELECT i + 1 FROM n WHERE i < 14999)
                     INSERT INTO session_events SELECT sessions.id, i, 0, 'execution_waiting', NULL, NULL, NULL FROM n
                         CROSS JOIN sessions WHERE owner = 'me';",
            )
            .expect("rows of a schema of our own");
        }
    }

    #[test]
    fn deleted_template_is_removed_with_its_last_session() {
        let (_folder, c) = filled();
        let c = CountedConnection::new(&c);
        c.execute_batch(
            "UPDATE templates SET is_active = 0 WHERE owner = 'me';
             UPDATE sessions SET closed_at = 1 WHERE owner = 'me';
             UPDATE executions SET ended_at = 1 WHERE owner = 'me';",
        )
        .expect("rows of a schema of our own");
        let count = |table: &str| {
            let sql = format!("SELECT count(*) FROM {table} WHERE owner = 'me'");
            c.query_row(&sql, [], |row| row.get::<_, i64>(0)).expect("a number")
        };
        let mut ids = c.prepare("SELECT id FROM executions WHERE owner = 'me'").expect("a table of ours");
        let ids: Vec<[u8; 16]> =
            ids.query_map([], |row| row.get(0)).expect("readable").map(|id| id.expect("an id")).collect();
        for (left, id) in ids.into_iter().enumerate() {
            assert_eq!(count("templates"), 1, "{left} of its sessions are deleted");
            assert!(delete_run(&c, ExecutionId::from_bytes(id)).is_ok());
        }
        assert_eq!(["executions", "sessions", "templates"].map(count), [0, 0, 0]);
    }

    #[test]
    fn version_with_a_wrong_time_does_not_keep_later_ones() {
        let (_folder, c) = filled();
        let c = CountedConnection::new(&c);
        // One in the far future, more newest versions than one step scans, and one that may go.
        let many = SCAN_ROWS + 100;
        c.execute_batch(&format!(
            "INSERT INTO programs VALUES (zeroblob(16), 'me', 'q', 1, 3, 0, 0);
             INSERT INTO program_versions VALUES (zeroblob(16), 1, zeroblob(32), 1, {future}, '', x'');
             WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < {many})
                 INSERT INTO programs SELECT unhex(printf('%032x', i)), 'me', 'q' || i, 1, 1, 0, 0 FROM n;
             WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < {many})
                 INSERT INTO program_versions SELECT unhex(printf('%032x', i)), 1, zeroblob(32), 1, 0, '', x'' FROM n;
             INSERT INTO program_versions VALUES (zeroblob(16), 2, zeroblob(32), 1, 0, '', x'');
             INSERT INTO program_versions VALUES (zeroblob(16), 3, zeroblob(32), 1, 0, '', x'');",
            future = i64::MAX / 2,
        ))
        .expect("rows of a schema of our own");
        let mut position = ScanPosition::default();
        for _ in 0..4 {
            let step = prune_step(&c, Timestamp(10), Timestamp(0), 1_000, position);
            position = step.expect("rows of our own").position;
        }
        let versions = "SELECT group_concat(version) FROM program_versions WHERE program = zeroblob(16)";
        let left: String = c.query_row(versions, [], |row| row.get(0)).expect("some are left");
        assert_eq!(left, "1,3");
    }
}
