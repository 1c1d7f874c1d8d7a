//! The executions of programs that are to go on: which run, and which are due.

use super::{Read, ReadError, Select, moment};
use crate::sqlite::claims::ClaimPosition;
use rusqlite::Connection;
use vm_system_protocol::ids::{ExecutionId, SessionId};
use vm_system_protocol::time::Timestamp;
use vm_system_record::{ClaimKind, Owner, UnfinishedRun};

/// Executions behind a position, in the order of their ids, or of the times at which they are due.
pub(in crate::sqlite) fn claimable(
    c: &Connection,
    which: ClaimKind,
    after: ClaimPosition,
    until: Timestamp,
    limit: u32,
) -> Read<Vec<ClaimPosition>> {
    let mut select = claimable_rows("SELECT", which, after, until);
    select.value(i64::from(limit));
    select.rows(c, |row| Ok((moment(row, 0)?, ExecutionId::from_bytes(row.get(1)?))))
}

/// The statement without its last value; `verb` is `SELECT`, or `EXPLAIN QUERY PLAN SELECT` in tests.
fn claimable_rows(verb: &str, which: ClaimKind, (at, id): ClaimPosition, until: Timestamp) -> Select {
    let mut select;
    match which {
        ClaimKind::OfEnded => {
            select = Select::new(&format!("{verb} 0, id FROM executions INDEXED BY executions_running"));
            select
                .and("kind = 'program'")
                .and("status = 'running'")
                .and_value("id >", id.as_bytes().to_vec());
            select.text(" ORDER BY id LIMIT");
        }
        ClaimKind::Due => {
            select =
                Select::new(&format!("{verb} wake_at, id FROM executions INDEXED BY executions_by_wake"));
            select.and("wake_at IS NOT NULL").and_value("wake_at <=", until.0);
            select.and("(wake_at, id) > (").value(at.0).text(",").value(id.as_bytes().to_vec()).text(")");
            select.text(" ORDER BY wake_at, id LIMIT");
        }
    }
    select.paged = true;
    select
}

/// Executions of programs that have not ended, by their sessions, behind one of these. Those that wait have each what wakes them compared with their rows:
/// an open item, no answer that would have made them run, and the time at which the first item is due.
pub(in crate::sqlite) fn unfinished_runs(
    c: &Connection,
    behind: Option<SessionId>,
    limit: u32,
) -> Read<Vec<UnfinishedRun>> {
    let mut select = Select::new(UNFINISHED);
    select.and("kind = 'program' AND status IN ('running', 'waiting')");
    let first = behind.map_or([0; 16], |id| *id.as_bytes());
    select.and_value("session >", first.to_vec());
    select.paged = true;
    select.text(" ORDER BY session LIMIT").value(i64::from(limit));
    select.rows(c, |row| {
        let owner = Owner::new(row.get_ref(1)?.as_str().map_err(|_| ReadError::Damaged("execution"))?);
        let (runs, waits, is_unused, is_late) =
            (row.get::<_, bool>(2)?, row.get::<_, bool>(3)?, row.get::<_, bool>(4)?, row.get::<_, bool>(5)?);
        let stuck = if runs {
            None
        } else if !waits {
            Some("it waits, and nothing is pending for which it could wait")
        } else if is_unused {
            Some("it waits although it has an answer")
        } else {
            is_late.then_some("it waits for a time, and is not woken then")
        };
        let (execution, session) = (ExecutionId::from_bytes(row.get(0)?), SessionId::from_bytes(row.get(6)?));
        Ok(UnfinishedRun { execution, session, owner, runs, stuck })
    })
}

/// The cause of the last checkpoint says what the execution waits for: the answer of its pause, or one of an item.
const UNFINISHED: &str = "SELECT id, owner, status = 'running',
        EXISTS (SELECT 1 FROM open_items WHERE execution = executions.id AND CASE
            WHEN (SELECT cause FROM checkpoints WHERE execution = executions.id ORDER BY seq DESC LIMIT 1)
                IN ('wait', 'wait_edit') THEN item >= 1099511627776 ELSE item < 1099511627776 END),
        EXISTS (SELECT 1 FROM items INDEXED BY items_untaken WHERE execution = executions.id
            AND ended_at IS NOT NULL AND taken_at IS NULL AND item >= 1099511627776)
            AND (SELECT cause FROM checkpoints WHERE execution = executions.id ORDER BY seq DESC LIMIT 1)
                IN ('wait', 'wait_edit'),
        (SELECT min(due_at) FROM open_items WHERE execution = executions.id AND due_at IS NOT NULL) IS NOT wake_at, session
    FROM executions INDEXED BY executions_unfinished";

/// The first time after `until` at which an execution is due.
pub(in crate::sqlite) fn first_wake(c: &Connection, until: Timestamp) -> Read<Option<Timestamp>> {
    let mut select = Select::new("SELECT wake_at FROM executions INDEXED BY executions_by_wake");
    select.and_value("wake_at >", until.0).text(" ORDER BY wake_at LIMIT 1");
    select.paged = true;
    select.first(c, |row| moment(row, 0))
}

pub(in crate::sqlite) fn goes_on(c: &Connection, until: Timestamp) -> Read<bool> {
    let first = (Timestamp(i64::MIN), ExecutionId::from_bytes([0; 16]));
    for which in [ClaimKind::OfEnded, ClaimKind::Due] {
        if !claimable(c, which, first, until, 1)?.is_empty() {
            return Ok(true);
        }
    }
    Ok(super::first_due(c)?.0.is_some_and(|due| due <= until))
}

#[cfg(test)]
mod tests {
    use super::{ClaimKind, ExecutionId, Timestamp, claimable_rows};
    use crate::sqlite::read::costs::filled;

    #[test]
    fn claims_are_searches_in_their_indexes() {
        let (_folder, c) = filled();
        let after = (Timestamp(5), ExecutionId::from_bytes([1; 16]));
        for (which, wanted) in [
            (ClaimKind::OfEnded, "SEARCH executions USING COVERING INDEX executions_running (id>?)"),
            (
                ClaimKind::Due,
                "SEARCH executions USING COVERING INDEX executions_by_wake ((wake_at,id)>(?,?) AND wake_at<?)",
            ),
        ] {
            let mut select = claimable_rows("EXPLAIN QUERY PLAN SELECT", which, after, Timestamp(9));
            select.value(8);
            let plan = select.rows(&c, |row| Ok(row.get::<_, String>(3)?));
            assert_eq!(plan.unwrap_or_else(|_| panic!("it cannot be prepared")), [wanted]);
        }
    }
}
