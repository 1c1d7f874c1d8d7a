//! Files that are refused at opening, and data that must survive.

use super::fixture::{
    events, execution_id, mine, on_disk, options, running, session_id, template, template_id,
};
use crate::{DatabaseFault, Durability, OpenError, StoreOptions, open_sqlite};
use rusqlite::Connection;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};
use vm_system_record::{Page, Write};

fn database(folder: &Path) -> std::path::PathBuf {
    folder.join("vm-system.db")
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("the file is there").permissions().mode() & 0o777
}

#[tokio::test]
async fn files_are_private_to_the_service() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let state = folder.path().join("state");
    let store = open_sqlite(options(&state)).expect("an empty folder can be opened");
    store.apply(template(1, "t")).await.expect("new");
    assert_eq!(mode(&state), 0o700);
    for name in ["vm-system.db", "vm-system.db-wal", "vm-system.db-shm", "vm-system.db-lock", "lock"] {
        assert_eq!(mode(&state.join(name)), 0o600, "{name}");
    }
    store.shutdown().await;
}

#[tokio::test]
async fn second_owner_of_a_state_directory_is_refused_by_name() {
    let disk = on_disk();
    let error = open_sqlite(options(disk.folder.path())).expect_err("the directory has an owner");
    let OpenError::InUse { pid, .. } = &error else { panic!("refused for another reason: {error}") };
    assert_eq!(*pid, Some(std::process::id()));
    assert!(error.to_string().contains("--state-dir"), "{error}");
    let elsewhere = tempfile::tempdir().expect("a temporary folder can be made");
    let named = StoreOptions { socket: Some("/run/it.sock".into()), ..options(elsewhere.path()) };
    let holder = open_sqlite(named).expect("an empty folder can be opened");
    let error = open_sqlite(options(elsewhere.path())).expect_err("the directory has an owner").to_string();
    assert!(error.contains(&format!("(pid {}, socket /run/it.sock)", std::process::id())), "{error}");
    holder.shutdown().await;
    disk.store.shutdown().await;
    let store = open_sqlite(options(disk.folder.path())).expect("the owner has gone");
    store.shutdown().await;
}

#[tokio::test]
async fn a_database_has_one_owner_from_whatever_state_directory() {
    let disk = on_disk();
    let elsewhere = tempfile::tempdir().expect("a temporary folder can be made");
    let link = elsewhere.path().join("link.db");
    std::os::unix::fs::symlink(disk.folder.path().join("vm-system.db"), &link).expect("a link");
    for database in [disk.folder.path().join("vm-system.db"), link] {
        let other = StoreOptions { database: Some(database), ..options(elsewhere.path()) };
        let error = open_sqlite(other).expect_err("the database has an owner");
        let OpenError::InUse { option: "--db", .. } = &error else { panic!("another reason: {error}") };
        assert!(error.to_string().contains("choose another --db"), "{error}");
    }
    disk.store.shutdown().await;
}

#[tokio::test]
async fn acknowledged_writes_exist_after_opening_again() {
    for durability in [Durability::Full, Durability::Normal] {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let options = StoreOptions { durability, ..options(folder.path()) };
        let store = open_sqlite(options.clone()).expect("an empty folder can be opened");
        assert_eq!(store.status().durability, durability.as_str());
        store.apply(running()).await.expect("new");
        store.apply(events(1, 1..=100)).await.expect("running");
        store.shutdown().await;
        let store = open_sqlite(options.clone()).expect("our own database");
        assert_eq!(store.events(execution_id(1), 0, 0).await.expect("readable").len(), 100);
        store.shutdown().await;
    }
}

/// Copies the files as a crash would leave them: open, with everything still in the log.
#[tokio::test]
async fn acknowledged_writes_survive_an_exit_without_a_close() {
    let disk = on_disk();
    disk.store.apply(running()).await.expect("new");
    let after = tempfile::tempdir().expect("a temporary folder can be made");
    for name in ["vm-system.db", "vm-system.db-wal"] {
        std::fs::copy(disk.folder.path().join(name), after.path().join(name)).expect("the file is there");
    }
    let store = open_sqlite(options(after.path())).expect("a log without its end is normal");
    assert!(store.session(&mine(), session_id(1)).await.expect("readable").is_some());
    store.shutdown().await;
    disk.store.shutdown().await;
}

