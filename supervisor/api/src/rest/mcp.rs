//! The MCP API within the HTTP listener: the same rules about names, origins, tokens and sizes.

use super::envelope::RestError;
use super::memory::RequestMemory;
use super::{App, RestLimits, RestOptions, input, routes};
use crate::control::ServerState;
use crate::mcp::http::{McpHttp, PARAMETERS, VerbFn};
use crate::mcp::{self, VerbFuture};
use axum::body::Body;
use axum::http::{Method, Request, Response};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use vm_system_ops::{Caller, ClientPresence, VerbHandler, VerbRequest};
use vm_system_protocol::control::{ErrorCode, Op, OpError, Reply};

/// The MCP API, over the verb handler of the REST API.
pub(super) fn mount(verbs: &Arc<dyn VerbHandler>, options: &RestOptions, state: &ServerState) -> McpHttp {
    let (verbs, requests) = (Arc::clone(verbs), state.requests.clone());
    let tokens = Arc::clone(&options.tokens);
    let memory = state.memory.clone();
    let perform: Arc<VerbFn> = Arc::new(
        move |caller: Caller,
              gone: CancellationToken,
              op: Op|
              -> VerbFuture<'static, Result<Reply, OpError>> {
            // A caller with a token that was removed meanwhile is refused.
            if !tokens.knows(&caller) {
                let revoked = OpError::new(ErrorCode::NotPermitted, "the token of this caller was removed");
                return Box::pin(std::future::ready(Err(revoked)));
            }
            let verbs = Arc::clone(&verbs);
            let caller = Caller { api: "mcp", ..caller };
            let reply = memory.reply(caller.holder());
            let request = VerbRequest {
                caller,
                idempotency_key: None,
                events: None,
                memory: reply,
                presence: ClientPresence {
                    cancel_on_disconnect: mcp::is_waited_for(&op),
                    gone,
                    ..ClientPresence::default()
                },
                op,
            };
            // A separate task: it continues if the client disconnects, and a panic in a verb is only this call's error.
            let work = async move { verbs.handle(request).await }.in_current_span();
            let work = requests.spawn(work);
            Box::pin(async move {
                work.await.unwrap_or_else(|failure| {
                    tracing::error!(%failure, "a verb failed");
                    Err(OpError::new(
                        ErrorCode::Internal,
                        "the supervisor failed at this request; see its log",
                    ))
                })
            })
        },
    );
    McpHttp::new(perform, (options.session_key, options.ended_sessions.clone()), state.closing.clone())
}

/// Handles one request of an identified caller.
pub(super) async fn answer(
    app: &App,
    caller: Caller,
    request: Request<Body>,
) -> Result<Response<Body>, RestError> {
    if *request.method() == Method::OPTIONS {
        return Ok(routes::other_method(request.method(), "GET,POST,DELETE"));
    }
    let (parts, body) = request.into_parts();
    let limits = &app.options.limits;
    let (body_bytes, share) = match app.mcp.body_limit(&caller, &body, limits.body_bytes) {
        Ok(allowed) => allowed,
        Err(refused) => return Ok(*refused),
    };
    let memory = RequestMemory::new(&app.state.memory, caller.holder());
    memory.body(input::announced(&body, body_bytes)).await?;
    let body = match input::collect(body, &RestLimits { body_bytes, ..limits.clone() }).await {
        Err(error) if error.is_too_large() => return Ok(McpHttp::too_large(body_bytes)),
        body => body?,
    };
    let unknown = parts.uri.query().and_then(|query| routes::unknown_parameter(query, PARAMETERS));
    let response = match unknown {
        Some(why) => McpHttp::invalid(&body, why),
        None => app.mcp.answer(caller, parts, body).await,
    };
    drop((share, memory));
    Ok(response)
}
