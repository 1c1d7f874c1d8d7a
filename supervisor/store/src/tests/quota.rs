//! Deletion above the quota, and the store's status until then.

use super::fixture::{
    console, ended, execution_id, execution_record, mine, options, owner, policy, running, session_id,
    session_record, started, template_id,
};
use crate::sqlite::STORED_BYTES;
use crate::{StoreHandle, StoreOptions, open_sqlite};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use vm_system_protocol::ids::ProgramId;
use vm_system_protocol::model::{Event, EventPayload, ExecutionStatus, Metrics, SessionStatus};
use vm_system_protocol::reason::CloseReason;
use vm_system_protocol::time::Timestamp;
use vm_system_record::{
    AuditEntry, Batch, Checkpoint, NewProgramVersion, PAGE_BYTES, Retention, Scope, Write, is_last_page,
};

fn session_ended() -> Write {
    Write::SessionEnd {
        id: session_id(1),
        status: SessionStatus::Closed,
        at: Timestamp(5_000),
        reason: CloseReason::Exited,
        last_error: None,
    }
}

/// The writer measures and deletes after the turns of commits.
async fn wait_until(store: &StoreHandle, what: &str, holds: impl AsyncFn(&StoreHandle) -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !holds(store).await {
        assert!(Instant::now() < deadline, "{what}");
        store.apply(Write::MetaSet { key: "k".to_owned(), value: None }).await.expect("always");
    }
}

/// As [`until`], but it leaves the writer idle.
async fn until_idle_work_is_done(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        tokio::task::yield_now().await;
    }
}

async fn fill(store: &StoreHandle, mebibytes: u64) {
    for seq in 1..=4 * mebibytes {
        let payload = EventPayload::Stdout { text: "x".repeat(256 << 10) };
        let event = Event { payload, ..console(1, seq) };
        store.apply(Write::Events([event].into())).await.expect("the store accepts it");
    }
}

fn retention(prune_above_mib: u64, quota_mib: u64) -> Retention {
    Retention {
        max_age: None,
        key_life: Duration::MAX,
        prune_above_bytes: prune_above_mib << 20,
        quota_bytes: quota_mib << 20,
        ..Retention::default()
    }
}

#[tokio::test]
async fn above_its_mark_the_oldest_ended_records_go_and_live_ones_stay() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let retention = retention(2, 64);
    let store = open_sqlite(StoreOptions { retention, ..options(folder.path()) }).expect("empty");
    store.apply(running()).await.expect("new");
    fill(&store, 4).await;
    wait_until(&store, "the size is never measured", async |store| store.status().bytes_used > 2 << 20).await;
    // Nothing has ended: nothing may be deleted, whatever its size.
    assert_eq!(store.events(execution_id(1), 0, 0).await.expect("readable").len(), 16);
    store.apply(vec![ended(1, 1), session_ended()]).await.expect("live");
    wait_until(&store, "an ended execution stays", async |store| {
        store.execution(&mine(), execution_id(1)).await.expect("readable").is_none()
    })
    .await;
    assert!(store.events(execution_id(1), 0, 0).await.expect("readable").is_empty(), "with its events");
    assert!(store.template(&mine(), template_id(1)).await.expect("readable").is_some(), "templates stay");
    wait_until(&store, "the size does not shrink", async |store| store.status().bytes_used < 2 << 20).await;
    store.shutdown().await;
}

/// A database as one that was read from a dump.
fn without_pointer_maps(path: &std::path::Path) {
    let connection = rusqlite::Connection::open(path).expect("it has no owner");
    connection.execute_batch("PRAGMA auto_vacuum = none; VACUUM").expect("nobody else has it open");
}

