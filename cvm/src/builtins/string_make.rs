//! `String` and the methods that create new text, ECMA-262 22.1.1, 22.1.2, 22.1.3 and B.2.2.
//!
//! Owns: bounding results before they are built. Must not: allocate beyond the limits of the state.

use super::ids;
use super::natives::{Ctor, CtorCode, EMPTY, Module, method};
use crate::heap::object::ObjectKind;
use crate::heap::text::Text;
use crate::pure::substitution::{ReplacementPart, split};
use crate::pure::{case, units};
use crate::state::VmLimitKind;
use crate::value::{Id, Value};
use crate::vm::{NativeCall, Raise, Res, Ret, Vm};

pub(super) const MODULE: Module = Module {
    intrinsics: &[("substitute", substitute), ("templateNames", template_names)],
    ctors: &[Ctor {
        id: ids::STRING,
        name: "String",
        length: 1,
        code: CtorCode::Native(construct),
        proto: ids::STRING_PROTO,
        parent: ids::FUNCTION_PROTO,
        proto_parent: ids::OBJECT_PROTO,
        global: true,
    }],
    methods: &[
        method(ids::STRING, "fromCharCode", 1, from_char_code),
        method(ids::STRING, "fromCodePoint", 1, from_code_point),
        method(ids::STRING_PROTO, "concat", 1, concat),
        method(ids::STRING_PROTO, "normalize", 0, normalize),
        method(ids::STRING_PROTO, "padEnd", 1, pad_end),
        method(ids::STRING_PROTO, "padStart", 1, pad_start),
        method(ids::STRING_PROTO, "repeat", 1, repeat),
        method(ids::STRING_PROTO, "toLocaleLowerCase", 0, to_locale_lower_case)
            .slow("StringToLocaleLowerCaseSlow"),
        method(ids::STRING_PROTO, "toLocaleUpperCase", 0, to_locale_upper_case)
            .slow("StringToLocaleUpperCaseSlow"),
        method(ids::STRING_PROTO, "toLowerCase", 0, to_lower_case),
        method(ids::STRING_PROTO, "toUpperCase", 0, to_upper_case),
        method(ids::STRING_PROTO, "toWellFormed", 0, to_well_formed),
        method(ids::STRING_PROTO, "anchor", 1, anchor),
        method(ids::STRING_PROTO, "big", 0, big),
        method(ids::STRING_PROTO, "blink", 0, blink),
        method(ids::STRING_PROTO, "bold", 0, bold),
        method(ids::STRING_PROTO, "fixed", 0, fixed),
        method(ids::STRING_PROTO, "fontcolor", 1, fontcolor),
        method(ids::STRING_PROTO, "fontsize", 1, fontsize),
        method(ids::STRING_PROTO, "italics", 0, italics),
        method(ids::STRING_PROTO, "link", 1, link),
        method(ids::STRING_PROTO, "small", 0, small),
        method(ids::STRING_PROTO, "strike", 0, strike),
        method(ids::STRING_PROTO, "sub", 0, sub),
        method(ids::STRING_PROTO, "sup", 0, sup),
    ],
    lists: &[(ids::STRING, "StringStatics")],
    extra: |realm| realm.heap.obj_mut(ids::STRING_PROTO).kind = ObjectKind::Primitive(Value::Str(ids::EMPTY)),
    ..EMPTY
};

/// Refuses text of this many units before it is built.
fn check_length(vm: &mut Vm<'_>, length: f64) -> Res<()> {
    if length > f64::from(vm.st.limits.string_units) {
        return Err(Raise::Limit(VmLimitKind::Text));
    }
    // How much of the heap is garbage is unknown here; a text that alone exceeds the limit can never fit.
    if length as u64 > vm.st.heap.limit {
        return Err(Raise::Limit(VmLimitKind::Heap));
    }
    Ok(())
}

/// Text that stays Latin-1 until a wider unit is added.
enum Builder {
    Narrow(Vec<u8>),
    Wide(Vec<u16>),
}

impl Builder {
    fn new() -> Builder {
        Builder::Narrow(Vec::new())
    }

