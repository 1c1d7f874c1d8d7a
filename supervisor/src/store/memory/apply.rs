//! One [`Write`] on the tables, with the refusals and row counts that the SQLite store gives.

mod durable;
mod executions;
mod keep;
mod sessions;
mod templates;

use super::Tables;
use crate::store::batch::Write;
use crate::store::error::StoreError;

impl Tables {
    pub(super) fn apply(&mut self, write: &Write) -> Result<u64, StoreError> {
        match write {
            Write::TemplateInsert { owner, detail } => self.template_insert(owner, detail),
            Write::TemplateUpdate { id, name, settings, at } => {
                self.template_update(*id, name.as_deref(), settings.as_deref(), *at)
            }
            Write::TemplateDelete { id, at } => self.template_delete(*id, *at),
            Write::ModuleAdd { template, name, at } => {
                self.name_change(*template, *at, |detail| add(&mut detail.template.exposed_modules, name))
            }
            Write::ModuleRemove { template, name, at } => {
                self.name_change(*template, *at, |detail| remove(&mut detail.template.exposed_modules, name))
            }
            Write::LibraryAdd { template, name, at } => {
                self.name_change(*template, *at, |detail| add(&mut detail.template.libraries, name))
            }
            Write::LibraryRemove { template, name, at } => {
                self.name_change(*template, *at, |detail| remove(&mut detail.template.libraries, name))
            }
            Write::CapabilityAdd { capability, at } => self.capability_add(capability, *at),
            Write::CapabilityRemove { template, id, at } => self.capability_remove(*template, *id, *at),
            Write::StartupFileAdd { file, at } => self.startup_file_add(file, *at),
            Write::StartupFileRemove { template, id, at } => self.startup_file_remove(*template, *id, *at),
            Write::LibraryInstall(row) => Ok(self.library_install(row)),
            Write::LibraryUninstall { name } => self.library_uninstall(name),
            Write::SessionInsert { owner, session, policy } => self.session_insert(owner, session, policy),
            Write::SessionReady { id } => self.session_ready(*id),
            Write::SessionEnd { id, status, at, reason, last_error } => {
                self.session_end(*id, *status, *at, reason, last_error.as_ref())
            }
            Write::SessionMeta { id, runtime_meta } => self.session_meta(*id, runtime_meta),
            Write::WorkerSeq { session, seq } => self.worker_seq(*session, *seq),
            Write::ExecutionStarted { name, execution } => self.execution_start(name.as_ref(), execution),
            Write::ExecutionStatus { id, status } => self.execution_status(*id, *status),
            Write::ExecutionEnded(execution) => self.execution_end(execution),
            Write::ExecutionDegraded { id } => self.degrade(*id),
            Write::Events(events) => self.events_insert(events),
            Write::HostRestart { at, alive } => Ok(self.host_restart(*at, alive)),
            Write::ProgramVersion(version) => self.program_version(version),
            Write::ProgramRun { execution, program, version } => {
                self.program_run(*execution, *program, *version)
            }
            Write::ProgramDelete { id, at } => self.program_delete(*id, *at),
            Write::TaskInsert(task) => self.task_insert(task),
            Write::TaskAttempt { id, at } => self.task_change(*id, |task| {
                task.attempts += 1;
                task.first_attempt_at = task.first_attempt_at.or(Some(*at));
                task.last_attempt_at = Some(*at);
            }),
            Write::TasksWithdraw { execution, at } => Ok(self.tasks_withdraw(*execution, *at)),
            Write::TaskEnd { id, outcome, answer, at } => self.task_change(*id, |task| {
                task.outcome = Some(*outcome);
                task.ended_at = Some(*at);
                task.answer.clone_from(answer);
            }),
            Write::Checkpoint(checkpoint) => self.checkpoint(checkpoint),
            Write::CheckpointCopy { from, checkpoint, to, at } => {
                self.checkpoint_copy(*from, *checkpoint, *to, *at)
            }
            Write::RunProgress { id, status, metrics } => self.run_progress(*id, *status, metrics),
            Write::ExecutionUnname { id } => self.execution_unname(*id),
            Write::CheckpointCompact { execution, keep_from, keep_bytes } => {
                Ok(self.compact(*execution, *keep_from, *keep_bytes))
            }
            Write::StateBound { execution, most } => self.state_bound(*execution, *most),
            Write::RunDelete { id } => self.run_delete(*id),
            Write::CurrentSet { owner, client, execution, at } => {
                self.current_set(owner, client, *execution, *at)
            }
            Write::KeyClaim(claim) => self.key_claim(claim),
            Write::KeyAnswer { owner, key, reply } => self.key_answer(owner, key, reply),
            Write::KeyRelease { owner, key } => {
                Ok(u64::from(self.keys.remove(&(owner.clone(), key.clone()))))
            }
            Write::Audit(entry) => Ok(self.audit_add(entry)),
            Write::MetaSet { key, value } => Ok(self.meta_set(key, value.as_ref())),
            Write::PruneOwner { owner, before, max_rows } => Ok(self.prune_owner(owner, *before, *max_rows)),
            Write::Prune { before, keys_before, max_rows } => {
                Ok(self.prune(*before, *keys_before, *max_rows))
            }
        }
    }
}

/// Adds to a sorted list of distinct names; whether it was absent.
fn add(names: &mut Vec<String>, name: &str) -> bool {
    match names.binary_search_by(|known| known.as_str().cmp(name)) {
        Ok(_) => false,
        Err(place) => {
            names.insert(place, name.to_owned());
            true
        }
    }
}

/// Whether it was there.
fn remove(names: &mut Vec<String>, name: &str) -> bool {
    let before = names.len();
    names.retain(|known| known != name);
    names.len() < before
}
