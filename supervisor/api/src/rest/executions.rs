//! Routes of executions.

use super::endpoint::{Paged, Streamed};
use super::envelope::{DoneStatus, RestError, RestResult, json, ok};
use super::filters::{self, ExecutionQuery};
use super::input::{JsonBody, PathSegments, id, object, required};
use super::pages::{self, EventQuery};
use super::query::{Flag, IdText, Positive, Query, query};
use super::request::RestRequest;
use super::shapes::{NotEmpty, Uuid, Variables, WorktreePath};
use super::sse;
use axum::http::{HeaderMap, StatusCode, header};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use vm_system_protocol::control::{
    ExecCancel, ExecEvents, ExecGet, ExecList, ExecStart, ExecutionState, RunGet,
};
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{Event, Execution, ExecutionKind, Run};

/// Default number of executions in a list.
const DEFAULT_LIMIT: u32 = 50;

/// Input to evaluate.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReplBody {
    #[schemars(with = "Uuid")]
    session_id: Option<String>,
    #[schemars(with = "NotEmpty")]
    input: Option<String>,
}

/// A file to run.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RunFileBody {
    #[schemars(with = "Uuid")]
    session_id: Option<String>,
    /// Relative to the worktree, or the absolute path of a file in it.
    #[schemars(with = "WorktreePath")]
    path: Option<String>,
    /// The script's `args`.
    #[schemars(with = "Option<BTreeMap<String, JsonText>>")]
    args: Option<Box<RawValue>>,
    /// The script's `process.env`.
    #[schemars(with = "Option<Variables>")]
    env: Option<BTreeMap<String, Value>>,
}

query! {
    /// The query of an execution in a session.
    WaitQuery {
        /// false: respond with 202 as soon as the execution runs.
        wait: Flag<true>,
        /// true: if the client disconnects before the response, does not come back within 2 s (with the same Idempotency-Key), and
        /// nobody else waits for the execution or follows it, it is cancelled. A request that is repeated later with the same key gets
        /// the cancelled execution. Not with wait=false.
        cancel_on_disconnect: Flag<false>,
    }
}

pub(super) async fn repl(
    request: RestRequest,
    Query(query): Query<WaitQuery>,
    JsonBody(body): JsonBody<ReplBody>,
) -> RestResult<ExecutionState> {
    let wait = query.wait.0;
    let session = id("session_id", &required("session_id", body.session_id)?)?;
    let input = body.input.filter(|input| !input.is_empty());
    let input = input.ok_or_else(|| RestError::invalid("input is missing"))?;
    let new = ExecStart { input: Some(input), wait, ..ExecStart::new(session, ExecutionKind::Repl) };
    start(&request, &query, new).await
}

pub(super) async fn run_file(
    request: RestRequest,
    Query(query): Query<WaitQuery>,
    JsonBody(body): JsonBody<RunFileBody>,
) -> RestResult<ExecutionState> {
    let wait = query.wait.0;
    let args = object("args", body.args.as_deref())?.unwrap_or_else(JsonText::empty_object);
    let env = variables(body.env.unwrap_or_default())?;
    let session = id("session_id", &required("session_id", body.session_id)?)?;
    let path = body.path.ok_or_else(|| RestError::invalid("path is missing"))?;
    let new =
        ExecStart { path: Some(path), args, env, wait, ..ExecStart::new(session, ExecutionKind::RunFile) };
    start(&request, &query, new).await
}

/// Variables are strings; numbers and booleans are converted as `process.env` does.
pub(super) fn variables(env: BTreeMap<String, Value>) -> Result<Vec<(String, String)>, RestError> {
    let text = |(name, value)| match value {
        Value::String(text) => Ok((name, text)),
        Value::Number(_) | Value::Bool(_) => Ok((name, value.to_string())),
        _ => Err(RestError::request(
            StatusCode::BAD_REQUEST,
            format!("env: the value of {name:?} is not text"),
        )),
    };
    env.into_iter().map(text).collect()
}

