//! One egress process with its channel: frames of `length u32` (little endian) and one encoded value. A task reads its messages and
//! hands each to the session of its exchange; another one writes. When the process ends, its exchanges fail. One that hangs is ended: while
//! it has exchanges it gets pings.

use super::EgressState;
use super::client::Exchanges;
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use vm_system_protocol::codec;
use vm_system_protocol::egress::{EgressRequest, FromEgress, HttpProgress, ToEgress};
use vm_system_protocol::limits::{EGRESS_MESSAGE_BYTES, EGRESS_PINGS_LOST, HTTP_EXCHANGES_OF_ALL};
use vm_system_protocol::worker::HostError;
use vm_system_sandbox::process::ExitStatus;
use vm_system_spawn::child::ChildProcess;
use vm_system_spawn::egress::{connect_to_egress, start_egress};

/// Why a process is not used any more.
const NOT_NEEDED: &str = "nothing needs it any more";
const ENDED: &str = "it ended";
const UNREAD: &str = "it does not read its channel";

/// The size of a read from the channel (bytes).
const READ_BYTES: usize = 128 * 1024;

/// Requests that wait to be written at a time.
const OPENINGS: usize = 64;

/// Orders that wait to be written. Of each exchange at most one piece, one credit and its end, which the session sends without waiting;
/// of those that are opened meanwhile their beginnings, too. A process for which more wait is given up.
const ORDERS: usize = 3 * HTTP_EXCHANGES_OF_ALL + 4 * OPENINGS;

/// A process that was started. When it is dropped, with the last exchange, its channel is closed and it exits.
#[derive(Debug)]
pub(super) struct EgressProcess {
    orders: mpsc::Sender<QueuedOrder>,
    /// Requests that may wait to be written.
    openings: Arc<Semaphore>,
    routes: Arc<Routes>,
    pid: Option<u32>,
}

/// A message to the process, with the turn of a request, which ends when it is written.
type QueuedOrder = (ToEgress, Option<OwnedSemaphorePermit>);

/// Which session an exchange belongs to.
#[derive(Debug, Default)]
struct Routes {
    table: Mutex<RouteTable>,
    /// It should make no more requests.
    outdated: AtomicBool,
    /// Pings since its last message.
    pings: AtomicU32,
    /// More orders than [`ORDERS`] would wait for it.
    overrun: CancellationToken,
}

#[derive(Debug, Default)]
struct RouteTable {
    last: u64,
    exchanges: HashMap<u64, (Weak<Exchanges>, u64)>,
    /// It has ended, with this many exchanges under way.
    ended: Option<usize>,
}

impl Routes {
    fn lock(&self) -> MutexGuard<'_, RouteTable> {
        // No code panics while holding it.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_exchanges(&self) -> bool {
        !self.lock().exchanges.is_empty()
    }

    /// Hands progress to the session, which is returned to be woken; an exchange that was closed meanwhile has none.
    fn progress(&self, number: u64, progress: HttpProgress) -> Result<Option<Arc<Exchanges>>, &'static str> {
        let is_last = matches!(progress, HttpProgress::End | HttpProgress::Failed(_));
        let route = {
            let mut table = self.lock();
            if number > table.last {
                return Err("progress of an exchange that was never opened");
            }
            if is_last { table.exchanges.remove(&number) } else { table.exchanges.get(&number).cloned() }
        };
        let Some((exchanges, exchange)) = route else { return Ok(None) };
        let Some(exchanges) = exchanges.upgrade() else { return Ok(None) };
        exchanges.on_progress(exchange, progress)?;
        Ok(Some(exchanges))
    }

    /// Fails what is under way.
    fn end(&self) {
        let left = {
            let mut table = self.lock();
            let under_way = table.exchanges.len();
            table.ended.get_or_insert(under_way);
            std::mem::take(&mut table.exchanges)
        };
        for (exchanges, exchange) in left.into_values() {
            let Some(exchanges) = exchanges.upgrade() else { continue };
            let lost = HostError {
                code: "ERR_NET_EGRESS_LOST".to_owned(),
                message: "the egress process ended during the request, which may have been carried out"
                    .to_owned(),
            };
            let _ = exchanges.on_progress(exchange, HttpProgress::Failed(lost));
            exchanges.wake();
        }
    }
}

