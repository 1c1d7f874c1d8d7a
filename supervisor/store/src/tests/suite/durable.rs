//! Programs, tasks, checkpoints.

use super::rejected;
use crate::StoreHandle;
use crate::tests::fixture::{ended, execution_id, mine, owner, running};
use vm_system_protocol::ids::{ProgramId, TaskId};
use vm_system_protocol::time::Timestamp;
use vm_system_record::{
    Batch, Checkpoint, Entity, ItemOutcome, ItemRow, NewProgramVersion, Page, ProgramQuery, Rejection,
    TaskQuery, WaitKind, Write,
};

pub(super) async fn program_gets_a_version_each_time_it_is_loaded(store: StoreHandle) {
    store.apply(running()).await.expect("new");
    let load = |n: u8, source: &str| {
        Write::ProgramVersion(Box::new(NewProgramVersion {
            owner: owner(1),
            id: ProgramId::from_bytes([n; 16]),
            name: "p".to_owned(),
            source: source.to_owned(),
            source_hash: [n; 32],
            format: 1,
            code: vec![n],
            at: Timestamp(i64::from(n)),
        }))
    };
    store.apply(load(1, "a")).await.expect("new");
    store.apply(load(2, "b")).await.expect("a new version");
    let row = store.program_by_name(&mine(), "p").await.expect("readable").expect("there");
    assert_eq!((row.id, row.version), (ProgramId::from_bytes([1; 16]), 2));
    assert_eq!((row.created_at, row.modified_at), (Timestamp(1), Timestamp(2)));
    let run = |version| Write::ProgramRun { execution: execution_id(1), program: row.id, version };
    assert_eq!(store.apply(run(3)).await, rejected(Rejection::Missing(Entity::Program)));
    store.apply(run(1)).await.expect("there");
    store.apply(Write::ProgramDelete { id: row.id, at: Timestamp(3) }).await.expect("there");
    assert_eq!(store.program(&mine(), row.id).await, Ok(None));
    assert_eq!(store.program_run(execution_id(1)).await, Ok(Some((row.id, 1))));
    let code = store.program_code(row.id, 1).await.expect("readable").expect("executions keep it");
    assert_eq!(code.source, "a");
    store.apply(load(3, "c")).await.expect("the name is free again");
    assert_eq!(
        store.programs(&mine(), &ProgramQuery::default(), Page::ALL).await.expect("readable").len(),
        1
    );
}

pub(super) async fn an_imported_program_is_seen_with_its_last_version(store: StoreHandle) {
    let id = ProgramId::from_bytes([1; 16]);
    let version = |id, n: u8| {
        Write::ProgramImport(Box::new(NewProgramVersion {
            owner: owner(1),
            id,
            name: "p".to_owned(),
            source: format!("{n}"),
            source_hash: [n; 32],
            format: 1,
            code: vec![n],
            at: Timestamp(i64::from(n)),
        }))
    };
    let shown = |id| Write::ProgramImported { id };
    store.apply(version(id, 1)).await.expect("new");
    assert_eq!(store.program_by_name(&mine(), "p").await, Ok(None), "a part of it");
    let other = ProgramId::from_bytes([2; 16]);
    store.apply(Batch(vec![version(other, 9)])).await.expect("another import of this name");
    store.apply(Batch(vec![version(id, 2), version(id, 3), shown(id)])).await.expect("the rest");
    let row = store.program_by_name(&mine(), "p").await.expect("readable").expect("there");
    assert_eq!((row.id, row.version), (id, 3));
    assert_eq!(store.apply(shown(other)).await, rejected(Rejection::Conflict(Entity::Program)));
    assert_eq!(store.apply(version(id, 4)).await, rejected(Rejection::Conflict(Entity::Program)));
    let prune = Write::Prune { before: Timestamp(10_000), keys_before: Timestamp(0), max_rows: 1_000 };
    store.apply(prune).await.expect("possible");
    assert_eq!(store.program_code(other, 1).await, Ok(None), "what the interrupted import left");
    assert_eq!(store.apply(shown(other)).await, rejected(Rejection::Missing(Entity::Program)));
}

