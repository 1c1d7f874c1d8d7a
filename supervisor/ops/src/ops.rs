//! The path of a request to its verb: idempotency, dispatch, the audit line of a refusal. Knows no single verb.

use crate::audit_marks::AuditMarks;
use crate::backups::Backups;
use crate::idempotency::{IdempotencyKey, InFlight};
use crate::libraries::InstalledLibraries;
use crate::owner_locks::OwnerLocks;
use crate::policies::Policies;
use crate::request::ClientPresence;
use crate::restorations::Restorations;
use crate::sessions::SessionNames;
use crate::waiting::WaitingRequests;
use crate::{ApiRefusal, Caller, VerbHandler, VerbRequest, audit, durable, errors};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use vm_system_protocol::control::{Effect, ErrorCode, ListPage, Op, OpError, Reply, VerbFacts};
use vm_system_protocol::model::Limits;
use vm_system_protocol::time::Timestamp;
use vm_system_record::{Cursor, Page};
use vm_system_runtime::Follower;
use vm_system_runtime::RuntimeApi;
use vm_system_runtime::client_memory::ReplyMemory;
use vm_system_spawn::libraries::LibraryStore;
use vm_system_store::{BoxFuture, StoreHandle};

/// Rows of a list without a limit of its own, at most.
pub(crate) const LIST_ROWS: u32 = 10_000;
/// Largest content of one response (bytes); lists and events end early there. Fits a frame of the control socket.
pub(crate) const REPLY_BYTES: usize = 12 << 20;
/// Memory that is reserved before a verb reads what may be as large as that: its rows, and their encoded form.
pub(crate) const LARGE_READ_BYTES: usize = 32 << 20;

/// The permissions and limits of the operator.
#[derive(Debug, Clone)]
pub struct OpsOptions {
    /// The highest limits that templates may set.
    pub ceilings: Limits,
    /// The operator has configured roots of worktrees. If not, only administrators name a worktree: the supervisor would
    /// read files for others that they may not read themselves.
    pub worktrees_confined: bool,
    /// The operator lists commands for the `exec` module.
    pub commands_listed: bool,
    /// Which of the operator's figures the limit of descriptors has lowered, and what to do about it.
    pub lowered: Option<String>,
}

impl Default for OpsOptions {
    fn default() -> Self {
        Self {
            ceilings: Limits::default_ceilings(),
            worktrees_confined: true,
            commands_listed: false,
            lowered: None,
        }
    }
}

/// All verbs. Share it in an [`Arc`].
pub struct Ops {
    pub(crate) store: StoreHandle,
    pub(crate) runtime: Arc<dyn RuntimeApi>,
    pub(crate) options: OpsOptions,
    pub(crate) policies: Arc<Policies>,
    pub(crate) restorations: Restorations,
    /// The built-in template has a row.
    pub(crate) built_in_row: tokio::sync::OnceCell<()>,
    pub(crate) in_flight: InFlight,
    pub(crate) refusals: audit::Budget,
    pub(crate) audit_marks: AuditMarks,
    pub(crate) library_store: LibraryStore,
    pub(crate) installed: Mutex<InstalledLibraries>,
    /// Held while a verb reads a template, decides and writes.
    pub(crate) deciding: OwnerLocks,
    /// Held while libraries are installed or removed. One for all: the limit of their number and the folder of their sources are.
    pub(crate) installing: tokio::sync::Mutex<()>,
    pub(crate) imports: Arc<durable::Imports>,
    pub(crate) session_names: SessionNames,
    pub(crate) backups: Arc<Backups>,
    pub(crate) waiting: WaitingRequests,
    pub(crate) checks: Arc<durable::CheckThreads>,
    pub(crate) stop: CancellationToken,
    pub(crate) started: Instant,
}

/// One verb under way.
pub(crate) struct VerbCall<'a> {
    pub(crate) caller: &'a Caller,
    pub(crate) presence: ClientPresence,
    /// The verb's name in the audit log.
    pub(crate) verb: &'static str,
    /// Id of the row that the verb inserts.
    pub(crate) subject: Uuid,
    /// Receives the events of a followed execution.
    pub(crate) follower: Option<Follower>,
    /// The audit log has a line about the call.
    pub(crate) noted: AtomicBool,
    pub(crate) key: Option<&'a IdempotencyKey>,
    /// The memory of the reply.
    pub(crate) memory: ReplyMemory,
}

impl<'a> VerbCall<'a> {
    /// A call without a client.
    pub(crate) fn of_nobody(caller: &'a Caller, verb: &'static str, subject: Uuid) -> Self {
        Self {
            caller,
            presence: ClientPresence::default(),
            verb,
            subject,
            follower: None,
            noted: AtomicBool::default(),
            key: None,
            memory: ReplyMemory::default(),
        }
    }
}

