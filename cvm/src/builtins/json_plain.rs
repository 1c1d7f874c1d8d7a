//! `JSON.stringify` of data without user code: ECMA-262 25.5.2 without a replacer.
//!
//! Owns: writing plain containers and primitives with an explicit stack. As soon as something could run user code (a getter, a
//! proxy, a `toJSON`, a wrapper object) it stops, and the prelude's version does the whole work. Must not: recurse.

use super::ids;
use super::natives::{EMPTY, Module};
use crate::heap::object::{ObjectKind, attr};
use crate::pure::json::quote;
use crate::state::VmLimitKind;
use crate::value::{Id, Key, Value};
use crate::vm::props::PropertyRead;
use crate::vm::{NativeCall, Raise, Res, Ret, Vm};
use std::collections::HashSet;

pub(super) const MODULE: Module = Module { intrinsics: &[("jsonPlain", json_plain)], ..EMPTY };

/// Why the native version stops.
enum Stop {
    /// User code could run.
    Slow,
    Raise(Raise),
}

impl From<Raise> for Stop {
    fn from(raise: Raise) -> Stop {
        Stop::Raise(raise)
    }
}

/// `$jsonPlain(value, gap)`: the text; undefined for a value without JSON text; or a marker if the prelude must do the work.
fn json_plain(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let gap = match vm.arg(&call, 1) {
        Value::Str(id) => vm.st.heap.str(id).to_wide(),
        _ => Vec::new(),
    };
    let mut writer = Writer { out: Vec::new(), gap, open: Vec::new(), inside: HashSet::default() };
    match writer.all(vm, vm.arg(&call, 0)) {
        Ok(true) => Ok(Ret::Value(Value::Str(vm.st.heap.new_wide(&writer.out)))),
        Ok(false) => Ok(Value::Undefined.into()),
        Err(Stop::Slow) => Ok(Value::Hole.into()),
        Err(Stop::Raise(raise)) => Err(raise),
    }
}

/// A container that is being written.
struct OpenContainer {
    id: Id,
    array: bool,
    keys: Vec<Key>,
    next: usize,
    /// At least one member was written.
    any: bool,
}

struct Writer {
    out: Vec<u16>,
    gap: Vec<u16>,
    open: Vec<OpenContainer>,
    inside: HashSet<Id, foldhash::fast::FixedState>,
}

impl Writer {
    /// False if the value has no JSON text.
    fn all(&mut self, vm: &mut Vm<'_>, value: Value) -> Result<bool, Stop> {
        if !self.value(vm, value)? {
            return Ok(false);
        }
        while let Some(level) = self.open.last_mut() {
            let Some(&key) = level.keys.get(level.next) else {
                self.close();
                continue;
            };
            level.next += 1;
            let (id, array) = (level.id, level.array);
            let PropertyRead::Value(item) = vm.get(id, key) else { return Err(Stop::Slow) };
            if self.out.len() > vm.st.limits.string_units as usize {
                return Err(Stop::Raise(Raise::Limit(VmLimitKind::Text)));
            }
            let mark = self.out.len();
            self.separate();
            if !array {
                self.name(vm, key)?;
            }
            let depth = self.open.len();
            let written = self.value(vm, item)?;
            if !written && array {
                self.ascii("null");
            }
            if written || array {
                self.open[depth - 1].any = true;
            } else {
                self.out.truncate(mark);
            }
        }
        Ok(true)
    }

    fn name(&mut self, vm: &mut Vm<'_>, key: Key) -> Result<(), Stop> {
        if let Some(index) = key.as_index() {
            self.ascii(&format!("\"{index}\""));
        } else {
            let Value::Str(name) = vm.st.heap.key_value(key) else { return Err(Stop::Slow) };
            quote(&mut self.out, &vm.st.heap.str(name));
        }
        self.ascii(if self.gap.is_empty() { ":" } else { ": " });
        Ok(())
    }

    fn ascii(&mut self, text: &str) {
        self.out.extend(text.bytes().map(u16::from));
    }

    fn line(&mut self, depth: usize) {
        if !self.gap.is_empty() {
            self.out.push(u16::from(b'\n'));
            for _ in 0..depth {
                self.out.extend_from_slice(&self.gap);
            }
        }
    }

    fn separate(&mut self) {
        if self.open.last().is_some_and(|level| level.any) {
            self.out.push(u16::from(b','));
        }
        self.line(self.open.len());
    }

    fn close(&mut self) {
        let Some(level) = self.open.pop() else { return };
        self.inside.remove(&level.id);
        if level.any {
            self.line(self.open.len());
        }
        self.out.push(u16::from(if level.array { b']' } else { b'}' }));
    }

    /// Writes a scalar, or opens a container; false for a value without JSON text.
    fn value(&mut self, vm: &mut Vm<'_>, value: Value) -> Result<bool, Stop> {
        match value {
            Value::Null => self.ascii("null"),
            Value::Bool(b) => self.ascii(if b { "true" } else { "false" }),
            Value::Int(i) => self.ascii(&i.to_string()),
            Value::Num(n) if n.is_finite() => self.ascii(&crate::pure::number::to_string(n)),
            Value::Num(_) => self.ascii("null"),
            Value::Str(id) => quote(&mut self.out, &vm.st.heap.str(id)),
            // `BigInt.prototype.toJSON` may exist; otherwise the prelude throws the error.
            Value::Big(_) => return Err(Stop::Slow),
            Value::Obj(id) => return self.object(vm, id),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn object(&mut self, vm: &mut Vm<'_>, id: Id) -> Result<bool, Stop> {
        let length = match &vm.st.heap.obj(id).kind {
            ObjectKind::Plain => None,
            // A long sparse array is written as many "null"s: the prelude refuses a text that exceeds the limit.
            ObjectKind::Array(a) if a.len <= vm.st.limits.string_units && a.len <= Key::MAX_INDEX => {
                Some(a.len)
            }
            _ => return Err(Stop::Slow),
        };
        match vm.get(id, ids::key(ids::TO_JSON)) {
            PropertyRead::Value(method) if !vm.is_callable(method) => {}
            _ => return Err(Stop::Slow),
        }
        if !self.inside.insert(id) {
            return Err(Stop::Raise(vm.type_error("Converting circular structure to JSON")));
        }
        let keys = match length {
            Some(length) => (0..length).map(Key::index).collect(),
            None => names(vm, id)?,
        };
        self.out.push(u16::from(if length.is_some() { b'[' } else { b'{' }));
        self.open.push(OpenContainer { id, array: length.is_some(), keys, next: 0, any: false });
        Ok(true)
    }
}

/// Own enumerable string keys; `Slow` if one is an accessor.
fn names(vm: &mut Vm<'_>, id: Id) -> Result<Vec<Key>, Stop> {
    let mut names = Vec::new();
    for key in vm.own_keys(id) {
        if vm.st.heap.key_is_symbol(key) {
            continue;
        }
        let Some(own) = vm.get_own(id, key) else { continue };
        if own.flags & attr::ACCESSOR != 0 {
            return Err(Stop::Slow);
        }
        if own.flags & attr::E != 0 {
            names.push(key);
        }
    }
    Ok(names)
}
