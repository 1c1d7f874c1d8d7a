//! Wakes executions without a request: those that run and have no owner task, which at a start of the supervisor are all that run, and
//! those that are due. The store says which; at most as many are taken at a time as workers can be started.

use super::Durables;
use super::hold::RunClaim;
use super::live::QueuedRequest;
use std::sync::Arc;
use std::time::Duration;
use vm_system_record::ClaimKind;

/// Time between two rounds of executions that run and have no owner task.
const AGAIN: Duration = Duration::from_secs(5);
/// Most executions that are taken at once.
const MOST: usize = 64;

pub(super) async fn run(durables: Arc<Durables>) {
    let stop = durables.stop.clone();
    tokio::select! {
        () = stop.cancelled() => {}
        () = forever(&durables) => {}
    }
}

async fn forever(durables: &Arc<Durables>) {
    // Independently: an expired task does not wait for all executions that a restart has to wake.
    tokio::join!(wake_running(durables), wake_due(durables));
}

async fn wake_running(durables: &Arc<Durables>) {
    loop {
        wake_all(durables, ClaimKind::OfEnded).await;
        tokio::time::sleep(AGAIN).await;
    }
}

async fn wake_due(durables: &Arc<Durables>) {
    loop {
        wake_all(durables, ClaimKind::Due).await;
        durables.shared.store.wakes().await;
    }
}

/// Takes executions until there are no more; stops at an error of the store.
async fn wake_all(durables: &Arc<Durables>, which: ClaimKind) {
    let (store, wakes) = (&durables.shared.store, &durables.wakes);
    loop {
        // Before the claim: what is taken is begun at once, and what cannot be begun is left to be taken.
        let Ok(first) = Arc::clone(wakes).acquire_owned().await else { return };
        let most = (1 + wakes.available_permits()).min(MOST);
        let Ok(claimed) = store.claim(which, u32::try_from(most).unwrap_or(1)).await else { return };
        let (is_last, mut first) = (claimed.len() < most, Some(first));
        for run in claimed {
            let permit = match first.take() {
                Some(permit) => Ok(permit),
                None => Arc::clone(wakes).acquire_owned().await,
            };
            let execution = run.execution;
            let claim = RunClaim::new(store.clone(), run);
            let Ok(permit) = permit else { return };
            // A task that takes no more requests lets the claim go.
            let _ = durables.hand_over(execution, None, QueuedRequest::wake(Some((permit, claim))));
        }
        if is_last {
            return;
        }
    }
}
