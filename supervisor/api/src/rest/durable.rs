//! Routes of executions of programs: tasks, states, rewind and fork.

use super::envelope::{RestError, RestResult, created, json, ok};
use super::executions::variables;
use super::input::{JsonBody, OptionalJsonBody, PathSegments, QueryParams, id, required, whole};
use super::request::RestRequest;
use super::{filters, pages};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use vm_system_protocol::control::{
    CheckpointList, CurrentGet, CurrentSet, ErrorCode, GivenAnswer, OpError, ProgramStart, RunDelete,
    RunFork, RunRewind, StateGet, StateSet, TaskGet, TaskSubmit,
};
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::input::json_for_script;
use vm_system_protocol::json::JsonText;

/// The program to run, by id or name, and its input.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ProgramRunBody {
    program_id: Option<String>,
    /// Name of the program, or `NAME@VERSION`; a program with exactly this name is meant first.
    name: Option<String>,
    /// With `program_id`: the version to run; absent: the newest.
    #[serde(deserialize_with = "whole")]
    version: Option<u32>,
    /// A name for the execution: unique among those of the owner that have not ended.
    execution_id: Option<String>,
    /// The program's `args`.
    args: Option<Vec<String>>,
    /// The program's `env`.
    env: Option<BTreeMap<String, Value>>,
    /// A template of engine `cvm`; absent: the built-in one.
    template_id: Option<String>,
    /// The folder whose files the program may use; absent: none.
    worktree_path: Option<String>,
    /// For administrators: the user with whose rights the folder is used, a name or a number; absent: the caller's own.
    as_user: Option<String>,
}

/// An answer to a task.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct AnswerBody {
    /// Id of the task that is answered; absent: the pending one.
    task_id: Option<String>,
    /// If the task has a schema, a value that matches it: `"42"` is a string, not a number. Otherwise any string, or the JSON
    /// of any other value.
    #[serde(deserialize_with = "present")]
    result: Option<Box<RawValue>>,
}

/// A change of one variable.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct VariableBody {
    name: Option<String>,
    /// Any JSON, also `null`.
    #[serde(deserialize_with = "present")]
    value: Option<Box<RawValue>>,
    /// Index in the state's `frames`; 0, the innermost, if absent.
    #[serde(deserialize_with = "whole")]
    frame: Option<u32>,
}

/// The checkpoint to rewind to.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RewindBody {
    /// `seq` of a checkpoint.
    #[serde(deserialize_with = "whole")]
    checkpoint: Option<u64>,
}

/// Distinguishes a given `null` from an absent value.
fn present<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Deserialize::deserialize(value).map(Some)
}

/// Where to fork, and under which name.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ForkBody {
    /// `seq` of a checkpoint; absent: the current state.
    #[serde(deserialize_with = "whole")]
    checkpoint: Option<u64>,
    /// A name for the new execution.
    name: Option<String>,
}

/// Run a program to its first pause or its end.
pub(super) async fn start(
    request: RestRequest,
    params: QueryParams,
    JsonBody(body): JsonBody<ProgramRunBody>,
) -> RestResult {
    let wait = params.flag("wait", true)?;
    let program = match (body.program_id, body.name, body.version) {
        (Some(program), None, None) => id("program_id", &program)?,
        (Some(program), None, Some(version)) => format!("{}@{version}", id("program_id", &program)?),
        (None, name, None) => required("program_id or name", name)?,
        (None, _, Some(_)) => {
            return Err(RestError::invalid("version belongs to program_id: a name is given as NAME@VERSION"));
        }
        (Some(_), Some(_), _) => return Err(RestError::invalid("give one of program_id and name")),
    };
    let new = ProgramStart {
        program,
        name: body.execution_id,
        args: body.args.unwrap_or_default(),
        env: variables(body.env.unwrap_or_default())?,
        template: body.template_id.map(|template| id("template_id", &template)).transpose()?,
        worktree_path: body.worktree_path,
        as_user: body.as_user,
        wait,
    };
    let status = if wait { StatusCode::CREATED } else { StatusCode::ACCEPTED };
    json(status, &request.op(new).await?)
}

#[derive(Serialize)]
struct Deleted {
    status: &'static str,
    execution_id: ExecutionId,
}

/// Delete an execution of a program with its output and states; if it has not ended, it is ended first.
pub(super) async fn forget(
    request: RestRequest,
    PathSegments(execution): PathSegments<String>,
) -> RestResult {
    let run = request.op(RunDelete { execution: execution.clone() }).await?;
    ok(&Deleted { status: "ok", execution_id: run.execution.id })
}

/// The new current execution.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CurrentBody {
    /// Id or name of the execution.
    execution_id: Option<String>,
}

