//! Programs, tasks, checkpoints and pages.

use super::super::{Program, Tables, Version};
use crate::store::error::{Entity, StoreError};
use crate::store::rows::{Checkpoint, CheckpointRow, NewProgramVersion, ProgramCode, TaskOutcome, TaskRow};
use vm_system_protocol::ids::{ExecutionId, ProgramId, TaskId};
use vm_system_protocol::limits::DURABLE_PAGE_BYTES;
use vm_system_protocol::time::Timestamp;

impl Tables {
    pub(super) fn program_version(&mut self, new: &NewProgramVersion) -> Result<u64, StoreError> {
        let known = self
            .programs
            .iter()
            .find(|(_, program)| program.is_active && program.owner == new.owner && program.name == new.name)
            .map(|(id, program)| (*id, program.clone()));
        let code = ProgramCode { source: new.source.clone(), format: new.format, code: new.code.clone() };
        let (id, program) = match known {
            Some((id, program)) if self.is_newest(id, &program, new) => return Ok(0),
            Some((id, program)) => {
                (id, Program { version: program.version + 1, modified_at: new.at, ..program })
            }
            None if self.programs.contains(&new.id) => return Err(StoreError::conflict(Entity::Program)),
            None => (
                new.id,
                Program {
                    owner: new.owner.clone(),
                    name: new.name.clone(),
                    is_active: true,
                    version: 1,
                    created_at: new.at,
                    modified_at: new.at,
                },
            ),
        };
        let version = Version { source_hash: new.source_hash, created_at: new.at, code };
        self.versions.set((id, program.version), version);
        self.programs.set(id, program);
        Ok(1)
    }

    /// The same text again, compiled to the same code.
    fn is_newest(&self, id: ProgramId, program: &Program, new: &NewProgramVersion) -> bool {
        self.versions.get(&(id, program.version)).is_some_and(|version| {
            version.source_hash == new.source_hash
                && version.code.format == new.format
                && version.code.code == new.code
        })
    }

    pub(super) fn program_run(
        &mut self,
        execution: ExecutionId,
        program: ProgramId,
        version: u32,
    ) -> Result<u64, StoreError> {
        if !self.executions.contains(&execution) {
            return Err(StoreError::missing(Entity::Execution));
        }
        if self.runs.contains(&execution) {
            return Err(StoreError::conflict(Entity::Execution));
        }
        if !self.versions.contains(&(program, version)) {
            return Err(StoreError::missing(Entity::Program));
        }
        self.runs.set(execution, (program, version));
        Ok(1)
    }

    pub(super) fn program_delete(&mut self, id: ProgramId, at: Timestamp) -> Result<u64, StoreError> {
        let program = self.programs.get(&id).filter(|program| program.is_active).cloned();
        let program = program.ok_or(StoreError::missing(Entity::Program))?;
        self.programs.set(id, Program { is_active: false, modified_at: at, ..program });
        Ok(1)
    }

    pub(super) fn task_insert(&mut self, task: &TaskRow) -> Result<u64, StoreError> {
        let execution = self.executions.get(&task.execution).ok_or(StoreError::missing(Entity::Execution))?;
        let owner = execution.owner.clone();
        let pending = task.ended_at.is_none()
            && self
                .tasks
                .iter()
                .any(|(_, other)| other.execution == task.execution && other.ended_at.is_none());
        if self.tasks.contains(&task.id) || pending {
            return Err(StoreError::conflict(Entity::Task));
        }
        self.tasks.set(task.id, TaskRow { owner, ..task.clone() });
        Ok(1)
    }

    pub(super) fn task_change(
        &mut self,
        id: TaskId,
        change: impl FnOnce(&mut TaskRow),
    ) -> Result<u64, StoreError> {
        let mut task = self.tasks.get(&id).cloned().ok_or(StoreError::missing(Entity::Task))?;
        if task.ended_at.is_some() {
            return Err(StoreError::finished(Entity::Task));
        }
        change(&mut task);
        self.tasks.set(id, task);
        Ok(1)
    }

