//! Conversions of Numbers to integers: ECMA-262 7.1.5 to 7.1.12 and the index helpers built on them.

/// 2^53 − 1, ECMA-262 21.1.2.6.
pub(crate) const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

/// `ToIntegerOrInfinity`, ECMA-262 7.1.5: NaN and −0 become +0, the fraction is cut off.
#[inline]
pub(crate) fn to_integer_or_infinity(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value.trunc() + 0.0 }
}

/// `ToInt32`, ECMA-262 7.1.6.
#[inline]
pub(crate) fn to_int32(value: f64) -> i32 {
    let fast = value as i32;
    if f64::from(fast) == value { fast } else { modulo_2_32(value) as i32 }
}

/// `ToUint32`, ECMA-262 7.1.7.
#[inline]
pub(crate) fn to_uint32(value: f64) -> u32 {
    to_int32(value) as u32
}

/// `ToInt16`, ECMA-262 7.1.8.
#[inline]
pub(crate) fn to_int16(value: f64) -> i16 {
    to_int32(value) as i16
}

/// `ToUint16`, ECMA-262 7.1.9.
#[inline]
pub(crate) fn to_uint16(value: f64) -> u16 {
    to_int32(value) as u16
}

/// `ToInt8`, ECMA-262 7.1.10.
#[inline]
pub(crate) fn to_int8(value: f64) -> i8 {
    to_int32(value) as i8
}

/// `ToUint8`, ECMA-262 7.1.11.
#[inline]
pub(crate) fn to_uint8(value: f64) -> u8 {
    to_int32(value) as u8
}

/// `ToUint8Clamp`, ECMA-262 7.1.12: ties go to the even neighbour.
#[inline]
pub(crate) fn to_uint8_clamp(value: f64) -> u8 {
    value.round_ties_even() as u8
}

/// `value` modulo 2^32 from its bits, exact for every finite Number; 0 for NaN and infinities.
fn modulo_2_32(value: f64) -> u32 {
    let bits = value.to_bits();
    let exponent = ((bits >> 52) & 0x7FF) as i32 - 1075;
    if exponent == 0x7FF - 1075 || exponent <= -53 {
        return 0;
    }
    let mantissa = (bits & ((1 << 52) - 1)) | (1 << 52);
    let magnitude = match exponent {
        32.. => 0,
        0..=31 => (mantissa << exponent) as u32,
        _ => (mantissa >> -exponent) as u32,
    };
    if value < 0.0 { magnitude.wrapping_neg() } else { magnitude }
}

/// The array index that a property key spells canonically, ECMA-262 6.1.7: `"0"` to `"4294967294"`, no leading zero.
pub(crate) fn array_index<U: super::super::units::Units + ?Sized>(key: &U) -> Option<u32> {
    let count = key.count();
    if count == 0 || count > 10 {
        return None;
    }
    if key.unit(0) == u16::from(b'0') {
        return (count == 1).then_some(0);
    }
    let mut value = 0_u64;
    for index in 0..count {
        let digit = key.unit(index).wrapping_sub(u16::from(b'0'));
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    u32::try_from(value).ok().filter(|index| *index != u32::MAX)
}

/// A relative index as in `slice`, `at`, `splice` and `fill` (for instance ECMA-262 23.1.3.28 step 4):
/// a negative index counts from the end; the result is in `0..=length`.
#[inline]
pub(crate) fn clamp_index(relative: f64, length: f64) -> f64 {
    let relative = to_integer_or_infinity(relative);
    if relative < 0.0 { (length + relative).max(0.0) } else { relative.min(length) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn int32_wraps_like_the_specification() {
        for (value, expected) in [
            (0.0, 0),
            (-0.0, 0),
            (f64::NAN, 0),
            (f64::INFINITY, 0),
            (2_147_483_647.0, i32::MAX),
            (2_147_483_648.0, i32::MIN),
            (4_294_967_296.0, 0),
            (4_294_967_297.0, 1),
            (-2_147_483_649.0, i32::MAX),
            (-1.9, -1),
            (1e300, 0),
            (9_007_199_254_740_993.0, 0),
            (-9_007_199_254_740_991.0, 1),
            (5e-324, 0),
            (4_294_967_295.9, -1),
            (6_442_450_943.5, 2_147_483_647),
        ] {
            assert_eq!(to_int32(value), expected, "{value}");
        }
        assert_eq!(to_uint32(-1.0), u32::MAX);
        assert_eq!(
            (to_int16(65_535.0), to_uint16(-1.0), to_int8(255.0), to_uint8(-1.0)),
            (-1, 65_535, -1, 255)
        );
    }

    #[test]
    fn modulo_agrees_with_exact_arithmetic() {
        let mut seed = 0x1234_5678_9ABC_DEF1_u64;
        for _ in 0..20_000 {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            let value = f64::from_bits(seed % (1 << 62));
            if value.abs() < 1e30 {
                let exact = (value.trunc() as i128).rem_euclid(1 << 32) as u32;
                assert_eq!(to_uint32(value), exact, "{value}");
                assert_eq!(to_uint32(-value), exact.wrapping_neg(), "-{value}");
            }
        }
    }

    #[test]
    fn clamp_rounds_ties_to_even() {
        assert_eq!(
            [0.5, 1.5, 2.5, 254.5, 300.0, -3.0, f64::NAN].map(to_uint8_clamp),
            [0, 2, 2, 254, 255, 0, 0]
        );
    }

    #[test]
    fn only_canonical_text_is_an_array_index() {
        for (text, index) in [
            ("0", Some(0)),
            ("00", None),
            ("7", Some(7)),
            ("4294967294", Some(4_294_967_294)),
            ("4294967295", None),
            ("99999999999", None),
            ("-1", None),
            ("1.0", None),
            ("", None),
        ] {
            assert_eq!(array_index(text.as_bytes()), index, "{text}");
        }
    }

    #[test]
    fn relative_indices_stay_in_range() {
        assert_eq!(clamp_index(-1.0, 5.0), 4.0);
        assert_eq!(clamp_index(-9.0, 5.0), 0.0);
        assert_eq!(clamp_index(f64::INFINITY, 5.0), 5.0);
        assert_eq!(clamp_index(f64::NAN, 5.0), 0.0);
        assert!(to_integer_or_infinity(-0.5).is_sign_positive());
    }
}
