//! The MCP API over HTTP, at [`PATH`] of the HTTP listener, which has already checked the host name, origin, token and size of
//! each request. Clients of the older generation have sessions; owners have shares of them, and each belongs to the owner that
//! created it: requests of other owners are refused.

mod ended;
mod errors;
mod presence;
mod sessions;

pub use ended::EndedSessions;
pub use sessions::SessionKey;

use super::server::OLDER_METHODS;
use super::{CLIENT_CHARS, McpBackend, McpClient, McpServer, VerbFuture, key_of_client};
use axum::body::{Body, Bytes, HttpBody};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, Request, Response, StatusCode};
use errors::NoSession;
use http_body_util::Full;
use presence::AgentPresence;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{Extensions, ProtocolVersion};
use rmcp::transport::streamable_http_server::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use sessions::{Handshakes, SessionClaim, SessionIds};
use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::{CancellationToken, DropGuard};
use vm_system_ops::{Caller, IdempotencyKey};
use vm_system_protocol::control::{ErrorCode, Op, OpError, Reply};
use vm_system_record::Owner;
use vm_system_runtime::shares::{Share, ShareLimits, Shares};

/// Path of the MCP API on the HTTP listener.
pub(crate) const PATH: &str = "/mcp";
/// Sessions at a time. The least recently used ones are closed for new ones, of the same owner first.
const SESSIONS: ShareLimits = ShareLimits { per_owner: 64, ..ShareLimits::at_most(512) };
/// A session without requests for this long is closed.
const IDLE: Duration = Duration::from_hours(2);
/// Ended sessions of earlier daemons that are remembered, so that they are not restored again.
const ENDED: usize = 4_096;
/// Largest body of a message (bytes): as over standard streams.
const BODY_BYTES: usize = 16 << 20;
/// Bodies above the limit of the REST API that are handled at a time: they occupy memory.
const LARGE_BODIES: ShareLimits = ShareLimits { per_owner: 8, ..ShareLimits::at_most(32) };
const SESSION_HEADER: &str = "mcp-session-id";
const VERSION_HEADER: &str = "mcp-protocol-version";
const NAME_HEADER: &str = "mcp-name";
/// Query parameter that names a client; distinguishes the clients of one owner.
const CLIENT_PARAMETER: &str = "client";
/// Query parameter with the sets of tools that are listed.
const TOOLSETS_PARAMETER: &str = "toolsets";
/// All query parameters.
pub(crate) const PARAMETERS: &[&str] = &[CLIENT_PARAMETER, TOOLSETS_PARAMETER];

/// Runs one verb of one caller; the token says when its agent has gone.
pub(crate) type VerbFn =
    dyn Fn(Caller, CancellationToken, Op) -> VerbFuture<'static, Result<Reply, OpError>> + Send + Sync;

/// The MCP API over HTTP. What the requests mean is decided by the handler: [`McpServer`], or one with other tools (the fixtures of
/// the conformance suite).
pub struct McpHttp<S: ServerHandler = McpServer> {
    service: StreamableHttpService<S, LocalSessionManager>,
    manager: Arc<LocalSessionManager>,
    shares: Arc<Shares>,
    large_bodies: Arc<Shares>,
    ids: SessionIds,
    /// The sessions that clients ended, also of earlier daemons.
    ended: EndedSessions,
    handshakes: Arc<Handshakes>,
    sessions: Mutex<AgentSessions>,
}

/// Sessions by their id within this daemon.
#[derive(Default)]
struct AgentSessions {
    live: HashMap<String, AgentSession>,
    /// Sessions of earlier daemons that have ended, oldest first.
    ended: VecDeque<String>,
}

impl AgentSessions {
    fn end(&mut self, inner: &str) {
        if self.live.remove(inner).is_some_and(|session| session.is_restored) {
            self.ended.push_back(inner.to_owned());
            if self.ended.len() > ENDED {
                self.ended.pop_front();
            }
        }
    }
}

/// The owner of a session, and its share, which orders the sessions by their last request.
struct AgentSession {
    owner: Owner,
    share: Share,
    presence: AgentPresence,
    /// An earlier daemon created it.
    is_restored: bool,
    /// Cancelled when the handshake was made, or repeated with the first request to a restored session. Others wait for that: the
    /// service accepts their messages before it has repeated the handshake.
    ready: CancellationToken,
}

