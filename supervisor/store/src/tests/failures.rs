//! A full disk, a database that another process locks: an error to the caller, a mark on incomplete executions, and a
//! writer that continues when the disk works again.

use super::fixture::{
    console, ended, events, execution_id, execution_record, faulty, mine, on_disk, options, running, started,
};
use crate::{OpenError, StoreHandle, StoreOptions, open_sqlite};
use rusqlite::Connection;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use vm_system_protocol::model::{Event, EventPayload, ExecutionStatus, Metrics};
use vm_system_protocol::time::Timestamp;
use vm_system_record::{Batch, Checkpoint, StoreError, Write};

/// A file system of a few megabytes, unmounted with this value; none where mounting is not permitted.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount(megabytes: u32) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let size = format!("mode=0700,size={megabytes}m");
        let flags = nix::mount::MsFlags::empty();
        if nix::mount::mount(Some("tmpfs"), folder.path(), Some("tmpfs"), flags, Some(size.as_str())).is_err()
        {
            vm_system_testkit::skip("mount", "mounting a small file system is not permitted here");
            return None;
        }
        Some(Self(folder))
    }
    fn make_read_only(&self) {
        let flags = nix::mount::MsFlags::MS_REMOUNT | nix::mount::MsFlags::MS_RDONLY;
        nix::mount::mount(None::<&str>, self.path(), None::<&str>, flags, None::<&str>)
            .expect("nothing is open for writing");
    }
    fn limit_inodes(&self, most: u32) {
        let flags = nix::mount::MsFlags::MS_REMOUNT;
        let limit = format!("nr_inodes={most}");
        nix::mount::mount(None::<&str>, self.path(), None::<&str>, flags, Some(limit.as_str()))
            .expect("it has no more than that");
    }
    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a failed test may have left files open.
        let _ = nix::mount::umount2(self.0.path(), nix::mount::MntFlags::MNT_DETACH);
    }
}

fn large_event(seq: u64) -> Event {
    Event { payload: EventPayload::Stdout { text: "x".repeat(256 * 1_024) }, ..console(1, seq) }
}

/// Writes until the disk is full; returns the number of acknowledged events.
async fn fill(store: &StoreHandle) -> u64 {
    for seq in 1..1_000 {
        match store.apply(Write::Events([large_event(seq)].into())).await {
            Ok(_) => {}
            Err(StoreError::Unavailable(why)) => {
                assert!(why.contains("full"), "{why}");
                return seq - 1;
            }
            Err(error) => panic!("another failure: {error}"),
        }
    }
    panic!("the disk is never full")
}

#[tokio::test]
async fn retried_durable_step_leaves_no_mark() {
    let (store, faults) = faulty();
    store.apply(running()).await.expect("new");
    let (id, status) = (execution_id(1), ExecutionStatus::Running);
    let progress = Write::RunProgress { id, status, metrics: Metrics::default(), limits: None };
    let checkpoint = Checkpoint {
        execution: id,
        seq: 1,
        at: Timestamp(1),
        cause: "pause".to_owned(),
        pages: Vec::new(),
        unweighed: None,
        written: 0,
    };
    let step = Batch(vec![events(1, 1..=2), Write::Checkpoint(Box::new(checkpoint)), progress]);
    faults.set(Some("the disk is full"));
    store.apply(step.clone()).await.expect_err("it cannot be stored");
    faults.set(None);
    store.apply(step).await.expect("the store accepts it again");
    let row = store.execution(&mine(), id).await.expect("readable").expect("there");
    assert!(!row.execution.degraded, "nothing of it is missing");
}

