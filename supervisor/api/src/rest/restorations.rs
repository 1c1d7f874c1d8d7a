//! Routes of restorations.

use super::envelope::{RestError, RestResult, created, ok};
use super::input::{OptionalJsonBody, PathSegments, id, whole_number};
use super::query::{Flag, Query, Sequence, query};
use super::request::RestRequest;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use vm_system_protocol::control::{GivenInput, RestorationGet, SessionRestore};
use vm_system_protocol::model::SessionRestoration;

/// The parts of a session's inputs that the record does not have.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RestoreBody {
    /// Repeat inputs that had effects outside of the session, too.
    repeat_effects: Option<bool>,
    /// Redacted values, arguments and sent texts, by the numbers of their inputs.
    #[schemars(with = "Option<Vec<GivenInput>>")]
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

query! {
    /// The query of a new restoration.
    RestoreQuery {
        /// false: respond as soon as the startup files of the new session have run.
        wait: Flag<true>,
    }
}

query! {
    /// The query of a restoration.
    RestorationQuery {
        /// While this many inputs were repeated and no more, wait up to 20 s.
        wait_after: Option<Sequence>,
    }
}

pub(super) async fn restore(
    request: RestRequest,
    PathSegments(session): PathSegments<String>,
    Query(query): Query<RestoreQuery>,
    OptionalJsonBody(body): OptionalJsonBody<RestoreBody>,
) -> RestResult<SessionRestoration> {
    let new = SessionRestore {
        session: id("session_id", &session)?,
        repeat_effects: body.repeat_effects.unwrap_or(false),
        inputs: body.inputs.map_or(Ok(Vec::new()), given).map_err(RestError::invalid)?,
        wait: query.wait.0,
    };
    let restoration = request.op(new).await?;
    created(&restoration)
}

pub(super) async fn get(
    request: RestRequest,
    PathSegments(session): PathSegments<String>,
    Query(query): Query<RestorationQuery>,
) -> RestResult<SessionRestoration> {
    let wait_after = query.wait_after.map(|Sequence(count)| count);
    let restoration = request.op(RestorationGet { session: id("session_id", &session)?, wait_after }).await?;
    ok(&restoration)
}
