//! Executions and their events.

use super::fake::{OpsBench, bob, file_missing, line, new_execution, new_session, repl, run_file};
use vm_system_core::{LoadFailure, Refusal};
use vm_system_protocol::control::{
    ErrorCode, ExecCancel, ExecEvents, ExecGet, ExecList, ExecStart, ExecutionState, ListPage, Op, OpError,
    SessionClose, TemplateAddModule, TemplateChange, TemplateDelete, TemplateUpdate,
};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{Event, Execution, ExecutionError, ExecutionKind, ExecutionStatus};
use vm_system_runtime::RuntimeError;
use vm_system_runtime::client_memory::ReplyMemory;

fn execution(reply: Result<ExecutionState, OpError>) -> Execution {
    match reply.expect("the verb succeeds") {
        ExecutionState::Execution(execution) => execution,
        ExecutionState::Run(run) => panic!("it waits: {run:?}"),
    }
}

fn events_of(execution: &str, after_seq: u64, limit: u32) -> ExecEvents {
    ExecEvents { execution: execution.to_owned(), after_seq, limit, follow: false }
}

fn numbers(reply: Result<Vec<Event>, OpError>) -> Vec<u64> {
    let events = reply.expect("the verb succeeds");
    events.iter().map(|event| event.seq).collect()
}

#[tokio::test]
async fn execution_is_returned_with_its_events_and_found_again() {
    let bench = OpsBench::new();
    let session = bench.session().await;
    let made = execution(bench.request(repl(&session, "1")).await);
    assert_eq!(made.status, ExecutionStatus::Ok);
    assert_eq!(made.events.as_ref().map(Vec::len), Some(3));
    let id = made.id.to_string();
    let read = bench.request(ExecGet { execution: id.clone() }).await.expect("there");
    assert_eq!(read, Execution { events: None, ..made });
    assert_eq!(numbers(bench.request(events_of(&id, 0, 0)).await), [1, 2, 3]);
    assert_eq!(numbers(bench.request(events_of(&id, 1, 1)).await), [2]);
    assert_eq!(numbers(bench.request(events_of(&id, 3, 0)).await), [0_u64; 0]);
    let list = bench.request(ExecList::all(session.clone(), ListPage::first(50))).await;
    assert!(matches!(list, Ok(list) if list.len() == 1));
    assert_eq!(bench.refused(ExecList::all(session, ListPage::first(0))).await, ErrorCode::ValidationError);
}

#[tokio::test]
async fn body_is_checked_before_the_session() {
    let bench = OpsBench::new();
    let good = || new_execution("0000ffff");
    let json = |text: &str| JsonText::from_untrusted(text.to_owned());
    let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let file = || ExecStart { kind: ExecutionKind::RunFile, input: None, ..good() };
    let cases = [
        ExecStart { input: None, ..good() },
        ExecStart { input: Some(String::new()), ..good() },
        ExecStart { path: Some("a.js".to_owned()), ..good() },
        file(),
        ExecStart { input: Some("1".to_owned()), path: Some(" ".to_owned()), ..file() },
        ExecStart { kind: ExecutionKind::Startup, ..good() },
        ExecStart { kind: ExecutionKind::Program, ..good() },
        ExecStart { args: json("[1]"), ..good() },
        ExecStart { args: json("{"), ..good() },
        ExecStart { args: json(&format!("{{\"a\":\"{}\"}}", "x".repeat(1 << 20))), ..good() },
        ExecStart { env: vec![variable("", "x")], ..good() },
        ExecStart { env: vec![variable("A=B", "x")], ..good() },
        ExecStart { env: vec![variable("A", "x\0")], ..good() },
        ExecStart { env: vec![variable("A", "1"), variable("A", "2")], ..good() },
        ExecStart { argv: vec!["x".repeat(2 << 20)], ..good() },
    ];
    for (number, case) in cases.into_iter().enumerate() {
        assert_eq!(bench.refused(case).await, ErrorCode::ValidationError, "case {number}");
    }
    assert_eq!(bench.refused(good()).await, ErrorCode::SessionNotFound);
}

