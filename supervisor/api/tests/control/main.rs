//! The control socket with real sockets and a scripted handler: clumsy, hostile and slow clients.

#![expect(clippy::unwrap_used, reason = "a failed unwrap ends the test with its line")]

mod fake;
mod robustness;
mod stopping;
mod streams;

use fake::{Client, Server};
use vm_system_protocol::control::{CONTROL_PROTOCOL, ErrorCode, ExecCancel, HealthGet};

fn get(execution: &str) -> ExecCancel {
    ExecCancel { execution: execution.to_owned() }
}

#[tokio::test]
async fn replies_come_in_order_of_completion_and_are_matched_by_their_ids() {
    let server = Server::start();
    let mut client = Client::connect(&server).await;
    client.request(7, get("gate")).await;
    client.request(8, HealthGet).await;
    let (id, result) = client.reply().await;
    assert!(id == 8 && result.is_ok());
    server.handler.open_gate();
    let (id, result) = client.reply().await;
    assert!(id == 7 && result.is_ok());
    client.request(7, HealthGet).await;
    assert_eq!(client.reply().await.0, 7, "an id with a reply is free again");
}

#[tokio::test]
async fn a_waiting_client_does_not_delay_another() {
    let server = Server::start();
    let mut waiting = Client::connect(&server).await;
    waiting.request(1, get("gate")).await;
    server.handler.waiting(1).await;
    let mut quick = Client::connect(&server).await;
    quick.request(1, HealthGet).await;
    assert!(quick.reply().await.1.is_ok());
    server.handler.open_gate();
    assert!(waiting.reply().await.1.is_ok());
}

#[tokio::test]
async fn caller_is_the_user_from_the_kernel_and_has_its_key() {
    let server = Server::start();
    let mut client = Client::connect(&server).await;
    client.request_with_key(1, HealthGet, Some("k1")).await;
    assert!(client.reply().await.1.is_ok());
    let uid = nix::unistd::geteuid();
    let seen = server.handler.seen();
    assert_eq!(seen[0].0.owner.as_str(), format!("uid:{uid}"));
    assert!(seen[0].0.admin);
    assert_eq!(seen[0].1.as_deref(), Some("k1"));
}

#[tokio::test]
async fn invalid_idempotency_keys_are_refused_before_the_verb_runs() {
    let server = Server::start();
    let mut client = Client::connect(&server).await;
    for key in ["", &"k".repeat(256)] {
        client.request_with_key(1, HealthGet, Some(key)).await;
        assert_eq!(client.reply().await.1.unwrap_err().code, ErrorCode::ValidationError);
    }
    assert!(server.handler.seen().is_empty());
}

#[tokio::test]
async fn another_protocol_version_is_refused_with_both_versions() {
    let server = Server::start();
    let mut client = Client::raw(&server).await;
    let hello = client.hello(CONTROL_PROTOCOL + 1).await.unwrap();
    assert_eq!(hello.protocol, CONTROL_PROTOCOL);
    let reason = hello.refusal.unwrap();
    let ours = format!("protocol {CONTROL_PROTOCOL},");
    assert!(reason.contains(&ours) && reason.ends_with(&(CONTROL_PROTOCOL + 1).to_string()), "{reason}");
    assert!(client.is_closed().await);
}

#[tokio::test]
async fn longest_idle_client_is_closed_for_a_new_one_and_busy_ones_are_not() {
    let server = Server::start();
    let mut clients = Vec::new();
    for _ in 0..fake::CONNECTIONS {
        clients.push(Client::connect(&server).await);
    }
    clients[0].request(1, HealthGet).await;
    assert!(clients[0].reply().await.1.is_ok());
    clients.push(Client::connect(&server).await);
    assert!(clients.remove(1).is_closed().await, "the others sent a request or came later");
    for client in &mut clients {
        client.request(1, get("gate")).await;
    }
    server.handler.waiting(fake::CONNECTIONS).await;
    let mut refused = Client::raw(&server).await;
    let reason = refused.hello(CONTROL_PROTOCOL).await.unwrap().refusal.unwrap();
    assert!(reason.contains("connections are in use") && reason.contains("[shares.connections]"), "{reason}");
    assert!(refused.is_closed().await);
    server.handler.open_gate();
    assert!(clients[0].reply().await.1.is_ok());
    // The server notices the end of a request in its own time.
    fake::wait_until(async || {
        Client::raw(&server).await.hello(CONTROL_PROTOCOL).await.is_some_and(|h| h.refusal.is_none())
    })
    .await;
}

#[tokio::test]
async fn requests_of_peers_that_the_policy_refuses_do_not_reach_the_handler() {
    let server = Server::refusing_us();
    let mut client = Client::raw(&server).await;
    let reason = client.hello(CONTROL_PROTOCOL).await.unwrap().refusal.unwrap();
    assert!(reason.contains("may not use this socket"), "{reason}");
    client.request(1, HealthGet).await;
    assert!(client.is_closed().await);
    assert!(server.handler.seen().is_empty());
}
