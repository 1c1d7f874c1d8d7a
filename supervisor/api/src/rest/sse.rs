//! Live events of an execution (Server-Sent Events): `id:` is the event's sequence number, `data:` the event as in a list.
//! When the execution has ended, `event: end` has its record; a client that reconnects afterwards gets 204, after which
//! browsers do not reconnect.
//!
//! A stream ends, too, when the token of its caller is removed or replaced. A slow reader gets its events from the store; a client
//! that reads nothing exceeds the connection's write deadline. The events that wait for a reader have a reservation of their owner's
//! memory.

use super::endpoint::Streamed;
use super::envelope::{RestError, RestResult};
use super::executions::accepts;
use super::memory::with_share;
use super::request::{RestRequest, joined};
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body::Frame;
use serde::Serialize;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Interval, MissedTickBehavior};
use tokio_util::sync::WaitForCancellationFutureOwned;
use vm_system_protocol::control::{ExecEvents, ExecGet, SessionEventPage, SessionEvents, SessionGet};
use vm_system_protocol::model::{Event, Execution, SessionEvent};
use vm_system_runtime::FollowedBatch;
use vm_system_runtime::shares::Share;

/// Batches of events that are queued for a reader, in addition to those in the socket.
const QUEUED_BATCHES: usize = 1;
/// Time after which a browser reconnects (milliseconds).
const RETRY_MS: u32 = 1_000;

/// The type of a body that is a stream of events.
const EVENT_STREAM: &str = "text/event-stream";

/// Ends a response that is a stream of events when the token of its caller is removed; other responses are as they were.
pub(super) fn ended_by(
    removed: impl Future<Output = ()> + Send + 'static,
    response: Response<Body>,
) -> Response<Body> {
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if !kind.is_some_and(|kind| kind.starts_with(EVENT_STREAM)) {
        return response;
    }
    response.map(|body| Body::new(EndedBody { body, end: Some(Box::pin(removed)) }))
}

/// A body that may end before its content does.
struct EndedBody {
    body: Body,
    /// `None`: it has ended.
    end: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl http_body::Body for EndedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Some(end) = &mut self.end else { return Poll::Ready(None) };
        if end.as_mut().poll(context).is_ready() {
            self.end = None;
            return Poll::Ready(None);
        }
        Pin::new(&mut self.body).poll_frame(context)
    }
}

/// Whether the client requests a stream.
pub(super) fn is_requested(headers: &HeaderMap) -> bool {
    accepts(headers, EVENT_STREAM)
}

/// Sequence number of the last event that the client has received.
pub(super) fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, RestError> {
    let Some(id) = headers.get("last-event-id") else { return Ok(None) };
    let number = id.to_str().ok().and_then(|text| text.trim().parse::<i64>().ok());
    let number = number.and_then(|number| u64::try_from(number).ok());
    number.map(Some).ok_or_else(|| RestError::invalid("Last-Event-ID is not the sequence number of an event"))
}

/// A page of the events of a session.
pub(super) async fn session_events(
    request: &RestRequest,
    session: &str,
    (after_seq, limit): (u64, u32),
    wait: bool,
) -> Result<SessionEventPage, RestError> {
    let op = SessionEvents { session: session.to_owned(), after_seq, limit, wait };
    request.op(op).await
}

