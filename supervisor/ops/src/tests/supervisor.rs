//! Verbs about the supervisor itself.

use super::fake::{OpsBench, admin, bob};
use vm_system_protocol::control::{ErrorCode, Health, ListPage, Op, Reply};

#[tokio::test]
async fn health_doctor_and_information_reply() {
    let bench = OpsBench::new();
    assert_eq!(
        bench.request(Op::Health).await,
        Ok(Reply::Health(Health {
            status: "ok".to_owned(),
            memory: "normal".to_owned(),
            largest_owner: None,
            database: None
        }))
    );
    let Ok(Reply::Health(shown)) = bench.ops.call(&admin(), Op::Health, None, None).await else {
        panic!("another reply")
    };
    let size = shown.database.expect("administrators see it");
    assert!(size.gives_back && size.used_bytes > 0, "{size:?}");
    bench.faults.set(Some("the disk is full"));
    let sick = bench.request(Op::Health).await.expect_err("it cannot write");
    assert_eq!(sick.code, ErrorCode::StorageUnavailable);
    assert!(sick.message.contains("the disk is full"), "{sick:?}");
    bench.faults.set(None);
    assert!(matches!(bench.request(Op::Doctor).await, Ok(Reply::Doctor(report)) if report.ok));
    bench.session().await;
    let Ok(Reply::RuntimeInfo(info)) = bench.request(Op::RuntimeInfo).await else { panic!("another reply") };
    assert_eq!((info.keeper_pid, info.active_sessions), (Some(7), 1));
    assert_eq!((info.pid, info.durability.as_str()), (std::process::id(), "off"));
}

#[tokio::test]
async fn information_has_the_figures_of_all_owners_for_administrators_alone() {
    let bench = OpsBench::new();
    bench.session().await;
    let figures = async |caller| match bench.ops.call(&caller, Op::RuntimeInfo, None, None).await {
        Ok(Reply::RuntimeInfo(info)) => (info.active_sessions, info.sessions_created),
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
    bench.request(Op::SessionClose { session: closed }).await.expect("live");
    let count = |reply| match reply {
        Ok(Reply::RuntimeSummary(summary)) => {
            assert_eq!(summary.active_sessions as usize, summary.active_session_ids.len());
            summary.active_session_ids.iter().map(ToString::to_string).collect::<Vec<_>>()
        }
        other => panic!("another reply: {other:?}"),
    };
    let mine = count(bench.request(Op::RuntimeSummary).await);
    assert_eq!(mine, std::slice::from_ref(&id));
    assert!(count(bench.ops.call(&bob(), Op::RuntimeSummary, None, None).await).is_empty());
    assert_eq!(count(bench.ops.call(&admin(), Op::RuntimeSummary, None, None).await), [id]);
}

#[tokio::test]
async fn only_an_administrator_stops_the_supervisor() {
    let bench = OpsBench::new();
    assert_eq!(bench.refused(Op::Shutdown).await, ErrorCode::NotPermitted);
    assert!(!bench.stop.is_cancelled());
    assert_eq!(bench.ops.call(&admin(), Op::Shutdown, None, None).await, Ok(Reply::Done));
    assert!(bench.stop.is_cancelled());
}

#[tokio::test]
async fn only_an_administrator_copies_or_checks_the_database() {
    let bench = OpsBench::new();
    for op in [
        Op::BackupBegin,
        Op::BackupPart { backup: "b".to_owned(), at: 0 },
        Op::BackupEnd { backup: "b".to_owned() },
        Op::DatabaseCheck,
    ] {
        assert_eq!(bench.refused(op).await, ErrorCode::NotPermitted);
    }
    let by_admin = async |op| bench.ops.call(&admin(), op, None, None).await;
    let Ok(Reply::Checked(report)) = by_admin(Op::DatabaseCheck).await else { panic!("another reply") };
    assert!(report.ok, "{report:?}");
    let Ok(Reply::Backup(copy)) = by_admin(Op::BackupBegin).await else { panic!("another reply") };
    let second = by_admin(Op::BackupBegin).await.expect_err("one at a time");
    assert_eq!(second.code, ErrorCode::CapacityExceeded);
    let part = Op::BackupPart { backup: copy.id.clone(), at: 0 };
    let Ok(Reply::BackupPart(bytes)) = by_admin(part).await else { panic!("another reply") };
    assert!(bytes.starts_with(b"SQLite format 3\0"));
    let behind = Op::BackupPart { backup: copy.id.clone(), at: copy.bytes };
    assert_eq!(by_admin(behind.clone()).await, Ok(Reply::BackupPart(Vec::new())));
    assert_eq!(by_admin(Op::BackupEnd { backup: copy.id.clone() }).await, Ok(Reply::Done));
    assert_eq!(by_admin(behind).await.expect_err("it has ended").code, ErrorCode::NotFound);
    by_admin(Op::BackupBegin).await.expect("the first one has ended");
}

#[tokio::test]
async fn closed_store_is_reported_as_shutting_down() {
    let bench = OpsBench::new();
    bench.store.shutdown().await;
    assert_eq!(
        bench.refused(Op::TemplateList { page: ListPage::default(), built_in: false }).await,
        ErrorCode::ShuttingDown
    );
}
