//! Functions whose promise the host settles: `CC.async`, `sleep`, `waitFor`.
//!
//! A call that cannot be made throws at once, so that its error has the line of the call, and makes no item: wrong types a
//! `TypeError`, wrong numbers and the limit of pending items a `RangeError`.
//!
//! Owns: their arguments. Must not: settle anything (see `vm::items`).

use super::generations::FIRST_WITH_ITEMS;
use super::host::{check_option, export_json, own_option, question, wrong_type};
use super::natives::{self, EMPTY, Module, method};
use super::{ids, realm::Realm};
use crate::heap::object::{Code, ObjectKind, attr};
use crate::outcome::ItemRequest;
use crate::value::{Id, Value};
use crate::vm::{NativeCall, Res, Ret, Vm};

/// Longest time of a timer (milliseconds): a hundred years, as of a task.
pub const MOST_TIMER_MS: u64 = 100 * 366 * 24 * 3_600_000;
/// Longest name of an event (bytes of UTF-8).
pub const MOST_EVENT_NAME_BYTES: usize = 256;

pub(super) const MODULE: Module = Module {
    since: FIRST_WITH_ITEMS,
    intrinsics: &[("ccAsync", cc_async)],
    methods: &[method(ids::GLOBAL, "sleep", 1, sleep), method(ids::GLOBAL, "waitFor", 1, wait_for)],
    source: include_str!("items.js"),
    extra: define_cc_async,
    ..EMPTY
};

/// `CC` stays the function that pauses; its property `async` is the one that does not.
fn define_cc_async(realm: &mut Realm) {
    let key = realm.key("CC");
    let Some(Value::Obj(cc)) = realm.heap.obj(ids::GLOBAL).props.get(key).map(|p| p.value) else {
        panic!("the module of `CC` comes before this one")
    };
    let code = Code::Native(natives::intrinsic("ccAsync").unwrap_or(u32::MAX));
    let function = realm.function(None, code, "async", 1, ids::FUNCTION_PROTO);
    realm.put(cc, "async", Value::Obj(function), attr::HIDDEN);
}

/// `CC.async(prompt, options?)`
fn cc_async(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let (prompt, options) = question(vm, &c, "CC.async")?;
    Ok(vm.make_item(ItemRequest::Question { prompt, options })?.into())
}

/// `sleep(ms)`
fn sleep(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let given = vm.arg(&c, 0);
    let duration_ms = milliseconds(vm, "The first argument of sleep", given)?;
    Ok(vm.make_item(ItemRequest::Timer { duration_ms })?.into())
}

/// `waitFor(name, { timeout_ms, default }?)`
fn wait_for(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let name = match vm.arg(&c, 0) {
        Value::Str(name) => name,
        other => return Err(wrong_type(vm, "The first argument of waitFor", "the name of an event", other)),
    };
    let text = vm.st.heap.str(name);
    // A unit is at least one byte: a long text is not copied to be measured.
    let name = if text.len() > MOST_EVENT_NAME_BYTES { String::new() } else { text.to_utf8() };
    if !(1..=MOST_EVENT_NAME_BYTES).contains(&name.len()) {
        let message = format!("The name of an event must have 1 to {MOST_EVENT_NAME_BYTES} bytes");
        return Err(vm.range_error(&message));
    }
    let (timeout_ms, default) = match vm.arg(&c, 1) {
        Value::Undefined => (None, None),
        Value::Obj(id) if !vm.is_callable(Value::Obj(id)) => event_options(vm, id)?,
        other => return Err(wrong_type(vm, "The second argument of waitFor", "an object", other)),
    };
    Ok(vm.make_item(ItemRequest::Event { name, timeout_ms, default })?.into())
}

/// The options `timeout_ms` and `default`.
fn event_options(vm: &mut Vm<'_>, options: Id) -> Res<(Option<u64>, Option<String>)> {
    if matches!(vm.st.heap.obj(options).kind, ObjectKind::Proxy(_)) {
        // Fails with the reason.
        export_json(vm, Value::Obj(options), "The second argument of waitFor")?;
    }
    let names: Vec<String> = vm.own_keys(options).into_iter().map(|key| vm.key_text(key)).collect();
    if let Some(other) = names.iter().find(|name| !["timeout_ms", "default"].contains(&name.as_str())) {
        let message = format!("waitFor has no option {other}: it has timeout_ms and default");
        return Err(vm.type_error(&message));
    }
    let timeout_ms = match own_option(vm, options, "waitFor", "timeout_ms")? {
        None | Some(Value::Undefined | Value::Null) => None,
        Some(given) => Some(milliseconds(vm, "The option timeout_ms of waitFor", given)?),
    };
    let default = match own_option(vm, options, "waitFor", "default")? {
        None | Some(Value::Undefined) => None,
        Some(given) => {
            let what = "The option default of waitFor";
            check_option(vm, "default", what, given)?;
            Some(export_json(vm, given, what)?)
        }
    };
    Ok((timeout_ms, default))
}

/// A length of time: whole milliseconds, rounded up, so that no timer ends early.
fn milliseconds(vm: &mut Vm<'_>, what: &str, given: Value) -> Res<u64> {
    let Some(number) = given.as_num() else {
        return Err(wrong_type(vm, what, "a number of milliseconds", given));
    };
    let rounded = number.ceil();
    if !(0.0..=MOST_TIMER_MS as f64).contains(&rounded) {
        let shown = vm.plain_text(given);
        let message =
            format!("{what} must be milliseconds from 0 to {MOST_TIMER_MS} (a hundred years), not {shown}");
        return Err(vm.range_error(&message));
    }
    Ok(rounded as u64)
}
