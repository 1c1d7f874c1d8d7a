//! Databases of older programs: brought to the newest schema when they are opened, with everything that is in them.

use super::fixture::{mine, options, owner};
use crate::store::{Page, Scope, SessionQuery, open_sqlite};
use rusqlite::{Connection, params};

/// The schemas as they were, in order.
const STEPS: [&str; 7] = [
    include_str!("../sqlite/v1.sql"),
    include_str!("../sqlite/v2.sql"),
    include_str!("../sqlite/v3.sql"),
    include_str!("../sqlite/v4.sql"),
    include_str!("../sqlite/v5.sql"),
    include_str!("../sqlite/v6.sql"),
    include_str!("../sqlite/v7.sql"),
];
const APPLICATION_ID: i32 = 0x766d_7379;

/// A database of schema version `version` with a template, and sessions `a`, `b`, `a` and one without a name.
fn old_database(path: &std::path::Path, version: usize) {
    let connection = Connection::open(path).expect("the folder is writable");
    for step in &STEPS[..version] {
        connection.execute_batch(step).expect("a schema that was in use");
    }
    connection.pragma_update(None, "user_version", i64::try_from(version).expect("small")).expect("ours");
    connection.pragma_update(None, "application_id", APPLICATION_ID).expect("ours");
    let settings =
        serde_json::to_string(&vm_system_protocol::model::Settings::default()).expect("plain data");
    connection
        .execute(
            "INSERT INTO templates VALUES (?1, 'owner-1', 't', 'quickjs', 1, ?2, 0, 0)",
            params![[1_u8; 16], settings],
        )
        .expect("a row of that schema");
    connection.execute("INSERT INTO policies VALUES (?1, '{}')", params![[2_u8; 32]]).expect("a row");
    for (number, name) in [(1_u8, Some("a")), (2, Some("b")), (3, Some("a")), (4, None)] {
        connection
            .execute(
                "INSERT INTO sessions (id, owner, name, template, policy, durable, workspace_id, base_commit_oid,
                     worktree_path, status, created_at, runtime_meta)
                 VALUES (?1, ?2, ?3, ?4, ?5, 0, 'w', 'c', '/', 'closed', ?6, '{}')",
                params![
                    [number; 16],
                    owner(1).as_str(),
                    name,
                    [1_u8; 16],
                    [2_u8; 32],
                    i64::from(number)
                ],
            )
            .expect("a row of that schema");
    }
}

#[tokio::test]
async fn every_older_schema_is_brought_to_the_newest_with_its_rows() {
    for version in 1..=STEPS.len() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        old_database(&folder.path().join("vm-system.db"), version);
        let store = open_sqlite(options(folder.path())).expect("an older schema");
        let all = store.sessions(&Scope::All, SessionQuery::default(), Page::ALL).await.expect("readable");
        assert_eq!(all.len(), 4, "version {version}");
        for scope in [mine(), Scope::All] {
            let named = SessionQuery { name: Some("a".to_owned()), ..SessionQuery::default() };
            let found = store.sessions(&scope, named, Page::ALL).await.expect("readable");
            let numbers: Vec<u8> = found.iter().map(|row| row.session.id.as_bytes()[0]).collect();
            assert_eq!(numbers, [3, 1], "version {version}, {scope:?}");
        }
        store.shutdown().await;
    }
}
