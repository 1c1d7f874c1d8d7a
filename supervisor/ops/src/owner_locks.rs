//! One lock for each owner, held while a verb reads a template, decides and writes: changes of one owner's templates come one after the
//! other, and no owner waits for the commits of another.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::OwnedMutexGuard;
use vm_system_record::Owner;

/// The locks that are held or waited for.
#[derive(Default)]
pub(crate) struct OwnerLocks(Mutex<HashMap<Owner, Weak<tokio::sync::Mutex<()>>>>);

impl OwnerLocks {
    /// Waits until no other verb holds the lock of this owner.
    pub(crate) async fn lock(&self, owner: &Owner) -> OwnedMutexGuard<()> {
        self.lock_of(owner).lock_owned().await
    }

    fn lock_of(&self, owner: &Owner) -> Arc<tokio::sync::Mutex<()>> {
        let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = locks.get(owner).and_then(Weak::upgrade) {
            return lock;
        }
        // The table has as many locks as verbs are in progress: those that nobody holds go before one comes.
        locks.retain(|_, lock| lock.strong_count() > 0);
        let lock = Arc::default();
        locks.insert(owner.clone(), Arc::downgrade(&lock));
        lock
    }
}

#[cfg(test)]
mod tests {
    use super::OwnerLocks;
    use std::future::poll_fn;
    use std::task::Poll;
    use vm_system_record::Owner;

    #[tokio::test]
    async fn an_owner_waits_for_itself_alone_and_free_locks_are_forgotten() {
        let locks = OwnerLocks::default();
        let [a, b] = ["a", "b"].map(Owner::new);
        let held = locks.lock(&a).await;
        let mut waits = Box::pin(locks.lock(&a));
        assert!(poll_fn(|context| Poll::Ready(waits.as_mut().poll(context).is_pending())).await);
        drop(locks.lock(&b).await);
        drop(held);
        drop(waits.await);
        let _held = locks.lock(&b).await;
        assert_eq!(locks.0.lock().expect("nobody panics with it").len(), 1);
    }
}
