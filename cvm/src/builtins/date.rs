//! `Date`: construction, reading and text, ECMA-262 21.4.2 to 21.4.4. Setters are in `date_set`.
//!
//! Owns: the object's time value and conversions of arguments. Must not: read a clock (the time is an input of the state) or
//! know a time zone other than UTC.

use super::ids;
use super::natives::{Ctor, CtorCode, EMPTY, Module, method};
use crate::heap::object::{ObjectKind, attr};
use crate::pure::date;
use crate::pure::english;
use crate::value::{Id, Value};
use crate::vm::{NativeCall, Raise, Res, Ret, Vm};

pub(super) const MODULE: Module = Module {
    ctors: &[Ctor {
        id: ids::DATE,
        name: "Date",
        length: 7,
        code: CtorCode::Native(construct),
        proto: ids::DATE_PROTO,
        parent: ids::FUNCTION_PROTO,
        proto_parent: ids::OBJECT_PROTO,
        global: true,
    }],
    methods: &[
        method(ids::DATE, "now", 0, now),
        method(ids::DATE, "parse", 1, parse),
        method(ids::DATE, "UTC", 7, utc),
        method(ids::DATE_PROTO, "getDate", 0, get_date),
        method(ids::DATE_PROTO, "getDay", 0, get_day),
        method(ids::DATE_PROTO, "getFullYear", 0, get_full_year),
        method(ids::DATE_PROTO, "getHours", 0, get_hours),
        method(ids::DATE_PROTO, "getMilliseconds", 0, get_milliseconds),
        method(ids::DATE_PROTO, "getMinutes", 0, get_minutes),
        method(ids::DATE_PROTO, "getMonth", 0, get_month),
        method(ids::DATE_PROTO, "getSeconds", 0, get_seconds),
        method(ids::DATE_PROTO, "getTime", 0, get_time),
        method(ids::DATE_PROTO, "getTimezoneOffset", 0, timezone_offset),
        method(ids::DATE_PROTO, "getUTCDate", 0, get_date),
        method(ids::DATE_PROTO, "getUTCDay", 0, get_day),
        method(ids::DATE_PROTO, "getUTCFullYear", 0, get_full_year),
        method(ids::DATE_PROTO, "getUTCHours", 0, get_hours),
        method(ids::DATE_PROTO, "getUTCMilliseconds", 0, get_milliseconds),
        method(ids::DATE_PROTO, "getUTCMinutes", 0, get_minutes),
        method(ids::DATE_PROTO, "getUTCMonth", 0, get_month),
        method(ids::DATE_PROTO, "getUTCSeconds", 0, get_seconds),
        method(ids::DATE_PROTO, "getYear", 0, get_year),
        method(ids::DATE_PROTO, "toDateString", 0, to_date_string),
        method(ids::DATE_PROTO, "toISOString", 0, to_iso_string),
        method(ids::DATE_PROTO, "toLocaleDateString", 0, to_locale_date_string)
            .slow("DateToLocaleDateStringSlow"),
        method(ids::DATE_PROTO, "toLocaleString", 0, to_locale_string).slow("DateToLocaleStringSlow"),
        method(ids::DATE_PROTO, "toLocaleTimeString", 0, to_locale_time_string)
            .slow("DateToLocaleTimeStringSlow"),
        method(ids::DATE_PROTO, "toString", 0, to_string),
        method(ids::DATE_PROTO, "toTimeString", 0, to_time_string),
        method(ids::DATE_PROTO, "toUTCString", 0, to_utc_string),
        method(ids::DATE_PROTO, "valueOf", 0, get_time),
    ],
    lists: &[(ids::DATE_PROTO, "DateMethods")],
    source: include_str!("date.js"),
    extra: |realm| {
        realm.alias(ids::DATE_PROTO, "toUTCString", "toGMTString");
        realm.set_flags(ids::DATE_PROTO, "$$SYM_TO_PRIMITIVE", attr::C);
    },
    ..EMPTY
};

/// `Date(…)` and `new Date(…)`, 21.4.2.1.
fn construct(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    if call.new_target == Value::Undefined {
        let text = date::to_string(date::time_clip(vm.st.now));
        return Ok(vm.st.heap.str_value(&text).into());
    }
    let time = match call.argc {
        0 => date::time_clip(vm.st.now),
        1 => one_argument(vm, &call)?,
        _ => date::time_clip(from_parts(vm, &call)?),
    };
    let Some(proto) = vm.proto_of_constructor(call.new_target, ids::DATE_PROTO) else {
        return Ok(vm.slow_constructor(&call, "DateSlow_"));
    };
    Ok(Value::Obj(vm.st.heap.new_object(proto, ObjectKind::Date(time))).into())
}