#[tokio::test]
async fn checks_of_a_file_come_in_the_order_of_the_contract_and_leave_no_row() {
    let bench = OpsBench::new();
    let unknown = uuid::Uuid::now_v7().to_string();
    assert_eq!(bench.refused(run_file(" ", "../x")).await, ErrorCode::ValidationError, "id before row");
    assert_eq!(
        bench.refused(run_file(&unknown, "../x")).await,
        ErrorCode::SessionNotFound,
        "row before path"
    );
    let closed = bench.session().await;
    bench.request(SessionClose { session: closed.clone() }).await.expect("live");
    for path in ["/etc/passwd", "../x", "a/../../x", "a\0b", " ", ""] {
        assert_eq!(
            bench.refused(run_file(&closed, path)).await,
            ErrorCode::InvalidPath,
            "path before live session"
        );
    }
    assert_eq!(bench.refused(run_file(&closed, "a.js")).await, ErrorCode::SessionNotReady);
    let session = bench.session().await;
    assert_eq!(bench.refused(run_file(&session, "../x")).await, ErrorCode::InvalidPath, "path before busy");
    for (refusal, code) in [
        (RuntimeError::Refused(Refusal::Busy), ErrorCode::SessionBusy),
        (file_missing(), ErrorCode::FileNotFound),
        (
            RuntimeError::Refused(Refusal::Load(LoadFailure::InvalidPath("link".to_owned()))),
            ErrorCode::InvalidPath,
        ),
        (
            RuntimeError::Refused(Refusal::SourceTooLarge { size_bytes: 9, limit_kb: 1 }),
            ErrorCode::ValidationError,
        ),
        (RuntimeError::Refused(Refusal::NotReady("starting".to_owned())), ErrorCode::SessionNotReady),
        (RuntimeError::Refused(Refusal::Storage("full".to_owned())), ErrorCode::StorageUnavailable),
    ] {
        bench.fake.script().refuse = Some(refusal.clone());
        assert_eq!(bench.refused(run_file(&session, "a.js")).await, code, "{refusal:?}");
    }
    let list = bench.request(ExecList::all(session.clone(), ListPage::first(5))).await;
    assert_eq!(list, Ok(Vec::new()));
    let ran = execution(bench.request(run_file(&session, "./a.js")).await);
    assert_eq!(ran.kind, ExecutionKind::RunFile);
}

#[tokio::test]
async fn text_from_the_client_may_have_any_name() {
    let bench = OpsBench::new();
    let session = bench.session().await;
    let new = ExecStart {
        kind: ExecutionKind::RunFile,
        path: Some("/home/me/a.ts".to_owned()),
        ..new_execution(&session)
    };
    let made = execution(bench.request(new).await);
    assert_eq!(made.path.as_deref(), Some("/home/me/a.ts"));
}

#[tokio::test]
async fn exception_is_not_an_error_of_the_verb_but_too_much_output_is() {
    let bench = OpsBench::new();
    let session = bench.session().await;
    let fails = |code: &str| ExecutionError::new(code, "m");
    bench.fake.script().fail = Some(fails("EXCEPTION"));
    assert_eq!(execution(bench.request(repl(&session, "1")).await).status, ExecutionStatus::Error);
    bench.fake.script().fail = Some(fails("OUTPUT_LIMIT_EXCEEDED"));
    let error = bench.request(repl(&session, "1")).await.expect_err("too much output");
    assert_eq!(error.code, ErrorCode::OutputLimitExceeded);
    let details = error.details.and_then(|details| details.to_value()).expect("details are an object");
    let id = details["execution_id"].as_str().expect("an id").to_owned();
    let stored = bench.request(ExecGet { execution: id }).await.expect("there");
    assert_eq!(stored.error.expect("an error").code, "OUTPUT_LIMIT_EXCEEDED");
}

#[tokio::test]
async fn execution_without_wait_is_running_in_the_response() {
    let bench = OpsBench::new();
    let session = bench.session().await;
    let made = execution(bench.request(ExecStart { wait: false, ..new_execution(&session) }).await);
    assert_eq!((made.status, made.events), (ExecutionStatus::Running, None));
}

