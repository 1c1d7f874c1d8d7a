//! `RegExp`: construction, the builtin `exec`, and the functions that read source and flags. ECMA-262 22.2.4 to 22.2.7.
//!
//! Owns: compiled patterns (derived data, never stored) and match arrays. Functions that are specified in terms of other
//! properties (`test`, `flags`, `toString`, `Symbol.replace` and others) are in `regexp.js`. Must not: match by itself.

use super::ids;
use super::natives::{Ctor, CtorCode, EMPTY, Module, getter, method};
use crate::heap::object::{ObjectKind, Prop, attr};
use crate::heap::text::Text;
use crate::pure::regexp::{self, Flags, Groups, Regex};
use crate::value::{Id, Value};
use crate::vm::props::PropertyRead;
use crate::vm::{NativeCall, Res, Ret, Vm};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

pub(super) const MODULE: Module = Module {
    intrinsics: &[
        ("regexpAlloc", alloc),
        ("regexpExec", exec_intrinsic),
        ("isRegExp", |vm, c| Ok(Value::Bool(parts(vm, vm.arg(&c, 0)).is_some()).into())),
        ("regexpSource", |vm, c| {
            Ok(parts(vm, vm.arg(&c, 0)).map_or(Value::Undefined, |(_, source, _)| Value::Str(source)).into())
        }),
        ("regexpFlags", |vm, c| {
            Ok(parts(vm, vm.arg(&c, 0)).map_or(Value::Undefined, |(_, _, flags)| Value::Str(flags)).into())
        }),
    ],
    ctors: &[Ctor {
        id: ids::REGEXP,
        name: "RegExp",
        length: 2,
        code: CtorCode::Prelude("RegExp_"),
        proto: ids::REGEXP_PROTO,
        parent: ids::FUNCTION_PROTO,
        proto_parent: ids::OBJECT_PROTO,
        global: true,
    }],
    methods: &[
        method(ids::REGEXP, "escape", 1, escape),
        method(ids::REGEXP_PROTO, "exec", 1, exec).slow("ExecSlow").with_id(ids::REGEXP_EXEC),
        method(ids::REGEXP_PROTO, "compile", 2, compile),
        getter(ids::REGEXP_PROTO, "source", source),
        getter(ids::REGEXP_PROTO, "hasIndices", has_indices),
        getter(ids::REGEXP_PROTO, "global", global),
        getter(ids::REGEXP_PROTO, "ignoreCase", ignore_case),
        getter(ids::REGEXP_PROTO, "multiline", multiline),
        getter(ids::REGEXP_PROTO, "dotAll", dot_all),
        getter(ids::REGEXP_PROTO, "unicode", unicode),
        getter(ids::REGEXP_PROTO, "unicodeSets", unicode_sets),
        getter(ids::REGEXP_PROTO, "sticky", sticky),
    ],
    lists: &[
        (ids::REGEXP, "RegExpStatics"),
        (ids::REGEXP_PROTO, "RegExpMethods"),
        (ids::REGEXP_STRING_ITERATOR_PROTO, "RegExpStringIteratorMethods"),
    ],
    source: include_str!("regexp.js"),
    extra: |realm| {
        realm.heap.obj_mut(ids::REGEXP_STRING_ITERATOR_PROTO).proto = ids::ITERATOR_PROTO;
        realm.tag(ids::REGEXP_STRING_ITERATOR_PROTO, "RegExp String Iterator");
    },
    ..EMPTY
};

/// Steps of the matcher for one `exec`.
const MATCH_STEPS: u64 = 50_000_000;
/// Steps of the matcher that count as one instruction.
const STEPS_PER_INSTRUCTION: u64 = 8;
/// Most compiled expressions kept at a time.
const CACHE: usize = 256;

/// Compiled expressions by source and flags; never stored.
#[derive(Clone, Debug, Default)]
pub(crate) struct RegExpCache {
    compiled: HashMap<(Vec<u16>, Flags), Arc<Regex>, foldhash::fast::FixedState>,
}

