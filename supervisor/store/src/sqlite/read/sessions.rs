//! Sessions and their snapshots.

use super::{Read, ReadError, Select, count, maybe_moment, moment, parsed};
use rusqlite::{Connection, Row};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use vm_system_protocol::ids::{ExecutionId, SessionId, TemplateId};
use vm_system_protocol::model::{
    Engine, Session, SessionEvent, SessionEventType, SessionFacts, SessionStatus,
};
use vm_system_record::{
    LiveSessionRow, Owner, Page, PolicySnapshot, RecordedWorktree, Scope, SessionQuery, SessionRow,
};

const COLUMNS: &str =
    "SELECT id, owner, name, template, workspace_id, base_commit_oid, worktree_path, status,
    created_at, closed_at, last_error, close_reason, runtime_meta, worker_seq, durable,
    CASE WHEN durable THEN (SELECT executions.id FROM executions WHERE executions.session = sessions.id
        ORDER BY executions.started_at, executions.id LIMIT 1) END,
    files_uid, files_user, files_root, files_beneath, files_handle
    FROM sessions";

pub(in crate::sqlite) fn session(
    c: &Connection,
    scope: &Scope,
    id: SessionId,
) -> Read<Option<Box<SessionRow>>> {
    let mut select = Select::new(COLUMNS);
    select.and_value("id =", id.as_bytes().to_vec()).scope(scope);
    select.first_boxed(c, session_row)
}

pub(in crate::sqlite) fn sessions(
    c: &Connection,
    scope: &Scope,
    filter: &SessionQuery,
    page: Page,
) -> Read<Vec<SessionRow>> {
    let mut select = Select::new(COLUMNS);
    conditions(&mut select, scope, filter, page);
    select.rows(c, session_row)
}

fn conditions(select: &mut Select, scope: &Scope, filter: &SessionQuery, page: Page) {
    select.text(&format!(" INDEXED BY {}", index(scope, filter)));
    if let Some(template) = filter.template {
        select.and_value("template =", template.as_bytes().to_vec());
    }
    if let Some(workspace) = &filter.workspace_id {
        select.and_value("workspace_id =", workspace.clone());
    }
    if let Some(name) = &filter.name {
        select.and_value("name =", name.clone());
    }
    if filter.template.is_none() && filter.name.is_none() {
        select.and_value("durable =", i64::from(filter.durable));
    }
    if let Some(status) = filter.status {
        select.and_value("status =", status.as_str().to_owned());
    }
    select.scope(scope).newest_first("created_at", page);
}

/// The index that leaves least to filter. All indexes end in (`created_at`, `id`), the order of the list, after
/// `durable` where that is always specified.
fn index(scope: &Scope, filter: &SessionQuery) -> &'static str {
    let live = matches!(filter.status, Some(SessionStatus::Starting | SessionStatus::Ready));
    match (scope, filter) {
        (Scope::Owner(_), SessionQuery { name: Some(_), .. }) => "sessions_by_name",
        (Scope::All, SessionQuery { name: Some(_), .. }) => "sessions_by_name_of_all",
        (_, SessionQuery { template: Some(_), .. }) => "sessions_by_template",
        (_, SessionQuery { workspace_id: Some(_), .. }) => "sessions_by_workspace",
        (_, SessionQuery { status: Some(_), .. }) if live => "sessions_by_status",
        (Scope::Owner(_), _) => "sessions_by_owner",
        (Scope::All, SessionQuery { status: Some(_), .. }) => "sessions_by_status",
        (Scope::All, _) => "sessions_by_time",
    }
}

