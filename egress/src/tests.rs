//! Connections: to servers of TLS, and by names whose addresses change.

use crate::client::{self, Clients, ConnectionBounds, RequestBody};
use crate::dns::{self, RecordType};
use crate::exchange::{self, ExchangeInput, Reports};
use crate::floods;
use crate::resolve::{ResolveError, Resolver};
use crate::role::reports;
use crate::tls_servers::tls_acceptor;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::header::HeaderValue;
use hyper::service::service_fn;
use hyper::{Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::timeout;
use tokio_rustls::rustls::RootCertStore;
use vm_system_protocol::egress::{AddressReach, EgressRequest, EgressTerms, FromEgress, HttpProgress};
use vm_system_protocol::limits::HTTP_HEADERS;

/// A server of DNS that answers the n-th query for an IPv4 address with the n-th list, the last one again and again.
pub(crate) async fn dns_server(answers: &'static [&'static [[u8; 4]]]) -> (SocketAddr, Arc<AtomicUsize>) {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = socket.local_addr().expect("an address");
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    tokio::spawn(async move {
        let mut buffer = [0; 512];
        loop {
            let (length, from) = socket.recv_from(&mut buffer).await.expect("a query");
            let query = &buffer[..length];
            // Datagrams of a flood to a socket that had this port before are no queries.
            if length < 17 || query[2] & 0x80 != 0 {
                continue;
            }
            let is_ipv4 = query[length - 3] == RecordType::A as u8;
            let nth = if is_ipv4 { count.fetch_add(1, Ordering::SeqCst) } else { 0 };
            let message = answer_to(query, answers[nth.min(answers.len() - 1)]);
            socket.send_to(&message, from).await.expect("sent");
        }
    });
    (address, asked)
}

/// The answer to a query: these addresses, if it is for addresses of IPv4, or none.
fn answer_to(query: &[u8], addresses: &[[u8; 4]]) -> Vec<u8> {
    let is_ipv4 = query[query.len() - 3] == RecordType::A as u8;
    let addresses = if is_ipv4 { addresses } else { &[] };
    let mut message = query.to_vec();
    message[2] = 0x81;
    message[7] = addresses.len() as u8;
    for address in addresses {
        message.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        message.extend(address);
    }
    message
}

pub(crate) fn clients(resolver: Resolver, roots: RootCertStore) -> Clients {
    Clients::new(Arc::new(resolver), roots).expect("TLS")
}

pub(crate) fn terms(reach: AddressReach) -> EgressTerms {
    EgressTerms {
        owner: 1,
        reach,
        own_ports: Vec::new(),
        head_ms: 10_000,
        timeout_ms: 10_000,
        max_request_bytes: 1 << 20,
        max_response_bytes: 1 << 20,
        secrets: Vec::new(),
    }
}

pub(crate) fn get(url: &str) -> Request<RequestBody> {
    let body = Full::new(Bytes::new()).map_err(|never: Infallible| match never {}).boxed_unsync();
    Request::get(url).body(body).expect("a request")
}

/// A server of TLS for `localhost` with these protocols; its certificate.
async fn tls_server(protocols: &[&[u8]]) -> (SocketAddr, RootCertStore) {
    tls_server_with(protocols, 0).await
}

/// The same, with so many header fields of its own in each response.
async fn tls_server_with(protocols: &[&[u8]], fields: usize) -> (SocketAddr, RootCertStore) {
    let (acceptor, roots) = tls_acceptor(&["localhost"], protocols);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                let respond = service_fn(move |request: Request<hyper::body::Incoming>| async move {
                    let version = format!("{:?}", request.version());
                    let mut response = Response::new(Full::new(Bytes::from(version)));
                    for _ in 0..fields {
                        response.headers_mut().append("x-a", HeaderValue::from_static("b"));
                    }
                    Ok::<_, Infallible>(response)
                });
                let io = TokioIo::new(stream);
                if is_http2 {
                    let _ = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                        .serve_connection(io, respond)
                        .await;
                } else {
                    let _ = hyper::server::conn::http1::Builder::new().serve_connection(io, respond).await;
                }
            });
        }
    });
    (address, roots)
}

