//! A list in memory of what was given to clients, the oldest first, bounded for each owner and in all: the entries of one owner push out
//! no other's. Does not know what the entries mean.

use std::collections::VecDeque;
use vm_system_record::Owner;

/// An entry that counts for an owner.
pub(super) trait OwnedEntry {
    /// `None`: agents on standard streams, which are one user's.
    fn owner(&self) -> Option<&Owner>;
}

/// The entries of all owners.
#[derive(Debug)]
pub(super) struct EntriesPerOwner<T> {
    entries: VecDeque<T>,
    /// Above it the owner's oldest entry is evicted.
    of_one: usize,
    /// Above it the oldest entry of all is evicted.
    of_all: usize,
}

impl<T: OwnedEntry> EntriesPerOwner<T> {
    pub(super) fn new(of_one: usize, of_all: usize) -> Self {
        Self { entries: VecDeque::new(), of_one, of_all }
    }

    /// Adds an entry; evicts one if there are too many.
    pub(super) fn push(&mut self, entry: T) {
        let owner = entry.owner();
        let mut same_owner = self.entries.iter().enumerate().filter(|(_, one)| one.owner() == owner);
        let oldest = same_owner.next().map(|(index, _)| index);
        if let Some(oldest) = oldest.filter(|_| same_owner.count() + 1 >= self.of_one) {
            self.entries.remove(oldest);
        } else if self.entries.len() >= self.of_all {
            self.entries.pop_front();
        }
        self.entries.push_back(entry);
    }

    pub(super) fn retain(&mut self, keep: impl FnMut(&T) -> bool) {
        self.entries.retain(keep);
    }

    /// The entries, the oldest first.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> + ExactSizeIterator {
        self.entries.iter()
    }

    /// Removes the entry with this place in [`EntriesPerOwner::iter`].
    pub(super) fn remove(&mut self, place: usize) {
        self.entries.remove(place);
    }
}

#[cfg(test)]
mod tests {
    use super::{EntriesPerOwner, OwnedEntry};
    use vm_system_record::Owner;

    struct Entry(Option<Owner>, u32);

    impl OwnedEntry for Entry {
        fn owner(&self) -> Option<&Owner> {
            self.0.as_ref()
        }
    }

    #[test]
    fn the_oldest_of_the_same_owner_makes_way_and_the_oldest_of_all_when_there_are_too_many_owners() {
        let mut entries = EntriesPerOwner::new(2, 4);
        let mut push = |owner: &str, number| {
            entries.push(Entry(Some(Owner::new(owner)), number));
            entries.iter().map(|entry| entry.1).collect::<Vec<_>>()
        };
        push("bob", 1);
        push("alice", 2);
        push("alice", 3);
        assert_eq!(push("alice", 4), [1, 3, 4]);
        assert_eq!(push("carol", 5), [1, 3, 4, 5]);
        assert_eq!(push("dave", 6), [3, 4, 5, 6]);
    }
}
