//! TCP connections, with TLS or without.

use super::address::RemoteHost;
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

/// A connection to the first address that accepts one.
pub(super) async fn tcp(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(addresses).await?;
    stream.set_nodelay(true)?;
    vm_system_api::keep_alive(&stream)?;
    Ok(stream)
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
