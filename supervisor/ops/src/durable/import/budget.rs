//! The memory budget for files that are being imported: each has a reservation from its first part until it is stored or
//! given up. Does not hold the files.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use vm_system_protocol::control::{ErrorCode, OpError};
use vm_system_record::Owner;

/// Memory of all files together (bytes).
const BYTES: usize = 512 << 20;
/// Files at a time.
const FILES: usize = 16;

/// All reservations.
#[derive(Debug, Clone, Default)]
pub(super) struct ImportBudget(Arc<Mutex<Vec<Taken>>>);

#[derive(Debug)]
struct Taken {
    id: u64,
    owner: Owner,
    bytes: usize,
}

/// The reservation of one file; returned when it is dropped.
#[derive(Debug)]
pub(super) struct ImportReservation {
    budget: ImportBudget,
    id: u64,
}

impl ImportBudget {
    fn lock(&self) -> MutexGuard<'_, Vec<Taken>> {
        // Nothing under this lock can panic half-way through a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A reservation for one more file; one owner has at most half of all reservations.
    pub(super) fn reserve(&self, owner: &Owner) -> Result<ImportReservation, OpError> {
        let mut taken = self.lock();
        let own = taken.iter().filter(|taken| taken.owner == *owner).count();
        if taken.len() >= FILES || own >= FILES / 2 {
            return Err(OpError::new(ErrorCode::CapacityExceeded, "too many files are being imported")
                .with_hint("try again when one of them is finished"));
        }
        let id = taken.iter().map(|taken| taken.id).max().map_or(0, |last| last + 1);
        taken.push(Taken { id, owner: owner.clone(), bytes: 0 });
        Ok(ImportReservation { budget: self.clone(), id })
    }
}

impl ImportReservation {
    /// Sets the file's current size. A single file of an owner may use the whole budget; several share half of it.
    pub(super) fn resize(&self, bytes: usize) -> Result<(), OpError> {
        let mut taken = self.budget.lock();
        let Some(index) = taken.iter().position(|taken| taken.id == self.id) else { return Ok(()) };
        taken[index].bytes = bytes;
        let owner = &taken[index].owner;
        let own: Vec<usize> =
            taken.iter().filter(|taken| taken.owner == *owner).map(|taken| taken.bytes).collect();
        let all: usize = taken.iter().map(|taken| taken.bytes).sum();
        let too_much = own.len() > 1 && own.iter().sum::<usize>() > BYTES / 2;
        if all > BYTES || too_much {
            let most = if too_much { BYTES / 2 } else { BYTES };
            let message = format!("the files that are being imported need more than {} MiB", most >> 20);
            return Err(OpError::new(ErrorCode::CapacityExceeded, message));
        }
        Ok(())
    }
}

impl Drop for ImportReservation {
    fn drop(&mut self) {
        self.budget.lock().retain(|taken| taken.id != self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::{BYTES, FILES, ImportBudget};
    use vm_system_record::Owner;

    #[test]
    fn reservation_lasts_until_dropped_and_one_owner_has_half_at_most() {
        let (budget, a, b) = (ImportBudget::default(), Owner::new("a"), Owner::new("b"));
        let first = budget.reserve(&a).expect("empty");
        first.resize(BYTES).expect("one file may use the whole budget");
        let other = budget.reserve(&b).expect("half is left");
        assert!(other.resize(1).is_err(), "the budget is used up");
        drop(first);
        other.resize(BYTES).expect("it was returned");
        other.resize(1).expect("less");
        let reservations: Vec<_> =
            (0..FILES / 2).map(|_| budget.reserve(&a).expect("half of them")).collect();
        assert!(budget.reserve(&a).is_err(), "the other half is for others");
        reservations[0].resize(BYTES / 2).expect("half");
        assert!(reservations[1].resize(1).is_err(), "together they have half");
        budget.reserve(&b).expect("other owners have their half");
    }
}
