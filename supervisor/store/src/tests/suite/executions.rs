//! Executions and their events.

use super::rejected;
use crate::StoreHandle;
use crate::tests::fixture::{
    console, ended, events, execution_id, execution_record, id, mine, owner, running, session_id, started,
};
use std::sync::Arc;
use vm_system_protocol::ids::TaskId;
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{
    ConsoleLevel, Event, EventPayload, ExecutionError, ExecutionStatus, JsType, NoteCode, ResultValue,
};
use vm_system_record::{Batch, Entity, ExecutionQuery, Page, Rejection, Write};

pub(super) async fn execution_runs_to_its_end_once(store: StoreHandle) {
    store.apply(running()).await.expect("new");
    let seq = Write::WorkerSeq { session: session_id(1), seq: 5 };
    store.apply(Batch(vec![events(1, 1..=3), ended(1, 1), seq])).await.expect("running");
    let row = store.execution(&mine(), execution_id(1)).await.expect("readable").expect("there");
    assert_eq!(row.execution.status, ExecutionStatus::Ok);
    assert_eq!(row.execution.result_json(), Some("3"));
    assert_eq!(row.execution.metrics.duration_ms, 7);
    assert_eq!(row.owner, owner(1));
    let session = store.session(&mine(), session_id(1)).await.expect("readable").expect("there");
    assert_eq!(session.worker_seq, 5);
    assert_eq!(store.apply(ended(1, 1)).await, rejected(Rejection::Finished(Entity::Execution)));
    assert_eq!(store.apply(ended(2, 1)).await, rejected(Rejection::Missing(Entity::Execution)));
    assert_eq!(store.apply(started(2, 2)).await, rejected(Rejection::Missing(Entity::Session)));
    assert_eq!(store.apply(started(1, 1)).await, rejected(Rejection::Conflict(Entity::Execution)));
}

pub(super) async fn result_of_a_session_has_the_type_and_the_preview_of_its_value_event(store: StoreHandle) {
    store.apply(running()).await.expect("new");
    let value = ResultValue {
        kind: JsType::Map,
        preview: "Map(0) {}".to_owned(),
        json: None,
        truncated: true,
        full_bytes: Some(7),
    };
    let event = Event { payload: EventPayload::Value(value.clone()), ..console(1, 2) };
    let mut execution = execution_record(1, 1);
    execution.status = ExecutionStatus::Ok;
    execution.result = Some(value.clone());
    execution.metrics.events = 3;
    let end = Write::ExecutionEnded(Arc::new(execution));
    let last = Write::Events([console(1, 3)].into());
    let first = Write::Events([console(1, 1), event].into());
    store.apply(Batch(vec![first, last, end])).await.expect("running");
    let row = store.execution(&mine(), execution_id(1)).await.expect("readable").expect("there");
    assert_eq!(row.execution.result, Some(value.clone()));
    let list = store
        .executions(&mine(), session_id(1), ExecutionQuery::default(), Page::first(10))
        .await
        .expect("readable");
    assert_eq!(list[0].execution.result, Some(value));
}

pub(super) async fn error_is_read_with_its_size(store: StoreHandle) {
    store.apply(running()).await.expect("new");
    let sizes = [(false, None), (true, None), (true, Some(300_000))];
    for (n, (truncated, full_bytes)) in (2..).zip(sizes) {
        store.apply(started(n, 1)).await.expect("new");
        let error = ExecutionError::new("EXCEPTION", "m").because(Some("r".to_owned()));
        let error = ExecutionError { truncated, full_bytes, ..error };
        let error = ExecutionError { exit_code: full_bytes.map(|_| 7), ..error };
        let mut execution = execution_record(n, 1);
        (execution.status, execution.error) = (ExecutionStatus::Error, Some(error.clone()));
        store.apply(Write::ExecutionEnded(Arc::new(execution))).await.expect("running");
        let row = store.execution(&mine(), execution_id(n)).await.expect("readable").expect("there");
        assert_eq!(row.execution.error, Some(error));
    }
}

