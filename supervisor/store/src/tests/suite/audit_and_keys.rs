//! Batches, keys, audit log, ids, deletion, closing.

use super::rejected;
use crate::StoreHandle;
use crate::tests::fixture::{
    ended, events, execution_id, mine, owner, running, session, session_id, started, template, template_id,
};
use vm_system_protocol::model::SessionStatus;
use vm_system_protocol::reason::CloseReason;
use vm_system_protocol::time::Timestamp;
use vm_system_record::{
    AuditEntry, Batch, Entity, IdKind, Incarnation, KeyClaim, Page, Rejection, Scope, StoreError, Write,
};

pub(super) async fn batch_is_all_or_nothing(store: StoreHandle) {
    let batch = Batch(vec![template(1, "t"), session(1, 1), session(1, 1)]);
    assert_eq!(store.apply(batch).await, rejected(Rejection::Conflict(Entity::Session)));
    assert_eq!(store.template(&Scope::All, template_id(1)).await, Ok(None));
    assert_eq!(store.session(&Scope::All, session_id(1)).await, Ok(None));
}

pub(super) async fn refused_batch_does_not_affect_others(store: StoreHandle) {
    let mut tickets = Vec::new();
    for n in 1..=20 {
        // Every third name is taken; all of them queue up for the same turns.
        let name = if n % 3 == 0 { "taken".to_owned() } else { format!("t{n}") };
        tickets.push(store.submit_lazy(template(n, &name)).await.expect("open"));
    }
    for (n, ticket) in (1_u8..=20).zip(tickets) {
        let expected = if n % 3 == 0 && n > 3 {
            rejected(Rejection::Conflict(Entity::Template))
        } else {
            Ok(vm_system_record::Applied { rows: 1 })
        };
        assert_eq!(ticket.await, expected, "batch {n}");
    }
    assert_eq!(store.templates(&mine(), Page::ALL).await.expect("readable").len(), 15);
}

pub(super) async fn ids_are_found_by_their_bounds(store: StoreHandle) {
    store
        .apply(Batch(vec![template(1, "t"), template(2, "u"), session(1, 1), session(2, 1)]))
        .await
        .expect("new");
    let all = ([0; 16], [255; 16]);
    for (kind, expected) in [(IdKind::Template, 2), (IdKind::Session, 2), (IdKind::Execution, 0)] {
        let found = store.ids(&mine(), kind, all.0, all.1, 10).await.expect("readable");
        assert_eq!(found.len(), expected, "{kind:?}");
    }
    let one = *session_id(2).as_bytes();
    assert_eq!(store.ids(&mine(), IdKind::Session, one, one, 10).await, Ok(vec![one]));
    assert_eq!(store.ids(&Scope::Owner(owner(2)), IdKind::Session, all.0, all.1, 10).await, Ok(Vec::new()));
    assert_eq!(store.ids(&mine(), IdKind::Session, all.0, all.1, 1).await.expect("readable").len(), 1);
}

pub(super) async fn idempotency_key_is_held_until_it_expires_or_is_released(store: StoreHandle) {
    let claim = |at, expired_before| {
        Write::KeyClaim(Box::new(KeyClaim {
            owner: owner(1),
            key: "k".to_owned(),
            request_hash: [1; 32],
            subject: [2; 16],
            at: Timestamp(at),
            expired_before: Timestamp(expired_before),
            reply: None,
            holder: Incarnation([3; 16]),
        }))
    };
    store.apply(claim(100, 0)).await.expect("free");
    assert_eq!(store.apply(claim(101, 1)).await, rejected(Rejection::Conflict(Entity::Key)));
    let response = Write::KeyResponse { owner: owner(1), key: "k".to_owned(), reply: vec![9] };
    store.apply(response).await.expect("held");
    let row = store.key(&owner(1), "k").await.expect("readable").expect("held");
    assert_eq!((row.reply, row.subject), (Some(vec![9]), [2; 16]));
    assert_eq!(store.key(&owner(2), "k").await, Ok(None));
    store.apply(claim(200, 101)).await.expect("expired");
    assert_eq!(store.key(&owner(1), "k").await.expect("readable").expect("held").reply, None);
    let release = Write::KeyRelease { owner: owner(1), key: "k".to_owned() };
    store.apply(release).await.expect("always");
    assert_eq!(store.key(&owner(1), "k").await, Ok(None));
}

