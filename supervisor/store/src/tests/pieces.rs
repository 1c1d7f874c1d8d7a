//! Large checkpoints and large deletions in pieces: others are written in between, nothing of a part is seen, and what an interrupted
//! one left is deleted. The counters of the owners agree with their rows.

use super::fixture::{
    ended, events, execution_id, execution_record, mine, on_disk, options, owner, running, session,
    session_id, started, template,
};
use crate::sqlite::STORED_BYTES;
use crate::{StoreHandle, StoreOptions, open_sqlite};
use rusqlite::Connection;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vm_system_protocol::ids::{ProgramId, TaskId};
use vm_system_protocol::model::{Execution, ExecutionKind, ExecutionStatus, SessionStatus};
use vm_system_protocol::reason::CloseReason;
use vm_system_protocol::time::Timestamp;
use vm_system_record::{
    Checkpoint, Entity, ExecutionQuery, IdKind, ItemRow, NewProgramVersion, Page, Rejection, Retention,
    RunQuery, StorageLimit, StoreError, WaitKind, Write,
};

/// Several turns' worth.
const LARGE: u64 = 6_000;

fn checkpoint(execution: u8, seq: u64, cause: &str, pages: std::ops::Range<u64>, byte: u8) -> Write {
    Write::Checkpoint(Box::new(Checkpoint {
        execution: execution_id(execution),
        seq,
        at: Timestamp(1),
        cause: cause.to_owned(),
        pages: pages.map(|page| (page, Some(vec![byte; 1 << 10]))).collect(),
        unweighed: None,
        written: 0,
    }))
}

fn task(execution: u8) -> Write {
    Write::ItemInsert(Box::new(ItemRow {
        id: TaskId::from_bytes([execution; 16]),
        owner: owner(1),
        execution: execution_id(execution),
        prompt: "?".to_owned(),
        schema: None,
        attempts: 0,
        created_at: Timestamp(1),
        deadline: None,
        ended_at: Some(Timestamp(2)),
        outcome: None,
        answer: None,
        item: 1,
        kind: WaitKind::Question,
        name: None,
        answer_seq: None,
        taken_at: None,
        checkpoint: 1,
        retries: None,
        fallback: None,
        first_attempt_at: None,
        last_attempt_at: None,
    }))
}

fn number(folder: &Path, sql: &str) -> i64 {
    let connection = Connection::open(folder.join("vm-system.db")).expect("readable");
    connection.query_row(sql, [], |row| row.get(0)).expect("a number")
}

/// Commits drive the turns behind which the writer does a piece.
async fn wait_until(store: &StoreHandle, what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        store.apply(Write::MetaSet { key: "k".to_owned(), value: None }).await.expect("always");
    }
}

/// Bytes of each owner.
type Sums = Vec<(String, i64)>;

/// The space of the rows of all owners, and the same counted anew.
fn counted(folder: &Path) -> (Sums, Sums) {
    let connection = Connection::open(folder.join("vm-system.db")).expect("readable");
    let sizes = |sql: &str| -> Vec<(String, i64)> {
        let mut statement = connection.prepare(sql).expect("SQL of ours");
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("readable");
        rows.collect::<Result<_, _>>().expect("sizes")
    };
    (
        sizes("SELECT owner, bytes FROM owners WHERE bytes > 0 AND owner <> '(commits)' ORDER BY owner"),
        sizes(&format!("{STORED_BYTES} ORDER BY owner")),
    )
}

#[tokio::test]
async fn others_are_written_while_a_large_checkpoint_is_and_nothing_of_it_is_seen_before_its_end() {
    let disk = on_disk();
    let (store, folder) = (&disk.store, disk.folder.path());
    store.apply(running()).await.expect("new");
    let first = checkpoint(1, 1, "pause", 0..LARGE, 1);
    let large = store.for_owner(&owner(1)).submit(first).await.expect("the store accepts it");
    let mut between = 0;
    tokio::pin!(large);
    let applied = loop {
        tokio::select! {
            biased;
            applied = &mut large => break applied,
            () = async {
                let other = store.for_owner(&owner(2));
                other.apply(Write::MetaSet { key: "k".to_owned(), value: Some(vec![1]) }).await.expect("always");
                between += 1;
                let seen = store.last_checkpoint(execution_id(1)).await.expect("readable");
                let staged = number(folder, "SELECT count(*) FROM staged");
                assert!(seen.is_empty() || staged == 0, "a state that is not whole");
            } => {}
        }
    };
    assert_eq!(applied.expect("written").rows, 1 + LARGE);
    assert!(between >= 2, "{between} others were written meanwhile");
    assert_eq!(number(folder, "SELECT count(*) FROM staged"), 0);
    // The next one replaces some; versions that nobody keeps go in the background.
    let next = vec![
        checkpoint(1, 2, "pause", LARGE / 2..LARGE * 2, 2),
        Write::CheckpointCompact { execution: execution_id(1), keep_from: 2, keep_bytes: None },
    ];
    store.for_owner(&owner(1)).apply(next).await.expect("new");
    let state = store.state_part(execution_id(1), 2, None, usize::MAX).await.expect("readable");
    let newest = |page: u64| state.iter().find(|(number, _)| *number == page).map(|(_, bytes)| bytes[0]);
    assert_eq!((state.len() as u64, newest(0), newest(LARGE - 1)), (2 * LARGE, Some(1), Some(2)));
    wait_until(store, "old versions stay", || {
        number(folder, "SELECT count(*) FROM state_pages") == 2 * LARGE.cast_signed()
    })
    .await;
    let (counters, rows) = counted(folder);
    assert_eq!(counters, rows);
    store.shutdown().await;
}