fn session_row(row: &Row<'_>) -> Read<SessionRow> {
    let template = TemplateId::from_bytes(row.get(3)?);
    Ok(SessionRow {
        owner: Owner::new(row.get_ref(1)?.as_str().map_err(|_| ReadError::Damaged("session"))?),
        worktree: worktree(row)?.map(Arc::new),
        worker_seq: count(row, 13)?,
        session: Session {
            id: SessionId::from_bytes(row.get(0)?),
            name: row.get(2)?,
            template_id: template,
            vm_id: template,
            workspace_id: row.get(4)?,
            base_commit_oid: row.get(5)?,
            worktree_path: row.get(6)?,
            status: parsed(row, 7, "session")?,
            created_at: moment(row, 8)?,
            closed_at: maybe_moment(row, 9)?,
            last_error: row.get(10)?,
            close_reason: row.get(11)?,
            runtime_meta: SessionFacts::from_json(
                row.get_ref(12)?.as_str().map_err(|_| ReadError::Damaged("facts"))?,
            )
            .ok_or(ReadError::Damaged("facts"))?,
            engine: if row.get(14)? { Engine::Cvm } else { Engine::Quickjs },
            execution_id: row.get::<_, Option<_>>(15)?.map(ExecutionId::from_bytes),
            owner: None,
        },
    })
}

fn worktree(row: &Row<'_>) -> Read<Option<RecordedWorktree>> {
    let Some(uid) = row.get(16)? else { return Ok(None) };
    let (root, beneath) = (row.get(18)?, row.get(19)?);
    Ok(Some(RecordedWorktree { uid, user: row.get(17)?, root, beneath, handle: row.get(20)? }))
}

pub(in crate::sqlite) fn session_policy(c: &Connection, id: SessionId) -> Read<Option<Arc<PolicySnapshot>>> {
    let mut select = Select::new(
        "SELECT policies.snapshot FROM sessions JOIN policies ON policies.hash = sessions.policy",
    );
    select.and_value("sessions.id =", id.as_bytes().to_vec());
    select.first(c, |row| {
        let text = row.get_ref(0)?.as_str().map_err(|_| ReadError::Damaged("policy"))?;
        serde_json::from_str(text).map(Arc::new).map_err(|_| ReadError::Damaged("policy"))
    })
}

fn policy_hash(c: &Connection, id: SessionId) -> Read<Option<Vec<u8>>> {
    let mut select = Select::new("SELECT policy FROM sessions");
    select.and_value("id =", id.as_bytes().to_vec());
    select.first(c, |row| Ok(row.get(0)?))
}

/// Starting and ready sessions of scripts of this node. What cannot be read is left out: its worker is not adopted.
pub(in crate::sqlite) fn live_sessions(c: &Connection) -> Read<Vec<LiveSessionRow>> {
    let mut select = Select::new(COLUMNS);
    select.text(
        " INDEXED BY sessions_live WHERE durable = 0 AND status IN ('starting', 'ready')
             AND (node IS NULL OR node = (SELECT value FROM meta WHERE key = 'node'))",
    );
    let mut rows = Vec::new();
    select.each(c, |row| {
        rows.extend(session_row(row).ok());
        Ok(true)
    })?;
    // Sessions of one template have one copy of it.
    let mut policies: HashMap<Vec<u8>, Arc<PolicySnapshot>> = HashMap::new();
    let with_state = |row: SessionRow| {
        let hash = policy_hash(c, row.session.id).ok()??;
        let policy = match policies.entry(hash) {
            Entry::Occupied(known) => Arc::clone(known.get()),
            Entry::Vacant(entry) => Arc::clone(entry.insert(session_policy(c, row.session.id).ok()??)),
        };
        let running = super::executions::unfinished(c, row.session.id).ok()?;
        Some(LiveSessionRow { row, policy, running })
    };
    Ok(rows.into_iter().filter_map(with_state).collect())
}

