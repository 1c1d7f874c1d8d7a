//! The Number type: text in both directions, and the conversions to integers of fixed width.
//!
//! Owns: ECMA-262 6.1.6.1.20, 7.1.4 to 7.1.12, 19.2.4, 19.2.5, 21.1.3. Must not: use values or throw language errors;
//! arguments that the language refuses (radix, digits) are checked by the caller, against the limits that are defined here.

mod format;
mod integer;
mod parse;
mod radix;

pub(crate) use format::{MAX_FRACTION_DIGITS, MAX_PRECISION, to_exponential, to_fixed, to_precision};
pub(crate) use integer::{
    MAX_SAFE_INTEGER, array_index, clamp_index, to_int8, to_int16, to_int32, to_integer_or_infinity,
    to_uint8, to_uint8_clamp, to_uint16, to_uint32,
};
pub(crate) use parse::{parse_float, parse_int, string_to_number};
pub(crate) use radix::to_radix_string;

/// `Number::toString(x, 10)`, ECMA-262 6.1.6.1.20. At most 25 characters, always ASCII.
pub(crate) fn to_string(value: f64) -> String {
    if value == f64::from(value as i32) {
        return (value as i32).to_string();
    }
    ryu_js::Buffer::new().format(value).to_owned()
}

#[cfg(test)]
mod tests {
    use super::to_string;

    #[test]
    fn shortest_text_switches_notation_at_the_specified_magnitudes() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (1.5, "1.5"),
            (-1.0, "-1"),
            (1e21, "1e+21"),
            (1e20, "100000000000000000000"),
            (123_456_789_012_345_680_000.0, "123456789012345680000"),
            (1e-6, "0.000001"),
            (1e-7, "1e-7"),
            (1.5e-10, "1.5e-10"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
            (4_294_967_296.0, "4294967296"),
            (0.1 + 0.2, "0.30000000000000004"),
        ] {
            assert_eq!(to_string(value), text);
        }
    }
}
