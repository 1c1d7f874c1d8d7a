//! What files that are being imported take in memory: from their first part until they are stored or given up, wherever they
//! are meanwhile. Owns no file.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use vm_system_protocol::control::{ErrorCode, OpError};
use vm_system_record::Owner;

/// What all of them may take (bytes).
const BYTES: usize = 512 << 20;
/// How many there may be.
const FILES: usize = 16;

/// All places.
#[derive(Debug, Clone, Default)]
pub(super) struct Room(Arc<Mutex<Vec<Taken>>>);

#[derive(Debug)]
struct Taken {
    id: u64,
    owner: Owner,
    bytes: usize,
}

/// The place of one file; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    room: Room,
    id: u64,
}

impl Room {
    fn lock(&self) -> MutexGuard<'_, Vec<Taken>> {
        // Nothing under this lock can panic half-way through a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for one more; half of them are nobody's alone.
    pub(super) fn enter(&self, owner: &Owner) -> Result<Place, OpError> {
        let mut taken = self.lock();
        let own = taken.iter().filter(|taken| taken.owner == *owner).count();
        if taken.len() >= FILES || own >= FILES / 2 {
            return Err(OpError::new(ErrorCode::CapacityExceeded, "too many files are being imported")
                .with_hint("try again when one of them is done"));
        }
        let id = taken.iter().map(|taken| taken.id).max().map_or(0, |last| last + 1);
        taken.push(Taken { id, owner: owner.clone(), bytes: 0 });
        Ok(Place { room: self.clone(), id })
    }
}

impl Place {
    /// It takes so much now. One file may take everything; who has more of them shares half of it.
    pub(super) fn takes(&self, bytes: usize) -> Result<(), OpError> {
        let mut taken = self.room.lock();
        let Some(place) = taken.iter().position(|taken| taken.id == self.id) else { return Ok(()) };
        taken[place].bytes = bytes;
        let owner = &taken[place].owner;
        let own: Vec<usize> =
            taken.iter().filter(|taken| taken.owner == *owner).map(|taken| taken.bytes).collect();
        let all: usize = taken.iter().map(|taken| taken.bytes).sum();
        let too_much = own.len() > 1 && own.iter().sum::<usize>() > BYTES / 2;
        if all > BYTES || too_much {
            let most = if too_much { BYTES / 2 } else { BYTES };
            let message = format!("the files that are being imported take more than {} MiB", most >> 20);
            return Err(OpError::new(ErrorCode::CapacityExceeded, message));
        }
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.room.lock().retain(|taken| taken.id != self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::{BYTES, FILES, Room};
    use vm_system_record::Owner;

    #[test]
    fn a_file_counts_until_it_is_done_and_nobody_takes_the_places_of_all() {
        let (room, a, b) = (Room::default(), Owner::new("a"), Owner::new("b"));
        let first = room.enter(&a).expect("empty");
        first.takes(BYTES).expect("one file may take everything");
        let other = room.enter(&b).expect("there are places");
        assert!(other.takes(1).is_err(), "there is no room beside it");
        drop(first);
        other.takes(BYTES).expect("it was given back");
        other.takes(1).expect("less");
        let places: Vec<_> = (0..FILES / 2).map(|_| room.enter(&a).expect("half of them")).collect();
        assert!(room.enter(&a).is_err(), "the other half is for others");
        places[0].takes(BYTES / 2).expect("half");
        assert!(places[1].takes(1).is_err(), "together they have half");
        room.enter(&b).expect("there are places for others");
    }
}
