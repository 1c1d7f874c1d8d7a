//! One connection: handles requests in sequence, each with deadlines, until the client disconnects or idles for too long, the
//! slot is needed for another client, or the supervisor stops.

use super::App;
use super::auth::RestPeer;
use super::deadline::Deadline;
use super::gate;
use super::half_closed::{ClientStream, HalfClosed, ResponseProgress};
use super::lingering::{LingerBounds, linger};
use super::upgrade::{self, Upgrading};
use crate::accept::StartingConnection;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::Request;
use axum::http::header::{self, HeaderValue};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde_json::json;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use vm_system_protocol::control::ErrorCode;
use vm_system_runtime::shares::{Share, ShareRefusal};

/// The rest of a refused request's body is read up to this size (bytes), and for this long.
const DRAINED_BYTES: usize = 16 << 20;
const DRAIN: Duration = Duration::from_secs(5);

/// State that all connections share.
#[derive(Clone)]
pub(super) struct RestContext {
    pub(super) app: Arc<App>,
    pub(super) routes: TowerToHyperService<Router>,
    /// Bounds the connections that linger.
    pub(super) lingering: Arc<Semaphore>,
}

/// Serves one connection to its end.
pub(super) async fn serve<S>(
    shared: RestContext,
    stream: S,
    peer: RestPeer,
    (slot, starting): (Arc<Share>, StartingConnection),
) where
    S: ClientStream,
{
    let limits = &shared.app.options.limits;
    let progress = ResponseProgress::new(starting);
    let io = TokioIo::new(Deadline::new(HalfClosed::new(stream, progress.clone()), limits.write));
    let peer = Arc::new(peer);
    let upgrading = Arc::new(Mutex::new(None));
    let refused_early = Arc::new(AtomicBool::new(false));
    let service = {
        let (shared, slot, upgrading) = (shared.clone(), Arc::clone(&slot), Arc::clone(&upgrading));
        let refused_early = Arc::clone(&refused_early);
        service_fn(move |request: Request<Incoming>| {
            progress.begin();
            let progress = progress.clone();
            let (shared, peer, slot) = (shared.clone(), Arc::clone(&peer), Arc::clone(&slot));
            let (upgrading, refused_early) = (Arc::clone(&upgrading), Arc::clone(&refused_early));
            async move {
                let public = gate::is_public(request.uri().path());
                let unread = Unread::default();
                // Reading would make this client send its body.
                let may_drain = !request.headers().contains_key(header::EXPECT);
                let request = request.map(|body| {
                    let (unread, progress) = (unread.clone(), progress.clone());
                    Body::new(RequestBody { body: Some(body), unread, progress })
                });
                let mut response = gate::handle(&shared.app, &shared.routes, (&peer, &slot), request).await;
                if let Some(begun) = response.extensions_mut().remove::<Upgrading>() {
                    *upgrading.lock().unwrap_or_else(PoisonError::into_inner) = Some(begun);
                }
                if let Some(body) = unread.take() {
                    // Without its slot, if another client needs it.
                    slot.idle();
                    if !may_drain || !drain(body).await {
                        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
                        refused_early.store(true, Ordering::Relaxed);
                    }
                }
                if public {
                    // A client without a token must not occupy a slot by reading slowly.
                    slot.idle();
                }
                Ok::<_, Infallible>(response.map(|body| Watched { body, slot, progress }))
            }
        })
    };
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_headers(limits.headers)
        .max_buf_size(limits.head_bytes)
        .serve_connection(io, service)
        .with_upgrades();
    let state = &shared.app.state;
    let mut closing = false;
    loop {
        tokio::select! {
            ended = &mut connection => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection failed");
                    return;
                }
                break;
            }
            () = slot.evicted() => return,
            () = state.hang_up.cancelled() => return,
            () = state.closing.cancelled(), if !closing => {
                closing = true;
                Pin::new(&mut connection).graceful_shutdown();
            }
        }
    }
    // In the same task: the connection stays the one that is counted, evicted and closed.
    let upgrading = upgrading.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(upgrading) = upgrading {
        upgrade::serve(&shared.app, upgrading, slot).await;
    } else if refused_early.load(Ordering::Relaxed)
        && let Some(parts) = connection.into_parts()
    {
        slot.idle();
        let mut stream = parts.io.into_inner();
        tokio::select! {
            () = linger(&mut stream, &shared.lingering, &LingerBounds::ALL) => {}
            () = slot.evicted() => {}
            () = state.closing.cancelled() => {}
        }
    }
}

/// The body of a request that nobody has read to its end.
#[derive(Clone, Default)]
struct Unread(Arc<Mutex<Option<Incoming>>>);

impl Unread {
    fn take(&self) -> Option<Incoming> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The body of a request; when it is dropped before its end, the rest is unread.
struct RequestBody {
    body: Option<Incoming>,
    unread: Unread,
    progress: ResponseProgress,
}

impl http_body::Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let Poll::Ready(frame) = Pin::new(body).poll_frame(context) else {
            self.progress.waits_for_client();
            return Poll::Pending;
        };
        if matches!(frame, None | Some(Err(_))) {
            self.body = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(http_body::Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), http_body::Body::size_hint)
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        if let Some(body) = self.body.take().filter(|body| !http_body::Body::is_end_stream(body)) {
            *self.unread.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(body);
        }
    }
}

/// Reads the rest of the body of a request that was refused early, so that the client gets the response, and its next request
/// on this connection is served. Returns whether the end was reached.
async fn drain(mut body: Incoming) -> bool {
    if http_body::Body::size_hint(&body).lower() > DRAINED_BYTES as u64 {
        return false;
    }
    let to_the_end = async {
        let mut left = DRAINED_BYTES;
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return false };
            let Some(rest) = left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) else { return false };
            left = rest;
        }
        true
    };
    timeout(DRAIN, to_the_end).await.unwrap_or(false)
}

/// The body of a response; when it is dropped, the connection is idle again.
struct Watched {
    body: Body,
    slot: Arc<Share>,
    progress: ResponseProgress,
}

impl http_body::Body for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.slot.idle();
        self.progress.written();
    }
}

/// The response to a connection above the limit while all others are busy.
pub(super) fn no_capacity(refusal: &ShareRefusal) -> Vec<u8> {
    let message = format!("{refusal} ({})", refusal.hint());
    let body =
        json!({ "error": { "code": ErrorCode::CapacityExceeded.as_str(), "message": message } }).to_string();
    format!(
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Retry-After: 1\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
