//! Verbs about the supervisor itself.

use super::fake::{Bench, admin, bob};
use vm_system_protocol::control::{ErrorCode, Health, ListPage, Op, Reply};

#[tokio::test]
async fn health_doctor_and_information_answer() {
    let bench = Bench::new();
    assert_eq!(bench.ask(Op::Health).await, Ok(Reply::Health(Health { status: "ok".to_owned() })));
    bench.faults.set(Some("the disk is full"));
    let sick = bench.ask(Op::Health).await.expect_err("it cannot write");
    assert_eq!(sick.code, ErrorCode::StorageUnavailable);
    assert!(sick.message.contains("the disk is full"), "{sick:?}");
    bench.faults.set(None);
    assert!(matches!(bench.ask(Op::Doctor).await, Ok(Reply::Doctor(report)) if report.ok));
    bench.session().await;
    let Ok(Reply::RuntimeInfo(info)) = bench.ask(Op::RuntimeInfo).await else { panic!("another answer") };
    assert_eq!((info.keeper_pid, info.active_sessions), (Some(7), 1));
    assert_eq!((info.pid, info.durability.as_str()), (std::process::id(), "off"));
}

#[tokio::test]
async fn summary_counts_live_sessions_of_the_caller() {
    let bench = Bench::new();
    let id = bench.session().await;
    let closed = bench.session().await;
    bench.ask(Op::SessionClose { session: closed }).await.expect("live");
    let count = |reply| match reply {
        Ok(Reply::RuntimeSummary(summary)) => {
            assert_eq!(summary.active_sessions as usize, summary.active_session_ids.len());
            summary.active_session_ids.iter().map(ToString::to_string).collect::<Vec<_>>()
        }
        other => panic!("another answer: {other:?}"),
    };
    let mine = count(bench.ask(Op::RuntimeSummary).await);
    assert_eq!(mine, std::slice::from_ref(&id));
    assert!(count(bench.ops.call(&bob(), Op::RuntimeSummary, None, None).await).is_empty());
    assert_eq!(count(bench.ops.call(&admin(), Op::RuntimeSummary, None, None).await), [id]);
}

#[tokio::test]
async fn only_an_administrator_stops_the_supervisor() {
    let bench = Bench::new();
    assert_eq!(bench.refused(Op::Shutdown).await, ErrorCode::NotPermitted);
    assert!(!bench.stop.is_cancelled());
    assert_eq!(bench.ops.call(&admin(), Op::Shutdown, None, None).await, Ok(Reply::Done));
    assert!(bench.stop.is_cancelled());
}

#[tokio::test]
async fn closed_store_is_told_as_a_supervisor_that_stops() {
    let bench = Bench::new();
    bench.store.shutdown().await;
    assert_eq!(
        bench.refused(Op::TemplateList { page: ListPage::default(), built_in: false }).await,
        ErrorCode::ShuttingDown
    );
}
