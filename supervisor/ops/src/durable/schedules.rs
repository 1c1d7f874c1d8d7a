//! Verbs of schedules: times at which programs are started. `times`: the times of a rule; `firing`: starts what is due.
//!
//! A schedule is a row with its next time. Nothing of it is in memory.

mod firing;
mod times;

use super::checked_name;
use crate::audit::line_of;
use crate::errors::{invalid, not_found, stored};
use crate::resolve::plausible;
use crate::{Caller, LIST_ROWS, Ops, VerbCall, fitting, idempotency, page, redact};
use vm_system_protocol::control::{
    ErrorCode, OpError, ProgramStart, RunGet, ScheduleAdd, ScheduleDelete, ScheduleGet, ScheduleList,
    SchedulePause, ScheduleResume, ScheduleRun,
};
use vm_system_protocol::ids::{ProgramId, ScheduleId};
use vm_system_protocol::model::{Overlap, Run, Schedule};
use vm_system_protocol::time::Timestamp;
use vm_system_record::{
    Entity, IdKind, Rejection, SCHEDULES_OF_AN_OWNER, ScheduleChange, ScheduleRow, ScheduleSpec,
    ScheduleState, StoreError, Write,
};

/// The variables that a schedule sets begin so, and no others may.
const ENV_PREFIX: &str = "VM_SYSTEM_";
/// Attempts to start an execution on request while the schedule changes.
const ATTEMPTS: u32 = 3;

impl Ops {
    pub(crate) async fn schedule_add(
        &self,
        call: &VerbCall<'_>,
        ScheduleAdd { name, rule, start }: ScheduleAdd,
    ) -> Result<Schedule, OpError> {
        let name = checked_name("schedule", &name)?.to_owned();
        if name.parse::<ScheduleId>().is_ok() {
            return Err(invalid("the name of the schedule is an id, which would be ambiguous"));
        }
        let created_at = self.store.now();
        let holder = call.caller.holder();
        let checked = self.checks.blocking(&holder, move || times::checked(rule, created_at)).await?;
        let rule = checked.map_err(invalid)?;
        let start = self.checked_start(call, &name, start).await?;
        self.check_quota(call)?;
        let id = ScheduleId::from_uuid(call.subject);
        let next_at = times::next_after(&rule, created_at, created_at);
        let due_at = next_at.map(|at| times::with_jitter(&rule, id, at));
        let row = ScheduleRow {
            id,
            owner: call.caller.owner.clone(),
            name,
            created_at,
            revision: 0,
            next_at,
            spec: ScheduleSpec { rule, start },
            state: ScheduleState::default(),
        };
        // Held from the count on: two requests at once must not both take the last place.
        let _deciding = self.deciding.lock(&call.caller.owner).await;
        if self.store.schedule_count(&call.caller.owner).await.map_err(stored)? >= SCHEDULES_OF_AN_OWNER {
            let message = format!("an owner has at most {SCHEDULES_OF_AN_OWNER} schedules");
            return Err(OpError::new(ErrorCode::Conflict, message)
                .with_hint("delete one that is not needed: `vm-system program schedule delete NAME`"));
        }
        let batch = vec![
            Write::ScheduleInsert { schedule: Box::new(row.clone()), due_at },
            line_of(call, &id.to_string()),
        ];
        let result = self.store_of(call).apply(batch).await.map_err(|error| taken(error, &row.name));
        if result.is_err() {
            self.audit(call, id, &result).await;
        }
        result.map(|_| view(call.caller, row))
    }

    /// The parameters of each start, checked as far as they can be now: an error now would otherwise come at the first time. The program
    /// keeps its name, by which it is found also when it is deleted and loaded anew, unless the caller has given an id.
    async fn checked_start(
        &self,
        call: &VerbCall<'_>,
        schedule: &str,
        start: ProgramStart,
    ) -> Result<ProgramStart, OpError> {
        let program = self.program_at(call, &start.program).await?;
        let reference = start.program.trim();
        let version = reference.strip_prefix(program.name.as_str());
        let is_named = version.is_some_and(|rest| rest.is_empty() || rest.starts_with('@'));
        let program = if is_named || reference.split('@').next().is_some_and(is_id) {
            reference.to_owned()
        } else {
            // A prefix of an id may mean another one later.
            let version =
                reference.rsplit_once('@').map_or_else(String::new, |(_, version)| format!("@{version}"));
            format!("{}{version}", program.id)
        };
        let name = start.name.as_deref().map(|name| checked_name("execution", name)).transpose()?;
        self.is_no_id(call, name).await?;
        if let Some((name, _)) = start.env.iter().find(|(name, _)| name.starts_with(ENV_PREFIX)) {
            return Err(invalid(format!(
                "env: {name} begins as the variables that the schedule sets ({ENV_PREFIX})"
            )));
        }
        let env = with_variables(&start.env, schedule, Timestamp(0), u64::MAX);
        crate::executions::check_program_inputs(&start.args, &env)?;
        self.may_use(call, start.worktree_path.as_deref().unwrap_or_default(), start.as_user.clone()).await?;
        let template = match &start.template {
            Some(reference) => Some(self.policy_of(call, Some(reference)).await?.0.to_string()),
            None => None,
        };
        let name = name.map(str::to_owned);
        Ok(ProgramStart { program, name, template, wait: false, ..start })
    }

