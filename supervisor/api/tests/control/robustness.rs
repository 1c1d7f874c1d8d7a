//! Clients that break the protocol are disconnected, without an effect on others.

use crate::fake::{self, Client, Server};
use crate::get;
use std::sync::atomic::Ordering;
use tokio::io::AsyncWriteExt as _;
use vm_system_protocol::control::{CONTROL_PROTOCOL, ClientHello, ErrorCode, Op, ServerHello};

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
    server.answers().await;
}

#[tokio::test]
async fn a_silent_client_is_closed_in_time() {
    let server = Server::start();
    assert!(Client::raw(&server).await.is_closed().await);
    server.answers().await;
}

#[tokio::test]
async fn half_a_frame_is_waited_for_so_long_and_no_longer() {
    let server = Server::start();
    let mut slow = Client::connect(&server).await;
    slow.send_bytes(&[100, 0, 0, 0, 1, 2, 3]).await;
    assert!(slow.is_closed().await);
    let mut gone = Client::connect(&server).await;
    gone.send_bytes(&[100, 0]).await;
    gone.stream.shutdown().await.unwrap();
    assert!(gone.is_closed().await);
    server.answers().await;
}

#[tokio::test]
async fn an_announced_giant_is_refused_before_it_comes() {
    let server = Server::start();
    for len in [u32::MAX, fake::FRAME_BYTES as u32 + 1] {
        let mut client = Client::connect(&server).await;
        client.send_bytes(&len.to_le_bytes()).await;
        assert!(client.is_closed().await);
    }
    server.answers().await;
}

#[tokio::test]
async fn a_greeting_is_small() {
    let server = Server::start();
    let mut client = Client::raw(&server).await;
    client.send(&ClientHello { protocol: CONTROL_PROTOCOL, version: "x".repeat(5_000) }).await;
    assert_eq!(client.receive::<ServerHello>().await, None);
    server.answers().await;
}

#[tokio::test]
async fn random_bytes_behind_the_hello_harm_nobody() {
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
    server.answers().await;
}

#[tokio::test]
async fn an_id_in_use_twice_ends_the_connection() {
    let server = Server::start();
    let mut client = Client::connect(&server).await;
    client.request(1, get("gate")).await;
    client.request(1, Op::Health).await;
    assert!(client.is_closed().await);
    server.handler.open_gate();
    server.answers().await;
}

#[tokio::test]
async fn too_many_requests_at_a_time_are_answered_and_not_done() {
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
async fn a_bug_in_a_verb_is_that_requests_error_and_nothing_else() {
    let server = Server::start();
    let mut client = Client::connect(&server).await;
    client.request(1, get("panic")).await;
    assert_eq!(client.reply().await.1.unwrap_err().code, ErrorCode::Internal);
    client.request(2, Op::Health).await;
    assert!(client.reply().await.1.is_ok());
}

#[tokio::test]
async fn an_answer_that_fits_no_frame_becomes_an_error_that_says_so() {
    let server = Server::start();
    let mut client = Client::connect(&server).await;
    client.request(1, Op::TemplateGet { template: (2 * fake::FRAME_BYTES).to_string() }).await;
    let error = client.reply().await.1.unwrap_err();
    assert_eq!(error.code, ErrorCode::Internal);
    assert!(error.message.contains("does not fit") && error.hint.is_some());
    client.request(2, Op::TemplateGet { template: (fake::FRAME_BYTES - 100).to_string() }).await;
    assert!(client.reply().await.1.is_ok());
}

#[tokio::test]
async fn a_client_that_leaves_does_not_stop_what_it_asked_for() {
    let server = Server::start();
    let mut client = Client::connect(&server).await;
    client.request(1, get("gate")).await;
    server.handler.waiting(1).await;
    drop(client);
    server.answers().await;
    server.handler.open_gate();
    fake::until(async || server.handler.finished.load(Ordering::SeqCst) == 2).await;
}
