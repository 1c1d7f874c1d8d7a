//! The check against SQLite itself: whatever is changed in a log, commits that SQLite's recovery does not find are reported, and what
//! a power cut, a rollback or an earlier generation leaves is not.

use super::{OlderThan, WalVerdict, check, is_without_database};
use crate::Durability;
use crate::sqlite::open::writable;
use rusqlite::Connection;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;
use vm_system_testkit::SeededRandom;

const SECTOR_BYTES: usize = 512;
const FRAME_BYTES: usize = 24 + 4_096;
const FILES: [&str; 3] = ["t.db", "t.db-wal", "t.db-shm"];

/// A database with a table, a row in it for each commit, and nothing copied back from its log.
struct Database {
    folder: TempDir,
    connection: Connection,
    commits: u64,
}

impl Database {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let path = folder.path().join("t.db");
        std::fs::write(&path, []).expect("ours");
        let connection = writable(&path, Durability::Full, Duration::ZERO).expect("a new database");
        let sql = "CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT";
        connection.execute_batch(sql).expect("new");
        connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).expect("no connection reads");
        Self { folder, connection, commits: 0 }
    }

    fn commit(&mut self, bytes: u64) {
        self.commits += 1;
        let sql = "INSERT INTO t VALUES (?1, printf('%.*c', ?2, 'x'))";
        self.connection.execute(sql, [self.commits as i64, bytes as i64]).expect("the store accepts it");
    }

    /// As a process that was killed and the next one.
    fn reopen(&mut self) {
        let path = self.folder.path().join("t.db");
        self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("no one reads");
        let next = writable(&path, Durability::Full, Duration::ZERO).expect("ours");
        self.connection = next;
    }

    fn log(&self) -> Vec<u8> {
        std::fs::read(self.folder.path().join("t.db-wal")).expect("it was made")
    }

    /// Length of the log without the space for later frames (bytes).
    fn log_bytes(&self) -> usize {
        let log = self.log();
        log.len() - log.iter().rev().take_while(|byte| **byte == 0).count()
    }

    /// The files as a crash at this moment leaves them.
    fn copy(&self) -> Copied {
        let copy = tempfile::tempdir().expect("a temporary folder can be made");
        for name in FILES {
            std::fs::copy(self.folder.path().join(name), copy.path().join(name)).expect("all are there");
        }
        Copied(copy)
    }
}

struct Copied(TempDir);

impl Copied {
    fn again(&self) -> Self {
        let copy = tempfile::tempdir().expect("a temporary folder can be made");
        for name in FILES {
            std::fs::copy(self.0.path().join(name), copy.path().join(name)).expect("all are there");
        }
        Self(copy)
    }

    fn change_log(&self, change: impl FnOnce(&mut Vec<u8>)) {
        let path = self.0.path().join("t.db-wal");
        let mut log = std::fs::read(&path).expect("it was copied");
        change(&mut log);
        std::fs::write(&path, log).expect("ours");
    }

    fn verdict(&self) -> WalVerdict {
        let [database, log, index] = FILES.map(|name| self.0.path().join(name));
        check(&log, &index, &database).expect("readable")
    }

    fn verdict_without_index(&self) -> WalVerdict {
        let [database, log, _] = FILES.map(|name| self.0.path().join(name));
        check(&log, Path::new("/nowhere"), &database).expect("readable")
    }

    /// Rows that SQLite finds.
    fn rows(&self) -> u64 {
        let connection = Connection::open(self.0.path().join("t.db")).expect("a file");
        connection.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0)).unwrap_or(0) as u64
    }
}

#[test]
fn commits_that_recovery_does_not_find_are_reported() {
    let mut random = SeededRandom::new(3);
    let mut database = Database::new();
    for _ in 0..12 {
        database.commit(random.below(9_000));
    }
    let bytes = database.log_bytes() as u64;
    let mut lost_most = 0;
    for turn in 0..300 {
        let copy = database.copy();
        // The header, then anywhere.
        let offset = if turn < 32 { turn } else { random.below(bytes) };
        let bit = 1 << random.below(8);
        copy.change_log(|log| log[offset as usize] ^= bit);
        let (verdict, alone) = (copy.verdict(), copy.verdict_without_index());
        let lost = database.commits - copy.rows();
        assert!(lost > 0, "recovery ends at byte {offset}");
        let WalVerdict::Damaged(damage) = verdict else { panic!("byte {offset}: {verdict:?}, {lost} lost") };
        assert!(damage.lost_frames.is_some_and(|frames| frames >= lost), "byte {offset}: {damage:?}");
        let is_damaged = matches!(alone, WalVerdict::Damaged(_));
        assert!(is_damaged || lost <= 2, "byte {offset}, without the index: {alone:?}, {lost} lost");
        lost_most = lost_most.max(lost);
    }
    assert_eq!(lost_most, database.commits, "the header was changed too");
}

