//! Routes of sessions.

use super::endpoint::{Paged, Streamed};
use super::envelope::{DoneStatus, RestError, RestResult, created, json, ok};
use super::filters::SessionQuery;
use super::input::{JsonBody, OptionalJsonBody, PathSegments, id, required, whole, whole_number};
use super::pages::{self, EventQuery};
use super::query::{Positive, Query};
use super::request::RestRequest;
use super::shapes::{
    CheckpointName, CheckpointReference, FolderPath, Label, Name, NotEmpty, SignalReference, Uuid,
};
use super::sse;
use axum::http::{HeaderMap, StatusCode};
use nix::sys::signal::Signal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vm_system_protocol::control::{
    SessionAddCheckpoint, SessionCheckpoints, SessionClose, SessionCreate, SessionDeleteCheckpoint,
    SessionFork, SessionGet, SessionInspect, SessionKill, SessionRename, SessionResume, SessionRollback,
    SessionSuspend,
};
use vm_system_protocol::model::{Session, SessionCheckpoint, SessionEvent, SessionInspection};

/// A new session.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionBody {
    #[schemars(with = "Uuid")]
    template_id: Option<String>,
    /// Any name. Sessions of one owner and workspace share its database files.
    #[schemars(with = "Label")]
    workspace_id: Option<String>,
    /// Any text; only recorded.
    #[schemars(with = "Label")]
    base_commit_oid: Option<String>,
    /// Absolute path of an existing folder.
    #[schemars(with = "FolderPath")]
    worktree_path: Option<String>,
    /// For administrators: the user with whose rights the folder is used, a name or a number; by default the caller.
    #[schemars(with = "Option<NotEmpty>")]
    as_user: Option<String>,
    /// For people.
    #[schemars(with = "Option<Name>")]
    name: Option<String>,
    /// Not longer than the template's (seconds).
    #[serde(default, deserialize_with = "whole")]
    ttl_s: Option<u32>,
    /// Not longer than the template's (seconds).
    #[serde(default, deserialize_with = "whole")]
    idle_timeout_s: Option<u32>,
}

/// The signal to send.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct KillBody {
    /// Name (signal(7), in upper or lower case) or number of a signal, by default `KILL`.
    #[serde(default)]
    #[schemars(with = "SignalReference")]
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

pub(super) async fn list(
    request: RestRequest,
    Query(query): Query<SessionQuery>,
) -> RestResult<Vec<Session>, Paged> {
    let filter = query.filter();
    let page = filter.page;
    let sessions = request.op(filter).await?;
    pages::response(page, &sessions)
}

pub(super) async fn create(
    request: RestRequest,
    JsonBody(body): JsonBody<SessionBody>,
) -> RestResult<Session> {
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

pub(super) async fn get(
    request: RestRequest,
    PathSegments(session): PathSegments<String>,
) -> RestResult<Session> {
    ok(&request.op(SessionGet { session: id("session_id", &session)? }).await?)
}

/// The new name.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RenameBody {
    /// 1 to 200 printable characters; unique among the sessions of the owner that have not ended.
    #[schemars(with = "Name")]
    name: Option<String>,
}

pub(super) async fn rename(
    request: RestRequest,
    PathSegments(session): PathSegments<String>,
    JsonBody(body): JsonBody<RenameBody>,
) -> RestResult<Session> {
    let name = body.name.ok_or_else(|| RestError::invalid("name is missing"))?;
    ok(&request.op(SessionRename { session: id("session_id", &session)?, name }).await?)
}

pub(super) async fn close(
    request: RestRequest,
    PathSegments(session): PathSegments<String>,
) -> RestResult<Session> {
    ok(&request.op(SessionClose { session: id("session_id", &session)? }).await?)
}

pub(super) async fn delete(
    request: RestRequest,
    PathSegments(session): PathSegments<String>,
) -> RestResult<Session> {
    close(request, PathSegments(session)).await
}

pub(super) async fn inspect(
    request: RestRequest,
    PathSegments(session): PathSegments<String>,
) -> RestResult<SessionInspection> {
    ok(&request.op(SessionInspect { session: id("session_id", &session)? }).await?)
}

/// The number of copies.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionForkBody {
    /// Number of new sessions (1 to 64, default 1).
    #[serde(default, deserialize_with = "whole")]
    #[schemars(range(min = 1, max = 64))]
    count: Option<u32>,
}

