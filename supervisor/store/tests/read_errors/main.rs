//! A disk that fails to read (`EIO`), once, for a while or for good: SQLite reports it as damage. An error that passes costs nothing, another
//! one is named as what it is, and no message recommends to restore a backup.

mod sys;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use vm_system_protocol::time::Timestamp;
use vm_system_record::{AuditEntry, Owner, Retention, Scope, StoreError, Write};
use vm_system_store::{DatabaseFault, OpenError, StoreHandle, StoreOptions, check_file, open_sqlite};

const ENTRIES: u64 = 400;

/// A folder without links in its path: the kernel names files so.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let real = folder.path().canonicalize().expect("it is there");
    (folder, real)
}

fn database(folder: &Path) -> PathBuf {
    folder.join("vm-system.db")
}

fn open(folder: &Path) -> Result<StoreHandle, OpenError> {
    let retention = Retention { max_age: None, key_life: Duration::MAX, ..Retention::default() };
    open_sqlite(StoreOptions { retention, ..StoreOptions::new(folder) })
}

/// A closed database of some hundred pages.
async fn stored(folder: &Path) {
    let store = open(folder).expect("an empty folder can be opened");
    for n in 0..ENTRIES {
        store.apply(entry(n)).await.expect("the store accepts it");
    }
    store.shutdown().await;
}

fn entry(n: u64) -> Write {
    Write::Audit(Box::new(AuditEntry {
        at: Timestamp(1_000 + n as i64),
        owner: Owner::new("o"),
        api: "rest".to_owned(),
        verb: "v".to_owned(),
        subject: "x".repeat(3_000),
        outcome: "ok".to_owned(),
    }))
}

async fn entries(store: &StoreHandle) -> Result<usize, StoreError> {
    store.audit(&Scope::All, None, 1_000).await.map(|entries| entries.len())
}

fn names_the_disk(text: &str) {
    assert!(text.contains("the disk") && text.contains("EIO"), "{text}");
    assert!(!text.contains("backup") && !text.contains("empty"), "{text}");
}

#[tokio::test]
async fn start_survives_each_read_that_fails_once() {
    let (_kept, folder) = folder();
    stored(&folder).await;
    let path = database(&folder);
    for passing in (0..).step_by(17) {
        sys::fail(&path, passing, 1);
        let store = open(&folder).unwrap_or_else(|error| panic!("read {passing}: {error}"));
        let has_failed = sys::heal(&path);
        assert_eq!(entries(&store).await, Ok(ENTRIES as usize), "read {passing}");
        store.shutdown().await;
        if !has_failed {
            assert!(passing > 100, "all reads of a start failed: {passing}");
            return;
        }
    }
}

#[tokio::test]
async fn start_on_a_disk_that_cannot_be_read_names_the_disk_and_changes_nothing() {
    let (_kept, folder) = folder();
    stored(&folder).await;
    let path = database(&folder);
    for passing in [0, 3, 20, 60] {
        sys::fail(&path, passing, usize::MAX);
        let error = open(&folder).expect_err("nothing can be read");
        sys::heal(&path);
        assert!(matches!(error, OpenError::ReadError { .. }), "read {passing}: {error}");
        names_the_disk(&error.to_string());
    }
    let store = open(&folder).expect("the disk works again");
    assert_eq!(entries(&store).await, Ok(ENTRIES as usize));
    store.shutdown().await;
}

/// As after a kill, with everything of the last commits in the log alone.
#[tokio::test]
async fn start_after_a_kill_on_a_disk_that_cannot_be_read_changes_nothing() {
    let (_kept, live) = folder();
    stored(&live).await;
    let store = open(&live).expect("it has no owner");
    store.apply(entry(ENTRIES)).await.expect("the store accepts it");
    let (_also_kept, killed) = folder();
    for name in ["vm-system.db", "vm-system.db-wal", "vm-system.db-shm"] {
        std::fs::copy(live.join(name), killed.join(name)).expect("the file is there");
    }
    store.shutdown().await;
    let path = database(&killed);
    for passing in [0, 3, 10, 20, 30, 40, 60, 100] {
        sys::fail(&path, passing, usize::MAX);
        let error = open(&killed).expect_err("nothing can be read");
        sys::heal(&path);
        assert!(matches!(error, OpenError::ReadError { .. }), "read {passing}: {error}");
    }
    let store = open(&killed).expect("the disk works again");
    assert_eq!(entries(&store).await, Ok(ENTRIES as usize + 1));
    store.shutdown().await;
}