/// The stream of a session's events after a sequence number. When the session has ended, `event: end` has its record.
pub(super) async fn session_stream(
    request: RestRequest,
    session: String,
    last_event_id: Option<u64>,
    after_seq: u64,
) -> RestResult<Vec<SessionEvent>, Streamed> {
    let mut after = last_event_id.unwrap_or(after_seq);
    let first = session_events(&request, &session, (after, SESSION_EVENTS), false).await?;
    if last_event_id.is_some() && first.is_last && first.events.is_empty() {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        return Ok(response.into());
    }
    let share = request.stream_share()?;
    let (sender, receiver) = mpsc::channel(QUEUED_BATCHES);
    let every = request.app.options.limits.heartbeat;
    let closing = request.app.state.closing.clone();
    let closed = closing.clone().cancelled_owned();
    // Ends when the client has gone: the receiver belongs to the body of the response.
    let followed = tokio::spawn(async move {
        let mut page = first;
        loop {
            if let Some(last) = page.events.last() {
                after = last.seq;
                let bytes = request.reserved_part(written(&page.events)).ok()?;
                sender.send(bytes).await.ok()?;
            }
            if page.is_last {
                break;
            }
            page = tokio::select! {
                next = session_events(&request, &session, (after, SESSION_EVENTS), true) => next.ok()?,
                () = sender.closed() => return None,
                () = closing.cancelled() => return None,
            };
        }
        match request.op(SessionGet { session }).await {
            Ok(session) => Some(named("end", &session)),
            _ => None,
        }
    });
    // Without an end the client connects again, and then gets the error.
    let end = async move { followed.await.ok().flatten().unwrap_or_default() };
    Ok(streamed(receiver, Box::pin(end), every, Box::pin(closed), share).into())
}

/// Events of a session in one batch of a stream.
const SESSION_EVENTS: u32 = 200;

/// The stream of an execution's events after a sequence number.
pub(super) fn stream(
    request: RestRequest,
    execution: &Execution,
    after_seq: u64,
    again: bool,
) -> RestResult<Vec<Event>, Streamed> {
    if again && execution.status.is_final() && after_seq >= execution.metrics.events {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        return Ok(response.into());
    }
    let share = request.stream_share()?;
    // The memory that the verbs before the stream have reserved is returned.
    request.reserved_part(Bytes::new())?;
    let (follower, receiver) = request.follower(QUEUED_BATCHES);
    let id = execution.id.to_string();
    let follow = ExecEvents { execution: id.clone(), after_seq, limit: 0, follow: true };
    let followed = request.start(follow, follower);
    let every = request.app.options.limits.heartbeat;
    let closing = request.app.state.closing.clone().cancelled_owned();
    let end = async move {
        let last = match joined(followed.await) {
            Ok(_) => request.op(ExecGet { execution: id }).await,
            Err(problem) => Err(problem),
        };
        match last {
            Ok(execution) if execution.status.is_final() => named("end", &execution),
            // The client reconnects and then gets the error.
            _ => Bytes::new(),
        }
    };
    Ok(streamed(receiver, Box::pin(end), every, Box::pin(closing), share).into())
}

fn streamed<B: StreamBatch>(
    receiver: mpsc::Receiver<B>,
    end: LastFrame,
    every: Duration,
    closing: Pin<Box<WaitForCancellationFutureOwned>>,
    share: Share,
) -> Response<Body> {
    let body = Events {
        receiver,
        first: Some(Bytes::from(format!("retry: {RETRY_MS}\n\n"))),
        end: Some(end),
        heartbeat: heartbeat(every),
        closing,
        _share: share,
    };
    let mut response = Response::new(Body::new(body));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    // Proxies must not buffer a live stream.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// An element of a stream.
trait Numbered: Serialize {
    fn seq(&self) -> u64;
}

impl Numbered for Event {
    fn seq(&self) -> u64 {
        self.seq
    }
}

impl Numbered for SessionEvent {
    fn seq(&self) -> u64 {
        self.seq
    }
}

/// Elements that are sent together.
trait StreamBatch: Send + Unpin + 'static {
    fn into_bytes(self) -> Bytes;
}

impl StreamBatch for FollowedBatch {
    fn into_bytes(self) -> Bytes {
        let bytes = written(&self.events);
        match self.memory {
            Some(share) => with_share(bytes, Arc::new(share)),
            None => bytes,
        }
    }
}

/// A frame with its reservation.
impl StreamBatch for Bytes {
    fn into_bytes(self) -> Bytes {
        self
    }
}

/// The last frame of a stream.
type LastFrame = Pin<Box<dyn Future<Output = Bytes> + Send>>;

fn heartbeat(every: Duration) -> Interval {
    let mut heartbeat = tokio::time::interval_at(tokio::time::Instant::now() + every, every);
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    heartbeat
}