#[tokio::test]
async fn http2_is_used_where_the_server_has_it() {
    for (protocols, version) in [
        (&[b"h2".as_slice(), b"http/1.1"][..], Version::HTTP_2),
        (&[b"http/1.1".as_slice()][..], Version::HTTP_11),
    ] {
        let (address, roots) = tls_server(protocols).await;
        let client =
            clients(Resolver::of_servers(Vec::new()), roots).client_for(&terms(AddressReach::Private));
        let url = format!("https://localhost:{}/", address.port());
        let response = client::send(&client, get(&url)).await.expect("a response").0;
        assert_eq!(response.version(), version);
        let body = response.into_body().collect().await.expect("a body").to_bytes();
        assert_eq!(body, format!("{version:?}"));
    }
}

/// A head that the supervisor would take for a violation of the protocol must never be reported.
#[tokio::test]
async fn too_many_header_fields_fail_one_exchange() {
    for protocol in [b"h2".as_slice(), b"http/1.1"] {
        let (address, roots) = tls_server_with(&[protocol], HTTP_HEADERS + 1).await;
        let client =
            clients(Resolver::of_servers(Vec::new()), roots).client_for(&terms(AddressReach::Private));
        let (out, mut progress) = reports();
        let (_pieces, receiver) = mpsc::channel(1);
        let request = EgressRequest {
            method: "GET".to_owned(),
            tls: true,
            host: "localhost".to_owned(),
            port: address.port(),
            target: "/".to_owned(),
            headers: Vec::new(),
            data: Vec::new(),
            end: true,
            terms: terms(AddressReach::Private),
        };
        let input = ExchangeInput { pieces: receiver, credit: Arc::new(Semaphore::new(1)) };
        exchange::run(client, request, input, Reports { exchange: 1, out }).await;
        let last = progress.recv().await.expect("a report");
        let FromEgress::Progress { progress: HttpProgress::Failed(error), .. } = last else {
            panic!("{last:?}");
        };
        assert!(
            ["UND_ERR_HEADERS_OVERFLOW", "HPE_HEADER_OVERFLOW"].contains(&error.code.as_str()),
            "{error:?}"
        );
    }
}

/// Node's `fetch` has the same error; for a script it would be a response without an end.
#[tokio::test]
async fn a_server_that_switches_protocols_fails_the_exchange() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let head = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n";
        let read = stream.read(&mut [0; 4_096]).await.expect("a request");
        assert_ne!(read, 0);
        stream.write_all(head).await.expect("written");
        // The client closes it.
        let _ = stream.read(&mut [0; 1]).await;
    });
    let mut clients = clients(Resolver::of_servers(Vec::new()), RootCertStore::empty());
    let exchange = floods::begin(&mut clients, floods::request(floods::Over::Tcp, address, 1), 1);
    assert_eq!(floods::end(exchange).await.as_deref(), Some("UND_ERR_SOCKET: bad upgrade"));
}

/// The daemon would take such a request for one of its own user.
#[tokio::test]
async fn no_request_reaches_the_daemon_itself() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let own = EgressTerms { own_ports: vec![port], ..terms(AddressReach::Named) };
    let mut clients = clients(Resolver::of_servers(Vec::new()), RootCertStore::empty());
    for host in ["127.0.0.1", "127.1.2.3", "[::1]", "[::ffff:127.0.0.1]", "localhost"] {
        let url = format!("http://{host}:{port}/");
        let failure = client::send(&clients.client_for(&own), get(&url)).await.expect_err(&url);
        assert_eq!(failure.code(), "ERR_NET_DENIED", "{url}: {failure}");
    }
}

