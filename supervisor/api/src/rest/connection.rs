//! One connection: handles requests in sequence, each with deadlines, until the client disconnects or idles for too long, the
//! slot is needed for another client, or the supervisor stops.

use super::App;
use super::auth::RestPeer;
use super::deadline::Deadline;
use super::gate;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::Request;
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde_json::json;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite};
use vm_system_protocol::control::ErrorCode;
use vm_system_runtime::shares::{Share, ShareRefusal};

/// State that all connections share.
#[derive(Clone)]
pub(super) struct RestContext {
    pub(super) app: Arc<App>,
    pub(super) routes: TowerToHyperService<Router>,
}

/// Serves one connection to its end.
pub(super) async fn serve<S>(shared: RestContext, stream: S, peer: RestPeer, slot: Arc<Share>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let limits = &shared.app.options.limits;
    let io = TokioIo::new(Deadline::new(stream, limits.write));
    let peer = Arc::new(peer);
    let service = {
        let (shared, slot) = (shared.clone(), Arc::clone(&slot));
        service_fn(move |request: Request<Incoming>| {
            let (shared, peer, slot) = (shared.clone(), Arc::clone(&peer), Arc::clone(&slot));
            async move {
                slot.busy();
                let public = gate::is_public(request.uri().path());
                let response =
                    gate::handle(&shared.app, &shared.routes, (&peer, &slot), request.map(Body::new)).await;
                if public {
                    // A client without a token must not occupy a slot by reading slowly.
                    slot.idle();
                }
                Ok::<_, Infallible>(response.map(|body| Watched { body, slot }))
            }
        })
    };
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_headers(limits.headers)
        .max_buf_size(limits.head_bytes)
        .serve_connection(io, service);
    tokio::pin!(connection);
    let state = &shared.app.state;
    let mut closing = false;
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection failed");
                }
                return;
            }
            () = slot.evicted() => return,
            () = state.hang_up.cancelled() => return,
            () = state.closing.cancelled(), if !closing => {
                closing = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

/// The body of a response; when it is dropped, the connection is idle again.
struct Watched {
    body: Body,
    slot: Arc<Share>,
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
