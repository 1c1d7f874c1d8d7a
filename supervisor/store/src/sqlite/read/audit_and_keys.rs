//! Ids by prefix, idempotency keys, audit log and meta values.

use super::{Read, ReadError, Select, count, durable, executions, moment};
use rusqlite::Connection;
use vm_system_protocol::time::Timestamp;
use vm_system_record::{AuditEntry, IdKind, Incarnation, KeyRow, Owner, Scope};

pub(in crate::sqlite) fn ids(
    c: &Connection,
    scope: &Scope,
    kind: IdKind,
    from: [u8; 16],
    to: [u8; 16],
    limit: u32,
) -> Read<Vec<[u8; 16]>> {
    let mut select = Select::new(match kind {
        IdKind::Template => "SELECT id FROM templates",
        IdKind::Session => "SELECT id FROM sessions",
        IdKind::Execution => "SELECT id FROM executions",
        IdKind::Program => "SELECT id FROM programs",
        IdKind::Task => "SELECT id FROM items",
        IdKind::Schedule => "SELECT id FROM schedules",
    });
    select.and_value("id >=", from.to_vec()).and_value("id <=", to.to_vec());
    match kind {
        IdKind::Template | IdKind::Program => drop(select.and("is_active = 1")),
        IdKind::Execution => drop(select.and(executions::IS_NOT_BEING_DELETED)),
        IdKind::Task => drop(select.and(durable::IS_QUESTION).and(durable::IS_OF_NO_DELETION)),
        IdKind::Session | IdKind::Schedule => {}
    }
    select.scope(scope).text(" ORDER BY id LIMIT").value(i64::from(limit));
    select.rows(c, |row| Ok(row.get(0)?))
}

pub(in crate::sqlite) fn key(c: &Connection, owner: &Owner, key: &str) -> Read<Option<KeyRow>> {
    let mut select =
        Select::new("SELECT request_hash, subject, created_at, reply, holder FROM idempotency_keys");
    select.and_value("owner =", owner.as_str().to_owned()).and_value("key =", key.to_owned());
    select.first(c, |row| {
        Ok(KeyRow {
            request_hash: row.get(0)?,
            subject: row.get(1)?,
            created_at: moment(row, 2)?,
            reply: row.get(3)?,
            holder: row.get::<_, Option<[u8; 16]>>(4)?.map(Incarnation),
        })
    })
}

pub(in crate::sqlite) fn key_subjects(
    c: &Connection,
    owner: &Owner,
    from: &str,
    to: &str,
    since: Timestamp,
    limit: u32,
) -> Read<Vec<[u8; 16]>> {
    let mut select = Select::new("SELECT subject FROM idempotency_keys");
    select
        .and_value("owner =", owner.as_str().to_owned())
        .and_value("key >", from.to_owned())
        .and_value("key <", to.to_owned())
        .and_value("created_at >=", since.0);
    select.paged = true;
    select.text(" ORDER BY key LIMIT").value(i64::from(limit));
    select.rows(c, |row| Ok(row.get(0)?))
}

pub(in crate::sqlite) fn audit(
    c: &Connection,
    scope: &Scope,
    before: Option<u64>,
    limit: u32,
) -> Read<Vec<(u64, AuditEntry)>> {
    let mut select = Select::new("SELECT id, at, owner, verb, subject, outcome, api FROM audit_log");
    select.scope(scope);
    if let Some(before) = before {
        select.and_value("id <", i64::try_from(before).unwrap_or(i64::MAX));
    }
    select.text(" ORDER BY id DESC LIMIT").value(i64::from(limit));
    select.rows(c, |row| {
        Ok((
            count(row, 0)?,
            AuditEntry {
                at: moment(row, 1)?,
                owner: Owner::new(row.get_ref(2)?.as_str().map_err(|_| ReadError::Damaged("audit entry"))?),
                verb: row.get(3)?,
                subject: row.get(4)?,
                outcome: row.get(5)?,
                api: row.get(6)?,
            },
        ))
    })
}

pub(in crate::sqlite) fn meta(c: &Connection, key: &str) -> Read<Option<Vec<u8>>> {
    let mut select = Select::new("SELECT value FROM meta");
    select.and_value("key =", key.to_owned());
    select.first(c, |row| Ok(row.get(0)?))
}