#[test]
fn log_that_was_cut_is_reported_by_its_index() {
    let mut database = Database::new();
    for _ in 0..4 {
        database.commit(100);
    }
    let copy = database.copy();
    let bytes = database.log_bytes();
    copy.change_log(|log| log.truncate(bytes / 2));
    assert!(matches!(copy.verdict(), WalVerdict::Damaged(damage) if damage.lost_frames > Some(0)));
}

#[test]
fn log_that_was_deleted_is_reported_unless_all_of_it_was_copied() {
    let mut database = Database::new();
    database.commit(100);
    let remove_log =
        |copy: &Copied| std::fs::remove_file(copy.0.path().join("t.db-wal")).expect("it was copied");
    let copy = database.copy();
    remove_log(&copy);
    assert!(matches!(copy.verdict(), WalVerdict::Damaged(damage) if damage.lost_frames > Some(0)));
    assert_eq!(copy.verdict_without_index(), WalVerdict::Whole, "nothing is known");
    database
        .connection
        .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
        .expect("no connection reads");
    let copy = database.copy();
    remove_log(&copy);
    assert_eq!((copy.verdict(), copy.rows()), (WalVerdict::Whole, database.commits));
}

/// Under `full` only the last transaction is not flushed yet: of its sectors any part may have reached the disk.
#[test]
fn what_a_power_cut_leaves_of_the_last_transaction_is_no_damage() {
    let mut random = SeededRandom::new(5);
    let mut database = Database::new();
    for _ in 0..3 {
        database.commit(random.below(9_000));
    }
    let before = database.copy();
    let written = database.commits;
    database.commit(40_000);
    let after = database.log();
    let mut torn = 0;
    for _ in 0..100 {
        let cut = TempDir::new().expect("a temporary folder can be made");
        for name in FILES {
            std::fs::copy(before.0.path().join(name), cut.path().join(name)).expect("all are there");
        }
        let cut = Copied(cut);
        cut.change_log(|log| {
            log.resize(after.len().max(log.len()), 0);
            for at in (0..after.len()).step_by(SECTOR_BYTES) {
                let sector = at..(at + SECTOR_BYTES).min(after.len());
                if random.below(4) > 0 {
                    log[sector.clone()].copy_from_slice(&after[sector]);
                }
            }
        });
        let verdict = cut.verdict();
        assert!(!matches!(verdict, WalVerdict::Damaged(_)), "{verdict:?}");
        assert!(!matches!(cut.verdict_without_index(), WalVerdict::Damaged(_)));
        assert!(cut.rows() >= written);
        torn += u64::from(verdict == WalVerdict::Torn);
    }
    assert!(torn > 0, "some have the end of the transaction without all of it");
}

#[test]
fn frames_of_an_earlier_generation_are_no_damage() {
    let mut database = Database::new();
    for _ in 0..5 {
        database.commit(9_000);
    }
    let old_bytes = database.log_bytes();
    database
        .connection
        .query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(()))
        .expect("no connection reads");
    assert_eq!(
        database.copy().verdict(),
        WalVerdict::Whole,
        "before the next commit the old header is still there"
    );
    database.commit(1);
    let copy = database.copy();
    assert_eq!((copy.verdict(), copy.verdict_without_index()), (WalVerdict::Whole, WalVerdict::Whole));
    copy.change_log(|log| log[old_bytes - 5_000] ^= 1);
    assert_eq!(copy.verdict(), WalVerdict::Whole, "what is changed is in the database already");
    assert_eq!(copy.rows(), database.commits);
}

#[test]
fn log_of_an_earlier_time_is_reported_by_a_later_index_and_by_a_later_database() {
    let mut database = Database::new();
    let mut copies = vec![];
    for generation in 0..4 {
        for _ in 0..3 {
            database.commit(9_000);
            copies.push((generation, database.copy()));
        }
        // Each other one is left by another process.
        if generation % 2 == 1 {
            database.reopen();
        } else {
            let restart = "PRAGMA wal_checkpoint(RESTART)";
            database.connection.query_row(restart, [], |_| Ok(())).expect("no connection reads");
        }
    }
    assert!(copies.iter().all(|(_, copy)| copy.verdict() == WalVerdict::Whole));
    for (early, (log_generation, old)) in copies.iter().enumerate() {
        for (generation, new) in &copies[early + 1..] {
            // Opening a copy empties its log.
            let (mixed, all) = (new.again(), new.again().rows());
            std::fs::copy(old.0.path().join("t.db-wal"), mixed.0.path().join("t.db-wal")).expect("ours");
            let verdict = mixed.verdict();
            if log_generation / 2 == generation / 2 && verdict == WalVerdict::Whole {
                // Within one process the index has the order of the generations.
                assert_eq!(mixed.rows(), all, "generation {log_generation} beside {generation}");
            }
            // The changes of the second process are in the database with the end of its first generation.
            if *generation == 3 && *log_generation < 2 {
                let without = mixed.verdict_without_index();
                assert_eq!(without, WalVerdict::Older(OlderThan::Database));
            }
        }
    }
}

