//! One client from hello to disconnect: reads frames, starts requests, writes their responses.
//!
//! The end of the reading half ends the writing half, and vice versa: a client that breaks the protocol or does not read is
//! disconnected with a reason. Its requests in progress continue.

use super::frame::{self, FrameError};
use super::request::{self, Outgoing, QueuedFrame};
use super::{ControlLimits, ServerState};
use crate::accept::StartingConnection;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::future::Future;
use std::io::ErrorKind;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use vm_system_ops::{Caller, ClientPresence, IdempotencyKey, VerbHandler, VerbRequest};
use vm_system_protocol::control::{
    CONTROL_PROTOCOL, ClientFrame, ClientHello, ErrorCode, Op, OpError, ServerFrame, ServerHello,
};
use vm_system_runtime::shares::Share;
use vm_system_spawn::reactor::StreamReader;

/// Most frames that are queued for a client's socket.
const QUEUED_FRAMES: usize = 8;
/// Read buffer: the size of a usual request (bytes); larger ones are read without it.
const READ_BYTES: usize = 4_096;

/// Why a client was disconnected, for the log.
#[derive(Debug, thiserror::Error)]
pub(super) enum Disconnect {
    #[error("no hello in time")]
    NoHello,
    #[error("it left before its hello")]
    Left,
    #[error("it left before its replies")]
    HungUp,
    #[error(
        "the client (version {version:?}) uses control protocol {theirs}, this supervisor {CONTROL_PROTOCOL}"
    )]
    OtherProtocol { theirs: u32, version: String },
    #[error("refused: {0}")]
    Refused(String),
    #[error("idle, and its place is needed for another client")]
    Evicted,
    #[error("request id {0} is in use twice")]
    IdInUse(u32),
    #[error(transparent)]
    Frame(#[from] FrameError),
}

impl Disconnect {
    /// Whether clients leave like this: nothing is wrong.
    pub(super) fn is_usual(&self) -> bool {
        match self {
            Self::Evicted | Self::Left => true,
            other => other.is_by_client(),
        }
    }

    /// Whether the client has ended the connection, and not the supervisor, which may have done so because the client does not read.
    fn is_by_client(&self) -> bool {
        match self {
            Self::HungUp => true,
            // While a response was sent to it.
            Self::Frame(FrameError::Io(error)) => {
                matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset)
            }
            _ => false,
        }
    }
}

/// State that all connections share.
pub(super) struct ControlContext {
    pub(super) handler: Arc<dyn VerbHandler>,
    pub(super) limits: ControlLimits,
    pub(super) state: ServerState,
}

/// The half of a connection that reads.
pub(super) trait ClientReader: AsyncRead + Unpin {
    /// Resolves when a client that has finished to send does not read either.
    fn hung_up(&self) -> impl Future<Output = ()> + Send;
}

impl ClientReader for StreamReader {
    async fn hung_up(&self) {
        if let Err(error) = self.hung_up().await {
            tracing::debug!(%error, "a client that has finished to send is taken for one that has gone");
        }
    }
}

/// Refuses a peer: sends only a hello with the reason.
pub(super) async fn refuse<R, W>(
    mut reader: R,
    mut writer: W,
    limits: &ControlLimits,
    reason: String,
) -> Disconnect
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    match greet(&mut reader, &mut writer, limits, Some(reason.clone())).await {
        Err(disconnect) => disconnect,
        Ok(()) => Disconnect::Refused(reason),
    }
}

/// Serves one client until it disconnects (`Ok`) or must be disconnected.
pub(super) async fn serve<R, W>(
    shared: &ControlContext,
    (reader, mut writer): (R, W),
    caller: Caller,
    (slot, starting): (Arc<Share>, Option<StartingConnection>),
) -> Result<(), Disconnect>
where
    R: ClientReader,
    W: AsyncWrite + Unpin,
{
    let mut reader = BufReader::with_capacity(READ_BYTES, reader);
    greet(&mut reader, &mut writer, &shared.limits, None).await?;
    let (frames, queue) = mpsc::channel(QUEUED_FRAMES);
    let outgoing = Outgoing { frames, frame_bytes: shared.limits.frame_bytes };
    let presence = ClientPresence::default();
    let _finished = presence.finished.clone().drop_guard();
    let client = Client { shared, presence: presence.clone(), caller, active: Active::new(slot), outgoing };
    let ended =
        serve_requests(client, reader, write_all(writer, (queue, starting), shared.limits.write)).await;
    if ended.as_ref().is_err_and(Disconnect::is_by_client) {
        presence.gone.cancel();
    }
    ended
}

