//! The log file against SQLite: at any time its bytes on the disk hold what was committed, and nothing else.

use super::{FRAME_HEADER_BYTES, GROWTH_BYTES, Log};
use crate::Durability;
use crate::sqlite::open::writable;
use rusqlite::Connection;
use std::path::Path;
use std::time::Duration;

const PAGE_BYTES: usize = 4_096;

fn open(folder: &Path, grows_ahead: bool) -> Log {
    Log::open(&folder.join("log"), true, grows_ahead).expect("the folder is ours")
}

fn header(ends_commit: bool) -> [u8; FRAME_HEADER_BYTES] {
    let mut header = [7; FRAME_HEADER_BYTES];
    header[4..8].copy_from_slice(&u32::from(ends_commit).to_be_bytes());
    header
}

fn size(folder: &Path) -> u64 {
    std::fs::metadata(folder.join("log")).expect("it was made").len()
}

/// Writes a frame as SQLite does; returns the offset after it.
fn frame(log: &mut Log, offset: u64, ends_commit: bool) -> u64 {
    log.write(&header(ends_commit), offset).expect("the store accepts it");
    log.write(&[9; PAGE_BYTES], offset + FRAME_HEADER_BYTES as u64).expect("the store accepts it");
    offset + (FRAME_HEADER_BYTES + PAGE_BYTES) as u64
}

#[test]
fn frames_of_a_commit_reach_the_file_with_its_last_one() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let mut log = open(folder.path(), false);
    log.write(&[1; 32], 0).expect("the store accepts it");
    let offset = frame(&mut log, 32, false);
    assert_eq!(size(folder.path()), 0, "not yet");
    let end = frame(&mut log, offset, true);
    assert_eq!(size(folder.path()), end);
    assert!(log.gathered.is_empty());
}

#[test]
fn header_that_is_written_again_without_its_page_does_not_wait() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let mut log = open(folder.path(), false);
    let second = frame(&mut log, 0, false);
    frame(&mut log, second, true);
    for offset in [0, second] {
        let mut again = header(offset == second);
        again[0] = 1;
        log.write(&again, offset).expect("the store accepts it");
        assert!(log.gathered.is_empty());
        assert_eq!(std::fs::read(folder.path().join("log")).expect("ours")[offset as usize], 1);
    }
    let mut log = open(folder.path(), false);
    frame(&mut log, 0, false);
    let mut seen = [0; FRAME_HEADER_BYTES];
    assert_eq!(log.read(&mut seen, 0).expect("readable"), FRAME_HEADER_BYTES);
    assert_eq!(seen, header(false), "a reader finds the written bytes");
}

#[test]
fn log_that_is_flushed_with_each_commit_grows_in_steps() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let mut log = open(folder.path(), true);
    let mut offset = 0;
    for _ in 0..2 {
        offset = frame(&mut log, offset, true);
        log.sync().expect("the disk is fine");
        assert_eq!(size(folder.path()), GROWTH_BYTES);
    }
    log.truncate(offset).expect("ours");
    frame(&mut log, offset, true);
    assert_eq!(size(folder.path()), GROWTH_BYTES, "a truncated log grows again");
}

/// The database as a supervisor that starts after a crash at this moment would find it.
fn after_a_crash(folder: &Path) -> Vec<(i64, i64)> {
    let copy = tempfile::tempdir().expect("a temporary folder can be made");
    for name in ["t.db", "t.db-wal"] {
        std::fs::copy(folder.join(name), copy.path().join(name)).expect("both files are there");
    }
    let found = Connection::open(copy.path().join("t.db")).expect("readable");
    let verdict: String = found.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("readable");
    assert_eq!(verdict, "ok");
    rows(&found)
}

fn rows(connection: &Connection) -> Vec<(i64, i64)> {
    let mut statement =
        connection.prepare("SELECT id, length(text) FROM t ORDER BY id").expect("there is a table");
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("readable");
    rows.collect::<Result<_, _>>().expect("readable")
}

/// Transactions that spill, are rolled back or are seen by other connections, and logs that start over: the files always
/// hold exactly the committed data.
fn keeps_what_was_committed(durability: Durability) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("t.db");
    std::fs::write(&path, []).expect("ours");
    let ours = writable(&path, durability, Duration::ZERO).expect("a new database");
    let other = writable(&path, durability, Duration::ZERO).expect("a second connection");
    let reader = Connection::open(&path).expect("a connection without our file system");
    // So small that large transactions reach the log before their end, and change what is there already.
    ours.pragma_update(None, "cache_size", 10).expect("known");
    ours.execute_batch("CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT").expect("new");
    let mut random = vm_system_testkit::SeededRandom::new(1);
    let mut random = move |below: u64| random.below(below);
    let mut committed = Vec::new();
    for _ in 0..120 {
        ours.execute_batch("BEGIN IMMEDIATE").expect("no other connection writes");
        let most = if random(4) == 0 { 60 } else { 3 };
        for _ in 0..=random(most) {
            let (id, length) = (random(200), random(9_000));
            let sql = "INSERT OR REPLACE INTO t VALUES (?1, printf('%.*c', ?2, 'x'))";
            ours.execute(sql, [id as i64, length as i64]).expect("the store accepts it");
        }
        if random(4) == 0 {
            assert_eq!(after_a_crash(folder.path()), committed, "nothing uncommitted is found");
            ours.execute_batch("ROLLBACK").expect("open");
        } else {
            let expected = rows(&ours);
            ours.execute_batch("COMMIT").expect("the store accepts it");
            committed = expected;
        }
        assert_eq!(rows(&reader), committed);
        assert_eq!(after_a_crash(folder.path()), committed);
        if random(6) == 0 {
            other.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).expect("no connection reads");
        }
    }
    ours.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("no connection reads");
    assert_eq!(std::fs::metadata(folder.path().join("t.db-wal")).expect("open").len(), 0);
    assert_eq!(rows(&reader), committed);
}

#[test]
fn log_of_normal_durability_holds_what_was_committed_at_every_moment() {
    keeps_what_was_committed(Durability::Normal);
}

#[test]
fn log_of_full_durability_holds_what_was_committed_at_every_moment() {
    keeps_what_was_committed(Durability::Full);
}
