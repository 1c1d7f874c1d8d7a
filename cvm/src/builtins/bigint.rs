//! `BigInt`, ECMA-262 21.2.

use super::ids;
use super::natives::{Ctor, CtorCode, EMPTY, Module, method};
use crate::heap::object::ObjectKind;
use crate::pure::bigint_text::{self, BigIntTextError};
use crate::value::Value;
use crate::vm::{NativeCall, Raise, Res, Ret, Vm};
use num_bigint::BigInt;
use num_traits::{FromPrimitive, One, Zero};

pub(super) const MODULE: Module = Module {
    ctors: &[Ctor {
        id: ids::BIGINT,
        name: "BigInt",
        length: 1,
        code: CtorCode::Native(convert),
        proto: ids::BIGINT_PROTO,
        parent: ids::FUNCTION_PROTO,
        proto_parent: ids::OBJECT_PROTO,
        global: true,
    }],
    methods: &[
        method(ids::BIGINT, "asIntN", 2, as_int_n),
        method(ids::BIGINT, "asUintN", 2, as_uint_n),
        method(ids::BIGINT_PROTO, "toString", 0, to_string),
        method(ids::BIGINT_PROTO, "toLocaleString", 0, to_locale_string).slow("NumberToLocaleStringSlow"),
        method(ids::BIGINT_PROTO, "valueOf", 0, value_of),
    ],
    extra: |realm| realm.tag(ids::BIGINT_PROTO, "BigInt"),
    ..EMPTY
};

/// Widest result of `asUintN` (bits): the result for a negative number has all of them.
const MAX_BITS: u64 = 1 << 24;

/// `BigInt(value)`, 21.2.1.1.
fn convert(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    if call.new_target != Value::Undefined {
        return Err(vm.type_error("BigInt is not a constructor"));
    }
    let value = if call.argc == 0 { Value::Undefined } else { vm.slot(call.at) };
    if value.is_object() {
        return Err(Raise::Prim(call.at, 1));
    }
    let Some(n) = value.as_num() else {
        return to_bigint(vm, &call, 0).map(|n| vm.st.heap.new_big(n).into());
    };
    match BigInt::from_f64(n).filter(|_| n.trunc() == n) {
        Some(n) => Ok(vm.st.heap.new_big(n).into()),
        None => {
            let shown = crate::pure::number::to_string(n);
            Err(vm.range_error(&format!(
                "The number {shown} cannot be converted to a BigInt because it is not an integer"
            )))
        }
    }
}

/// `ToBigInt` of an argument, 7.1.13.
pub(super) fn to_bigint(vm: &mut Vm<'_>, call: &NativeCall, i: usize) -> Res<BigInt> {
    match vm.arg(call, i) {
        Value::Obj(_) => Err(Raise::Prim(call.at + i, 1)),
        Value::Big(id) => Ok(vm.st.heap.big(id)),
        Value::Bool(b) => Ok(BigInt::from(u8::from(b))),
        Value::Str(id) => match bigint_text::string_to_bigint(&vm.st.heap.str(id)) {
            Ok(n) => Ok(n),
            Err(BigIntTextError::Syntax) => Err(vm.syntax_error("Cannot convert the text to a BigInt")),
            Err(BigIntTextError::TooLong) => Err(vm.range_error("Maximum BigInt size exceeded")),
        },
        other => {
            let shown = vm.brief(other);
            Err(vm.type_error(&format!("Cannot convert {shown} to a BigInt")))
        }
    }
}

/// `ToIndex` of the first argument, 7.1.22.
fn bits(vm: &mut Vm<'_>, call: &NativeCall) -> Res<u64> {
    let bits = vm.arg_int(call, 0)?;
    if !(0.0..=crate::pure::number::MAX_SAFE_INTEGER).contains(&bits) {
        return Err(vm.range_error("Invalid number of bits"));
    }
    Ok(bits as u64)
}

/// `n` modulo 2^bits, not negative; `None` if the result would be too large.
fn modulo(n: &BigInt, bits: u64) -> Option<BigInt> {
    let negative = n.sign() == num_bigint::Sign::Minus;
    if !negative && n.bits() <= bits {
        return Some(n.clone());
    }
    if bits > MAX_BITS && bits > n.bits() {
        return None;
    }
    let size = BigInt::one() << bits;
    let rest = n % &size;
    Some(if rest.sign() == num_bigint::Sign::Minus { rest + size } else { rest })
}

fn as_uint_n(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let bits = bits(vm, &call)?;
    let n = to_bigint(vm, &call, 1)?;
    match modulo(&n, bits) {
        Some(n) => Ok(vm.st.heap.new_big(n).into()),
        None => Err(vm.range_error("Maximum BigInt size exceeded")),
    }
}

fn as_int_n(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let bits = bits(vm, &call)?;
    let n = to_bigint(vm, &call, 1)?;
    let result = if bits == 0 {
        BigInt::zero()
    } else if n.bits() < bits {
        n
    } else {
        // The result has at most as many bits as the number.
        let rest = modulo(&n, bits).unwrap_or_default();
        if rest.bit(bits - 1) { rest - (BigInt::one() << bits) } else { rest }
    };
    Ok(vm.st.heap.new_big(result).into())
}

/// `ThisBigIntValue`, 21.2.3.4.1.
fn this_bigint(vm: &mut Vm<'_>, call: &NativeCall, method: &str) -> Res<Value> {
    let this = match vm.this(call) {
        Value::Obj(id) => match vm.st.heap.obj(id).kind {
            ObjectKind::Primitive(value) => value,
            _ => Value::Undefined,
        },
        other => other,
    };
    if matches!(this, Value::Big(_)) {
        return Ok(this);
    }
    Err(vm.type_error(&format!("BigInt.prototype.{method} requires that 'this' be a BigInt")))
}

fn in_radix(vm: &mut Vm<'_>, value: Value, radix: u32) -> Res<Ret> {
    let n = match value {
        Value::Big(id) => vm.st.heap.big(id),
        _ => BigInt::zero(),
    };
    let text = bigint_text::bigint_to_string(&n, radix);
    Ok(vm.st.heap.str_value(&text).into())
}

fn to_string(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let this = this_bigint(vm, &call, "toString")?;
    let radix = if vm.arg(&call, 0) == Value::Undefined { 10.0 } else { vm.arg_int(&call, 0)? };
    if !(2.0..=36.0).contains(&radix) {
        return Err(vm.range_error("toString() radix must be between 2 and 36"));
    }
    in_radix(vm, this, radix as u32)
}

fn to_locale_string(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let this = this_bigint(vm, &call, "toLocaleString")?;
    if super::locale::is_for_intl(vm, &call, 0) {
        return Ok(Ret::Slow);
    }
    super::locale::english_only(vm, &call, "BigInt.prototype.toLocaleString")?;
    let text = crate::pure::english::grouped(&vm.plain_text(this));
    Ok(vm.st.heap.str_value(&text).into())
}

fn value_of(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    this_bigint(vm, &call, "valueOf").map(Ret::Value)
}
