//! The listeners and settings of the REST API, prepared before the jail is built: an error in them ends the start before a
//! process is spawned.

use super::config::Config;
use super::error::DaemonError;
use super::socket::ListeningSocket;
use std::fs::File;
use std::io::{self, Read as _};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use vm_system_api::control::PeerPolicy;
use vm_system_api::rest::{EndedSessions, Listeners, RestLimits, RestOptions, SessionKey, TokenBook, UiDir};
use vm_system_sandbox::private_file;

/// In the state directory.
const SESSION_KEY_FILE: &str = "agent-sessions.key";
/// Sessions of agents that their clients ended.
const ENDED_SESSIONS_FILE: &str = "agent-sessions.ended";

/// The REST API before it accepts connections.
pub(super) struct HttpApi {
    pub(super) options: RestOptions,
    pub(super) listeners: Listeners,
    /// None if the service manager has passed one.
    pub(super) socket: Option<ListeningSocket>,
}

impl HttpApi {
    /// Binds the sockets that were not passed.
    pub(super) async fn bind(
        config: &Config,
        peers: PeerPolicy,
        group: Option<u32>,
        passed: (Vec<UnixListener>, Vec<TcpListener>),
    ) -> Result<Self, DaemonError> {
        let (http, state_dir) = (config.http.clone(), config.state_dir.clone());
        let read = tokio::task::spawn_blocking(move || {
            let tokens = http.tokens.as_deref().map_or_else(|| Ok(TokenBook::empty()), TokenBook::open)?;
            let ui = http.ui_dir.as_deref().map(UiDir::open).transpose().map_err(DaemonError::Ui)?;
            let key_file = state_dir.join(SESSION_KEY_FILE);
            let key = session_key(&key_file)
                .map_err(|source| DaemonError::SessionKey { path: key_file, source })?;
            let ended_file = state_dir.join(ENDED_SESSIONS_FILE);
            let ended = EndedSessions::open(&ended_file)
                .map_err(|source| DaemonError::SessionKey { path: ended_file, source })?;
            Ok::<_, DaemonError>((tokens, ui, (key, ended)))
        });
        let (tokens, ui, (session_key, ended_sessions)) =
            read.await.map_err(|error| DaemonError::Internal(error.to_string()))??;
        let http = &config.http;
        let mut limits = RestLimits { connections: config.shares.http_connections, ..RestLimits::default() };
        if let Some(kib) = http.max_body_kb {
            limits.body_bytes = kib as usize * 1_024;
        }
        let mut tcp = Vec::with_capacity(http.listen.len());
        for address in &http.listen {
            tcp.push(listen(*address, tokens.has_file())?);
        }
        let (mut unix, passed_tcp) = passed;
        for listener in passed_tcp {
            may_listen(listener.local_addr().map_err(DaemonError::Passed)?, tokens.has_file())?;
            tcp.push(listener);
        }
        let mut socket = None;
        if unix.is_empty() {
            let (own, listener) = ListeningSocket::bind_http(&http.socket_beside(&config.socket), group)?;
            socket = Some(own);
            unix.push(listener);
        } else {
            tracing::info!("HTTP over a Unix socket of the service manager, in place of the daemon's own");
        }
        for address in tcp.iter().filter_map(|listener| listener.local_addr().ok()) {
            tracing::info!(%address, "HTTP over TCP");
        }
        let options = RestOptions {
            tokens: Arc::new(tokens),
            peers,
            require_token: http.require_token,
            allowed_hosts: http.allowed_hosts.clone(),
            allowed_origins: http.allowed_origins.clone(),
            ui,
            limits,
            session_key,
            ended_sessions,
        };
        Ok(Self { options, listeners: Listeners { unix, tcp }, socket })
    }
}

/// Addresses that other machines can reach need tokens, also those of a service manager.
fn may_listen(address: SocketAddr, has_tokens: bool) -> Result<(), DaemonError> {
    if address.ip().to_canonical().is_loopback() || has_tokens {
        Ok(())
    } else {
        Err(DaemonError::NoTokens(address))
    }
}

fn listen(address: SocketAddr, has_tokens: bool) -> Result<TcpListener, DaemonError> {
    may_listen(address, has_tokens)?;
    TcpListener::bind(address).map_err(|source| DaemonError::Listen { address, source })
}

/// The key of the ids of agents' sessions: random bytes of which only the supervisor's user may read the file. A file that is not
/// such is replaced, which ends the sessions of earlier daemons.
fn session_key(path: &Path) -> io::Result<SessionKey> {
    let owner = nix::unistd::geteuid().as_raw();
    let mut key = SessionKey::default();
    if let Ok(mut file) =
        File::options().read(true).custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK).open(path)
    {
        let about = file.metadata()?;
        let is_private = about.is_file() && about.uid() == owner && about.mode() & 0o777 == 0o600;
        if is_private && about.len() == key.len() as u64 {
            file.read_exact(&mut key)?;
            return Ok(key);
        }
        tracing::warn!(path = %path.display(), "the key of agents' sessions is not a private file of 32 bytes: a new one is made");
    }
    getrandom::fill(&mut key)?;
    private_file::replace(path, &key)?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::session_key;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn the_key_is_kept_and_a_file_that_others_may_read_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let first = session_key(&path).unwrap();
        assert_ne!(first, [0; 32]);
        assert_eq!(session_key(&path).unwrap(), first);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let second = session_key(&path).unwrap();
        assert_ne!(second, first);
        std::fs::write(&path, "short").unwrap();
        assert_ne!(session_key(&path).unwrap(), second);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