#[tokio::test]
async fn what_an_interrupted_checkpoint_left_goes_at_the_next_start_or_before_the_next_one() {
    let disk = on_disk();
    let folder = disk.folder.path();
    disk.store.apply(running()).await.expect("new");
    disk.store.apply(checkpoint(1, 1, "pause", 0..10, 1)).await.expect("new");
    disk.store.shutdown().await;
    let leave = || {
        let connection = Connection::open(folder.join("vm-system.db")).expect("writable");
        connection
            .execute_batch(&format!(
                "INSERT INTO staged SELECT id, 2, 0 FROM executions;
                 WITH RECURSIVE n(i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM n WHERE i < 4999)
                     INSERT INTO state_pages SELECT id, i, 2, zeroblob(100) FROM n CROSS JOIN executions;
                 INSERT OR REPLACE INTO owners {STORED_BYTES}"
            ))
            .expect("rows of a schema of our own");
    };
    let pages = || number(folder, "SELECT count(*) FROM state_pages");
    leave();
    let store = open_sqlite(options(folder)).expect("ours");
    assert_eq!(store.state_part(execution_id(1), 1, None, usize::MAX).await.expect("readable").len(), 10);
    wait_until(&store, "it stays", || number(folder, "SELECT count(*) FROM staged") == 0).await;
    assert_eq!(pages(), 10);
    store.shutdown().await;
    leave();
    let store = open_sqlite(options(folder)).expect("ours");
    store.apply(checkpoint(1, 2, "pause", 0..3, 2)).await.expect("nothing is in its way");
    assert_eq!((number(folder, "SELECT count(*) FROM staged"), pages()), (0, 13));
    // A refused one leaves nothing either.
    let twice = store.apply(checkpoint(1, 2, "pause", 100..100 + LARGE, 3)).await;
    assert_eq!(twice, Err(StoreError::Rejected(Rejection::Conflict(Entity::Checkpoint))));
    wait_until(&store, "it stays", || number(folder, "SELECT count(*) FROM staged") == 0).await;
    let (counters, rows) = counted(folder);
    assert_eq!(counters, rows);
    store.shutdown().await;
}

#[tokio::test]
async fn large_execution_is_deleted_in_pieces_and_its_owners_size_with_it() {
    let disk = on_disk();
    let (store, folder) = (&disk.store, disk.folder.path());
    store.apply(running()).await.expect("new");
    store.apply(vec![session(2, 1), started(2, 2), ended(2, 2)]).await.expect("new");
    for seq in 1..4 {
        store.apply(checkpoint(1, seq, "pause", 0..LARGE, 1)).await.expect("new");
    }
    store.apply(events(1, 1..5_000)).await.expect("new");
    let end = |n| Write::SessionEnd {
        id: session_id(n),
        status: SessionStatus::Closed,
        at: Timestamp(5_000),
        reason: CloseReason::Exited,
        last_error: None,
    };
    store.apply(vec![ended(1, 1), end(1), end(2)]).await.expect("live");
    let (counters, rows) = counted(folder);
    assert_eq!(counters, rows);
    let deleted = store.for_owner(&owner(1)).apply(Write::RunDelete { id: execution_id(1) }).await;
    let rows = deleted.expect("it has ended").rows;
    assert!((1..=1_100).contains(&rows), "{rows} rows in the first piece, for which the caller waits");
    assert!(store.execution(&mine(), execution_id(1)).await.expect("readable").is_none());
    wait_until(store, "all pieces are deleted", || {
        let rows = "SELECT (SELECT count(*) FROM state_pages) + (SELECT count(*) FROM events)
             + (SELECT count(*) - 1 FROM executions) + (SELECT count(*) FROM staged)";
        number(folder, rows) == 0
    })
    .await;
    let (counters, rows) = counted(folder);
    assert_eq!(counters, rows);
    // By their age they go in pieces, too.
    store
        .apply(Write::Prune { before: Timestamp(10_000), keys_before: Timestamp(0), max_rows: 1_000 })
        .await
        .expect("always");
    let (counters, rows) = counted(folder);
    assert_eq!(counters, rows);
    assert!(counters.iter().all(|(_, bytes)| *bytes < 1_024), "only the template is left: {counters:?}");
    store.shutdown().await;
}

