//! Lists of programs, of their executions and of tasks, with filters: for each combination of these, the indexes that leave least to
//! filter.

use super::durable::{self, PROGRAM, TASK};
use super::merge::{ListIndex, ListPart, MergedList, owners};
use super::{Read, Select, executions};
use rusqlite::Connection;
use rusqlite::types::Value;
use vm_system_protocol::ids::{ExecutionId, TaskId};
use vm_system_protocol::model::{ExecutionStatus, TaskState};
use vm_system_record::{
    ItemRow, PAGE_BYTES, Page, ProgramQuery, ProgramRow, RunQuery, RunRow, Scope, TaskQuery,
};

const RUNS: ListIndex = ListIndex {
    table: "executions",
    alias: "executions",
    name: "executions_of_programs",
    has: "kind = 'program'",
    selects: &["owner", "status"],
    time: "started_at",
    id: "id",
};
const RUNS_BY_NAME: ListIndex =
    ListIndex { name: "executions_by_name", has: "name IS NOT NULL", selects: &["owner", "name"], ..RUNS };
const RUNS_OF_PROGRAM: ListIndex = ListIndex {
    table: "program_runs",
    alias: "program_runs",
    name: "program_runs_by_program",
    has: "",
    selects: &["program"],
    time: "started_at",
    id: "execution",
};
const PENDING_TASKS: ListIndex = ListIndex {
    table: "open_items",
    // The same for both parts of a list of tasks, so that they have the same conditions.
    alias: "items",
    name: "open_items_by_owner",
    has: "kind = 'question'",
    selects: &["owner"],
    time: "created_at",
    id: "id",
};
const ENDED_TASKS: ListIndex = ListIndex {
    table: "items",
    name: "items_ended",
    has: "ended_at IS NOT NULL AND kind = 'question'",
    selects: &["owner", "outcome"],
    ..PENDING_TASKS
};

pub(in crate::sqlite) fn runs(
    c: &Connection,
    scope: &Scope,
    filter: &RunQuery,
    page: Page,
) -> Read<Vec<RunRow>> {
    let list = run_list(c, scope, filter, page)?;
    rows(c, &list, durable::run_weight, |id| durable::one_run(c, &Scope::All, ExecutionId::from_bytes(id)))
}

fn run_list(c: &Connection, scope: &Scope, filter: &RunQuery, page: Page) -> Read<MergedList> {
    let RunQuery { status, program, name, period } = filter;
    let program = program.map(|program| Value::from(program.as_bytes().to_vec()));
    let text = |status: ExecutionStatus| Value::from(status.as_str().to_owned());
    let mut conditions = Vec::new();
    let unfinished = status.is_some_and(|status| !status.is_final());
    let of = |owner: Value, value: Value, index| ListPart { index, values: vec![owner, value] };
    let parts = match (name, program) {
        (Some(name), program) => {
            conditions.push(("kind = 'program'", None));
            if let Some(status) = status {
                conditions.push(("executions.status =", Some(text(*status))));
            }
            if let Some(program) = program {
                conditions.push((IS_OF_PROGRAM, Some(program)));
            }
            let name = Value::from(name.clone());
            owners(c, scope, RUNS_BY_NAME)?
                .into_iter()
                .map(|owner| of(owner, name.clone(), RUNS_BY_NAME))
                .collect()
        }
        // Few are unfinished, and a program may have had many executions.
        (None, Some(program)) if !unfinished => {
            if let Some(status) = status {
                conditions.push((HAS_STATUS, Some(text(*status))));
            }
            if let Scope::Owner(owner) = scope {
                conditions.push(("program_runs.owner =", Some(owner.as_str().to_owned().into())));
            }
            vec![ListPart { index: RUNS_OF_PROGRAM, values: vec![program] }]
        }
        (None, program) => {
            if let Some(program) = program {
                conditions.push((IS_OF_PROGRAM, Some(program)));
            }
            let statuses: Vec<_> = status.map_or(ExecutionStatus::ALL.to_vec(), |status| vec![status]);
            let parts =
                |owner: Value| statuses.iter().map(move |status| of(owner.clone(), text(*status), RUNS));
            owners(c, scope, RUNS)?.into_iter().flat_map(parts).collect()
        }
    };
    let is_of_program_runs = parts.first().is_some_and(|part: &ListPart| part.index.table == "program_runs");
    conditions.push(if is_of_program_runs {
        ("NOT EXISTS (SELECT 1 FROM staged WHERE staged.execution = program_runs.execution AND staged.bytes < 0)", None)
    } else {
        (executions::IS_NOT_BEING_DELETED, None)
    });
    Ok(MergedList { parts, newest_first: true, period: *period, page, conditions })
}

const IS_OF_PROGRAM: &str =
    "(SELECT program FROM program_runs WHERE program_runs.execution = executions.id) =";
const HAS_STATUS: &str = "(SELECT status FROM executions WHERE executions.id = program_runs.execution) =";
const IS_TASK_OF_PROGRAM: &str =
    "(SELECT program FROM program_runs WHERE program_runs.execution = items.execution) =";

