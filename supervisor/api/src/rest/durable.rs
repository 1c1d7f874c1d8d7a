//! Routes of executions of programs: tasks, states, rewind and fork.

use super::endpoint::Paged;
use super::envelope::{DoneStatus, RestError, RestResult, created, json, ok};
use super::executions::variables;
use super::filters::TaskQuery;
use super::input::{JsonBody, OptionalJsonBody, PathSegments, id, required, whole};
use super::pages;
use super::query::{Flag, Query, Sequence, query};
use super::request::RestRequest;
use super::shapes::{EventName, FolderPath, Name, NotBlank, NotEmpty, Reference, Uuid, Variables};
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use vm_system_protocol::control::{
    CheckpointList, CurrentGet, CurrentSet, EmittedEvent, ErrorCode, EventEmit, GivenAnswer, OpError,
    OtherAnswer, OtherValue, ProgramStart, RunDelete, RunFork, RunRerun, RunRewind, StateGet, StateSet,
    TaskGet, TaskSubmit,
};
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::input::json_for_script;
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{CheckpointInfo, ListedTask, ProgramState, Run, TaskStatus};

/// The program to run, by id or name, and its input.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-forms" = {
    "ProgramRunById": { "required": ["program_id"], "without": ["name"] },
    "ProgramRunByName": { "required": ["name"], "without": ["program_id", "version"] },
}))]
#[schemars(extend("dependentSchemas" = {
    "as_user": { "properties": { "worktree_path": { "type": "string" } }, "required": ["worktree_path"] },
}))]
pub(super) struct ProgramRunBody {
    /// Id of the program.
    #[schemars(with = "Uuid")]
    #[serde(default)]
    program_id: Option<String>,
    /// Name of the program, or `NAME@VERSION` for an older version; a program with exactly this name is meant first.
    #[schemars(with = "Name")]
    #[serde(default)]
    name: Option<String>,
    /// The version to run, beside `program_id`; absent: the newest.
    #[serde(default, deserialize_with = "whole")]
    #[schemars(range(min = 1))]
    version: Option<u32>,
    /// A name for the execution: unique among those of the owner that have not ended.
    #[schemars(with = "Option<Name>")]
    execution_id: Option<String>,
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

/// An answer to a task.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("required" = ["result"]))]
pub(super) struct AnswerBody {
    /// Id of the task that is answered; absent: the pending one.
    #[schemars(with = "Option<Uuid>")]
    task_id: Option<String>,
    /// If the task has a schema, a value that matches it: `"42"` is a string, not a number. Otherwise any string, or the JSON
    /// of any other value.
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "JsonText")]
    result: Option<Box<RawValue>>,
}

/// An event for programs.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("required" = ["name", "event"]))]
#[schemars(extend("x-forms" = {
    "EventForOne": { "required": ["execution_id"], "without": ["all"] },
    "EventForAll": { "required": ["all"], "without": ["execution_id"] },
}))]
pub(super) struct EventBody {
    /// The name with which programs wait for it: at most 256 bytes.
    #[schemars(with = "EventName")]
    name: Option<String>,
    /// The content: any JSON, also `null`; at most 1 MiB.
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "JsonText")]
    event: Option<Box<RawValue>>,
    /// Id or name of the execution that gets it; if it does not wait for it, it keeps it until it does.
    #[schemars(with = "Reference")]
    #[serde(default)]
    execution_id: Option<String>,
    /// true: all executions of the caller that wait for it now.
    #[schemars(extend("enum" = [true]))]
    #[serde(default)]
    all: bool,
}

/// A change of one variable.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("required" = ["name", "value"]))]
pub(super) struct VariableBody {
    #[schemars(with = "NotBlank")]
    name: Option<String>,
    /// Any JSON, also `null`.
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "JsonText")]
    value: Option<Box<RawValue>>,
    /// Index in the state's `frames`; if absent, the innermost frame that has the variable.
    #[serde(default, deserialize_with = "whole")]
    frame: Option<u32>,
}

/// The checkpoint to rewind to.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("required" = ["checkpoint"]))]
pub(super) struct RewindBody {
    /// `seq` of a checkpoint.
    #[serde(default, deserialize_with = "whole")]
    #[schemars(required, range(max = i64::MAX))]
    checkpoint: Option<u64>,
}

/// Distinguishes a given `null` from an absent value.
fn present<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Deserialize::deserialize(value).map(Some)
}

