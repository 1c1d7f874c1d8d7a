//! Applies one [`Write`] as statements inside a transaction that the writer thread opened. Knows nothing of queues or commits.

mod compact;
mod copies;
mod delete;
mod durable;
mod ends;
mod executions;
mod guard;
mod imports;
mod items;
mod keep;
mod schedules;
mod sessions;
mod templates;
mod usage;

pub(super) use compact::{FROM_THE_FIRST, PagePosition, compact_piece, is_list_of_pages, sweep_piece};
pub(super) use delete::PIECE_ROWS as DELETED_AT_ONCE;
pub(super) use ends::Ends;
pub(super) use keep::{ScanPosition, prune_step};
pub(super) use usage::CountedConnection;

use super::failure::SqliteFailure;
use crate::holds::Holds;
use crate::queue::{Progress, QueuedBatch};
use rusqlite::{Connection, Params};
use vm_system_record::{Applied, Batch, Write};

/// The part of a batch that a turn wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Written {
    /// All of it.
    All(Applied),
    /// Only so much.
    Part(Progress),
}

/// Writes a batch, or as much of it as it may in this turn; on an error the caller rolls back.
pub(super) fn apply(
    c: &CountedConnection<'_>,
    job: &QueuedBatch,
    (ends, holds): (&Ends<'_>, &Holds),
) -> Result<Written, SqliteFailure> {
    // In each turn of a batch that takes several: its holder may lose the execution in between.
    if let Some(Write::Guard(guard)) = job.batch.0.first() {
        guard::check(c, guard, holds)?;
    }
    if let Some(execution) = job.import() {
        return imports::apply(c, job, execution, ends);
    }
    if let Some(most_bytes) = job.piece() {
        let checkpoint = job.batch.0.iter().find_map(|write| match write {
            Write::Checkpoint(checkpoint) => Some(checkpoint),
            _ => None,
        });
        if let Some(checkpoint) = checkpoint {
            return durable::stage(c, checkpoint, &job.progress, most_bytes).map(Written::Part);
        }
    }
    if let Some(written) = copies::apply(c, job, ends)? {
        return Ok(written);
    }
    if let [Write::RunDelete { id }] = &job.batch.0[..] {
        // From the first piece on, readers do not find it; the background deletes the rest.
        return Ok(Written::All(Applied { rows: delete::delete_run(c, *id)?.rows }));
    }
    Ok(Written::All(Applied { rows: apply_all(c, &job.batch, &job.progress, ends)? }))
}

/// Applies all writes of a batch; on an error the caller rolls back.
pub(super) fn apply_all(
    c: &CountedConnection<'_>,
    batch: &Batch,
    written: &Progress,
    ends: &Ends<'_>,
) -> Result<u64, SqliteFailure> {
    let mut rows = 0;
    for write in &batch.0 {
        rows += apply_one(c, write, written, ends)?;
    }
    Ok(rows)
}

fn apply_one(
    c: &CountedConnection<'_>,
    write: &Write,
    written: &Progress,
    ends: &Ends<'_>,
) -> Result<u64, SqliteFailure> {
    match write {
        write if written.staged_writes.is_some() && imports::is_staged(write) => Ok(1),
        Write::TemplateInsert { owner, detail } => templates::insert(c, owner, detail),
        Write::TemplateUpdate { id, name, settings, at } => {
            templates::update(c, *id, name.as_deref(), settings.as_deref(), *at)
        }
        Write::TemplateDelete { id, at } => templates::delete(c, *id, *at),
        Write::ModuleAdd { template, name, at } => templates::add_name(c, "modules", *template, name, *at),
        Write::ModuleRemove { template, name, at } => {
            templates::remove_name(c, "modules", *template, name, *at)
        }
        Write::LibraryAdd { template, name, at } => templates::add_name(c, "libraries", *template, name, *at),
        Write::LibraryRemove { template, name, at } => {
            templates::remove_name(c, "libraries", *template, name, *at)
        }
        Write::CapabilityAdd { capability, at } => templates::add_capability(c, capability, *at),
        Write::CapabilityRemove { template, id, at } => templates::remove_capability(c, *template, *id, *at),
        Write::StartupFileAdd { file, at } => templates::add_startup_file(c, file, *at),
        Write::StartupFileRemove { template, id, at } => {
            templates::remove_startup_file(c, *template, *id, *at)
        }
        Write::LibraryInstall(row) => templates::install_library(c, row),
        Write::LibraryUninstall { name } => templates::uninstall_library(c, name),
        Write::SessionInsert { session, .. } if written.is_copied() => sessions::open_copied(c, session),
        Write::SessionInsert { owner, session, policy, worktree } => {
            sessions::insert(c, owner, session, (policy, worktree.as_deref()))
        }
        Write::SessionReady { id } => sessions::ready(c, *id),
        Write::SessionEnd { id, status, at, reason, last_error } => {
            sessions::end(c, *id, *status, *at, reason, last_error.as_deref())
        }
        Write::SessionRestoring { id, kind, at, detail } => sessions::restoring(c, *id, *kind, *at, detail),
        Write::SessionRestored { id, name, facts } => sessions::restored(c, *id, name.as_deref(), facts),
        Write::SessionChange { id, change } => sessions::change(c, *id, change),
        Write::SessionEvent { session, kind, at, detail } => {
            sessions::event(c, *session, *kind, *at, detail.as_deref())
        }
        Write::SessionFacts { id, facts } => sessions::facts(c, *id, facts),
        Write::WorkerSeq { session, seq } => sessions::worker_seq(c, *session, *seq),
        Write::ExecutionStarted { name, execution } if written.is_copied() => {
            executions::begin_copied(c, name.as_deref(), execution)
        }
        Write::ExecutionStarted { name, execution } => {
            let end = ends.end_of(execution.id).unwrap_or(execution);
            executions::start(c, name.as_deref(), execution, end)
        }
        Write::ExecutionStatus { id, status } => executions::status(c, *id, *status),
        // Written together with its start: one row.
        Write::ExecutionEnded(execution) if ends.end_of(execution.id).is_some() => Ok(1),
        Write::ExecutionEnded(execution) => executions::end(c, execution),
        Write::ExecutionFacts { id, facts } => executions::add_facts(c, *id, *facts),
        Write::ExecutionDegraded { id } => executions::degraded(c, *id),
        Write::Events(events) => executions::events(c, events),
        Write::HostRestart { at, alive, continued, earlier, why } => {
            sessions::host_restart(c, *at, (alive, continued), earlier.as_deref(), why.as_deref())
        }
        Write::ProgramVersion(version) => durable::program_version(c, version),
        Write::ProgramImport(version) => durable::program_import(c, version),
        Write::ProgramImported { id } => durable::program_imported(c, *id),
        Write::ProgramRun { execution, .. } if written.is_copied() && durable::has_run(c, *execution)? => {
            Ok(1)
        }
        Write::ProgramRun { execution, program, version } => {
            durable::program_run(c, *execution, *program, *version)
        }
        Write::ProgramDelete { id, at } => durable::program_delete(c, *id, *at),
        Write::ItemInsert(item) => items::insert(c, item),
        Write::TaskAttempt { id, at, .. } => items::task_attempt(c, *id, *at),
        Write::ItemsWithdraw { execution, at } => items::withdraw(c, *execution, *at),
        Write::ItemEnd { id, outcome, answer, at, taken_at, .. } => {
            items::end(c, *id, (*outcome, answer.as_deref()), *at, *taken_at)
        }
        Write::ItemsTaken { execution, items, checkpoint } => items::taken(c, *execution, items, *checkpoint),
        Write::MailInsert { execution, mail } => items::mail_insert(c, *execution, mail),
        Write::MailTake { execution, seq } => items::mail_take(c, *execution, *seq),
        Write::Checkpoint(checkpoint) => durable::checkpoint(c, checkpoint, written),
        // The pages of the checkpoint are there.
        Write::CheckpointCopy { from, checkpoint, to, at } => {
            durable::copy_row(c, *from, *checkpoint, *to, *at)
        }
        Write::RunProgress { id, status, metrics, limits } => {
            executions::progress(c, *id, *status, (metrics, limits.as_deref()))
        }
        // Checked before all writes (`apply`).
        Write::Guard(_) => Ok(0),
        Write::RunsKilled { executions } => executions::killed(c, executions),
        Write::ExecutionUnname { id } => executions::unname(c, *id),
        Write::CheckpointCompact { execution, keep_from, keep_bytes } => {
            compact::compact(c, *execution, *keep_from, *keep_bytes)
        }
        Write::CheckpointsTrim { execution } => compact::trim(c, *execution),
        Write::StateBound { execution, most } => compact::bound(c, *execution, *most),
        Write::RunDelete { id } => delete::delete_whole_run(c, *id),
        Write::CurrentSet { owner, client, execution, at } => {
            durable::current_set(c, owner, client, *execution, *at)
        }
        Write::ScheduleInsert { schedule, due_at } => schedules::insert(c, schedule, *due_at),
        Write::ScheduleChange(change) => schedules::change(c, change),
        Write::ScheduleDelete { id } => schedules::delete(c, *id),
        Write::KeyClaim(claim) => keep::claim(c, claim),
        Write::KeyTakeOver { owner, key, from, to } => keep::take_over(c, owner, key, (*from, *to)),
        Write::KeyResponse { owner, key, reply } => keep::respond(c, owner, key, reply),
        Write::KeyRelease { owner, key } => keep::release(c, owner, key),
        Write::Audit(entry) => keep::audit(c, entry),
        Write::MetaSet { key, value } => keep::meta(c, key, value.as_deref()),
        Write::Prune { before, keys_before, max_rows } => keep::prune(c, *before, *keys_before, *max_rows),
        Write::PruneOwner { owner, before, max_rows } => keep::prune_owner(c, owner, *before, *max_rows),
    }
}

/// Runs one statement through the cache; returns the number of changed rows.
fn run(c: &Connection, sql: &str, params: impl Params) -> Result<u64, rusqlite::Error> {
    Ok(c.prepare_cached(sql)?.execute(params)? as u64)
}

/// Whether a query has a row.
fn exists(c: &Connection, sql: &str, params: impl Params) -> Result<bool, rusqlite::Error> {
    c.prepare_cached(sql)?.exists(params)
}

/// The database's integers are signed; counts beyond 2^63 do not occur and are capped.
fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
