//! The sums of what each owner stores, and the states that are admitted to the queue: the quota of their owner, what it may write
//! in a minute, and the quota of the database. Counts what is queued beside what is stored, so that no queue of large states leads
//! far beyond a quota. Knows no batches.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use vm_system_record::{Owner, Retention, StorageLimit};

/// From so many accounts on, those that hold little are forgotten when they are not used.
const OWNERS: usize = 10_000;
/// The part of the quota up to which an account may be forgotten: it counts nothing until its owner's next writes.
const SMALL_PART: u64 = 1_024;
const MINUTE_MS: u64 = 60_000;

/// The accounts of all owners.
pub(super) struct Admission {
    limits: Retention,
    accounts: Mutex<Accounts>,
}

#[derive(Default)]
struct Accounts {
    owners: HashMap<Owner, Account>,
    /// Size of the database (bytes).
    database_bytes: u64,
    /// States that wait for their commit (bytes).
    queued_bytes: u64,
    /// The owner that stores most, while the database is almost full.
    largest: Option<Owner>,
    /// The number of accounts at which some are forgotten.
    forget_at: usize,
}

struct Account {
    /// As it was last counted.
    stored_bytes: u64,
    queued_bytes: u64,
    /// The bytes that the owner may write now.
    budget_bytes: u64,
    /// When that was computed.
    at: Instant,
}

/// A state that is admitted; it is counted as queued until this is dropped.
pub(super) struct Booking {
    admission: Arc<Admission>,
    owner: Owner,
    bytes: u64,
}

impl Admission {
    pub(super) fn new(limits: Retention) -> Self {
        Self { limits, accounts: Mutex::default() }
    }

    fn accounts(&self) -> MutexGuard<'_, Accounts> {
        // Nothing under this lock can panic half-way through a change.
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a state of so many bytes.
    pub(super) fn book(
        self: &Arc<Self>,
        owner: &Owner,
        bytes: u64,
        now: Instant,
    ) -> Result<Booking, StorageLimit> {
        let limits = &self.limits;
        let mut accounts = self.accounts();
        // Queued bytes count as stored: otherwise many batches at once would be admitted for the same free bytes.
        let after = accounts.database_bytes.saturating_add(accounts.queued_bytes).saturating_add(bytes);
        let is_too_large = accounts.is_too_large_for(owner, after, limits);
        let account = accounts.account_of(owner, limits, now);
        if is_too_large {
            return Err(StorageLimit::DatabaseQuota);
        }
        let total = account.stored_bytes.saturating_add(account.queued_bytes).saturating_add(bytes);
        if total > limits.owner_quota_bytes {
            return Err(StorageLimit::OwnerQuota);
        }
        account.refill(limits.owner_write_bytes, now);
        // Last: a state that a quota refuses uses up nothing of the rate.
        let Some(left) = account.budget_bytes.checked_sub(bytes) else {
            return Err(StorageLimit::WriteRate);
        };
        account.budget_bytes = left;
        account.queued_bytes += bytes;
        accounts.queued_bytes += bytes;
        Ok(Booking { admission: Arc::clone(self), owner: owner.clone(), bytes })
    }

    /// Sets the bytes that an owner stores now.
    pub(super) fn stored(&self, owner: &Owner, bytes: u64) {
        self.accounts().account_of(owner, &self.limits, Instant::now()).stored_bytes = bytes;
    }

    /// The size of the database, and who has most of it while it is almost full.
    pub(super) fn measured(&self, bytes: u64, largest: Option<Owner>) {
        let mut accounts = self.accounts();
        (accounts.database_bytes, accounts.largest) = (bytes, largest);
    }

    /// The limit that keeps an owner from storing more of what it has begun to.
    pub(super) fn exceeded(&self, owner: &Owner) -> Option<StorageLimit> {
        let accounts = self.accounts();
        if accounts.is_full(owner, &self.limits) {
            Some(StorageLimit::OwnerQuota)
        } else if accounts.is_too_large_for(owner, accounts.database_bytes, &self.limits) {
            Some(StorageLimit::DatabaseQuota)
        } else {
            None
        }
    }

    /// Whether an owner stores more than its quota.
    pub(super) fn is_full(&self, owner: &Owner) -> bool {
        self.accounts().is_full(owner, &self.limits)
    }
}

impl Accounts {
    fn is_full(&self, owner: &Owner, limits: &Retention) -> bool {
        self.owners.get(owner).is_some_and(|account| account.stored_bytes > limits.owner_quota_bytes)
    }

    /// Whether a database of so many bytes is too large for this owner. A few percent are left to those who store little.
    fn is_too_large_for(&self, owner: &Owner, bytes: u64, limits: &Retention) -> bool {
        let reserve = limits.quota_bytes.saturating_add(limits.quota_bytes / 32);
        bytes > reserve || (bytes > limits.quota_bytes && self.largest.as_ref() == Some(owner))
    }

