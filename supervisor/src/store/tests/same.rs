//! Random batches and queries give equal answers from both stores.

use super::fixture::{in_memory, on_disk, owner, policy, session_record};
use crate::store::{
    AuditEntry, Batch, Checkpoint, Cursor, IdKind, KeyClaim, NewProgramVersion, Page, PolicySnapshot, Query,
    Scope, SessionQuery, TaskOutcome, TaskRow, Write,
};
use proptest::prelude::*;
use proptest::sample::select;
use std::sync::Arc;
use vm_system_protocol::ids::{
    CapabilityId, ExecutionId, ProgramId, SessionId, StartupFileId, TaskId, TemplateId,
};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{
    Capability, CapabilityKind, ConsoleLevel, Engine, Event, EventPayload, Execution, ExecutionError,
    ExecutionKind, ExecutionStatus, Metrics, Session, SessionStatus, Settings, StartupFile, StartupMode,
    Template, TemplateDetail,
};
use vm_system_protocol::reason::CloseReason;
use vm_system_protocol::time::Timestamp;

/// Few enough to collide often.
fn bytes() -> impl Strategy<Value = [u8; 16]> {
    (0_u8..4, 0_i64..3).prop_map(|(n, at)| super::fixture::id(at * 10, n))
}
fn moment() -> impl Strategy<Value = Timestamp> {
    (0_i64..30).prop_map(Timestamp)
}
fn name() -> impl Strategy<Value = String> {
    select(vec!["a", "b", "ä\0"]).prop_map(str::to_owned)
}
fn json() -> impl Strategy<Value = JsonText> {
    select(vec!["{}", r#"{"b":1,"a":2}"#]).prop_map(|text| JsonText::from_untrusted(text.to_owned()))
}
fn template() -> impl Strategy<Value = TemplateId> {
    bytes().prop_map(TemplateId::from_bytes)
}
fn session() -> impl Strategy<Value = SessionId> {
    bytes().prop_map(SessionId::from_bytes)
}
fn execution() -> impl Strategy<Value = ExecutionId> {
    bytes().prop_map(ExecutionId::from_bytes)
}
fn any_owner() -> impl Strategy<Value = crate::store::Owner> {
    (1_u8..3).prop_map(owner)
}
fn scope() -> impl Strategy<Value = Scope> {
    prop_oneof![Just(Scope::All), any_owner().prop_map(Scope::Owner)]
}
fn page() -> impl Strategy<Value = Page> {
    let cursor = (moment(), bytes()).prop_map(|(at, id)| Cursor { at, id });
    (0_u32..5, proptest::option::of(cursor)).prop_map(|(limit, after)| Page { limit, after })
}

fn capability() -> impl Strategy<Value = Capability> {
    let kind = select(CapabilityKind::ALL);
    (bytes(), template(), kind, name(), any::<bool>(), json()).prop_map(
        |(id, vm_id, kind, name, enabled, config)| Capability {
            id: CapabilityId::from_bytes(id),
            vm_id,
            kind,
            name,
            enabled,
            config,
        },
    )
}

fn startup_file() -> impl Strategy<Value = StartupFile> {
    (bytes(), template(), name(), -2_i64..2, select(StartupMode::ALL)).prop_map(
        |(id, vm_id, path, order_index, mode)| StartupFile {
            id: StartupFileId::from_bytes(id),
            vm_id,
            path,
            order_index,
            mode,
        },
    )
}

fn detail() -> impl Strategy<Value = TemplateDetail> {
    let names = || proptest::collection::vec(name(), 0..3);
    let parts =
        (proptest::collection::vec(capability(), 0..3), proptest::collection::vec(startup_file(), 0..3));
    (template(), name(), names(), names(), moment(), parts).prop_map(
        |(id, name, exposed_modules, libraries, at, (capabilities, startup_files))| TemplateDetail {
            template: Template {
                id,
                name,
                engine: Engine::Quickjs,
                is_active: true,
                built_in: false,
                exposed_modules,
                libraries,
                created_at: at,
                updated_at: at,
            },
            settings: Settings::default(),
            capabilities,
            startup_files,
        },
    )
}

fn session_write() -> impl Strategy<Value = Write> {
    let status = select(SessionStatus::ALL);
    (session(), template(), name(), status, moment(), any_owner(), any::<bool>()).prop_map(
        |(id, template, name, status, created_at, owner, durable)| {
            let engine = if durable { Engine::Cvm } else { Engine::Quickjs };
            let session = Session {
                id,
                name: Some(name.clone()),
                template_id: template,
                vm_id: template,
                workspace_id: name.clone(),
                status,
                created_at,
                ..session_record(1, 1)
            };
            Write::SessionInsert {
                owner,
                session: Arc::new(session),
                policy: Arc::new(PolicySnapshot { engine, ..(*policy()).clone() }),
            }
        },
    )
}

fn execution_record() -> impl Strategy<Value = Arc<Execution>> {
    let error = (name(), name(), proptest::option::of(name()))
        .prop_map(|(code, message, reason)| ExecutionError { code, message, reason });
    let ends = (proptest::option::of(moment()), proptest::option::of(error), proptest::option::of(json()));
    let kind = select(ExecutionKind::ALL);
    (execution(), session(), kind, select(ExecutionStatus::ALL), moment(), ends, any::<bool>()).prop_map(
        |(id, session_id, kind, status, started_at, (ended_at, error, result), degraded)| {
            Arc::new(Execution {
                id,
                session_id,
                kind,
                input: result.as_ref().map(|_| "in".to_owned()),
                path: error.as_ref().map(|_| "path".to_owned()),
                args: JsonText::empty_object(),
                env: JsonText::empty_object(),
                status,
                started_at,
                ended_at,
                result,
                error,
                metrics: Metrics { duration_ms: 3, ..Metrics::default() },
                degraded,
                events: None,
            })
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    let payload = prop_oneof![
        name().prop_map(|text| EventPayload::InputEcho { text }),
        (select(ConsoleLevel::ALL), name()).prop_map(|(level, text)| EventPayload::Console { level, text }),
        (name(), name()).prop_map(|(message, stack)| EventPayload::Exception { message, stack }),
    ];
    (execution(), 1_u64..6, moment(), payload).prop_map(|(execution_id, seq, ts, payload)| Event {
        execution_id,
        seq,
        ts,
        payload,
    })
}

fn template_write() -> impl Strategy<Value = Write> {
    prop_oneof![
        (any_owner(), detail())
            .prop_map(|(owner, detail)| Write::TemplateInsert { owner, detail: Box::new(detail) }),
        (template(), proptest::option::of(name()), moment())
            .prop_map(|(id, name, at)| Write::TemplateUpdate { id, name, settings: None, at }),
        (template(), moment()).prop_map(|(id, at)| Write::TemplateDelete { id, at }),
        (template(), name(), moment()).prop_map(|(template, name, at)| Write::ModuleAdd {
            template,
            name,
            at
        }),
        (template(), name(), moment()).prop_map(|(template, name, at)| Write::ModuleRemove {
            template,
            name,
            at
        }),
        (capability(), moment()).prop_map(|(capability, at)| Write::CapabilityAdd { capability, at }),
        (template(), bytes(), moment()).prop_map(|(template, id, at)| Write::CapabilityRemove {
            template,
            id: CapabilityId::from_bytes(id),
            at
        }),
        (startup_file(), moment()).prop_map(|(file, at)| Write::StartupFileAdd { file, at }),
    ]
}

fn run_write() -> impl Strategy<Value = Write> {
    prop_oneof![
        4 => session_write(),
        1 => session().prop_map(|id| Write::SessionReady { id }),
        1 => (session(), moment()).prop_map(|(id, at)| Write::SessionEnd {
            id, status: SessionStatus::Crashed, at, reason: CloseReason::KeeperLost, last_error: None
        }),
        1 => (session(), 0_u64..9).prop_map(|(session, seq)| Write::WorkerSeq { session, seq }),
        6 => (proptest::option::of(name()), execution_record())
            .prop_map(|(name, execution)| Write::ExecutionStarted { name, execution }),
        1 => (execution(), any::<bool>()).prop_map(|(id, wait)| Write::ExecutionStatus {
            id, status: if wait { ExecutionStatus::Waiting } else { ExecutionStatus::Running }
        }),
        2 => execution_record().prop_map(|mut execution| {
            if !execution.status.is_final() {
                Arc::make_mut(&mut execution).status = ExecutionStatus::Ok;
            }
            Write::ExecutionEnded(execution)
        }),
        1 => execution().prop_map(|id| Write::ExecutionDegraded { id }),
        4 => proptest::collection::vec(event(), 0..4).prop_map(|events| Write::Events(events.into())),
        1 => (moment(), proptest::collection::vec(session(), 0..2))
            .prop_map(|(at, alive)| Write::HostRestart { at, alive }),
    ]
}

fn program() -> impl Strategy<Value = ProgramId> {
    bytes().prop_map(ProgramId::from_bytes)
}
fn task() -> impl Strategy<Value = TaskId> {
    bytes().prop_map(TaskId::from_bytes)
}

fn durable_write() -> impl Strategy<Value = Write> {
    let pages = proptest::collection::vec((0_u64..3, proptest::option::of(Just(vec![1, 2]))), 0..4);
    prop_oneof![
        (any_owner(), program(), name(), moment()).prop_map(|(owner, id, name, at)| {
            Write::ProgramVersion(Box::new(NewProgramVersion {
                owner,
                id,
                source: name.clone(),
                name,
                source_hash: [3; 32],
                format: 1,
                code: vec![1],
                at,
            }))
        }),
        (execution(), program(), 1_u32..3).prop_map(|(execution, program, version)| Write::ProgramRun {
            execution,
            program,
            version
        }),
        (program(), moment()).prop_map(|(id, at)| Write::ProgramDelete { id, at }),
        (task(), execution(), moment(), any::<bool>()).prop_map(|(id, execution, created_at, ended)| {
            Write::TaskInsert(Box::new(TaskRow {
                id,
                owner: owner(1),
                execution,
                prompt: "?".to_owned(),
                schema: None,
                attempts: 0,
                created_at,
                deadline: None,
                ended_at: ended.then_some(created_at),
                answer: None,
                outcome: None,
                checkpoint: 0,
                retries: None,
                fallback: None,
                first_attempt_at: None,
                last_attempt_at: None,
            }))
        }),
        (task(), moment()).prop_map(|(id, at)| Write::TaskAttempt { id, at }),
        (task(), moment()).prop_map(|(id, at)| Write::TaskEnd {
            id,
            outcome: TaskOutcome::Expired,
            answer: None,
            at
        }),
        (execution(), moment()).prop_map(|(execution, at)| Write::TasksWithdraw { execution, at }),
        (execution(), 0_u64..4, moment(), pages, proptest::option::of(0_u64..4)).prop_map(
            |(execution, seq, at, pages, unweighed)| {
                let cause = "pause".to_owned();
                Write::Checkpoint(Box::new(Checkpoint {
                    execution,
                    seq,
                    at,
                    cause,
                    pages,
                    unweighed,
                    written: seq,
                }))
            }
        ),
        (execution(), 0_u64..300).prop_map(|(execution, most)| Write::StateBound { execution, most }),
        execution().prop_map(|id| Write::RunDelete { id }),
        (any_owner(), name(), execution(), moment()).prop_map(|(owner, client, execution, at)| {
            Write::CurrentSet { owner, client, execution, at }
        }),
        (execution(), 0_u64..4, proptest::option::of(0_u64..400)).prop_map(
            |(execution, keep_from, keep_bytes)| Write::CheckpointCompact {
                execution,
                keep_from,
                keep_bytes
            }
        ),
    ]
}

fn book_write() -> impl Strategy<Value = Write> {
    prop_oneof![
        (any_owner(), name(), moment(), moment()).prop_map(|(owner, key, at, expired_before)| {
            Write::KeyClaim(Box::new(KeyClaim {
                owner,
                key,
                request_hash: [1; 32],
                subject: [2; 16],
                at,
                expired_before,
                reply: None,
            }))
        }),
        (any_owner(), name()).prop_map(|(owner, key)| Write::KeyAnswer { owner, key, reply: vec![1] }),
        (any_owner(), name()).prop_map(|(owner, key)| Write::KeyRelease { owner, key }),
        (any_owner(), moment()).prop_map(|(owner, at)| {
            let (verb, subject, outcome) = ("v".to_owned(), "s".to_owned(), "ok".to_owned());
            let door = "rest".to_owned();
            Write::Audit(Box::new(AuditEntry { at, owner, door, verb, subject, outcome }))
        }),
        (moment(), moment()).prop_map(|(before, keys_before)| Write::Prune {
            before,
            keys_before,
            max_rows: 1_000_000
        }),
        (any_owner(), moment()).prop_map(|(owner, before)| Write::PruneOwner {
            owner,
            before,
            max_rows: 1_000_000
        }),
    ]
}

fn batch() -> impl Strategy<Value = Batch> {
    let write = prop_oneof![3 => template_write(), 5 => run_write(), 2 => durable_write(), 1 => book_write()];
    proptest::collection::vec(write, 0..4).prop_map(Batch)
}

fn query() -> impl Strategy<Value = Query> {
    let sessions =
        (scope(), proptest::option::of(select(SessionStatus::ALL)), proptest::option::of(template()));
    prop_oneof![
        (scope(), template()).prop_map(|(scope, id)| Query::Template(scope, id)),
        (scope(), name()).prop_map(|(scope, name)| Query::TemplateByName(scope, name)),
        (scope(), page()).prop_map(|(scope, page)| Query::Templates(scope, page)),
        (scope(), session()).prop_map(|(scope, id)| Query::Session(scope, id)),
        session().prop_map(Query::SessionPolicy),
        (any_owner(), name()).prop_map(|(owner, client)| Query::Current(owner, client)),
        (sessions, (proptest::option::of(name()), proptest::option::of(name())), any::<bool>(), page())
            .prop_map(|((scope, status, template), (workspace_id, name), durable, page)| {
                Query::Sessions(scope, SessionQuery { status, template, workspace_id, name, durable }, page)
            }),
        (scope(), execution()).prop_map(|(scope, id)| Query::Execution(scope, id)),
        (scope(), name()).prop_map(|(scope, name)| Query::ExecutionByName(scope, name)),
        (scope(), session(), page()).prop_map(|(scope, id, page)| Query::Executions(scope, id, page)),
        (execution(), 0_u64..6, 0_u32..4).prop_map(|(id, after, limit)| Query::Events(id, after, limit)),
        (
            scope(),
            bytes(),
            bytes(),
            0_u32..4,
            select(vec![IdKind::Template, IdKind::Session, IdKind::Execution])
        )
            .prop_map(|(scope, from, to, limit, kind)| Query::Ids { scope, kind, from, to, limit }),
        (scope(), program()).prop_map(|(scope, id)| Query::Program(scope, id)),
        (scope(), name()).prop_map(|(scope, name)| Query::ProgramByName(scope, name)),
        (scope(), page()).prop_map(|(scope, page)| Query::Programs(scope, page)),
        (program(), 1_u32..3).prop_map(|(id, version)| Query::ProgramCode(id, version)),
        (program(), proptest::option::of(1_u32..4), 0_u32..4)
            .prop_map(|(program, below, limit)| Query::ProgramVersions { program, below, limit }),
        (scope(), proptest::option::of(program()), proptest::option::of(execution()), page())
            .prop_map(|(scope, program, execution, page)| Query::Runs { scope, program, execution, page }),
        (execution(), 0_u64..4, 0_u32..4).prop_map(|(execution, after, limit)| Query::TasksOfRun {
            execution,
            after,
            limit
        }),
        (execution(), proptest::option::of((0_u64..3, 0_u64..4)), 1_usize..200)
            .prop_map(|(execution, after, bytes)| Query::PageVersions { execution, after, bytes }),
        execution().prop_map(Query::ProgramRun),
        (scope(), task()).prop_map(|(scope, id)| Query::Task(scope, id)),
        execution().prop_map(Query::PendingTask),
        (scope(), page()).prop_map(|(scope, page)| Query::PendingTasks(scope, page)),
        (scope(), prop::collection::vec(execution(), 0..4), 0..4_u32)
            .prop_map(|(scope, executions, bytes)| Query::Prompts { scope, executions, bytes }),
        scope().prop_map(Query::ProgramCounts),
        execution().prop_map(Query::Checkpoints),
        (execution(), 0_u64..4, proptest::option::of(0_u64..4), prop_oneof![Just(usize::MAX), 0_usize..8])
            .prop_map(|(execution, checkpoint, behind, bytes)| Query::State {
                execution,
                checkpoint,
                behind,
                bytes
            }),
        (any_owner(), name()).prop_map(|(owner, key)| Query::Key(owner, key)),
        (scope(), proptest::option::of(0_u64..5), 0_u32..4).prop_map(|(scope, before, limit)| Query::Audit {
            scope,
            before,
            limit
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn both_stores_answer_alike(
        steps in proptest::collection::vec((proptest::collection::vec(batch(), 1..8), proptest::collection::vec(query(), 0..12)), 1..12)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
        runtime.block_on(async {
            let disk = on_disk();
            let (twin, _) = in_memory();
            for (batches, queries) in steps {
                // Queued together, so that several share a turn.
                let mut tickets = Vec::new();
                for batch in &batches {
                    tickets.push(disk.store.submit_lazy(batch.clone()).await.expect("open"));
                }
                disk.store.apply(Batch::default()).await.expect("nothing to write");
                for (batch, ticket) in batches.into_iter().zip(tickets) {
                    let expected = twin.apply(batch.clone()).await;
                    prop_assert_eq!(ticket.await, expected, "{:?}", batch);
                }
                for query in queries {
                    let expected = twin.read(query.clone()).await;
                    prop_assert_eq!(disk.store.read(query.clone()).await, expected, "{:?}", query);
                }
            }
            disk.store.shutdown().await;
            Ok(())
        })?;
    }
}
