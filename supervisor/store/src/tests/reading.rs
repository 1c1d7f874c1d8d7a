//! A disk that cannot be read: the query that reads it fails, other queries work, and nothing is cached.

use super::fixture::{OnDisk, events, execution_id, faulty, mine, on_disk, options, running};
use crate::{DatabaseFault, open_sqlite};
use rusqlite::Connection;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use vm_system_record::StoreError;

const EVENTS: u64 = 10_000;

/// A closed store of which the third quarter of the file holds only events.
async fn full_of_events() -> OnDisk {
    let disk = on_disk();
    disk.store.apply(running()).await.expect("new");
    disk.store.apply(events(1, 1..=EVENTS)).await.expect("running");
    disk.store.shutdown().await;
    disk
}

/// Overwrites the third quarter of the file; the file, its content before, and where the damage begins.
fn damage(disk: &OnDisk) -> (File, Vec<u8>, usize) {
    let path = disk.folder.path().join("vm-system.db");
    let whole = std::fs::read(&path).expect("the file is there");
    let offset = whole.len() / 2 / 4_096 * 4_096;
    let file = File::options().write(true).open(&path).expect("the file is ours");
    file.write_all_at(&vec![0xa5; whole.len() / 4], offset as u64).expect("writable");
    (file, whole, offset)
}

#[tokio::test]
async fn damaged_pages_fail_the_query_that_meets_them_and_heal() {
    let disk = full_of_events().await;
    let store = open_sqlite(options(disk.folder.path())).expect("the database is whole");
    let (file, whole, offset) = damage(&disk);
    let error = store.events(execution_id(1), 0, 0).await.expect_err("its pages are damaged");
    assert!(matches!(&error, StoreError::Unavailable(why) if why.contains("being examined")), "{error:?}");
    let fault = store.status().fault.expect("the status reports it");
    assert!(matches!(fault, DatabaseFault::Suspected(_)) && fault.refuses_work(), "{fault:?}");
    let row = store.execution(&mine(), execution_id(1)).await.expect("its page is whole");
    assert!(row.is_some_and(|row| !row.execution.degraded));
    file.write_all_at(&whole[offset..], offset as u64).expect("writable");
    let read = store.events(execution_id(1), 0, 0).await.expect("whole again");
    assert_eq!(read.len() as u64, EVENTS);
    assert!(store.status().fault.is_some(), "the rest may be damaged, until it has been examined");
    store.shutdown().await;
}

#[tokio::test]
async fn damage_that_a_check_finds_reaches_the_status() {
    let disk = full_of_events().await;
    let store = open_sqlite(options(disk.folder.path())).expect("the database is whole");
    assert!(store.check().await.expect("readable").ok && store.status().fault.is_none());
    damage(&disk);
    // The pages that a connection has read may be the ones before.
    let report = store.check().await.expect("readable");
    let fault = store.status().fault;
    assert!(!report.ok && matches!(fault, Some(DatabaseFault::Suspected(_))), "{report:?} {fault:?}");
    store.shutdown().await;
}

#[tokio::test]
async fn damaged_row_is_reported_and_refuses_no_work() {
    let disk = on_disk();
    disk.store.apply(running()).await.expect("new");
    let other = Connection::open(disk.folder.path().join("vm-system.db")).expect("readable");
    let sql = "PRAGMA ignore_check_constraints = ON; UPDATE executions SET status = 'nonsense'";
    other.execute_batch(sql).expect("no other connection writes");
    let error = disk.store.execution(&mine(), execution_id(1)).await.expect_err("there is no such status");
    assert!(matches!(error, StoreError::Corrupt(_)), "{error:?}");
    let fault = disk.store.status().fault.expect("the status reports it");
    assert!(matches!(fault, DatabaseFault::DamagedRow(_)) && !fault.refuses_work(), "{fault:?}");
    disk.store.shutdown().await;
}

#[tokio::test]
async fn a_file_that_is_out_of_reach_fails_queries_until_it_is_back() {
    let disk = on_disk();
    disk.store.apply(running()).await.expect("new");
    let (path, away) = (disk.folder.path().join("vm-system.db"), disk.folder.path().join("away"));
    std::fs::rename(&path, &away).expect("the file is ours");
    // No reader has been needed before, so one is opened now.
    let error = disk.store.execution(&mine(), execution_id(1)).await.expect_err("there is no file");
    let moved = "the database file was moved away while it was in use";
    assert_eq!(error, StoreError::Unavailable(moved.to_owned()));
    assert!(!path.exists(), "no empty database replaces it");
    std::fs::rename(&away, &path).expect("the file is ours");
    let row = disk.store.execution(&mine(), execution_id(1)).await.expect("readable");
    assert!(row.is_some());
    disk.store.apply(events(1, 1..=1)).await.expect("writes still succeed");
    disk.store.shutdown().await;
}

#[tokio::test]
async fn store_that_fails_queries_on_request_continues_to_write() {
    let (store, faults) = faulty();
    faults.set_reading(Some("the disk reports an error"));
    store.apply(running()).await.expect("new");
    let error = store.execution(&mine(), execution_id(1)).await.expect_err("not readable");
    assert_eq!(error, StoreError::Unavailable("the disk reports an error".to_owned()));
    faults.set_reading(None);
    assert!(store.execution(&mine(), execution_id(1)).await.expect("readable").is_some());
}