impl EgressProcess {
    /// Starts a process, or connects to one, and waits until it is jailed.
    pub(super) async fn start(inner: &Arc<EgressState>) -> Result<Arc<Self>, String> {
        let config = &inner.config;
        let (stream, child) = match &config.socket {
            None => {
                let started = start_egress(&config.program, &config.service_ids.into());
                let (stream, child) = started.map_err(|error| format!("it could not be started: {error}"))?;
                (stream, Some(child))
            }
            Some(path) => {
                let connected = connect_to_egress(path);
                (connected.map_err(|error| format!("no connection to {}: {error}", path.display()))?, None)
            }
        };
        let stream = stream.set_nonblocking(true).and_then(|()| UnixStream::from_std(stream));
        let (mut reader, writer) = stream.map_err(|error| error.to_string())?.into_split();
        let pid = child.as_ref().map(ChildProcess::pid);
        let ready = timeout(config.start_deadline, receive(&mut reader)).await;
        let refusal = match ready {
            Err(_) => Some(format!("it was not ready within {} ms", config.start_deadline.as_millis())),
            Ok(Ok(Some(FromEgress::Ready))) => child
                .as_ref()
                .and_then(ChildProcess::missing_wall)
                .map(|wall| format!("it could not be jailed: {wall}")),
            Ok(Ok(Some(FromEgress::Failed { message }))) => {
                Some(format!("it could not be jailed: {}", message.chars().take(500).collect::<String>()))
            }
            Ok(Ok(Some(_))) => Some("it broke the protocol: no greeting".to_owned()),
            Ok(Ok(None)) => Some(ENDED.to_owned()),
            Ok(Err(error)) => Some(format!("its channel failed: {error}")),
        };
        inner.live.fetch_add(1, Ordering::Relaxed);
        if let Some(why) = refusal {
            inner.tasks.spawn(reap(Arc::clone(inner), child));
            return Err(why);
        }
        let (orders, outgoing) = mpsc::channel(ORDERS);
        let routes = Arc::new(Routes::default());
        inner.tasks.spawn(run(Arc::clone(inner), Arc::clone(&routes), (reader, writer), outgoing, child));
        Ok(Arc::new(Self { orders, openings: Arc::new(Semaphore::new(OPENINGS)), routes, pid }))
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.pid
    }

    pub(super) fn is_usable(&self) -> bool {
        !self.routes.outdated.load(Ordering::Relaxed) && self.routes.lock().ended.is_none()
    }

    /// Whether it ended with exchanges under way.
    pub(super) fn has_failed(&self) -> bool {
        self.routes.lock().ended.is_some_and(|under_way| under_way > 0)
    }

    /// The number of a new exchange of a session; `None`: it has ended.
    pub(super) fn add(&self, exchanges: &Arc<Exchanges>, exchange: u64) -> Option<u64> {
        let mut table = self.routes.lock();
        if table.ended.is_some() {
            return None;
        }
        table.last += 1;
        let number = table.last;
        table.exchanges.insert(number, (Arc::downgrade(exchanges), exchange));
        Some(number)
    }

    /// Forgets an exchange.
    pub(super) fn remove(&self, number: u64) {
        self.routes.lock().exchanges.remove(&number);
    }

    /// Waits until few requests are ahead of the next one.
    pub(super) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        // It is never closed.
        Arc::clone(&self.openings).acquire_owned().await.ok()
    }

    pub(super) fn open(&self, exchange: u64, request: EgressRequest, turn: Option<OwnedSemaphorePermit>) {
        self.queue((ToEgress::Open { exchange, request: Box::new(request) }, turn));
    }

    /// Does not wait: each exchange has at most one piece under way.
    pub(super) fn send(&self, order: ToEgress) {
        self.queue((order, None));
    }

    fn queue(&self, order: QueuedOrder) {
        // Closed only after the process has ended, with which its exchanges have failed.
        if let Err(mpsc::error::TrySendError::Full(_)) = self.orders.try_send(order) {
            self.routes.overrun.cancel();
        }
    }
}

/// Sessions with progress that they were not woken for.
#[derive(Default)]
struct Progressed(Vec<Arc<Exchanges>>);

impl Progressed {
    fn wake(&mut self) {
        self.0.drain(..).for_each(|exchanges| exchanges.wake());
    }
}

impl Drop for Progressed {
    fn drop(&mut self) {
        self.wake();
    }
}

