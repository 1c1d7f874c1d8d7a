//! One [`Query`] on the tables, with the answers that the SQLite store gives.

use super::Tables;
use crate::store::query::{Answer, Cursor, IdKind, Page, Query, SessionQuery};
use crate::store::rows::{
    CheckpointRow, DueTask, Owner, ProgramRow, RunRow, STANDING_BYTES, Scope, SessionRow, Standing, TaskRow,
    VersionRow,
};
use std::sync::Arc;
use vm_system_protocol::ids::{ExecutionId, ProgramId};
use vm_system_protocol::model::{Engine, ExecutionKind, ExecutionStatus};
use vm_system_protocol::time::Timestamp;

impl Tables {
    pub(super) fn answer(&self, query: &Query) -> Answer {
        match query {
            Query::Template(scope, id) => {
                let template = self.templates.get(id).filter(|template| template.is_active);
                Answer::Template(
                    template.filter(|t| scope.sees(&t.row.owner)).map(|t| Box::new(t.row.clone())),
                )
            }
            Query::TemplateByName(scope, name) => {
                let mut rows = self.active_templates(scope);
                rows.retain(|row| row.detail.template.name == *name);
                Answer::Template(part(rows, Page::first(1)).pop().map(Box::new))
            }
            Query::Templates(scope, page) => Answer::Templates(part(self.active_templates(scope), *page)),
            Query::Libraries => {
                Answer::Libraries(self.libraries.iter().map(|(_, row)| row.clone()).collect())
            }
            Query::Session(scope, id) => {
                let session = self.sessions.get(id).filter(|session| scope.sees(&session.row.owner));
                Answer::Session(session.map(|session| Box::new(self.with_execution(&session.row))))
            }
            Query::SessionPolicy(id) => {
                Answer::Policy(self.sessions.get(id).map(|session| Arc::clone(&session.policy)))
            }
            Query::Sessions(scope, filter, page) => {
                Answer::Sessions(part(self.sessions_of(scope, filter), *page))
            }
            Query::Execution(scope, id) => {
                let row = self.executions.get(id).filter(|row| scope.sees(&row.owner));
                Answer::Execution(row.map(|row| Box::new(row.clone())))
            }
            Query::ExecutionByName(scope, name) => {
                let mut rows: Vec<_> = self
                    .executions
                    .iter()
                    .filter(|(_, row)| row.name.as_ref() == Some(name) && scope.sees(&row.owner))
                    .map(|(_, row)| row.clone())
                    .collect();
                if rows.iter().any(|row| !row.execution.status.is_final()) {
                    rows.retain(|row| !row.execution.status.is_final());
                }
                Answer::Execution(part(rows, Page::first(1)).pop().map(Box::new))
            }
            Query::Executions(scope, session, page) => {
                let rows = self.executions.iter().map(|(_, row)| row);
                let rows = rows.filter(|row| row.execution.session_id == *session && scope.sees(&row.owner));
                Answer::Executions(part(rows.cloned().collect(), *page))
            }
            Query::Events(execution, after, limit) => {
                let limit = if *limit == 0 { usize::MAX } else { *limit as usize };
                let first = after.saturating_add(1);
                let rows = self.events.range((*execution, first)..=(*execution, u64::MAX));
                Answer::Events(rows.take(limit).map(|(_, event)| event.clone()).collect())
            }
            Query::Ids { scope, kind, from, to, limit } => {
                let mut ids = self.ids(scope, *kind);
                ids.retain(|id| from <= id && id <= to);
                ids.truncate(*limit as usize);
                Answer::Ids(ids)
            }
            _ => self.answer_durable(query),
        }
    }

