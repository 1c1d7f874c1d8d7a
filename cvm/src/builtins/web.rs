//! The web platform's classes and functions: natives on `vm-system-web`; `web.js` has the rest. `crypto.randomUUID` uses the
//! program's generator, as `Math.random` does: its values are unique, and no secrets.

use super::ids;
use super::math::next_random;
use super::natives::{Ctor, CtorCode, EMPTY, Module, method};
use crate::heap::object::ObjectKind;
use crate::heap::text::Text;
use crate::value::{Id, Value};
use crate::vm::{NativeCall, Res, Ret, Vm};
use vm_system_inspect::{EngineValues, ShownField, ShownFields};

/// Tags of records: `URL`, `URLSearchParams`.
const URL: u32 = 918;
const PARAMS: u32 = 919;

/// The parts of a URL in the order in which they are shown.
const SHOWN: [&str; 10] =
    ["href", "origin", "protocol", "username", "password", "host", "hostname", "port", "pathname", "search"];

const fn ctor(id: Id, name: &'static str, code: &'static str, length: u16, proto: Id, above: Id) -> Ctor {
    let code = CtorCode::Prelude(code);
    Ctor { id, name, length, code, proto, parent: ids::FUNCTION_PROTO, proto_parent: above, global: true }
}

pub(super) const MODULE: Module = Module {
    intrinsics: &[
        ("wellFormed", well_formed),
        ("urlParse", url_parse),
        ("urlPart", url_part),
        ("urlSet", url_set),
        ("formRead", form_read),
        ("formWrite", form_write),
        ("formSort", form_sort),
        ("base64Read", base64_read),
        ("base64Write", base64_write),
        ("cloneKind", clone_kind),
        ("cloneLeaf", clone_leaf),
        ("className", class_name),
    ],
    methods: &[method(ids::CRYPTO, "randomUUID", 0, random_uuid)],
    ctors: &[
        ctor(ids::URL, "URL", "URL_", 1, ids::URL_PROTO, ids::OBJECT_PROTO),
        ctor(
            ids::URL_SEARCH_PARAMS,
            "URLSearchParams",
            "URLSearchParams_",
            0,
            ids::URL_SEARCH_PARAMS_PROTO,
            ids::OBJECT_PROTO,
        ),
        ctor(
            ids::DOM_EXCEPTION,
            "DOMException",
            "DOMException_",
            0,
            ids::DOM_EXCEPTION_PROTO,
            ids::ERROR_PROTO,
        ),
    ],
    lists: &[
        (ids::URL, "URLStatics"),
        (ids::URL_PROTO, "URLPrototype"),
        (ids::URL_SEARCH_PARAMS_PROTO, "URLSearchParamsPrototype"),
        (ids::URL_SEARCH_PARAMS_ITERATOR_PROTO, "URLSearchParamsIteratorPrototype"),
        (ids::GLOBAL, "WebFunctions"),
    ],
    source: include_str!("web.js"),
    extra: |r| {
        r.alias(ids::URL_SEARCH_PARAMS_PROTO, "entries", "$$SYM_ITERATOR");
        r.heap.obj_mut(ids::URL_SEARCH_PARAMS_ITERATOR_PROTO).proto = ids::ITERATOR_PROTO;
        r.global("crypto", Value::Obj(ids::CRYPTO));
        for (object, tag) in [
            (ids::URL_PROTO, "URL"),
            (ids::URL_SEARCH_PARAMS_PROTO, "URLSearchParams"),
            (ids::URL_SEARCH_PARAMS_ITERATOR_PROTO, "URLSearchParams Iterator"),
            (ids::DOM_EXCEPTION_PROTO, "DOMException"),
            (ids::CRYPTO, "Crypto"),
        ] {
            r.tag(object, tag);
        }
        for object in [ids::URL_PROTO, ids::URL_SEARCH_PARAMS_PROTO] {
            r.show_members(object);
        }
    },
    ..EMPTY
};

fn text_value(vm: &mut Vm<'_>, text: &str) -> Ret {
    vm.st.heap.str_value(text).into()
}

