//! `toFixed`, `toExponential` and `toPrecision`, ECMA-262 21.1.3.2 to 21.1.3.5, with exact big integer arithmetic.
//!
//! The specification defines the result by the integer n nearest to the exact value, the larger of two equally near ones.
//! Floating point cannot decide that; integers can.

use num_bigint::BigUint;
use num_traits::Zero;

/// Largest `fractionDigits` of `toFixed` and `toExponential`.
pub(crate) const MAX_FRACTION_DIGITS: u32 = 100;
/// Largest `precision` of `toPrecision` (the smallest is 1).
pub(crate) const MAX_PRECISION: u32 = 100;

/// `Number.prototype.toFixed`, ECMA-262 21.1.3.3, for `digits` up to [`MAX_FRACTION_DIGITS`].
pub(crate) fn to_fixed(value: f64, digits: u32) -> String {
    if !value.is_finite() || value.abs() >= 1e21 {
        return super::to_string(value);
    }
    let (numerator, denominator) = ratio(value.abs());
    let scaled = round_half_up(&(numerator * BigUint::from(10_u8).pow(digits)), &denominator);
    let mut text = scaled.to_str_radix(10);
    let digits = digits as usize;
    if text.len() <= digits {
        text.insert_str(0, &"0".repeat(digits + 1 - text.len()));
    }
    if digits > 0 {
        text.insert(text.len() - digits, '.');
    }
    // −0 prints without a sign, a negative value that rounds to zero with one: step 6 tests x itself.
    if value < 0.0 {
        text.insert(0, '-');
    }
    text
}

/// `Number.prototype.toExponential`, ECMA-262 21.1.3.2; `None` means as many digits as necessary.
pub(crate) fn to_exponential(value: f64, digits: Option<u32>) -> String {
    if !value.is_finite() {
        return super::to_string(value);
    }
    let (text, exponent) = match digits {
        Some(digits) => decimal_digits(value.abs(), digits + 1),
        None => shortest_digits(value.abs()),
    };
    format!("{}{}", if value < 0.0 { "-" } else { "" }, exponential(&text, exponent))
}

/// `Number.prototype.toPrecision`, ECMA-262 21.1.3.5, for `precision` in 1..=[`MAX_PRECISION`].
pub(crate) fn to_precision(value: f64, precision: u32) -> String {
    if !value.is_finite() {
        return super::to_string(value);
    }
    let (digits, exponent) = decimal_digits(value.abs(), precision.max(1));
    let sign = if value < 0.0 { "-" } else { "" };
    let precision = precision.max(1) as i32;
    if exponent < -6 || exponent >= precision {
        return format!("{sign}{}", exponential(&digits, exponent));
    }
    if exponent == precision - 1 {
        return format!("{sign}{digits}");
    }
    if exponent >= 0 {
        let (whole, fraction) = digits.split_at(exponent as usize + 1);
        return format!("{sign}{whole}.{fraction}");
    }
    format!("{sign}0.{}{digits}", "0".repeat((-exponent - 1) as usize))
}

fn exponential(digits: &str, exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    let (first, rest) = digits.split_at(1);
    let point = if rest.is_empty() { "" } else { "." };
    format!("{first}{point}{rest}e{sign}{}", exponent.unsigned_abs())
}

/// `value` as an exact fraction of integers.
fn ratio(value: f64) -> (BigUint, BigUint) {
    let bits = value.to_bits();
    let field = (bits >> 52 & 0x7FF) as i32;
    let fraction = bits & ((1 << 52) - 1);
    let (mantissa, exponent) =
        if field == 0 { (fraction, -1074) } else { (fraction | 1 << 52, field - 1075) };
    let mantissa = BigUint::from(mantissa);
    let one = BigUint::from(1_u8);
    if exponent < 0 {
        (mantissa, one << exponent.unsigned_abs())
    } else {
        (mantissa << exponent.unsigned_abs(), one)
    }
}

fn round_half_up(numerator: &BigUint, denominator: &BigUint) -> BigUint {
    (numerator * 2_u8 + denominator) / (denominator * 2_u8)
}

