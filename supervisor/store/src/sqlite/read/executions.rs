//! Executions and their events.

use super::{Read, ReadError, Select, count, maybe_moment, moment, parsed};
use rusqlite::{Connection, OptionalExtension as _, Row};
use vm_system_protocol::ids::{ExecutionId, SessionId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{Event, EventPayload, Execution, ExecutionError, Metrics, ResultValue};
use vm_system_record::{
    ExecutionQuery, ExecutionRow, Owner, Page, RepeatFacts, RunningExecutionRow, Scope, weight_of_event,
};

/// The type and the preview of a session's result are in its value event, which is one of the last events.
pub(super) const COLUMNS: &str =
    "SELECT id, owner, name, session, kind, status, degraded, input, path, args, env, started_at,
    ended_at, result, error_code, error_message, error_reason, duration_ms, cpu_ms, host_wait_ms, events,
    output_bytes, heap_peak_bytes,
    CASE WHEN status = 'ok' AND kind <> 'program' THEN (SELECT label FROM events WHERE execution = executions.id
        AND seq > executions.events - 4 AND type = 'value' ORDER BY seq DESC LIMIT 1) END,
    CASE WHEN status = 'ok' AND kind <> 'program' THEN (SELECT text FROM events WHERE execution = executions.id
        AND seq > executions.events - 4 AND type = 'value' ORDER BY seq DESC LIMIT 1) END, facts,
    exit_code FROM executions";

/// An execution that is being deleted in pieces (`write/delete.rs`) does not exist for readers: what is left of it is not whole.
pub(super) const IS_NOT_BEING_DELETED: &str =
    "NOT EXISTS (SELECT 1 FROM staged WHERE staged.execution = executions.id AND staged.bytes < 0)";

/// The places of the last columns.
const FACTS: usize = 25;
const EXIT_CODE: usize = 26;
/// The number of the columns.
pub(super) const WIDTH: usize = 27;

pub(in crate::sqlite) fn execution(
    c: &Connection,
    scope: &Scope,
    id: ExecutionId,
) -> Read<Option<Box<ExecutionRow>>> {
    let mut select = Select::new(COLUMNS);
    select.and_value("id =", id.as_bytes().to_vec()).and(IS_NOT_BEING_DELETED).scope(scope);
    select.first_boxed(c, execution_row)
}

pub(in crate::sqlite) fn execution_by_name(
    c: &Connection,
    owner: &Owner,
    name: &str,
) -> Read<Option<Box<ExecutionRow>>> {
    let scope = &Scope::Owner(owner.clone());
    let mut unfinished = Select::new(COLUMNS);
    unfinished.and_value("name =", name.to_owned()).and("status IN ('running', 'waiting')").scope(scope);
    unfinished.newest_first("started_at", Page::first(1));
    if let Some(row) = unfinished.first_boxed(c, execution_row)? {
        return Ok(Some(row));
    }
    let mut any = Select::new(COLUMNS);
    any.and_value("name =", name.to_owned()).and(IS_NOT_BEING_DELETED).scope(scope);
    any.newest_first("started_at", Page::first(1));
    any.first_boxed(c, execution_row)
}

pub(in crate::sqlite) fn executions(
    c: &Connection,
    scope: &Scope,
    session: SessionId,
    filter: ExecutionQuery,
    page: Page,
) -> Read<Vec<ExecutionRow>> {
    let select = session_list(COLUMNS, scope, session, filter, page);
    select.readable_rows(c, |row| weight(&row.execution), execution_row)
}

fn session_list(
    head: &str,
    scope: &Scope,
    session: SessionId,
    ExecutionQuery { status, period }: ExecutionQuery,
    page: Page,
) -> Select {
    // At most a few are unfinished, however many the session has had: sorting them costs nothing.
    let unfinished = status.is_some_and(|status| !status.is_final());
    let index = if unfinished { "executions_unfinished" } else { "executions_by_session" };
    let mut select = Select::new(head);
    select.text(&format!(" INDEXED BY {index}")).and_value("session =", session.as_bytes().to_vec());
    if unfinished {
        select.and("status IN ('running', 'waiting')");
    }
    if let Some(status) = status {
        select.and_value("status =", status.as_str().to_owned());
    }
    select.and(IS_NOT_BEING_DELETED).scope(scope).newest_first_in("started_at", period, page);
    select.paged = !unfinished;
    select
}

/// Approximate size of an execution (bytes).
pub(super) fn weight(execution: &Execution) -> usize {
    let input = execution.input.as_ref().map_or(0, String::len);
    let result = execution.result.as_ref().map_or(0, ResultValue::bytes);
    768 + input + execution.args.as_str().len() + execution.env.as_str().len() + result
}

/// The result; executions of early versions have no value event if they ran a file.
fn result(row: &Row<'_>) -> Read<Option<ResultValue>> {
    let json = row.get::<_, Option<String>>(13)?.map(JsonText::from_untrusted);
    match (row.get::<_, Option<String>>(23)?, row.get::<_, Option<String>>(24)?) {
        (Some(label), Some(preview)) => value(&label, preview, json).map(Some),
        _ => Ok(json.map(ResultValue::of_json)),
    }
}

/// The inverse of `sized_label` in `write/executions.rs`.
fn sized_label(label: &str) -> (&str, bool, Option<u64>) {
    match label.rsplit_once('/') {
        Some((label, "")) => (label, true, None),
        Some((label, size)) if size.parse::<u64>().is_ok() => (label, true, size.parse().ok()),
        _ => (label, false, None),
    }
}

fn value(label: &str, preview: String, json: Option<JsonText>) -> Read<ResultValue> {
    let (kind, truncated, full_bytes) = sized_label(label);
    let kind = kind.parse().map_err(|_| ReadError::Damaged("value"))?;
    Ok(ResultValue { kind, preview, json, truncated, full_bytes })
}

/// The unfinished execution of a session.
pub(super) fn unfinished(c: &Connection, session: SessionId) -> Read<Option<RunningExecutionRow>> {
    // There are few, however many the session has had.
    let newest = c
        .prepare_cached(
            "SELECT id FROM executions INDEXED BY executions_unfinished
             WHERE session = ?1 AND status IN ('running', 'waiting') ORDER BY started_at DESC, id DESC LIMIT 1",
        )?
        .query_row([session.as_bytes()], |row| row.get::<_, [u8; 16]>(0))
        .optional()?;
    let Some(newest) = newest else { return Ok(None) };
    let Some(row) = execution(c, &Scope::All, ExecutionId::from_bytes(newest))? else { return Ok(None) };
    let execution = row.execution;
    let mut sums = Select::new("SELECT max(seq), sum(octet_length(text)), max(ts) FROM events");
    sums.and_value("execution =", execution.id.as_bytes().to_vec());
    let sums = sums.first(c, |row| {
        let number = |at| row.get::<_, Option<i64>>(at).map(|number| number.unwrap_or(0).unsigned_abs());
        Ok((number(0)?, number(1)?, maybe_moment(row, 2)?))
    })?;
    let (events, output_bytes, last) = sums.unwrap_or_default();
    let task = super::durable::task_of(c, execution.id, None)?;
    let last_event_at = last.unwrap_or(execution.started_at);
    Ok(Some(RunningExecutionRow {
        execution,
        events,
        output_bytes,
        last_event_at,
        task: task.map(|row| *row),
    }))
}

pub(super) fn execution_row(row: &Row<'_>) -> Read<ExecutionRow> {
    let error = match row.get::<_, Option<String>>(14)? {
        Some(label) => {
            let (code, truncated, full_bytes) = sized_label(&label);
            Some(ExecutionError {
                code: code.to_owned(),
                message: row.get::<_, Option<String>>(15)?.unwrap_or_default(),
                reason: row.get(16)?,
                exit_code: row.get(EXIT_CODE)?,
                truncated,
                full_bytes,
            })
        }
        None => None,
    };
    Ok(ExecutionRow {
        owner: Owner::new(row.get_ref(1)?.as_str().map_err(|_| ReadError::Damaged("execution"))?),
        name: row.get(2)?,
        execution: Execution {
            id: ExecutionId::from_bytes(row.get(0)?),
            session_id: SessionId::from_bytes(row.get(3)?),
            kind: parsed(row, 4, "execution")?,
            input: row.get(7)?,
            path: row.get(8)?,
            args: JsonText::from_untrusted(row.get(9)?),
            env: JsonText::from_untrusted(row.get(10)?),
            status: parsed(row, 5, "execution")?,
            started_at: moment(row, 11)?,
            ended_at: maybe_moment(row, 12)?,
            result: result(row)?,
            error,
            metrics: Metrics {
                duration_ms: count(row, 17)?,
                cpu_ms: count(row, 18)?,
                host_wait_ms: count(row, 19)?,
                events: count(row, 20)?,
                output_bytes: count(row, 21)?,
                heap_peak_bytes: count(row, 22)?,
            },
            degraded: row.get(6)?,
            events: None,
            owner: None,
        },
        facts: RepeatFacts::from_bits(row.get(FACTS)?),
    })
}

pub(in crate::sqlite) fn some_events(
    c: &Connection,
    id: ExecutionId,
    after: u64,
    limit: u32,
    bytes: usize,
) -> Read<Vec<Event>> {
    let limit = if limit == 0 { -1 } else { i64::from(limit) };
    let mut select = Select::new("SELECT seq, ts, type, label, text, extra FROM events");
    select.and_value("execution =", id.as_bytes().to_vec());
    select.and_value("seq >", i64::try_from(after).unwrap_or(i64::MAX));
    select.text(" ORDER BY seq LIMIT").value(limit);
    let event = |row: &Row<'_>| {
        Ok(Event { execution_id: id, seq: count(row, 0)?, ts: moment(row, 1)?, payload: payload(row)? })
    };
    if limit < 0 {
        return select.rows(c, event);
    }
    // An unreadable event is an error: a follower would not notice that it is missing.
    let (mut events, mut left_bytes) = (Vec::new(), bytes);
    select.each(c, |row| {
        let event = event(row)?;
        left_bytes = left_bytes.saturating_sub(weight_of_event(&event));
        events.push(event);
        Ok(left_bytes > 0)
    })?;
    Ok(events)
}

