//! The table of verbs: properties that do not depend on the caller ([`facts`]), and the handler of each (`dispatch`). A new
//! verb has one row in both matches, and nowhere else. The rows of durable programs' verbs are in [`durable`].

use super::{Ops, VerbCall, durable, modules};
use Effect::{Changes, Reads};
use vm_system_protocol::control::{Op, OpError, Reply};

/// Also used for the template that is created with a session.
pub(super) const TEMPLATE_CREATE: &str = "template create";

/// Whether a verb has effects beyond its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// A repetition does no harm.
    Reads,
    /// Runs once for each idempotency key; its refusals are in the audit log.
    Changes,
}

/// Properties of one verb that do not depend on the caller.
#[derive(Debug)]
pub(super) struct VerbFacts<'a> {
    /// Name in the audit log; an alias has the name of its verb.
    pub(super) audit_name: &'static str,
    pub(super) effect: Effect,
    /// What the verb is about, as the client wrote it.
    pub(super) subject: &'a str,
}

pub(super) fn facts(op: &Op) -> VerbFacts<'_> {
    let (audit_name, effect, subject): (_, _, &str) = match op {
        Op::TemplateCreate { name, .. } => (TEMPLATE_CREATE, Changes, name),
        Op::TemplateList { .. } => ("template list", Reads, ""),
        Op::TemplateGet { template } => ("template get", Reads, template),
        Op::TemplateUpdate { template, .. } => ("template update", Changes, template),
        Op::TemplateDelete { template } => ("template delete", Changes, template),
        Op::TemplateAddModule { template, .. } => ("template add-module", Changes, template),
        Op::TemplateRemoveModule { template, .. } => ("template remove-module", Changes, template),
        Op::TemplateAddCapability { template, .. } => ("template add-capability", Changes, template),
        Op::TemplateRemoveCapability { template, .. } => ("template remove-capability", Changes, template),
        Op::TemplateAddStartup { template, .. } => ("template add-startup", Changes, template),
        Op::TemplateRemoveStartup { template, .. } => ("template remove-startup", Changes, template),
        Op::TemplateAddLibrary { template, .. } => ("template add-library", Changes, template),
        Op::TemplateRemoveLibrary { template, .. } => ("template remove-library", Changes, template),
        Op::LibraryCatalog => ("libs list", Reads, ""),
        Op::LibraryInstall(library) => ("libs install", Changes, &library.id),
        Op::LibraryRemove { name } => ("libs remove", Changes, name),
        Op::LibraryVerify { name } => ("libs verify", Reads, name.as_deref().unwrap_or_default()),
        Op::SessionCreate(new) => ("session create", Changes, &new.template),
        Op::SessionList(_) => ("session list", Reads, ""),
        Op::SessionGet { session } => ("session get", Reads, session),
        Op::SessionClose { session } => ("session close", Changes, session),
        Op::SessionInspect { session } => ("session inspect", Reads, session),
        Op::SessionKill { session, .. } => ("session kill", Changes, session),
        Op::SessionFork { session, .. } => ("session fork", Changes, session),
        Op::SessionCheckpoint { session, .. } => ("session checkpoint", Changes, session),
        Op::SessionCheckpoints { session } => ("session checkpoints", Reads, session),
        Op::SessionDeleteCheckpoint { session, .. } => ("session delete-checkpoint", Changes, session),
        Op::SessionRollback { session, .. } => ("session rollback", Changes, session),
        Op::SessionEvents { session, .. } => ("session events", Reads, session),
        Op::SessionSuspend { session } => ("session suspend", Changes, session),
        Op::SessionResume { session } => ("session resume", Changes, session),
        Op::SessionRestore(new) => ("session restore", Changes, &new.session),
        Op::SessionRestoration { session, .. } => ("session restoration", Reads, session),
        Op::ExecStart(new) => ("exec start", Changes, &new.session),
        Op::ExecList(filter) => ("exec list", Reads, &filter.session),
        Op::ExecGet { execution } => ("exec get", Reads, execution),
        Op::ExecEvents { execution, .. } => ("exec events", Reads, execution),
        Op::ExecWait { execution } => ("exec wait", Reads, execution),
        Op::ExecCancel { execution } => ("exec cancel", Changes, execution),
        Op::AuditList { .. } => ("audit", Reads, ""),
        Op::Health => ("health", Reads, ""),
        Op::RuntimeSummary => ("runtime-summary", Reads, ""),
        Op::RuntimeInfo => ("runtime", Reads, ""),
        Op::Doctor => ("doctor", Reads, ""),
        Op::Shutdown => ("shutdown", Changes, ""),
        Op::BackupBegin => ("ops backup", Reads, ""),
        Op::BackupPart { backup, .. } | Op::BackupEnd { backup } => ("ops backup", Reads, backup),
        Op::DatabaseCheck => ("ops check", Reads, ""),
        Op::Upgrade => ("ops upgrade", Reads, ""),
        Op::UpgradeDrain { .. } => ("ops upgrade", Changes, ""),
        Op::ModuleCatalog => ("template list-available-modules", Reads, ""),
        Op::Durable(op) => durable::facts(op),
    };
    VerbFacts { audit_name, effect, subject }
}

