//! Who wants to see events as they are committed. A follower that is too slow is let go, and reads the store instead:
//! nobody's reading speed holds up a session.

use std::sync::Arc;
use tokio::sync::mpsc;
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::model::Event;

/// Batches that may wait for a follower.
const BEHIND: usize = 128;

pub(super) type Batches = mpsc::Receiver<Arc<[Event]>>;

pub(super) fn channel() -> (mpsc::Sender<Arc<[Event]>>, Batches) {
    mpsc::channel(BEHIND)
}

/// The followers of one session.
#[derive(Debug, Default)]
pub(super) struct Followers(Vec<(ExecutionId, mpsc::Sender<Arc<[Event]>>)>);

impl Followers {
    /// The stream ends with the execution, or when its reader is too slow.
    pub(super) fn add(&mut self, execution: ExecutionId, follower: mpsc::Sender<Arc<[Event]>>) {
        // Those of executions that were refused, and those who went away.
        self.0.retain(|(_, follower)| !follower.is_closed());
        self.0.push((execution, follower));
    }

    pub(super) fn publish(&mut self, execution: ExecutionId, events: &Arc<[Event]>) {
        self.0.retain(|(wanted, follower)| {
            *wanted != execution || follower.try_send(Arc::clone(events)).is_ok()
        });
    }

    pub(super) fn end(&mut self, execution: ExecutionId) {
        self.0.retain(|(wanted, _)| *wanted != execution);
    }
}