/// The inverse of `Columns` in `write/executions.rs`.
fn payload(row: &Row<'_>) -> Read<EventPayload> {
    const WHAT: &str = "event";
    let text: String = row.get(4)?;
    let kind = row.get_ref(2)?.as_str().map_err(|_| ReadError::Damaged(WHAT))?;
    Ok(match kind {
        "input_echo" => EventPayload::InputEcho { text },
        "console" => EventPayload::Console {
            level: parsed(row, 3, WHAT)?,
            text,
            more: row.get::<_, Option<String>>(5)?.is_some(),
        },
        "value" => {
            let label = row.get_ref(3)?.as_str().map_err(|_| ReadError::Damaged(WHAT))?;
            let json = row.get::<_, Option<String>>(5)?.map(JsonText::from_untrusted);
            EventPayload::Value(value(label, text, json)?)
        }
        "exception" => {
            let label: Option<String> = row.get(3)?;
            let (code, truncated, full_bytes) = sized_label(label.as_deref().unwrap_or_default());
            let code = (!code.is_empty()).then(|| code.to_owned());
            let stack = row.get::<_, Option<String>>(5)?.unwrap_or_default();
            EventPayload::Exception { message: text, stack, code, truncated, full_bytes }
        }
        "system" => {
            // A code that a later release has written is left out.
            let code = row.get::<_, Option<String>>(5)?.and_then(|code| code.parse().ok());
            EventPayload::System { message: text, level: parsed(row, 3, WHAT)?, code }
        }
        "stdout" => EventPayload::Stdout { text },
        "stderr" => EventPayload::Stderr { text },
        "http" => {
            let json: String = row.get(5)?;
            EventPayload::Http(serde_json::from_str(&json).map_err(|_| ReadError::Damaged(WHAT))?)
        }
        "task" => EventPayload::Task { task_id: parsed(row, 3, WHAT)?, prompt: text },
        _ => return Err(ReadError::Damaged(WHAT)),
    })
}
