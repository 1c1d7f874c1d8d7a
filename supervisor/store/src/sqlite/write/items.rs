//! Items, for which executions wait ([`ItemRow`]), and the events that have come for them.
//!
//! An item is two rows while it is open, and one when it has ended. Of a program's execution `wake_at` is the earliest time at which an
//! open item is due: it changes here and nowhere else.

use super::usage::{CountedConnection, ITEM_BYTES, MAIL_BYTES};
use super::{exists, int, run};
use crate::sqlite::failure::{Constrained, SqliteFailure};
use rusqlite::{Connection, OptionalExtension as _, params};
use vm_system_protocol::ids::{ExecutionId, TaskId};
use vm_system_protocol::time::Timestamp;
use vm_system_record::{Entity, ItemOutcome, ItemRow, MailRow, StoreError};

pub(super) fn insert(c: &CountedConnection<'_>, task: &ItemRow) -> Result<u64, SqliteFailure> {
    let execution = task.execution.as_bytes();
    // One that an import brings with its answer.
    let has_answer = task.outcome.is_some_and(is_answer);
    // Not `INSERT … SELECT`: before a statement that may insert many rows SQLite keeps a copy of each page that it changes.
    let rows = run(
        c,
        "INSERT INTO items (execution, item, id, kind, owner, prompt, schema, attempts, created_at, due_at, ended_at, answer,
             checkpoint, retries, fallback, outcome, first_attempt_at, last_attempt_at, answer_seq, taken_at, name)
         VALUES (?1, ?17, ?2, ?18, (SELECT owner FROM executions WHERE id = ?1), ?3, ?4, ?5, ?6, ?7, ?8, ?9,
             ?10, ?11, ?12, ?13, ?14, ?15, CASE WHEN ?16 THEN (SELECT inbox + 1 FROM executions WHERE id = ?1) END, ?19, ?20)",
        params![
            execution,
            task.id.as_bytes(),
            task.prompt,
            task.schema,
            task.attempts,
            task.created_at.0,
            task.deadline.map(|at| at.0),
            task.ended_at.map(|at| at.0),
            task.answer,
            int(task.checkpoint),
            task.retries,
            task.fallback,
            task.outcome.map(ItemOutcome::as_str),
            task.first_attempt_at.map(|at| at.0),
            task.last_attempt_at.map(|at| at.0),
            has_answer,
            int(task.item),
            task.kind.as_str(),
            task.taken_at.map(int),
            task.name,
        ],
    )
    .constrained(Entity::Task, Entity::Execution)?;
    let ItemRow { prompt, schema, fallback, answer, .. } = task;
    let texts = [Some(prompt), schema.as_ref(), fallback.as_ref(), answer.as_ref()];
    let bytes: usize = texts.into_iter().flatten().map(String::len).sum();
    c.count(task.execution, ITEM_BYTES + int(bytes as u64));
    if has_answer {
        count_answer(c, task.execution)?;
    }
    if task.ended_at.is_none() {
        open(c, task)?;
    }
    Ok(rows)
}

fn open(c: &Connection, task: &ItemRow) -> Result<(), SqliteFailure> {
    let (execution, due_at) = (task.execution.as_bytes(), task.deadline.map(|at| at.0));
    let (item, created_at) = (int(task.item), task.created_at.0);
    run(
        c,
        "INSERT INTO open_items (execution, item, id, kind, name, owner, created_at, due_at)
         VALUES (?1, ?2, ?3, ?6, ?7, (SELECT owner FROM executions WHERE id = ?1), ?4, ?5)",
        params![execution, item, task.id.as_bytes(), created_at, due_at, task.kind.as_str(), task.name],
    )?;
    if due_at.is_some() {
        // Of a session's execution its owner task has the deadline. One row for all items that are due later.
        let sql = "UPDATE executions SET wake_at = ?2 WHERE id = ?1 AND kind = 'program' AND coalesce(wake_at > ?2, 1)";
        run(c, sql, params![execution, due_at])?;
    }
    Ok(())
}

/// Whether an execution goes on with what ended its item.
fn is_answer(outcome: ItemOutcome) -> bool {
    outcome != ItemOutcome::Withdrawn
}

