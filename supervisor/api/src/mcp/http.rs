//! The MCP API over HTTP, at [`PATH`] of the HTTP listener, which has already checked the host name, origin, token and size of
//! each request. Clients of the older generation have sessions; owners have shares of them, and each belongs to the owner that
//! created it: requests of other owners are refused.

mod errors;

use super::{CLIENT_CHARS, McpBackend, McpClient, McpServer, VerbFuture, key_of_client};
use axum::body::{Body, Bytes};
use axum::http::request::Parts;
use axum::http::{Method, Request, Response, StatusCode};
use errors::NoSession;
use http_body_util::Full;
use rmcp::model::Extensions;
use rmcp::transport::streamable_http_server::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use vm_system_ops::Caller;
use vm_system_protocol::control::{ErrorCode, Op, OpError, Reply};
use vm_system_record::Owner;
use vm_system_runtime::shares::{Share, ShareLimits, Shares};

/// Path of the MCP API on the HTTP listener.
pub(crate) const PATH: &str = "/mcp";
/// Sessions at a time. The least recently used ones are closed for new ones, of the same owner first.
const SESSIONS: ShareLimits = ShareLimits { per_owner: 64, ..ShareLimits::of(512) };
/// A session without requests for this long is closed.
const IDLE: Duration = Duration::from_hours(2);
const SESSION_HEADER: &str = "mcp-session-id";
/// Query parameter that names a client; distinguishes the clients of one owner.
const CLIENT_PARAMETER: &str = "client";

/// Runs one verb of one caller.
pub(crate) type VerbFn = dyn Fn(Caller, Op) -> VerbFuture<'static, Result<Reply, OpError>> + Send + Sync;

/// The MCP API over HTTP.
pub(crate) struct McpHttp {
    service: StreamableHttpService<McpServer, LocalSessionManager>,
    manager: Arc<LocalSessionManager>,
    shares: Arc<Shares>,
    sessions: Mutex<HashMap<String, AgentSession>>,
}

/// The owner of a session, and its share, which orders the sessions by their last request.
struct AgentSession {
    owner: Owner,
    share: Share,
}

impl McpHttp {
    /// Sessions end when `closing` is cancelled.
    pub(crate) fn new(perform: Arc<VerbFn>, body_bytes: usize, closing: CancellationToken) -> Self {
        let server = McpServer::new(Arc::new(HttpBackend { perform }));
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(IDLE);
        let manager = Arc::new(manager);
        // Names, origins and sizes were checked by the HTTP listener.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_max_request_body_bytes(body_bytes)
            .with_cancellation_token(closing);
        let service =
            StreamableHttpService::new(move || Ok(server.for_another()), Arc::clone(&manager), config);
        let shares = Shares::new("sessions of agents over HTTP", "agents", SESSIONS);
        Self { service, manager, shares, sessions: Mutex::default() }
    }

    /// Handles one request of a caller; `body` is complete.
    pub(crate) async fn answer(&self, caller: Caller, mut parts: Parts, body: Bytes) -> Response<Body> {
        let owner = caller.owner.clone();
        let session = parts.headers.get(SESSION_HEADER).map(|id| id.to_str().unwrap_or_default().to_owned());
        let admitted = match &session {
            Some(id) => self.used(id, &owner).await.map(|()| None),
            None if parts.method == Method::POST && begins(&body) => self.begin(&caller).await.map(Some),
            None => Ok(None),
        };
        let share = match admitted {
            Ok(share) => share,
            Err(why) => return errors::without_session(why, &body),
        };
        let ends = parts.method == Method::DELETE;
        parts.extensions.insert(caller);
        let request = Request::from_parts(parts, Full::new(body.clone()));
        let mut response = self.service.handle(request).await;
        let new_id = response.headers().get(SESSION_HEADER).and_then(|id| id.to_str().ok());
        match (session, new_id, share) {
            (None, Some(id), Some(share)) => {
                share.idle();
                self.lock().insert(id.to_owned(), AgentSession { owner, share });
            }
            (Some(id), ..) if ends => {
                self.lock().remove(&id);
                if response.status() == StatusCode::ACCEPTED {
                    // The session has ended, and clients treat 202 as a failure.
                    *response.status_mut() = StatusCode::NO_CONTENT;
                }
            }
            _ => {}
        }
        errors::readable(response, &body).await
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, AgentSession>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that the session exists and belongs to this owner; notes its use.
    async fn used(&self, id: &str, owner: &Owner) -> Result<(), NoSession> {
        match self.lock().get(id).filter(|session| session.owner == *owner) {
            Some(session) => session.share.idle(),
            None => return Err(NoSession::Unknown),
        }
        if matches!(self.manager.has_session(&Arc::from(id)).await, Ok(true)) {
            return Ok(());
        }
        self.lock().remove(id);
        Err(NoSession::Unknown)
    }

    /// A share for a new session; closes the sessions that have made way for it.
    async fn begin(&self, caller: &Caller) -> Result<Share, NoSession> {
        // Sessions that ended by themselves are not in the manager.
        let live: HashSet<String> =
            self.manager.sessions.read().await.keys().map(ToString::to_string).collect();
        let (share, evicted) = {
            let mut sessions = self.lock();
            sessions.retain(|id, _| live.contains(id));
            let share = self.shares.take(&caller.holder());
            let evicted = sessions.extract_if(|_, session| session.share.is_evicted());
            (share, evicted.collect::<Vec<_>>())
        };
        for (id, AgentSession { owner, .. }) in evicted {
            tracing::info!(%owner, "the least recently used session of an agent is closed for a new one");
            if let Err(error) = self.manager.close_session(&Arc::from(id.as_str())).await {
                tracing::debug!(%error, "a session did not close");
            }
        }
        share.map_err(NoSession::TooMany)
    }
}

/// Whether a message begins a session.
fn begins(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        method: std::borrow::Cow<'a, str>,
    }
    serde_json::from_slice::<Message<'_>>(body).is_ok_and(|message| message.method == "initialize")
}

/// The backend for agents over HTTP: without files; the HTTP listener has identified the caller.
struct HttpBackend {
    perform: Arc<VerbFn>,
}

impl McpBackend for HttpBackend {
    fn client(&self, beside: &Extensions) -> Result<McpClient, String> {
        let no_caller = || "a request without a caller".to_owned();
        let parts = beside.get::<Parts>().ok_or_else(no_caller)?;
        let caller = parts.extensions.get::<Caller>().cloned().ok_or_else(no_caller)?;
        let query = parts.uri.query().unwrap_or_default();
        let named = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == CLIENT_PARAMETER);
        let client = if let Some((_, name)) = named {
            let invalid =
                || format!("`{CLIENT_PARAMETER}` in the address: a name has 1 to {CLIENT_CHARS} characters");
            Some(key_of_client(&name).ok_or_else(invalid)?)
        } else {
            let session = parts.headers.get(SESSION_HEADER).and_then(|id| id.to_str().ok());
            session.map(|id| format!("session {id}"))
        };
        Ok(McpClient { caller: Some(caller), key: client })
    }

    fn perform<'a>(
        &'a self,
        client: &'a McpClient,
        op: Op,
        _: String,
    ) -> VerbFuture<'a, Result<Reply, OpError>> {
        if let Some(caller) = &client.caller {
            return (self.perform)(caller.clone(), op);
        }
        let error = OpError::new(ErrorCode::Internal, "a request without a caller");
        Box::pin(std::future::ready(Err(error)))
    }
}
