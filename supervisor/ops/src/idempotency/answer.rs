//! Answers under a key. The key is bound to the task that is pending when it is claimed, so that a repeated request never answers the
//! next one, also if the supervisor exited between the answer and its response.

use super::{VerbResult, repetition};
use crate::errors::stored;
use crate::{Caller, Ops, VerbCall};
use vm_system_protocol::control::{GivenAnswer, Op, OpError, TaskSubmit, Verb as _};
use vm_system_protocol::ids::TaskId;
use vm_system_protocol::model::ExecutionKind;
use vm_system_record::{ItemOutcome, ItemRow};

/// Prefix of what the claim of a key stores for an answer; the task's id follows.
const BOUND: &[u8] = b"bound";

/// The mark for this task.
fn mark(task: TaskId) -> Vec<u8> {
    [BOUND, task.as_bytes()].concat()
}

/// The task of such a mark. No encoded response begins like a mark.
pub(super) fn task_of(reply: &[u8]) -> Option<TaskId> {
    reply.strip_prefix(BOUND)?.try_into().ok().map(TaskId::from_bytes)
}

/// Names the task that the request answers.
pub(super) fn name_task(op: &mut Op, id: TaskId) {
    if let Op::TaskSubmit(submit) = op {
        submit.task = Some(id.to_string());
    }
}

impl Ops {
    /// Names the task that a request is about to answer, if it is an answer, and returns the mark for its key.
    pub(super) async fn bind_answer(&self, caller: &Caller, op: &mut Op) -> Result<Option<Vec<u8>>, OpError> {
        let Op::TaskSubmit(submit) = &*op else { return Ok(None) };
        let TaskSubmit { execution, task: None, .. } = &**submit else { return Ok(None) };
        let call = repetition(caller, op, [0; 16]);
        let pending = match self.execution(&call, execution).await {
            // None of several: refused by the verb.
            Ok(row) => self.only_pending(row.execution.id).await?,
            // Refused by the verb, or a reference to a task.
            Err(_) => self.task_by_id(&call, execution).await?.map(|row| row.id),
        };
        Ok(pending.map(|task| {
            name_task(op, task);
            mark(task)
        }))
    }

    /// The state of the execution if this task has the answer of the request, or may have it; none if the task is pending, or has
    /// another answer: then the verb decides.
    pub(super) async fn answered(
        &self,
        caller: &Caller,
        op: &Op,
        task: TaskId,
    ) -> Result<Option<VerbResult>, OpError> {
        let Op::TaskSubmit(submit) = op else { return Ok(None) };
        let call = repetition(caller, op, *task.as_bytes());
        let Some(row) = self.store.task(&caller.scope(), task).await.map_err(stored)? else {
            return Ok(None);
        };
        if !self.may_have(&call, &row, &submit.result).await? {
            return Ok(None);
        }
        let id = row.execution.to_string();
        let row = self.execution(&call, &id).await?;
        if row.execution.kind == ExecutionKind::Program {
            return Ok(Some(self.after_answer(&call, row.execution.id).await));
        }
        let now = if submit.wait { self.until_stopped(&call, row.execution).await? } else { row.execution };
        Ok(Some(self.live(&call, now).await.map(TaskSubmit::any_reply)))
    }

    /// Whether a task that has ended may have this answer.
    async fn may_have(
        &self,
        call: &VerbCall<'_>,
        row: &ItemRow,
        answer: &GivenAnswer,
    ) -> Result<bool, OpError> {
        match row.outcome {
            Some(ItemOutcome::Answered) => {
                let given = self
                    .checks
                    .answer(&call.caller.holder(), &row.owner, row.id, row.schema.as_deref(), answer.clone())
                    .await?;
                Ok(given.for_task(row).is_some_and(|answer| answer.ok() == row.answer))
            }
            // The worker had an answer that the exited supervisor did not store.
            Some(ItemOutcome::Withdrawn) => Ok(true),
            _ => Ok(false),
        }
    }
}
