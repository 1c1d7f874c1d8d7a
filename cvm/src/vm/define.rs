//! `[[DefineOwnProperty]]` with its validation, integrity levels, prototypes (ECMA-262 10.1.6, 10.4.2).
//!
//! Owns: [`Desc`]. Must not: run user code.

use super::Vm;
use super::props::LENGTH;
use crate::heap::Cell;
use crate::heap::object::{ObjectKind, Prop, attr};
use crate::value::{Id, Key, Value};

/// A property descriptor; absent fields are `None`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Desc {
    pub value: Option<Value>,
    pub get: Option<Value>,
    pub set: Option<Value>,
    /// Attributes that are true
    pub flags: u8,
    /// Attributes that are present
    pub mask: u8,
}

impl Desc {
    /// A complete data descriptor.
    pub(crate) fn data(value: Value, flags: u8) -> Desc {
        Desc { value: Some(value), get: None, set: None, flags, mask: attr::ALL }
    }

    pub(super) fn is_accessor(&self) -> bool {
        self.get.is_some() || self.set.is_some()
    }

    fn is_data(&self) -> bool {
        self.value.is_some() || self.mask & attr::W != 0
    }
}

impl Vm<'_> {
    /// Defines an own property of anything but a proxy; false when refused.
    pub(crate) fn define_own(&mut self, id: Id, key: Key, desc: &Desc) -> bool {
        if let Some(index) = self.typed_key(id, key) {
            return self.define_element(id, index, desc);
        }
        let is_array = matches!(self.st.heap.obj(id).kind, ObjectKind::Array(_));
        if is_array && key == LENGTH {
            return self.define_length(id, desc);
        }
        if let (true, Some(i)) = (is_array, key.as_index().or_else(|| self.large_index(key)))
            && let ObjectKind::Array(a) = &self.st.heap.obj(id).kind
            && i >= a.len
            && !a.len_writable
        {
            return false;
        }
        let Some(current) = self.get_own(id, key) else {
            if !self.st.heap.obj(id).extensible {
                return false;
            }
            if desc.is_accessor() {
                let pair = self.pair_value(desc.get, desc.set, None);
                let flags = (desc.flags & desc.mask & (attr::E | attr::C)) | attr::ACCESSOR;
                return self.add_own(id, key, pair, flags);
            }
            let flags = desc.flags & desc.mask & attr::ALL;
            return self.add_own(id, key, desc.value.unwrap_or(Value::Undefined), flags);
        };
        if !self.compatible(current.value, current.flags, desc) {
            return false;
        }
        let mut flags = (current.flags & !desc.mask & attr::ALL) | (desc.flags & desc.mask & attr::ALL);
        let was_accessor = current.flags & attr::ACCESSOR != 0;
        let value = if desc.is_accessor() {
            flags = (flags & !attr::W) | attr::ACCESSOR;
            self.pair_value(desc.get, desc.set, was_accessor.then_some(current.value))
        } else if desc.is_data() || !was_accessor {
            if was_accessor {
                flags = (flags & !attr::W) | (desc.flags & desc.mask & attr::W);
            }
            desc.value.unwrap_or(if was_accessor { Value::Undefined } else { current.value })
        } else {
            flags |= attr::ACCESSOR;
            current.value
        };
        self.replace_own(id, key, value, flags);
        true
    }

    fn pair_value(&mut self, get: Option<Value>, set: Option<Value>, old: Option<Value>) -> Value {
        let (old_get, old_set) = old.map_or((Value::Undefined, Value::Undefined), |v| self.st.heap.pair(v));
        Value::Cell(self.st.heap.alloc(Cell::Pair(get.unwrap_or(old_get), set.unwrap_or(old_set))))
    }

    /// Whether the change is allowed: ECMA-262 10.1.6.3 from step 4.
    fn compatible(&self, value: Value, flags: u8, desc: &Desc) -> bool {
        if flags & attr::C != 0 {
            return true;
        }
        if desc.mask & desc.flags & attr::C != 0 {
            return false;
        }
        if desc.mask & attr::E != 0 && (desc.flags ^ flags) & attr::E != 0 {
            return false;
        }
        if flags & attr::ACCESSOR != 0 {
            if desc.is_data() {
                return false;
            }
            let (get, set) = self.st.heap.pair(value);
            return desc.get.is_none_or(|g| self.same_value(g, get))
                && desc.set.is_none_or(|s| self.same_value(s, set));
        }
        if desc.is_accessor() {
            return false;
        }
        if flags & attr::W == 0 {
            if desc.mask & desc.flags & attr::W != 0 {
                return false;
            }
            return desc.value.is_none_or(|v| self.same_value(v, value));
        }
        true
    }

    /// Sets value and attributes of an existing own property.
    pub(crate) fn replace_own(&mut self, id: Id, key: Key, value: Value, flags: u8) {
        let object = self.st.heap.obj_mut(id);
        if let (ObjectKind::Array(a) | ObjectKind::Arguments(a), Some(i)) = (&mut object.kind, key.as_index())
            && let Some(element) = a.dense.get_mut(i as usize)
            && *element != Value::Hole
        {
            if flags == attr::ALL {
                *element = value;
            } else {
                *element = Value::Hole;
                object.props.push(Prop { key, flags, value });
                self.st.heap.charge(24);
            }
            return;
        }
        if let Some(slot) = object.props.find(key)
            && let Some(p) = object.props.at_mut(slot)
        {
            p.value = value;
            p.flags = flags;
        }
    }

    fn define_length(&mut self, id: Id, desc: &Desc) -> bool {
        let ObjectKind::Array(a) = &self.st.heap.obj(id).kind else { return false };
        let (len, writable) = (a.len, a.len_writable);
        if desc.is_accessor() || desc.mask & desc.flags & (attr::C | attr::E) != 0 {
            return false;
        }
        let new = match desc.value.and_then(Value::as_num) {
            Some(n) => n as u32,
            None => len,
        };
        if !writable && (new != len || desc.mask & desc.flags & attr::W != 0) {
            return false;
        }
        let ok = if new == len { true } else { self.set_array_length_growing(id, new) };
        if desc.mask & attr::W != 0
            && desc.flags & attr::W == 0
            && let ObjectKind::Array(a) = &mut self.st.heap.obj_mut(id).kind
        {
            a.len_writable = false;
        }
        ok
    }

    fn set_array_length_growing(&mut self, id: Id, len: u32) -> bool {
        self.set_array_length(id, len)
    }

    /// A key from 2^31 - 1 on is a string, but may still be an array index.
    pub(super) fn large_index_added(&mut self, id: Id, key: Key) {
        if let Some(i) = self.large_index(key)
            && let ObjectKind::Array(a) = &mut self.st.heap.obj_mut(id).kind
        {
            a.len = a.len.max(i + 1);
        }
    }

    /// Array index of a string key above the range of index keys.
    pub(crate) fn large_index(&self, key: Key) -> Option<u32> {
        let cell = key.as_cell()?;
        if self.st.heap.symbol(cell).is_some() {
            return None;
        }
        let text = self.st.heap.str(cell);
        if text.len() != 10 {
            return None;
        }
        let n: u64 = text.to_utf8().parse().ok()?;
        (n > u64::from(Key::MAX_INDEX) && n < u64::from(u32::MAX)).then_some(n as u32)
    }

    /// `[[PreventExtensions]]` of anything but a proxy; false for a typed array that may get more elements.
    pub(crate) fn prevent_extensions(&mut self, id: Id) -> bool {
        if self.may_grow(id) {
            return false;
        }
        if let ObjectKind::Function(f) = &self.st.heap.obj(id).kind
            && f.lazy
        {
            self.materialise(id);
        }
        self.st.heap.obj_mut(id).extensible = false;
        true
    }

    /// `[[SetPrototypeOf]]` of anything but a proxy; false for a cycle or when not extensible.
    pub(crate) fn set_proto(&mut self, id: Id, proto: Id) -> bool {
        let object = self.st.heap.obj(id);
        if object.proto == proto {
            return true;
        }
        if !object.extensible || id == crate::builtins::ids::OBJECT_PROTO {
            return false;
        }
        let mut at = proto;
        while at != Id::NONE {
            if at == id {
                return false;
            }
            let object = self.st.heap.obj(at);
            if matches!(object.kind, ObjectKind::Proxy(_)) {
                break;
            }
            at = object.proto;
        }
        self.st.heap.obj_mut(id).proto = proto;
        true
    }

    /// The wrapper object of a primitive; an object itself; none for undefined and null.
    pub(crate) fn object_of(&mut self, value: Value) -> Option<Id> {
        if let Value::Obj(id) = value {
            return Some(id);
        }
        let proto = Self::proto_of_primitive(value)?;
        Some(self.st.heap.new_object(proto, ObjectKind::Primitive(value)))
    }

    /// Defines an accessor or method on an object while it is being built.
    pub(crate) fn define_accessor(
        &mut self,
        id: Id,
        key: Key,
        get: Option<Value>,
        set: Option<Value>,
        enumerable: bool,
    ) -> bool {
        let flags = attr::C | if enumerable { attr::E } else { 0 };
        self.define_own(id, key, &Desc { value: None, get, set, flags, mask: attr::E | attr::C })
    }
}
