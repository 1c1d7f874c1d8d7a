//! Holders of executions: guards, claims, and what a later holder goes on with.

use crate::StoreHandle;
use crate::tests::fixture::{execution_id, execution_record, mine, running, session_id};
use std::sync::Arc;
use vm_system_protocol::ids::{ExecutionId, TaskId};
use vm_system_protocol::model::{Execution, ExecutionKind, ExecutionStatus, Metrics};
use vm_system_protocol::time::Timestamp;
use vm_system_record::{
    Batch, Checkpoint, ClaimKind, Fence, Guard, ITEMS_FROM, ItemOutcome, ItemRow, LetGo, Owner, SpentCalls,
    SpentLimits, StoreError, UsedLimits, WaitKind, Write,
};

/// An execution of a program with a status, in the session 1.
fn program(n: u8, status: ExecutionStatus) -> Write {
    let record = Execution { kind: ExecutionKind::Program, status, ..execution_record(n, 1) };
    Write::ExecutionStarted { name: None, execution: Arc::new(record) }
}

fn checkpoint(seq: u64) -> Write {
    let (execution, at, cause) = (execution_id(2), Timestamp(1), "pause".to_owned());
    let pages = vec![(0, Some(vec![1; 8]))];
    Write::Checkpoint(Box::new(Checkpoint { execution, seq, at, cause, pages, unweighed: None, written: 0 }))
}

fn progress(n: u8, limits: UsedLimits) -> Write {
    let (id, status, metrics) = (execution_id(n), ExecutionStatus::Running, Metrics::default());
    Write::RunProgress { id, status, metrics, limits: Some(Box::new(limits)) }
}

fn take(fence: Fence, after: u64) -> Write {
    Write::Guard(Guard::Take { execution: execution_id(2), fence, after })
}

fn held(fence: Fence, after: u64) -> Write {
    Write::Guard(Guard::Held { execution: execution_id(2), fence, after })
}

async fn newest(store: &StoreHandle) -> Option<u64> {
    store.last_checkpoint(execution_id(2)).await.expect("readable").first().map(|row| row.seq)
}

async fn with_program(store: &StoreHandle) {
    store.apply(running()).await.expect("new");
    store.apply(program(2, ExecutionStatus::Running)).await.expect("new");
}

pub(super) async fn batch_of_a_holder_that_was_fenced_off_changes_nothing(store: StoreHandle) {
    with_program(&store).await;
    let (first, second) = (store.first_fence(), store.first_fence());
    let apply = async |writes: Vec<Write>| store.apply(Batch(writes)).await.map(|_| ());
    assert_eq!(
        apply(vec![held(first, 0), checkpoint(1)]).await,
        Err(StoreError::Fenced),
        "it has taken nothing"
    );
    apply(vec![take(first, 0), checkpoint(1)]).await.expect("nobody holds it");
    apply(vec![held(first, 1), checkpoint(2)]).await.expect("it is the holder");
    apply(vec![take(second, 2), progress(2, UsedLimits::default())]).await.expect("it is newer");
    let late =
        vec![held(first, 2), checkpoint(3), progress(2, UsedLimits { exits: 3, ..UsedLimits::default() })];
    assert_eq!(apply(late).await, Err(StoreError::Fenced));
    assert_eq!(apply(vec![take(first, 2), checkpoint(3)]).await, Err(StoreError::Fenced));
    assert_eq!(newest(&store).await, Some(2));
    // Others in the same turn are not affected.
    let tickets = [
        store.submit_lazy(vec![held(first, 2), checkpoint(3)]).await.expect("open"),
        store.submit_lazy(vec![held(second, 2), checkpoint(3)]).await.expect("open"),
        store.submit(Write::MetaSet { key: "k".to_owned(), value: Some(vec![1]) }).await.expect("open"),
    ];
    let [late, current, other] = tickets;
    assert_eq!(late.await.map(|_| ()), Err(StoreError::Fenced));
    assert!(current.await.is_ok() && other.await.is_ok());
    assert_eq!(newest(&store).await, Some(3));
    store.let_go(execution_id(2), second, LetGo::Rests(None));
    assert_eq!(apply(vec![held(second, 3), checkpoint(4)]).await, Err(StoreError::Fenced), "it was let go");
}

pub(super) async fn checkpoint_that_goes_on_from_another_one_is_refused(store: StoreHandle) {
    with_program(&store).await;
    let fence = store.first_fence();
    let apply = async |writes: Vec<Write>| store.apply(Batch(writes)).await.map(|_| ());
    assert_eq!(
        apply(vec![take(fence, 1), checkpoint(2)]).await,
        Err(StoreError::Fenced),
        "there is no first one"
    );
    apply(vec![take(fence, 0), checkpoint(1)]).await.expect("the first one");
    assert_eq!(apply(vec![held(fence, 0), checkpoint(2)]).await, Err(StoreError::Fenced));
    assert_eq!(apply(vec![held(fence, 2), checkpoint(3)]).await, Err(StoreError::Fenced), "one was lost");
    assert_eq!(newest(&store).await, Some(1));
    apply(vec![held(fence, 1), checkpoint(2)]).await.expect("its successor");
    assert_eq!(newest(&store).await, Some(2));
}