/// Whether the response of a verb without effects may be large, and is read at once: memory is reserved for it first. The others are
/// small, stream their events, or wait first and reserve it then.
pub(super) fn reads_much(op: &Op) -> bool {
    match op {
        Op::TemplateList { .. }
        | Op::TemplateGet { .. }
        | Op::SessionList(_)
        | Op::ExecList(_)
        | Op::ExecGet { .. }
        | Op::ExecEvents { follow: false, .. }
        | Op::AuditList { .. } => true,
        Op::Durable(op) => durable::reads_much(op),
        _ => false,
    }
}

impl Ops {
    /// Futures are boxed one by one, so that a request uses only the memory of its own verb. The two most frequent
    /// verbs are not boxed.
    pub(super) async fn dispatch(&self, call: &VerbCall<'_>, op: Op) -> Result<Reply, OpError> {
        match op {
            Op::TemplateCreate { name, engine, settings, modules } => {
                Box::pin(self.template_create(call, name, engine, *settings, modules)).await
            }
            Op::TemplateList { page, built_in } => Box::pin(self.template_list(call, page, built_in)).await,
            Op::TemplateGet { template } => Box::pin(self.template_get(call, &template)).await,
            Op::TemplateUpdate { template, change } => {
                Box::pin(self.template_update(call, &template, *change)).await
            }
            Op::TemplateDelete { template } => Box::pin(self.template_delete(call, &template)).await,
            Op::TemplateAddModule { template, name } => {
                Box::pin(self.template_add_module(call, &template, &name)).await
            }
            Op::TemplateRemoveModule { template, name } => {
                Box::pin(self.template_remove_module(call, &template, &name)).await
            }
            Op::TemplateAddCapability { template, capability } => {
                Box::pin(self.template_add_capability(call, &template, *capability)).await
            }
            Op::TemplateRemoveCapability { template, capability } => {
                Box::pin(self.template_remove_capability(call, &template, &capability)).await
            }
            Op::TemplateAddStartup { template, file } => {
                Box::pin(self.template_add_startup(call, &template, *file)).await
            }
            Op::TemplateRemoveStartup { template, file } => {
                Box::pin(self.template_remove_startup(call, &template, &file)).await
            }
            Op::TemplateAddLibrary { template, name } => {
                Box::pin(self.template_add_library(call, &template, &name)).await
            }
            Op::TemplateRemoveLibrary { template, name } => {
                Box::pin(self.template_remove_library(call, &template, &name)).await
            }
            Op::LibraryCatalog => Box::pin(self.library_catalog()).await,
            Op::LibraryInstall(library) => Box::pin(self.library_install(call, *library)).await,
            Op::LibraryRemove { name } => Box::pin(self.library_remove(call, &name)).await,
            Op::LibraryVerify { name } => Box::pin(self.library_verify(name.as_deref())).await,
            Op::SessionCreate(new) => Box::pin(self.session_create(call, *new)).await,
            Op::SessionList(filter) => Box::pin(self.session_list(call, filter)).await,
            Op::SessionGet { session } => Box::pin(self.session_get(call, &session)).await,
            Op::SessionClose { session } => Box::pin(self.session_close(call, &session)).await,
            Op::SessionInspect { session } => Box::pin(self.session_inspect(call, &session)).await,
            Op::SessionKill { session, signal } => Box::pin(self.session_kill(call, &session, signal)).await,
            Op::SessionFork { session, count } => Box::pin(self.session_fork(call, &session, count)).await,
            Op::SessionCheckpoint { session, name } => {
                Box::pin(self.session_checkpoint(call, &session, name)).await
            }
            Op::SessionCheckpoints { session } => Box::pin(self.session_checkpoints(call, &session)).await,
            Op::SessionDeleteCheckpoint { session, checkpoint } => {
                Box::pin(self.session_delete_checkpoint(call, &session, checkpoint)).await
            }
            Op::SessionRollback { session, checkpoint } => {
                Box::pin(self.session_rollback(call, &session, checkpoint)).await
            }
            Op::SessionSuspend { session } => Box::pin(self.session_suspend(call, &session)).await,
            Op::SessionResume { session } => Box::pin(self.session_resume(call, &session)).await,
            Op::SessionRestore(new) => Box::pin(self.session_restore(call, *new)).await,
            Op::SessionRestoration { session, wait_after } => {
                Box::pin(self.session_restoration(call, &session, wait_after)).await
            }
            Op::SessionEvents { session, after_seq, limit, wait } => {
                Box::pin(self.session_events(call, &session, (after_seq, limit), wait)).await
            }
            Op::ExecStart(new) => self.exec_start(call, *new).await,
            Op::ExecList(filter) => Box::pin(self.exec_list(call, filter)).await,
            Op::ExecGet { execution } => Box::pin(self.exec_get(call, &execution)).await,
            Op::ExecEvents { execution, after_seq, limit, follow } => {
                Box::pin(self.exec_events(call, &execution, after_seq, limit, follow)).await
            }
            Op::ExecWait { execution } => Box::pin(self.exec_wait(call, &execution)).await,
            Op::ExecCancel { execution } => Box::pin(self.exec_cancel(call, &execution)).await,
            Op::AuditList { before, limit } => Box::pin(self.audit_list(call, before, limit)).await,
            Op::Health => self.health(call),
            Op::RuntimeSummary => Ok(Box::pin(self.runtime_summary(call)).await),
            Op::RuntimeInfo => Ok(self.runtime_info(call)),
            Op::Doctor => Ok(Reply::Doctor(Box::new(self.doctor(call).await))),
            Op::Shutdown => Box::pin(self.shutdown(call)).await,
            Op::BackupBegin => Box::pin(self.backup_begin(call)).await,
            Op::BackupPart { backup, at } => Box::pin(self.backup_part(call, &backup, at)).await,
            Op::BackupEnd { backup } => self.backup_end(call, &backup),
            Op::DatabaseCheck => Box::pin(self.database_check(call)).await,
            Op::Upgrade => Box::pin(self.upgrade(call)).await,
            Op::UpgradeDrain { drain_by } => Box::pin(self.upgrade_drain(call, drain_by)).await,
            Op::ModuleCatalog => Ok(Reply::Modules(modules::catalog(&self.options))),
            Op::Durable(op) => Box::pin(self.durable(call, op)).await.map(Reply::Durable),
        }
    }
}
