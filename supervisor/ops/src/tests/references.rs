//! Whole ids, names, and prefixes.

use super::fake::{OpsBench, admin, bob, new_session, template};
use vm_system_protocol::control::{ErrorCode, NewSession, Op, OpError, Reply};

fn template_id(reply: Result<Reply, OpError>) -> String {
    match reply.expect("the verb succeeds") {
        Reply::TemplateDetail(detail) => detail.template.id.to_string(),
        other => panic!("another reply: {other:?}"),
    }
}

fn get(template: &str) -> Op {
    Op::TemplateGet { template: template.to_owned() }
}

#[tokio::test]
async fn template_is_found_by_id_in_either_case_by_name_and_by_prefix() {
    let bench = OpsBench::new();
    let id = bench.template("my name").await;
    for reference in [&id, &id.to_uppercase(), "my name", &id[..34], &format!(" {id} ")] {
        assert_eq!(template_id(bench.request(get(reference)).await), id, "{reference}");
    }
    assert_eq!(bench.refused(get(&id[..3])).await, ErrorCode::TemplateNotFound, "shorter than any prefix");
    let theirs = bench.ops.call(&bob(), get(&id[..34]), None, None).await.expect_err("Alice's");
    assert_eq!(theirs.code, ErrorCode::TemplateNotFound);
}

#[tokio::test]
async fn the_name_of_another_owners_object_gives_an_administrator_its_id() {
    let bench = OpsBench::new();
    let id = bench.template("nightly").await;
    let error = bench.ops.call(&admin(), get("nightly"), None, None).await.expect_err("Alice's");
    assert_eq!(error.code, ErrorCode::TemplateNotFound);
    let hint = error.hint.expect("a hint");
    assert!(hint.contains(&id) && hint.contains("of alice"), "{hint}");
    let error = bench.ops.call(&bob(), get("nightly"), None, None).await.expect_err("Alice's");
    assert!(!error.hint.unwrap_or_default().contains(&id), "others do not learn of it");
}

#[tokio::test]
async fn name_comes_before_prefix() {
    let bench = OpsBench::new();
    let first = bench.template("first").await;
    let second = bench.template(&first[..8]).await;
    assert_eq!(template_id(bench.request(get(&first[..8])).await), second);
}

#[tokio::test]
async fn ambiguous_prefix_names_its_candidates() {
    let bench = OpsBench::new();
    let mut ids = Vec::new();
    for number in 0..7 {
        ids.push(bench.template(&format!("t{number}")).await);
    }
    // Ids are time-ordered: these are from about the same time.
    let prefix = &ids[0][..6];
    assert!(ids.iter().all(|id| id.starts_with(prefix)), "made within hours of each other");
    let error = bench.request(get(prefix)).await.expect_err("more than one begins like this");
    assert_eq!(error.code, ErrorCode::ValidationError);
    assert!(error.message.contains(&ids[0]) && error.message.contains('…'), "{}", error.message);
    let details = error.details.and_then(|details| details.to_value()).expect("details are an object");
    assert_eq!(details["candidates"].as_array().map(Vec::len), Some(5));
}

#[tokio::test]
async fn malformed_references_are_refused() {
    let bench = OpsBench::new();
    for reference in ["", "  ", &"x".repeat(1_000)] {
        for op in [
            get(reference),
            Op::SessionGet { session: reference.to_owned() },
            Op::ExecGet { execution: reference.to_owned() },
        ] {
            assert_eq!(bench.refused(op.clone()).await, ErrorCode::ValidationError, "{op:?}");
        }
    }
    let session = |reference: &str| Op::SessionGet { session: reference.to_owned() };
    for reference in ["my session", "abc", "abcd"] {
        assert_eq!(bench.refused(session(reference)).await, ErrorCode::SessionNotFound, "{reference}");
    }
    let execution = Op::ExecGet { execution: "my job".to_owned() };
    assert_eq!(bench.refused(execution).await, ErrorCode::ExecutionNotFound, "executions may have names");
}

