//! Verbs of tasks and their answers.

use super::{ambiguous, refused, task_view};
use crate::audit::line_of;
use crate::errors::{invalid, stored};
use crate::{Ops, VerbCall, fitting, idempotency, now, page};
use std::sync::Arc;
use vm_system_core::Refusal;
use vm_system_core::durable::{DurableRefusal, SubmittedAnswer};
use vm_system_protocol::control::{
    ErrorCode, GivenAnswer, OpError, PendingPrompt, TaskGet, TaskList, TaskPrompts, TaskSubmit,
};
use vm_system_protocol::ids::{ExecutionId, TaskId};
use vm_system_protocol::model::{
    Execution, ExecutionStatus, ListedTask, Run, TaskState, TaskStatus, WaitingFor,
};
use vm_system_protocol::time::Timestamp;
use vm_system_record::{
    Entity, ExecutionRow, IdKind, ItemOutcome, ItemRow, Page, PromptBeginning, Scope, TaskQuery,
};
use vm_system_runtime::RuntimeError;

/// Most rows of a list.
const LIST_MAX: u32 = 10_000;
/// Most tasks with a matching prefix in one response.
const PROMPTS: usize = 1_000;
/// Pending tasks that the refusal of an ambiguous answer names.
const SHOWN_TASKS: u32 = 20;
/// Longest prefix (bytes).
const PROMPT_BYTES: u32 = 4_096;
/// Largest answer (bytes).
pub(super) const ANSWER_BYTES: usize = 8 << 20;

impl Ops {
    pub(crate) async fn task_list(
        &self,
        call: &VerbCall<'_>,
        filter: TaskList,
    ) -> Result<Vec<ListedTask>, OpError> {
        let page = page(filter.page, LIST_MAX)?;
        let owner = filter.owner.as_deref();
        let scope = call.caller.scope_of(owner)?;
        let program = self.program_filter(call, owner, filter.program.as_deref()).await?;
        let execution = match filter.execution.as_deref() {
            Some(reference) => Some(self.execution(call, reference).await?.execution.id),
            None => None,
        };
        let query = TaskQuery { status: filter.status, execution, program, period: filter.period };
        let rows = self.store.tasks(&scope, query, page).await.map_err(stored)?;
        let weight = |listed: &ListedTask| {
            let ListedTask { task, answer, .. } = listed;
            let schema = task.schema.as_ref().map_or(0, |schema| schema.as_str().len());
            256 + task.prompt.len() + schema + answer.as_ref().map_or(0, String::len)
        };
        let shown = rows.into_iter().map(|row| ListedTask {
            task: task_view(&row),
            status: row.outcome.map_or(TaskState::Pending, ItemOutcome::state),
            ended_at: row.ended_at,
            answer: row.answer,
            owner: call.caller.shown_owner(&row.owner),
        });
        Ok(fitting(shown, weight))
    }

    pub(crate) async fn task_prompts(
        &self,
        call: &VerbCall<'_>,
        TaskPrompts { executions, bytes }: TaskPrompts,
    ) -> Result<Vec<PendingPrompt>, OpError> {
        if executions.len() > PROMPTS || bytes > PROMPT_BYTES {
            return Err(invalid(format!("at most {PROMPTS} prefixes of at most {PROMPT_BYTES} bytes")));
        }
        let prompts = self.store.prompts(&call.caller.scope(), &executions, bytes).await.map_err(stored)?;
        let prompts = prompts.into_iter().map(|PromptBeginning { execution, task, text, full_bytes }| {
            let text = if text.len() < full_bytes { format!("{text}… ({full_bytes} bytes)") } else { text };
            PendingPrompt { execution, task, text }
        });
        Ok(prompts.collect())
    }