#[tokio::test]
async fn full_disk_fails_the_caller_and_marks_the_execution_when_space_is_back() {
    let Some(disk) = SmallDisk::mount(8) else { return };
    let ballast = disk.path().join("ballast");
    // The largest size of the log: closing copies it into the database before deleting it.
    std::fs::write(&ballast, vec![0; 4 << 20]).expect("the disk is empty");
    let store = open_sqlite(options(disk.path())).expect("an empty database fits");
    store.apply(running()).await.expect("the store accepts it");
    store.apply(started(2, 1)).await.expect("the store accepts it");
    let acknowledged = fill(&store).await;
    assert!(acknowledged > 0, "some events were stored");
    assert!(store.status().failing.expect("the status reports it").contains("full"));
    let read = store.events(execution_id(1), 0, 0).await.expect("reads still succeed");
    assert_eq!(read.len() as u64, acknowledged, "exactly the acknowledged events are stored");
    let row = store.execution(&mine(), execution_id(1)).await.expect("readable").expect("there");
    assert!(!row.execution.degraded, "the mark needs a commit");

    std::fs::remove_file(ballast).expect("the ballast is ours");
    store.apply(ended(1, 1)).await.expect("the store accepts it again");
    assert_eq!(store.status().failing, None);
    let row = store.execution(&mine(), execution_id(1)).await.expect("readable").expect("there");
    assert!(row.execution.degraded, "its events are incomplete");
    let other = store.execution(&mine(), execution_id(2)).await.expect("readable").expect("there");
    assert!(!other.execution.degraded, "it lost nothing");
    store.shutdown().await;
    let store = open_sqlite(options(disk.path())).expect("the database is whole");
    assert_eq!(store.events(execution_id(1), 0, 0).await.expect("readable").len() as u64, acknowledged);
    store.shutdown().await;
}

#[tokio::test]
async fn batch_too_large_for_the_disk_does_not_fail_a_small_one_beside_it() {
    let Some(disk) = SmallDisk::mount(3) else { return };
    let store = open_sqlite(options(disk.path())).expect("an empty database fits");
    store.apply(running()).await.expect("the store accepts it");
    let large: Arc<[Event]> = (1..=40).map(large_event).collect();
    // Lazy: both wait for the urgent one, and share its turn.
    let large = store.submit_lazy(Write::Events(large)).await.expect("open");
    let small = store.submit_lazy(started(2, 1)).await.expect("open");
    store.apply(Batch::default()).await.expect("nothing to write");
    assert!(matches!(large.await, Err(StoreError::Unavailable(_))));
    small.await.expect("the store accepts this one");
    store.shutdown().await;
}

#[tokio::test]
async fn read_only_disk_is_refused_at_opening_by_name() {
    let Some(disk) = SmallDisk::mount(4) else { return };
    let store = open_sqlite(options(disk.path())).expect("the store accepts it");
    store.apply(running()).await.expect("the store accepts it");
    store.shutdown().await;
    disk.make_read_only();
    let error = open_sqlite(options(disk.path())).expect_err("nothing can be written");
    let OpenError::Unusable { path, detail } = &error else { panic!("refused for another reason: {error}") };
    assert!(path.starts_with(disk.path()) && detail.contains("Read-only file system"), "{error}");
}