async fn start(request: &RestRequest, query: &WaitQuery, new: ExecStart) -> RestResult<ExecutionState> {
    let cancel_on_disconnect = query.cancel_on_disconnect.0;
    if cancel_on_disconnect && !new.wait {
        return Err(RestError::invalid("cancel_on_disconnect is for requests that wait for the end"));
    }
    let status = if new.wait { StatusCode::CREATED } else { StatusCode::ACCEPTED };
    json(status, &request.waiting_op(new, cancel_on_disconnect).await?)
}

pub(super) async fn list(
    request: RestRequest,
    Query(query): Query<ExecutionQuery>,
) -> RestResult<Vec<ExecutionState>, Paged> {
    let session = match (&query.session_id, query.kind.as_deref()) {
        (None, Some("program")) => {
            let filter = query.of_programs();
            let page = filter.page;
            let runs: Vec<Run> = request.op(filter).await?;
            return pages::response(page, &runs.into_iter().map(ExecutionState::Run).collect::<Vec<_>>());
        }
        (Some(_), Some(_)) => return Err(RestError::invalid("give one of session_id and kind")),
        (None, Some(_)) => return Err(RestError::invalid("kind must be program")),
        (None, None) => {
            let message = "give session_id, or kind=program for the executions of all programs";
            return Err(RestError::invalid(message));
        }
        (Some(IdText(session)), None) => session.clone(),
    };
    let of_programs = [("program", &query.program), ("name", &query.name), ("owner", &query.owner)];
    if let Some((name, _)) = of_programs.iter().find(|(_, value)| value.is_some()) {
        return Err(RestError::invalid(format!("{name} selects executions of programs: give kind=program")));
    }
    let status = query.status;
    let (period, page) = filters::of_session(query, DEFAULT_LIMIT);
    let executions: Vec<Execution> = request.op(ExecList { session, status, period, page }).await?;
    pages::response(page, &executions.into_iter().map(ExecutionState::Execution).collect::<Vec<_>>())
}

pub(super) async fn get(
    request: RestRequest,
    PathSegments(execution): PathSegments<String>,
) -> RestResult<ExecutionState> {
    let found = find(&request, &execution).await?;
    if found.kind != ExecutionKind::Program {
        return ok(&ExecutionState::Execution(found));
    }
    let run: Run = request.op(RunGet { execution: found.id.to_string() }).await?;
    ok(&ExecutionState::Run(run))
}

async fn find(request: &RestRequest, reference: &str) -> Result<Execution, RestError> {
    request.op(ExecGet { execution: reference.to_owned() }).await
}

/// A cancelled execution.
#[derive(Serialize, JsonSchema)]
pub(super) struct ExecutionCancelled {
    status: DoneStatus,
    execution_id: ExecutionId,
}

pub(super) async fn cancel(
    request: RestRequest,
    PathSegments(execution): PathSegments<String>,
) -> RestResult<ExecutionCancelled> {
    let execution_id = find(&request, &execution).await?.id;
    request.op(ExecCancel { execution: execution_id.to_string() }).await?;
    json(StatusCode::ACCEPTED, &ExecutionCancelled { status: DoneStatus::Ok, execution_id })
}

pub(super) async fn events(
    request: RestRequest,
    PathSegments(execution): PathSegments<String>,
    Query(query): Query<EventQuery>,
    headers: HeaderMap,
) -> RestResult<Vec<Event>, Streamed> {
    let after_seq = query.after_seq();
    let limit = query.limit.map_or(0, |Positive(limit)| limit);
    let last_event_id = sse::last_event_id(&headers)?;
    let found = find(&request, &execution).await?;
    if sse::is_requested(&headers) {
        let after_seq = last_event_id.unwrap_or(after_seq);
        return sse::stream(request, &found, after_seq, headers.contains_key("last-event-id"));
    }
    let op = ExecEvents { execution: found.id.to_string(), after_seq, limit, follow: false };
    let events = request.op(op).await?;
    pages::events(limit, &events, |event| event.seq)
}

/// Whether a client lists a media type in its `Accept`.
pub(super) fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let listed = headers.get_all(header::ACCEPT).iter().filter_map(|field| field.to_str().ok());
    let mut kinds = listed.flat_map(|field| field.split(','));
    kinds.any(|accepted| accepted.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(kind))
}
