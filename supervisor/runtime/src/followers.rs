//! The followers that get events as they are committed. A slow follower is dropped, and reads the store instead:
//! no reader delays a session.

use std::collections::HashMap;
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

/// The followers by execution: of a session, or of all programs.
#[derive(Debug, Default)]
pub(super) struct Followers {
    of: HashMap<ExecutionId, Vec<mpsc::Sender<Arc<[Event]>>>>,
    /// Followers added since closed ones were removed, and the number of followers at that time.
    added: usize,
    known: usize,
}

impl Followers {
    /// The stream ends with the execution, or when its reader is too slow.
    pub(super) fn add(&mut self, execution: ExecutionId, follower: mpsc::Sender<Arc<[Event]>>) {
        self.added += 1;
        if self.added > self.known {
            // Removes followers of refused executions and closed followers.
            self.of.retain(|_, followers| {
                followers.retain(|follower| !follower.is_closed());
                !followers.is_empty()
            });
            (self.added, self.known) = (0, self.of.values().map(Vec::len).sum());
        }
        self.of.entry(execution).or_default().push(follower);
    }

    pub(super) fn publish(&mut self, execution: ExecutionId, events: &Arc<[Event]>) {
        if let Some(followers) = self.of.get_mut(&execution) {
            followers.retain(|follower| follower.try_send(Arc::clone(events)).is_ok());
        }
    }

    pub(super) fn end(&mut self, execution: ExecutionId) {
        self.of.remove(&execution);
    }
}

#[cfg(test)]
mod tests {
    use super::{Followers, channel};
    use std::sync::Arc;
    use vm_system_protocol::ids::ExecutionId;

    #[test]
    fn closed_follower_is_removed_though_nothing_is_sent_to_it() {
        let mut followers = Followers::default();
        for n in 0..1_000_u128 {
            let (follower, _) = channel();
            followers.add(ExecutionId::from_bytes(n.to_be_bytes()), follower);
        }
        let stay: Vec<_> = (0..10_u8)
            .map(|n| {
                let (follower, batches) = channel();
                followers.add(ExecutionId::from_bytes([n; 16]), follower);
                batches
            })
            .collect();
        assert!(followers.of.len() <= 2 * (stay.len() + 1), "{}", followers.of.len());
        followers.publish(ExecutionId::from_bytes([3; 16]), &Arc::from([]));
        let notified: Vec<bool> = stay.into_iter().map(|mut batches| batches.try_recv().is_ok()).collect();
        assert_eq!(
            notified.iter().filter(|notified| **notified).count(),
            1,
            "one execution's followers are notified"
        );
        assert!(notified[3]);
    }
}