/// The text of a string argument; lone surrogates become U+FFFD.
fn text_of(vm: &Vm<'_>, c: &NativeCall, i: usize) -> String {
    match vm.arg(c, i) {
        Value::Str(id) => vm.st.heap.str(id).to_utf8(),
        _ => String::new(),
    }
}

/// `$wellFormed(text)`: lone surrogates are replaced.
fn well_formed(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let given = vm.arg(&c, 0);
    let Value::Str(id) = given else { return Ok(given.into()) };
    match vm.st.heap.str(id) {
        Text::Wide(units) if char::decode_utf16(units.iter().copied()).any(|unit| unit.is_err()) => {
            let text = vm.st.heap.str(id).to_utf8();
            Ok(text_value(vm, &text))
        }
        _ => Ok(given.into()),
    }
}

/// `$urlParse(text, base)`: the serialized URL, or undefined.
fn url_parse(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let base = matches!(vm.arg(&c, 1), Value::Str(_)).then(|| text_of(vm, &c, 1));
    match vm_system_web::parse(&text_of(vm, &c, 0), base.as_deref()) {
        Some(url) => Ok(text_value(vm, url.as_str())),
        None => Ok(Value::Undefined.into()),
    }
}

/// `$urlPart(href, part)`
fn url_part(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let url = vm_system_web::parse(&text_of(vm, &c, 0), None);
    let part = url.map(|url| vm_system_web::part(&url, &text_of(vm, &c, 1))).unwrap_or_default();
    Ok(text_value(vm, &part))
}

/// `$urlSet(href, part, value)`: the new serialized URL.
fn url_set(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let Some(mut url) = vm_system_web::parse(&text_of(vm, &c, 0), None) else {
        return Ok(vm.arg(&c, 0).into());
    };
    vm_system_web::set_part(&mut url, &text_of(vm, &c, 1), &text_of(vm, &c, 2));
    Ok(text_value(vm, url.as_str()))
}

/// `$formRead(text)`: names and values in turn.
fn form_read(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let pairs = vm_system_web::read_form(&text_of(vm, &c, 0));
    let texts = pairs.iter().flat_map(|(name, value)| [name, value]);
    let list: Vec<Value> = texts.map(|text| vm.st.heap.str_value(text)).collect();
    Ok(vm.new_array(list).into())
}

/// The pairs of a list with names and values in turn.
fn pairs(vm: &Vm<'_>, list: Value) -> Vec<(Value, Value)> {
    let list = vm.dense(list).map(|list| list.dense.as_slice()).unwrap_or_default();
    list.as_chunks().0.iter().map(|[name, value]| (*name, *value)).collect()
}

