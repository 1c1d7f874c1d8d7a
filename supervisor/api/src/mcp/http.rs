//! Messages over HTTP, at [`PATH`] of the HTTP door: that door has looked at name, origin, token and size of each request
//! before it comes here. Clients of the older generation have sessions; those are bounded, belong to whoever made them, and
//! are of no use to anybody else.

mod refused;

use super::{Asker, Asking, CLIENT_CHARS, Front, McpServer, key_of_client};
use axum::body::{Body, Bytes};
use axum::http::request::Parts;
use axum::http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use refused::NoSession;
use rmcp::model::Extensions;
use rmcp::transport::streamable_http_server::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use vm_system_ops::Caller;
use vm_system_protocol::control::{ErrorCode, Op, OpError, Reply};
use vm_system_record::Owner;

/// Where it is.
pub(crate) const PATH: &str = "/mcp";
/// Sessions at a time.
const SESSIONS: usize = 512;
/// Sessions of one owner; the ones that were not used for longest make room.
const SESSIONS_OF_AN_OWNER: usize = 64;
/// A session that is not used for this long ends.
const IDLE: Duration = Duration::from_hours(2);
const SESSION_HEADER: &str = "mcp-session-id";
/// Of the address: which of an owner's clients this is.
const CLIENT_PARAMETER: &str = "client";

/// Answers one verb of one caller.
pub(crate) type Ask = dyn Fn(Caller, Op) -> Asking<'static, Result<Reply, OpError>> + Send + Sync;

/// The door's part that speaks the protocol.
pub(crate) struct McpHttp {
    service: StreamableHttpService<McpServer, LocalSessionManager>,
    manager: Arc<LocalSessionManager>,
    sessions: Mutex<HashMap<String, Owned>>,
}

/// Whose session, and when it was used last.
struct Owned {
    owner: Owner,
    used: Instant,
}

impl McpHttp {
    /// Sessions end when `closing` is cancelled.
    pub(crate) fn new(ask: Arc<Ask>, body_bytes: usize, closing: CancellationToken) -> Self {
        let server = McpServer::new(Arc::new(HttpFront { ask }));
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(IDLE);
        let manager = Arc::new(manager);
        // Names, origins and sizes were looked at by the door.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_max_request_body_bytes(body_bytes)
            .with_cancellation_token(closing);
        let service =
            StreamableHttpService::new(move || Ok(server.for_another()), Arc::clone(&manager), config);
        Self { service, manager, sessions: Mutex::default() }
    }

    /// Answers one request of a caller whose body is whole.
    pub(crate) async fn answer(&self, caller: Caller, mut parts: Parts, body: Bytes) -> Response<Body> {
        let owner = caller.owner.clone();
        let session = parts.headers.get(SESSION_HEADER).map(|id| id.to_str().unwrap_or_default().to_owned());
        let admitted = match &session {
            Some(id) => self.used(id, &owner).await,
            None if parts.method == Method::POST && begins(&body) => self.make_room(&owner).await,
            None => Ok(()),
        };
        if let Err(why) = admitted {
            return refused::without_session(why, &body);
        }
        let ends = parts.method == Method::DELETE;
        parts.extensions.insert(caller);
        let asked = Request::from_parts(parts, Full::new(body.clone()));
        let mut response = self.service.handle(asked).await;
        let given = response.headers().get(SESSION_HEADER).and_then(|id| id.to_str().ok());
        match (session, given) {
            (None, Some(id)) => {
                let made = Owned { owner, used: Instant::now() };
                self.lock().insert(id.to_owned(), made);
            }
            (Some(id), _) if ends => {
                self.lock().remove(&id);
                if response.status() == StatusCode::ACCEPTED {
                    // It is over, and clients take "accepted" for a failure.
                    *response.status_mut() = StatusCode::NO_CONTENT;
                }
            }
            _ => {}
        }
        refused::readable(response, &body).await
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Owned>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this is a session of this owner's.
    async fn used(&self, id: &str, owner: &Owner) -> Result<(), NoSession> {
        match self.lock().get_mut(id).filter(|session| session.owner == *owner) {
            Some(session) => session.used = Instant::now(),
            None => return Err(NoSession::Unknown),
        }
        if matches!(self.manager.has_session(&Arc::from(id)).await, Ok(true)) {
            return Ok(());
        }
        self.lock().remove(id);
        Err(NoSession::Unknown)
    }

    /// Room for one more session of this owner's.
    async fn make_room(&self, owner: &Owner) -> Result<(), NoSession> {
        // Those that ended by themselves.
        let live: std::collections::HashSet<String> =
            self.manager.sessions.read().await.keys().map(ToString::to_string).collect();
        let stale = {
            let mut sessions = self.lock();
            sessions.retain(|id, _| live.contains(id));
            let mut mine: Vec<_> = sessions
                .iter()
                .filter(|(_, session)| session.owner == *owner)
                .map(|(id, session)| (session.used, id.clone()))
                .collect();
            mine.sort();
            mine.truncate((mine.len() + 1).saturating_sub(SESSIONS_OF_AN_OWNER));
            for (_, id) in &mine {
                sessions.remove(id);
            }
            if live.len() >= SESSIONS + mine.len() {
                return Err(NoSession::TooMany);
            }
            mine
        };
        for (_, id) in stale {
            tracing::info!(%owner, "the session of an agent makes room for a new one");
            if let Err(error) = self.manager.close_session(&Arc::from(id.as_str())).await {
                tracing::debug!(%error, "a session did not close");
            }
        }
        Ok(())
    }
}

/// Whether a message asks for a session.
fn begins(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        method: std::borrow::Cow<'a, str>,
    }
    serde_json::from_slice::<Message<'_>>(body).is_ok_and(|message| message.method == "initialize")
}

/// What agents over HTTP have: no files, and callers that the door knows by their tokens.
struct HttpFront {
    ask: Arc<Ask>,
}

impl Front for HttpFront {
    fn asker(&self, beside: &Extensions) -> Result<Asker, String> {
        let nobody = || "a request without a caller".to_owned();
        let parts = beside.get::<Parts>().ok_or_else(nobody)?;
        let caller = parts.extensions.get::<Caller>().cloned().ok_or_else(nobody)?;
        let query = parts.uri.query().unwrap_or_default();
        let named = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == CLIENT_PARAMETER);
        let client = if let Some((_, name)) = named {
            let wrong =
                || format!("`{CLIENT_PARAMETER}` in the address: a name has 1 to {CLIENT_CHARS} characters");
            Some(key_of_client(&name).ok_or_else(wrong)?)
        } else {
            let session = parts.headers.get(SESSION_HEADER).and_then(|id| id.to_str().ok());
            session.map(|id| format!("session {id}"))
        };
        Ok(Asker { caller: Some(caller), client })
    }

    fn ask<'a>(&'a self, asker: &'a Asker, op: Op, _: String) -> Asking<'a, Result<Reply, OpError>> {
        if let Some(caller) = &asker.caller {
            return (self.ask)(caller.clone(), op);
        }
        let error = OpError::new(ErrorCode::Internal, "a request without a caller");
        Box::pin(std::future::ready(Err(error)))
    }
}
