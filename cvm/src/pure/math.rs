//! The functions of `Math`, ECMA-262 21.3.2, with results that the specification leaves to the implementation.
//!
//! Owns: equal results on all machines. All transcendental functions use `libm` (a port of musl's), never the host's C library,
//! so that the same program computes the same bits everywhere. Functions that IEEE 754 defines exactly (`sqrt`, `floor`,
//! `fround`) use the hardware. Must not: draw random numbers; the generator of `Math.random` is part of a program's state.

/// The functions of one Number, by their names in `Math`.
pub(crate) mod unary {
    pub(crate) use super::{asinh, atanh, clz32, exp, f16round, fround, round, sign};
    pub(crate) use libm::{
        acos, acosh, asin, atan, cbrt, cos, cosh, expm1, log, log1p, log2, log10, sin, sinh, tan, tanh,
    };

    macro_rules! exact {
        ($($name:ident)*) => {
            $(#[doc = concat!("`Math.", stringify!($name), "`, fixed by IEEE 754.")]
            pub(crate) fn $name(value: f64) -> f64 {
                value.$name()
            })*
        };
    }
    exact! { abs ceil floor sqrt trunc }
}

/// `Math.atan2`, ECMA-262 21.3.2.8.
pub(crate) fn atan2(y: f64, x: f64) -> f64 {
    libm::atan2(y, x)
}

/// `Number::exponentiate`, ECMA-262 6.1.6.1.3: unlike IEEE 754, `1 ** NaN` and `(±1) ** ±Infinity` are NaN.
pub(crate) fn pow(base: f64, exponent: f64) -> f64 {
    if exponent.is_nan() || (base.abs() == 1.0 && exponent.is_infinite()) {
        return f64::NAN;
    }
    libm::pow(base, exponent)
}

/// `Number::remainder`, ECMA-262 6.1.6.1.6: exact, with the sign of the dividend.
pub(crate) fn remainder(dividend: f64, divisor: f64) -> f64 {
    // Rust's `%` on floats is C's fmod, which is exact and so the same everywhere.
    dividend % divisor
}

/// `Math.hypot`, ECMA-262 21.3.2.18, of arguments already converted. Scaled, so that it neither over- nor underflows.
pub(crate) fn hypot(values: &[f64]) -> f64 {
    if values.iter().any(|value| value.is_infinite()) {
        return f64::INFINITY;
    }
    if values.iter().any(|value| value.is_nan()) {
        return f64::NAN;
    }
    let largest = values.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
    if largest == 0.0 {
        return 0.0;
    }
    let mut sum = 0.0_f64;
    let mut lost = 0.0_f64;
    for value in values {
        let ratio = value / largest;
        let term = ratio * ratio - lost;
        let next = sum + term;
        lost = (next - sum) - term;
        sum = next;
    }
    sum.sqrt() * largest
}

/// `Math.max`, ECMA-262 21.3.2.24, as a fold step: NaN wins, +0 is above −0.
pub(crate) fn max(left: f64, right: f64) -> f64 {
    if left.is_nan() || right.is_nan() {
        f64::NAN
    } else if left == right {
        if left.is_sign_negative() { right } else { left }
    } else if left > right {
        left
    } else {
        right
    }
}

/// `Math.min`, ECMA-262 21.3.2.25, as a fold step: NaN wins, −0 is below +0.
pub(crate) fn min(left: f64, right: f64) -> f64 {
    -max(-left, -right)
}

/// `Math.imul`, ECMA-262 21.3.2.19, of arguments already converted to Numbers.
pub(crate) fn imul(left: f64, right: f64) -> f64 {
    f64::from(super::number::to_int32(left).wrapping_mul(super::number::to_int32(right)))
}

/// `Math.clz32`, ECMA-262 21.3.2.11.
pub(crate) fn clz32(value: f64) -> f64 {
    f64::from(super::number::to_uint32(value).leading_zeros())
}

