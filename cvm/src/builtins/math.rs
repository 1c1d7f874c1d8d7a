//! `Math`, ECMA-262 21.3.
//!
//! Owns: converting arguments and calling [`crate::pure::math`]. Must not: compute anything with a result that depends on the
//! host's C library.

use super::ids;
use super::natives::{EMPTY, Module, NativeMethod, method};
use crate::pure::math;
use crate::value::Value;
use crate::vm::{NativeCall, Res, Ret, Vm};

pub(super) const MODULE: Module = Module {
    intrinsics: &[("sumPrecise", sum_precise)],
    methods: METHODS,
    lists: &[(ids::MATH, "MathMethods")],
    source: include_str!("math.js"),
    extra: |realm| {
        for (name, value) in CONSTANTS {
            realm.put(ids::MATH, name, Value::num(*value), 0);
        }
        realm.tag(ids::MATH, "Math");
        realm.global("Math", Value::Obj(ids::MATH));
    },
    ..EMPTY
};

const METHODS: &[NativeMethod] = &[
    method(ids::MATH, "abs", 1, abs),
    method(ids::MATH, "acos", 1, acos),
    method(ids::MATH, "acosh", 1, acosh),
    method(ids::MATH, "asin", 1, asin),
    method(ids::MATH, "asinh", 1, asinh),
    method(ids::MATH, "atan", 1, atan),
    method(ids::MATH, "atanh", 1, atanh),
    method(ids::MATH, "atan2", 2, atan2),
    method(ids::MATH, "cbrt", 1, cbrt),
    method(ids::MATH, "ceil", 1, ceil),
    method(ids::MATH, "clz32", 1, clz32),
    method(ids::MATH, "cos", 1, cos),
    method(ids::MATH, "cosh", 1, cosh),
    method(ids::MATH, "exp", 1, exp),
    method(ids::MATH, "expm1", 1, expm1),
    method(ids::MATH, "f16round", 1, f16round),
    method(ids::MATH, "floor", 1, floor),
    method(ids::MATH, "fround", 1, fround),
    method(ids::MATH, "hypot", 2, hypot),
    method(ids::MATH, "imul", 2, imul),
    method(ids::MATH, "log", 1, log),
    method(ids::MATH, "log10", 1, log10),
    method(ids::MATH, "log1p", 1, log1p),
    method(ids::MATH, "log2", 1, log2),
    method(ids::MATH, "max", 2, max),
    method(ids::MATH, "min", 2, min),
    method(ids::MATH, "pow", 2, pow),
    method(ids::MATH, "random", 0, random),
    method(ids::MATH, "round", 1, round),
    method(ids::MATH, "sign", 1, sign),
    method(ids::MATH, "sin", 1, sin),
    method(ids::MATH, "sinh", 1, sinh),
    method(ids::MATH, "sqrt", 1, sqrt),
    method(ids::MATH, "tan", 1, tan),
    method(ids::MATH, "tanh", 1, tanh),
    method(ids::MATH, "trunc", 1, trunc),
];

const CONSTANTS: &[(&str, f64)] = &[
    ("E", std::f64::consts::E),
    ("LN10", std::f64::consts::LN_10),
    ("LN2", std::f64::consts::LN_2),
    ("LOG10E", std::f64::consts::LOG10_E),
    ("LOG2E", std::f64::consts::LOG2_E),
    ("PI", std::f64::consts::PI),
    ("SQRT1_2", std::f64::consts::FRAC_1_SQRT_2),
    ("SQRT2", std::f64::consts::SQRT_2),
];

macro_rules! unary {
    ($($name:ident)*) => {
        $(fn $name(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
            let argument = vm.arg_number(&call, 0)?;
            Ok(Value::num(math::unary::$name(argument)).into())
        })*
    };
}

unary! {
    abs acos acosh asin asinh atan atanh cbrt ceil clz32 cos cosh exp expm1 f16round floor fround log log10 log1p log2
    round sign sin sinh sqrt tan tanh trunc
}

fn atan2(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let (y, x) = (vm.arg_number(&call, 0)?, vm.arg_number(&call, 1)?);
    Ok(Value::num(math::atan2(y, x)).into())
}

fn pow(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let (base, exponent) = (vm.arg_number(&call, 0)?, vm.arg_number(&call, 1)?);
    Ok(Value::num(math::pow(base, exponent)).into())
}

fn imul(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let (left, right) = (vm.arg_number(&call, 0)?, vm.arg_number(&call, 1)?);
    Ok(Value::num(math::imul(left, right)).into())
}

/// Every argument is converted before anything is computed.
fn numbers(vm: &mut Vm<'_>, call: &NativeCall) -> Res<Vec<f64>> {
    (0..call.argc).map(|i| vm.arg_number(call, i)).collect()
}

fn max(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let largest = numbers(vm, &call)?.into_iter().fold(f64::NEG_INFINITY, math::max);
    Ok(Value::num(largest).into())
}

fn min(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let smallest = numbers(vm, &call)?.into_iter().fold(f64::INFINITY, math::min);
    Ok(Value::num(smallest).into())
}

fn hypot(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    Ok(Value::num(math::hypot(&numbers(vm, &call)?)).into())
}

/// Seeded; the generator's state is part of the program's state.
fn random(vm: &mut Vm<'_>, _: NativeCall) -> Res<Ret> {
    Ok(Value::num((next_random(vm) >> 11) as f64 / 9_007_199_254_740_992.0).into())
}

/// 64 bits of the program's generator.
pub(super) fn next_random(vm: &mut Vm<'_>) -> u64 {
    // SplitMix64: a counter and a mix, so that every seed is good.
    vm.st.rng = vm.st.rng.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut bits = vm.st.rng;
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

/// `$sumPrecise(numbers)`: the exactly rounded sum of an internal list of Numbers.
fn sum_precise(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let mut sum = math::ExactSum::default();
    if let Some(list) = vm.dense(vm.arg(&call, 0)) {
        for value in &list.dense {
            sum.add(value.as_num().unwrap_or(f64::NAN));
        }
    }
    Ok(Value::num(sum.total()).into())
}
