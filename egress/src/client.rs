//! Connections to servers. A name is resolved, each address checked, and the connection made to an address that was checked: there is
//! no second look-up that could give another one. Connections that stay open are used again for the same owner, reach and origin.

use crate::address;
use crate::failure::ExchangeFailure;
use crate::frames::FramedStream;
use crate::held::{Held, Memory, OwnersMemory};
use crate::lane::Lane;
use crate::metered::{Allowance, MeteredStream, OpenExchange};
use crate::resolve::Resolver;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Bytes, Incoming};
use hyper::http::Extensions;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::{Request, Response, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{CaptureConnection, Connected, Connection, capture_connection};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::HashMap;
use std::future::{Future, pending};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tower_service::Service;
use vm_system_protocol::egress::{AddressReach, EgressTerms};
use vm_system_protocol::limits::{HTTP_CONNECT_MS, HTTP_HEADER_BYTES, HTTP_HEADERS};

/// The time after which a connection without a request is closed.
const POOL_IDLE: Duration = Duration::from_secs(15);
/// Connections of an owner to one origin without a request.
const POOL_SIZE: usize = 32;
/// Pools above which those without a request are closed.
const POOLS: usize = 256;
/// Connections of an owner within one reach; above half of it, those without a request are closed.
const POOL_CONNECTIONS: usize = 1_024;
/// Connections of all owners; above half of it, all those without a request are closed. Fewer than the descriptors of a process, with
/// the attempts to connect.
const CONNECTIONS: usize = 2 * 4_096;
/// Attempts to connect at a time for one connection.
const ATTEMPTS: usize = 3;
/// The time after which the next address of a name is tried beside the one before.
const NEXT_ADDRESS: Duration = Duration::from_millis(250);
/// HTTP/1.1 reads this far ahead, which bounds the head of a response (bytes).
const READ_AHEAD_BYTES: usize = HTTP_HEADER_BYTES + 8 * 1024;
/// Windows of HTTP/2 (bytes).
const STREAM_WINDOW_BYTES: u32 = 128 * 1024;
pub(crate) const CONNECTION_WINDOW_BYTES: u32 = 2 << 20;

/// The body of a request.
pub type RequestBody = UnsyncBoxBody<Bytes, ExchangeFailure>;

/// The connections of one owner within one reach, and where the owner's work is done.
#[derive(Clone)]
pub(crate) struct OwnersClient {
    http: Client<Connector, RequestBody>,
    pub(crate) lane: Lane,
}

/// The connections of all owners.
pub struct Clients {
    resolver: Arc<Resolver>,
    tls: TlsConnector,
    pools: HashMap<(u64, AddressReach), Pool>,
    bounds: ConnectionBounds,
    connections: Arc<Semaphore>,
    memory: Arc<Memory>,
}

/// Connections at a time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionBounds {
    /// Connections of one owner within one reach.
    pub(crate) of_pool: usize,
    pub(crate) of_all: usize,
}

/// The connections of one owner within one reach.
struct Pool {
    /// `None`: connections without a request were closed.
    client: Option<OwnersClient>,
    lane: Lane,
    /// Of the owner, within whatever reach.
    memory: OwnersMemory,
    /// Permits for further connections.
    connections: Arc<Semaphore>,
}

impl Clients {
    pub fn new(resolver: Arc<Resolver>, roots: RootCertStore) -> Result<Self, String> {
        Self::with_bounds(
            resolver,
            roots,
            ConnectionBounds { of_pool: POOL_CONNECTIONS, of_all: CONNECTIONS },
        )
    }

