//! The verbs of the product: one handler each, the same for every door.
//!
//! Owns validation, what a caller may see, references to ids, and idempotency. Knows no door (no JSON envelopes, no HTTP,
//! no frames), no SQL, no process: rows are the store's, live sessions the runtime's.
//!
//! Reading order:
//! - this file: [`Ops`] and the way of a request to its verb; [`request`]: what an API hands over
//! - [`verbs`]: the table of verbs: names, effects, handlers
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
mod request;
mod resolve;
mod runtime;
mod sessions;
mod settings;
mod startup_files;
mod templates;
#[cfg(test)]
mod tests;
mod verbs;

pub use crate::runtime::{RuntimeApi, RuntimeFacts};
pub use request::{ApiRefusal, Caller, VerbHandler, VerbRequest};

use crate::libraries::Shelf;
use crate::runtime::Follower;
use crate::store::{BoxFuture, Cursor, Page, StoreHandle};
use idempotency::InFlight;
use libraries::Installed;
use policies::Policies;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use verbs::{Effect, VerbFacts};
use vm_system_protocol::control::{ListPage, Op, OpError, Reply};
use vm_system_protocol::model::Limits;
use vm_system_protocol::time::Timestamp;

/// Rows of a list without a limit of its own, at most.
const LIST_ROWS: u32 = 10_000;
/// Content of one answer, at most (bytes); lists and events end early there. Fits a frame of the control socket.
const REPLY_BYTES: usize = 12 << 20;

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
    /// The verb's name in the audit log.
    verb: &'static str,
    /// Id of what the verb makes.
    subject: Uuid,
    /// Where the events of a followed execution go.
    follower: Option<Follower>,
    /// The audit log has a line about it.
    noted: AtomicBool,
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

    /// Runs a verb whose thing, if it makes one, gets this id; with its key, if it has one.
    async fn perform(
        &self,
        caller: &Caller,
        (subject, key): (Uuid, Option<&str>),
        follower: Option<Follower>,
        op: Op,
    ) -> Result<Reply, OpError> {
        let VerbFacts { audit_name, effect, subject: about } = verbs::facts(&op);
        let about = about.to_owned();
        let noted = AtomicBool::new(false);
        let call = Call { caller, verb: audit_name, subject, follower, noted, key };
        let result = self.dispatch(&call, op).await;
        if let Err(error) = &result
            && !call.noted.load(Ordering::Relaxed)
        {
            Box::pin(self.refused_verb(&call, effect, &about, error.code)).await;
        }
        result
    }
}

impl VerbHandler for Ops {
    fn handle(&self, request: VerbRequest) -> BoxFuture<'_, Result<Reply, OpError>> {
        let VerbRequest { caller, idempotency_key, op, events } = request;
        Box::pin(async move {
            match idempotency_key {
                Some(key) if verbs::facts(&op).effect == Effect::Changes => {
                    Box::pin(self.once(&caller, op, &key, events)).await
                }
                _ => self.perform(&caller, (Uuid::now_v7(), None), events, op).await,
            }
        })
    }

    fn refused(&self, refusal: ApiRefusal) -> BoxFuture<'_, ()> {
        Box::pin(self.refused_by_api(refusal))
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
