//! Servers that repeat without end whatever a server can repeat: the exchange with one fails by name, and an exchange of another owner
//! is carried out meanwhile.

use crate::client::Clients;
use crate::exchange::{self, ExchangeInput, Reports};
use crate::resolve::Resolver;
use crate::role::event_loop;
use crate::role::reports;
use crate::tls_servers::tls_acceptor;
use futures_util::future::join_all;
use std::future::{Future, pending};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, sink, split};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};
use tokio_rustls::rustls::RootCertStore;
use vm_system_protocol::egress::{AddressReach, EgressRequest, EgressTerms, FromEgress, HttpProgress};

/// The bytes that a server sends after it has read a request: once, then again and again.
#[derive(Debug, Clone)]
struct Flood {
    first: Vec<u8>,
    again: Vec<u8>,
    /// Repetitions that are written together.
    together: usize,
    /// After so many of them nothing more is sent.
    writes: usize,
}

impl Flood {
    fn new(first: impl Into<Vec<u8>>, again: impl Into<Vec<u8>>) -> Self {
        Self { first: first.into(), again: again.into(), together: 200, writes: usize::MAX }
    }

    /// At most so many bytes.
    fn of_bytes(self, bytes: usize) -> Self {
        Self { writes: bytes / (self.again.len() * self.together), ..self }
    }

    /// One repetition in each write, which is one record of TLS.
    fn piecemeal(self) -> Self {
        Self { together: 1, ..self }
    }
}

/// Pieces of a response that a test takes: as many as there are.
pub(crate) const PIECES: usize = 1_000_000;

/// How a server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    Tcp,
    Tls,
    Http2,
}

/// A server with a thread of its own, which says when a flood has begun.
struct FloodServer {
    address: SocketAddr,
    roots: RootCertStore,
    begun: mpsc::UnboundedReceiver<()>,
    /// All of its addresses, each of which is an origin.
    addresses: Vec<SocketAddr>,
}

impl FloodServer {
    fn start(over: Over, flood: Flood) -> Self {
        Self::start_at(over, flood, 1)
    }

    /// At so many addresses.
    fn start_at(over: Over, flood: Flood, addresses: usize) -> Self {
        let protocols: &[&[u8]] = if over == Over::Http2 { &[b"h2"] } else { &[] };
        let (acceptor, roots) = tls_acceptor(&["localhost"], protocols);
        let listen = || {
            let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
            listener.set_nonblocking(true).expect("a listener");
            listener
        };
        let listeners: Vec<_> = (0..addresses).map(|_| listen()).collect();
        let addresses: Vec<_> =
            listeners.iter().map(|listener| listener.local_addr().expect("an address")).collect();
        let (begin, begun) = mpsc::unbounded_channel();
        // It ends with the process of the tests.
        std::thread::spawn(move || {
            let serve = async |listener: std::net::TcpListener| {
                let listener = TcpListener::from_std(listener).expect("a listener");
                while let Ok((stream, _)) = listener.accept().await {
                    let (acceptor, flood, begin) = (acceptor.clone(), flood.clone(), begin.clone());
                    tokio::spawn(async move {
                        let begun = move || {
                            let _ = begin.send(());
                        };
                        if over == Over::Tcp {
                            send_flood(stream, flood, begun).await
                        } else {
                            send_flood(acceptor.accept(stream).await?, flood, begun).await
                        }
                    });
                }
            };
            event_loop().expect("an event loop").block_on(join_all(listeners.into_iter().map(&serve)));
        });
        Self { address: addresses[0], roots, begun, addresses }
    }
}

/// Whether a request is in what a client has sent: anything of HTTP/1.1, the head of HTTP/2.
fn has_request(bytes: &[u8]) -> bool {
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let Some(mut frames) = bytes.strip_prefix(preface) else {
        return !bytes.is_empty() && !preface.starts_with(bytes);
    };
    while let [first, second, third, kind, ..] = *frames {
        let length = u32::from_be_bytes([0, first, second, third]) as usize;
        if kind == HEADERS {
            return true;
        }
        frames = frames.get(9 + length..).unwrap_or_default();
    }
    false
}

