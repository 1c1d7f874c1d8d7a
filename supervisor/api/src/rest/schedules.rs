//! Routes of schedules.

use super::endpoint::Paged;
use super::envelope::{RestResult, created, ok};
use super::executions::variables;
use super::filters::ScheduleQuery;
use super::input::{JsonBody, PathSegments, id, required, whole};
use super::pages;
use super::query::Query;
use super::request::RestRequest;
use super::shapes::{FolderPath, Name, NotEmpty, Uuid, Variables};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use vm_system_protocol::control::{
    ProgramStart, ScheduleAdd, ScheduleDelete, ScheduleGet, SchedulePause, ScheduleResume, ScheduleRun,
};
use vm_system_protocol::model::{Overlap, Run, Schedule, ScheduleRule};

/// A new schedule: when, and what is started.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-forms" = {
    "ScheduleByCron": { "required": ["cron"], "without": ["every_ms"] },
    "ScheduleByInterval": { "required": ["every_ms"], "without": ["cron"] },
}))]
#[schemars(extend("dependentSchemas" = {
    "as_user": { "properties": { "worktree_path": { "type": "string" } }, "required": ["worktree_path"] },
}))]
pub(super) struct ScheduleBody {
    /// Unique among the owner's schedules.
    #[schemars(with = "Name")]
    name: Option<String>,
    /// Minute, hour, day, month and weekday, or a name such as `@daily`.
    #[schemars(with = "NotEmpty")]
    #[serde(default)]
    cron: Option<String>,
    /// The time between two starts (milliseconds), from the creation on.
    #[serde(default, deserialize_with = "whole")]
    #[schemars(range(min = 1_000, max = 31_622_400_000_u64))]
    every_ms: Option<u64>,
    /// The time zone of `cron`; absent: UTC.
    #[schemars(with = "Option<NotEmpty>")]
    time_zone: Option<String>,
    /// The rule for a time at which the last execution has not ended; absent: `skip`.
    overlap: Option<Overlap>,
    /// Each start is later by up to this much (milliseconds).
    #[serde(default, deserialize_with = "whole")]
    #[schemars(range(max = 86_400_000))]
    jitter_ms: Option<u64>,
    /// Name or id of the program, or `NAME@VERSION` for an older version; absent: the one that is called as the schedule.
    #[schemars(with = "Option<NotEmpty>")]
    program: Option<String>,
    /// A name for each execution: unique among those of the owner that have not ended.
    #[schemars(with = "Option<Name>")]
    execution_name: Option<String>,
    /// The program's `args`.
    args: Option<Vec<String>>,
    /// The program's `env`.
    #[schemars(with = "Option<Variables>")]
    env: Option<BTreeMap<String, Value>>,
    /// A template of engine `cvm`; absent: the built-in one.
    #[schemars(with = "Option<Uuid>")]
    template_id: Option<String>,
    /// The folder whose files the program may use; absent: none.
    #[schemars(with = "Option<FolderPath>")]
    worktree_path: Option<String>,
    /// For administrators: the user with whose rights the folder is used, a name or a number; absent: the caller's own.
    /// Only beside `worktree_path`.
    #[schemars(with = "Option<NotEmpty>")]
    as_user: Option<String>,
}

pub(super) async fn add(
    request: RestRequest,
    JsonBody(body): JsonBody<ScheduleBody>,
) -> RestResult<Schedule> {
    let name = required("name", body.name)?;
    let rule = ScheduleRule {
        cron: body.cron,
        every_ms: body.every_ms,
        time_zone: body.time_zone.unwrap_or_else(|| "UTC".to_owned()),
        overlap: body.overlap.unwrap_or(Overlap::Skip),
        jitter_ms: body.jitter_ms.unwrap_or_default(),
    };
    let start = ProgramStart {
        program: body.program.unwrap_or_else(|| name.clone()),
        name: body.execution_name,
        args: body.args.unwrap_or_default(),
        env: variables(body.env.unwrap_or_default())?,
        template: body.template_id.map(|template| id("template_id", &template)).transpose()?,
        worktree_path: body.worktree_path,
        as_user: body.as_user,
        wait: false,
    };
    created(&request.op(ScheduleAdd { name, rule, start }).await?)
}

pub(super) async fn list(
    request: RestRequest,
    Query(query): Query<ScheduleQuery>,
) -> RestResult<Vec<Schedule>, Paged> {
    let filter = query.filter();
    let page = filter.page;
    pages::response(page, &request.op(filter).await?)
}

pub(super) async fn get(
    request: RestRequest,
    PathSegments(schedule): PathSegments<String>,
) -> RestResult<Schedule> {
    ok(&request.op(ScheduleGet { schedule }).await?)
}

pub(super) async fn pause(
    request: RestRequest,
    PathSegments(schedule): PathSegments<String>,
) -> RestResult<Schedule> {
    ok(&request.op(SchedulePause { schedule }).await?)
}

pub(super) async fn resume(
    request: RestRequest,
    PathSegments(schedule): PathSegments<String>,
) -> RestResult<Schedule> {
    ok(&request.op(ScheduleResume { schedule }).await?)
}

pub(super) async fn run(
    request: RestRequest,
    PathSegments(schedule): PathSegments<String>,
) -> RestResult<Run> {
    created(&request.op(ScheduleRun { schedule }).await?)
}

pub(super) async fn delete(
    request: RestRequest,
    PathSegments(schedule): PathSegments<String>,
) -> RestResult<Schedule> {
    ok(&request.op(ScheduleDelete { schedule }).await?)
}
