//! Workers for one request: compiling, inspecting a state, verifying some. Each gets one request, replies, and is killed.

use super::worker::{LoadedWorker, Order, WorkerStartError, memory, name, order};
use super::{Durables, policy};
use crate::api::RuntimeError;
use crate::shares::Share;
use std::collections::BTreeMap;
use std::time::Duration;
use vm_system_core::durable::{LoadFrom, life};
use vm_system_protocol::control::OtherValue;
use vm_system_protocol::durable::{
    Cause, DurableLimits, FromDurable, PAGE_BATCH_BYTES, StatePage, ToDurable,
};
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::model::{Diagnostic, Limits, ProgramState};
use vm_system_protocol::worker::FromWorker;
use vm_system_record::{Owner as Principal, Scope};
use vm_system_spawn::{Spawner, WorkerChannelError, WorkerHandle, WorkerKind, WorkerLimits};

/// A request must have its reply within this time.
const PATIENCE: Duration = Duration::from_secs(30);
/// Memory and CPU time of a compilation.
const COMPILE_BYTES: u64 = 512 << 20;
const COMPILE_CPU: Duration = Duration::from_secs(20);
/// Pages that changes of variables may change (bytes): they are written at once.
const EDITED_BYTES: usize = 16 << 20;
/// Memory of a page besides its content (bytes).
const PAGE_ROW_BYTES: usize = 64;

/// Pages by number; none: the page is removed.
pub(super) type EditedPages = BTreeMap<u64, Option<Vec<u8>>>;

impl From<WorkerStartError> for RuntimeError {
    fn from(error: WorkerStartError) -> Self {
        match error {
            WorkerStartError::Store(error) => Self::Store(error),
            WorkerStartError::Stopping => Self::ShuttingDown,
            other => Self::Internal(other.to_string()),
        }
    }
}

/// A request to a worker, with the type of its reply.
trait WorkerRequest {
    type Reply;

    /// `None`: the message is no reply to such a request.
    fn reply_from(message: FromDurable) -> Option<Self::Reply>;
}

/// Compiles a source text.
enum Compile {}

impl WorkerRequest for Compile {
    type Reply = Result<CompiledSource, Vec<Diagnostic>>;

    fn reply_from(message: FromDurable) -> Option<Self::Reply> {
        match message {
            FromDurable::Compiled { code, typescript } => Some(Ok(CompiledSource { code, typescript })),
            FromDurable::NotCompiled(diagnostics) => Some(Err(diagnostics)),
            _ => None,
        }
    }
}

/// Restores a state whose pages were sent; the error is the reason why it cannot be.
enum Restore {}

impl WorkerRequest for Restore {
    type Reply = Result<(), String>;

    fn reply_from(message: FromDurable) -> Option<Self::Reply> {
        match message {
            FromDurable::Restored => Some(Ok(())),
            FromDurable::Refused { why } => Some(Err(why)),
            _ => None,
        }
    }
}

/// Reads frames and variables of the restored state.
enum Inspect {}

impl WorkerRequest for Inspect {
    type Reply = Result<Box<ProgramState>, String>;

    fn reply_from(message: FromDurable) -> Option<Self::Reply> {
        match message {
            FromDurable::View(view) => Some(Ok(view)),
            FromDurable::Refused { why } => Some(Err(why)),
            _ => None,
        }
    }
}

/// Changes a variable; the reply is none if it cannot be set, and otherwise a part of the changed pages.
enum Set {}

impl WorkerRequest for Set {
    type Reply = Option<ChangedPages>;

    fn reply_from(message: FromDurable) -> Option<Self::Reply> {
        match message {
            FromDurable::NotSet => Some(None),
            FromDurable::Pages(pages) => Some(Some(ChangedPages { pages, is_last: false })),
            FromDurable::SmallCheckpoint { pages, stop } if stop.cause == Cause::Edited => {
                Some(Some(ChangedPages { pages, is_last: true }))
            }
            FromDurable::Checkpoint(stop) if stop.cause == Cause::Edited => {
                Some(Some(ChangedPages { pages: Vec::new(), is_last: true }))
            }
            _ => None,
        }
    }
}

/// A part of the pages that the change of a variable has changed.
struct ChangedPages {
    pages: Vec<StatePage>,
    is_last: bool,
}