async fn send_flood<S>(stream: S, flood: Flood, begun: impl FnOnce()) -> std::io::Result<()>
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let (mut reader, mut writer) = split(stream);
    let mut request = Vec::new();
    while !has_request(&request) {
        if reader.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    tokio::spawn(async move { tokio::io::copy(&mut reader, &mut sink()).await });
    writer.write_all(&flood.first).await?;
    writer.flush().await?;
    begun();
    let pieces = flood.again.repeat(flood.together);
    for _ in 0..flood.writes {
        writer.write_all(&pieces).await?;
        writer.flush().await?;
    }
    pending().await
}

pub(crate) fn request(over: Over, address: SocketAddr, owner: u64) -> EgressRequest {
    EgressRequest {
        method: "GET".to_owned(),
        tls: over != Over::Tcp,
        host: "localhost".to_owned(),
        port: address.port(),
        target: "/".to_owned(),
        headers: Vec::new(),
        data: Vec::new(),
        end: true,
        terms: EgressTerms {
            owner,
            reach: AddressReach::Private,
            own_ports: Vec::new(),
            head_ms: 600_000,
            timeout_ms: 600_000,
            max_request_bytes: 1 << 20,
            max_response_bytes: u64::MAX,
            secrets: Vec::new(),
        },
    }
}

/// Makes a request in its owner's lane; its progress.
pub(crate) fn begin(
    clients: &mut Clients,
    request: EgressRequest,
    credit: usize,
) -> mpsc::Receiver<FromEgress> {
    let client = clients.client_for(&request.terms);
    let (out, progress) = reports();
    let (pieces, receiver) = mpsc::channel(1);
    let input = ExchangeInput { pieces: receiver, credit: Arc::new(Semaphore::new(credit)) };
    let lane = client.lane.clone();
    lane.spawn(async move {
        let _pieces = pieces;
        exchange::run(client, request, input, Reports { exchange: 1, out }).await;
    });
    progress
}

/// Code and text of the failure, or `None` for an exchange that was carried out.
pub(crate) async fn end(mut progress: mpsc::Receiver<FromEgress>) -> Option<String> {
    loop {
        match progress.recv().await {
            Some(FromEgress::Progress { progress: HttpProgress::End, .. }) => return None,
            Some(FromEgress::Progress { progress: HttpProgress::Failed(error), .. }) => {
                return Some(format!("{}: {}", error.code, error.message));
            }
            Some(_) => {}
            None => panic!("an exchange without an end"),
        }
    }
}

/// As the process itself: its event loop, not that of other tests.
pub(crate) fn block_on<T>(test: impl Future<Output = T>) -> T {
    event_loop().expect("an event loop").block_on(test)
}

/// A server that responds properly, and closes the connection.
pub(crate) async fn honest_server() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                if stream.read(&mut [0; 4_096]).await? == 0 {
                    return Ok(());
                }
                stream
                    .write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 5\r\n\r\nhello")
                    .await
            });
        }
    });
    address
}

/// Four exchanges with a server that floods: each fails with one of these codes, and one of another owner is carried out.
fn fails_alone(over: Over, flood: Flood, codes: &[&str]) {
    block_on(async {
        let mut server = FloodServer::start(over, flood);
        let resolver = Arc::new(Resolver::of_servers(Vec::new()));
        let mut clients = Clients::new(resolver, server.roots.clone()).expect("TLS");
        let honest = honest_server().await;
        let flooded: Vec<_> =
            (0..4).map(|_| begin(&mut clients, request(over, server.address, 1), PIECES)).collect();
        server.begun.recv().await.expect("the server is there");
        let other = begin(&mut clients, request(Over::Tcp, honest, 2), 1);
        assert_eq!(end(other).await, None, "the exchange of another owner");
        for exchange in flooded {
            let failure = end(exchange).await.expect("a failure");
            assert!(codes.iter().any(|code| failure.starts_with(code)), "{codes:?} was expected: {failure}");
        }
    });
}

