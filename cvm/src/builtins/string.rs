//! `String.prototype`: functions that search text or return a part of it, ECMA-262 22.1.3.
//!
//! Owns: conversion of `this` and arguments. Functions that create new text are in `string_make`; those that accept regular
//! expressions or call callbacks are in `string.js`. Must not: search by itself, see [`crate::pure::search`].

use super::ids;
use super::natives::{EMPTY, Module, NativeMethod, method};
use crate::heap::object::ObjectKind;
use crate::pure::search::{index_of, last_index_of};
use crate::pure::units::{self, Trim};
use crate::state::VmLimitKind;
use crate::value::{Id, Value};
use crate::vm::props::PropertyRead;
use crate::vm::{NativeCall, Raise, Res, Ret, Vm};

pub(super) const MODULE: Module = Module {
    intrinsics: &[
        ("indexOf", index_intrinsic),
        ("standsAt", occurs_at_intrinsic),
        ("substring", substring_intrinsic),
        ("codePointLength", code_point_length),
        ("splitText", split_text),
    ],
    methods: METHODS,
    lists: &[(ids::STRING_PROTO, "StringMethods"), (ids::STRING_ITERATOR_PROTO, "StringIteratorMethods")],
    source: include_str!("string.js"),
    extra: |realm| {
        realm.alias(ids::STRING_PROTO, "trimStart", "trimLeft");
        realm.alias(ids::STRING_PROTO, "trimEnd", "trimRight");
        realm.heap.obj_mut(ids::STRING_ITERATOR_PROTO).proto = ids::ITERATOR_PROTO;
        realm.tag(ids::STRING_ITERATOR_PROTO, "String Iterator");
    },
    ..EMPTY
};

const METHODS: &[NativeMethod] = &[
    method(ids::STRING_PROTO, "at", 1, unit_from_start_or_end),
    method(ids::STRING_PROTO, "charAt", 1, char_at),
    method(ids::STRING_PROTO, "charCodeAt", 1, char_code_at),
    method(ids::STRING_PROTO, "codePointAt", 1, code_point_at),
    method(ids::STRING_PROTO, "endsWith", 1, ends_with).slow("EndsWithSlow"),
    method(ids::STRING_PROTO, "includes", 1, includes).slow("IncludesSlow"),
    method(ids::STRING_PROTO, "indexOf", 1, index),
    method(ids::STRING_PROTO, "isWellFormed", 0, is_well_formed),
    method(ids::STRING_PROTO, "lastIndexOf", 1, last_index),
    method(ids::STRING_PROTO, "localeCompare", 1, locale_compare).slow("StringLocaleCompareSlow"),
    method(ids::STRING_PROTO, "slice", 2, slice),
    method(ids::STRING_PROTO, "startsWith", 1, starts_with).slow("StartsWithSlow"),
    method(ids::STRING_PROTO, "substr", 2, substr),
    method(ids::STRING_PROTO, "substring", 2, substring),
    method(ids::STRING_PROTO, "toString", 0, value_of),
    method(ids::STRING_PROTO, "trim", 0, trim),
    method(ids::STRING_PROTO, "trimEnd", 0, trim_end),
    method(ids::STRING_PROTO, "trimStart", 0, trim_start),
    method(ids::STRING_PROTO, "valueOf", 0, value_of),
];

/// An argument as a position in a text of `length` units: clamped, `missing` if undefined.
fn position(vm: &mut Vm<'_>, call: &NativeCall, i: usize, length: usize, missing: usize) -> Res<usize> {
    if vm.arg(call, i) == Value::Undefined {
        return Ok(missing);
    }
    Ok(vm.arg_int(call, i)?.clamp(0.0, length as f64) as usize)
}

/// As [`position`], counting from the end if negative.
fn relative(vm: &mut Vm<'_>, call: &NativeCall, i: usize, length: usize, missing: usize) -> Res<usize> {
    if vm.arg(call, i) == Value::Undefined {
        return Ok(missing);
    }
    Ok(crate::pure::number::clamp_index(vm.arg_number(call, i)?, length as f64) as usize)
}

fn part(vm: &mut Vm<'_>, id: Id, from: usize, to: usize) -> Ret {
    Ret::Value(Value::Str(vm.st.heap.substring(id, from, to.max(from))))
}

/// `this` and the length of its text.
fn this(vm: &mut Vm<'_>, call: &NativeCall, method: &str) -> Res<(Id, usize)> {
    let id = vm.this_str(call, method)?;
    Ok((id, vm.st.heap.str(id).len()))
}

fn unit_from_start_or_end(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let (id, length) = this(vm, &call, "String.prototype.at")?;
    let index = vm.arg_int(&call, 0)?;
    let index = if index < 0.0 { length as f64 + index } else { index };
    if index < 0.0 || index >= length as f64 {
        return Ok(Value::Undefined.into());
    }
    Ok(vm.char_at(id, index as usize).into())
}

fn char_at(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let (id, length) = this(vm, &call, "String.prototype.charAt")?;
    let index = vm.arg_int(&call, 0)?;
    if index < 0.0 || index >= length as f64 {
        return Ok(Value::Str(ids::EMPTY).into());
    }
    Ok(vm.char_at(id, index as usize).into())
}

