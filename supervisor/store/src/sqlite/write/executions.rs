//! Executions and their events.

use super::usage::{CountedConnection, EXECUTION_BYTES, output_bytes, text_bytes};
use super::{exists, int, run};
use crate::sqlite::failure::{Constrained, SqliteFailure};
use rusqlite::{Connection, OptionalExtension as _, params};
use std::borrow::Cow;
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::model::{
    Event, EventPayload, Execution, ExecutionError, ExecutionKind, ExecutionStatus, Metrics,
};
use vm_system_record::{Entity, RepeatFacts, SpentLimits, StoreError, UsedLimits};

/// `end`: the same record, or the final one if the execution ends in the same commit.
pub(super) fn start(
    c: &CountedConnection<'_>,
    name: Option<&str>,
    execution: &Execution,
    end: &Execution,
) -> Result<u64, SqliteFailure> {
    let error = end.error.as_ref();
    let metrics = &end.metrics;
    let result = end.result_json();
    // Not `INSERT … SELECT`: before a statement that may insert many rows SQLite keeps a copy of each page that it changes.
    let rows = run(
        c,
        "INSERT INTO executions (id, session, owner, name, kind, status, degraded, input, path, args, env, started_at,
             ended_at, result, error_code, error_message, error_reason, duration_ms, cpu_ms, host_wait_ms, events,
             output_bytes, heap_peak_bytes, exit_code, facts)
         VALUES (?1, ?2, (SELECT owner FROM sessions WHERE id = ?2), ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13,
             ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, 0)",
        params![
            execution.id.as_bytes(),
            execution.session_id.as_bytes(),
            name,
            execution.kind.as_str(),
            end.status.as_str(),
            execution.degraded || end.degraded,
            execution.input,
            execution.path,
            execution.args.as_str(),
            execution.env.as_str(),
            execution.started_at.0,
            end.ended_at.map(|at| at.0),
            result,
            error.map(error_code),
            error.map(|error| &error.message),
            error.and_then(|error| error.reason.as_ref()),
            int(metrics.duration_ms),
            int(metrics.cpu_ms),
            int(metrics.host_wait_ms),
            int(metrics.events),
            int(metrics.output_bytes),
            int(metrics.heap_peak_bytes),
            error.and_then(|error| error.exit_code)
        ],
    )
    .constrained(Entity::Execution, Entity::Session)?;
    let optional = [execution.input.as_deref(), result].into_iter().flatten();
    let texts = [execution.args.as_str(), execution.env.as_str()].into_iter().chain(optional);
    let texts: usize = texts.map(str::len).sum();
    let output = output_bytes(int(metrics.events), int(metrics.output_bytes));
    c.count(execution.id, EXECUTION_BYTES + output + text_bytes(int(texts as u64)));
    Ok(rows)
}

/// Makes an execution what it is to be: until now its row was a placeholder (`copies.rs`).
pub(super) fn begin_copied(
    c: &CountedConnection<'_>,
    name: Option<&str>,
    execution: &Execution,
) -> Result<u64, SqliteFailure> {
    let sql = "UPDATE executions SET name = ?2, status = ?3, ended_at = ?4, result = ?5, error_code = ?6, error_message = ?7,
             error_reason = ?8, exit_code = ?9 WHERE id = ?1";
    let error = execution.error.as_ref();
    let values = params![
        execution.id.as_bytes(),
        name,
        execution.status.as_str(),
        execution.ended_at.map(|at| at.0),
        execution.result_json(),
        error.map(error_code),
        error.map(|error| &error.message),
        error.and_then(|error| error.reason.as_ref()),
        error.and_then(|error| error.exit_code),
    ];
    let rows =
        c.resize(execution.id, || run(c, sql, values).constrained(Entity::Execution, Entity::Session))?;
    if rows == 0 { Err(StoreError::missing(Entity::Execution).into()) } else { Ok(rows) }
}

/// The error of a statement that found no row: the row is missing, or has ended.
fn missing_or_finished(c: &Connection, id: ExecutionId) -> SqliteFailure {
    match exists(c, "SELECT 1 FROM executions WHERE id = ?1", params![id.as_bytes()]) {
        Ok(true) => StoreError::finished(Entity::Execution).into(),
        Ok(false) => StoreError::missing(Entity::Execution).into(),
        Err(error) => error.into(),
    }
}

pub(super) fn status(c: &Connection, id: ExecutionId, status: ExecutionStatus) -> Result<u64, SqliteFailure> {
    let sql = "UPDATE executions SET status = ?2 WHERE id = ?1 AND status IN ('running', 'waiting')";
    let rows = run(c, sql, params![id.as_bytes(), status.as_str()])?;
    if rows == 0 { Err(missing_or_finished(c, id)) } else { Ok(rows) }
}