/// The body of a stream.
struct Events<B> {
    receiver: mpsc::Receiver<B>,
    first: Option<Bytes>,
    end: Option<LastFrame>,
    heartbeat: Interval,
    closing: Pin<Box<WaitForCancellationFutureOwned>>,
    _share: Share,
}

impl<B: StreamBatch> http_body::Body for Events<B> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let data = |bytes| Poll::Ready(Some(Ok(Frame::data(bytes))));
        if let Some(first) = self.first.take() {
            return data(first);
        }
        if self.end.is_none() || self.closing.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        match self.receiver.poll_recv(context) {
            Poll::Ready(Some(batch)) => {
                return data(batch.into_bytes());
            }
            Poll::Ready(None) => {
                let ended = self.end.as_mut().map(|end| end.as_mut().poll(context));
                if let Some(Poll::Ready(last)) = ended {
                    self.end = None;
                    return if last.is_empty() { Poll::Ready(None) } else { data(last) };
                }
            }
            Poll::Pending => {}
        }
        if self.heartbeat.poll_tick(context).is_ready() {
            return data(Bytes::from_static(b":\n\n"));
        }
        Poll::Pending
    }
}

/// Encodes events. Compact JSON has no line breaks, so each event is one `data:` line.
fn written(events: &[impl Numbered]) -> Bytes {
    let mut out = Vec::with_capacity(events.len() * 256);
    for event in events {
        out.extend_from_slice(format!("id: {}\ndata: ", event.seq()).as_bytes());
        write_json(&mut out, event);
    }
    Bytes::from(out)
}

fn named(name: &str, value: &impl Serialize) -> Bytes {
    let mut out = format!("event: {name}\ndata: ").into_bytes();
    write_json(&mut out, value);
    Bytes::from(out)
}

fn write_json(out: &mut Vec<u8>, value: &impl Serialize) {
    let before = out.len();
    if let Err(error) = serde_json::to_writer(&mut *out, value) {
        tracing::error!(%error, "an event cannot be written and is sent empty");
        out.truncate(before);
        out.extend_from_slice(b"{}");
    }
    // JSON from a worker may have line breaks between tokens, which would end the line or forge another one.
    for byte in &mut out[before..] {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    out.extend_from_slice(b"\n\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use vm_system_protocol::ids::ExecutionId;
    use vm_system_protocol::json::JsonText;
    use vm_system_protocol::model::{ConsoleLevel, EventPayload, ResultValue};
    use vm_system_protocol::time::Timestamp;

    #[test]
    fn each_event_is_one_line_of_data_whatever_its_text() {
        let text = "a\nb\r\n\ndata: forged\u{2028}".to_owned();
        let event = Event {
            execution_id: ExecutionId::from_bytes([1; 16]),
            seq: 7,
            ts: Timestamp(0),
            payload: EventPayload::console(ConsoleLevel::Log, text),
        };
        let json = JsonText::from_untrusted("[1,\n\ndata: 2\r]".replace("data: ", ""));
        let value = ResultValue::of_json(json);
        let forged = Event { payload: EventPayload::Value(value), ..event.clone() };
        let written = String::from_utf8(written(&[event, forged]).to_vec()).expect("text");
        let blocks: Vec<&str> = written.split_terminator("\n\n").collect();
        assert_eq!(blocks.len(), 2);
        for block in blocks {
            let lines: Vec<&str> = block.lines().collect();
            assert_eq!((lines.len(), lines[0]), (2, "id: 7"));
            assert!(lines[1].starts_with("data: {\"execution_id\""));
        }
    }

    #[test]
    fn the_last_event_is_a_number() {
        let with = |id: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("last-event-id", HeaderValue::from_static(id));
            last_event_id(&headers)
        };
        assert_eq!(with("7").expect("a number"), Some(7));
        assert_eq!(last_event_id(&HeaderMap::new()).expect("absent"), None);
        for bad in ["", "-1", "x", "1.5", "99999999999999999999999"] {
            assert!(with(bad).is_err(), "{bad}");
        }
    }
}