impl Vm<'_> {
    /// The compiled form; the error is the message of a `SyntaxError`.
    pub(crate) fn regex(&mut self, source: Id, flags: Id) -> Result<Arc<Regex>, String> {
        let Some(parsed) = Flags::parse(&self.st.heap.str(flags)) else {
            let shown = self.st.heap.str(flags).slice(0, 20).to_utf8();
            return Err(format!("Invalid flags supplied to RegExp constructor '{shown}'"));
        };
        let key = (self.st.heap.str(source).to_wide(), parsed);
        if let Some(found) = self.st.regexps.compiled.get(&key) {
            return Ok(Arc::clone(found));
        }
        let compiled = Arc::new(Regex::compile(&key.0, parsed).map_err(|error| error.to_string())?);
        if self.st.regexps.compiled.len() >= CACHE {
            self.st.regexps.compiled.clear();
        }
        self.st.regexps.compiled.insert(key, Arc::clone(&compiled));
        Ok(compiled)
    }

    /// A regular expression literal; `bits` are its flags in the order `dgimsuvy`.
    pub(crate) fn op_regexp(&mut self, source: u32, bits: usize) -> Res<()> {
        let letters: String =
            "dgimsuvy".chars().enumerate().filter(|(i, _)| bits & (1 << i) != 0).map(|(_, c)| c).collect();
        let flags = self.st.heap.new_str(&letters);
        let source = match self.st.heap.key_value(crate::value::Key(source)) {
            Value::Str(id) => id,
            _ => ids::EMPTY,
        };
        let regexp = create(self, ids::REGEXP_PROTO, source, flags)?;
        self.push(regexp);
        Ok(())
    }
}

fn compiled(vm: &mut Vm<'_>, source: Id, flags: Id) -> Res<Arc<Regex>> {
    vm.regex(source, flags).map_err(|message| vm.syntax_error(&message))
}

/// `RegExpCreate` with a prototype: checks the pattern and creates the object.
pub(super) fn create(vm: &mut Vm<'_>, proto: Id, source: Id, flags: Id) -> Res<Value> {
    compiled(vm, source, flags)?;
    let id = vm.st.heap.new_object(proto, ObjectKind::RegExp(Value::Str(source), Value::Str(flags)));
    let last_index = Prop { key: ids::key(ids::LAST_INDEX), flags: attr::W, value: Value::Int(0) };
    vm.st.heap.obj_mut(id).props.push(last_index);
    vm.st.heap.charge(24);
    Ok(Value::Obj(id))
}

/// Source and flags of a regular expression object.
fn parts(vm: &Vm<'_>, value: Value) -> Option<(Id, Id, Id)> {
    let Value::Obj(id) = value else { return None };
    match vm.st.heap.obj(id).kind {
        ObjectKind::RegExp(Value::Str(source), Value::Str(flags)) => Some((id, source, flags)),
        _ => None,
    }
}

/// `$regexpAlloc(proto, source, flags)`: strings, and an object to inherit from.
fn alloc(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let proto = vm.arg_obj(&call, 0)?;
    let (source, flags) = (vm.arg_str(&call, 1)?, vm.arg_str(&call, 2)?);
    create(vm, proto, source, flags).map(Ret::Value)
}

/// `RegExp.prototype.exec`, 22.2.6.2. An object as `lastIndex` is converted by the prelude.
fn exec(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let this = vm.this(&call);
    let Some((id, ..)) = parts(vm, this) else {
        return Err(vm.type_error("RegExp.prototype.exec requires that 'this' be a RegExp object"));
    };
    let text = vm.arg_str(&call, 0)?;
    let last_index = match vm.get(id, ids::key(ids::LAST_INDEX)) {
        PropertyRead::Value(value) if !value.is_object() => value,
        _ => return Ok(Ret::Slow),
    };
    let last_index = vm.prim_number(last_index)?;
    exec_at(vm, this, text, last_index).map(Ret::Value)
}

