//! `BigInt` text: `StringToBigInt` and printing in a radix.
//!
//! Must not: do arithmetic. Conversion of very long decimal text is quadratic in num-bigint; callers bound the length.

use super::units::{Trim, Units, trim};
use num_bigint::{BigInt, Sign};

/// Most digits that [`string_to_bigint`] reads: enough for 1 Mbit, small enough that the conversion stays in milliseconds.
pub(crate) const MAX_BIGINT_DIGITS: usize = 1 << 20;

/// Why text is not a `BigInt`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BigIntTextError {
    /// The text is not a `StringIntegerLiteral`; the caller throws `SyntaxError` or compares as undefined.
    Syntax,
    /// More than [`MAX_BIGINT_DIGITS`] digits; the caller throws `RangeError`.
    TooLong,
}

/// `StringToBigInt`, ECMA-262 7.1.14: white space around is ignored, empty text is zero, a sign only before decimal digits.
pub(crate) fn string_to_bigint<U: Units + ?Sized>(text: &U) -> Result<BigInt, BigIntTextError> {
    let range = trim(text, Trim::Both);
    if range.is_empty() {
        return Ok(BigInt::ZERO);
    }
    let mut start = range.start;
    let second = if range.len() > 2 && text.unit(start) == 0x30 { text.unit(start + 1) } else { 0 };
    let (radix, sign) = match second {
        0x78 | 0x58 => (16, Sign::Plus),
        0x6F | 0x4F => (8, Sign::Plus),
        0x62 | 0x42 => (2, Sign::Plus),
        _ => match text.unit(start) {
            0x2B => (10, Sign::Plus),
            0x2D => (10, Sign::Minus),
            _ => (0, Sign::Plus),
        },
    };
    start += match radix {
        0 => 0,
        10 => 1,
        _ => 2,
    };
    let radix = if radix == 0 { 10 } else { radix };
    let mut digits = Vec::with_capacity((range.end - start).min(MAX_BIGINT_DIGITS));
    for index in start..range.end {
        let digit = char::from_u32(u32::from(text.unit(index))).and_then(|unit| unit.to_digit(radix));
        let Some(digit) = digit else { return Err(BigIntTextError::Syntax) };
        if digits.len() == MAX_BIGINT_DIGITS {
            return Err(BigIntTextError::TooLong);
        }
        digits.push(digit as u8);
    }
    if digits.is_empty() {
        return Err(BigIntTextError::Syntax);
    }
    BigInt::from_radix_be(sign, &digits, radix).ok_or(BigIntTextError::Syntax)
}

/// `BigInt::toString(x, radix)`, ECMA-262 6.1.6.2.21, for radices 2 to 36.
pub(crate) fn bigint_to_string(value: &BigInt, radix: u32) -> String {
    value.to_str_radix(radix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(source: &str) -> Option<String> {
        string_to_bigint(source.as_bytes()).ok().map(|value| bigint_to_string(&value, 10))
    }

    #[test]
    fn strings_follow_the_integer_literal_grammar() {
        for (source, expected) in [
            ("", Some("0")),
            ("  -12 ", Some("-12")),
            ("+5", Some("5")),
            ("0x1F", Some("31")),
            ("0o17", Some("15")),
            ("0B11", Some("3")),
            ("-0x1", None),
            ("+0b1", None),
            ("0x", None),
            ("1n", None),
            ("1.0", None),
            ("1e3", None),
            ("-", None),
            ("- 1", None),
            ("007", Some("7")),
            ("-0", Some("0")),
            ("123456789012345678901234567890", Some("123456789012345678901234567890")),
        ] {
            assert_eq!(text(source).as_deref(), expected, "{source:?}");
        }
    }

    #[test]
    fn too_many_digits_are_refused() {
        let long = "1".repeat(MAX_BIGINT_DIGITS + 1);
        assert_eq!(string_to_bigint(long.as_bytes()), Err(BigIntTextError::TooLong));
    }

    #[test]
    fn radix_text_is_lower_case_with_sign() {
        assert_eq!(bigint_to_string(&BigInt::from(-255), 16), "-ff");
        assert_eq!(bigint_to_string(&BigInt::from(35), 36), "z");
    }
}