/// The current execution of a client: the one that its requests use if they name none. Clients of
/// `vm-system mcp --client NAME` are called `client NAME`.
pub(super) async fn current(request: RestRequest, PathSegments(client): PathSegments<String>) -> RestResult {
    let message = "no current execution is set for this client";
    let run = request.op(CurrentGet { client }).await?;
    ok(&run.ok_or_else(|| OpError::new(ErrorCode::ExecutionNotFound, message))?)
}

/// Set the current execution of a client.
pub(super) async fn set_current(
    request: RestRequest,
    PathSegments(client): PathSegments<String>,
    JsonBody(body): JsonBody<CurrentBody>,
) -> RestResult {
    let execution = required("execution_id", body.execution_id)?;
    ok(&request.op(CurrentSet { client, execution: execution.clone() }).await?)
}

/// Status of an execution of a program, and its pending task. Reading it changes nothing.
pub(super) async fn task(request: RestRequest, PathSegments(execution): PathSegments<String>) -> RestResult {
    ok(&request.op(TaskGet { execution: execution.clone() }).await?)
}

/// Submit an answer; the response follows when the program has reached its next pause or its end.
pub(super) async fn submit(
    request: RestRequest,
    PathSegments(execution): PathSegments<String>,
    params: QueryParams,
    JsonBody(body): JsonBody<AnswerBody>,
) -> RestResult {
    let wait = params.flag("wait", true)?;
    let task = body.task_id.map(|task| id("task_id", &task)).transpose()?;
    let result = body.result.ok_or_else(|| RestError::invalid("result is missing"))?;
    // The parser of raw text accepts what no value is: unpaired surrogates, numbers out of range, any nesting.
    json_for_script(result.get())
        .map_err(|why| RestError::request(StatusCode::BAD_REQUEST, format!("result: {why}")))?;
    let result = GivenAnswer::Json(JsonText::from_untrusted(result.get().to_owned()));
    let op = TaskSubmit { execution: execution.clone(), task, result, wait };
    let status = if wait { StatusCode::OK } else { StatusCode::ACCEPTED };
    json(status, &request.op(op).await?)
}

/// Pending tasks, oldest first; with a `status`, tasks that have ended, newest first.
pub(super) async fn tasks(request: RestRequest, params: QueryParams) -> RestResult {
    let page = pages::requested(&params, pages::MOST)?;
    let filter = filters::tasks(&params, page)?;
    let tasks = request.op(filter).await?;
    pages::response(page, &tasks)
}

/// Frames and variables of a program that waits or has ended.
pub(super) async fn state(
    request: RestRequest,
    PathSegments(execution): PathSegments<String>,
    params: QueryParams,
) -> RestResult {
    let checkpoint = params.number("checkpoint", 0)?;
    ok(&request.op(StateGet { execution: execution.clone(), checkpoint }).await?)
}

/// Change a variable of a waiting execution.
pub(super) async fn set(
    request: RestRequest,
    PathSegments(execution): PathSegments<String>,
    JsonBody(body): JsonBody<VariableBody>,
) -> RestResult {
    let name = required("name", body.name)?;
    let value = body.value.ok_or_else(|| RestError::invalid("value is missing"))?;
    let value = JsonText::from_untrusted(value.get().to_owned());
    let op = StateSet { execution: execution.clone(), name, value, frame: body.frame };
    ok(&request.op(op).await?)
}

/// The stored checkpoints of an execution.
pub(super) async fn checkpoints(
    request: RestRequest,
    PathSegments(execution): PathSegments<String>,
) -> RestResult {
    ok(&request.op(CheckpointList { execution: execution.clone() }).await?)
}

/// Start a new execution from a checkpoint; it takes over the name, and the old one ends as `cancelled`. The response follows when it
/// has reached its next pause or its end.
pub(super) async fn rewind(
    request: RestRequest,
    PathSegments(execution): PathSegments<String>,
    JsonBody(body): JsonBody<RewindBody>,
) -> RestResult {
    let checkpoint = body.checkpoint.ok_or_else(|| RestError::invalid("checkpoint is missing"))?;
    ok(&request.op(RunRewind { execution: execution.clone(), checkpoint }).await?)
}

/// Start a new execution from a checkpoint; the old one is not changed. The response follows when it has reached its next pause or
/// its end.
pub(super) async fn branch_off(
    request: RestRequest,
    PathSegments(execution): PathSegments<String>,
    OptionalJsonBody(body): OptionalJsonBody<ForkBody>,
) -> RestResult {
    let ForkBody { checkpoint, name } = body;
    let op = RunFork { execution: execution.clone(), checkpoint, name };
    created(&request.op(op).await?)
}