pub(in crate::sqlite) fn tasks(
    c: &Connection,
    scope: &Scope,
    filter: TaskQuery,
    page: Page,
) -> Read<Vec<ItemRow>> {
    if let Some(execution) = filter.execution {
        return tasks_of_execution(scope, execution, &filter, page).readable_rows(
            c,
            durable::task_weight,
            durable::task_row,
        );
    }
    let list = task_list(c, scope, &filter, page)?;
    rows(c, &list, durable::task_weight, |id| {
        Ok(durable::task(c, &Scope::All, TaskId::from_bytes(id))?.map(|row| *row))
    })
}

fn task_list(c: &Connection, scope: &Scope, filter: &TaskQuery, page: Page) -> Read<MergedList> {
    let mut parts = Vec::new();
    if filter.status.is_none_or(|status| status == TaskState::Pending) {
        let values = owners(c, scope, PENDING_TASKS)?.into_iter().map(|owner| vec![owner]);
        parts.extend(values.map(|values| ListPart { index: PENDING_TASKS, values }));
    }
    if filter.status != Some(TaskState::Pending) {
        let wanted = |state: &&TaskState| {
            filter.status.map_or(**state != TaskState::Pending, |status| status == **state)
        };
        let outcomes: Vec<_> = TaskState::ALL
            .iter()
            .filter(wanted)
            .map(|state| Value::from(state.as_str().to_owned()))
            .collect();
        for owner in owners(c, scope, ENDED_TASKS)? {
            let values = outcomes.iter().map(|outcome| vec![owner.clone(), outcome.clone()]);
            parts.extend(values.map(|values| ListPart { index: ENDED_TASKS, values }));
        }
    }
    let mut conditions = vec![(durable::IS_OF_NO_DELETION, None)];
    if let Some(program) = filter.program {
        conditions.push((IS_TASK_OF_PROGRAM, Some(program.as_bytes().to_vec().into())));
    }
    let newest_first = filter.status != Some(TaskState::Pending);
    Ok(MergedList { parts, newest_first, period: filter.period, page, conditions })
}

/// Items are numbered in their execution: their order is that of their creation, even if the clock was set back.
fn tasks_of_execution(scope: &Scope, execution: ExecutionId, filter: &TaskQuery, page: Page) -> Select {
    let mut select = Select::new(TASK);
    select
        .and_value("execution =", execution.as_bytes().to_vec())
        .and(durable::IS_QUESTION)
        .and(durable::IS_OF_NO_DELETION)
        .scope(scope);
    match filter.status {
        Some(TaskState::Pending) => select
            .and("item IN (SELECT item FROM open_items WHERE execution =")
            .value(execution.as_bytes().to_vec())
            .text(")"),
        // `+`: not in the index of all ended tasks, whose order is another one.
        Some(state) => select.and("+ended_at IS NOT NULL").and_value("outcome =", state.as_str().to_owned()),
        None => &mut select,
    };
    if let Some(program) = filter.program {
        select.and_value(IS_TASK_OF_PROGRAM, program.as_bytes().to_vec());
    }
    if let Some(since) = filter.period.since {
        select.and_value("created_at >=", since.0);
    }
    if let Some(until) = filter.period.until {
        select.and_value("created_at <", until.0);
    }
    if let Some(after) = page.after {
        select.and("item > (SELECT item FROM items WHERE id =").value(after.id.to_vec()).text(")");
    }
    select.paged = true;
    select.text(" ORDER BY item LIMIT").value(i64::from(page.limit));
    select
}

pub(in crate::sqlite) fn programs(
    c: &Connection,
    scope: &Scope,
    filter: &ProgramQuery,
    page: Page,
) -> Read<Vec<ProgramRow>> {
    program_list(PROGRAM, scope, filter, page).readable_rows(c, |_| 512, durable::program_row)
}

fn program_list(head: &str, scope: &Scope, filter: &ProgramQuery, page: Page) -> Select {
    let index = match (scope, &filter.name) {
        (Scope::Owner(_), Some(_)) => "programs_name",
        (Scope::All, Some(_)) => "programs_by_name",
        (Scope::Owner(_), None) => "programs_by_owner",
        (Scope::All, None) => "programs_by_time",
    };
    let head = head.replacen("FROM programs", &format!("FROM programs INDEXED BY {index}"), 1);
    let head = head.replacen("JOIN program_versions", "CROSS JOIN program_versions", 1);
    let mut select = Select::new(&head);
    select.and("is_active = 1").scope(scope);
    if let Some(name) = &filter.name {
        select.and_value("name =", name.clone());
    }
    select.newest_first_in("programs.created_at", filter.period, page);
    select
}

/// The rows of a list that fit by their `weight` (bytes), at least one. A row that cannot be read is left out without an effect on
/// the others.
fn rows<T>(
    c: &Connection,
    list: &MergedList,
    weight: impl Fn(&T) -> usize,
    mut by_id: impl FnMut([u8; 16]) -> Read<Option<T>>,
) -> Read<Vec<T>> {
    let (mut out, mut left_bytes) = (Vec::new(), PAGE_BYTES);
    list.each_id(c, |id| {
        match by_id(id) {
            Ok(Some(row)) => {
                left_bytes = left_bytes.saturating_sub(weight(&row));
                out.push(row);
            }
            // Both are read in one transaction.
            Ok(None) => {}
            Err(error) => super::left_out(error)?,
        }
        Ok(left_bytes > 0)
    })?;
    Ok(out)
}

#[cfg(test)]
mod tests;
