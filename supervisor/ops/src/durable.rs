//! Verbs of durable programs. Reading order: this file (shared functions), `programs`, `runs`
//! (executions), `tasks` (tasks and their answers), `events` (events for programs), `answers` (threads for checks), `states` (checkpoints, inspecting, rewinding), `reruns` (continuing with other answers), `current` (a client's
//! current execution), `archive` (the file of an export), `export`, `import` (receiving a file in parts), `imported` (storing
//! it), `plans` (plans, and the program that walks through one), `schedules` (times at which programs are started).

mod answers;
mod archive;
mod current;
mod events;
mod export;
mod import;
mod imported;
mod plans;
mod programs;
mod reruns;
mod runs;
mod schedules;
mod states;
mod tasks;

pub(super) use answers::CheckThreads;
pub(super) use import::Imports;

use super::errors::{invalid, stored};
use super::{Caller, Ops, VerbCall};
use std::sync::Arc;
use vm_system_core::durable::{DurableRefusal, RunStatus};
use vm_system_protocol::control::{ErrorCode, OpError};
use vm_system_protocol::counted::counted;
use vm_system_protocol::ids::{ExecutionId, ProgramId, TaskId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{AbandonedItem, Engine, Execution, Run, Task, WaitKind};
use vm_system_record::{Entity, IdKind, ItemOutcome, ItemRow, ProgramRow, RunRow, Scope};
use vm_system_runtime::{Durables, RunIdentity};

/// Abandoned items that are shown.
const ABANDONED: u32 = 100;
/// The part of an abandoned question that is shown (bytes).
const SHOWN_PROMPT_BYTES: usize = 200;
/// The part of an answer that was not used that is shown (bytes); `task list --all` has all of it.
const SHOWN_ANSWER_BYTES: usize = 4 << 10;
/// Longest name of a program or an execution (characters).
const NAME_CHARS: usize = 200;

impl Ops {
    fn durables(&self) -> Result<&Arc<Durables>, OpError> {
        self.runtime.durables().ok_or_else(|| OpError::new(ErrorCode::Internal, "there is no durable engine"))
    }

    /// The reply of a verb that returns the state of an execution.
    async fn run_reply(
        &self,
        call: &VerbCall<'_>,
        status: RunStatus,
        identity: &RunIdentity,
    ) -> Result<Run, OpError> {
        let (id, abandons) = (status.record.id, status.abandons);
        let mut run = run_reply(call.caller, status, identity);
        if abandons {
            run.abandoned = self.abandoned(call, id).await?;
        }
        Ok(run)
    }

    async fn abandoned(&self, call: &VerbCall<'_>, id: ExecutionId) -> Result<Vec<AbandonedItem>, OpError> {
        let rows = self.reads_of(call.caller).abandoned(id, ABANDONED).await.map_err(stored)?;
        Ok(rows.into_iter().map(abandoned_view).collect())
    }

    async fn program(&self, call: &VerbCall<'_>, reference: &str) -> Result<ProgramRow, OpError> {
        self.program_among(call, &call.caller.own(), reference).await
    }

    /// A program by its id, or by its name among those of `named`.
    async fn program_among(
        &self,
        call: &VerbCall<'_>,
        named: &Scope,
        reference: &str,
    ) -> Result<ProgramRow, OpError> {
        let scope = call.caller.scope();
        let reference = super::resolve::plausible("program", reference)?;
        let whole = reference.parse::<ProgramId>().ok();
        let mut row = match whole {
            Some(id) => self.store.program(&scope, id).await.map_err(stored)?,
            None => None,
        };
        if row.is_none() {
            row = self.store.program_by_name(named, reference).await.map_err(stored)?;
        }
        if row.is_none()
            && whole.is_none()
            && let Some(id) = self.by_prefix(call, IdKind::Program, Entity::Program, reference).await?
        {
            row = self.store.program(&scope, ProgramId::from_bytes(id)).await.map_err(stored)?;
        }
        match row {
            Some(row) => Ok(*row),
            None => Err(self.unknown(call, Entity::Program, reference).await),
        }
    }

    /// An execution of a program that the caller may see.
    async fn run(&self, call: &VerbCall<'_>, reference: &str) -> Result<RunRow, OpError> {
        let found = if let Ok(id) = super::resolve::plausible("execution", reference)?.parse() {
            self.run_by_id(call, id).await?
        } else {
            self.store.run_by_name(&call.caller.owner, reference.trim()).await.map_err(stored)?.pop()
        };
        if let Some(row) = found.filter(|row| self.runtime.degraded(row.row.execution.id).is_none()) {
            return Ok(row);
        }
        // A prefix of an id, or something else: `by_prefix` has the error for both.
        let id = self.execution(call, reference).await?.execution.id;
        self.run_by_id(call, id).await?.ok_or_else(|| {
            OpError::new(ErrorCode::EngineUnsupported, format!("execution {id} does not belong to a program"))
        })
    }

    /// Clients may use an id as an execution's name; the id of another execution would be ambiguous.
    async fn is_no_id(&self, call: &VerbCall<'_>, name: Option<&str>) -> Result<(), OpError> {
        let Some(Ok(id)) = name.map(str::parse) else { return Ok(()) };
        if self.run_by_id(call, id).await?.is_none() {
            return Ok(());
        }
        Err(OpError::new(ErrorCode::Conflict, format!("{id} is the id of another execution"))
            .with_hint("choose another name"))
    }

    async fn run_by_id(&self, call: &VerbCall<'_>, id: ExecutionId) -> Result<Option<RunRow>, OpError> {
        Ok(self.store.run_by_id(&call.caller.scope(), id).await.map_err(stored)?.pop())
    }

    /// The execution of a program that the caller may see. No query of the store if the execution has an owner task.
    async fn identity(
        &self,
        call: &VerbCall<'_>,
        reference: &str,
    ) -> Result<(ExecutionId, Arc<RunIdentity>), OpError> {
        if let Ok(id) = super::resolve::plausible("execution", reference)?.parse()
            && let Some(known) = self.durables()?.identity(id)
            && call.caller.may_see(&known.owner)
        {
            return Ok((id, known));
        }
        Ok(identity_of(self.run(call, reference).await?))
    }
}

fn identity_of(run: RunRow) -> (ExecutionId, Arc<RunIdentity>) {
    let RunRow { row, program, version, program_name, .. } = run;
    let (owner, name) = (row.owner, row.name);
    (row.execution.id, Arc::new(RunIdentity { owner, name, program, version, program_name }))
}

/// A name chosen by a client.
fn checked_name<'a>(what: &str, name: &'a str) -> Result<&'a str, OpError> {
    let name = name.trim();
    if name.is_empty() {
        return Err(invalid(format!("the name of the {what} is missing")));
    }
    if name.chars().count() > NAME_CHARS || !name.chars().all(super::settings::is_printable) {
        return Err(invalid(format!(
            "the name of the {what} has more than {NAME_CHARS} characters, or some that are not printable"
        )));
    }
    Ok(name)
}

