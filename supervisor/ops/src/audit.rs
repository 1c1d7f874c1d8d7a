//! The audit log: changes and refusals, with their principals.
//!
//! A change gets its line from its handler. A refusal before the handler (a right, a role, a row of another owner, an invalid
//! value) gets its line here, from the function through which every verb returns. Refusals cost their sender nothing, so
//! their lines are taken from a budget (`Budget`): above it they are only counted, and one line has the number. Lines count for the
//! quota of their owner; those of changes of an owner above its quota are taken from the same budget. What an API refuses by itself
//! it reports with [`VerbHandler::refused`](super::VerbHandler).

use super::{ApiRefusal, Caller, Ops, VerbCall, now};
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use vm_system_protocol::control::{Effect, ErrorCode, OpError};
use vm_system_record::{AuditEntry, Owner, Write};

/// The owner of lines of requests without a principal; no token and no user has this name.
const NO_OWNER: &str = "(nobody)";
/// Verb of a line with the number of unlisted refusals and changes.
const COUNT: &str = "unlisted";
/// Outcome of such a line.
const NOT_LISTED: &str = "NOT_LISTED";
/// Longest subject (characters); the text comes from the client.
const SUBJECT_CHARS: usize = 100;

/// Lines of one owner: most at once, and the time until one more is allowed.
const OF_ONE: Rate = Rate { most: 30, each: Duration::from_secs(10) };
/// Lines of all owners together.
const OF_ALL: Rate = Rate { most: 300, each: Duration::from_secs(2) };
/// Owners with a counter at a time; the refusals of others are only in the log.
const OWNERS: usize = 1_024;
/// Time between two such lines of one owner.
const COUNT_EVERY: Duration = Duration::from_mins(1);

impl Ops {
    /// Writes the line of a change, or of a failed one. Queued, not awaited: only the change itself is promised, and a store
    /// that cannot write has failed that already.
    pub(super) async fn audit<T>(
        &self,
        call: &VerbCall<'_>,
        subject: impl ToString,
        result: &Result<T, OpError>,
    ) {
        call.noted.store(true, Ordering::Relaxed);
        let (Caller { owner, api, .. }, verb) = (call.caller, call.verb);
        let subject = subject.to_string();
        match result {
            Ok(_) if !self.store.is_full(owner) => self.line(owner, api, verb, subject, "ok").await,
            Ok(_) => self.budgeted_line(owner, api, verb, &subject, "ok").await,
            Err(error) => self.budgeted_line(owner, api, verb, &subject, error.code.as_str()).await,
        }
    }

    /// Notes that a verb was refused before it changed anything.
    pub(super) async fn refused_verb(
        &self,
        call: &VerbCall<'_>,
        effect: Effect,
        subject: &str,
        code: ErrorCode,
    ) {
        let Caller { owner, admin, api } = call.caller;
        if matters(effect.changes(), *admin, code) {
            self.budgeted_line(owner, api, call.verb, subject, code.as_str()).await;
        }
    }

    /// Notes what an API refused before it was a verb.
    pub(super) async fn refused_by_api(&self, refusal: ApiRefusal) {
        let ApiRefusal { owner, api, what, from, code } = refusal;
        let owner = owner.unwrap_or_else(|| Owner::new(NO_OWNER));
        self.budgeted_line(&owner, api, &what, &from, code).await;
    }

    /// A line, while the owner's budget lasts.
    async fn budgeted_line(&self, owner: &Owner, api: &str, verb: &str, subject: &str, outcome: &str) {
        let verdict = self.refusals.take(owner, Instant::now());
        let Verdict::List { uncounted } = verdict else {
            tracing::debug!(%owner, api, verb, outcome, "a line is counted and not written: there are too many");
            return;
        };
        if uncounted > 0 {
            self.count(owner, api, uncounted).await;
        }
        self.line(owner, api, verb, shown(subject), outcome).await;
    }

    /// Writes the due numbers of one owner or of all owners, before the log is read.
    pub(super) async fn count_refusals(&self, caller: &Caller) {
        let of = (!caller.admin).then_some(&caller.owner);
        for (owner, uncounted) in self.refusals.due(of, Instant::now()) {
            self.count(&owner, caller.api, uncounted).await;
        }
    }

    async fn count(&self, owner: &Owner, api: &str, uncounted: u64) {
        self.line(owner, api, COUNT, format!("{uncounted} more"), NOT_LISTED).await;
    }