/// The worker's reply to a request that it has. A worker may send anything: what is no such reply is an error here, and nowhere else.
async fn receive<R: WorkerRequest>(handle: &mut WorkerHandle) -> Result<R::Reply, RuntimeError> {
    let message = match tokio::time::timeout(PATIENCE, handle.receiver.recv()).await {
        Ok(Ok(received)) => received.message,
        Ok(Err(error)) => {
            return Err(RuntimeError::Internal(format!("the worker exited during the request: {error}")));
        }
        Err(_) => return Err(RuntimeError::Internal("the worker did not reply in time".to_owned())),
    };
    let reply = match message {
        FromWorker::Durable(message) => R::reply_from(*message),
        _ => None,
    };
    reply.ok_or_else(|| RuntimeError::Internal("the worker sent an unexpected reply".to_owned()))
}

/// A worker without code, with the slot and jail that it holds until it exits. The start slot is released:
/// other workers do not wait for its reply.
async fn blank(
    durables: &Durables,
    owner: &Principal,
    limits: &WorkerLimits,
) -> Result<(WorkerHandle, Share, Spawner), RuntimeError> {
    let (slot, _start_permit) = durables.start_slot(&durables.shared.holder(owner)).await?;
    let jails = durables.shared.jails.jails_of(owner).await.map_err(WorkerStartError::from)?;
    let spawned = jails.spawn_worker(name(), owner, limits, &WorkerKind::Program).await;
    let (handle, jail) = spawned.map_err(WorkerStartError::from)?;
    Ok((handle, slot, jail))
}

/// A compiled source text.
#[derive(Debug)]
pub struct CompiledSource {
    pub code: Vec<u8>,
    /// The text was read as TypeScript (true) or JavaScript (false).
    pub typescript: bool,
}

pub(super) async fn compile(
    durables: &Durables,
    owner: &Principal,
    source: String,
    file_name: String,
    typescript: Option<bool>,
) -> Result<Result<CompiledSource, Vec<Diagnostic>>, RuntimeError> {
    // Acquired before a worker's slot: waiting compilations must not fill the slots of programs.
    let holder = durables.shared.holder(owner);
    let _turn = durables.compilations.wait(&holder, 1).await.ok_or(WorkerStartError::Stopping)?;
    let limits = WorkerLimits { memory_bytes: COMPILE_BYTES, cpu: Some(COMPILE_CPU) };
    let (mut handle, slot, jail) = blank(durables, owner, &limits).await?;
    let request = order(ToDurable::Compile { source, file_name, typescript });
    let reply = match handle.sender.send(&request).await {
        Ok(()) => receive::<Compile>(&mut handle).await,
        Err(error) => Err(WorkerStartError::from(error).into()),
    };
    durables.end(handle.process.clone(), (handle, slot, jail));
    reply
}

/// Frames and variables of a program at a stored checkpoint.
pub(super) async fn inspect(
    durables: &Durables,
    execution: ExecutionId,
    checkpoint: u64,
) -> Result<ProgramState, RuntimeError> {
    let mut stored = StoredState::load(durables, execution, checkpoint).await?;
    let inspected = stored.inspect().await;
    stored.end().await?;
    inspected?.map(|state| *state).map_err(RuntimeError::Invalid)
}

/// Checks that a worker can restore a stored checkpoint; the inner error is the reason as text.
pub(super) async fn verify_stored(
    durables: &Durables,
    execution: ExecutionId,
    checkpoint: u64,
) -> Result<Result<(), String>, RuntimeError> {
    let mut stored = StoredState::load(durables, execution, checkpoint).await?;
    let restored = receive::<Restore>(&mut stored.handle).await;
    stored.end().await?;
    restored
}

