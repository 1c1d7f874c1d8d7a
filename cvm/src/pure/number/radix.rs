//! `Number.prototype.toString(radix)` for radices other than ten, ECMA-262 6.1.6.1.20.
//!
//! The specification leaves the number of digits open; the result has the fewest that distinguish the value from all other
//! Numbers, computed with exact integers. So the text does not depend on the machine, and `parseInt` parses it to the same value.

use num_bigint::BigUint;
use num_traits::Zero;

/// The text of `value` in `radix` (2 to 36), digits in lower case. At most 1 100 characters.
pub(crate) fn to_radix_string(value: f64, radix: u32) -> String {
    debug_assert!((2..=36).contains(&radix), "the caller refuses other radices with a RangeError");
    if radix == 10 || !value.is_finite() {
        return super::to_string(value);
    }
    let mut out = String::new();
    if value < 0.0 {
        out.push('-');
    }
    let value = value.abs();
    let whole = value.trunc();
    out.push_str(&whole_digits(whole, radix));
    if whole != value {
        out.push('.');
        push_fraction(&mut out, value, radix);
    }
    out
}

fn whole_digits(whole: f64, radix: u32) -> String {
    if whole < 18_446_744_073_709_551_616.0 {
        return BigUint::from(whole as u64).to_str_radix(radix);
    }
    let (mantissa, exponent) = decode(whole);
    (BigUint::from(mantissa) << exponent.unsigned_abs()).to_str_radix(radix)
}

/// `value = mantissa * 2^exponent`.
fn decode(value: f64) -> (u64, i32) {
    let bits = value.to_bits();
    let exponent = (bits >> 52 & 0x7FF) as i32;
    let mantissa = bits & ((1 << 52) - 1);
    if exponent == 0 { (mantissa, -1074) } else { (mantissa | 1 << 52, exponent - 1075) }
}

/// Free-format digit generation (Steele and White) of the fraction, in units of 2^(exponent − 1).
fn push_fraction(out: &mut String, value: f64, radix: u32) {
    let (mantissa, exponent) = decode(value);
    // Only for values with a fraction: exponent < 0. Scale by two so that half a unit is an integer.
    let shift = exponent.unsigned_abs() + 1;
    let one = BigUint::from(1_u8) << shift;
    let mut rest = (BigUint::from(mantissa) << 1_u32) % &one;
    let mut half_unit = BigUint::from(1_u8);
    loop {
        rest *= radix;
        half_unit *= radix;
        let digit = &rest >> shift;
        rest -= &digit << shift;
        let mut digit = digit.iter_u32_digits().next().unwrap_or(0);
        let low = rest < half_unit;
        let high = &rest + &half_unit > one;
        if low || high {
            // Round the last digit to the nearer side; it cannot carry, because then a shorter text would have been sufficient.
            if high && (!low || &rest << 1_u32 > one) && digit + 1 < radix {
                digit += 1;
            }
            push_digit(out, digit, radix);
            return;
        }
        push_digit(out, digit, radix);
        if rest.is_zero() {
            return;
        }
    }
}

fn push_digit(out: &mut String, digit: u32, radix: u32) {
    out.push(char::from_digit(digit, radix).unwrap_or('0'));
}

#[cfg(test)]
mod tests {
    use super::to_radix_string;

    #[test]
    fn known_texts() {
        for (value, radix, text) in [
            (255.0, 16, "ff"),
            (-255.0, 2, "-11111111"),
            (0.5, 2, "0.1"),
            (-0.0, 2, "0"),
            (35.0, 36, "z"),
            (0.1, 2, "0.0001100110011001100110011001100110011001100110011001101"),
            (1e21, 16, "3635c9adc5dea00000"),
            (1e21, 7, "5135235413265003022550266"),
            (f64::NAN, 2, "NaN"),
            (f64::NEG_INFINITY, 36, "-Infinity"),
            (10.5, 10, "10.5"),
            (3.75, 8, "3.6"),
        ] {
            assert_eq!(to_radix_string(value, radix), text);
        }
        assert_eq!(to_radix_string(f64::MAX, 2).len(), 1024);
        assert!(to_radix_string(5e-324, 2).len() <= 1100);
    }

    #[test]
    fn text_parses_to_the_same_number() {
        let mut seed = 88_172_645_463_325_252_u64;
        for round in 0..3000_u32 {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            let value = (seed >> 11) as f64 / 2_f64.powi((seed % 60) as i32);
            let radix = 2 + round % 35;
            let text = to_radix_string(value, radix);
            let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
            // Exact value of the digits as a ratio, compared with the number through big integers.
            let digits = num_bigint::BigInt::parse_bytes(format!("{whole}{fraction}").as_bytes(), radix);
            let scale = num_bigint::BigInt::from(radix).pow(fraction.len() as u32);
            let bits = value.to_bits();
            let exponent = (bits >> 52 & 0x7FF) as i32 - 1075;
            let mantissa = num_bigint::BigInt::from(bits & ((1 << 52) - 1) | 1 << 52);
            let Some(digits) = digits else { panic!("{text}") };
            // |digits/scale − m·2^e| ≤ 2^(e−1), in integers.
            let (left, right, unit) = if exponent < 0 {
                let down = exponent.unsigned_abs();
                ((digits << down) * 2, mantissa * &scale * 2, scale)
            } else {
                (digits * 2, (mantissa << exponent) * &scale * 2, scale << exponent)
            };
            let difference = if left > right { left - right } else { right - left };
            assert!(difference <= unit, "{value} in {radix} is {text}");
        }
    }
}
