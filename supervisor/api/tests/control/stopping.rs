//! Closing the server: no new requests, requests in progress get their replies, then all connections are closed.

use crate::fake::{Client, Server};
use crate::get;
use vm_system_protocol::control::{ErrorCode, HealthGet};

#[tokio::test]
async fn a_closing_server_refuses_new_requests_and_finishes_those_in_progress() {
    let server = Server::start();
    let mut client = Client::connect(&server).await;
    client.request(1, get("gate")).await;
    server.handler.waiting(1).await;
    server.state.closing.cancel();
    client.request(2, HealthGet).await;
    let (id, result) = client.reply().await;
    assert_eq!((id, result.unwrap_err().code), (2, ErrorCode::ShuttingDown));
    server.state.requests.close();
    server.handler.open_gate();
    server.state.requests.wait().await;
    server.state.hang_up.cancel();
    assert_eq!(client.reply().await.0, 1, "a reply that was queued before hanging up is written");
    assert!(client.is_closed().await);
    server.task.await.unwrap();
}

#[tokio::test]
async fn hanging_up_does_not_wait_for_a_request_that_never_ends() {
    let server = Server::start();
    let mut client = Client::connect(&server).await;
    client.request(1, get("gate")).await;
    server.handler.waiting(1).await;
    server.state.closing.cancel();
    server.state.hang_up.cancel();
    server.task.await.unwrap();
}