    pub(super) async fn line(&self, owner: &Owner, api: &str, verb: &str, subject: String, outcome: &str) {
        let line = line(owner, api, verb, subject, outcome);
        if let Err(error) = self.store.submit_lazy(line).await {
            tracing::warn!(%error, verb, "an entry of the audit log is lost");
        }
    }
}

/// The line of a change that is stored together with the change.
pub(super) fn line_of(call: &VerbCall<'_>, subject: &str) -> Write {
    call.noted.store(true, Ordering::Relaxed);
    let Caller { owner, api, .. } = call.caller;
    line(owner, api, call.verb, subject.to_owned(), "ok")
}

fn line(owner: &Owner, api: &str, verb: &str, subject: String, outcome: &str) -> Write {
    Write::Audit(Box::new(AuditEntry {
        at: now(),
        owner: owner.clone(),
        api: api.to_owned(),
        verb: verb.to_owned(),
        subject,
        outcome: outcome.to_owned(),
    }))
}

/// Whether a refusal is worth a line. "Not now" is not: the same request may succeed a moment later. A missing
/// thing is worth one only if it may belong to another owner.
fn matters(changes: bool, admin: bool, code: ErrorCode) -> bool {
    match code {
        ErrorCode::SessionBusy
        | ErrorCode::SessionNotReady
        | ErrorCode::CapacityExceeded
        | ErrorCode::StorageUnavailable
        | ErrorCode::ShuttingDown
        // The execution, or the task, is a record of its own.
        | ErrorCode::OutputLimitExceeded
        | ErrorCode::TaskNotPending
        | ErrorCode::AnswerInvalid => false,
        ErrorCode::NotPermitted | ErrorCode::OwnerGone => true,
        ErrorCode::NotFound
        | ErrorCode::TemplateNotFound
        | ErrorCode::SessionNotFound
        | ErrorCode::ExecutionNotFound
        | ErrorCode::ProgramNotFound
        | ErrorCode::TaskNotFound => changes || !admin,
        _ => changes,
    }
}

/// The stored form of a client's text.
fn shown(subject: &str) -> String {
    let printable = |char: char| if char.is_control() { '\u{fffd}' } else { char };
    subject.chars().take(SUBJECT_CHARS).map(printable).collect()
}

/// A bound on lines: at most `most` at once, and one more after each period `each`.
#[derive(Clone, Copy)]
struct Rate {
    most: u32,
    each: Duration,
}

/// The rest of a [`Rate`].
struct Bucket {
    left: u32,
    since: Instant,
}

impl Bucket {
    fn full(rate: Rate, now: Instant) -> Self {
        Self { left: rate.most, since: now }
    }

    fn refill(&mut self, rate: Rate, now: Instant) {
        let passed = now.saturating_duration_since(self.since).as_millis() / rate.each.as_millis().max(1);
        let earned = u32::try_from(passed).unwrap_or(u32::MAX);
        if earned >= rate.most - self.left {
            *self = Self::full(rate, now);
        } else {
            self.left += earned;
            self.since += rate.each * earned;
        }
    }
}

struct OwnersBudget {
    bucket: Bucket,
    /// Refusals without a line so far.
    uncounted: u64,
    counted: Option<Instant>,
}

/// The treatment of a refusal.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// It gets a line, after one with the number of unlisted refusals.
    List { uncounted: u64 },
    /// It has been counted.
    Count,
}

/// Limits how many refusals get lines of their own.
#[derive(Default)]
pub(super) struct Budget(Mutex<Budgets>);

#[derive(Default)]
struct Budgets {
    all: Option<Bucket>,
    owners: HashMap<Owner, OwnersBudget>,
}

impl Budget {
    fn take(&self, owner: &Owner, now: Instant) -> Verdict {
        let mut budgets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Budgets { all, owners } = &mut *budgets;
        if owners.len() >= OWNERS && !owners.contains_key(owner) {
            owners.retain(|_, budget| {
                budget.bucket.refill(OF_ONE, now);
                budget.uncounted > 0 || budget.bucket.left < OF_ONE.most
            });
            if owners.len() >= OWNERS {
                return Verdict::Count;
            }
        }
        let fresh = || OwnersBudget { bucket: Bucket::full(OF_ONE, now), uncounted: 0, counted: None };
        let budget = owners.entry(owner.clone()).or_insert_with(fresh);
        let all = all.get_or_insert_with(|| Bucket::full(OF_ALL, now));
        budget.bucket.refill(OF_ONE, now);
        all.refill(OF_ALL, now);
        if budget.bucket.left == 0 || all.left == 0 {
            budget.uncounted += 1;
            return Verdict::Count;
        }
        budget.bucket.left -= 1;
        all.left -= 1;
        Verdict::List { uncounted: budget.take(now) }
    }