async fn serve_requests<R: ClientReader>(
    mut client: Client<'_>,
    mut reader: BufReader<R>,
    write: impl Future<Output = Result<(), Disconnect>>,
) -> Result<(), Disconnect> {
    let (shared, finished) = (client.shared, client.presence.finished.clone());
    tokio::pin!(write);
    let read = tokio::select! {
        ended = &mut write => return ended,
        ended = client.read_all(&mut reader) => {
            finished.cancel();
            ended.map(|()| true)
        }
        () = shared.state.hang_up.cancelled() => Ok(false),
    };
    let has_finished = read?;
    // The client has closed its sending side, or the server hangs up: requests in progress still get their replies, but
    // streams that follow an execution are stopped, because the client can no longer stop them.
    client.active.unfollow_all();
    drop(client);
    tokio::select! {
        biased;
        ended = write => ended,
        () = reader.get_ref().hung_up(), if has_finished => Err(Disconnect::HungUp),
    }
}

/// Characters of a client's version in the log.
const VERSION_CHARS: usize = 64;
/// Largest hello (bytes): bounds the memory of a client that is not accepted yet.
const HELLO_BYTES: usize = 4 * 1024;

async fn greet<R, W>(
    reader: &mut R,
    writer: &mut W,
    limits: &ControlLimits,
    refusal: Option<String>,
) -> Result<(), Disconnect>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let hello = timeout(limits.hello, frame::read::<ClientHello, _>(reader, HELLO_BYTES, limits.frame))
        .await
        .map_err(|_| Disconnect::NoHello)??
        .ok_or(Disconnect::Left)?;
    let other_protocol = hello.protocol != CONTROL_PROTOCOL;
    let refusal = if other_protocol {
        Some(format!(
            "the supervisor uses control protocol {CONTROL_PROTOCOL}, the client {}",
            hello.protocol
        ))
    } else {
        refusal
    };
    let reply = ServerHello {
        protocol: CONTROL_PROTOCOL,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        refusal: refusal.clone(),
    };
    let bytes = frame::encode(&reply, limits.frame_bytes).map_err(FrameError::Codec)?;
    frame::write(writer, &bytes, limits.write).await?;
    if other_protocol {
        let version = hello.version.chars().take(VERSION_CHARS).collect();
        return Err(Disconnect::OtherProtocol { theirs: hello.protocol, version });
    }
    refusal.map_or(Ok(()), |reason| Err(Disconnect::Refused(reason)))
}

async fn write_all<W>(
    mut writer: W,
    (mut queue, starting): (mpsc::Receiver<QueuedFrame>, Option<StartingConnection>),
    deadline: std::time::Duration,
) -> Result<(), Disconnect>
where
    W: AsyncWrite + Unpin,
{
    // Until the first reply is sent.
    let mut starting = starting;
    while let Some(queued) = queue.recv().await {
        frame::write(&mut writer, &queued.bytes, deadline).await?;
        drop(starting.take());
    }
    Ok(())
}

struct Client<'a> {
    shared: &'a ControlContext,
    presence: ClientPresence,
    caller: Caller,
    active: Active,
    outgoing: Outgoing,
}