/// `Math.fround`, ECMA-262 21.3.2.17.
pub(crate) fn fround(value: f64) -> f64 {
    f64::from(value as f32)
}

/// `Math.f16round`, ECMA-262 21.3.2.16: the nearest binary16 value, ties to even.
pub(crate) fn f16round(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let magnitude = value.abs();
    if magnitude >= 65_520.0 {
        return f64::INFINITY.copysign(value);
    }
    // One unit in the last place: 2^-24 for subnormals, otherwise ten bits below the leading one.
    let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).max(-14);
    let unit = f64::from_bits(((exponent - 10 + 1023) as u64) << 52);
    ((magnitude / unit).round_ties_even() * unit).copysign(value)
}

/// The binary16 form of the nearest value; NaN has one form.
pub(crate) fn f16_bits(value: f64) -> u16 {
    if value.is_nan() {
        return 0x7e00;
    }
    let rounded = f16round(value);
    let bits = rounded.to_bits();
    let sign = (bits >> 48) as u16 & 0x8000;
    let exponent = ((bits >> 52) & 0x7ff) as i32 - 1023;
    sign | if rounded.is_infinite() {
        0x7c00
    } else if exponent < -14 {
        // Units of 2^-24.
        (rounded.abs() * 16_777_216.0) as u16
    } else {
        ((exponent + 15) as u16) << 10 | (bits >> 42) as u16 & 0x3ff
    }
}

/// The value of a binary16 form.
pub(crate) fn f16_value(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    let magnitude = match exponent {
        0 => fraction / 16_777_216.0,
        0x1f if fraction == 0.0 => f64::INFINITY,
        0x1f => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
    };
    if bits & 0x8000 == 0 { magnitude } else { -magnitude }
}

/// `Math.round`, ECMA-262 21.3.2.28: ties go up, −0 is kept.
pub(crate) fn round(value: f64) -> f64 {
    if !value.is_finite() || value.abs() >= 4_503_599_627_370_496.0 {
        return value;
    }
    let floor = value.floor();
    let rounded = if value - floor >= 0.5 { floor + 1.0 } else { floor };
    rounded.copysign(value)
}

/// `Math.sign`, ECMA-262 21.3.2.29.
pub(crate) fn sign(value: f64) -> f64 {
    if value.is_nan() || value == 0.0 { value } else { 1.0_f64.copysign(value) }
}

/// `Math.exp`: the algorithm is one unit off at 1, where programs expect `Math.E`.
pub(crate) fn exp(value: f64) -> f64 {
    if value == 1.0 { std::f64::consts::E } else { libm::exp(value) }
}

/// `Math.asinh`: libm loses the sign of zero for none, but overflows early for huge values; those are `log(2x)`.
pub(crate) fn asinh(value: f64) -> f64 {
    if value == 0.0 { value } else { libm::asinh(value) }
}

/// `Math.atanh`: NaN beyond ±1, infinite at them.
pub(crate) fn atanh(value: f64) -> f64 {
    if value == 0.0 || value.abs() > 1.0 {
        return if value == 0.0 { value } else { f64::NAN };
    }
    if value.abs() == 1.0 { f64::INFINITY.copysign(value) } else { libm::atanh(value) }
}

/// `Math.sumPrecise`, the exactly rounded sum. The state is kept between values, so it can be fed from an iterator.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExactSum {
    /// The exact sum so far in units of 2^-1074, at most 2 200 bits for any feasible number of terms.
    sum: num_bigint::BigInt,
    special: Option<f64>,
    any_positive_zero: bool,
    any_nonzero: bool,
}

