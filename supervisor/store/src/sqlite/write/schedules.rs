//! Schedules of programs. Knows nothing of when one is due.

use super::usage::CountedConnection;
use super::{int, run};
use crate::sqlite::failure::{Constrained, SqliteFailure};
use rusqlite::{Connection, params};
use vm_system_protocol::ids::{ExecutionId, ScheduleId};
use vm_system_protocol::time::Timestamp;
use vm_system_record::{Entity, ScheduleChange, ScheduleRow, StoreError};

/// The row of a schedule without its name and its constant part: the texts of its state are bounded (bytes).
const SCHEDULE_BYTES: usize = 2_048;

fn text(json: Result<String, serde_json::Error>) -> Result<String, SqliteFailure> {
    json.map_err(|error| StoreError::Corrupt(format!("a schedule has no JSON form: {error}")).into())
}

pub(super) fn insert(
    c: &CountedConnection<'_>,
    schedule: &ScheduleRow,
    due_at: Option<Timestamp>,
) -> Result<u64, SqliteFailure> {
    let (spec, state) =
        (text(serde_json::to_string(&schedule.spec))?, text(serde_json::to_string(&schedule.state))?);
    let sql = "INSERT INTO schedules (id, owner, name, created_at, revision, next_at, due_at, spec, state)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    let values = params![
        schedule.id.as_bytes(),
        schedule.owner.as_str(),
        schedule.name,
        schedule.created_at.0,
        int(schedule.revision),
        schedule.next_at.map(|at| at.0),
        due_at.map(|at| at.0),
        spec,
        state
    ];
    let rows = run(c, sql, values).constrained(Entity::Schedule, Entity::Schedule)?;
    c.count_of(schedule.owner.as_str(), int((SCHEDULE_BYTES + schedule.name.len() + spec.len()) as u64));
    Ok(rows)
}

pub(super) fn change(c: &Connection, change: &ScheduleChange) -> Result<u64, SqliteFailure> {
    // An execution may have ended since its status was read: the end does not find a schedule that does not wait for it yet.
    let sql = "UPDATE schedules SET revision = revision + 1, next_at = ?3, waits_for = ?5, state = ?6,
             due_at = CASE WHEN ?5 IS NULL OR EXISTS (SELECT 1 FROM executions WHERE id = ?5 AND ended_at IS NULL)
                 THEN ?4 ELSE 0 END
         WHERE id = ?1 AND revision = ?2";
    let values = params![
        change.id.as_bytes(),
        int(change.revision),
        change.next_at.map(|at| at.0),
        change.due_at.map(|at| at.0),
        change.waits_for.as_ref().map(ExecutionId::as_bytes),
        text(serde_json::to_string(&change.state))?
    ];
    match run(c, sql, values)? {
        0 => Err(StoreError::conflict(Entity::Schedule).into()),
        rows => Ok(rows),
    }
}

pub(super) fn delete(c: &CountedConnection<'_>, id: ScheduleId) -> Result<u64, SqliteFailure> {
    let sql = format!(
        "DELETE FROM schedules WHERE id = ?1 RETURNING owner, {SCHEDULE_BYTES} + octet_length(name) + octet_length(spec)"
    );
    match c.delete_of_owners(&sql, [id.as_bytes()])? {
        0 => Err(StoreError::missing(Entity::Schedule).into()),
        rows => Ok(rows),
    }
}

/// A queued time that has waited for the end of this execution is due.
pub(super) fn execution_ended(c: &Connection, execution: ExecutionId) -> Result<(), SqliteFailure> {
    run(c, EXECUTION_ENDED, [execution.as_bytes()])?;
    Ok(())
}

const EXECUTION_ENDED: &str = "UPDATE schedules SET due_at = 0 WHERE waits_for = ?1";

#[cfg(test)]
mod tests {
    use super::EXECUTION_ENDED;
    use crate::sqlite::read::costs::filled;

    #[test]
    fn end_of_an_execution_looks_up_who_waits_for_it() {
        let (_folder, c) = filled();
        let plan = format!("EXPLAIN QUERY PLAN {EXECUTION_ENDED}");
        let plan: String = c.query_row(&plan, [[1; 16]], |row| row.get(3)).expect("SQL of ours");
        assert_eq!(plan, "SEARCH schedules USING INDEX schedules_by_waiting (waits_for=?)");
    }
}