#[test]
fn interim_responses_without_end() {
    let interim = "HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n";
    fails_alone(Over::Tcp, Flood::new("", interim), &["ERR_NET_LIMIT"]);
    fails_alone(Over::Tls, Flood::new("", interim), &["ERR_NET_LIMIT"]);
}

#[test]
fn heads_without_end() {
    fails_alone(Over::Tcp, Flood::new("HTTP/1.1 200 OK\r\n", "x-a: b\r\n"), &["HPE_HEADER_OVERFLOW"]);
    fails_alone(Over::Tcp, Flood::new("HTTP/1.1 200 ", "OK"), &["HPE_HEADER_OVERFLOW"]);
    fails_alone(Over::Tcp, Flood::new("", "\r\n"), &["HPE_HEADER_OVERFLOW"]);
}

#[test]
fn trailers_and_extensions_of_chunks_without_end() {
    let chunked = |rest: &str| format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{rest}");
    for (first, again) in
        [("0\r\n", "x-a: b\r\n"), ("5;", "a=b;"), ("", "1;a=bbbbbbbbbbbbbbbbbbbbb\r\nx\r\n")]
    {
        fails_alone(Over::Tcp, Flood::new(chunked(first), again), &["HPE_INVALID_CONSTANT"]);
    }
}

#[test]
fn records_of_tls_of_one_byte() {
    let head = "HTTP/1.1 103 Early Hints\r\nlink: ";
    fails_alone(Over::Tls, Flood::new(head, "x").piecemeal(), &["ERR_NET_LIMIT"]);
    fails_alone(Over::Tls, Flood::new("", "\r\n").piecemeal(), &["ERR_NET_LIMIT"]);
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const UNKNOWN: u8 = 0x77;
const END_HEADERS: u8 = 4;

#[test]
fn frames_of_http2_without_end() {
    let settings = frame(SETTINGS, 0, 0, &[]);
    let then = |first: Vec<u8>| [settings.clone(), first].concat();
    // `:status: 200`, and `:status: 103` in full.
    let ok = then(frame(HEADERS, END_HEADERS, 1, &[0x88]));
    let interim = frame(HEADERS, END_HEADERS, 1, &[0x08, 3, b'1', b'0', b'3']);
    for (name, first, again) in [
        ("settings", then(Vec::new()), settings.clone()),
        ("pings", then(Vec::new()), frame(PING, 0, 0, &[0; 8])),
        ("acknowledged pings", then(Vec::new()), frame(PING, 1, 0, &[0; 8])),
        ("interim responses", then(Vec::new()), interim),
        ("unknown frames", then(Vec::new()), frame(UNKNOWN, 0, 0, &[0; 100])),
        ("priorities", then(Vec::new()), frame(PRIORITY, 0, 1, &[0, 0, 0, 3, 0])),
        ("pings beside a body", ok.clone(), frame(PING, 0, 0, &[0; 8])),
    ] {
        println!("{name}");
        // A flood may end the connection before the request is known to be on it.
        fails_alone(Over::Http2, Flood::new(first, again), &["ERR_NET_LIMIT", "UND_ERR_SOCKET"]);
    }
    // These are errors of the stream or connection, unless the allowance is used up before an error has arrived.
    for (name, first, again) in [
        (
            "continuations",
            then(frame(HEADERS, 0, 1, &[0x88])),
            frame(CONTINUATION, 0, 1, &[0, 1, b'a', 1, b'b']),
        ),
        ("resets", then(Vec::new()), frame(RST_STREAM, 0, 1, &[0, 0, 0, 8])),
        ("windows", then(Vec::new()), frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff])),
        ("empty pieces of a body", ok, frame(DATA, 0, 1, &[])),
    ] {
        println!("{name}");
        fails_alone(Over::Http2, Flood::new(first, again), &["UND_ERR_SOCKET", "ERR_NET_LIMIT"]);
    }
}

