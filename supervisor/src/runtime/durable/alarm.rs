//! What goes on by itself: after a start of the supervisor everything that the store says has something to do, and at
//! any time the questions whose time is over. Only as many at a time as workers can be born.

use super::Durables;
use super::live::{Ask, Command};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::oneshot;
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::time::Timestamp;

/// Rows that are looked at in one turn.
const ROWS: u32 = 256;
/// What did not go on, for want of a worker or of the store, is tried again after this long.
const AGAIN: Duration = Duration::from_secs(5);
/// The store's clock and ours may differ by a little.
const LATE: Duration = Duration::from_millis(2);

pub(super) async fn run(durables: Arc<Durables>) {
    let stop = durables.stop.clone();
    tokio::select! {
        () = stop.cancelled() => {}
        () = forever(&durables) => {}
    }
}

async fn forever(durables: &Arc<Durables>) {
    // Each by itself: a question whose time is over does not wait behind everything that a restart has to wake.
    tokio::join!(run_what_runs(durables), expire_what_is_due(durables));
}

async fn run_what_runs(durables: &Arc<Durables>) {
    loop {
        everything_that_runs(durables).await;
        tokio::time::sleep(AGAIN).await;
    }
}

async fn expire_what_is_due(durables: &Arc<Durables>) {
    loop {
        let went_on = everything_that_is_due(durables).await;
        let pause = if went_on { until_next(durables).await } else { AGAIN };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = durables.alarm.notified() => {}
        }
    }
}

/// Wakes executions one by one as workers of others stand.
async fn wake(durables: &Arc<Durables>, execution: ExecutionId) -> bool {
    let Ok(turn) = Arc::clone(&durables.wakes).acquire_owned().await else { return false };
    let (answer, _) = oneshot::channel();
    let command = Command { ask: Ask::Wake, answer, turn: Some(turn) };
    durables.hand_over(execution, None, command).is_ok()
}

/// As far as the store answers.
async fn everything_that_runs(durables: &Arc<Durables>) {
    let mut after = ExecutionId::from_bytes([0; 16]);
    loop {
        let Ok(ids) = durables.shared.store.running_programs(after, ROWS).await else { return };
        let last = ids.last().copied();
        for id in ids {
            let id = ExecutionId::from_bytes(id);
            // One that has an owner goes on already.
            if !super::live::lock(&durables.live).contains_key(&id) {
                wake(durables, id).await;
            }
        }
        match last {
            Some(last) => after = ExecutionId::from_bytes(last),
            None => return,
        }
    }
}

/// False: the store does not answer.
async fn everything_that_is_due(durables: &Arc<Durables>) -> bool {
    let mut seen = std::collections::HashSet::new();
    loop {
        let Ok(due) = durables.shared.store.due_tasks(now(), ROWS).await else { return false };
        let fresh: Vec<_> = due.into_iter().filter(|task| seen.insert(task.id)).collect();
        if fresh.is_empty() {
            return true;
        }
        for task in fresh {
            wake(durables, task.execution).await;
        }
        // What was woken last may not have been stored yet: it is seen again, and not woken again.
        if seen.len() > 100_000 {
            return true;
        }
    }
}

/// How long until the next question's time is over, or something should be tried again.
async fn until_next(durables: &Arc<Durables>) -> Duration {
    match durables.shared.store.due_tasks(Timestamp(i64::MAX), 1).await {
        Ok(next) => match next.first().and_then(|task| task.deadline) {
            Some(at) => {
                let left = u64::try_from(at.0.saturating_sub(now().0)).unwrap_or(0);
                // One that is overdue is on its way; it must not keep us busy.
                (Duration::from_millis(left) + LATE).clamp(Duration::from_millis(50), AGAIN)
            }
            None => AGAIN,
        },
        Err(_) => AGAIN,
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