impl Client<'_> {
    async fn read_all<R: AsyncRead + Unpin>(&mut self, reader: &mut R) -> Result<(), Disconnect> {
        let limits = &self.shared.limits;
        let holder = self.caller.holder();
        loop {
            // A frame waits for memory unread; so do those behind it.
            let reserve = |bytes| {
                let (memory, holder) = (&self.shared.state.memory, &holder);
                async move { memory.request(holder, bytes).await.map_err(FrameError::NoMemory) }
            };
            let read = frame::read_reserved(reader, limits.frame_bytes, limits.frame, reserve).await?;
            let Some((frame, memory)) = read else { break };
            match frame {
                ClientFrame::Request { id, idempotency_key, cancel_on_disconnect, op } => {
                    self.request((id, idempotency_key), (op, cancel_on_disconnect), memory).await?;
                }
                ClientFrame::Unfollow { id } => self.active.unfollow(id),
            }
        }
        Ok(())
    }

    async fn request(
        &mut self,
        (id, idempotency_key): (u32, Option<String>),
        (op, cancel_on_disconnect): (Op, bool),
        request_memory: Option<Share>,
    ) -> Result<(), Disconnect> {
        let memory = self.shared.state.memory.reply(self.caller.holder());
        let idempotency_key = match self.accept(idempotency_key.as_deref()) {
            Ok(key) => key,
            Err(refusal) => {
                let reply = ServerFrame::Reply { id, result: Err(Box::new(refusal)) };
                // The writing half notices a disconnected client.
                let _ = self.outgoing.reply(reply, &memory).await;
                return Ok(());
            }
        };
        let stream = if op.follows() {
            match self.shared.state.streams.take(&self.caller.holder()) {
                Ok(share) => Some(share),
                Err(refusal) => {
                    let reply = ServerFrame::Reply { id, result: Err(Box::new(refusal.into())) };
                    let _ = self.outgoing.reply(reply, &memory).await;
                    return Ok(());
                }
            }
        } else {
            None
        };
        let unfollow = self.active.begin(id).ok_or(Disconnect::IdInUse(id))?;
        let caller = self.caller.clone();
        let presence = ClientPresence { cancel_on_disconnect, ..self.presence.clone() };
        let request = VerbRequest { caller, idempotency_key, op, events: None, memory, presence };
        let (handler, outgoing) = (Arc::clone(&self.shared.handler), self.outgoing.clone());
        let active = self.active.clone();
        self.shared.state.requests.spawn(async move {
            request::run(handler, id, request, outgoing, (unfollow, stream), || active.end(id)).await;
            drop(request_memory);
            active.finished();
        });
        Ok(())
    }

    /// The key of a request that is accepted, if it has one.
    fn accept(&self, idempotency_key: Option<&str>) -> Result<Option<IdempotencyKey>, OpError> {
        if self.shared.state.closing.is_cancelled() {
            return Err(OpError::new(ErrorCode::ShuttingDown, "the supervisor is stopping"));
        }
        let key = idempotency_key.map(IdempotencyKey::parse).transpose()?;
        if self.active.count() >= self.shared.limits.requests {
            let message = format!("{} requests of this client are in progress", self.shared.limits.requests);
            return Err(OpError::new(ErrorCode::CapacityExceeded, message).with_hint("wait for a reply"));
        }
        Ok(key)
    }
}

/// The requests of one client. While there is one, the connection is not idle; requests in progress keep the share of a connection
/// that was closed.
#[derive(Clone)]
struct Active {
    requests: Arc<Mutex<Requests>>,
    slot: Arc<Share>,
}

#[derive(Default)]
struct Requests {
    /// The requests without a reply, each with the token that ends its stream of events.
    open: HashMap<u32, CancellationToken>,
    /// The number of requests whose reply is not queued yet.
    in_progress: usize,
}

impl Active {
    fn new(slot: Arc<Share>) -> Self {
        Self { requests: Arc::default(), slot }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Requests> {
        // The table is consistent after every statement that holds the lock.
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, id: u32) -> Option<CancellationToken> {
        let mut requests = self.lock();
        let unfollow = match requests.open.entry(id) {
            Entry::Occupied(_) => return None,
            Entry::Vacant(entry) => entry.insert(CancellationToken::new()).clone(),
        };
        requests.in_progress += 1;
        self.slot.busy();
        Some(unfollow)
    }

    /// The id of a request is free.
    fn end(&self, id: u32) {
        self.lock().open.remove(&id);
    }

    /// The reply of a request is queued.
    fn finished(&self) {
        let mut requests = self.lock();
        requests.in_progress -= 1;
        if requests.in_progress == 0 {
            self.slot.idle();
        }
    }

    fn unfollow(&self, id: u32) {
        if let Some(token) = self.lock().open.get(&id) {
            token.cancel();
        }
    }

    fn unfollow_all(&self) {
        self.lock().open.values().for_each(CancellationToken::cancel);
    }

    fn count(&self) -> usize {
        self.lock().open.len()
    }
}
