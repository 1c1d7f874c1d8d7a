//! The caller of a request: the bearer of a token, or the local user that the kernel reports.

use super::envelope::RestError;
use super::local_uid;
use super::{API, App};
use crate::control::{PeerPolicy, Transport};
use axum::http::{HeaderMap, header};
use std::net::{IpAddr, SocketAddr};
use tokio::sync::OnceCell;
use vm_system_ops::Caller;
use vm_system_protocol::control::OpError;
use vm_system_record::Owner;
use vm_system_runtime::shares::{Holder, Origin, Share};

/// Longest accepted token (bytes).
const TOKEN_BYTES: usize = 1_024;

/// The other end of a connection.
#[derive(Debug)]
pub(super) enum RestPeer {
    /// Over the Unix socket: the user, and the caller after the first lookup.
    Unix { uid: Option<u32>, caller: OnceCell<Result<Caller, String>> },
    /// Over TCP; over loopback with the user.
    Tcp { client: SocketAddr, server: SocketAddr, uid: Option<u32>, caller: OnceCell<Result<Caller, String>> },
}

impl RestPeer {
    pub(super) fn unix(uid: Option<u32>) -> Self {
        Self::Unix { uid, caller: OnceCell::new() }
    }

    /// The client of an accepted connection; `inode` is that of the server's socket.
    pub(super) fn tcp(client: SocketAddr, server: SocketAddr, inode: u64) -> Self {
        let is_loopback = [client, server].iter().all(|address| address.ip().to_canonical().is_loopback());
        let uid = if is_loopback { local_uid::find(client, server, inode) } else { None };
        Self::Tcp { client, server, uid, caller: OnceCell::new() }
    }

    /// Our address of a connection over TCP.
    pub(super) fn tcp_server(&self) -> Option<IpAddr> {
        match self {
            Self::Tcp { server, .. } => Some(server.ip()),
            Self::Unix { .. } => None,
        }
    }

    /// Has the share of the connection before the peer is identified.
    pub(super) fn holder(&self, peers: &PeerPolicy) -> Holder {
        match self {
            Self::Unix { uid, .. } => peers.holder(*uid),
            // Nobody's yet: the user may be a proxy's, and the client the bearer of a token.
            Self::Tcp { uid: Some(uid), .. } => Holder::Unidentified(Origin::User(*uid)),
            Self::Tcp { client, .. } => Holder::Unidentified(Origin::of_address(client.ip())),
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

/// The caller of a request, with a share of the connections; refused if there is none.
pub(super) async fn caller(
    app: &App,
    (peer, slot): (&RestPeer, &Share),
    headers: &HeaderMap,
) -> Result<Caller, RestError> {
    let caller = identify(app, peer, headers).await?;
    slot.assign(&caller.holder()).map_err(OpError::from)?;
    // Not before: a client that is never identified does not keep the others away.
    slot.busy();
    Ok(caller)
}

async fn identify(app: &App, peer: &RestPeer, headers: &HeaderMap) -> Result<Caller, RestError> {
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
        RestPeer::Tcp { client, server, uid, caller } => {
            let loopback = |address: &SocketAddr| address.ip().to_canonical().is_loopback();
            if app.options.require_token || !loopback(client) || !loopback(server) {
                return Err(RestError::unauthorized("this API needs a token: Authorization: Bearer TOKEN"));
            }
            caller.get_or_init(|| peers.judge(API, *uid, Transport::Loopback)).await
        }
    };
    known.clone().map_err(RestError::unauthorized)
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
