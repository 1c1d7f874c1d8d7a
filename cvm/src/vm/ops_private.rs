//! Opcodes on private names and on `super`.
//!
//! Owns: private names and home objects at run time. Must not: create classes.

use super::props::{PropertyRead, PropertyWrite};
use super::{Raise, Res, Vm};
use crate::heap::object::{ObjectKind, Prop, attr};
use crate::value::{Id, Key, Value};

impl Vm<'_> {
    /// `[[HomeObject]]` of the running function.
    pub(crate) fn home_object(&self, base: usize) -> Value {
        match self.slot(base) {
            Value::Obj(id) => match &self.st.heap.obj(id).kind {
                ObjectKind::Function(f) => f.home,
                _ => Value::Undefined,
            },
            _ => Value::Undefined,
        }
    }

    pub(super) fn super_base(&mut self, base: usize) -> Res<Id> {
        let Value::Obj(home) = self.home_object(base) else {
            return Err(self.syntax_error("'super' keyword unexpected here"));
        };
        Ok(self.st.heap.obj(home).proto)
    }

    /// this k -> v
    pub(crate) fn op_get_super(&mut self, base: usize) -> Res<()> {
        let this = self.peek(1);
        let from = self.super_base(base)?;
        if from == Id::NONE {
            return Err(self.type_error("Cannot read properties of null"));
        }
        let key = self.slot_key(self.st.sp - 1)?;
        let got = self.get(from, key);
        self.finish_get(2, got, this, key)
    }

    /// this k v -> v
    pub(crate) fn op_set_super(&mut self, base: usize) -> Res<()> {
        let (this, value) = (self.peek(2), self.peek(0));
        let from = self.super_base(base)?;
        if from == Id::NONE {
            return Err(self.type_error("Cannot set properties of null"));
        }
        let key = self.slot_key(self.st.sp - 2)?;
        let put = self.put(from, key, value, this);
        self.finish_put(3, put, key, this, value)
    }

    /// The key of a private name. Compiled code keeps names in variables, and a variable of a loaded state can have any value.
    pub(super) fn private_key(&mut self, name: Value) -> Res<Key> {
        match name {
            Value::Sym(id) => Ok(Key::cell(id)),
            _ => Err(self.type_error("The variable of a private name has another value")),
        }
    }

    pub(super) fn private_missing(&mut self, name: Key, doing: &str) -> Raise {
        let shown = match name.as_cell().and_then(|c| self.st.heap.symbol(c)).map(|s| s.description) {
            Some(d) => self.plain_text(d),
            None => String::new(),
        };
        self.type_error(&format!(
            "Cannot {doing} private member {shown} of an object whose class did not declare it"
        ))
    }

    pub(crate) fn op_get_private(&mut self) -> Res<()> {
        let base = self.peek(1);
        let key = self.private_key(self.peek(0))?;
        let found = base.as_obj().and_then(|id| self.own(id, key));
        let Some(own) = found else { return Err(self.private_missing(key, "read")) };
        if own.flags & attr::ACCESSOR == 0 {
            self.replace_top(2, own.value);
            return Ok(());
        }
        let (getter, _) = self.st.heap.pair(own.value);
        if getter == Value::Undefined {
            return Err(self.type_error("The private accessor was defined without a getter"));
        }
        self.finish_get(2, PropertyRead::Getter(getter), base, key)
    }

    pub(crate) fn op_set_private(&mut self) -> Res<()> {
        let (base, value) = (self.peek(2), self.peek(0));
        let key = self.private_key(self.peek(1))?;
        let Some((id, own)) = base.as_obj().and_then(|id| self.own(id, key).map(|o| (id, o))) else {
            return Err(self.private_missing(key, "write"));
        };
        if own.flags & attr::ACCESSOR != 0 {
            let (_, setter) = self.st.heap.pair(own.value);
            if setter == Value::Undefined {
                return Err(self.type_error("The private accessor was defined without a setter"));
            }
            return self.finish_put(3, PropertyWrite::Setter(setter), key, base, value);
        }
        if own.flags & attr::W == 0 {
            return Err(self.type_error("Private method is not writable"));
        }
        self.replace_own(id, key, value, own.flags);
        self.replace_top(3, value);
        Ok(())
    }

    /// o name v -> o; kinds: 0 field, 1 method, 2 getter, 3 setter
    pub(crate) fn op_define_private(&mut self, kind: usize) -> Res<()> {
        let key = self.private_key(self.peek(1))?;
        let Value::Obj(id) = self.peek(2) else {
            return Err(self.type_error("Cannot define a private member of a primitive"));
        };
        let value = self.peek(0);
        let old = self.own(id, key);
        if kind > 0
            && let Value::Obj(f) = value
            && let ObjectKind::Function(func) = &self.st.heap.obj(f).kind
            && func.home == Value::Undefined
            && let ObjectKind::Function(func) = &mut self.st.heap.obj_mut(f).kind
        {
            func.home = Value::Obj(id);
        }
        let (flags, stored) = match kind {
            0 => (attr::W, value),
            1 => (0, value),
            _ => {
                let (mut get, mut set) = old
                    .filter(|o| o.flags & attr::ACCESSOR != 0)
                    .map_or((Value::Undefined, Value::Undefined), |o| self.st.heap.pair(o.value));
                let twice = if kind == 2 { get != Value::Undefined } else { set != Value::Undefined };
                if old.is_some() && (twice || old.is_some_and(|o| o.flags & attr::ACCESSOR == 0)) {
                    return Err(
                        self.type_error("Cannot initialize a private member twice on the same object")
                    );
                }
                if kind == 2 {
                    get = value;
                } else {
                    set = value;
                }
                let pair = Value::Cell(self.st.heap.alloc(crate::heap::Cell::Pair(get, set)));
                if old.is_some() {
                    self.replace_own(id, key, pair, attr::ACCESSOR);
                    self.drop_n(2);
                    return Ok(());
                }
                (attr::ACCESSOR, pair)
            }
        };
        if old.is_some() {
            return Err(self.type_error("Cannot initialize a private member twice on the same object"));
        }
        if !self.st.heap.obj(id).extensible {
            return Err(self.type_error("Cannot define a private member on an object that is not extensible"));
        }
        self.st.heap.obj_mut(id).props.push(Prop { key, flags, value: stored });
        self.st.heap.charge(24);
        self.drop_n(2);
        Ok(())
    }

    /// o name -> bool
    pub(crate) fn op_has_private(&mut self) -> Res<()> {
        let key = self.private_key(self.peek(0))?;
        let Value::Obj(id) = self.peek(1) else {
            return Err(
                self.type_error("Cannot use 'in' operator to search for a private name in a primitive")
            );
        };
        let found = self.own(id, key).is_some();
        self.replace_top(2, Value::Bool(found));
        Ok(())
    }
}