#[tokio::test]
async fn file_becomes_smaller_after_deletions_also_one_without_pointer_maps() {
    for has_maps in [true, false] {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let path = folder.path().join("vm-system.db");
        let open = || {
            let retention = retention(2, 512);
            open_sqlite(StoreOptions { retention, ..options(folder.path()) }).expect("it has no owner")
        };
        let mut store = open();
        store.apply(running()).await.expect("new");
        if !has_maps {
            store.shutdown().await;
            without_pointer_maps(&path);
            store = open();
        }
        assert!(store.status().gives_back);
        fill(&store, 48).await;
        // A record behind those that are deleted: its pages are moved.
        store.apply(started(2, 1)).await.expect("new");
        let kept: Vec<_> = (1..=500).map(|seq| console(2, seq)).collect();
        store.apply(Write::Events(kept.into())).await.expect("running");
        store.apply(ended(1, 1)).await.expect("live");
        store
            .apply(Write::PruneOwner { owner: owner(1), before: Timestamp(4_500), max_rows: 100 })
            .await
            .expect("ended");
        let free = || store.status().bytes_free;
        let size = || std::fs::metadata(&path).expect("there").len();
        // On a busy machine some is given back before all is free.
        let is_freed = async |_: &StoreHandle| free() > 40 << 20 || size() < 24 << 20;
        wait_until(&store, "free space is not reported", is_freed).await;
        until_idle_work_is_done("the file keeps its size", || size() < 24 << 20).await;
        until_idle_work_is_done("too much is kept", || free() < 20 << 20).await;
        assert!(free() > 8 << 20, "something is kept for what is written next");
        assert_eq!(store.events(execution_id(2), 0, 0).await.expect("readable").len(), 500);
        assert!(store.check().await.expect("readable").ok);
        store.shutdown().await;
    }
}

/// Larger ones are not written anew without a word: that would take long.
#[tokio::test]
async fn large_file_without_pointer_maps_keeps_its_form() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let open = || open_sqlite(options(folder.path())).expect("it has no owner");
    let store = open();
    store.apply(running()).await.expect("new");
    fill(&store, 65).await;
    store.shutdown().await;
    without_pointer_maps(&folder.path().join("vm-system.db"));
    let store = open();
    assert!(!store.status().gives_back, "health says so");
    store.shutdown().await;
}

#[tokio::test]
async fn above_its_quota_the_store_reports_it_until_enough_is_deleted() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let retention = retention(1, 2);
    let store = open_sqlite(StoreOptions { retention, ..options(folder.path()) }).expect("empty");
    assert!(!store.status().over_quota);
    store.apply(running()).await.expect("new");
    fill(&store, 4).await;
    wait_until(&store, "over its quota and silent", async |store| store.status().over_quota).await;
    // Admission concerns new requests; running executions are written to their end.
    store.apply(started(2, 1)).await.expect("still written");
    store.apply(vec![ended(1, 1), ended(2, 1), session_ended()]).await.expect("still written");
    wait_until(&store, "over its quota for ever", async |store| !store.status().over_quota).await;
    store.shutdown().await;
}

#[tokio::test]
async fn the_largest_owner_loses_records_first_and_no_other_owner_and_no_line_of_the_audit_log() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let store =
        open_sqlite(StoreOptions { retention: retention(2, 64), ..options(folder.path()) }).expect("empty");
    let audit = AuditEntry {
        at: Timestamp(1),
        owner: owner(1),
        api: "rest".to_owned(),
        verb: "template create".to_owned(),
        subject: "t".to_owned(),
        outcome: "ok".to_owned(),
    };
    // Execution 1 takes almost everything and runs on; 3 is the same owner's and has ended; 2 is another's and has ended.
    let mut metrics = execution_record(1, 1).metrics;
    metrics.output_bytes = 4 << 20;
    let status = execution_record(1, 1).status;
    let mut writes = running().0;
    writes.extend([
        Write::SessionInsert {
            owner: owner(2),
            session: Arc::new(session_record(2, 1)),
            policy: policy(),
            worktree: None,
        },
        Write::SessionReady { id: session_id(2) },
        started(2, 2),
        ended(2, 2),
        started(3, 1),
        ended(3, 1),
        Write::RunProgress { id: execution_id(1), status, metrics, limits: None },
        Write::Audit(Box::new(audit)),
    ]);
    store.apply(Batch(writes)).await.expect("new");
    fill(&store, 4).await;
    wait_until(&store, "ended records of the largest owner stay", async |store| {
        store.execution(&Scope::All, execution_id(3)).await.expect("readable").is_none()
    })
    .await;
    // It continues to write; the next searches find no ended records of it.
    let until_measured = Instant::now() + Duration::from_secs(2);
    wait_until(&store, "the time does not pass", async |_| Instant::now() > until_measured).await;
    let others = store.execution(&Scope::All, execution_id(2)).await.expect("readable");
    assert!(others.is_some(), "another owner lost records");
    assert!(store.execution(&mine(), execution_id(1)).await.expect("readable").is_some(), "it runs");
    assert_eq!(store.audit(&Scope::All, None, 10).await.expect("readable").len(), 1);
    store.shutdown().await;
}