pub(super) async fn events_of_every_kind_are_read_unchanged(store: StoreHandle) {
    store.apply(running()).await.expect("new");
    let text = "päge\0\u{1F600}".to_owned();
    let payloads = [
        EventPayload::InputEcho { text: text.clone() },
        EventPayload::console(ConsoleLevel::Debug, String::new()),
        EventPayload::Console { level: ConsoleLevel::Log, text: "begins".to_owned(), more: true },
        EventPayload::Value(ResultValue {
            kind: JsType::Bigint,
            preview: "1n".to_owned(),
            json: None,
            truncated: false,
            full_bytes: None,
        }),
        EventPayload::Value(ResultValue {
            kind: JsType::Object,
            preview: text.clone(),
            json: Some(JsonText::from_untrusted(r#"{"z":1.0,"a":1e400}"#.to_owned())),
            truncated: false,
            full_bytes: None,
        }),
        EventPayload::Value(ResultValue {
            kind: JsType::String,
            preview: text.clone(),
            json: None,
            truncated: true,
            full_bytes: Some(300_000),
        }),
        EventPayload::Value(ResultValue {
            kind: JsType::Map,
            preview: text.clone(),
            json: None,
            truncated: true,
            full_bytes: None,
        }),
        EventPayload::Exception {
            message: "m".to_owned(),
            stack: String::new(),
            code: None,
            truncated: false,
            full_bytes: None,
        },
        EventPayload::Exception {
            message: "m".to_owned(),
            stack: "s".to_owned(),
            code: Some("ENOENT".to_owned()),
            truncated: false,
            full_bytes: None,
        },
        EventPayload::Exception {
            message: "m".to_owned(),
            stack: "s".to_owned(),
            code: None,
            truncated: true,
            full_bytes: None,
        },
        EventPayload::Exception {
            message: "m".to_owned(),
            stack: "s".to_owned(),
            code: Some("ERR_INVALID_ARG_TYPE".to_owned()),
            truncated: true,
            full_bytes: Some(300_000),
        },
        EventPayload::System { message: "m".to_owned(), level: ConsoleLevel::Warn, code: None },
        EventPayload::System {
            message: "m".to_owned(),
            level: ConsoleLevel::Warn,
            code: Some(NoteCode::NoChanges),
        },
        EventPayload::Stdout { text: text.clone() },
        EventPayload::Stderr { text: text.clone() },
        EventPayload::Task { task_id: TaskId::from_bytes(id(1, 1)), prompt: text },
    ];
    let written: Vec<Event> =
        (1..).zip(payloads).map(|(seq, payload)| Event { payload, ..console(1, seq) }).collect();
    store.apply(Write::Events(written.clone().into())).await.expect("new");
    assert_eq!(store.events(execution_id(1), 0, 0).await, Ok(written.clone()));
    assert_eq!(store.events(execution_id(1), 2, 3).await, Ok(written[2..5].to_vec()));
    assert_eq!(store.events(execution_id(1), 16, 0).await, Ok(Vec::new()));
    assert_eq!(store.apply(events(1, [9])).await, rejected(Rejection::Conflict(Entity::Event)));
    assert_eq!(store.apply(events(2, [1])).await, rejected(Rejection::Missing(Entity::Execution)));
}

pub(super) async fn execution_name_is_unique_among_the_owners_unfinished_ones(store: StoreHandle) {
    store.apply(running()).await.expect("new");
    let named = |n| Write::ExecutionStarted {
        name: Some("job".to_owned()),
        execution: Arc::new(execution_record(n, 1)),
    };
    store.apply(named(2)).await.expect("the name is free");
    assert_eq!(store.apply(named(3)).await, rejected(Rejection::Conflict(Entity::Execution)));
    store.apply(ended(2, 1)).await.expect("running");
    store.apply(named(3)).await.expect("the name is free again");
    store.apply(ended(3, 1)).await.expect("running");
    store.apply(named(4)).await.expect("the name is free again");
    let by_name = || async {
        store.execution_by_name(&owner(1), "job").await.expect("readable").map(|row| row.execution.id)
    };
    assert_eq!(by_name().await, Some(execution_id(4)));
    store.apply(ended(4, 1)).await.expect("running");
    assert_eq!(by_name().await, Some(execution_id(4)), "the newest when none is unfinished");
    assert_eq!(store.execution_by_name(&owner(2), "job").await, Ok(None));
}
