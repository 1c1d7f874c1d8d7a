//! A worker's channel: logical messages in both directions. The worker is hostile: every packet is checked before its
//! bytes are kept, and the first violation ends the channel for good.

use super::packets;
use super::worker_pool::Successor;
use crate::reactor::WatchedFd;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use vm_system_protocol::codec::{decode, encode};
use vm_system_protocol::limits::{HOST_MESSAGE_BYTES, MESSAGE_MS, WORKER_MESSAGE_BYTES, WRITE_MS};
use vm_system_protocol::packet::{Message, Reassembler, pieces};
use vm_system_protocol::since::{self, NotSpoken};
use vm_system_protocol::worker::{FromWorker, HostError, HostReply, ToWorker};

/// The channel has failed, unless the variant permits to continue.
#[derive(Debug, thiserror::Error)]
pub enum WorkerChannelError {
    /// The worker's end is closed: it has exited or is exiting ([`super::WorkerProcess::exited`] returns how).
    #[error("the worker closed its channel")]
    Closed,
    /// The worker broke the protocol, with the details.
    #[error("protocol violation: {0}")]
    Violation(String),
    /// The worker did not receive a message in time.
    #[error("the worker does not read its channel")]
    WriteTimeout,
    /// A message that had begun was not completed in time.
    #[error("the worker did not complete a message")]
    MessageTimeout,
    /// A message of ours is too large to be sent; the channel is unharmed.
    #[error("a message for the worker is too large: {0}")]
    TooLarge(String),
    /// The worker is of an older build and does not know a message of ours, which was not sent; the channel is unharmed.
    #[error(transparent)]
    NotSpoken(#[from] NotSpoken),
    /// The operating system refused.
    #[error("worker channel: {0}")]
    Io(io::Error),
}

/// The two halves of a channel after its handshake, to a worker that speaks this protocol version.
pub(super) fn split(socket: WatchedFd, protocol: u32) -> (WorkerSender, WorkerReceiver) {
    let socket = Arc::new(socket);
    let receiver = WorkerReceiver {
        socket: Arc::clone(&socket),
        incoming: Reassembler::new(WORKER_MESSAGE_BYTES),
        must_be_complete: None,
        successor: None,
    };
    (WorkerSender { socket, next_seq: 1, protocol }, receiver)
}

/// The two halves of a channel that another supervisor used: the queue may begin in the middle of a message of any number. The
/// session's machine checks the numbers.
pub(super) fn split_adopted(socket: WatchedFd, protocol: u32) -> (WorkerSender, WorkerReceiver) {
    let (sender, mut receiver) = split(socket, protocol);
    receiver.incoming.accept_any();
    (sender, receiver)
}

/// Sends messages to a worker.
#[derive(Debug)]
pub struct WorkerSender {
    socket: Arc<WatchedFd>,
    next_seq: u64,
    /// The protocol version that the worker speaks.
    protocol: u32,
}

impl WorkerSender {
    /// Sends one message; waits at most `WRITE_MS` for a worker that does not read. Not cancel safe: an incomplete
    /// message ends the channel.
    pub async fn send(&mut self, message: &ToWorker) -> Result<(), WorkerChannelError> {
        let bytes = self.encoded(message)?;
        self.write(&bytes).await
    }

    /// As [`WorkerSender::send`]; the message is dropped once it is encoded, so that it is in memory only once.
    pub async fn send_away(&mut self, message: ToWorker) -> Result<(), WorkerChannelError> {
        let bytes = self.encoded(&message)?;
        drop(message);
        self.write(&bytes).await
    }

    /// As [`WorkerSender::send_away`], with a descriptor in the message's first packet.
    pub async fn send_with(&mut self, message: ToWorker, fd: OwnedFd) -> Result<(), WorkerChannelError> {
        let bytes = self.encoded(&message)?;
        self.write_with(&bytes, Some(fd)).await
    }

    /// Encodes a message. One that an older worker does not know is not sent to it: the call fails whose reply it is.
    fn encoded(&self, message: &ToWorker) -> Result<Vec<u8>, WorkerChannelError> {
        let failed;
        let message = match (since::check(message, self.protocol), message) {
            (Ok(()), message) => message,
            (Err(unknown), ToWorker::HostReply { call, .. }) => {
                let error = HostError {
                    code: "EHOSTBUILD".to_owned(),
                    message: format!(
                        "the session's worker is of an older build than its supervisor: {unknown}"
                    ),
                };
                failed = ToWorker::HostReply { call: *call, reply: HostReply::Failed(error) };
                &failed
            }
            (Err(unknown), _) => return Err(unknown.into()),
        };
        encode(message, HOST_MESSAGE_BYTES).map_err(|error| WorkerChannelError::TooLarge(error.to_string()))
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), WorkerChannelError> {
        self.write_with(bytes, None).await
    }