    fn account_of(&mut self, owner: &Owner, limits: &Retention, now: Instant) -> &mut Account {
        if self.owners.len() >= self.forget_at.max(OWNERS) && !self.owners.contains_key(owner) {
            self.forget(limits, now);
        }
        self.owners.entry(owner.clone()).or_insert_with(|| Account {
            stored_bytes: 0,
            queued_bytes: 0,
            budget_bytes: limits.owner_write_bytes,
            at: now,
        })
    }

    /// Forgets owners that would begin anew with about the same: they have written no state in the last minute, and store little.
    fn forget(&mut self, limits: &Retention, now: Instant) {
        let minute = std::time::Duration::from_millis(MINUTE_MS);
        let small = limits.owner_quota_bytes / SMALL_PART;
        self.owners.retain(|_, account| {
            account.queued_bytes > 0
                || now.duration_since(account.at) < minute
                || account.stored_bytes > small
        });
        // The cost of looking at all of them is spread over as many new ones.
        self.forget_at = self.owners.len() * 2;
    }
}

impl Account {
    fn refill(&mut self, per_minute: u64, now: Instant) {
        let passed =
            u64::try_from(now.duration_since(self.at).as_millis()).unwrap_or(u64::MAX).min(MINUTE_MS);
        let refill = per_minute / MINUTE_MS * passed + per_minute % MINUTE_MS * passed / MINUTE_MS;
        // The time moves only with a whole byte: frequent requests must not lose the refill.
        if refill > 0 {
            self.budget_bytes = self.budget_bytes.saturating_add(refill).min(per_minute);
            self.at = now;
        }
    }
}

impl Drop for Booking {
    fn drop(&mut self) {
        let mut accounts = self.admission.accounts();
        accounts.queued_bytes = accounts.queued_bytes.saturating_sub(self.bytes);
        if let Some(account) = accounts.owners.get_mut(&self.owner) {
            account.queued_bytes = account.queued_bytes.saturating_sub(self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Admission;
    use std::sync::Arc;
    use std::time::{Duration, Instant};
    use vm_system_record::{Owner, Retention, StorageLimit};

    fn admission(quota: u64, owner_quota: u64, per_minute: u64) -> Arc<Admission> {
        Arc::new(Admission::new(Retention {
            quota_bytes: quota,
            owner_quota_bytes: owner_quota,
            owner_write_bytes: per_minute,
            ..Retention::default()
        }))
    }

    #[test]
    fn what_is_queued_counts_for_the_quota_of_its_owner_and_of_no_other() {
        let (admission, now) = (admission(u64::MAX / 2, 100, 1_000_000), Instant::now());
        let (one, other) = (Owner::new("one"), Owner::new("other"));
        let first = admission.book(&one, 60, now).expect("it is little");
        assert_eq!(admission.book(&one, 60, now).err(), Some(StorageLimit::OwnerQuota));
        assert!(admission.book(&other, 60, now).is_ok());
        // It is stored now.
        admission.stored(&one, 60);
        drop(first);
        assert_eq!(admission.book(&one, 60, now).err(), Some(StorageLimit::OwnerQuota));
        assert!(!admission.is_full(&one) && admission.book(&one, 40, now).is_ok());
        admission.stored(&one, 101);
        assert!(admission.is_full(&one) && !admission.is_full(&other));
    }

    #[test]
    fn what_an_owner_may_write_comes_back_within_a_minute() {
        let (admission, now) = (admission(u64::MAX / 2, u64::MAX, 600), Instant::now());
        let owner = Owner::new("o");
        drop(admission.book(&owner, 600, now).expect("all at once"));
        assert_eq!(admission.book(&owner, 1, now).err(), Some(StorageLimit::WriteRate));
        let later = now + Duration::from_secs(6);
        drop(admission.book(&owner, 60, later).expect("a tenth of it"));
        assert_eq!(admission.book(&owner, 1, later).err(), Some(StorageLimit::WriteRate));
        assert!(admission.book(&owner, 600, later + Duration::from_mins(5)).is_ok(), "no more than at once");
    }

    #[test]
    fn above_the_quota_of_the_database_the_largest_owner_is_refused_first_and_above_the_reserve_all() {
        let (admission, now) = (admission(3_200, u64::MAX, 1_000_000), Instant::now());
        let (large, small) = (Owner::new("large"), Owner::new("small"));
        admission.measured(3_150, Some(large.clone()));
        assert!(admission.book(&large, 40, now).is_ok());
        assert_eq!(admission.book(&large, 60, now).err(), Some(StorageLimit::DatabaseQuota));
        let queued = admission.book(&small, 140, now).expect("the reserve is for those who store little");
        assert_eq!(admission.book(&small, 20, now).err(), Some(StorageLimit::DatabaseQuota));
        drop(queued);
        admission.measured(1_000, None);
        assert!(admission.book(&large, 60, now).is_ok());
    }
}