#[tokio::test]
async fn session_and_execution_are_found_by_prefix() {
    let bench = OpsBench::new();
    let id = bench.execution().await;
    let found = bench.request(Op::ExecGet { execution: id[..35].to_owned() }).await;
    let Ok(Reply::Execution(execution)) = found else { panic!("another reply: {found:?}") };
    let session = execution.session_id.to_string();
    let found = bench.request(Op::SessionGet { session: session[..35].to_owned() }).await;
    assert!(matches!(found, Ok(Reply::Session(found)) if found.id == execution.session_id));
}

#[tokio::test]
async fn session_is_found_by_its_name_the_live_one_first() {
    let bench = OpsBench::new();
    let template = bench.template("t").await;
    let make = async || {
        let new = NewSession { name: Some(" build ".to_owned()), ..new_session(&template) };
        match bench.request(Op::SessionCreate(Box::new(new))).await.expect("nothing is refused") {
            Reply::Session(session) => {
                assert_eq!(session.name.as_deref(), Some("build"), "as it is stored");
                session.id.to_string()
            }
            other => panic!("another reply: {other:?}"),
        }
    };
    let named = |name: &str| Op::SessionGet { session: name.to_owned() };
    let found = async |name: &str| match bench.request(named(name)).await {
        Ok(Reply::Session(session)) => Ok(session.id.to_string()),
        Ok(other) => panic!("another reply: {other:?}"),
        Err(error) => Err(error),
    };
    let first = make().await;
    assert_eq!(found("build").await, Ok(first.clone()));
    let theirs = bench.ops.call(&bob(), named("build"), None, None).await.expect_err("Alice's");
    assert_eq!(theirs.code, ErrorCode::SessionNotFound);
    bench.request(Op::SessionClose { session: "build".to_owned() }).await.expect("live");
    assert_eq!(found("build").await, Ok(first.clone()), "the only one, though it has ended");
    let second = make().await;
    assert_eq!(found("build").await, Ok(second.clone()));
    let again = NewSession { name: Some("build".to_owned()), ..new_session(&template) };
    let error = bench.request(Op::SessionCreate(Box::new(again.clone()))).await.expect_err("one is live");
    assert_eq!(error.code, ErrorCode::Conflict);
    assert!(error.hint.is_some_and(|hint| hint.contains("session close")), "a hint");
    let details = error.details.and_then(|details| details.to_value()).expect("details");
    assert_eq!(details["session_id"], second.as_str());
    assert_eq!(found("build").await, Ok(second.clone()), "as before");
    // Of two requests at the same time one gets the name.
    bench.request(Op::SessionClose { session: second.clone() }).await.expect("live");
    let create = || Op::SessionCreate(Box::new(again.clone()));
    let (one, other) = tokio::join!(bench.request(create()), bench.request(create()));
    assert!(one.is_ok() != other.is_ok(), "{one:?} {other:?}");
    let third = found("build").await.expect("the live one");
    bench.request(Op::SessionClose { session: third.clone() }).await.expect("live");
    assert_eq!(found("build").await, Ok(third), "of those that have ended the newest");
    let theirs = bench.ops.call(&bob(), create(), None, None).await;
    assert!(!matches!(theirs, Err(error) if error.code == ErrorCode::Conflict), "names of others are theirs");
}

#[tokio::test]
async fn name_means_a_row_of_the_callers_own_for_administrators_too() {
    let bench = OpsBench::new();
    let theirs = bench.template("backup").await;
    let get = |reference: &str| Op::TemplateGet { template: reference.to_owned() };
    let request = async |op| bench.ops.call(&admin(), op, None, None).await;
    let error = request(get("backup")).await.expect_err("it is Alice's");
    assert_eq!(error.code, ErrorCode::TemplateNotFound);
    assert!(error.hint.is_some_and(|hint| hint.contains("what others own is named by its id")), "a hint");
    assert!(request(get(&theirs)).await.is_ok(), "by its id");
    assert!(request(get(&theirs[..35])).await.is_ok(), "by the beginning of its id");
    request(template("backup")).await.expect("a name of the administrator's own");
    assert_ne!(template_id(request(get("backup")).await), theirs);
    let new = NewSession { name: Some("build".to_owned()), ..new_session(&theirs) };
    bench.request(Op::SessionCreate(Box::new(new))).await.expect("nothing is refused");
    let session = Op::SessionGet { session: "build".to_owned() };
    assert_eq!(request(session).await.expect_err("it is Alice's").code, ErrorCode::SessionNotFound);
}
