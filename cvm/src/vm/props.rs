//! The property model: own properties of every kind of object, lookup along prototypes, assignment, deletion, keys.
//!
//! Owns: the essential internal methods of ordinary and exotic objects (ECMA-262 10.1, 10.4). A method that would run user
//! code returns the function to call (`Getter`, `Setter`, `Proxy`). Must not: push frames.

use super::{Raise, Res, Vm};
use crate::builtins::ids;
use crate::heap::object::{Array, Code, Func, ObjectKind, Prop, attr};
use crate::program::flag;
use crate::value::{Id, Key, Value};

/// Largest gap that an assignment past an array's end fills with holes.
const MAX_GAP: usize = 1 << 20;

/// The result of reading a property.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PropertyRead {
    /// A value; undefined when missing
    Value(Value),
    /// Call this getter
    Getter(Value),
    /// Call this proxy's trap
    Proxy(Id),
}

/// The result of writing a property.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PropertyWrite {
    /// Done
    Done,
    /// Call this setter
    Setter(Value),
    /// Call this proxy's trap
    Proxy(Id),
    /// Convert the value, which may run user code or fail, and store it in this typed array
    Convert(Id),
    /// Refused, for this reason
    Refused(&'static str),
}

/// An own property.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnProperty {
    pub value: Value,
    pub flags: u8,
}

/// Key of `length`.
pub(crate) const LENGTH: Key = ids::key(ids::LENGTH);

