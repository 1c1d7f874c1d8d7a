//! Opcodes of literals: fields, methods, names of functions, templates, arguments objects.
//!
//! Owns: adding parts to an object under construction. Must not: assign to existing objects.

use super::{Res, Vm};
use crate::builtins::ids;
use crate::heap::object::{Array, Code, ObjectKind, Prop, attr};
use crate::state::Back;
use crate::value::{Id, Key, Value};

impl Vm<'_> {
    pub(crate) fn op_array_push(&mut self, hole: bool) {
        let value = if hole { Value::Hole } else { self.pop() };
        if let Value::Obj(id) = self.peek(0) {
            if let ObjectKind::Array(a) = &mut self.st.heap.obj_mut(id).kind {
                a.dense.push(value);
                a.len += 1;
            }
            self.st.heap.charge(16);
        }
    }

    pub(crate) fn op_define_field(&mut self, key: Key) -> Res<()> {
        let value = self.pop();
        let target = self.peek(0);
        self.define_field(target, key, value)
    }

    pub(super) fn define_field(&mut self, target: Value, key: Key, value: Value) -> Res<()> {
        let Value::Obj(id) = target else {
            return Err(self.type_error("Cannot define a property of a primitive"));
        };
        let object = self.st.heap.obj(id);
        if let (ObjectKind::Plain, true) = (&object.kind, object.extensible)
            && object.props.find(key).is_none()
        {
            self.st.heap.obj_mut(id).props.push(Prop { key, flags: attr::ALL, value });
            self.st.heap.charge(24);
            return Ok(());
        }
        if matches!(object.kind, ObjectKind::Proxy(_)) {
            let key = self.st.heap.key_value(key);
            self.push(target);
            self.push(key);
            self.push(value);
            let template = self.pre("ProxyDefineField");
            return self.call_pre(template, 3, Back::Discard);
        }
        if !self.define_own(id, key, &super::define::Desc::data(value, attr::ALL)) {
            let name = self.key_text(key);
            return Err(self.type_error(&format!("Cannot redefine property: {name}")));
        }
        Ok(())
    }

    pub(crate) fn op_define_elem(&mut self) -> Res<()> {
        let key = self.slot_key(self.st.sp - 2)?;
        let value = self.pop();
        self.drop_n(1);
        let target = self.peek(0);
        self.define_field(target, key, value)
    }

    pub(crate) fn op_define_method(&mut self, b: usize) -> Res<()> {
        let key = self.slot_key(self.st.sp - 2)?;
        let function = self.pop();
        self.drop_n(1);
        let Value::Obj(id) = self.peek(0) else {
            return Err(self.type_error("Cannot define a method of a primitive"));
        };
        let (kind, enumerable) = (b & 3, b & 4 != 0);
        if let Value::Obj(f) = function {
            if self.unnamed(f) {
                self.name_function(f, key, kind);
            }
            if let ObjectKind::Function(func) = &mut self.st.heap.obj_mut(f).kind {
                func.home = Value::Obj(id);
            }
        }
        let ok = match kind {
            1 => self.define_accessor(id, key, Some(function), None, enumerable),
            2 => self.define_accessor(id, key, None, Some(function), enumerable),
            _ => {
                let flags = attr::HIDDEN | if enumerable { attr::E } else { 0 };
                self.define_own(id, key, &super::define::Desc::data(function, flags))
            }
        };
        if ok {
            return Ok(());
        }
        let name = self.key_text(key);
        Err(self.type_error(&format!("Cannot redefine property: {name}")))
    }

    /// Whether this is a compiled function that is named at run time.
    pub(super) fn unnamed(&self, id: Id) -> bool {
        match &self.st.heap.obj(id).kind {
            ObjectKind::Function(f) => match f.code {
                Code::Template(n) => {
                    self.p.template(n).name == u32::MAX
                        && (f.lazy || self.own(id, ids::key(ids::NAME)).is_none())
                }
                Code::Native(_) => false,
            },
            _ => false,
        }
    }

    /// `SetFunctionName`
    pub(super) fn name_function(&mut self, id: Id, key: Key, kind: usize) {
        let shown = match key.as_cell().and_then(|c| self.st.heap.symbol(c).cloned()) {
            Some(symbol) if symbol.private => self.plain_text(symbol.description),
            Some(symbol) => match symbol.description {
                Value::Str(d) => format!("[{}]", self.st.heap.str(d).to_utf8()),
                _ => String::new(),
            },
            None => self.key_text(key),
        };
        let text = match kind {
            1 => format!("get {shown}"),
            2 => format!("set {shown}"),
            _ => shown,
        };
        let name = self.st.heap.str_value(&text);
        self.materialise(id);
        if self.own(id, ids::key(ids::NAME)).is_none() {
            // `name` follows `length`.
            let mut list: Vec<Prop> = self.st.heap.obj(id).props.iter().copied().collect();
            let at = 1.min(list.len());
            list.insert(at, Prop { key: ids::key(ids::NAME), flags: attr::C, value: name });
            self.st.heap.obj_mut(id).props = crate::heap::object::Props::from_raw(list);
            self.st.heap.charge(24);
        }
    }

    /// k f -> k f
    pub(crate) fn op_set_name(&mut self, kind: usize) {
        let Value::Obj(f) = self.peek(0) else { return };
        if let Ok(key) = self.slot_key(self.st.sp - 2)
            && self.unnamed(f)
        {
            self.name_function(f, key, kind);
        }
    }

    pub(crate) fn op_proto_literal(&mut self) {
        let value = self.pop();
        let Value::Obj(id) = self.peek(0) else { return };
        match value {
            Value::Obj(proto) => {
                self.set_proto(id, proto);
            }
            Value::Null => {
                self.set_proto(id, Id::NONE);
            }
            _ => {}
        }
    }

    pub(crate) fn op_template(&mut self, constant: u32) {
        if let Some(&id) = self.st.template_objects.get(&constant) {
            self.push(Value::Obj(id));
            return;
        }
        let strings = self.p.template_strings(constant);
        let (mut cooked, mut raw) = (Vec::new(), Vec::new());
        for (c, r) in strings {
            cooked.push(c.as_ref().map_or(Value::Undefined, |c| Value::Str(self.st.heap.new_wide(c))));
            raw.push(Value::Str(self.st.heap.new_wide(r)));
        }
        let (cooked, raw) = (self.new_array(cooked), self.new_array(raw));
        let (Value::Obj(cooked), Value::Obj(raw_id)) = (cooked, raw) else { return };
        self.st.heap.obj_mut(cooked).props.push(Prop { key: ids::key(ids::RAW), flags: 0, value: raw });
        self.freeze(raw_id);
        self.freeze(cooked);
        self.st.template_objects.insert(constant, cooked);
        self.push(Value::Obj(cooked));
    }

    /// Freezes an ordinary object or array.
    pub(crate) fn freeze(&mut self, id: Id) {
        self.prevent_extensions(id);
        for key in self.own_keys(id) {
            if let Some(own) = self.own(id, key) {
                let mask = if own.flags & attr::ACCESSOR != 0 { attr::C } else { attr::C | attr::W };
                let desc = super::define::Desc { value: None, get: None, set: None, flags: 0, mask };
                self.define_own(id, key, &desc);
            }
        }
    }

    pub(crate) fn op_arguments(&mut self, all: usize) {
        let elements = self.dense(self.slot(all)).map_or_else(Vec::new, |a| a.dense.clone());
        let n = elements.len();
        let array = Array { dense: elements, len: n as u32, len_writable: true };
        let id = self.st.heap.new_object(ids::OBJECT_PROTO, ObjectKind::Arguments(array));
        let object = self.st.heap.obj_mut(id);
        object.props.push(Prop { key: super::props::LENGTH, flags: attr::HIDDEN, value: Value::count(n) });
        let values = Value::Obj(ids::ARRAY_VALUES);
        object.props.push(Prop { key: ids::key(ids::SYM_ITERATOR), flags: attr::HIDDEN, value: values });
        self.st.heap.charge(48);
        let thrower = Value::Obj(ids::THROW_TYPE_ERROR);
        let callee = super::define::Desc {
            value: None,
            get: Some(thrower),
            set: Some(thrower),
            flags: 0,
            mask: attr::E | attr::C,
        };
        self.define_own(id, ids::key(ids::CALLEE), &callee);
        self.push(Value::Obj(id));
    }
}