    pub(crate) fn with_bounds(
        resolver: Arc<Resolver>,
        roots: RootCertStore,
        bounds: ConnectionBounds,
    ) -> Result<Self, String> {
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("TLS: {error}"))?;
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self {
            resolver,
            tls: TlsConnector::from(Arc::new(config)),
            pools: HashMap::new(),
            bounds,
            connections: Arc::new(Semaphore::new(bounds.of_all)),
            memory: Memory::new(),
        })
    }

    /// The client for the requests of one owner.
    pub(crate) fn client_for(&mut self, terms: &EgressTerms) -> OwnersClient {
        let key = (terms.owner, terms.reach);
        let is_full = |left: &Semaphore, most: usize| left.available_permits() < most / 2;
        // Without its client, a connection without a request is closed; requests under way keep theirs, and their place.
        if is_full(&self.connections, self.bounds.of_all)
            || self.pools.len() >= POOLS && !self.pools.contains_key(&key)
        {
            self.pools.retain(|_, pool| {
                // A pool whose connections have requests stays, without its client: dropping it would give their permits out twice.
                pool.client = None;
                Arc::strong_count(&pool.connections) > 1
            });
        }
        let connections = match self.pools.get(&key) {
            Some(Pool { client: Some(client), connections, .. })
                if !is_full(connections, self.bounds.of_pool) =>
            {
                return client.clone();
            }
            Some(pool) => Arc::clone(&pool.connections),
            None => Arc::new(Semaphore::new(self.bounds.of_pool)),
        };
        let (lane, memory) = self.of_owner(terms.owner);
        let connector = Connector {
            resolver: Arc::clone(&self.resolver),
            tls: self.tls.clone(),
            reach: terms.reach,
            own_ports: terms.own_ports.clone().into(),
            budgets: [Arc::clone(&connections), Arc::clone(&self.connections)],
            memory: memory.clone(),
        };
        let http = Client::builder(lane.clone())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(POOL_IDLE)
            .pool_max_idle_per_host(POOL_SIZE)
            .http1_max_buf_size(READ_AHEAD_BYTES)
            .http1_max_headers(HTTP_HEADERS)
            .http2_max_header_list_size(HTTP_HEADER_BYTES as u32)
            .http2_initial_stream_window_size(STREAM_WINDOW_BYTES)
            .http2_initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .build(connector);
        let client = OwnersClient { http, lane: lane.clone() };
        self.pools.insert(key, Pool { client: Some(client.clone()), lane, memory, connections });
        client
    }

    /// Where the work of an owner is done, and its memory, within whatever reach.
    fn of_owner(&self, owner: u64) -> (Lane, OwnersMemory) {
        let reaches = [AddressReach::Public, AddressReach::Private, AddressReach::Named];
        let found = reaches.into_iter().find_map(|reach| self.pools.get(&(owner, reach)));
        match found {
            Some(pool) => (pool.lane.clone(), pool.memory.clone()),
            None => (Lane::start(), OwnersMemory::new(&self.memory)),
        }
    }
}

/// Sends a request; the error is the reason.
pub(crate) async fn send(
    client: &OwnersClient,
    mut request: Request<RequestBody>,
) -> Result<(Response<Incoming>, OpenExchange), ExchangeFailure> {
    let mut connection = capture_connection(&mut request);
    let mut sending = pin!(client.http.request(request));
    let mut exchange: Option<OpenExchange> = None;
    let sent = loop {
        tokio::select! {
            biased;
            found = allowance_of(&mut connection), if exchange.is_none() => exchange = Some(found.begin_exchange()),
            sent = &mut sending => break sent,
        }
    };
    let sent = sent.map_err(|error| ExchangeFailure::of_http(&error));
    match (sent, exchange) {
        (Ok(response), Some(exchange)) => {
            exchange.held.take_head(response.headers().len());
            Ok((response, exchange))
        }
        // No response arrives before its connection is known.
        (Ok(_), None) => Err(ExchangeFailure::new("UND_ERR_SOCKET", "the connection is not known")),
        // The libraries do not keep the reason of a connection's end in all of their errors.
        (Err(failure), exchange) => Err(exchange.and_then(|exchange| exchange.failure()).unwrap_or(failure)),
    }
}

/// The allowance of the server on the connection of a request, once there is one.
async fn allowance_of(connection: &mut CaptureConnection) -> Arc<Allowance> {
    let mut extensions = Extensions::new();
    if let Some(connected) = &*connection.wait_for_connection_metadata().await {
        connected.get_extras(&mut extensions);
        if extensions.get::<Arc<Allowance>>().is_some_and(|allowance| allowance.held.is_worn()) {
            // This exchange is the last one of the connection.
            connected.poison();
        }
    }
    match extensions.remove() {
        Some(allowance) => allowance,
        // There is none any more: the request has failed.
        None => pending().await,
    }
}

/// Makes connections within one reach.
#[derive(Clone)]
pub(crate) struct Connector {
    resolver: Arc<Resolver>,
    tls: TlsConnector,
    reach: AddressReach,
    own_ports: Arc<[u16]>,
    /// Of this owner, and of all.
    budgets: [Arc<Semaphore>; 2],
    memory: OwnersMemory,
}

trait ServerStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> ServerStream for T {}

/// A connection to a server.
pub(crate) struct ServerConnection {
    io: TokioIo<Box<dyn ServerStream>>,
    http2: bool,
    allowance: Arc<Allowance>,
    /// The connection's permits in the budgets of its pool and of all, returned when it ends.
    _places: [OwnedSemaphorePermit; 2],
}

