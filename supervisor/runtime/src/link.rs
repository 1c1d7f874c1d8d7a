//! A running worker and its channel, for both kinds of owner task. Knows no message and decides nothing.

use super::memory::Reservation;
use super::outbox::Outbox;
use super::owner_memory::OwnedMemory;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;
use tokio::time::Instant;
use vm_system_spawn::{
    Received, WorkerChannelError, WorkerExitStatus, WorkerHandle, WorkerProcess, WorkerReceiver,
};

type Exit = Pin<Box<dyn Future<Output = WorkerExitStatus> + Send>>;

/// A worker that its owner task sends to, receives from and waits for.
pub(super) struct WorkerLink {
    pub(super) process: WorkerProcess,
    pub(super) outbox: Outbox,
    receiver: WorkerReceiver,
    exited: Exit,
    /// Nothing more is received: only the exit follows.
    closed: bool,
    /// The time at which a closed channel is reported as a violation, if the worker has not exited by then: an exit closes the
    /// channel, too, so only a worker that goes on has closed it by itself.
    hang_up: Option<Instant>,
    last_received: LastReceived,
    /// The memory that the worker holds, which counts for its owner.
    pub(super) memory: OwnedMemory,
}

/// The exit follows the end of the channel within this time.
const EXIT_FOLLOWS: Duration = Duration::from_millis(500);

/// When the last message of a worker was received; shared with those who only inspect the worker.
#[derive(Debug, Clone)]
pub(super) struct LastReceived(Arc<Mutex<Instant>>);

impl LastReceived {
    fn now() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }

    fn update(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Time since the last message.
    pub(super) fn elapsed(&self) -> Duration {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }
}

/// An event on a link.
pub(super) enum LinkEvent {
    Received(Received),
    /// Nothing more will be received.
    ReceiveFailed(WorkerChannelError),
    /// Nothing more will be sent.
    SendFailed(WorkerChannelError),
    Exited(WorkerExitStatus),
}

impl WorkerLink {
    /// `reservation` is released whenever everything is sent.
    pub(super) fn new(handle: WorkerHandle, reservation: Reservation, memory: OwnedMemory) -> Self {
        let WorkerHandle { sender, receiver, process } = handle;
        let watched = process.clone();
        Self {
            process,
            outbox: Outbox::new(sender, reservation),
            receiver,
            exited: Box::pin(async move { watched.exited().await }),
            closed: false,
            hang_up: None,
            last_received: LastReceived::now(),
            memory,
        }
    }

    pub(super) fn last_received(&self) -> &LastReceived {
        &self.last_received
    }

    /// The next event; sends the outbox meanwhile. Messages are received if `receive` is set and the worker reads
    /// what is sent to it, and always before the exit. Cancel safe.
    pub(super) async fn next(&mut self, receive: bool) -> LinkEvent {
        loop {
            if let Some(until) = self.hang_up {
                let ended = tokio::time::timeout_at(until, self.process.ended()).await;
                self.hang_up = None;
                if ended.is_err() {
                    return LinkEvent::ReceiveFailed(WorkerChannelError::Closed);
                }
            }
            match self.next_event(receive).await {
                LinkEvent::ReceiveFailed(WorkerChannelError::Closed)
                | LinkEvent::SendFailed(WorkerChannelError::Closed) => self.hangs_up(),
                event => return event,
            }
        }
    }

    /// The worker's end of the channel is closed: [`Self::next`] finds out whether it has exited.
    pub(super) fn hangs_up(&mut self) {
        self.hang_up.get_or_insert_with(|| Instant::now() + EXIT_FOLLOWS);
    }

    /// The error of a failed send that the session's machine must know: not that the channel is closed, which [`Self::next`]
    /// reports.
    pub(super) fn send_failed(&mut self, error: WorkerChannelError) -> Option<WorkerChannelError> {
        if matches!(error, WorkerChannelError::Closed) {
            self.hangs_up();
            return None;
        }
        Some(error)
    }

    async fn next_event(&mut self, receive: bool) -> LinkEvent {
        let Self { outbox, receiver, exited, closed, last_received, .. } = self;
        let receive = receive && !*closed;
        let event = {
            // Created once for the whole wait: its registration with the reactor ends with it.
            let mut received = pin!(receiver.recv());
            poll_fn(move |context| {
                if let Poll::Ready(error) = outbox.drive(context) {
                    return Poll::Ready(LinkEvent::SendFailed(error));
                }
                if receive
                    && !outbox.is_behind()
                    && let Poll::Ready(result) = received.as_mut().poll(context)
                {
                    return Poll::Ready(match result {
                        Ok(message) => LinkEvent::Received(message),
                        Err(error) => LinkEvent::ReceiveFailed(error),
                    });
                }
                exited.as_mut().poll(context).map(LinkEvent::Exited)
            })
            .await
        };
        match &event {
            LinkEvent::Received(_) => last_received.update(),
            LinkEvent::ReceiveFailed(_) => *closed = true,
            LinkEvent::SendFailed(_) | LinkEvent::Exited(_) => {}
        }
        event
    }

    /// A message that a worker sent before its exit; none if there are no more, or none arrives in time.
    pub(super) async fn final_message(&mut self, until: Instant) -> Option<Received> {
        if self.closed {
            return None;
        }
        let received = tokio::time::timeout_at(until, self.receiver.recv()).await;
        self.closed = !matches!(received, Ok(Ok(_)));
        received.ok()?.ok()
    }
}

/// The next event of a link, if there is one.
pub(super) async fn next_event(link: Option<&mut WorkerLink>, receive: bool) -> LinkEvent {
    match link {
        Some(link) => link.next(receive).await,
        None => std::future::pending().await,
    }
}

/// A future that is under way, or none.
pub(super) async fn maybe<F: Future + Unpin>(future: Option<F>) -> F::Output {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}
