//! The caller of a request: the bearer of a token, or the local user that the kernel reports.

use super::envelope::RestError;
use super::local_uid;
use super::{API, App};
use crate::control::Transport;
use axum::http::{HeaderMap, header};
use std::net::{IpAddr, SocketAddr};
use tokio::sync::OnceCell;
use vm_system_ops::Caller;
use vm_system_record::Owner;

/// Longest accepted token (bytes).
const TOKEN_BYTES: usize = 1_024;

/// The other end of a connection.
#[derive(Debug)]
pub(super) enum RestPeer {
    /// Over the Unix socket: the user, and the caller after the first lookup.
    Unix { uid: Option<u32>, caller: OnceCell<Result<Caller, String>> },
    /// Over TCP.
    Tcp {
        client: SocketAddr,
        server: SocketAddr,
        /// Inode of the server's socket.
        inode: u64,
        caller: OnceCell<Result<Caller, String>>,
    },
}

impl RestPeer {
    pub(super) fn unix(uid: Option<u32>) -> Self {
        Self::Unix { uid, caller: OnceCell::new() }
    }

    pub(super) fn tcp(client: SocketAddr, server: SocketAddr, inode: u64) -> Self {
        Self::Tcp { client, server, inode, caller: OnceCell::new() }
    }

    /// Our address of a connection over TCP.
    pub(super) fn tcp_server(&self) -> Option<IpAddr> {
        match self {
            Self::Tcp { server, .. } => Some(server.ip()),
            Self::Unix { .. } => None,
        }
    }
}

/// The origin of a request, for the audit log.
impl std::fmt::Display for RestPeer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unix { uid: Some(uid), .. } => write!(f, "uid:{uid}"),
            Self::Unix { uid: None, .. } => f.write_str("a user that the kernel does not name"),
            Self::Tcp { client, .. } => write!(f, "{}", client.ip().to_canonical()),
        }
    }
}

/// The caller of a request; refused if there is none.
pub(super) async fn caller(app: &App, peer: &RestPeer, headers: &HeaderMap) -> Result<Caller, RestError> {
    if let Some(token) = token(headers)? {
        let bearer = app.options.tokens.find(token);
        let bearer = bearer.ok_or_else(|| RestError::unauthorized("unknown token"))?;
        return Ok(Caller { owner: Owner::new(bearer.name), admin: bearer.admin, api: API });
    }
    // A user is looked up once per connection.
    let peers = &app.options.peers;
    let known = match peer {
        RestPeer::Unix { uid, caller } => {
            caller.get_or_init(|| peers.judge(API, *uid, Transport::Unix)).await
        }
        RestPeer::Tcp { client, server, inode, caller } => {
            let loopback = |address: &SocketAddr| address.ip().to_canonical().is_loopback();
            if app.options.require_token || !loopback(client) || !loopback(server) {
                return Err(RestError::unauthorized("this API needs a token: Authorization: Bearer TOKEN"));
            }
            let judged = || async {
                let uid = local_user(*client, *server, *inode).await;
                peers.judge(API, uid, Transport::Loopback).await
            };
            caller.get_or_init(judged).await
        }
    };
    known.clone().map_err(RestError::unauthorized)
}

async fn local_user(client: SocketAddr, server: SocketAddr, inode: u64) -> Option<u32> {
    tokio::task::spawn_blocking(move || local_uid::find(client, server, inode)).await.ok().flatten()
}

/// The token of a request, if it has one.
fn token(headers: &HeaderMap) -> Result<Option<&str>, RestError> {
    let mut fields = headers.get_all(header::AUTHORIZATION).iter();
    let Some(field) = fields.next() else { return Ok(None) };
    let malformed = || RestError::unauthorized("the header Authorization is not `Bearer TOKEN`");
    if fields.next().is_some() {
        return Err(malformed());
    }
    let (scheme, token) = field.to_str().ok().and_then(|text| text.split_once(' ')).ok_or_else(malformed)?;
    let token = token.trim();
    if !scheme.eq_ignore_ascii_case("bearer") || token.is_empty() || token.len() > TOKEN_BYTES {
        return Err(malformed());
    }
    Ok(Some(token))
}