    pub(super) fn tasks_withdraw(&mut self, execution: ExecutionId, at: Timestamp) -> u64 {
        let mine = |task: &&TaskRow| task.execution == execution && task.ended_at.is_none();
        let pending: Vec<TaskRow> = self.tasks.iter().map(|(_, task)| task).filter(mine).cloned().collect();
        let rows = pending.len() as u64;
        for task in pending {
            let outcome = Some(TaskOutcome::Withdrawn);
            self.tasks.set(task.id, TaskRow { ended_at: Some(at), outcome, ..task });
        }
        rows
    }

    pub(super) fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<u64, StoreError> {
        let key = (checkpoint.execution, checkpoint.seq);
        if self.checkpoints.contains(&key) {
            return Err(StoreError::conflict(Entity::Checkpoint));
        }
        if !self.executions.contains(&checkpoint.execution) {
            return Err(StoreError::missing(Entity::Execution));
        }
        let row = CheckpointRow {
            seq: checkpoint.seq,
            at: checkpoint.at,
            cause: checkpoint.cause.clone(),
            bytes: checkpoint.bytes(),
            unweighed: checkpoint.unweighed,
            written: checkpoint.written,
        };
        self.checkpoints.set(key, row);
        for (page, bytes) in &checkpoint.pages {
            let key = (checkpoint.execution, *page, checkpoint.seq);
            if self.pages.contains(&key) {
                return Err(StoreError::conflict(Entity::Checkpoint));
            }
            self.pages.set(key, bytes.clone());
        }
        Ok(1 + checkpoint.pages.len() as u64)
    }

    pub(super) fn checkpoint_copy(
        &mut self,
        from: ExecutionId,
        checkpoint: u64,
        to: ExecutionId,
        at: Timestamp,
    ) -> Result<u64, StoreError> {
        let known =
            self.checkpoints.get(&(from, checkpoint)).ok_or(StoreError::missing(Entity::Checkpoint))?;
        let (cause, unweighed, written) = (known.cause.clone(), known.unweighed, known.written);
        let pages = self.state(from, checkpoint);
        let pages = pages.into_iter().map(|(page, bytes)| (page, Some(bytes))).collect();
        self.checkpoint(&Checkpoint { execution: to, seq: checkpoint, at, cause, pages, unweighed, written })
    }

    pub(super) fn state_bound(&self, execution: ExecutionId, most: u64) -> Result<u64, StoreError> {
        let newest = self.state(execution, u64::MAX);
        let bytes: u64 = newest.iter().map(|(_, page)| DURABLE_PAGE_BYTES + page.len() as u64).sum();
        if bytes > most { Err(StoreError::too_large(Entity::Checkpoint)) } else { Ok(0) }
    }

    pub(super) fn compact(&mut self, execution: ExecutionId, keep_from: u64, keep_bytes: Option<u64>) -> u64 {
        let mut behind = 0;
        let newest_first = self.checkpoints.range((execution, 0)..=(execution, u64::MAX)).rev();
        let within = newest_first.take_while(|(_, row)| {
            let fits = keep_bytes.is_some_and(|most| behind <= most);
            behind += row.bytes;
            fits
        });
        let keep_from = keep_from.max(within.last().map_or(0, |((_, seq), _)| *seq));
        let oldest = self.checkpoints.range((execution, 0)..=(execution, u64::MAX)).next();
        let oldest = oldest.map_or(0, |((_, seq), _)| *seq);
        let mine = (execution, 0, 0)..=(execution, u64::MAX, u64::MAX);
        let stale: Vec<_> = self
            .pages
            .range(mine)
            .filter(|((_, page, checkpoint), bytes)| {
                let newer = checkpoint.saturating_add(1)..=keep_from.max(*checkpoint);
                let newer = (execution, *page, *newer.start())..=(execution, *page, *newer.end());
                let is_replaced = !newer.is_empty() && self.pages.range(newer).next().is_some();
                let is_gone = bytes.is_none() && (oldest + 1..=keep_from).contains(checkpoint);
                oldest < keep_from && (is_gone || *checkpoint < keep_from && is_replaced)
            })
            .map(|(key, _)| *key)
            .collect();
        let old: Vec<_> =
            self.checkpoints.range((execution, 0)..(execution, keep_from)).map(|(key, _)| *key).collect();
        self.pages.remove_all(&stale) + self.checkpoints.remove_all(&old)
    }
}
