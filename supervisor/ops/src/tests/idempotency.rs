//! Repeated requests with an idempotency key get the first response.

use super::fake::{OpsBench, alice, bob, new_execution, new_session, repl, template};
use std::sync::Arc;
use tokio::sync::Notify;
use vm_system_core::Refusal;
use vm_system_core::durable::{fresh_record, session_record};
use vm_system_protocol::control::{
    Effect, ErrorCode, ExecStart, GivenAnswer, ListPage, Op, OpError, Reply, SessionFork, SessionKill,
    SessionList, TaskSubmit, TemplateList,
};
use vm_system_protocol::ids::{ExecutionId, ProgramId, SessionId, TemplateId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{Engine, ExecutionStatus, Session, SessionStatus, Settings};
use vm_system_protocol::time::Timestamp;
use vm_system_record::{Entity, Incarnation, KeyClaim, NewProgramVersion, PolicySnapshot, StoreError, Write};
use vm_system_runtime::RuntimeError;
use vm_system_runtime::client_memory::ReplyMemory;

#[tokio::test]
async fn same_key_gets_the_first_response_again_also_after_a_restart() {
    let bench = OpsBench::new();
    let first = bench.request_with_key(template("t"), "k").await;
    assert!(first.is_ok());
    assert_eq!(bench.request_with_key(template("t"), "k").await, first);
    assert_eq!(bench.restarted().request_with_key(template("t"), "k").await, first);
    let session = bench.session().await;
    let first = bench.request_with_key(repl(&session, "1"), "e").await;
    assert_eq!(bench.request_with_key(repl(&session, "1"), "e").await, first);
    assert_eq!(bench.restarted().request_with_key(repl(&session, "1"), "e").await, first);
    assert_eq!(bench.fake.script().started.len(), 1, "it ran once");
}

#[tokio::test]
async fn key_of_another_request_is_a_mismatch_and_of_another_owner_is_free() {
    let bench = OpsBench::new();
    bench.request_with_key(template("t"), "k").await.expect("new");
    let error = bench.request_with_key(template("u"), "k").await.expect_err("another request");
    assert_eq!(error.code, ErrorCode::IdempotencyMismatch);
    bench.ops.call(&bob(), template("u"), Some("k"), None).await.expect("Bob's keys are his own");
}

#[tokio::test]
async fn verbs_that_change_nothing_ignore_the_key() {
    let bench = OpsBench::new();
    assert_eq!(
        bench.request_with_key(TemplateList { page: ListPage::default(), built_in: false }, "k").await,
        Ok(Vec::new())
    );
    bench.request_with_key(template("t"), "k").await.expect("the key is free");
}

#[tokio::test]
async fn malformed_keys_are_refused() {
    let bench = OpsBench::new();
    for key in ["", "a\nb", &"x".repeat(256)] {
        let error = bench.request_with_key(template("t"), key).await.expect_err("no key");
        assert_eq!(error.code, ErrorCode::ValidationError, "{key:?}");
    }
}

#[tokio::test]
async fn refusal_without_changes_releases_the_key() {
    let bench = OpsBench::new();
    let session = bench.session().await;
    bench.fake.script().refuse = Some(RuntimeError::Refused(Refusal::Busy));
    let error = bench.request_with_key(repl(&session, "1"), "k").await.expect_err("busy");
    assert_eq!(error.code, ErrorCode::SessionBusy);
    bench.request_with_key(repl(&session, "1"), "k").await.expect("not busy any more");
}

#[tokio::test]
async fn failure_that_left_a_row_is_repeated() {
    let bench = OpsBench::new();
    bench.template("t").await;
    let create = || new_session("t");
    bench.fake.script().fail_startup = true;
    let first = bench.request_with_key(create(), "k").await;
    assert_eq!(first.as_ref().expect_err("it fails").code, ErrorCode::StartupFailed);
    assert_eq!(bench.restarted().request_with_key(create(), "k").await, first);
}

#[tokio::test]
async fn repetition_during_the_run_waits_for_its_response() {
    let bench = OpsBench::new();
    let session = bench.session().await;
    let hold = Arc::new(Notify::new());
    bench.fake.script().hold = Some(Arc::clone(&hold));
    let ask = || {
        let (ops, op) = (Arc::clone(&bench.ops), repl(&session, "1"));
        tokio::spawn(async move { ops.call(&alice(), op, Some("k"), None).await })
    };
    let first = ask();
    bench.fake.executing.notified().await;
    let second = ask();
    let other = bench.request_with_key(repl(&session, "2"), "k").await.expect_err("another request");
    assert_eq!(other.code, ErrorCode::IdempotencyMismatch);
    hold.notify_one();
    let first = first.await.expect("no panic");
    assert!(first.is_ok());
    assert_eq!(second.await.expect("no panic"), first);
    assert_eq!(bench.fake.script().started.len(), 1, "it ran once");
}

/// Leaves a claimed key without a response, as a supervisor that exits in between.
async fn exit_after_claim(bench: &OpsBench, op: impl Into<Op>, subject: [u8; 16]) {
    let bytes = vm_system_protocol::codec::encode(&op.into(), usize::MAX).expect("any verb has an encoding");
    let claim = KeyClaim {
        owner: alice().owner,
        key: "k".to_owned(),
        request_hash: <sha2::Sha256 as sha2::Digest>::digest(bytes).into(),
        subject,
        at: Timestamp(i64::MAX / 2),
        expired_before: Timestamp(0),
        reply: None,
        holder: GONE,
    };
    bench.store.apply(Write::KeyClaim(Box::new(claim))).await.expect("free");
}

/// A process that has ended.
const GONE: Incarnation = Incarnation([7; 16]);

#[tokio::test]
async fn key_of_a_process_that_lives_is_not_taken_over_and_one_of_an_ended_process_is_by_one() {
    let bench = OpsBench::new();
    let session = bench.session().await;
    let op = repl(&session, "1");
    exit_after_claim(&bench, op.clone(), uuid::Uuid::now_v7().into_bytes()).await;
    bench.faults.set_live(Some(GONE));
    let refused = bench.request_with_key(op.clone(), "k").await.expect_err("its request runs there");
    assert_eq!(refused.code, ErrorCode::Conflict);
    assert!(bench.fake.script().started.is_empty(), "it would run twice");
    let row = bench.store.key(&alice().owner, "k").await.expect("readable").expect("there");
    assert_eq!(row.holder, Some(GONE));

    bench.faults.set_live(None);
    let take = |from, to| {
        let (owner, key) = (alice().owner, "k".to_owned());
        Write::KeyTakeOver { owner, key, from, to: Incarnation(to) }
    };
    // Two successors have read the same row.
    bench.store.apply(take(Some(GONE), [8; 16])).await.expect("the first one");
    let late = bench.store.apply(take(Some(GONE), [9; 16])).await;
    assert_eq!(late, Err(StoreError::conflict(Entity::Key)));
    bench.request_with_key(op.clone(), "k").await.expect("that one has ended, too");
    assert_eq!(bench.fake.script().started.len(), 1);
    let row = bench.store.key(&alice().owner, "k").await.expect("readable").expect("there");
    assert!(row.reply.is_some());
    let late = bench.store.apply(take(row.holder, [9; 16])).await;
    assert_eq!(late, Err(StoreError::conflict(Entity::Key)), "it has its response");
}

#[tokio::test]
async fn row_from_before_an_exit_is_the_response_after_it() {
    let bench = OpsBench::new();
    let session = bench.session().await;
    let Ok(ran) = bench.request(repl(&session, "1")).await else { panic!("it runs") };
    let op = repl(&session, "1");
    exit_after_claim(&bench, op.clone(), *ran.execution().id.as_bytes()).await;
    let after = bench.restarted();
    let expected = Ok(ran);
    assert_eq!(after.request_with_key(op.clone(), "k").await, expected);
    assert_eq!(after.request_with_key(op, "k").await, expected, "each time");
    assert!(after.fake.script().started.is_empty(), "it did not run again");
}

#[tokio::test]
async fn missing_row_is_created_after_an_exit_under_the_same_id() {
    let bench = OpsBench::new();
    let subject = uuid::Uuid::now_v7();
    exit_after_claim(&bench, template("t"), subject.into_bytes()).await;
    let made = bench.request_with_key(template("t"), "k").await;
    assert!(matches!(made, Ok(template) if *template.id.as_bytes() == subject.into_bytes()));
}

#[tokio::test]
async fn repeated_follower_gets_the_events_from_the_record() {
    let bench = OpsBench::new();
    let session = bench.session().await;
    let op = || ExecStart { follow: true, ..new_execution(&session) };
    for attempt in 0..2 {
        let (follower, mut followed) = vm_system_runtime::follower(8, ReplyMemory::default());
        let answer = bench.ops.call(&alice(), op(), Some("k"), Some(follower)).await;
        assert!(matches!(answer, Ok(state) if state.execution().events.is_none()));
        assert_eq!(followed.recv().await.map(|batch| batch.events.len()), Some(3), "attempt {attempt}");
    }
    assert_eq!(bench.fake.script().started.len(), 1, "it ran once");
}

#[tokio::test]
async fn key_is_not_claimed_when_the_store_cannot_write() {
    let bench = OpsBench::new();
    bench.faults.set(Some("the disk is full"));
    let error = bench.request_with_key(template("t"), "k").await.expect_err("the disk is full");
    assert_eq!(error.code, ErrorCode::StorageUnavailable);
    bench.faults.set(None);
    bench.request_with_key(template("t"), "k").await.expect("works again");
}

#[tokio::test]
async fn unrecorded_run_is_not_repeated_under_its_key() {
    let bench = OpsBench::new();
    let session = bench.session().await;
    let refusal = Refusal::Unrecorded("the disk reports an error".to_owned());
    bench.fake.script().refuse = Some(RuntimeError::Refused(refusal));
    let first = bench.request_with_key(repl(&session, "1"), "k").await.expect_err("it was not recorded");
    assert!(first.has_run(), "{first:?}");
    let again = bench.request_with_key(repl(&session, "1"), "k").await.expect_err("the first response again");
    assert_eq!(again, first);
    assert_eq!(bench.fake.script().started.len(), 0, "it does not run again");
}

/// As after an upgrade that has changed the encoding of responses.
#[tokio::test]
async fn unreadable_response_is_replaced_by_the_record_and_the_verb_never_runs_again() {
    let bench = OpsBench::new();
    let session = bench.session().await;
    let first = bench.request_with_key(repl(&session, "1"), "k").await;
    let kill = || SessionKill { session: session.clone(), signal: 9 };
    bench.request_with_key(kill(), "l").await.expect("live");
    for key in ["k", "l"] {
        let damage = Write::KeyResponse { owner: alice().owner, key: key.to_owned(), reply: vec![0xff; 9] };
        bench.store.apply(damage).await.expect("claimed");
    }
    assert_eq!(bench.request_with_key(repl(&session, "1"), "k").await, first);
    let error = bench.request_with_key(kill(), "l").await.expect_err("it has no record");
    assert_eq!(error.code, ErrorCode::Internal);
    assert_eq!(bench.fake.killed().len(), 1, "it was sent once");
}

/// As after a supervisor that exited when an answer was stored and the client had no response yet.
#[tokio::test]
async fn answer_under_a_key_is_never_submitted_to_the_next_task() {
    let bench = OpsBench::new();
    let template: TemplateId = bench.template("t").await.parse().expect("an id");
    let (execution, session) = (ExecutionId::from_bytes([7; 16]), SessionId::from_bytes([8; 16]));
    let (program, at) = (ProgramId::from_bytes([9; 16]), Timestamp(1));
    let empty = |text: &str| JsonText::from_untrusted(text.to_owned());
    let record = fresh_record(execution, session, ExecutionStatus::Waiting, empty("[]"), empty("{}"), at);
    let policy = PolicySnapshot {
        engine: Engine::Cvm,
        settings: Settings::default(),
        modules: Vec::new(),
        libraries: Vec::new(),
        capabilities: Vec::new(),
        startup_files: Vec::new(),
    };
    let version = NewProgramVersion {
        owner: alice().owner,
        id: program,
        name: "p".to_owned(),
        source_hash: [0; 32],
        source: String::new(),
        format: 1,
        code: Vec::new(),
        at,
    };
    let writes = vec![
        Write::SessionInsert {
            owner: alice().owner,
            session: Arc::new(session_record(session, template, "", at)),
            policy: Arc::new(policy),
            worktree: None,
        },
        Write::ExecutionStarted { name: None, execution: Arc::new(record) },
        Write::ProgramVersion(Box::new(version)),
        Write::ProgramRun { execution, program, version: 1 },
    ];
    bench.store.apply(writes).await.expect("new");
    let submit = || {
        let (execution, result) = (execution.to_string(), GivenAnswer::Typed("yes".to_owned()));
        TaskSubmit { execution, task: None, result, wait: true }
    };
    let request_hash = bench.ops.request_hash(&alice(), &submit().into()).await.expect("it can be encoded");
    let claim = |reply| KeyClaim {
        owner: alice().owner,
        key: "k".to_owned(),
        request_hash,
        subject: [3; 16],
        at: crate::now(),
        expired_before: Timestamp(0),
        reply,
        holder: GONE,
    };
    let taken = [b"taken".as_slice(), execution.as_bytes()].concat();
    bench.store.apply(Write::KeyClaim(Box::new(claim(Some(taken))))).await.expect("free");
    let result = bench.request_with_key(submit(), "k").await;
    let Ok(run) = result else { panic!("another reply: {result:?}") };
    assert_eq!((run.execution.id, run.execution.status), (execution, ExecutionStatus::Waiting));
    let release = Write::KeyRelease { owner: alice().owner, key: "k".to_owned() };
    bench.store.apply(release).await.expect("always");
    bench.store.apply(Write::KeyClaim(Box::new(claim(None)))).await.expect("free");
    bench
        .request_with_key(submit(), "k")
        .await
        .expect_err("without the mark the answer is submitted, and the fake refuses it");
}

#[tokio::test]
async fn execution_with_a_key_is_stored_before_it_runs_and_others_are_not_delayed() {
    let bench = OpsBench::new();
    let session = bench.session().await;
    bench.request_with_key(repl(&session, "1"), "k").await.expect("runs");
    bench.request(repl(&session, "1")).await.expect("runs");
    let stored_first: Vec<bool> =
        bench.fake.script().started.iter().map(|(request, _)| request.stored_first).collect();
    assert_eq!(stored_first, [true, false]);
}

/// Ids of executions grow with the time at which they run: the next supervisor compares them.
#[tokio::test]
async fn execution_without_a_row_runs_after_an_exit_under_another_id() {
    let bench = OpsBench::new();
    let session = bench.session().await;
    let subject = uuid::Uuid::now_v7().into_bytes();
    let op = repl(&session, "1");
    exit_after_claim(&bench, op.clone(), subject).await;
    let first = bench.request_with_key(op.clone(), "k").await;
    assert!(matches!(&first, Ok(ran) if *ran.execution().id.as_bytes() > subject), "{first:?}");
    assert_eq!(bench.restarted().request_with_key(op, "k").await, first);
    assert_eq!(bench.fake.script().started.len(), 1, "it ran once");
}

/// Rows of sessions that are being created, with these ids; those of `ready` are ready. Then a supervisor starts without them.
async fn sessions_of_an_earlier_supervisor(bench: &OpsBench, ids: &[SessionId], ready: &[SessionId]) {
    let Ok(like) = bench.request(SessionList::default()).await else { panic!("no list") };
    let like = like.first().expect("a session");
    let policy = Arc::new(PolicySnapshot {
        engine: Engine::Quickjs,
        settings: Settings::default(),
        modules: Vec::new(),
        libraries: Vec::new(),
        capabilities: Vec::new(),
        startup_files: Vec::new(),
    });
    for id in ids {
        let session = Arc::new(Session { id: *id, status: SessionStatus::Starting, ..like.clone() });
        let insert = Write::SessionInsert {
            owner: alice().owner,
            session,
            policy: Arc::clone(&policy),
            worktree: None,
        };
        bench.store.apply(insert).await.expect("new");
    }
    for id in ready {
        bench.store.apply(Write::SessionReady { id: *id }).await.expect("starting");
    }
    let restart = Write::HostRestart {
        at: Timestamp(2),
        alive: vec![like.id],
        continued: Vec::new(),
        earlier: None,
        why: None,
    };
    bench.store.apply(restart).await.expect("always");
}

#[tokio::test]
async fn session_that_ended_before_it_was_ready_is_created_again_and_one_that_was_ready_is_not() {
    for was_ready in [false, true] {
        let bench = OpsBench::new();
        bench.session().await;
        bench.template("t").await;
        let create = || new_session("t");
        let id = SessionId::from_uuid(uuid::Uuid::now_v7());
        exit_after_claim(&bench, create(), *id.as_bytes()).await;
        let ready = was_ready.then_some(id);
        sessions_of_an_earlier_supervisor(&bench, &[id], ready.as_slice()).await;
        let first = bench.request_with_key(create(), "k").await;
        let Ok(session) = &first else { panic!("{first:?}") };
        assert_eq!(session.id == id, was_ready);
        assert_eq!(session.status == SessionStatus::Ready, !was_ready);
        assert_eq!(bench.restarted().request_with_key(create(), "k").await, first, "each time");
    }
}

#[tokio::test]
async fn forks_of_which_one_was_not_ready_are_made_again() {
    let bench = OpsBench::new();
    let parent = bench.session().await;
    let fork = || SessionFork { session: parent.clone(), count: 2 };
    let first = uuid::Uuid::now_v7();
    let ids = [first, uuid::Uuid::from_u128(first.as_u128() ^ 1)].map(SessionId::from_uuid);
    exit_after_claim(&bench, fork(), first.into_bytes()).await;
    sessions_of_an_earlier_supervisor(&bench, &ids, &ids[1..]).await;
    let made = bench.request_with_key(fork(), "k").await;
    let Ok(made) = made else { panic!("{made:?}") };
    assert_eq!(made.len(), 2);
    assert!(
        made.iter().all(|fork| fork.status == SessionStatus::Ready && !ids.contains(&fork.id)),
        "{made:?}"
    );
}

#[tokio::test]
async fn unrecorded_run_is_answered_from_the_record_once_there_is_one() {
    let bench = OpsBench::new();
    let session = bench.session().await;
    let Ok(ran) = bench.request(repl(&session, "1")).await else { panic!("it runs") };
    let op = repl(&session, "1");
    exit_after_claim(&bench, op.clone(), *ran.execution().id.as_bytes()).await;
    let unrecorded = RuntimeError::Refused(Refusal::Unrecorded("the disk was full".to_owned()));
    let response: Result<Reply, OpError> = Err(OpError::from(unrecorded));
    let reply = vm_system_protocol::codec::encode(&response, usize::MAX).expect("it fits");
    let keep = Write::KeyResponse { owner: alice().owner, key: "k".to_owned(), reply };
    bench.store.apply(keep).await.expect("claimed");
    assert_eq!(bench.request_with_key(op, "k").await, Ok(ran));
}

#[test]
fn temporary_refusals_are_not_repeated() {
    let answer = |code, details: bool| {
        let error = vm_system_protocol::control::OpError::new(code, "no");
        Err(if details { error.with_details(&serde_json::json!({})) } else { error })
    };
    let lasts = |code, details, durable: bool| {
        let effect = if durable { Effect::ChangesProgram } else { Effect::Changes };
        matches!(
            crate::idempotency::counts(&answer(code, details), effect),
            crate::idempotency::OnRepeat::Replay
        )
    };
    assert!(!lasts(ErrorCode::CapacityExceeded, true, true), "no worker was found");
    assert!(lasts(ErrorCode::CapacityExceeded, true, false), "a session without a worker exists");
    assert!(!lasts(ErrorCode::StorageUnavailable, true, true));
    assert!(!lasts(ErrorCode::ShuttingDown, true, true));
    assert!(lasts(ErrorCode::AnswerInvalid, true, true), "it counts as an attempt");
}
