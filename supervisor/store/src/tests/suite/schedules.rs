//! Schedules: who may change one, and when it is due.

use super::rejected;
use crate::StoreHandle;
use crate::tests::fixture::{execution_id, execution_record, mine, owner, running};
use std::sync::Arc;
use vm_system_protocol::control::ProgramStart;
use vm_system_protocol::ids::{ExecutionId, ScheduleId};
use vm_system_protocol::model::{Execution, ExecutionKind, ExecutionStatus, Overlap, ScheduleRule};
use vm_system_protocol::time::Timestamp;
use vm_system_record::{
    Batch, Entity, IdKind, Page, Rejection, ScheduleChange, ScheduleRow, ScheduleSpec, ScheduleState, Scope,
    Write,
};

fn id(n: u8) -> ScheduleId {
    ScheduleId::from_bytes([n; 16])
}

fn row(n: u8, name: &str) -> ScheduleRow {
    let rule = ScheduleRule {
        cron: None,
        every_ms: Some(1_000),
        time_zone: "UTC".to_owned(),
        overlap: Overlap::Queue,
        jitter_ms: 0,
    };
    let start = ProgramStart { program: "p".to_owned(), wait: false, ..ProgramStart::default() };
    ScheduleRow {
        id: id(n),
        owner: owner(1),
        name: name.to_owned(),
        created_at: Timestamp(i64::from(n)),
        revision: 0,
        next_at: Some(Timestamp(100 * i64::from(n))),
        spec: ScheduleSpec { rule, start },
        state: ScheduleState::default(),
    }
}

fn insert(row: ScheduleRow) -> Write {
    let due_at = row.next_at;
    Write::ScheduleInsert { schedule: Box::new(row), due_at }
}

/// To a next time, and perhaps with a queued time that waits for an execution.
fn change(n: u8, revision: u64, next: Option<i64>, waits_for: Option<ExecutionId>) -> Write {
    let next_at = next.map(Timestamp);
    let state = ScheduleState { queued_for: waits_for.map(|_| Timestamp(1)), ..ScheduleState::default() };
    Write::ScheduleChange(Box::new(ScheduleChange {
        id: id(n),
        revision,
        next_at,
        due_at: next_at,
        waits_for,
        state,
    }))
}

fn program(n: u8) -> Execution {
    Execution { kind: ExecutionKind::Program, ..execution_record(n, 1) }
}

fn begun(n: u8) -> Write {
    Write::ExecutionStarted { name: None, execution: Arc::new(program(n)) }
}

fn ended(n: u8) -> Write {
    let (status, ended_at) = (ExecutionStatus::Ok, Some(Timestamp(4_000)));
    Write::ExecutionEnded(Arc::new(Execution { status, ended_at, ..program(n) }))
}

async fn due(store: &StoreHandle, until: i64) -> Vec<(i64, ScheduleId)> {
    let first = (Timestamp(i64::MIN), id(0));
    let due = store.due_schedules(first, Timestamp(until), 10).await.expect("readable");
    due.into_iter().map(|due| (due.due_at.0, due.id)).collect()
}

