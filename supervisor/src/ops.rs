//! The verbs of the product: one handler each, the same for every door.
//!
//! Owns validation, what a caller may see, references to ids, and idempotency. Knows no door (no JSON envelopes, no HTTP,
//! no frames), no SQL, no process: rows are the store's, live sessions the runtime's.
//!
//! Reading order:
//! - this file: [`Ops::handle`], which verb goes where
//! - [`templates`], [`sessions`], [`executions`], [`runtime`]: the handlers, one file for each noun
//! - [`capabilities`], [`startup_files`], [`libraries`]: the parts of a template, and what is installed
//! - [`durable`]: the handlers of programs and tasks
//! - [`resolve`]: a whole id, a name or a unique prefix → an id that the caller may see
//! - [`settings`], [`modules`], [`redact`]: what a template may ask for, what is never recorded
//! - [`idempotency`]: the first answer again
//! - [`audit`]: who changed what, who was refused what
//! - [`policies`]: what templates say now, without asking the store for each execution

mod audit;
mod built_in;
mod capabilities;
mod durable;
mod errors;
mod executions;
mod forks;
mod idempotency;
mod libraries;
mod modules;
mod policies;
mod redact;
mod resolve;
mod runtime;
mod sessions;
mod settings;
mod startup_files;
mod templates;
#[cfg(test)]
mod tests;

pub use crate::runtime::{RuntimeApi, RuntimeFacts};

use crate::libraries::Shelf;
use crate::runtime::Follower;
use crate::store::{Cursor, Owner, Page, Scope, StoreHandle};
use crate::worktree::WorktreeClient;
use audit::Named;
use idempotency::InFlight;
use libraries::Installed;
use policies::Policies;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use vm_system_protocol::control::{ListPage, Op, OpError, Reply};
use vm_system_protocol::model::Limits;
use vm_system_protocol::time::Timestamp;

/// Rows of a list without a limit of its own, at most.
const LIST_ROWS: u32 = 10_000;
/// Content of one answer, at most (bytes); lists and events end early there. Fits a frame of the control socket.
const REPLY_BYTES: usize = 12 << 20;

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Whose rows are its own.
    pub owner: Owner,
    /// Sees and may do everything.
    pub admin: bool,
    /// Through which door: for the audit log.
    pub door: &'static str,
}

impl Caller {
    fn scope(&self) -> Scope {
        if self.admin { Scope::All } else { Scope::Owner(self.owner.clone()) }
    }

    /// What names mean: a thing of the caller's own, whatever else he may see.
    fn own(&self) -> Scope {
        Scope::Owner(self.owner.clone())
    }

    /// As whom it names a worktree.
    fn worktree_client(&self) -> WorktreeClient {
        WorktreeClient::new(self.owner.as_str(), self.admin)
    }

    fn may_see(&self, owner: &Owner) -> bool {
        self.admin || self.owner == *owner
    }
}

/// What the operator allows.
#[derive(Debug, Clone)]
pub struct OpsOptions {
    /// The most that templates may ask for.
    pub ceilings: Limits,
    /// The operator has said where worktrees may be. If not, only administrators name one: the supervisor would read
    /// for others what they may not read themselves.
    pub worktrees_confined: bool,
    /// The operator lists commands for the `exec` module.
    pub commands_listed: bool,
}

impl Default for OpsOptions {
    fn default() -> Self {
        Self { ceilings: settings::default_ceilings(), worktrees_confined: true, commands_listed: false }
    }
}

/// All verbs. Share it in an [`Arc`].
pub struct Ops {
    store: StoreHandle,
    runtime: Arc<dyn RuntimeApi>,
    options: OpsOptions,
    policies: Policies,
    /// The built-in template has a row.
    built_in_row: tokio::sync::OnceCell<()>,
    in_flight: InFlight,
    refusals: audit::Budget,
    shelf: Shelf,
    installed: Mutex<Installed>,
    /// Held while a verb reads something, decides, and writes: two changes of one template, two installations.
    deciding: tokio::sync::Mutex<()>,
    imports: Arc<durable::Imports>,
    stop: CancellationToken,
    started: Instant,
}

/// One verb under way.
struct Call<'a> {
    caller: &'a Caller,
    /// Id of what the verb makes.
    subject: Uuid,
    /// Where the events of a followed execution go.
    follower: Option<Follower>,
    /// The audit log has a line about it.
    noted: &'a AtomicBool,
    /// The idempotency key that it has.
    key: Option<&'a str>,
}

