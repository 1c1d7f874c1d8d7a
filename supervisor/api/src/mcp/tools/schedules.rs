//! Tools for schedules of programs.

use super::{Effect, ToolResult, ToolRow, ToolSet};
use crate::mcp::call::ToolCall;
use crate::mcp::lists;
use crate::mcp::output::{ToolError, ToolOutput};
use crate::mcp::schema::{self, JsonSchema, schemars};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use vm_system_protocol::control::{
    ProgramStart, ScheduleAdd, ScheduleDelete, ScheduleList, SchedulePause, ScheduleResume, ScheduleRun,
};
use vm_system_protocol::model::{Overlap, Schedule, ScheduleRule};

pub(super) fn rows() -> Vec<ToolRow> {
    vec![
        ToolRow {
            name: "add_schedule",
            title: "Schedule a program",
            description: "Start a program at certain times: of a cron expression in a time zone, or in intervals. A time \
                that nobody could keep, because the server was down, is made up for once. The program finds the time in \
                `env.VM_SYSTEM_SCHEDULED_FOR`, and how late it is in `env.VM_SYSTEM_LATE_MS`.",
            input: schema::input::<AddSchedule>,
            output: schema::output::<ScheduleView>,
            effect: Effect::Adds,
            set: ToolSet::Admin,
            reads_files: false,
            run: |call| Box::pin(add(call)),
        },
        ToolRow {
            name: "list_schedules",
            title: "List schedules",
            description: "Schedules of programs, newest first (200 at a time), with their next times, the last executions, \
                skipped times and failed starts.",
            input: schema::input::<ListSchedules>,
            output: schema::output::<ScheduleListView>,
            effect: Effect::Reads,
            set: ToolSet::Admin,
            reads_files: false,
            run: |call| Box::pin(list(call)),
        },
        ToolRow {
            name: "change_schedule",
            title: "Change a schedule",
            description: "Pause or resume a schedule, start its program now, or delete it. Executions that it has started \
                continue.",
            input: schema::input::<ChangeSchedule>,
            output: schema::output::<ChangedSchedule>,
            effect: Effect::Destroys,
            set: ToolSet::Admin,
            reads_files: false,
            run: |call| Box::pin(change(call)),
        },
    ]
}

/// A schedule, as agents see it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ScheduleView {
    /// Id of the schedule
    id: String,
    /// Name of the schedule
    name: String,
    /// Name or id of the program
    program: String,
    /// The cron expression, with its time zone, or the interval
    times: String,
    /// It starts nothing
    paused: bool,
    /// The next time
    #[serde(skip_serializing_if = "Option::is_none")]
    next_at: Option<String>,
    /// Id of the last execution
    #[serde(skip_serializing_if = "Option::is_none")]
    last_execution_id: Option<String>,
    /// The time for which that was started
    #[serde(skip_serializing_if = "Option::is_none")]
    last_scheduled_for: Option<String>,
    /// How late it was (ms)
    #[serde(skip_serializing_if = "Option::is_none")]
    late_ms: Option<u64>,
    /// The last time that was skipped, and why
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<String>,
    /// Why the last start failed
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
}

impl ScheduleView {
    fn new(schedule: &Schedule) -> Self {
        let last = schedule.last.as_ref();
        Self {
            id: schedule.id.to_string(),
            name: schedule.name.clone(),
            program: schedule.program.clone(),
            times: match (&schedule.cron, schedule.every_ms) {
                (Some(cron), _) => format!("{cron} ({})", schedule.time_zone),
                (None, every) => format!("every {} ms", every.unwrap_or_default()),
            },
            paused: schedule.paused,
            next_at: schedule.next_at.map(|at| at.to_string()),
            last_execution_id: last.map(|last| last.execution_id.to_string()),
            last_scheduled_for: last.map(|last| last.scheduled_for.to_string()),
            late_ms: last.map(|last| last.late_ms),
            skipped: schedule
                .skipped
                .as_ref()
                .map(|skipped| format!("{}: {}", skipped.scheduled_for, skipped.reason)),
            last_error: schedule
                .last_error
                .as_ref()
                .map(|error| format!("{}: {} ({})", error.scheduled_for, error.message, error.code)),
        }
    }

