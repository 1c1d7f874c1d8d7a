//! Idempotency keys: a repeated request gets the first response again. A key belongs to one owner and one request for 24 h.
//!
//! A key is claimed (committed) before the verb runs, with the id of the row that the verb will insert; its response is stored
//! after the verb. A repeated request waits while the verb runs. If the supervisor exited in between, its successor takes the key over,
//! by compare-and-set, which it does not while the process that claimed it lives. Then the id decides ([`made`]): if
//! the row exists, it is the response, and otherwise the verb runs now. So the row of an execution with a key is committed before the
//! worker gets it, and a session that ended before it was ready counts as none. Refusals that changed nothing release the key: the
//! same request may succeed later. The key of an answer is bound to its task ([`answer`]); an answer to a program marks the key in its own
//! commit, too.

mod answer;
mod key;
mod made;

pub use key::IdempotencyKey;

use super::errors::{invalid, not_found, stored};
use super::request::ClientPresence;
use super::{Caller, Ops, VerbCall};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::sync::watch;
use uuid::Uuid;
use vm_system_protocol::codec;
use vm_system_protocol::control::{
    Effect, ErrorCode, ExecGet, ExecStart, ExecutionState, Op, OpError, Reply, TaskSubmit, Verb,
};
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::limits::CONTROL_FRAME_BYTES;
use vm_system_protocol::model::{Event, EventPayload, ExecutionStatus};
use vm_system_record::{
    Entity, Incarnation, KEY_LIFE, KeyClaim, KeyRow, Owner, Rejection, Scope, StoreError, Write, earlier,
};
use vm_system_runtime::Follower;
use vm_system_runtime::client_memory::ReplyMemory;

/// Longer requests are hashed on another thread (bytes).
const HASHED_AT_ONCE: usize = 256 << 10;

type VerbResult = Result<Reply, OpError>;
type Name = (Owner, IdempotencyKey);

/// Keys whose verbs run in this process.
#[derive(Default)]
pub(super) struct InFlight(Mutex<HashMap<Name, Running>>);

#[derive(Clone)]
struct Running {
    request_hash: [u8; 32],
    /// Id of the row that the verb inserts, once the key is claimed.
    subject: Arc<OnceLock<[u8; 16]>>,
    response: watch::Receiver<Option<Arc<VerbResult>>>,
}

/// Removes the key from the table however the verb ends.
struct Entry<'a> {
    table: &'a InFlight,
    name: Name,
    subject: Arc<OnceLock<[u8; 16]>>,
    response: watch::Sender<Option<Arc<VerbResult>>>,
}

impl Entry<'_> {
    /// Owner and key, as the key's row has them.
    fn row(&self) -> (Owner, String) {
        let (owner, key) = &self.name;
        (owner.clone(), key.to_string())
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.table.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.name);
    }
}

impl InFlight {
    /// An entry that permits to run the verb, or the run that is under way.
    fn enter(&self, name: Name, request_hash: [u8; 32]) -> Result<Entry<'_>, Running> {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = table.get(&name) {
            return Err(running.clone());
        }
        let (response, watched) = watch::channel(None);
        let subject = Arc::<OnceLock<_>>::default();
        table
            .insert(name.clone(), Running { request_hash, subject: Arc::clone(&subject), response: watched });
        Ok(Entry { table: self, name, subject, response })
    }
}

impl Ops {
    pub(super) async fn once(
        &self,
        (caller, presence): (&Caller, &ClientPresence),
        op: Op,
        key: &IdempotencyKey,
        follower: Option<Follower>,
    ) -> Result<Reply, OpError> {
        let Op::ImportEnd(end) = &op else {
            return self.run_once((caller, presence), op, key, follower).await;
        };
        let import = end.import.clone();
        let response = self.run_once((caller, presence), op, key, follower).await;
        // The file of a repeated or refused request was not used.
        self.imports.forget(caller, &import);
        response
    }