    pub(crate) async fn task_get(
        &self,
        call: &VerbCall<'_>,
        TaskGet { execution: reference }: TaskGet,
    ) -> Result<TaskStatus, OpError> {
        let ExecutionRow { execution, name, .. } = match self.execution(call, &reference).await {
            Ok(row) => row,
            Err(error) => {
                let asker = self.task_or(call, &reference, error).await?.execution;
                self.execution(call, &asker.to_string()).await?
            }
        };
        // Also of a program that computes: it may wait for an answer meanwhile.
        let task = if execution.status.is_final() {
            None
        } else {
            self.reads_of(call.caller).pending_task(execution.id).await.map_err(stored)?
        };
        let waiting_for = self.reads_of(call.caller).waiting_for(execution.id).await.map_err(stored)?;
        Ok(TaskStatus {
            execution_id: execution.id,
            name,
            status: execution.status,
            more_tasks: waiting_for.questions.saturating_sub(u32::from(task.is_some())),
            waiting_for: Some(waiting_for).filter(|waiting| !waiting.is_nothing()),
            task: task.as_deref().map(task_view),
            result: execution.result,
            error: execution.error,
        })
    }

    /// The task of a reference that is not the name of an execution.
    async fn task_or(
        &self,
        call: &VerbCall<'_>,
        reference: &str,
        error: OpError,
    ) -> Result<ItemRow, OpError> {
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
    ) -> Result<Option<ItemRow>, OpError> {
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

    pub(crate) async fn task_submit(
        &self,
        call: &VerbCall<'_>,
        TaskSubmit { execution: reference, task, result, wait }: TaskSubmit,
    ) -> Result<Run, OpError> {
        // Before the first await: a task that appears while this request waits for the store, or while the rest of it arrives, was not the
        // one that its sender saw.
        let arrived = call.presence.arrived.unwrap_or_else(now);
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
        let (asker, known, named) = match self.identity(call, &reference).await {
            Err(error) if error.code == ErrorCode::ExecutionNotFound => {
                let row = self.task_or(call, &reference, error).await?;
                let asker = row.execution.to_string();
                let known = self.identity(call, &asker).await;
                (asker, known, Some(row.id))
            }
            known => (reference, known, None),
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
                return self.live_submit(call, &asker, (task, result), (arrived, wait)).await;
            }
            Err(error) => return Err(error),
        };
        let pending = self.pending(call, id, task, arrived).await?;
        let task = task.or(pending.as_ref().map(|row| row.id));
        let given = (task, self.checked(call, pending.as_ref(), result).await?);
        // Stored with the answer: a separate write would be a separate commit.
        let mut with = vec![line_of(call, &id.to_string())];
        with.extend(idempotency::taken(call, id));
        let result = match self.durables()?.submit(id, Arc::clone(&identity), given, wait, with).await {
            Ok(submitted) => Ok(submitted),
            Err(why) => Err(self.refused_answer(&why, id, task).await),
        };
        if result.is_err() {
            self.audit(call, id, &result).await;
        }
        self.run_reply(call, result?, &identity).await
    }

    /// The task that an answer is for, if it is stored: the one that it names, or without a name the only one that was pending when the
    /// request arrived.
    async fn pending(
        &self,
        call: &VerbCall<'_>,
        execution: ExecutionId,
        task: Option<TaskId>,
        arrived: Timestamp,
    ) -> Result<Option<ItemRow>, OpError> {
        if let Some(task) = task {
            let row = self.store.task(&Scope::All, task).await.map_err(stored)?;
            return Ok(row.map(|row| *row).filter(|row| row.execution == execution));
        }
        let query = TaskQuery { execution: Some(execution), ..TaskQuery::PENDING };
        let rows = self.store.tasks(&Scope::All, query, Page::first(SHOWN_TASKS)).await.map_err(stored)?;
        let now = self.store.now();
        let mut rows: Vec<ItemRow> =
            rows.into_iter().filter(|row| was_pending(row.created_at, arrived, now)).collect();
        if rows.len() > 1 {
            let tasks: Vec<TaskId> = rows.iter().map(|row| row.id).collect();
            let result = Err(ambiguous(execution, &tasks));
            self.audit(call, execution, &result).await;
            return result;
        }
        if let Some(row) = rows.pop() {
            return Ok(Some(row));
        }
        let row = self.execution(call, &execution.to_string()).await?;
        let is_final = row.execution.status.is_final();
        let why = if is_final { DurableRefusal::Ended } else { DurableRefusal::NotPending };
        let result = Err(self.refused_answer(&why, execution, None).await);
        self.audit(call, execution, &result).await;
        result
    }

    /// The pending task of an execution, if there is one and no second one.
    pub(crate) async fn only_pending(&self, execution: ExecutionId) -> Result<Option<TaskId>, OpError> {
        let query = TaskQuery { execution: Some(execution), ..TaskQuery::PENDING };
        let rows = self.store.tasks(&Scope::All, query, Page::first(2)).await.map_err(stored)?;
        Ok(if let [only] = &rows[..] { Some(only.id) } else { None })
    }