#[tokio::test]
async fn secrets_reach_the_script_and_no_record() {
    let bench = OpsBench::new();
    let session = bench.session().await;
    let new = ExecStart {
        args: JsonText::from_untrusted(r#"{"secret":"hunter2"}"#.to_owned()),
        env: vec![("API_SECRET".to_owned(), "hunter2".to_owned())],
        ..new_execution(&session)
    };
    let made = execution(bench.request(new).await);
    let shown = format!("{} {}", made.args.as_str(), made.env.as_str());
    assert!(!shown.contains("hunter2") && shown.contains("[redacted]"), "{shown}");
    let script = bench.fake.script();
    assert!(script.started[0].0.args.as_str().contains("hunter2"));
    assert_eq!(script.started[0].0.env[0].1, "hunter2");
}

#[tokio::test]
async fn execution_gets_the_policy_of_the_template_at_its_start() {
    let bench = OpsBench::new();
    let template = bench.template("t").await;
    let session = match bench.request(new_session("t")).await {
        Ok(session) => session.id.to_string(),
        other => panic!("another reply: {other:?}"),
    };
    bench.request(repl(&session, "1")).await.expect("runs");
    let settings = JsonText::from_untrusted(r#"{"limits":{"cpu_ms":9}}"#.to_owned());
    let change = TemplateChange { name: None, settings: Some(settings) };
    let update = TemplateUpdate { template: template.clone(), change };
    bench.request(update).await.expect("there");
    bench.request(repl(&session, "1")).await.expect("runs");
    bench
        .request(TemplateAddModule { template: template.clone(), name: "fs".to_owned() })
        .await
        .expect("there");
    bench.request(repl(&session, "1")).await.expect("runs");
    bench.request(TemplateDelete { template }).await.expect("there");
    bench.request(repl(&session, "1")).await.expect("runs on");
    let script = bench.fake.script();
    let policies: Vec<_> = script
        .started
        .iter()
        .map(|(_, template)| {
            template.as_ref().map(|policy| (policy.settings.limits.cpu_ms, policy.modules.len()))
        })
        .collect();
    assert_eq!(policies, [Some((5_000, 0)), Some((9, 0)), Some((9, 1)), None]);
}

#[tokio::test]
async fn follower_gets_the_events_and_the_response_has_none() {
    let bench = OpsBench::new();
    let session = bench.session().await;
    let (follower, mut followed) = vm_system_runtime::follower(8, ReplyMemory::default());
    let op = ExecStart { follow: true, ..new_execution(&session) };
    let made = execution(bench.ops.call(&super::fake::alice(), op, None, Some(follower)).await);
    assert_eq!(made.events, None);
    let expected: Vec<Event> = (1..=3).map(|seq| line(made.id, seq)).collect();
    assert_eq!(followed.recv().await.map(|batch| batch.events), Some(expected.clone()));
    assert!(followed.recv().await.is_none());
    // Afterwards from the store, after the last seen event.
    let (follower, mut followed) = vm_system_runtime::follower(8, ReplyMemory::default());
    let op = ExecEvents { execution: made.id.to_string(), after_seq: 1, limit: 0, follow: true };
    let answer = bench.ops.call(&super::fake::alice(), op, None, Some(follower)).await;
    assert_eq!(answer, Ok(Vec::new()));
    assert_eq!(followed.recv().await.map(|batch| batch.events), Some(expected[1..].to_vec()));
    assert!(followed.recv().await.is_none());
}

#[tokio::test]
async fn executions_of_others_do_not_exist() {
    let bench = OpsBench::new();
    let id = bench.execution().await;
    for op in [
        Op::from(ExecGet { execution: id.clone() }),
        ExecCancel { execution: id.clone() }.into(),
        events_of(&id, 0, 0).into(),
    ] {
        let refused = bench.ops.any(&bob(), op.clone(), None, None).await.expect_err("Alice's");
        assert_eq!(refused.code, ErrorCode::ExecutionNotFound, "{op:?}");
    }
    assert_eq!(bench.request(ExecCancel { execution: id }).await, Ok(()), "cancelling what ended is fine");
}

#[tokio::test]
async fn record_that_the_store_refused_comes_from_its_owner_task() {
    let bench = OpsBench::new();
    let session = bench.session().await;
    let made = execution(bench.request(repl(&session, "1")).await);
    let known = Execution { degraded: true, events: None, ..made.clone() };
    bench.fake.degrade(known.clone());
    assert_eq!(bench.request(ExecGet { execution: made.id.to_string() }).await.expect("there"), known);
    let list = bench.request(ExecList::all(session, ListPage::first(5))).await;
    assert_eq!(list, Ok(vec![known]));
}
