//! Copies and checks of a database: what is found, and that nothing is found in a whole one.

use super::fixture::{console, ended, events, execution_id, execution_record, on_disk, running, started};
use crate::{check_file, open_sqlite};
use rusqlite::Connection;
use std::path::Path;
use std::sync::Arc;
use vm_system_protocol::control::CheckReport;
use vm_system_protocol::model::ExecutionStatus;
use vm_system_protocol::time::Timestamp;
use vm_system_record::{Batch, Write};

/// One execution that has ended with three events, and one that runs with two.
fn rows() -> Batch {
    let mut writes = running().0;
    let mut record = execution_record(1, 1);
    (record.metrics.events, record.metrics.output_bytes) = (3, 100);
    record.status = ExecutionStatus::Ok;
    record.ended_at = Some(Timestamp(9));
    writes.extend([
        events(1, 1..=3),
        Write::ExecutionEnded(Arc::new(record)),
        started(2, 1),
        events(2, 1..=2),
    ]);
    Batch(writes)
}

fn found(report: &CheckReport) -> Vec<(&str, Option<&str>)> {
    report.findings.iter().map(|finding| (finding.check.as_str(), finding.id.as_deref())).collect()
}

/// Changes the database as a program with a defect would, and checks it.
fn report_after(folder: &Path, sql: &str) -> CheckReport {
    let path = folder.join("vm-system.db");
    let connection = Connection::open(&path).expect("a database");
    connection.execute_batch(sql).expect("SQL of this test");
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("nobody else has it open");
    drop(connection);
    check_file(&path).expect("readable")
}

#[tokio::test]
async fn whole_database_has_no_findings_and_each_defect_has_one() {
    let disk = on_disk();
    disk.store.apply(rows()).await.expect("new");
    let online = disk.store.check().await.expect("readable");
    assert!(online.ok && online.findings.is_empty(), "{online:?}");
    disk.store.shutdown().await;
    let folder = disk.folder.path();
    let whole = report_after(folder, "");
    assert!(whole.ok && whole.schema.is_some() && whole.newest_record.is_some(), "{whole:?}");
    let (first, second) = (execution_id(1).to_string(), execution_id(2).to_string());
    for (damage, repair, check, id) in [
        (
            "CREATE TABLE kept AS SELECT * FROM events WHERE seq = 2; DELETE FROM events WHERE seq = 2",
            "INSERT INTO events SELECT * FROM kept; DROP TABLE kept",
            "events",
            &first,
        ),
        (
            "UPDATE executions SET events = events + 1 WHERE ended_at IS NOT NULL",
            "UPDATE executions SET events = events - 1 WHERE ended_at IS NOT NULL",
            "events",
            &first,
        ),
        (
            "UPDATE executions SET ended_at = 5 WHERE status = 'running'",
            "UPDATE executions SET ended_at = NULL WHERE status = 'running'",
            "executions",
            &second,
        ),
        (
            "UPDATE sessions SET status = 'crashed'",
            "UPDATE sessions SET status = 'ready'",
            "executions",
            &second,
        ),
        (
            "UPDATE owners SET bytes = bytes + 1",
            "UPDATE owners SET bytes = bytes - 1",
            "counters",
            &"owner-1".to_owned(),
        ),
    ] {
        let report = report_after(folder, damage);
        assert!(!report.ok && found(&report).contains(&(check, Some(id.as_str()))), "{damage}: {report:?}");
        assert_eq!(
            report_after(folder, repair),
            CheckReport { bytes: report.bytes, ..whole.clone() },
            "{damage}"
        );
    }
    let degraded =
        "UPDATE executions SET degraded = 1 WHERE ended_at IS NOT NULL; DELETE FROM events WHERE seq = 2";
    let known = report_after(folder, degraded);
    assert!(
        found(&known).iter().all(|(check, id)| *check != "events" || *id != Some(first.as_str())),
        "{known:?}"
    );
    let orphans = report_after(folder, "PRAGMA foreign_keys = OFF; DELETE FROM sessions");
    assert!(found(&orphans).iter().any(|(check, _)| *check == "references"), "{orphans:?}");
}

#[tokio::test]
async fn copy_has_what_was_committed_and_no_name() {
    use std::io::Read as _;
    let disk = on_disk();
    disk.store.apply(rows()).await.expect("new");
    let mut copy = disk.store.backup().await.expect("there is space");
    disk.store.apply(Write::Events([console(2, 3)].into())).await.expect("it is not locked");
    let mut bytes = Vec::new();
    copy.read_to_end(&mut bytes).expect("readable");
    let left: Vec<_> = std::fs::read_dir(disk.folder.path()).expect("readable").flatten().collect();
    assert!(!left.iter().any(|file| file.file_name().to_string_lossy().contains("backup")), "{left:?}");
    disk.store.shutdown().await;
    let restored = tempfile::tempdir().expect("a temporary folder can be made");
    let path = restored.path().join("vm-system.db");
    std::fs::write(&path, bytes).expect("writable");
    let report = check_file(&path).expect("readable");
    assert!(report.ok, "{report:?}");
    let store = open_sqlite(super::fixture::options(restored.path())).expect("a database of ours");
    assert_eq!(store.events(execution_id(2), 0, 0).await.expect("readable").len(), 2);
    store.apply(ended(2, 1)).await.expect("it can be written");
    store.shutdown().await;
}
