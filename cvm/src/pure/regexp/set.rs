//! Sets of code points as sorted ranges, with a bitmap for the first 256.

/// The largest code point.
pub(super) const LAST: u32 = 0x10_FFFF;

/// A set of code points, surrogates included. Ranges are inclusive, sorted, and neither overlap nor touch.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct CodeSet {
    ranges: Vec<(u32, u32)>,
    low: [u64; 4],
}

impl CodeSet {
    /// The set of these inclusive ranges, in any order.
    pub(crate) fn new(mut ranges: Vec<(u32, u32)>) -> CodeSet {
        ranges.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (first, last) in ranges {
            match merged.last_mut() {
                Some(previous) if first <= previous.1.saturating_add(1) => previous.1 = previous.1.max(last),
                _ => merged.push((first, last)),
            }
        }
        CodeSet::from_sorted(merged)
    }

    fn from_sorted(ranges: Vec<(u32, u32)>) -> CodeSet {
        let mut low = [0; 4];
        for (first, last) in ranges.iter().take_while(|range| range.0 < 256) {
            for code_point in *first..=(*last).min(255) {
                low[(code_point >> 6) as usize] |= 1 << (code_point & 63);
            }
        }
        CodeSet { ranges, low }
    }

    /// The set of one code point.
    pub(crate) fn one(code_point: u32) -> CodeSet {
        CodeSet::new(vec![(code_point, code_point)])
    }

    /// The inclusive ranges, sorted.
    pub(crate) fn ranges(&self) -> &[(u32, u32)] {
        &self.ranges
    }

    /// True if nothing is in the set.
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// True if `code_point` is in the set.
    #[inline]
    pub(crate) fn contains(&self, code_point: u32) -> bool {
        if code_point < 256 {
            return self.low[(code_point >> 6) as usize] >> (code_point & 63) & 1 == 1;
        }
        let after = self.ranges.partition_point(|range| range.0 <= code_point);
        after > 0 && self.ranges[after - 1].1 >= code_point
    }

    /// All code points that are not in the set.
    #[must_use]
    pub(crate) fn complement(&self) -> CodeSet {
        let mut ranges = Vec::with_capacity(self.ranges.len() + 1);
        let mut next = 0;
        for (first, last) in &self.ranges {
            if *first > next {
                ranges.push((next, first - 1));
            }
            next = last + 1;
        }
        if next <= LAST {
            ranges.push((next, LAST));
        }
        CodeSet::from_sorted(ranges)
    }

    /// The union.
    #[must_use]
    pub(crate) fn union(&self, other: &CodeSet) -> CodeSet {
        CodeSet::new(self.ranges.iter().chain(&other.ranges).copied().collect())
    }

    /// The intersection.
    #[must_use]
    pub(crate) fn intersection(&self, other: &CodeSet) -> CodeSet {
        let mut ranges = Vec::new();
        let (mut left, mut right) = (0, 0);
        while let (Some(a), Some(b)) = (self.ranges.get(left), other.ranges.get(right)) {
            let (first, last) = (a.0.max(b.0), a.1.min(b.1));
            if first <= last {
                ranges.push((first, last));
            }
            if a.1 < b.1 {
                left += 1;
            } else {
                right += 1;
            }
        }
        CodeSet::from_sorted(ranges)
    }

    /// The code points in this set and not in `other`.
    #[must_use]
    pub(crate) fn difference(&self, other: &CodeSet) -> CodeSet {
        self.intersection(&other.complement())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_merge_and_test_membership() {
        let set = CodeSet::new(vec![(300, 400), (65, 70), (71, 80), (350, 500)]);
        assert_eq!(set.ranges(), [(65, 80), (300, 500)]);
        for (code_point, inside) in
            [(64, false), (65, true), (80, true), (81, false), (300, true), (501, false)]
        {
            assert_eq!(set.contains(code_point), inside, "{code_point}");
        }
    }

    #[test]
    fn algebra_agrees_with_membership() {
        let left = CodeSet::new(vec![(0, 10), (100, 200), (LAST, LAST)]);
        let right = CodeSet::new(vec![(5, 150), (1000, 2000)]);
        let (union, both, minus, not) =
            (left.union(&right), left.intersection(&right), left.difference(&right), left.complement());
        for point in (0..3000).chain([LAST - 1, LAST]) {
            let (a, b) = (left.contains(point), right.contains(point));
            assert_eq!(union.contains(point), a || b);
            assert_eq!(both.contains(point), a && b);
            assert_eq!(minus.contains(point), a && !b);
            assert_eq!(not.contains(point), !a);
        }
        assert!(CodeSet::default().complement().complement().is_empty());
    }
}