/// How many of all ways to read an execution of a program find the first one.
async fn found(store: &StoreHandle) -> [usize; 8] {
    let (id, task) = (execution_id(1), TaskId::from_bytes([1; 16]));
    let ids = async |kind| store.ids(&mine(), kind, [0; 16], [0xff; 16], 10).await.expect("readable").len();
    [
        usize::from(store.execution(&mine(), id).await.expect("readable").is_some()),
        usize::from(store.execution_by_name(&owner(1), "n").await.expect("readable").is_some()),
        store
            .executions(&mine(), session_id(1), ExecutionQuery::default(), Page::ALL)
            .await
            .expect("readable")
            .len(),
        store.runs(&mine(), &RunQuery::default(), Page::ALL).await.expect("readable").len(),
        usize::try_from(store.program_counts(&mine()).await.expect("readable").1).expect("small"),
        usize::from(store.task(&mine(), task).await.expect("readable").is_some()),
        ids(IdKind::Execution).await,
        ids(IdKind::Task).await,
    ]
}

#[tokio::test]
async fn execution_that_is_being_deleted_does_not_exist_for_readers() {
    let disk = on_disk();
    let store = &disk.store;
    let program = ProgramId::from_bytes([1; 16]);
    let load = Write::ProgramVersion(Box::new(NewProgramVersion {
        owner: owner(1),
        id: program,
        name: "p".to_owned(),
        source: "s".to_owned(),
        source_hash: [1; 32],
        format: 1,
        code: vec![1],
        at: Timestamp(1),
    }));
    let execution = Execution { kind: ExecutionKind::Program, ..execution_record(1, 1) };
    let begun = Write::ExecutionStarted { name: Some("n".to_owned()), execution: Arc::new(execution) };
    let run = Write::ProgramRun { execution: execution_id(1), program, version: 1 };
    store.apply(vec![template(1, "t"), session(1, 1), load, begun, run, task(1)]).await.expect("new");
    for seq in 1..4 {
        store.apply(checkpoint(1, seq, "pause", 0..LARGE, 1)).await.expect("new");
    }
    store.apply(ended(1, 1)).await.expect("running");
    assert_eq!(found(store).await, [1; 8]);
    let deleted = store.for_owner(&owner(1)).apply(Write::RunDelete { id: execution_id(1) }).await;
    assert!(deleted.expect("it has ended").rows < 3 * LARGE, "the rest of its pages is there");
    assert_eq!(found(store).await, [0; 8]);
    store.shutdown().await;
}

#[tokio::test]
async fn one_step_of_a_deletion_takes_a_few_large_records_only() {
    let disk = on_disk();
    let (store, folder) = (&disk.store, disk.folder.path());
    store.apply(running()).await.expect("new");
    for n in 2..40 {
        store.apply(vec![started(n, 1), ended(n, 1)]).await.expect("new");
    }
    let connection = Connection::open(folder.join("vm-system.db")).expect("writable");
    let fill = "UPDATE executions SET input = printf('%.1000000c', 'x') WHERE ended_at IS NOT NULL";
    connection.execute_batch(fill).expect("rows of a schema of our own");
    let left = || number(folder, "SELECT count(*) FROM executions WHERE ended_at IS NOT NULL");
    for write in [
        Write::Prune { before: Timestamp(10_000), keys_before: Timestamp(0), max_rows: 5 },
        Write::PruneOwner { owner: owner(1), before: Timestamp(10_000), max_rows: 1_000 },
    ] {
        let before = left();
        store.apply(write.clone()).await.expect("always");
        assert!((before - 8..before).contains(&left()), "{} of {before} are left after {write:?}", left());
    }
    store.shutdown().await;
}

