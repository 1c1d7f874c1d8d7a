//! Loads an execution from the store as a state machine with its context. Writes nothing.

use super::files::Used;
use super::hold::RunHold;
use super::live::lock;
use super::task::ProgramContext;
use super::worker::Part;
use super::{Durables, policy};
use std::sync::{Arc, Mutex};
use vm_system_core::durable::{DurableMachine, DurableRefusal, StoredExecution};
use vm_system_policy::{HostUsage, ModuleTotals, SessionUsage};
use vm_system_protocol::ids::ExecutionId;
use vm_system_record::{RunHead, SpentCalls, SpentLimits, StoreError, Write};

fn failed(error: &StoreError) -> DurableRefusal {
    DurableRefusal::Storage(error.to_string())
}

/// The complete state of a checkpoint.
pub(super) type StoredState = (u64, Part);

/// An execution as it is stored.
pub(super) struct FoundRun {
    pub(super) machine: DurableMachine,
    pub(super) context: ProgramContext,
    /// The state, if it was read together with the rows.
    pub(super) whole: Option<StoredState>,
    pub(super) used: Used,
    pub(super) hold: RunHold,
}

pub(super) async fn find(durables: &Durables, execution: ExecutionId) -> Result<FoundRun, DurableRefusal> {
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
        items,
        last_item,
        mailbox,
        limits,
        fence,
        state,
    } = found;
    if record.status.is_final() {
        return Err(DurableRefusal::Ended);
    }
    let policy = Arc::new(policy(&kept, template.as_ref(), &durables.shared.operator));
    let spec = durables.spec(&record, &policy);
    let (after, written) = checkpoint.as_ref().map_or((0, 0), |row| (row.seq, row.written));
    let whole = checkpoint.as_ref().map(|row| row.seq).zip(state);
    let mut hold = RunHold::new(durables.shared.store.clone(), execution, fence, after);
    hold.expect();
    let used = (calls_of(&limits.spent), SessionUsage { written_bytes: written });
    let found = StoredExecution { record, checkpoint, task, items, last_item, mailbox, limits };
    let machine = DurableMachine::from_stored(spec, found);
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
    Ok(FoundRun { machine, context, whole, used: Arc::new(Mutex::new(used)), hold })
}

/// The use of host modules as it is stored.
fn calls_of(spent: &SpentLimits) -> HostUsage {
    HostUsage::of_totals(spent.calls.iter().map(|(name, of_module)| {
        let SpentCalls { calls, denied, refused, bytes_in, bytes_out } = *of_module;
        (name.as_str(), ModuleTotals { calls, denied, refused, bytes_in, bytes_out })
    }))
}

/// Adds the use of host modules to what a batch stores of the limits: calls are counted here, and all else by the machine.
pub(super) fn add_calls(batch: &mut [Write], used: &Used) {
    for write in batch {
        let Write::RunProgress { limits: Some(limits), .. } = write else { continue };
        let used = lock(used);
        limits.spent.calls = used
            .0
            .totals()
            .map(|(name, of_module)| {
                let ModuleTotals { calls, denied, refused, bytes_in, bytes_out } = of_module;
                (name.to_owned(), SpentCalls { calls, denied, refused, bytes_in, bytes_out })
            })
            .filter(|(_, spent)| *spent != SpentCalls::default())
            .collect();
    }
}

#[cfg(test)]
mod tests {
    use super::{add_calls, calls_of};
    use std::sync::{Arc, Mutex};
    use vm_system_policy::{HostUsage, ModuleTotals, SessionUsage};
    use vm_system_protocol::ids::ExecutionId;
    use vm_system_protocol::model::{ExecutionStatus, Metrics};
    use vm_system_record::{UsedLimits, Write};

    #[test]
    fn calls_of_modules_are_stored_with_each_step_and_count_for_the_next_machine() {
        let fs = ModuleTotals { calls: 3, denied: 1, refused: 0, bytes_in: 5, bytes_out: 7 };
        let usage = HostUsage::of_totals([("fs", fs), ("http", ModuleTotals::default())].into_iter());
        let used = Arc::new(Mutex::new((usage, SessionUsage::default())));
        let (id, status, metrics) =
            (ExecutionId::from_bytes([1; 16]), ExecutionStatus::Waiting, Metrics::default());
        let limits = Some(Box::<UsedLimits>::default());
        let mut batch = [Write::RunProgress { id, status, metrics, limits }];
        add_calls(&mut batch, &used);
        let [Write::RunProgress { limits: Some(limits), .. }] = &batch else {
            panic!("it is the same write")
        };
        assert_eq!(limits.spent.calls.len(), 1, "a module without calls takes no space");
        assert_eq!(calls_of(&limits.spent).totals().collect::<Vec<_>>(), [("fs", fs)]);
    }
}