impl Ops {
    /// `library_store` has the sources of installed libraries; `stop` is cancelled when a caller requests a stop of the
    /// supervisor.
    pub fn new(
        store: StoreHandle,
        runtime: Arc<dyn RuntimeApi>,
        options: OpsOptions,
        library_store: LibraryStore,
        stop: CancellationToken,
    ) -> Self {
        let policies = Policies::new(store.clone(), options.ceilings.clone());
        Self {
            store,
            runtime,
            options,
            policies: Arc::new(policies),
            restorations: Restorations::default(),
            built_in_row: tokio::sync::OnceCell::new(),
            in_flight: InFlight::default(),
            refusals: audit::Budget::default(),
            audit_marks: AuditMarks::default(),
            library_store,
            installed: Mutex::default(),
            deciding: OwnerLocks::default(),
            installing: tokio::sync::Mutex::default(),
            imports: Arc::default(),
            session_names: SessionNames::default(),
            backups: Arc::default(),
            waiting: WaitingRequests::default(),
            checks: Arc::default(),
            stop,
            started: Instant::now(),
        }
    }

    /// The store, with what a caller writes in the lane of its owner.
    pub(crate) fn store_of(&self, call: &crate::VerbCall<'_>) -> StoreHandle {
        self.store.for_owner(&call.caller.owner)
    }

    /// The store, with what a caller reads in the turns of its owner; administrators have those of the system.
    pub(crate) fn reads_of(&self, caller: &Caller) -> StoreHandle {
        if caller.admin { self.store.clone() } else { self.store.for_owner(&caller.owner) }
    }

    /// Runs a verb; a row that it inserts gets the id `subject`.
    pub(crate) async fn perform(
        &self,
        (caller, presence): (&Caller, &ClientPresence),
        (subject, key): (Uuid, Option<&IdempotencyKey>),
        (follower, memory): (Option<Follower>, ReplyMemory),
        op: Op,
    ) -> Result<Reply, OpError> {
        let VerbFacts { name, effect, subject: about } = op.facts();
        let about = about.to_owned();
        let noted = AtomicBool::new(false);
        let presence = presence.clone();
        let call = VerbCall { caller, presence, verb: name, subject, follower, noted, key, memory };
        let result = self.run_handler(&call, effect, op).await;
        if let Err(error) = &result
            && !call.noted.load(Ordering::Relaxed)
        {
            Box::pin(self.refused_verb(&call, effect, &about, error.code)).await;
        }
        result
    }

    /// Runs the handler of a verb; one without effects when its owner has memory for the reply, and not any further once its client
    /// has gone.
    async fn run_handler(&self, call: &VerbCall<'_>, effect: Effect, op: Op) -> Result<Reply, OpError> {
        if effect == Effect::ReadsMuch && !op.follows() {
            call.memory.reserve(LARGE_READ_BYTES).await?;
        }
        // These verbs decide themselves about the execution when the client has gone.
        let decides = call.presence.cancel_on_disconnect && matches!(op, Op::ExecWait(_) | Op::ExecEvents(_));
        if effect.changes() || decides {
            return self.dispatch(call, op).await;
        }
        tokio::select! {
            result = self.dispatch(call, op) => result,
            () = call.memory.client_gone() => {
                Err(OpError::new(ErrorCode::InvalidRequest, "the client has gone before its reply"))
            }
        }
    }
}

impl VerbHandler for Ops {
    fn handle(&self, request: VerbRequest) -> BoxFuture<'_, Result<Reply, OpError>> {
        let VerbRequest { caller, idempotency_key, op, events, memory, presence } = request;
        Box::pin(async move {
            match idempotency_key {
                Some(key) if op.facts().effect.changes() => {
                    Box::pin(self.once((&caller, &presence), op, &key, events)).await
                }
                _ => self.perform((&caller, &presence), (Uuid::now_v7(), None), (events, memory), op).await,
            }
        })
    }

    fn refused(&self, refusal: ApiRefusal) -> BoxFuture<'_, ()> {
        Box::pin(self.refused_by_api(refusal))
    }
}

/// The clock, once per use.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// The requested part of a list: at most `most` rows, which is also the default.
pub(crate) fn page(list: ListPage, most: u32) -> Result<Page, OpError> {
    let limit = rows_of(list.limit.unwrap_or(most), most)?;
    let after = list.after.map(|last| Cursor { at: last.at, id: last.id });
    Ok(Page { limit, after })
}

/// The number of rows in a response.
pub(crate) fn rows_of(limit: u32, most: u32) -> Result<u32, OpError> {
    if limit == 0 {
        return Err(errors::invalid("limit must be at least 1"));
    }
    Ok(limit.min(most))
}

/// The first row in any case, more as far as they fit a response; `weight` is about a row's size (bytes).
pub(crate) fn fitting<T>(rows: impl IntoIterator<Item = T>, weight: impl Fn(&T) -> usize) -> Vec<T> {
    let mut left = REPLY_BYTES;
    let fits = rows.into_iter().enumerate().map_while(|(place, row)| {
        let bytes = weight(&row);
        if place > 0 && bytes > left {
            return None;
        }
        left = left.saturating_sub(bytes);
        Some(row)
    });
    fits.collect()
}