/// The number of an answer is that of its execution's last one and one more.
fn count_answer(c: &Connection, execution: ExecutionId) -> Result<u64, rusqlite::Error> {
    run(c, "UPDATE executions SET inbox = inbox + 1 WHERE id = ?1", [execution.as_bytes()])
}

fn missing_or_finished(c: &Connection, id: TaskId) -> SqliteFailure {
    match exists(c, "SELECT 1 FROM items WHERE id = ?1", params![id.as_bytes()]) {
        Ok(true) => StoreError::finished(Entity::Task).into(),
        Ok(false) => StoreError::missing(Entity::Task).into(),
        Err(error) => error.into(),
    }
}

pub(super) fn task_attempt(c: &Connection, id: TaskId, at: Timestamp) -> Result<u64, SqliteFailure> {
    let sql = "UPDATE items SET attempts = min(attempts + 1, 4294967295), first_attempt_at = coalesce(first_attempt_at, ?2),
            last_attempt_at = ?2 WHERE id = ?1 AND ended_at IS NULL";
    let rows = run(c, sql, params![id.as_bytes(), at.0])?;
    if rows == 0 { Err(missing_or_finished(c, id)) } else { Ok(rows) }
}

pub(super) fn end(
    c: &CountedConnection<'_>,
    id: TaskId,
    (outcome, answer): (ItemOutcome, Option<&str>),
    at: Timestamp,
    taken_at: Option<u64>,
) -> Result<u64, SqliteFailure> {
    // The condition decides between answers that come at the same time: the second one finds no row.
    let sql = "UPDATE items SET ended_at = ?2, answer = ?3, outcome = ?4, taken_at = ?6, answer_seq = CASE WHEN ?5 THEN
             (SELECT inbox + 1 FROM executions WHERE executions.id = items.execution) END
         WHERE id = ?1 AND ended_at IS NULL RETURNING execution, item";
    let has_answer = is_answer(outcome);
    let ended: Option<([u8; 16], i64)> = c
        .prepare_cached(sql)?
        .query_row(
            params![id.as_bytes(), at.0, answer, outcome.as_str(), has_answer, taken_at.map(int)],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .optional()?;
    let Some((execution, item)) = ended else { return Err(missing_or_finished(c, id)) };
    let id = ExecutionId::from_bytes(execution);
    c.count(id, answer.map_or(0, |answer| int(answer.len() as u64)));
    if has_answer {
        count_answer(c, id)?;
    }
    let sql = "DELETE FROM open_items WHERE execution = ?1 AND item = ?2 RETURNING due_at";
    let due_at: Option<Option<i64>> =
        c.prepare_cached(sql)?.query_row(params![execution, item], |row| row.get(0)).optional()?;
    if due_at.flatten().is_some() {
        wake_at_next(c, execution)?;
    }
    Ok(1)
}

/// Which answers the state of a checkpoint has.
pub(super) fn taken(
    c: &Connection,
    execution: ExecutionId,
    items: &[u64],
    checkpoint: u64,
) -> Result<u64, SqliteFailure> {
    let sql = "UPDATE items SET taken_at = ?3 WHERE execution = ?1 AND item = ?2 AND taken_at IS NULL";
    let mut rows = 0;
    for item in items {
        rows += run(c, sql, params![execution.as_bytes(), int(*item), int(checkpoint)])?;
    }
    Ok(rows)
}

/// Items that one call of [`forget_taken`] deletes. As many as the checkpoints between two calls can use.
const FORGOTTEN: i64 = 2_048;

/// Deletes used timers and events that no branch from a checkpoint from `keep_from` on waits for again. The newest item stays, whose
/// number is that after which the next one counts.
pub(super) fn forget_taken(
    c: &CountedConnection<'_>,
    execution: ExecutionId,
    keep_from: u64,
) -> Result<u64, SqliteFailure> {
    let sql = "DELETE FROM items WHERE execution = ?1 AND item IN (SELECT item FROM items INDEXED BY items_taken
             WHERE execution = ?1 AND taken_at IS NOT NULL AND kind <> 'question' AND taken_at <= ?2 LIMIT ?3)
             AND item < (SELECT max(item) FROM items WHERE execution = ?1)
         RETURNING octet_length(prompt) + coalesce(octet_length(fallback), 0) + coalesce(octet_length(answer), 0)";
    let values = params![execution.as_bytes(), int(keep_from), FORGOTTEN];
    Ok(c.delete(execution, sql, values, |row| Ok(ITEM_BYTES + row.get::<_, i64>(0)?))?)
}

