//! Following an execution without a gap: subscribe first, then read the store, then send newer events.

use super::client_memory::ReplyMemory;
use super::command::Command;
use super::facade::Runtime;
use super::followers::Batches;
use crate::shares::Share;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::model::{Event, Execution};
use vm_system_record::{PAGE_BYTES, is_last_page, weight_of_event};
use vm_system_store::StoreHandle;

/// Receives events in order, without a gap. A closed receiver ends the following, never the execution. What is on the way to the
/// client is reserved: a client that reads slowly waits for memory of its owner.
#[derive(Debug, Clone)]
pub struct Follower {
    sender: mpsc::Sender<FollowedBatch>,
    memory: ReplyMemory,
}

/// Events on the way to a client, with the reservation of their memory, which is to be kept until they are sent.
#[derive(Debug, Default)]
pub struct FollowedBatch {
    pub events: Vec<Event>,
    pub memory: Option<Share>,
}

/// The receiver of events is closed.
#[derive(Debug)]
pub struct FollowerClosed;

/// A follower and the batches that it gets, at most so many at a time.
pub fn follower(batches: usize, memory: ReplyMemory) -> (Follower, mpsc::Receiver<FollowedBatch>) {
    let (sender, receiver) = mpsc::channel(batches);
    (Follower { sender, memory }, receiver)
}

/// The bytes that a batch takes until it is sent, decoded or encoded.
fn weight(events: &[Event]) -> usize {
    2 * events.iter().map(weight_of_event).sum::<usize>()
}

impl Follower {
    /// Sends events that nobody else has, such as those read from the store: `page` is the reservation for them.
    pub async fn send_page(&self, events: Vec<Event>, page: Option<Share>) -> Result<(), FollowerClosed> {
        if let Some(page) = &page {
            page.reduce(weight(&events).div_ceil(1024).max(1));
        }
        self.sender.send(FollowedBatch { events, memory: page }).await.map_err(|_| FollowerClosed)
    }

    /// Sends a copy of events, when there is memory for it.
    pub async fn send(&self, events: &[Event]) -> Result<(), FollowerClosed> {
        let memory = tokio::select! {
            biased;
            () = self.sender.closed() => return Err(FollowerClosed),
            memory = self.memory.part(weight(events)) => memory,
        };
        self.sender.send(FollowedBatch { events: events.to_vec(), memory }).await.map_err(|_| FollowerClosed)
    }

    /// Reserves memory for a page of stored events before it is read.
    pub async fn page(&self) -> Result<Option<Share>, FollowerClosed> {
        tokio::select! {
            biased;
            () = self.sender.closed() => Err(FollowerClosed),
            page = self.memory.part(LARGEST_PAGE) => Ok(page),
        }
    }

    /// Resolves when the receiver is closed.
    pub async fn closed(&self) {
        self.sender.closed().await;
    }
}

/// Events read from the store at a time, for a follower.
pub const FOLLOWED_EVENTS: u32 = 1_000;
/// And their content (bytes); one event may be larger.
pub const FOLLOWED_BYTES: usize = 256 * 1024;
/// The reservation for a page while it is read (bytes): a large event, twice.
const LARGEST_PAGE: usize = PAGE_BYTES;

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
        self.gone |= self.follower.send(&events[newer..]).await.is_err();
    }

    async fn pass_page(&mut self, events: Vec<Event>, page: Option<Share>) {
        // They were read behind the last one.
        let Some(last) = events.last() else { return };
        self.last_seq = last.seq;
        self.gone |= self.follower.send_page(events, page).await.is_err();
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
            let Ok(page) = self.follower.page().await else {
                self.gone = true;
                break;
            };
            let events = store.some_events(execution, self.last_seq, FOLLOWED_EVENTS, FOLLOWED_BYTES).await?;
            let is_last = is_last_page(&events, FOLLOWED_EVENTS, FOLLOWED_BYTES);
            self.pass_page(events, page).await;
            if is_last {
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
        let store = self
            .session_of(execution)
            .map_or_else(|| self.store().clone(), |live| self.store().for_owner(&live.owner));
        let Some(mut batches) = self.subscribe(execution).await else {
            return self.durables().follow(execution, after_seq, follower).await;
        };
        let mut tail = EventTail::new(after_seq, follower);
        loop {
            // If the store cannot be read now, live events are still sent, and the reader sees the gap in their numbers.
            if let Err(error) = tail.stored(&store, execution).await {
                tracing::warn!(%execution, %error, "cannot read stored events");
            }
            tail.live(batches).await;
            if tail.gone {
                return Some(());
            }
            let Some(again) = self.subscribe(execution).await else {
                let _ = tail.stored(&store, execution).await;
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
