//! Text to Number: `StringToNumber` (ECMA-262 7.1.4.1.1), `parseFloat` (19.2.4) and `parseInt` (19.2.5).
//!
//! Digits are collected as ASCII and passed to the correctly rounding parser of the standard library.

use super::super::units::{Trim, Units, trim};
use num_bigint::BigUint;
use num_traits::ToPrimitive;

/// `StringToNumber`, ECMA-262 7.1.4.1.1: NaN unless the whole trimmed text is a `StringNumericLiteral`.
pub(crate) fn string_to_number<U: Units + ?Sized>(text: &U) -> f64 {
    let range = trim(text, Trim::Both);
    if range.is_empty() {
        return 0.0;
    }
    if range.len() > 2 && text.unit(range.start) == u16::from(b'0') {
        let radix = match text.unit(range.start + 1) {
            0x78 | 0x58 => 16,
            0x6F | 0x4F => 8,
            0x62 | 0x42 => 2,
            _ => 0,
        };
        if radix != 0 {
            let digits = range.start + 2..range.end;
            let Some(value) = all_digits(text, digits.clone(), radix) else { return f64::NAN };
            return value;
        }
    }
    let (value, end) = decimal_prefix(text, range.start, range.end);
    if end == range.end { value } else { f64::NAN }
}

/// `parseFloat`, ECMA-262 19.2.4: the longest prefix that is a `StrDecimalLiteral`, else NaN.
pub(crate) fn parse_float<U: Units + ?Sized>(text: &U) -> f64 {
    let range = trim(text, Trim::Start);
    decimal_prefix(text, range.start, range.end).0
}

/// `parseInt`, ECMA-262 19.2.5. `radix` is the result of `ToInt32` of the second argument.
pub(crate) fn parse_int<U: Units + ?Sized>(text: &U, radix: i32) -> f64 {
    let range = trim(text, Trim::Start);
    let mut start = range.start;
    let mut negative = false;
    if start < range.end && matches!(text.unit(start), 0x2B | 0x2D) {
        negative = text.unit(start) == 0x2D;
        start += 1;
    }
    let mut strip_prefix = true;
    let radix = match radix {
        0 => 10,
        2..=36 => {
            strip_prefix = radix == 16;
            radix.unsigned_abs()
        }
        _ => return f64::NAN,
    };
    let prefixed = start + 1 < range.end
        && text.unit(start) == u16::from(b'0')
        && matches!(text.unit(start + 1), 0x78 | 0x58);
    let radix = if strip_prefix && prefixed {
        start += 2;
        16
    } else {
        radix
    };
    let end = (start..range.end).find(|&index| digit(text.unit(index), radix).is_none()).unwrap_or(range.end);
    let Some(value) = all_digits(text, start..end, radix) else { return f64::NAN };
    if negative { -value } else { value }
}

/// The value of a code unit as a digit of `radix`.
fn digit(unit: u16, radix: u32) -> Option<u32> {
    char::from_u32(u32::from(unit))?.to_digit(radix)
}

/// The Number nearest to the digits in `range`; `None` if there is none or a unit is not a digit.
fn all_digits<U: Units + ?Sized>(text: &U, range: std::ops::Range<usize>, radix: u32) -> Option<f64> {
    if range.is_empty() {
        return None;
    }
    let mut value = 0_u64;
    let mut digits = Vec::with_capacity(range.len());
    let mut exact = true;
    for index in range {
        let next = digit(text.unit(index), radix)?;
        digits.push(next as u8);
        match value.checked_mul(u64::from(radix)).and_then(|value| value.checked_add(u64::from(next))) {
            Some(sum) if exact && sum <= 1 << 53 => value = sum,
            _ => exact = false,
        }
    }
    if exact {
        return Some(value as f64);
    }
    Some(nearest(&digits, radix))
}

/// Correctly rounded value of many digits. Cost is linear for powers of two and for ten. For other radices, where the
/// specification allows an approximation, only the leading digits are read: enough of them (1 100 bits) that the rest can
/// matter for exact ties only.
fn nearest(digits: &[u8], radix: u32) -> f64 {
    let digits = &digits[digits.iter().position(|digit| *digit != 0).unwrap_or(digits.len())..];
    if radix == 10 {
        let text: String = digits.iter().map(|digit| char::from(b'0' + digit)).collect();
        return text.parse().unwrap_or(f64::INFINITY);
    }
    // No Number has more than 1024 bits before the point, and each digit has at least one.
    if digits.len() > 1100 {
        return f64::INFINITY;
    }
    BigUint::from_radix_be(digits, radix).and_then(|value| value.to_f64()).unwrap_or(f64::INFINITY)
}