impl Vm<'_> {
    /// `[[GetOwnProperty]]` of anything but a proxy.
    pub(crate) fn get_own(&mut self, id: Id, key: Key) -> Option<OwnProperty> {
        self.materialise_for(id, key);
        self.own(id, key)
    }

    /// As [`Vm::get_own`], for objects without lazy properties.
    #[inline]
    pub(crate) fn own(&self, id: Id, key: Key) -> Option<OwnProperty> {
        let object = self.st.heap.obj(id);
        match &object.kind {
            ObjectKind::Array(a) => {
                if let Some(i) = key.as_index() {
                    match a.dense.get(i as usize) {
                        Some(Value::Hole) | None => {}
                        Some(&value) => return Some(OwnProperty { value, flags: attr::ALL }),
                    }
                } else if key == LENGTH {
                    let flags = if a.len_writable { attr::W } else { 0 };
                    return Some(OwnProperty { value: Value::count(a.len as usize), flags });
                }
            }
            ObjectKind::Arguments(a) => {
                if let Some(i) = key.as_index()
                    && let Some(&value) = a.dense.get(i as usize)
                    && value != Value::Hole
                {
                    return Some(OwnProperty { value, flags: attr::ALL });
                }
            }
            ObjectKind::Primitive(Value::Str(text)) => {
                let text = self.st.heap.str(*text);
                if let Some(i) = key.as_index() {
                    if (i as usize) < text.len() {
                        let unit = text.unit_at(i as usize);
                        if unit < 256 {
                            return Some(OwnProperty {
                                value: Value::Str(Id(u32::from(unit))),
                                flags: attr::E,
                            });
                        }
                        return Some(OwnProperty { value: Value::Hole, flags: attr::E });
                    }
                } else if key == LENGTH {
                    return Some(OwnProperty { value: Value::count(text.len()), flags: 0 });
                }
            }
            ObjectKind::View(view) if view.element.is_some() => {
                if let Some(index) = self.numeric_key(key) {
                    return self.element(view, index?).map(|value| OwnProperty { value, flags: attr::ALL });
                }
            }
            _ => {}
        }
        let slot = object.props.find(key)?;
        object.props.prop_at(slot).map(|p| OwnProperty { value: p.value, flags: p.flags })
    }

    /// Creates `length`, `name` and `prototype` of a function if the key is one of them.
    #[inline]
    pub(crate) fn materialise_for(&mut self, id: Id, key: Key) {
        if (key == LENGTH || key == ids::key(ids::NAME) || key == ids::key(ids::PROTOTYPE))
            && let ObjectKind::Function(f) = &self.st.heap.obj(id).kind
            && f.lazy
        {
            self.materialise(id);
        }
    }

    /// Creates a function's own lazy properties.
    pub(crate) fn materialise(&mut self, id: Id) {
        let (code, name_hint) = match &self.st.heap.obj(id).kind {
            ObjectKind::Function(f) if f.lazy => (f.code, f.extra),
            _ => return,
        };
        let _ = name_hint;
        let Code::Template(number) = code else { return };
        let template = self.p.template(number);
        let (length, flags) = (template.length, template.flags);
        let name = self.template_name_value(number);
        let mut add = vec![Prop { key: LENGTH, flags: attr::C, value: Value::Int(i32::from(length)) }];
        if matches!(name, Value::Str(_)) {
            add.push(Prop { key: ids::key(ids::NAME), flags: attr::C, value: name });
        }
        if flags & flag::GENERATOR != 0 {
            let parent =
                if flags & flag::ASYNC != 0 { ids::ASYNC_GENERATOR_PROTO } else { ids::GENERATOR_PROTO };
            let proto = self.st.heap.new_object(parent, ObjectKind::Plain);
            add.push(Prop { key: ids::key(ids::PROTOTYPE), flags: attr::W, value: Value::Obj(proto) });
        } else if flags & (flag::ARROW | flag::METHOD | flag::ASYNC | flag::CLASS | flag::BUILTIN) == 0 {
            let proto = self.st.heap.new_object(ids::OBJECT_PROTO, ObjectKind::Plain);
            let back = Prop { key: ids::key(ids::CONSTRUCTOR), flags: attr::HIDDEN, value: Value::Obj(id) };
            self.st.heap.obj_mut(proto).props.push(back);
            self.st.heap.charge(24);
            add.push(Prop { key: ids::key(ids::PROTOTYPE), flags: attr::W, value: Value::Obj(proto) });
        }
        let object = self.st.heap.obj_mut(id);
        if let ObjectKind::Function(f) = &mut object.kind {
            f.lazy = false;
        }
        // They precede all properties that were added so far.
        let later: Vec<Prop> = object.props.iter().copied().collect();
        let count = add.len();
        add.extend(later);
        object.props = crate::heap::object::Props::from_raw(add);
        self.st.heap.charge(count * 24);
    }

    /// A function object.
    pub(crate) fn new_function(&mut self, code: Code, env: Value, proto: Id) -> Value {
        let func = Func {
            code,
            env,
            home: Value::Undefined,
            this: Value::Undefined,
            extra: Value::Undefined,
            fields: Value::Undefined,
            lazy: matches!(code, Code::Template(_)),
        };
        Value::Obj(self.st.heap.new_object(proto, ObjectKind::Function(Box::new(func))))
    }

    /// A property's value that needs a new cell: a string's unit above 255, an element that is a bigint.
    fn string_index(&mut self, id: Id, key: Key) -> Value {
        if let (ObjectKind::Primitive(Value::Str(text)), Some(i)) =
            (&self.st.heap.obj(id).kind, key.as_index())
        {
            let text = *text;
            return self.char_at(text, i as usize);
        }
        if let Some(i) = key.as_index() {
            return self.big_element(id, i as usize);
        }
        Value::Undefined
    }

    /// The string of one unit.
    pub(crate) fn char_at(&mut self, text: Id, i: usize) -> Value {
        let text = self.st.heap.str(text);
        if i >= text.len() {
            return Value::Undefined;
        }
        let unit = text.unit_at(i);
        if unit < 256 { Value::Str(Id(u32::from(unit))) } else { Value::Str(self.st.heap.new_wide(&[unit])) }
    }

    /// Looks a property up along the prototypes.
    pub(crate) fn get(&mut self, id: Id, key: Key) -> PropertyRead {
        let mut at = id;
        for _ in 0..100_000 {
            self.materialise_for(at, key);
            if let Some(own) = self.own(at, key) {
                if own.flags & attr::ACCESSOR != 0 {
                    let (getter, _) = self.st.heap.pair(own.value);
                    return if getter == Value::Undefined {
                        PropertyRead::Value(getter)
                    } else {
                        PropertyRead::Getter(getter)
                    };
                }
                let value = if own.value == Value::Hole { self.string_index(at, key) } else { own.value };
                return PropertyRead::Value(value);
            }
            let object = self.st.heap.obj(at);
            if let ObjectKind::Proxy(_) = object.kind {
                return PropertyRead::Proxy(at);
            }
            if self.ends_lookup(object, key) {
                return PropertyRead::Value(Value::Undefined);
            }
            if object.proto == Id::NONE {
                return PropertyRead::Value(Value::Undefined);
            }
            at = object.proto;
        }
        PropertyRead::Value(Value::Undefined)
    }

    /// The object that holds the properties of a primitive.
    pub(crate) fn proto_of_primitive(value: Value) -> Option<Id> {
        Some(match value {
            Value::Str(_) => ids::STRING_PROTO,
            Value::Int(_) | Value::Num(_) => ids::NUMBER_PROTO,
            Value::Bool(_) => ids::BOOLEAN_PROTO,
            Value::Sym(_) => ids::SYMBOL_PROTO,
            Value::Big(_) => ids::BIGINT_PROTO,
            _ => return None,
        })
    }

    /// Reads a property of any value.
    pub(crate) fn get_value(&mut self, base: Value, key: Key) -> Res<PropertyRead> {
        match base {
            Value::Obj(id) => Ok(self.get(id, key)),
            Value::Str(text) => {
                if let Some(i) = key.as_index() {
                    if (i as usize) < self.st.heap.str(text).len() {
                        return Ok(PropertyRead::Value(self.char_at(text, i as usize)));
                    }
                } else if key == LENGTH {
                    return Ok(PropertyRead::Value(Value::count(self.st.heap.str(text).len())));
                }
                Ok(self.get(ids::STRING_PROTO, key))
            }
            other => match Self::proto_of_primitive(other) {
                Some(proto) => Ok(self.get(proto, key)),
                None => {
                    let (what, name) = (self.plain_text(base), self.key_text(key));
                    Err(self.type_error(&format!("Cannot read properties of {what} (reading '{name}')")))
                }
            },
        }
    }

    /// `[[Set]]` with the object as receiver, or with a primitive receiver if `receiver` differs.
    pub(crate) fn put(&mut self, start: Id, key: Key, value: Value, receiver: Value) -> PropertyWrite {
        let mut at = start;
        for _ in 0..100_000 {
            self.materialise_for(at, key);
            if let Some(index) = self.typed_key(at, key) {
                if receiver == Value::Obj(at) {
                    return self.put_element(at, index, value);
                }
                if !self.has_element(at, index) {
                    return PropertyWrite::Done;
                }
                break;
            }
            if let Some(own) = self.own(at, key) {
                if own.flags & attr::ACCESSOR != 0 {
                    let (_, setter) = self.st.heap.pair(own.value);
                    return if setter == Value::Undefined {
                        PropertyWrite::Refused("which has only a getter")
                    } else {
                        PropertyWrite::Setter(setter)
                    };
                }
                if own.flags & attr::W == 0 {
                    return PropertyWrite::Refused("it is read only");
                }
                if receiver == Value::Obj(at) {
                    return self.put_existing(at, key, value);
                }
                break;
            }
            let object = self.st.heap.obj(at);
            if let ObjectKind::Proxy(_) = object.kind {
                return PropertyWrite::Proxy(at);
            }
            if object.proto == Id::NONE {
                break;
            }
            at = object.proto;
        }
        let Value::Obj(target) = receiver else {
            return PropertyWrite::Refused("the receiver is not an object");
        };
        if matches!(self.st.heap.obj(target).kind, ObjectKind::Proxy(_)) {
            return PropertyWrite::Proxy(target);
        }
        if let Some(index) = self.typed_key(target, key) {
            return if self.has_element(target, index) {
                self.put_element(target, index, value)
            } else {
                PropertyWrite::Refused("there is no such element")
            };
        }
        match self.get_own(target, key) {
            Some(own) if own.flags & attr::ACCESSOR != 0 => PropertyWrite::Refused("it is an accessor"),
            Some(own) if own.flags & attr::W == 0 => PropertyWrite::Refused("it is read only"),
            Some(_) => self.put_existing(target, key, value),
            None => {
                if self.add_own(target, key, value, attr::ALL) {
                    PropertyWrite::Done
                } else {
                    PropertyWrite::Refused("the object is not extensible")
                }
            }
        }
    }

    /// Overwrites an own data property that is writable.
    fn put_existing(&mut self, id: Id, key: Key, value: Value) -> PropertyWrite {
        let object = self.st.heap.obj_mut(id);
        match &mut object.kind {
            ObjectKind::Array(a) | ObjectKind::Arguments(a) => {
                if let Some(i) = key.as_index()
                    && let Some(element) = a.dense.get_mut(i as usize)
                    && *element != Value::Hole
                {
                    *element = value;
                    return PropertyWrite::Done;
                }
                if key == LENGTH && matches!(object.kind, ObjectKind::Array(_)) {
                    return match value.as_num() {
                        Some(n) if n >= 0.0 && n == f64::from(n as u32) => {
                            if self.set_array_length(id, n as u32) {
                                PropertyWrite::Done
                            } else {
                                PropertyWrite::Refused("an element cannot be deleted")
                            }
                        }
                        _ => PropertyWrite::Refused("the length is invalid"),
                    };
                }
            }
            _ => {}
        }
        if let Some(slot) = object.props.find(key)
            && let Some(p) = object.props.at_mut(slot)
        {
            p.value = value;
        }
        PropertyWrite::Done
    }

    /// Adds an own property that does not exist; false when the object does not allow it.
    pub(crate) fn add_own(&mut self, id: Id, key: Key, value: Value, flags: u8) -> bool {
        if let ObjectKind::Function(f) = &self.st.heap.obj(id).kind
            && f.lazy
        {
            self.materialise(id);
        }
        let object = self.st.heap.obj_mut(id);
        if !object.extensible && !self_private(key) {
            return false;
        }
        let mut grown = 24;
        match (&mut object.kind, key.as_index()) {
            (ObjectKind::Array(a), Some(i)) => {
                let i = i as usize;
                if i >= a.len as usize && !a.len_writable {
                    return false;
                }
                if flags == attr::ALL
                    && i <= a.dense.len().saturating_mul(2).max(1024).min(a.dense.len() + MAX_GAP)
                {
                    let old = a.dense.len();
                    if i < old {
                        a.dense[i] = value;
                    } else {
                        a.dense.resize(i, Value::Hole);
                        a.dense.push(value);
                    }
                    a.len = a.len.max(i as u32 + 1);
                    grown = (a.dense.len() - old) * 16;
                } else {
                    a.len = a.len.max(i as u32 + 1);
                    object.props.push(Prop { key, flags, value });
                }
            }
            (ObjectKind::Arguments(a), Some(i)) if flags == attr::ALL && (i as usize) < a.dense.len() => {
                a.dense[i as usize] = value;
            }
            _ => object.props.push(Prop { key, flags, value }),
        }
        self.st.heap.charge(grown);
        if key.as_index().is_none() && matches!(self.st.heap.obj(id).kind, ObjectKind::Array(_)) {
            self.large_index_added(id, key);
        }
        true
    }

    /// Sets an array's length; false when an element stays that cannot be deleted.
    pub(crate) fn set_array_length(&mut self, id: Id, len: u32) -> bool {
        let heap = &self.st.heap;
        let mut kept = len;
        let mut sparse: Vec<(u32, Key, bool)> = Vec::new();
        if let ObjectKind::Array(a) = &heap.obj(id).kind
            && len < a.len
        {
            for p in heap.obj(id).props.iter() {
                let index = p.key.as_index().or_else(|| self.large_index(p.key));
                if let Some(i) = index.filter(|&i| i >= len) {
                    sparse.push((i, p.key, p.flags & attr::C != 0));
                }
            }
        }
        sparse.sort_unstable_by_key(|&(i, ..)| std::cmp::Reverse(i));
        let mut ok = true;
        let heap = &mut self.st.heap;
        for (i, key, configurable) in sparse {
            if !configurable {
                kept = i + 1;
                ok = false;
                break;
            }
            let object = heap.obj_mut(id);
            if let Some(slot) = object.props.find(key) {
                object.props.remove(slot);
            }
        }
        if let ObjectKind::Array(a) = &mut heap.obj_mut(id).kind {
            a.dense.truncate(kept as usize);
            a.len = kept;
        }
        ok
    }

    /// `[[Delete]]` of anything but a proxy; false when refused.
    pub(crate) fn delete(&mut self, id: Id, key: Key) -> bool {
        if let ObjectKind::Function(f) = &self.st.heap.obj(id).kind
            && f.lazy
        {
            self.materialise(id);
        }
        let Some(own) = self.own(id, key) else { return true };
        if own.flags & attr::C == 0 || self.typed_key(id, key).is_some() {
            return false;
        }
        let object = self.st.heap.obj_mut(id);
        if let (ObjectKind::Array(a) | ObjectKind::Arguments(a), Some(i)) = (&mut object.kind, key.as_index())
            && let Some(element) = a.dense.get_mut(i as usize)
            && *element != Value::Hole
        {
            *element = Value::Hole;
            return true;
        }
        if let Some(slot) = object.props.find(key) {
            object.props.remove(slot);
        }
        true
    }

    /// `[[HasProperty]]`; `Err` with the proxy on the chain.
    pub(crate) fn has(&mut self, id: Id, key: Key) -> Result<bool, Id> {
        let mut at = id;
        for _ in 0..100_000 {
            if self.get_own(at, key).is_some() {
                return Ok(true);
            }
            let object = self.st.heap.obj(at);
            if let ObjectKind::Proxy(_) = object.kind {
                return Err(at);
            }
            if self.ends_lookup(object, key) {
                return Ok(false);
            }
            if object.proto == Id::NONE {
                return Ok(false);
            }
            at = object.proto;
        }
        Ok(false)
    }

    /// `[[OwnPropertyKeys]]` of anything but a proxy: indices ascending, strings, symbols. Private names are left out.
    pub(crate) fn own_keys(&mut self, id: Id) -> Vec<Key> {
        if let ObjectKind::Function(f) = &self.st.heap.obj(id).kind
            && f.lazy
        {
            self.materialise(id);
        }
        self.present_keys(id)
    }

    /// As [`Vm::own_keys`], without lazy properties, which are not enumerable.
    pub(crate) fn present_keys(&self, id: Id) -> Vec<Key> {
        let object = self.st.heap.obj(id);
        let mut indices: Vec<(u32, Key)> = Vec::new();
        let mut strings = Vec::new();
        let mut symbols = Vec::new();
        match &object.kind {
            ObjectKind::Array(a) | ObjectKind::Arguments(a) => {
                let present = a.dense.iter().enumerate().filter(|(_, v)| **v != Value::Hole);
                indices.extend(present.map(|(i, _)| (i as u32, Key::index(i as u32))));
                if matches!(object.kind, ObjectKind::Array(_)) {
                    strings.push(LENGTH);
                }
            }
            ObjectKind::Primitive(Value::Str(text)) => {
                let n = self.st.heap.str(*text).len();
                indices.extend((0..n as u32).map(|i| (i, Key::index(i))));
                strings.push(LENGTH);
            }
            ObjectKind::View(view) if view.element.is_some() => {
                let n = self.st.heap.count_of(view).unwrap_or(0).min(Key::MAX_INDEX as usize);
                indices.extend((0..n as u32).map(|i| (i, Key::index(i))));
            }
            _ => {}
        }
        let dense = indices.len();
        for p in object.props.iter() {
            if let Some(i) = p.key.as_index().or_else(|| self.large_index(p.key)) {
                indices.push((i, p.key));
            } else if self.st.heap.key_is_symbol(p.key) {
                if !self.st.heap.key_is_private(p.key) {
                    symbols.push(p.key);
                }
            } else {
                strings.push(p.key);
            }
        }
        if indices.len() > dense {
            indices.sort_unstable_by_key(|&(i, _)| i);
        }
        let mut keys: Vec<Key> = indices.into_iter().map(|(_, k)| k).collect();
        keys.extend(strings);
        keys.extend(symbols);
        keys
    }

    /// The array, if the value is one and all its elements are in dense storage.
    pub(crate) fn dense(&self, value: Value) -> Option<&Array> {
        if let Value::Obj(id) = value
            && let ObjectKind::Array(a) = &self.st.heap.obj(id).kind
            && a.dense.len() == a.len as usize
        {
            return Some(a);
        }
        None
    }

    /// A data property that cannot fail: `CreateDataProperty` on a fresh ordinary object.
    pub(crate) fn create(&mut self, id: Id, key: Key, value: Value) {
        let object = self.st.heap.obj(id);
        if object.props.find(key).is_some() {
            let _ = self.put_existing(id, key, value);
        } else {
            self.add_own(id, key, value, attr::ALL);
        }
    }

    /// The message of a refused assignment.
    pub(crate) fn refused(&mut self, key: Key, why: &str) -> Raise {
        let name = self.key_text(key);
        self.type_error(&format!("Cannot assign to property '{name}': {why}"))
    }
}

/// Private names may be added to objects that are not extensible; whether the key is one is checked by the caller.
fn self_private(_key: Key) -> bool {
    false
}
