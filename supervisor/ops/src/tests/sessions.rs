//! Sessions.

use super::fake::{OpsBench, admin, alice, bob, new_session};
use vm_system_core::{Refusal, SpawnFailure, SpawnFault};
use vm_system_protocol::control::{
    ErrorCode, ExecEvents, ExecGet, ExecList, ListPage, Op, OpError, SessionClose, SessionCreate,
    SessionFork, SessionGet, SessionInspect, SessionKill, SessionList, TemplateDelete, TemplateList,
};
use vm_system_protocol::model::{Session, SessionStatus};
use vm_system_runtime::RuntimeError;
use vm_system_runtime::shares::{Holder, ShareLimits, ShareRefusal, Shares};

fn session(reply: Result<Session, OpError>) -> Session {
    reply.expect("the verb succeeds")
}

#[tokio::test]
async fn session_is_created_listed_closed_and_still_found() {
    let bench = OpsBench::new();
    let template = bench.template("t").await;
    let made = session(bench.request(new_session("t")).await);
    assert_eq!((made.status, made.template_id.to_string()), (SessionStatus::Ready, template));
    let id = made.id.to_string();
    assert_eq!(session(bench.request(SessionGet { session: id.clone() }).await), made);
    for _ in 0..2 {
        let closed = session(bench.request(SessionClose { session: id.clone() }).await);
        assert_eq!((closed.status, closed.close_reason.as_deref()), (SessionStatus::Closed, Some("exited")));
    }
    let filter = SessionList { status: Some(SessionStatus::Closed), ..SessionList::default() };
    assert!(matches!(bench.request(filter).await, Ok(list) if list.len() == 1));
    let filter = SessionList { status: Some(SessionStatus::Ready), ..SessionList::default() };
    assert_eq!(bench.request(filter).await, Ok(Vec::new()));
}

#[tokio::test]
async fn incomplete_session_requests_are_refused_before_anything_is_looked_up() {
    let bench = OpsBench::new();
    let good = || new_session("nobody");
    let cases = [
        SessionCreate { template: " ".to_owned(), ..good() },
        SessionCreate { workspace_id: String::new(), ..good() },
        SessionCreate { workspace_id: "x".repeat(2_000), ..good() },
        SessionCreate { base_commit_oid: " ".to_owned(), ..good() },
        SessionCreate { worktree_path: String::new(), ..good() },
        SessionCreate { worktree_path: "relative".to_owned(), ..good() },
        SessionCreate { worktree_path: "/a\0b".to_owned(), ..good() },
    ];
    for case in cases {
        assert_eq!(bench.refused(case.clone()).await, ErrorCode::ValidationError, "{case:?}");
    }
    assert_eq!(bench.refused(good()).await, ErrorCode::TemplateNotFound);
}

#[tokio::test]
async fn failed_startup_names_the_session_that_it_left() {
    let bench = OpsBench::new();
    bench.template("t").await;
    bench.fake.script().fail_startup = true;
    let error = bench.request(new_session("t")).await.expect_err("the startup file throws");
    assert_eq!(error.code, ErrorCode::StartupFailed);
    let details = error.details.and_then(|details| details.to_value()).expect("details are an object");
    let id = details["session_id"].as_str().expect("an id").to_owned();
    let left = session(bench.request(SessionGet { session: id }).await);
    assert_eq!(left.status, SessionStatus::Crashed);
}

fn spawn_failed(fault: SpawnFault) -> RuntimeError {
    RuntimeError::Refused(Refusal::SpawnFailed(SpawnFailure { why: "x".to_owned(), fault, hint: "do y" }))
}

#[tokio::test]
async fn refusals_of_the_runtime_keep_their_codes() {
    let bench = OpsBench::new();
    bench.template("t").await;
    let cases = [
        (RuntimeError::Full(no_session_left()), ErrorCode::CapacityExceeded),
        (RuntimeError::ShuttingDown, ErrorCode::ShuttingDown),
        (spawn_failed(SpawnFault::Busy), ErrorCode::CapacityExceeded),
        (spawn_failed(SpawnFault::Host), ErrorCode::SandboxUnavailable),
        (spawn_failed(SpawnFault::Wrong), ErrorCode::Internal),
        (RuntimeError::Internal("x".to_owned()), ErrorCode::Internal),
    ];
    for (refusal, code) in cases {
        bench.fake.script().refuse = Some(refusal.clone());
        assert_eq!(bench.refused(new_session("t")).await, code, "{refusal:?}");
    }
    bench.faults.set_over_quota(true);
    assert_eq!(bench.refused(new_session("t")).await, ErrorCode::StorageUnavailable);
}

#[tokio::test]
async fn without_worktree_roots_only_an_administrator_names_a_worktree() {
    let bench = OpsBench::with_worktrees_anywhere();
    let template = bench.template("t").await;
    assert_eq!(bench.refused(new_session(&template)).await, ErrorCode::NotPermitted);
    let made = bench.ops.call(&admin(), new_session(&template), None, None).await;
    assert_eq!(session(made).status, SessionStatus::Ready);
}