#[tokio::test]
async fn events_are_read_in_pages_that_fit_into_memory() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let store = open_sqlite(StoreOptions { retention: retention(64, 64), ..options(folder.path()) });
    let store = store.expect("empty");
    store.apply(running()).await.expect("new");
    fill(&store, 20).await;
    let first = store.events(execution_id(1), 0, 1_000).await.expect("readable");
    assert!((60..70).contains(&first.len()), "{}", first.len());
    assert!(!is_last_page(&first, 1_000, PAGE_BYTES), "there are more");
    let rest = store.events(execution_id(1), first.len() as u64, 1_000).await.expect("readable");
    assert_eq!(first.len() + rest.len(), 80);
    assert!(is_last_page(&rest, 1_000, PAGE_BYTES));
    store.shutdown().await;
}

#[tokio::test]
async fn near_its_quota_an_owner_keeps_what_ended_a_moment_ago_and_above_it_loses_that_too() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let retention = Retention { owner_quota_bytes: 3_400_000, ..retention(64, 64) };
    let store = open_sqlite(StoreOptions { retention, ..options(folder.path()) }).expect("empty");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis();
    let mut young = execution_record(3, 1);
    young.status = ExecutionStatus::Ok;
    young.ended_at = Some(Timestamp(i64::try_from(now).expect("in range")));
    let executions = [started(2, 1), started(3, 1), ended(2, 1), Write::ExecutionEnded(Arc::new(young))];
    store.apply(Batch(running().0.into_iter().chain(executions).collect())).await.expect("new");
    let is_there = async |store: &StoreHandle, n| {
        store.execution(&mine(), execution_id(n)).await.expect("readable").is_some()
    };
    // The store counts only owners who write.
    let own = store.for_owner(&owner(1));
    let stores = async |output_bytes| {
        let running = execution_record(1, 1);
        let metrics = Metrics { output_bytes, ..running.metrics };
        own.apply(Write::RunProgress { id: running.id, status: running.status, metrics, limits: None })
            .await
            .expect("it runs");
    };
    stores(3_200_000).await;
    wait_until(&own, "the older one stays", async |store| !is_there(store, 2).await).await;
    assert!(is_there(&store, 3).await, "why it ended can be read");
    stores(3_500_000).await;
    wait_until(&own, "the younger one stays", async |store| !is_there(store, 3).await).await;
    store.shutdown().await;
}

fn version(name: &str, text: &str, at: i64) -> Write {
    let (id, digest) = (ProgramId::from_bytes([7; 16]), [text.len() as u8; 32]);
    Write::ProgramVersion(Box::new(NewProgramVersion {
        id,
        owner: owner(1),
        name: name.to_owned(),
        source: text.to_owned(),
        source_hash: digest,
        format: 1,
        code: Vec::new(),
        at: Timestamp(at),
    }))
}

#[tokio::test]
async fn unused_versions_of_the_largest_owner_are_deleted_however_young_they_are() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let store = open_sqlite(StoreOptions { retention: retention(2, 64), ..options(folder.path()) });
    let store = store.expect("empty");
    for length in 1..=8 {
        store.apply(version("p", &"x".repeat((1 << 20) + length), 1)).await.expect("new");
    }
    let id = ProgramId::from_bytes([7; 16]);
    wait_until(&store, "they stay", async |store| {
        store.program_versions(id, None, 100).await.expect("readable").len() == 1
    })
    .await;
    let newest = store.program_code(id, 8).await.expect("readable");
    assert!(newest.is_some(), "the newest version is the one that starts");
    store.shutdown().await;
}

#[tokio::test]
async fn what_an_owner_stores_is_known_whatever_it_wrote_and_after_a_restart() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let open = || {
        let retention = Retention { owner_quota_bytes: 1 << 20, ..retention(64, 64) };
        open_sqlite(StoreOptions { retention, ..options(folder.path()) }).expect("of this version")
    };
    let store = open();
    let own = store.for_owner(&owner(1));
    for n in 1..=40 {
        own.apply(version("p", &"x".repeat((32 << 10) + n), 1)).await.expect("the store accepts it");
    }
    wait_until(&store, "small batches count for nothing", async |store| store.is_full(&owner(1))).await;
    assert!(!store.is_full(&owner(2)));
    store.shutdown().await;
    let store = open();
    // The writer reads the sums as it begins.
    wait_until(&store, "a restart forgets it", async |store| store.is_full(&owner(1))).await;
    assert!(!store.is_full(&owner(2)));
    store.shutdown().await;
}

