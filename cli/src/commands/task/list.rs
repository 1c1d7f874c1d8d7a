//! `task list`

use crate::commands::program::show;
use crate::context::Context;
use crate::error::{CliError, exit};
use crate::lists::{LimitArgs, OwnerArgs, PeriodArgs};
use crate::output::{Rows, with_owners};
use crate::parse;
use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};
use vm_system_protocol::control::{ListPage, RunGet, TaskList};
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::model::{ListedTask, TaskState};
use vm_system_protocol::time::Timestamp;

/// Longest part of a prompt in a table that fits a terminal (characters).
const PROMPT_CHARS: usize = 60;
/// Longest part of an answer there.
const ANSWER_CHARS: usize = 30;

/// Arguments of `task list`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Also tasks that have ended; newest first, as with `--status`
    #[arg(long, conflicts_with = "status")]
    all: bool,
    /// Only tasks with this status [default: pending]
    #[arg(long, value_name = "STATUS", value_parser = parse::task_status())]
    status: Option<TaskState>,
    /// Only tasks of this execution, in the order in which it created them
    #[arg(long, value_name = "EXECUTION")]
    execution: Option<String>,
    /// Only tasks of executions of this program
    #[arg(long, value_name = "PROGRAM")]
    program: Option<String>,
    #[command(flatten)]
    period: PeriodArgs,
    #[command(flatten)]
    owner: OwnerArgs,
    #[command(flatten)]
    limit: LimitArgs,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let status = if args.all { None } else { args.status.or(Some(TaskState::Pending)) };
    let part = async |last: Option<&ListedTask>, limit| {
        let filter = TaskList {
            status,
            execution: args.execution.clone(),
            program: args.program.clone(),
            period: args.period.period(),
            owner: args.owner.owner.clone(),
            page: ListPage::after_last(last, limit),
        };
        context.call_once(filter, None).await
    };
    let tasks = args.limit.collect("--limit 0", part).await?;
    let sources = if context.out.is_table() { sources(context, &tasks).await? } else { HashMap::new() };
    let owners = || tasks.iter().map(|listed| listed.owner.as_deref());
    if status != Some(TaskState::Pending) {
        context.out.list(&tasks, "No tasks.", || {
            with_owners(context, with_answers(context, &tasks, &sources), owners())
        })?;
        return Ok(exit::OK);
    }
    context.out.list(&tasks, "No pending tasks.", || {
        let heads = ["TASK", "EXECUTION", "NAME", "PROGRAM", "CREATED", "AGE", "DEADLINE", "PROMPT"];
        let (mut rows, now) = (Rows::new(heads), now());
        for ListedTask { task, .. } in &tasks {
            let (name, program) = sources.get(&task.execution_id).cloned().unwrap_or_default();
            rows.row([
                task.id.to_string(),
                task.execution_id.to_string(),
                name,
                program,
                task.created_at.to_string(),
                age(task.created_at, now),
                task.deadline.map_or_else(|| "-".to_owned(), |deadline| deadline.to_string()),
                context.out.cell(&task.prompt, PROMPT_CHARS),
            ]);
        }
        with_owners(context, rows, owners())
    })?;
    Ok(exit::OK)
}

/// The clock of this machine.
fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// The time since then in its largest unit: `3d`. A daemon on another machine may have another clock.
fn age(since: Timestamp, now: Timestamp) -> String {
    let seconds = now.0.saturating_sub(since.0).max(0) / 1_000;
    let units = [(86_400, "d"), (3_600, "h"), (60, "m")];
    let unit = units.into_iter().find(|(unit, _)| seconds >= *unit);
    let (unit, name) = unit.unwrap_or((1, "s"));
    format!("{}{name}", seconds / unit)
}

/// The table of tasks that may have ended.
fn with_answers(
    context: &Context,
    tasks: &[ListedTask],
    sources: &HashMap<ExecutionId, (String, String)>,
) -> Rows {
    let mut rows =
        Rows::new(["TASK", "EXECUTION", "NAME", "PROGRAM", "STATUS", "CREATED", "ENDED", "ANSWER", "PROMPT"]);
    for ListedTask { task, status, ended_at, answer, .. } in tasks {
        let (name, program) = sources.get(&task.execution_id).cloned().unwrap_or_default();
        rows.row([
            task.id.to_string(),
            task.execution_id.to_string(),
            name,
            program,
            status.to_string(),
            task.created_at.to_string(),
            ended_at.map_or_else(|| "-".to_owned(), |ended_at| ended_at.to_string()),
            context.out.cell(answer.as_deref().unwrap_or("-"), ANSWER_CHARS),
            context.out.cell(&task.prompt, PROMPT_CHARS),
        ]);
    }
    rows
}

/// Name and program of each task's execution; an execution of a session has neither.
async fn sources(
    context: &Context,
    tasks: &[ListedTask],
) -> Result<HashMap<ExecutionId, (String, String)>, CliError> {
    let mut sources = HashMap::new();
    for ListedTask { task, .. } in tasks {
        if sources.contains_key(&task.execution_id) {
            continue;
        }
        let none = || "-".to_owned();
        let op = RunGet { execution: task.execution_id.to_string() };
        // The execution may have been deleted meanwhile, or belong to a session.
        let names = match context.call(op).await {
            Ok(run) => (run.name.clone().unwrap_or_else(none), show::program(&run)),
            _ => (none(), none()),
        };
        sources.insert(task.execution_id, names);
    }
    Ok(sources)
}

#[cfg(test)]
mod tests {
    use super::age;
    use vm_system_protocol::time::Timestamp;

    #[test]
    fn an_age_has_its_largest_unit() {
        let cases =
            [(-5, "0s"), (0, "0s"), (59, "59s"), (60, "1m"), (3_599, "59m"), (3_600, "1h"), (172_800, "2d")];
        for (seconds, shown) in cases {
            assert_eq!(age(Timestamp(0), Timestamp(seconds * 1_000)), shown);
        }
    }
}
