//! The cost of a list does not depend on the rows of other owners: counts instructions of SQLite's virtual machine, not time.

use super::*;
use crate::Durability;
use crate::sqlite::check::STORED_BYTES;
use crate::sqlite::open::first_connection;
use crate::sqlite::schema::SCHEMA;
use crate::sqlite::write::{CountedConnection, ScanPosition, prune_step};
use rusqlite::Connection;
use std::cell::Cell;
use std::time::Duration;
use vm_system_protocol::control::Period;
use vm_system_protocol::ids::{ExecutionId, ProgramId, ScheduleId, SessionId};
use vm_system_protocol::model::{ExecutionStatus, TaskState};
use vm_system_protocol::time::Timestamp;
use vm_system_record::{
    ClaimKind, Cursor, ExecutionQuery, Owner, Page, ProgramQuery, RunQuery, Scope, SessionQuery, StoreError,
    TaskQuery,
};

thread_local! {
    static STEPS: Cell<u64> = const { Cell::new(0) };
}

/// Adds the instructions of a query.
pub(super) fn add(steps: i32) {
    STEPS.set(STEPS.get() + u64::from(steps.unsigned_abs()));
}

/// Another owner's rows of each kind.
const OTHERS: u32 = 10_000;
/// Most instructions of a query for three rows, with all look-ups.
const FEW: u64 = 3_000;

/// The constant part of a schedule.
const SCHEDULE: &str = r#"{"rule":{"every_ms":1000,"time_zone":"UTC","overlap":"queue","jitter_ms":0},
    "start":{"program":"p","name":null,"args":[],"env":[],"template":null,"worktree_path":null,"as_user":null}}"#;

/// Each owner has a template, a session for each execution, a program, a task for each waiting execution, and schedules.
fn fill(c: &Connection, owner: &str, first: u32, count: u32) {
    let ids = format!(
        "WITH RECURSIVE n(i) AS (VALUES ({first}) UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {first} + {count})"
    );
    let key = "unhex(printf('%012x7000%016x', i, i))";
    let own = format!("(SELECT id FROM templates WHERE owner = '{owner}')");
    let program = format!("(SELECT id FROM programs WHERE owner = '{owner}')");
    c.execute_batch(&format!(
        "INSERT OR IGNORE INTO policies VALUES (zeroblob(32), '{{}}', '{owner}');
         INSERT INTO templates VALUES (randomblob(16), '{owner}', 't', 'cvm', 1, '{{}}', 0, 0);
         INSERT INTO programs VALUES (randomblob(16), '{owner}', 'p', 1, 1, 0, 0);
         INSERT INTO program_versions SELECT id, 1, zeroblob(32), 1, 0, '', x'' FROM programs WHERE owner = '{owner}';
         {ids} INSERT INTO sessions (id, owner, template, policy, durable, workspace_id, base_commit_oid, worktree_path,
             status, created_at, runtime_meta)
             SELECT {key}, '{owner}', {own}, zeroblob(32), 1, '', '', '', 'ready', i, '{{}}' FROM n;
         {ids} INSERT INTO executions (id, session, owner, name, kind, status, args, env, started_at)
             SELECT {key}, {key}, '{owner}', 'n' || i, 'program', 'waiting', '[]', '{{}}', i FROM n;
         {ids} INSERT INTO program_runs (execution, owner, program, version, started_at)
             SELECT {key}, '{owner}', {program}, 1, i FROM n;
         {ids} INSERT INTO items (id, execution, item, kind, owner, prompt, attempts, created_at, checkpoint)
             SELECT {key}, {key}, 0, 'question', '{owner}', '?', 0, i, 0 FROM n;
         {ids} INSERT INTO open_items (id, execution, item, kind, owner, created_at)
             SELECT {key}, {key}, 0, 'question', '{owner}', i FROM n;
         {ids} INSERT INTO schedules (id, owner, name, created_at, revision, next_at, due_at, waits_for, spec, state)
             SELECT {key}, '{owner}', 's' || i, i, 0, i, i + (1 << 40), {key}, '{SCHEDULE}', '{{}}' FROM n
             WHERE i < 100 OR i % 5 = 0;
         {ids} INSERT INTO audit_log (at, owner, verb, subject, outcome, api)
             SELECT i, '{owner}', 'v', 's', 'ok', 'rest' FROM n;"
    ))
    .expect("rows of a schema of our own");
}

