//! Rows for stores: a plain template, session and execution, as a supervisor creates them.

use std::sync::Arc;
use vm_system_protocol::ids::{ExecutionId, SessionId, TemplateId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{
    ConsoleLevel, Engine, Event, EventPayload, Execution, ExecutionKind, ExecutionStatus, Metrics, Session,
    SessionFacts, SessionStatus, Settings, Template, TemplateDetail,
};
use vm_system_protocol::time::Timestamp;
use vm_system_record::{Owner, PolicySnapshot, Write};

/// A template with the default settings.
pub fn template(id: TemplateId) -> TemplateDetail {
    TemplateDetail {
        template: Template {
            id,
            name: "t".to_owned(),
            engine: Engine::Quickjs,
            is_active: true,
            built_in: false,
            exposed_modules: Vec::new(),
            libraries: Vec::new(),
            created_at: Timestamp(1),
            updated_at: Timestamp(1),
        },
        settings: Settings::default(),
        capabilities: Vec::new(),
        startup_files: Vec::new(),
    }
}

/// A ready session of a template.
pub fn session(id: SessionId, template: TemplateId) -> Session {
    Session {
        id,
        name: None,
        template_id: template,
        vm_id: template,
        workspace_id: "w".to_owned(),
        base_commit_oid: "c".to_owned(),
        worktree_path: "/".to_owned(),
        status: SessionStatus::Ready,
        created_at: Timestamp(1),
        closed_at: None,
        last_error: None,
        close_reason: None,
        runtime_meta: SessionFacts::default(),
        engine: Engine::Quickjs,
        execution_id: None,
        owner: None,
    }
}

/// A running execution.
pub fn execution(id: ExecutionId, session: SessionId, started_at: Timestamp) -> Execution {
    Execution {
        id,
        session_id: session,
        kind: ExecutionKind::Repl,
        input: Some("[1, 2, 3].map(x => x * 2)".to_owned()),
        path: None,
        args: JsonText::empty_object(),
        env: JsonText::empty_object(),
        status: ExecutionStatus::Running,
        started_at,
        ended_at: None,
        result: None,
        error: None,
        metrics: Metrics::default(),
        degraded: false,
        events: None,
        owner: None,
    }
}

/// A line of an execution's output.
pub fn line(execution: ExecutionId, seq: u64, text: String) -> Event {
    let payload = EventPayload::console(ConsoleLevel::Log, text);
    Event { execution_id: execution, seq, ts: Timestamp(1), payload }
}

/// The write that creates a template.
pub fn insert_template(owner: &Owner, detail: TemplateDetail) -> Write {
    Write::TemplateInsert { owner: owner.clone(), detail: Box::new(detail) }
}

/// The writes that create a template and a ready session of it.
pub fn insert_session(owner: &Owner, template_id: TemplateId, id: SessionId) -> Vec<Write> {
    let detail = template(template_id);
    let policy = Arc::new(PolicySnapshot::from(&detail));
    let session = Arc::new(session(id, template_id));
    let insert = Write::SessionInsert { owner: owner.clone(), session, policy, worktree: None };
    vec![insert_template(owner, detail), insert]
}