impl Ops {
    /// `shelf` has the sources of installed libraries; `stop` is cancelled when a caller asks the supervisor to stop.
    pub fn new(
        store: StoreHandle,
        runtime: Arc<dyn RuntimeApi>,
        options: OpsOptions,
        shelf: Shelf,
        stop: CancellationToken,
    ) -> Self {
        let policies = Policies::new(store.clone(), options.ceilings.clone());
        Self {
            store,
            runtime,
            options,
            policies,
            built_in_row: tokio::sync::OnceCell::new(),
            in_flight: InFlight::default(),
            refusals: audit::Budget::default(),
            shelf,
            installed: Mutex::default(),
            deciding: tokio::sync::Mutex::default(),
            imports: Arc::default(),
            stop,
            started: Instant::now(),
        }
    }

    /// Answers one verb. With a `key`, the same key from the same owner gives the first answer again for 24 h, also
    /// after a restart. `follower` gets the events of `ExecStart` and `ExecEvents` that ask to follow, in order and without
    /// a gap; the answer then carries none. Must not be dropped half-way.
    pub async fn handle(
        &self,
        caller: &Caller,
        op: Op,
        key: Option<&str>,
        follower: Option<Follower>,
    ) -> Result<Reply, OpError> {
        match key {
            Some(key) if changes_something(&op) => Box::pin(self.once(caller, op, key, follower)).await,
            _ => self.perform(caller, (Uuid::now_v7(), None), follower, op).await,
        }
    }

    /// Runs a verb whose thing, if it makes one, gets this id; with its key, if it has one.
    async fn perform(
        &self,
        caller: &Caller,
        (subject, key): (Uuid, Option<&str>),
        follower: Option<Follower>,
        op: Op,
    ) -> Result<Reply, OpError> {
        let noted = AtomicBool::new(false);
        let named = Named::of(&op);
        let result = self.dispatch(Call { caller, subject, follower, noted: &noted, key }, op).await;
        if let Err(error) = &result
            && !noted.into_inner()
        {
            Box::pin(self.refused(caller, named, error.code)).await;
        }
        result
    }

    /// What is asked for all the time has room of its own: what all verbs together may need is many times as much, and would
    /// be claimed anew for each request.
    async fn dispatch(&self, call: Call<'_>, op: Op) -> Result<Reply, OpError> {
        match op {
            Op::ExecStart(new) => self.exec_start(call, *new).await,
            Op::Health => self.health(),
            op => Box::pin(self.dispatch_others(call, op)).await,
        }
    }

    async fn dispatch_others(&self, call: Call<'_>, op: Op) -> Result<Reply, OpError> {
        match op {
            Op::TemplateCreate { name, engine, settings, modules } => {
                self.template_create(&call, name, engine, *settings, modules).await
            }
            Op::TemplateList { page, built_in } => self.template_list(&call, page, built_in).await,
            Op::TemplateGet { template } => self.template_get(&call, &template).await,
            Op::TemplateUpdate { template, change } => self.template_update(&call, &template, *change).await,
            Op::TemplateDelete { template } => self.template_delete(&call, &template).await,
            Op::TemplateAddModule { template, name } => {
                self.template_add_module(&call, &template, &name).await
            }
            Op::TemplateRemoveModule { template, name } => {
                self.template_remove_module(&call, &template, &name).await
            }
            Op::TemplateAddCapability { template, capability } => {
                self.template_add_capability(&call, &template, *capability).await
            }
            Op::TemplateRemoveCapability { template, capability } => {
                self.template_remove_capability(&call, &template, &capability).await
            }
            Op::TemplateAddStartup { template, file } => {
                self.template_add_startup(&call, &template, *file).await
            }
            Op::TemplateRemoveStartup { template, file } => {
                self.template_remove_startup(&call, &template, &file).await
            }
            Op::TemplateAddLibrary { template, name } => {
                self.template_add_library(&call, &template, &name).await
            }
            Op::TemplateRemoveLibrary { template, name } => {
                self.template_remove_library(&call, &template, &name).await
            }
            Op::LibraryCatalog => self.library_catalog().await,
            Op::LibraryInstall(library) => self.library_install(&call, *library).await,
            Op::LibraryRemove { name } => self.library_remove(&call, &name).await,
            Op::LibraryVerify { name } => self.library_verify(name.as_deref()).await,
            Op::SessionCreate(new) => self.session_create(&call, *new).await,
            Op::SessionList(filter) => self.session_list(&call, filter).await,
            Op::SessionGet { session } => self.session_get(&call, &session).await,
            Op::SessionClose { session } => self.session_close(&call, &session).await,
            Op::SessionInspect { session } => self.session_inspect(&call, &session).await,
            Op::SessionKill { session, signal } => self.session_kill(&call, &session, signal).await,
            Op::SessionFork { session, count } => self.session_fork(&call, &session, count).await,
            Op::ExecStart(new) => Box::pin(self.exec_start(call, *new)).await,
            Op::ExecList { session, page } => self.exec_list(&call, &session, page).await,
            Op::ExecGet { execution } => self.exec_get(&call, &execution).await,
            Op::ExecEvents { execution, after_seq, limit, follow } => {
                self.exec_events(call, &execution, after_seq, limit, follow).await
            }
            Op::ExecWait { execution } => self.exec_wait(&call, &execution).await,
            Op::ExecCancel { execution } => self.exec_cancel(&call, &execution).await,
            Op::AuditList { before, limit } => self.audit_list(&call, before, limit).await,
            Op::Health => self.health(),
            Op::RuntimeSummary => Ok(self.runtime_summary(&call).await),
            Op::RuntimeInfo => Ok(self.runtime_info()),
            Op::Doctor => Ok(Reply::Doctor(Box::new(self.runtime.doctor().await))),
            Op::Shutdown => self.shutdown(&call).await,
            Op::ModuleCatalog => Ok(Reply::Modules(modules::catalog(&self.options))),
            Op::Durable(op) => self.durable(&call, op).await.map(Reply::Durable),
        }
    }
}