    pub(crate) async fn schedule_list(
        &self,
        call: &VerbCall<'_>,
        ScheduleList { owner, page: list }: ScheduleList,
    ) -> Result<Vec<Schedule>, OpError> {
        let page = page(list, LIST_ROWS)?;
        let scope = call.caller.scope_of(owner.as_deref())?;
        let rows = self.store.schedules(&scope, page).await.map_err(stored)?;
        let weight = |schedule: &Schedule| {
            2_048 + schedule.env.as_str().len() + schedule.args.iter().map(String::len).sum::<usize>()
        };
        Ok(fitting(rows.into_iter().map(|row| view(call.caller, row)), weight))
    }

    pub(crate) async fn schedule_get(
        &self,
        call: &VerbCall<'_>,
        ScheduleGet { schedule }: ScheduleGet,
    ) -> Result<Schedule, OpError> {
        Ok(view(call.caller, self.schedule(call, &schedule).await?))
    }

    pub(crate) async fn schedule_pause(
        &self,
        call: &VerbCall<'_>,
        SchedulePause { schedule }: SchedulePause,
    ) -> Result<Schedule, OpError> {
        self.change_schedule(call, &schedule, |row| {
            row.next_at = None;
            row.state.queued_for = None;
        })
        .await
    }

    /// The times while it was paused are not made up for.
    pub(crate) async fn schedule_resume(
        &self,
        call: &VerbCall<'_>,
        ScheduleResume { schedule }: ScheduleResume,
    ) -> Result<Schedule, OpError> {
        let now = self.store.now();
        self.change_schedule(call, &schedule, |row| {
            if row.next_at.is_none() {
                row.next_at = times::next_after(&row.spec.rule, row.created_at, now);
            }
        })
        .await
    }

    /// Makes a change; again, if the schedule was changed at the same moment.
    async fn change_schedule(
        &self,
        call: &VerbCall<'_>,
        reference: &str,
        change: impl Fn(&mut ScheduleRow) + Send + Sync,
    ) -> Result<Schedule, OpError> {
        let id = self.schedule(call, reference).await?.id;
        loop {
            let row = self.store.schedule(&call.caller.scope(), id).await.map_err(stored)?;
            let mut row = *row.ok_or_else(|| unknown(reference))?;
            let before = row.clone();
            change(&mut row);
            if row == before {
                return Ok(view(call.caller, row));
            }
            let result = self.store_of(call).apply(Write::ScheduleChange(Box::new(change_of(&row)))).await;
            if matches!(result, Err(StoreError::Rejected(Rejection::Conflict(Entity::Schedule)))) {
                continue;
            }
            let result = result.map_err(stored);
            self.audit(call, id, &result).await;
            return result.map(|_| view(call.caller, row));
        }
    }

    pub(crate) async fn schedule_delete(
        &self,
        call: &VerbCall<'_>,
        ScheduleDelete { schedule }: ScheduleDelete,
    ) -> Result<Schedule, OpError> {
        let row = self.schedule(call, &schedule).await?;
        let id = row.id;
        let reply = view(call.caller, row);
        let response = idempotency::response::<ScheduleDelete>(call, &reply);
        let batch: Vec<Write> = [Write::ScheduleDelete { id }].into_iter().chain(response).collect();
        let result = self.store_of(call).apply(batch).await.map_err(stored);
        self.audit(call, id, &result).await;
        result.map(|_| reply)
    }

    /// Starts an execution for the current time. What the schedule does at a time at which its last execution has not ended applies here,
    /// too; but nobody waits in a queue that has made a request.
    pub(crate) async fn schedule_run(
        &self,
        call: &VerbCall<'_>,
        ScheduleRun { schedule }: ScheduleRun,
    ) -> Result<Run, OpError> {
        let id = self.schedule(call, &schedule).await?.id.to_string();
        let mut attempt = 1;
        loop {
            let row = self.schedule(call, &id).await?;
            let revision = row.revision;
            match self.run_now(call, row).await {
                Err(error) if error.code == ErrorCode::Conflict && attempt < ATTEMPTS => {
                    // A time of the schedule came at this moment, or another client changed it.
                    if self.schedule(call, &id).await?.revision == revision {
                        return Err(error);
                    }
                    attempt += 1;
                }
                result => return result,
            }
        }
    }

