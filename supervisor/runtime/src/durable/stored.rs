//! Loads an execution from the store as a state machine with its context. Writes nothing.

use super::task::ProgramContext;
use super::worker::Part;
use super::{Durables, policy};
use std::sync::Arc;
use vm_system_core::durable::{DurableMachine, DurableRefusal, StoredExecution};
use vm_system_protocol::ids::ExecutionId;
use vm_system_record::{RunHead, StoreError};

fn failed(error: &StoreError) -> DurableRefusal {
    DurableRefusal::Storage(error.to_string())
}

/// The complete state of a checkpoint.
pub(super) type StoredState = (u64, Part);

pub(super) async fn load(
    durables: &Durables,
    execution: ExecutionId,
) -> Result<(DurableMachine, ProgramContext, Option<StoredState>), DurableRefusal> {
    let found = durables.shared.store.run_head(execution).await.map_err(|error| failed(&error))?;
    let found = *found.ok_or(DurableRefusal::Ended)?;
    let RunHead {
        execution: record,
        program,
        version,
        owner,
        worktree_path,
        worktree: recorded,
        policy: kept,
        template,
        checkpoint,
        task,
        state,
    } = found;
    if record.status.is_final() {
        return Err(DurableRefusal::Ended);
    }
    let policy = Arc::new(policy(&kept, template.as_ref(), &durables.shared.operator));
    let spec = durables.spec(&record, &policy);
    let (unweighed, written) = checkpoint.as_ref().map_or((None, 0), |row| (row.unweighed, row.written));
    let checkpoint = checkpoint.map(|row| (row.seq, row.cause));
    let whole = checkpoint.as_ref().map(|(seq, _)| *seq).zip(state);
    let machine =
        DurableMachine::from_stored(spec, StoredExecution { record, checkpoint, unweighed, written, task });
    let user_gone = match &recorded {
        Some(recorded) => durables.shared.user_gone(recorded, &owner).await,
        None => None,
    };
    let context = ProgramContext {
        program: (program, version),
        worktree: worktree_path,
        recorded,
        user_gone,
        reported: Arc::default(),
        owner,
        policy,
    };
    Ok((machine, context, whole))
}
