//! The REST API over HTTP: resources under `/api/v1`, events as SSE, and the files of a web UI. A thin adapter:
//! [`ops`](vm_system_ops) implements verbs, permissions and refusals for all APIs.
//!
//! Every peer is treated as clumsy or hostile: sizes, counts and times are bounded by [`RestLimits`], and every
//! refusal has the same envelope (`envelope`).
//!
//! Reading order:
//! - `server`, `connection`, `deadline`: accepting, one connection, write deadlines
//! - `gate`: checks of every request before its handler; `tokens`, `auth`, `local_uid`: its caller
//! - `envelope`, `input`, `query`, `request`: responses, bodies and queries, one verb
//! - `representation`: entity tags and compression
//! - `runtime`, `templates`, `parts`, `sessions`, `executions`, `programs`, `durable`, `schedules`, `archives`: the handlers, one file per
//!   noun; `sse`: live events
//! - `routes`, `endpoint`, `shapes`, `openapi`: the table of routes; the signatures of handlers and the shapes of values, of which
//!   the description of the API is made
//! - `mcp`: the MCP API at its path; `upgrade`: the control API over a connection; `ui`: files for browsers

mod archives;
mod auth;
mod connection;
mod deadline;
mod durable;
mod endpoint;
mod envelope;
mod executions;
mod filters;
mod gate;
mod half_closed;
mod input;
mod lingering;
mod local_uid;
mod mcp;
mod memory;
pub mod openapi;
mod pages;
mod parts;
mod programs;
mod query;
mod representation;
mod request;
mod restorations;
mod routes;
mod runtime;
mod schedules;
mod server;
mod sessions;
mod shapes;
mod sse;
mod templates;
mod tokens;
mod ui;
mod upgrade;

pub use server::{Listeners, serve};
pub use tokens::{TokenBook, TokenError, token_uids};
pub use ui::UiDir;

use super::control::{PeerPolicy, ServerState, UpgradedClients};
use super::mcp::http::McpHttp;
pub use super::mcp::http::{EndedSessions, SessionKey};
use std::sync::Arc;
use std::time::Duration;
use vm_system_ops::VerbHandler;
use vm_system_protocol::limits;
use vm_system_runtime::shares::ShareLimits;

/// Name of this API in the audit log.
const API: &str = "rest";
/// Path prefix of the API.
pub(crate) const PREFIX: &str = "/api/v1";

/// The operator's settings of this API.
#[derive(Debug)]
pub struct RestOptions {
    /// The valid tokens.
    pub tokens: Arc<TokenBook>,
    /// The local users that need no token, and their principals.
    pub peers: PeerPolicy,
    /// Over TCP every client needs a token, also over loopback.
    pub require_token: bool,
    /// Host names and addresses of this API over TCP, in addition to `localhost`, loopback addresses and the listener's own (lower
    /// case, no port).
    pub allowed_hosts: Vec<String>,
    /// Origins of pages that may make requests, in addition to this API's own: `http://localhost:5173` (lower case).
    pub allowed_origins: Vec<String>,
    /// The web UI, if one is served.
    pub ui: Option<UiDir>,
    pub limits: RestLimits,
    /// Signs the ids of agents' sessions, so that they outlive the daemon.
    pub session_key: SessionKey,
    /// Agents' sessions that were ended.
    pub ended_sessions: EndedSessions,
}

/// Connections at a time, unless the operator sets another number.
pub const CONNECTIONS: usize = 8_192;

/// Bounds of the API.
#[derive(Debug, Clone)]
pub struct RestLimits {
    /// Connections of all listeners; above that idle ones are closed for new ones.
    pub connections: ShareLimits,
    /// Largest request body (bytes).
    pub body_bytes: usize,
    /// Largest head of a request (bytes).
    pub head_bytes: usize,
    /// Most header fields of a request.
    pub headers: usize,
    /// Time for a request's head, from the connection's start or the last response.
    pub head: Duration,
    /// Time for a request's body.
    pub body: Duration,
    /// Time within which a client must read some of the sent data.
    pub write: Duration,
    /// Interval of keep-alive comments of a stream without events.
    pub heartbeat: Duration,
}

impl Default for RestLimits {
    fn default() -> Self {
        Self {
            connections: ShareLimits::at_most(CONNECTIONS),
            body_bytes: 1 << 20,
            head_bytes: 32 << 10,
            headers: 64,
            head: Duration::from_secs(30),
            body: Duration::from_secs(30),
            write: Duration::from_millis(limits::WRITE_MS),
            heartbeat: Duration::from_secs(15),
        }
    }
}

/// State that all requests share.
pub(crate) struct App {
    verbs: Arc<dyn VerbHandler>,
    options: RestOptions,
    mcp: McpHttp,
    /// Clients of the control API over HTTP connections.
    upgraded: UpgradedClients,
    state: ServerState,
}