    async fn run_now(&self, call: &VerbCall<'_>, row: ScheduleRow) -> Result<Run, OpError> {
        if let Some(running) = self.unfinished_of(&row).await.map_err(stored)? {
            if row.spec.rule.overlap != Overlap::Cancel {
                let message = format!("execution {running} of the schedule {:?} has not ended", row.name);
                return Err(OpError::new(ErrorCode::Conflict, message)
                    .with_details(&serde_json::json!({ "execution_id": running }))
                    .with_hint("cancel it (`vm-system exec cancel ID`), or wait for its end"));
            }
            self.cancel_program(running).await?;
        }
        let now = self.store.now();
        let id = if row.owner == call.caller.owner {
            self.start_scheduled(call, &row, row.next_at, now).await?
        } else {
            // An administrator: the execution belongs to the owner, and has the owner's rights.
            let owner = Caller { api: call.caller.api, ..self.owner_as_caller(&row.owner)? };
            let of_owner = VerbCall::of_nobody(&owner, call.verb, call.subject);
            let started = self.start_scheduled(&of_owner, &row, row.next_at, now).await;
            self.audit(call, row.id, &started).await;
            started?
        };
        self.run_get(call, RunGet { execution: id.to_string() }).await
    }

    /// A schedule that the caller may see.
    async fn schedule(&self, call: &VerbCall<'_>, reference: &str) -> Result<ScheduleRow, OpError> {
        let reference = plausible("schedule", reference)?;
        let scope = call.caller.scope();
        let row = if let Ok(id) = reference.parse::<ScheduleId>() {
            self.store.schedule(&scope, id).await.map_err(stored)?
        } else {
            let named = self.store.schedule_by_name(&call.caller.owner, reference).await.map_err(stored)?;
            match named {
                Some(row) => Some(row),
                None => match self.by_prefix(call, IdKind::Schedule, Entity::Schedule, reference).await? {
                    Some(id) => {
                        self.store.schedule(&scope, ScheduleId::from_bytes(id)).await.map_err(stored)?
                    }
                    None => None,
                },
            }
        };
        row.map(|row| *row).ok_or_else(|| unknown(reference))
    }

    /// The schedule that was stored under this id before the supervisor exited, if any.
    pub(crate) async fn schedule_made(
        &self,
        caller: &Caller,
        id: ScheduleId,
    ) -> Result<Option<Schedule>, OpError> {
        let row = self.store.schedule(&caller.scope(), id).await.map_err(stored)?;
        Ok(row.map(|row| view(caller, *row)))
    }
}

/// The variables of an execution, with those that the schedule sets.
fn with_variables(
    env: &[(String, String)],
    schedule: &str,
    time: Timestamp,
    late_ms: u64,
) -> Vec<(String, String)> {
    let own = [
        (format!("{ENV_PREFIX}SCHEDULE"), schedule.to_owned()),
        (format!("{ENV_PREFIX}SCHEDULED_FOR"), time.to_string()),
        (format!("{ENV_PREFIX}LATE_MS"), late_ms.to_string()),
    ];
    env.iter().cloned().chain(own).collect()
}

fn is_id(text: &str) -> bool {
    text.parse::<ProgramId>().is_ok()
}

fn unknown(reference: &str) -> OpError {
    let error = not_found(Entity::Schedule, reference);
    if error.hint.is_some() {
        error
    } else {
        error.with_hint("`vm-system program schedule list` shows your schedules")
    }
}

fn taken(error: StoreError, name: &str) -> OpError {
    match error {
        StoreError::Rejected(Rejection::Conflict(Entity::Schedule)) => {
            OpError::new(ErrorCode::Conflict, format!("a schedule named {name:?} exists already"))
                .with_details(&serde_json::json!({ "name": name }))
                .with_hint("choose another name, or delete that one first")
        }
        other => stored(other),
    }
}

/// The row as it is to be, for the revision that was read.
fn change_of(row: &ScheduleRow) -> ScheduleChange {
    let waiting = row.state.last.as_ref().filter(|_| row.state.queued_for.is_some());
    ScheduleChange {
        id: row.id,
        revision: row.revision,
        next_at: row.next_at,
        due_at: row.next_at.map(|at| times::with_jitter(&row.spec.rule, row.id, at)),
        waits_for: waiting.map(|last| last.execution_id),
        state: row.state.clone(),
    }
}

fn view(caller: &Caller, row: ScheduleRow) -> Schedule {
    let owner = caller.shown_owner(&row.owner);
    let ScheduleRow { id, name, created_at, next_at, spec, state, .. } = row;
    let ScheduleSpec { rule, start } = spec;
    Schedule {
        id,
        name,
        program: start.program,
        cron: rule.cron,
        every_ms: rule.every_ms,
        time_zone: rule.time_zone,
        overlap: rule.overlap,
        jitter_ms: rule.jitter_ms,
        execution_name: start.name,
        args: start.args,
        env: redact::env(&start.env),
        template_id: start.template,
        worktree_path: start.worktree_path,
        as_user: start.as_user,
        created_at,
        paused: next_at.is_none(),
        next_at,
        queued_for: state.queued_for,
        last: state.last,
        skipped: state.skipped,
        last_error: state.error,
        owner,
    }
}
