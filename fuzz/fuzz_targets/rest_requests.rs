//! Input of a client to the REST API, MCP over HTTP included: any bytes on a connection get responses, and a server that still
//! responds. The verbs refuse everything.
#![cfg_attr(fuzzing, no_main)]

use std::sync::{Arc, OnceLock};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use vm_system_api::control::{OwnUser, PeerPolicy, ServerState};
use vm_system_api::rest::{EndedSessions, Listeners, RestLimits, RestOptions, SessionKey, TokenBook, serve};
use vm_system_fuzz::verbs::NoVerbs;

struct Server {
    runtime: tokio::runtime::Runtime,
    folder: tempfile::TempDir,
}

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let folder = tempfile::tempdir().expect("a folder");
        let unix = std::os::unix::net::UnixListener::bind(folder.path().join("s")).expect("a socket");
        let own = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(folder.path()).expect("ours"));
        let options = RestOptions {
            tokens: Arc::new(TokenBook::empty()),
            peers: PeerPolicy::new(OwnUser::Person(own), 65_533, None),
            require_token: false,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            ui: None,
            limits: RestLimits::default(),
            session_key: SessionKey::default(),
            ended_sessions: EndedSessions::default(),
        };
        let listeners = Listeners { unix: vec![unix], tcp: Vec::new() };
        let inside = runtime.enter();
        let serving = serve(listeners, Arc::new(NoVerbs), options, ServerState::default());
        runtime.spawn(serving.expect("a listener's thread"));
        drop(inside);
        Server { runtime, folder }
    })
}

async fn exchange(path: &std::path::Path, bytes: &[u8]) -> Vec<u8> {
    let stream = UnixStream::connect(path).await.expect("the server accepts");
    let (mut read, mut write) = stream.into_split();
    let mut response = Vec::new();
    let send = async {
        // The server may close first.
        let _ = write.write_all(bytes).await;
        let _ = write.shutdown().await;
        drop(write);
    };
    let receive = async {
        let _ = read.read_to_end(&mut response).await;
    };
    tokio::join!(send, receive);
    response
}

vm_system_fuzz::fuzz_target!(|data: &[u8]| {
    let Server { runtime, folder } = server();
    let path = folder.path().join("s");
    runtime.block_on(async {
        exchange(&path, data).await;
        let health = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        let response = exchange(&path, health).await;
        assert!(response.starts_with(b"HTTP/1.1 "), "no response: {response:?}");
    });
});