pub(super) fn mail_insert(
    c: &CountedConnection<'_>,
    execution: ExecutionId,
    mail: &MailRow,
) -> Result<u64, SqliteFailure> {
    let MailRow { seq, name, event, at } = mail;
    let rows = run(
        c,
        "INSERT INTO mailbox (execution, seq, name, event, at) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![execution.as_bytes(), int(*seq), name, event, at.0],
    )
    .constrained(Entity::Execution, Entity::Execution)?;
    c.count(execution, MAIL_BYTES + int((name.len() + event.len()) as u64));
    Ok(rows)
}

pub(super) fn mail_take(
    c: &CountedConnection<'_>,
    execution: ExecutionId,
    seq: u64,
) -> Result<u64, SqliteFailure> {
    let sql = "DELETE FROM mailbox WHERE execution = ?1 AND seq = ?2 RETURNING octet_length(name) + octet_length(event)";
    let values = params![execution.as_bytes(), int(seq)];
    Ok(c.delete(execution, sql, values, |row| Ok(MAIL_BYTES + row.get::<_, i64>(0)?))?)
}

/// The earliest time at which an open item of an execution is due, of which one has ended.
const NEXT_WAKE: &str = "SELECT min(due_at) FROM open_items WHERE execution = ?1 AND due_at IS NOT NULL";

fn wake_at_next(c: &Connection, execution: [u8; 16]) -> Result<(), SqliteFailure> {
    let next: Option<i64> = c.prepare_cached(NEXT_WAKE)?.query_row([execution], |row| row.get(0))?;
    // An execution of a session has none.
    let sql =
        "UPDATE executions SET wake_at = ?2 WHERE id = ?1 AND wake_at IS NOT NULL AND wake_at IS NOT ?2";
    run(c, sql, params![execution, next])?;
    Ok(())
}

/// Ends all open items of an execution.
pub(super) fn withdraw(c: &Connection, execution: ExecutionId, at: Timestamp) -> Result<u64, SqliteFailure> {
    let sql = "UPDATE items SET ended_at = ?2, outcome = ?3 WHERE execution = ?1 AND ended_at IS NULL
         AND item IN (SELECT item FROM open_items WHERE execution = ?1)";
    let rows = run(c, sql, params![execution.as_bytes(), at.0, ItemOutcome::Withdrawn.as_str()])?;
    if run(c, "DELETE FROM open_items WHERE execution = ?1", [execution.as_bytes()])? > 0 {
        wake_at_next(c, *execution.as_bytes())?;
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::{CountedConnection, NEXT_WAKE, wake_at_next};
    use crate::sqlite::read::costs::filled;
    use rusqlite::StatementStatus;

    #[test]
    fn cost_of_the_next_wake_up_does_not_depend_on_the_number_of_open_items() {
        let (_folder, c) = filled();
        c.execute_batch(
            "WITH RECURSIVE n(i) AS (VALUES (10) UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
                 INSERT INTO open_items SELECT id, i, randomblob(16), 'timer', NULL, 'me', 0, iif(i % 2, NULL, 200000 - i)
                 FROM n CROSS JOIN (SELECT id FROM executions WHERE owner = 'me' LIMIT 1);
             UPDATE executions SET wake_at = 1 WHERE owner = 'me'",
        )
        .expect("rows of a schema of our own");
        let execution = c
            .query_row("SELECT DISTINCT execution FROM open_items WHERE kind = 'timer'", [], |row| row.get(0))
            .expect("it was made");
        let c = CountedConnection::new(&c);
        assert!(wake_at_next(&c, execution).is_ok());
        let steps =
            c.prepare_cached(NEXT_WAKE).expect("prepared a moment ago").get_status(StatementStatus::VmStep);
        assert!((1..50).contains(&steps), "{steps} instructions");
        let wake_at = "SELECT wake_at FROM executions WHERE id = ?1";
        assert_eq!(c.query_row(wake_at, [execution], |row| row.get::<_, i64>(0)), Ok(100_000));
    }
}
