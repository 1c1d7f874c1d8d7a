//! Clients that break the protocol are disconnected, without an effect on others.

use crate::fake::{self, Client, Server};
use crate::get;
use std::sync::atomic::Ordering;
use tokio::io::AsyncWriteExt as _;
use vm_system_protocol::control::{
    BackupPart, CONTROL_PROTOCOL, ClientHello, ErrorCode, HealthGet, ServerHello,
};

#[tokio::test]
async fn garbage_instead_of_a_hello_closes_the_connection() {
    let server = Server::start();
    let inputs: [&[u8]; 5] =
        [b"GET / HTTP/1.1\r\n\r\n", &[0xff; 64], &[0, 0, 0, 0], &[1, 0, 0, 0, 0xfe], &[2, 0, 0, 0, 251, 0]];
    for bytes in inputs {
        let mut client = Client::raw(&server).await;
        client.send_bytes(bytes).await;
        assert!(client.is_closed().await, "{bytes:?}");
    }
    server.is_responsive().await;
}

#[tokio::test]
async fn a_silent_client_is_closed_in_time() {
    let server = Server::start();
    assert!(Client::raw(&server).await.is_closed().await);
    server.is_responsive().await;
}

#[tokio::test]
async fn the_rest_of_a_frame_has_a_deadline() {
    let server = Server::start();
    let mut slow = Client::connect(&server).await;
    slow.send_bytes(&[100, 0, 0, 0, 1, 2, 3]).await;
    assert!(slow.is_closed().await);
    let mut gone = Client::connect(&server).await;
    gone.send_bytes(&[100, 0]).await;
    gone.stream.shutdown().await.unwrap();
    assert!(gone.is_closed().await);
    server.is_responsive().await;
}

#[tokio::test]
async fn a_frame_above_the_cap_is_refused_by_its_announced_length() {
    let server = Server::start();
    for len in [u32::MAX, fake::FRAME_BYTES as u32 + 1] {
        let mut client = Client::connect(&server).await;
        client.send_bytes(&len.to_le_bytes()).await;
        assert!(client.is_closed().await);
    }
    server.is_responsive().await;
}

#[tokio::test]
async fn a_large_hello_is_refused() {
    let server = Server::start();
    let mut client = Client::raw(&server).await;
    client.send(&ClientHello { protocol: CONTROL_PROTOCOL, version: "x".repeat(5_000) }).await;
    assert_eq!(client.receive::<ServerHello>().await, None);
    server.is_responsive().await;
}

#[tokio::test]
async fn random_bytes_after_the_hello_do_not_affect_others() {
    let server = Server::start();
    let mut random = vm_system_testkit::SeededRandom::new(1);
    for _ in 0..200 {
        let mut client = Client::raw(&server).await;
        client.hello(CONTROL_PROTOCOL).await;
        let mut bytes: Vec<u8> = (0..4).flat_map(|_| random.id()).collect();
        // A length that fits, so that the decoder is reached.
        bytes[..4].copy_from_slice(&60u32.to_le_bytes());
        client.send_bytes(&bytes).await;
        drop(client);
    }
    server.is_responsive().await;
}

#[tokio::test]
async fn an_id_in_use_twice_ends_the_connection() {
    let server = Server::start();
    let mut client = Client::connect(&server).await;
    client.request(1, get("gate")).await;
    client.request(1, HealthGet).await;
    assert!(client.is_closed().await);
    server.handler.open_gate();
    server.is_responsive().await;
}

#[tokio::test]
async fn requests_above_the_limit_are_refused_and_not_run() {
    let server = Server::start();
    let mut client = Client::connect(&server).await;
    for id in 0..fake::REQUESTS as u32 {
        client.request(id, get("gate")).await;
    }
    client.request(99, get("gate")).await;
    let (id, result) = client.reply().await;
    assert_eq!((id, result.unwrap_err().code), (99, ErrorCode::CapacityExceeded));
    server.handler.waiting(fake::REQUESTS).await;
    server.handler.open_gate();
    for _ in 0..fake::REQUESTS {
        assert!(client.reply().await.1.is_ok());
    }
}

#[tokio::test]
async fn a_panic_in_a_verb_is_only_that_requests_error() {
    let server = Server::start();
    let mut client = Client::connect(&server).await;
    client.request(1, get("panic")).await;
    assert_eq!(client.reply().await.1.unwrap_err().code, ErrorCode::Internal);
    client.request(2, HealthGet).await;
    assert!(client.reply().await.1.is_ok());
}

#[tokio::test]
async fn a_reply_too_large_for_a_frame_becomes_an_error_with_the_reason() {
    let server = Server::start();
    let mut client = Client::connect(&server).await;
    client.request(1, BackupPart { backup: String::new(), at: 2 * fake::FRAME_BYTES as u64 }).await;
    let error = client.reply().await.1.unwrap_err();
    assert_eq!(error.code, ErrorCode::Internal);
    assert!(error.message.contains("too large for a frame") && error.hint.is_some());
    client.request(2, BackupPart { backup: String::new(), at: fake::FRAME_BYTES as u64 - 100 }).await;
    assert!(client.reply().await.1.is_ok());
}

#[tokio::test]
async fn requests_continue_after_their_client_has_disconnected() {
    let server = Server::start();
    let mut client = Client::connect(&server).await;
    client.request(1, get("gate")).await;
    server.handler.waiting(1).await;
    drop(client);
    server.is_responsive().await;
    server.handler.open_gate();
    fake::wait_until(async || server.handler.finished.load(Ordering::SeqCst) == 2).await;
}