#[tokio::test]
async fn sessions_of_others_do_not_exist() {
    let bench = OpsBench::new();
    let id = bench.session().await;
    let verbs = || {
        [
            Op::from(SessionGet { session: id.clone() }),
            SessionClose { session: id.clone() }.into(),
            SessionInspect { session: id.clone() }.into(),
            SessionKill { session: id.clone(), signal: 9 }.into(),
            SessionFork { session: id.clone(), count: 1 }.into(),
            ExecList::all(id.clone(), ListPage::first(5)).into(),
            super::fake::repl(&id, "1").into(),
        ]
    };
    for op in verbs() {
        let refused = bench.ops.any(&bob(), op.clone(), None, None).await.expect_err("Alice's");
        assert_eq!(refused.code, ErrorCode::SessionNotFound, "{op:?}");
    }
    let list = bench.ops.call(&bob(), SessionList::default(), None, None).await;
    assert_eq!(list, Ok(Vec::new()));
    assert!(bench.fake.killed().is_empty());
    for op in verbs() {
        // The second verb closes the session; later verbs find it closed.
        let response = bench.ops.any(&admin(), op.clone(), None, None).await;
        let code = response.err().map(|error| error.code);
        assert!(matches!(code, None | Some(ErrorCode::SessionNotReady)), "{op:?}: {code:?}");
    }
}

#[tokio::test]
async fn live_session_is_inspected_and_killed_and_an_ended_one_is_not() {
    let bench = OpsBench::new();
    let id = bench.session().await;
    let inspected = bench.request(SessionInspect { session: id.clone() }).await;
    assert!(matches!(inspected, Ok(inspection) if inspection.pid == 42));
    assert_eq!(bench.request(SessionKill { session: id.clone(), signal: 9 }).await, Ok(()));
    assert_eq!(bench.fake.killed().len(), 1);
    bench.request(SessionClose { session: id.clone() }).await.expect("live");
    for op in [
        Op::from(SessionInspect { session: id.clone() }),
        SessionKill { session: id.clone(), signal: 9 }.into(),
    ] {
        let error = bench.ops.any(&alice(), op, None, None).await.expect_err("it has ended");
        assert_eq!(error.code, ErrorCode::SessionNotReady);
        assert!(error.message.contains("closed"), "{}", error.message);
    }
}

#[tokio::test]
async fn sessions_are_listed_by_template_also_after_it_was_deleted() {
    let bench = OpsBench::new();
    let template = bench.template("t").await;
    bench.template("u").await;
    session(bench.request(new_session("t")).await);
    let by = |template: &str| SessionList { template: Some(template.to_owned()), ..SessionList::default() };
    let count = |reply: Result<Vec<Session>, OpError>| match reply {
        Ok(sessions) => sessions.len(),
        other => panic!("another reply: {other:?}"),
    };
    assert_eq!(count(bench.request(by("t")).await), 1);
    assert_eq!(count(bench.request(by("u")).await), 0);
    bench.request(TemplateDelete { template: template.clone() }).await.expect("there");
    assert_eq!(count(bench.request(by(&template)).await), 1);
    assert_eq!(bench.refused(by("t")).await, ErrorCode::TemplateNotFound);
}

#[tokio::test]
async fn unreadable_rows_are_errors_and_not_missing_rows() {
    let bench = OpsBench::new();
    let execution = bench.execution().await;
    let session = bench.session().await;
    let template = bench.template("another").await;
    bench.faults.set_reading(Some("the disk reports an error"));
    let events = ExecEvents { execution: execution.clone(), after_seq: 0, limit: 0, follow: false };
    let ops = [
        Op::from(SessionGet { session: session.clone() }),
        SessionList::default().into(),
        ExecGet { execution: execution.clone() }.into(),
        ExecList::all(session.clone(), ListPage::first(1)).into(),
        events.into(),
        TemplateList { page: ListPage::first(1), built_in: false }.into(),
        TemplateDelete { template }.into(),
    ];
    for op in ops {
        let error = bench.ops.any(&alice(), op.clone(), None, None).await.expect_err("it cannot be read");
        assert_eq!(error.code, ErrorCode::StorageUnavailable, "{op:?}: {error:?}");
        assert!(error.message.contains("the disk reports an error"), "{op:?}: {error:?}");
    }
    bench.faults.set_reading(None);
    bench.request(ExecGet { execution }).await.expect("readable again");
}

#[tokio::test]
async fn forks_belong_to_the_parents_owner_and_a_key_finds_all_of_them_again() {
    let bench = OpsBench::new();
    let parent = bench.session().await;
    let fork = |count| SessionFork { session: parent.clone(), count };
    for count in [0, 65, u32::MAX] {
        assert_eq!(bench.refused(fork(count)).await, ErrorCode::ValidationError, "{count}");
    }
    let Ok(made) = bench.ops.call(&admin(), fork(3), Some("k"), None).await else {
        panic!("an administrator forks what is Alice's");
    };
    assert_eq!(made.len(), 3);
    for session in &made {
        // Alice sees the forks.
        let got = bench.request(SessionGet { session: session.id.to_string() }).await;
        assert!(got.is_ok(), "{got:?}");
    }
    // As after a supervisor that exited between the commit of the sessions and its response.
    let owner = admin().owner;
    let damage = vm_system_record::Write::KeyResponse { owner, key: "k".to_owned(), reply: vec![0xff; 9] };
    bench.store.apply(damage).await.expect("claimed");
    let again = bench.ops.call(&admin(), fork(3), Some("k"), None).await;
    assert!(matches!(again, Ok(again) if again.len() == 3));
    bench.fake.script().refuse = Some(RuntimeError::Refused(Refusal::Busy));
    assert_eq!(bench.refused(fork(1)).await, ErrorCode::SessionBusy);
    bench.request(SessionClose { session: parent.clone() }).await.expect("live");
    assert_eq!(bench.refused(fork(1)).await, ErrorCode::SessionNotReady);
}

/// The refusal of a session beyond the last one.
fn no_session_left() -> ShareRefusal {
    let sessions = Shares::new("sessions", "sessions", ShareLimits::at_most(1));
    let holder = Holder::UNKNOWN;
    let _last = sessions.take(&holder);
    sessions.refusal(&holder)
}
