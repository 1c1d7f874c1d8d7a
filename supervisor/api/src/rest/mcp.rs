//! The place of the agents' door at this one: the same rules about names, origins, tokens and sizes.

use super::envelope::Problem;
use super::{App, RestOptions, input};
use crate::control::Door;
use crate::mcp::Asking;
use crate::mcp::http::{Ask, McpHttp};
use axum::body::Body;
use axum::http::{Request, Response};
use std::sync::Arc;
use tracing::Instrument as _;
use vm_system_ops::{Caller, VerbHandler, VerbRequest};
use vm_system_protocol::control::{ErrorCode, Op, OpError, Reply};

/// The part that speaks the protocol, over the verbs of this door.
pub(super) fn mount(verbs: &Arc<dyn VerbHandler>, options: &RestOptions, door: &Door) -> McpHttp {
    let (verbs, requests) = (Arc::clone(verbs), door.requests.clone());
    let tokens = Arc::clone(&options.tokens);
    let ask: Arc<Ask> = Arc::new(move |caller: Caller, op: Op| -> Asking<'static, Result<Reply, OpError>> {
        // What was asked for long ago, and still asks.
        if !tokens.knows(&caller) {
            let gone = OpError::new(ErrorCode::NotPermitted, "the token of this caller was taken back");
            return Box::pin(std::future::ready(Err(gone)));
        }
        let verbs = Arc::clone(&verbs);
        let caller = Caller { api: "mcp", ..caller };
        let request = VerbRequest { caller, idempotency_key: None, op, events: None };
        // A task of its own: it goes on to its end even if nobody waits for it, and a bug in a verb is this call's error.
        let work = async move { verbs.handle(request).await }.in_current_span();
        let work = requests.spawn(work);
        Box::pin(async move {
            work.await.unwrap_or_else(|failure| {
                tracing::error!(%failure, "a verb failed");
                Err(OpError::new(ErrorCode::Internal, "the supervisor failed at this request; see its log"))
            })
        })
    });
    McpHttp::new(ask, options.limits.body_bytes, door.closing.clone())
}

/// Answers one request of a known caller.
pub(super) async fn answer(
    app: &App,
    caller: Caller,
    request: Request<Body>,
) -> Result<Response<Body>, Problem> {
    let (parts, body) = request.into_parts();
    let body = input::collect(body, &app.options.limits).await?;
    Ok(app.mcp.answer(caller, parts, body).await)
}
