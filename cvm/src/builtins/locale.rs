//! The methods that depend on a locale, without locales and options: the usual form of `en-US`. Calls with locales or
//! options are those of `Intl`.
//!
//! Programs of generation 1 have no `Intl`: another locale, and options, are an error that names them, and never a wrong text;
//! `localeCompare` has all languages, and options that are plain data.

use crate::heap::object::ObjectKind;
use crate::pure::english::{self, TextOrder};
use crate::value::Value;
use crate::vm::{NativeCall, Raise, Res, Vm};
use icu_locale::Locale;
use vm_system_inspect::EngineValues;

/// The first locale of an argument: a tag, or a list of tags; `None` for `undefined` and an empty list.
fn requested(vm: &mut Vm<'_>, call: &NativeCall, i: usize) -> Res<Option<Locale>> {
    let given = vm.arg(call, i);
    let tag = match given {
        Value::Undefined => return Ok(None),
        Value::Obj(_) => match vm.dense(given).map(|list| list.dense.first().copied()) {
            Some(None) => return Ok(None),
            Some(Some(first)) => first,
            None => Value::Undefined,
        },
        other => other,
    };
    let Value::Str(id) = tag else {
        return Err(vm.type_error("Incorrect locale information provided"));
    };
    let text = vm.st.heap.str(id).to_utf8();
    match text.parse() {
        Ok(locale) => Ok(Some(locale)),
        Err(_) => Err(vm.range_error(&format!("Incorrect locale information provided: {}", shown(&text)))),
    }
}

/// Whether a call with its locales at this place is one for the prelude: it has locales or options, and its program has `Intl`.
pub(super) fn is_for_intl(vm: &Vm<'_>, call: &NativeCall, at: usize) -> bool {
    let is_given = |i| vm.arg(call, i) != Value::Undefined;
    (is_given(at) || is_given(at + 1)) && vm.has_intl()
}

fn shown(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Checks that the arguments of a method (locales, options) are of those that programs have.
pub(super) fn english_only(vm: &mut Vm<'_>, call: &NativeCall, method: &str) -> Res<()> {
    if let Some(locale) = requested(vm, call, 0)? {
        let tag = locale.to_string();
        if tag != "en" && tag != "en-US" {
            let message = format!("{method}: programs have the locale en-US only, not {}", shown(&tag));
            return Err(vm.range_error(&message));
        }
    }
    if vm.arg(call, 1) != Value::Undefined {
        return Err(vm.range_error(&format!("{method}: programs do not have its options")));
    }
    Ok(())
}

/// Checks the locale of a conversion of case: languages with letters of their own are not supported.
pub(super) fn common_case(vm: &mut Vm<'_>, call: &NativeCall, method: &str) -> Res<()> {
    match requested(vm, call, 0)? {
        Some(locale) if ["az", "el", "hy", "lt", "nl", "tr"].contains(&locale.id.language.as_str()) => {
            let tag = locale.to_string();
            Err(vm.range_error(&format!("{method}: programs do not have the letters of {}", shown(&tag))))
        }
        _ => Ok(()),
    }
}

/// `localeCompare`: the second argument is the locale, the third one the options.
pub(super) fn compare(vm: &mut Vm<'_>, call: &NativeCall, one: &[u16], other: &[u16]) -> Res<Value> {
    const METHOD: &str = "String.prototype.localeCompare";
    let locale = requested(vm, call, 1)?;
    let order = match vm.arg(call, 2) {
        Value::Undefined => None,
        options => Some(text_order(vm, options)?),
    };
    let ordering = if locale.is_none() && order.is_none() {
        english::compare(one, other)
    } else {
        let order = order.unwrap_or(TextOrder { sensitivity: 3, ..TextOrder::default() });
        let locale = locale.unwrap_or(icu_locale::locale!("en-US"));
        match english::compare_by(&locale, order, one, other) {
            Some(ordering) => ordering,
            None => return Err(vm.range_error(&format!("{METHOD}: there are no data for {locale}"))),
        }
    };
    Ok(Value::Int(ordering as i32))
}

fn text_order(vm: &mut Vm<'_>, options: Value) -> Res<TextOrder> {
    let unsupported = |vm: &mut Vm<'_>, name: &str| -> Raise {
        vm.range_error(&format!(
            "String.prototype.localeCompare: programs do not have its option {}",
            shown(name)
        ))
    };
    let mut order = TextOrder { sensitivity: 3, ..TextOrder::default() };
    let is_plain = matches!(options, Value::Obj(id) if matches!(vm.st.heap.obj(id).kind, ObjectKind::Plain));
    if !is_plain {
        return Err(vm.type_error("String.prototype.localeCompare: its options must be a plain object"));
    }
    for key in vm.keys(&options, false, usize::MAX) {
        let name = vm.key_text(key);
        let Some(value) = EngineValues::own_data(vm, &options, &name) else {
            return Err(unsupported(vm, &name));
        };
        if value == Value::Undefined {
            continue;
        }
        let word = vm.plain_text(value);
        match (name.as_str(), word.as_str()) {
            ("numeric", _) => order.numeric = Vm::truthy(vm, value),
            ("ignorePunctuation", _) => order.shifted = Vm::truthy(vm, value),
            ("sensitivity", "base") => order.sensitivity = 0,
            ("sensitivity", "accent") => order.sensitivity = 1,
            ("sensitivity", "case") => order.sensitivity = 2,
            ("sensitivity", "variant") | ("usage", "sort") | ("caseFirst", "false") => {}
            ("localeMatcher", "best fit" | "lookup") => {}
            _ => return Err(unsupported(vm, &format!("{name}: {word}"))),
        }
    }
    Ok(order)
}