pub(super) async fn unused_versions_are_deleted_when_there_are_newer_ones(store: StoreHandle) {
    store.apply(running()).await.expect("new");
    let load = |n: u8| {
        Write::ProgramVersion(Box::new(NewProgramVersion {
            owner: owner(1),
            id: ProgramId::from_bytes([n; 16]),
            name: "p".to_owned(),
            source: "s".to_owned(),
            source_hash: [n; 32],
            format: 1,
            code: vec![n],
            at: Timestamp(i64::from(n)),
        }))
    };
    let program = ProgramId::from_bytes([1; 16]);
    let prune =
        |before| Write::Prune { before: Timestamp(before), keys_before: Timestamp(0), max_rows: 1_000 };
    store.apply(load(1)).await.expect("new");
    let run = Write::ProgramRun { execution: execution_id(1), program, version: 1 };
    store.apply(run).await.expect("there");
    store.apply(load(2)).await.expect("another text");
    store.apply(load(2)).await.expect("the same text");
    let row = store.program_by_name(&mine(), "p").await.expect("readable").expect("there");
    assert_eq!(row.version, 2, "an unchanged program gets no new version");
    store.apply(load(3)).await.expect("another text");
    assert_eq!(store.apply(prune(2)).await.map(|applied| applied.rows), Ok(0), "it is too new");
    assert_eq!(store.apply(prune(10_000)).await.map(|applied| applied.rows), Ok(1));
    assert_eq!(store.program_code(program, 2).await, Ok(None), "no execution runs it");
    assert!(store.program_code(program, 1).await.expect("readable").is_some(), "an execution runs it");
    assert!(store.program_code(program, 3).await.expect("readable").is_some(), "it is the newest");
    let delete = Write::ProgramDelete { id: program, at: Timestamp(4) };
    store
        .apply(Batch(vec![delete, ended(1, 1), Write::RunDelete { id: execution_id(1) }]))
        .await
        .expect("there");
    assert_eq!(store.apply(prune(10_000)).await.map(|applied| applied.rows), Ok(3));
    assert_eq!(store.program_code(program, 3).await, Ok(None), "it goes with its program");
    store.apply(load(1)).await.expect("nothing of it is left, not even its id");
}

pub(super) async fn what_an_execution_wrote_behind_its_last_pause_goes_with_its_end(store: StoreHandle) {
    store.apply(running()).await.expect("new");
    let execution = execution_id(1);
    let checkpoint = |seq: u64, cause: &str, pages: Vec<(u64, Option<Vec<u8>>)>| {
        let (at, cause) = (Timestamp(1), cause.to_owned());
        Write::Checkpoint(Box::new(Checkpoint {
            execution,
            seq,
            at,
            cause,
            pages,
            unweighed: None,
            written: 0,
        }))
    };
    let page = |byte| Some(vec![byte; 8]);
    let trim = Write::CheckpointsTrim { execution };
    store.apply(checkpoint(1, "start", vec![(0, page(1)), (1, page(1))])).await.expect("new");
    store.apply(checkpoint(2, "pause", vec![(0, page(2))])).await.expect("new");
    store.apply(trim.clone()).await.expect("nothing is behind it");
    let whole = |pages: Vec<(u64, Vec<u8>)>| {
        pages.into_iter().map(|(page, bytes)| (page, bytes[0])).collect::<Vec<_>>()
    };
    let state = async |at| whole(store.state_part(execution, at, None, usize::MAX).await.expect("readable"));
    assert_eq!(state(2).await, [(0, 2), (1, 1)]);
    store.apply(checkpoint(3, "steps", vec![(0, page(3)), (1, None)])).await.expect("new");
    store.apply(checkpoint(4, "effect", vec![(2, page(4))])).await.expect("new");
    assert_eq!(state(4).await, [(0, 3), (2, 4)]);
    store.apply(trim.clone()).await.expect("there");
    assert_eq!(state(2).await, [(0, 2), (1, 1)], "the pause is whole");
    let kept =
        |rows: Vec<vm_system_record::CheckpointRow>| rows.iter().map(|row| row.seq).collect::<Vec<_>>();
    assert_eq!(kept(store.checkpoints(execution).await.expect("readable")), [1, 2]);
    let rows = store.page_versions(execution, None, usize::MAX).await.expect("readable");
    assert_eq!(rows.len(), 3, "{rows:?}");
    // Where the pauses are forgotten nothing is left.
    store.apply(checkpoint(3, "steps", vec![(0, page(3))])).await.expect("new");
    store.apply(Write::CheckpointCompact { execution, keep_from: 3, keep_bytes: None }).await.expect("there");
    store.apply(trim).await.expect("there");
    assert_eq!(store.checkpoints(execution).await, Ok(Vec::new()));
    assert_eq!(store.page_versions(execution, None, usize::MAX).await, Ok(Vec::new()));
}