pub(super) fn progress(
    c: &CountedConnection<'_>,
    id: ExecutionId,
    status: ExecutionStatus,
    (metrics, limits): (&Metrics, Option<&UsedLimits>),
) -> Result<u64, SqliteFailure> {
    // SQLite rewrites the entry of each index with the status even if the status is the same, as it mostly is.
    const SAME: &str = "UPDATE executions SET duration_ms = ?3, cpu_ms = ?4, host_wait_ms = ?5, events = ?6,
             output_bytes = ?7, heap_peak_bytes = ?8, spent = ?9, exits = ?10, kills = ?11
         WHERE id = ?1 AND status = ?2 AND status IN ('running', 'waiting')";
    const OTHER: &str = "UPDATE executions SET status = ?2, duration_ms = ?3, cpu_ms = ?4, host_wait_ms = ?5,
             events = ?6, output_bytes = ?7, heap_peak_bytes = ?8, spent = ?9, exits = ?10, kills = ?11
         WHERE id = ?1 AND status IN ('running', 'waiting')";
    // The texts stay: only the output counts.
    let before = c
        .prepare_cached("SELECT events, output_bytes FROM executions WHERE id = ?1")?
        .query_row([id.as_bytes()], |row| Ok(output_bytes(row.get(0)?, row.get(1)?)))
        .optional()?;
    let after = output_bytes(int(metrics.events), int(metrics.output_bytes));
    let (spent, exits, kills) = match limits {
        Some(UsedLimits { spent, exits, kills }) => (spent_text(spent)?, *exits, *kills),
        None => (None, 0, 0),
    };
    for sql in [SAME, OTHER] {
        let values = params![
            id.as_bytes(),
            status.as_str(),
            int(metrics.duration_ms),
            int(metrics.cpu_ms),
            int(metrics.host_wait_ms),
            int(metrics.events),
            int(metrics.output_bytes),
            int(metrics.heap_peak_bytes),
            spent,
            exits,
            kills
        ];
        let rows = run(c, sql, values)?;
        if rows > 0 {
            c.count(id, after - before.unwrap_or(after));
            return Ok(rows);
        }
    }
    Err(missing_or_finished(c, id))
}

/// The stored form; none for no use.
fn spent_text(spent: &SpentLimits) -> Result<Option<String>, StoreError> {
    if *spent == SpentLimits::default() {
        return Ok(None);
    }
    let text = serde_json::to_string(spent);
    // Cannot fail: numbers, and texts as keys.
    text.map(Some).map_err(|error| StoreError::Corrupt(error.to_string()))
}

/// Their supervisor was killed while it ran these executions.
pub(super) fn killed(c: &Connection, executions: &[ExecutionId]) -> Result<u64, SqliteFailure> {
    let mut rows = 0;
    for execution in executions {
        let sql = "UPDATE executions SET kills = min(kills + 1, 4294967295)
             WHERE id = ?1 AND kind = 'program' AND status = 'running'";
        rows += run(c, sql, [execution.as_bytes()])?;
    }
    Ok(rows)
}

pub(super) fn unname(c: &Connection, id: ExecutionId) -> Result<u64, SqliteFailure> {
    match run(c, "UPDATE executions SET name = NULL WHERE id = ?1", params![id.as_bytes()])? {
        0 => Err(StoreError::missing(Entity::Execution).into()),
        rows => Ok(rows),
    }
}

pub(super) fn end(c: &CountedConnection<'_>, execution: &Execution) -> Result<u64, SqliteFailure> {
    let error = execution.error.as_ref();
    let metrics = &execution.metrics;
    let sql = "UPDATE executions SET status = ?2, degraded = max(degraded, ?3), ended_at = ?4, result = ?5, error_code = ?6,
             error_message = ?7, error_reason = ?8, duration_ms = ?9, cpu_ms = ?10, host_wait_ms = ?11, events = ?12,
             output_bytes = ?13, heap_peak_bytes = ?14, exit_code = ?16
         WHERE id = ?1 AND (status IN ('running', 'waiting') OR (degraded = 1 AND error_message = ?15))";
    let values = params![
        execution.id.as_bytes(),
        execution.status.as_str(),
        execution.degraded,
        execution.ended_at.map(|at| at.0),
        execution.result_json(),
        error.map(error_code),
        error.map(|error| &error.message),
        error.and_then(|error| error.reason.as_ref()),
        int(metrics.duration_ms),
        int(metrics.cpu_ms),
        int(metrics.host_wait_ms),
        int(metrics.events),
        int(metrics.output_bytes),
        int(metrics.heap_peak_bytes),
        // The end of its session was stored before.
        super::sessions::END_LOST,
        error.and_then(|error| error.exit_code)
    ];
    let rows = c.resize(execution.id, || Ok(run(c, sql, values)?))?;
    if rows == 0 {
        return Err(missing_or_finished(c, execution.id));
    }
    if execution.kind == ExecutionKind::Program {
        super::schedules::execution_ended(c, execution.id)?;
    }
    Ok(rows)
}

