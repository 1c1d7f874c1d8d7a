//! Whole ids, names, and prefixes.

use super::fake::{OpsBench, admin, bob, new_session, template};
use vm_system_protocol::control::{
    ErrorCode, ExecGet, Op, OpError, SessionClose, SessionCreate, SessionGet, SessionList, SessionRename,
    TemplateGet,
};
use vm_system_protocol::model::TemplateDetail;

fn template_id(reply: Result<TemplateDetail, OpError>) -> String {
    let detail = reply.expect("the verb succeeds");
    detail.template.id.to_string()
}

fn get(template: &str) -> TemplateGet {
    TemplateGet { template: template.to_owned() }
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
            Op::from(get(reference)),
            SessionGet { session: reference.to_owned() }.into(),
            ExecGet { execution: reference.to_owned() }.into(),
        ] {
            assert_eq!(bench.refused(op.clone()).await, ErrorCode::ValidationError, "{op:?}");
        }
    }
    let session = |reference: &str| SessionGet { session: reference.to_owned() };
    for reference in ["my session", "abc", "abcd"] {
        assert_eq!(bench.refused(session(reference)).await, ErrorCode::SessionNotFound, "{reference}");
    }
    let execution = ExecGet { execution: "my job".to_owned() };
    assert_eq!(bench.refused(execution).await, ErrorCode::ExecutionNotFound, "executions may have names");
}

#[tokio::test]
async fn session_and_execution_are_found_by_prefix() {
    let bench = OpsBench::new();
    let id = bench.execution().await;
    let found = bench.request(ExecGet { execution: id[..35].to_owned() }).await;
    let Ok(execution) = found else { panic!("another reply: {found:?}") };
    let session = execution.session_id.to_string();
    let found = bench.request(SessionGet { session: session[..35].to_owned() }).await;
    assert!(matches!(found, Ok(found) if found.id == execution.session_id));
}

#[tokio::test]
async fn session_is_found_by_its_name_the_live_one_first() {
    let bench = OpsBench::new();
    let template = bench.template("t").await;
    let make = async || {
        let new = SessionCreate { name: Some(" build ".to_owned()), ..new_session(&template) };
        let session = bench.request(new).await.expect("nothing is refused");
        assert_eq!(session.name.as_deref(), Some("build"), "as it is stored");
        session.id.to_string()
    };
    let named = |name: &str| SessionGet { session: name.to_owned() };
    let found = async |name: &str| match bench.request(named(name)).await {
        Ok(session) => Ok(session.id.to_string()),
        Err(error) => Err(error),
    };
    let first = make().await;
    assert_eq!(found("build").await, Ok(first.clone()));
    let theirs = bench.ops.call(&bob(), named("build"), None, None).await.expect_err("Alice's");
    assert_eq!(theirs.code, ErrorCode::SessionNotFound);
    bench.request(SessionClose { session: "build".to_owned() }).await.expect("live");
    assert_eq!(found("build").await, Ok(first.clone()), "the only one, though it has ended");
    let second = make().await;
    assert_eq!(found("build").await, Ok(second.clone()));
    let again = SessionCreate { name: Some("build".to_owned()), ..new_session(&template) };
    let error = bench.request(again.clone()).await.expect_err("one is live");
    assert_eq!(error.code, ErrorCode::Conflict);
    assert!(error.hint.is_some_and(|hint| hint.contains("session close")), "a hint");
    let details = error.details.and_then(|details| details.to_value()).expect("details");
    assert_eq!(details["session_id"], second.as_str());
    assert_eq!(found("build").await, Ok(second.clone()), "as before");
    // Of two requests at the same time one gets the name.
    bench.request(SessionClose { session: second.clone() }).await.expect("live");
    let create = || again.clone();
    let (one, other) = tokio::join!(bench.request(create()), bench.request(create()));
    assert!(one.is_ok() != other.is_ok(), "{one:?} {other:?}");
    let third = found("build").await.expect("the live one");
    bench.request(SessionClose { session: third.clone() }).await.expect("live");
    assert_eq!(found("build").await, Ok(third), "of those that have ended the newest");
    let theirs = bench.ops.call(&bob(), create(), None, None).await;
    assert!(!matches!(theirs, Err(error) if error.code == ErrorCode::Conflict), "names of others are theirs");
}

