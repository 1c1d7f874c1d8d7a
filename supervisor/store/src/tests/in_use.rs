//! A database whose log is lost after a kill, and all that looks like it and is not.

use super::fixture::{events, execution_id, on_disk, options, running};
use crate::{Durability, OpenError, StoreHandle, StoreOptions, check_file, open_sqlite};
use rusqlite::Connection;
use std::path::Path;

const FILES: [&str; 3] = ["vm-system.db", "vm-system.db-wal", "vm-system.db-shm"];
const FRAME: u64 = 24 + 4_096;

/// The files that a kill leaves: copied while the store is open.
fn killed(from: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    for name in FILES {
        std::fs::copy(from.join(name), folder.path().join(name)).expect("the file is there");
    }
    folder
}

async fn count(store: &StoreHandle) -> usize {
    store.events(execution_id(1), 0, 0).await.expect("readable").len()
}

fn has_mark(folder: &Path) -> bool {
    let name = format!("file:{}?immutable=1", folder.join(FILES[0]).display());
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY | rusqlite::OpenFlags::SQLITE_OPEN_URI;
    let alone = Connection::open_with_flags(name, flags).expect("a database");
    let sql = "SELECT count(*) FROM meta WHERE key = 'in_use'";
    alone.query_row(sql, [], |row| row.get::<_, i64>(0)).expect("ours") == 1
}

/// A change of a file.
#[derive(Debug, Clone, Copy)]
enum Loss {
    None,
    Deleted,
    Cut(u64),
    Zeros,
}

fn lose(path: &Path, loss: Loss) {
    let cut = |bytes| {
        let file = std::fs::File::options().write(true).open(path).expect("it is there");
        file.set_len(bytes).expect("ours");
        file
    };
    match loss {
        Loss::None => {}
        Loss::Deleted => std::fs::remove_file(path).expect("it is there"),
        Loss::Cut(bytes) => drop(cut(bytes)),
        Loss::Zeros => {
            let bytes = std::fs::metadata(path).expect("it is there").len();
            cut(0).set_len(bytes).expect("ours");
        }
    }
}

#[tokio::test]
async fn log_that_is_lost_after_a_kill_is_refused_unless_that_is_accepted() {
    for durability in [Durability::Full, Durability::Normal] {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let with = |folder: &Path| StoreOptions { durability, ..options(folder) };
        // Twice: an older program, or a stop, has left no mark.
        open_sqlite(with(folder.path())).expect("an empty folder can be opened").shutdown().await;
        assert!(!has_mark(folder.path()), "it was stopped");
        let store = open_sqlite(with(folder.path())).expect("our own database");
        assert!(has_mark(folder.path()), "in the file, not only in the log");
        let at_the_start = killed(folder.path());
        store.apply(running()).await.expect("new");
        for seq in 1..=20 {
            store.apply(events(1, [seq])).await.expect("running");
        }
        let cuts = [Loss::Deleted, Loss::Cut(0), Loss::Cut(20), Loss::Cut(32), Loss::Zeros];
        let at_a_frame = (durability == Durability::Full).then_some(Loss::Cut(32 + 5 * FRAME));
        for loss in cuts.into_iter().chain(at_a_frame) {
            for of_index in [Loss::Deleted, Loss::Cut(0)] {
                let after = killed(folder.path());
                lose(&after.path().join(FILES[1]), loss);
                lose(&after.path().join(FILES[2]), of_index);
                let error = open_sqlite(with(after.path())).expect_err("acknowledged events are lost");
                assert!(matches!(error, OpenError::LostLog { .. }), "{durability:?} {loss:?}: {error}");
                let report = check_file(&after.path().join(FILES[0])).expect("readable");
                assert!(
                    !report.ok && report.findings.iter().any(|one| one.check == "log"),
                    "{loss:?}: {report:?}"
                );
                let accepting = StoreOptions { accepts_damage: true, ..with(after.path()) };
                let accepted = open_sqlite(accepting).expect("that is accepted");
                assert!(accepted.check().await.expect("readable").ok, "{loss:?}");
                accepted.apply(super::fixture::template(9, "t9")).await.expect("it can be written");
                accepted.shutdown().await;
                open_sqlite(with(after.path())).expect("it was stopped").shutdown().await;
            }
        }
        // Nothing is lost with the index, or the log, or where nothing was written since the start.
        let whole = killed(folder.path());
        lose(&whole.path().join(FILES[2]), Loss::Deleted);
        for whole in [killed(folder.path()), whole] {
            let again = open_sqlite(with(whole.path())).expect("nothing is lost");
            assert_eq!(count(&again).await, 20, "{durability:?}");
            again.shutdown().await;
        }
        lose(&at_the_start.path().join(FILES[1]), Loss::None);
        open_sqlite(with(at_the_start.path())).expect("nothing is lost").shutdown().await;
        store.shutdown().await;
    }
}