/// `count` significant digits of `value`, rounded half up, and the decimal exponent of the first one.
fn decimal_digits(value: f64, count: u32) -> (String, i32) {
    if value == 0.0 {
        return ("0".repeat(count as usize), 0);
    }
    let (numerator, denominator) = ratio(value);
    let ten = BigUint::from(10_u8);
    // The shortest text has the exponent of the value itself; rounding can raise it by one.
    let mut exponent = shortest_digits(value).1;
    loop {
        let scale = count as i32 - 1 - exponent;
        let power = ten.pow(scale.unsigned_abs());
        let rounded = if scale >= 0 {
            round_half_up(&(&numerator * power), &denominator)
        } else {
            round_half_up(&numerator, &(&denominator * power))
        };
        let text = rounded.to_str_radix(10);
        match text.len().cmp(&(count as usize)) {
            std::cmp::Ordering::Equal if !rounded.is_zero() => return (text, exponent),
            std::cmp::Ordering::Greater => exponent += 1,
            _ => exponent -= 1,
        }
    }
}

/// The digits of `Number::toString` without point and exponent, and the decimal exponent of the first one.
fn shortest_digits(value: f64) -> (String, i32) {
    if value == 0.0 {
        return ("0".to_owned(), 0);
    }
    let mut buffer = ryu_js::Buffer::new();
    let text = buffer.format_finite(value);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let leading = all.bytes().take_while(|byte| *byte == b'0').count();
    let digits = all[leading..].trim_end_matches('0');
    (digits.to_owned(), exponent + whole.len() as i32 - 1 - leading as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_rounds_the_exact_value() {
        for (value, digits, text) in [
            (0.0, 2, "0.00"),
            (-0.0, 0, "0"),
            (0.5, 0, "1"),
            (-0.5, 0, "-1"),
            (1.5, 0, "2"),
            (2.5, 0, "3"),
            (1.005, 2, "1.00"),
            (1.45, 1, "1.4"),
            (-0.000_001, 2, "-0.00"),
            (123.456, 1, "123.5"),
            (1e21, 2, "1e+21"),
            (999_999_999_999_999_868_928.0, 0, "999999999999999868928"),
            (0.1, 20, "0.10000000000000000555"),
            (f64::NAN, 2, "NaN"),
            (1000.0, 0, "1000"),
        ] {
            assert_eq!(to_fixed(value, digits), text);
        }
        assert_eq!(to_fixed(5e-324, 100), format!("0.{}", "0".repeat(100)));
    }

    #[test]
    fn exponential_has_the_requested_digits() {
        for (value, digits, text) in [
            (123_456.0, Some(2), "1.23e+5"),
            (123_456.0, None, "1.23456e+5"),
            (0.0, None, "0e+0"),
            (0.0, Some(2), "0.00e+0"),
            (-1.1e-32, None, "-1.1e-32"),
            (9.99, Some(1), "1.0e+1"),
            (25.0, Some(0), "3e+1"),
            (12_345.0, Some(3), "1.235e+4"),
            (1e21, None, "1e+21"),
            (100.0, None, "1e+2"),
            (f64::NEG_INFINITY, Some(3), "-Infinity"),
            (5e-324, Some(4), "4.9407e-324"),
        ] {
            assert_eq!(to_exponential(value, digits), text);
        }
    }

    #[test]
    fn precision_chooses_the_notation() {
        for (value, precision, text) in [
            (123.456, 4, "123.5"),
            (123.456, 2, "1.2e+2"),
            (0.000_123, 2, "0.00012"),
            (0.000_000_123, 2, "1.2e-7"),
            (0.0, 3, "0.00"),
            (1e21, 22, "1000000000000000000000"),
            (99.99, 3, "100"),
            (99.99, 2, "1.0e+2"),
            (-1.25, 2, "-1.3"),
            (1.35, 2, "1.4"),
            (1.0, 1, "1"),
            (55.0, 1, "6e+1"),
        ] {
            assert_eq!(to_precision(value, precision), text);
        }
    }
}