    fn next(&self) -> String {
        self.next_at.as_ref().map_or_else(|| "it is paused".to_owned(), |at| format!("next: {at}"))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct AddSchedule {
    /// A name for the schedule
    name: String,
    /// Name or id of the program; absent: the one that is called as the schedule
    program_id: Option<String>,
    /// Minute, hour, day, month and weekday, or a name such as `@daily`; either this or `everyMs`
    cron: Option<String>,
    /// Milliseconds between two starts, at least 1000
    every_ms: Option<u64>,
    /// Time zone of `cron`; absent: UTC
    time_zone: Option<String>,
    /// At a time at which the last execution has not ended: `skip` (default), `queue` or `cancel` that execution
    #[schemars(extend("enum" = ["skip", "queue", "cancel"]))]
    overlap: Option<String>,
    /// The program's `args`
    args: Option<Vec<String>>,
    /// The program's `env`
    env: Option<BTreeMap<String, String>>,
    /// The folder whose files the program may use
    worktree: Option<String>,
}

async fn add(call: &ToolCall<'_>) -> ToolResult {
    let AddSchedule { name, program_id, cron, every_ms, time_zone, overlap, args, env, worktree } =
        call.input()?;
    let overlap = overlap.as_deref().unwrap_or(Overlap::Skip.as_str()).parse();
    let overlap = overlap.map_err(|_| ToolError::invalid("overlap must be skip, queue or cancel"))?;
    let time_zone = time_zone.unwrap_or_else(|| "UTC".to_owned());
    let rule = ScheduleRule { cron, every_ms, time_zone, overlap, jitter_ms: 0 };
    let start = ProgramStart {
        program: program_id.unwrap_or_else(|| name.clone()),
        args: args.unwrap_or_default(),
        env: env.unwrap_or_default().into_iter().collect(),
        worktree_path: worktree,
        wait: false,
        ..ProgramStart::default()
    };
    let schedule = call.perform(ScheduleAdd { name, rule, start }).await?;
    let view = ScheduleView::new(&schedule);
    Ok(ToolOutput::new(format!("Schedule added: {}; {}", view.name, view.next()), &view))
}

/// Data of `list_schedules`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ScheduleListView {
    /// Newest first
    schedules: Vec<ScheduleView>,
    /// There are more: pass it as `cursor`
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ListSchedules {
    /// For administrators: only schedules of this owner
    owner: Option<String>,
    /// `nextCursor` of an earlier result: older schedules
    cursor: Option<String>,
}

async fn list(call: &ToolCall<'_>) -> ToolResult {
    let ListSchedules { owner, cursor } = call.input()?;
    let mut list = lists::ListParts::new(cursor)?;
    while let Some(page) = list.wanted() {
        list.add(call.perform(ScheduleList { owner: owner.clone(), page }).await?);
    }
    let (schedules, next_cursor) = list.finish();
    let schedules: Vec<ScheduleView> = schedules.iter().map(ScheduleView::new).collect();
    let text = if schedules.is_empty() {
        "No schedules".to_owned()
    } else {
        serde_json::to_string_pretty(&schedules).unwrap_or_default()
    };
    let note = lists::note(next_cursor.as_ref());
    let output = ToolOutput::new(text, &ScheduleListView { schedules, next_cursor });
    Ok(match note {
        Some(note) => output.and(note),
        None => output,
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ChangeSchedule {
    /// Name or id of the schedule
    schedule: String,
    /// The change
    #[schemars(extend("enum" = ["pause", "resume", "run", "delete"]))]
    action: String,
}

/// Data of `change_schedule`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ChangedSchedule {
    /// The change that was made
    action: String,
    /// Id of the execution that `run` has started
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_id: Option<String>,
    /// The next time of the schedule
    #[serde(skip_serializing_if = "Option::is_none")]
    next_at: Option<String>,
}

async fn change(call: &ToolCall<'_>) -> ToolResult {
    let ChangeSchedule { schedule, action } = call.input()?;
    let (text, execution_id, next_at) = match action.as_str() {
        "run" => {
            let run = call.perform(ScheduleRun { schedule }).await?;
            let id = run.execution.id.to_string();
            (format!("Execution started: {id}"), Some(id), None)
        }
        "pause" => {
            let paused = call.perform(SchedulePause { schedule }).await?;
            (format!("Schedule paused: {}", paused.name), None, None)
        }
        "resume" => {
            let view = ScheduleView::new(&call.perform(ScheduleResume { schedule }).await?);
            (format!("Schedule resumed: {}; {}", view.name, view.next()), None, view.next_at)
        }
        "delete" => {
            let deleted = call.perform(ScheduleDelete { schedule }).await?;
            (format!("Schedule deleted: {}", deleted.name), None, None)
        }
        _ => return Err(ToolError::invalid("action must be pause, resume, run or delete")),
    };
    Ok(ToolOutput::new(text, &ChangedSchedule { action, execution_id, next_at }))
}
