//! What the store has of an execution, as a machine.

use super::task::Place;
use super::{Durables, policy};
use crate::core::durable::{DurableMachine, Found, Refused};
use crate::store::{Scope, StoreError};
use std::sync::Arc;
use vm_system_protocol::ids::ExecutionId;

fn failed(error: &StoreError) -> Refused {
    Refused::Storage(error.to_string())
}

pub(super) async fn load(
    durables: &Durables,
    execution: ExecutionId,
) -> Result<(DurableMachine, Place), Refused> {
    let store = &durables.shared.store;
    let record = store.execution(&Scope::All, execution).await.map_err(|error| failed(&error))?;
    let record = record.ok_or(Refused::Ended)?.execution;
    if record.status.is_final() {
        return Err(Refused::Ended);
    }
    let (program, session, snapshot, checkpoint, task) = tokio::join!(
        store.program_run(execution),
        store.session(&Scope::All, record.session_id),
        store.session_policy(record.session_id),
        store.last_checkpoint(execution),
        store.task_of(execution, None),
    );
    let missing = || Refused::Storage("the rows of the execution are incomplete".to_owned());
    let program = program.map_err(|error| failed(&error))?.ok_or_else(missing)?;
    let session = session.map_err(|error| failed(&error))?.ok_or_else(missing)?.session;
    let snapshot = snapshot.map_err(|error| failed(&error))?.ok_or_else(missing)?;
    let template = store.template(&Scope::All, session.template_id).await.map_err(|error| failed(&error))?;
    let policy = Arc::new(policy(&snapshot, template.as_deref(), &durables.shared.operator));
    let spec = durables.spec(&record, &policy);
    let checkpoint = checkpoint.map_err(|error| failed(&error))?.pop().map(|row| (row.seq, row.cause));
    let task = task.map_err(|error| failed(&error))?.map(|row| *row);
    let machine = DurableMachine::found(spec, Found { record, checkpoint, task });
    Ok((machine, Place { program, worktree: session.worktree_path, policy }))
}
