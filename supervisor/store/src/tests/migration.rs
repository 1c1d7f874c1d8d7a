//! A database of version 20 becomes one of version 21: what is in it is the same, and so is the schema of a new one.

use super::fixture::{execution_id, mine, on_disk, options};
use super::golden::{golden, tables, texts};
use crate::open_sqlite;
use rusqlite::Connection;
use vm_system_protocol::ids::TaskId;
use vm_system_protocol::time::Timestamp;
use vm_system_record::{ClaimKind, ItemOutcome, Write};

/// Beside the rows of the golden database: a program that runs, whose second task was withdrawn; one that was imported with two tasks of
/// one checkpoint; and a question of a session with a deadline, for which its owner task waits.
const MORE: &str = "
    INSERT INTO executions (id, session, owner, kind, status, args, env, started_at)
        SELECT x'55000000000000000000000000000001', session, owner, 'program', 'running', '[]', '{}', 6000
        FROM executions WHERE kind = 'program';
    INSERT INTO executions (id, session, owner, kind, status, args, env, started_at)
        SELECT x'55000000000000000000000000000002', session, owner, 'program', 'waiting', '[]', '{}', 6000
        FROM executions WHERE started_at = 6000;
    INSERT INTO executions (id, session, owner, kind, status, args, env, started_at)
        SELECT x'55000000000000000000000000000003', session, owner, 'repl', 'waiting', '[]', '{}', 6000
        FROM executions WHERE started_at = 6000 LIMIT 1;
    INSERT INTO program_runs SELECT executions.id, program, version, program_runs.owner, 6000
        FROM executions CROSS JOIN program_runs WHERE executions.started_at = 6000 AND kind = 'program';
    INSERT INTO checkpoints (execution, seq, at, cause, bytes, written)
        SELECT id, 3, 6000, 'steps', 64, 0 FROM executions WHERE started_at = 6000 AND kind = 'program';
    INSERT INTO state_pages SELECT id, 0, 3, x'01' FROM executions WHERE started_at = 6000 AND kind = 'program';
    INSERT INTO tasks (id, execution, owner, prompt, attempts, created_at, deadline, ended_at, answer, checkpoint, outcome)
        SELECT unhex('66' || substr(hex(id), 31) || '000000000000000000000000000' || n.checkpoint), id, owner, '?', 0, 6000 + n.checkpoint,
            n.deadline, n.ended_at, n.answer, n.checkpoint, n.outcome
        FROM executions CROSS JOIN (SELECT 1 AS checkpoint, 7000 AS deadline, 6500 AS ended_at, 'a' AS answer,
            'defaulted' AS outcome UNION ALL SELECT 2, NULL, 6600, NULL, 'withdrawn') AS n
        WHERE started_at = 6000 AND kind = 'program';
    INSERT INTO tasks (id, execution, owner, prompt, attempts, created_at, deadline, checkpoint)
        SELECT x'66000000000000000000000000000009', id, owner, '?', 0, 6100, 8000, 2
        FROM executions WHERE id = x'55000000000000000000000000000002';
    INSERT INTO tasks (id, execution, owner, prompt, attempts, created_at, deadline, checkpoint)
        SELECT x'66000000000000000000000000000008', id, owner, '?', 0, 6100, 8000, 1
        FROM executions WHERE id = x'55000000000000000000000000000003';";

fn rows(c: &Connection, sql: &str) -> Vec<String> {
    texts(c, sql)
}