#[tokio::test]
async fn check_of_a_file_survives_a_read_that_fails_once_and_names_a_disk_that_cannot_be_read() {
    let (_kept, folder) = folder();
    stored(&folder).await;
    let path = database(&folder);
    for passing in (0..).step_by(11) {
        sys::fail(&path, passing, 1);
        let report = check_file(&path).unwrap_or_else(|error| panic!("read {passing}: {error}"));
        assert!(report.ok, "read {passing}: {report:?}");
        if !sys::heal(&path) {
            assert!(passing > 100, "all reads of a check failed: {passing}");
            break;
        }
    }
    sys::fail(&path, 40, usize::MAX);
    let error = check_file(&path).expect_err("it cannot be read");
    sys::heal(&path);
    names_the_disk(&error.to_string());
}

#[tokio::test]
async fn check_and_backup_of_a_store_survive_a_read_that_fails_once() {
    let (_kept, folder) = folder();
    stored(&folder).await;
    let path = database(&folder);
    let store = open(&folder).expect("it has no owner");
    for passing in [0, 5, 40, 90] {
        sys::fail(&path, passing, 1);
        let report = store.check().await.expect("readable");
        assert!(sys::heal(&path) && report.ok, "read {passing}: {report:?}");
        assert_eq!(store.status().fault, None, "read {passing}");
        sys::fail(&path, passing, 1);
        let mut copy = store.backup().await.unwrap_or_else(|error| panic!("read {passing}: {error}"));
        assert!(sys::heal(&path), "read {passing}");
        assert!(copy.read_to_end(&mut Vec::new()).expect("readable") > 1 << 20);
    }
    sys::fail(&path, 40, usize::MAX);
    let (checked, copied) = (store.check().await, store.backup().await.map(drop));
    sys::heal(&path);
    for failed in [checked.map(drop), copied] {
        let Err(StoreError::Unavailable(why)) = failed else { panic!("{failed:?}") };
        names_the_disk(&why);
    }
    assert_eq!(store.status().fault, None, "nothing was found damaged");
    store.shutdown().await;
}

#[tokio::test]
async fn requests_survive_a_read_that_fails_once_and_never_report_damage() {
    let (_kept, folder) = folder();
    stored(&folder).await;
    let path = database(&folder);
    let store = open(&folder).expect("it has no owner");
    sys::fail(&path, 12, 1);
    assert_eq!(entries(&store).await, Ok(ENTRIES as usize));
    assert!(sys::heal(&path), "a read failed");
    assert_eq!(store.status().fault, None);
    store.shutdown().await;
    let store = open(&folder).expect("it has no owner");
    sys::fail(&path, 12, usize::MAX);
    let Err(StoreError::Unavailable(why)) = entries(&store).await else { panic!("another error, or none") };
    names_the_disk(&why);
    // Until it has been examined.
    assert!(store.status().fault.is_some_and(|fault| fault.refuses_work()));
    let deadline = Instant::now() + Duration::from_mins(1);
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    let disk = loop {
        assert!(Instant::now() < deadline, "it is not examined: {:?}", store.status().fault);
        match store.status().fault {
            Some(fault @ DatabaseFault::Unreadable(_)) => break fault,
            _ => looks.tick().await,
        };
    };
    names_the_disk(&disk.to_string());
    assert!(disk.hint().contains("dmesg") && !disk.hint().contains("backup"), "{}", disk.hint());
    sys::heal(&path);
    while store.status().fault.is_some() {
        assert!(Instant::now() < deadline, "it does not heal");
        looks.tick().await;
    }
    assert_eq!(entries(&store).await, Ok(ENTRIES as usize));
    store.apply(entry(1)).await.expect("it can be written");
    store.shutdown().await;
}