/// Mine are the oldest: a scan from the newest passes the rows of all others first.
pub(in crate::sqlite) fn filled() -> (tempfile::TempDir, Connection) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("store.db");
    let connection =
        first_connection(&path, Durability::Normal, Duration::ZERO, None, &SCHEMA).expect("an empty folder");
    connection.execute_batch("BEGIN").expect("idle");
    fill(&connection, "me", 1, 3);
    fill(&connection, "they", 100, OTHERS);
    connection.execute_batch("COMMIT").expect("open");
    recount(&connection);
    (folder, connection)
}

/// Counts what each owner stores: no trigger counts the rows that a test inserts by itself.
pub(in crate::sqlite) fn recount(c: &Connection) {
    c.execute_batch(&format!("INSERT OR REPLACE INTO owners {STORED_BYTES}"))
        .expect("rows of a schema of our own");
}

/// Instructions of a read.
fn cost<T>(read: impl FnOnce() -> Read<T>) -> u64 {
    STEPS.set(0);
    assert!(read().is_ok(), "it cannot be read");
    STEPS.get()
}

fn readable<T>(read: Read<T>) -> T {
    read.map_err(StoreError::from).expect("readable")
}

/// Checks that each of these reads is cheap.
macro_rules! assert_cheap {
    ($($read:expr,)*) => {$(
        let steps = cost(|| $read);
        assert!(steps <= FEW, "{steps} instructions for {}", stringify!($read));
    )*};
}

#[test]
fn cost_of_an_owners_lists_does_not_depend_on_others() {
    let (_folder, c) = filled();
    let (c, me, page) = (&c, &Scope::Owner(Owner::new("me")), Page::first(100));
    let program = c
        .query_row("SELECT id FROM programs WHERE owner = 'me'", [], |row| row.get(0))
        .map(ProgramId::from_bytes)
        .expect("it was made");
    let my_runs = |filter: RunQuery| runs(c, me, &filter, Page::first(100));
    let my_tasks = |filter| tasks(c, me, filter, Page::first(100));
    let period = Period { since: Some(Timestamp(1)), until: Some(Timestamp(1 << 40)) };
    let name = || Some("p".to_owned());
    let one = c
        .query_row("SELECT id FROM executions WHERE owner = 'me'", [], |row| row.get(0))
        .map(ExecutionId::from_bytes)
        .expect("it was made");
    let session = SessionId::from_bytes(*one.as_bytes());
    let first = (Timestamp(i64::MIN), ExecutionId::from_bytes([0; 16]));
    assert_cheap!(
        templates(c, me, page),
        programs(c, me, &ProgramQuery::default(), page),
        programs(c, me, &ProgramQuery { name: name(), period }, page),
        sessions(c, me, &SessionQuery::default(), page),
        executions(c, me, session, ExecutionQuery::default(), page),
        my_tasks(TaskQuery::PENDING),
        my_tasks(TaskQuery { program: Some(program), period, ..TaskQuery::default() }),
        my_tasks(TaskQuery { status: Some(TaskState::Expired), ..TaskQuery::default() }),
        my_tasks(TaskQuery { execution: Some(one), ..TaskQuery::default() }),
        audit(c, me, None, 100),
        prompts(c, me, &[one], 100),
        program_counts(c, me),
        my_runs(RunQuery::default()),
        my_runs(RunQuery { period, ..RunQuery::default() }),
        my_runs(RunQuery { status: Some(ExecutionStatus::Waiting), ..RunQuery::default() }),
        my_runs(RunQuery { status: Some(ExecutionStatus::Ok), ..RunQuery::default() }),
        my_runs(RunQuery { program: Some(program), ..RunQuery::default() }),
        my_runs(RunQuery {
            program: Some(program),
            status: Some(ExecutionStatus::Waiting),
            ..RunQuery::default()
        }),
        my_runs(RunQuery { name: name(), ..RunQuery::default() }),
        run_by_id(c, me, one),
        execution_by_name(c, &Owner::new("me"), "p"),
        goes_on(c, Timestamp(i64::MAX)),
        schedules(c, me, page),
        schedule_count(c, &Owner::new("me")),
        schedule_by_name(c, &Owner::new("me"), "s1"),
        first_due(c),
        due_schedules(c, (Timestamp(0), ScheduleId::from_bytes([0; 16])), Timestamp(1 << 39), 100),
        first_wake(c, Timestamp(0)),
        claimable(c, ClaimKind::OfEnded, first, Timestamp(i64::MAX), 100),
        claimable(c, ClaimKind::Due, first, Timestamp(i64::MAX), 100),
        pending_task(c, one),
        task_of(c, one, None),
        // The first of all owners.
        runs(c, &Scope::All, &RunQuery::default(), Page::first(3)),
        tasks(c, &Scope::All, TaskQuery::PENDING, Page::first(3)),
        tasks(c, &Scope::All, TaskQuery::default(), Page::first(3)),
    );
}