    fn push(&mut self, text: Text<'_>) {
        match (&mut *self, text) {
            (Builder::Narrow(out), Text::Narrow(more)) => out.extend_from_slice(more),
            (Builder::Wide(out), more) => out.extend(more.units()),
            (Builder::Narrow(out), Text::Wide(more)) => {
                let mut wide: Vec<u16> = out.iter().map(|&unit| u16::from(unit)).collect();
                wide.extend_from_slice(more);
                *self = Builder::Wide(wide);
            }
        }
    }

    fn finish(self, vm: &mut Vm<'_>) -> Ret {
        Ret::Value(Value::Str(match self {
            Builder::Narrow(text) => vm.st.heap.new_narrow(&text),
            Builder::Wide(text) => vm.st.heap.new_wide(&text),
        }))
    }
}

/// `String(value)` and `new String(value)`, 22.1.1.1.
fn construct(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    if call.argc > 0
        && call.new_target == Value::Undefined
        && let Value::Sym(id) = vm.slot(call.at)
    {
        let text = vm.symbol_text(id);
        return Ok(vm.st.heap.str_value(&text).into());
    }
    let text = if call.argc == 0 { ids::EMPTY } else { vm.slot_str(call.at)? };
    if call.new_target == Value::Undefined {
        return Ok(Value::Str(text).into());
    }
    let Some(proto) = vm.proto_of_constructor(call.new_target, ids::STRING_PROTO) else {
        return Ok(vm.slow_constructor(&call, "StringSlow_"));
    };
    Ok(Value::Obj(vm.st.heap.new_object(proto, ObjectKind::Primitive(Value::Str(text)))).into())
}

fn from_char_code(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let mut text = Vec::with_capacity(call.argc);
    for i in 0..call.argc {
        text.push(crate::pure::number::to_uint16(vm.arg_number(&call, i)?));
    }
    Ok(Value::Str(vm.st.heap.new_wide(&text)).into())
}

fn from_code_point(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let mut text = Vec::with_capacity(call.argc);
    for i in 0..call.argc {
        let code_point = vm.arg_number(&call, i)?;
        if !(0.0..=1_114_111.0).contains(&code_point) || code_point.trunc() != code_point {
            let shown = crate::pure::number::to_string(code_point);
            return Err(vm.range_error(&format!("Invalid code point {shown}")));
        }
        units::push_code_point(&mut text, code_point as u32);
    }
    Ok(Value::Str(vm.st.heap.new_wide(&text)).into())
}

fn concat(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let this = vm.this_str(&call, "String.prototype.concat")?;
    let mut parts = vec![this];
    let mut length = vm.st.heap.str(this).len();
    for i in 0..call.argc {
        let part = vm.arg_str(&call, i)?;
        length += vm.st.heap.str(part).len();
        parts.push(part);
    }
    if let [left, right] = parts[..] {
        return vm.concat(left, right).map(Ret::Value);
    }
    check_length(vm, length as f64)?;
    let mut text = Builder::new();
    for part in parts {
        text.push(vm.st.heap.str(part));
    }
    Ok(text.finish(vm))
}

fn repeat(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let this = vm.this_str(&call, "String.prototype.repeat")?;
    let count = vm.arg_int(&call, 0)?;
    if count < 0.0 || count.is_infinite() {
        return Err(vm.range_error("Invalid count value"));
    }
    let length = vm.st.heap.str(this).len();
    if length == 0 || count == 0.0 {
        return Ok(Value::Str(ids::EMPTY).into());
    }
    check_length(vm, length as f64 * count)?;
    let mut text = Builder::new();
    for _ in 0..count as usize {
        text.push(vm.st.heap.str(this));
    }
    Ok(text.finish(vm))
}

/// `StringPaddingBuiltinsImpl`, 22.1.3.17.1.
fn pad(vm: &mut Vm<'_>, call: &NativeCall, method: &str, at_start: bool) -> Res<Ret> {
    let this = vm.this_str(call, method)?;
    let wanted = vm.arg_int(call, 0)?.clamp(0.0, crate::pure::number::MAX_SAFE_INTEGER);
    let length = vm.st.heap.str(this).len();
    if wanted <= length as f64 {
        return Ok(Value::Str(this).into());
    }
    let filler = if vm.arg(call, 1) == Value::Undefined { Id(u32::from(b' ')) } else { vm.arg_str(call, 1)? };
    let filler_length = vm.st.heap.str(filler).len();
    if filler_length == 0 {
        return Ok(Value::Str(this).into());
    }
    check_length(vm, wanted)?;
    let missing = wanted as usize - length;
    let mut text = Builder::new();
    if !at_start {
        text.push(vm.st.heap.str(this));
    }
    for _ in 0..missing / filler_length {
        text.push(vm.st.heap.str(filler));
    }
    text.push(vm.st.heap.str(filler).slice(0, missing % filler_length));
    if at_start {
        text.push(vm.st.heap.str(this));
    }
    Ok(text.finish(vm))
}