/// The value and the end of the longest `StrDecimalLiteral` at `start`; NaN and `start` if there is none.
fn decimal_prefix<U: Units + ?Sized>(text: &U, start: usize, end: usize) -> (f64, usize) {
    let at = |index: usize| if index < end { text.unit(index) } else { 0 };
    let is_digit = |index: usize| (0x30..=0x39).contains(&at(index));
    let mut index = start;
    let negative = at(index) == 0x2D;
    if matches!(at(index), 0x2B | 0x2D) {
        index += 1;
    }
    if "Infinity".bytes().enumerate().all(|(offset, byte)| at(index + offset) == u16::from(byte)) {
        let value = if negative { f64::NEG_INFINITY } else { f64::INFINITY };
        return (value, index + 8);
    }
    let mut ascii = String::new();
    if negative {
        ascii.push('-');
    }
    let mut any = false;
    while is_digit(index) {
        ascii.push(char::from(at(index) as u8));
        index += 1;
        any = true;
    }
    if at(index) == 0x2E && (any || is_digit(index + 1)) {
        ascii.push('.');
        index += 1;
        while is_digit(index) {
            ascii.push(char::from(at(index) as u8));
            index += 1;
            any = true;
        }
    }
    if !any {
        return (f64::NAN, start);
    }
    if matches!(at(index), 0x65 | 0x45) {
        let sign = usize::from(matches!(at(index + 1), 0x2B | 0x2D));
        if is_digit(index + 1 + sign) {
            ascii.push('e');
            if at(index + 1) == 0x2D {
                ascii.push('-');
            }
            index += 1 + sign;
            while is_digit(index) {
                ascii.push(char::from(at(index) as u8));
                index += 1;
            }
        }
    }
    (ascii.parse().unwrap_or(f64::NAN), index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> f64 {
        string_to_number(text.encode_utf16().collect::<Vec<_>>().as_slice())
    }

    fn same(left: f64, right: f64) -> bool {
        left.to_bits() == right.to_bits() || (left.is_nan() && right.is_nan())
    }

    #[test]
    fn numeric_strings_follow_the_grammar() {
        for (text, value) in [
            ("", 0.0),
            (" \n\u{feff} ", 0.0),
            (" 12 ", 12.0),
            ("-0", -0.0),
            ("+.5", 0.5),
            ("5.", 5.0),
            (".", f64::NAN),
            ("+", f64::NAN),
            ("1e3", 1000.0),
            ("1e", f64::NAN),
            ("1e+", f64::NAN),
            (".e1", f64::NAN),
            ("0x1F", 31.0),
            ("0XfF", 255.0),
            ("0b101", 5.0),
            ("0o17", 15.0),
            ("0x", f64::NAN),
            ("-0x10", f64::NAN),
            ("0b2", f64::NAN),
            ("Infinity", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
            ("infinity", f64::NAN),
            ("inf", f64::NAN),
            ("nan", f64::NAN),
            ("1_000", f64::NAN),
            ("12px", f64::NAN),
            ("1 2", f64::NAN),
            ("0017", 17.0),
            ("9007199254740993", 9_007_199_254_740_992.0),
            ("1e400", f64::INFINITY),
            ("1e-400", 0.0),
            ("0x20000000000001", 9_007_199_254_740_992.0),
            ("0x20000000000003", 9_007_199_254_740_996.0),
            ("1e99999999999999999999", f64::INFINITY),
        ] {
            assert!(same(number(text), value), "{text:?} is {}", number(text));
        }
    }

    #[test]
    fn parse_float_reads_the_longest_prefix() {
        for (text, value) in [
            ("3.25abc", 3.25),
            ("  -1e3x", -1000.0),
            ("1e", 1.0),
            ("1.e5", 100_000.0),
            ("-.5.5", -0.5),
            ("-Infinityx", f64::NEG_INFINITY),
            ("Infinit", f64::NAN),
            ("0x10", 0.0),
            ("-0", -0.0),
            ("abc", f64::NAN),
            ("", f64::NAN),
            ("1_0", 1.0),
        ] {
            assert!(same(parse_float(text.as_bytes()), value), "{text:?}");
        }
    }

    #[test]
    fn parse_int_strips_prefixes_only_where_allowed() {
        for (text, radix, value) in [
            ("0x1f", 0, 31.0),
            ("0x1f", 16, 31.0),
            ("0x1f", 10, 0.0),
            ("-0x1f", 0, -31.0),
            ("0x", 16, f64::NAN),
            ("12px", 10, 12.0),
            ("z", 36, 35.0),
            ("z", 37, f64::NAN),
            ("1", 1, f64::NAN),
            ("1", -16, f64::NAN),
            ("-0", 0, -0.0),
            ("102", 2, 2.0),
            ("  42", 0, 42.0),
            ("", 0, f64::NAN),
            ("0b1", 0, 0.0),
            ("900719925474099267", 10, 900_719_925_474_099_300.0),
            ("zzzzzzzzzzzzzzzzzz", 36, 1.031_442_479_849_053_7e28),
        ] {
            let result = parse_int(text.as_bytes(), radix);
            assert!(same(result, value), "{text:?} {radix} is {result}");
        }
        assert_eq!(parse_int("1".repeat(200_000).as_bytes(), 36), f64::INFINITY);
        assert_eq!(parse_int("0".repeat(200_000).as_bytes(), 7), 0.0);
    }
}