#[tokio::test]
async fn owner_that_writes_nothing_is_counted_after_the_background_has_deleted() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let store = open_sqlite(options(folder.path())).expect("empty");
    store.apply(running()).await.expect("new");
    store.shutdown().await;
    // A checkpoint in pieces that was never finished.
    let path = folder.path().join("vm-system.db");
    let connection = rusqlite::Connection::open(path).expect("writable");
    let pages = 5_000_u32;
    let id = execution_id(1);
    let unfinished = "INSERT INTO staged VALUES (?1, 1, 0)";
    connection.execute(unfinished, [id.as_bytes()]).expect("a row of a schema of our own");
    let page = "INSERT INTO state_pages VALUES (?1, ?2, 1, zeroblob(1024))";
    let transaction = connection.unchecked_transaction().expect("idle");
    for number in 0..pages {
        transaction.execute(page, rusqlite::params![id.as_bytes(), number]).expect("a row of ours");
    }
    transaction.commit().expect("writable");
    connection
        .execute_batch(&format!("INSERT OR REPLACE INTO owners {STORED_BYTES}"))
        .expect("rows of a schema of our own");
    let stored = "SELECT bytes FROM owners WHERE owner = 'owner-1'";
    let bytes: i64 = connection.query_row(stored, [], |row| row.get(0)).expect("a number");
    // So little that the quota deletes nothing, and counts nothing by that.
    let quota = bytes.unsigned_abs() * 3 / 2;
    drop(connection);
    let retention = Retention { owner_quota_bytes: quota, ..retention(64, 64) };
    let store = open_sqlite(StoreOptions { retention, ..options(folder.path()) }).expect("ours");
    let pages = (0..pages).map(|page| (page.into(), Some(vec![1; 1 << 10]))).collect();
    let cause = "pause".to_owned();
    let state =
        Checkpoint { execution: id, seq: 1, at: Timestamp(1), cause, pages, unweighed: None, written: 0 };
    wait_until(&store, "a state that fits is still refused", async |store| {
        store.for_owner(&owner(1)).apply(Write::Checkpoint(Box::new(state.clone()))).await.is_ok()
    })
    .await;
    store.shutdown().await;
}

#[tokio::test]
async fn what_an_owner_stores_is_counted_as_it_takes_place_in_the_file() {
    for (page_bytes, pages) in
        [(60, 20_000), (900, 4_000), (1_100, 2_000), (2_000, 2_000), (4_000, 2_000), (9_000, 500)]
    {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let store = open_sqlite(options(folder.path())).expect("empty");
        store.apply(running()).await.expect("new");
        let size = |sql: &str| {
            let connection =
                rusqlite::Connection::open(folder.path().join("vm-system.db")).expect("readable");
            connection.query_row(sql, [], |row| row.get::<_, f64>(0)).expect("a number")
        };
        let file =
            "SELECT 4096.0 * (page_count - freelist_count) FROM pragma_page_count, pragma_freelist_count";
        let (before, counted) = (size(file), "SELECT total(bytes) FROM owners WHERE owner <> '(commits)'");
        let counted_before = size(counted);
        let pages = (0..pages).map(|page| (page, Some(vec![1; page_bytes]))).collect();
        let (execution, cause) = (execution_id(1), "pause".to_owned());
        let checkpoint =
            Checkpoint { execution, seq: 1, at: Timestamp(1), cause, pages, unweighed: None, written: 0 };
        let file_bytes = checkpoint.file_bytes();
        store.apply(Write::Checkpoint(Box::new(checkpoint))).await.expect("the store accepts it");
        let (taken, counted) = (size(file) - before, size(counted) - counted_before);
        assert!(
            (0.8..1.6).contains(&(counted / taken)),
            "{page_bytes}: {counted} counted, {taken} in the file"
        );
        assert!((counted - file_bytes as f64).abs() < 1_000.0, "{page_bytes}: {counted} and {file_bytes}");
        store.shutdown().await;
    }
}
