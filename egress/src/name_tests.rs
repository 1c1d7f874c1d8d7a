//! Texts of failures: a script learns from them nothing about the addresses of a name. The addresses are those of this machine here,
//! and stand for those of an operator's network.

use crate::client::{self, Clients};
use crate::resolve::Resolver;
use crate::tests::{clients, dns_server, get, terms};
use crate::tls_servers::tls_acceptor;
use std::net::Ipv4Addr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::RootCertStore;
use vm_system_protocol::egress::{AddressReach, EgressTerms};

const NAME: &str = "inside.test";

/// The way in which a server treats a connection.
#[derive(Clone)]
enum Server {
    /// Refuses it.
    Closed,
    /// Resets it after the request.
    Resets,
    /// Closes it after the request.
    Closes,
    /// Sends this, whatever the request, and keeps the connection.
    Sends(&'static [u8]),
    /// Completes a handshake and closes after the first bytes of the request.
    Tls(TlsAcceptor),
}

async fn start(server: Server) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    if matches!(server, Server::Closed) {
        return port;
    }
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let server = server.clone();
            tokio::spawn(async move {
                if let Server::Tls(acceptor) = server {
                    let mut stream = acceptor.accept(stream).await?;
                    return stream.read(&mut [0; 4_096]).await.map(drop);
                }
                if stream.read(&mut [0; 4_096]).await? == 0 {
                    return Ok(());
                }
                match server {
                    Server::Resets => {
                        stream.set_zero_linger()?;
                        drop(stream);
                    }
                    Server::Sends(bytes) => {
                        stream.write_all(bytes).await?;
                        let _ = stream.read_u8().await;
                    }
                    _ => {}
                }
                Ok::<_, std::io::Error>(())
            });
        }
    });
    port
}

/// The failure of a request to the name; its code and text.
async fn failure(roots: RootCertStore, url: &str, terms: &EgressTerms) -> (&'static str, String) {
    let (names, _) = dns_server(&[&[[127, 0, 0, 1]]]).await;
    let mut clients = clients(Resolver::of_servers(vec![names]), roots);
    let failure = client::send(&clients.client_for(terms), get(url)).await.expect_err(url);
    (failure.code(), failure.to_string())
}

/// Codes of a connection that ends in the middle: the server's end and its reset race.
const ENDED: &[&str] = &["UND_ERR_SOCKET", "ECONNRESET", "EPIPE"];

#[tokio::test]
async fn failures_before_there_is_a_connection_name_the_host_and_no_address() {
    let (for_name, _) = tls_acceptor(&[NAME], &[]);
    let (for_address, trusted) = tls_acceptor(&["127.0.0.1", "other.test"], &[]);
    let none = RootCertStore::empty;
    let (private, public) = (terms(AddressReach::Private), terms(AddressReach::Public));
    for (scheme, server, roots, terms, expected) in [
        ("http", Server::Closed, none(), &private, "ECONNREFUSED"),
        ("https", Server::Closed, none(), &private, "ECONNREFUSED"),
        ("http", Server::Closed, none(), &public, "ERR_NET_DENIED"),
        ("https", Server::Resets, none(), &private, "ECONNRESET"),
        ("https", Server::Closes, none(), &private, "UND_ERR_SOCKET"),
        ("https", Server::Sends(b"HTTP/1.1 400 Bad\r\n\r\n"), none(), &private, "EPROTO"),
        ("https", Server::Tls(for_name), none(), &private, "UNABLE_TO_GET_ISSUER_CERT_LOCALLY"),
        ("https", Server::Tls(for_address), trusted, &private, "ERR_TLS_CERT_ALTNAME_INVALID"),
    ] {
        let url = format!("{scheme}://{NAME}:{}/", start(server).await);
        let (code, text) = failure(roots, &url, terms).await;
        assert_eq!(code, expected, "{text}");
        assert!(text.contains(NAME) && !has_address(&text), "{text}");
    }
}

#[tokio::test]
async fn failures_of_a_connection_have_no_address() {
    let (http1, trusted_http1) = tls_acceptor(&[NAME], &[]);
    let (http2, trusted_http2) = tls_acceptor(&[NAME], &[b"h2"]);
    let none = RootCertStore::empty;
    for (scheme, server, roots, expected) in [
        ("http", Server::Resets, none(), ENDED),
        ("http", Server::Closes, none(), ENDED),
        ("http", Server::Sends(b"\x00\x01\x02\r\n\r\n"), none(), &["HPE_INVALID_CONSTANT"]),
        ("https", Server::Tls(http1), trusted_http1, ENDED),
        ("https", Server::Tls(http2), trusted_http2, ENDED),
    ] {
        let url = format!("{scheme}://{NAME}:{}/", start(server).await);
        let (code, text) = failure(roots, &url, &terms(AddressReach::Private)).await;
        assert!(expected.contains(&code), "{code}: {text}");
        assert!(!has_address(&text), "{text}");
    }
}

fn has_address(text: &str) -> bool {
    text.contains("127.0.0") || text.contains("::1")
}

#[tokio::test]
async fn an_address_that_the_request_has_is_named() {
    let port = start(Server::Closed).await;
    for host in ["127.0.0.1", "[::1]"] {
        let url = format!("http://{host}:{port}/");
        let (code, text) = failure(RootCertStore::empty(), &url, &terms(AddressReach::Private)).await;
        assert_eq!(text, format!("connect {code} {host}:{port}"));
    }
}

/// Of several addresses, the text says no more than of one.
#[tokio::test]
async fn a_name_with_several_addresses_has_one_failure() {
    let port = start(Server::Closed).await;
    let (names, _) = dns_server(&[&[[127, 0, 0, 1], [127, 0, 0, 2], [127, 0, 0, 3]]]).await;
    let resolver = Arc::new(Resolver::of_servers(vec![names]));
    let mut clients = Clients::new(resolver, RootCertStore::empty()).expect("TLS");
    let client = clients.client_for(&terms(AddressReach::Private));
    let failure = client::send(&client, get(&format!("http://{NAME}:{port}/"))).await.expect_err("closed");
    assert_eq!(failure.to_string(), format!("connect ECONNREFUSED {NAME}:{port}"));
}
