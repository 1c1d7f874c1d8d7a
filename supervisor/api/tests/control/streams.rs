//! Followed events: in order, bounded, ended by either side.

use crate::fake::{self, Client, Server};
use std::sync::atomic::Ordering;
use tokio::io::AsyncWriteExt as _;
use vm_system_protocol::control::{ClientFrame, ExecCancel, ExecEvents, HealthGet, ServerFrame};

fn follow(execution: &str, limit: u32) -> ExecEvents {
    ExecEvents { execution: execution.to_owned(), after_seq: 0, limit, follow: true }
}

#[tokio::test]
async fn events_come_in_order_and_before_the_reply() {
    let server = Server::start();
    let mut client = Client::connect(&server).await;
    client.request(5, follow("some", 500)).await;
    let mut expected = 1;
    loop {
        match client.receive().await.expect("the stream continues") {
            ServerFrame::Events { id: 5, events } => {
                for event in events {
                    assert_eq!(event.seq, expected);
                    expected += 1;
                }
            }
            ServerFrame::Reply { id: 5, result } => break assert!(result.is_ok()),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(expected, 501);
}

#[tokio::test]
async fn unfollow_ends_the_stream_with_a_reply() {
    let server = Server::start();
    let mut client = Client::connect(&server).await;
    client.request(5, follow("endless", 0)).await;
    assert!(matches!(client.receive().await, Some(ServerFrame::Events { id: 5, .. })));
    client.send(&ClientFrame::Unfollow { id: 5 }).await;
    client.send(&ClientFrame::Unfollow { id: 1_000 }).await;
    while let Some(frame) = client.receive::<ServerFrame>().await {
        if let ServerFrame::Reply { id: 5, result } = frame {
            assert!(result.is_ok());
            client.request(6, HealthGet).await;
            assert!(client.reply().await.1.is_ok());
            return;
        }
    }
    panic!("the connection ended without a reply");
}

#[tokio::test]
async fn a_client_that_does_not_read_is_disconnected_and_its_queue_is_bounded() {
    let server = Server::start();
    let mut client = Client::connect(&server).await;
    client.request(5, follow("endless", 0)).await;
    // The client never reads: the server accepts only as much as fits the socket and the queues.
    fake::wait_until(async || server.handler.finished.load(Ordering::SeqCst) == 1).await;
    let taken = server.handler.streamed.load(Ordering::SeqCst) * 4_000;
    assert!(taken < 4 << 20, "{taken} bytes were accepted for a client that reads nothing");
    assert!(!server.handler.is_client_gone(), "it may come back when it reads again");
    server.is_responsive().await;
}

#[tokio::test]
async fn a_slow_reader_does_not_delay_others() {
    let server = Server::start();
    let mut slow = Client::connect(&server).await;
    slow.request(5, follow("endless", 0)).await;
    let mut quick = Client::connect(&server).await;
    for id in 0..100 {
        quick.request(id, HealthGet).await;
        assert!(quick.reply().await.1.is_ok());
    }
    drop(slow);
}

#[tokio::test]
async fn a_client_that_disconnects_in_mid_stream_ends_its_stream() {
    let server = Server::start();
    let mut client = Client::connect(&server).await;
    client.request(5, follow("endless", 0)).await;
    assert!(matches!(client.receive().await, Some(ServerFrame::Events { .. })));
    assert!(!server.handler.is_client_gone());
    drop(client);
    fake::wait_until(async || server.handler.finished.load(Ordering::SeqCst) == 1).await;
    fake::wait_until(async || server.handler.is_client_gone()).await;
    server.is_responsive().await;
}

#[tokio::test]
async fn a_client_that_has_finished_to_send_is_gone_when_it_does_not_read_either() {
    let server = Server::start();
    let mut client = Client::connect(&server).await;
    client.request(1, ExecCancel { execution: "gate".to_owned() }).await;
    server.handler.waiting(1).await;
    client.stream.shutdown().await.unwrap();
    // By then the server has seen the end of its input.
    for _ in 0..10 {
        server.is_responsive().await;
    }
    assert!(!server.handler.is_client_gone());
    drop(client);
    fake::wait_until(async || server.handler.is_client_gone()).await;
}

#[tokio::test]
async fn after_a_half_close_replies_are_sent_and_endless_streams_stop() {
    let server = Server::start();
    let mut client = Client::connect(&server).await;
    client.request(1, HealthGet).await;
    client.request(5, follow("endless", 0)).await;
    client.stream.shutdown().await.unwrap();
    let mut replies = Vec::new();
    while let Some(frame) = client.receive::<ServerFrame>().await {
        if let ServerFrame::Reply { id, .. } = frame {
            replies.push(id);
        }
    }
    replies.sort_unstable();
    assert_eq!(replies, [1, 5]);
}
