//! Sessions.

use super::fake::{OpsBench, admin, bob, new_session};
use vm_system_core::{Refusal, SpawnFailure, SpawnFault};
use vm_system_protocol::control::{ErrorCode, ListPage, NewSession, Op, OpError, Reply, SessionFilter};
use vm_system_protocol::model::{Session, SessionStatus};
use vm_system_runtime::RuntimeError;
use vm_system_runtime::shares::{Holder, ShareLimits, ShareRefusal, Shares};

fn session(reply: Result<Reply, OpError>) -> Session {
    match reply.expect("the verb succeeds") {
        Reply::Session(session) => *session,
        other => panic!("another reply: {other:?}"),
    }
}

fn create(new: NewSession) -> Op {
    Op::SessionCreate(Box::new(new))
}

#[tokio::test]
async fn session_is_created_listed_closed_and_still_found() {
    let bench = OpsBench::new();
    let template = bench.template("t").await;
    let made = session(bench.request(create(new_session("t"))).await);
    assert_eq!((made.status, made.template_id.to_string()), (SessionStatus::Ready, template));
    let id = made.id.to_string();
    assert_eq!(session(bench.request(Op::SessionGet { session: id.clone() }).await), made);
    for _ in 0..2 {
        let closed = session(bench.request(Op::SessionClose { session: id.clone() }).await);
        assert_eq!((closed.status, closed.close_reason.as_deref()), (SessionStatus::Closed, Some("exited")));
    }
    let filter = SessionFilter { status: Some(SessionStatus::Closed), ..SessionFilter::default() };
    assert!(
        matches!(bench.request(Op::SessionList(filter)).await, Ok(Reply::Sessions(list)) if list.len() == 1)
    );
    let filter = SessionFilter { status: Some(SessionStatus::Ready), ..SessionFilter::default() };
    assert_eq!(bench.request(Op::SessionList(filter)).await, Ok(Reply::Sessions(Vec::new())));
}

#[tokio::test]
async fn incomplete_session_requests_are_refused_before_anything_is_looked_up() {
    let bench = OpsBench::new();
    let good = || new_session("nobody");
    let cases = [
        NewSession { template: " ".to_owned(), ..good() },
        NewSession { workspace_id: String::new(), ..good() },
        NewSession { workspace_id: "x".repeat(2_000), ..good() },
        NewSession { base_commit_oid: " ".to_owned(), ..good() },
        NewSession { worktree_path: String::new(), ..good() },
        NewSession { worktree_path: "relative".to_owned(), ..good() },
        NewSession { worktree_path: "/a\0b".to_owned(), ..good() },
    ];
    for case in cases {
        assert_eq!(bench.refused(create(case.clone())).await, ErrorCode::ValidationError, "{case:?}");
    }
    assert_eq!(bench.refused(create(good())).await, ErrorCode::TemplateNotFound);
}

#[tokio::test]
async fn failed_startup_names_the_session_that_it_left() {
    let bench = OpsBench::new();
    bench.template("t").await;
    bench.fake.script().fail_startup = true;
    let error = bench.request(create(new_session("t"))).await.expect_err("the startup file throws");
    assert_eq!(error.code, ErrorCode::StartupFailed);
    let details = error.details.and_then(|details| details.to_value()).expect("details are an object");
    let id = details["session_id"].as_str().expect("an id").to_owned();
    let left = session(bench.request(Op::SessionGet { session: id }).await);
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
        assert_eq!(bench.refused(create(new_session("t"))).await, code, "{refusal:?}");
    }
    bench.faults.set_over_quota(true);
    assert_eq!(bench.refused(create(new_session("t"))).await, ErrorCode::StorageUnavailable);
}

#[tokio::test]
async fn without_worktree_roots_only_an_administrator_names_a_worktree() {
    let bench = OpsBench::with_worktrees_anywhere();
    let template = bench.template("t").await;
    assert_eq!(bench.refused(create(new_session(&template))).await, ErrorCode::NotPermitted);
    let made = bench.ops.call(&admin(), create(new_session(&template)), None, None).await;
    assert_eq!(session(made).status, SessionStatus::Ready);
}

#[tokio::test]
async fn sessions_of_others_do_not_exist() {
    let bench = OpsBench::new();
    let id = bench.session().await;
    let verbs = || {
        [
            Op::SessionGet { session: id.clone() },
            Op::SessionClose { session: id.clone() },
            Op::SessionInspect { session: id.clone() },
            Op::SessionKill { session: id.clone(), signal: 9 },
            Op::SessionFork { session: id.clone(), count: 1 },
            Op::exec_list(id.clone(), ListPage::first(5)),
            super::fake::repl(&id, "1"),
        ]
    };
    for op in verbs() {
        let refused = bench.ops.call(&bob(), op.clone(), None, None).await.expect_err("Alice's");
        assert_eq!(refused.code, ErrorCode::SessionNotFound, "{op:?}");
    }
    let list = bench.ops.call(&bob(), Op::SessionList(SessionFilter::default()), None, None).await;
    assert_eq!(list, Ok(Reply::Sessions(Vec::new())));
    assert!(bench.fake.killed().is_empty());
    for op in verbs() {
        // The second verb closes the session; later verbs find it closed.
        let response = bench.ops.call(&admin(), op.clone(), None, None).await;
        let code = response.err().map(|error| error.code);
        assert!(matches!(code, None | Some(ErrorCode::SessionNotReady)), "{op:?}: {code:?}");
    }
}