fn task(n: u8, item: u64, deadline: Option<i64>) -> ItemRow {
    ItemRow {
        id: TaskId::from_bytes([16 * n + u8::try_from(item).expect("small"); 16]),
        owner: Owner::new(""),
        execution: execution_id(n),
        prompt: "why?".to_owned(),
        schema: None,
        attempts: 0,
        created_at: Timestamp(1),
        deadline: deadline.map(Timestamp),
        ended_at: None,
        answer: None,
        outcome: None,
        item,
        kind: WaitKind::Question,
        name: None,
        answer_seq: None,
        taken_at: None,
        checkpoint: item,
        retries: None,
        fallback: None,
        first_attempt_at: None,
        last_attempt_at: None,
    }
}

async fn claimed(store: &StoreHandle, which: ClaimKind) -> Vec<(ExecutionId, Fence)> {
    let claimed = store.claim(which, 100).await.expect("readable");
    claimed.into_iter().map(|run| (run.execution, run.fence)).collect()
}

pub(super) async fn executions_that_nothing_would_wake_are_found(store: StoreHandle) {
    with_program(&store).await;
    let mut writes: Vec<Write> = (3..=8).map(|n| program(n, ExecutionStatus::Waiting)).collect();
    let mut insert = |row: ItemRow| writes.push(Write::ItemInsert(Box::new(row)));
    let item = |n: u8, number: u64, is_answered: bool| ItemRow {
        item: ITEMS_FROM + number,
        ended_at: is_answered.then_some(Timestamp(2)),
        outcome: is_answered.then_some(ItemOutcome::Answered),
        answer: is_answered.then(|| "yes".to_owned()),
        ..task(n, number, None)
    };
    insert(task(3, 1, None));
    // 4 waits for nothing. 5 has an answer that it does not use; 6 uses it behind its pause.
    insert(item(5, 1, true));
    insert(item(5, 2, false));
    insert(item(6, 1, true));
    insert(task(6, 3, None));
    insert(task(7, 1, Some(9)));
    // The question of a pause, of an execution that does not pause.
    insert(task(8, 1, None));
    for (n, cause) in [(5, "wait"), (6, "pause"), (8, "wait")] {
        let (execution, at, cause) = (execution_id(n), Timestamp(1), cause.to_owned());
        let pages = vec![(0, Some(vec![1; 8]))];
        let point = Checkpoint { execution, seq: 1, at, cause, pages, unweighed: None, written: 0 };
        writes.push(Write::Checkpoint(Box::new(point)));
    }
    store.apply(Batch(writes)).await.expect("new");
    let mut found = store.unfinished_runs(None, 100).await.expect("readable");
    found.sort_by_key(|run| run.execution);
    let stuck: Vec<_> = found.iter().map(|run| (run.execution, run.runs, run.stuck.is_some())).collect();
    let expected =
        [(2, true, false), (3, false, false), (4, false, true), (5, false, true), (6, false, false)];
    assert_eq!(stuck[..5], expected.map(|(n, runs, is_stuck)| (execution_id(n), runs, is_stuck)));
    assert_eq!(stuck[5], (execution_id(7), false, false), "it is woken at its time");
    assert!(stuck[6].2, "{:?}", found[6]);
    assert_ne!(found[2].stuck, found[3].stuck, "each has its reason");
}