#[test]
fn cost_of_pending_tasks_does_not_depend_on_those_that_have_ended() {
    let (_folder, c) = filled();
    let one = c
        .query_row("SELECT id FROM executions WHERE owner = 'me'", [], |row| row.get(0))
        .map(ExecutionId::from_bytes)
        .expect("it was made");
    c.execute(
        "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
         INSERT INTO items (id, execution, item, kind, owner, prompt, attempts, created_at, checkpoint, ended_at, outcome)
         SELECT randomblob(16), ?1, i, 'question', 'me', '?', 0, i, i, i, 'answered' FROM n",
        [one.as_bytes()],
    )
    .expect("rows of a schema of our own");
    let (me, of_one) =
        (&Scope::Owner(Owner::new("me")), TaskQuery { execution: Some(one), ..TaskQuery::PENDING });
    assert_cheap!(
        pending_task(&c, one),
        prompts(&c, me, &[one], 100),
        tasks(&c, me, of_one, Page::first(100)),
        tasks(&c, me, TaskQuery::PENDING, Page::first(100)),
        task_of(&c, one, None),
        task_of(&c, one, Some(5_000)),
        items_of_run(&c, one, 9_990, 100),
    );
    assert_eq!(readable(pending_task(&c, one)).map(|row| row.checkpoint), Some(0));
    assert_eq!(readable(tasks(&c, me, of_one, Page::first(100))).len(), 1);
}

#[test]
fn cost_of_a_state_depends_on_its_pages_and_not_on_old_checkpoints() {
    let (_folder, c) = filled();
    let execution = c
        .query_row("SELECT id FROM executions WHERE owner = 'me'", [], |row| row.get(0))
        .map(ExecutionId::from_bytes)
        .expect("it was made");
    // Page 2 has one version, the others as many as there are checkpoints; page 3 was deleted by the last one.
    c.execute(
        "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
         INSERT INTO state_pages SELECT ?1, page, i, iif(page = 3 AND i = 1000, NULL, unhex(printf('%04x', i)))
         FROM n, (SELECT 1 AS page UNION SELECT 2 UNION SELECT 3 UNION SELECT 4) WHERE page <> 2 OR i = 7",
        [execution.as_bytes()],
    )
    .expect("rows of a schema of our own");
    let whole = || state_part(&c, execution, 1_000, None, usize::MAX);
    let steps = cost(whole);
    assert!(steps <= FEW / 10, "{steps} instructions for three pages");
    let page = |number, version: u16| (number, version.to_be_bytes().to_vec());
    assert_eq!(readable(whole()), [page(1, 1_000), page(2, 7), page(4, 1_000)]);
    let part = |behind, bytes| readable(state_part(&c, execution, 500, behind, bytes));
    assert_eq!(part(None, usize::MAX), [page(1, 500), page(2, 7), page(3, 500), page(4, 500)]);
    // A part ends with the page that fills it, by either way of look-up.
    assert_eq!(part(None, 1), [page(1, 500)]);
    assert_eq!(part(Some(1), 2), [page(2, 7)]);
    assert_eq!(part(Some(1), 3), [page(2, 7), page(3, 500)]);
    assert_eq!(part(Some(3), 3), [page(4, 500)]);
    assert!(part(Some(4), 3).is_empty());
}