impl Service<Uri> for Connector {
    type Response = ServerConnection;
    type Error = ExchangeFailure;
    type Future = Pin<Box<dyn Future<Output = Result<ServerConnection, ExchangeFailure>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ExchangeFailure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move {
            let connecting = timeout(Duration::from_millis(HTTP_CONNECT_MS), connector.connect(&uri));
            connecting.await.unwrap_or_else(|_| {
                let host = uri.host().unwrap_or_default();
                let message = format!("no connection to {host} within {HTTP_CONNECT_MS} ms");
                Err(ExchangeFailure::new("UND_ERR_CONNECT_TIMEOUT", message))
            })
        })
    }
}

impl Connector {
    async fn connect(&self, uri: &Uri) -> Result<ServerConnection, ExchangeFailure> {
        let is_tls = uri.scheme_str() == Some("https");
        let written = uri.host().unwrap_or_default();
        let host = written.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(written);
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let addresses = self.addresses(host, port).await?;
        let [own, all] = self.budgets.each_ref().map(|budget| Arc::clone(budget).acquire_owned());
        let closed = |_| ExchangeFailure::new("ECANCELED", "given up");
        let places = [own.await.map_err(closed)?, all.await.map_err(closed)?];
        let held = Held::new(self.memory.clone())?;
        let stream = first_connection(&addresses).await;
        let stream =
            stream.map_err(|error| ExchangeFailure::not_connected(&format!("{written}:{port}"), &error))?;
        // Small pieces of requests are sent at once.
        let _ = stream.set_nodelay(true);
        let allowance = Allowance::new(held);
        let stream = MeteredStream::new(stream, Arc::clone(&allowance));
        if !is_tls {
            let io: TokioIo<Box<dyn ServerStream>> = TokioIo::new(Box::new(stream));
            return Ok(ServerConnection { io, http2: false, allowance, _places: places });
        }
        let name = ServerName::try_from(host.to_owned()).map_err(|_| {
            ExchangeFailure::new("EPROTO", format!("TLS with {host}: not a name of a server"))
        })?;
        let stream = self.tls.connect(name, stream).await;
        let stream = stream.map_err(|error| ExchangeFailure::no_tls(host, &error))?;
        let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let stream: Box<dyn ServerStream> = if http2 {
            allowance.read_ahead(CONNECTION_WINDOW_BYTES);
            Box::new(FramedStream::new(stream, Arc::clone(&allowance)))
        } else {
            Box::new(stream)
        };
        Ok(ServerConnection { io: TokioIo::new(stream), http2, allowance, _places: places })
    }

    /// The addresses of a host to which a request may connect.
    async fn addresses(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, ExchangeFailure> {
        let literal = host.parse::<IpAddr>().ok();
        let found = if let Some(address) = literal {
            vec![address]
        } else {
            let resolved = self.resolver.resolve(host).await;
            resolved.map_err(|error| ExchangeFailure::not_resolved(host, error))?
        };
        let mut refused = None;
        let mut allowed = Vec::new();
        for address in found {
            let found = SocketAddr::new(address, port);
            match address::refusal(address, self.reach) {
                None if address::is_own(found, &self.own_ports) => {
                    refused = Some("a loopback address, where this daemon listens on that port");
                }
                None => allowed.push(found),
                Some(why) => refused = Some(why),
            }
        }
        match refused {
            Some(why) if allowed.is_empty() => {
                // The script has the name from its URL; what it means in this network is not the script's to know.
                let what = if literal.is_some() { "is" } else { "has an address that is" };
                Err(ExchangeFailure::denied(format!("{host} {what} {why}")))
            }
            _ => Ok(allowed),
        }
    }
}

/// Connects to the first address that answers; the next one is tried when one fails or takes long.
async fn first_connection(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut attempts = JoinSet::new();
    let mut left = addresses.iter().copied();
    let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
    let mut next = left.next();
    loop {
        if let Some(address) = next.take() {
            attempts.spawn(TcpStream::connect(address));
        }
        tokio::select! {
            attempt = attempts.join_next() => match attempt {
                Some(Ok(Ok(stream))) => return Ok(stream),
                Some(Ok(Err(error))) => {
                    failure = error;
                    next = left.next();
                    if next.is_none() && attempts.is_empty() {
                        return Err(failure);
                    }
                }
                Some(Err(_)) => next = left.next(),
                None => return Err(failure),
            },
            () = sleep(NEXT_ADDRESS), if left.len() > 0 && attempts.len() < ATTEMPTS => next = left.next(),
        }
    }
}

impl Connection for ServerConnection {
    fn connected(&self) -> Connected {
        let connected = Connected::new().extra(Arc::clone(&self.allowance));
        if self.http2 { connected.negotiated_h2() } else { connected }
    }
}

impl Read for ServerConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl Write for ServerConnection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