/// `$formWrite(list)`
fn form_write(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let texts: Vec<(String, String)> = pairs(vm, vm.arg(&c, 0))
        .into_iter()
        .map(|(name, value)| (vm.plain_text(name), vm.plain_text(value)))
        .collect();
    let text = vm_system_web::write_form(texts.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    Ok(text_value(vm, &text))
}

/// `$formSort(list)`: sorted by name, in the order of code units; stable.
fn form_sort(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let mut sorted = pairs(vm, vm.arg(&c, 0));
    let text = |value: Value| match value {
        Value::Str(id) => vm.st.heap.str(id),
        _ => Text::Narrow(&[]),
    };
    sorted.sort_by(|a, b| text(a.0).compare(text(b.0)));
    let list = sorted.into_iter().flat_map(|(name, value)| [name, value]).collect();
    Ok(vm.new_array(list).into())
}

/// `$base64Read(text)`: a string with a unit for each byte, or undefined.
fn base64_read(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    match vm_system_web::from_base64(&text_of(vm, &c, 0)) {
        Some(bytes) => Ok(Value::Str(vm.st.heap.new_narrow(&bytes)).into()),
        None => Ok(Value::Undefined.into()),
    }
}

/// `$base64Write(text)`: undefined if a unit is no byte.
fn base64_write(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let Value::Str(id) = vm.arg(&c, 0) else { return Ok(Value::Undefined.into()) };
    let bytes: Option<Vec<u8>> = vm.st.heap.str(id).units().map(|unit| u8::try_from(unit).ok()).collect();
    match bytes {
        Some(bytes) => Ok(text_value(vm, &vm_system_web::to_base64(&bytes))),
        None => Ok(Value::Undefined.into()),
    }
}

/// `$cloneKind(value)`; `web.js` has the numbers.
fn clone_kind(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let kind = match vm.arg(&c, 0) {
        Value::Sym(_) => 7,
        Value::Obj(id) => match &vm.st.heap.obj(id).kind {
            ObjectKind::Primitive(Value::Sym(_)) => 7,
            ObjectKind::Primitive(_) | ObjectKind::Date(_) | ObjectKind::RegExp(..) => 1,
            ObjectKind::Array(_) => 2,
            ObjectKind::Map(_) => 3,
            ObjectKind::Set(_) => 4,
            ObjectKind::Error => 5,
            ObjectKind::Plain | ObjectKind::Arguments(_) => 6,
            ObjectKind::Buffer(_) => 8,
            ObjectKind::View(_) => 9,
            _ => 7,
        },
        _ => 0,
    };
    Ok(Value::Int(kind).into())
}

/// `$cloneLeaf(object)`: a copy of a date, a regular expression or a wrapper.
fn clone_leaf(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let id = vm.arg_obj(&c, 0)?;
    let kind = vm.st.heap.obj(id).kind.clone();
    let proto = match kind {
        ObjectKind::RegExp(Value::Str(source), Value::Str(flags)) => {
            return super::regexp::create(vm, ids::REGEXP_PROTO, source, flags).map(Ret::Value);
        }
        ObjectKind::Primitive(value) => Vm::proto_of_primitive(value).unwrap_or(ids::OBJECT_PROTO),
        _ => ids::DATE_PROTO,
    };
    Ok(Value::Obj(vm.st.heap.new_object(proto, kind)).into())
}

/// `$className(object)`: the name of its constructor, from plain data.
fn class_name(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let constructor = vm.inherited_data(&vm.arg(&c, 0), "constructor").filter(|value| value.is_object());
    let name = constructor.and_then(|constructor| EngineValues::own_data(vm, &constructor, "name"));
    let text = name.filter(|name| matches!(name, Value::Str(_))).map(|name| vm.plain_text(name));
    Ok(text_value(vm, text.as_deref().unwrap_or("Object")))
}

fn random_uuid(vm: &mut Vm<'_>, _: NativeCall) -> Res<Ret> {
    let bits = u128::from(next_random(vm)) << 64 | u128::from(next_random(vm));
    // Version 4, variant 1.
    let bits = bits & !(0xf << 76 | 0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let hex = format!("{bits:032x}");
    let text = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-");
    Ok(text_value(vm, &text))
}

impl Vm<'_> {
    /// The list of a `URLSearchParams`.
    pub(crate) fn shown_pairs(&self, value: Value) -> Option<Value> {
        match &self.st.heap.obj(value.as_obj()?).kind {
            ObjectKind::Record(PARAMS, slots) => slots.first().copied().filter(|value| value.is_object()),
            _ => None,
        }
    }

    /// The text of a `URL`, which its `toJSON` returns.
    pub(crate) fn href(&self, object: Id) -> Option<Id> {
        match &self.st.heap.obj(object).kind {
            ObjectKind::Record(URL, slots) => match slots.first() {
                Some(Value::Str(href)) => Some(*href),
                _ => None,
            },
            _ => None,
        }
    }

    /// The parts of a `URL`, or of another object of the web platform that has some.
    pub(crate) fn shown_fields(&self, value: Value) -> Option<ShownFields<Value>> {
        let ObjectKind::Record(URL, slots) = &self.st.heap.obj(value.as_obj()?).kind else {
            return self.shown_exchange(value);
        };
        let url = vm_system_web::parse(&self.plain_text(*slots.first()?), None)?;
        let part = |name| ShownField::Text(vm_system_web::part(&url, name));
        let mut fields: Vec<_> = SHOWN.iter().map(|name| (*name, part(name))).collect();
        let params = match slots.get(1) {
            Some(params @ Value::Obj(_)) => ShownField::Value(*params),
            _ => ShownField::Pairs(
                "URLSearchParams",
                vm_system_web::read_form(url.query().unwrap_or_default()),
            ),
        };
        fields.push(("searchParams", params));
        fields.push(("hash", part("hash")));
        Some(fields)
    }
}
