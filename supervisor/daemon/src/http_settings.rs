//! The operator's settings of the REST API, as values and in the file: `[http]`.

use super::config::Wrong;
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The listeners and rules of the REST API.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HttpConfig {
    /// The Unix socket; none = beside the control socket.
    pub socket: Option<PathBuf>,
    /// TCP addresses; beyond loopback only together with `tokens`.
    pub listen: Vec<SocketAddr>,
    /// The file of tokens.
    pub tokens: Option<PathBuf>,
    /// Over TCP every request needs a token, also over loopback.
    pub require_token: bool,
    /// Host names over TCP, in addition to `localhost` and IP addresses.
    pub allowed_hosts: Vec<String>,
    /// Origins of pages that may make requests, with their ports: `http://localhost:5173`.
    pub allowed_origins: Vec<String>,
    /// The folder of a web UI.
    pub ui_dir: Option<PathBuf>,
    /// Largest request body (KiB); none = the default.
    pub max_body_kb: Option<u32>,
}

impl HttpConfig {
    /// The path of the socket, given the path of the control socket.
    pub fn socket_beside(&self, control: &Path) -> PathBuf {
        if let Some(socket) = &self.socket {
            return socket.clone();
        }
        match control.file_name().and_then(|name| name.to_str()) {
            Some("control.sock") | None => control.with_file_name("http.sock"),
            Some(name) => control.with_file_name(format!("{name}.http")),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct HttpFile {
    socket: Option<PathBuf>,
    listen: Vec<SocketAddr>,
    tokens: Option<PathBuf>,
    require_token: bool,
    allowed_hosts: Vec<String>,
    allowed_origins: Vec<String>,
    ui_dir: Option<PathBuf>,
    max_body_kb: Option<u32>,
}

impl HttpFile {
    pub(super) fn check(&self) -> Result<(), Wrong> {
        let paths = [("socket", &self.socket), ("tokens", &self.tokens), ("ui_dir", &self.ui_dir)];
        for (name, path) in paths {
            if let Some(path) = path.as_ref().filter(|path| !path.is_absolute()) {
                let why = format!("http.{name} must be absolute, `{}` is not", path.display());
                return Err(Wrong::new(&["http", name], why));
            }
        }
        let is_plain = |host: &str| {
            host.parse::<std::net::IpAddr>().is_ok()
                || !host.is_empty() && !host.contains([':', '/', '*', '@'])
        };
        if let Some((number, host)) = self.allowed_hosts.iter().enumerate().find(|(_, host)| !is_plain(host))
        {
            let why = format!("http.allowed_hosts: `{host}` is not a plain name or address without port");
            return Err(Wrong::new(&["http", "allowed_hosts", &number.to_string()], why));
        }
        let is_origin = |origin: &str| {
            let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
            host.is_some_and(|host| !host.is_empty() && !host.contains(['/', '*', '@', '?', '#', ' ']))
        };
        let mut origins = self.allowed_origins.iter().enumerate();
        if let Some((number, origin)) = origins.find(|(_, origin)| !is_origin(origin)) {
            let why = format!(
                "http.allowed_origins: `{origin}` is not an origin (http://NAME:PORT or https://NAME, without a path)"
            );
            return Err(Wrong::new(&["http", "allowed_origins", &number.to_string()], why));
        }
        if self.max_body_kb == Some(0) {
            Err(Wrong::new(&["http", "max_body_kb"], "http.max_body_kb must be at least 1"))
        } else {
            Ok(())
        }
    }
}

impl From<HttpFile> for HttpConfig {
    fn from(file: HttpFile) -> Self {
        let HttpFile {
            socket,
            listen,
            tokens,
            require_token,
            allowed_hosts,
            allowed_origins,
            ui_dir,
            max_body_kb,
        } = file;
        let lower = |names: Vec<String>| names.into_iter().map(|name| name.to_ascii_lowercase()).collect();
        let (allowed_hosts, allowed_origins) = (lower(allowed_hosts), lower(allowed_origins));
        Self { socket, listen, tokens, require_token, allowed_hosts, allowed_origins, ui_dir, max_body_kb }
    }
}
