//! Name servers that answer without end, or with more than was asked: the exchange for such a name ends by a bound, and an exchange of
//! another owner is carried out meanwhile.

use crate::client::Clients;
use crate::dns::RecordType;
use crate::floods::{Over, PIECES, begin, block_on, end, honest_server, request};
use crate::resolve::Resolver;
use crate::role::event_loop;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::{mpsc, oneshot};
use tokio_rustls::rustls::RootCertStore;
use vm_system_protocol::egress::EgressRequest;

/// The name whose server floods.
const NAME: &str = "flooded.test";
/// A pointer to the name in the question.
const QUESTION: &[u8] = &[0xc0, 12];
const CNAME: u16 = 5;
/// Longer than any test: a bound ends what is waited for, and not the clock.
const PATIENT: Duration = Duration::from_mins(10);

/// The datagrams that a name server sends for a query.
#[derive(Debug, Clone, Copy)]
enum Flood {
    /// Answers with other ids than the query's, without end.
    OtherIds,
    /// Answers to another question, without end.
    OtherQuestions,
    /// Datagrams without a header, without end.
    Rubbish,
    /// As many addresses as a datagram holds, each valid for ever, and a count of many more.
    Addresses(Ipv4Addr),
    /// Aliases of aliases, as many as a datagram holds.
    Aliases,
    /// Two names that are aliases of each other.
    AliasLoop,
    /// A datagram that is cut, and over TCP what [`Long`] says.
    Truncated(Long),
}

/// The messages that a name server sends over TCP.
#[derive(Debug, Clone, Copy)]
enum Long {
    /// The longest message, which is no answer, and then bytes without end.
    Rubbish,
    /// An answer that is cut again.
    Truncated,
    /// An answer that is announced, and does not come.
    Nothing,
    /// A byte of the answer now and then.
    Drops,
}

/// A server of names with a thread of its own, which ends with it.
struct NameServer {
    address: SocketAddr,
    /// Queries, over UDP and TCP.
    queries: Arc<AtomicUsize>,
    begun: mpsc::UnboundedReceiver<()>,
    _running: oneshot::Sender<()>,
}

impl NameServer {
    fn start(flood: Flood) -> Self {
        let (udp, tcp) = sockets();
        let address = udp.local_addr().expect("an address");
        let queries = Arc::<AtomicUsize>::default();
        let (begin, begun) = mpsc::unbounded_channel();
        let count = Arc::clone(&queries);
        let (running, mut dropped) = oneshot::channel::<()>();
        std::thread::spawn(move || {
            event_loop().expect("an event loop").block_on(async move {
                let udp = Arc::new(UdpSocket::from_std(udp).expect("a socket"));
                let tcp = TcpListener::from_std(tcp).expect("a listener");
                let mut query = [0; 512];
                loop {
                    tokio::select! {
                        _ = &mut dropped => break,
                        received = udp.recv_from(&mut query) => {
                            let Ok((length, from)) = received else { continue };
                            count.fetch_add(1, Ordering::SeqCst);
                            let (udp, query) = (Arc::clone(&udp), query[..length].to_vec());
                            let begin = begin.clone();
                            tokio::spawn(async move { send_datagrams(&udp, from, &query, flood, &begin).await });
                        }
                        accepted = tcp.accept() => {
                            let Ok((stream, _)) = accepted else { continue };
                            count.fetch_add(1, Ordering::SeqCst);
                            let begin = begin.clone();
                            tokio::spawn(async move {
                                if let Flood::Truncated(long) = flood {
                                    let _ = send_long(stream, long, &begin).await;
                                }
                            });
                        }
                    }
                }
            });
        });
        Self { address, queries, begun, _running: running }
    }
}