    /// The error of a refused answer to `task`; if another one is pending now, with that one's id. The same one is being answered: its
    /// end is not stored yet.
    async fn refused_answer(
        &self,
        why: &DurableRefusal,
        execution: ExecutionId,
        task: Option<TaskId>,
    ) -> OpError {
        let error = refused(why, execution);
        if *why != DurableRefusal::NotPending {
            return error;
        }
        match self.store.pending_task(execution).await {
            Ok(Some(next)) if task != Some(next.id) => error
                .with_details(&serde_json::json!({ "execution_id": execution, "task_id": next.id }))
                .with_hint(format!(
                    "now the task {} is pending; `vm-system task get {execution}` shows it",
                    next.id
                )),
            _ => error,
        }
    }

    /// Checks an answer to the pending task that the submitter can see. Without such a task the answer is refused later, unless it
    /// needs no check.
    async fn checked(
        &self,
        call: &VerbCall<'_>,
        pending: Option<&ItemRow>,
        given: GivenAnswer,
    ) -> Result<SubmittedAnswer, OpError> {
        match pending {
            Some(row) => {
                let (holder, schema) = (call.caller.holder(), row.schema.as_deref());
                self.checks.answer(&holder, &row.owner, row.id, schema, given).await
            }
            None => Ok(SubmittedAnswer::Unchecked(given)),
        }
    }

    /// Submits the answer to a task of a session's execution.
    async fn live_submit(
        &self,
        call: &VerbCall<'_>,
        reference: &str,
        (task, given): (Option<TaskId>, GivenAnswer),
        (arrived, wait): (Timestamp, bool),
    ) -> Result<Run, OpError> {
        let id = self.execution(call, reference).await?.execution.id;
        let pending = self.pending(call, id, task, arrived).await?;
        let task = task.or(pending.as_ref().map(|row| row.id));
        let given = (task, self.checked(call, pending.as_ref(), given).await?);
        let submitting = self.runtime.submit_answer(id, given, wait);
        let submitted = if wait {
            Box::pin(self.unless_abandoned((call.caller, &call.presence), id, submitting)).await
        } else {
            submitting.await
        };
        let result = match submitted {
            Ok(execution) => Ok(execution),
            Err(RuntimeError::Refused(Refusal::Task(why))) => Err(self.refused_answer(&why, id, task).await),
            Err(error) => Err(error.into()),
        };
        self.audit(call, id, &result).await;
        self.live(call, result?).await
    }

    /// An execution of a session with its pending task.
    pub(crate) async fn live(&self, call: &VerbCall<'_>, execution: Execution) -> Result<Run, OpError> {
        let task = match execution.status {
            ExecutionStatus::Waiting => {
                self.reads_of(call.caller).pending_task(execution.id).await.map_err(stored)?
            }
            _ => None,
        };
        let waits = task.as_ref().map(|task| WaitingFor {
            questions: 1,
            wakes_at: task.deadline,
            ..WaitingFor::default()
        });
        Ok(Run {
            execution,
            name: None,
            program_id: None,
            program: None,
            program_version: None,
            task: task.as_deref().map(task_view),
            waiting_for: waits,
            activity: None,
            abandoned: Vec::new(),
        })
    }
}

/// Whether a task was pending when a request arrived. A task with a time in the future is from before a step of the clock.
fn was_pending(created_at: Timestamp, arrived: Timestamp, now: Timestamp) -> bool {
    created_at <= arrived || created_at > now
}

#[cfg(test)]
mod tests {
    use super::was_pending;
    use vm_system_protocol::time::Timestamp;

    #[test]
    fn an_answer_is_for_a_task_that_was_there_when_it_arrived() {
        let pending =
            |created, arrived, now| was_pending(Timestamp(created), Timestamp(arrived), Timestamp(now));
        assert!(pending(10, 20, 25));
        assert!(pending(20, 20, 20), "a reply and the next answer may share a millisecond");
        assert!(!pending(21, 20, 25), "the task appeared while the answer waited");
        assert!(pending(9_000, 20, 25), "the clock was set back since");
    }
}
