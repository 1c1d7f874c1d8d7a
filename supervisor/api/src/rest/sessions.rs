//! Routes of sessions.

use super::envelope::{RestError, RestResult, created, json, ok};
use super::input::{
    JsonBody, OptionalJsonBody, PathSegments, QueryParams, id, required, whole, whole_number,
};
use super::request::RestRequest;
use super::{pages, sse};
use axum::http::{HeaderMap, StatusCode};
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};
use vm_system_protocol::control::{
    SessionAddCheckpoint, SessionCheckpoints, SessionClose, SessionCreate, SessionDeleteCheckpoint,
    SessionFork, SessionGet, SessionInspect, SessionKill, SessionList, SessionRename, SessionResume,
    SessionRollback, SessionSuspend,
};
use vm_system_protocol::model::{Engine, SessionStatus};

/// A new session.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SessionBody {
    template_id: Option<String>,
    /// Any name. Sessions of one owner and workspace share its database files.
    workspace_id: Option<String>,
    /// Any text; only recorded.
    base_commit_oid: Option<String>,
    /// Absolute path of an existing folder.
    worktree_path: Option<String>,
    /// For administrators: the user with whose rights the folder is used, a name or a number; by default the caller.
    as_user: Option<String>,
    /// For people.
    name: Option<String>,
    /// Not longer than the template's (seconds).
    #[serde(deserialize_with = "whole")]
    ttl_s: Option<u32>,
    /// Not longer than the template's (seconds).
    #[serde(deserialize_with = "whole")]
    idle_timeout_s: Option<u32>,
}

/// The signal to send.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct KillBody {
    /// Name or number of a signal; `KILL` by default.
    signal: Option<serde_json::Value>,
}

impl KillBody {
    /// The signal's number.
    fn number(&self) -> Result<i32, RestError> {
        match &self.signal {
            None => Ok(nix::libc::SIGKILL),
            Some(serde_json::Value::Number(number)) => whole_number(number)
                .and_then(|whole| i32::try_from(whole).ok())
                .ok_or_else(|| RestError::invalid(format!("{number} is not the number of a signal"))),
            Some(serde_json::Value::String(name)) => {
                let name = name.trim().to_ascii_uppercase();
                let full = if name.starts_with("SIG") { name } else { format!("SIG{name}") };
                full.parse::<Signal>()
                    .map(|signal| signal as i32)
                    .map_err(|_| RestError::invalid(format!("unknown signal {full}")))
            }
            Some(_) => Err(RestError::request(
                StatusCode::BAD_REQUEST,
                "invalid body: signal must be the name or the number of a signal",
            )),
        }
    }
}

/// Sessions, newest first.
pub(super) async fn list(request: RestRequest, params: QueryParams) -> RestResult {
    let names = SessionStatus::ALL.iter().map(|status| status.as_str()).collect::<Vec<_>>().join(", ");
    let engines = Engine::ALL.iter().map(|engine| engine.as_str()).collect::<Vec<_>>().join(", ");
    let filter = SessionList {
        status: params.name("status", &names)?,
        template: params.one("template_id")?.map(|text| id("template_id", text)).transpose()?,
        workspace_id: params.one("workspace_id")?.map(str::to_owned),
        engine: params.name("engine", &engines)?,
        page: pages::requested(&params, pages::MOST)?,
    };
    let page = filter.page;
    let sessions = request.op(filter).await?;
    pages::response(page, &sessions)
}

/// Create a session and wait until it is ready.
pub(super) async fn create(request: RestRequest, JsonBody(body): JsonBody<SessionBody>) -> RestResult {
    let new = SessionCreate {
        template: id("template_id", &required("template_id", body.template_id)?)?,
        workspace_id: required("workspace_id", body.workspace_id)?,
        base_commit_oid: required("base_commit_oid", body.base_commit_oid)?,
        worktree_path: required("worktree_path", body.worktree_path)?,
        as_user: body.as_user,
        name: body.name,
        ttl_s: body.ttl_s,
        idle_timeout_s: body.idle_timeout_s,
    };
    created(&request.op(new).await?)
}

/// One session.
pub(super) async fn get(request: RestRequest, PathSegments(session): PathSegments<String>) -> RestResult {
    ok(&request.op(SessionGet { session: id("session_id", &session)? }).await?)
}

/// The new name.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RenameBody {
    name: Option<String>,
}

/// Give a session that has not ended another name.
pub(super) async fn rename(
    request: RestRequest,
    PathSegments(session): PathSegments<String>,
    JsonBody(body): JsonBody<RenameBody>,
) -> RestResult {
    let name = body.name.ok_or_else(|| RestError::invalid("name is missing"))?;
    ok(&request.op(SessionRename { session: id("session_id", &session)?, name }).await?)
}

/// End a session; a running execution becomes `cancelled` first. Idempotent.
pub(super) async fn close(request: RestRequest, PathSegments(session): PathSegments<String>) -> RestResult {
    ok(&request.op(SessionClose { session: id("session_id", &session)? }).await?)
}

/// The same as `close`.
pub(super) async fn delete(request: RestRequest, PathSegments(session): PathSegments<String>) -> RestResult {
    close(request, PathSegments(session)).await
}