#[tokio::test]
async fn tasks_of_version_20_are_items_and_its_programs_go_on() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("vm-system.db");
    let sql = std::fs::read_to_string(golden(20)).expect("a golden database");
    let before = Connection::open(&path).expect("a new file");
    before.execute_batch(&sql).and_then(|()| before.execute_batch(MORE)).expect("rows of that version");
    let task_texts = "SELECT quote(id) || quote(execution) || quote(owner) || quote(prompt) || quote(schema) || attempts || created_at
             || quote({due}) || quote(ended_at) || quote(answer) || checkpoint || quote(retries) || quote(fallback)
             || quote(outcome) || quote(first_attempt_at) || quote(last_attempt_at) FROM {table} ORDER BY id";
    let tasks = rows(&before, &task_texts.replace("{due}", "deadline").replace("{table}", "tasks"));
    let stored = rows(&before, "SELECT owner || bytes FROM owners WHERE owner <> '(commits)' ORDER BY owner");
    drop(before);

    let store = open_sqlite(options(folder.path())).expect("a released version");
    let report = store.check().await.expect("readable");
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let pending = store.pending_task(execution_id(3)).await.expect("readable").expect("it waits");
    assert_eq!(pending.deadline, Some(Timestamp(9_000)));
    let due = store.claim(ClaimKind::Due, 10).await.expect("readable");
    assert_eq!(due.len(), 2, "the deadlines of both have passed, and no owner task has them");
    assert_eq!(store.claim(ClaimKind::OfEnded, 10).await.expect("readable").len(), 1);
    let outcome = ItemOutcome::Answered;
    let (execution, id, answer) = (execution_id(3), pending.id, Some("yes".to_owned()));
    store
        .apply(Write::ItemEnd { execution, id, outcome, answer, at: Timestamp(9_500), taken_at: None })
        .await
        .expect("it is pending");
    let deleted = TaskId::from_bytes([0x66, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]);
    assert!(store.task(&mine(), deleted).await.expect("readable").is_some());
    assert!(store.check().await.expect("readable").ok);
    store.shutdown().await;

    let after = Connection::open(&path).expect("it has no owner");
    let items = rows(&after, &task_texts.replace("{due}", "due_at").replace("{table}", "items"));
    assert_eq!(items.len(), tasks.len());
    let changed: Vec<_> = items.iter().zip(&tasks).filter(|(item, task)| item != task).collect();
    assert_eq!(changed.len(), 1, "the task that was answered: {changed:?}");
    let numbers = "SELECT substr(hex(execution), 1, 2) || substr(hex(execution), 32) || ' ' || item || ' ' || coalesce(answer_seq, '-')
         || ' ' || (ended_at IS NULL) FROM items WHERE execution >= x'55' ORDER BY execution, item";
    assert_eq!(
        rows(&after, numbers),
        ["551 1 1 0", "551 2 - 0", "552 1 1 0", "552 2 - 0", "552 1099511627778 - 1", "553 1 - 1"]
            .map(str::to_owned)
            .into_iter()
            .collect::<Vec<_>>()
    );
    let counters = "SELECT hex(id) || ' ' || coalesce(wake_at, '-') || ' ' || inbox FROM executions
         WHERE started_at = 6000 OR kind = 'program' ORDER BY id";
    let expected = [
        format!("{:032X} - 2", u128::from_be_bytes(*execution_id(3).as_bytes())),
        "55000000000000000000000000000001 - 1".to_owned(),
        "55000000000000000000000000000002 8000 1".to_owned(),
        "55000000000000000000000000000003 - 0".to_owned(),
    ];
    let mut found = rows(&after, counters);
    found.sort_unstable();
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(found, expected);
    assert!(!stored.is_empty());
}

/// Columns, indexes and triggers; the text of a table differs after a column was added.
fn described(c: &Connection) -> Vec<String> {
    let mut all = rows(
        c,
        "SELECT name || ': ' || coalesce(sql, '') FROM sqlite_schema WHERE type <> 'table' ORDER BY type, name",
    );
    for table in tables(c) {
        all.push(format!(
            "{table}: {:?}",
            rows(
                c,
                &format!(
            "SELECT name || ' ' || type || ' ' || \"notnull\" || ' ' || coalesce(dflt_value, '') || ' ' || pk
             FROM pragma_table_xinfo('{table}') ORDER BY cid"
        )
            )
        ));
    }
    all.sort_unstable();
    all
}

#[tokio::test]
async fn migrated_database_has_the_schema_of_a_new_one() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("vm-system.db");
    let sql = std::fs::read_to_string(golden(20)).expect("a golden database");
    Connection::open(&path).expect("a new file").execute_batch(&sql).expect("rows of that version");
    open_sqlite(options(folder.path())).expect("a released version").shutdown().await;
    let new = on_disk();
    new.store.shutdown().await;
    let described = |path| described(&Connection::open(path).expect("it has no owner"));
    assert_eq!(described(path), described(new.folder.path().join("vm-system.db")));
}