#[tokio::test]
async fn session_is_found_by_its_other_name_which_is_unique_among_the_live_ones_of_its_owner() {
    let bench = OpsBench::new();
    let template = bench.template("t").await;
    let make = async |name: &str| {
        let new = SessionCreate { name: Some(name.to_owned()), ..new_session(&template) };
        bench.request(new).await.expect("nothing is refused").id.to_string()
    };
    let rename =
        |session: &str, name: &str| SessionRename { session: session.to_owned(), name: name.to_owned() };
    let found = async |bench: &OpsBench, name: &str| {
        let session = bench.request(SessionGet { session: name.to_owned() }).await;
        session.map(|session| session.id.to_string()).map_err(|error| error.code)
    };
    let (first, second) = (make("one").await, make("two").await);
    let renamed = bench.request_with_key(rename("one", " three "), "k").await.expect("free");
    assert_eq!((renamed.id.to_string(), renamed.name.as_deref()), (first.clone(), Some("three")));
    assert_eq!(bench.request_with_key(rename("one", " three "), "k").await, Ok(renamed), "a repetition");
    assert_eq!(found(&bench, "one").await, Err(ErrorCode::SessionNotFound));
    assert_eq!(found(&bench.restarted(), "three").await, Ok(first.clone()), "also by the next supervisor");
    let listed = bench.request(SessionList::default()).await.expect("a list");
    assert!(listed.iter().any(|session| session.name.as_deref() == Some("three")), "{listed:?}");
    bench.request(rename("three", "three")).await.expect("its own name");
    for (name, code) in
        [("two", ErrorCode::Conflict), ("", ErrorCode::ValidationError), ("a\nb", ErrorCode::ValidationError)]
    {
        assert_eq!(bench.refused(rename("three", name)).await, code, "{name:?}");
    }
    let theirs = bench.ops.call(&bob(), rename(&first, "four"), None, None).await.expect_err("Alice's");
    assert_eq!(theirs.code, ErrorCode::SessionNotFound);
    // Of requests for one name at the same time one gets it, also against a creation.
    let new = SessionCreate { name: Some("five".to_owned()), ..new_session(&template) };
    let (one, two, made) = tokio::join!(
        bench.request(rename(&first, "five")),
        bench.request(rename(&second, "five")),
        bench.request(new)
    );
    let got = [one.is_ok(), two.is_ok(), made.is_ok()];
    assert_eq!(got.iter().filter(|has_it| **has_it).count(), 1, "{got:?}");
    let holder = found(&bench, "five").await.expect("one has it");
    bench.request(SessionClose { session: holder.clone() }).await.expect("live");
    assert_eq!(bench.refused(rename(&holder, "six")).await, ErrorCode::SessionNotReady);
    let other = if holder == second { &first } else { &second };
    bench.request(rename(other, "five")).await.expect("the name of a session that has ended is free");
}

#[tokio::test]
async fn name_means_a_row_of_the_callers_own_for_administrators_too() {
    let bench = OpsBench::new();
    let theirs = bench.template("backup").await;
    let get = |reference: &str| TemplateGet { template: reference.to_owned() };
    let error = bench.as_admin(get("backup")).await.expect_err("it is Alice's");
    assert_eq!(error.code, ErrorCode::TemplateNotFound);
    assert!(error.hint.is_some_and(|hint| hint.contains("what others own is named by its id")), "a hint");
    assert!(bench.as_admin(get(&theirs)).await.is_ok(), "by its id");
    assert!(bench.as_admin(get(&theirs[..35])).await.is_ok(), "by the beginning of its id");
    bench.as_admin(template("backup")).await.expect("a name of the administrator's own");
    assert_ne!(template_id(bench.as_admin(get("backup")).await), theirs);
    let new = SessionCreate { name: Some("build".to_owned()), ..new_session(&theirs) };
    bench.request(new).await.expect("nothing is refused");
    let session = SessionGet { session: "build".to_owned() };
    assert_eq!(bench.as_admin(session).await.expect_err("it is Alice's").code, ErrorCode::SessionNotFound);
}