impl<S: ServerHandler> std::fmt::Debug for McpHttp<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpHttp").finish_non_exhaustive()
    }
}

impl McpHttp {
    /// The API over the verbs. Sessions end when `closing` is cancelled; a later daemon with the same `key` continues them.
    pub(crate) fn new(
        perform: Arc<VerbFn>,
        (key, ended): (SessionKey, EndedSessions),
        closing: CancellationToken,
    ) -> Self {
        let server = McpServer::new(Arc::new(HttpBackend { perform }));
        Self { ended, ..Self::serving(move || server.for_another(), key, closing) }
    }

    /// The response to a body above [`McpHttp::body_limit`].
    pub(crate) fn too_large(bytes: usize) -> Response<Body> {
        errors::too_large(bytes)
    }

    /// The response to a message whose address is invalid.
    pub(crate) fn invalid(body: &[u8], why: String) -> Response<Body> {
        errors::invalid(body, why)
    }
}

impl<S: ServerHandler> McpHttp<S> {
    /// The API over the handlers that `handler` makes, one for each session or request without one; otherwise as
    /// [`McpHttp::new`].
    pub fn serving(
        handler: impl Fn() -> S + Send + Sync + 'static,
        key: SessionKey,
        closing: CancellationToken,
    ) -> Self {
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(IDLE);
        let manager = Arc::new(manager);
        let handshakes = Arc::new(Handshakes::default());
        // Names, origins and sizes were checked by the HTTP listener.
        let mut config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_max_request_body_bytes(usize::MAX)
            .with_cancellation_token(closing);
        config.session_store = Some(Arc::clone(&handshakes) as _);
        let service = StreamableHttpService::new(move || Ok(handler()), Arc::clone(&manager), config);
        let shares = Shares::new("sessions of agents over HTTP", "agents", SESSIONS);
        let large_bodies = Shares::new("large messages of agents over HTTP", "agents", LARGE_BODIES);
        let (ids, sessions) = (SessionIds::new(key), Mutex::default());
        let ended = EndedSessions::default();
        Self { service, manager, shares, large_bodies, ids, ended, handshakes, sessions }
    }

    /// The largest body of this request, and the share that a body above `usual` needs until it is handled.
    pub(crate) fn body_limit(
        &self,
        caller: &Caller,
        body: &impl HttpBody,
        usual: usize,
    ) -> Result<(usize, Option<Share>), Box<Response<Body>>> {
        if body.size_hint().upper().is_some_and(|bytes| bytes <= usual as u64) {
            return Ok((usual, None));
        }
        match self.large_bodies.take(&caller.holder()) {
            Ok(share) => Ok((BODY_BYTES.max(usual), Some(share))),
            Err(why) => Err(Box::new(errors::without_session(NoSession::TooMany(why), &[]))),
        }
    }