/// The files of a store with some commits, as a crash leaves them, with one wrong bit in the middle of the log.
async fn with_a_damaged_log() -> tempfile::TempDir {
    let disk = on_disk();
    disk.store.apply(running()).await.expect("new");
    for seq in 1..=20 {
        disk.store.apply(events(1, [seq])).await.expect("running");
    }
    let after = tempfile::tempdir().expect("a temporary folder can be made");
    for name in ["vm-system.db", "vm-system.db-wal", "vm-system.db-shm"] {
        std::fs::copy(disk.folder.path().join(name), after.path().join(name)).expect("the file is there");
    }
    disk.store.shutdown().await;
    let path = after.path().join("vm-system.db-wal");
    let mut log = std::fs::read(&path).expect("ours");
    let used = log.len() - log.iter().rev().take_while(|byte| **byte == 0).count();
    // Behind the schema and the first commits.
    log[used - 5 * (4_096 + 24) + 30] ^= 1;
    std::fs::write(&path, log).expect("ours");
    after
}

#[tokio::test]
async fn damaged_log_is_refused_unless_the_damage_is_accepted_or_may_be_of_a_power_cut() {
    let damaged = with_a_damaged_log().await;
    let full = options(damaged.path());
    let error = open_sqlite(full.clone()).expect_err("acknowledged events would be lost");
    let OpenError::DamagedLog { frame, commits, lost_frames, .. } = error else { panic!("{error}") };
    assert!(frame > 0 && commits > 1 && lost_frames > Some(0), "{frame} {commits} {lost_frames:?}");
    let normal = StoreOptions { durability: Durability::Normal, ..options(damaged.path()) };
    let accepted = StoreOptions { accepts_damage: true, ..full.clone() };
    for (options, damaged) in [(accepted, damaged), (normal, with_a_damaged_log().await)] {
        let options = StoreOptions { state_dir: damaged.path().to_owned(), ..options };
        let store = open_sqlite(options).expect("what precedes the damage is whole");
        let read = store.events(execution_id(1), 0, 0).await.expect("readable").len();
        assert!((1..20).contains(&read), "{read} events");
        assert!(damaged.path().join("vm-system.db-wal.damaged").exists(), "the log is kept");
        store.apply(events(1, [read as u64 + 1])).await.expect("writable");
        store.shutdown().await;
        let again = StoreOptions { state_dir: damaged.path().to_owned(), ..full.clone() };
        open_sqlite(again).expect("the damage is gone").shutdown().await;
    }
}

#[tokio::test]
async fn log_of_an_earlier_time_is_refused_and_put_aside_where_that_is_accepted() {
    let disk = on_disk();
    disk.store.apply(template(1, &"early".repeat(2_000))).await.expect("new");
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let copy =
        |from: &Path, to: &Path, name: &str| std::fs::copy(from.join(name), to.join(name)).expect("there");
    copy(disk.folder.path(), folder.path(), "vm-system.db-wal");
    disk.store.shutdown().await;
    // The first writes of the second owner are in the database file with its end, the rest in the log of the third.
    for n in 2..4 {
        let store = open_sqlite(options(disk.folder.path())).expect("it has no owner");
        store.apply(template(n, &"late".repeat(2_000 + usize::from(n)))).await.expect("new");
        store.shutdown().await;
    }
    let log = disk.folder.path().join("vm-system.db-wal");
    copy(folder.path(), disk.folder.path(), "vm-system.db-wal");
    let error = open_sqlite(options(disk.folder.path())).expect_err("the log is older");
    assert!(matches!(error, OpenError::OlderLog { .. }) && error.to_string().contains("older"), "{error}");
    assert!(log.exists(), "nothing was changed");
    let accepting = StoreOptions { accepts_damage: true, ..options(disk.folder.path()) };
    let store = open_sqlite(accepting).expect("the damage is accepted");
    let found = store.templates(&mine(), Page::ALL).await.expect("readable");
    assert_eq!(found.len(), 3, "all that the database file has");
    assert!(disk.folder.path().join("vm-system.db-wal.saved").exists());
    store.shutdown().await;
}

