//! Sessions.

use super::super::{Session, Tables};
use crate::store::error::{Entity, StoreError};
use crate::store::rows::{Owner, PolicySnapshot, SessionRow};
use std::sync::Arc;
use vm_system_protocol::ids::{ExecutionId, SessionId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{self, Engine, ExecutionError, ExecutionStatus, SessionStatus};
use vm_system_protocol::reason::CloseReason;
use vm_system_protocol::time::Timestamp;

impl Tables {
    pub(super) fn session_insert(
        &mut self,
        owner: &Owner,
        session: &model::Session,
        policy: &Arc<PolicySnapshot>,
    ) -> Result<u64, StoreError> {
        if self.sessions.contains(&session.id) {
            return Err(StoreError::conflict(Entity::Session));
        }
        if !self.templates.contains(&session.template_id) {
            return Err(StoreError::missing(Entity::Template));
        }
        let row = SessionRow {
            owner: owner.clone(),
            worker_seq: 0,
            session: model::Session {
                vm_id: session.template_id,
                engine: if policy.engine == Engine::Cvm { Engine::Cvm } else { Engine::Quickjs },
                ..session.clone()
            },
        };
        self.sessions.set(session.id, Session { row, policy: Arc::clone(policy) });
        Ok(1)
    }

    fn session_change(
        &mut self,
        id: SessionId,
        only_live: bool,
        change: impl FnOnce(&mut SessionRow),
    ) -> Result<u64, StoreError> {
        let mut session = self.sessions.get(&id).cloned().ok_or(StoreError::missing(Entity::Session))?;
        if only_live && !is_live(session.row.session.status) {
            return Err(StoreError::finished(Entity::Session));
        }
        change(&mut session.row);
        self.sessions.set(id, session);
        Ok(1)
    }

    pub(super) fn session_ready(&mut self, id: SessionId) -> Result<u64, StoreError> {
        self.session_change(id, true, |row| row.session.status = SessionStatus::Ready)
    }

    pub(super) fn session_end(
        &mut self,
        id: SessionId,
        status: SessionStatus,
        at: Timestamp,
        reason: &CloseReason,
        last_error: Option<&String>,
    ) -> Result<u64, StoreError> {
        self.session_change(id, true, |row| {
            row.session.status = status;
            row.session.closed_at = Some(at);
            row.session.close_reason = Some(reason.to_string());
            row.session.last_error = last_error.cloned();
        })
    }

    pub(super) fn session_meta(&mut self, id: SessionId, runtime_meta: &JsonText) -> Result<u64, StoreError> {
        self.session_change(id, false, |row| row.session.runtime_meta = runtime_meta.clone())
    }

    pub(super) fn worker_seq(&mut self, id: SessionId, seq: u64) -> Result<u64, StoreError> {
        self.session_change(id, false, |row| row.worker_seq = seq)
    }

    pub(super) fn host_restart(&mut self, at: Timestamp, alive: &[SessionId]) -> u64 {
        let reason = CloseReason::HostRestart.to_string();
        let gone: Vec<(SessionId, Session)> = self
            .sessions
            .iter()
            .filter(|(id, session)| {
                is_live(session.row.session.status)
                    && session.policy.engine != Engine::Cvm
                    && !alive.contains(id)
            })
            .map(|(id, session)| (*id, session.clone()))
            .collect();
        let mut rows = 0;
        for (id, mut session) in gone {
            let unfinished: Vec<ExecutionId> = self
                .executions
                .iter()
                .filter(|(_, row)| row.execution.session_id == id && !row.execution.status.is_final())
                .map(|(id, _)| *id)
                .collect();
            for execution in unfinished {
                let Some(mut row) = self.executions.get(&execution).cloned() else { continue };
                row.execution.status = ExecutionStatus::Error;
                row.execution.ended_at = Some(at);
                row.execution.error = Some(ExecutionError {
                    code: "WORKER_DIED".to_owned(),
                    message: "the worker was gone when the supervisor started".to_owned(),
                    reason: Some(reason.clone()),
                });
                row.execution.metrics.duration_ms =
                    u64::try_from(at.0.saturating_sub(row.execution.started_at.0)).unwrap_or(0);
                self.executions.set(execution, row);
                rows += 1 + self.tasks_withdraw(execution, at);
            }
            session.row.session.status = SessionStatus::Crashed;
            session.row.session.closed_at = Some(at);
            session.row.session.close_reason = Some(reason.clone());
            self.sessions.set(id, session);
            rows += 1;
        }
        rows
    }
}

fn is_live(status: SessionStatus) -> bool {
    matches!(status, SessionStatus::Starting | SessionStatus::Ready)
}