/// `$regexpExec(regexp, text, lastIndex)`: `RegExpBuiltinExec` after the conversions.
fn exec_intrinsic(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let text = vm.arg_str(&call, 1)?;
    let last_index = vm.arg_number(&call, 2)?;
    let this = vm.arg(&call, 0);
    exec_at(vm, this, text, last_index).map(Ret::Value)
}

/// `RegExpBuiltinExec`, 22.2.7.2.
fn exec_at(vm: &mut Vm<'_>, this: Value, text: Id, last_index: f64) -> Res<Value> {
    let Some((id, source, flags)) = parts(vm, this) else {
        return Err(vm.type_error("The receiver is not a RegExp object"));
    };
    let regex = compiled(vm, source, flags)?;
    let flags = regex.flags();
    let moves = flags.global || flags.sticky;
    let length = vm.st.heap.str(text).len();
    let start = if moves { crate::pure::number::to_integer_or_infinity(last_index).max(0.0) } else { 0.0 };
    let found = if start > length as f64 { None } else { matched(vm, &regex, text, start as usize)? };
    let Some(groups) = found else {
        if moves {
            set_last_index(vm, id, 0)?;
        }
        return Ok(Value::Null);
    };
    if moves {
        let end = groups.first().cloned().flatten().map_or(0, |whole| whole.end);
        set_last_index(vm, id, end)?;
    }
    Ok(match_array(vm, &regex, text, &groups))
}

/// Runs the matcher and charges its steps to the program.
fn matched(vm: &mut Vm<'_>, regex: &Regex, text: Id, start: usize) -> Res<Option<Groups>> {
    let mut steps = MATCH_STEPS;
    let found = match vm.st.heap.str(text) {
        Text::Narrow(text) => regex.exec(text, start, &mut steps),
        Text::Wide(text) => regex.exec(text, start, &mut steps),
    };
    // Deducted before the next instruction, whatever fuel is left, so that the size of fuel slices makes no difference.
    vm.st.debt = vm.st.debt.saturating_add((MATCH_STEPS - steps) / STEPS_PER_INSTRUCTION);
    vm.st.heap.attention = true;
    found.map_err(|error| vm.range_error(&error.to_string()))
}

/// `Set(R, "lastIndex", n, true)`: always an own data property.
fn set_last_index(vm: &mut Vm<'_>, id: Id, index: usize) -> Res<()> {
    let key = ids::key(ids::LAST_INDEX);
    let writable = vm.get_own(id, key).is_some_and(|own| own.flags & attr::W != 0);
    if !writable {
        return Err(vm.refused(key, "it is read-only"));
    }
    vm.create(id, key, Value::count(index));
    Ok(())
}

/// The part of `text` as a value; undefined for a group that did not participate.
fn capture(vm: &mut Vm<'_>, text: Id, range: Option<&Range<usize>>) -> Value {
    match range {
        Some(range) => Value::Str(vm.st.heap.substring(text, range.start, range.end)),
        None => Value::Undefined,
    }
}

/// Steps 24 to 38: the array with `index`, `input`, `groups` and `indices`.
fn match_array(vm: &mut Vm<'_>, regex: &Regex, text: Id, groups: &Groups) -> Value {
    let captures: Vec<Value> = groups.iter().map(|range| capture(vm, text, range.as_ref())).collect();
    let index = groups.first().cloned().flatten().map_or(0, |whole| whole.start);
    let named = named_groups(vm, regex, &captures);
    let array = vm.new_array(captures);
    let Value::Obj(id) = array else { return array };
    vm.create(id, ids::key(ids::INDEX), Value::count(index));
    vm.create(id, ids::key(ids::INPUT), Value::Str(text));
    vm.create(id, ids::key(ids::GROUPS), named);
    if regex.flags().has_indices {
        let mut pairs = Vec::with_capacity(groups.len());
        for range in groups {
            pairs.push(match range {
                Some(range) => vm.new_array(vec![Value::count(range.start), Value::count(range.end)]),
                None => Value::Undefined,
            });
        }
        let named = named_groups(vm, regex, &pairs);
        let indices = vm.new_array(pairs);
        if let Value::Obj(list) = indices {
            vm.create(list, ids::key(ids::GROUPS), named);
        }
        vm.create(id, ids::key(ids::INDICES), indices);
    }
    array
}