/// Every mix of a database with a log of the same or an earlier time, and with an index or none, of one process is refused, or is what was
/// stored when the log was copied.
#[tokio::test]
async fn files_of_different_times_are_refused_or_lose_nothing_that_the_database_has() {
    let disk = on_disk();
    let names = async |store: &crate::StoreHandle| -> Vec<String> {
        let found = store.templates(&mine(), Page::ALL).await.expect("readable");
        found.into_iter().map(|row| row.detail.template.name).collect()
    };
    let other = Connection::open(database(disk.folder.path())).expect("a database");
    let reader = Connection::open(database(disk.folder.path())).expect("a database");
    let mut copies = Vec::new();
    let mut n = 0;
    // Commits; k: the log is copied into the database, as far as the reader that began (r) allows. After all of it is copied the next
    // commit begins a new generation of the log.
    for steps in ["ccc", "cc", "cck", "crcck", "cckcc", "k", "ccc"] {
        for step in steps.chars() {
            match step {
                'c' => {
                    n += 1;
                    disk.store.apply(template(n, &format!("{n}-{}", "x".repeat(9_000)))).await.expect("new");
                }
                'k' => {
                    let copy = "PRAGMA wal_checkpoint(PASSIVE)";
                    let is_busy = other.query_row(copy, [], |row| row.get::<_, bool>(0));
                    assert_eq!(is_busy, Ok(false), "nobody else copies so little");
                }
                _ => reader.execute_batch("BEGIN; SELECT count(*) FROM templates").expect("a snapshot"),
            }
        }
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        for ending in ["", "-wal", "-shm"] {
            let name = format!("vm-system.db{ending}");
            std::fs::copy(disk.folder.path().join(&name), folder.path().join(&name)).expect("there");
        }
        copies.push((folder, names(&disk.store).await));
        if !reader.is_autocommit() {
            reader.execute_batch("COMMIT").expect("begun");
        }
    }
    drop((other, reader));
    disk.store.shutdown().await;
    let mut refused = 0;
    for (at, (file, _)) in copies.iter().enumerate() {
        for (of, (log, stored)) in copies.iter().enumerate().take(at + 1) {
            for index in [None, Some(&copies[at]), Some(&copies[of])] {
                let folder = tempfile::tempdir().expect("a temporary folder can be made");
                let copy = |from: &Path, ending| {
                    let name = format!("vm-system.db{ending}");
                    std::fs::copy(from.join(&name), folder.path().join(&name)).expect("there");
                };
                copy(file.path(), "");
                copy(log.path(), "-wal");
                if let Some((index, _)) = index {
                    copy(index.path(), "-shm");
                }
                let alone = database_alone(&database(folder.path()));
                match open_sqlite(options(folder.path())) {
                    Ok(store) => {
                        let found = names(&store).await;
                        assert!(
                            found == *stored,
                            "database {at}, log {of}: {} of {}",
                            found.len(),
                            stored.len()
                        );
                        assert!(alone <= found.len() as i64, "database {at}, log {of}: it had {alone}");
                        assert!(store.check().await.expect("readable").ok, "database {at}, log {of}");
                        store.shutdown().await;
                    }
                    Err(OpenError::OlderLog { .. } | OpenError::DamagedLog { .. }) => {
                        assert!(at != of, "database and log {at} are of one time");
                        refused += 1;
                    }
                    Err(error) => panic!("database {at}, log {of}: {error}"),
                }
            }
        }
    }
    assert!(refused > 0, "no mix lost anything");
}

/// The templates in a database file without its log.
fn database_alone(path: &Path) -> i64 {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY | rusqlite::OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(format!("file:{}?immutable=1", path.display()), flags);
    let count = "SELECT count(*) FROM templates";
    connection.and_then(|c| c.query_row(count, [], |row| row.get(0))).unwrap_or(0)
}