    fn answer_durable(&self, query: &Query) -> Answer {
        match query {
            Query::Program(scope, id) => {
                Answer::Program(self.programs_of(scope).into_iter().find(|row| row.id == *id).map(Box::new))
            }
            Query::ProgramByName(scope, name) => {
                let mut rows = self.programs_of(scope);
                rows.retain(|row| row.name == *name);
                Answer::Program(part(rows, Page::first(1)).pop().map(Box::new))
            }
            Query::Programs(scope, page) => Answer::Programs(part(self.programs_of(scope), *page)),
            Query::ProgramCode(id, version) => Answer::Code(
                self.versions.get(&(*id, *version)).map(|version| Box::new(version.code.clone())),
            ),
            Query::ProgramVersions { program, below, limit } => {
                let rows = self.versions.range((*program, 0)..(*program, below.unwrap_or(u32::MAX))).rev();
                Answer::Versions(rows.take(*limit as usize).map(version_row).collect())
            }
            Query::ProgramRun(execution) => Answer::Run(self.runs.get(execution).copied()),
            Query::Current(owner, client) => {
                let known = self.currents.get(&(owner.clone(), client.clone()));
                Answer::Current(known.map(|(execution, _)| *execution))
            }
            Query::Task(scope, id) => {
                let task = self.tasks.get(id).filter(|task| scope.sees(&task.owner));
                Answer::Task(task.map(|task| Box::new(task.clone())))
            }
            Query::PendingTask(execution) => {
                let mut tasks = self.tasks.iter().map(|(_, task)| task);
                let task = tasks.find(|task| task.execution == *execution && task.ended_at.is_none());
                Answer::Task(task.map(|task| Box::new(task.clone())))
            }
            Query::PendingTasks(scope, page) => {
                let tasks = self.tasks.iter().map(|(_, task)| task);
                let mut tasks: Vec<_> = tasks
                    .filter(|task| task.ended_at.is_none() && scope.sees(&task.owner))
                    .filter(|task| page.after.is_none_or(|after| place(*task) > after))
                    .cloned()
                    .collect();
                tasks.sort_by_key(place);
                tasks.truncate(page.limit as usize);
                Answer::Tasks(tasks)
            }
            Query::Prompts { scope, executions, bytes } => {
                let asked = |id: &ExecutionId| {
                    let mut tasks = self.tasks.iter().map(|(_, task)| task);
                    let waits = |task: &&TaskRow| task.execution == *id && task.ended_at.is_none();
                    let prompt = &tasks.find(waits).filter(|task| scope.sees(&task.owner))?.prompt;
                    Some((*id, prompt[..prompt.floor_char_boundary(*bytes as usize)].to_owned()))
                };
                Answer::Prompts(executions.iter().filter_map(asked).collect())
            }
            Query::ProgramCounts(scope) => {
                let (programs, runs) = (self.programs_of(scope), self.runs_of(scope, None, None));
                Answer::Counts((programs.len() as u64, runs.len() as u64))
            }
            Query::TaskOf(execution, at) => Answer::Task(self.task_of(*execution, *at).map(Box::new)),
            Query::DueTasks { until, after, limit } => {
                let tasks = self.tasks.iter().map(|(_, task)| task);
                let due = tasks.filter(|task| {
                    task.ended_at.is_none()
                        && task.deadline.is_some_and(|deadline| deadline <= *until)
                        // Those of sessions are their owner task's to end.
                        && self.runs.contains(&task.execution)
                });
                let due = due.filter_map(|task| {
                    let (id, execution) = (task.id, task.execution);
                    task.deadline.map(|deadline| DueTask { id, execution, deadline })
                });
                let mut due: Vec<_> =
                    due.filter(|due| after.is_none_or(|after| (due.deadline, due.id) > after)).collect();
                due.sort_by_key(|due| (due.deadline, due.id));
                due.truncate(*limit as usize);
                Answer::Due(due)
            }
            Query::RunningPrograms { after, limit } => {
                let rows = self.executions.iter().map(|(id, row)| (id, &row.execution));
                let running = rows.filter(|(id, execution)| {
                    *id > after
                        && execution.kind == ExecutionKind::Program
                        && execution.status == ExecutionStatus::Running
                });
                Answer::Ids(running.take(*limit as usize).map(|(id, _)| *id.as_bytes()).collect())
            }
            Query::Runs { scope, program, execution, page } => {
                let mut rows: Vec<_> = self.runs_of(scope, *program, *execution);
                rows.retain(|row| page.after.is_none_or(|after| *row.row.execution.id.as_bytes() < after.id));
                rows.truncate(page.limit as usize);
                Answer::Runs(rows)
            }
            Query::RunByName(scope, name) => {
                let found = match self.answer(&Query::ExecutionByName(scope.clone(), name.clone())) {
                    Answer::Execution(row) => row.map(|row| row.execution.id),
                    _ => None,
                };
                Answer::Runs(found.map_or_else(Vec::new, |id| self.runs_of(scope, None, Some(id))))
            }
            Query::Standing(execution) => Answer::Standing(self.standing(*execution).map(Box::new)),
            Query::TasksOfRun { execution, after, limit } => {
                let tasks = self.tasks.iter().map(|(_, task)| task);
                let mine = tasks.filter(|task| task.execution == *execution && task.checkpoint > *after);
                let mut mine: Vec<_> = mine.cloned().collect();
                mine.sort_by_key(|task| task.checkpoint);
                mine.truncate(*limit as usize);
                Answer::Tasks(mine)
            }
            Query::PageVersions { execution, after, bytes } => {
                let all = self.pages.range((*execution, 0, 0)..=(*execution, u64::MAX, u64::MAX));
                let rest = all.filter(|((_, page, seq), _)| after.is_none_or(|after| (*page, *seq) > after));
                let mut room = Some(*bytes);
                let fits = rest.map_while(|((_, page, seq), content)| {
                    let before = room.filter(|room| *room > 0)?;
                    room = Some(before.saturating_sub(64 + content.as_ref().map_or(0, Vec::len)));
                    Some((*page, *seq, content.clone()))
                });
                Answer::PageVersions(fits.collect())
            }
            Query::VersionsOfSource { program, source_hash, limit } => {
                let all = self.versions.range((*program, 0)..=(*program, u32::MAX)).rev();
                let same = all.filter(|(_, version)| version.source_hash == *source_hash);
                Answer::Versions(same.take(*limit as usize).map(version_row).collect())
            }
            Query::LastCheckpoint(execution) => {
                Answer::Checkpoints(self.last_checkpoint(*execution).into_iter().collect())
            }
            Query::Checkpoints(execution) => {
                let rows = self.checkpoints.range((*execution, 0)..=(*execution, u64::MAX));
                Answer::Checkpoints(rows.map(|(_, row)| row.clone()).collect())
            }
            Query::State { execution, checkpoint, behind, bytes } => {
                let mut room = *bytes;
                let pages = self.state(*execution, *checkpoint).into_iter();
                let mut pages = pages.skip_while(|(page, _)| behind.is_some_and(|behind| *page <= behind));
                let part = std::iter::from_fn(|| {
                    let page = if room > 0 { pages.next() } else { None }?;
                    room = room.saturating_sub(page.1.len());
                    Some(page)
                });
                Answer::Pages(part.collect())
            }
            Query::Key(owner, key) => Answer::Key(self.keys.get(&(owner.clone(), key.clone())).cloned()),
            Query::Audit { scope, before, limit } => {
                let rows = self.audit.range(..before.unwrap_or(u64::MAX)).rev();
                let rows = rows.filter(|(_, entry)| scope.sees(&entry.owner)).take(*limit as usize);
                Answer::Audit(rows.map(|(id, entry)| (*id, entry.clone())).collect())
            }
            Query::Meta(key) => Answer::Meta(self.meta.get(key).cloned()),
            // All others were answered above.
            _ => Answer::Meta(None),
        }
    }