async fn run(
    inner: Arc<EgressState>,
    routes: Arc<Routes>,
    (mut reader, mut writer): (OwnedReadHalf, OwnedWriteHalf),
    mut orders: mpsc::Receiver<QueuedOrder>,
    child: Option<ChildProcess>,
) {
    let ping = inner.config.ping;
    let writing = async {
        let mut next_ping = Instant::now() + ping;
        loop {
            let (order, _turn) = tokio::select! {
                order = orders.recv() => match order {
                    Some(order) => order,
                    None => return NOT_NEEDED.to_owned(),
                },
                () = sleep_until(next_ping), if routes.has_exchanges() => {
                    if routes.pings.fetch_add(1, Ordering::Relaxed) >= EGRESS_PINGS_LOST {
                        return "it does not respond".to_owned();
                    }
                    next_ping = Instant::now() + ping;
                    (ToEgress::Ping, None)
                }
            };
            match timeout(ping * EGRESS_PINGS_LOST, write(&mut writer, &order)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return format!("its channel failed: {error}"),
                Err(_) => return UNREAD.to_owned(),
            }
        }
    };
    let reading = async {
        let mut reader = BufReader::with_capacity(READ_BYTES, &mut reader);
        let mut progressed = Progressed::default();
        loop {
            // After all that has arrived together: a session gets it in one reply.
            if reader.buffer().is_empty() {
                progressed.wake();
            }
            let received = receive(&mut reader).await;
            routes.pings.store(0, Ordering::Relaxed);
            let violation = match received {
                Ok(Some(FromEgress::Pong)) => Ok(()),
                Ok(Some(FromEgress::Progress { exchange, progress })) => {
                    routes.progress(exchange, progress).map(|exchanges| progressed.0.extend(exchanges))
                }
                Ok(Some(FromEgress::Outdated)) => {
                    routes.outdated.store(true, Ordering::Relaxed);
                    Ok(())
                }
                Ok(Some(FromEgress::Ready | FromEgress::Failed { .. })) => Err("a second greeting"),
                Ok(None) => return ENDED.to_owned(),
                Err(error) => return format!("its channel failed: {error}"),
            };
            if let Err(what) = violation {
                return format!("it broke the protocol: {what}");
            }
        }
    };
    let why = tokio::select! {
        biased;
        // First: a supervisor that was stopped itself finds the replies before it counts pings.
        why = reading => why,
        why = writing => why,
        () = routes.overrun.cancelled() => UNREAD.to_owned(),
        () = inner.stop.cancelled() => "the supervisor is stopping".to_owned(),
    };
    // Without requests one of a service manager may end for a restart of its service.
    let may_end = why == NOT_NEEDED
        || (why == ENDED && child.is_none())
        || inner.stop.is_cancelled()
        || routes.outdated.load(Ordering::Relaxed);
    let is_failure = routes.has_exchanges() || !may_end;
    if is_failure {
        inner.note_failure(&why, false);
    }
    // Before its status is waited for: sessions learn at once that their exchanges have failed.
    routes.end();
    drop((reader, writer));
    let status = reap(inner, child).await;
    if is_failure {
        tracing::warn!(why, ?status, "the egress process ended unexpectedly");
    } else {
        tracing::debug!(why, ?status, "the egress process is not used any more");
    }
}

/// Ends the process, and returns its exit status; one of a service manager ends with its connection.
async fn reap(inner: Arc<EgressState>, child: Option<ChildProcess>) -> Option<ExitStatus> {
    let mut status = None;
    if let Some(mut child) = child {
        let _ = child.kill();
        status = child.ended().await.ok();
    }
    inner.live.fetch_sub(1, Ordering::Relaxed);
    status
}

async fn write(socket: &mut OwnedWriteHalf, order: &ToEgress) -> io::Result<()> {
    let bytes = codec::encode(order, EGRESS_MESSAGE_BYTES).map_err(io::Error::other)?;
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    let mut frame = Vec::with_capacity(bytes.len() + 4);
    frame.extend(length.to_le_bytes());
    frame.extend(bytes);
    socket.write_all(&frame).await
}