/// The response of a verb that returns the state of an execution.
fn run_reply(caller: &Caller, status: RunStatus, identity: &RunIdentity) -> Run {
    let owner = caller.shown_owner(&identity.owner);
    Run {
        waiting_for: Some(status.waiting_for).filter(|waiting| !waiting.is_nothing()),
        activity: None,
        abandoned: Vec::new(),
        execution: Execution { owner, ..status.record },
        name: identity.name.clone(),
        program_id: Some(identity.program),
        program: identity.program_name.clone(),
        program_version: Some(identity.version),
        task: status.task.as_ref().filter(|task| task.ended_at.is_none()).map(task_view),
    }
}

fn shown(caller: &Caller, row: RunRow, task: Option<&ItemRow>) -> Run {
    let owner = caller.shown_owner(&row.row.owner);
    Run {
        waiting_for: Some(row.waiting_for).filter(|waiting| !waiting.is_nothing()),
        activity: None,
        abandoned: Vec::new(),
        execution: Execution { owner, ..row.row.execution },
        name: row.row.name,
        program_id: Some(row.program),
        program: row.program_name,
        program_version: Some(row.version),
        task: task.filter(|task| task.ended_at.is_none()).map(task_view),
    }
}

fn task_view(row: &ItemRow) -> Task {
    Task {
        id: row.id,
        execution_id: row.execution,
        prompt: row.prompt.clone(),
        schema: row.schema.clone().map(JsonText::from_untrusted),
        attempts: row.attempts,
        created_at: row.created_at,
        deadline: row.deadline,
        first_attempt_at: row.first_attempt_at,
        last_attempt_at: row.last_attempt_at,
    }
}

