//! Workers for one request: compiling, inspecting a state, verifying some. Each gets one request, replies, and is killed.

use super::worker::{LoadedWorker, Order, WorkerStartError, memory, name, order};
use super::{Durables, policy};
use crate::api::RuntimeError;
use crate::shares::Share;
use std::collections::BTreeMap;
use std::time::Duration;
use vm_system_core::durable::{LoadFrom, life};
use vm_system_protocol::durable::{DurableLimits, FromDurable, PAGE_BATCH_BYTES, StatePage, ToDurable};
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

impl From<WorkerStartError> for RuntimeError {
    fn from(error: WorkerStartError) -> Self {
        match error {
            WorkerStartError::Store(error) => Self::Store(error),
            WorkerStartError::Stopping => Self::ShuttingDown,
            other => Self::Internal(other.to_string()),
        }
    }
}

/// The worker's next message.
async fn receive(handle: &mut WorkerHandle) -> Result<FromDurable, RuntimeError> {
    match tokio::time::timeout(PATIENCE, handle.receiver.recv()).await {
        Ok(Ok(received)) => match received.message {
            FromWorker::Durable(message) => Ok(*message),
            _ => Err(RuntimeError::Internal("the worker sent an unexpected reply".to_owned())),
        },
        Ok(Err(error)) => {
            Err(RuntimeError::Internal(format!("the worker exited during the request: {error}")))
        }
        Err(_) => Err(RuntimeError::Internal("the worker did not reply in time".to_owned())),
    }
}

/// A worker without code, with the slot and jail that it holds until it exits. The start slot is released:
/// other workers do not wait for its reply.
async fn blank(
    durables: &Durables,
    owner: &Principal,
    limits: &WorkerLimits,
) -> Result<(WorkerHandle, Share, Spawner), RuntimeError> {
    let (slot, _start_permit) = durables.start_slot(&durables.shared.holder(owner)).await?;
    let jails = durables.shared.jails.of(owner).await.map_err(WorkerStartError::from)?;
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
        Ok(()) => receive(&mut handle).await,
        Err(error) => Err(WorkerStartError::from(error).into()),
    };
    durables.end(handle.process.clone(), (handle, slot, jail));
    match reply? {
        FromDurable::Compiled { code, typescript } => Ok(Ok(CompiledSource { code, typescript })),
        FromDurable::NotCompiled(diagnostics) => Ok(Err(diagnostics)),
        _ => Err(RuntimeError::Internal("the worker sent an unexpected reply".to_owned())),
    }
}

/// Frames and variables of a program at a stored checkpoint.
pub(super) async fn inspect(
    durables: &Durables,
    execution: ExecutionId,
    checkpoint: u64,
) -> Result<ProgramState, RuntimeError> {
    match restore_stored(durables, execution, checkpoint, Some(ToDurable::Inspect)).await? {
        FromDurable::View(view) => Ok(*view),
        FromDurable::Refused { why } => Err(RuntimeError::Invalid(why)),
        _ => Err(RuntimeError::Internal("the worker sent an unexpected reply".to_owned())),
    }
}

/// Checks that a worker can restore a stored checkpoint; the inner error is the reason as text.
pub(super) async fn verify_stored(
    durables: &Durables,
    execution: ExecutionId,
    checkpoint: u64,
) -> Result<Result<(), String>, RuntimeError> {
    match restore_stored(durables, execution, checkpoint, None).await? {
        FromDurable::Restored => Ok(Ok(())),
        FromDurable::Refused { why } => Ok(Err(why)),
        _ => Err(RuntimeError::Internal("the worker sent an unexpected reply".to_owned())),
    }
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
        match receive(handle).await? {
            FromDurable::Restored => {}
            FromDurable::Refused { why } => return Ok(Some((number, why))),
            _ => return Err(RuntimeError::Internal("the worker sent an unexpected reply".to_owned())),
        }
    }
    Ok(None)
}

/// The reply of a worker that has restored a stored checkpoint, to that or to a request that follows.
async fn restore_stored(
    durables: &Durables,
    execution: ExecutionId,
    checkpoint: u64,
    then: Option<ToDurable>,
) -> Result<FromDurable, RuntimeError> {
    let order_ = stored_order(durables, execution, checkpoint).await?;
    let holder = durables.shared.holder(&order_.owner);
    let _turn = durables.inspections.wait(&holder, 1).await.ok_or(WorkerStartError::Stopping)?;
    // The start slot is released at once: restoring may take long.
    let LoadedWorker { mut handle, start_permit, slot, jail, .. } = durables.start_worker(order_).await?;
    drop(start_permit);
    let reply = restored(&mut handle, then).await;
    durables.end(handle.process.clone(), (handle, slot, jail));
    // A large state is read in parts: no part may have been deleted meanwhile.
    let kept = durables.shared.store.checkpoints(execution).await.map_err(RuntimeError::Store)?;
    if !kept.iter().any(|row| row.seq == checkpoint) {
        return Err(RuntimeError::Invalid("the checkpoint was deleted".to_owned()));
    }
    reply
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
        match receive(handle).await? {
            FromDurable::Restored => {}
            FromDurable::Refused { why } => return Ok(Err((number, why))),
            _ => return Err(RuntimeError::Internal("the worker sent an unexpected reply".to_owned())),
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

async fn restored(handle: &mut WorkerHandle, then: Option<ToDurable>) -> Result<FromDurable, RuntimeError> {
    match (receive(handle).await?, then) {
        (FromDurable::Restored, Some(request)) => {
            handle.sender.send(&order(request)).await.map_err(WorkerStartError::from)?;
            receive(handle).await
        }
        (reply, _) => Ok(reply),
    }
}
