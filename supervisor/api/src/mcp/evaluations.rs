//! Evaluations in sessions that a client has begun. One that the client has cancelled occupies its session until it has ended: the
//! client's next request to the session waits for that instead of being refused.

use std::collections::HashMap;
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
pub(super) struct Evaluations(Mutex<HashMap<Uuid, Evaluation>>);

struct Evaluation {
    owner: Option<Owner>,
    cancelled: CancellationToken,
    ended: CancellationToken,
}

/// An evaluation that has not ended.
pub(super) struct RunningEvaluation<'a> {
    all: &'a Evaluations,
    id: Uuid,
}

impl Evaluations {
    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, Evaluation>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An evaluation that the client cancels with this token.
    pub(super) fn begin(&self, owner: Option<Owner>, cancelled: CancellationToken) -> RunningEvaluation<'_> {
        let id = Uuid::new_v4();
        self.lock().insert(id, Evaluation { owner, cancelled, ended: CancellationToken::new() });
        RunningEvaluation { all: self, id }
    }
}

impl RunningEvaluation<'_> {
    /// Waits until the owner's cancelled evaluations have ended; false if there are none, or if they do not end.
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
        !ends.is_empty() && timeout(END, all_end).await.is_ok()
    }
}

impl Drop for RunningEvaluation<'_> {
    fn drop(&mut self) {
        if let Some(evaluation) = self.all.lock().remove(&self.id) {
            evaluation.ended.cancel();
        }
    }
}