/// Whether a verb may be repeated without harm only by its key.
fn changes_something(op: &Op) -> bool {
    match op {
        Op::TemplateCreate { .. }
        | Op::TemplateUpdate { .. }
        | Op::TemplateDelete { .. }
        | Op::TemplateAddModule { .. }
        | Op::TemplateRemoveModule { .. }
        | Op::TemplateAddCapability { .. }
        | Op::TemplateRemoveCapability { .. }
        | Op::TemplateAddStartup { .. }
        | Op::TemplateRemoveStartup { .. }
        | Op::TemplateAddLibrary { .. }
        | Op::TemplateRemoveLibrary { .. }
        | Op::LibraryInstall(_)
        | Op::LibraryRemove { .. }
        | Op::SessionCreate(_)
        | Op::SessionClose { .. }
        | Op::SessionKill { .. }
        | Op::SessionFork { .. }
        | Op::ExecStart(_)
        | Op::ExecCancel { .. }
        | Op::Shutdown => true,
        Op::TemplateList { .. }
        | Op::TemplateGet { .. }
        | Op::SessionList(_)
        | Op::SessionGet { .. }
        | Op::SessionInspect { .. }
        | Op::ExecList { .. }
        | Op::ExecGet { .. }
        | Op::ExecEvents { .. }
        | Op::ExecWait { .. }
        | Op::AuditList { .. }
        | Op::Health
        | Op::RuntimeSummary
        | Op::RuntimeInfo
        | Op::Doctor
        | Op::ModuleCatalog
        | Op::LibraryCatalog
        | Op::LibraryVerify { .. } => false,
        Op::Durable(op) => durable::changes_something(op),
    }
}

/// The clock, once per use.
fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// The part of a list that is asked for; at most `most` rows, and as many if nothing was said.
fn page(asked: ListPage, most: u32) -> Result<Page, OpError> {
    let limit = rows_of(asked.limit.unwrap_or(most), most)?;
    let after = asked.after.map(|place| Cursor { at: place.at, id: place.id });
    Ok(Page { limit, after })
}

/// How many rows an answer has of those that are asked for.
fn rows_of(limit: u32, most: u32) -> Result<u32, OpError> {
    if limit == 0 {
        return Err(errors::invalid("limit must be at least 1"));
    }
    Ok(limit.min(most))
}

/// The first rows in any case, further ones as far as an answer has room; `weight` is about a row's size (bytes).
fn fitting<T>(rows: impl IntoIterator<Item = T>, weight: impl Fn(&T) -> usize) -> Vec<T> {
    let mut room = REPLY_BYTES;
    let fits = rows.into_iter().enumerate().map_while(|(place, row)| {
        let bytes = weight(&row);
        if place > 0 && bytes > room {
            return None;
        }
        room = room.saturating_sub(bytes);
        Some(row)
    });
    fits.collect()
}
