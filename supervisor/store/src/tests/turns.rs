//! Random batches that share a commit have the same effect as alone: a refused one does not affect others, and an execution
//! that starts and ends in one commit is written once with the same result.

use super::fixture::{
    console, execution_id, execution_record, on_disk, owner, session, session_id, template,
};
use crate::StoreHandle;
use proptest::prelude::*;
use proptest::sample::select;
use std::sync::Arc;
use vm_system_protocol::model::{Execution, ExecutionStatus, Metrics, SessionStatus};
use vm_system_protocol::reason::CloseReason;
use vm_system_protocol::time::Timestamp;
use vm_system_record::{Batch, ExecutionQuery, Page, Scope, SessionQuery, Write};

/// Few enough to collide often.
fn number() -> impl Strategy<Value = u8> {
    1_u8..4
}

fn name() -> impl Strategy<Value = Option<String>> {
    select(vec![None, None, Some("a".to_owned())])
}

fn record() -> impl Strategy<Value = Execution> {
    (number(), number(), select(ExecutionStatus::ALL), any::<bool>()).prop_map(
        |(n, session, status, degraded)| {
            let ended_at = status.is_final().then_some(Timestamp(4_000));
            Execution { status, ended_at, degraded, ..execution_record(n, session) }
        },
    )
}

fn write() -> impl Strategy<Value = Write> {
    let running = |wait| if wait { ExecutionStatus::Waiting } else { ExecutionStatus::Running };
    prop_oneof![
        6 => (name(), record()).prop_map(|(name, record)| {
            Write::ExecutionStarted { name, execution: Arc::new(Execution { status: ExecutionStatus::Running, ..record }) }
        }),
        1 => (name(), record())
            .prop_map(|(name, record)| Write::ExecutionStarted { name, execution: Arc::new(record) }),
        5 => record().prop_map(|record| {
            let status = if record.status.is_final() { record.status } else { ExecutionStatus::Ok };
            Write::ExecutionEnded(Arc::new(Execution { status, ..record }))
        }),
        1 => (number(), any::<bool>())
            .prop_map(move |(n, wait)| Write::ExecutionStatus { id: execution_id(n), status: running(wait) }),
        1 => (number(), any::<bool>()).prop_map(move |(n, wait)| {
            Write::RunProgress { id: execution_id(n), status: running(wait), metrics: Metrics::default() }
        }),
        1 => number().prop_map(|n| Write::ExecutionDegraded { id: execution_id(n) }),
        1 => number().prop_map(|n| Write::ExecutionUnname { id: execution_id(n) }),
        4 => (number(), 1_u64..6).prop_map(|(n, seq)| Write::Events([console(n, seq)].into())),
        1 => (number(), 0_u64..9).prop_map(|(n, seq)| Write::WorkerSeq { session: session_id(n), seq }),
        1 => number().prop_map(|n| session(n, 1)),
        1 => number().prop_map(|n| Write::SessionEnd {
            id: session_id(n),
            status: SessionStatus::Crashed,
            at: Timestamp(5_000),
            reason: CloseReason::KeeperLost,
            last_error: None,
        }),
        1 => Just(Write::HostRestart {
            at: Timestamp(6_000),
            alive: vec![session_id(1)],
            continued: Vec::new(),
            earlier: None,
            why: None
        }),
        1 => Just(Write::Prune { before: Timestamp(4_500), keys_before: Timestamp(0), max_rows: 1_000 }),
    ]
}

/// Everything that the writes change.
async fn content(store: &StoreHandle) -> Vec<String> {
    let sessions = store.sessions(&Scope::All, &SessionQuery::default(), Page::ALL).await;
    let named = store.execution_by_name(&owner(1), "a").await;
    let mut content = vec![format!("{sessions:?}"), format!("{named:?}")];
    for n in 1..4 {
        let filter = ExecutionQuery::default();
        let executions = store.executions(&Scope::All, session_id(n), filter, Page::ALL).await;
        let events = store.events(execution_id(n), 0, 0).await;
        content.extend([format!("{executions:?}"), format!("{events:?}")]);
    }
    content
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn batches_that_share_a_commit_have_the_same_effect_as_alone(
        turns in proptest::collection::vec(
            proptest::collection::vec(proptest::collection::vec(write(), 0..4).prop_map(Batch), 1..8),
            1..6,
        )
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
        runtime.block_on(async {
            let (together, alone) = (on_disk(), on_disk());
            for store in [&together.store, &alone.store] {
                store.apply(Batch(vec![template(1, "t"), session(1, 1), session(2, 1)])).await.expect("new");
            }
            for batches in turns {
                let mut tickets = Vec::new();
                for batch in &batches {
                    tickets.push(together.store.submit_lazy(batch.clone()).await.expect("open"));
                }
                together.store.apply(Batch::default()).await.expect("nothing to write");
                for (batch, ticket) in batches.into_iter().zip(tickets) {
                    let expected = alone.store.apply(batch.clone()).await;
                    prop_assert_eq!(ticket.await, expected, "{:?}", batch);
                }
                prop_assert_eq!(content(&together.store).await, content(&alone.store).await);
            }
            together.store.shutdown().await;
            alone.store.shutdown().await;
            Ok(())
        })?;
    }
}