fn char_code_at(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let (id, length) = this(vm, &call, "String.prototype.charCodeAt")?;
    let index = vm.arg_int(&call, 0)?;
    if index < 0.0 || index >= length as f64 {
        return Ok(Value::Num(f64::NAN).into());
    }
    Ok(Value::Int(i32::from(vm.st.heap.str(id).unit_at(index as usize))).into())
}

fn code_point_at(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let (id, length) = this(vm, &call, "String.prototype.codePointAt")?;
    let index = vm.arg_int(&call, 0)?;
    if index < 0.0 || index >= length as f64 {
        return Ok(Value::Undefined.into());
    }
    let (code_point, _) = units::code_point_at(&vm.st.heap.str(id), index as usize);
    Ok(Value::Int(code_point as i32).into())
}

fn index(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let (id, length) = this(vm, &call, "String.prototype.indexOf")?;
    let needle = vm.arg_str(&call, 0)?;
    let from = position(vm, &call, 1, length, 0)?;
    let found = index_of(&vm.st.heap.str(id), &vm.st.heap.str(needle), from);
    Ok(found.map_or(Value::Int(-1), Value::count).into())
}

fn last_index(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let (id, length) = this(vm, &call, "String.prototype.lastIndexOf")?;
    let needle = vm.arg_str(&call, 0)?;
    let from = vm.arg_number(&call, 1)?;
    let from = if from.is_nan() { length } else { from.clamp(0.0, length as f64) as usize };
    let found = last_index_of(&vm.st.heap.str(id), &vm.st.heap.str(needle), from);
    Ok(found.map_or(Value::Int(-1), Value::count).into())
}

/// `IsRegExp` (7.2.6), which three searches refuse: `None` if that needs a call of a getter or proxy.
fn is_regexp(vm: &mut Vm<'_>, value: Value) -> Option<bool> {
    let Value::Obj(id) = value else { return Some(false) };
    match vm.get(id, ids::key(ids::SYM_MATCH)) {
        PropertyRead::Value(Value::Undefined) => {
            Some(matches!(vm.st.heap.obj(id).kind, ObjectKind::RegExp(..)))
        }
        PropertyRead::Value(matcher) => Some(vm.truthy(matcher)),
        _ => None,
    }
}

/// `this`, the needle, and the start position; `None` if the prelude must do it.
fn search(vm: &mut Vm<'_>, call: &NativeCall, method: &str) -> Res<Option<(Id, usize, Id)>> {
    let (id, length) = this(vm, call, method)?;
    match is_regexp(vm, vm.arg(call, 0)) {
        None => return Ok(None),
        Some(true) => {
            let message = format!("First argument to {method} must not be a regular expression");
            return Err(vm.type_error(&message));
        }
        Some(false) => {}
    }
    let needle = vm.arg_str(call, 0)?;
    Ok(Some((id, length, needle)))
}

fn includes(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let Some((id, length, needle)) = search(vm, &call, "String.prototype.includes")? else {
        return Ok(Ret::Slow);
    };
    let from = position(vm, &call, 1, length, 0)?;
    let found = index_of(&vm.st.heap.str(id), &vm.st.heap.str(needle), from);
    Ok(Value::Bool(found.is_some()).into())
}

fn starts_with(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let Some((id, length, needle)) = search(vm, &call, "String.prototype.startsWith")? else {
        return Ok(Ret::Slow);
    };
    let from = position(vm, &call, 1, length, 0)?;
    Ok(Value::Bool(occurs_at(vm, id, needle, from)).into())
}

fn ends_with(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let Some((id, length, needle)) = search(vm, &call, "String.prototype.endsWith")? else {
        return Ok(Ret::Slow);
    };
    let end = position(vm, &call, 1, length, length)?;
    let needed = vm.st.heap.str(needle).len();
    Ok(Value::Bool(needed <= end && occurs_at(vm, id, needle, end - needed)).into())
}

fn occurs_at(vm: &Vm<'_>, id: Id, needle: Id, from: usize) -> bool {
    let (text, needle) = (vm.st.heap.str(id), vm.st.heap.str(needle));
    from + needle.len() <= text.len()
        && needle.units().enumerate().all(|(i, unit)| text.unit_at(from + i) == unit)
}

fn slice(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let (id, length) = this(vm, &call, "String.prototype.slice")?;
    let from = relative(vm, &call, 0, length, 0)?;
    let to = relative(vm, &call, 1, length, length)?;
    Ok(part(vm, id, from, to))
}

fn substring(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let (id, length) = this(vm, &call, "String.prototype.substring")?;
    let from = position(vm, &call, 0, length, 0)?;
    let to = position(vm, &call, 1, length, length)?;
    Ok(part(vm, id, from.min(to), from.max(to)))
}

fn substr(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let (id, length) = this(vm, &call, "String.prototype.substr")?;
    let from = relative(vm, &call, 0, length, 0)?;
    let count = position(vm, &call, 1, length, length)?;
    Ok(part(vm, id, from, (from + count).min(length)))
}

