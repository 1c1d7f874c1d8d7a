//! Finding text in text in linear time: `StringIndexOf` and `StringLastIndexOf`, ECMA-262 6.1.4.1 and 6.1.4.2.
//!
//! Uses the algorithm of Knuth, Morris and Pratt: a search costs the program one instruction, and the naive algorithm is
//! quadratic on adversarial texts.

use super::units::Units;

/// Reads a text from its end.
struct Reversed<'a, U: Units + ?Sized>(&'a U);

impl<U: Units + ?Sized> Units for Reversed<'_, U> {
    fn count(&self) -> usize {
        self.0.count()
    }
    fn unit(&self, index: usize) -> u16 {
        self.0.unit(self.0.count() - 1 - index)
    }
}

/// The first position at or after `from` at which `needle` occurs in `text`.
pub(crate) fn index_of<T: Units + ?Sized, N: Units + ?Sized>(
    text: &T,
    needle: &N,
    from: usize,
) -> Option<usize> {
    let (length, wanted) = (text.count(), needle.count());
    if wanted == 0 {
        return (from <= length).then_some(from);
    }
    if from > length || wanted > length - from {
        return None;
    }
    if wanted == 1 {
        let unit = needle.unit(0);
        return (from..length).find(|&index| text.unit(index) == unit);
    }
    let table = borders(needle);
    let mut matched = 0;
    for index in from..length {
        let unit = text.unit(index);
        while matched > 0 && needle.unit(matched) != unit {
            matched = table[matched - 1] as usize;
        }
        if needle.unit(matched) == unit {
            matched += 1;
        }
        if matched == wanted {
            return Some(index + 1 - wanted);
        }
    }
    None
}

/// The last position at or before `from` at which `needle` occurs in `text`.
pub(crate) fn last_index_of<T: Units + ?Sized, N: Units + ?Sized>(
    text: &T,
    needle: &N,
    from: usize,
) -> Option<usize> {
    let (length, wanted) = (text.count(), needle.count());
    let last = length.checked_sub(wanted)?;
    let start = from.min(last);
    // In the reversed text the match begins where it ends here.
    let found = index_of(&Reversed(text), &Reversed(needle), last - start)?;
    Some(last - found)
}

/// For each prefix of the needle the length of its longest proper border.
fn borders<N: Units + ?Sized>(needle: &N) -> Vec<u32> {
    let mut table = vec![0_u32; needle.count()];
    let mut length = 0;
    for index in 1..needle.count() {
        let unit = needle.unit(index);
        while length > 0 && needle.unit(length) != unit {
            length = table[length - 1] as usize;
        }
        if needle.unit(length) == unit {
            length += 1;
        }
        table[index] = length as u32;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_naive_search() {
        let mut random = vm_system_testkit::SeededRandom::new(7);
        let mut text = |limit: u64| {
            let length = random.below(limit);
            (0..length).map(|_| b'a' + random.index(2) as u8).collect::<Vec<u8>>()
        };
        for _ in 0..3000 {
            let (haystack, needle) = (text(20), text(5));
            for from in 0..=haystack.len() + 1 {
                let fits = |&at: &usize| haystack[at..].starts_with(&needle);
                let first = (from..=haystack.len()).find(fits);
                assert_eq!(index_of(haystack.as_slice(), needle.as_slice(), from), first);
                let last = (0..=haystack.len().min(from)).rev().find(fits);
                assert_eq!(last_index_of(haystack.as_slice(), needle.as_slice(), from), last);
            }
        }
    }

    #[test]
    fn hostile_texts_are_searched_in_linear_time() {
        let text = vec![b'a'; 2_000_000];
        let mut needle = vec![b'a'; 1_000_000];
        needle[999_999] = b'b';
        assert_eq!(index_of(text.as_slice(), needle.as_slice(), 0), None);
        needle[999_999] = b'a';
        needle[0] = b'b';
        assert_eq!(last_index_of(text.as_slice(), needle.as_slice(), usize::MAX), None);
    }
}