/// Restores stored checkpoints one after the other in the same worker; the first that it refuses is an error with its number and
/// the reason. A checkpoint that is deleted meanwhile is passed over.
pub(super) async fn verify_all_stored(
    durables: &Durables,
    execution: ExecutionId,
    checkpoints: &[u64],
) -> Result<Result<(), (u64, String)>, RuntimeError> {
    let Some(&first) = checkpoints.first() else { return Ok(Ok(())) };
    let order_ = stored_order(durables, execution, first).await?;
    let holder = durables.shared.holder(&order_.owner);
    let _turn = durables.inspections.wait(&holder, 1).await.ok_or(WorkerStartError::Stopping)?;
    let LoadedWorker { mut handle, start_permit, slot, jail, .. } =
        durables.start_worker(order_.clone()).await?;
    drop(start_permit);
    let refused = first_refused(durables, &mut handle, order_, checkpoints).await;
    durables.end(handle.process.clone(), (handle, slot, jail));
    let Some((number, why)) = refused? else { return Ok(Ok(())) };
    let kept = durables.shared.store.checkpoints(execution).await.map_err(RuntimeError::Store)?;
    Ok(if kept.iter().any(|row| row.seq == number) { Err((number, why)) } else { Ok(()) })
}

/// The first checkpoint that a worker refuses; the worker has the first one already.
async fn first_refused(
    durables: &Durables,
    handle: &mut WorkerHandle,
    mut order: Order,
    checkpoints: &[u64],
) -> Result<Option<(u64, String)>, RuntimeError> {
    for (index, &number) in checkpoints.iter().enumerate() {
        if index > 0 {
            order.from = LoadFrom::Checkpoint(number);
            let part = durables.part(&order, None).await.map_err(RuntimeError::Store)?;
            durables.send_checkpoint(handle, &order, part).await?;
        }
        if let Err(why) = receive::<Restore>(handle).await? {
            return Ok(Some((number, why)));
        }
    }
    Ok(None)
}

/// The pages of a stored checkpoint that change with these variables, `None` for one that is removed; the inner error is the first
/// variable that cannot be set.
pub(super) async fn edit(
    durables: &Durables,
    execution: ExecutionId,
    checkpoint: u64,
    variables: &[OtherValue],
) -> Result<Result<EditedPages, String>, RuntimeError> {
    let mut stored = StoredState::load(durables, execution, checkpoint).await?;
    let edited = stored.edit(variables).await;
    stored.end().await?;
    edited
}

/// A worker that restores a stored checkpoint.
struct StoredState<'a> {
    durables: &'a Durables,
    execution: ExecutionId,
    checkpoint: u64,
    handle: WorkerHandle,
    slot: Share,
    jail: Spawner,
    _turn: Share,
}

impl<'a> StoredState<'a> {
    async fn load(
        durables: &'a Durables,
        execution: ExecutionId,
        checkpoint: u64,
    ) -> Result<Self, RuntimeError> {
        let order_ = stored_order(durables, execution, checkpoint).await?;
        let holder = durables.shared.holder(&order_.owner);
        let turn = durables.inspections.wait(&holder, 1).await.ok_or(WorkerStartError::Stopping)?;
        let LoadedWorker { handle, start_permit, slot, jail, .. } = durables.start_worker(order_).await?;
        // The start slot is released at once: restoring may take long.
        drop(start_permit);
        Ok(Self { durables, execution, checkpoint, handle, slot, jail, _turn: turn })
    }

    async fn inspect(&mut self) -> Result<Result<Box<ProgramState>, String>, RuntimeError> {
        if let Err(why) = receive::<Restore>(&mut self.handle).await? {
            return Ok(Err(why));
        }
        self.handle.sender.send(&order(ToDurable::Inspect)).await.map_err(WorkerStartError::from)?;
        receive::<Inspect>(&mut self.handle).await
    }

    async fn edit(&mut self, variables: &[OtherValue]) -> Result<Result<EditedPages, String>, RuntimeError> {
        let state = self.inspect().await?.map_err(RuntimeError::Invalid)?;
        let (mut edited, mut bytes) = (EditedPages::new(), 0);
        for OtherValue { name, value, frame } in variables {
            let frame = frame.unwrap_or_else(|| state.frame_with(name));
            let set = ToDurable::Set { frame, name: name.clone(), value: value.clone() };
            self.handle.sender.send(&order(set)).await.map_err(WorkerStartError::from)?;
            loop {
                let Some(changed) = receive::<Set>(&mut self.handle).await? else {
                    return Ok(Err(name.clone()));
                };
                for StatePage { number, bytes: page } in changed.pages {
                    bytes += page.len() + PAGE_ROW_BYTES;
                    if !StatePage::is_possible(number) || bytes > EDITED_BYTES {
                        let message = "the variables change more of the state than permitted";
                        return Err(RuntimeError::Invalid(message.to_owned()));
                    }
                    edited.insert(number, (!page.is_empty()).then_some(page));
                }
                if changed.is_last {
                    break;
                }
            }
        }
        Ok(Ok(edited))
    }

