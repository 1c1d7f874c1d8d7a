//! The executions of programs that have a holder in this process, and the fences of these holders: what a store with one process needs
//! of leases, in memory alone. Knows nothing of the rows.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::time::Timestamp;
use vm_system_record::{Fence, Guard, LetGo};

/// First time until an execution is claimed again that could not go on, because no worker or no store was available.
pub(crate) const AGAIN: Duration = Duration::from_secs(5);
/// Longest such time.
const AGAIN_MAX: Duration = Duration::from_mins(1);

/// The last fence that was drawn: of all stores of this process, so that no two holders have the same one.
static LAST_FENCE: AtomicU64 = AtomicU64::new(0);

/// A fence that is higher than all before.
pub(crate) fn next_fence() -> Fence {
    Fence(LAST_FENCE.fetch_add(1, Ordering::Relaxed) + 1)
}

/// The state of an execution that is or was held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hold {
    /// It has a holder.
    Held(Fence),
    /// The last holder could not go on: the execution is not claimed before a time, which the next failure makes later.
    Waits { again: Instant, pause: Duration },
    /// The holder was claimed after such a failure.
    HeldAgain { fence: Fence, pause: Duration },
}

impl Hold {
    const fn fence(self) -> Option<Fence> {
        match self {
            Self::Held(fence) | Self::HeldAgain { fence, .. } => Some(fence),
            Self::Waits { .. } => None,
        }
    }
}

/// All executions that are held. One that is not in the table has no holder.
#[derive(Debug)]
pub(crate) struct Holds {
    table: Mutex<HashMap<ExecutionId, Hold>>,
    /// An execution was let go that is due before the time up to which its supervisor sleeps.
    early: Notify,
    /// The time up to which the supervisor sleeps (Unix milliseconds).
    asleep_until: AtomicI64,
}

impl Default for Holds {
    fn default() -> Self {
        Self { table: Mutex::default(), early: Notify::new(), asleep_until: AtomicI64::new(i64::MIN) }
    }
}

impl Holds {
    fn table(&self) -> MutexGuard<'_, HashMap<ExecutionId, Hold>> {
        // Nothing under this lock can panic half-way through a change.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an execution that has no holder and need not wait.
    pub(crate) fn claim(&self, execution: ExecutionId, now: Instant) -> Option<Fence> {
        let mut table = self.table();
        let fence = match table.get(&execution) {
            None => next_fence(),
            Some(Hold::Waits { again, pause }) if *again <= now => {
                let (fence, pause) = (next_fence(), *pause);
                table.insert(execution, Hold::HeldAgain { fence, pause });
                return Some(fence);
            }
            Some(_) => return None,
        };
        table.insert(execution, Hold::Held(fence));
        Some(fence)
    }

    /// The holder with this fence is about to take an execution: nobody claims it until that lets it go. It is the newest one, which drew
    /// its fence as it read the rows.
    pub(crate) fn expect(&self, execution: ExecutionId, fence: Fence) {
        let mut table = self.table();
        if table.get(&execution).and_then(|hold| hold.fence()).is_none_or(|held| held < fence) {
            table.insert(execution, Hold::Held(fence));
        }
    }

    /// Whether a batch with this guard may be applied, as far as the fence decides. A batch that is repeated after a failure of the disk
    /// may take what it has taken.
    pub(crate) fn admits(&self, guard: &Guard) -> bool {
        let mut table = self.table();
        match guard {
            Guard::Held { execution, fence, .. } => {
                table.get(execution).and_then(|hold| hold.fence()) == Some(*fence)
            }
            Guard::Take { execution, fence, .. } => {
                if table.get(execution).and_then(|hold| hold.fence()).is_some_and(|held| held > *fence) {
                    return false;
                }
                table.insert(*execution, Hold::Held(*fence));
                true
            }
        }
    }

    /// Ends a hold, unless another holder has taken the execution, or nobody has.
    pub(crate) fn let_go(&self, execution: ExecutionId, fence: Fence, left: LetGo) {
        let mut table = self.table();
        let known = table.get(&execution).copied();
        let is_holder = known.and_then(Hold::fence) == Some(fence);
        match left {
            LetGo::Failed if is_holder => {
                let pause = match known {
                    Some(Hold::HeldAgain { pause, .. }) => (2 * pause).min(AGAIN_MAX),
                    _ => AGAIN,
                };
                table.insert(execution, Hold::Waits { again: Instant::now() + pause, pause });
            }
            LetGo::Failed => {}
            LetGo::Rests(due) => {
                if is_holder {
                    table.remove(&execution);
                }
                // A supervisor that sleeps longer would be late.
                if due.is_some_and(|due| due.0 < self.asleep_until.load(Ordering::Relaxed)) {
                    self.early.notify_one();
                }
            }
        }
    }

