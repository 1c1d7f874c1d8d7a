//! Iteration: the fast path of arrays, `Symbol.iterator`, for-in.
//!
//! Owns: the conditions under which skipping the iterator protocol is not observable.

use super::props::PropertyRead;
use super::{Res, Vm};
use crate::builtins::ids;
use crate::heap::object::{ObjectKind, attr};
use crate::value::{Id, Key, Value};

/// Tag of the record of an array iterator: object, next index, kind (0 keys 1 values 2 entries).
pub(crate) const ARRAY_ITERATOR: u32 = 1;

impl Vm<'_> {
    /// Whether a property of a realm object is still the realm's function.
    fn pristine(&self, holder: Id, key: Id, function: Id) -> bool {
        match self.own(holder, ids::key(key)) {
            Some(own) => own.flags & attr::ACCESSOR == 0 && own.value == Value::Obj(function),
            None => false,
        }
    }

    /// Whether the value is an array of which an iterator yields the elements and has no other effects.
    pub(crate) fn iterates_plainly(&self, value: Value) -> bool {
        if let Value::Obj(id) = value
            && let object = self.st.heap.obj(id)
            && matches!(object.kind, ObjectKind::Array(_))
            && object.proto == ids::ARRAY_PROTO
            && object.props.find(ids::key(ids::SYM_ITERATOR)).is_none()
        {
            return self.pristine(ids::ARRAY_PROTO, ids::SYM_ITERATOR, ids::ARRAY_VALUES)
                && self.pristine(ids::ARRAY_ITERATOR_PROTO, ids::NEXT, ids::ARRAY_ITERATOR_NEXT)
                && self.own(ids::ARRAY_ITERATOR_PROTO, ids::key(ids::RETURN)).is_none();
        }
        false
    }

    /// a -> a a, or array marker and a jump if the difference is not observable.
    pub(crate) fn op_iter_fast(&mut self, target: u32) {
        let value = self.peek(0);
        if self.iterates_plainly(value) {
            let slots = vec![value, Value::Int(0)];
            let cursor = self.st.heap.new_object(Id::NONE, ObjectKind::Record(ARRAY_ITERATOR, slots));
            self.replace_top(1, Value::Obj(cursor));
            self.push(Value::Hole);
            self.jump_if(true, target);
            return;
        }
        self.push(value);
    }

    fn cursor(&self, local: usize) -> Option<(Id, Id, u32)> {
        if self.slot(local + 1) != Value::Hole {
            return None;
        }
        let Value::Obj(id) = self.slot(local) else { return None };
        match &self.st.heap.obj(id).kind {
            ObjectKind::Record(ARRAY_ITERATOR, slots) => match slots[..] {
                [Value::Obj(array), Value::Int(i)] => Some((id, array, i as u32)),
                _ => None,
            },
            _ => None,
        }
    }

    pub(crate) fn op_iter_done(&mut self, local: usize, target: u32) {
        let Some((cursor, array, i)) = self.cursor(local) else { return };
        let len = match &self.st.heap.obj(array).kind {
            ObjectKind::Array(a) => a.len,
            _ => 0,
        };
        if i >= len {
            if let ObjectKind::Record(_, slots) = &mut self.st.heap.obj_mut(cursor).kind {
                slots[1] = Value::Int(i32::MAX);
            }
            self.jump_if(true, target);
        }
    }

    pub(crate) fn op_iter_value(&mut self, local: usize, target: u32) -> Res<()> {
        let Some((cursor, array, i)) = self.cursor(local) else {
            self.push(Value::Undefined);
            return Ok(());
        };
        if let ObjectKind::Record(_, slots) = &mut self.st.heap.obj_mut(cursor).kind {
            slots[1] = Value::Int((i as i32).wrapping_add(1));
        }
        self.jump_if(true, target);
        match self.get(array, Key::index(i)) {
            PropertyRead::Value(value) => self.push(value),
            // An element with a getter: the frame's result is pushed as the value.
            PropertyRead::Getter(getter) => {
                self.push(getter);
                self.push(Value::Obj(array));
                return self.call(0, crate::state::Back::Push);
            }
            PropertyRead::Proxy(_) => self.push(Value::Undefined),
        }
        Ok(())
    }

    /// o -> o[Symbol.iterator] o
    pub(crate) fn op_get_iter_method(&mut self) -> Res<()> {
        let base = self.peek(0);
        if base.is_nullish() {
            let shown = self.plain_text(base);
            return Err(self.type_error(&format!("{shown} is not iterable")));
        }
        let key = ids::key(ids::SYM_ITERATOR);
        if let PropertyRead::Value(method) = self.get_value(base, key)?
            && !self.is_callable(method)
        {
            let shown = self.brief(base);
            return Err(self.type_error(&format!("{shown} is not iterable")));
        }
        self.op_get_method(key)
    }

    /// The next key of a for-in loop that still exists.
    pub(crate) fn op_for_in_next(&mut self, local: usize, target: u32) -> Res<()> {
        let object = self.slot(local).as_obj();
        let keys = self.slot(local + 1);
        let mut i = match self.slot(local + 2) {
            Value::Int(i) => i.max(0) as usize,
            _ => 0,
        };
        loop {
            let key = self.dense(keys).and_then(|a| a.dense.get(i)).copied();
            let Some(Value::Str(name)) = key else {
                self.push(Value::Undefined);
                self.jump_if(true, target);
                return Ok(());
            };
            i += 1;
            self.set_slot(local + 2, Value::count(i));
            let here = match (object, self.st.heap.find_key(name)) {
                (Some(id), Some(key)) => !matches!(self.has(id, key), Ok(false)),
                // A primitive's keys cannot vanish.
                (None, _) => true,
                (Some(_), None) => false,
            };
            if here {
                self.push(Value::Str(name));
                return Ok(());
            }
        }
    }
}