    async fn run_once(
        &self,
        (caller, presence): (&Caller, &ClientPresence),
        op: Op,
        key: &IdempotencyKey,
        follower: Option<Follower>,
    ) -> Result<Reply, OpError> {
        let hash = self.request_hash(caller, &op).await?;
        let name = (caller.owner.clone(), key.clone());
        match self.in_flight.enter(name, hash) {
            Ok(entry) => {
                let response = self.first((caller, presence), op, &entry, hash, follower).await;
                // No error if no repeated request waits.
                let _ = entry.response.send(Some(Arc::new(response.clone())));
                response
            }
            Err(running) if running.request_hash != hash => Err(mismatch(key)),
            Err(mut running) => {
                let waiting = async {
                    match running.response.wait_for(Option::is_some).await {
                        Ok(response) => response.clone(),
                        Err(_) => None,
                    }
                };
                let response = match (&op, running.subject.get()) {
                    (Op::ExecStart(_), Some(id)) => {
                        let id = ExecutionId::from_bytes(*id);
                        self.unless_abandoned((caller, presence), id, waiting).await
                    }
                    _ => waiting.await,
                };
                match response {
                    Some(response) => self.again(caller, (*response).clone(), follower).await,
                    None => Err(OpError::new(ErrorCode::Internal, "the first request was interrupted")
                        .with_hint("try again with the same key")),
                }
            }
        }
    }

    async fn first(
        &self,
        (caller, presence): (&Caller, &ClientPresence),
        mut op: Op,
        entry: &Entry<'_>,
        hash: [u8; 32],
        follower: Option<Follower>,
    ) -> VerbResult {
        let (owner, key) = &entry.name;
        let expired_before = earlier(self.store.now(), KEY_LIFE);
        let known = self.store.key(owner, key.as_str()).await.map_err(stored)?;
        let subject = match known.filter(|row| row.created_at >= expired_before) {
            Some(row) if row.request_hash != hash => return Err(mismatch(key)),
            Some(KeyRow { reply, subject, holder, .. }) => {
                if reply.is_none() {
                    self.take_over(entry, holder).await?;
                }
                // None: a supervisor exited between claim and response, or the response was too large to keep.
                let taken = reply.as_deref().and_then(execution_of);
                let bound = reply.as_deref().and_then(answer::task_of);
                let response = match (taken, bound) {
                    (Some(id), _) => Some(self.after_answer(&repetition(caller, &op, subject), id).await),
                    (None, Some(task)) => {
                        let answered = self.answered(caller, &op, task).await?;
                        answer::name_task(&mut op, task);
                        answered
                    }
                    (None, None) => match reply.as_deref().map(decode) {
                        // The end of the execution could not be stored then; it may be by now.
                        Some(Ok(Err(error))) if error.has_run() => {
                            let made = self.made(caller, &op, subject).await?;
                            Some(made.ok_or(error))
                        }
                        Some(Ok(response)) => Some(response),
                        undecodable => match self.made(caller, &op, subject).await? {
                            Some(reply) => Some(Ok(reply)),
                            // A response exists, so the verb ran: do not run it again.
                            None => undecodable.transpose()?,
                        },
                    },
                };
                if let Some(response) = response {
                    return self.again(caller, response, follower).await;
                }
                if made::needs_another_id(&op) { self.claim(entry, hash, true, None).await? } else { subject }
            }
            None => {
                let mark = self.bind_answer(caller, &mut op).await?;
                self.claim(entry, hash, false, mark).await?
            }
        };
        let effect = op.facts().effect;
        // From now on a repeated request can wait for the same row.
        let _ = entry.subject.set(subject);
        let subject = (Uuid::from_bytes(subject), Some(key));
        let response =
            self.perform((caller, presence), subject, (follower, ReplyMemory::default()), op).await;
        self.keep(entry, &response, effect).await;
        response
    }

    /// Takes over a key without a response. Of this process it is not under way any more: the table in memory has those that are. One of
    /// another process that lives is not taken: its request runs.
    async fn take_over(&self, entry: &Entry<'_>, from: Option<Incarnation>) -> Result<(), OpError> {
        let to = self.store.incarnation();
        match from {
            Some(holder) if holder == to => return Ok(()),
            Some(holder) if self.store.is_live(holder) => return Err(taken_by_another()),
            _ => {}
        }
        let (owner, key) = entry.row();
        let write = Write::KeyTakeOver { owner, key, from, to };
        self.store.for_owner(&entry.name.0).apply(write).await.map_err(claimed)?;
        Ok(())
    }

    /// Claims a key, with the id of the row that the verb will insert; `anew`: instead of the id that it has. `reply` is its mark.
    async fn claim(
        &self,
        entry: &Entry<'_>,
        request_hash: [u8; 32],
        anew: bool,
        reply: Option<Vec<u8>>,
    ) -> Result<[u8; 16], OpError> {
        let (owner, key) = entry.row();
        let at = self.store.now();
        let subject = Uuid::now_v7().into_bytes();
        let release = anew.then(|| Write::KeyRelease { owner: owner.clone(), key: key.clone() });
        let expired_before = earlier(at, KEY_LIFE);
        let holder = self.store.incarnation();
        let claim = KeyClaim { owner, key, request_hash, subject, at, expired_before, reply, holder };
        let batch: Vec<Write> = release.into_iter().chain([Write::KeyClaim(Box::new(claim))]).collect();
        self.store.for_owner(&entry.name.0).apply(batch).await.map_err(claimed)?;
        Ok(subject)
    }