impl ExactSum {
    /// Adds one Number.
    pub(crate) fn add(&mut self, value: f64) {
        if !value.is_finite() {
            self.special = Some(self.special.map_or(value, |special| special + value));
            return;
        }
        if value == 0.0 {
            self.any_positive_zero |= value.is_sign_positive();
            return;
        }
        self.any_nonzero = true;
        let bits = value.to_bits();
        let field = (bits >> 52 & 0x7FF) as u32;
        let fraction = bits & ((1 << 52) - 1);
        let (mantissa, shift) = if field == 0 { (fraction, 0) } else { (fraction | 1 << 52, field - 1) };
        let term = num_bigint::BigInt::from(mantissa) << shift;
        if value < 0.0 {
            self.sum -= term;
        } else {
            self.sum += term;
        }
    }

    /// The sum, rounded once, ties to even. −0 for no values, and for only −0.
    pub(crate) fn total(&self) -> f64 {
        use num_traits::{ToPrimitive, Zero};
        if let Some(special) = self.special {
            return special;
        }
        let sum = &self.sum;
        if sum.is_zero() {
            return if self.any_positive_zero || self.any_nonzero { 0.0 } else { -0.0 };
        }
        // sum is in units of 2^-1074; below 2^53 units it is exact, above the conversion rounds to even once.
        let unit = f64::from_bits(1);
        if sum.bits() <= 53 {
            return sum.to_f64().map_or(f64::NAN, |value| value * unit);
        }
        // The top 64 bits decide, with a sticky bit for the bits below; such sums are normal Numbers or overflow.
        let excess = sum.bits() - 64.min(sum.bits());
        let mut top = sum.magnitude() >> excess;
        let dropped = sum.magnitude() - (&top << excess);
        if !dropped.is_zero() {
            top |= num_bigint::BigUint::from(1_u8);
        }
        let scaled = top.to_u64().map_or(f64::NAN, |top| top as f64);
        let value = libm::scalbn(scaled, excess as i32 - 1074);
        if sum.sign() == num_bigint::Sign::Minus { -value } else { value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Unary = fn(f64) -> f64;

    fn same(left: f64, right: f64) -> bool {
        left.to_bits() == right.to_bits() || (left.is_nan() && right.is_nan())
    }

    #[test]
    fn special_values_follow_the_specification() {
        for (name, function, value, expected) in [
            ("round", unary::round as Unary, -0.5, -0.0),
            ("round", unary::round as Unary, 2.5, 3.0),
            ("round", unary::round as Unary, -2.5, -2.0),
            ("round", unary::round as Unary, 0.499_999_999_999_999_94, 0.0),
            ("round", unary::round as Unary, 4_503_599_627_370_495.5, 4_503_599_627_370_496.0),
            ("round", unary::round as Unary, 9_007_199_254_740_991.0, 9_007_199_254_740_991.0),
            ("round", unary::round as Unary, -0.2, -0.0),
            ("ceil", unary::ceil as Unary, -0.5, -0.0),
            ("sign", unary::sign as Unary, -0.0, -0.0),
            ("sign", unary::sign as Unary, -7.0, -1.0),
            ("clz32", unary::clz32 as Unary, 0.5, 32.0),
            ("clz32", unary::clz32 as Unary, -1.0, 0.0),
            ("fround", unary::fround as Unary, 5.05, 5.050_000_190_734_863),
            ("f16round", unary::f16round as Unary, 1.337, 1.336_914_062_5),
            ("f16round", unary::f16round as Unary, 65_519.9, 65_504.0),
            ("f16round", unary::f16round as Unary, 65_520.0, f64::INFINITY),
            ("f16round", unary::f16round as Unary, 2.980_232_238_769_531_3e-8, 0.0),
            ("f16round", unary::f16round as Unary, 5.960_464_477_539_063e-8, 5.960_464_477_539_063e-8),
            ("f16round", unary::f16round as Unary, -1e-9, -0.0),
            ("acosh", unary::acosh as Unary, 0.5, f64::NAN),
            ("atanh", unary::atanh as Unary, 1.0, f64::INFINITY),
            ("atanh", unary::atanh as Unary, -0.0, -0.0),
            ("asinh", unary::asinh as Unary, -0.0, -0.0),
            ("asinh", unary::asinh as Unary, f64::NEG_INFINITY, f64::NEG_INFINITY),
            ("cbrt", unary::cbrt as Unary, -8.0, -2.0),
            ("log10", unary::log10 as Unary, 1000.0, 3.0),
            ("log2", unary::log2 as Unary, 8.0, 3.0),
            ("expm1", unary::expm1 as Unary, -0.0, -0.0),
            ("log1p", unary::log1p as Unary, -1.0, f64::NEG_INFINITY),
            ("sqrt", unary::sqrt as Unary, -0.0, -0.0),
            ("exp", unary::exp as Unary, 1.0, std::f64::consts::E),
            ("cosh", unary::cosh as Unary, -0.0, 1.0),
            ("tanh", unary::tanh as Unary, f64::INFINITY, 1.0),
        ] {
            assert!(same(function(value), expected), "{name}({value}) = {}", function(value));
        }
    }

    #[test]
    fn powers_differ_from_c_where_the_specification_does() {
        for (base, exponent, expected) in [
            (1.0, f64::NAN, f64::NAN),
            (f64::NAN, 0.0, 1.0),
            (-1.0, f64::INFINITY, f64::NAN),
            (1.0, f64::NEG_INFINITY, f64::NAN),
            (2.0, 0.5, std::f64::consts::SQRT_2),
            (-8.0, 1.0 / 3.0, f64::NAN),
            (-0.0, -3.0, f64::NEG_INFINITY),
            (10.0, 308.0, 1e308),
            (2.0, -1074.0, 5e-324),
        ] {
            assert!(same(pow(base, exponent), expected), "{base} ** {exponent}");
        }
        assert!(same(remainder(-4.0, 2.0), -0.0));
        assert!(same(remainder(5.5, f64::INFINITY), 5.5));
    }

    #[test]
    fn extremes_and_hypot() {
        assert!(same(max(-0.0, 0.0), 0.0) && same(max(0.0, -0.0), 0.0));
        assert!(same(min(-0.0, 0.0), -0.0) && same(min(0.0, -0.0), -0.0));
        assert!(max(f64::NAN, 1.0).is_nan() && min(1.0, f64::NAN).is_nan());
        assert_eq!(hypot(&[3.0, 4.0]), 5.0);
        assert_eq!(hypot(&[1e300, 1e300]), 1e300 * 2_f64.sqrt());
        assert_eq!(hypot(&[f64::NAN, f64::NEG_INFINITY]), f64::INFINITY);
        assert!(same(hypot(&[]), 0.0) && same(hypot(&[-0.0]), 0.0));
        assert_eq!(imul(4_294_967_295.0, 5.0), -5.0);
    }

    #[test]
    fn exact_sum_rounds_once() {
        let sum = |values: &[f64]| {
            let mut exact = ExactSum::default();
            for value in values {
                exact.add(*value);
            }
            exact.total()
        };
        assert!(same(sum(&[]), -0.0) && same(sum(&[-0.0]), -0.0) && same(sum(&[-0.0, 0.0]), 0.0));
        assert_eq!(
            sum(&[1e308, 1e308, 0.1, 0.1, 1e30, 0.1, -1e30, -1e308, -1e308]),
            0.300_000_000_000_000_04
        );
        assert_eq!(sum(&[1e30, 0.1, -1e30]), 0.1);
        assert!(same(sum(&[1.0, -1.0]), 0.0));
        assert_eq!(sum(&[f64::MAX, f64::MAX]), f64::INFINITY);
        assert!(sum(&[f64::INFINITY, f64::NEG_INFINITY]).is_nan());
        assert_eq!(sum(&[9_007_199_254_740_992.0, 1.0, 1e-9]), 9_007_199_254_740_994.0);
        assert_eq!(sum(&[5e-324, 5e-324, -5e-324]), 5e-324);
    }
}
