//! From stored rows to the machine's first state: how an execution is resumed.

use super::input::StoredExecution;
use super::state::NextStep;
use vm_system_protocol::durable::TaskAnswer;
use vm_system_protocol::ids::{ExecutionId, SessionId, TemplateId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{
    Engine, Execution, ExecutionKind, ExecutionStatus, Metrics, Session, SessionFacts, SessionStatus,
};
use vm_system_protocol::time::Timestamp;
use vm_system_record::{ItemOutcome, ItemRow, WaitKind, is_rest};

pub(super) fn next(found: &StoredExecution) -> NextStep {
    match found.checkpoint.as_ref().map(|last| last.cause.as_str()) {
        None => NextStep::Begin,
        Some("wait" | "wait_edit") => NextStep::Items,
        Some(cause) if is_rest(cause) => match &found.task {
            Some(task) => answer_of(task).map_or(NextStep::Pause, NextStep::Answer),
            None => NextStep::Pause,
        },
        Some("effect") => NextStep::Effect,
        Some(_) => NextStep::Continue,
    }
}

/// The answer of a task; none while it is pending.
pub(crate) fn answer_of(task: &ItemRow) -> Option<TaskAnswer> {
    let text = || task.answer.clone().unwrap_or_default();
    let json = || TaskAnswer::Json(JsonText::from_untrusted(text()));
    match task.outcome? {
        ItemOutcome::Answered if task.schema.is_some() || task.kind == WaitKind::Event => Some(json()),
        ItemOutcome::Answered => Some(TaskAnswer::Text(text())),
        ItemOutcome::Defaulted => Some(json()),
        ItemOutcome::Expired => Some(TaskAnswer::Expired(text())),
        ItemOutcome::Failed if task.attempts == 0 && !task.is_pause() => Some(TaskAnswer::Wrong(text())),
        ItemOutcome::Failed => Some(TaskAnswer::Failed(text())),
        ItemOutcome::Withdrawn => None,
    }
}

/// The record of an execution that begins.
pub fn fresh_record(
    id: ExecutionId,
    session_id: SessionId,
    status: ExecutionStatus,
    args: JsonText,
    env: JsonText,
    at: Timestamp,
) -> Execution {
    Execution {
        id,
        session_id,
        kind: ExecutionKind::Program,
        input: None,
        path: None,
        args,
        env,
        status,
        started_at: at,
        ended_at: None,
        result: None,
        error: None,
        metrics: Metrics::default(),
        degraded: false,
        events: None,
        owner: None,
    }
}

/// The session with an execution's policy; it is ready from the beginning and ends with the execution.
pub fn session_record(id: SessionId, template: TemplateId, worktree: &str, at: Timestamp) -> Session {
    Session {
        id,
        name: None,
        template_id: template,
        vm_id: template,
        workspace_id: String::new(),
        base_commit_oid: String::new(),
        worktree_path: worktree.to_owned(),
        status: SessionStatus::Ready,
        created_at: at,
        closed_at: None,
        last_error: None,
        close_reason: None,
        runtime_meta: SessionFacts::default(),
        engine: Engine::Cvm,
        // Filled in by the reader, from the executions.
        execution_id: None,
        owner: None,
    }
}
