//! Schedules of programs: one, the lists of owners, and those that are due.

use super::{Read, ReadError, Select, count, maybe_moment, moment};
use rusqlite::{Connection, Row};
use vm_system_protocol::ids::ScheduleId;
use vm_system_protocol::time::Timestamp;
use vm_system_record::{DueSchedule, Owner, Page, ScheduleRow, Scope};

const HEAD: &str = "SELECT id, owner, name, created_at, revision, next_at, spec, state FROM schedules";
const DAMAGED: ReadError = ReadError::Damaged("schedule");

pub(in crate::sqlite) fn schedule(
    c: &Connection,
    scope: &Scope,
    id: ScheduleId,
) -> Read<Option<Box<ScheduleRow>>> {
    let mut select = Select::new(HEAD);
    select.and_value("id =", id.as_bytes().to_vec()).scope(scope);
    select.first_boxed(c, schedule_row)
}

pub(in crate::sqlite) fn schedule_by_name(
    c: &Connection,
    owner: &Owner,
    name: &str,
) -> Read<Option<Box<ScheduleRow>>> {
    let mut select = Select::new(HEAD);
    select.and_value("owner =", owner.as_str().to_owned()).and_value("name =", name.to_owned());
    select.first_boxed(c, schedule_row)
}

pub(in crate::sqlite) fn schedules(c: &Connection, scope: &Scope, page: Page) -> Read<Vec<ScheduleRow>> {
    let mut select = Select::new(HEAD);
    select.scope(scope).newest_first("created_at", page);
    let weight = |row: &ScheduleRow| {
        let start = &row.spec.start;
        let env = start.env.iter().map(|(name, value)| name.len() + value.len());
        2_048 + start.args.iter().map(String::len).chain(env).sum::<usize>()
    };
    select.readable_rows(c, weight, schedule_row)
}

pub(in crate::sqlite) fn schedule_count(c: &Connection, owner: &Owner) -> Read<u64> {
    let mut select = Select::new("SELECT count(*) FROM schedules INDEXED BY schedules_name");
    select.and_value("owner =", owner.as_str().to_owned());
    Ok(select.first(c, |row| count(row, 0))?.unwrap_or(0))
}

pub(in crate::sqlite) fn due_schedules(
    c: &Connection,
    after: (Timestamp, ScheduleId),
    until: Timestamp,
    limit: u32,
) -> Read<Vec<DueSchedule>> {
    let mut select = due("SELECT due_at, id, owner", after, until);
    select.value(i64::from(limit));
    select.rows(c, |row| {
        let owner = Owner::new(row.get_ref(2)?.as_str().map_err(|_| DAMAGED)?);
        Ok(DueSchedule { due_at: moment(row, 0)?, id: ScheduleId::from_bytes(row.get(1)?), owner })
    })
}

/// The statement without its last value.
fn due(head: &str, (at, id): (Timestamp, ScheduleId), until: Timestamp) -> Select {
    let mut select = Select::new(&format!("{head} FROM schedules INDEXED BY schedules_by_due"));
    select.and("due_at IS NOT NULL").and_value("due_at <=", until.0);
    select.and("(due_at, id) > (").value(at.0).text(",").value(id.as_bytes().to_vec()).text(")");
    select.text(" ORDER BY due_at, id LIMIT");
    select.paged = true;
    select
}

/// The first time at which a schedule is due, and whether a queued time waits for an execution.
pub(in crate::sqlite) fn first_due(c: &Connection) -> Read<(Option<Timestamp>, bool)> {
    let mut select = Select::new("SELECT due_at FROM schedules INDEXED BY schedules_by_due");
    select.and("due_at IS NOT NULL").text(" ORDER BY due_at LIMIT 1");
    select.paged = true;
    let first = select.first(c, |row| moment(row, 0))?;
    let mut waiting = Select::new("SELECT 1 FROM schedules INDEXED BY schedules_by_waiting");
    waiting.and("waits_for IS NOT NULL").text(" LIMIT 1");
    Ok((first, waiting.first(c, |_| Ok(()))?.is_some()))
}

fn schedule_row(row: &Row<'_>) -> Read<ScheduleRow> {
    let text = |column| row.get_ref(column)?.as_str().map_err(|_| DAMAGED);
    Ok(ScheduleRow {
        id: ScheduleId::from_bytes(row.get(0)?),
        owner: Owner::new(text(1)?),
        name: row.get(2)?,
        created_at: moment(row, 3)?,
        revision: count(row, 4)?,
        next_at: maybe_moment(row, 5)?,
        spec: serde_json::from_str(text(6)?).map_err(|_| DAMAGED)?,
        state: serde_json::from_str(text(7)?).map_err(|_| DAMAGED)?,
    })
}

#[cfg(test)]
mod tests {
    use super::{ScheduleId, Timestamp, due};
    use crate::sqlite::read::costs::filled;

    #[test]
    fn schedules_that_are_due_are_a_search_in_their_index() {
        let (_folder, c) = filled();
        let after = (Timestamp(5), ScheduleId::from_bytes([1; 16]));
        let mut select = due("EXPLAIN QUERY PLAN SELECT due_at, id, owner", after, Timestamp(9));
        select.value(8);
        let plan = select.rows(&c, |row| Ok(row.get::<_, String>(3)?));
        assert_eq!(
            plan.unwrap_or_else(|_| panic!("it cannot be prepared")),
            ["SEARCH schedules USING INDEX schedules_by_due ((due_at,id)>(?,?) AND due_at<?)"]
        );
    }
}