    /// A file is sent again when its import is repeated: the hash is of the file, not of the import's id.
    pub(super) async fn request_hash(&self, caller: &Caller, op: &Op) -> Result<[u8; 32], OpError> {
        if let Op::ImportEnd(end) = op {
            return self.imports.fingerprint(caller, &end.import);
        }
        let bytes = codec::encode(op, usize::MAX).map_err(|error| invalid(error.to_string()))?;
        if bytes.len() <= HASHED_AT_ONCE {
            return Ok(Sha256::digest(bytes).into());
        }
        self.checks.blocking(&caller.holder(), move || Sha256::digest(bytes).into()).await
    }

    /// Stores the response, or releases the key. A failure leaves the claim: the next request with the key finds the row.
    async fn keep(&self, entry: &Entry<'_>, response: &VerbResult, effect: Effect) {
        let (owner, key) = entry.row();
        let write = match counts(response, effect) {
            OnRepeat::Replay => match codec::encode(response, CONTROL_FRAME_BYTES) {
                Ok(reply) => Write::KeyResponse { owner, key, reply },
                // Too large to keep: the record itself is the response.
                Err(_) => return,
            },
            OnRepeat::FindOrRun => return,
            OnRepeat::Run => Write::KeyRelease { owner, key },
        };
        if let Err(error) = self.store.for_owner(&entry.name.0).apply(write).await {
            tracing::warn!(%error, "the response for an idempotency key was not stored");
        }
    }

    /// The state of an execution to which an answer was submitted under this key.
    async fn after_answer(&self, call: &VerbCall<'_>, id: ExecutionId) -> VerbResult {
        let made = self.run_made(call, id).await?;
        let run = made.ok_or_else(|| not_found(Entity::Execution, &id.to_string()))?;
        Ok(TaskSubmit::any_reply(run))
    }

    /// Repeats a response; a follower gets the events too.
    async fn again(&self, caller: &Caller, response: VerbResult, follower: Option<Follower>) -> VerbResult {
        let (Ok(Reply::ExecStart(state)), Some(follower)) = (&response, &follower) else { return response };
        match &**state {
            ExecutionState::Execution(execution) if execution.events.is_none() => {
                let id = execution.id;
                let was_running = self.follow_again(caller, id, follower).await?;
                if was_running && execution.status == ExecutionStatus::Running {
                    return self.stop_of(caller, id).await.map(ExecStart::any_reply);
                }
            }
            // The execution waited for a task: the events until then.
            ExecutionState::Run(run) if run.execution.events.is_none() => {
                self.stored_events(caller, run.execution.id, 0, follower).await?;
            }
            ExecutionState::Execution(_) | ExecutionState::Run(_) => {}
        }
        response
    }
}

impl Ops {
    /// Sends the events of an execution from the first one on, until it has ended or waits for an answer; whether it ran.
    async fn follow_again(
        &self,
        caller: &Caller,
        id: ExecutionId,
        follower: &Follower,
    ) -> Result<bool, OpError> {
        // The client's follower reserves the memory of the events, so this one has no budget.
        let (own, mut batches) = vm_system_runtime::follower(1, ReplyMemory::default());
        let mut following = pin!(self.runtime.follow(id, 0, own));
        loop {
            tokio::select! {
                biased;
                Some(batch) = batches.recv() => {
                    let is_task = |event: &Event| matches!(event.payload, EventPayload::Task { .. });
                    let waits = batch.events.iter().any(is_task);
                    if follower.send(&batch.events).await.is_err() {
                        return Ok(true);
                    }
                    if waits && !self.is_running(id).await? {
                        return Ok(true);
                    }
                }
                followed = &mut following => {
                    while let Ok(batch) = batches.try_recv() {
                        // A client that has gone needs no events.
                        let _ = follower.send(&batch.events).await;
                    }
                    if followed.is_none() {
                        self.stored_events(caller, id, 0, follower).await?;
                    }
                    return Ok(followed.is_some());
                }
            }
        }
    }

    async fn is_running(&self, id: ExecutionId) -> Result<bool, OpError> {
        let row = self.store.execution(&Scope::All, id).await.map_err(stored)?;
        Ok(row.is_some_and(|row| row.execution.status == ExecutionStatus::Running))
    }

