//! Following executions of programs: committed events are sent to the followers. A follower may wait for months while its
//! execution waits, and uses only its entry in this table.

use super::Durables;
use super::live::lock;
use crate::follow::{EventTail, Follower};
use crate::followers::{self, Batches, Followers};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::model::{Event, ExecutionKind};
use vm_system_record::{Scope, Write};

/// Time until a failed read of the store is retried.
const AGAIN: Duration = Duration::from_secs(1);

/// The part of a stored batch that followers get.
#[derive(Debug, Default)]
pub(super) struct News {
    events: Vec<Arc<[Event]>>,
    ends: bool,
}

impl News {
    pub(super) fn of_batch(batch: &[Write]) -> Self {
        let mut news = Self::default();
        for write in batch {
            match write {
                Write::Events(events) => news.events.push(Arc::clone(events)),
                Write::ExecutionEnded(_) => news.ends = true,
                _ => {}
            }
        }
        news
    }
}

/// The followers by execution.
#[derive(Debug, Default)]
pub(super) struct Following(Mutex<Followers>);

impl Following {
    fn add(&self, execution: ExecutionId) -> Batches {
        let (sender, batches) = followers::channel();
        lock(&self.0).add(execution, sender);
        batches
    }

    /// A batch of this execution is stored.
    pub(super) fn notify(&self, execution: ExecutionId, news: &News) {
        if news.events.is_empty() && !news.ends {
            return;
        }
        let mut followers = lock(&self.0);
        for events in &news.events {
            followers.publish(execution, events);
        }
        if news.ends {
            followers.end(execution);
        }
    }
}

impl Durables {
    /// Sends the events of an unfinished execution that are newer than `after_seq`, stored ones included, and returns
    /// when it has ended, the follower is closed, or the supervisor stops. `None`: there is no unfinished execution of a
    /// program with this id; everything is in the store.
    pub(crate) async fn follow(
        &self,
        execution: ExecutionId,
        after_seq: u64,
        follower: Follower,
    ) -> Option<()> {
        let mut tail = EventTail::new(after_seq, follower);
        let store = &self.shared.store;
        let mut is_first = true;
        loop {
            // First: events that are stored from now on are published, earlier ones are read from the store.
            let batches = self.following.add(execution);
            let record = match store.execution(&Scope::All, execution).await {
                Ok(record) => record,
                // An error of the read is not the end of the execution.
                Err(error) => {
                    tracing::warn!(%execution, %error, "cannot read whether it has ended");
                    tokio::select! {
                        () = tokio::time::sleep(AGAIN) => {}
                        () = self.stop.cancelled() => break,
                    }
                    if tail.is_gone() {
                        break;
                    }
                    continue;
                }
            };
            let store_of_owner =
                record.as_ref().map_or_else(|| store.clone(), |row| store.for_owner(&row.owner));
            let unfinished = record.is_some_and(|row| {
                row.execution.kind == ExecutionKind::Program && !row.execution.status.is_final()
            });
            if is_first && !unfinished {
                return None;
            }
            is_first = false;
            // If the store cannot be read now, the reader sees the gap in the numbers of later events.
            if let Err(error) = tail.stored(&store_of_owner, execution).await {
                tracing::warn!(%execution, %error, "cannot read stored events");
            }
            if !unfinished || tail.is_gone() {
                break;
            }
            tokio::select! {
                () = tail.live(batches) => {}
                () = self.stop.cancelled() => break,
            }
            if tail.is_gone() {
                break;
            }
            // The execution has ended, or the reader was too slow and continues from the store.
        }
        Some(())
    }
}