/// The remedy for an answer that does not fit.
fn unfit_hint(attempts: u32, left: Option<u32>, schema: &str) -> String {
    let left = match left {
        Some(0) => {
            return "it was the last attempt: the task has failed, and the program got an error for it"
                .to_owned();
        }
        Some(left) => format!("; {left} of {} left", counted(left.saturating_add(attempts), "attempt")),
        None => String::new(),
    };
    // A part of one is no JSON.
    if serde_json::from_str::<serde::de::IgnoredAny>(schema).is_ok() {
        format!("a valid answer is JSON that matches {schema}{left}")
    } else {
        format!(
            "a valid answer is JSON that matches the task's schema, which `vm-system program status` shows{left}"
        )
    }
}

/// The error for an answer that may be for several tasks.
fn ambiguous(execution: ExecutionId, tasks: &[TaskId]) -> OpError {
    let ids: Vec<String> = tasks.iter().map(TaskId::to_string).collect();
    OpError::new(ErrorCode::TaskAmbiguous, "several tasks are pending: the answer has to name one of them")
        .with_details(&serde_json::json!({ "execution_id": execution, "task_ids": ids }))
        .with_hint(format!("pending are {}", ids.join(", ")))
}

/// An item that a program which has ended did not use, as clients see it.
fn abandoned_view(row: ItemRow) -> AbandonedItem {
    let name = match row.kind {
        WaitKind::Question => Some(beginning(&row.prompt, SHOWN_PROMPT_BYTES)),
        WaitKind::Timer => None,
        WaitKind::Event => row.name,
    };
    let is_answered = matches!(row.outcome, Some(ItemOutcome::Answered | ItemOutcome::Defaulted));
    AbandonedItem {
        kind: row.kind,
        name,
        task_id: (row.kind == WaitKind::Question).then_some(row.id),
        answer: row.answer.filter(|_| is_answered).map(|answer| beginning(&answer, SHOWN_ANSWER_BYTES)),
    }
}

/// A text, or its beginning with its size.
fn beginning(text: &str, most: usize) -> String {
    let end = text.floor_char_boundary(most);
    if end == text.len() { text.to_owned() } else { format!("{}… ({} bytes)", &text[..end], text.len()) }
}

/// The error for callers.
fn refused(why: &DurableRefusal, execution: ExecutionId) -> OpError {
    let message = why.to_string();
    let details = serde_json::json!({ "execution_id": execution });
    match why {
        DurableRefusal::NotPending => OpError::new(ErrorCode::TaskNotPending, message)
            .with_details(&details)
            .with_hint("`vm-system task get` shows what it waits for"),
        DurableRefusal::Ended | DurableRefusal::NotAwaited => {
            OpError::new(ErrorCode::TaskNotPending, message).with_details(&details)
        }
        DurableRefusal::Ambiguous { tasks } => ambiguous(execution, tasks),
        DurableRefusal::MailboxFull => {
            OpError::new(ErrorCode::MailboxFull, message).with_details(&details).with_hint(
                "it has to wait for some of them first: waitFor(name) takes the oldest one of its name",
            )
        }
        DurableRefusal::Unfit { attempts, left, schema, .. } => {
            OpError::new(ErrorCode::AnswerInvalid, message)
                .with_details(&serde_json::json!({
                    "execution_id": execution, "attempts": attempts, "task_failed": *left == Some(0)
                }))
                .with_hint(unfit_hint(*attempts, *left, schema))
        }
        DurableRefusal::NoVariable => OpError::new(ErrorCode::NotFound, message)
            .with_details(&details)
            .with_hint("`vm-system program state` lists the variables of each frame"),
        DurableRefusal::NameTaken => OpError::new(ErrorCode::Conflict, message).with_hint(
            "choose another name, or end the other execution first: cancel (`vm-system exec cancel NAME`)",
        ),
        DurableRefusal::NoWorker(_) | DurableRefusal::Busy | DurableRefusal::AnswersFull => {
            OpError::new(ErrorCode::CapacityExceeded, message).with_details(&details)
        }
        DurableRefusal::OwnerGone(_) => OpError::new(ErrorCode::OwnerGone, message)
            .with_details(&details)
            .with_hint(vm_system_runtime::OWNER_GONE_HINT),
        DurableRefusal::Storage(_) => {
            OpError::new(ErrorCode::StorageUnavailable, message).with_details(&details)
        }
        DurableRefusal::Stopping => OpError::new(ErrorCode::ShuttingDown, message).with_details(&details),
    }
}

/// The engine of durable programs.
fn must_be_cvm(engine: Engine) -> Result<(), OpError> {
    if engine == Engine::Cvm {
        return Ok(());
    }
    Err(OpError::new(ErrorCode::EngineUnsupported, "programs run with templates of engine cvm only")
        .with_hint("create one with `vm-system template create --name NAME --engine cvm`"))
}
