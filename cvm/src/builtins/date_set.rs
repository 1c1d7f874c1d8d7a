//! The setters of `Date`, ECMA-262 21.4.4.20 to 21.4.4.34 and B.2.3.2. Local time is UTC, so each pair is one function.

use super::date::this_time;
use super::ids;
use super::natives::{EMPTY, Module, method};
use crate::heap::object::ObjectKind;
use crate::pure::date::{self, Fields};
use crate::value::{Id, Value};
use crate::vm::{NativeCall, Res, Ret, Vm};

pub(super) const MODULE: Module = Module {
    methods: &[
        method(ids::DATE_PROTO, "setDate", 1, set_date).slow("SetDateSlow"),
        method(ids::DATE_PROTO, "setFullYear", 3, set_full_year),
        method(ids::DATE_PROTO, "setHours", 4, set_hours).slow("SetHoursSlow"),
        method(ids::DATE_PROTO, "setMilliseconds", 1, set_milliseconds).slow("SetMillisecondsSlow"),
        method(ids::DATE_PROTO, "setMinutes", 3, set_minutes).slow("SetMinutesSlow"),
        method(ids::DATE_PROTO, "setMonth", 2, set_month).slow("SetMonthSlow"),
        method(ids::DATE_PROTO, "setSeconds", 2, set_seconds).slow("SetSecondsSlow"),
        method(ids::DATE_PROTO, "setTime", 1, set_time),
        method(ids::DATE_PROTO, "setUTCDate", 1, set_date).slow("SetDateSlow"),
        method(ids::DATE_PROTO, "setUTCFullYear", 3, set_full_year),
        method(ids::DATE_PROTO, "setUTCHours", 4, set_hours).slow("SetHoursSlow"),
        method(ids::DATE_PROTO, "setUTCMilliseconds", 1, set_milliseconds).slow("SetMillisecondsSlow"),
        method(ids::DATE_PROTO, "setUTCMinutes", 3, set_minutes).slow("SetMinutesSlow"),
        method(ids::DATE_PROTO, "setUTCMonth", 2, set_month).slow("SetMonthSlow"),
        method(ids::DATE_PROTO, "setUTCSeconds", 2, set_seconds).slow("SetSecondsSlow"),
        method(ids::DATE_PROTO, "setYear", 1, set_year),
    ],
    intrinsics: &[
        ("dateTime", |vm, c| match vm.arg(&c, 0) {
            Value::Obj(id) if matches!(vm.st.heap.obj(id).kind, ObjectKind::Date(_)) => {
                match vm.st.heap.obj(id).kind {
                    ObjectKind::Date(time) => Ok(Value::num(time).into()),
                    _ => Ok(Value::Undefined.into()),
                }
            }
            _ => Err(vm.type_error("this is not a Date object")),
        }),
        ("dateSet", date_set),
    ],
    ..EMPTY
};

/// Stores a time and returns it.
fn store(vm: &mut Vm<'_>, id: Id, time: f64) -> Ret {
    let time = date::time_clip(time);
    vm.st.heap.obj_mut(id).kind = ObjectKind::Date(time);
    Ret::Value(Value::num(time))
}

/// The first part that a setter sets.
#[derive(Clone, Copy)]
enum From {
    Month,
    Date,
    Hour,
    Minute,
    Second,
    Millisecond,
}

/// The parts of a time as numbers, in the order of the constructor's arguments after the year.
fn parts(fields: &Fields) -> [f64; 6] {
    [fields.month, fields.date, fields.hour, fields.minute, fields.second, fields.millisecond]
        .map(|part| part as f64)
}

/// Converts the arguments even if the time is NaN. Objects go to the prelude: the time is read before they are converted.
fn set(vm: &mut Vm<'_>, call: &NativeCall, from: From, most: usize) -> Res<Ret> {
    let (id, time) = this_time(vm, call)?;
    if (0..call.argc.min(most)).any(|index| vm.arg(call, index).is_object()) {
        return Ok(Ret::Slow);
    }
    let mut given = Vec::with_capacity(most);
    for index in 0..call.argc.clamp(1, most) {
        given.push(vm.arg_number(call, index)?);
    }
    Ok(set_parts(vm, id, time, from as usize, &given))
}

/// Replaces the parts starting at `from` and stores the time.
fn set_parts(vm: &mut Vm<'_>, id: Id, time: f64, from: usize, given: &[f64]) -> Ret {
    let Some(fields) = date::fields(time) else { return Ret::Value(Value::Num(f64::NAN)) };
    let mut all = parts(&fields);
    for (part, value) in all.iter_mut().skip(from).zip(given) {
        *part = *value;
    }
    let [month, day, hour, minute, second, millisecond] = all;
    let day = date::make_day(fields.year as f64, month, day);
    let time = date::make_date(day, date::make_time(hour, minute, second, millisecond));
    store(vm, id, time)
}

/// `$dateSet(date, time, from, numbers)`: as the setters, with the time that was read before and numbers.
fn date_set(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let id = vm.arg_obj(&call, 0)?;
    let (time, from) = (vm.arg_number(&call, 1)?, vm.arg_int(&call, 2)?);
    let numbers = vm.dense(vm.arg(&call, 3)).map(|list| list.dense.clone()).unwrap_or_default();
    let given: Vec<f64> = numbers.iter().map(|value| value.as_num().unwrap_or(f64::NAN)).collect();
    Ok(set_parts(vm, id, time, from as usize, &given))
}

macro_rules! setters {
    ($($name:ident $from:ident $most:literal)*) => {
        $(fn $name(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
            set(vm, &call, From::$from, $most)
        })*
    };
}

setters! {
    set_month Month 2
    set_date Date 1
    set_hours Hour 4
    set_minutes Minute 3
    set_seconds Second 2
    set_milliseconds Millisecond 1
}

/// A NaN time counts as the start of the epoch here.
fn set_full_year(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let (id, time) = this_time(vm, &call)?;
    let time = if time.is_nan() { 0.0 } else { time };
    let fields = date::fields(time);
    let old = |part: fn(&Fields) -> i64| fields.as_ref().map_or(f64::NAN, |fields| part(fields) as f64);
    let year = vm.arg_number(&call, 0)?;
    let month = if call.argc > 1 { vm.arg_number(&call, 1)? } else { old(|fields| fields.month) };
    let day = if call.argc > 2 { vm.arg_number(&call, 2)? } else { old(|fields| fields.date) };
    let time = date::make_date(date::make_day(year, month, day), date::time_within_day(time));
    Ok(store(vm, id, time))
}

fn set_year(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let (id, time) = this_time(vm, &call)?;
    let year = vm.arg_number(&call, 0)?;
    if year.is_nan() {
        return Ok(store(vm, id, f64::NAN));
    }
    let time = if time.is_nan() { 0.0 } else { time };
    let (month, day) =
        date::fields(time).map_or((0.0, 1.0), |fields| (fields.month as f64, fields.date as f64));
    let day = date::make_day(date::full_year(year), month, day);
    Ok(store(vm, id, date::make_date(day, date::time_within_day(time))))
}

fn set_time(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let (id, _) = this_time(vm, &call)?;
    let time = vm.arg_number(&call, 0)?;
    Ok(store(vm, id, time))
}
