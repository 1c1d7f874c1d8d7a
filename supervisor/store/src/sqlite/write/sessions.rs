//! Sessions and their policy snapshots.

use super::usage::CountedConnection;
use super::{exists, int, items, run};
use crate::sqlite::failure::{Constrained, SqliteFailure};
use rusqlite::{Connection, OptionalExtension, params};
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use vm_system_protocol::ids::{ExecutionId, SessionId};
use vm_system_protocol::model::{Engine, Session, SessionEventType, SessionFacts, SessionStatus};
use vm_system_protocol::reason::CloseReason;
use vm_system_protocol::time::Timestamp;
use vm_system_record::{Entity, Owner, PolicySnapshot, RecordedWorktree, SessionChange, StoreError};

/// A session without the facts that it had would be a silent loss: the batch is refused instead.
fn facts_text(facts: &SessionFacts) -> Result<String, SqliteFailure> {
    facts
        .to_json()
        .map_err(|error| StoreError::Corrupt(format!("a session's facts have no JSON form: {error}")).into())
}

pub(super) fn insert(
    c: &Connection,
    owner: &Owner,
    session: &Session,
    (policy, worktree): (&PolicySnapshot, Option<&RecordedWorktree>),
) -> Result<u64, SqliteFailure> {
    let snapshot = serde_json::to_string(policy)
        .map_err(|error| StoreError::Corrupt(format!("a snapshot has no JSON form: {error}")))?;
    // By its hash: the sessions of one template, however many, share one row.
    let hash: [u8; 32] = Sha256::digest(snapshot.as_bytes()).into();
    run(
        c,
        "INSERT INTO policies (hash, snapshot, owner) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
        params![hash, snapshot, owner.as_str()],
    )?;
    run(
        c,
        "INSERT INTO sessions (id, owner, name, template, policy, durable, workspace_id, base_commit_oid,
             worktree_path, status, created_at, closed_at, last_error, close_reason, runtime_meta, files_uid,
             files_user, files_root, files_beneath, files_handle, forked_from, node)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20,
             ?21, (SELECT value FROM meta WHERE key = 'node'))",
        params![
            session.id.as_bytes(),
            owner.as_str(),
            session.name,
            session.template_id.as_bytes(),
            hash,
            policy.engine == Engine::Cvm,
            session.workspace_id,
            session.base_commit_oid,
            session.worktree_path,
            session.status.as_str(),
            session.created_at.0,
            session.closed_at.map(|at| at.0),
            session.last_error,
            session.close_reason,
            facts_text(&session.runtime_meta)?,
            worktree.map(|worktree| worktree.uid),
            worktree.and_then(|worktree| worktree.user.as_deref()),
            worktree.map(|worktree| worktree.root.as_str()),
            worktree.map(|worktree| worktree.beneath.as_str()),
            worktree.and_then(|worktree| worktree.handle.as_deref()),
            session.runtime_meta.forked_from.as_ref().map(SessionId::as_bytes)
        ],
    )
    .constrained(Entity::Session, Entity::Template)
}

/// Makes a session what it is to be: until now its row was a placeholder (`copies.rs`).
pub(super) fn open_copied(c: &Connection, session: &Session) -> Result<u64, SqliteFailure> {
    let sql = "UPDATE sessions SET status = ?2, closed_at = ?3 WHERE id = ?1";
    let closed_at = session.closed_at.map(|at| at.0);
    let rows = run(c, sql, params![session.id.as_bytes(), session.status.as_str(), closed_at])?;
    if rows == 0 { Err(StoreError::missing(Entity::Session).into()) } else { Ok(rows) }
}

/// The error of a statement that found no row: the row is missing, or has ended.
fn missing_or_finished(c: &Connection, id: SessionId) -> SqliteFailure {
    match exists(c, "SELECT 1 FROM sessions WHERE id = ?1", params![id.as_bytes()]) {
        Ok(true) => StoreError::finished(Entity::Session).into(),
        Ok(false) => StoreError::missing(Entity::Session).into(),
        Err(error) => error.into(),
    }
}