/// Sockets of UDP and TCP with the same port.
fn sockets() -> (std::net::UdpSocket, std::net::TcpListener) {
    loop {
        let tcp = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = tcp.local_addr().expect("an address");
        // The same port of UDP may be in use.
        if let Ok(udp) = std::net::UdpSocket::bind(address) {
            tcp.set_nonblocking(true).expect("a listener");
            udp.set_nonblocking(true).expect("a socket");
            return (udp, tcp);
        }
    }
}

async fn send_datagrams(
    udp: &UdpSocket,
    from: SocketAddr,
    query: &[u8],
    flood: Flood,
    begin: &mpsc::UnboundedSender<()>,
) -> io::Result<()> {
    let again = match flood {
        Flood::OtherIds => {
            let mut other = answer(query, 0, 1, &[record(QUESTION, 1, &[127, 0, 0, 1])]);
            other[0] ^= 0xff;
            other
        }
        Flood::OtherQuestions => {
            let mut other = answer(query, 0, 1, &[record(QUESTION, 1, &[127, 0, 0, 1])]);
            other[13] = b'x';
            other
        }
        Flood::Rubbish => vec![0xff; 3],
        Flood::Addresses(address) => {
            let is_ipv4 = query[query.len() - 3] == RecordType::A as u8;
            let one = record(QUESTION, 1, &address.octets());
            let many = if is_ipv4 { vec![one; 250] } else { Vec::new() };
            let counted = if is_ipv4 { 250 } else { 0 };
            udp.send_to(&answer(query, 0, counted, &many), from).await?;
            let _ = begin.send(());
            return Ok(());
        }
        Flood::Aliases => {
            let name = |number: u8| vec![2, b'a', b'a' + number % 26, 1, b'a' + number / 26, 0];
            let mut records = vec![record(QUESTION, CNAME, &name(0))];
            records.extend((0..150).map(|number| record(&name(number), CNAME, &name(number + 1))));
            records.push(record(&name(150), 1, &[127, 0, 0, 1]));
            udp.send_to(&answer(query, 0, records.len() as u16, &records), from).await?;
            let _ = begin.send(());
            return Ok(());
        }
        Flood::AliasLoop => {
            let (one, two) = (b"\x01x\x00".as_slice(), b"\x01y\x00".as_slice());
            let records = [record(QUESTION, CNAME, one), record(one, CNAME, two), record(two, CNAME, one)];
            udp.send_to(&answer(query, 0, 3, &records), from).await?;
            let _ = begin.send(());
            return Ok(());
        }
        Flood::Truncated(_) => {
            udp.send_to(&answer(query, 0x0200, 0, &[]), from).await?;
            return Ok(());
        }
    };
    let _ = begin.send(());
    // Until the server is dropped: an unconnected socket does not learn that the query's socket is closed. Its port may have become that
    // of another test meanwhile, which has to ignore them.
    loop {
        udp.send_to(&again, from).await?;
        tokio::task::yield_now().await;
    }
}

async fn send_long(mut stream: TcpStream, long: Long, begin: &mpsc::UnboundedSender<()>) -> io::Result<()> {
    let mut query = vec![0; usize::from(stream.read_u16().await?)];
    stream.read_exact(&mut query).await?;
    let _ = begin.send(());
    match long {
        Long::Rubbish => loop {
            stream.write_all(&vec![0xff; 64 * 1024]).await?;
        },
        Long::Truncated => {
            let cut = answer(&query, 0x0200, 0, &[]);
            stream.write_u16(cut.len() as u16).await?;
            stream.write_all(&cut).await?;
        }
        Long::Nothing => stream.write_u16(u16::MAX).await?,
        Long::Drops => {
            stream.write_u16(u16::MAX).await?;
            let mut tick = tokio::time::interval(Duration::from_millis(1));
            loop {
                tick.tick().await;
                stream.write_u8(0).await?;
            }
        }
    }
    // Until the client closes.
    stream.read_u8().await.map(drop)
}

