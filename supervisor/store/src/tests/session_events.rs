//! The events of a session's life: complete, in order, numbered without a gap, and deleted with what they are about.

use super::fixture::{
    ended, execution_id, mine, on_disk, options, owner, policy, running, session_id, session_record, started,
};
use crate::{StoreHandle, open_sqlite};
use std::sync::Arc;
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::model::{
    Execution, ExecutionStatus, SessionEvent, SessionEventType, SessionFacts, SessionStatus,
};
use vm_system_protocol::reason::CloseReason;
use vm_system_protocol::time::Timestamp;
use vm_system_record::Write;

async fn all(store: &StoreHandle, session: u8) -> Vec<SessionEvent> {
    store.session_events(session_id(session), 0, 1_000).await.expect("readable")
}

fn kinds(events: &[SessionEvent]) -> Vec<&'static str> {
    events.iter().map(|event| event.kind.as_str()).collect()
}

fn numbers(events: &[SessionEvent]) -> Vec<u64> {
    events.iter().map(|event| event.seq).collect()
}

fn end(at: i64) -> Write {
    Write::SessionEnd {
        id: session_id(1),
        status: SessionStatus::Crashed,
        at: Timestamp(at),
        reason: CloseReason::KeeperLost,
        last_error: Some("it is lost".to_owned()),
    }
}

#[tokio::test]
async fn life_of_a_session_is_numbered_whatever_was_committed_together() {
    let disk = on_disk();
    let store = &disk.store;
    store.apply(running()).await.expect("new");
    let waits = |status| Write::ExecutionStatus { id: execution_id(1), status };
    store.apply(waits(ExecutionStatus::Waiting)).await.expect("it runs");
    store.apply(waits(ExecutionStatus::Running)).await.expect("it waits");
    store.apply(ended(1, 1)).await.expect("it runs");
    // One commit: the start and the end are one row.
    store.apply(vec![started(2, 1), ended(2, 1)]).await.expect("new");
    let fork = vm_system_protocol::model::Session {
        runtime_meta: SessionFacts { forked_from: Some(session_id(1)), ..SessionFacts::default() },
        ..session_record(2, 1)
    };
    let (owner, session, policy) = (owner(1), Arc::new(fork), policy());
    store.apply(Write::SessionInsert { owner, session, policy, worktree: None }).await.expect("new");
    let adopted = SessionEventType::Adopted;
    let adopted =
        Write::SessionEvent { session: session_id(1), kind: adopted, at: Timestamp(4_500), detail: None };
    store.apply(adopted).await.expect("it is there");
    store.apply(end(5_000)).await.expect("live");
    let life = all(store, 1).await;
    let expected = [
        "created",
        "ready",
        "execution_started",
        "execution_waiting",
        "execution_resumed",
        "execution_ended",
        "execution_started",
        "execution_ended",
        "forked",
        "adopted",
        "crashed",
    ];
    assert_eq!(kinds(&life), expected, "{life:?}");
    assert_eq!(numbers(&life), (1..=11).collect::<Vec<_>>());
    assert_eq!(life[7].execution_id, Some(execution_id(2)));
    assert_eq!(life[7].detail.as_deref(), Some("ok"));
    assert_eq!(life[8].other_session_id, Some(session_id(2)));
    assert!(life[10].detail.as_deref().is_some_and(|detail| detail.ends_with("it is lost")), "{life:?}");
    for after in 0..12 {
        let later = store.session_events(session_id(1), after, 1_000).await.expect("readable");
        assert_eq!(numbers(&later), (after + 1..=11).collect::<Vec<_>>());
    }
    let of_fork = all(store, 2).await;
    assert_eq!((kinds(&of_fork), of_fork[0].other_session_id), (vec!["created"], Some(session_id(1))));
    store.shutdown().await;
}

