//! Execution of statements: binds parameters, returns rows or row counts, within the call's limits.

use super::error::{from_sqlite, refused};
use super::open::OpenDatabase;
use rusqlite::fallible_iterator::FallibleIterator as _;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Batch, Statement};
use std::time::Duration;
use vm_system_protocol::broker::{DatabaseReply, DatabaseTerms, SqlParameters, SqlValue};
use vm_system_protocol::counted::counted;
use vm_system_protocol::worker::HostError;

/// Rows of exactly one statement.
pub(super) fn query(
    open: &mut OpenDatabase,
    sql: &str,
    parameters: &SqlParameters,
    terms: DatabaseTerms,
) -> Result<DatabaseReply, HostError> {
    begin(open, terms);
    let failed = |error: rusqlite::Error| from_sqlite(&error, &open.deadline, terms);
    let mut batch = Batch::new(&open.connection, sql);
    let mut statement = batch.next().map_err(failed)?.ok_or_else(no_statement)?;
    if batch.next().map_err(failed)?.is_some() {
        return Err(refused("SQLITE_MISUSE", "query takes one statement"));
    }
    bind(&mut statement, parameters).map_err(|error| error.host_error(failed))?;
    let columns: Vec<String> = statement.column_names().into_iter().map(str::to_owned).collect();
    let width = columns.len();
    let mut values = Vec::new();
    let mut bytes: usize = columns.iter().map(|name| name.len() + 8).sum();
    let mut rows = statement.raw_query();
    let mut count = 0;
    while let Some(row) = rows.next().map_err(failed)? {
        count += 1;
        if width > 0 && count > terms.max_rows {
            let why = format!("more than {} (max_rows)", counted(terms.max_rows, "row"));
            return Err(refused("ERR_RESULT_LIMIT", &why));
        }
        for index in 0..width {
            let value = value(row.get_ref(index).map_err(failed)?);
            bytes += value.bytes();
            if bytes as u64 > terms.max_result_bytes {
                let why =
                    format!("more than {} KiB in one result (max_result_kb)", terms.max_result_bytes / 1024);
                return Err(refused("ERR_RESULT_LIMIT", &why));
            }
            values.push(value);
        }
    }
    Ok(DatabaseReply::Rows { columns, values })
}

/// Runs statements without result rows.
pub(super) fn execute(
    open: &mut OpenDatabase,
    sql: &str,
    parameters: &SqlParameters,
    terms: DatabaseTerms,
) -> Result<DatabaseReply, HostError> {
    begin(open, terms);
    let failed = |error: rusqlite::Error| from_sqlite(&error, &open.deadline, terms);
    let with_parameters = match parameters {
        SqlParameters::Positional(values) => !values.is_empty(),
        SqlParameters::Named(values) => !values.is_empty(),
    };
    let mut batch = Batch::new(&open.connection, sql);
    let mut changed = 0;
    let mut statements = 0;
    while let Some(mut statement) = batch.next().map_err(failed)? {
        statements += 1;
        if statements > 1 && with_parameters {
            return Err(refused(
                "SQLITE_MISUSE",
                "with parameters exec takes one statement; the first one was done",
            ));
        }
        bind(&mut statement, parameters).map_err(|error| error.host_error(failed))?;
        let changes = !statement.readonly();
        let mut rows = statement.raw_query();
        while rows.next().map_err(failed)?.is_some() {}
        drop(rows);
        if changes {
            changed += open.connection.changes();
        }
    }
    if statements == 0 && !sql.trim().is_empty() && with_parameters {
        return Err(no_statement());
    }
    Ok(DatabaseReply::Changed { rows: changed, last_row_id: open.connection.last_insert_rowid() })
}

fn begin(open: &OpenDatabase, terms: DatabaseTerms) {
    open.deadline.begin(Duration::from_millis(u64::from(terms.timeout_ms)));
}

fn no_statement() -> HostError {
    refused("SQLITE_MISUSE", "there is no statement")
}

fn value(value: ValueRef<'_>) -> SqlValue {
    match value {
        ValueRef::Null => SqlValue::Null,
        ValueRef::Integer(number) => SqlValue::Integer(number),
        ValueRef::Real(number) => SqlValue::Real(number.to_bits()),
        ValueRef::Text(text) => SqlValue::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => SqlValue::Blob(bytes.to_vec()),
    }
}

/// The parameters do not match the statement.
enum BindError {
    Refused(HostError),
    Sqlite(rusqlite::Error),
}

impl BindError {
    fn host_error(self, failed: impl FnOnce(rusqlite::Error) -> HostError) -> HostError {
        match self {
            Self::Refused(error) => error,
            Self::Sqlite(error) => failed(error),
        }
    }
}

impl From<rusqlite::Error> for BindError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

fn range(why: &str) -> BindError {
    BindError::Refused(refused("SQLITE_RANGE", why))
}

fn bind(statement: &mut Statement<'_>, parameters: &SqlParameters) -> Result<(), BindError> {
    let wanted = statement.parameter_count();
    match parameters {
        SqlParameters::Positional(values) => {
            if values.len() != wanted {
                return Err(range(&format!(
                    "the statement has {wanted} parameters, {} were given",
                    values.len()
                )));
            }
            for (index, value) in values.iter().enumerate() {
                statement.raw_bind_parameter(index + 1, output(value))?;
            }
        }
        SqlParameters::Named(values) => {
            let mut bound = vec![false; wanted];
            for (name, value) in values {
                let index = index_of(statement, name)?
                    .ok_or_else(|| range(&format!("the statement has no parameter {name:?}")))?;
                statement.raw_bind_parameter(index, output(value))?;
                if let Some(bound) = bound.get_mut(index - 1) {
                    *bound = true;
                }
            }
            if let Some(unbound) = bound.iter().position(|bound| !bound) {
                let name = statement.parameter_name(unbound + 1).unwrap_or("?").to_owned();
                return Err(range(&format!("the parameter {name} was not given")));
            }
        }
    }
    Ok(())
}

/// The index of a named parameter; the prefix (`:`, `@`, `$`) of the name may be left out.
fn index_of(statement: &Statement<'_>, name: &str) -> Result<Option<usize>, BindError> {
    if name.contains('\0') {
        return Ok(None);
    }
    if name.starts_with([':', '@', '$']) {
        return Ok(statement.parameter_index(name)?);
    }
    for sign in [":", "@", "$"] {
        if let Some(index) = statement.parameter_index(&format!("{sign}{name}"))? {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

fn output(value: &SqlValue) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(match value {
        SqlValue::Null => ValueRef::Null,
        SqlValue::Integer(number) => ValueRef::Integer(*number),
        SqlValue::Real(bits) => ValueRef::Real(f64::from_bits(*bits)),
        SqlValue::Text(text) => ValueRef::Text(text.as_bytes()),
        SqlValue::Blob(bytes) => ValueRef::Blob(bytes),
    })
}