#[tokio::test]
async fn used_copy_of_a_database_can_be_opened_without_its_log() {
    let disk = on_disk();
    disk.store.apply(running()).await.expect("new");
    disk.store.apply(events(1, 1..=20)).await.expect("running");
    let used = tempfile::tempdir().expect("a temporary folder can be made");
    let path = database(used.path());
    // As a deleted database is saved, and as backups are made.
    let connection = Connection::open(database(disk.folder.path())).expect("a database");
    connection.execute("VACUUM INTO ?1", [path.to_str().expect("UTF-8")]).expect("a copy");
    drop(connection);
    disk.store.shutdown().await;
    assert_eq!(&std::fs::read(&path).expect("ours")[18..20], [1, 1], "it has no log yet");

    let full = StoreOptions { durability: Durability::Full, ..options(used.path()) };
    let store = open_sqlite(full).expect("a whole copy");
    store.apply(events(1, 21..=22)).await.expect("running");
    assert_eq!(&std::fs::read(&path).expect("ours")[18..20], [2, 2], "the file says that it has a log");
    // A SIGKILL, and the log is lost.
    let lost = tempfile::tempdir().expect("a temporary folder can be made");
    for name in ["vm-system.db", "vm-system.db-shm"] {
        std::fs::copy(used.path().join(name), lost.path().join(name)).expect("ours");
    }
    let accepted =
        StoreOptions { durability: Durability::Full, accepts_damage: true, ..options(lost.path()) };
    let without_log = open_sqlite(accepted).expect("at the first attempt");
    assert_eq!(without_log.events(execution_id(1), 0, 0).await.expect("readable").len(), 20);
    without_log.shutdown().await;
    store.shutdown().await;
}

#[tokio::test]
async fn log_without_a_name_is_called_copied_only_when_it_is() {
    let disk = on_disk();
    disk.store.apply(running()).await.expect("new");
    let path = database(disk.folder.path());
    let reader = Connection::open(&path).expect("a database");
    reader.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema").expect("a snapshot");
    disk.store.apply(events(1, [1])).await.expect("running");
    std::fs::remove_file(disk.folder.path().join("vm-system.db-wal")).expect("it is there");
    let fault = || disk.store.status().fault;
    let missing = |is_copied| Some(DatabaseFault::LogMissing { is_copied });
    assert_eq!(fault(), missing(false));
    disk.store.apply(events(1, [2])).await.expect("running");
    assert_eq!(fault(), missing(false), "a reader uses the log");
    let hint = fault().expect("a fault").hint();
    assert!(hint.contains("could not be copied"), "{hint}");
    drop(reader);
    // The writer notices within seconds that the log has no name.
    let until = Instant::now() + Duration::from_mins(1);
    let mut seq = 3;
    while fault() != missing(true) && Instant::now() < until {
        disk.store.apply(events(1, [seq])).await.expect("running");
        seq += 1;
    }
    assert_eq!(fault(), missing(true));
    let hint = fault().expect("a fault").hint();
    assert!(hint.contains("is copied into the database file"), "{hint}");
    disk.store.shutdown().await;
}

#[tokio::test]
async fn saved_copy_without_its_database_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let saved = folder.path().join("vm-system.db.saved");
    std::fs::write(&saved, "a database").expect("ours");
    let error = open_sqlite(options(folder.path())).expect_err("it would begin with an empty database");
    assert!(
        matches!(error, OpenError::Deleted { .. }) && error.to_string().contains("vm-system.db.saved"),
        "{error}"
    );
    assert!(!folder.path().join("vm-system.db").exists());

    let database = folder.path().join("vm-system.db");
    std::fs::write(&database, "another file").expect("ours");
    let error = open_sqlite(options(folder.path())).expect_err("which of the two is right is not known");
    assert!(error.to_string().contains("was replaced while a supervisor used it"), "{error}");
    assert_eq!(std::fs::read(&database).expect("it stays"), b"another file");
}

#[tokio::test]
async fn empty_database_beside_its_log_is_refused_and_the_log_stays() {
    let disk = on_disk();
    disk.store.apply(running()).await.expect("new");
    let killed = tempfile::tempdir().expect("a temporary folder can be made");
    let log = killed.path().join("vm-system.db-wal");
    std::fs::copy(database(disk.folder.path()).with_extension("db-wal"), &log).expect("it is open");
    std::fs::write(database(killed.path()), []).expect("ours");
    let bytes = std::fs::metadata(&log).expect("it was copied").len();
    let error = open_sqlite(options(killed.path())).expect_err("SQLite would delete the log");
    assert!(matches!(error, OpenError::Emptied { .. }), "{error}");
    let error = crate::check_file(&database(killed.path())).expect_err("nothing can be checked");
    assert!(matches!(error, OpenError::Emptied { .. }), "{error}");
    std::fs::remove_file(database(killed.path())).expect("ours");
    let error = open_sqlite(options(killed.path())).expect_err("it would begin with an empty database");
    assert!(matches!(error, OpenError::Emptied { .. }), "{error}");
    assert_eq!(std::fs::metadata(&log).expect("it stays").len(), bytes);
    assert!(!database(killed.path()).exists());
    disk.store.shutdown().await;
}