/// Writes a batch of the first owner in pieces, between which another owner writes. Until it is whole, the third execution is a
/// placeholder; `check` is called with whether it is one.
async fn written_beside_others(store: &StoreHandle, batch: Vec<Write>, check: impl AsyncFn(bool)) {
    let written = store.for_owner(&owner(1)).submit(batch).await.expect("the store accepts it");
    let mut unfinished = 0;
    tokio::pin!(written);
    loop {
        tokio::select! {
            biased;
            written = &mut written => {
                written.expect("written");
                break;
            }
            () = async {
                let other = store.for_owner(&owner(2));
                other.apply(Write::MetaSet { key: "k".to_owned(), value: Some(vec![1]) }).await.expect("always");
                let seen = store.execution(&mine(), execution_id(3)).await.expect("readable");
                let is_placeholder = seen.is_some_and(|row| row.execution.status == ExecutionStatus::Error);
                unfinished += usize::from(is_placeholder);
                check(is_placeholder).await;
            } => {}
        }
    }
    assert!(unfinished >= 2, "{unfinished} others were written meanwhile");
}

/// The writes of an execution that begins with the state of the first one at its first checkpoint.
fn copy() -> Vec<Write> {
    let (from, to) = (execution_id(1), execution_id(3));
    let at = Timestamp(1);
    vec![session(3, 1), started(3, 3), Write::CheckpointCopy { from, checkpoint: 1, to, at }]
}

#[tokio::test]
async fn others_are_written_while_a_large_state_is_copied_and_nobody_goes_on_from_a_part_of_it() {
    let disk = on_disk();
    let (store, folder) = (&disk.store, disk.folder.path());
    store.apply(running()).await.expect("new");
    store.apply(checkpoint(1, 1, "pause", 0..LARGE, 1)).await.expect("new");
    written_beside_others(store, copy(), async |is_placeholder| {
        let whole = store.last_checkpoint(execution_id(3)).await.expect("readable");
        assert!(!is_placeholder || whole.is_empty() || number(folder, "SELECT count(*) FROM staged") == 0);
    })
    .await;
    let made = store.execution(&mine(), execution_id(3)).await.expect("readable").expect("it was made");
    assert_eq!((made.execution.status, &made.execution.error), (ExecutionStatus::Running, &None));
    let session = store.session(&mine(), session_id(3)).await.expect("readable").expect("it was made");
    assert_eq!((session.session.status, session.session.closed_at), (SessionStatus::Starting, None));
    let state = store.state_part(execution_id(3), 1, None, usize::MAX).await.expect("readable");
    assert_eq!(state, store.state_part(execution_id(1), 1, None, usize::MAX).await.expect("readable"));
    let rows = store.checkpoints(execution_id(3)).await.expect("readable");
    assert_eq!(rows[0].bytes, LARGE * ((1 << 10) + 64));
    let (counters, rows) = counted(folder);
    assert_eq!(counters, rows);
    store.shutdown().await;
}

#[tokio::test]
async fn what_follows_the_last_piece_may_be_large_itself() {
    let disk = on_disk();
    let store = &disk.store;
    store.apply(running()).await.expect("new");
    let rest = || Write::MetaSet { key: "k".to_owned(), value: Some(vec![1; 3 << 20]) };
    let written = async {
        for batch in [
            vec![checkpoint(1, 1, "pause", 0..LARGE, 1), rest()],
            import().into_iter().chain([rest()]).collect(),
        ] {
            store.for_owner(&owner(1)).apply(batch).await.expect("written");
        }
    };
    tokio::time::timeout(Duration::from_mins(1), written).await.expect("it ends");
    assert_eq!(number(disk.folder.path(), "SELECT count(*) FROM staged"), 0);
    store.shutdown().await;
}

/// The writes of an execution that is imported with its states and its output.
fn import() -> Vec<Write> {
    let more = events(3, 1..3_000);
    let states = [checkpoint(3, 1, "pause", 0..LARGE, 1), checkpoint(3, 2, "pause", LARGE / 2..LARGE * 2, 2)];
    let begin = [session(3, 1), started(3, 3)];
    begin.into_iter().chain(states).chain([more, ended(3, 3)]).collect()
}

