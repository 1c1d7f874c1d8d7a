//! Versions of the schema: which databases are opened, and the migration to a later version, which a made-up one shows.

use super::fixture::{execution_id, mine, on_disk, options, running, session_id};
use crate::sqlite::{SCHEMA, StoreSchema, open_with_schema};
use crate::{OpenError, StoreHandle, open_sqlite};
use rusqlite::Connection;
use std::path::Path;

/// The version after the newest one, with a step of more than SQLite keeps in memory, so that parts of it are in the log before the end.
const NEXT: StoreSchema = StoreSchema { steps: &[SCHEMA.steps[0], add_notes], ..SCHEMA };
/// The same with a second step that fails.
const FAILING: StoreSchema = StoreSchema { steps: &[SCHEMA.steps[0], add_notes, fail], ..SCHEMA };
/// The same with a second step in the middle of which the files are copied: as a killed process leaves them.
const INTERRUPTED: StoreSchema = StoreSchema { steps: &[SCHEMA.steps[0], add_notes, copy_files], ..SCHEMA };

fn add_notes(c: &Connection) -> Result<(), rusqlite::Error> {
    c.execute_batch(
        "CREATE TABLE notes (session BLOB NOT NULL PRIMARY KEY, filling BLOB NOT NULL) STRICT;
         INSERT INTO notes SELECT id, zeroblob(32 << 20) FROM sessions;
         DELETE FROM events;",
    )
}

fn fail(c: &Connection) -> Result<(), rusqlite::Error> {
    c.execute_batch("ALTER TABLE nothing ADD COLUMN x")
}

fn copy_files(c: &Connection) -> Result<(), rusqlite::Error> {
    c.cache_flush()?;
    let database = Path::new(c.path().expect("a file"));
    let copy = killed(database.parent().expect("a folder"));
    std::fs::create_dir(&copy).expect("the folder is ours");
    for name in ["vm-system.db", "vm-system.db-wal"] {
        std::fs::copy(database.with_file_name(name), copy.join(name)).expect("it is open");
    }
    Ok(())
}

fn killed(folder: &Path) -> std::path::PathBuf {
    folder.join("killed")
}

fn open_next(folder: &Path) -> Result<StoreHandle, OpenError> {
    open_with_schema(options(folder), &NEXT)
}

/// Checks that all rows of [`running`] and its events are there.
async fn has_rows(store: &StoreHandle, events: usize) {
    assert!(store.session(&mine(), session_id(1)).await.expect("readable").is_some());
    assert_eq!(store.events(execution_id(1), 0, 0).await.expect("readable").len(), events);
    assert!(store.check().await.expect("readable").ok);
}

fn version(folder: &Path) -> u32 {
    let database = Connection::open(folder.join("vm-system.db")).expect("it has no owner");
    database.pragma_query_value(None, "user_version", |row| row.get(0)).expect("a number")
}

/// A folder with a database of the newest version: the rows of [`running`] and three events.
async fn of_the_newest_version() -> tempfile::TempDir {
    let disk = on_disk();
    disk.store.apply(running()).await.expect("new");
    disk.store.apply(super::fixture::events(1, 1..=3)).await.expect("running");
    disk.store.shutdown().await;
    disk.folder
}

#[tokio::test]
async fn database_is_migrated_to_a_later_version_and_then_refused_by_the_program_before() {
    let folder = of_the_newest_version().await;
    let store = open_next(folder.path()).expect("the version before");
    has_rows(&store, 0).await;
    store.apply(super::fixture::started(2, 1)).await.expect("it can be written");
    store.shutdown().await;
    assert_eq!(version(folder.path()), SCHEMA.version() + 1);
    // It is migrated once.
    open_next(folder.path()).expect("its own version").shutdown().await;
    let error = open_sqlite(options(folder.path())).expect_err("it is newer");
    let (newer, known) = (SCHEMA.version() + 1, SCHEMA.version());
    assert!(
        matches!(error, OpenError::Newer { found, known: own, .. } if (found, own) == (newer, known)),
        "{error}"
    );
    let text = error.to_string();
    assert!(
        text.contains(&format!("schema version {newer}")) && text.contains(&format!("up to {known}")),
        "{text}"
    );
    open_next(folder.path()).expect("the refusal has changed nothing").shutdown().await;
}

#[tokio::test]
async fn new_database_gets_all_steps() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let store = open_next(folder.path()).expect("an empty folder");
    store.apply(running()).await.expect("new");
    store.shutdown().await;
    assert_eq!(version(folder.path()), SCHEMA.version() + 1);
}

#[tokio::test]
async fn step_that_fails_leaves_the_database_as_it_was() {
    let folder = of_the_newest_version().await;
    let error = open_with_schema(options(folder.path()), &FAILING).expect_err("its second step fails");
    assert!(error.to_string().contains("nothing"), "{error}");
    assert_eq!(version(folder.path()), SCHEMA.version());
    let store = open_sqlite(options(folder.path())).expect("the version is the old one");
    has_rows(&store, 3).await;
    store.shutdown().await;
}

#[tokio::test]
async fn process_that_is_killed_in_a_migration_leaves_the_database_as_it_was() {
    let folder = of_the_newest_version().await;
    let store = open_with_schema(options(folder.path()), &INTERRUPTED).expect("it goes on");
    store.shutdown().await;
    assert_eq!(version(folder.path()), SCHEMA.version() + 2);
    let killed = killed(folder.path());
    let log = std::fs::metadata(killed.join("vm-system.db-wal")).expect("it was copied").len();
    assert!(log > 32 << 20, "the log has parts of the step: {log}");
    let store = open_sqlite(options(&killed)).expect("nothing of it is committed");
    has_rows(&store, 3).await;
    store.shutdown().await;
    assert_eq!(version(&killed), SCHEMA.version());
    open_next(&killed).expect("it is migrated the next time").shutdown().await;
    assert_eq!(version(&killed), SCHEMA.version() + 1);
}

#[tokio::test]
async fn databases_of_programs_before_the_first_release_are_refused_by_name() {
    let folder = of_the_newest_version().await;
    for old in [9, 10, 17, 18, 19] {
        Connection::open(folder.path().join("vm-system.db"))
            .and_then(|connection| connection.pragma_update(None, "user_version", old))
            .expect("it is not locked");
        let error = open_sqlite(options(folder.path())).expect_err("no release wrote it");
        let newest = SCHEMA.version();
        assert!(
            matches!(error, OpenError::Unreleased { found, known, .. } if (found, known) == (old, newest)),
            "{error}"
        );
        let text = error.to_string();
        assert!(
            text.contains(&format!("schema version {old}"))
                && text.contains(&format!("opens schema version {newest}"))
                && text.contains("move it away or choose another --state-dir"),
            "{text}"
        );
        assert_eq!(version(folder.path()), old, "nothing was changed");
    }
}