    /// Handles one request of a caller; `body` is complete.
    pub async fn answer(&self, caller: Caller, mut parts: Parts, body: Bytes) -> Response<Body> {
        if let Some(method) = removed_method(&parts, &body) {
            return errors::unknown_method(&body, &method);
        }
        let owner = caller.owner.clone();
        let id = parts.headers.get(SESSION_HEADER).map(|id| id.to_str().unwrap_or_default().to_owned());
        let (mut begun, mut restoring) = (None, None);
        let admitted = match &id {
            Some(id) => match self.ids.check(&owner, id) {
                Some(claim) => match self.used(&claim, &caller).await {
                    Ok(guard) if parts.method == Method::DELETE => {
                        restoring = guard;
                        self.record_end(&owner, &claim).await.map(|()| Some(claim.inner))
                    }
                    used => used.map(|guard| {
                        restoring = guard;
                        Some(claim.inner)
                    }),
                },
                None => Err(NoSession::Unknown),
            },
            None if parts.method == Method::POST && begins(&body) => self.begin(&caller).await.map(|share| {
                begun = Some(share);
                None
            }),
            None => Ok(None),
        };
        let inner = match admitted {
            Ok(inner) => inner,
            Err(why) => return errors::without_session(why, &body),
        };
        if let Some(value) = inner.as_deref().and_then(|inner| HeaderValue::from_str(inner).ok()) {
            parts.headers.insert(SESSION_HEADER, value);
        }
        let ends = parts.method == Method::DELETE;
        parts.extensions.insert(caller);
        let presence = inner.as_ref().and_then(|inner| Some(self.lock().live.get(inner)?.presence.clone()));
        let open = presence.map(|presence| presence.enter());
        let open = open.map(|(open, gone)| {
            parts.extensions.insert(gone);
            open
        });
        let request = Request::from_parts(parts, Full::new(body.clone()));
        let mut response = self.service.handle(request).await;
        if let (Some(inner), Some(guard)) = (&inner, restoring) {
            self.handshakes.take(inner);
            drop(guard);
        }
        let new = response.headers().get(SESSION_HEADER).and_then(|id| id.to_str().ok()).map(str::to_owned);
        let shown = match (new, id) {
            (None, _) => None,
            (Some(_), Some(id)) => Some(id),
            (Some(new), None) => {
                self.handshakes.take(&new).map(|begun| self.ids.sign(&owner, &new, &begun)).inspect(|_| {
                    if let Some(share) = begun {
                        share.idle();
                        let ready = CancellationToken::new();
                        ready.cancel();
                        let session = AgentSession {
                            owner,
                            share,
                            presence: AgentPresence::default(),
                            is_restored: false,
                            ready,
                        };
                        self.lock().live.insert(new, session);
                    }
                })
            }
        };
        if let Some(value) = shown.and_then(|id| HeaderValue::from_str(&id).ok()) {
            response.headers_mut().insert(SESSION_HEADER, value);
        }
        if ends && let Some(inner) = inner {
            self.lock().end(&inner);
            if response.status() == StatusCode::ACCEPTED {
                // The session has ended, and clients treat 202 as a failure.
                *response.status_mut() = StatusCode::NO_CONTENT;
            }
        }
        let response = errors::readable(response, &body).await;
        match open {
            Some(open) => presence::watched(response, open),
            None => response,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, AgentSessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that the session exists, or continues one of an earlier daemon; notes its use. The guard is dropped when the request
    /// was passed on.
    async fn used(&self, claim: &SessionClaim, caller: &Caller) -> Result<Option<DropGuard>, NoSession> {
        let inner = &claim.inner;
        if let Some(ready) = self.note_use(inner, &caller.owner) {
            return self.when_ready(inner, ready).await;
        }
        if claim.is_ours
            || self.lock().ended.contains(inner)
            || self.ended.has(&caller.owner, claim.began, inner)
        {
            return Err(NoSession::Unknown);
        }
        let share = self.begin(caller).await?;
        share.idle();
        let token = CancellationToken::new();
        let faster = {
            let mut sessions = self.lock();
            let faster = sessions.live.get(inner).map(|session| session.ready.clone());
            if faster.is_none() {
                self.handshakes.put(inner, claim.handshake());
                let (owner, ready) = (caller.owner.clone(), token.clone());
                let session = AgentSession {
                    owner,
                    share,
                    presence: AgentPresence::default(),
                    is_restored: true,
                    ready,
                };
                sessions.live.insert(inner.clone(), session);
            }
            faster
        };
        if let Some(ready) = faster {
            return self.when_ready(inner, ready).await;
        }
        tracing::debug!(owner = %caller.owner, "the session of an agent is continued");
        Ok(Some(token.drop_guard()))
    }

    /// Records that a client ends a session, before it is ended: its id stays valid otherwise.
    async fn record_end(&self, owner: &Owner, claim: &SessionClaim) -> Result<(), NoSession> {
        let (ended, owner, began) = (self.ended.clone(), owner.clone(), claim.began);
        let inner = claim.inner.clone();
        let recorded = tokio::task::spawn_blocking(move || ended.add(&owner, began, &inner)).await;
        let recorded = recorded.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        recorded.map_err(|error| {
            tracing::error!(%error, "the end of an agent's session is not recorded");
            NoSession::NotRecorded
        })
    }

    /// Notes the use of a session, if this owner has it.
    fn note_use(&self, inner: &str, owner: &Owner) -> Option<CancellationToken> {
        let sessions = self.lock();
        let session = sessions.live.get(inner).filter(|session| session.owner == *owner)?;
        session.share.idle();
        Some(session.ready.clone())
    }

    async fn when_ready(
        &self,
        inner: &str,
        ready: CancellationToken,
    ) -> Result<Option<DropGuard>, NoSession> {
        ready.cancelled().await;
        if matches!(self.manager.has_session(&Arc::from(inner)).await, Ok(true)) {
            return Ok(None);
        }
        self.lock().end(inner);
        Err(NoSession::Unknown)
    }

    /// A share for a new session; closes the sessions that have made way for it.
    async fn begin(&self, caller: &Caller) -> Result<Share, NoSession> {
        let (share, evicted) = {
            let mut sessions = self.lock();
            // Sessions that ended by themselves are not in the manager; if it is busy, they are found the next time.
            if let Ok(live) = self.manager.sessions.try_read() {
                let ready = sessions.live.iter().filter(|(_, session)| session.ready.is_cancelled());
                let gone = ready.filter(|(id, _)| !live.contains_key(id.as_str()));
                let gone: Vec<String> = gone.map(|(id, _)| id.clone()).collect();
                for id in &gone {
                    sessions.end(id);
                }
            }
            let share = self.shares.take(&caller.holder());
            let evicted = sessions.live.iter().filter(|(_, session)| session.share.is_evicted());
            let evicted: Vec<String> = evicted.map(|(id, _)| id.clone()).collect();
            for id in &evicted {
                sessions.end(id);
            }
            (share, evicted)
        };
        for id in evicted {
            tracing::info!("the least recently used session of an agent is closed for a new one");
            if let Err(error) = self.manager.close_session(&Arc::from(id.as_str())).await {
                tracing::debug!(%error, "a session did not close");
            }
        }
        share.map_err(NoSession::TooMany)
    }
}

/// Whether a message begins a session.
fn begins(body: &[u8]) -> bool {
    method_of(body).is_some_and(|method| method == "initialize")
}

fn method_of(body: &[u8]) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        method: Cow<'a, str>,
    }
    serde_json::from_slice::<Message<'_>>(body).ok().map(|message| message.method)
}