/// An object without prototype that maps names to the value of the group that participated; undefined without names.
fn named_groups(vm: &mut Vm<'_>, regex: &Regex, values: &[Value]) -> Value {
    if regex.names().is_empty() {
        return Value::Undefined;
    }
    let id = vm.st.heap.new_object(Id::NONE, ObjectKind::Plain);
    for (name, numbers) in regex.names() {
        let values = numbers.iter().filter_map(|number| values.get(*number as usize));
        let value = values.copied().find(|value| *value != Value::Undefined).unwrap_or(Value::Undefined);
        let key = vm.st.heap.key(name);
        vm.create(id, key, value);
    }
    Value::Obj(id)
}

/// `RegExp.prototype.compile`, B.2.4.1.
fn compile(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let this = vm.this(&call);
    let Some((id, ..)) = parts(vm, this) else {
        return Err(vm.type_error("RegExp.prototype.compile requires that 'this' be a RegExp object"));
    };
    let pattern = vm.arg(&call, 0);
    let (source, flags) = if let Some((_, source, flags)) = parts(vm, pattern) {
        if vm.arg(&call, 1) != Value::Undefined {
            return Err(vm.type_error("flags must be undefined when the pattern is a RegExp"));
        }
        (source, flags)
    } else {
        let source = if pattern == Value::Undefined { ids::EMPTY } else { vm.arg_str(&call, 0)? };
        let flags = if vm.arg(&call, 1) == Value::Undefined { ids::EMPTY } else { vm.arg_str(&call, 1)? };
        (source, flags)
    };
    compiled(vm, source, flags)?;
    vm.st.heap.obj_mut(id).kind = ObjectKind::RegExp(Value::Str(source), Value::Str(flags));
    set_last_index(vm, id, 0)?;
    Ok(this.into())
}

/// `RegExp.escape`, 22.2.5.1.
fn escape(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let Value::Str(text) = vm.arg(&call, 0) else {
        return Err(vm.type_error("RegExp.escape requires a string"));
    };
    let escaped = regexp::escape_literal(&vm.st.heap.str(text).to_wide());
    Ok(Value::Str(vm.st.heap.new_wide(&escaped)).into())
}

/// `source`, 22.2.6.13.
fn source(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let this = vm.this(&call);
    if let Some((_, source, _)) = parts(vm, this) {
        let text = regexp::escape_pattern(&vm.st.heap.str(source).to_wide());
        return Ok(Value::Str(vm.st.heap.new_wide(&text)).into());
    }
    if this == Value::Obj(ids::REGEXP_PROTO) {
        return Ok(vm.st.heap.str_value("(?:)").into());
    }
    Err(vm.type_error("RegExp.prototype.source getter called on something that is not a RegExp"))
}

/// `RegExpHasFlag`, 22.2.6.4.1.
fn has_flag(vm: &mut Vm<'_>, call: &NativeCall, letter: u8) -> Res<Ret> {
    let this = vm.this(call);
    if let Some((_, _, flags)) = parts(vm, this) {
        let set = vm.st.heap.str(flags).units().any(|unit| unit == u16::from(letter));
        return Ok(Value::Bool(set).into());
    }
    if this == Value::Obj(ids::REGEXP_PROTO) {
        return Ok(Value::Undefined.into());
    }
    Err(vm.type_error("RegExp flag getter called on something that is not a RegExp"))
}

macro_rules! flags {
    ($($name:ident $letter:literal)*) => {
        $(fn $name(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
            has_flag(vm, &call, $letter)
        })*
    };
}

flags! {
    has_indices b'd' global b'g' ignore_case b'i' multiline b'm' dot_all b's' unicode b'u' unicode_sets b'v' sticky b'y'
}