pub(super) async fn tasks_of_an_execution_are_numbered_and_end_in_any_order(store: StoreHandle) {
    store.apply(Batch::from(vec![])).await.expect("nothing to do");
    store.apply(running()).await.expect("new");
    let task = |n: u8, execution| ItemRow {
        id: TaskId::from_bytes([n; 16]),
        owner: owner(1),
        execution: execution_id(execution),
        prompt: "why?".to_owned(),
        schema: None,
        attempts: 0,
        created_at: Timestamp(i64::from(n)),
        deadline: Some(Timestamp(99)),
        ended_at: None,
        answer: None,
        outcome: None,
        item: n.into(),
        kind: WaitKind::Question,
        name: None,
        answer_seq: None,
        taken_at: None,
        checkpoint: n.into(),
        retries: None,
        fallback: None,
        first_attempt_at: None,
        last_attempt_at: None,
    };
    let insert = |n, execution| Write::ItemInsert(Box::new(task(n, execution)));
    let id = TaskId::from_bytes([1; 16]);
    assert_eq!(store.apply(insert(1, 9)).await, rejected(Rejection::Missing(Entity::Execution)));
    store.apply(insert(1, 1)).await.expect("new");
    assert_eq!(store.apply(insert(1, 1)).await, rejected(Rejection::Conflict(Entity::Task)), "its id");
    let same_number = ItemRow { item: 1, ..task(2, 1) };
    let same_number = Write::ItemInsert(Box::new(same_number));
    assert_eq!(store.apply(same_number).await, rejected(Rejection::Conflict(Entity::Task)), "its number");
    store.apply(insert(2, 1)).await.expect("another one");
    let oldest = store.pending_task(execution_id(1)).await.expect("readable").expect("there");
    assert_eq!(oldest.id, id);
    store
        .apply(Write::TaskAttempt { execution: execution_id(1), id, at: Timestamp(4) })
        .await
        .expect("pending");
    assert_eq!(store.tasks(&mine(), TaskQuery::PENDING, Page::ALL).await.expect("readable")[0].attempts, 1);
    let outcome = ItemOutcome::Answered;
    let end = Write::ItemEnd {
        execution: execution_id(1),
        id,
        outcome,
        answer: Some("so".to_owned()),
        at: Timestamp(5),
        taken_at: None,
    };
    store.apply(end.clone()).await.expect("pending");
    assert_eq!(store.apply(end).await, rejected(Rejection::Finished(Entity::Task)));
    let pending = store.pending_task(execution_id(1)).await.expect("readable").expect("the other one");
    assert_eq!(pending.id, TaskId::from_bytes([2; 16]));
    let read = store.task(&mine(), id).await.expect("readable").expect("there");
    assert_eq!(read.answer.as_deref(), Some("so"));
    let withdraw = Write::ItemsWithdraw { execution: execution_id(1), at: Timestamp(6) };
    assert_eq!(store.apply(withdraw.clone()).await.map(|applied| applied.rows), Ok(1));
    assert_eq!(store.apply(withdraw).await.map(|applied| applied.rows), Ok(0), "no error if there is none");
    let read = store.task(&mine(), TaskId::from_bytes([2; 16])).await.expect("readable").expect("there");
    assert_eq!((read.outcome, read.ended_at), (Some(ItemOutcome::Withdrawn), Some(Timestamp(6))));
}