pub(super) async fn fork(
    request: RestRequest,
    PathSegments(session): PathSegments<String>,
    OptionalJsonBody(body): OptionalJsonBody<SessionForkBody>,
) -> RestResult<Vec<Session>> {
    let session = id("session_id", &session)?;
    let sessions = request.op(SessionFork { session, count: body.count.unwrap_or(1) }).await?;
    created(&sessions)
}

/// A new checkpoint.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckpointBody {
    /// Unique in the session; 1 to 64 printable characters, no number, no `/`.
    #[schemars(with = "Option<CheckpointName>")]
    name: Option<String>,
}

pub(super) async fn checkpoints(
    request: RestRequest,
    PathSegments(session): PathSegments<String>,
) -> RestResult<Vec<SessionCheckpoint>> {
    let checkpoints = request.op(SessionCheckpoints { session: id("session_id", &session)? }).await?;
    ok(&checkpoints)
}

pub(super) async fn checkpoint(
    request: RestRequest,
    PathSegments(session): PathSegments<String>,
    OptionalJsonBody(body): OptionalJsonBody<CheckpointBody>,
) -> RestResult<SessionCheckpoint> {
    let session = id("session_id", &session)?;
    let checkpoint = request.op(SessionAddCheckpoint { session, name: body.name }).await?;
    created(&checkpoint)
}

pub(super) async fn delete_checkpoint(
    request: RestRequest,
    PathSegments((session, checkpoint)): PathSegments<(String, String)>,
) -> RestResult<CheckpointDeleted> {
    let session = id("session_id", &session)?;
    let deleted = CheckpointDeleted { status: DoneStatus::Ok, checkpoint: checkpoint.clone() };
    request.op(SessionDeleteCheckpoint { session, checkpoint }).await?;
    ok(&deleted)
}

/// A deleted checkpoint.
#[derive(Serialize, JsonSchema)]
pub(super) struct CheckpointDeleted {
    status: DoneStatus,
    /// The checkpoint's number or name, as in the request.
    checkpoint: String,
}

/// The checkpoint to continue from.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RollbackBody {
    /// Number or name; the newest by default.
    #[serde(default)]
    #[schemars(with = "CheckpointReference")]
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

pub(super) async fn rollback(
    request: RestRequest,
    PathSegments(session): PathSegments<String>,
    OptionalJsonBody(body): OptionalJsonBody<RollbackBody>,
) -> RestResult<Session> {
    let session = id("session_id", &session)?;
    let checkpoint = body.reference()?;
    ok(&request.op(SessionRollback { session, checkpoint }).await?)
}

pub(super) async fn suspend(
    request: RestRequest,
    PathSegments(session): PathSegments<String>,
) -> RestResult<Session> {
    ok(&request.op(SessionSuspend { session: id("session_id", &session)? }).await?)
}

pub(super) async fn resume(
    request: RestRequest,
    PathSegments(session): PathSegments<String>,
) -> RestResult<Session> {
    ok(&request.op(SessionResume { session: id("session_id", &session)? }).await?)
}

pub(super) async fn events(
    request: RestRequest,
    PathSegments(session): PathSegments<String>,
    Query(query): Query<EventQuery>,
    headers: HeaderMap,
) -> RestResult<Vec<SessionEvent>, Streamed> {
    let session = id("session_id", &session)?;
    let after_seq = query.after_seq();
    let limit = query.limit.map_or(pages::MOST, |Positive(limit)| limit);
    let last_event_id = sse::last_event_id(&headers)?;
    if sse::is_requested(&headers) {
        return sse::session_stream(request, session, last_event_id, after_seq).await;
    }
    let page = sse::session_events(&request, &session, (after_seq, limit), false).await?;
    pages::events(limit, &page.events, |event| event.seq)
}

/// A session whose worker was sent a signal.
#[derive(Serialize, JsonSchema)]
pub(super) struct SessionKilled {
    status: DoneStatus,
    #[schemars(with = "Uuid")]
    session_id: String,
}

pub(super) async fn kill(
    request: RestRequest,
    PathSegments(session): PathSegments<String>,
    OptionalJsonBody(body): OptionalJsonBody<KillBody>,
) -> RestResult<SessionKilled> {
    let session_id = id("session_id", &session)?;
    let signal = body.number()?;
    request.op(SessionKill { session: session_id.clone(), signal }).await?;
    json(StatusCode::ACCEPTED, &SessionKilled { status: DoneStatus::Ok, session_id })
}