#[tokio::test]
async fn others_are_written_while_a_large_execution_is_imported_and_nobody_goes_on_from_a_part_of_it() {
    let disk = on_disk();
    let (store, folder) = (&disk.store, disk.folder.path());
    store.apply(running()).await.expect("new");
    written_beside_others(store, import(), async |_| {}).await;
    assert_eq!(number(folder, "SELECT count(*) FROM staged"), 0);
    let made = store.execution(&mine(), execution_id(3)).await.expect("readable").expect("it was made");
    assert_eq!((made.execution.status, &made.execution.error), (ExecutionStatus::Ok, &None));
    let rows = store.checkpoints(execution_id(3)).await.expect("readable");
    assert_eq!(rows.iter().map(|row| row.seq).collect::<Vec<_>>(), [1, 2]);
    // The same as an import that is small enough for one commit.
    for (seq, last, byte) in [(1, LARGE, 1), (2, LARGE * 2, 2)] {
        let state = store.state_part(execution_id(3), seq, None, usize::MAX).await.expect("readable");
        assert_eq!((state.len() as u64, state[state.len() - 1].1[0]), (last, byte));
    }
    assert_eq!(store.events(execution_id(3), 0, 0).await.expect("readable").len(), 2_999);
    let (counters, rows) = counted(folder);
    assert_eq!(counters, rows);
    // One that cannot be finished leaves nothing.
    let mut twice = import();
    twice.push(checkpoint(3, 2, "pause", 0..1, 1));
    store.apply(Write::RunDelete { id: execution_id(3) }).await.expect("it has ended");
    store.for_owner(&owner(1)).apply(twice).await.expect_err("a checkpoint is in it twice");
    wait_until(store, "a part stays", || number(folder, "SELECT count(*) FROM executions") == 1).await;
    assert_eq!(
        number(folder, "SELECT (SELECT count(*) FROM state_pages) + (SELECT count(*) FROM staged)"),
        0
    );
    store.shutdown().await;
}

#[tokio::test]
async fn of_a_copy_that_was_interrupted_or_refused_nothing_is_left() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let retention = Retention { owner_quota_bytes: 40 << 20, ..Retention::default() };
    let store = open_sqlite(StoreOptions { retention, ..options(folder.path()) }).expect("empty");
    let folder = folder.path();
    store.apply(running()).await.expect("new");
    store.apply(checkpoint(1, 1, "pause", 0..LARGE, 1)).await.expect("new");
    let executions = || number(folder, "SELECT count(*) FROM executions");
    // It has 27 MiB: two do not fit.
    let refused = store.for_owner(&owner(1)).apply(copy()).await;
    assert_eq!(refused, Err(StoreError::Rejected(Rejection::Limit(StorageLimit::OwnerQuota))));
    wait_until(&store, "a refused copy stays", || executions() == 1).await;
    // A client deletes what looks like an execution that failed.
    let store = {
        store.shutdown().await;
        open_sqlite(options(folder)).expect("ours")
    };
    let copied = store.for_owner(&owner(1)).submit(copy()).await.expect("the store accepts it");
    wait_until(&store, "no placeholder is seen", || executions() == 2).await;
    store.apply(Write::RunDelete { id: execution_id(3) }).await.expect("it has ended");
    let refused = Err(StoreError::Rejected(Rejection::Missing(Entity::Execution)));
    assert_eq!(copied.await, refused);
    // The supervisor was killed.
    let copied = store.for_owner(&owner(1)).submit(copy()).await.expect("the store accepts it");
    wait_until(&store, "no placeholder is seen", || executions() == 2).await;
    let killed = tempfile::tempdir().expect("a temporary folder can be made");
    for name in ["vm-system.db", "vm-system.db-wal"] {
        std::fs::copy(folder.join(name), killed.path().join(name)).expect("it can be copied");
    }
    copied.await.expect("nothing is in its way");
    store.shutdown().await;
    let store = open_sqlite(options(killed.path())).expect("as after a crash");
    let rest =
        || number(killed.path(), "SELECT (SELECT count(*) FROM staged) * 1000 + count(*) FROM executions");
    wait_until(&store, "an interrupted copy stays", || rest() == 1).await;
    assert_eq!(number(killed.path(), "SELECT count(*) FROM state_pages"), LARGE.cast_signed());
    let (counters, rows) = counted(killed.path());
    assert_eq!(counters, rows);
    store.shutdown().await;
}

#[tokio::test]
async fn checkpoint_of_which_old_versions_are_being_deleted_is_offered_to_nobody() {
    let disk = on_disk();
    let store = &disk.store;
    store.apply(running()).await.expect("new");
    for seq in 1..=2 {
        store.apply(checkpoint(1, seq, "pause", 0..LARGE, 1)).await.expect("new");
    }
    let compact = Write::CheckpointCompact { execution: execution_id(1), keep_from: 2, keep_bytes: None };
    store.apply(compact).await.expect("always");
    let rows = store.checkpoints(execution_id(1)).await.expect("readable");
    assert_eq!(rows.iter().map(|row| row.seq).collect::<Vec<_>>(), [2]);
    let refused = Err(StoreError::Rejected(Rejection::Missing(Entity::Checkpoint)));
    assert_eq!(store.for_owner(&owner(1)).apply(copy()).await, refused);
    store.shutdown().await;
}