    /// The numbers of unlisted refusals that are due for a line.
    fn due(&self, of: Option<&Owner>, now: Instant) -> Vec<(Owner, u64)> {
        let mut budgets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut due: Vec<(Owner, u64)> = budgets
            .owners
            .iter_mut()
            .filter(|(owner, _)| of.is_none_or(|of| of == *owner))
            .filter_map(|(owner, budget)| match budget.take(now) {
                0 => None,
                uncounted => Some((owner.clone(), uncounted)),
            })
            .collect();
        due.sort_unstable();
        due
    }
}

impl OwnersBudget {
    /// The number for a line, 0 if it is too early for the next one.
    fn take(&mut self, now: Instant) -> u64 {
        let early = |counted: Instant| now.saturating_duration_since(counted) < COUNT_EVERY;
        if self.uncounted == 0 || self.counted.is_some_and(early) {
            return 0;
        }
        self.counted = Some(now);
        std::mem::take(&mut self.uncounted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flood_of_one_owner_gets_a_few_lines_and_a_number_and_does_not_affect_others() {
        let (budget, begin) = (Budget::default(), Instant::now());
        let (mallory, alice) = (Owner::new("mallory"), Owner::new("alice"));
        let listed = |verdict| matches!(verdict, Verdict::List { .. });
        let lines = (0..100_000).filter(|_| listed(budget.take(&mallory, begin))).count();
        assert_eq!(lines, OF_ONE.most as usize);
        assert_eq!(budget.take(&alice, begin), Verdict::List { uncounted: 0 });

        let later = begin + OF_ONE.each;
        let missing = 100_000 - u64::from(OF_ONE.most);
        assert_eq!(budget.take(&mallory, later), Verdict::List { uncounted: missing });
        assert_eq!(budget.take(&mallory, later), Verdict::Count);
        // Reading the log again and again does not fill it either.
        assert_eq!(budget.due(None, later), []);
        assert_eq!(budget.due(Some(&alice), later + COUNT_EVERY), []);
        assert_eq!(budget.due(None, later + COUNT_EVERY), [(mallory, 1)]);
        assert_eq!(budget.due(None, later + COUNT_EVERY * 2), []);
    }

    #[test]
    fn all_owners_together_have_a_budget_too() {
        let (budget, begin) = (Budget::default(), Instant::now());
        let mut lines = 0;
        for n in 0..10 * OWNERS {
            lines += usize::from(budget.take(&Owner::new(n.to_string()), begin) != Verdict::Count);
        }
        assert_eq!(lines, OF_ALL.most as usize);
        assert!(budget.0.lock().expect("no test panics while it holds this").owners.len() <= OWNERS);
        // The owner without refusals for the longest time is evicted.
        let much_later = begin + OF_ALL.each * OF_ALL.most + OF_ONE.each * OF_ONE.most;
        assert_eq!(budget.due(None, much_later).len(), OWNERS - lines);
        assert_eq!(budget.take(&Owner::new("new"), much_later), Verdict::List { uncounted: 0 });
    }

    #[test]
    fn refusals_that_matter_are_rights_owners_and_values_but_not_a_bad_moment() {
        for (changes, admin, code, wanted) in [
            (false, true, ErrorCode::NotPermitted, true),
            (false, false, ErrorCode::SessionNotFound, true),
            (false, true, ErrorCode::SessionNotFound, false),
            (true, true, ErrorCode::SessionNotFound, true),
            (true, false, ErrorCode::ValidationError, true),
            (false, false, ErrorCode::ValidationError, false),
            (true, false, ErrorCode::InvalidPath, true),
            (true, false, ErrorCode::SessionBusy, false),
            (true, false, ErrorCode::StorageUnavailable, false),
        ] {
            assert_eq!(matters(changes, admin, code), wanted, "{changes} {admin} {code:?}");
        }
    }

    #[test]
    fn a_subject_is_short_and_has_no_control_characters() {
        assert_eq!(shown("a\u{1b}[2Jb\n"), "a\u{fffd}[2Jb\u{fffd}");
        assert_eq!(shown(&"é".repeat(1_000)).chars().count(), SUBJECT_CHARS);
    }
}