/// Each start that is refused, however often, leaves the database and its log as they are, and names the same cause.
#[tokio::test]
async fn start_that_is_refused_after_a_kill_leaves_the_log() {
    use std::os::unix::fs::FileExt as _;
    let disk = on_disk();
    disk.store.apply(running()).await.expect("new");
    disk.store.apply(events(1, 1..=2_000)).await.expect("running");
    let other = Connection::open(disk.folder.path().join(FILES[0])).expect("a database");
    other.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).expect("no one reads");
    disk.store.apply(events(1, [2_001])).await.expect("running");
    let after = killed(disk.folder.path());
    let file = after.path().join(FILES[0]);
    let pages = std::fs::metadata(&file).expect("it is there").len() / 4_096;
    let middle = pages / 2 * 4_096;
    let database = std::fs::File::options().read(true).write(true).open(&file).expect("ours");
    let mut page = [0; 4_096];
    database.read_exact_at(&mut page, middle).expect("ours");
    database.write_all_at(&[0xa5; 4_096], middle).expect("ours");
    let log = std::fs::read(after.path().join(FILES[1])).expect("it is there");
    for start in 0..3 {
        let error = open_sqlite(options(after.path())).expect_err("a page is damaged");
        assert!(matches!(error, OpenError::Corrupt { .. }), "start {start}: {error}");
        let left = std::fs::read(after.path().join(FILES[1])).expect("it is there");
        assert!(left == log, "start {start} changed the log: {} of {} bytes", left.len(), log.len());
    }
    database.write_all_at(&page, middle).expect("ours");
    let store = open_sqlite(options(after.path())).expect("nothing is lost");
    assert_eq!(count(&store).await, 2_001);
    store.shutdown().await;
    drop(other);
    disk.store.shutdown().await;
}

/// A kill, or a power loss, between the header of a log that starts over and its first frame.
#[tokio::test]
async fn log_that_was_starting_over_is_not_called_lost() {
    use std::os::unix::fs::FileExt as _;
    let disk = on_disk();
    disk.store.apply(running()).await.expect("new");
    let other = Connection::open(disk.folder.path().join(FILES[0])).expect("a database");
    let copied = other.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get::<_, bool>(0));
    assert_eq!(copied, Ok(false));
    let before = std::fs::read(disk.folder.path().join(FILES[1])).expect("ours");
    disk.store.apply(events(1, [1])).await.expect("running");
    let after = killed(disk.folder.path());
    let log =
        std::fs::File::options().read(true).write(true).open(after.path().join(FILES[1])).expect("ours");
    let mut header = [0; 32];
    log.read_exact_at(&mut header, 0).expect("ours");
    assert_ne!(header, before[..32], "it started over");
    log.write_all_at(&before[32..], 32).expect("ours");
    lose(&after.path().join(FILES[2]), Loss::Deleted);
    let store = open_sqlite(options(after.path())).expect("everything was copied before");
    assert_eq!(count(&store).await, 0, "the event was not acknowledged");
    store.shutdown().await;
    drop(other);
    disk.store.shutdown().await;
}

#[tokio::test]
async fn copies_of_a_database_in_use_have_no_mark() {
    use std::io::Read as _;
    let disk = on_disk();
    disk.store.apply(running()).await.expect("new");
    assert!(has_mark(disk.folder.path()));
    let copies = tempfile::tempdir().expect("a temporary folder can be made");
    let path = copies.path().join(FILES[0]);
    let mut backup = Vec::new();
    disk.store.backup().await.expect("there is space").read_to_end(&mut backup).expect("readable");
    std::fs::write(&path, backup).expect("ours");
    assert!(!has_mark(copies.path()), "a backup");
    open_sqlite(options(copies.path())).expect("a whole copy").shutdown().await;
    // By another program, which knows no mark.
    std::fs::remove_file(&path).expect("ours");
    let connection = Connection::open(disk.folder.path().join(FILES[0])).expect("a database");
    connection.execute("VACUUM INTO ?1", [path.to_str().expect("UTF-8")]).expect("a copy");
    drop(connection);
    assert!(has_mark(copies.path()));
    assert!(check_file(&path).expect("readable").ok);
    open_sqlite(options(copies.path())).expect("it never had a log").shutdown().await;
    disk.store.shutdown().await;
}