    fn active_templates(&self, scope: &Scope) -> Vec<crate::store::TemplateRow> {
        let rows = self.templates.iter().map(|(_, template)| template);
        rows.filter(|t| t.is_active && scope.sees(&t.row.owner)).map(|t| t.row.clone()).collect()
    }

    fn sessions_of(&self, scope: &Scope, filter: &SessionQuery) -> Vec<SessionRow> {
        let rows = self.sessions.iter().map(|(_, session)| &session.row);
        let by_kind = filter.template.is_none() && filter.name.is_none();
        rows.filter(|row| {
            scope.sees(&row.owner)
                && (!by_kind || (row.session.engine == Engine::Cvm) == filter.durable)
                && filter.status.is_none_or(|status| row.session.status == status)
                && filter.template.is_none_or(|template| row.session.template_id == template)
                && filter.workspace_id.as_ref().is_none_or(|id| row.session.workspace_id == *id)
                && filter.name.as_ref().is_none_or(|name| row.session.name.as_ref() == Some(name))
        })
        .map(|row| self.with_execution(row))
        .collect()
    }

    /// With the execution that a program's session was made for.
    fn with_execution(&self, row: &SessionRow) -> SessionRow {
        let mut row = row.clone();
        if row.session.engine == Engine::Cvm {
            let mine = self.executions.iter().filter(|(_, one)| one.execution.session_id == row.session.id);
            let first = mine.min_by_key(|(id, one)| (one.execution.started_at, *id.as_bytes()));
            row.session.execution_id = first.map(|(id, _)| *id);
        }
        row
    }

