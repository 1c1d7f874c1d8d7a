//! The listeners and settings of the REST API, prepared before the jail is built: an error in them ends the start before a
//! process is spawned.

use super::config::Config;
use super::error::DaemonError;
use super::socket::ListeningSocket;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use vm_system_api::control::PeerPolicy;
use vm_system_api::rest::{Listeners, RestLimits, RestOptions, TokenBook, UiDir};

/// The REST API before it accepts connections.
pub(super) struct HttpApi {
    pub(super) options: RestOptions,
    pub(super) listeners: Listeners,
    pub(super) socket: ListeningSocket,
}

impl HttpApi {
    /// Binds the sockets. Must be called inside the runtime.
    pub(super) async fn bind(
        config: &Config,
        peers: PeerPolicy,
        group: Option<u32>,
    ) -> Result<Self, DaemonError> {
        let http = config.http.clone();
        let read = tokio::task::spawn_blocking(move || {
            let tokens = http.tokens.as_deref().map_or_else(|| Ok(TokenBook::empty()), TokenBook::open)?;
            let ui = http.ui_dir.as_deref().map(UiDir::open).transpose().map_err(DaemonError::Ui)?;
            Ok::<_, DaemonError>((tokens, ui))
        });
        let (tokens, ui) = read.await.map_err(|error| DaemonError::Internal(error.to_string()))??;
        let http = &config.http;
        let mut limits = RestLimits { connections: config.shares.http_connections, ..RestLimits::default() };
        if let Some(kib) = http.max_body_kb {
            limits.body_bytes = kib as usize * 1_024;
        }
        let mut tcp = Vec::with_capacity(http.listen.len());
        for address in &http.listen {
            tcp.push(listen(*address, tokens.has_file()).await?);
        }
        let path = http.socket_beside(&config.socket);
        let (socket, unix) = ListeningSocket::bind_http(&path, group)?;
        for listener in &tcp {
            tracing::info!(address = ?listener.local_addr().ok(), "HTTP over TCP");
        }
        let options = RestOptions {
            tokens: Arc::new(tokens),
            peers,
            require_token: http.require_token,
            allowed_hosts: http.allowed_hosts.clone(),
            ui,
            limits,
        };
        Ok(Self { options, listeners: Listeners { unix, tcp }, socket })
    }
}

async fn listen(address: SocketAddr, has_tokens: bool) -> Result<TcpListener, DaemonError> {
    if !address.ip().to_canonical().is_loopback() && !has_tokens {
        return Err(DaemonError::NoTokens(address));
    }
    TcpListener::bind(address).await.map_err(|source| DaemonError::Listen { address, source })
}
