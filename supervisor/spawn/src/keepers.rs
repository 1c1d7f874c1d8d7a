//! The keepers of all jails that this process has started or adopted, until they have exited: at a final stop none may be left, not even
//! a stopped one, and no address of one.

use crate::address::KeeperAddress;
use crate::reactor::exit_of;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use vm_system_sandbox::pidfd::PidFd;

/// Shared by the jails of one process; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct LiveKeepers(Arc<Mutex<Vec<LiveKeeper>>>);

#[derive(Debug)]
struct LiveKeeper {
    process: PidFd,
    address: Option<KeeperAddress>,
}

impl LiveKeepers {
    pub(super) fn add(&self, process: PidFd, address: Option<KeeperAddress>) {
        let mut keepers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        keepers.retain(|keeper| keeper.process.is_alive());
        keepers.push(LiveKeeper { process, address });
    }

    /// Waits for the exits of all keepers, with everything in their jails; kills those that have not exited in time.
    pub async fn end(&self, patience: Duration) {
        let keepers = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let until = Instant::now() + patience;
        for LiveKeeper { process, address } in keepers {
            if timeout_at(until, ended(&process)).await.is_err() {
                tracing::warn!(
                    pid = process.pid().ok(),
                    "a keeper does not end; it is killed with its workers"
                );
                let _ = process.kill();
                // SIGKILL ends a stopped process, too.
                ended(&process).await;
            }
            // The last part of its jail may be dropped only after this process has exited.
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