/// A session's process as the kernel reports it.
pub(super) async fn inspect(request: RestRequest, PathSegments(session): PathSegments<String>) -> RestResult {
    ok(&request.op(SessionInspect { session: id("session_id", &session)? }).await?)
}

/// The number of copies.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SessionForkBody {
    /// Number of new sessions (1 to 64, default 1).
    #[serde(deserialize_with = "whole")]
    count: Option<u32>,
}

/// Create copies of an idle session, each with its current state; if one fails, none is created.
pub(super) async fn fork(
    request: RestRequest,
    PathSegments(session): PathSegments<String>,
    OptionalJsonBody(body): OptionalJsonBody<SessionForkBody>,
) -> RestResult {
    let session = id("session_id", &session)?;
    let sessions = request.op(SessionFork { session, count: body.count.unwrap_or(1) }).await?;
    created(&sessions)
}

/// A new checkpoint.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CheckpointBody {
    /// Unique in the session; no number.
    name: Option<String>,
}

/// Checkpoints of a live session, oldest first.
pub(super) async fn checkpoints(
    request: RestRequest,
    PathSegments(session): PathSegments<String>,
) -> RestResult {
    let checkpoints = request.op(SessionCheckpoints { session: id("session_id", &session)? }).await?;
    ok(&checkpoints)
}

/// Keep a frozen copy of an idle session, to which it can be rolled back.
pub(super) async fn checkpoint(
    request: RestRequest,
    PathSegments(session): PathSegments<String>,
    OptionalJsonBody(body): OptionalJsonBody<CheckpointBody>,
) -> RestResult {
    let session = id("session_id", &session)?;
    let checkpoint = request.op(SessionAddCheckpoint { session, name: body.name }).await?;
    created(&checkpoint)
}

/// Give up a checkpoint.
pub(super) async fn delete_checkpoint(
    request: RestRequest,
    PathSegments((session, checkpoint)): PathSegments<(String, String)>,
) -> RestResult {
    let session = id("session_id", &session)?;
    let deleted = CheckpointDeleted { status: "ok", checkpoint: checkpoint.clone() };
    request.op(SessionDeleteCheckpoint { session, checkpoint }).await?;
    ok(&deleted)
}

#[derive(Serialize)]
struct CheckpointDeleted {
    status: &'static str,
    checkpoint: String,
}

/// The checkpoint to continue from.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RollbackBody {
    /// Number or name; the newest by default.
    checkpoint: Option<serde_json::Value>,
}

impl RollbackBody {
    fn reference(self) -> Result<Option<String>, RestError> {
        let reference = match self.checkpoint {
            None => return Ok(None),
            Some(serde_json::Value::String(reference)) => Some(reference),
            Some(serde_json::Value::Number(number)) => whole_number(&number).map(|whole| whole.to_string()),
            Some(_) => None,
        };
        let invalid = || RestError::invalid("checkpoint must be the number or the name of a checkpoint");
        reference.map(Some).ok_or_else(invalid)
    }
}

/// Continue an idle session from a checkpoint, which stays.
pub(super) async fn rollback(
    request: RestRequest,
    PathSegments(session): PathSegments<String>,
    OptionalJsonBody(body): OptionalJsonBody<RollbackBody>,
) -> RestResult {
    let session = id("session_id", &session)?;
    let checkpoint = body.reference()?;
    ok(&request.op(SessionRollback { session, checkpoint }).await?)
}

/// Stop the worker of an idle session until a request needs it.
pub(super) async fn suspend(request: RestRequest, PathSegments(session): PathSegments<String>) -> RestResult {
    ok(&request.op(SessionSuspend { session: id("session_id", &session)? }).await?)
}

/// Let the worker of a suspended session run again.
pub(super) async fn resume(request: RestRequest, PathSegments(session): PathSegments<String>) -> RestResult {
    ok(&request.op(SessionResume { session: id("session_id", &session)? }).await?)
}

/// Events of a session's life, in order; as a live stream with `Accept: text/event-stream`.
pub(super) async fn events(
    request: RestRequest,
    PathSegments(session): PathSegments<String>,
    params: QueryParams,
    headers: HeaderMap,
) -> RestResult {
    let session = id("session_id", &session)?;
    let after_seq = pages::after_seq(&params)?;
    let limit = params.number("limit", 1)?.unwrap_or(pages::MOST);
    let last_event_id = sse::last_event_id(&headers)?;
    if sse::is_requested(&headers) {
        return sse::session_stream(request, session, last_event_id, after_seq).await;
    }
    let page = sse::session_events(&request, &session, (after_seq, limit), false).await?;
    pages::events(limit, &page.events, |event| event.seq)
}

#[derive(Serialize)]
struct Killed {
    status: &'static str,
    session_id: String,
}

/// Send a session's worker a signal.
pub(super) async fn kill(
    request: RestRequest,
    PathSegments(session): PathSegments<String>,
    OptionalJsonBody(body): OptionalJsonBody<KillBody>,
) -> RestResult {
    let session_id = id("session_id", &session)?;
    let signal = body.number()?;
    request.op(SessionKill { session: session_id.clone(), signal }).await?;
    json(StatusCode::ACCEPTED, &Killed { status: "ok", session_id })
}