pub(super) async fn programs_that_run_or_are_due_are_claimed_by_one(store: StoreHandle) {
    with_program(&store).await;
    let (soon, far) = (store.now().0 - 1, store.now().0 + 3_600_000);
    let mut writes = Vec::new();
    for n in 3..=7 {
        writes.push(program(n, ExecutionStatus::Waiting));
    }
    // Of several items the earliest counts; a question of a session is for its owner task.
    for row in [
        task(3, 1, Some(far)),
        task(3, 2, Some(soon - 5)),
        task(3, 3, Some(soon)),
        task(4, 1, Some(soon - 9)),
        task(5, 1, Some(far)),
        task(6, 1, None),
        task(7, 1, Some(soon)),
        task(1, 1, Some(soon)),
    ] {
        writes.push(Write::ItemInsert(Box::new(row)));
    }
    writes.push(Write::ItemsWithdraw { execution: execution_id(7), at: Timestamp(2) });
    store.apply(Batch(writes)).await.expect("new");

    let first = store.claim(ClaimKind::Due, 1).await.expect("readable");
    assert_eq!(first[0].execution, execution_id(4), "the earliest");
    let rest = claimed(&store, ClaimKind::Due).await;
    assert_eq!(rest.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [execution_id(3)]);
    assert_eq!(claimed(&store, ClaimKind::Due).await, [], "both are held");
    let ran = claimed(&store, ClaimKind::OfEnded).await;
    assert_eq!(ran.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [execution_id(2)]);
    assert_eq!(claimed(&store, ClaimKind::OfEnded).await, []);

    // The one whose answer is stored is due by its next item.
    let (execution, outcome) = (execution_id(3), ItemOutcome::Defaulted);
    let end = |item| Write::ItemEnd {
        execution,
        id: task(3, item, None).id,
        outcome,
        answer: Some("1".to_owned()),
        at: Timestamp(3),
        taken_at: None,
    };
    let guard = |execution, fence| Write::Guard(Guard::Held { execution, fence, after: 0 });
    store.apply(vec![guard(execution, rest[0].1), end(2)]).await.expect("it is the holder");
    store.let_go(execution, rest[0].1, LetGo::Rests(Some(Timestamp(soon))));
    let again = claimed(&store, ClaimKind::Due).await;
    assert_eq!(again.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [execution]);
    let late = store.apply(vec![guard(execution, rest[0].1), end(3)]).await;
    assert_eq!(late, Err(StoreError::Fenced), "another one has claimed it");
    store.apply(vec![guard(execution, again[0].1), end(3)]).await.expect("it is the holder");
    store.let_go(execution, again[0].1, LetGo::Rests(Some(Timestamp(far))));
    assert_eq!(claimed(&store, ClaimKind::Due).await, [], "its last item is due in an hour");
    let answers = store.items_of_run(execution, 0, 10).await.expect("readable");
    assert_eq!(answers.iter().filter(|row| row.ended_at.is_some()).count(), 2);
    assert!(store.goes_on(Timestamp(far)).await.expect("readable"));
    store.let_go(execution_id(2), ran[0].1, LetGo::Failed);
    assert_eq!(claimed(&store, ClaimKind::OfEnded).await, [], "after a pause");
    // It resolves: the time of the next one is known.
    store.let_go(execution_id(4), first[0].fence, LetGo::Rests(Some(Timestamp(soon))));
    store.wakes().await;
    let woken = claimed(&store, ClaimKind::Due).await;
    assert_eq!(woken.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [execution_id(4)]);

    // Due between the claim and the sleep.
    assert_eq!(claimed(&store, ClaimKind::Due).await, []);
    let due = store.now().0 + 1;
    store.apply(Write::ItemInsert(Box::new(task(6, 2, Some(due))))).await.expect("new");
    while store.now().0 <= due {
        tokio::task::yield_now().await;
    }
    let slept = std::time::Instant::now();
    store.wakes().await;
    assert!(slept.elapsed() < std::time::Duration::from_secs(3), "it is due already");
    let woken = claimed(&store, ClaimKind::Due).await;
    assert_eq!(woken.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [execution_id(6)]);
}

pub(super) async fn use_of_limits_is_read_as_it_was_stored(store: StoreHandle) {
    with_program(&store).await;
    let policy = store.session_policy(session_id(1)).await.expect("readable");
    assert!(policy.is_some() && store.session(&mine(), session_id(1)).await.expect("readable").is_some());
    let version = vm_system_record::NewProgramVersion {
        owner: crate::tests::fixture::owner(1),
        id: vm_system_protocol::ids::ProgramId::from_bytes([1; 16]),
        name: "p".to_owned(),
        source: "s".to_owned(),
        source_hash: [1; 32],
        format: 1,
        code: vec![1],
        at: Timestamp(1),
    };
    let program = version.id;
    store.apply(Write::ProgramVersion(Box::new(version))).await.expect("new");
    store.apply(Write::ProgramRun { execution: execution_id(2), program, version: 1 }).await.expect("there");
    let read = async || store.run_head(execution_id(2)).await.expect("readable").expect("there").limits;
    assert_eq!(read().await, UsedLimits::default());
    let http = SpentCalls { calls: 1, denied: 2, refused: 3, bytes_in: 4, bytes_out: 5 };
    let calls = [("http".to_owned(), http)].into();
    let spent = SpentLimits { wall_ms: 1, cpu_us: u64::MAX, events: 3, output_bytes: 4, calls };
    let limits = UsedLimits { spent, exits: 1, kills: 2 };
    store.apply(progress(2, limits.clone())).await.expect("it runs");
    assert_eq!(read().await, limits);
    store.apply(Write::RunsKilled { executions: vec![execution_id(2)] }).await.expect("it runs");
    assert_eq!(read().await.kills, 3);
    store.apply(progress(2, UsedLimits::default())).await.expect("it runs");
    assert_eq!(read().await, UsedLimits::default());
}
