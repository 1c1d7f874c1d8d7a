//! Verbs about the supervisor itself.

use super::fake::{OpsBench, admin, bob};
use vm_system_protocol::control::{
    BackupBegin, BackupEnd, BackupPart, DatabaseCheck, Doctor, ErrorCode, Health, HealthGet, ListPage, Op,
    OpError, RuntimeInfoGet, RuntimeSummary, RuntimeSummaryGet, SessionClose, Shutdown, TemplateList,
};

#[tokio::test]
async fn health_doctor_and_information_reply() {
    let bench = OpsBench::new();
    assert_eq!(
        bench.request(HealthGet).await,
        Ok(Health {
            status: "ok".to_owned(),
            memory: "normal".to_owned(),
            largest_owner: None,
            database: None,
            stuck: None
        })
    );
    let Ok(shown) = bench.ops.call(&admin(), HealthGet, None, None).await else { panic!("another reply") };
    let size = shown.database.expect("administrators see it");
    assert!(size.gives_back && size.used_bytes > 0, "{size:?}");
    bench.faults.set(Some("the disk is full"));
    let sick = bench.request(HealthGet).await.expect_err("it cannot write");
    assert_eq!(sick.code, ErrorCode::StorageUnavailable);
    assert!(sick.message.contains("the disk is full"), "{sick:?}");
    bench.faults.set(None);
    assert!(matches!(bench.request(Doctor).await, Ok(report) if report.ok));
    bench.session().await;
    let Ok(info) = bench.request(RuntimeInfoGet).await else { panic!("another reply") };
    assert_eq!((info.keeper_pid, info.active_sessions), (Some(7), 1));
    assert_eq!((info.pid, info.durability.as_str()), (std::process::id(), "off"));
}

#[tokio::test]
async fn information_has_the_figures_of_all_owners_for_administrators_alone() {
    let bench = OpsBench::new();
    bench.session().await;
    let figures = async |caller| match bench.ops.call(&caller, RuntimeInfoGet, None, None).await {
        Ok(info) => (info.active_sessions, info.sessions_created),
        other => panic!("another reply: {other:?}"),
    };
    assert_eq!(figures(bob()).await, (0, 1));
    assert_eq!(figures(admin()).await, (1, 5));
}

#[tokio::test]
async fn summary_counts_live_sessions_of_the_caller() {
    let bench = OpsBench::new();
    let id = bench.session().await;
    let closed = bench.session().await;
    bench.request(SessionClose { session: closed }).await.expect("live");
    let count = |reply: Result<RuntimeSummary, OpError>| match reply {
        Ok(summary) => {
            assert_eq!(summary.active_sessions as usize, summary.active_session_ids.len());
            summary.active_session_ids.iter().map(ToString::to_string).collect::<Vec<_>>()
        }
        other => panic!("another reply: {other:?}"),
    };
    let mine = count(bench.request(RuntimeSummaryGet).await);
    assert_eq!(mine, std::slice::from_ref(&id));
    assert!(count(bench.ops.call(&bob(), RuntimeSummaryGet, None, None).await).is_empty());
    assert_eq!(count(bench.ops.call(&admin(), RuntimeSummaryGet, None, None).await), [id]);
}

#[tokio::test]
async fn only_an_administrator_stops_the_supervisor() {
    let bench = OpsBench::new();
    assert_eq!(bench.refused(Shutdown).await, ErrorCode::NotPermitted);
    assert!(!bench.stop.is_cancelled());
    assert_eq!(bench.ops.call(&admin(), Shutdown, None, None).await, Ok(()));
    assert!(bench.stop.is_cancelled());
}

#[tokio::test]
async fn only_an_administrator_copies_or_checks_the_database() {
    let bench = OpsBench::new();
    for op in [
        Op::from(BackupBegin),
        BackupPart { backup: "b".to_owned(), at: 0 }.into(),
        BackupEnd { backup: "b".to_owned() }.into(),
        DatabaseCheck.into(),
    ] {
        assert_eq!(bench.refused(op).await, ErrorCode::NotPermitted);
    }
    let Ok(report) = bench.as_admin(DatabaseCheck).await else { panic!("another reply") };
    assert!(report.ok, "{report:?}");
    let Ok(copy) = bench.as_admin(BackupBegin).await else { panic!("another reply") };
    let second = bench.as_admin(BackupBegin).await.expect_err("one at a time");
    assert_eq!(second.code, ErrorCode::CapacityExceeded);
    let part = BackupPart { backup: copy.id.clone(), at: 0 };
    let Ok(bytes) = bench.as_admin(part).await else { panic!("another reply") };
    assert!(bytes.starts_with(b"SQLite format 3\0"));
    let behind = BackupPart { backup: copy.id.clone(), at: copy.bytes };
    assert_eq!(bench.as_admin(behind.clone()).await, Ok(Vec::new()));
    assert_eq!(bench.as_admin(BackupEnd { backup: copy.id.clone() }).await, Ok(()));
    assert_eq!(bench.as_admin(behind).await.expect_err("it has ended").code, ErrorCode::NotFound);
    bench.as_admin(BackupBegin).await.expect("the first one has ended");
}

#[tokio::test]
async fn closed_store_is_reported_as_shutting_down() {
    let bench = OpsBench::new();
    bench.store.shutdown().await;
    assert_eq!(
        bench.refused(TemplateList { page: ListPage::default(), built_in: false }).await,
        ErrorCode::ShuttingDown
    );
}
