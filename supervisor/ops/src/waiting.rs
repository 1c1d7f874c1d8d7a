//! Who waits for executions in sessions, and what happens when the last one goes: a client may request that the execution is
//! cancelled then. Decides nothing about executions for which nobody has requested that, nor about programs, which outlive their clients.

use super::request::ClientPresence;
use super::{Caller, Ops};
use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use vm_system_protocol::ids::ExecutionId;

/// The name of the cancellation in the audit log.
const VERB: &str = "exec cancel-on-disconnect";
/// Time for a client whose connection broke to come back.
const RETURN: Duration = Duration::from_secs(2);

/// The requests that wait for executions, or follow them, and whose clients are there.
#[derive(Debug, Default)]
pub(super) struct WaitingRequests {
    /// Their number for each execution; none is 0.
    numbers: Mutex<HashMap<ExecutionId, usize>>,
    /// One of them has ended, or its client has gone.
    left: Notify,
}

/// Counts one request until it is dropped.
struct Waiting<'a> {
    all: &'a WaitingRequests,
    execution: ExecutionId,
}

impl WaitingRequests {
    fn lock(&self) -> MutexGuard<'_, HashMap<ExecutionId, usize>> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, execution: ExecutionId) -> Waiting<'_> {
        *self.lock().entry(execution).or_default() += 1;
        Waiting { all: self, execution }
    }

    fn is_any(&self, execution: ExecutionId) -> bool {
        self.lock().contains_key(&execution)
    }

    /// Resolves when nobody waits for an execution, and nobody has come back for it soon after.
    async fn until_nobody(&self, execution: ExecutionId) {
        loop {
            let mut left = pin!(self.left.notified());
            // Before the look at the table: a request that leaves between the two is noticed.
            left.as_mut().enable();
            if self.is_any(execution) {
                left.await;
                continue;
            }
            tokio::time::sleep(RETURN).await;
            if !self.is_any(execution) {
                return;
            }
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        if let Some(number) = all.get_mut(&self.execution) {
            *number -= 1;
            if *number == 0 {
                all.remove(&self.execution);
            }
        }
        drop(all);
        self.all.left.notify_waiters();
    }
}

impl Ops {
    /// Waits for something of an execution in a session. When the client goes meanwhile and has requested it, the execution is cancelled
    /// as soon as nobody else waits for it; the work is still waited for.
    pub(super) async fn unless_abandoned<T>(
        &self,
        (caller, presence): (&Caller, &ClientPresence),
        execution: ExecutionId,
        work: impl Future<Output = T>,
    ) -> T {
        let waiting = self.waiting.enter(execution);
        let mut work = pin!(work);
        tokio::select! {
            biased;
            result = &mut work => return result,
            () = presence.gone.cancelled() => drop(waiting),
        }
        if presence.cancel_on_disconnect {
            tokio::select! {
                biased;
                result = &mut work => return result,
                () = self.waiting.until_nobody(execution) => self.abandon(caller, execution).await,
            }
        }
        work.await
    }

    async fn abandon(&self, caller: &Caller, execution: ExecutionId) {
        match self.runtime.abandon_execution(execution).await {
            Ok(()) => {
                tracing::info!(%execution, owner = %caller.owner, "an execution is cancelled: its client has disconnected");
                self.line(&caller.owner, caller.api, VERB, execution.to_string(), "ok").await;
            }
            Err(error) => {
                tracing::warn!(%execution, %error, "an execution whose client has gone is not cancelled");
            }
        }
    }
}
