//! Verbs of executions of programs.

use super::programs::WALK_FORMAT;
use super::{checked_name, must_be_cvm, refused, shown, task_view};
use crate::audit::line_of;
use crate::built_in::BUILT_IN;
use crate::errors::{invalid, stored};
use crate::sessions::worktree;
use crate::{Ops, VerbCall, fitting, idempotency, page, redact};
use std::sync::Arc;
use uuid::Uuid;
use vm_system_core::durable::{DurableRefusal, Fresh, RunActivity, fresh_record, session_record};
use vm_system_protocol::control::{
    ErrorCode, OpError, ProgramCounts, ProgramStart, ProgramTotals, RunDelete, RunGet, RunList,
};
use vm_system_protocol::ids::{ExecutionId, ProgramId, SessionId, TemplateId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{Engine, ExecutionStatus, ResultValue, Run};
use vm_system_record::{
    ExecutionQuery, Owner, Page, PolicySnapshot, RecordedWorktree, RunQuery, Scope, Write,
};
use vm_system_runtime::{RunIdentity, StartProgram};

/// The act of an execution without an owner task, as after a start of the daemon, or after a failed start of a worker.
const UNOWNED: &str = "waits until the daemon takes it, within seconds";
/// Most rows of a list.
const LIST_MAX: u32 = 1_000;

impl Ops {
    pub(crate) async fn program_start(&self, call: &VerbCall<'_>, new: ProgramStart) -> Result<Run, OpError> {
        self.start_program(call, new, None).await
    }

    /// Starts a program; `with` becomes durable together with the start.
    pub(super) async fn start_program(
        &self,
        call: &VerbCall<'_>,
        mut new: ProgramStart,
        with: Option<Write>,
    ) -> Result<Run, OpError> {
        let program = self.program_at(call, &new.program).await?;
        if program.format == WALK_FORMAT {
            self.remember_done(call, &program, &mut new.env).await?;
        }
        let name = new.name.as_deref().map(|name| checked_name("execution", name)).transpose()?;
        self.is_no_id(call, name).await?;
        super::super::executions::check_program_inputs(&new.args, &new.env)?;
        let (wait, worktree_path) = (new.wait, new.worktree_path.unwrap_or_default());
        let worktree = self.may_use(call, &worktree_path, new.as_user).await?;
        let (template, policy) = self.policy_of(call, new.template.as_deref()).await?;
        self.check_quota(call)?;
        self.durables()?.admit(&call.caller.owner)?;
        let at = self.store.now();
        let (id, session) = (ExecutionId::from_uuid(call.subject), SessionId::from_uuid(Uuid::now_v7()));
        let args = JsonText::from_value(&serde_json::json!(new.args));
        let record = fresh_record(id, session, ExecutionStatus::Running, args, redact::env(&new.env), at);
        let policy = Arc::new(policy);
        let mut creation = vec![
            Write::SessionInsert {
                owner: call.caller.owner.clone(),
                session: Arc::new(session_record(session, template, &worktree_path, at)),
                policy: Arc::clone(&policy),
                worktree: worktree.clone(),
            },
            Write::ExecutionStarted { name: name.map(str::to_owned), execution: Arc::new(record.clone()) },
            Write::ProgramRun { execution: id, program: program.id, version: program.version },
            line_of(call, &id.to_string()),
        ];
        creation.extend(with);
        let identity = Arc::new(RunIdentity {
            owner: call.caller.owner.clone(),
            name: name.map(str::to_owned),
            program: program.id,
            version: program.version,
            program_name: Some(program.name),
        });
        let (seed, _) = Uuid::new_v4().as_u64_pair();
        let fresh = Fresh { args: new.args, env: new.env, seed, creation };
        let identity_of_start = Arc::clone(&identity);
        let start =
            StartProgram { record, identity: identity_of_start, policy, worktree_path, worktree, fresh };
        let result = self.durables()?.run(start, wait).await.map_err(|why| refused(&why, id));
        if result.is_err() {
            self.audit(call, id, &result).await;
        }
        self.run_reply(call, result?, &identity).await
    }

    /// The record of the folder that the caller names for an execution's files; empty = none.
    pub(super) async fn may_use(
        &self,
        call: &VerbCall<'_>,
        worktree_path: &str,
        as_user: Option<String>,
    ) -> Result<Option<Arc<RecordedWorktree>>, OpError> {
        if worktree_path.is_empty() {
            return match as_user {
                Some(_) => Err(invalid("as_user is only for the files of a worktree").with_hint(
                    "name the folder: --worktree-path (`worktree_path`; `worktree` of an MCP tool)",
                )),
                None => Ok(None),
            };
        }
        self.may_choose_worktree(call)?;
        worktree(worktree_path)?;
        Ok(self.durables()?.check_worktree(worktree_path.into(), &call.caller.owner, as_user).await?)
    }

    /// The template of an execution, and its current content.
    pub(super) async fn policy_of(
        &self,
        call: &VerbCall<'_>,
        template: Option<&str>,
    ) -> Result<(TemplateId, PolicySnapshot), OpError> {
        match template {
            Some(reference) => {
                let known = self.known_template(call, reference).await?;
                must_be_cvm(known.detail.template.engine)?;
                if known.detail.template.id == BUILT_IN {
                    return Ok((BUILT_IN, self.built_in().await?));
                }
                Ok((known.detail.template.id, PolicySnapshot::from(&known.detail)))
            }
            None => Ok((BUILT_IN, self.built_in().await?)),
        }
    }

    /// Ends an execution of a program; no error if it has ended.
    pub(crate) async fn cancel_program(&self, id: ExecutionId) -> Result<(), OpError> {
        match self.durables()?.cancel(id, Vec::new()).await {
            Ok(_) | Err(DurableRefusal::Ended) => Ok(()),
            Err(why) => Err(refused(&why, id)),
        }
    }

    /// Ends the execution that a session was created for; no error for a session without one.
    pub(crate) async fn close_program(&self, call: &VerbCall<'_>, session: SessionId) -> Result<(), OpError> {
        let policy = self.reads_of(call.caller).session_policy(session).await.map_err(stored)?;
        if policy.is_none_or(|policy| policy.engine != Engine::Cvm) {
            return Ok(());
        }
        let rows = self
            .store
            .executions(&call.caller.scope(), session, ExecutionQuery::default(), Page::first(1))
            .await
            .map_err(stored)?;
        match rows.first() {
            Some(row) if !row.execution.status.is_final() => self.cancel_program(row.execution.id).await,
            _ => Ok(()),
        }
    }

    pub(crate) async fn run_get(
        &self,
        call: &VerbCall<'_>,
        RunGet { execution: reference }: RunGet,
    ) -> Result<Run, OpError> {
        let row = self.run(call, &reference).await?;
        let task = self.reads_of(call.caller).pending_task(row.row.execution.id).await.map_err(stored)?;
        let (id, is_final) = (row.row.execution.id, row.row.execution.status.is_final());
        let mut run = shown(call.caller, row, task.as_deref());
        if is_final {
            run.abandoned = self.abandoned(call, id).await?;
        } else if run.execution.status == ExecutionStatus::Running {
            let activity = self.durables()?.activity(id).map_or(UNOWNED, RunActivity::as_str);
            run.activity = Some(activity.to_owned());
        }
        Ok(run)
    }

    /// Ends the execution if necessary, then deletes it.
    pub(crate) async fn run_delete(
        &self,
        call: &VerbCall<'_>,
        RunDelete { execution: reference }: RunDelete,
    ) -> Result<Run, OpError> {
        let id = self.run(call, &reference).await?.row.execution.id;
        self.cancel_program(id).await?;
        let last = self.run_get(call, RunGet { execution: id.to_string() }).await?;
        let response = idempotency::response::<RunDelete>(call, &last);
        let batch: Vec<Write> = [Write::RunDelete { id }].into_iter().chain(response).collect();
        let result = self.store_of(call).apply(batch).await.map(|_| ()).map_err(stored);
        self.audit(call, id, &result).await;
        result.map(|()| last)
    }

    pub(crate) async fn run_list(&self, call: &VerbCall<'_>, filter: RunList) -> Result<Vec<Run>, OpError> {
        let page = page(filter.page, LIST_MAX)?;
        let owner = filter.owner.as_deref();
        let scope = call.caller.scope_of(owner)?;
        let program = self.program_filter(call, owner, filter.program.as_deref()).await?;
        let RunList { status, period, .. } = filter;
        let name = filter.name.map(|name| name.trim().to_owned());
        let rows = self.store.runs(&scope, &RunQuery { status, program, name, period }, page).await;
        let runs = rows.map_err(stored)?.into_iter().map(|row| shown(call.caller, row, None));
        Ok(fitting(runs, weight))
    }

    /// The program of a filter: a name means one of the owner that the filter names, else of the caller.
    pub(super) async fn program_filter(
        &self,
        call: &VerbCall<'_>,
        owner: Option<&str>,
        program: Option<&str>,
    ) -> Result<Option<ProgramId>, OpError> {
        let Some(reference) = program else { return Ok(None) };
        let named = owner.map_or_else(|| call.caller.own(), |owner| Scope::Owner(Owner::new(owner)));
        Ok(Some(self.program_among(call, &named, reference).await?.id))
    }

    pub(crate) async fn program_totals(
        &self,
        call: &VerbCall<'_>,
        _: ProgramTotals,
    ) -> Result<ProgramCounts, OpError> {
        let (programs, executions) = self.store.program_counts(&call.caller.scope()).await.map_err(stored)?;
        Ok(ProgramCounts { programs, executions })
    }

    /// Checks that the caller may name a worktree at all: without configured roots the supervisor would read with its own rights.
    pub(crate) fn may_choose_worktree(&self, call: &VerbCall<'_>) -> Result<(), OpError> {
        if call.caller.admin || self.options.worktrees_confined {
            return Ok(());
        }
        Err(OpError::new(
            ErrorCode::NotPermitted,
            "only an administrator may choose a worktree as long as the operator has configured no roots for them",
        )
        .with_hint("the operator adds a [[worktree_root]] with `path` and `owners` to the daemon's --config (`vm-system help operations`)"))
    }

    /// The execution that was stored under this id before the supervisor exited, if any.
    pub(crate) async fn run_made(
        &self,
        call: &VerbCall<'_>,
        id: ExecutionId,
    ) -> Result<Option<Run>, OpError> {
        let Some(row) = self.run_by_id(call, id).await? else { return Ok(None) };
        let task = self.reads_of(call.caller).pending_task(id).await.map_err(stored)?;
        let mut run = shown(call.caller, row, None);
        run.task = task.as_deref().map(task_view);
        Ok(Some(run))
    }
}

/// Approximate size of an execution in a response (bytes).
fn weight(run: &Run) -> usize {
    let execution = &run.execution;
    768 + execution.args.as_str().len()
        + execution.env.as_str().len()
        + execution.result.as_ref().map_or(0, ResultValue::bytes)
        + execution.error.as_ref().map_or(0, |error| error.message.len())
}
