//! What is forgotten when there is too much, and what is said until then.

use super::fixture::{
    console, ended, execution_id, mine, options, running, session_id, started, template_id,
};
use crate::store::{Retention, StoreHandle, StoreOptions, Write, open_sqlite};
use std::time::{Duration, Instant};
use vm_system_protocol::model::{Event, EventPayload, SessionStatus};
use vm_system_protocol::reason::CloseReason;
use vm_system_protocol::time::Timestamp;

fn session_ended() -> Write {
    Write::SessionEnd {
        id: session_id(1),
        status: SessionStatus::Closed,
        at: Timestamp(5_000),
        reason: CloseReason::Exited,
        last_error: None,
    }
}

/// Commits drive the turns behind which the writer measures and forgets.
async fn until(store: &StoreHandle, what: &str, holds: impl AsyncFn(&StoreHandle) -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !holds(store).await {
        assert!(Instant::now() < deadline, "{what}");
        store.apply(Write::MetaSet { key: "k".to_owned(), value: None }).await.expect("always");
    }
}

async fn fill(store: &StoreHandle, mebibytes: u64) {
    for seq in 1..=4 * mebibytes {
        let payload = EventPayload::Stdout { text: "x".repeat(256 << 10) };
        let event = Event { payload, ..console(1, seq) };
        store.apply(Write::Events([event].into())).await.expect("there is room");
    }
}

fn retention(prune_above_mib: u64, quota_mib: u64) -> Retention {
    Retention {
        max_age: None,
        key_life: Duration::MAX,
        prune_above_bytes: prune_above_mib << 20,
        quota_bytes: quota_mib << 20,
    }
}

#[tokio::test]
async fn above_its_mark_the_oldest_ended_records_go_and_live_ones_stay() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let retention = retention(2, 64);
    let store = open_sqlite(StoreOptions { retention, ..options(folder.path()) }).expect("empty");
    store.apply(running()).await.expect("new");
    fill(&store, 4).await;
    until(&store, "the size is never measured", async |store| store.status().bytes_used > 2 << 20).await;
    // Nothing has ended: nothing may go, however much it is.
    assert_eq!(store.events(execution_id(1), 0, 0).await.expect("readable").len(), 16);
    store.apply(vec![ended(1, 1), session_ended()]).await.expect("live");
    until(&store, "an ended session stays", async |store| {
        store.session(&mine(), session_id(1)).await.expect("readable").is_none()
    })
    .await;
    assert!(store.events(execution_id(1), 0, 0).await.expect("readable").is_empty(), "with its events");
    assert!(store.template(&mine(), template_id(1)).await.expect("readable").is_some(), "templates stay");
    until(&store, "the size does not shrink", async |store| store.status().bytes_used < 2 << 20).await;
    store.shutdown().await;
}

#[tokio::test]
async fn above_its_quota_the_store_says_so_until_it_has_forgotten_enough() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let retention = retention(1, 2);
    let store = open_sqlite(StoreOptions { retention, ..options(folder.path()) }).expect("empty");
    assert!(!store.status().over_quota);
    store.apply(running()).await.expect("new");
    fill(&store, 4).await;
    until(&store, "over its quota and silent", async |store| store.status().over_quota).await;
    // Admission is for those who ask; what runs is written to its end.
    store.apply(started(2, 1)).await.expect("still written");
    store.apply(vec![ended(1, 1), ended(2, 1), session_ended()]).await.expect("still written");
    until(&store, "over its quota for ever", async |store| !store.status().over_quota).await;
    store.shutdown().await;
}
