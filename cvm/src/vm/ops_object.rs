//! Opcodes on properties, globals, object literals and private names.
//!
//! Owns: from operands to the property model, calling getters, setters and proxies' traps as frames.

use super::props::{PropertyRead, PropertyWrite};
use super::{Raise, Res, Vm};
use crate::builtins::ids;
use crate::heap::object::{Code, ObjectKind, attr};
use crate::program::flag;
use crate::state::Back;
use crate::value::{Id, Key, Value};

impl Vm<'_> {
    /// Replaces `n` operands by the result of a read.
    pub(super) fn finish_get(&mut self, n: usize, got: PropertyRead, receiver: Value, key: Key) -> Res<()> {
        match got {
            PropertyRead::Value(value) => {
                self.replace_top(n, value);
                Ok(())
            }
            PropertyRead::Getter(getter) => {
                self.drop_n(n);
                self.push(getter);
                self.push(receiver);
                self.call(0, Back::Push)
            }
            PropertyRead::Proxy(proxy) => {
                let key = self.st.heap.key_value(key);
                self.drop_n(n);
                self.push(Value::Obj(proxy));
                self.push(key);
                self.push(receiver);
                let template = self.pre("ProxyGet");
                self.call_pre(template, 3, Back::Push)
            }
        }
    }

    /// Remembers the slot of a property, for the hot loop.
    #[inline]
    fn note_hint(&mut self, id: Id, key: Key) {
        let object = self.st.heap.obj(id);
        let slot = object.props.find(key).or_else(|| {
            if object.proto == Id::NONE { None } else { self.st.heap.obj(object.proto).props.find(key) }
        });
        if let (Some(slot), Some(frame)) = (slot, self.st.frames.last())
            && let Ok(slot) = u16::try_from(slot)
            && let Some(hint) = self.st.hints.get_mut(frame.pc as usize - 1)
        {
            *hint = slot;
        }
    }

    pub(crate) fn op_get_prop(&mut self, key: Key) -> Res<()> {
        let base = self.peek(0);
        if let Value::Obj(id) = base {
            self.note_hint(id, key);
        }
        let got = self.get_value(base, key)?;
        self.finish_get(1, got, base, key)
    }

    /// o -> method o
    pub(crate) fn op_get_method(&mut self, key: Key) -> Res<()> {
        let base = self.peek(0);
        if let Value::Obj(id) = base {
            self.note_hint(id, key);
        }
        let got = self.get_value(base, key)?;
        self.finish_method(got, base, key)
    }

    /// Stack: … -> method base. A getter runs with its result stored beneath the base.
    fn finish_method(&mut self, got: PropertyRead, base: Value, key: Key) -> Res<()> {
        match got {
            PropertyRead::Value(value) => {
                self.replace_top(1, value);
                self.push(base);
                Ok(())
            }
            PropertyRead::Getter(getter) => {
                let at = self.st.sp - 1;
                self.push(base);
                self.push(getter);
                self.push(base);
                self.call(0, Back::Store(at as u32))
            }
            PropertyRead::Proxy(proxy) => {
                let at = self.st.sp - 1;
                let key = self.st.heap.key_value(key);
                self.push(base);
                self.push(Value::Obj(proxy));
                self.push(key);
                self.push(base);
                let template = self.pre("ProxyGet");
                self.call_pre(template, 3, Back::Store(at as u32))
            }
        }
    }

    pub(crate) fn op_get_elem(&mut self) -> Res<()> {
        let base = self.peek(1);
        if base.is_nullish() {
            return Err(self.nullish_read(base));
        }
        if let (Value::Obj(id), Value::Str(text)) = (base, self.peek(0))
            && self.st.heap.find_key(text).is_none()
        {
            // No object has such a property; only a proxy can return one.
            let mut at = id;
            while at != Id::NONE && !matches!(self.st.heap.obj(at).kind, ObjectKind::Proxy(_)) {
                at = self.st.heap.obj(at).proto;
            }
            if at == Id::NONE {
                self.replace_top(2, Value::Undefined);
                return Ok(());
            }
        }
        let key = self.slot_key(self.st.sp - 1)?;
        let got = self.get_value(base, key)?;
        self.finish_get(2, got, base, key)
    }

    /// v -> key
    pub(super) fn op_to_key(&mut self) -> Res<()> {
        if !matches!(self.peek(0), Value::Int(0..) | Value::Str(_) | Value::Sym(_)) {
            let key = self.slot_key(self.st.sp - 1)?;
            let value = self.st.heap.key_value(key);
            self.replace_top(1, value);
        }
        Ok(())
    }

    /// o v -> o key
    pub(super) fn op_to_key_of(&mut self) -> Res<()> {
        let base = self.peek(1);
        if base.is_nullish() {
            return Err(self.nullish_read(base));
        }
        self.op_to_key()
    }

    fn nullish_read(&mut self, base: Value) -> Raise {
        let what = self.plain_text(base);
        let key = self.brief(self.peek(0));
        self.type_error(&format!("Cannot read properties of {what} (reading {key})"))
    }

    /// o k -> method o
    pub(crate) fn op_get_elem_method(&mut self) -> Res<()> {
        let base = self.peek(1);
        if base.is_nullish() {
            return Err(self.nullish_read(base));
        }
        let key = self.slot_key(self.st.sp - 1)?;
        let got = self.get_value(base, key)?;
        self.drop_n(1);
        self.finish_method(got, base, key)
    }

    /// Ends an assignment: the operands are dropped and the value is left.
    pub(super) fn finish_put(
        &mut self,
        n: usize,
        put: PropertyWrite,
        key: Key,
        receiver: Value,
        value: Value,
    ) -> Res<()> {
        match put {
            PropertyWrite::Done => {
                self.replace_top(n, value);
                Ok(())
            }
            PropertyWrite::Refused(why) => Err(self.refused(key, why)),
            PropertyWrite::Setter(setter) => {
                self.replace_top(n, value);
                self.push(setter);
                self.push(receiver);
                self.push(value);
                self.call(1, Back::Discard)
            }
            PropertyWrite::Convert(array) => {
                let key = self.st.heap.key_value(key);
                self.replace_top(n, value);
                self.push(Value::Obj(array));
                self.push(key);
                self.push(value);
                let template = self.pre("PutElement");
                self.call_pre(template, 3, Back::Discard)
            }
            PropertyWrite::Proxy(proxy) => {
                let key = self.st.heap.key_value(key);
                self.replace_top(n, value);
                self.push(Value::Obj(proxy));
                self.push(key);
                self.push(value);
                self.push(receiver);
                let template = self.pre("ProxySetOrThrow");
                self.call_pre(template, 4, Back::Discard)
            }
        }
    }

    /// Assignment of any value's property; an array's length is converted first.
    fn put_any(&mut self, n: usize, base: Value, key: Key, value: Value) -> Res<()> {
        let put = match base {
            Value::Obj(id) => {
                if key == super::props::LENGTH && matches!(self.st.heap.obj(id).kind, ObjectKind::Array(_)) {
                    let len = self.array_length_value(self.st.sp - 1)?;
                    self.put(id, key, len, base)
                } else {
                    self.put(id, key, value, base)
                }
            }
            other => match Self::proto_of_primitive(other) {
                Some(proto) => {
                    if let Value::Str(text) = other
                        && (key == super::props::LENGTH
                            || key.as_index().is_some_and(|i| (i as usize) < self.st.heap.str(text).len()))
                    {
                        PropertyWrite::Refused("it is read only")
                    } else {
                        self.put(proto, key, value, base)
                    }
                }
                None => {
                    let (what, name) = (self.plain_text(base), self.key_text(key));
                    return Err(
                        self.type_error(&format!("Cannot set properties of {what} (setting '{name}')"))
                    );
                }
            },
        };
        self.finish_put(n, put, key, base, value)
    }

    /// The value in a slot as an array length, or a `RangeError`.
    pub(crate) fn array_length_value(&mut self, at: usize) -> Res<Value> {
        let n = self.slot_number(at)?;
        if n < 0.0 || n != f64::from(n as u32) {
            return Err(self.range_error("Invalid array length"));
        }
        Ok(Value::num(n))
    }

    pub(crate) fn op_set_prop(&mut self, key: Key) -> Res<()> {
        let (base, value) = (self.peek(1), self.peek(0));
        self.put_any(2, base, key, value)?;
        if let Value::Obj(id) = base {
            self.note_hint(id, key);
        }
        Ok(())
    }

    pub(crate) fn op_set_elem(&mut self) -> Res<()> {
        let (base, value) = (self.peek(2), self.peek(0));
        if base.is_nullish() {
            let what = self.plain_text(base);
            return Err(self.type_error(&format!("Cannot set properties of {what}")));
        }
        let key = self.slot_key(self.st.sp - 2)?;
        if let Value::Obj(id) = base
            && self.append_dense(id, key, value)
        {
            self.replace_top(3, value);
            return Ok(());
        }
        self.put_any(3, base, key, value)
    }

    /// `a[a.length] = v` of an array with prototypes that have no elements.
    fn append_dense(&mut self, id: Id, key: Key, value: Value) -> bool {
        let Some(i) = key.as_index() else { return false };
        let object = self.st.heap.obj(id);
        let ObjectKind::Array(a) = &object.kind else { return false };
        if i as usize != a.dense.len() || i != a.len || !a.len_writable || !object.extensible {
            return false;
        }
        if object.proto != ids::ARRAY_PROTO || !self.array_protos_bare() {
            return false;
        }
        if let ObjectKind::Array(a) = &mut self.st.heap.obj_item(id, i as usize).kind {
            a.dense.push(value);
            a.len += 1;
        }
        self.st.heap.charge(16);
        true
    }

    /// Whether the prototypes of arrays have no elements, so that appending cannot call a setter.
    pub(crate) fn array_protos_bare(&self) -> bool {
        self.no_elements(ids::ARRAY_PROTO) && self.no_elements(ids::OBJECT_PROTO)
    }

    /// Whether this prototype has no properties with index keys.
    fn no_elements(&self, id: Id) -> bool {
        let object = self.st.heap.obj(id);
        if matches!(&object.kind, ObjectKind::Array(a) if !a.dense.is_empty()) {
            return false;
        }
        // Index keys can only follow the realm's keys, unless some of those were deleted.
        let realm = self.p.base.object(id).map_or(&[][..], |object| object.props.raw());
        let (own, last) = (realm.len(), realm.last().map(|p| p.key));
        let props = object.props.raw();
        let whole = own == 0 || props.get(own - 1).map(|p| p.key) == last;
        let later = if whole { props.get(own..).unwrap_or(&[]) } else { props };
        later.iter().all(|p| p.key.as_index().is_none())
    }

    pub(crate) fn op_delete(&mut self) -> Res<()> {
        let base = self.peek(1);
        if base.is_nullish() {
            return Err(self.type_error("Cannot convert undefined or null to object"));
        }
        let key = self.slot_key(self.st.sp - 1)?;
        let Some(id) = self.object_of(base) else { return Err(Raise::Fault("delete")) };
        if matches!(self.st.heap.obj(id).kind, ObjectKind::Proxy(_)) {
            let key = self.st.heap.key_value(key);
            self.set_slot(self.st.sp - 1, key);
            let template = self.pre("ProxyDeleteOrThrow");
            return self.call_pre(template, 2, Back::Push);
        }
        if !self.delete(id, key) {
            let name = self.key_text(key);
            return Err(self.type_error(&format!("Cannot delete property '{name}'")));
        }
        self.replace_top(2, Value::Bool(true));
        Ok(())
    }

    pub(crate) fn op_in(&mut self) -> Res<()> {
        let Value::Obj(id) = self.peek(0) else {
            let shown = self.brief(self.peek(0));
            return Err(self.type_error(&format!("Cannot use 'in' operator to search for a key in {shown}")));
        };
        let key = self.slot_key(self.st.sp - 2)?;
        match self.has(id, key) {
            Ok(found) => {
                self.replace_top(2, Value::Bool(found));
                Ok(())
            }
            Err(proxy) => {
                let key = self.st.heap.key_value(key);
                self.drop_n(2);
                self.push(Value::Obj(proxy));
                self.push(key);
                let template = self.pre("ProxyHas");
                self.call_pre(template, 2, Back::Push)
            }
        }
    }

    pub(crate) fn op_instance_of(&mut self) -> Res<()> {
        let (value, target) = (self.peek(1), self.peek(0));
        let Value::Obj(id) = target else {
            return Err(self.type_error("Right-hand side of 'instanceof' is not an object"));
        };
        if let ObjectKind::Function(_) = self.st.heap.obj(id).kind
            && let PropertyRead::Value(Value::Obj(method)) = self.get(id, ids::key(ids::SYM_HAS_INSTANCE))
            && method == ids::FUNCTION_HAS_INSTANCE
        {
            let Value::Obj(mut at) = value else {
                self.replace_top(2, Value::Bool(false));
                return Ok(());
            };
            if let PropertyRead::Value(proto) = self.get(id, ids::key(ids::PROTOTYPE)) {
                let Value::Obj(proto) = proto else {
                    return Err(self.type_error("Function has non-object prototype in instanceof check"));
                };
                loop {
                    let object = self.st.heap.obj(at);
                    if matches!(object.kind, ObjectKind::Proxy(_)) {
                        break;
                    }
                    at = object.proto;
                    if at == Id::NONE || at == proto {
                        self.replace_top(2, Value::Bool(at != Id::NONE));
                        return Ok(());
                    }
                }
            }
        }
        let template = self.pre("InstanceOf");
        self.call_pre(template, 2, Back::Push)
    }

    pub(crate) fn op_get_global(&mut self, key: Key, soft: bool) -> Res<()> {
        self.note_hint(ids::GLOBAL, key);
        if !soft && self.has(ids::GLOBAL, key) == Ok(false) {
            let name = self.key_text(key);
            return Err(self.reference_error(&format!("{name} is not defined")));
        }
        let got = self.get(ids::GLOBAL, key);
        self.finish_get(0, got, Value::Obj(ids::GLOBAL), key)
    }

    pub(crate) fn op_set_global(&mut self, key: Key) -> Res<()> {
        if self.has(ids::GLOBAL, key) == Ok(false) {
            let name = self.key_text(key);
            return Err(self.reference_error(&format!("{name} is not defined")));
        }
        let value = self.peek(0);
        match self.put(ids::GLOBAL, key, value, Value::Obj(ids::GLOBAL)) {
            PropertyWrite::Setter(setter) => {
                self.replace_top(1, setter);
                self.push(Value::Obj(ids::GLOBAL));
                self.push(value);
                self.call(1, Back::Discard)
            }
            put => {
                self.finish_put(1, put, key, Value::Obj(ids::GLOBAL), value)?;
                self.drop_n(1);
                Ok(())
            }
        }
    }

    pub(crate) fn op_decl_var(&mut self, key: Key) -> Res<()> {
        if self.get_own(ids::GLOBAL, key).is_none()
            && !self.add_own(ids::GLOBAL, key, Value::Undefined, attr::W | attr::E)
        {
            return Err(self.type_error("The global object is not extensible"));
        }
        Ok(())
    }

    pub(crate) fn op_decl_func(&mut self, key: Key) -> Res<()> {
        let value = self.pop();
        match self.get_own(ids::GLOBAL, key) {
            None => {
                self.add_own(ids::GLOBAL, key, value, attr::W | attr::E);
            }
            Some(own) if own.flags & attr::C != 0 => {
                self.replace_own(ids::GLOBAL, key, value, attr::W | attr::E);
            }
            Some(own)
                if own.flags & attr::ACCESSOR == 0
                    && own.flags & (attr::W | attr::E) == attr::W | attr::E =>
            {
                self.replace_own(ids::GLOBAL, key, value, own.flags);
            }
            Some(_) => {
                let name = self.key_text(key);
                return Err(self.type_error(&format!("Cannot declare global function '{name}'")));
            }
        }
        Ok(())
    }

    pub(crate) fn op_closure(&mut self, number: u32, base: usize) {
        let env = self.peek(0);
        let flags = self.p.template(number).flags;
        let proto = match (flags & flag::GENERATOR != 0, flags & flag::ASYNC != 0) {
            (false, false) => ids::FUNCTION_PROTO,
            (true, false) => ids::GENERATOR_FUNCTION_PROTO,
            (false, true) => ids::ASYNC_FUNCTION_PROTO,
            (true, true) => ids::ASYNC_GENERATOR_FUNCTION_PROTO,
        };
        let function = self.new_function(Code::Template(number), env, proto);
        if flags & flag::ARROW != 0
            && let Value::Obj(id) = function
        {
            let this = self.slot(base + 1);
            let new_target = self.st.frames.last().map_or(Value::Undefined, |f| f.new_target);
            let home = self.home_object(base);
            if let ObjectKind::Function(f) = &mut self.st.heap.obj_mut(id).kind {
                f.this = this;
                f.extra = new_target;
                f.home = home;
            }
        }
        self.replace_top(1, function);
    }
}
