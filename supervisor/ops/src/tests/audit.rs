//! Refusals before a handler writes a line of its own.

use super::fake::{OpsBench, admin, bob, new_session};
use crate::{ApiRefusal, Caller, VerbHandler as _};
use vm_system_protocol::control::{
    AuditList, ErrorCode, LibraryRemove, Op, SessionGet, SessionKill, Shutdown,
};
use vm_system_record::Owner;

/// `owner verb subject outcome` of the newest lines, as an administrator sees them.
async fn lines(bench: &OpsBench, of: &Caller) -> Vec<String> {
    let list = AuditList { before: None, limit: 1_000 };
    let Ok(records) = bench.ops.call(of, list, None, None).await else { panic!("another reply") };
    let line = |record: &vm_system_protocol::control::AuditRecord| {
        format!("{} {} {} {}", record.owner, record.verb, record.subject, record.outcome)
    };
    records.iter().map(line).collect()
}

#[tokio::test]
async fn attempts_at_things_of_others_and_at_an_administrators_verbs_have_a_line_each() {
    let bench = OpsBench::new();
    let session = bench.session().await;
    let before = lines(&bench, &admin()).await.len();
    for op in [
        Op::from(SessionGet { session: session.clone() }),
        SessionKill { session: session.clone(), signal: 9 }.into(),
        Shutdown.into(),
        LibraryRemove { name: "lodash".to_owned() }.into(),
        new_session("").into(),
    ] {
        bench.ops.any(&bob(), op, None, None).await.expect_err("not bob's");
    }
    let log = lines(&bench, &admin()).await;
    let expected = [
        "bob session create  VALIDATION_ERROR".to_owned(),
        "bob libs remove lodash NOT_PERMITTED".to_owned(),
        "bob shutdown  NOT_PERMITTED".to_owned(),
        format!("bob session kill {session} SESSION_NOT_FOUND"),
        format!("bob session get {session} SESSION_NOT_FOUND"),
    ];
    assert_eq!(log[..log.len() - before], expected);
    // Each owner sees only its own refusals.
    assert_eq!(lines(&bench, &bob()).await, expected);
}

/// A user's numbers of lines would show how many lines others have.
#[tokio::test]
async fn numbers_of_lines_show_a_user_nothing_about_others_and_find_the_next_page() {
    let bench = OpsBench::new();
    let page = async |of: &Caller, before, limit| {
        let list = AuditList { before, limit };
        match bench.ops.call(of, list, None, None).await {
            Ok(records) => records.into_iter().map(|record| record.seq).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        }
    };
    for _ in 0..10 {
        bench.ops.call(&bob(), Shutdown, None, None).await.expect_err("not bob's");
    }
    let (real, shown) = (page(&admin(), None, 10).await, page(&bob(), None, 10).await);
    assert!(real.windows(2).all(|pair| pair[0] == pair[1] + 1), "{real:?}");
    assert!(!shown.windows(2).any(|pair| pair[0] == pair[1] + 1), "{shown:?}");
    let mut paged = page(&bob(), None, 3).await;
    while let [.., last] = paged[..]
        && let next = page(&bob(), Some(last), 3).await
        && !next.is_empty()
    {
        paged.extend(next);
    }
    assert_eq!(paged, shown);
    let stranger = AuditList { before: Some(u64::MAX), limit: 3 };
    let error = bench.ops.call(&bob(), stranger, None, None).await.expect_err("no such line");
    assert_eq!(error.code, ErrorCode::ValidationError);
}

#[tokio::test]
async fn with_a_key_a_refusal_has_one_line_for_each_attempt() {
    let bench = OpsBench::new();
    for _ in 0..2 {
        let op = SessionKill { session: "0123-4567".to_owned(), signal: 9 };
        bench.ops.call(&bob(), op, Some("key"), None).await.expect_err("there is none");
    }
    assert_eq!(lines(&bench, &bob()).await, ["bob session kill 0123-4567 SESSION_NOT_FOUND"; 2]);
}

#[tokio::test]
async fn flood_of_refusals_is_logged_as_a_number() {
    let bench = OpsBench::new();
    for _ in 0..500 {
        bench.ops.call(&bob(), Shutdown, None, None).await.expect_err("not an administrator");
    }
    let log = lines(&bench, &admin()).await;
    assert!(log.len() < 50, "{}", log.len());
    assert!(
        log.iter().any(|line| line.starts_with("bob unlisted ") && line.ends_with("more NOT_LISTED")),
        "{log:?}"
    );
}

#[tokio::test]
async fn refusal_by_an_api_has_no_owner() {
    let bench = OpsBench::new();
    bench.ops.refused(refusal(None, "GET /api/v1/templates", "192.0.2.1", "UNAUTHORIZED")).await;
    let alice = Owner::new("alice");
    bench.ops.refused(refusal(Some(alice), "POST /api/v1/templates", "", "INVALID_REQUEST")).await;
    let log = lines(&bench, &admin()).await;
    assert_eq!(
        log,
        [
            "alice POST /api/v1/templates  INVALID_REQUEST",
            "(nobody) GET /api/v1/templates 192.0.2.1 UNAUTHORIZED"
        ]
    );
    assert!(lines(&bench, &bob()).await.is_empty());
}

fn refusal(owner: Option<Owner>, what: &str, from: &str, code: &'static str) -> ApiRefusal {
    ApiRefusal { owner, api: "rest", what: what.to_owned(), from: from.to_owned(), code }
}
