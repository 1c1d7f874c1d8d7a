//! Wakes executions without a request: after a start of the supervisor every execution with the stored status `running`,
//! and at any time those with an expired task. At most as many at a time as workers can be started.

use super::Durables;
use super::live::QueuedRequest;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use vm_system_protocol::ids::{ExecutionId, TaskId};
use vm_system_protocol::time::Timestamp;

/// Rows per query.
const ROWS: u32 = 256;
/// First time until a retry for an execution that did not continue, because no worker or no store was available.
const AGAIN: Duration = Duration::from_secs(5);
/// Longest time until a retry.
const AGAIN_MAX: Duration = Duration::from_mins(1);
/// Allowance for a difference between the store's clock and ours.
const LATE: Duration = Duration::from_millis(2);

/// Back-off for executions that were woken and did not continue. An execution that can never continue
/// costs little, and others do not wait for it.
#[derive(Debug)]
struct Patience<K> {
    woken: HashMap<K, Woken>,
    round: u64,
}

#[derive(Debug)]
struct Woken {
    again: Instant,
    pause: Duration,
    /// The last round in which it was found.
    round: u64,
}

impl<K: Eq + Hash> Patience<K> {
    fn new() -> Self {
        Self { woken: HashMap::new(), round: 0 }
    }

    /// Whether to wake the execution now.
    fn is_time(&mut self, key: K, now: Instant) -> bool {
        let round = self.round;
        match self.woken.entry(key) {
            Entry::Vacant(place) => {
                place.insert(Woken { again: now + AGAIN, pause: AGAIN, round });
                true
            }
            Entry::Occupied(mut place) => {
                let woken = place.get_mut();
                woken.round = round;
                if now < woken.again {
                    return false;
                }
                woken.pause = (2 * woken.pause).min(AGAIN_MAX);
                woken.again = now + woken.pause;
                true
            }
        }
    }

    /// Notes that the execution has an owner task.
    fn is_met(&mut self, key: &K) {
        if let Some(woken) = self.woken.get_mut(key) {
            woken.round = self.round;
        }
    }

    /// All rows were read: an execution that was not found has continued.
    fn end_round(&mut self) {
        let round = self.round;
        self.woken.retain(|_, woken| woken.round == round);
        self.round += 1;
    }
}

pub(super) async fn run(durables: Arc<Durables>) {
    let stop = durables.stop.clone();
    tokio::select! {
        () = stop.cancelled() => {}
        () = forever(&durables) => {}
    }
}

async fn forever(durables: &Arc<Durables>) {
    // Independently: an expired task does not wait for all executions that a restart has to wake.
    tokio::join!(wake_running(durables), expire_due_tasks(durables));
}

async fn wake_running(durables: &Arc<Durables>) {
    let mut patience = Patience::new();
    loop {
        wake_all_running(durables, &mut patience).await;
        tokio::time::sleep(AGAIN).await;
    }
}

async fn expire_due_tasks(durables: &Arc<Durables>) {
    let mut patience = Patience::new();
    loop {
        let pause = match wake_all_due(durables, &mut patience).await {
            Some(until) => until_next(durables, until).await,
            None => AGAIN,
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = durables.alarm.notified() => {}
        }
    }
}

/// Wakes an execution; waits until fewer are being loaded.
async fn wake(durables: &Arc<Durables>, execution: ExecutionId) -> bool {
    let Ok(permit) = Arc::clone(&durables.wakes).acquire_owned().await else { return false };
    durables.hand_over(execution, None, QueuedRequest::wake(Some(permit))).is_ok()
}

/// Stops at an error of the store.
async fn wake_all_running(durables: &Arc<Durables>, patience: &mut Patience<ExecutionId>) {
    let mut after = ExecutionId::from_bytes([0; 16]);
    loop {
        let Ok(ids) = durables.shared.store.running_programs(after, ROWS).await else { return };
        let last = ids.last().copied();
        for id in ids {
            let id = ExecutionId::from_bytes(id);
            // An execution with an owner task runs already.
            let at_work =
                super::live::lock(&durables.live).get(&id).is_some_and(super::live::LiveRun::is_alive);
            if at_work {
                patience.is_met(&id);
            } else if patience.is_time(id, Instant::now()) {
                wake(durables, id).await;
            }
        }
        match last {
            Some(last) => after = ExecutionId::from_bytes(last),
            None => break,
        }
    }
    patience.end_round();
}

/// The time up to which every expired task was handled; none if the store failed.
async fn wake_all_due(durables: &Arc<Durables>, patience: &mut Patience<TaskId>) -> Option<Timestamp> {
    let until = now();
    let mut after = None;
    loop {
        let due = durables.shared.store.due_tasks(until, after, ROWS).await.ok()?;
        let Some(last) = due.last() else { break };
        after = Some((last.deadline, last.id));
        for task in due {
            if patience.is_time(task.id, Instant::now()) {
                wake(durables, task.execution).await;
            }
        }
    }
    patience.end_round();
    Some(until)
}

/// Time until the next deadline of a task that was not due then, or until a retry.
async fn until_next(durables: &Arc<Durables>, then: Timestamp) -> Duration {
    let behind = Some((then, TaskId::from_bytes([0xff; 16])));
    match durables.shared.store.due_tasks(Timestamp(i64::MAX), behind, 1).await {
        Ok(next) => match next.first() {
            Some(task) => {
                let left = u64::try_from(task.deadline.0.saturating_sub(now().0)).unwrap_or(0);
                (Duration::from_millis(left) + LATE).min(AGAIN)
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

#[cfg(test)]
mod tests {
    use super::{AGAIN, AGAIN_MAX, Patience};
    use std::time::{Duration, Instant};

    #[test]
    fn back_off_grows_for_an_execution_that_does_not_continue_and_is_reset_when_it_does() {
        let (mut patience, begin) = (Patience::new(), Instant::now());
        let mut woken = Vec::new();
        for second in 0..600 {
            let now = begin + Duration::from_secs(second);
            if patience.is_time("stuck", now) {
                woken.push(second);
            }
            patience.end_round();
        }
        assert_eq!(woken[..5], [0, 5, 15, 35, 75]);
        let pauses = woken.windows(2).map(|pair| pair[1] - pair[0]);
        assert_eq!(pauses.max(), Some(AGAIN_MAX.as_secs()));
        // A round without the execution: it has continued, and may be woken again at once.
        patience.end_round();
        assert!(patience.is_time("stuck", begin) && !patience.is_time("stuck", begin));
        patience.is_met(&"stuck");
        patience.end_round();
        assert!(patience.is_time("stuck", begin + AGAIN), "an execution with an owner task keeps its entry");
    }
}
