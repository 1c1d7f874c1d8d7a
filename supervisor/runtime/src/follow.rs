//! Following an execution without a gap: subscribe first, then read the store, then send newer events.

use super::facade::Runtime;
use super::followers::Batches;
use super::task::Command;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::model::{Event, Execution};
use vm_system_record::is_last_page;
use vm_system_store::StoreHandle;

/// Receives events in order, without a gap. A closed receiver ends the following, never the execution.
pub type Follower = mpsc::Sender<Vec<Event>>;

/// Events read from the store at a time.
const PAGE: u32 = 1_000;

/// Sends events that are newer than those sent before.
pub(super) struct EventTail {
    last_seq: u64,
    follower: Follower,
    gone: bool,
}

impl EventTail {
    pub(super) fn new(last_seq: u64, follower: Follower) -> Self {
        Self { last_seq, follower, gone: false }
    }

    async fn pass(&mut self, events: &[Event]) {
        let newer = events.partition_point(|event| event.seq <= self.last_seq);
        let Some(last) = events.last().filter(|_| newer < events.len()) else { return };
        self.last_seq = last.seq;
        self.gone |= self.follower.send(events[newer..].to_vec()).await.is_err();
    }

    /// Sends live events until the execution ends or the owner task drops a slow reader.
    pub(super) async fn live(&mut self, mut batches: Batches) {
        while !self.gone {
            tokio::select! {
                batch = batches.recv() => match batch {
                    Some(batch) => self.pass(&batch).await,
                    None => return,
                },
                // Checked also without events: the owner task must not wait for a closed reader.
                () = self.follower.closed() => self.gone = true,
            }
        }
    }

    /// Sends live events until the response. All events are published before the response is sent.
    pub(super) async fn live_until<T>(
        &mut self,
        mut batches: Batches,
        mut response: oneshot::Receiver<T>,
    ) -> Result<T, oneshot::error::RecvError> {
        loop {
            tokio::select! {
                biased;
                Some(batch) = batches.recv(), if !self.gone => self.pass(&batch).await,
                response = &mut response => {
                    while let Ok(batch) = batches.try_recv() {
                        self.pass(&batch).await;
                    }
                    return response;
                }
            }
        }
    }

    /// Whether the follower is closed.
    pub(super) fn is_gone(&self) -> bool {
        self.gone
    }

    /// Whether events of an ended execution were not sent.
    pub(super) fn is_behind(&self, record: &Execution) -> bool {
        !self.gone && self.last_seq < record.metrics.events
    }

    /// Sends newer events from the store.
    pub(super) async fn stored(
        &mut self,
        store: &StoreHandle,
        execution: ExecutionId,
    ) -> Result<(), vm_system_record::StoreError> {
        while !self.gone {
            let events = store.events(execution, self.last_seq, PAGE).await?;
            self.pass(&events).await;
            if is_last_page(&events, PAGE) {
                break;
            }
        }
        Ok(())
    }
}

impl Runtime {
    /// The implementation of [`super::RuntimeApi::follow`].
    pub(super) async fn follow_events(
        &self,
        execution: ExecutionId,
        after_seq: u64,
        follower: Follower,
    ) -> Option<()> {
        let Some(mut batches) = self.subscribe(execution).await else {
            return self.durables().follow(execution, after_seq, follower).await;
        };
        let mut tail = EventTail::new(after_seq, follower);
        loop {
            // If the store cannot be read now, live events are still sent, and the reader sees the gap in their numbers.
            if let Err(error) = tail.stored(self.store(), execution).await {
                tracing::warn!(%execution, %error, "cannot read stored events");
            }
            tail.live(batches).await;
            if tail.gone {
                return Some(());
            }
            let Some(again) = self.subscribe(execution).await else {
                let _ = tail.stored(self.store(), execution).await;
                return Some(());
            };
            // The reader was too slow: read from the store again.
            batches = again;
        }
    }

    async fn subscribe(&self, execution: ExecutionId) -> Option<Batches> {
        let live = self.session_of(execution)?;
        let (responder, response) = oneshot::channel();
        live.commands.send(Command::Follow { execution, responder }).await.ok()?;
        response.await.ok().flatten()
    }
}

/// Joins the events of a response.
pub(super) fn joined(batches: &[Arc<[Event]>]) -> Vec<Event> {
    batches.iter().flat_map(|batch| batch.iter().cloned()).collect()
}