/// Nothing ends these: one owner receives as fast as it can over many connections, and another one's exchange is not held up by each.
#[test]
fn an_owner_with_many_busy_connections_takes_turns_with_another_one() {
    block_on(async {
        let endless = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";
        let mut server = FloodServer::start(Over::Tcp, Flood::new(endless, [b'x'; 1_000]));
        let resolver = Arc::new(Resolver::of_servers(Vec::new()));
        let mut clients = Clients::new(resolver, RootCertStore::empty()).expect("TLS");
        let honest = honest_server().await;
        let mut busy: Vec<_> =
            (0..64).map(|_| begin(&mut clients, request(Over::Tcp, server.address, 1), PIECES)).collect();
        for _ in 0..64 {
            server.begun.recv().await.expect("the server is there");
        }
        let received = |busy: &mut Vec<mpsc::Receiver<FromEgress>>| {
            let mut bytes = 0;
            for exchange in busy {
                while let Ok(FromEgress::Progress { progress, .. }) = exchange.try_recv() {
                    match progress {
                        HttpProgress::Data(data) => bytes += data.len(),
                        HttpProgress::Head { .. } => {}
                        other => panic!("{other:?}"),
                    }
                }
            }
            bytes
        };
        received(&mut busy);
        let other = begin(&mut clients, request(Over::Tcp, honest, 2), 1);
        assert_eq!(end(other).await, None);
        let meanwhile = received(&mut busy);
        assert!(meanwhile < 8 << 20, "{meanwhile} bytes of one owner during one exchange of another");
    });
}

/// Memory that this process has now (bytes).
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("readable");
    let resident = pages.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    resident.expect("a number") * 4_096
}

/// Small heads cost the library many times their bytes. One that waits for a response on each of many connections is not enough to
/// fill the memory of the process, which is that of all owners.
#[test]
fn a_flood_that_stops_below_its_bound_of_bytes() {
    const ORIGINS: usize = 48;
    const MOST: usize = 4 << 20;
    let settings = frame(SETTINGS, 0, 0, &[]);
    let status = [0x08, 3, b'1', b'0', b'3'];
    // A field that is in the table, as a literal and then by its index.
    let literal = [status.as_slice(), &[0x40, 1, b'a', 1, b'b']].concat();
    let indexed = [status.as_slice(), &[0xbe; 100]].concat();
    for (name, first, again) in [
        ("interim responses", settings.clone(), frame(HEADERS, END_HEADERS, 1, &status)),
        (
            "interim responses of many fields",
            [settings.clone(), frame(HEADERS, END_HEADERS, 1, &literal)].concat(),
            frame(HEADERS, END_HEADERS, 1, &indexed),
        ),
    ] {
        block_on(async {
            let flood = Flood::new(first, again).of_bytes(2_000_000);
            let server = FloodServer::start_at(Over::Http2, flood, ORIGINS);
            let resolver = Arc::new(Resolver::of_servers(Vec::new()));
            let mut clients = Clients::new(resolver, server.roots.clone()).expect("TLS");
            let before = resident();
            let exchanges: Vec<_> = server
                .addresses
                .iter()
                .map(|address| {
                    let mut request = request(Over::Http2, *address, 1);
                    request.terms.head_ms = 20_000;
                    begin(&mut clients, request, PIECES)
                })
                .collect();
            let mut peak = 0;
            for exchange in exchanges {
                let failure = end(exchange).await.expect("a failure");
                peak = peak.max(resident().saturating_sub(before));
                assert!(
                    failure.starts_with("ERR_NET_LIMIT: the server sent too many heads"),
                    "{name}: {failure}"
                );
            }
            println!("{name}: {} KiB for each connection", peak / ORIGINS / 1024);
            assert!(peak < ORIGINS * MOST, "{name}: {peak} bytes");
        });
    }
}
