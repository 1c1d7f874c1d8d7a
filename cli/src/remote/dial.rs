//! TCP connections, with TLS or without.

use super::address::RemoteHost;
use super::server_user::{ServerUserError, TrustedUsers};
use std::io;
use std::net::SocketAddr;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;

/// The addresses of a host, at least one.
pub(super) async fn resolve(host: &RemoteHost) -> io::Result<Vec<SocketAddr>> {
    let found = tokio::net::lookup_host((host.name.as_str(), host.port)).await?;
    let addresses: Vec<SocketAddr> = found.collect();
    if addresses.is_empty() { Err(io::Error::other("it has no address")) } else { Ok(addresses) }
}

/// Why there is no connection.
#[derive(Debug)]
pub(super) enum DialError {
    /// No address accepts one.
    Io(io::Error),
    /// The last server that accepted one is not used.
    Server(SocketAddr, ServerUserError),
}

impl From<io::Error> for DialError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A connection to the first address that accepts one; with `trusted` to the first with a server that may be used.
pub(super) async fn tcp(
    addresses: &[SocketAddr],
    trusted: Option<&TrustedUsers>,
) -> Result<TcpStream, DialError> {
    let mut failed = DialError::Io(io::ErrorKind::AddrNotAvailable.into());
    for address in addresses {
        let stream = match TcpStream::connect(address).await {
            Ok(stream) => stream,
            Err(error) => {
                // A server that is not used is a better reason than an address at which nobody listens.
                if !matches!(failed, DialError::Server(..)) {
                    failed = DialError::Io(error);
                }
                continue;
            }
        };
        if let Some(trusted) = trusted
            && let Err(error) = trusted.check(&stream).await
        {
            failed = DialError::Server(*address, error);
            continue;
        }
        stream.set_nodelay(true)?;
        vm_system_api::keep_alive(&stream)?;
        return Ok(stream);
    }
    Err(failed)
}

/// TLS over a connection; the certificate must be for the host of the URL.
pub(super) async fn tls(
    connector: &TlsConnector,
    host: &RemoteHost,
    stream: TcpStream,
) -> io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from(host.name.clone()).map_err(io::Error::other)?;
    connector.connect(name, stream).await
}