fn trimmed(vm: &mut Vm<'_>, call: &NativeCall, method: &str, ends: Trim) -> Res<Ret> {
    let (id, _) = this(vm, call, method)?;
    let range = units::trim(&vm.st.heap.str(id), ends);
    Ok(part(vm, id, range.start, range.end))
}

fn trim(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    trimmed(vm, &call, "String.prototype.trim", Trim::Both)
}

fn trim_start(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    trimmed(vm, &call, "String.prototype.trimStart", Trim::Start)
}

fn trim_end(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    trimmed(vm, &call, "String.prototype.trimEnd", Trim::End)
}

fn is_well_formed(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let (id, _) = this(vm, &call, "String.prototype.isWellFormed")?;
    Ok(Value::Bool(units::is_well_formed(&vm.st.heap.str(id))).into())
}

/// `ThisStringValue`, 22.1.3.35.1.
fn value_of(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let this = match vm.this(&call) {
        Value::Obj(id) => match vm.st.heap.obj(id).kind {
            ObjectKind::Primitive(value) => value,
            _ => Value::Undefined,
        },
        other => other,
    };
    if matches!(this, Value::Str(_)) {
        return Ok(this.into());
    }
    Err(vm.type_error("String.prototype.valueOf requires that 'this' be a String"))
}

/// Canonical equivalents are equal.
fn locale_compare(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let (id, _) = this(vm, &call, "String.prototype.localeCompare")?;
    let other = vm.arg_str(&call, 0)?;
    if let (Value::Str(locale), Value::Undefined, true) = (vm.arg(&call, 1), vm.arg(&call, 2), vm.has_intl())
    {
        return super::intl::compare_in(vm, locale, (Value::Str(id), Value::Str(other)));
    }
    // The comparison of long texts is that of `Intl`, which charges it.
    let is_long = vm.st.heap.str(id).len() + vm.st.heap.str(other).len() > 1_024;
    if super::locale::is_for_intl(vm, &call, 1) || is_long && vm.has_intl() {
        return Ok(Ret::Slow);
    }
    let (one, other) = (vm.st.heap.str(id).to_wide(), vm.st.heap.str(other).to_wide());
    super::locale::compare(vm, &call, &one, &other).map(Ret::Value)
}

/// `$indexOf(text, needle, from)`: −1 if the needle does not occur; `from` is clamped.
fn index_intrinsic(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let (text, needle) = (vm.arg_str(&call, 0)?, vm.arg_str(&call, 1)?);
    let length = vm.st.heap.str(text).len();
    let from = position(vm, &call, 2, length, 0)?;
    let found = index_of(&vm.st.heap.str(text), &vm.st.heap.str(needle), from);
    Ok(found.map_or(Value::Int(-1), Value::count).into())
}

/// `$standsAt(text, needle, from)`, false for a negative position.
fn occurs_at_intrinsic(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let (text, needle) = (vm.arg_str(&call, 0)?, vm.arg_str(&call, 1)?);
    let from = vm.arg_int(&call, 2)?;
    let inside = from >= 0.0 && from <= vm.st.heap.str(text).len() as f64;
    Ok(Value::Bool(inside && occurs_at(vm, text, needle, from as usize)).into())
}

/// `$substring(text, from, to)`; a missing `to` is the end.
fn substring_intrinsic(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let text = vm.arg_str(&call, 0)?;
    let length = vm.st.heap.str(text).len();
    let from = position(vm, &call, 1, length, 0)?;
    let to = position(vm, &call, 2, length, length)?;
    Ok(part(vm, text, from, to))
}

/// `$codePointLength(text, index)`: units of the code point there, 1 past the end.
fn code_point_length(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let text = vm.arg_str(&call, 0)?;
    let index = vm.arg_int(&call, 1)?;
    let text = vm.st.heap.str(text);
    let inside = index >= 0.0 && index < text.len() as f64;
    let length = if inside { units::code_point_at(&text, index as usize).1 } else { 1 };
    Ok(Value::count(length).into())
}

/// `$splitText(text, separator, limit)`: the parts as an array.
fn split_text(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let (text, separator) = (vm.arg_str(&call, 0)?, vm.arg_str(&call, 1)?);
    let limit = vm.arg_int(&call, 2)?;
    let (length, wide) = (vm.st.heap.str(text).len(), vm.st.heap.str(separator).len());
    let mut parts = Vec::new();
    let mut from = 0;
    while (parts.len() as f64) < limit {
        if vm.st.heap.bytes > vm.st.heap.limit.saturating_mul(2) {
            return Err(Raise::Limit(VmLimitKind::Heap));
        }
        if wide == 0 {
            if from == length {
                break;
            }
            parts.push(vm.char_at(text, from));
            from += 1;
            continue;
        }
        let found = index_of(&vm.st.heap.str(text), &vm.st.heap.str(separator), from);
        parts.push(Value::Str(vm.st.heap.substring(text, from, found.unwrap_or(length))));
        match found {
            Some(end) => from = end + wide,
            None => break,
        }
    }
    Ok(vm.new_array(parts).into())
}