    /// Ends the worker. An error: the checkpoint was deleted meanwhile, so that the worker may not have had all of it.
    async fn end(self) -> Result<(), RuntimeError> {
        let Self { durables, execution, checkpoint, handle, slot, jail, _turn } = self;
        durables.end(handle.process.clone(), (handle, slot, jail));
        // A large state is read in parts: no part may have been deleted meanwhile.
        let kept = durables.shared.store.checkpoints(execution).await.map_err(RuntimeError::Store)?;
        if kept.iter().any(|row| row.seq == checkpoint) {
            Ok(())
        } else {
            Err(RuntimeError::Invalid("the checkpoint was deleted".to_owned()))
        }
    }
}

/// The order for a worker with the state of a stored checkpoint.
async fn stored_order(
    durables: &Durables,
    execution: ExecutionId,
    checkpoint: u64,
) -> Result<Order, RuntimeError> {
    let store = &durables.shared.store;
    let missing = || RuntimeError::Invalid("the execution has no state".to_owned());
    let record = store.execution(&Scope::All, execution).await.map_err(RuntimeError::Store)?;
    let row = record.ok_or_else(missing)?;
    let (owner, record) = (row.owner, row.execution);
    let program = store.program_run(execution).await.map_err(RuntimeError::Store)?.ok_or_else(missing)?;
    let snapshot = store.session_policy(record.session_id).await.map_err(RuntimeError::Store)?;
    let spec =
        durables.spec(&record, &policy(&*snapshot.ok_or_else(missing)?, None, &durables.shared.operator));
    Ok(Order {
        execution,
        session: record.session_id,
        owner,
        program,
        from: LoadFrom::Checkpoint(checkpoint),
        pages: None,
        life: spec.life(),
        limits: spec.limits,
    })
}

/// Restores one state after the other in the same worker; the first that it refuses is an error with its number and the reason.
pub(super) async fn verify<'a>(
    durables: &Durables,
    owner: &Principal,
    limits: Limits,
    code: Vec<u8>,
    states: impl Iterator<Item = (u64, BTreeMap<u64, &'a [u8]>)> + Send,
) -> Result<Result<(), (u64, String)>, RuntimeError> {
    let holder = durables.shared.holder(owner);
    let _turn = durables.inspections.wait(&holder, 1).await.ok_or(WorkerStartError::Stopping)?;
    let (mut handle, slot, jail) = blank(durables, owner, &memory(&limits)).await?;
    let verdict = restore_each(&mut handle, code, life(&limits), states).await;
    durables.end(handle.process.clone(), (handle, slot, jail));
    verdict
}

async fn restore_each<'a>(
    handle: &mut WorkerHandle,
    code: Vec<u8>,
    limits: DurableLimits,
    states: impl Iterator<Item = (u64, BTreeMap<u64, &'a [u8]>)> + Send,
) -> Result<Result<(), (u64, String)>, RuntimeError> {
    handle.sender.send(&order(ToDurable::Load { code, limits })).await.map_err(WorkerStartError::from)?;
    for (number, pages) in states {
        send_state(handle, pages).await.map_err(WorkerStartError::from)?;
        if let Err(why) = receive::<Restore>(handle).await? {
            return Ok(Err((number, why)));
        }
    }
    Ok(Ok(()))
}

/// Sends pages in batches, and the message to restore the state.
async fn send_state(
    handle: &mut WorkerHandle,
    pages: BTreeMap<u64, &[u8]>,
) -> Result<(), WorkerChannelError> {
    let (mut batch, mut bytes) = (Vec::new(), 0);
    for (number, page) in pages {
        bytes += page.len();
        batch.push(StatePage { number, bytes: page.to_vec() });
        if bytes >= PAGE_BATCH_BYTES {
            bytes = 0;
            handle.sender.send(&order(ToDurable::Pages(std::mem::take(&mut batch)))).await?;
        }
    }
    if !batch.is_empty() {
        handle.sender.send(&order(ToDurable::Pages(batch))).await?;
    }
    handle.sender.send(&order(ToDurable::Restore)).await
}