    fn programs_of(&self, scope: &Scope) -> Vec<ProgramRow> {
        let active =
            self.programs.iter().filter(|(_, program)| program.is_active && scope.sees(&program.owner));
        let row = |(id, program): (&ProgramId, &super::Program)| {
            let version = self.versions.get(&(*id, program.version))?;
            Some(ProgramRow {
                id: *id,
                owner: program.owner.clone(),
                name: program.name.clone(),
                is_active: true,
                created_at: program.created_at,
                modified_at: program.modified_at,
                version: program.version,
                source_hash: version.source_hash,
                format: version.code.format,
            })
        };
        active.filter_map(row).collect()
    }

    /// Newest first.
    fn runs_of(
        &self,
        scope: &Scope,
        program: Option<ProgramId>,
        execution: Option<ExecutionId>,
    ) -> Vec<RunRow> {
        let mut rows: Vec<RunRow> = self
            .runs
            .iter()
            .filter(|(id, (of, _))| {
                program.is_none_or(|program| *of == program) && execution.is_none_or(|wanted| **id == wanted)
            })
            .filter_map(|(id, (program, version))| {
                let row = self.executions.get(id).filter(|row| scope.sees(&row.owner))?.clone();
                let named = self.programs.get(program).filter(|program| program.is_active);
                let program_name = named.map(|program| program.name.clone());
                Some(RunRow { row, program: *program, version: *version, program_name })
            })
            .collect();
        rows.sort_by_key(|run| std::cmp::Reverse(run.row.execution.id));
        rows
    }

    fn standing(&self, execution: ExecutionId) -> Option<Standing> {
        let (program, version) = *self.runs.get(&execution)?;
        let record = self.executions.get(&execution)?.execution.clone();
        let session = self.sessions.get(&record.session_id)?;
        let template = self.templates.get(&session.row.session.template_id);
        let checkpoint = self.last_checkpoint(execution);
        let state = checkpoint.as_ref().map(|last| self.state(execution, last.seq));
        let bytes = |pages: &[(u64, Vec<u8>)]| pages.iter().map(|(_, page)| page.len()).sum::<usize>();
        Some(Standing {
            program,
            version,
            owner: session.row.owner.clone(),
            worktree_path: session.row.session.worktree_path.clone(),
            policy: Arc::clone(&session.policy),
            template: template.filter(|template| template.is_active).map(|template| template.row.clone()),
            checkpoint,
            task: self.task_of(execution, None),
            state: state.filter(|pages| bytes(pages) < STANDING_BYTES),
            execution: record,
        })
    }