pub(super) async fn audit_log_and_meta_values_are_kept(store: StoreHandle) {
    let entry = |n: u8| AuditEntry {
        at: Timestamp(i64::from(n)),
        owner: owner(n % 2),
        api: format!("api {n}"),
        verb: "template create".to_owned(),
        subject: format!("t{n}"),
        outcome: "ok".to_owned(),
    };
    for n in 1..=4 {
        store.apply(Write::Audit(Box::new(entry(n)))).await.expect("always");
    }
    let page = store.audit(&Scope::All, None, 2).await.expect("readable");
    assert_eq!(page, [(4, entry(4)), (3, entry(3))]);
    assert_eq!(store.audit(&mine(), Some(3), 9).await, Ok(vec![(1, entry(1))]));
    let set = |value: Option<&[u8]>| Write::MetaSet { key: "k".to_owned(), value: value.map(<[u8]>::to_vec) };
    store.apply(set(Some(b"1"))).await.expect("always");
    store.apply(set(Some(b"2"))).await.expect("always");
    assert_eq!(store.meta("k").await, Ok(Some(b"2".to_vec())));
    store.apply(set(None)).await.expect("always");
    assert_eq!(store.meta("k").await, Ok(None));
}

pub(super) async fn pruning_deletes_whole_executions_oldest_first_within_its_bound(store: StoreHandle) {
    store.apply(running()).await.expect("new");
    for n in 2..=5 {
        store.apply(Batch(vec![started(n, 1), events(n, 1..=10), ended(n, 1)])).await.expect("new");
    }
    let prune = |max_rows| Write::Prune { before: Timestamp(10_000), keys_before: Timestamp(0), max_rows };
    assert_eq!(store.apply(prune(5)).await.map(|applied| applied.rows), Ok(11), "one whole execution");
    assert_eq!(store.execution(&mine(), execution_id(2)).await, Ok(None));
    assert_eq!(store.events(execution_id(2), 0, 0).await, Ok(Vec::new()));
    assert_eq!(store.events(execution_id(3), 0, 0).await.expect("readable").len(), 10);
    assert_eq!(store.apply(prune(1_000)).await.map(|applied| applied.rows), Ok(33));
    assert!(store.execution(&mine(), execution_id(1)).await.expect("readable").is_some(), "it runs");
    assert!(store.session(&mine(), session_id(1)).await.expect("readable").is_some(), "it lives");
    let end = Write::SessionEnd {
        id: session_id(1),
        status: SessionStatus::Closed,
        at: Timestamp(9_999),
        reason: CloseReason::Exited,
        last_error: None,
    };
    let delete = Write::TemplateDelete { id: template_id(1), at: Timestamp(1) };
    store.apply(Batch(vec![ended(1, 1), end, delete])).await.expect("live");
    assert_eq!(store.apply(prune(1_000)).await.map(|applied| applied.rows), Ok(2));
    assert_eq!(store.session(&mine(), session_id(1)).await, Ok(None));
    assert_eq!(store.apply(prune(1_000)).await.map(|applied| applied.rows), Ok(0));
}

pub(super) async fn closed_store_refuses_by_name(store: StoreHandle) {
    let ticket = store.submit_lazy(template(1, "t")).await.expect("open");
    store.shutdown().await;
    ticket.await.expect("what was queued is committed");
    assert_eq!(store.apply(template(2, "u")).await, Err(StoreError::Closed));
    assert_eq!(store.template(&mine(), template_id(1)).await, Err(StoreError::Closed));
}