#[test]
fn frames_of_a_transaction_that_was_rolled_back_are_no_damage() {
    let mut database = Database::new();
    database.commit(1);
    // So small that the transaction reaches the log before its end.
    database.connection.pragma_update(None, "cache_size", 10).expect("known");
    database.connection.execute_batch("BEGIN").expect("no other connection writes");
    let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100) \
               INSERT INTO t SELECT i + 1000, printf('%.*c', 9000, 'x') FROM n";
    database.connection.execute(sql, []).expect("the store accepts it");
    database.connection.execute_batch("ROLLBACK").expect("open");
    database.commit(1);
    let copy = database.copy();
    assert_eq!((copy.verdict(), copy.verdict_without_index()), (WalVerdict::Whole, WalVerdict::Whole));
    assert_eq!(copy.rows(), database.commits);
}

/// On a full disk a commit can be refused after it was written.
#[test]
fn commits_that_were_refused_are_no_damage_after_a_kill() {
    let mut database = Database::new();
    for _ in 0..3 {
        database.commit(100);
    }
    let before = database.copy();
    let acknowledged = database.commits;
    let refused_from = database.log_bytes();
    for _ in 0..4 {
        database.commit(9_000);
    }
    let refused = database.log();
    // The same database, in which these were refused and two small ones followed.
    let path = before.0.path().join("t.db");
    let connection = writable(&path, Durability::Full, Duration::ZERO).expect("a copy");
    let index = || std::fs::read(before.0.path().join("t.db-shm")).expect("it is open");
    let mut indexes = vec![index()];
    for id in [100, 101] {
        connection.execute("INSERT INTO t VALUES (?1, 'x')", [id]).expect("it fits");
        indexes.push(index());
    }
    let log = std::fs::read(before.0.path().join("t.db-wal")).expect("it is open");
    let killed = |index: &[u8]| {
        let copy = database.copy();
        std::fs::copy(&path, copy.0.path().join("t.db")).expect("readable");
        std::fs::write(copy.0.path().join("t.db-shm"), index).expect("ours");
        copy.change_log(|all| {
            let content = log.len() - log.iter().rev().take_while(|byte| **byte == 0).count();
            let end = 32 + (content - 32).next_multiple_of(FRAME_BYTES);
            assert!(refused_from < end && end < refused.len(), "some of the refused frames are left");
            *all = [&log[..end], &refused[end..]].concat();
        });
        copy
    };
    let exact = killed(&indexes[2]);
    let alone = exact.verdict_without_index();
    assert!(matches!(alone, WalVerdict::Damaged(_)), "{alone:?}");
    assert_eq!((exact.verdict(), exact.rows()), (WalVerdict::Torn, acknowledged + 2));
    // It was killed between the last commit and the index.
    assert_eq!(killed(&indexes[1]).verdict(), WalVerdict::Torn);
    // Of an index that is older, such as one after a power cut, nothing is known.
    assert!(matches!(killed(&indexes[0]).verdict(), WalVerdict::Damaged(_)));
}

#[test]
fn log_that_lost_all_its_content_is_reported_by_its_index() {
    let mut database = Database::new();
    database.commit(100);
    for bytes in [0, 10, 31, 32, 5_000] {
        let copy = database.copy();
        copy.change_log(|log| *log = vec![0; bytes]);
        let verdict = copy.verdict();
        let is_reported = matches!(verdict, WalVerdict::Damaged(damage) if damage.lost_frames > Some(0));
        assert!(is_reported, "{bytes} zeros: {verdict:?}");
    }
    let emptied = "PRAGMA wal_checkpoint(TRUNCATE)";
    database.connection.query_row(emptied, [], |_| Ok(())).expect("no connection reads");
    assert_eq!((database.log().len(), database.copy().verdict()), (0, WalVerdict::Whole));
}

#[test]
fn log_beside_an_empty_database_is_noticed() {
    let mut database = Database::new();
    database.commit(100);
    let copy = database.copy();
    let (path, log) = (copy.0.path().join("t.db"), copy.0.path().join("t.db-wal"));
    assert!(!is_without_database(&path, &log).expect("readable"));
    std::fs::write(&path, []).expect("ours");
    assert!(is_without_database(&path, &log).expect("readable"));
    std::fs::remove_file(&path).expect("ours");
    assert!(is_without_database(&path, &log).expect("readable"));
    std::fs::write(&log, []).expect("ours");
    assert!(!is_without_database(&path, &log).expect("readable"), "a database that was just made");
}

#[test]
fn no_log_and_one_without_a_commit_are_whole() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let [log, index, database] = ["log", "index", "database"].map(|name| folder.path().join(name));
    let verdict = || check(&log, &index, &database).expect("readable");
    assert_eq!(verdict(), WalVerdict::Whole);
    for bytes in [0, 10, 32, 5_000, 1 << 20] {
        std::fs::write(&log, vec![0; bytes]).expect("ours");
        assert_eq!(verdict(), WalVerdict::Whole, "{bytes} zeros");
    }
}