    fn last_checkpoint(&self, execution: ExecutionId) -> Option<CheckpointRow> {
        let rows = self.checkpoints.range((execution, 0)..=(execution, u64::MAX));
        rows.map(|(_, row)| row.clone()).next_back()
    }

    fn task_of(&self, execution: ExecutionId, at: Option<u64>) -> Option<TaskRow> {
        let tasks = self.tasks.iter().map(|(_, task)| task);
        let mine =
            tasks.filter(|task| task.execution == execution && at.is_none_or(|at| task.checkpoint <= at));
        mine.max_by_key(|task| task.checkpoint).cloned()
    }

    fn ids(&self, scope: &Scope, kind: IdKind) -> Vec<[u8; 16]> {
        let mine = |owner: &Owner| scope.sees(owner);
        match kind {
            IdKind::Template => {
                self.active_templates(scope).iter().map(|row| *row.detail.template.id.as_bytes()).collect()
            }
            IdKind::Program => self.programs_of(scope).iter().map(|row| *row.id.as_bytes()).collect(),
            IdKind::Task => {
                let rows = self.tasks.iter().filter(|(_, task)| mine(&task.owner));
                rows.map(|(id, _)| *id.as_bytes()).collect()
            }
            IdKind::Session => {
                let rows = self.sessions.iter().filter(|(_, session)| mine(&session.row.owner));
                rows.map(|(id, _)| *id.as_bytes()).collect()
            }
            IdKind::Execution => {
                let rows = self.executions.iter().filter(|(_, row)| mine(&row.owner));
                rows.map(|(id, _)| *id.as_bytes()).collect()
            }
        }
    }

    pub(super) fn state(&self, execution: ExecutionId, checkpoint: u64) -> Vec<(u64, Vec<u8>)> {
        let mut newest = std::collections::BTreeMap::new();
        for ((_, page, seq), bytes) in self.pages.range((execution, 0, 0)..=(execution, u64::MAX, u64::MAX)) {
            if *seq <= checkpoint {
                newest.insert(*page, bytes);
            }
        }
        newest.into_iter().filter_map(|(page, bytes)| Some((page, bytes.clone()?))).collect()
    }
}

fn version_row(((_, number), version): (&(ProgramId, u32), &super::Version)) -> VersionRow {
    VersionRow {
        version: *number,
        source_hash: version.source_hash,
        format: version.code.format,
        created_at: version.created_at,
    }
}

/// The rows of a page, newest first, ties by id.
fn part<T: Placed>(mut rows: Vec<T>, page: Page) -> Vec<T> {
    rows.retain(|row| page.after.is_none_or(|after| place(row) < after));
    rows.sort_by_key(|row| std::cmp::Reverse(place(row)));
    rows.truncate(page.limit as usize);
    rows
}

fn place<T: Placed>(row: &T) -> Cursor {
    let (at, id) = row.placed();
    Cursor { at, id }
}

/// Has a place in a list that is sorted by time.
trait Placed {
    fn placed(&self) -> (Timestamp, [u8; 16]);
}

impl Placed for crate::store::TemplateRow {
    fn placed(&self) -> (Timestamp, [u8; 16]) {
        (self.detail.template.created_at, *self.detail.template.id.as_bytes())
    }
}
impl Placed for SessionRow {
    fn placed(&self) -> (Timestamp, [u8; 16]) {
        (self.session.created_at, *self.session.id.as_bytes())
    }
}
impl Placed for crate::store::ExecutionRow {
    fn placed(&self) -> (Timestamp, [u8; 16]) {
        (self.execution.started_at, *self.execution.id.as_bytes())
    }
}
impl Placed for ProgramRow {
    fn placed(&self) -> (Timestamp, [u8; 16]) {
        (self.created_at, *self.id.as_bytes())
    }
}
impl Placed for crate::store::TaskRow {
    fn placed(&self) -> (Timestamp, [u8; 16]) {
        (self.created_at, *self.id.as_bytes())
    }
}