#[tokio::test]
async fn database_of_another_program_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    Connection::open(database(folder.path()))
        .and_then(|connection| connection.execute_batch("CREATE TABLE mine (a)"))
        .expect("it is not locked");
    let error = open_sqlite(options(folder.path())).expect_err("it is not ours");
    assert!(error.to_string().contains("another program"), "{error}");
}

#[tokio::test]
async fn file_that_is_no_database_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    std::fs::write(database(folder.path()), vec![b'x'; 8_192]).expect("the folder is writable");
    let error = open_sqlite(options(folder.path())).expect_err("it is no database");
    assert!(matches!(error, OpenError::Corrupt { .. }), "{error}");
}

#[tokio::test]
async fn damaged_page_is_found_when_the_database_is_opened() {
    let disk = on_disk();
    disk.store.apply(running()).await.expect("new");
    disk.store.apply(events(1, 1..=2_000)).await.expect("running");
    disk.store.shutdown().await;
    let path = database(disk.folder.path());
    let mut bytes = std::fs::read(&path).expect("the file is there");
    let middle = bytes.len() / 2 / 4_096 * 4_096;
    bytes[middle..middle + 4_096].fill(0xa5);
    std::fs::write(&path, bytes).expect("the file is ours");
    let error = open_sqlite(options(disk.folder.path())).expect_err("a page is damaged");
    assert!(matches!(error, OpenError::Corrupt { .. }), "{error}");
}

#[tokio::test]
async fn database_locked_by_another_process_is_refused_at_opening() {
    let disk = on_disk();
    disk.store.shutdown().await;
    let other = Connection::open(database(disk.folder.path())).expect("it is not locked");
    other
        .execute_batch("PRAGMA locking_mode = exclusive; BEGIN IMMEDIATE; DELETE FROM meta")
        .expect("it is not locked");
    let options = StoreOptions { busy_timeout: Duration::from_millis(20), ..options(disk.folder.path()) };
    let error = open_sqlite(options.clone()).expect_err("it is locked");
    assert!(matches!(error, OpenError::Locked { .. }), "{error}");
}

#[test]
fn state_directory_that_is_a_file_is_refused() {
    let file = tempfile::NamedTempFile::new().expect("a temporary file can be made");
    let error = open_sqlite(options(file.path())).expect_err("it is a file");
    assert!(matches!(error, OpenError::NotAFolder { .. }), "{error}");
}

#[tokio::test]
async fn state_directory_that_others_may_write_to_is_refused_with_the_mend() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    for open in [0o777, 0o770, 0o1777, 0o702] {
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(open)).expect("it is ours");
        let error = open_sqlite(options(folder.path())).expect_err("others may replace its files");
        assert!(matches!(error, OpenError::NotPrivate { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("chmod 0700") && text.contains(&format!("{open:04o}")), "{text}");
    }
    assert!(!database(folder.path()).exists(), "nothing is written there");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    open_sqlite(options(folder.path())).expect("others may look at it").shutdown().await;
}

#[tokio::test]
async fn old_records_are_deleted_without_a_request() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let store = open_sqlite(options(folder.path())).expect("an empty folder can be opened");
    store.apply(running()).await.expect("new");
    let end = Write::SessionEnd {
        id: session_id(1),
        status: vm_system_protocol::model::SessionStatus::Closed,
        at: vm_system_protocol::time::Timestamp(5_000),
        reason: vm_system_protocol::reason::CloseReason::Exited,
        last_error: None,
    };
    store.apply(vec![super::fixture::ended(1, 1), end]).await.expect("live");
    store.shutdown().await;
    let store = open_sqlite(StoreOptions::new(folder.path())).expect("our own database");
    // The writer deletes old rows after the turns of commits.
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while store.session(&mine(), session_id(1)).await.expect("readable").is_some() {
        assert!(std::time::Instant::now() < deadline, "an ended session of 1970 is still there");
        store.apply(Write::MetaSet { key: "k".to_owned(), value: None }).await.expect("always");
    }
    assert!(
        store.template(&mine(), template_id(1)).await.expect("readable").is_some(),
        "templates do not age"
    );
    assert_eq!(store.templates(&mine(), Page::ALL).await.expect("readable").len(), 1);
    store.shutdown().await;
}