#[test]
fn unfinished_rows_are_scanned_in_steps_and_once() {
    let (_folder, c) = filled();
    let c = CountedConnection::new(&c);
    let (mut position, mut steps) = (ScanPosition::default(), 0);
    let next = |position| {
        let step = prune_step(&c, Timestamp(1 << 40), Timestamp(0), 1_000_000, position).ok();
        step.expect("a database of our own")
    };
    let rows = loop {
        let step = next(position);
        (position, steps) = (step.position, steps + 1);
        if !step.more {
            break step.rows;
        }
    };
    assert_eq!((steps, rows), (3, 0), "4 096 rows are scanned in one step");
    let again = next(position);
    assert!(!again.more && again.position == position, "nothing is scanned twice");
}

#[test]
fn unreadable_row_does_not_affect_the_others() {
    let (_folder, c) = filled();
    c.execute_batch(
        "UPDATE items SET attempts = 1 << 40 WHERE created_at = 1 AND owner = 'me';
         UPDATE items SET outcome = 'lost' WHERE created_at = 2 AND owner = 'me';
         UPDATE executions SET status = 'lost' WHERE started_at = 2 AND owner = 'me';
         UPDATE schedules SET spec = '{}' WHERE created_at = 2 AND owner = 'me';
         INSERT INTO programs VALUES (randomblob(16), 'me', 'q', 1, 1 << 40, 0, 0);
         INSERT INTO program_versions SELECT id, 1 << 40, zeroblob(32), 1, 0, '', x'' FROM programs WHERE name = 'q';",
    )
    .expect("rows of a schema of our own");
    let (c, me, page) = (&c, &Scope::Owner(Owner::new("me")), Page::first(100));
    assert_eq!(readable(tasks(c, me, TaskQuery::PENDING, page)).len(), 2);
    // A status that does not exist is in no list of a status, and all are merged from these.
    assert_eq!(readable(runs(c, me, &RunQuery::default(), page)).len(), 2);
    assert_eq!(readable(programs(c, me, &ProgramQuery::default(), page)).len(), 1);
    assert_eq!(readable(schedules(c, me, page)).len(), 2);
}

#[test]
fn unreadable_session_does_not_keep_the_others_from_adoption() {
    let (_folder, c) = filled();
    c.execute_batch(
        "UPDATE sessions SET durable = 0 WHERE owner = 'me';
         UPDATE sessions SET base_commit_oid = CAST(x'ff' AS TEXT) WHERE owner = 'me' AND created_at = 2;",
    )
    .expect("rows of a schema of our own");
    let policy = serde_json::to_string(&*crate::tests::fixture::policy()).expect("plain data");
    c.execute("UPDATE policies SET snapshot = ?1", [policy]).expect("a row");
    let rows = readable(live_sessions(&c));
    assert_eq!(rows.iter().map(|row| row.row.session.created_at.0).collect::<Vec<_>>(), [1, 3]);
}

#[test]
fn page_of_large_rows_ends_early_and_the_next_one_continues_after_it() {
    let (_folder, c) = filled();
    c.execute_batch("UPDATE items SET prompt = printf('%.*c', 10485760, 'x') WHERE owner = 'me'")
        .expect("rows of a schema of our own");
    let me = Scope::Owner(Owner::new("me"));
    let read = |after| readable(tasks(&c, &me, TaskQuery::PENDING, Page { after, ..Page::first(100) }));
    let first = read(None);
    let last = first.last().map(|row| Cursor { at: row.created_at, id: *row.id.as_bytes() });
    assert_eq!((first.len(), read(last).len()), (2, 1));
}