async fn receive(socket: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<FromEgress>> {
    let length = match socket.read_u32_le().await {
        Ok(length) => length as usize,
        Err(error)
            if [io::ErrorKind::UnexpectedEof, io::ErrorKind::ConnectionReset].contains(&error.kind()) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    if length > EGRESS_MESSAGE_BYTES {
        return Err(io::Error::other("a message is too large"));
    }
    let mut bytes = vec![0; length];
    socket.read_exact(&mut bytes).await?;
    codec::decode(&bytes).map(Some).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::{EgressProcess, OPENINGS, ORDERS, QueuedOrder, Routes, run};
    use crate::egress::client::Exchanges;
    use crate::egress::{Egress, EgressConfig};
    use std::sync::Arc;
    use std::sync::atomic::Ordering;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::UnixStream;
    use tokio::sync::{Semaphore, mpsc};
    use tokio::task::JoinHandle;
    use tokio::time::{Instant, timeout};
    use vm_system_protocol::codec;
    use vm_system_protocol::egress::{AddressReach, EgressRequest, EgressTerms, FromEgress, ToEgress};
    use vm_system_protocol::limits::{EGRESS_MESSAGE_BYTES, EGRESS_PINGS_LOST};

    const PING: Duration = Duration::from_millis(200);

    /// A process that the test plays, and the task that serves its channel.
    fn process() -> (Egress, EgressProcess, UnixStream, JoinHandle<()>) {
        let egress = Egress::new(EgressConfig { ping: PING, ..EgressConfig::default() });
        let (ours, theirs) = UnixStream::pair().expect("a channel");
        let (orders, outgoing) = mpsc::channel::<QueuedOrder>(ORDERS);
        let routes = Arc::new(Routes::default());
        egress.0.live.fetch_add(1, Ordering::Relaxed);
        let task = run(Arc::clone(&egress.0), Arc::clone(&routes), ours.into_split(), outgoing, None);
        let process =
            EgressProcess { orders, openings: Arc::new(Semaphore::new(OPENINGS)), routes, pid: None };
        (egress, process, theirs, tokio::spawn(task))
    }

    fn request() -> EgressRequest {
        let terms = EgressTerms {
            owner: 1,
            reach: AddressReach::Public,
            own_ports: Vec::new(),
            head_ms: 1_000,
            timeout_ms: 1_000,
            max_request_bytes: 1 << 20,
            max_response_bytes: 1 << 20,
            secrets: Vec::new(),
        };
        EgressRequest {
            method: "POST".to_owned(),
            tls: false,
            host: "localhost".to_owned(),
            port: 80,
            target: "/".to_owned(),
            headers: Vec::new(),
            data: vec![0; EGRESS_MESSAGE_BYTES / 2],
            end: true,
            terms,
        }
    }

    #[tokio::test]
    async fn a_process_that_reads_nothing_is_sent_few_requests() {
        let (_egress, process, mut socket, _task) = process();
        for exchange in 1..=OPENINGS as u64 {
            let turn = process.turn().await;
            process.open(exchange, request(), turn);
        }
        assert!(timeout(Duration::ZERO, process.turn()).await.is_err(), "the next one waits");
        let mut message = vec![0; EGRESS_MESSAGE_BYTES];
        let length = socket.read_u32_le().await.expect("a message") as usize;
        socket.read_exact(&mut message[..length]).await.expect("the whole message");
        assert!(process.turn().await.is_some(), "until one was read");
    }

    #[tokio::test]
    async fn a_process_for_which_too_many_orders_wait_is_given_up() {
        let (egress, process, socket, task) = process();
        let exchanges = Arc::new(Exchanges::default());
        let exchange = process.add(&exchanges, 1).expect("a number");
        // This runtime has one thread: the task takes none of them meanwhile.
        for _ in 0..ORDERS {
            process.send(ToEgress::Pull { exchange });
        }
        assert!(process.is_usable(), "so many may wait");
        process.send(ToEgress::Pull { exchange });
        task.await.expect("no panic");
        assert!(!process.is_usable() && process.has_failed());
        let (_, text) = egress.describe(true);
        assert!(text.contains("it does not read its channel"), "{text}");
        drop(socket);
    }

    #[tokio::test]
    async fn a_process_with_exchanges_that_does_not_respond_is_given_up() {
        let (egress, process, mut socket, task) = process();
        let exchanges = Arc::new(Exchanges::default());
        process.add(&exchanges, 1).expect("a number");
        process.send(ToEgress::Pull { exchange: 1 });
        let began = Instant::now();
        // It replies to so many pings, and then hangs.
        for _ in 0..3 {
            loop {
                let length = socket.read_u32_le().await.expect("a message") as usize;
                let mut message = vec![0; length];
                socket.read_exact(&mut message).await.expect("the whole message");
                if codec::decode::<ToEgress>(&message).expect("an order") == ToEgress::Ping {
                    break;
                }
            }
            let pong = codec::encode(&FromEgress::Pong, EGRESS_MESSAGE_BYTES).expect("a message");
            socket.write_u32_le(pong.len() as u32).await.expect("written");
            socket.write_all(&pong).await.expect("written");
        }
        task.await.expect("no panic");
        assert!(!process.is_usable() && process.has_failed());
        let (could_start, text) = egress.describe(true);
        assert!(could_start && text.starts_with("not running, failed at 20"), "{text}");
        assert!(text.contains("Z: it does not respond; started by this daemon"), "{text}");
        assert!(began.elapsed() >= PING * (3 + EGRESS_PINGS_LOST), "not while it replied");
    }
}
