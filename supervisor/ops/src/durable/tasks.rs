//! Verbs of tasks and their answers.

use super::{refused, run_reply, task_view};
use crate::audit::line_of;
use crate::errors::{invalid, stored};
use crate::{Ops, VerbCall, fitting, idempotency, page};
use std::sync::Arc;
use vm_system_core::Refusal;
use vm_system_core::durable::SubmittedAnswer;
use vm_system_protocol::control::{DurableReply, ErrorCode, GivenAnswer, ListPage, OpError};
use vm_system_protocol::ids::{ExecutionId, TaskId};
use vm_system_protocol::model::{Execution, ExecutionStatus, Run, Task, TaskStatus};
use vm_system_record::{Entity, ExecutionRow, IdKind, PromptBeginning, TaskRow};
use vm_system_runtime::RuntimeError;

/// Most rows of a list.
const LIST_MAX: u32 = 10_000;
/// Most tasks with a matching prefix in one response.
const PROMPTS: usize = 1_000;
/// Longest prefix (bytes).
const PROMPT_BYTES: u32 = 4_096;
/// Largest answer (bytes).
pub(super) const ANSWER_BYTES: usize = 8 << 20;

impl Ops {
    pub(super) async fn task_list(
        &self,
        call: &VerbCall<'_>,
        list: ListPage,
    ) -> Result<DurableReply, OpError> {
        let page = page(list, LIST_MAX)?;
        let rows = self.store.pending_tasks(&call.caller.scope(), page).await.map_err(stored)?;
        let weight = |task: &Task| {
            192 + task.prompt.len() + task.schema.as_ref().map_or(0, |schema| schema.as_str().len())
        };
        Ok(DurableReply::Tasks(fitting(rows.iter().map(task_view), weight)))
    }

    pub(super) async fn prompts(
        &self,
        call: &VerbCall<'_>,
        executions: Vec<ExecutionId>,
        bytes: u32,
    ) -> Result<DurableReply, OpError> {
        if executions.len() > PROMPTS || bytes > PROMPT_BYTES {
            return Err(invalid(format!("at most {PROMPTS} prefixes of at most {PROMPT_BYTES} bytes")));
        }
        let prompts = self.store.prompts(&call.caller.scope(), executions, bytes).await.map_err(stored)?;
        let prompts = prompts.into_iter().map(|PromptBeginning { execution, text, full_bytes }| {
            let text = if text.len() < full_bytes { format!("{text}… ({full_bytes} bytes)") } else { text };
            (execution, text)
        });
        Ok(DurableReply::Prompts(prompts.collect()))
    }

    pub(super) async fn task_get(
        &self,
        call: &VerbCall<'_>,
        reference: &str,
    ) -> Result<DurableReply, OpError> {
        let ExecutionRow { execution, name, .. } = match self.execution(call, reference).await {
            Ok(row) => row,
            Err(error) => {
                let asker = self.task_or(call, reference, error).await?.execution;
                self.execution(call, &asker.to_string()).await?
            }
        };
        let task = if execution.status == ExecutionStatus::Waiting {
            self.reads_of(call.caller).pending_task(execution.id).await.map_err(stored)?
        } else {
            None
        };
        Ok(DurableReply::TaskStatus(Box::new(TaskStatus {
            execution_id: execution.id,
            name,
            status: execution.status,
            task: task.as_deref().map(task_view),
            result: execution.result,
            error: execution.error,
        })))
    }

    /// The task of a reference that is not the name of an execution.
    async fn task_or(
        &self,
        call: &VerbCall<'_>,
        reference: &str,
        error: OpError,
    ) -> Result<TaskRow, OpError> {
        if error.code != ErrorCode::ExecutionNotFound {
            return Err(error);
        }
        self.task_by_id(call, reference).await?.ok_or(error)
    }

    /// A task by its id, or a unique prefix of it.
    pub(crate) async fn task_by_id(
        &self,
        call: &VerbCall<'_>,
        reference: &str,
    ) -> Result<Option<TaskRow>, OpError> {
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
        call: &VerbCall<'_>,
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
                    .with_hint("`vm-system task list` shows the ids of the pending tasks")
            })?),
            None => None,
        };
        let (asker, known, named) = match self.identity(call, reference).await {
            Err(error) if error.code == ErrorCode::ExecutionNotFound => {
                let row = self.task_or(call, reference, error).await?;
                let asker = row.execution.to_string();
                let known = self.identity(call, &asker).await;
                (asker, known, Some(row.id))
            }
            known => (reference.to_owned(), known, None),
        };
        if let (Some(task), Some(named)) = (task, named)
            && task != named
        {
            return Err(invalid("the request names two tasks"));
        }
        let task = named.or(task);
        let (id, identity) = match known {
            Ok(known) => known,
            Err(error) if error.code == ErrorCode::EngineUnsupported => {
                return self.live_submit(call, &asker, (task, result), wait).await;
            }
            Err(error) => return Err(error),
        };
        let given = (task, self.checked(call, id, result).await?);
        // Stored with the answer: a separate write would be a separate commit.
        let mut with = vec![line_of(call, &id.to_string())];
        with.extend(idempotency::taken(call, id));
        let submitted = self.durables()?.submit(id, Arc::clone(&identity), given, wait, with).await;
        let result = submitted.map_err(|why| refused(&why, id));
        if result.is_err() {
            self.audit(call, id, &result).await;
        }
        Ok(run_reply(call.caller, result?, &identity))
    }

    /// Checks an answer to the pending task that the submitter can see. Without such a task the answer is refused later, unless it
    /// needs no check.
    async fn checked(
        &self,
        call: &VerbCall<'_>,
        execution: ExecutionId,
        given: GivenAnswer,
    ) -> Result<SubmittedAnswer, OpError> {
        match self.store.pending_task(execution).await.map_err(stored)? {
            Some(row) => {
                let task = (&row.owner, row.id, row.schema.as_deref());
                self.checks.answer(&call.caller.holder(), task, given).await
            }
            None => Ok(SubmittedAnswer::Unchecked(given)),
        }
    }

    /// Submits the answer to a task of a session's execution.
    async fn live_submit(
        &self,
        call: &VerbCall<'_>,
        reference: &str,
        given: (Option<TaskId>, GivenAnswer),
        wait: bool,
    ) -> Result<DurableReply, OpError> {
        let id = self.execution(call, reference).await?.execution.id;
        let (task, given) = given;
        let given = (task, self.checked(call, id, given).await?);
        let result = match self.runtime.submit_answer(id, given, wait).await {
            Ok(execution) => Ok(execution),
            Err(RuntimeError::Refused(Refusal::Task(why))) => Err(refused(&why, id)),
            Err(error) => Err(error.into()),
        };
        self.audit(call, id, &result).await;
        self.live(call, result?).await
    }

    /// An execution of a session with its pending task.
    pub(crate) async fn live(
        &self,
        call: &VerbCall<'_>,
        execution: Execution,
    ) -> Result<DurableReply, OpError> {
        let task = match execution.status {
            ExecutionStatus::Waiting => {
                self.reads_of(call.caller).pending_task(execution.id).await.map_err(stored)?
            }
            _ => None,
        };
        let task = task.as_deref().map(task_view);
        let run = Run { execution, name: None, program_id: None, program: None, program_version: None, task };
        Ok(DurableReply::Run(Box::new(run)))
    }
}
