//! Supervisors that were killed count against the programs that they ran, and those that were stopped do not.

use super::fixture::{execution_id, execution_record, mine, on_disk, options, running, session, session_id};
use crate::{StoreHandle, open_sqlite};
use rusqlite::Connection;
use std::path::Path;
use std::sync::Arc;
use vm_system_protocol::model::{Execution, ExecutionKind, ExecutionStatus, SessionStatus};
use vm_system_protocol::time::Timestamp;
use vm_system_record::{ClaimKind, Write};

/// The files that a kill leaves: copied while the store is open.
fn killed(from: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    for name in ["vm-system.db", "vm-system.db-wal"] {
        std::fs::copy(from.join(name), folder.path().join(name)).expect("the file is there");
    }
    folder
}

fn kills_of(folder: &Path) -> Vec<i64> {
    let database = Connection::open(folder.join("vm-system.db")).expect("readable");
    let mut statement = database
        .prepare("SELECT kills FROM executions WHERE kind = 'program' ORDER BY id")
        .expect("SQL of ours");
    let rows = statement.query_map([], |row| row.get(0)).expect("readable");
    rows.collect::<Result<_, _>>().expect("numbers")
}

/// Claims as many as may be begun, in turns; their number.
async fn claim_all(store: &StoreHandle) -> usize {
    let mut all = 0;
    loop {
        let claimed = store.claim(ClaimKind::OfEnded, 1).await.expect("readable");
        if claimed.is_empty() {
            return all;
        }
        all += claimed.len();
    }
}

#[tokio::test]
async fn kill_of_the_supervisor_counts_for_what_ran_and_a_stop_does_not() {
    let disk = on_disk();
    disk.store.apply(running()).await.expect("new");
    for (n, status) in
        [(2, ExecutionStatus::Running), (3, ExecutionStatus::Waiting), (4, ExecutionStatus::Running)]
    {
        let record = Execution { kind: ExecutionKind::Program, status, ..execution_record(n, 1) };
        let started = Write::ExecutionStarted { name: None, execution: Arc::new(record) };
        disk.store.apply(started).await.expect("new");
    }
    let mut folder = killed(disk.folder.path());
    disk.store.shutdown().await;
    for kills in 1..=3 {
        let store = open_sqlite(options(folder.path())).expect("a log that is whole");
        // One is claimed, and the process is killed before it can claim the other one.
        assert_eq!(store.claim(ClaimKind::OfEnded, 1).await.expect("readable").len(), 1);
        let half = killed(folder.path());
        assert_eq!(claim_all(&store).await, 1);
        assert_eq!(kills_of(folder.path()), [kills, 0, kills]);
        assert_eq!(kills_of(half.path()), [kills, 0, kills - 1], "only what was to run");
        assert!(execution_id(2) < execution_id(4));
        let next = killed(folder.path());
        store.shutdown().await;
        // A stopped one counts for nothing.
        let store = open_sqlite(options(folder.path())).expect("it was stopped");
        assert_eq!(claim_all(&store).await, 2);
        assert_eq!(kills_of(folder.path()), [kills, 0, kills]);
        store.shutdown().await;
        folder = next;
    }
}

#[tokio::test]
async fn restart_ends_the_sessions_of_its_own_node_alone() {
    let disk = on_disk();
    disk.store.apply(running()).await.expect("new");
    disk.store.apply(vec![session(2, 1), Write::SessionReady { id: session_id(2) }]).await.expect("new");
    disk.store.shutdown().await;
    let path = disk.folder.path().join("vm-system.db");
    let database = Connection::open(&path).expect("it has no owner");
    let nodes: i64 = database
        .query_row(
            "SELECT count(*) FROM sessions CROSS JOIN meta ON key = 'node' AND length(value) = 16 WHERE node = value",
            [],
            |row| row.get(0),
        )
        .expect("a number");
    assert_eq!(nodes, 2, "each has the node of its database");
    let other = "UPDATE sessions SET node = zeroblob(16) WHERE id = ?1";
    database.execute(other, [session_id(2).as_bytes()]).expect("a row of ours");
    drop(database);

    let store = open_sqlite(options(disk.folder.path())).expect("it was stopped");
    let live = store.live_sessions().await.expect("readable");
    assert_eq!(live.iter().map(|row| row.row.session.id).collect::<Vec<_>>(), [session_id(1)]);
    let (alive, continued) = (Vec::new(), Vec::new());
    let restart = Write::HostRestart { at: Timestamp(9_000), alive, continued, earlier: None, why: None };
    store.apply(restart).await.expect("there");
    let status = async |n| {
        store.session(&mine(), session_id(n)).await.expect("readable").expect("there").session.status
    };
    assert_eq!((status(1).await, status(2).await), (SessionStatus::Crashed, SessionStatus::Ready));
    store.shutdown().await;
}