    /// An execution that does not run any more, without its events.
    async fn stop_of(&self, caller: &Caller, id: ExecutionId) -> Result<ExecutionState, OpError> {
        let row = self.store.execution(&Scope::All, id).await.map_err(stored)?;
        let row = row.ok_or_else(|| not_found(Entity::Execution, &id.to_string()))?;
        if row.execution.status == ExecutionStatus::Waiting {
            let op = ExecGet { execution: id.to_string() }.into();
            let call = repetition(caller, &op, *id.as_bytes());
            return self.live(&call, row.execution).await.map(ExecutionState::Run);
        }
        Ok(ExecutionState::Execution(row.execution))
    }
}

/// A call that reads the row of an earlier call with the same key.
fn repetition<'a>(caller: &'a Caller, op: &Op, subject: [u8; 16]) -> VerbCall<'a> {
    VerbCall::of_nobody(caller, op.facts().name, Uuid::from_bytes(subject))
}

fn decode(reply: &[u8]) -> Result<VerbResult, OpError> {
    codec::decode(reply).map_err(|error| {
        tracing::error!(%error, "the stored response for an idempotency key cannot be read");
        OpError::new(ErrorCode::Internal, "the stored response for this idempotency key cannot be read")
            .with_hint("use another key")
    })
}

/// Prefix of what a submitted answer stores under its key, in its own commit; the execution's id follows.
const TAKEN: &[u8] = b"taken";

/// The mark for an answer to a task of this execution, if the call has a key.
pub(super) fn taken(call: &VerbCall<'_>, execution: ExecutionId) -> Option<Write> {
    let (owner, key) = (call.caller.owner.clone(), call.key?.to_string());
    let reply = [TAKEN, execution.as_bytes()].concat();
    Some(Write::KeyResponse { owner, key, reply })
}

/// The response of a call that has a key, for the batch of its change: a repeated deletion would not find what it has to delete.
pub(super) fn response<V: Verb>(call: &VerbCall<'_>, reply: &V::Reply) -> Option<Write> {
    let (owner, key) = (call.caller.owner.clone(), call.key?.to_string());
    let response: VerbResult = Ok(V::any_reply(reply.clone()));
    let reply = codec::encode(&response, CONTROL_FRAME_BYTES).ok()?;
    Some(Write::KeyResponse { owner, key, reply })
}

/// The execution of such a mark. No encoded response begins like a mark.
fn execution_of(reply: &[u8]) -> Option<ExecutionId> {
    reply.strip_prefix(TAKEN)?.try_into().ok().map(ExecutionId::from_bytes)
}

/// How a repeated request with the key is handled.
pub(super) enum OnRepeat {
    /// The same response: the verb succeeded, or failed after changes that a repetition would duplicate.
    Replay,
    /// The row if it exists, otherwise the verb runs: the first run was interrupted.
    FindOrRun,
    /// The verb runs: nothing was changed.
    Run,
}

pub(super) fn counts(response: &VerbResult, effect: Effect) -> OnRepeat {
    let Err(error) = response else { return OnRepeat::Replay };
    match error.code {
        ErrorCode::OutputLimitExceeded
        | ErrorCode::StartupFailed
        | ErrorCode::LibraryNotInstalled
        | ErrorCode::LibraryCorrupt
        // Counts as an attempt.
        | ErrorCode::AnswerInvalid => OnRepeat::Replay,
        // Accepted or started work is stored, or will be.
        ErrorCode::ShuttingDown => OnRepeat::FindOrRun,
        ErrorCode::CapacityExceeded | ErrorCode::StorageUnavailable if effect == Effect::ChangesProgram => {
            OnRepeat::FindOrRun
        }
        // The code ran: the same request must not run it again.
        ErrorCode::StorageUnavailable if error.has_run() => OnRepeat::Replay,
        // A session without a worker has a row.
        ErrorCode::CapacityExceeded if error.details.is_some() => OnRepeat::Replay,
        _ => OnRepeat::Run,
    }
}

fn mismatch(key: &IdempotencyKey) -> OpError {
    OpError::new(
        ErrorCode::IdempotencyMismatch,
        format!("the idempotency key {:?} belongs to another request", key.as_str()),
    )
    .with_hint("a new request needs a new key")
}

/// The table in memory makes claims of this process unique: only another process with the same database could interfere.
fn claimed(error: StoreError) -> OpError {
    match error {
        StoreError::Rejected(Rejection::Conflict(Entity::Key)) => taken_by_another(),
        other => stored(other),
    }
}

fn taken_by_another() -> OpError {
    OpError::new(ErrorCode::Conflict, "the idempotency key was taken at this moment")
        .with_hint("try again with the same key")
}
