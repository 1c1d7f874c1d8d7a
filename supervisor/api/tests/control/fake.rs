//! A server with a scripted handler, and a client that can break the protocol.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::sync::Semaphore;
use vm_system_api::control::{self, ControlLimits, OwnUser, PeerPolicy, ServerState, frame};
use vm_system_ops::{Caller, ClientPresence, VerbHandler, VerbRequest};
use vm_system_protocol::codec::{Decode, Encode};
use vm_system_protocol::control::{
    BackupPart, ClientFrame, ClientHello, ErrorCode, ExecCancel, ExecEvents, Health, HealthGet, Op, OpError,
    Reply, ServerFrame, ServerHello, Verb as _,
};
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::model::{ConsoleLevel, Event, EventPayload};
use vm_system_protocol::time::Timestamp;
use vm_system_runtime::shares::ShareLimits;
use vm_system_store::BoxFuture;

pub(crate) const CONNECTIONS: usize = 8;
pub(crate) const REQUESTS: usize = 4;
pub(crate) const FRAME_BYTES: usize = 1 << 20;
/// The server's deadlines for a client that does not send or read.
pub(crate) const PATIENCE: Duration = Duration::from_millis(100);
/// Longest wait of a test for an expected event.
const DEADLINE: Duration = Duration::from_secs(20);
const CAP: usize = 16 << 20;

/// Waits until a condition holds.
pub(crate) async fn wait_until(mut holds: impl AsyncFnMut() -> bool) {
    let mut ticks = tokio::time::interval(Duration::from_millis(1));
    let polling = async {
        while !holds().await {
            ticks.tick().await;
        }
    };
    tokio::time::timeout(DEADLINE, polling).await.expect("the condition never held");
}

/// A handler with one scripted behaviour for each verb.
pub(crate) struct Fake {
    seen: Mutex<Vec<(Caller, Option<String>)>>,
    gate: Semaphore,
    waiting: AtomicUsize,
    presence: Mutex<ClientPresence>,
    /// Events that the server has accepted from an endless stream.
    pub(crate) streamed: AtomicU64,
    /// Finished requests.
    pub(crate) finished: AtomicUsize,
}

impl Fake {
    pub(crate) fn seen(&self) -> Vec<(Caller, Option<String>)> {
        self.seen.lock().unwrap().clone()
    }

    /// Whether the client of the last request besides `Health` has gone.
    pub(crate) fn is_client_gone(&self) -> bool {
        self.presence.lock().unwrap().gone.is_cancelled()
    }

    pub(crate) fn open_gate(&self) {
        self.gate.add_permits(100);
    }

    /// Waits until `count` requests wait at the gate.
    pub(crate) async fn waiting(&self, count: usize) {
        wait_until(async || self.waiting.load(Ordering::SeqCst) == count).await;
    }

    async fn pass_gate(&self) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let _permit = self.gate.acquire().await.unwrap();
    }

    async fn reply(&self, request: VerbRequest) -> Result<Reply, OpError> {
        match request.op {
            Op::HealthGet(_) => Ok(HealthGet::any_reply(Health {
                status: "ok".to_owned(),
                memory: "normal".to_owned(),
                largest_owner: None,
                database: None,
                stuck: None,
            })),
            Op::ExecCancel(cancel) if cancel.execution == "gate" => {
                self.pass_gate().await;
                Ok(ExecCancel::any_reply(()))
            }
            Op::ExecCancel(_) => panic!("a bug in a verb"),
            Op::ExecEvents(follow) => {
                let ExecEvents { execution, limit, .. } = *follow;
                let sender = request.events.expect("a followed request has a stream");
                let endless = execution == "endless";
                for seq in 1.. {
                    if !endless && seq > u64::from(limit) {
                        break;
                    }
                    if sender.send(&[event(seq)]).await.is_err() {
                        break;
                    }
                    self.streamed.fetch_add(1, Ordering::SeqCst);
                }
                Ok(ExecEvents::any_reply(Vec::new()))
            }
            Op::BackupPart(part) => Ok(BackupPart::any_reply(vec![b'x'; usize::try_from(part.at).unwrap()])),
            _ => Err(OpError::new(ErrorCode::NotFound, "no such thing")),
        }
    }
}

impl VerbHandler for Fake {
    fn handle(&self, request: VerbRequest) -> BoxFuture<'_, Result<Reply, OpError>> {
        Box::pin(async move {
            self.seen
                .lock()
                .unwrap()
                .push((request.caller.clone(), request.idempotency_key.as_ref().map(ToString::to_string)));
            if !matches!(request.op, Op::HealthGet(_)) {
                *self.presence.lock().unwrap() = request.presence.clone();
            }
            let result = self.reply(request).await;
            self.finished.fetch_add(1, Ordering::SeqCst);
            result
        })
    }
}

