//! The REST API's bounds with time limits of milliseconds: a server in this process, with a fake handler.

use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use vm_system_api::control::{OwnUser, PeerPolicy, ServerState};
use vm_system_api::rest::{self, EndedSessions, Listeners, RestLimits, RestOptions, TokenBook, UiDir};
use vm_system_ops::{VerbHandler, VerbRequest};
use vm_system_protocol::control::{ExecEvents, ExecGet, Health, HealthGet, Op, OpError, Reply, Verb as _};
use vm_system_protocol::ids::{ExecutionId, SessionId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{
    ConsoleLevel, Event, EventPayload, Execution, ExecutionKind, ExecutionStatus, Metrics,
};
use vm_system_protocol::time::Timestamp;
use vm_system_runtime::client_memory::ClientMemory;
use vm_system_runtime::shares::ShareLimits;
use vm_system_store::BoxFuture;
use vm_system_tests::PATIENCE;
use vm_system_tests::http::Http;

const HEALTH: &str = "/api/v1/health";
const EVENTS: &str = "/api/v1/executions/01010101-0101-0101-0101-010101010101/events";
const SSE: &[(&str, &str)] = &[("accept", "text/event-stream")];
const SHORT: Duration = Duration::from_millis(50);

/// Replies to health at once and to the summary never; the followed execution does not end.
#[derive(Default)]
struct Fake {
    /// Whether the execution sends events without a pause.
    floods: bool,
    requested: Notify,
    reader_left: Notify,
}

impl VerbHandler for Fake {
    fn handle(&self, request: VerbRequest) -> BoxFuture<'_, Result<Reply, OpError>> {
        Box::pin(async move {
            match request.op {
                Op::ExecGet(_) => Ok(ExecGet::any_reply(execution())),
                Op::ExecEvents(_) => {
                    let events = request.events.expect("a stream is followed");
                    if self.floods {
                        let mut seq = 1;
                        while events.send(&[event(seq)]).await.is_ok() {
                            seq += 1;
                        }
                    }
                    events.closed().await;
                    self.reader_left.notify_one();
                    Ok(ExecEvents::any_reply(Vec::new()))
                }
                Op::RuntimeSummaryGet(_) => {
                    self.requested.notify_one();
                    std::future::pending().await
                }
                _ => Ok(HealthGet::any_reply(Health {
                    status: "ok".to_owned(),
                    memory: "normal".to_owned(),
                    largest_owner: None,
                    database: None,
                    stuck: None,
                })),
            }
        })
    }
}

fn execution() -> Execution {
    Execution {
        id: ExecutionId::from_bytes([1; 16]),
        session_id: SessionId::from_bytes([2; 16]),
        kind: ExecutionKind::Repl,
        input: None,
        path: None,
        args: JsonText::empty_object(),
        env: JsonText::empty_object(),
        status: ExecutionStatus::Running,
        started_at: Timestamp(0),
        ended_at: None,
        result: None,
        error: None,
        metrics: Metrics::default(),
        degraded: false,
        events: None,
        owner: None,
    }
}

fn event(seq: u64) -> Event {
    let payload = EventPayload::console(ConsoleLevel::Log, "x".repeat(10_000));
    Event { execution_id: ExecutionId::from_bytes([1; 16]), seq, ts: Timestamp(0), payload }
}

/// A server in a temporary folder.
struct Scene {
    runtime: tokio::runtime::Runtime,
    fake: Arc<Fake>,
    state: ServerState,
    serving: tokio::task::JoinHandle<()>,
    socket: PathBuf,
    _folder: tempfile::TempDir,
}

impl Scene {
    fn new(limits: RestLimits, fake: Fake) -> Self {
        Self::with_files(limits, fake, &[])
    }

    /// A server with a web UI of these files.
    fn with_files(limits: RestLimits, fake: Fake, files: &[(&str, usize)]) -> Self {
        let folder = tempfile::tempdir().expect("folder");
        for (name, bytes) in files {
            std::fs::write(folder.path().join(name), vec![b'x'; *bytes]).expect("a file");
        }
        let ui = (!files.is_empty()).then(|| UiDir::open(folder.path()).expect("a folder"));
        let socket = folder.path().join("http.sock");
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let (fake, state) =
            (Arc::new(fake), ServerState::new(ShareLimits::at_most(1), ClientMemory::default()));
        // Sockets and tasks are created inside the runtime.
        let serving = {
            let _inside = runtime.enter();
            let unix = UnixListener::bind(&socket).expect("a socket");
            let options = RestOptions {
                tokens: Arc::new(TokenBook::empty()),
                peers: PeerPolicy::new(OwnUser::Person(nix::unistd::geteuid().as_raw()), 4_711, None),
                require_token: false,
                allowed_hosts: Vec::new(),
                allowed_origins: Vec::new(),
                ui,
                limits,
                session_key: [0; 32],
                ended_sessions: EndedSessions::default(),
            };
            let listeners = Listeners { unix: vec![unix], tcp: Vec::new() };
            let serving = rest::serve(listeners, fake.clone(), options, state.clone());
            tokio::spawn(serving.expect("a listener's thread"))
        };
        Self { runtime, fake, state, serving, socket, _folder: folder }
    }

    fn http(&self) -> Http {
        Http::unix(&self.socket)
    }

    fn wait(&self, what: &str, event: impl Future<Output = ()>) {
        let waited = self.runtime.block_on(async { tokio::time::timeout(PATIENCE, event).await });
        assert!(waited.is_ok(), "{what}");
    }
}

