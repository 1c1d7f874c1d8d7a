//! Sessions: snapshots, endings, lists.

use super::rejected;
use crate::StoreHandle;
use crate::tests::fixture::{
    ended, execution_id, mine, owner, policy, running, session, session_id, session_record, started,
    template, template_id,
};
use std::sync::Arc;
use vm_system_protocol::model::{
    Engine, ExecutionError, ExecutionStatus, SessionEventType, SessionStatus, Settings,
};
use vm_system_protocol::reason::CloseReason;
use vm_system_protocol::time::Timestamp;
use vm_system_record::{
    Batch, Cursor, Entity, Page, PolicySnapshot, Rejection, Scope, SessionChange, SessionQuery, Write,
};

pub(super) async fn session_needs_a_template_and_keeps_its_snapshot(store: StoreHandle) {
    assert_eq!(store.apply(session(1, 1)).await, rejected(Rejection::Missing(Entity::Template)));
    store.apply(Batch(vec![template(1, "t"), session(1, 1)])).await.expect("new");
    let row = store.session(&mine(), session_id(1)).await.expect("readable").expect("there");
    assert_eq!(row.session, session_record(1, 1));
    assert_eq!(store.session(&Scope::Owner(owner(2)), session_id(1)).await, Ok(None));
    let mut settings = Settings::default();
    settings.limits.mem_mb = 1;
    let update = Write::TemplateUpdate {
        id: template_id(1),
        name: None,
        settings: Some(Box::new(settings)),
        at: Timestamp(1),
    };
    store.apply(update).await.expect("there");
    assert_eq!(store.session_policy(session_id(1)).await, Ok(Some(policy())));
}

pub(super) async fn ended_session_never_changes(store: StoreHandle) {
    store.apply(Batch(vec![template(1, "t"), session(1, 1)])).await.expect("new");
    let change = SessionChange::Name("nightly".to_owned());
    let rename = |number| Write::SessionChange { id: session_id(number), change: change.clone() };
    store.apply(rename(1)).await.expect("live");
    let end = |status, reason| Write::SessionEnd {
        id: session_id(1),
        status,
        at: Timestamp(9_000),
        reason,
        last_error: Some("boom".to_owned()),
    };
    let reason = CloseReason::Signal("SIGSEGV".to_owned());
    store.apply(end(SessionStatus::Crashed, reason)).await.expect("live");
    let row = store.session(&mine(), session_id(1)).await.expect("readable").expect("there");
    assert_eq!(row.session.close_reason.as_deref(), Some("signal(SIGSEGV)"));
    assert_eq!(row.session.last_error.as_deref(), Some("boom"));
    assert_eq!(row.session.name.as_deref(), Some("nightly"));
    let finished = rejected(Rejection::Finished(Entity::Session));
    assert_eq!(store.apply(end(SessionStatus::Closed, CloseReason::Exited)).await, finished);
    assert_eq!(store.apply(Write::SessionReady { id: session_id(1) }).await, finished);
    assert_eq!(store.apply(rename(1)).await, finished);
    let missing = rejected(Rejection::Missing(Entity::Session));
    assert_eq!(store.apply(Write::SessionReady { id: session_id(2) }).await, missing);
    assert_eq!(store.apply(rename(2)).await, missing);
}

pub(super) async fn the_end_of_a_session_leaves_no_execution_running_and_the_end_of_that_may_follow(
    store: StoreHandle,
) {
    store.apply(running()).await.expect("new");
    let closed = Write::SessionEnd {
        id: session_id(1),
        status: SessionStatus::Closed,
        at: Timestamp(9_000),
        reason: CloseReason::Exited,
        last_error: None,
    };
    store.apply(closed).await.expect("live");
    let execution = || async {
        store.execution(&mine(), execution_id(1)).await.expect("readable").expect("there").execution
    };
    let lost = execution().await;
    assert_eq!((lost.status, lost.degraded), (ExecutionStatus::Error, true));
    assert_eq!(lost.error.map(|error| error.code).as_deref(), Some("HOST_RESTART"));
    // The disk has space again.
    store.apply(ended(1, 1)).await.expect("not stored before");
    let ended_at_last = execution().await;
    assert_eq!((ended_at_last.status, ended_at_last.degraded), (ExecutionStatus::Ok, true));
    let finished = rejected(Rejection::Finished(Entity::Execution));
    assert_eq!(store.apply(ended(1, 1)).await, finished);
}