pub(super) fn ready(c: &Connection, id: SessionId) -> Result<u64, SqliteFailure> {
    let sql = "UPDATE sessions SET status = 'ready' WHERE id = ?1 AND status IN ('starting', 'ready')";
    match run(c, sql, params![id.as_bytes()])? {
        0 => Err(missing_or_finished(c, id)),
        rows => Ok(rows),
    }
}

pub(super) fn restored(
    c: &Connection,
    id: SessionId,
    name: Option<&str>,
    facts: &SessionFacts,
) -> Result<u64, SqliteFailure> {
    let sql = "UPDATE sessions SET status = 'ready', name = ?2, runtime_meta = ?3
         WHERE id = ?1 AND status = 'starting'";
    match run(c, sql, params![id.as_bytes(), name, facts_text(facts)?])? {
        0 => Err(missing_or_finished(c, id)),
        rows => Ok(rows),
    }
}

pub(super) fn change(c: &Connection, id: SessionId, change: &SessionChange) -> Result<u64, SqliteFailure> {
    let (column, value) = match change {
        SessionChange::Name(name) => ("name", name),
    };
    let sql = format!("UPDATE sessions SET {column} = ?2 WHERE id = ?1 AND status IN ('starting', 'ready')");
    match run(c, &sql, params![id.as_bytes(), value])? {
        0 => Err(missing_or_finished(c, id)),
        rows => Ok(rows),
    }
}

pub(super) fn restoring(
    c: &Connection,
    id: SessionId,
    kind: SessionEventType,
    at: Timestamp,
    detail: &str,
) -> Result<u64, SqliteFailure> {
    // The number in the same statement: the next worker counts its messages from 1.
    let sql = "UPDATE sessions SET status = 'starting', worker_seq = 0 WHERE id = ?1 AND status = ?2";
    if run(c, sql, params![id.as_bytes(), "ready"])? == 0 {
        // A restart that failed is followed by another one; no trigger writes its event.
        let rows = run(c, sql, params![id.as_bytes(), "starting"])?;
        if rows == 0 {
            return Err(missing_or_finished(c, id));
        }
        return Ok(rows + event(c, id, kind, at, Some(detail))?);
    }
    // The trigger has written the event of a new status.
    let sql = "UPDATE session_events SET at = ?2, type = ?3, detail = ?4
         WHERE session = ?1 AND seq = (SELECT max(seq) FROM session_events WHERE session = ?1)";
    run(c, sql, params![id.as_bytes(), at.0, kind.as_str(), detail])?;
    bound_events(c, id)?;
    Ok(1)
}

pub(super) fn end(
    c: &CountedConnection<'_>,
    id: SessionId,
    status: SessionStatus,
    at: Timestamp,
    reason: &CloseReason,
    last_error: Option<&str>,
) -> Result<u64, SqliteFailure> {
    let rows = run(
        c,
        "UPDATE sessions SET status = ?2, closed_at = ?3, close_reason = ?4, last_error = ?5
         WHERE id = ?1 AND status IN ('starting', 'ready')",
        params![id.as_bytes(), status.as_str(), at.0, reason.to_string(), last_error],
    )?;
    if rows == 0 { Err(missing_or_finished(c, id)) } else { Ok(rows + end_unfinished(c, id, None, at)?) }
}

/// The number of the newest events of a session that are kept, whatever they are about.
const EVENTS_KEPT: i64 = 10_000;
/// The number of older events that are looked at with each event that is bounded here. More can be left only if as many events of
/// executions, which count for their owner, are among them.
const EVENTS_SEEN: i64 = 1_024;
/// How a session began stays.
const FIRST_EVENTS: i64 = 8;

