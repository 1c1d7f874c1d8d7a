//! `Number` and the number functions of the global object, ECMA-262 21.1 and 19.2.
//!
//! Owns: checking and converting arguments. Must not: format or parse by itself, see [`crate::pure::number`].

use super::ids;
use super::natives::{Ctor, CtorCode, EMPTY, Module, NativeMethod, method};
use crate::heap::object::ObjectKind;
use crate::pure::number;
use crate::value::Value;
use crate::vm::{NativeCall, Res, Ret, Vm, convert::big_to_number};

pub(super) const MODULE: Module = Module {
    ctors: &[Ctor {
        id: ids::NUMBER,
        name: "Number",
        length: 1,
        code: CtorCode::Native(construct),
        proto: ids::NUMBER_PROTO,
        parent: ids::FUNCTION_PROTO,
        proto_parent: ids::OBJECT_PROTO,
        global: true,
    }],
    methods: METHODS,
    source: include_str!("number.js"),
    extra: |realm| {
        realm.heap.obj_mut(ids::NUMBER_PROTO).kind = ObjectKind::Primitive(Value::Int(0));
        for (name, value) in CONSTANTS {
            realm.put(ids::NUMBER, name, Value::num(*value), 0);
        }
        // The same function objects as the global ones.
        for name in ["parseFloat", "parseInt"] {
            realm.share(ids::GLOBAL, name, ids::NUMBER);
        }
    },
    ..EMPTY
};

const METHODS: &[NativeMethod] = &[
    method(ids::NUMBER, "isFinite", 1, is_finite),
    method(ids::NUMBER, "isInteger", 1, is_integer),
    method(ids::NUMBER, "isNaN", 1, is_nan),
    method(ids::NUMBER, "isSafeInteger", 1, is_safe_integer),
    method(ids::NUMBER_PROTO, "toString", 1, to_string),
    method(ids::NUMBER_PROTO, "toLocaleString", 0, to_locale_string).slow("NumberToLocaleStringSlow"),
    method(ids::NUMBER_PROTO, "toFixed", 1, to_fixed),
    method(ids::NUMBER_PROTO, "toExponential", 1, to_exponential),
    method(ids::NUMBER_PROTO, "toPrecision", 1, to_precision),
    method(ids::NUMBER_PROTO, "valueOf", 0, value_of),
    method(ids::GLOBAL, "isFinite", 1, global_is_finite),
    method(ids::GLOBAL, "isNaN", 1, global_is_nan),
    method(ids::GLOBAL, "parseFloat", 1, parse_float),
    method(ids::GLOBAL, "parseInt", 2, parse_int),
];

/// Constants of `Number`; none is writable.
const CONSTANTS: &[(&str, f64)] = &[
    ("EPSILON", f64::EPSILON),
    ("MAX_SAFE_INTEGER", number::MAX_SAFE_INTEGER),
    ("MAX_VALUE", f64::MAX),
    ("MIN_SAFE_INTEGER", -number::MAX_SAFE_INTEGER),
    ("MIN_VALUE", 5e-324),
    ("NaN", f64::NAN),
    ("NEGATIVE_INFINITY", f64::NEG_INFINITY),
    ("POSITIVE_INFINITY", f64::INFINITY),
];

/// `Number(value)` and `new Number(value)`, 21.1.1.1.
fn construct(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let value = if call.argc == 0 { Value::Int(0) } else { vm.slot_numeric(call.at)? };
    let value = match value {
        Value::Big(id) => Value::num(big_to_number(&vm.st.heap.big(id))),
        other => other,
    };
    if call.new_target == Value::Undefined {
        return Ok(value.into());
    }
    let Some(proto) = vm.proto_of_constructor(call.new_target, ids::NUMBER_PROTO) else {
        return Ok(vm.slow_constructor(&call, "NumberSlow_"));
    };
    Ok(Value::Obj(vm.st.heap.new_object(proto, ObjectKind::Primitive(value))).into())
}

/// `ThisNumberValue`, 21.1.3.7.1.
fn this_number(vm: &mut Vm<'_>, call: &NativeCall, method: &str) -> Res<f64> {
    let this = match vm.this(call) {
        Value::Obj(id) => match vm.st.heap.obj(id).kind {
            ObjectKind::Primitive(value) => value,
            _ => Value::Undefined,
        },
        other => other,
    };
    match this.as_num() {
        Some(n) => Ok(n),
        None => Err(vm.type_error(&format!("Number.prototype.{method} requires that 'this' be a Number"))),
    }
}

