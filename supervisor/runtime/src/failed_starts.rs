//! Sessions whose workers die before they are ready: an owner whose sessions of one template fail again and again is refused further
//! ones for a while. Knows no session.

use crate::recent_failures::RecentFailures;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use vm_system_protocol::ids::TemplateId;
use vm_system_protocol::reason::CloseReason;
use vm_system_record::Owner;

/// The failures of the last minute.
#[derive(Debug, Default)]
pub(crate) struct FailedStarts(Mutex<HashMap<(Owner, TemplateId), LatestFailures>>);

#[derive(Debug)]
struct LatestFailures {
    times: RecentFailures,
    /// Of the last one.
    reason: CloseReason,
}

/// Why no session is started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "5 sessions of this template died at their start within a minute, the last one of {reason}; the next one is started in {} s",
    .pause.as_secs() + 1
)]
pub struct TooManyFailedStarts {
    reason: CloseReason,
    pause: Duration,
}

impl FailedStarts {
    fn lock(&self) -> MutexGuard<'_, HashMap<(Owner, TemplateId), LatestFailures>> {
        // No code panics while holding it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that another session may be started.
    pub(crate) fn check(&self, owner: &Owner, template: TemplateId) -> Result<(), TooManyFailedStarts> {
        let mut all = self.lock();
        let Some(failures) = all.get_mut(&(owner.clone(), template)) else { return Ok(()) };
        match failures.times.pause() {
            Some(pause) => Err(TooManyFailedStarts { reason: failures.reason.clone(), pause }),
            None => Ok(()),
        }
    }

    /// A worker died before its session was ready.
    pub(crate) fn add(&self, owner: &Owner, template: TemplateId, reason: CloseReason, at: Instant) {
        let mut all = self.lock();
        all.retain(|_, failures| !failures.times.are_none());
        let failures = all
            .entry((owner.clone(), template))
            .or_insert_with(|| LatestFailures { times: RecentFailures::default(), reason: reason.clone() });
        failures.times.add(at);
        failures.reason = reason;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_five_failures_there_is_a_pause_for_this_owner_and_template() {
        let starts = FailedStarts::default();
        let (owner, other) = (Owner::new("uid:1"), Owner::new("uid:2"));
        let [template, another] = [1, 2].map(|number| TemplateId::from_bytes([number; 16]));
        let ago = |seconds| {
            Instant::now().checked_sub(Duration::from_secs(seconds)).expect("since the machine runs")
        };
        let signal = || CloseReason::Signal("SIGSEGV".to_owned());
        starts.add(&owner, template, signal(), ago(61));
        for seconds in [50, 40, 30, 20] {
            starts.add(&owner, template, signal(), ago(seconds));
            assert_eq!(starts.check(&owner, template), Ok(()));
        }
        starts.add(&owner, template, CloseReason::Exited, ago(0));
        let refused = starts.check(&owner, template).expect_err("too many");
        assert!(refused.to_string().contains("of exited"), "{refused}");
        assert!(
            refused.pause <= Duration::from_secs(10),
            "until the first of the five is older than a minute"
        );
        assert_eq!(starts.check(&owner, another), Ok(()));
        assert_eq!(starts.check(&other, template), Ok(()));
        starts.add(&other, another, signal(), ago(70));
        assert_eq!(starts.lock().len(), 2);
        starts.add(&owner, template, signal(), ago(0));
        assert_eq!(starts.lock().len(), 1, "old ones are forgotten");
    }
}
