//! Wakes those who wait for events of a session when something of it was committed. Knows neither the events nor the clients.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use vm_system_protocol::ids::SessionId;

/// The sessions that clients wait for.
#[derive(Debug, Default)]
pub(super) struct SessionWatches {
    sessions: Mutex<HashMap<SessionId, Watched>>,
    /// Their number, so that a commit that nobody waits for takes no lock.
    count: AtomicUsize,
}

#[derive(Debug, Default)]
struct Watched {
    notify: Arc<Notify>,
    watches: usize,
}

/// Waits for commits about one session, until it is dropped.
#[derive(Debug)]
pub struct SessionWatch {
    session: SessionId,
    notify: Arc<Notify>,
    of: Arc<SessionWatches>,
}

impl SessionWatch {
    /// Resolves after the next commit; enable it before the query whose result may be outdated.
    pub fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.notify.notified()
    }
}

impl Drop for SessionWatch {
    fn drop(&mut self) {
        let mut sessions = self.of.lock();
        if let Entry::Occupied(mut watched) = sessions.entry(self.session) {
            watched.get_mut().watches -= 1;
            if watched.get().watches == 0 {
                watched.remove();
            }
        }
        self.of.count.store(sessions.len(), Ordering::Release);
    }
}

impl SessionWatches {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Watched>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn watch(self: &Arc<Self>, session: SessionId) -> SessionWatch {
        let mut sessions = self.lock();
        let watched = sessions.entry(session).or_default();
        watched.watches += 1;
        let notify = Arc::clone(&watched.notify);
        self.count.store(sessions.len(), Ordering::Release);
        SessionWatch { session, notify, of: Arc::clone(self) }
    }

    /// Whether a client waits for any session.
    pub(super) fn is_used(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    pub(super) fn changed(&self, session: SessionId) {
        if let Some(watched) = self.lock().get(&session) {
            watched.notify.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SessionWatches;
    use std::sync::Arc;
    use vm_system_protocol::ids::SessionId;

    #[tokio::test]
    async fn only_those_who_wait_for_the_session_are_woken_and_nothing_is_left_of_them() {
        let watches = Arc::new(SessionWatches::default());
        let (one, other) = (SessionId::from_bytes([1; 16]), SessionId::from_bytes([2; 16]));
        assert!(!watches.is_used());
        let (first, second, third) = (watches.watch(one), watches.watch(one), watches.watch(other));
        let mut woken = [Box::pin(first.changed()), Box::pin(second.changed()), Box::pin(third.changed())];
        let enabled: Vec<bool> = woken.iter_mut().map(|changed| changed.as_mut().enable()).collect();
        assert_eq!(enabled, [false; 3]);
        watches.changed(one);
        let enabled: Vec<bool> = woken.iter_mut().map(|changed| changed.as_mut().enable()).collect();
        assert_eq!(enabled, [true, true, false]);
        drop(woken);
        drop((first, second));
        assert!(watches.is_used() && watches.lock().len() == 1);
        drop(third);
        assert!(!watches.is_used() && watches.lock().is_empty());
    }
}
