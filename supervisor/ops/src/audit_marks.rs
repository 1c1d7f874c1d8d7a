//! The numbers of lines of the audit log as users see them. The numbers themselves count the lines of all owners: their gaps would show
//! how much others do. Knows no line.

use std::hash::{BuildHasher as _, RandomState};

/// Bits of one half of a number; the whole is exact in JSON.
const HALF_BITS: u32 = 24;
const HALF: u64 = (1 << HALF_BITS) - 1;
/// The numbers are below it; marks that give larger ones were never given.
const NUMBERS: u64 = 1 << 40;
const ROUNDS: u32 = 4;

/// Turns numbers into marks and back (a Feistel network), differently for each supervisor.
#[derive(Debug, Default)]
pub(crate) struct AuditMarks(RandomState);

impl AuditMarks {
    pub(crate) fn mark(&self, number: u64) -> u64 {
        self.rounds(number, 0..ROUNDS)
    }

    /// `None`: not one of this supervisor.
    pub(crate) fn number(&self, mark: u64) -> Option<u64> {
        if mark >> (2 * HALF_BITS) != 0 {
            return None;
        }
        // Backwards, with the halves exchanged.
        let number = swapped(self.rounds(swapped(mark), (0..ROUNDS).rev()));
        (number < NUMBERS).then_some(number)
    }

    fn rounds(&self, value: u64, rounds: impl Iterator<Item = u32>) -> u64 {
        let halves = (value >> HALF_BITS & HALF, value & HALF);
        let (left, right) = rounds
            .fold(halves, |(left, right), round| (right, left ^ (self.0.hash_one((round, right)) & HALF)));
        left << HALF_BITS | right
    }
}

fn swapped(value: u64) -> u64 {
    (value & HALF) << HALF_BITS | value >> HALF_BITS
}

#[cfg(test)]
mod tests {
    use super::{AuditMarks, NUMBERS};

    #[test]
    fn a_mark_has_its_number_and_shows_neither_order_nor_distance() {
        let marks = AuditMarks::default();
        let numbers: Vec<u64> = (0..1_000).chain([1 << 24, 1 << 32, NUMBERS - 1]).collect();
        let given: Vec<u64> = numbers.iter().map(|number| marks.mark(*number)).collect();
        let back: Vec<Option<u64>> = given.iter().map(|mark| marks.number(*mark)).collect();
        assert_eq!(back, numbers.iter().copied().map(Some).collect::<Vec<_>>());
        assert!(given.iter().all(|mark| *mark < 1 << 48));
        let increasing = given[..1_000].is_sorted();
        let near = given.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) < 1 << 32).count();
        assert!(!increasing && near < 10, "{near}");
        let strangers = (0..1_000).filter_map(|mark| marks.number(mark * 999_983)).count();
        assert!(strangers < 100, "{strangers}");
        assert_eq!(marks.number(u64::MAX), None);
    }
}
