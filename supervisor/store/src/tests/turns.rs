//! Random batches that share a commit have the same effect as alone: a refused one does not affect others, and an execution
//! that starts and ends in one commit is written once with the same result. And whatever batches do, what owners store is counted right.

use super::fixture::{
    console, execution_id, execution_record, on_disk, owner, session, session_id, template,
};
use crate::StoreHandle;
use proptest::prelude::*;
use proptest::sample::select;
use std::sync::Arc;
use vm_system_protocol::control::ProgramStart;
use vm_system_protocol::ids::{ProgramId, ScheduleId, TaskId};
use vm_system_protocol::model::{Execution, ExecutionStatus, Metrics, Overlap, ScheduleRule, SessionStatus};
use vm_system_protocol::reason::CloseReason;
use vm_system_protocol::time::Timestamp;
use vm_system_record::{
    Batch, Checkpoint, ExecutionQuery, Incarnation, ItemOutcome, ItemRow, KeyClaim, NewProgramVersion, Page,
    ScheduleRow, ScheduleSpec, ScheduleState, Scope, SessionQuery, WaitKind, Write,
};

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
            Write::RunProgress { id: execution_id(n), status: running(wait), metrics: Metrics::default(), limits: None }
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

fn schedule(n: u8, arg: String) -> Write {
    let rule = ScheduleRule {
        cron: None,
        every_ms: Some(1_000),
        time_zone: "UTC".to_owned(),
        overlap: Overlap::Skip,
        jitter_ms: 0,
    };
    let start = ProgramStart { args: vec![arg], ..ProgramStart::default() };
    let row = ScheduleRow {
        id: ScheduleId::from_bytes([n; 16]),
        owner: owner(n),
        name: "s".to_owned(),
        created_at: Timestamp(1),
        revision: 0,
        next_at: None,
        spec: ScheduleSpec { rule, start },
        state: ScheduleState::default(),
    };
    Write::ScheduleInsert { schedule: Box::new(row), due_at: None }
}

/// Writes of every kind of row that counts for its owner.
fn counted_write() -> impl Strategy<Value = Write> {
    let bytes = || 0_usize..3_000;
    let text = || bytes().prop_map(|bytes| "x".repeat(bytes));
    prop_oneof![
        8 => write(),
        3 => (number(), 1_u64..6, proptest::collection::vec((0_u64..4, proptest::option::of(bytes())), 0..4)).prop_map(
            |(n, seq, mut pages)| {
                pages.sort_unstable();
                pages.dedup_by_key(|(page, _)| *page);
                let pages = pages.into_iter().map(|(page, bytes)| (page, bytes.map(|bytes| vec![7; bytes]))).collect();
                let (execution, at) = (execution_id(n), Timestamp(1));
                let cause = if seq % 2 == 0 { "pause" } else { "steps" }.to_owned();
                Write::Checkpoint(Box::new(Checkpoint {
                    execution, seq, at, cause, pages, unweighed: None, written: 0
                }))
            }
        ),
        1 => (number(), 1_u64..6)
            .prop_map(|(n, keep_from)| Write::CheckpointCompact { execution: execution_id(n), keep_from, keep_bytes: None }),
        1 => number().prop_map(|n| Write::CheckpointsTrim { execution: execution_id(n) }),
        3 => (number(), 1_u64..6, text(), any::<bool>()).prop_map(|(n, item, prompt, has_deadline)| {
            Write::ItemInsert(Box::new(ItemRow {
                id: TaskId::from_bytes([16 * n + item as u8; 16]),
                owner: owner(1),
                execution: execution_id(n),
                prompt,
                schema: None,
                attempts: 0,
                created_at: Timestamp(1),
                deadline: has_deadline.then_some(Timestamp(2)),
                ended_at: None,
                outcome: None,
                answer: None,
                item,
                kind: WaitKind::Question,
                name: None,
                answer_seq: None,
                taken_at: None,
                checkpoint: item,
                retries: None,
                fallback: Some("1".to_owned()),
                first_attempt_at: None,
                last_attempt_at: None,
            }))
        }),
        2 => (number(), 1_u64..6, text()).prop_map(|(n, item, answer)| Write::ItemEnd {
            execution: execution_id(n),
            id: TaskId::from_bytes([16 * n + item as u8; 16]),
            outcome: ItemOutcome::Answered,
            answer: Some(answer),
            at: Timestamp(3), taken_at: None }),
        1 => number().prop_map(|n| Write::ItemsWithdraw { execution: execution_id(n), at: Timestamp(3) }),
        2 => number().prop_map(|n| Write::RunDelete { id: execution_id(n) }),
        1 => (number(), number()).prop_map(|(from, to)| Write::CheckpointCopy {
            from: execution_id(from),
            checkpoint: 2,
            to: execution_id(to + 3),
            at: Timestamp(1),
        }),
        1 => (number(), text()).prop_map(|(n, source)| Write::ProgramVersion(Box::new(NewProgramVersion {
            owner: owner(n),
            id: ProgramId::from_bytes([n; 16]),
            name: "p".to_owned(),
            source_hash: [source.len() as u8; 32],
            source,
            format: 1,
            code: vec![1; 100],
            at: Timestamp(1),
        }))),
        1 => (number(), proptest::option::of(bytes())).prop_map(|(n, reply)| Write::KeyClaim(Box::new(KeyClaim {
            owner: owner(n),
            key: "k".to_owned(),
            request_hash: [1; 32],
            subject: [2; 16],
            at: Timestamp(100),
            expired_before: Timestamp(0),
            reply: reply.map(|bytes| vec![1; bytes]),
            holder: Incarnation([3; 16]),
        }))),
        1 => (number(), bytes()).prop_map(|(n, bytes)| Write::KeyResponse {
            owner: owner(n),
            key: "k".to_owned(),
            reply: vec![1; bytes],
        }),
        1 => (number(), text()).prop_map(|(n, arg)| schedule(n, arg)),
        1 => number().prop_map(|n| Write::ScheduleDelete { id: ScheduleId::from_bytes([n; 16]) }),
        1 => number().prop_map(|n| Write::KeyRelease { owner: owner(n), key: "k".to_owned() }),
        1 => number().prop_map(|n| Write::PruneOwner { owner: owner(n), before: Timestamp(9_000), max_rows: 100 }),
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
    fn counters_of_owners_are_what_a_count_anew_finds_after_random_batches(
        turns in proptest::collection::vec(
            proptest::collection::vec(proptest::collection::vec(counted_write(), 0..5).prop_map(Batch), 1..6),
            1..16,
        )
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
        runtime.block_on(async {
            let disk = on_disk();
            disk.store.apply(Batch(vec![template(1, "t"), session(1, 1), session(2, 1)])).await.expect("new");
            for batches in turns {
                for batch in batches {
                    // Refused ones leave nothing: they are among those that are counted.
                    drop(disk.store.submit_lazy(batch).await.expect("open"));
                }
                disk.store.apply(Batch::default()).await.expect("nothing to write");
            }
            let report = disk.store.check().await.expect("readable");
            let wrong: Vec<_> = report.findings.iter().filter(|finding| finding.check == "counters").collect();
            prop_assert!(wrong.is_empty(), "{:?}", wrong);
            disk.store.shutdown().await;
            Ok(())
        })?;
    }

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
