//! Views on strings as sequences of UTF-16 code units, and the predicates on them that several clauses share.
//!
//! Owns: the [`Units`] trait (so that Latin-1 and UTF-16 storage need no copy), code point decoding, the white space
//! set and trimming. Must not: depend on how the engine stores strings.

/// A string as a sequence of UTF-16 code units, ECMA-262 6.1.4.
///
/// Implemented for UTF-16 (`[u16]`) and for Latin-1 (`[u8]`, each byte one code unit).
pub(crate) trait Units {
    /// Number of code units.
    fn count(&self) -> usize;
    /// The code unit at `index`, which is below [`Units::count`].
    fn unit(&self, index: usize) -> u16;
}

impl Units for [u16] {
    #[inline]
    fn count(&self) -> usize {
        self.len()
    }
    #[inline]
    fn unit(&self, index: usize) -> u16 {
        self[index]
    }
}

impl Units for [u8] {
    #[inline]
    fn count(&self) -> usize {
        self.len()
    }
    #[inline]
    fn unit(&self, index: usize) -> u16 {
        u16::from(self[index])
    }
}

/// True for a leading surrogate, U+D800 to U+DBFF.
#[inline]
pub(crate) fn is_lead(unit: u16) -> bool {
    (0xD800..0xDC00).contains(&unit)
}

/// True for a trailing surrogate, U+DC00 to U+DFFF.
#[inline]
pub(crate) fn is_trail(unit: u16) -> bool {
    (0xDC00..0xE000).contains(&unit)
}

/// Joins a surrogate pair, ECMA-262 11.1.3 `UTF16SurrogatePairToCodePoint`.
#[inline]
pub(crate) fn join_pair(lead: u16, trail: u16) -> u32 {
    0x1_0000 + ((u32::from(lead) - 0xD800) << 10) + (u32::from(trail) - 0xDC00)
}

/// The code point that begins at `index` and its length in units, ECMA-262 11.1.4 `CodePointAt`.
/// A lone surrogate is returned as itself. `index` must be below the count.
#[inline]
pub(crate) fn code_point_at<U: Units + ?Sized>(text: &U, index: usize) -> (u32, usize) {
    let first = text.unit(index);
    if is_lead(first) && index + 1 < text.count() {
        let second = text.unit(index + 1);
        if is_trail(second) {
            return (join_pair(first, second), 2);
        }
    }
    (u32::from(first), 1)
}

/// The code point that ends before `end` and its length in units; `end` must be above zero.
#[inline]
pub(crate) fn code_point_before<U: Units + ?Sized>(text: &U, end: usize) -> (u32, usize) {
    let last = text.unit(end - 1);
    if is_trail(last) && end >= 2 {
        let first = text.unit(end - 2);
        if is_lead(first) {
            return (join_pair(first, last), 2);
        }
    }
    (u32::from(last), 1)
}

/// Appends a code point (a lone surrogate too) as UTF-16, ECMA-262 11.1.1 `UTF16EncodeCodePoint`.
#[inline]
pub(crate) fn push_code_point(out: &mut Vec<u16>, code_point: u32) {
    if code_point < 0x1_0000 {
        out.push(code_point as u16);
    } else {
        let rest = code_point - 0x1_0000;
        out.push(0xD800 + (rest >> 10) as u16);
        out.push(0xDC00 + (rest & 0x3FF) as u16);
    }
}

/// True for the code units of `WhiteSpace` and `LineTerminator`, ECMA-262 12.2 and 12.3. All are in the BMP.
#[inline]
pub(crate) fn is_white_space(unit: u16) -> bool {
    match unit {
        0..=0x1FFF => matches!(unit, 0x0009..=0x000D | 0x0020 | 0x00A0 | 0x1680),
        0x2000..=0x200A | 0x2028 | 0x2029 | 0x202F | 0x205F | 0x3000 | 0xFEFF => true,
        _ => false,
    }
}

/// True for the code units of `LineTerminator`, ECMA-262 12.3.
#[inline]
pub(crate) fn is_line_terminator(unit: u16) -> bool {
    matches!(unit, 0x0A | 0x0D | 0x2028 | 0x2029)
}

