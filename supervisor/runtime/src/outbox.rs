//! Messages to a worker, in order. A worker that does not read blocks the outbox, never its owner task.

use super::memory::Reservation;
use std::collections::VecDeque;
use std::future::Future;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use vm_system_protocol::worker::ToWorker;
use vm_system_spawn::{WorkerChannelError, WorkerSender};

type Sending = Pin<Box<dyn Future<Output = (WorkerSender, Result<(), WorkerChannelError>)> + Send>>;

/// Waiting messages at which nothing more is received from the worker.
const QUEUE: usize = 16;

/// The queue of a correct worker is short: a job, a host reply, an acknowledgement, the end. From a worker that makes calls
/// and does not read the replies nothing is received until it reads.
pub(super) struct Outbox {
    sender: Option<WorkerSender>,
    sending: Option<Sending>,
    queue: VecDeque<(ToWorker, Option<OwnedFd>)>,
    reservation: Reservation,
}

impl Outbox {
    /// `reservation` is released whenever everything is sent.
    pub(super) fn new(sender: WorkerSender, reservation: Reservation) -> Self {
        Self { sender: Some(sender), sending: None, queue: VecDeque::new(), reservation }
    }

    /// Whether the queue is full and nothing may be received from the worker.
    pub(super) fn is_behind(&self) -> bool {
        self.queue.len() >= QUEUE
    }

    /// Sends the message now if the socket accepts it, later if not. The error of a failed send comes from
    /// [`Outbox::drive`].
    pub(super) fn push(&mut self, message: ToWorker) -> Option<WorkerChannelError> {
        self.push_with(message, None)
    }

    /// As [`Outbox::push`], with a descriptor.
    pub(super) fn push_with(&mut self, message: ToWorker, fd: Option<OwnedFd>) -> Option<WorkerChannelError> {
        self.queue.push_back((message, fd));
        match self.drive(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(error) => Some(error),
            Poll::Pending => None,
        }
    }

    /// Continues to send; resolves only with an error, after which nothing more is sent.
    pub(super) fn drive(&mut self, context: &mut Context<'_>) -> Poll<WorkerChannelError> {
        loop {
            if let Some(sending) = &mut self.sending {
                let Poll::Ready((sender, result)) = sending.as_mut().poll(context) else {
                    return Poll::Pending;
                };
                self.sending = None;
                if let Err(error) = result {
                    self.queue.clear();
                    return Poll::Ready(error);
                }
                self.sender = Some(sender);
            }
            let Some((message, fd)) = self.queue.pop_front() else {
                self.reservation.give_back();
                return Poll::Pending;
            };
            let Some(mut sender) = self.sender.take() else { return Poll::Pending };
            self.sending = Some(Box::pin(async move {
                let result = match fd {
                    Some(fd) => sender.send_with(message, fd).await,
                    None => sender.send_away(message).await,
                };
                (sender, result)
            }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Outbox, QUEUE};
    use crate::memory::Reservation;
    use std::future::poll_fn;
    use vm_system_protocol::hello::PROTOCOL;
    use vm_system_protocol::worker::ToWorker;
    use vm_system_spawn::WorkerSender;

    #[tokio::test]
    async fn nothing_is_received_from_a_worker_that_does_not_read() {
        let (ours, theirs) = vm_system_sandbox::socket::pair().expect("a pair of sockets");
        let mut outbox =
            Outbox::new(WorkerSender::on_socket(ours, PROTOCOL).expect("a socket"), Reservation::default());
        let mut sent = 0_u32;
        while !outbox.is_behind() {
            assert!(sent < 1_000_000, "the socket accepts everything");
            assert!(outbox.push(ToWorker::Shutdown).is_none());
            sent += 1;
        }
        assert_eq!(outbox.queue.len(), QUEUE);
        let reader = std::thread::spawn(move || {
            let mut buffer = [0_u8; 4_096];
            for _ in 0..sent {
                nix::unistd::read(&theirs, &mut buffer).expect("a message");
            }
            theirs
        });
        poll_fn(|context| {
            let failed = outbox.drive(context).is_ready();
            assert!(!failed);
            if outbox.is_behind() { std::task::Poll::Pending } else { std::task::Poll::Ready(()) }
        })
        .await;
        poll_fn(|context| {
            let _ = outbox.drive(context);
            if outbox.sending.is_some() { std::task::Poll::Pending } else { std::task::Poll::Ready(()) }
        })
        .await;
        drop(reader.join().expect("the reader got everything"));
    }
}