#[test]
fn disk_without_an_inode_is_refused_at_opening_by_name() {
    let Some(disk) = SmallDisk::mount(4) else { return };
    // One for its root; none is left, a folder more than that is taken away.
    let state = disk.path().join("state");
    let refused = || {
        let error = open_sqlite(options(&state)).expect_err("no file can be made");
        assert!(matches!(error, OpenError::Unusable { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("No space left") && text.contains("no inode left"), "{text}");
    };
    disk.limit_inodes(1);
    refused();
    disk.limit_inodes(2);
    std::fs::create_dir(&state).expect("one is left");
    std::fs::set_permissions(&state, std::os::unix::fs::PermissionsExt::from_mode(0o700)).expect("ours");
    refused();
    disk.limit_inodes(64);
    drop(open_sqlite(options(&state)).expect("there are inodes"));
}

#[tokio::test]
async fn database_locked_by_another_process_is_an_error_until_it_is_unlocked() {
    let disk = on_disk();
    disk.store.shutdown().await;
    let options = StoreOptions { busy_timeout: Duration::from_millis(20), ..options(disk.folder.path()) };
    let store = open_sqlite(options.clone()).expect("our own database");
    store.apply(running()).await.expect("new");
    let other = Connection::open(disk.folder.path().join("vm-system.db")).expect("readable");
    other.execute_batch("BEGIN IMMEDIATE").expect("no connection writes");
    let refused = store.apply(events(1, [1])).await;
    assert_eq!(refused, Err(StoreError::Unavailable("the database is locked by another process".to_owned())));
    assert!(store.execution(&mine(), execution_id(1)).await.expect("readers are not stopped").is_some());
    other.execute_batch("ROLLBACK").expect("it was open");
    store.apply(events(1, [2])).await.expect("it has let go");
    let row = store.execution(&mine(), execution_id(1)).await.expect("readable").expect("there");
    assert!(row.execution.degraded, "event 1 is lost");
    store.shutdown().await;
}

#[tokio::test]
async fn store_that_fails_on_request_marks_what_it_lost() {
    let (store, faults) = faulty();
    store.apply(running()).await.expect("new");
    faults.set(Some("the disk is full"));
    assert_eq!(
        store.apply(events(1, [1])).await,
        Err(StoreError::Unavailable("the disk is full".to_owned()))
    );
    assert_eq!(store.status().failing.as_deref(), Some("the disk is full"));
    faults.set(None);
    store.apply(ended(1, 1)).await.expect("works again");
    let row = store.execution(&mine(), execution_id(1)).await.expect("readable").expect("there");
    assert!(row.execution.degraded);
}

#[tokio::test]
async fn lost_start_leaves_no_row_and_no_mark() {
    let (store, faults) = faulty();
    store.apply(running()).await.expect("new");
    faults.set(Some("the disk is full"));
    let start = Write::ExecutionStarted { name: None, execution: Arc::new(execution_record(2, 1)) };
    assert!(store.apply(start).await.is_err());
    faults.set(None);
    store.apply(Batch::default()).await.expect("works again");
    assert_eq!(store.execution(&mine(), execution_id(2)).await, Ok(None));
}

/// The log stays short although the store is never closed, and readers come and go.
#[tokio::test]
async fn log_stays_bounded_under_constant_writing() {
    let disk = on_disk();
    disk.store.apply(running()).await.expect("new");
    let log = disk.folder.path().join("vm-system.db-wal");
    let mut largest = 0;
    for turn in 0..400_u64 {
        let batch: Arc<[Event]> = (1..=1).map(|n| large_event(turn + n)).collect();
        disk.store.apply(Write::Events(batch)).await.expect("the store accepts it");
        largest = largest.max(std::fs::metadata(&log).expect("the log is there").len());
    }
    // 100 MiB went through a log that may hold 32 MiB and what arrives during one checkpoint.
    assert!(largest < 48 << 20, "the log grew to {largest} bytes");
    disk.store.shutdown().await;
}

#[tokio::test]
async fn read_error_that_passes_heals_and_damage_is_what_a_second_look_finds() {
    use crate::DatabaseFault;
    use std::os::unix::fs::FileExt as _;
    let disk = on_disk();
    disk.store.apply(running()).await.expect("new");
    disk.store.apply(Write::Events([large_event(1)].into())).await.expect("it is accepted");
    disk.store.shutdown().await;
    let store = open_sqlite(options(disk.folder.path())).expect("it has no owner");
    let path = disk.folder.path().join("vm-system.db");
    // Open until the end: closing it would drop the locks of the store.
    let file = std::fs::OpenOptions::new().read(true).write(true).open(&path).expect("ours");
    let mut content = vec![0; file.metadata().expect("a file").len() as usize - 4_096];
    file.read_exact_at(&mut content, 4_096).expect("ours");
    let fault = || store.status().fault;
    let until = async |what: &str, holds: &dyn Fn(&Option<DatabaseFault>) -> bool| {
        let deadline = std::time::Instant::now() + Duration::from_secs(30);
        let mut looks = tokio::time::interval(Duration::from_millis(20));
        while !holds(&fault()) {
            assert!(std::time::Instant::now() < deadline, "{what}: {:?}", fault());
            looks.tick().await;
        }
    };
    file.write_all_at(&vec![0xa5; content.len()], 4_096).expect("ours");
    assert!(store.events(execution_id(1), 0, 0).await.is_err());
    assert!(matches!(fault(), Some(DatabaseFault::Suspected(_))), "{:?}", fault());
    file.write_all_at(&content, 4_096).expect("ours");
    until("it heals by itself", &Option::is_none).await;
    assert_eq!(store.events(execution_id(1), 0, 0).await.expect("readable").len(), 1);
    file.write_all_at(&vec![0xa5; content.len()], 4_096).expect("ours");
    assert!(store.events(execution_id(1), 0, 0).await.is_err());
    until("it is damaged", &|fault| matches!(fault, Some(DatabaseFault::Damaged(_)))).await;
    file.write_all_at(&content, 4_096).expect("ours");
    until("a file that is repaired heals", &Option::is_none).await;
    store.shutdown().await;
}
