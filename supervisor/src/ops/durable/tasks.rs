//! Questions and their answers.

use super::{identity_of, question, refused, standing};
use crate::ops::audit::line_of;
use crate::ops::errors::{invalid, stored};
use crate::ops::{Call, Ops, fitting, page};
use crate::store::{Entity, IdKind, RunRow, TaskRow};
use std::sync::Arc;
use vm_system_protocol::control::{DurableReply, ErrorCode, GivenAnswer, ListPage, OpError};
use vm_system_protocol::ids::TaskId;
use vm_system_protocol::model::{ExecutionStatus, Task, TaskStatus};

/// Most rows of a list.
const LIST_MAX: u32 = 10_000;
/// Largest answer (bytes).
const ANSWER_BYTES: usize = 8 << 20;

impl Ops {
    pub(super) async fn task_list(&self, call: &Call<'_>, asked: ListPage) -> Result<DurableReply, OpError> {
        let page = page(asked, LIST_MAX)?;
        let rows = self.store.pending_tasks(&call.caller.scope(), page).await.map_err(stored)?;
        let weight = |task: &Task| {
            192 + task.prompt.len() + task.schema.as_ref().map_or(0, |schema| schema.as_str().len())
        };
        Ok(DurableReply::Tasks(fitting(rows.iter().map(question), weight)))
    }

    pub(super) async fn task_get(&self, call: &Call<'_>, reference: &str) -> Result<DurableReply, OpError> {
        let run = match self.run(call, reference).await {
            Ok(run) => run,
            Err(error) => self.run_by_task(call, reference, error).await?.0,
        };
        let execution = run.row.execution;
        let task = if execution.status == ExecutionStatus::Waiting {
            self.store.pending_task(execution.id).await.map_err(stored)?
        } else {
            None
        };
        Ok(DurableReply::TaskStatus(Box::new(TaskStatus {
            execution_id: execution.id,
            status: execution.status,
            task: task.as_deref().map(question),
            result: execution.result,
            error: execution.error,
        })))
    }

    /// The execution that asks a question which is named where there is no execution of that name, and the question.
    async fn run_by_task(
        &self,
        call: &Call<'_>,
        reference: &str,
        error: OpError,
    ) -> Result<(RunRow, TaskId), OpError> {
        if error.code != ErrorCode::ExecutionNotFound {
            return Err(error);
        }
        let task = self.task_by_id(call, reference).await?.ok_or_else(|| error.clone())?;
        let run = self.run_by_id(call, task.execution).await?.ok_or(error)?;
        Ok((run, task.id))
    }

    /// A question by its id, or a unique beginning of it.
    async fn task_by_id(&self, call: &Call<'_>, reference: &str) -> Result<Option<TaskRow>, OpError> {
        let id = match reference.trim().parse::<TaskId>() {
            Ok(id) => Some(id),
            Err(_) => {
                self.by_prefix(call, IdKind::Task, Entity::Task, reference).await?.map(TaskId::from_bytes)
            }
        };
        let Some(id) = id else { return Ok(None) };
        let row = self.store.task(&call.caller.scope(), id).await.map_err(stored)?;
        Ok(row.map(|row| *row))
    }

    pub(super) async fn task_submit(
        &self,
        call: &Call<'_>,
        reference: &str,
        task: Option<&str>,
        result: GivenAnswer,
        wait: bool,
    ) -> Result<DurableReply, OpError> {
        let bytes = match &result {
            GivenAnswer::Typed(text) => text.len(),
            GivenAnswer::Json(json) => json.as_str().len(),
        };
        if bytes > ANSWER_BYTES {
            return Err(invalid(format!("the answer has more than {ANSWER_BYTES} bytes")));
        }
        let task = match task {
            Some(task) => Some(task.trim().parse::<TaskId>().map_err(|_| {
                OpError::new(ErrorCode::ValidationError, format!("{task:?} is not the id of a task"))
            })?),
            None => None,
        };
        let (id, identity, named) = match self.identity(call, reference).await {
            Ok((id, identity)) => (id, identity, None),
            Err(error) => {
                let (run, task) = self.run_by_task(call, reference, error).await?;
                let (id, identity) = identity_of(run);
                (id, identity, Some(task))
            }
        };
        if let (Some(task), Some(named)) = (task, named)
            && task != named
        {
            return Err(invalid("two tasks are named"));
        }
        // Stored with the answer: a line of its own would be a commit of its own.
        let with = vec![line_of(call, "task submit", &id.to_string())];
        let given = (named.or(task), result);
        let submitted = self.durables()?.submit(id, Arc::clone(&identity), given, wait, with).await;
        let result = submitted.map_err(|why| refused(&why, id));
        if result.is_err() {
            self.audit(call, "task submit", id, &result).await;
        }
        Ok(standing(result?, &identity))
    }
}
