//! The jail that an owner's workers are started in: one for all owners, or (`keeper_per_owner`) one for each, started on first use
//! and given up when it is not used for a while. A jail that is given up ends with its last worker.

use super::jails::Jails;
use super::registry::Registry;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::time::Instant;
use vm_system_record::Owner;
use vm_system_spawn::{SpawnConfig, SpawnError};

/// Most jails of owners that are kept for their next worker.
const MOST: usize = 64;
/// A jail without a request for this long is given up.
const IDLE: Duration = Duration::from_mins(10);
/// How often idle jails are searched.
const SWEEP: Duration = Duration::from_mins(1);

/// The jails of all owners.
#[derive(Debug)]
pub(super) struct OwnerJails {
    /// Of all owners. Where each has its own, this one runs nothing: it shows at the start that jails can be built.
    common: Arc<Jails>,
    registry: Arc<Registry>,
    /// `None`: owners have no jails of their own.
    own: Option<Mutex<HashMap<Owner, Slot>>>,
}

#[derive(Debug)]
struct Slot {
    /// Empty until the jail is built; requests of the same owner wait for that, others do not.
    jails: Arc<OnceCell<Arc<Jails>>>,
    last_used: Instant,
}

impl OwnerJails {
    /// Builds the first jail; without one the supervisor does not start.
    pub(super) async fn start(
        config: SpawnConfig,
        keeper_per_owner: bool,
        registry: Arc<Registry>,
    ) -> Result<Arc<Self>, SpawnError> {
        let common = Jails::start(config, Arc::clone(&registry)).await?;
        let own = keeper_per_owner.then(Mutex::default);
        let jails = Arc::new(Self { common, registry, own });
        if keeper_per_owner {
            tokio::spawn(sweep(Arc::downgrade(&jails)));
        }
        Ok(jails)
    }

    /// The jail of all owners, or an empty one.
    pub(super) fn common(&self) -> &Arc<Jails> {
        &self.common
    }

    /// The jail of an owner.
    pub(super) async fn jails_of(&self, owner: &Owner) -> Result<Arc<Jails>, SpawnError> {
        let Some(own) = &self.own else { return Ok(Arc::clone(&self.common)) };
        let jails = {
            let mut own = lock(own);
            if !own.contains_key(owner) && own.len() >= MOST {
                let oldest =
                    own.iter().min_by_key(|(_, slot)| slot.last_used).map(|(owner, _)| owner.clone());
                oldest.and_then(|oldest| own.remove(&oldest)).iter().for_each(Slot::give_up);
            }
            let slot = own
                .entry(owner.clone())
                .or_insert_with(|| Slot { jails: Arc::default(), last_used: Instant::now() });
            slot.last_used = Instant::now();
            Arc::clone(&slot.jails)
        };
        let start = || {
            let config =
                SpawnConfig { owner: Some(owner.as_str().to_owned()), ..self.common.config().clone() };
            Jails::start(config, Arc::clone(&self.registry))
        };
        jails.get_or_try_init(start).await.cloned()
    }

    /// Ends all jails.
    pub(super) async fn shutdown(&self, deadline: Duration) {
        let own = self.own.as_ref().map(|own| std::mem::take(&mut *lock(own))).unwrap_or_default();
        let mut ends = tokio::task::JoinSet::new();
        for jails in own.into_values().filter_map(|slot| slot.jails.get().cloned()) {
            ends.spawn(async move { jails.shutdown(deadline).await });
        }
        self.common.shutdown(deadline).await;
        ends.join_all().await;
    }
}

impl Slot {
    fn give_up(&self) {
        if let Some(jails) = self.jails.get() {
            jails.give_up();
        }
    }
}

fn lock(own: &Mutex<HashMap<Owner, Slot>>) -> MutexGuard<'_, HashMap<Owner, Slot>> {
    // No code panics while holding it.
    own.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives up idle jails, until the runtime is dropped.
async fn sweep(jails: Weak<OwnerJails>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        let Some(jails) = jails.upgrade() else { return };
        if let Some(own) = &jails.own {
            for (_, slot) in lock(own).extract_if(|_, slot| slot.last_used.elapsed() > IDLE) {
                slot.give_up();
            }
        }
    }
}