fn one_argument(vm: &mut Vm<'_>, call: &NativeCall) -> Res<f64> {
    let value = vm.slot(call.at);
    if let Value::Obj(id) = value {
        if let ObjectKind::Date(time) = vm.st.heap.obj(id).kind {
            return Ok(time);
        }
        return Err(Raise::Prim(call.at, 0));
    }
    if let Value::Str(text) = value {
        return Ok(date::parse(&vm.st.heap.str(text)));
    }
    Ok(date::time_clip(vm.slot_number(call.at)?))
}

/// The time of the arguments year, month and so on.
fn from_parts(vm: &mut Vm<'_>, call: &NativeCall) -> Res<f64> {
    let mut parts = [f64::NAN, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0];
    for (index, part) in parts.iter_mut().enumerate() {
        if index < call.argc || index == 0 {
            *part = vm.arg_number(call, index)?;
        }
    }
    let [year, month, day, hour, minute, second, millisecond] = parts;
    let day = date::make_day(date::full_year(year), month, day);
    Ok(date::make_date(day, date::make_time(hour, minute, second, millisecond)))
}

fn now(vm: &mut Vm<'_>, _: NativeCall) -> Res<Ret> {
    Ok(Value::num(date::time_clip(vm.st.now)).into())
}

fn parse(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let text = vm.arg_str(&call, 0)?;
    Ok(Value::num(date::parse(&vm.st.heap.str(text))).into())
}

fn utc(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let time = from_parts(vm, &call)?;
    Ok(Value::num(date::time_clip(time)).into())
}

/// `ThisTimeValue`: the object and its time.
pub(super) fn this_time(vm: &mut Vm<'_>, call: &NativeCall) -> Res<(Id, f64)> {
    if let Value::Obj(id) = vm.this(call)
        && let ObjectKind::Date(time) = vm.st.heap.obj(id).kind
    {
        return Ok((id, time));
    }
    Err(vm.type_error("this is not a Date object"))
}

fn get(vm: &mut Vm<'_>, call: &NativeCall, part: fn(&date::Fields) -> i64) -> Res<Ret> {
    let (_, time) = this_time(vm, call)?;
    Ok(date::fields(time).map_or(Value::Num(f64::NAN), |fields| Value::num(part(&fields) as f64)).into())
}

macro_rules! getters {
    ($($name:ident $field:ident)*) => {
        $(fn $name(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
            get(vm, &call, |fields| fields.$field)
        })*
    };
}

getters! {
    get_full_year year get_month month get_date date get_day week_day get_hours hour get_minutes minute
    get_seconds second get_milliseconds millisecond
}

fn get_year(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    get(vm, &call, |fields| fields.year - 1900)
}

fn get_time(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let (_, time) = this_time(vm, &call)?;
    Ok(Value::num(time).into())
}

/// Local time is UTC.
fn timezone_offset(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let (_, time) = this_time(vm, &call)?;
    Ok(if time.is_nan() { Value::Num(f64::NAN) } else { Value::Int(0) }.into())
}

fn text(vm: &mut Vm<'_>, call: &NativeCall, format: fn(f64) -> String) -> Res<Ret> {
    let (_, time) = this_time(vm, call)?;
    Ok(vm.st.heap.str_value(&format(time)).into())
}

fn to_string(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    text(vm, &call, date::to_string)
}

fn to_date_string(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    text(vm, &call, date::to_date_string)
}

fn to_time_string(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    text(vm, &call, date::to_time_string)
}

fn to_locale(
    vm: &mut Vm<'_>,
    call: &NativeCall,
    method: &str,
    format: fn(f64) -> Option<String>,
) -> Res<Ret> {
    let (_, time) = this_time(vm, call)?;
    if !time.is_nan() && super::locale::is_for_intl(vm, call, 0) {
        return Ok(Ret::Slow);
    }
    if !vm.has_intl() {
        super::locale::english_only(vm, call, &format!("Date.prototype.{method}"))?;
    }
    Ok(vm.st.heap.str_value(format(time).as_deref().unwrap_or("Invalid Date")).into())
}

fn to_locale_string(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    to_locale(vm, &call, "toLocaleString", |time| {
        Some(format!("{}, {}", english::date(time)?, english::time_of_day(time)?))
    })
}

fn to_locale_date_string(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    to_locale(vm, &call, "toLocaleDateString", english::date)
}

fn to_locale_time_string(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    to_locale(vm, &call, "toLocaleTimeString", english::time_of_day)
}

fn to_utc_string(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    text(vm, &call, date::to_utc_string)
}

fn to_iso_string(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let (_, time) = this_time(vm, &call)?;
    match date::to_iso_string(time) {
        Some(text) => Ok(vm.st.heap.str_value(&text).into()),
        None => Err(vm.range_error("Invalid time value")),
    }
}