#[tokio::test]
async fn certificates_are_verified() {
    let (address, roots) = tls_server(&[]).await;
    let code = async |roots: RootCertStore, host: &str| {
        let client =
            clients(Resolver::of_servers(Vec::new()), roots).client_for(&terms(AddressReach::Private));
        let sent = client::send(&client, get(&format!("https://{host}:{}/", address.port()))).await;
        sent.map_or_else(|failure| failure.code(), |_| "let pass")
    };
    assert_eq!(code(roots.clone(), "localhost").await, "let pass");
    assert_eq!(code(RootCertStore::empty(), "localhost").await, "UNABLE_TO_GET_ISSUER_CERT_LOCALLY");
    assert_eq!(code(roots, "127.0.0.1").await, "ERR_TLS_CERT_ALTNAME_INVALID");
}

#[tokio::test]
async fn a_name_is_resolved_once_for_a_connection_and_its_next_answer_is_judged_anew() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    // First an address of documentation, then one of this machine: a rebinding attack.
    let (server, asked) = dns_server(&[&[[192, 0, 2, 1]], &[[127, 0, 0, 1]]]).await;
    let mut clients = clients(Resolver::of_servers(vec![server]), RootCertStore::empty());
    let url = format!("http://rebound.test:{port}/");
    for count in 1..=2 {
        let failure = client::send(&clients.client_for(&terms(AddressReach::Public)), get(&url))
            .await
            .expect_err("refused");
        assert_eq!(failure.code(), "ERR_NET_DENIED", "{failure}");
        assert_eq!(asked.load(Ordering::SeqCst), count, "one look-up for each connection");
    }
    let accepted = timeout(Duration::from_millis(50), listener.accept()).await;
    assert!(accepted.is_err(), "nothing has connected");
    // The same address is reached where a row allows it: the test would see a connection.
    let client = clients.client_for(&terms(AddressReach::Private));
    tokio::select! {
        connection = listener.accept() => drop(connection.expect("a connection")),
        sent = client::send(&client, get(&url)) => panic!("ended without a connection: {:?}", sent.map(drop)),
    }
}

#[tokio::test]
async fn of_several_addresses_only_the_allowed_ones_are_used() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (server, _) = dns_server(&[&[[169, 254, 169, 254], [127, 0, 0, 1]]]).await;
    let mut clients = clients(Resolver::of_servers(vec![server]), RootCertStore::empty());
    let client = clients.client_for(&terms(AddressReach::Private));
    tokio::select! {
        connection = listener.accept() => drop(connection.expect("a connection to the allowed one")),
        sent = client::send(&client, get(&format!("http://two.test:{port}/"))) => {
            panic!("ended without a connection: {:?}", sent.map(drop));
        }
    }
}

/// One of two answers is lost: the name may well have addresses, and is not called unknown.
#[tokio::test]
async fn a_query_whose_answer_is_lost_is_sent_again() {
    let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let resolver = Resolver::of_servers(vec![server.local_addr().expect("an address")])
        .with_timeout(Duration::from_millis(50));
    let losing = async |lost: usize| {
        let (mut buffer, mut left) = ([0; 512], lost);
        loop {
            let (length, from) = server.recv_from(&mut buffer).await.expect("a query");
            let query = &buffer[..length];
            if query[length - 3] == RecordType::A as u8 && left > 0 {
                left -= 1;
                continue;
            }
            server.send_to(&answer_to(query, &[[127, 0, 0, 1]]), from).await.expect("sent");
        }
    };
    for (lost, expected) in [(1, Ok(vec![Ipv4Addr::LOCALHOST.into()])), (2, Err(ResolveError::Unavailable))] {
        tokio::select! {
            found = resolver.resolve("lost.test") => assert_eq!(found, expected, "{lost} of them lost"),
            () = losing(lost) => unreachable!(),
        }
    }
}

#[tokio::test]
async fn errors_of_names_and_connections_have_the_codes_of_node() {
    let (server, _) = dns_server(&[&[]]).await;
    let mut clients = clients(Resolver::of_servers(vec![server]), RootCertStore::empty());
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.and_then(|listener| listener.local_addr());
    let closed = free.expect("an address");
    for (url, code) in [
        ("http://nothing.test/".to_owned(), "ENOTFOUND"),
        (format!("http://{closed}/"), "ECONNREFUSED"),
        (format!("http://x..y:{}/", closed.port()), "ENOTFOUND"),
    ] {
        let failure =
            client::send(&clients.client_for(&terms(AddressReach::Named)), get(&url)).await.expect_err(&url);
        assert_eq!(failure.code(), code, "{failure}");
    }
    assert_eq!(dns::query(1, "x..y", RecordType::A), None);
}