pub(super) async fn state_is_the_newest_version_of_each_page_and_compaction_keeps_it(store: StoreHandle) {
    store.apply(running()).await.expect("new");
    let execution = execution_id(1);
    let point = |seq, pages: &[(u64, Option<&[u8]>)]| {
        let pages = pages.iter().map(|(page, bytes)| (*page, bytes.map(<[u8]>::to_vec))).collect();
        let cause = "pause".to_owned();
        Write::Checkpoint(Box::new(Checkpoint {
            execution,
            seq,
            at: Timestamp(1),
            cause,
            pages,
            unweighed: None,
            written: 0,
        }))
    };
    store.apply(point(1, &[(0, Some(b"a1")), (1, Some(b"b1")), (2, Some(b"c1"))])).await.expect("new");
    store.apply(point(2, &[(0, Some(b"a2"))])).await.expect("new");
    store.apply(point(3, &[(1, None)])).await.expect("new");
    assert_eq!(store.apply(point(3, &[])).await, rejected(Rejection::Conflict(Entity::Checkpoint)));
    let state = |seq| {
        let store = store.clone();
        async move { store.state(execution, seq).await.expect("readable") }
    };
    let page = |n, bytes: &[u8]| (n, bytes.to_vec());
    assert_eq!(state(1).await, [page(0, b"a1"), page(1, b"b1"), page(2, b"c1")]);
    assert_eq!(state(2).await, [page(0, b"a2"), page(1, b"b1"), page(2, b"c1")]);
    assert_eq!(state(3).await, [page(0, b"a2"), page(2, b"c1")]);
    let compact = |keep_from, keep_bytes| Write::CheckpointCompact { execution, keep_from, keep_bytes };
    let rows = async |write| store.apply(write).await.map(|applied| applied.rows);
    assert_eq!(rows(compact(1, None)).await, Ok(0));
    let bound = |most| Write::StateBound { execution, most };
    assert_eq!(rows(bound(2 * (64 + 2))).await, Ok(0));
    assert_eq!(store.apply(bound(2 * 66 - 1)).await, rejected(Rejection::TooLarge(Entity::Checkpoint)));
    assert_eq!(
        rows(compact(0, Some(130))).await,
        Ok(0),
        "exactly this many bytes were written after the first one"
    );
    assert_eq!(rows(compact(0, Some(129))).await, Ok(2), "one version and its checkpoint");
    assert_eq!(state(2).await, [page(0, b"a2"), page(1, b"b1"), page(2, b"c1")]);
    assert_eq!(rows(compact(3, None)).await, Ok(3), "a version, that its page is gone, a checkpoint");
    assert_eq!(state(3).await, [page(0, b"a2"), page(2, b"c1")]);
    assert_eq!(store.checkpoints(execution).await.expect("readable").len(), 1);
}

pub(super) async fn current_execution_of_a_client_is_kept_until_it_is_deleted(store: StoreHandle) {
    store.apply(running()).await.expect("new");
    let execution = execution_id(1);
    let set = |client: &str, execution, at| Write::CurrentSet {
        owner: owner(1),
        client: client.to_owned(),
        execution,
        at: Timestamp(at),
    };
    let missing = store.apply(set("a", execution_id(9), 1)).await;
    assert_eq!(missing, rejected(Rejection::Missing(Entity::Execution)));
    store.apply(set("a", execution, 1)).await.expect("there");
    assert_eq!(store.current(&owner(1), "a").await, Ok(Some(execution)));
    assert_eq!(store.current(&owner(1), "b").await, Ok(None));
    assert_eq!(store.current(&owner(2), "a").await, Ok(None));
    // A thousand others: the least recently used is deleted.
    let others: Vec<Write> = (0..1_000).map(|n| set(&format!("other {n}"), execution, 2 + n)).collect();
    store.apply(others).await.expect("there");
    assert_eq!(store.current(&owner(1), "a").await, Ok(None));
    assert_eq!(store.current(&owner(1), "other 0").await, Ok(Some(execution)));
    let gone = store.apply(Write::RunDelete { id: execution }).await;
    assert_eq!(gone, rejected(Rejection::Conflict(Entity::Execution)), "it has not ended");
    store.apply(ended(1, 1)).await.expect("running");
    store.apply(Write::RunDelete { id: execution }).await.expect("ended");
    assert_eq!(store.current(&owner(1), "other 0").await, Ok(None));
    let again = store.apply(Write::RunDelete { id: execution }).await;
    assert_eq!(again, rejected(Rejection::Missing(Entity::Execution)));
}
