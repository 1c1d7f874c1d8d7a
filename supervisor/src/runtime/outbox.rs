//! What is to be said to a worker, in order. A worker that does not read keeps the outbox busy, never its owner.

use super::room::Room;
use crate::spawn::{ChannelError, WorkerSender};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use vm_system_protocol::worker::ToWorker;

type Sending = Pin<Box<dyn Future<Output = (WorkerSender, Result<(), ChannelError>)> + Send>>;

/// The queue is short by the rules of the session: a job, a host reply, an acknowledgement, the end.
pub(super) struct Outbox {
    sender: Option<WorkerSender>,
    sending: Option<Sending>,
    queue: VecDeque<ToWorker>,
    room: Room,
}

impl Outbox {
    /// What `room` holds is given back whenever nothing is left to be said.
    pub(super) fn new(sender: WorkerSender, room: Room) -> Self {
        Self { sender: Some(sender), sending: None, queue: VecDeque::new(), room }
    }

    /// Says it now if the worker takes it at once, later if not. The error of a failed send comes from
    /// [`Outbox::drive`].
    pub(super) fn push(&mut self, message: ToWorker) -> Option<ChannelError> {
        self.queue.push_back(message);
        match self.drive(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(error) => Some(error),
            Poll::Pending => None,
        }
    }

    /// Goes on sending; resolves only with an error, after which nothing is sent any more.
    pub(super) fn drive(&mut self, context: &mut Context<'_>) -> Poll<ChannelError> {
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
            let Some(message) = self.queue.pop_front() else {
                self.room.give_back();
                return Poll::Pending;
            };
            let Some(mut sender) = self.sender.take() else { return Poll::Pending };
            self.sending = Some(Box::pin(async move {
                let result = sender.send_away(message).await;
                (sender, result)
            }));
        }
    }
}
