//! One verb of one request: who asks, under which idempotency key, and the way to the one place that answers.

use super::App;
use super::envelope::Problem;
use super::gate::Asked;
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

/// Longest idempotency key (bytes).
const KEY_BYTES: usize = 255;

/// Who asks, and whom to ask.
pub(super) struct Ask {
    pub(super) app: Arc<App>,
    caller: Caller,
    key: Option<String>,
    asked: Asked,
}

impl FromRequestParts<Arc<App>> for Ask {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let caller = parts.extensions.get::<Caller>().cloned();
        let caller = caller.ok_or_else(|| Problem::internal("a request without a caller"))?;
        let asked = parts.extensions.get::<Asked>().cloned().unwrap_or_default();
        Ok(Self { app: Arc::clone(app), caller, key: key(&parts.headers)?, asked })
    }
}

fn key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut keys = headers.get_all("idempotency-key").iter();
    let Some(key) = keys.next() else { return Ok(None) };
    match key.to_str() {
        Ok(text) if (1..=KEY_BYTES).contains(&text.len()) && keys.next().is_none() => {
            Ok(Some(text.to_owned()))
        }
        _ => Err(Problem::invalid(format!(
            "Idempotency-Key is given once, with 1 to {KEY_BYTES} printable ASCII characters"
        ))),
    }
}

impl Ask {
    /// Asks and waits for the answer. The verb goes on to its end even if the client goes away.
    pub(super) async fn op(&self, op: Op) -> Result<Reply, Problem> {
        answered(self.start(op, None).await)
    }

    /// Asks; what comes of an execution meanwhile goes to `events`.
    pub(super) fn start(
        &self,
        op: Op,
        events: Option<mpsc::Sender<Vec<Event>>>,
    ) -> JoinHandle<Result<Reply, OpError>> {
        self.asked.set();
        let (caller, idempotency_key) = (self.caller.clone(), self.key.clone());
        let request = VerbRequest { caller, idempotency_key, op, events };
        let verbs = Arc::clone(&self.app.verbs);
        // A task of its own: a bug in a verb becomes this request's error and nothing else.
        let work = async move { verbs.handle(request).await }.in_current_span();
        self.app.door.requests.spawn(work)
    }
}

/// The answer of a verb that ran in a task of its own.
pub(super) fn answered(
    result: Result<Result<Reply, OpError>, tokio::task::JoinError>,
) -> Result<Reply, Problem> {
    match result {
        Ok(answer) => answer.map_err(Problem::from),
        Err(failure) => Err(Problem::internal(&failure.to_string())),
    }
}

/// An answer that does not belong to the question: a bug.
pub(super) fn unexpected(reply: &Reply) -> Problem {
    let text = format!("{reply:?}");
    Problem::internal(&format!("an answer of another kind: {}", text.chars().take(200).collect::<String>()))
}