/// Events of executions are bounded by their owner's quota and stay; those of checkpoints, rollbacks, restarts, suspensions and
/// adoptions are bounded here. Without its first event, a record says that checkpoints, rollbacks or restarts are missing in it.
fn bound_events(c: &Connection, id: SessionId) -> Result<(), SqliteFailure> {
    let newest = "SELECT coalesce(max(seq), 0) FROM session_events WHERE session = ?1";
    let newest: i64 = c.prepare_cached(newest)?.query_row([id.as_bytes()], |row| row.get(0))?;
    let (from, to) = ((newest - EVENTS_KEPT - EVENTS_SEEN).max(FIRST_EVENTS), newest - EVENTS_KEPT);
    if to <= from {
        return Ok(());
    }
    let sql = "DELETE FROM session_events WHERE session = ?1 AND seq > ?2 AND seq <= ?3
         AND type IN ('checkpointed', 'rolled_back', 'restarted', 'suspended', 'resumed', 'adopted', 'starting', 'ready')
         RETURNING type IN ('checkpointed', 'rolled_back', 'restarted')";
    let mut deleted = c.prepare_cached(sql)?;
    let deleted = deleted.query_map(params![id.as_bytes(), from, to], |row| row.get::<_, bool>(0))?;
    let lacks_some = deleted.collect::<Result<Vec<_>, _>>()?.contains(&true);
    if lacks_some {
        run(c, "DELETE FROM session_events WHERE session = ?1 AND seq = 1", params![id.as_bytes()])?;
    }
    Ok(())
}

/// All other events are written by triggers (`schema.sql`).
pub(super) fn event(
    c: &Connection,
    id: SessionId,
    kind: SessionEventType,
    at: Timestamp,
    detail: Option<&str>,
) -> Result<u64, SqliteFailure> {
    let sql = "INSERT INTO session_events SELECT id,
             coalesce((SELECT max(seq) FROM session_events WHERE session = ?1), 0) + 1, ?2, ?3, NULL, NULL, ?4
         FROM sessions WHERE id = ?1";
    let rows = found(run(c, sql, params![id.as_bytes(), at.0, kind.as_str(), detail])?)?;
    bound_events(c, id)?;
    Ok(rows)
}

pub(super) fn facts(c: &Connection, id: SessionId, facts: &SessionFacts) -> Result<u64, SqliteFailure> {
    let sql = "UPDATE sessions SET runtime_meta = ?2 WHERE id = ?1";
    found(run(c, sql, params![id.as_bytes(), facts_text(facts)?])?)
}

pub(super) fn worker_seq(c: &Connection, id: SessionId, seq: u64) -> Result<u64, SqliteFailure> {
    found(run(c, "UPDATE sessions SET worker_seq = ?2 WHERE id = ?1", params![id.as_bytes(), int(seq)])?)
}

fn found(rows: u64) -> Result<u64, SqliteFailure> {
    if rows == 0 { Err(StoreError::missing(Entity::Session).into()) } else { Ok(rows) }
}

/// Uses a separate index, so that the cost does not depend on sessions of durable programs.
const LIVE: &str = "SELECT id FROM sessions INDEXED BY sessions_live
     WHERE durable = 0 AND status IN ('starting', 'ready')
         AND (node IS NULL OR node = (SELECT value FROM meta WHERE key = 'node'))";

/// Of sessions whose workers ended with an earlier supervisor, and of their executions.
const GONE: &str = "the worker was gone when the supervisor started";

pub(super) fn host_restart(
    c: &CountedConnection<'_>,
    at: Timestamp,
    (alive, continued): (&[SessionId], &[SessionId]),
    earlier: Option<&[SessionId]>,
    why: Option<&str>,
) -> Result<u64, SqliteFailure> {
    let gone_because = why.map_or_else(|| GONE.to_owned(), |why| format!("{GONE}: {why}"));
    let reason = CloseReason::HostRestart.to_string();
    let mut rows = 0;
    for id in alive {
        rows += end_older(c, *id, at)?;
    }
    let alive: HashSet<&SessionId> = alive.iter().collect();
    let earlier: Option<HashSet<&SessionId>> = earlier.map(|earlier| earlier.iter().collect());
    let is_gone =
        |id: SessionId| !alive.contains(&id) && earlier.as_ref().is_none_or(|earlier| earlier.contains(&id));
    let gone: Vec<[u8; 16]> = c
        .prepare_cached(LIVE)?
        .query_map([], |row| row.get::<_, [u8; 16]>(0))?
        .filter(|id| id.as_ref().map_or(true, |id| is_gone(SessionId::from_bytes(*id))))
        .collect::<Result<_, _>>()?;
    let continued: HashSet<&[u8; 16]> = continued.iter().map(SessionId::as_bytes).collect();
    for id in gone {
        for execution in unfinished(c, id, None)? {
            rows += items::withdraw(c, execution, at)?;
            let sql = "UPDATE executions SET status = 'error', ended_at = ?2, error_code = 'WORKER_DIED',
                     error_message = ?4, error_reason = ?3, duration_ms = max(0, ?2 - started_at),
                     events = (SELECT coalesce(max(seq), 0) FROM events WHERE execution = executions.id)
                 WHERE id = ?1";
            let values = params![execution.as_bytes(), at.0, reason, gone_because];
            rows += c.resize(execution, || Ok(run(c, sql, values)?))?;
        }
        // The execution ended with its worker; the session goes on with another one.
        if continued.contains(&id) {
            continue;
        }
        rows += run(
            c,
            "UPDATE sessions SET status = 'crashed', closed_at = ?2, close_reason = ?3, last_error = ?4
             WHERE id = ?1",
            params![id, at.0, reason, gone_because],
        )?;
    }
    Ok(rows)
}