pub(super) async fn schedule_is_read_as_it_was_stored_by_its_owner_alone(store: StoreHandle) {
    let (first, second) = (row(1, "a"), row(2, "b"));
    store.apply(vec![insert(first.clone()), insert(second.clone())]).await.expect("new");
    assert_eq!(
        store.apply(insert(row(3, "a"))).await,
        rejected(Rejection::Conflict(Entity::Schedule)),
        "the name is taken"
    );
    let of_another = ScheduleRow { owner: owner(2), ..row(3, "a") };
    store.apply(insert(of_another.clone())).await.expect("another owner");
    assert_eq!(store.schedule(&mine(), id(1)).await.expect("readable").as_deref(), Some(&first));
    assert_eq!(store.schedule(&mine(), id(3)).await, Ok(None));
    let named = store.schedule_by_name(&owner(2), "a").await.expect("readable");
    assert_eq!(named.as_deref(), Some(&of_another));
    assert_eq!(store.schedules(&mine(), Page::ALL).await, Ok(vec![second.clone(), first.clone()]));
    assert_eq!(store.schedules(&Scope::All, Page::ALL).await.expect("readable").len(), 3);
    assert_eq!(store.schedule_count(&owner(1)).await, Ok(2));
    let ids = store.ids(&mine(), IdKind::Schedule, [0; 16], [255; 16], 10).await;
    assert_eq!(ids, Ok(vec![*id(1).as_bytes(), *id(2).as_bytes()]));
    store.apply(Write::ScheduleDelete { id: id(1) }).await.expect("it is there");
    let missing = rejected(Rejection::Missing(Entity::Schedule));
    assert_eq!(store.apply(Write::ScheduleDelete { id: id(1) }).await, missing);
    assert!(store.check().await.expect("readable").ok, "what it took is counted");
}

pub(super) async fn of_two_changes_for_one_revision_the_second_is_refused_with_its_batch(store: StoreHandle) {
    store.apply(running()).await.expect("new");
    store.apply(insert(row(1, "a"))).await.expect("new");
    store.apply(vec![begun(2), change(1, 0, Some(200), None)]).await.expect("nobody was before");
    let conflict = rejected(Rejection::Conflict(Entity::Schedule));
    assert_eq!(store.apply(vec![begun(3), change(1, 0, Some(200), None)]).await, conflict);
    assert_eq!(store.execution(&Scope::All, execution_id(3)).await, Ok(None), "nothing of it is stored");
    let now = store.schedule(&mine(), id(1)).await.expect("readable").expect("it is there");
    assert_eq!((now.revision, now.next_at), (1, Some(Timestamp(200))));
    store.apply(Write::ScheduleDelete { id: id(1) }).await.expect("it is there");
    assert_eq!(store.apply(Batch(vec![change(1, 1, None, None)])).await, conflict, "it is gone");
}

pub(super) async fn schedules_are_due_in_the_order_of_their_times_and_paused_ones_never(store: StoreHandle) {
    store.apply(vec![insert(row(3, "c")), insert(row(1, "a")), insert(row(2, "b"))]).await.expect("new");
    assert_eq!(due(&store, 99).await, []);
    assert_eq!(due(&store, 200).await, [(100, id(1)), (200, id(2))]);
    let behind = store.due_schedules((Timestamp(100), id(1)), Timestamp(300), 1).await.expect("readable");
    assert_eq!(behind.iter().map(|due| due.id).collect::<Vec<_>>(), [id(2)]);
    assert_eq!(store.goes_on(Timestamp(99)).await, Ok(false));
    assert_eq!(store.goes_on(Timestamp(100)).await, Ok(true));
    store.apply(vec![change(1, 0, None, None), change(2, 0, Some(500), None)]).await.expect("unchanged");
    assert_eq!(due(&store, i64::MAX).await, [(300, id(3)), (500, id(2))]);
}

pub(super) async fn queued_time_is_due_when_the_execution_has_ended(store: StoreHandle) {
    store.apply(running()).await.expect("new");
    store.apply(vec![begun(2), begun(3), insert(row(1, "a")), insert(row(2, "b"))]).await.expect("new");
    let waits = |n, execution| change(n, 0, Some(900), Some(execution_id(execution)));
    store.apply(waits(1, 2)).await.expect("unchanged");
    assert_eq!(due(&store, 899).await, [(200, id(2))]);
    store.apply(vec![ended(2), ended(3)]).await.expect("they run");
    assert_eq!(due(&store, 899).await, [(0, id(1)), (200, id(2))]);
    store.apply(waits(2, 3)).await.expect("unchanged");
    assert_eq!(due(&store, 899).await, [(0, id(1)), (0, id(2))], "it had ended before");
    store.apply(change(1, 1, Some(900), None)).await.expect("unchanged");
    assert_eq!(due(&store, 899).await, [(0, id(2))]);
}
