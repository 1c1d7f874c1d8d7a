//! Routes of restorations.

use super::envelope::{RestError, RestResult, created, ok};
use super::input::{OptionalJsonBody, PathSegments, QueryParams, id, whole_number};
use super::request::RestRequest;
use serde::Deserialize;
use serde_json::Value;
use vm_system_protocol::control::{GivenInput, RestorationGet, SessionRestore};

/// What the record of a session's inputs does not have.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RestoreBody {
    /// Repeat inputs that had effects outside of the session, too.
    repeat_effects: Option<bool>,
    /// Redacted values, arguments and sent texts, by the numbers of their inputs.
    inputs: Option<Value>,
}

/// The inputs of a body; JSON Schema counts `14.0` as a whole number.
fn given(mut inputs: Value) -> Result<Vec<GivenInput>, String> {
    for number in inputs.as_array_mut().into_iter().flatten().filter_map(|input| input.get_mut("input")) {
        let whole = number.as_number().and_then(whole_number).and_then(|whole| u64::try_from(whole).ok());
        if let Some(whole) = whole {
            *number = whole.into();
        }
    }
    GivenInput::list(inputs)
}

/// Repeat the successful inputs of an ended session in a new one.
pub(super) async fn restore(
    request: RestRequest,
    PathSegments(session): PathSegments<String>,
    params: QueryParams,
    OptionalJsonBody(body): OptionalJsonBody<RestoreBody>,
) -> RestResult {
    let new = SessionRestore {
        session: id("session_id", &session)?,
        repeat_effects: body.repeat_effects.unwrap_or(false),
        inputs: body.inputs.map_or(Ok(Vec::new()), given).map_err(RestError::invalid)?,
        wait: params.flag("wait", true)?,
    };
    let restoration = request.op(new).await?;
    created(&restoration)
}

/// How far the restoration in a new session is, or its result.
pub(super) async fn get(
    request: RestRequest,
    PathSegments(session): PathSegments<String>,
    params: QueryParams,
) -> RestResult {
    let wait_after = params.number("wait_after", 0)?;
    let restoration = request.op(RestorationGet { session: id("session_id", &session)?, wait_after }).await?;
    ok(&restoration)
}