/// An event of some size.
fn event(seq: u64) -> Event {
    Event {
        execution_id: ExecutionId::from_bytes([7; 16]),
        seq,
        ts: Timestamp(0),
        payload: EventPayload::console(ConsoleLevel::Log, "x".repeat(4_000)),
    }
}

/// A server on a socket of its own.
pub(crate) struct Server {
    dir: tempfile::TempDir,
    pub(crate) handler: Arc<Fake>,
    pub(crate) state: ServerState,
    pub(crate) task: tokio::task::JoinHandle<()>,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::listen(PeerPolicy::new(OwnUser::Person(nix::unistd::geteuid().as_raw()), 65_533, None))
    }

    pub(crate) fn refusing_us() -> Self {
        let own = nix::unistd::geteuid().as_raw();
        Self::listen(PeerPolicy::new(OwnUser::Person(own + 1), own, None))
    }

    fn listen(peers: PeerPolicy) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let listener = std::os::unix::net::UnixListener::bind(dir.path().join("s")).unwrap();
        let handler = Arc::new(Fake {
            seen: Mutex::default(),
            gate: Semaphore::new(0),
            waiting: AtomicUsize::new(0),
            presence: Mutex::default(),
            streamed: AtomicU64::new(0),
            finished: AtomicUsize::new(0),
        });
        let limits = ControlLimits {
            connections: ShareLimits { reserved: 0, ..ShareLimits::at_most(CONNECTIONS) },
            requests: REQUESTS,
            frame_bytes: FRAME_BYTES,
            hello: PATIENCE,
            frame: PATIENCE,
            write: PATIENCE,
        };
        let state = ServerState::default();
        let serving = control::serve(listener, handler.clone(), peers, limits, state.clone()).unwrap();
        let task = tokio::spawn(serving);
        Self { dir, handler, state, task }
    }

    /// Checks that the server still responds.
    pub(crate) async fn is_responsive(&self) {
        let mut client = Client::connect(self).await;
        client.request(1, HealthGet).await;
        assert!(client.reply().await.1.is_ok());
    }
}

/// A client that can break the protocol.
pub(crate) struct Client {
    pub(crate) stream: UnixStream,
}

impl Client {
    /// Connects and sends nothing.
    pub(crate) async fn raw(server: &Server) -> Self {
        Self { stream: UnixStream::connect(server.dir.path().join("s")).await.unwrap() }
    }

    /// Connects and exchanges hello messages.
    pub(crate) async fn connect(server: &Server) -> Self {
        let mut client = Self::raw(server).await;
        let hello = client.hello(control_protocol()).await.expect("a greeting");
        assert_eq!(hello.refusal, None);
        client
    }

    pub(crate) async fn hello(&mut self, protocol: u32) -> Option<ServerHello> {
        self.send(&ClientHello { protocol, version: "test".to_owned() }).await;
        self.receive().await
    }

    pub(crate) async fn send<T: Encode>(&mut self, value: &T) {
        // The server may have closed the connection, which the next step of a test shows.
        let _ = self.stream.write_all(&frame::encode(value, CAP).unwrap()).await;
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
    }

    /// `None` once the server has closed.
    pub(crate) async fn receive<T: Decode<()> + Encode>(&mut self) -> Option<T> {
        frame::read(&mut self.stream, CAP, DEADLINE).await.ok().flatten()
    }

    pub(crate) async fn request(&mut self, id: u32, op: impl Into<Op>) {
        self.request_with_key(id, op, None).await;
    }

    pub(crate) async fn request_with_key(&mut self, id: u32, op: impl Into<Op>, key: Option<&str>) {
        let op = op.into();
        let idempotency_key = key.map(str::to_owned);
        self.send(&ClientFrame::Request { id, idempotency_key, cancel_on_disconnect: false, op }).await;
    }

    /// The next reply, which must come before any event.
    pub(crate) async fn reply(&mut self) -> (u32, Result<Reply, OpError>) {
        match tokio::time::timeout(DEADLINE, self.receive()).await.expect("a reply in time") {
            Some(ServerFrame::Reply { id, result }) => (id, result.map_err(|e| *e)),
            other => panic!("instead of a reply: {other:?}"),
        }
    }

    /// Waits for the server to close.
    pub(crate) async fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        let end = tokio::time::timeout(DEADLINE, self.stream.read_to_end(&mut rest)).await;
        // A reset is an end too: the server closed with unread data.
        end.is_ok()
    }
}

fn control_protocol() -> u32 {
    vm_system_protocol::control::CONTROL_PROTOCOL
}