#[tokio::test]
async fn live_session_is_inspected_and_killed_and_an_ended_one_is_not() {
    let bench = OpsBench::new();
    let id = bench.session().await;
    let inspected = bench.request(Op::SessionInspect { session: id.clone() }).await;
    assert!(matches!(inspected, Ok(Reply::Inspection(inspection)) if inspection.pid == 42));
    assert_eq!(bench.request(Op::SessionKill { session: id.clone(), signal: 9 }).await, Ok(Reply::Done));
    assert_eq!(bench.fake.killed().len(), 1);
    bench.request(Op::SessionClose { session: id.clone() }).await.expect("live");
    for op in [Op::SessionInspect { session: id.clone() }, Op::SessionKill { session: id.clone(), signal: 9 }]
    {
        let error = bench.request(op).await.expect_err("it has ended");
        assert_eq!(error.code, ErrorCode::SessionNotReady);
        assert!(error.message.contains("closed"), "{}", error.message);
    }
}

#[tokio::test]
async fn sessions_are_listed_by_template_also_after_it_was_deleted() {
    let bench = OpsBench::new();
    let template = bench.template("t").await;
    bench.template("u").await;
    session(bench.request(create(new_session("t"))).await);
    let by = |template: &str| {
        Op::SessionList(SessionFilter { template: Some(template.to_owned()), ..SessionFilter::default() })
    };
    let count = |reply| match reply {
        Ok(Reply::Sessions(sessions)) => sessions.len(),
        other => panic!("another reply: {other:?}"),
    };
    assert_eq!(count(bench.request(by("t")).await), 1);
    assert_eq!(count(bench.request(by("u")).await), 0);
    bench.request(Op::TemplateDelete { template: template.clone() }).await.expect("there");
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
    let events = Op::ExecEvents { execution: execution.clone(), after_seq: 0, limit: 0, follow: false };
    let ops = [
        Op::SessionGet { session: session.clone() },
        Op::SessionList(SessionFilter::default()),
        Op::ExecGet { execution: execution.clone() },
        Op::exec_list(session.clone(), ListPage::first(1)),
        events,
        Op::TemplateList { page: ListPage::first(1), built_in: false },
        Op::TemplateDelete { template },
    ];
    for op in ops {
        let error = bench.request(op.clone()).await.expect_err("it cannot be read");
        assert_eq!(error.code, ErrorCode::StorageUnavailable, "{op:?}: {error:?}");
        assert!(error.message.contains("the disk reports an error"), "{op:?}: {error:?}");
    }
    bench.faults.set_reading(None);
    bench.request(Op::ExecGet { execution }).await.expect("readable again");
}

#[tokio::test]
async fn forks_belong_to_the_parents_owner_and_a_key_finds_all_of_them_again() {
    let bench = OpsBench::new();
    let parent = bench.session().await;
    let fork = |count| Op::SessionFork { session: parent.clone(), count };
    for count in [0, 65, u32::MAX] {
        assert_eq!(bench.refused(fork(count)).await, ErrorCode::ValidationError, "{count}");
    }
    let Ok(Reply::Sessions(made)) = bench.ops.call(&admin(), fork(3), Some("k"), None).await else {
        panic!("an administrator forks what is Alice's");
    };
    assert_eq!(made.len(), 3);
    for session in &made {
        // Alice sees the forks.
        let got = bench.request(Op::SessionGet { session: session.id.to_string() }).await;
        assert!(matches!(got, Ok(Reply::Session(_))), "{got:?}");
    }
    // As after a supervisor that exited between the commit of the sessions and its response.
    let owner = admin().owner;
    let damage = vm_system_record::Write::KeyResponse { owner, key: "k".to_owned(), reply: vec![0xff; 9] };
    bench.store.apply(damage).await.expect("claimed");
    let again = bench.ops.call(&admin(), fork(3), Some("k"), None).await;
    assert!(matches!(again, Ok(Reply::Sessions(again)) if again.len() == 3));
    bench.fake.script().refuse = Some(RuntimeError::Refused(Refusal::Busy));
    assert_eq!(bench.refused(fork(1)).await, ErrorCode::SessionBusy);
    bench.request(Op::SessionClose { session: parent.clone() }).await.expect("live");
    assert_eq!(bench.refused(fork(1)).await, ErrorCode::SessionNotReady);
}

/// The refusal of a session beyond the last one.
fn no_session_left() -> ShareRefusal {
    let sessions = Shares::new("sessions", "sessions", ShareLimits::of(1));
    let holder = Holder::UNKNOWN;
    let _last = sessions.take(&holder);
    sessions.refusal(&holder)
}