pub(super) fn add_facts(c: &Connection, id: ExecutionId, facts: RepeatFacts) -> Result<u64, SqliteFailure> {
    match run(
        c,
        "UPDATE executions SET facts = facts | ?2 WHERE id = ?1",
        params![id.as_bytes(), facts.bits()],
    )? {
        0 => Err(StoreError::missing(Entity::Execution).into()),
        rows => Ok(rows),
    }
}

pub(super) fn degraded(c: &Connection, id: ExecutionId) -> Result<u64, SqliteFailure> {
    match run(c, "UPDATE executions SET degraded = 1 WHERE id = ?1", params![id.as_bytes()])? {
        0 => Err(StoreError::missing(Entity::Execution).into()),
        rows => Ok(rows),
    }
}

pub(super) fn events(c: &Connection, events: &[Event]) -> Result<u64, SqliteFailure> {
    let mut statement = c.prepare_cached(
        "INSERT INTO events (execution, seq, ts, type, label, text, extra) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for event in events {
        let columns = Columns::of_payload(&event.payload);
        statement
            .execute(params![
                event.execution_id.as_bytes(),
                int(event.seq),
                event.ts.0,
                event.payload.type_name(),
                columns.label,
                columns.text,
                columns.extra
            ])
            .constrained(Entity::Event, Entity::Execution)?;
    }
    Ok(events.len() as u64)
}

/// `extra` of a console event whose text continues in the next one.
const MORE: &str = "more";

/// A type or a code; behind it, if the text was truncated, `/` and its size, if that is known: `string/300000`.
fn sized_label(label: &str, truncated: bool, full_bytes: Option<u64>) -> Cow<'_, str> {
    match (truncated, full_bytes) {
        (false, _) => label.into(),
        (true, None) => format!("{label}/").into(),
        (true, Some(bytes)) => format!("{label}/{bytes}").into(),
    }
}

/// The code of an error, as its column has it.
fn error_code(error: &ExecutionError) -> Cow<'_, str> {
    sized_label(&error.code, error.truncated, error.full_bytes)
}

/// A payload as columns; `read/executions.rs` has the inverse.
struct Columns<'a> {
    /// Level, JavaScript type or an exception's code with a size ([`sized_label`]), or the task's id.
    label: Option<Cow<'a, str>>,
    text: &'a str,
    /// JSON of a value, stack of an exception, code of a system message, or [`MORE`].
    extra: Option<Cow<'a, str>>,
}

impl<'a> Columns<'a> {
    fn of_payload(payload: &'a EventPayload) -> Self {
        let plain = |text| Self { label: None, text, extra: None };
        let labelled = |label: &'static str, text| Self { label: Some(label.into()), text, extra: None };
        match payload {
            EventPayload::InputEcho { text }
            | EventPayload::Stdout { text }
            | EventPayload::Stderr { text } => plain(text),
            EventPayload::Console { level, text, more } => {
                Self { extra: more.then_some(MORE.into()), ..labelled(level.as_str(), text) }
            }
            EventPayload::System { message, level, code } => {
                Self { extra: code.map(|code| code.as_str().into()), ..labelled(level.as_str(), message) }
            }
            EventPayload::Value(value) => Self {
                label: Some(sized_label(value.kind.as_str(), value.truncated, value.full_bytes)),
                extra: value.json.as_ref().map(|json| json.as_str().into()),
                ..plain(&value.preview)
            },
            EventPayload::Exception { message, stack, code, truncated, full_bytes } => Self {
                label: (*truncated || code.is_some())
                    .then(|| sized_label(code.as_deref().unwrap_or_default(), *truncated, *full_bytes)),
                extra: Some(stack.into()),
                ..plain(message)
            },
            // The fields of the record are in `HttpRecord`, as JSON.
            EventPayload::Http(record) => Self {
                label: None,
                text: "",
                extra: Some(Cow::Owned(serde_json::to_string(record).unwrap_or_default())),
            },
            EventPayload::Task { task_id, prompt } => {
                Self { label: Some(task_id.to_string().into()), ..plain(prompt) }
            }
        }
    }
}