#[test]
fn incomplete_heads_and_idle_connections_are_closed() {
    let scene = Scene::new(RestLimits { head: SHORT, ..RestLimits::default() }, Fake::default());
    let mut silent = scene.http();
    let mut half = scene.http();
    half.send(b"GET /api/v1/health HTTP/1.1\r\nHost: loc");
    let mut idle = scene.http();
    assert_eq!(idle.get(HEALTH).status, 200);
    assert!(silent.ends(), "it sent nothing");
    assert!(half.response(false).is_none_or(|response| response.status == 408), "it sent half of a head");
    assert!(idle.ends(), "it was served and then sent nothing");
}

#[test]
fn a_request_without_its_body_is_refused() {
    let scene = Scene::new(RestLimits { body: SHORT, ..RestLimits::default() }, Fake::default());
    let mut http = scene.http();
    let head = "POST /api/v1/templates HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{";
    http.send(head.as_bytes());
    let response = http.response(false).expect("a response");
    assert_eq!((response.status, response.code().as_str()), (408, "INVALID_REQUEST"));
    assert!(http.ends(), "the rest of the body would be parsed as a request");
}

#[test]
fn a_reader_that_reads_nothing_is_disconnected() {
    let limits = RestLimits { write: SHORT, ..RestLimits::default() };
    let scene = Scene::new(limits, Fake { floods: true, ..Fake::default() });
    let mut lazy = scene.http();
    lazy.send(&lazy.request_bytes("GET", EVENTS, SSE, None));
    scene.wait("the lazy reader is disconnected", scene.fake.reader_left.notified());
}

#[test]
fn a_silent_stream_sends_heartbeats_and_the_readers_disconnect_is_noticed() {
    let limits = RestLimits { heartbeat: SHORT, ..RestLimits::default() };
    let scene = Scene::new(limits, Fake::default());
    let mut reader = scene.http();
    reader.send(&reader.request_bytes("GET", EVENTS, SSE, None));
    assert_eq!(reader.head().expect("a head").0, 200);
    assert_eq!(reader.chunk().expect("the first"), b"retry: 1000\n\n");
    assert_eq!(reader.chunk().expect("a heartbeat"), b":\n\n");
    let second = scene.http().request("GET", EVENTS, SSE, None);
    assert_eq!((second.status, second.code().as_str()), (503, "CAPACITY_EXCEEDED"));
    assert_eq!(second.field("retry-after"), Some("1"));
    drop(reader);
    scene.wait("the reader has left", scene.fake.reader_left.notified());
}

#[test]
fn idle_connections_are_closed_for_new_ones_and_busy_ones_are_not() {
    let scene = Scene::new(
        RestLimits { connections: ShareLimits::at_most(2), ..RestLimits::default() },
        Fake::default(),
    );
    let (mut first, mut second) = (scene.http(), scene.http());
    assert_eq!(first.get(HEALTH).status, 200);
    assert_eq!(second.get(HEALTH).status, 200);
    let mut third = scene.http();
    assert_eq!(third.get(HEALTH).status, 200);
    assert!(first.ends(), "the one that was idle longest is closed");
    for busy in [&mut second, &mut third] {
        busy.send(&busy.request_bytes("GET", "/api/v1/runtime/summary", &[], None));
        scene.wait("requested", scene.fake.requested.notified());
    }
    let mut fourth = scene.http();
    let refused = fourth.response(false).expect("a response");
    assert_eq!((refused.status, refused.code().as_str()), (503, "CAPACITY_EXCEEDED"));
    // It is read until the client has read the response, so that a client that sends first gets it, too.
    let body = "x".repeat(2 << 20);
    let request = fourth.request_bytes("POST", "/api/v1/templates", &[], Some(&body));
    fourth.send_all(&request).expect("the request is read");
    assert!(fourth.ends());
}

#[test]
fn connections_that_read_public_files_are_closed_for_new_ones() {
    let limits = RestLimits { connections: ShareLimits::at_most(2), ..RestLimits::default() };
    let scene = Scene::with_files(limits, Fake::default(), &[("large.js", 16 << 20)]);
    let mut slow = [scene.http(), scene.http()];
    for reader in &mut slow {
        reader.send(&reader.request_bytes("GET", "/large.js", &[], None));
        assert_eq!(reader.head().expect("a head").0, 200);
    }
    assert_eq!(scene.http().get(HEALTH).status, 200, "they use all connections and do not read");
}

#[test]
fn closing_server_ends_idle_connections_and_streams_and_finishes_requests() {
    let scene = Scene::new(RestLimits::default(), Fake::default());
    let mut idle = scene.http();
    assert_eq!(idle.get(HEALTH).status, 200);
    let mut stream = scene.http();
    stream.send(&stream.request_bytes("GET", EVENTS, SSE, None));
    assert_eq!(stream.head().expect("a head").0, 200);
    assert!(stream.chunk().is_some());
    scene.state.closing.cancel();
    assert!(idle.ends());
    assert!(stream.chunk().is_none(), "the stream ends in good order");
    scene.state.requests.close();
    scene.wait("requests are over", scene.state.requests.wait());
    scene.state.hang_up.cancel();
    let ended = scene.runtime.block_on(async { tokio::time::timeout(PATIENCE, scene.serving).await });
    assert!(matches!(ended, Ok(Ok(()))));
}
