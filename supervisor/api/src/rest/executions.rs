//! Routes of executions.

use super::envelope::{RestError, RestResult, json, ok};
use super::input::{JsonBody, PathSegments, QueryParams, id, object, required};
use super::request::RestRequest;
use super::{filters, pages, programs, sse};
use axum::http::{HeaderMap, StatusCode, header};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use vm_system_protocol::control::{ExecCancel, ExecEvents, ExecGet, ExecList, ExecStart, RunGet};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{Execution, ExecutionKind};

/// Default number of executions in a list.
const DEFAULT_LIMIT: u32 = 50;

/// Input to evaluate.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ReplBody {
    session_id: Option<String>,
    input: Option<String>,
}

/// A file to run.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RunFileBody {
    session_id: Option<String>,
    /// Relative to the worktree.
    path: Option<String>,
    /// The script's `args`.
    args: Option<Box<RawValue>>,
    /// The script's `process.env`.
    env: Option<BTreeMap<String, Value>>,
}

/// Evaluate input in a session.
pub(super) async fn repl(
    request: RestRequest,
    params: QueryParams,
    JsonBody(body): JsonBody<ReplBody>,
) -> RestResult {
    let wait = params.flag("wait", true)?;
    let session = id("session_id", &required("session_id", body.session_id)?)?;
    let input = body.input.filter(|input| !input.is_empty());
    let input = input.ok_or_else(|| RestError::invalid("input is missing"))?;
    let new = ExecStart { input: Some(input), wait, ..ExecStart::new(session, ExecutionKind::Repl) };
    start(&request, &params, new).await
}

/// Run a file of the worktree in a session.
pub(super) async fn run_file(
    request: RestRequest,
    params: QueryParams,
    JsonBody(body): JsonBody<RunFileBody>,
) -> RestResult {
    let wait = params.flag("wait", true)?;
    let args = object("args", body.args.as_deref())?.unwrap_or_else(JsonText::empty_object);
    let env = variables(body.env.unwrap_or_default())?;
    let session = id("session_id", &required("session_id", body.session_id)?)?;
    let path = body.path.ok_or_else(|| RestError::invalid("path is missing"))?;
    let new =
        ExecStart { path: Some(path), args, env, wait, ..ExecStart::new(session, ExecutionKind::RunFile) };
    start(&request, &params, new).await
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

async fn start(request: &RestRequest, params: &QueryParams, new: ExecStart) -> RestResult {
    let cancel_on_disconnect = params.flag("cancel_on_disconnect", false)?;
    if cancel_on_disconnect && !new.wait {
        return Err(RestError::invalid("cancel_on_disconnect is for requests that wait for the end"));
    }
    let status = if new.wait { StatusCode::CREATED } else { StatusCode::ACCEPTED };
    json(status, &request.waiting_op(new, cancel_on_disconnect).await?)
}

/// Executions of a session, or of programs; newest first, without events and tasks; with filters.
pub(super) async fn list(request: RestRequest, params: QueryParams) -> RestResult {
    match (params.one("session_id")?, params.one("kind")?) {
        (None, Some("program")) => {
            let program = params.one("program")?.map(str::to_owned);
            return programs::runs(&request, program, &params).await;
        }
        (Some(_), Some(_)) => return Err(RestError::invalid("give one of session_id and kind")),
        (None, Some(_)) => return Err(RestError::invalid("kind must be program")),
        (_, None) => {}
    }
    let session = params.one("session_id")?.ok_or_else(|| {
        RestError::invalid("give session_id, or kind=program for the executions of all programs")
    })?;
    let session = id("session_id", session)?;
    for of_programs in ["program", "name", "owner"] {
        if params.one(of_programs)?.is_some() {
            return Err(RestError::invalid(format!(
                "{of_programs} selects executions of programs: give kind=program"
            )));
        }
    }
    let (status, period) = (filters::execution_status(&params)?, filters::period(&params)?);
    let page = pages::requested(&params, DEFAULT_LIMIT)?;
    let executions = request.op(ExecList { session, status, period, page }).await?;
    pages::response(page, &executions)
}

/// One execution, by id or name; for an execution of a program also the program, its version and the pending task.
pub(super) async fn get(request: RestRequest, PathSegments(execution): PathSegments<String>) -> RestResult {
    let found = find(&request, &execution).await?;
    if found.kind != ExecutionKind::Program {
        return ok(&found);
    }
    ok(&request.op(RunGet { execution: found.id.to_string() }).await?)
}

async fn find(request: &RestRequest, reference: &str) -> Result<Execution, RestError> {
    request.op(ExecGet { execution: reference.to_owned() }).await
}

#[derive(Serialize)]
struct Cancelled {
    status: &'static str,
    execution_id: String,
}

/// End a running execution as `cancelled`. Does nothing if it has already ended.
pub(super) async fn cancel(
    request: RestRequest,
    PathSegments(execution): PathSegments<String>,
) -> RestResult {
    let execution_id = find(&request, &execution).await?.id.to_string();
    request.op(ExecCancel { execution: execution_id.clone() }).await?;
    json(StatusCode::ACCEPTED, &Cancelled { status: "ok", execution_id })
}

/// Events of an execution, in order; as a live stream with `Accept: text/event-stream`.
pub(super) async fn events(
    request: RestRequest,
    PathSegments(execution): PathSegments<String>,
    params: QueryParams,
    headers: HeaderMap,
) -> RestResult {
    let after_seq = pages::after_seq(&params)?;
    let limit = params.number("limit", 1)?.unwrap_or_default();
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
