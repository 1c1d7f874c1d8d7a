//! Questions and their answers.

use super::{question, refused, standing};
use crate::ops::audit::line_of;
use crate::ops::errors::{invalid, stored};
use crate::ops::{Call, Ops, fitting, rows_of};
use crate::store::Page;
use std::sync::Arc;
use vm_system_protocol::control::{DurableReply, ErrorCode, OpError};
use vm_system_protocol::ids::TaskId;
use vm_system_protocol::model::{ExecutionStatus, Task, TaskStatus};

/// Most rows of a list.
const LIST_MAX: u32 = 10_000;
/// Largest answer (bytes).
const ANSWER_BYTES: usize = 8 << 20;

impl Ops {
    pub(super) async fn task_list(&self, call: &Call<'_>, limit: u32) -> Result<DurableReply, OpError> {
        let page = Page::first(rows_of(limit, LIST_MAX)?);
        let rows = self.store.pending_tasks(&call.caller.scope(), page).await.map_err(stored)?;
        let weight = |task: &Task| {
            192 + task.prompt.len() + task.schema.as_ref().map_or(0, |schema| schema.as_str().len())
        };
        Ok(DurableReply::Tasks(fitting(rows.iter().map(question), weight)))
    }

    pub(super) async fn task_get(&self, call: &Call<'_>, reference: &str) -> Result<DurableReply, OpError> {
        let execution = self.run(call, reference).await?.row.execution;
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

    pub(super) async fn task_submit(
        &self,
        call: &Call<'_>,
        reference: &str,
        task: Option<&str>,
        result: String,
    ) -> Result<DurableReply, OpError> {
        if result.len() > ANSWER_BYTES {
            return Err(invalid(format!("the answer has more than {ANSWER_BYTES} bytes")));
        }
        let (id, identity) = self.identity(call, reference).await?;
        let task = match task {
            Some(task) => Some(task.trim().parse::<TaskId>().map_err(|_| {
                OpError::new(ErrorCode::ValidationError, format!("{task:?} is not the id of a task"))
            })?),
            None => None,
        };
        // Stored with the answer: a line of its own would be a commit of its own.
        let with = vec![line_of(call, "task submit", &id.to_string())];
        let submitted = self.durables()?.submit(id, Arc::clone(&identity), (task, result), with).await;
        let result = submitted.map_err(|why| refused(&why, id));
        if result.is_err() {
            self.audit(call, "task submit", id, &result).await;
        }
        Ok(standing(result?, &identity))
    }
}