fn pad_start(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    pad(vm, &call, "String.prototype.padStart", true)
}

fn pad_end(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    pad(vm, &call, "String.prototype.padEnd", false)
}

/// A method that maps the whole text; `growth` bounds how much longer the result can be.
fn mapped(
    vm: &mut Vm<'_>,
    call: &NativeCall,
    method: &str,
    growth: usize,
    map: impl Fn(&[u16]) -> Vec<u16>,
) -> Res<Ret> {
    let this = vm.this_str(call, method)?;
    let source = vm.st.heap.str(this).to_wide();
    if (source.len() * growth) as u64 > vm.st.heap.limit {
        return Err(Raise::Limit(VmLimitKind::Heap));
    }
    let text = map(&source);
    check_length(vm, text.len() as f64)?;
    Ok(Value::Str(vm.st.heap.new_wide(&text)).into())
}

fn to_lower_case(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let this = vm.this_str(&call, "String.prototype.toLowerCase")?;
    if let Text::Narrow(text) = vm.st.heap.str(this)
        && text.is_ascii()
    {
        let lower = text.to_ascii_lowercase();
        return Ok(Value::Str(vm.st.heap.new_narrow(&lower)).into());
    }
    mapped(vm, &call, "String.prototype.toLowerCase", 3, case::to_lower_case)
}

fn to_locale_lower_case(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    vm.this_str(&call, "String.prototype.toLocaleLowerCase")?;
    if super::locale::is_for_intl(vm, &call, 0) {
        return Ok(Ret::Slow);
    }
    super::locale::common_case(vm, &call, "String.prototype.toLocaleLowerCase")?;
    to_lower_case(vm, call)
}

fn to_locale_upper_case(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    vm.this_str(&call, "String.prototype.toLocaleUpperCase")?;
    if super::locale::is_for_intl(vm, &call, 0) {
        return Ok(Ret::Slow);
    }
    super::locale::common_case(vm, &call, "String.prototype.toLocaleUpperCase")?;
    to_upper_case(vm, call)
}

fn to_upper_case(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let this = vm.this_str(&call, "String.prototype.toUpperCase")?;
    if let Text::Narrow(text) = vm.st.heap.str(this)
        && text.is_ascii()
    {
        let upper = text.to_ascii_uppercase();
        return Ok(Value::Str(vm.st.heap.new_narrow(&upper)).into());
    }
    mapped(vm, &call, "String.prototype.toUpperCase", 3, case::to_upper_case)
}

fn normalize(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    vm.this_str(&call, "String.prototype.normalize")?;
    let form = if vm.arg(&call, 0) == Value::Undefined {
        case::Form::Nfc
    } else {
        let name = vm.arg_str(&call, 0)?;
        match case::Form::from_name(&vm.st.heap.str(name)) {
            Some(form) => form,
            None => {
                return Err(vm.range_error("The normalization form should be one of NFC, NFD, NFKC, NFKD"));
            }
        }
    };
    mapped(vm, &call, "String.prototype.normalize", 18, |text| case::normalize(text, form))
}

fn to_well_formed(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    mapped(vm, &call, "String.prototype.toWellFormed", 1, units::to_well_formed)
}

