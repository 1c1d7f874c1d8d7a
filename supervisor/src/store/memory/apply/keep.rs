//! The books: keys, audit log, meta values, and forgetting.

use super::super::Tables;
use crate::store::error::{Entity, StoreError};
use crate::store::retention::{CLIENTS_OF_AN_OWNER, oldest_id_at};
use crate::store::rows::{AuditEntry, KeyClaim, KeyRow, Owner};
use std::collections::BTreeSet;
use vm_system_protocol::ids::{ExecutionId, ProgramId, SessionId};
use vm_system_protocol::time::Timestamp;

impl Tables {
    pub(super) fn key_claim(&mut self, claim: &KeyClaim) -> Result<u64, StoreError> {
        let key = (claim.owner.clone(), claim.key.clone());
        if self.keys.get(&key).is_some_and(|row| row.created_at >= claim.expired_before) {
            return Err(StoreError::conflict(Entity::Key));
        }
        let row = KeyRow {
            request_hash: claim.request_hash,
            subject: claim.subject,
            created_at: claim.at,
            reply: claim.reply.clone(),
        };
        self.keys.set(key, row);
        Ok(1)
    }

    pub(super) fn key_answer(&mut self, owner: &Owner, key: &str, reply: &[u8]) -> Result<u64, StoreError> {
        let key = (owner.clone(), key.to_owned());
        let row = self.keys.get(&key).cloned().ok_or(StoreError::missing(Entity::Key))?;
        self.keys.set(key, KeyRow { reply: Some(reply.to_vec()), ..row });
        Ok(1)
    }

    pub(super) fn audit_add(&mut self, entry: &AuditEntry) -> u64 {
        let next = self.audit.iter().next_back().map_or(1, |(id, _)| id + 1);
        self.audit.set(next, entry.clone());
        1
    }

    pub(super) fn meta_set(&mut self, key: &str, value: Option<&Vec<u8>>) -> u64 {
        match value {
            Some(value) => {
                self.meta.set(key.to_owned(), value.clone());
                1
            }
            None => u64::from(self.meta.remove(&key.to_owned())),
        }
    }

    pub(super) fn prune(&mut self, before: Timestamp, keys_before: Timestamp, max_rows: u32) -> u64 {
        let budget = u64::from(max_rows);
        let left = |rows: u64| usize::try_from(budget.saturating_sub(rows)).unwrap_or(usize::MAX);
        let mut keys: Vec<_> = self
            .keys
            .iter()
            .filter(|(_, row)| row.created_at < keys_before)
            .map(|(key, row)| (row.created_at, key.clone()))
            .collect();
        keys.sort_by_key(|(at, _)| *at);
        let mut rows =
            self.keys.remove_all(&keys.into_iter().take(left(0)).map(|(_, key)| key).collect::<Vec<_>>());
        let mut entries: Vec<_> = self
            .audit
            .iter()
            .filter(|(_, entry)| entry.at < before)
            .map(|(id, entry)| (entry.at, *id))
            .collect();
        entries.sort_unstable();
        rows += self
            .audit
            .remove_all(&entries.into_iter().take(left(rows)).map(|(_, id)| id).collect::<Vec<_>>());
        let oldest = ExecutionId::from_bytes(oldest_id_at(before));
        let ended: Vec<ExecutionId> = self
            .executions
            .range(..oldest)
            .filter(|(_, row)| row.execution.ended_at.is_some_and(|at| at < before))
            .map(|(id, _)| *id)
            .take(left(rows))
            .collect();
        for id in ended {
            if rows >= budget {
                break;
            }
            rows += self.forget_execution(id);
        }
        rows += self.forget_sessions(None, before, left(rows));
        rows + self.forget_versions(before, left(rows))
    }

    fn forget_versions(&mut self, before: Timestamp, most: usize) -> u64 {
        let used: BTreeSet<(ProgramId, u32)> = self.runs.iter().map(|(_, run)| *run).collect();
        let gone: Vec<(ProgramId, u32)> = self
            .versions
            .iter()
            .filter(|(at, version)| version.created_at < before && !used.contains(at))
            .filter(|((id, number), _)| {
                self.programs.get(id).is_some_and(|program| !program.is_active || program.version != *number)
            })
            .map(|(at, _)| *at)
            .take(most)
            .collect();
        let mut rows = self.versions.remove_all(&gone);
        for (id, _) in gone {
            let deleted = self.programs.get(&id).is_some_and(|program| !program.is_active);
            if deleted && self.versions.range((id, 0)..=(id, u32::MAX)).next().is_none() {
                rows += u64::from(self.programs.remove(&id));
            }
        }
        rows
    }

