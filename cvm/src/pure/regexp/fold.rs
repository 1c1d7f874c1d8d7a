//! `Canonicalize`, ECMA-262 22.2.2.7.3, and the sets of characters that are equal under it.
//!
//! Patterns with `i` are compiled to sets that hold every equal character, so matching itself never folds; only
//! backreferences compare canonical forms.

use super::set::CodeSet;
use icu_casemap::CaseMapper;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// From this code point on there are no case mappings (the last block with case is Adlam, U+1E900 to U+1E95F).
const CASED_END: u32 = 0x2_0000;

/// The canonical form of one character: simple case folding in Unicode mode, else the upper case of one unit.
pub(super) fn canonicalize(code_point: u32, unicode: bool) -> u32 {
    let Some(letter) = char::from_u32(code_point) else { return code_point };
    if unicode {
        return u32::from(CaseMapper::new().simple_fold(letter));
    }
    if letter.is_ascii() {
        return u32::from(letter.to_ascii_uppercase());
    }
    let mut upper = letter.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(upper), None)
            if u32::from(upper) >= 128 && u32::from(upper) < 0x1_0000 && code_point < 0x1_0000 =>
        {
            u32::from(upper)
        }
        _ => code_point,
    }
}

/// For each canonical form the characters that have it, for forms with more than one.
type Classes = BTreeMap<u32, Vec<u32>>;

fn classes(unicode: bool) -> &'static Classes {
    static UNICODE: OnceLock<Classes> = OnceLock::new();
    static UNITS: OnceLock<Classes> = OnceLock::new();
    let cell = if unicode { &UNICODE } else { &UNITS };
    cell.get_or_init(|| {
        let mut classes = Classes::new();
        for code_point in 0..CASED_END {
            let form = canonicalize(code_point, unicode);
            if form != code_point {
                classes.entry(form).or_insert_with(|| vec![form]).push(code_point);
            }
        }
        classes
    })
}

/// Every character with the same canonical form as a member of `set`.
pub(super) fn closure(set: &CodeSet, unicode: bool) -> CodeSet {
    let mut ranges = set.ranges().to_vec();
    for members in classes(unicode).values() {
        let inside = members.iter().filter(|member| set.contains(**member)).count();
        if inside > 0 && inside < members.len() {
            ranges.extend(members.iter().map(|member| (*member, *member)));
        }
    }
    CodeSet::new(ranges)
}

/// The characters equal to one.
pub(super) fn equals(code_point: u32, unicode: bool) -> CodeSet {
    match classes(unicode).get(&canonicalize(code_point, unicode)) {
        Some(members) => CodeSet::new(members.iter().map(|member| (*member, *member)).collect()),
        None => CodeSet::one(code_point),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_fold_differently() {
        let k = u32::from('k');
        assert!(equals(k, true).contains(0x212A), "the Kelvin sign folds to k");
        assert!(
            !equals(k, false).contains(0x212A),
            "but its lower case is ASCII, so it does not in unit mode"
        );
        assert!(equals(0xDF, true).contains(0x1E9E));
        assert!(!equals(0xDF, false).contains(0x1E9E), "ß has no single upper case");
        assert_eq!(equals(0x10428, true).ranges(), [(0x10400, 0x10400), (0x10428, 0x10428)]);
        assert_eq!(equals(0x3A3, false).ranges(), [(0x3A3, 0x3A3), (0x3C2, 0x3C3)]);
        assert_eq!(equals(0x130, true).ranges(), [(0x130, 0x130)]);
        assert_eq!(equals(0xD800, true).ranges(), [(0xD800, 0xD800)]);
    }

    #[test]
    fn nothing_above_the_bound_has_case() {
        assert!((CASED_END..=0x10_FFFF).all(|code_point| canonicalize(code_point, true) == code_point));
    }

    #[test]
    fn closure_adds_partners_once() {
        let set = closure(&CodeSet::new(vec![(0x61, 0x7A)]), false);
        assert_eq!(set.ranges(), [(0x41, 0x5A), (0x61, 0x7A)]);
    }
}