    async fn write_with(&mut self, bytes: &[u8], mut fd: Option<OwnedFd>) -> Result<(), WorkerChannelError> {
        let seq = self.next_seq;
        self.next_seq += 1;
        let deadline = Instant::now() + Duration::from_millis(WRITE_MS);
        for (header, piece) in pieces(seq, bytes) {
            let beside = fd.take();
            let fds: Vec<BorrowedFd<'_>> = beside.iter().map(AsFd::as_fd).collect();
            packets::send(&self.socket, &[&header, piece], &fds, deadline).await.map_err(on_send)?;
        }
        Ok(())
    }
}

fn on_send(error: io::Error) -> WorkerChannelError {
    match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => WorkerChannelError::Closed,
        io::ErrorKind::TimedOut => WorkerChannelError::WriteTimeout,
        _ => WorkerChannelError::Io(error),
    }
}

impl WorkerSender {
    /// The sender of a channel without a handshake, for tests.
    #[doc(hidden)]
    pub fn on_socket(socket: OwnedFd, protocol: u32) -> io::Result<Self> {
        Ok(split(packets::register(socket)?, protocol).0)
    }
}

/// One message of a worker.
#[derive(Debug)]
pub struct Received {
    /// The sequence number, to be acknowledged once the message is committed.
    pub seq: u64,
    /// The message's length (bytes).
    pub bytes: u64,
    /// Hostile input.
    pub message: FromWorker,
}

/// Receives a worker's messages.
#[derive(Debug)]
pub struct WorkerReceiver {
    socket: Arc<WatchedFd>,
    incoming: Reassembler,
    /// Deadline of the incomplete message.
    must_be_complete: Option<Instant>,
    /// Dropped after this worker's first message: the next worker of its kind is prestarted.
    successor: Option<Successor>,
}

impl WorkerReceiver {
    /// Sets the value that is dropped after the worker's first message.
    pub(super) fn succeeded_by(&mut self, successor: Option<Successor>) {
        self.successor = successor;
    }

    /// The next message. Cancel safe.
    pub async fn recv(&mut self) -> Result<Received, WorkerChannelError> {
        loop {
            let incoming = &mut self.incoming;
            let packet = packets::receive(&self.socket, |got, bytes| {
                if got.len == 0 {
                    return Err(WorkerChannelError::Closed);
                }
                if got.truncated || !got.fds.is_empty() {
                    return Err(WorkerChannelError::Violation(
                        "a packet with descriptors or too long".to_owned(),
                    ));
                }
                incoming.push(bytes).map_err(|error| WorkerChannelError::Violation(error.to_string()))
            });
            let taken = match self.must_be_complete {
                None => packet.await,
                Some(deadline) => {
                    timeout_at(deadline, packet).await.map_err(|_| WorkerChannelError::MessageTimeout)?
                }
            };
            let message = match taken {
                Ok(taken) => taken?,
                Err(error) => return Err(WorkerChannelError::Io(error)),
            };
            if let Some(message) = message {
                self.must_be_complete = None;
                self.successor = None;
                return read(&message);
            }
            let in_time = Instant::now() + Duration::from_millis(MESSAGE_MS);
            self.must_be_complete = self.must_be_complete.or(Some(in_time));
        }
    }
}

fn read(message: &Message) -> Result<Received, WorkerChannelError> {
    match decode::<FromWorker>(&message.bytes) {
        Ok(value) => Ok(Received { seq: message.seq, bytes: message.bytes.len() as u64, message: value }),
        Err(error) => Err(WorkerChannelError::Violation(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::{WorkerChannelError, WorkerSender};
    use vm_system_protocol::codec::decode;
    use vm_system_protocol::hello::FIRST;
    use vm_system_protocol::limits::HOST_MESSAGE_BYTES;
    use vm_system_protocol::worker::{HostError, HostReply, ToWorker};

    /// All messages exist since the first version: a worker of a made-up version before it knows none.
    #[tokio::test]
    async fn worker_that_does_not_know_a_message_gets_the_failure_of_its_call_instead_or_nothing() {
        let (ours, theirs) = vm_system_sandbox::socket::pair().expect("a pair of sockets");
        let older = WorkerSender::on_socket(ours, FIRST - 1).expect("a socket");
        let refused = older.encoded(&ToWorker::Shutdown).expect_err("it does not know it");
        assert!(matches!(refused, WorkerChannelError::NotSpoken(_)), "{refused}");
        let reply = ToWorker::HostReply {
            call: 7,
            reply: HostReply::Failed(HostError { code: String::new(), message: String::new() }),
        };
        let bytes = older.encoded(&reply).expect("another message");
        drop(theirs);
        let ToWorker::HostReply { call: 7, reply: HostReply::Failed(error) } =
            decode(&bytes).expect("a message")
        else {
            panic!("it has no reply")
        };
        assert_eq!(error.code, "EHOSTBUILD");
        assert!(error.message.contains("of an older build"), "{}", error.message);
        assert!(bytes.len() < HOST_MESSAGE_BYTES);
    }
}