/// The ends that [`trim`] trims.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trim {
    /// `trimStart`
    Start,
    /// `trimEnd`
    End,
    /// `trim`
    Both,
}

/// The range of units that stays after trimming, ECMA-262 22.1.3.32.1 `TrimString`.
pub(crate) fn trim<U: Units + ?Sized>(text: &U, ends: Trim) -> std::ops::Range<usize> {
    let mut start = 0;
    let mut end = text.count();
    if ends != Trim::End {
        while start < end && is_white_space(text.unit(start)) {
            start += 1;
        }
    }
    if ends != Trim::Start {
        while end > start && is_white_space(text.unit(end - 1)) {
            end -= 1;
        }
    }
    start..end
}

/// True if there is no lone surrogate, ECMA-262 7.2.9 `IsStringWellFormedUnicode`.
pub(crate) fn is_well_formed<U: Units + ?Sized>(text: &U) -> bool {
    let mut index = 0;
    while index < text.count() {
        let (code_point, length) = code_point_at(text, index);
        if length == 1 && (0xD800..0xE000).contains(&code_point) {
            return false;
        }
        index += length;
    }
    true
}

/// The text with every lone surrogate replaced by U+FFFD, ECMA-262 22.1.3.31 `String.prototype.toWellFormed`.
pub(crate) fn to_well_formed(text: &[u16]) -> Vec<u16> {
    let mut out = Vec::with_capacity(text.len());
    let mut index = 0;
    while index < text.len() {
        let (code_point, length) = code_point_at(text, index);
        if length == 1 && (0xD800..0xE000).contains(&code_point) {
            out.push(0xFFFD);
        } else {
            out.extend_from_slice(&text[index..index + length]);
        }
        index += length;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf16(text: &str) -> Vec<u16> {
        text.encode_utf16().collect()
    }

    #[test]
    fn white_space_set_is_the_one_of_the_grammar() {
        let members: Vec<u16> = (0..=u16::MAX).filter(|unit| is_white_space(*unit)).collect();
        let mut expected = vec![0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x20, 0xA0, 0x1680];
        expected.extend(0x2000..=0x200A);
        expected.extend([0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0xFEFF]);
        assert_eq!(members, expected);
    }

    #[test]
    fn trim_trims_only_the_given_ends() {
        let text = utf16(" \u{feff}a b\u{2029}\t");
        assert_eq!(trim(text.as_slice(), Trim::Both), 2..5);
        assert_eq!(trim(text.as_slice(), Trim::Start), 2..7);
        assert_eq!(trim(text.as_slice(), Trim::End), 0..5);
        assert!(trim(utf16(" \n ").as_slice(), Trim::Both).is_empty());
        assert_eq!(trim(b"\xA0x ".as_slice(), Trim::Both), 1..2);
    }

    #[test]
    fn code_points_join_only_proper_pairs() {
        let text: [u16; 5] = [0xD83D, 0xDE00, 0xD83D, 0x41, 0xDE00];
        assert_eq!(code_point_at(text.as_slice(), 0), (0x1F600, 2));
        assert_eq!(code_point_at(text.as_slice(), 1), (0xDE00, 1));
        assert_eq!(code_point_at(text.as_slice(), 2), (0xD83D, 1));
        assert_eq!(code_point_before(text.as_slice(), 2), (0x1F600, 2));
        assert_eq!(code_point_before(text.as_slice(), 5), (0xDE00, 1));
        let mut out = Vec::new();
        push_code_point(&mut out, 0x1F600);
        push_code_point(&mut out, 0xD800);
        assert_eq!(out, [0xD83D, 0xDE00, 0xD800]);
    }

    #[test]
    fn lone_surrogates_are_found_and_replaced() {
        assert!(is_well_formed(utf16("a😀").as_slice()));
        assert!(!is_well_formed([0xDE00_u16, 0xD83D].as_slice()));
        assert_eq!(to_well_formed(&[0xD83D, 0xDE00, 0xD83D]), [0xD83D, 0xDE00, 0xFFFD]);
        assert_eq!(to_well_formed(&[0xDE00, 0x41]), [0xFFFD, 0x41]);
    }
}