    pub(super) fn prune_owner(&mut self, owner: &Owner, before: Timestamp, max_rows: u32) -> u64 {
        let budget = u64::from(max_rows);
        let mut ended: Vec<_> = self
            .executions
            .iter()
            .filter(|(_, row)| row.owner == *owner && row.execution.ended_at.is_some_and(|at| at < before))
            .filter_map(|(id, row)| {
                let session = self.sessions.get(&row.execution.session_id)?;
                let made = (session.row.session.created_at, row.execution.session_id);
                Some((made, row.execution.started_at, *id))
            })
            .collect();
        ended.sort_unstable();
        let mut rows = 0;
        for (_, _, id) in ended {
            if rows >= budget {
                break;
            }
            rows += self.forget_execution(id);
        }
        let left = usize::try_from(budget.saturating_sub(rows)).unwrap_or(usize::MAX);
        rows += self.forget_sessions(Some(owner), before, left);
        let left = usize::try_from(budget.saturating_sub(rows)).unwrap_or(usize::MAX);
        rows + self.forget_unused_versions(owner, before, left)
    }

    fn forget_unused_versions(&mut self, owner: &Owner, before: Timestamp, most: usize) -> u64 {
        let used: BTreeSet<(ProgramId, u32)> = self.runs.iter().map(|(_, run)| *run).collect();
        let mut gone: Vec<(Timestamp, ProgramId, u32)> = self
            .versions
            .iter()
            .filter(|(at, version)| version.created_at < before && !used.contains(at))
            .filter_map(|((id, number), _)| {
                let program = self.programs.get(id)?;
                let goes = program.owner == *owner && program.is_active && program.version != *number;
                goes.then_some((program.created_at, *id, *number))
            })
            .collect();
        gone.sort_unstable();
        let gone: Vec<(ProgramId, u32)> =
            gone.into_iter().take(most).map(|(_, id, number)| (id, number)).collect();
        self.versions.remove_all(&gone)
    }

    fn forget_execution(&mut self, id: ExecutionId) -> u64 {
        let events: Vec<_> = self.events.range((id, 0)..=(id, u64::MAX)).map(|(key, _)| *key).collect();
        let checkpoints: Vec<_> =
            self.checkpoints.range((id, 0)..=(id, u64::MAX)).map(|(key, _)| *key).collect();
        let pages: Vec<_> =
            self.pages.range((id, 0, 0)..=(id, u64::MAX, u64::MAX)).map(|(key, _)| *key).collect();
        let tasks: Vec<_> =
            self.tasks.iter().filter(|(_, task)| task.execution == id).map(|(task, _)| *task).collect();
        let currents: Vec<_> =
            self.currents.iter().filter(|(_, (of, _))| *of == id).map(|(key, _)| key.clone()).collect();
        self.events.remove_all(&events)
            + self.currents.remove_all(&currents)
            + self.checkpoints.remove_all(&checkpoints)
            + self.pages.remove_all(&pages)
            + self.tasks.remove_all(&tasks)
            + u64::from(self.runs.remove(&id))
            + u64::from(self.executions.remove(&id))
    }

    pub(super) fn run_delete(&mut self, id: ExecutionId) -> Result<u64, StoreError> {
        let row = self.executions.get(&id).ok_or(StoreError::missing(Entity::Execution))?;
        if row.execution.ended_at.is_none() {
            return Err(StoreError::conflict(Entity::Execution));
        }
        let session = row.execution.session_id;
        let rows = self.forget_execution(id);
        let closed = self.sessions.get(&session).is_some_and(|known| known.row.session.closed_at.is_some());
        let used = self.executions.iter().any(|(_, row)| row.execution.session_id == session);
        Ok(rows + u64::from(closed && !used && self.sessions.remove(&session)))
    }

    pub(super) fn current_set(
        &mut self,
        owner: &Owner,
        client: &str,
        execution: ExecutionId,
        at: Timestamp,
    ) -> Result<u64, StoreError> {
        if !self.executions.contains(&execution) {
            return Err(StoreError::missing(Entity::Execution));
        }
        self.currents.set((owner.clone(), client.to_owned()), (execution, at));
        let mut mine: Vec<_> = self
            .currents
            .iter()
            .filter(|((of, _), _)| of == owner)
            .map(|(key, (_, at))| (std::cmp::Reverse(*at), key.clone()))
            .collect();
        mine.sort();
        let stale: Vec<_> = mine.into_iter().skip(CLIENTS_OF_AN_OWNER as usize).map(|(_, key)| key).collect();
        self.currents.remove_all(&stale);
        Ok(1)
    }

    fn forget_sessions(&mut self, owner: Option<&Owner>, before: Timestamp, budget: usize) -> u64 {
        let mut gone: Vec<(Timestamp, SessionId)> = self
            .sessions
            .iter()
            .filter(|(_, session)| owner.is_none_or(|owner| session.row.owner == *owner))
            .filter_map(|(id, session)| Some((session.row.session.closed_at?, *id)))
            .filter(|(at, id)| {
                *at < before && !self.executions.iter().any(|(_, row)| row.execution.session_id == *id)
            })
            .collect();
        gone.sort_unstable();
        gone.truncate(budget);
        for (_, id) in &gone {
            let template = self.sessions.get(id).map(|session| session.row.session.template_id);
            self.sessions.remove(id);
            if let Some(template) = template
                && self.templates.get(&template).is_some_and(|template| !template.is_active)
                && !self.sessions.iter().any(|(_, session)| session.row.session.template_id == template)
            {
                self.templates.remove(&template);
            }
        }
        gone.len() as u64
    }
}
