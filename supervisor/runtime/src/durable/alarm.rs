//! Wakes executions without a request: after a start of the supervisor every execution that has something to do by its
//! rows, and at any time the tasks with an expired deadline. Only as many at a time as workers can be started.

use super::Durables;
use super::live::{QueuedRequest, RunRequest};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::oneshot;
use vm_system_protocol::ids::{ExecutionId, TaskId};
use vm_system_protocol::time::Timestamp;

/// Rows that are read at a time.
const ROWS: u32 = 256;
/// What did not go on, for want of a worker or of the store, is tried again after this long.
const AGAIN: Duration = Duration::from_secs(5);
/// What does not go on however often it is tried is tried at least this often.
const AGAIN_MAX: Duration = Duration::from_mins(1);
/// The store's clock and ours may differ by a little.
const LATE: Duration = Duration::from_millis(2);

/// What was woken and is met again where it stood: it is woken again, each time after a longer while. So what can never go on
/// costs little, and what comes behind it does not wait for it.
#[derive(Debug)]
struct Patience<K> {
    woken: HashMap<K, Woken>,
    round: u64,
}

#[derive(Debug)]
struct Woken {
    again: Instant,
    pause: Duration,
    /// When it was met last.
    round: u64,
}

impl<K: Eq + Hash> Patience<K> {
    fn new() -> Self {
        Self { woken: HashMap::new(), round: 0 }
    }

    /// Whether it is to be woken now.
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

    /// It is at work.
    fn is_met(&mut self, key: &K) {
        if let Some(woken) = self.woken.get_mut(key) {
            woken.round = self.round;
        }
    }

    /// All rows were read: an execution that was not met has gone on.
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
    // Each by itself: a task with an expired deadline does not wait behind all that a restart has to wake.
    tokio::join!(run_what_runs(durables), expire_what_is_due(durables));
}

async fn run_what_runs(durables: &Arc<Durables>) {
    let mut patience = Patience::new();
    loop {
        everything_that_runs(durables, &mut patience).await;
        tokio::time::sleep(AGAIN).await;
    }
}

async fn expire_what_is_due(durables: &Arc<Durables>) {
    let mut patience = Patience::new();
    loop {
        let pause = match everything_that_is_due(durables, &mut patience).await {
            Some(until) => until_next(durables, until).await,
            None => AGAIN,
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = durables.alarm.notified() => {}
        }
    }
}

/// Wakes executions one by one as workers of others are loaded.
async fn wake(durables: &Arc<Durables>, execution: ExecutionId) -> bool {
    let Ok(permit) = Arc::clone(&durables.wakes).acquire_owned().await else { return false };
    let (responder, _) = oneshot::channel();
    let command = QueuedRequest { request: RunRequest::Wake, responder, permit: Some(permit) };
    durables.hand_over(execution, None, command).is_ok()
}

/// As far as the store returns rows.
async fn everything_that_runs(durables: &Arc<Durables>, patience: &mut Patience<ExecutionId>) {
    let mut after = ExecutionId::from_bytes([0; 16]);
    loop {
        let Ok(ids) = durables.shared.store.running_programs(after, ROWS).await else { return };
        let last = ids.last().copied();
        for id in ids {
            let id = ExecutionId::from_bytes(id);
            // One that has an owner goes on already.
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

/// Up to which time everything was woken; none if the store failed.
async fn everything_that_is_due(
    durables: &Arc<Durables>,
    patience: &mut Patience<TaskId>,
) -> Option<Timestamp> {
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
    fn what_does_not_go_on_is_woken_more_and_more_rarely_and_what_went_on_at_once() {
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
        // A round without it: it has gone on, and may be woken for something else.
        patience.end_round();
        assert!(patience.is_time("stuck", begin) && !patience.is_time("stuck", begin));
        patience.is_met(&"stuck");
        patience.end_round();
        assert!(patience.is_time("stuck", begin + AGAIN), "one at work is remembered");
    }
}