pub(super) async fn a_session_that_continues_with_another_worker_starts_again_with_message_0(
    store: StoreHandle,
) {
    store.apply(template(1, "t")).await.expect("new");
    store.apply(session(1, 1)).await.expect("new");
    store.apply(Write::SessionReady { id: session_id(1) }).await.expect("started");
    store.apply(Write::WorkerSeq { session: session_id(1), seq: 5 }).await.expect("live");
    let restoring = |number| Write::SessionRestoring {
        id: session_id(number),
        kind: SessionEventType::RolledBack,
        at: Timestamp(9),
        detail: "checkpoint 1".to_owned(),
    };
    store.apply(restoring(1)).await.expect("ready");
    let row = store.session(&mine(), session_id(1)).await.expect("readable").expect("there");
    assert_eq!((row.session.status, row.worker_seq), (SessionStatus::Starting, 0));
    store.apply(Write::SessionReady { id: session_id(1) }).await.expect("started");
    let row = store.session(&mine(), session_id(1)).await.expect("readable").expect("there");
    assert_eq!(row.session.status, SessionStatus::Ready);
    let missing = rejected(Rejection::Missing(Entity::Session));
    assert_eq!(store.apply(restoring(2)).await, missing);
}

pub(super) async fn lists_are_newest_first_and_pages_join_without_gap_or_double(store: StoreHandle) {
    store.apply(template(1, "t")).await.expect("new");
    let mut batch = Vec::new();
    for n in 1..=9 {
        // Three share a moment: the id breaks the tie.
        let mut record = session_record(n, 1);
        record.created_at = Timestamp(i64::from(n / 3));
        batch.push(Write::SessionInsert {
            owner: owner(1 + n % 2),
            session: Arc::new(record),
            policy: policy(),
            worktree: None,
        });
    }
    store.apply(batch).await.expect("new");
    let all = store.sessions(&Scope::All, &SessionQuery::default(), Page::ALL).await.expect("readable");
    let numbers: Vec<u8> = all.iter().map(|row| row.session.id.as_bytes()[15]).collect();
    assert_eq!(numbers, [9, 8, 7, 6, 5, 4, 3, 2, 1]);
    let mut paged = Vec::new();
    let mut page = Page::first(2);
    loop {
        let part = store.sessions(&Scope::All, &SessionQuery::default(), page).await.expect("readable");
        let Some(last) = part.last() else { break };
        page.after = Some(Cursor { at: last.session.created_at, id: *last.session.id.as_bytes() });
        paged.extend(part);
    }
    assert_eq!(paged, all);
    let theirs = store.sessions(&Scope::Owner(owner(2)), &SessionQuery::default(), Page::ALL).await;
    assert_eq!(theirs.expect("readable").len(), 5);
}

pub(super) async fn restart_of_the_host_ends_sessions_without_a_worker(store: StoreHandle) {
    let durable = Arc::new(PolicySnapshot { engine: Engine::Cvm, ..(*policy()).clone() });
    let cvm = Write::SessionInsert {
        owner: owner(1),
        session: Arc::new(session_record(3, 1)),
        policy: durable,
        worktree: None,
    };
    store.apply(running()).await.expect("new");
    let more = vec![
        session(2, 1),
        cvm,
        session(5, 1),
        session(7, 1),
        started(2, 2),
        started(3, 3),
        started(4, 1),
        started(5, 5),
        started(6, 2),
    ];
    store.apply(Batch(more)).await.expect("new");
    let wait = Write::ExecutionStatus { id: execution_id(4), status: ExecutionStatus::Waiting };
    store.apply(wait).await.expect("running");
    let restart = || Write::HostRestart {
        at: Timestamp(9_000),
        alive: vec![session_id(2)],
        continued: vec![session_id(5)],
        earlier: Some((1..=5).map(session_id).collect()),
        why: None,
    };
    assert_eq!(store.apply(restart()).await.map(|applied| applied.rows), Ok(5));
    assert_eq!(store.apply(restart()).await.map(|applied| applied.rows), Ok(0));
    let later = store.session(&mine(), session_id(7)).await.expect("readable").expect("there").session;
    assert_ne!(later.status, SessionStatus::Crashed, "this supervisor began it");
    let session = store.session(&mine(), session_id(1)).await.expect("readable").expect("there").session;
    assert_eq!(session.status, SessionStatus::Crashed);
    assert_eq!(session.close_reason.as_deref(), Some("host_restart"));
    assert_eq!(session.last_error.as_deref(), Some("the worker was gone when the supervisor started"));
    let status = |n| {
        let store = store.clone();
        async move { store.execution(&mine(), execution_id(n)).await.expect("readable").expect("there").execution }
    };
    let died = status(1).await;
    let expected = ExecutionError::new("WORKER_DIED", "the worker was gone when the supervisor started")
        .because(Some("host_restart".to_owned()));
    assert_eq!((died.status, died.error), (ExecutionStatus::Error, Some(expected)));
    assert_eq!(status(4).await.status, ExecutionStatus::Error);
    let statuses = [status(2).await, status(6).await].map(|execution| execution.status);
    assert!(statuses.contains(&ExecutionStatus::Running), "its worker was adopted: {statuses:?}");
    assert!(statuses.contains(&ExecutionStatus::Error), "one runs at a time: {statuses:?}");
    assert_eq!(status(3).await.status, ExecutionStatus::Running, "durable executions resume");
    assert_eq!(status(5).await.status, ExecutionStatus::Error, "its worker is replaced");
    let continued = store.session(&mine(), session_id(5)).await.expect("readable").expect("there").session;
    assert_eq!(continued.closed_at, None);
}