fn text(vm: &mut Vm<'_>, text: &str) -> Res<Ret> {
    Ok(vm.st.heap.str_value(text).into())
}

fn to_string(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let value = this_number(vm, &call, "toString")?;
    let radix = if vm.arg(&call, 0) == Value::Undefined { 10.0 } else { vm.arg_int(&call, 0)? };
    if !(2.0..=36.0).contains(&radix) {
        return Err(vm.range_error("toString() radix must be between 2 and 36"));
    }
    text(vm, &number::to_radix_string(value, radix as u32))
}

fn to_locale_string(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let value = this_number(vm, &call, "toLocaleString")?;
    if super::locale::is_for_intl(vm, &call, 0) {
        return Ok(Ret::Slow);
    }
    super::locale::english_only(vm, &call, "Number.prototype.toLocaleString")?;
    text(vm, &crate::pure::english::decimal(value))
}

fn to_fixed(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let value = this_number(vm, &call, "toFixed")?;
    let digits = vm.arg_int(&call, 0)?;
    let digits = if digits == 0.0 { 0.0 } else { digits };
    if !(0.0..=f64::from(number::MAX_FRACTION_DIGITS)).contains(&digits) {
        return Err(vm.range_error("toFixed() digits argument must be between 0 and 100"));
    }
    text(vm, &number::to_fixed(value, digits as u32))
}

fn to_exponential(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let value = this_number(vm, &call, "toExponential")?;
    let given = vm.arg(&call, 0) != Value::Undefined;
    let digits = if given { vm.arg_int(&call, 0)? } else { 0.0 };
    if !value.is_finite() {
        return text(vm, &number::to_string(value));
    }
    if !(0.0..=f64::from(number::MAX_FRACTION_DIGITS)).contains(&digits) {
        return Err(vm.range_error("toExponential() argument must be between 0 and 100"));
    }
    text(vm, &number::to_exponential(value, given.then_some(digits as u32)))
}

fn to_precision(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let value = this_number(vm, &call, "toPrecision")?;
    if vm.arg(&call, 0) == Value::Undefined {
        return text(vm, &number::to_string(value));
    }
    let precision = vm.arg_int(&call, 0)?;
    if !value.is_finite() {
        return text(vm, &number::to_string(value));
    }
    if !(1.0..=f64::from(number::MAX_PRECISION)).contains(&precision) {
        return Err(vm.range_error("toPrecision() argument must be between 1 and 100"));
    }
    text(vm, &number::to_precision(value, precision as u32))
}

fn value_of(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let value = this_number(vm, &call, "valueOf")?;
    Ok(Value::num(value).into())
}

fn is_integral(value: f64) -> bool {
    value.is_finite() && value.trunc() == value
}

fn is_finite(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    Ok(Value::Bool(vm.arg(&call, 0).as_num().is_some_and(f64::is_finite)).into())
}

fn is_integer(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    Ok(Value::Bool(vm.arg(&call, 0).as_num().is_some_and(is_integral)).into())
}

fn is_nan(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    Ok(Value::Bool(vm.arg(&call, 0).as_num().is_some_and(f64::is_nan)).into())
}

fn is_safe_integer(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let safe = |n: f64| is_integral(n) && n.abs() <= number::MAX_SAFE_INTEGER;
    Ok(Value::Bool(vm.arg(&call, 0).as_num().is_some_and(safe)).into())
}

fn global_is_finite(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    Ok(Value::Bool(vm.arg_number(&call, 0)?.is_finite()).into())
}

fn global_is_nan(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    Ok(Value::Bool(vm.arg_number(&call, 0)?.is_nan()).into())
}

fn parse_float(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let source = vm.arg_str(&call, 0)?;
    Ok(Value::num(number::parse_float(&vm.st.heap.str(source))).into())
}

fn parse_int(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let source = vm.arg_str(&call, 0)?;
    let radix = if call.argc > 1 { number::to_int32(vm.arg_number(&call, 1)?) } else { 0 };
    Ok(Value::num(number::parse_int(&vm.st.heap.str(source), radix)).into())
}
