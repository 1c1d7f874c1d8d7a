//! One verb of one request: its caller, its idempotency key, and its way to the verb handler.

use super::App;
use super::envelope::RestError;
use super::gate::VerbReached;
use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tracing::Instrument as _;
use vm_system_ops::{Caller, VerbRequest};
use vm_system_protocol::control::{Op, OpError, Reply};
use vm_system_protocol::model::Event;
use vm_system_runtime::shares::Share;

/// Longest idempotency key (bytes).
const KEY_BYTES: usize = 255;

/// The caller of a request, with the verb handler.
pub(super) struct RestRequest {
    pub(super) app: Arc<App>,
    caller: Caller,
    key: Option<String>,
    reached: VerbReached,
}

impl FromRequestParts<Arc<App>> for RestRequest {
    type Rejection = RestError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, RestError> {
        let caller = parts.extensions.get::<Caller>().cloned();
        let caller = caller.ok_or_else(|| RestError::internal("a request without a caller"))?;
        let reached = parts.extensions.get::<VerbReached>().cloned().unwrap_or_default();
        Ok(Self { app: Arc::clone(app), caller, key: key(&parts.headers)?, reached })
    }
}

fn key(headers: &HeaderMap) -> Result<Option<String>, RestError> {
    let mut keys = headers.get_all("idempotency-key").iter();
    let Some(key) = keys.next() else { return Ok(None) };
    match key.to_str() {
        Ok(text) if (1..=KEY_BYTES).contains(&text.len()) && keys.next().is_none() => {
            Ok(Some(text.to_owned()))
        }
        _ => Err(RestError::invalid(format!(
            "Idempotency-Key must be given once, with 1 to {KEY_BYTES} printable ASCII characters"
        ))),
    }
}

impl RestRequest {
    /// Runs a verb and waits for its reply. The verb continues to its end even if the client disconnects.
    pub(super) async fn op(&self, op: Op) -> Result<Reply, RestError> {
        joined(self.start(op, None).await)
    }

    /// A share of the streams of events.
    pub(super) fn stream_share(&self) -> Result<Share, RestError> {
        Ok(self.app.state.streams.take(&self.caller.holder()).map_err(OpError::from)?)
    }

    /// Starts a verb; the events of its execution go to `events`.
    pub(super) fn start(
        &self,
        op: Op,
        events: Option<mpsc::Sender<Vec<Event>>>,
    ) -> JoinHandle<Result<Reply, OpError>> {
        self.reached.set();
        let (caller, idempotency_key) = (self.caller.clone(), self.key.clone());
        let request = VerbRequest { caller, idempotency_key, op, events };
        let verbs = Arc::clone(&self.app.verbs);
        // A separate task: a panic in a verb is only this request's error.
        let work = async move { verbs.handle(request).await }.in_current_span();
        self.app.state.requests.spawn(work)
    }
}

/// The reply of a verb that ran in a separate task.
pub(super) fn joined(
    result: Result<Result<Reply, OpError>, tokio::task::JoinError>,
) -> Result<Reply, RestError> {
    match result {
        Ok(result) => result.map_err(RestError::from),
        Err(failure) => Err(RestError::internal(&failure.to_string())),
    }
}

/// The error for a reply that is not the verb's: a bug.
pub(super) fn unexpected(reply: &Reply) -> RestError {
    let text = format!("{reply:?}");
    RestError::internal(&format!("a reply of another kind: {}", text.chars().take(200).collect::<String>()))
}