#[tokio::test]
async fn events_are_deleted_with_their_executions_and_a_number_is_never_used_again() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let store = open_sqlite(options(folder.path())).expect("an empty folder");
    store.apply(running()).await.expect("new");
    store.apply(ended(1, 1)).await.expect("it runs");
    for number in 2..40 {
        store.apply(vec![started(number, 1), ended(number, 1)]).await.expect("new");
    }
    let before = all(&store, 1).await;
    let last = before.last().map_or(0, |event| event.seq);
    let prune = Write::Prune { before: Timestamp(4_000_000), keys_before: Timestamp(0), max_rows: 100_000 };
    while store.apply(prune.clone()).await.expect("always").rows > 0 {}
    assert!(store.execution(&mine(), execution_id(5)).await.expect("readable").is_none(), "old");
    let after = all(&store, 1).await;
    assert!(after.len() < 8, "{after:?}");
    store.apply(vec![started(41, 1), ended(41, 1)]).await.expect("new");
    let later = store.session_events(session_id(1), last, 100).await.expect("readable");
    assert_eq!(numbers(&later), [last + 1, last + 2]);
    store.apply(end(4_500)).await.expect("live");
    while store.apply(prune.clone()).await.expect("always").rows > 0 {}
    assert!(store.session(&mine(), session_id(1)).await.expect("readable").is_none());
    assert_eq!(all(&store, 1).await, []);
    store.shutdown().await;
}

fn checkpointed(number: u64) -> Write {
    let (kind, detail) = (SessionEventType::Checkpointed, Some(number.to_string()));
    Write::SessionEvent { session: session_id(1), kind, at: Timestamp(2_500), detail }
}

#[tokio::test]
async fn a_rollback_is_an_event_and_the_session_is_ready_after_it() {
    let disk = on_disk();
    let store = &disk.store;
    store.apply(running()).await.expect("new");
    store.apply(ended(1, 1)).await.expect("it runs");
    let from = all(store, 1).await.len() as u64;
    store.apply(checkpointed(1)).await.expect("it is there");
    let restoring = |detail: &str| Write::SessionRestoring {
        id: session_id(1),
        kind: SessionEventType::RolledBack,
        at: Timestamp(3_000),
        detail: detail.to_owned(),
    };
    // As after a crash: one commit.
    store.apply(vec![started(2, 1), ended(2, 1), restoring("signal(SIGSEGV)")]).await.expect("ready");
    store.apply(Write::SessionReady { id: session_id(1) }).await.expect("starting");
    store.apply(restoring("checkpoint 1")).await.expect("ready");
    let life = store.session_events(session_id(1), from, 100).await.expect("readable");
    let expected =
        ["checkpointed", "execution_started", "execution_ended", "rolled_back", "ready", "rolled_back"];
    assert_eq!(kinds(&life), expected, "{life:?}");
    assert_eq!(numbers(&life), (from + 1..=from + 6).collect::<Vec<_>>());
    let details = [&life[0], &life[3], &life[5]].map(|event| event.detail.as_deref());
    assert_eq!(details, [Some("1"), Some("signal(SIGSEGV)"), Some("checkpoint 1")]);
    assert_eq!((life[3].at, life[3].execution_id), (Timestamp(3_000), None));
    store.shutdown().await;
}

#[tokio::test]
async fn each_restart_is_an_event_also_while_another_one_is_under_way() {
    let disk = on_disk();
    let store = &disk.store;
    store.apply(running()).await.expect("new");
    store.apply(ended(1, 1)).await.expect("it runs");
    let from = all(store, 1).await.len() as u64;
    let restarting = |detail: &str, at| Write::SessionRestoring {
        id: session_id(1),
        kind: SessionEventType::Restarted,
        at: Timestamp(at),
        detail: detail.to_owned(),
    };
    store.apply(restarting("signal(SIGKILL)", 3_000)).await.expect("ready");
    store.apply(Write::WorkerSeq { session: session_id(1), seq: 5 }).await.expect("live");
    store.apply(restarting("startup_failed(a.js)", 3_100)).await.expect("starting");
    let row = store.session(&mine(), session_id(1)).await.expect("readable").expect("there");
    assert_eq!((row.session.status, row.worker_seq), (SessionStatus::Starting, 0));
    store.apply(Write::SessionReady { id: session_id(1) }).await.expect("starting");
    let life = store.session_events(session_id(1), from, 100).await.expect("readable");
    assert_eq!(kinds(&life), ["restarted", "restarted", "ready"], "{life:?}");
    assert_eq!(numbers(&life), [from + 1, from + 2, from + 3]);
    assert_eq!(life[1].detail.as_deref(), Some("startup_failed(a.js)"));
    assert_eq!([life[0].at, life[1].at], [Timestamp(3_000), Timestamp(3_100)]);
    store.shutdown().await;
}

