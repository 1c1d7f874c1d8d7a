//! Query parameters that select the elements of a list.

use super::envelope::RestError;
use super::input::QueryParams;
use vm_system_protocol::control::{ListPage, Period, ProgramList, RunList, TaskList};
use vm_system_protocol::model::{ExecutionStatus, TaskState};
use vm_system_protocol::time::Timestamp;

/// `since` and `until`.
pub(super) fn period(params: &QueryParams) -> Result<Period, RestError> {
    Ok(Period { since: time(params, "since")?, until: time(params, "until")? })
}

fn time(params: &QueryParams, name: &str) -> Result<Option<Timestamp>, RestError> {
    let Some(text) = params.one(name)? else { return Ok(None) };
    text.parse()
        .map(Some)
        .map_err(|_| RestError::invalid(format!("{name} must be a time such as 2030-01-31T18:00:00Z")))
}

/// `status` of an execution.
pub(super) fn execution_status(params: &QueryParams) -> Result<Option<ExecutionStatus>, RestError> {
    let names = ExecutionStatus::ALL.iter().map(|status| status.as_str()).collect::<Vec<_>>().join(", ");
    params.name("status", &names)
}

/// Executions of programs.
pub(super) fn runs(
    params: &QueryParams,
    program: Option<String>,
    page: ListPage,
) -> Result<RunList, RestError> {
    Ok(RunList {
        status: execution_status(params)?,
        program,
        name: text(params, "name")?,
        period: period(params)?,
        owner: text(params, "owner")?,
        page,
    })
}

/// Tasks; without a `status` pending ones.
pub(super) fn tasks(params: &QueryParams, page: ListPage) -> Result<TaskList, RestError> {
    let names = TaskState::ALL.iter().map(|state| state.as_str()).collect::<Vec<_>>().join(", ");
    let status = match params.one("status")? {
        Some("all") => None,
        None => Some(TaskState::Pending),
        Some(_) => params.name("status", &format!("{names}, all"))?,
    };
    Ok(TaskList {
        status,
        execution: text(params, "execution_id")?,
        program: text(params, "program")?,
        period: period(params)?,
        owner: text(params, "owner")?,
        page,
    })
}

/// Programs.
pub(super) fn programs(params: &QueryParams, page: ListPage) -> Result<ProgramList, RestError> {
    let (name, owner) = (text(params, "name")?, text(params, "owner")?);
    Ok(ProgramList { name, period: period(params)?, owner, page })
}

fn text(params: &QueryParams, name: &str) -> Result<Option<String>, RestError> {
    Ok(params.one(name)?.map(str::to_owned))
}
