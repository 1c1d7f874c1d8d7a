//! Evaluations in sessions that a client has begun. One that the client has cancelled occupies its session until it has ended: the
//! client's next request to the session waits for that instead of being refused.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use vm_system_record::Owner;

/// Longest time in which a cancelled evaluation ends: its worker is killed before.
const END: Duration = Duration::from_secs(15);

/// The evaluations of all clients of one server.
#[derive(Default)]
pub(super) struct Evaluations {
    running: Mutex<HashMap<Uuid, Evaluation>>,
    /// Cancelled evaluations that have ended.
    cancelled_ends: AtomicU64,
}

struct Evaluation {
    owner: Option<Owner>,
    cancelled: CancellationToken,
    ended: CancellationToken,
}

/// An evaluation that has not ended.
pub(super) struct RunningEvaluation<'a> {
    all: &'a Evaluations,
    id: Uuid,
    /// Cancelled evaluations that had ended at its begin.
    earlier_ends: u64,
}

impl Evaluations {
    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, Evaluation>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An evaluation that the client cancels with this token.
    pub(super) fn begin(&self, owner: Option<Owner>, cancelled: CancellationToken) -> RunningEvaluation<'_> {
        let id = Uuid::new_v4();
        let earlier_ends = self.cancelled_ends.load(Ordering::SeqCst);
        self.lock().insert(id, Evaluation { owner, cancelled, ended: CancellationToken::new() });
        RunningEvaluation { all: self, id, earlier_ends }
    }
}

impl RunningEvaluation<'_> {
    /// After a refusal because the session is busy: waits until the owner's cancelled evaluations have ended. False if there are none,
    /// if none has ended since this one began, or if they do not end.
    pub(super) async fn after_cancelled(&self) -> bool {
        let ends: Vec<CancellationToken> = {
            let all = self.all.lock();
            let owner = all.get(&self.id).and_then(|own| own.owner.as_ref());
            let of_owner = all.iter().filter(|(id, one)| **id != self.id && one.owner.as_ref() == owner);
            of_owner
                .filter(|(_, one)| one.cancelled.is_cancelled())
                .map(|(_, one)| one.ended.clone())
                .collect()
        };
        let all_end = async {
            for end in &ends {
                end.cancelled().await;
            }
        };
        // One that occupied the session when the request was refused may have ended by now.
        let is_any = !ends.is_empty() || self.all.cancelled_ends.load(Ordering::SeqCst) != self.earlier_ends;
        is_any && timeout(END, all_end).await.is_ok()
    }
}

impl Drop for RunningEvaluation<'_> {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        if let Some(evaluation) = all.remove(&self.id) {
            // Under the lock: a reader sees the evaluation, or that it has ended.
            if evaluation.cancelled.is_cancelled() {
                self.all.cancelled_ends.fetch_add(1, Ordering::SeqCst);
            }
            drop(all);
            evaluation.ended.cancel();
        }
    }
}