/// Where to fork, and under which name.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ForkBody {
    /// `seq` of a checkpoint; absent: the current state.
    #[serde(default, deserialize_with = "whole")]
    #[schemars(range(max = i64::MAX))]
    checkpoint: Option<u64>,
    /// A name for the new execution.
    #[schemars(with = "Option<Name>")]
    name: Option<String>,
}

/// Where a new execution continues, and with which answers and values.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("required" = ["checkpoint"]))]
pub(super) struct RerunBody {
    /// `seq` of a checkpoint.
    #[serde(default, deserialize_with = "whole")]
    #[schemars(required, range(max = i64::MAX))]
    checkpoint: Option<u64>,
    /// Answers to tasks that were open at the checkpoint, in the order in which the program gets them.
    #[serde(default)]
    answers: Vec<OtherAnswerBody>,
    /// Values of variables, changed before an answer is used; for a checkpoint at which the execution waits.
    #[serde(default)]
    variables: Vec<VariableBody>,
    /// A name for the new execution; absent: none, or with `end_old` that of the old one.
    #[schemars(with = "Option<Name>")]
    name: Option<String>,
    /// true: the old execution ends as `cancelled`.
    #[serde(default)]
    end_old: bool,
}

/// An answer to a task that was open at a checkpoint.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("required" = ["task_id", "result"]))]
pub(super) struct OtherAnswerBody {
    /// Id of the task of the old execution.
    #[schemars(with = "Uuid")]
    task_id: Option<String>,
    /// As of an answer to a pending task.
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "JsonText")]
    result: Option<Box<RawValue>>,
}

query! {
    /// The query of a start.
    StartQuery {
        /// false: respond with 202 as soon as the execution is recorded.
        wait: Flag<true>,
    }
}

pub(super) async fn start(
    request: RestRequest,
    Query(query): Query<StartQuery>,
    JsonBody(body): JsonBody<ProgramRunBody>,
) -> RestResult<Run> {
    let wait = query.wait.0;
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

/// A deleted execution.
#[derive(Serialize, JsonSchema)]
pub(super) struct ExecutionForgotten {
    status: DoneStatus,
    execution_id: ExecutionId,
}

pub(super) async fn forget(
    request: RestRequest,
    PathSegments(execution): PathSegments<String>,
) -> RestResult<ExecutionForgotten> {
    let run = request.op(RunDelete { execution: execution.clone() }).await?;
    ok(&ExecutionForgotten { status: DoneStatus::Ok, execution_id: run.execution.id })
}

/// The new current execution.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CurrentBody {
    /// Id or name of the execution.
    #[schemars(with = "Reference")]
    execution_id: Option<String>,
}

pub(super) async fn current(
    request: RestRequest,
    PathSegments(client): PathSegments<String>,
) -> RestResult<Run> {
    let message = "no current execution is set for this client";
    let run = request.op(CurrentGet { client }).await?;
    ok(&run.ok_or_else(|| OpError::new(ErrorCode::ExecutionNotFound, message))?)
}

pub(super) async fn set_current(
    request: RestRequest,
    PathSegments(client): PathSegments<String>,
    JsonBody(body): JsonBody<CurrentBody>,
) -> RestResult<Run> {
    let execution = required("execution_id", body.execution_id)?;
    ok(&request.op(CurrentSet { client, execution: execution.clone() }).await?)
}

pub(super) async fn task(
    request: RestRequest,
    PathSegments(execution): PathSegments<String>,
) -> RestResult<TaskStatus> {
    ok(&request.op(TaskGet { execution: execution.clone() }).await?)
}

query! {
    /// The query of an answer.
    SubmitQuery {
        /// false: respond with 202 as soon as the answer is stored.
        wait: Flag<true>,
    }
}

pub(super) async fn submit(
    request: RestRequest,
    PathSegments(execution): PathSegments<String>,
    Query(query): Query<SubmitQuery>,
    JsonBody(body): JsonBody<AnswerBody>,
) -> RestResult<Run> {
    let wait = query.wait.0;
    let task = body.task_id.map(|task| id("task_id", &task)).transpose()?;
    let result = answer(body.result)?;
    let op = TaskSubmit { execution: execution.clone(), task, result, wait };
    let status = if wait { StatusCode::OK } else { StatusCode::ACCEPTED };
    json(status, &request.op(op).await?)
}