    /// From now on [`Self::sleep`] ends with the next execution that is let go with a deadline.
    pub(crate) fn begin_sleep(&self) {
        self.asleep_until.store(i64::MAX, Ordering::Relaxed);
    }

    /// Sleeps until a time, or until an execution was let go that is due earlier.
    pub(crate) async fn sleep(&self, now: Timestamp, next: Option<Timestamp>) {
        let left = next.map(|next| u64::try_from(next.0.saturating_sub(now.0)).unwrap_or(0));
        let pause = left.map_or(AGAIN, |left| Duration::from_millis(left).min(AGAIN));
        let until = now.0.saturating_add(i64::try_from(pause.as_millis()).unwrap_or(i64::MAX));
        self.asleep_until.store(until, Ordering::Relaxed);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = self.early.notified() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AGAIN, AGAIN_MAX, Holds, next_fence};
    use std::time::{Duration, Instant};
    use vm_system_protocol::ids::ExecutionId;
    use vm_system_record::{Fence, Guard, LetGo};

    const EXECUTION: ExecutionId = ExecutionId::from_bytes([1; 16]);

    fn held(fence: Fence) -> Guard {
        Guard::Held { execution: EXECUTION, fence, after: 0 }
    }

    fn take(fence: Fence) -> Guard {
        Guard::Take { execution: EXECUTION, fence, after: 0 }
    }

    #[test]
    fn later_holder_fences_earlier_ones_off() {
        let holds = Holds::default();
        let (first, second, third) = (next_fence(), next_fence(), next_fence());
        assert!(!holds.admits(&held(first)), "nobody has taken it");
        assert!(holds.admits(&take(second)) && holds.admits(&take(second)), "a repeated batch");
        assert!(holds.admits(&held(second)));
        assert!(!holds.admits(&take(first)), "an earlier one comes too late");
        assert!(holds.admits(&take(third)));
        assert!(!holds.admits(&held(second)) && holds.admits(&held(third)));
        holds.let_go(EXECUTION, second, LetGo::Rests(None));
        assert!(holds.admits(&held(third)), "only its holder lets it go");
        holds.let_go(EXECUTION, third, LetGo::Rests(None));
        assert!(!holds.admits(&held(third)));
        assert!(holds.table().is_empty(), "what rests takes no memory");
    }

    #[test]
    fn what_is_about_to_be_taken_is_not_claimed() {
        let (holds, now) = (Holds::default(), Instant::now());
        let claimed = holds.claim(EXECUTION, now).expect("nobody holds it");
        let reader = next_fence();
        holds.expect(EXECUTION, reader);
        holds.let_go(EXECUTION, claimed, LetGo::Failed);
        assert_eq!(holds.claim(EXECUTION, now), None, "the claim on its way to the reader ends nothing");
        assert!(holds.admits(&take(reader)));
        holds.let_go(EXECUTION, reader, LetGo::Rests(None));
        assert!(holds.table().is_empty());
    }

    #[test]
    fn what_is_held_is_not_claimed() {
        let (holds, now) = (Holds::default(), Instant::now());
        let fence = holds.claim(EXECUTION, now).expect("nobody holds it");
        assert_eq!(holds.claim(EXECUTION, now), None);
        assert!(holds.admits(&held(fence)));
        holds.let_go(EXECUTION, fence, LetGo::Rests(None));
        assert!(holds.claim(EXECUTION, now).is_some_and(|next| next > fence));
    }

    #[test]
    fn back_off_grows_for_an_execution_that_does_not_go_on_and_is_reset_when_it_does() {
        let holds = Holds::default();
        let pause = |pause: Duration| {
            let now = Instant::now();
            assert_eq!(
                holds.claim(EXECUTION, now + pause.saturating_sub(Duration::from_millis(500))),
                None,
                "{pause:?}"
            );
            let fence = holds.claim(EXECUTION, now + pause + Duration::from_millis(500));
            holds.let_go(EXECUTION, fence.expect("its time has come"), LetGo::Failed);
        };
        let fence = holds.claim(EXECUTION, Instant::now()).expect("nobody holds it");
        holds.let_go(EXECUTION, fence, LetGo::Failed);
        for factor in [1, 2, 4, 8] {
            pause(factor * AGAIN);
        }
        for _ in 0..3 {
            pause(AGAIN_MAX);
        }
        // A request need not wait.
        let fence = next_fence();
        assert!(holds.admits(&take(fence)));
        holds.let_go(EXECUTION, fence, LetGo::Rests(None));
        assert!(holds.claim(EXECUTION, Instant::now()).is_some());
    }
}
