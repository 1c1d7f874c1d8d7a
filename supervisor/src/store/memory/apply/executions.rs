//! Executions and their events.

use super::super::Tables;
use crate::store::error::{Entity, StoreError};
use crate::store::rows::ExecutionRow;
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::model::{Event, Execution, ExecutionStatus, Metrics};

impl Tables {
    pub(super) fn execution_start(
        &mut self,
        name: Option<&String>,
        execution: &Execution,
    ) -> Result<u64, StoreError> {
        let session = self.sessions.get(&execution.session_id).ok_or(StoreError::missing(Entity::Session))?;
        let owner = session.row.owner.clone();
        let name_taken = !execution.status.is_final()
            && name.is_some()
            && self.executions.iter().any(|(_, row)| {
                row.owner == owner && row.name.as_ref() == name && !row.execution.status.is_final()
            });
        if self.executions.contains(&execution.id) || name_taken {
            return Err(StoreError::conflict(Entity::Execution));
        }
        let execution = Execution { events: None, ..execution.clone() };
        self.executions.set(execution.id, ExecutionRow { owner, name: name.cloned(), execution });
        Ok(1)
    }

    fn execution_change(
        &mut self,
        id: ExecutionId,
        change: impl FnOnce(&mut Execution),
    ) -> Result<u64, StoreError> {
        let mut row = self.executions.get(&id).cloned().ok_or(StoreError::missing(Entity::Execution))?;
        if row.execution.status.is_final() {
            return Err(StoreError::finished(Entity::Execution));
        }
        change(&mut row.execution);
        self.executions.set(id, row);
        Ok(1)
    }

    pub(super) fn execution_status(
        &mut self,
        id: ExecutionId,
        status: ExecutionStatus,
    ) -> Result<u64, StoreError> {
        self.execution_change(id, |execution| execution.status = status)
    }

    pub(super) fn run_progress(
        &mut self,
        id: ExecutionId,
        status: ExecutionStatus,
        metrics: &Metrics,
    ) -> Result<u64, StoreError> {
        self.execution_change(id, |execution| {
            execution.status = status;
            execution.metrics = *metrics;
        })
    }

    pub(super) fn execution_unname(&mut self, id: ExecutionId) -> Result<u64, StoreError> {
        let row = self.executions.get(&id).cloned().ok_or(StoreError::missing(Entity::Execution))?;
        self.executions.set(id, ExecutionRow { name: None, ..row });
        Ok(1)
    }

    pub(super) fn execution_end(&mut self, end: &Execution) -> Result<u64, StoreError> {
        self.execution_change(end.id, |execution| {
            execution.status = end.status;
            execution.degraded |= end.degraded;
            execution.ended_at = end.ended_at;
            execution.result.clone_from(&end.result);
            execution.error.clone_from(&end.error);
            execution.metrics = end.metrics;
        })
    }

    pub(in super::super) fn degrade(&mut self, id: ExecutionId) -> Result<u64, StoreError> {
        let mut row = self.executions.get(&id).cloned().ok_or(StoreError::missing(Entity::Execution))?;
        row.execution.degraded = true;
        self.executions.set(id, row);
        Ok(1)
    }

    pub(super) fn events_insert(&mut self, events: &[Event]) -> Result<u64, StoreError> {
        for event in events {
            let key = (event.execution_id, event.seq);
            if self.events.contains(&key) {
                return Err(StoreError::conflict(Entity::Event));
            }
            if !self.executions.contains(&event.execution_id) {
                return Err(StoreError::missing(Entity::Execution));
            }
            self.events.set(key, event.clone());
        }
        Ok(events.len() as u64)
    }
}