/// At most `limit` events: a row may be two, of which the limit may take only the first.
pub(in crate::sqlite) fn session_events(
    c: &Connection,
    session: SessionId,
    after: u64,
    limit: u32,
) -> Read<Vec<SessionEvent>> {
    const WHAT: &str = "event of a session";
    let mut select = Select::new("SELECT seq, at, type, began_at, subject, detail FROM session_events");
    select.and_value("session =", session.as_bytes().to_vec());
    select.and_value("seq >", i64::try_from(after).unwrap_or(i64::MAX));
    select.text(" ORDER BY seq LIMIT").value(i64::from(limit));
    let mut events = Vec::new();
    select.each(c, |row| {
        let (seq, at) = (count(row, 0)?, moment(row, 1)?);
        let (subject, detail): (Option<[u8; 16]>, Option<String>) = (row.get(4)?, row.get(5)?);
        let execution = subject.map(ExecutionId::from_bytes);
        let plain = |seq, at, kind| SessionEvent {
            session_id: session,
            seq,
            at,
            kind,
            execution_id: None,
            other_session_id: None,
            detail: None,
        };
        if row.get_ref(2)?.as_str().is_ok_and(|kind| kind == "execution_ran") {
            let began_at = maybe_moment(row, 3)?.unwrap_or(at);
            let started = plain(seq.saturating_sub(1), began_at, SessionEventType::ExecutionStarted);
            if started.seq > after {
                events.push(SessionEvent { execution_id: execution, ..started });
            }
            let ended = plain(seq, at, SessionEventType::ExecutionEnded);
            events.push(SessionEvent { execution_id: execution, detail, ..ended });
            return Ok(true);
        }
        let kind: SessionEventType = parsed(row, 2, WHAT)?;
        let is_of_session = matches!(kind, SessionEventType::Created | SessionEventType::Forked);
        events.push(SessionEvent {
            execution_id: execution.filter(|_| !is_of_session),
            other_session_id: subject.filter(|_| is_of_session).map(SessionId::from_bytes),
            detail,
            ..plain(seq, at, kind)
        });
        Ok(true)
    })?;
    events.truncate(limit as usize);
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Durability;
    use crate::sqlite::open::first_connection;
    use crate::sqlite::schema::SCHEMA;
    use std::time::Duration;

    /// SQLite's plan of a list with these conditions: the index, and whether it is searched.
    fn plan(connection: &Connection, scope: &Scope, filter: &SessionQuery) -> String {
        let mut select = Select::new(&format!("EXPLAIN QUERY PLAN {COLUMNS}"));
        conditions(&mut select, scope, filter, Page::first(1));
        let lines = select.rows(connection, |row| Ok(row.get::<_, String>(3)?));
        // The execution of a program's session is looked up by the session.
        lines.unwrap_or_else(|_| panic!("cannot be prepared: {}", select.sql)).swap_remove(0)
    }

    #[test]
    fn every_list_is_served_by_the_index_that_leaves_least_to_filter() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let path = folder.path().join("store.db");
        let connection = first_connection(&path, Durability::Normal, Duration::ZERO, None, &SCHEMA)
            .expect("an empty folder");
        let owner = Scope::Owner(Owner::new("o"));
        let none = SessionQuery::default;
        let named = SessionQuery { name: Some("n".to_owned()), ..none() };
        let of_template = SessionQuery { template: Some(TemplateId::from_bytes([1; 16])), ..none() };
        let of_workspace = SessionQuery { workspace_id: Some("w".to_owned()), ..none() };
        let ready = SessionQuery { status: Some(SessionStatus::Ready), ..none() };
        let closed = SessionQuery { status: Some(SessionStatus::Closed), ..none() };
        for (scope, filter, wanted) in [
            (&owner, &named, "SEARCH sessions USING INDEX sessions_by_name (owner=? AND name=?)"),
            (&Scope::All, &named, "SEARCH sessions USING INDEX sessions_by_name_of_all (name=?)"),
            (&owner, &of_template, "SEARCH sessions USING INDEX sessions_by_template (template=?)"),
            (&owner, &of_workspace, "SEARCH sessions USING INDEX sessions_by_workspace (workspace_id=?)"),
            (&owner, &ready, "SEARCH sessions USING INDEX sessions_by_status (status=? AND durable=?)"),
            (&owner, &closed, "SEARCH sessions USING INDEX sessions_by_owner (owner=? AND durable=?)"),
            (&Scope::All, &closed, "SEARCH sessions USING INDEX sessions_by_status (status=? AND durable=?)"),
            (&Scope::All, &none(), "SEARCH sessions USING INDEX sessions_by_time (durable=?)"),
        ] {
            assert_eq!(plan(&connection, scope, filter), wanted, "{scope:?} {filter:?}");
        }
    }
}
