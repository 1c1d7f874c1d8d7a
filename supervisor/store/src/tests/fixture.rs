//! Stores to test on, and rows to put into them.

use crate::{Faults, StoreHandle, StoreOptions, open_sqlite, open_temporary};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use vm_system_protocol::ids::{ExecutionId, SessionId, TemplateId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{
    ConsoleLevel, Engine, Event, EventPayload, Execution, ExecutionKind, ExecutionStatus, Metrics,
    ResultValue, Session, SessionFacts, SessionStatus, Settings, Template, TemplateDetail,
};
use vm_system_protocol::time::Timestamp;
use vm_system_record::{Batch, Owner, PolicySnapshot, Retention, Scope, Write};

/// A SQLite store in a folder that is removed with it.
pub(super) struct OnDisk {
    pub(super) folder: TempDir,
    pub(super) store: StoreHandle,
}

pub(super) fn on_disk() -> OnDisk {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let store = open_sqlite(options(folder.path())).expect("an empty folder can be opened");
    OnDisk { folder, store }
}

/// No retention: the times of these tests are long past.
pub(super) fn options(folder: &Path) -> StoreOptions {
    let retention = Retention { max_age: None, key_life: Duration::MAX, ..Retention::default() };
    StoreOptions { retention, ..StoreOptions::new(folder) }
}

/// A store that fails on request.
pub(super) fn faulty() -> (StoreHandle, Faults) {
    Faults::wrap(open_temporary().expect("a temporary folder can be made"))
}

/// Runs a test on a new store.
pub(super) async fn with_store<F: Future<Output = ()>>(test: impl FnOnce(StoreHandle) -> F) {
    let disk = on_disk();
    test(disk.store.clone()).await;
    disk.store.shutdown().await;
}

pub(super) fn owner(n: u8) -> Owner {
    Owner::new(format!("owner-{n}"))
}

pub(super) fn mine() -> Scope {
    Scope::Owner(owner(1))
}

/// A time-ordered id from a time and a number.
pub(super) fn id(at: i64, n: u8) -> [u8; 16] {
    let mut id = [n; 16];
    id[..6].copy_from_slice(&u64::try_from(at).expect("moments are positive").to_be_bytes()[2..]);
    id
}

pub(super) fn template_id(n: u8) -> TemplateId {
    TemplateId::from_bytes(id(1_000, n))
}
pub(super) fn session_id(n: u8) -> SessionId {
    SessionId::from_bytes(id(2_000, n))
}
pub(super) fn execution_id(n: u8) -> ExecutionId {
    ExecutionId::from_bytes(id(3_000, n))
}

pub(super) fn detail(n: u8, name: &str) -> TemplateDetail {
    TemplateDetail {
        template: Template {
            id: template_id(n),
            name: name.to_owned(),
            engine: Engine::Quickjs,
            is_active: true,
            built_in: false,
            exposed_modules: Vec::new(),
            libraries: Vec::new(),
            created_at: Timestamp(1_000 + i64::from(n)),
            updated_at: Timestamp(1_000 + i64::from(n)),
        },
        settings: Settings::default(),
        capabilities: Vec::new(),
        startup_files: Vec::new(),
    }
}

pub(super) fn template(n: u8, name: &str) -> Write {
    Write::TemplateInsert { owner: owner(1), detail: Box::new(detail(n, name)) }
}

pub(super) fn session_record(n: u8, template: u8) -> Session {
    Session {
        id: session_id(n),
        name: None,
        template_id: template_id(template),
        vm_id: template_id(template),
        workspace_id: "w".to_owned(),
        base_commit_oid: "c".to_owned(),
        worktree_path: "/w".to_owned(),
        status: SessionStatus::Starting,
        created_at: Timestamp(2_000 + i64::from(n)),
        closed_at: None,
        last_error: None,
        close_reason: None,
        runtime_meta: SessionFacts::default(),
        engine: Engine::Quickjs,
        execution_id: None,
        owner: None,
    }
}

pub(crate) fn policy() -> Arc<PolicySnapshot> {
    Arc::new(PolicySnapshot::from(&detail(0, "")))
}

pub(super) fn session(n: u8, template: u8) -> Write {
    let session = Arc::new(session_record(n, template));
    Write::SessionInsert { owner: owner(1), session, policy: policy(), worktree: None }
}

pub(super) fn execution_record(n: u8, session: u8) -> Execution {
    Execution {
        id: execution_id(n),
        session_id: session_id(session),
        kind: ExecutionKind::Repl,
        input: Some("1 + 2".to_owned()),
        path: None,
        args: JsonText::empty_object(),
        env: JsonText::empty_object(),
        status: ExecutionStatus::Running,
        started_at: Timestamp(3_000 + i64::from(n)),
        ended_at: None,
        result: None,
        error: None,
        metrics: Metrics::default(),
        degraded: false,
        events: None,
        owner: None,
    }
}

pub(super) fn started(n: u8, session: u8) -> Write {
    Write::ExecutionStarted { name: None, execution: Arc::new(execution_record(n, session)) }
}

pub(super) fn ended(n: u8, session: u8) -> Write {
    let mut execution = execution_record(n, session);
    execution.status = ExecutionStatus::Ok;
    execution.ended_at = Some(Timestamp(4_000 + i64::from(n)));
    execution.result = Some(ResultValue::of_json(JsonText::from_untrusted("3".to_owned())));
    execution.metrics.duration_ms = 7;
    Write::ExecutionEnded(Arc::new(execution))
}

pub(super) fn console(execution: u8, seq: u64) -> Event {
    Event {
        execution_id: execution_id(execution),
        seq,
        ts: Timestamp(3_500),
        payload: EventPayload::console(ConsoleLevel::Log, format!("line {seq}")),
    }
}

pub(super) fn events(execution: u8, seqs: impl IntoIterator<Item = u64>) -> Write {
    Write::Events(seqs.into_iter().map(|seq| console(execution, seq)).collect())
}

/// A template, a ready session and a running execution, all number 1.
pub(super) fn running() -> Batch {
    Batch(vec![template(1, "t"), session(1, 1), Write::SessionReady { id: session_id(1) }, started(1, 1)])
}
