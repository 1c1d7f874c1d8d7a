//! The keepers of all jails that this process has started or adopted, until they have exited: at a final stop none may be left, not even
//! a stopped one.

use super::address::KeeperAddress;
use crate::reactor::exit_of;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use vm_system_sandbox::pidfd::PidFd;

/// Shared by the jails of one process; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct LiveKeepers(Arc<Mutex<Keepers>>);

#[derive(Debug, Default)]
struct Keepers {
    alive: Vec<LiveKeeper>,
    /// All of them are left to another supervisor, later ones too.
    left: bool,
}

#[derive(Debug)]
struct LiveKeeper {
    process: PidFd,
    /// Where it waits for another supervisor, if it does.
    address: Option<KeeperAddress>,
    /// The jail is left to another supervisor.
    left: Arc<AtomicBool>,
}

impl LiveKeepers {
    fn lock(&self) -> MutexGuard<'_, Keepers> {
        // No code panics while holding it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, process: PidFd, address: Option<KeeperAddress>, left: Arc<AtomicBool>) {
        let mut keepers = self.lock();
        left.store(keepers.left, Ordering::SeqCst);
        keepers.alive.retain(|keeper| keeper.process.is_alive());
        keepers.alive.push(LiveKeeper { process, address, left });
    }

    /// Leaves all jails to the next supervisor, as [`Spawner::leave`](crate::Spawner::leave) does with one.
    pub fn leave(&self) {
        let mut keepers = self.lock();
        keepers.left = true;
        for keeper in &keepers.alive {
            keeper.left.store(true, Ordering::SeqCst);
        }
    }

    /// Waits for the exits of all keepers, with everything in their jails; kills those that have not exited in time.
    pub async fn end(&self, timeout: Duration) {
        let keepers = std::mem::take(&mut self.lock().alive);
        let until = Instant::now() + timeout;
        for LiveKeeper { process: keeper, address, .. } in keepers {
            if timeout_at(until, ended(&keeper)).await.is_err() {
                tracing::warn!(
                    pid = keeper.pid().ok(),
                    "a keeper does not end; it is killed with its workers"
                );
                let _ = keeper.kill();
                // SIGKILL ends a stopped process, too.
                ended(&keeper).await;
            }
            // The task of its jail may not run any more.
            if let Some(address) = address {
                address.remove();
            }
        }
    }
}

async fn ended(keeper: &PidFd) {
    if let Err(error) = exit_of(keeper).await {
        tracing::error!(%error, "cannot watch the end of a keeper");
    }
}