/// `CreateHTML`, B.2.2.2.1.
fn html(vm: &mut Vm<'_>, call: &NativeCall, method: &str, tag: &str, attribute: &str) -> Res<Ret> {
    let this = vm.this_str(call, method)?;
    let mut text = Builder::new();
    text.push(Text::Narrow(b"<"));
    text.push(Text::Narrow(tag.as_bytes()));
    let mut length = vm.st.heap.str(this).len();
    if !attribute.is_empty() {
        let value = vm.arg_str(call, 0)?;
        length += vm.st.heap.str(value).len() * 6;
        check_length(vm, length as f64)?;
        text.push(Text::Narrow(b" "));
        text.push(Text::Narrow(attribute.as_bytes()));
        text.push(Text::Narrow(b"=\""));
        let value = vm.st.heap.str(value);
        let mut from = 0;
        for at in 0..=value.len() {
            if at == value.len() || value.unit_at(at) == u16::from(b'"') {
                text.push(value.slice(from, at));
                if at < value.len() {
                    text.push(Text::Narrow(b"&quot;"));
                }
                from = at + 1;
            }
        }
        text.push(Text::Narrow(b"\""));
    }
    check_length(vm, length as f64)?;
    text.push(Text::Narrow(b">"));
    text.push(vm.st.heap.str(this));
    text.push(Text::Narrow(b"</"));
    text.push(Text::Narrow(tag.as_bytes()));
    text.push(Text::Narrow(b">"));
    Ok(text.finish(vm))
}

macro_rules! html {
    ($($name:ident $tag:literal $attribute:literal)*) => {
        $(fn $name(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
            html(vm, &call, concat!("String.prototype.", stringify!($name)), $tag, $attribute)
        })*
    };
}

html! {
    anchor "a" "name"
    big "big" ""
    blink "blink" ""
    bold "b" ""
    fixed "tt" ""
    fontcolor "font" "color"
    fontsize "font" "size"
    italics "i" ""
    link "a" "href"
    small "small" ""
    strike "strike" ""
    sub "sub" ""
    sup "sup" ""
}

/// The template of a replacement as units, with its parts.
fn template(
    vm: &mut Vm<'_>,
    call: &NativeCall,
    i: usize,
    captures: usize,
    named: bool,
) -> Res<(Id, Vec<ReplacementPart>)> {
    let id = vm.arg_str(call, i)?;
    let parts = split(&vm.st.heap.str(id), captures, named);
    Ok((id, parts))
}

/// `$templateNames(template, captures)`: the group names that a replacement text refers to, in order.
fn template_names(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let captures = vm.arg_int(&call, 1)? as usize;
    let (id, parts) = template(vm, &call, 0, captures, true)?;
    let mut names = Vec::new();
    for part in parts {
        if let ReplacementPart::Named(range) = part {
            names.push(Value::Str(vm.st.heap.substring(id, range.start, range.end)));
        }
    }
    Ok(vm.new_array(names).into())
}

/// `$substitute(matched, text, position, captures, template, named)`: the part of `GetSubstitution` (22.1.3.19.1) that calls no
/// user code: `captures` are strings or undefined, `named` is undefined or has a string for each name of the template.
fn substitute(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let (matched, text) = (vm.arg_str(&call, 0)?, vm.arg_str(&call, 1)?);
    let length = vm.st.heap.str(text).len();
    let start = vm.arg_int(&call, 2)?.clamp(0.0, length as f64) as usize;
    let after = (start + vm.st.heap.str(matched).len()).min(length);
    let list = |vm: &Vm<'_>, i: usize| vm.dense(vm.arg(&call, i)).map(|array| array.dense.clone());
    let captures = list(vm, 3).unwrap_or_default();
    let named = list(vm, 5);
    let (template, parts) = template(vm, &call, 4, captures.len(), named.is_some())?;
    let mut names = named.unwrap_or_default().into_iter();
    let mut pieces = Vec::with_capacity(parts.len());
    let mut total = 0;
    for part in parts {
        let (id, range) = match part {
            ReplacementPart::Literal(range) => (template, range),
            ReplacementPart::Matched => (matched, 0..usize::MAX),
            ReplacementPart::Before => (text, 0..start),
            ReplacementPart::After => (text, after..length),
            ReplacementPart::Capture(number) => match captures.get(number - 1) {
                Some(Value::Str(id)) => (*id, 0..usize::MAX),
                _ => continue,
            },
            ReplacementPart::Named(_) => match names.next() {
                Some(Value::Str(id)) => (id, 0..usize::MAX),
                _ => continue,
            },
        };
        total += vm.st.heap.str(id).slice(range.start, range.end).len();
        check_length(vm, total as f64)?;
        pieces.push((id, range));
    }
    let mut out = Builder::new();
    for (id, range) in pieces {
        out.push(vm.st.heap.str(id).slice(range.start, range.end));
    }
    Ok(out.finish(vm))
}
