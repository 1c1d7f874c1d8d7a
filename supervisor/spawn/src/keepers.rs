//! The keepers of all jails that this process has started or adopted, until they have exited: at a final stop none may be left, not even
//! a stopped one.

use crate::reactor::exit_of;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use vm_system_sandbox::pidfd::PidFd;

/// Shared by the jails of one process; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct LiveKeepers(Arc<Mutex<Vec<PidFd>>>);

impl LiveKeepers {
    pub(super) fn add(&self, keeper: PidFd) {
        let mut keepers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        keepers.retain(PidFd::is_alive);
        keepers.push(keeper);
    }

    /// Waits for the exits of all keepers, with everything in their jails; kills those that have not exited in time.
    pub async fn end(&self, timeout: Duration) {
        let keepers = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let until = Instant::now() + timeout;
        for keeper in keepers {
            if timeout_at(until, ended(&keeper)).await.is_ok() {
                continue;
            }
            tracing::warn!(pid = keeper.pid().ok(), "a keeper does not end; it is killed with its workers");
            let _ = keeper.kill();
            // SIGKILL ends a stopped process, too.
            ended(&keeper).await;
        }
    }
}

async fn ended(keeper: &PidFd) {
    if let Err(error) = exit_of(keeper).await {
        tracing::error!(%error, "cannot watch the end of a keeper");
    }
}
