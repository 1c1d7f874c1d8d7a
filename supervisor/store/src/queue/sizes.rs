//! The size of a batch, and how it may be divided.

use vm_system_protocol::ids::ExecutionId;
use vm_system_record::{Batch, Write};

/// Whether a write adds to the states that its owner stores.
pub(super) fn has_state(write: &Write) -> bool {
    matches!(write, Write::Checkpoint(_) | Write::CheckpointCopy { .. })
}

/// Whether a batch may be written in pieces: the pages of a checkpoint of an execution that is in the store.
pub(super) fn is_divisible(batch: &Batch) -> bool {
    let begins = |write: &Write| matches!(write, Write::ExecutionStarted { .. });
    let has_pages = |write: &&Write| matches!(write, Write::Checkpoint(_));
    batch.0.iter().filter(has_pages).count() == 1 && !batch.0.iter().any(begins)
}

/// The execution that a batch creates together with states of it.
pub(super) fn imported(batch: &Batch) -> Option<ExecutionId> {
    batch.0.iter().find_map(|write| match write {
        Write::Checkpoint(checkpoint) => {
            let begins = |write: &Write| matches!(write, Write::ExecutionStarted { execution, .. } if execution.id == checkpoint.execution);
            batch.0.iter().any(begins).then_some(checkpoint.execution)
        }
        _ => None,
    })
}

/// About what a batch takes in the database file (bytes).
pub(super) fn file_bytes(batch: &Batch) -> u64 {
    let size = |write: &Write| match write {
        Write::Checkpoint(checkpoint) => checkpoint.file_bytes(),
        write => write_bytes(write) as u64,
    };
    batch.0.iter().map(size).sum()
}

/// Approximate memory of a batch's content (bytes).
pub(super) fn bytes(batch: &Batch) -> usize {
    batch.0.iter().map(write_bytes).sum()
}

pub(crate) fn write_bytes(write: &Write) -> usize {
    match write {
        Write::Events(events) => {
            events.iter().map(|event| 64 + event.payload.output_bytes() as usize).sum::<usize>()
        }
        Write::ExecutionStarted { execution, .. } | Write::ExecutionEnded(execution) => {
            execution.input.as_ref().map_or(0, String::len)
                + execution.args.as_str().len()
                + execution.env.as_str().len()
                + execution.result.as_ref().map_or(0, vm_system_protocol::model::ResultValue::bytes)
                + execution.error.as_ref().map_or(0, |error| error.message.len())
        }
        Write::Checkpoint(checkpoint) => usize::try_from(checkpoint.bytes()).unwrap_or(usize::MAX),
        Write::ProgramVersion(version) | Write::ProgramImport(version) => {
            version.source.len() + version.code.len()
        }
        Write::ScheduleInsert { schedule, .. } => {
            let start = &schedule.spec.start;
            let env = start.env.iter().map(|(name, value)| name.len() + value.len());
            2_048 + start.args.iter().map(String::len).chain(env).sum::<usize>()
        }
        Write::KeyResponse { reply, .. } => reply.len(),
        Write::ItemInsert(task) => {
            let texts = [&task.schema, &task.fallback, &task.answer, &task.name];
            256 + task.prompt.len() + texts.into_iter().flatten().map(String::len).sum::<usize>()
        }
        Write::MailInsert { mail, .. } => 256 + mail.name.len() + mail.event.len(),
        Write::ItemsTaken { items, .. } => 256 + 16 * items.len(),
        Write::ItemEnd { answer, .. } => 256 + answer.as_ref().map_or(0, String::len),
        Write::SessionEnd { last_error, .. } => 256 + last_error.as_ref().map_or(0, String::len),
        _ => 256,
    }
}