/// The method of a request without `Mcp-Name`, if the request's generation of the protocol has removed it. The SDK's service would
/// report the missing header, which the specification requires of existing methods only.
fn removed_method(parts: &Parts, body: &[u8]) -> Option<String> {
    let version = parts.headers.get(VERSION_HEADER)?.to_str().ok()?;
    if version < ProtocolVersion::NO_INITIALIZE.as_str() || parts.headers.contains_key(NAME_HEADER) {
        return None;
    }
    method_of(body).filter(|method| OLDER_METHODS.contains(&method.as_ref())).map(Cow::into_owned)
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
        let parameter = |wanted: &str| {
            form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == wanted).map(|(_, value)| value)
        };
        let toolsets = parameter(TOOLSETS_PARAMETER).map(|names| names.parse()).transpose()?;
        let client = if let Some(name) = parameter(CLIENT_PARAMETER) {
            let invalid = || {
                format!(
                    "`{CLIENT_PARAMETER}` in the address: a name has 1 to {CLIENT_CHARS} printable characters"
                )
            };
            Some(key_of_client(&name).ok_or_else(invalid)?)
        } else {
            let session = parts.headers.get(SESSION_HEADER).and_then(|id| id.to_str().ok());
            session.map(|id| format!("session {id}"))
        };
        // Without a session, the end of the connection cancels the request itself.
        let gone = parts.extensions.get::<CancellationToken>().cloned().unwrap_or_default();
        Ok(McpClient { caller: Some(caller), key: client, toolsets: toolsets.unwrap_or_default(), gone })
    }

    fn perform<'a>(
        &'a self,
        client: &'a McpClient,
        op: Op,
        _: IdempotencyKey,
    ) -> VerbFuture<'a, Result<Reply, OpError>> {
        if let Some(caller) = &client.caller {
            return (self.perform)(caller.clone(), client.gone.clone(), op);
        }
        let error = OpError::new(ErrorCode::Internal, "a request without a caller");
        Box::pin(std::future::ready(Err(error)))
    }
}