/// The answer of a body.
fn answer(result: Option<Box<RawValue>>) -> Result<GivenAnswer, RestError> {
    let result = result.ok_or_else(|| RestError::invalid("result is missing"))?;
    // The parser of raw text accepts what no value is: unpaired surrogates, numbers out of range, any nesting.
    json_for_script(result.get())
        .map_err(|why| RestError::request(StatusCode::BAD_REQUEST, format!("result: {why}")))?;
    Ok(GivenAnswer::Json(JsonText::from_untrusted(result.get().to_owned())))
}

/// The name and the value of a body.
fn variable(body: VariableBody) -> Result<OtherValue, RestError> {
    let name = required("name", body.name)?;
    let value = body.value.ok_or_else(|| RestError::invalid("value is missing"))?;
    Ok(OtherValue { name, value: JsonText::from_untrusted(value.get().to_owned()), frame: body.frame })
}

pub(super) async fn emit(
    request: RestRequest,
    JsonBody(body): JsonBody<EventBody>,
) -> RestResult<EmittedEvent> {
    // Any text: a program may wait for a blank one.
    let name = body.name.ok_or_else(|| RestError::invalid("name is missing"))?;
    let event = body.event.ok_or_else(|| RestError::invalid("event is missing"))?;
    if body.all == body.execution_id.is_some() {
        return Err(RestError::invalid("give one of execution_id and all"));
    }
    let event = JsonText::from_untrusted(event.get().to_owned());
    ok(&request.op(EventEmit { name, event, execution: body.execution_id }).await?)
}

pub(super) async fn tasks(
    request: RestRequest,
    Query(query): Query<TaskQuery>,
) -> RestResult<Vec<ListedTask>, Paged> {
    let filter = query.filter()?;
    let page = filter.page;
    let tasks = request.op(filter).await?;
    pages::response(page, &tasks)
}

query! {
    /// The query of a state.
    StateQuery {
        /// State at this checkpoint; absent: the current state.
        checkpoint: Option<Sequence>,
    }
}

pub(super) async fn state(
    request: RestRequest,
    PathSegments(execution): PathSegments<String>,
    Query(query): Query<StateQuery>,
) -> RestResult<ProgramState> {
    let checkpoint = query.checkpoint.map(|Sequence(seq)| seq);
    ok(&request.op(StateGet { execution: execution.clone(), checkpoint }).await?)
}

pub(super) async fn set(
    request: RestRequest,
    PathSegments(execution): PathSegments<String>,
    JsonBody(body): JsonBody<VariableBody>,
) -> RestResult<Run> {
    let OtherValue { name, value, frame } = variable(body)?;
    ok(&request.op(StateSet { execution, name, value, frame }).await?)
}

pub(super) async fn checkpoints(
    request: RestRequest,
    PathSegments(execution): PathSegments<String>,
) -> RestResult<Vec<CheckpointInfo>> {
    ok(&request.op(CheckpointList { execution: execution.clone() }).await?)
}

pub(super) async fn rewind(
    request: RestRequest,
    PathSegments(execution): PathSegments<String>,
    JsonBody(body): JsonBody<RewindBody>,
) -> RestResult<Run> {
    let checkpoint = body.checkpoint.ok_or_else(|| RestError::invalid("checkpoint is missing"))?;
    ok(&request.op(RunRewind { execution: execution.clone(), checkpoint }).await?)
}

pub(super) async fn branch_off(
    request: RestRequest,
    PathSegments(execution): PathSegments<String>,
    OptionalJsonBody(body): OptionalJsonBody<ForkBody>,
) -> RestResult<Run> {
    let ForkBody { checkpoint, name } = body;
    let op = RunFork { execution: execution.clone(), checkpoint, name };
    created(&request.op(op).await?)
}

pub(super) async fn rerun(
    request: RestRequest,
    PathSegments(execution): PathSegments<String>,
    JsonBody(body): JsonBody<RerunBody>,
) -> RestResult<Run> {
    let RerunBody { checkpoint, answers, variables, name, end_old } = body;
    let checkpoint = checkpoint.ok_or_else(|| RestError::invalid("checkpoint is missing"))?;
    let answers = answers.into_iter().map(|body| {
        let task = id("task_id", &required("task_id", body.task_id)?)?;
        Ok(OtherAnswer { task, result: answer(body.result)? })
    });
    let answers = answers.collect::<Result<_, RestError>>()?;
    let variables = variables.into_iter().map(variable).collect::<Result<_, RestError>>()?;
    created(&request.op(RunRerun { execution, checkpoint, answers, variables, name, end_old }).await?)
}