#[tokio::test]
async fn events_that_no_execution_counts_for_are_bounded() {
    let disk = on_disk();
    let store = &disk.store;
    store.apply(running()).await.expect("new");
    let kept = 10_000;
    for round in 0..12 {
        let batch: Vec<Write> = (1..=1_000).map(|number| checkpointed(round * 1_000 + number)).collect();
        store.apply(batch).await.expect("it is there");
    }
    let all = store.session_events(session_id(1), 0, 20_000).await.expect("readable");
    assert_eq!(all.last().and_then(|last| last.detail.as_deref()), Some("12000"));
    assert!((kept..kept + 8).contains(&all.len()), "{}", all.len());
    assert_ne!(all[0].seq, 1, "without the first one, it is known that checkpoints are missing");
    store.shutdown().await;
}

fn with_id(write: Write, id: ExecutionId) -> Write {
    match write {
        Write::ExecutionStarted { name, execution } => {
            Write::ExecutionStarted { name, execution: Arc::new(Execution { id, ..(*execution).clone() }) }
        }
        Write::ExecutionEnded(execution) => {
            Write::ExecutionEnded(Arc::new(Execution { id, ..(*execution).clone() }))
        }
        other => panic!("{other:?} is about no execution"),
    }
}

#[tokio::test]
async fn suspensions_of_a_session_with_many_executions_cost_none_of_its_record() {
    let disk = on_disk();
    let store = &disk.store;
    store.apply(running()).await.expect("new");
    let event =
        |kind, at| Write::SessionEvent { session: session_id(1), kind, at: Timestamp(at), detail: None };
    store.apply(event(SessionEventType::Suspended, 1)).await.expect("it is there");
    for round in 0..8 {
        let batch = (1..=700).flat_map(|number| {
            let id = ExecutionId::from_bytes((u128::MAX - round * 1_000 - number).to_be_bytes());
            [with_id(started(2, 1), id), with_id(ended(2, 1), id)]
        });
        store.apply(batch.collect::<Vec<Write>>()).await.expect("executions");
    }
    for _ in 0..20 {
        let batch = vec![event(SessionEventType::Suspended, 2), event(SessionEventType::Resumed, 3)];
        store.apply(batch).await.expect("it is there");
    }
    let all = store.session_events(session_id(1), 0, 20_000).await.expect("readable");
    assert_eq!(all[0].seq, 1);
    let of_executions = all.iter().filter(|event| event.execution_id.is_some()).count();
    assert!(of_executions >= 2 * 8 * 700, "{of_executions}");
    store.shutdown().await;
}

#[tokio::test]
async fn commit_wakes_who_waits_for_its_session() {
    let disk = on_disk();
    let store = &disk.store;
    store.apply(running()).await.expect("new");
    let (watch, other) = (store.watch_session(session_id(1)), store.watch_session(session_id(9)));
    for write in [
        Write::ExecutionStatus { id: execution_id(1), status: ExecutionStatus::Waiting },
        ended(1, 1),
        started(2, 1),
        Write::SessionRestoring {
            id: session_id(1),
            kind: SessionEventType::Restarted,
            at: Timestamp(3_000),
            detail: String::new(),
        },
        end(5_000),
    ] {
        let (mut woken, mut unrelated) = (Box::pin(watch.changed()), Box::pin(other.changed()));
        assert!(!woken.as_mut().enable() && !unrelated.as_mut().enable());
        store.apply(write.clone()).await.expect("it is possible");
        assert!(woken.as_mut().enable(), "{write:?}");
        assert!(!unrelated.as_mut().enable());
    }
    drop((watch, other));
    store.shutdown().await;
}