/// A server that answers a request when a permit is there; the connections that it has now, and all that it had.
async fn held_server() -> (SocketAddr, Arc<Semaphore>, watch::Receiver<(usize, usize)>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let replies = Arc::new(Semaphore::new(0));
    let (counts, seen) = watch::channel((0, 0));
    let turns = Arc::clone(&replies);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counts.send_modify(|(now, ever)| (*now, *ever) = (*now + 1, *ever + 1));
            let (counts, turns) = (counts.clone(), Arc::clone(&turns));
            tokio::spawn(async move {
                let respond = service_fn(|_| async {
                    turns.acquire().await.expect("never closed").forget();
                    Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"x"))))
                });
                let connection = hyper::server::conn::http1::Builder::new();
                let _ = connection.serve_connection(TokioIo::new(stream), respond).await;
                counts.send_modify(|(now, _)| *now -= 1);
            });
        }
    });
    (address, replies, seen)
}

async fn read_whole(client: client::OwnersClient, url: String) {
    let response = client::send(&client, get(&url)).await.expect("a response").0;
    response.into_body().collect().await.expect("a body");
}

fn bounded_clients(of_pool: usize, of_all: usize) -> Clients {
    let resolver = Arc::new(Resolver::of_servers(Vec::new()));
    Clients::with_bounds(resolver, RootCertStore::empty(), ConnectionBounds { of_pool, of_all }).expect("TLS")
}

#[tokio::test]
async fn a_request_above_the_bound_of_connections_waits_for_one_of_its_owner() {
    let (address, replies, mut counts) = held_server().await;
    let url = format!("http://{address}/");
    let mut clients = bounded_clients(4, 6);
    let terms_of = |owner| EgressTerms { owner, ..terms(AddressReach::Named) };
    let mut requests: Vec<_> =
        (0..4).map(|_| tokio::spawn(read_whole(clients.client_for(&terms_of(1)), url.clone()))).collect();
    counts.wait_for(|(now, _)| *now == 4).await.expect("the server is there");
    requests.push(tokio::spawn(read_whole(clients.client_for(&terms_of(1)), url.clone())));
    // Another owner is not held up by it.
    requests.push(tokio::spawn(read_whole(clients.client_for(&terms_of(2)), url.clone())));
    counts.wait_for(|(_, ever)| *ever == 5).await.expect("the server is there");
    assert!(timeout(Duration::from_millis(50), counts.changed()).await.is_err(), "four of the first owner");
    replies.add_permits(6);
    for request in requests {
        request.await.expect("a reply");
    }
}

#[tokio::test]
async fn above_half_of_the_bound_connections_without_a_request_are_closed() {
    let (address, replies, mut counts) = held_server().await;
    let url = format!("http://{address}/");
    for (of_pool, of_all) in [(4, 100), (100, 4)] {
        let mut clients = bounded_clients(of_pool, of_all);
        let before = counts.borrow().1;
        let client = clients.client_for(&terms(AddressReach::Named));
        let requests: Vec<_> =
            (0..3).map(|_| tokio::spawn(read_whole(client.clone(), url.clone()))).collect();
        drop(client);
        counts.wait_for(|(now, _)| *now == 3).await.expect("the server is there");
        replies.add_permits(3);
        for request in requests {
            request.await.expect("a reply");
        }
        assert_eq!(counts.borrow().0, 3, "they are kept for the next request");
        // The next look-up closes them.
        let _next = clients.client_for(&terms(AddressReach::Named));
        counts.wait_for(|(now, _)| *now == 0).await.expect("the server is there");
        assert_eq!(counts.borrow().1, before + 3);
    }
}
