//! A daemon behind a URL: the control protocol over an upgraded connection of its HTTP API, with the caller of the REST API (the
//! bearer of a token, or the user that the kernel reports).
//!
//! - `address`: the URL; `token`: the file of the token
//! - `dial`: TCP, with TLS or without; `tls`: which certificates are trusted; `server_user`: whose server is, without TLS
//! - `upgrade`: the request, and what its refusals mean
//!
//! Every error names the URL and the cause. Nothing here knows verbs.

mod address;
mod dial;
mod server_user;
mod tls;
mod token;
mod upgrade;

use crate::args::RemoteArgs;
use crate::client::ByteStream;
use crate::error::{CliError, exit};
use address::{Address, RemoteHost};
use dial::DialError;
use hyper::header::HeaderValue;
use server_user::{ServerUserError, TrustedUsers};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::sync::OnceCell;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// Time for names, connections, TLS and the response.
const PATIENCE: Duration = Duration::from_secs(15);

/// A daemon behind a URL.
pub(crate) struct Remote {
    url: String,
    args: RemoteArgs,
    /// Read once: a token may come from a pipe.
    prepared: OnceCell<Prepared>,
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote").field("url", &self.url).finish_non_exhaustive()
    }
}

/// The content of the files that the arguments name.
struct Prepared {
    address: Address,
    token: Option<(PathBuf, HeaderValue)>,
    tls: Option<TlsConnector>,
    /// Without TLS, over loopback.
    trusted: TrustedUsers,
}

impl Remote {
    pub(crate) fn new(url: String, args: RemoteArgs) -> Self {
        Self { url, args, prepared: OnceCell::new() }
    }

    /// Checks that the text is a URL of a daemon.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        Address::parse(&self.url).map(drop)
    }

    /// As it was given.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Whether it is a socket of this machine.
    pub(crate) fn is_unix(&self) -> bool {
        self.url.starts_with(address::UNIX)
    }

    /// A connection that speaks the control protocol next.
    pub(crate) async fn connect(&self) -> Result<Box<dyn ByteStream>, CliError> {
        let prepared = self.prepared.get_or_try_init(|| async { self.prepare() }).await?;
        match timeout(PATIENCE, self.connect_to(prepared)).await {
            Ok(connected) => connected,
            Err(_) => Err(self.absent(&format!("nothing within {PATIENCE:?}"))),
        }
    }

    fn prepare(&self) -> Result<Prepared, CliError> {
        let address = Address::parse(&self.url)?;
        let token = match &self.args.token_file {
            Some(file) => Some((file.clone(), token::read(file)?)),
            None => None,
        };
        let is_tls = matches!(&address, Address::Tcp { tls: true, .. });
        if self.args.ca_file.is_some() && !is_tls {
            let message = format!("--ca-file is for https: {} has no TLS", self.url);
            return Err(CliError::usage(message));
        }
        let tls = is_tls.then(|| tls::connector(self.args.ca_file.as_deref())).transpose()?;
        if self.args.server_user.is_some() && (is_tls || self.is_unix()) {
            let message =
                format!("--server-user is for http: {} has another way to know its server", self.url);
            return Err(CliError::usage(message));
        }
        let named = self.args.server_user.as_deref().map(server_user::uid_of).transpose();
        let named = named.map_err(|why| CliError::usage(format!("--server-user: {why}")))?;
        Ok(Prepared { address, token, tls, trusted: TrustedUsers::new(named) })
    }

    async fn connect_to(&self, prepared: &Prepared) -> Result<Box<dyn ByteStream>, CliError> {
        let (stream, authority, prefix): (Box<dyn ByteStream>, &str, &str) = match &prepared.address {
            Address::Unix(path) => {
                let stream = UnixStream::connect(path).await.map_err(|error| self.not_connected(&error))?;
                (Box::new(stream), "localhost", "")
            }
            Address::Tcp { host, authority, prefix, .. } => {
                (self.dial(prepared, host).await?, authority, prefix)
            }
        };
        let token = prepared.token.as_ref().map(|(_, token)| token);
        upgrade::request(stream, (authority, prefix), token).await.map_err(|failure| {
            let file = prepared.token.as_ref().map(|(file, _)| file.as_path());
            failure.explain(&self.url, file, self.is_unix())
        })
    }

    /// Connects over TCP, and with TLS if the URL has it.
    async fn dial(&self, prepared: &Prepared, host: &RemoteHost) -> Result<Box<dyn ByteStream>, CliError> {
        let addresses = match dial::resolve(host).await {
            Ok(addresses) => addresses,
            Err(error) => return Err(self.absent(&format!("the name {}: {error}", host.name))),
        };
        let is_loopback = addresses.iter().all(|address| address.ip().to_canonical().is_loopback());
        if prepared.token.is_some() && prepared.tls.is_none() && !is_loopback && !self.args.insecure_http {
            let message = format!("{} would send the token unencrypted to another machine", self.url);
            return Err(CliError::usage(message).with_hint(
                "use https, or a tunnel to a loopback address (`ssh -L`); on a network that you trust, --insecure-http",
            ));
        }
        let trusted = prepared.tls.is_none().then_some(&prepared.trusted);
        let stream = dial::tcp(&addresses, trusted).await.map_err(|error| match error {
            DialError::Io(error) => self.not_connected(&error),
            DialError::Server(address, error) => self.not_trusted(address, &error),
        })?;
        match &prepared.tls {
            None => Ok(Box::new(stream)),
            Some(tls) => match dial::tls(tls, host, stream).await {
                Ok(stream) => Ok(Box::new(stream)),
                Err(error) => Err(tls::explain(&self.url, &error)),
            },
        }
    }

    /// Nothing has been sent.
    fn not_trusted(&self, address: SocketAddr, error: &ServerUserError) -> CliError {
        let socket =
            "on the daemon's own machine its HTTP socket needs no such check: --server-url unix:PATH";
        let (message, hint) = match error {
            ServerUserError::Other(uid) => (
                format!(
                    "the server at {address} belongs to {}, and not to root, to you or to the system's daemon: nothing was sent to it",
                    server_user::shown(*uid)
                ),
                format!(
                    "if this user runs the daemon (or the proxy) that you mean, --server-user {uid}; {socket}"
                ),
            ),
            ServerUserError::Unknown(why) => (
                format!("it is not known whose server {address} is ({why}): nothing was sent to it"),
                socket.to_owned(),
            ),
        };
        CliError::new(exit::NOT_PERMITTED, format!("{}: {message}", self.url)).with_hint(hint)
    }

    fn not_connected(&self, error: &std::io::Error) -> CliError {
        if error.kind() == std::io::ErrorKind::PermissionDenied {
            let message = format!("no permission to connect to {}", self.url);
            return CliError::new(exit::NOT_PERMITTED, message)
                .with_hint("the socket's group may connect: `ls -l` shows it");
        }
        self.absent(&error.to_string())
    }

    /// No daemon responds.
    fn absent(&self, why: &str) -> CliError {
        let message = format!("no supervisor responds at {}: {why}", self.url);
        let hint = if self.is_unix() {
            "is it the HTTP socket of a running daemon (http.sock)?"
        } else {
            "does the daemon run, and listen there (`serve --listen`, or `listen` of [http] in its configuration)?"
        };
        CliError::new(exit::NO_DAEMON, message).with_hint(hint)
    }
}