/// The response to a query, with these flags and records, which are said to be so many.
fn answer(query: &[u8], flags: u16, count: u16, records: &[Vec<u8>]) -> Vec<u8> {
    let mut message = query.to_vec();
    message[2..4].copy_from_slice(&(0x8000 | flags).to_be_bytes());
    message[6..8].copy_from_slice(&count.to_be_bytes());
    message.extend(records.concat());
    message
}

/// A record that is valid as long as one can be.
fn record(owner: &[u8], kind: u16, data: &[u8]) -> Vec<u8> {
    let mut bytes = owner.to_vec();
    bytes.extend(kind.to_be_bytes());
    bytes.extend([0, 1]);
    bytes.extend(u32::MAX.to_be_bytes());
    bytes.extend((data.len() as u16).to_be_bytes());
    bytes.extend(data);
    bytes
}

/// Four exchanges with the name of a server that floods: each fails with this code after at most so many queries of all, and one of
/// another owner is carried out meanwhile.
fn fails_alone(flood: Flood, patience: Duration, code: &str, most: usize) {
    println!("{flood:?}");
    block_on(async {
        let mut server = NameServer::start(flood);
        let resolver = Resolver::of_servers(vec![server.address]).with_timeout(patience);
        let mut clients = Clients::new(Arc::new(resolver), RootCertStore::empty()).expect("TLS");
        let honest = honest_server().await;
        let closed = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|one| one.local_addr());
        let flooded = |address| EgressRequest { host: NAME.to_owned(), ..request(Over::Tcp, address, 1) };
        let flooded: Vec<_> = (0..4)
            .map(|_| begin(&mut clients, flooded(closed.as_ref().copied().expect("a port")), PIECES))
            .collect();
        server.begun.recv().await.expect("the server is there");
        let other = begin(&mut clients, request(Over::Tcp, honest, 2), 1);
        assert_eq!(end(other).await, None, "the exchange of another owner");
        for exchange in flooded {
            let failure = end(exchange).await.expect("a failure");
            assert!(failure.starts_with(code) && failure.contains(NAME), "{code} was expected: {failure}");
        }
        let queries = server.queries.load(Ordering::SeqCst);
        assert!(queries <= most, "{queries} queries for four exchanges");
    });
}

/// Queries of four exchanges with one server: for two types of addresses, twice.
const QUERIES: usize = 4 * 2 * 2;

#[test]
fn datagrams_that_are_no_answer_without_end() {
    for flood in [Flood::OtherIds, Flood::OtherQuestions, Flood::Rubbish] {
        fails_alone(flood, PATIENT, "EAI_AGAIN", QUERIES);
    }
}

#[test]
fn aliases_without_end() {
    for flood in [Flood::Aliases, Flood::AliasLoop] {
        fails_alone(flood, PATIENT, "ENOTFOUND", QUERIES / 2);
    }
}

#[test]
fn long_answers_without_end() {
    for long in [Long::Rubbish, Long::Truncated] {
        fails_alone(Flood::Truncated(long), PATIENT, "EAI_AGAIN", 2 * QUERIES);
    }
    for long in [Long::Nothing, Long::Drops] {
        fails_alone(Flood::Truncated(long), Duration::from_millis(100), "EAI_AGAIN", 2 * QUERIES);
    }
}

#[test]
fn addresses_without_end() {
    // Each connection to these is refused: all of those that are kept are tried.
    fails_alone(Flood::Addresses(Ipv4Addr::LOCALHOST), PATIENT, "ECONNREFUSED", QUERIES / 2);
    block_on(async {
        let server = NameServer::start(Flood::Addresses(Ipv4Addr::LOCALHOST));
        let resolver = Resolver::of_servers(vec![server.address]);
        let addresses = resolver.resolve(NAME).await.expect("addresses");
        assert_eq!(addresses.len(), 32);
        // However long they are valid, the next connection asks again: the check of an address is of this moment.
        resolver.resolve(NAME).await.expect("addresses");
        assert_eq!(server.queries.load(Ordering::SeqCst), 4);
    });
}