/// Of an execution whose end could not be stored before that of its session or of a later execution. A supervisor that is still there
/// stores the end later.
pub(super) const END_LOST: &str =
    "an earlier daemon could not store the end of this execution, and was killed: its result is lost";

/// Ends all unfinished executions of a session but the newest, which is the only one that may still run: the ends of the others were
/// never stored, because the disk was full.
fn end_older(c: &CountedConnection<'_>, session: SessionId, at: Timestamp) -> Result<u64, SqliteFailure> {
    let newest = c
        .prepare_cached(
            "SELECT id FROM executions WHERE session = ?1 AND status IN ('running', 'waiting')
             ORDER BY started_at DESC, id DESC LIMIT 1",
        )?
        .query_row([session.as_bytes()], |row| row.get::<_, [u8; 16]>(0))
        .optional()?;
    match newest {
        Some(newest) => end_unfinished(c, session, Some(newest), at),
        None => Ok(0),
    }
}

/// Ends the executions of a session that are unfinished according to the store, except for one.
fn end_unfinished(
    c: &CountedConnection<'_>,
    session: SessionId,
    except: Option<[u8; 16]>,
    at: Timestamp,
) -> Result<u64, SqliteFailure> {
    let sql = "UPDATE executions SET status = 'error', ended_at = ?2, error_code = 'HOST_RESTART', error_message = ?3,
             degraded = 1, duration_ms = max(0, ?2 - started_at),
             events = (SELECT coalesce(max(seq), 0) FROM events WHERE execution = executions.id)
         WHERE id = ?1";
    let mut rows = 0;
    for execution in unfinished(c, *session.as_bytes(), except)? {
        rows += items::withdraw(c, execution, at)?;
        let values = params![execution.as_bytes(), at.0, END_LOST];
        rows += c.resize(execution, || Ok(run(c, sql, values)?))?;
    }
    Ok(rows)
}

/// The unfinished executions of a session but for one: there is rarely more than one.
fn unfinished(
    c: &Connection,
    session: [u8; 16],
    except: Option<[u8; 16]>,
) -> Result<Vec<ExecutionId>, rusqlite::Error> {
    let sql =
        "SELECT id FROM executions WHERE session = ?1 AND status IN ('running', 'waiting') AND id IS NOT ?2";
    let mut statement = c.prepare_cached(sql)?;
    let found =
        statement.query_map(params![session, except], |row| row.get(0).map(ExecutionId::from_bytes))?;
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::{CountedConnection, LIVE, host_restart};
    use crate::sqlite::read::costs::filled;
    use rusqlite::StatementStatus;
    use vm_system_protocol::time::Timestamp;

    #[test]
    fn a_start_does_not_read_sessions_of_programs_that_wait() {
        let (_folder, c) = filled();
        let c = CountedConnection::new(&c);
        assert_eq!(host_restart(&c, Timestamp(1), (&[], &[]), None, None).ok(), Some(0));
        let steps =
            c.prepare_cached(LIVE).expect("prepared a moment ago").get_status(StatementStatus::VmStep);
        assert!((1..100).contains(&steps), "{steps} instructions");
    }
}
