//! One verb of one request: its caller, its idempotency key, and its way to the verb handler.

use super::App;
use super::envelope::RestError;
use super::gate::VerbReached;
use super::memory::{Leaving, RequestMemory, with_share};
use axum::body::Bytes;
use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use vm_system_ops::{Caller, ClientPresence, IdempotencyKey, VerbRequest};
use vm_system_protocol::control::{Op, OpError, Reply, Verb};
use vm_system_runtime::shares::Share;
use vm_system_runtime::{FollowedBatch, Follower};

/// The caller of a request, with the verb handler.
pub(super) struct RestRequest {
    pub(super) app: Arc<App>,
    caller: Caller,
    key: Option<IdempotencyKey>,
    reached: VerbReached,
    memory: RequestMemory,
    presence: PresentClient,
    _leaving: Leaving,
}

/// The client of a request, who has gone when the request is dropped, unless the supervisor is stopping.
struct PresentClient(ClientPresence, CancellationToken);

impl Drop for PresentClient {
    fn drop(&mut self) {
        let Self(presence, closing) = self;
        if !closing.is_cancelled() {
            presence.gone.cancel();
        }
    }
}

impl FromRequestParts<Arc<App>> for RestRequest {
    type Rejection = RestError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, RestError> {
        let caller = parts.extensions.get::<Caller>().cloned();
        let caller = caller.ok_or_else(|| RestError::internal("a request without a caller"))?;
        let reached = parts.extensions.get::<VerbReached>().cloned().unwrap_or_default();
        let memory = parts.extensions.get::<RequestMemory>().cloned();
        let memory = memory.unwrap_or_else(|| RequestMemory::new(&app.state.memory, caller.holder()));
        let leaving = Leaving(memory.reply.clone());
        Ok(Self {
            app: Arc::clone(app),
            caller,
            key: key(&parts.headers)?,
            reached,
            memory,
            presence: PresentClient(ClientPresence::arriving(), app.state.closing.clone()),
            _leaving: leaving,
        })
    }
}

fn key(headers: &HeaderMap) -> Result<Option<IdempotencyKey>, RestError> {
    let mut keys = headers.get_all("idempotency-key").iter();
    let Some(key) = keys.next() else { return Ok(None) };
    // Of several keys none is the request's.
    let text = std::str::from_utf8(key.as_bytes()).ok().filter(|_| keys.next().is_none());
    let key = text.ok_or_else(IdempotencyKey::refusal).and_then(IdempotencyKey::parse);
    Ok(Some(key?))
}

impl RestRequest {
    /// Runs a verb and waits for its reply. The verb continues to its end even if the client disconnects.
    pub(super) async fn op<V: Verb>(&self, verb: V) -> Result<V::Reply, RestError> {
        self.waiting_op(verb, false).await
    }

    /// Runs a verb that puts things in order when the request has failed or its client has gone; nobody waits for its reply.
    pub(super) fn afterwards(&self, verb: impl Verb) {
        let memory = RequestMemory::new(&self.app.state.memory, self.caller.holder());
        let request = VerbRequest {
            caller: self.caller.clone(),
            idempotency_key: None,
            op: verb.into(),
            events: None,
            memory: memory.reply,
            presence: ClientPresence::default(),
        };
        let verbs = Arc::clone(&self.app.verbs);
        self.app.state.requests.spawn(async move { drop(verbs.handle(request).await) });
    }

    /// A part of a streamed response with its reservation. What is left of that of the verbs so far is given back.
    pub(super) fn reserved_part(&self, bytes: Bytes) -> Result<Bytes, RestError> {
        let share = self.memory.reply.settle(bytes.len()).map_err(OpError::from)?;
        Ok(match share {
            Some(share) => with_share(bytes, Arc::new(share)),
            None => bytes,
        })
    }

    /// A follower of events, of which so many batches wait for the client, and what it gets.
    pub(super) fn follower(&self, batches: usize) -> (Follower, mpsc::Receiver<FollowedBatch>) {
        vm_system_runtime::follower(batches, self.memory.reply.clone())
    }

    /// A share of the streams of events.
    pub(super) fn stream_share(&self) -> Result<Share, RestError> {
        Ok(self.app.state.streams.take(&self.caller.holder()).map_err(OpError::from)?)
    }

    /// As [`RestRequest::op`]; the execution for which it waits is cancelled if `cancel_on_disconnect` is set, the client disconnects and
    /// nobody else waits.
    pub(super) async fn waiting_op<V: Verb>(
        &self,
        verb: V,
        cancel_on_disconnect: bool,
    ) -> Result<V::Reply, RestError> {
        let reply = joined(self.begin(verb.into(), None, cancel_on_disconnect).await)?;
        Ok(V::reply_from(reply).map_err(OpError::from)?)
    }

    /// Starts a verb; the events of its execution go to `events`.
    pub(super) fn start(&self, verb: impl Verb, events: Follower) -> JoinHandle<Result<Reply, OpError>> {
        self.begin(verb.into(), Some(events), false)
    }

    fn begin(
        &self,
        op: Op,
        events: Option<Follower>,
        cancel_on_disconnect: bool,
    ) -> JoinHandle<Result<Reply, OpError>> {
        self.reached.set();
        let (caller, idempotency_key) = (self.caller.clone(), self.key.clone());
        let memory = self.memory.clone();
        let reply = memory.reply.clone();
        let presence = ClientPresence { cancel_on_disconnect, ..self.presence.0.clone() };
        let request = VerbRequest { caller, idempotency_key, op, events, memory: reply, presence };
        let verbs = Arc::clone(&self.app.verbs);
        // A separate task: a panic in a verb is only this request's error.
        let work = async move {
            let result = verbs.handle(request).await;
            drop(memory);
            result
        };
        let work = work.in_current_span();
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

#[cfg(test)]
mod tests {
    use super::key;
    use axum::http::{HeaderMap, HeaderValue};

    #[test]
    fn a_key_is_one_field_of_utf_8() {
        let read = |values: &[&[u8]]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append("idempotency-key", HeaderValue::from_bytes(value).expect("a value"));
            }
            key(&headers).map(|key| key.map(|key| key.to_string())).map_err(|_| ())
        };
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&["é".as_bytes()]), Ok(Some("é".to_owned())), "as on the control socket");
        for refused in [&[&b"\xff"[..]][..], &[b""], &[b"a", b"a"]] {
            assert_eq!(read(refused), Err(()), "{refused:?}");
        }
    }
}
