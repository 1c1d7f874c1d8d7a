//! Fast heap accesses of the hot loop: properties at their remembered slots, dense elements, plain callees.
//!
//! Owns: the checks that make the use of a remembered slot safe. Must not: allocate or run code.

use super::Vm;
use crate::heap::Cell;
use crate::heap::object::{Code, ObjectKind, attr};
use crate::program::flag;
use crate::value::{Id, Key, Value};

/// The sum of two numbers, none for anything else.
#[inline]
pub(super) fn add_fast(a: Value, b: Value) -> Option<Value> {
    Some(match (a, b) {
        (Value::Int(x), Value::Int(y)) => match x.checked_add(y) {
            Some(r) => Value::Int(r),
            None => Value::Num(f64::from(x) + f64::from(y)),
        },
        (Value::Num(x), Value::Num(y)) => Value::Num(x + y),
        (Value::Int(x), Value::Num(y)) => Value::Num(f64::from(x) + y),
        (Value::Num(x), Value::Int(y)) => Value::Num(x + f64::from(y)),
        _ => return None,
    })
}

impl Vm<'_> {
    /// Compiled code that a call can enter directly: template, scope, the arrow's `this`, `new.target`.
    #[inline]
    pub(super) fn plain_callee(&self, callee: Value) -> Option<(u32, Value, Option<Value>, Value)> {
        const SPECIAL: u16 = flag::CLASS | flag::ALL_ARGS;
        let Value::Obj(id) = callee else { return None };
        let Some(Cell::Obj(o)) = self.st.heap.cell(id) else { return None };
        let ObjectKind::Function(f) = &o.kind else { return None };
        let Code::Template(number) = f.code else { return None };
        let flags = self.p.template(number).flags;
        if flags & SPECIAL != 0 {
            return None;
        }
        if flags & flag::ARROW != 0 {
            return Some((number, f.env, Some(f.this), f.extra));
        }
        Some((number, f.env, None, Value::Undefined))
    }

    /// An own data property at the remembered slot.
    #[inline]
    pub(super) fn hinted(&self, id: Id, key: Key, hint: usize) -> Option<Value> {
        let p = self.st.heap.obj(id).props.prop_at(hint)?;
        (p.key == key && p.flags & attr::ACCESSOR == 0).then_some(p.value)
    }

    /// A data property of the object or of its prototype, at the remembered slot.
    #[inline]
    pub(super) fn hinted_method(&self, id: Id, key: Key, hint: usize) -> Option<Value> {
        let object = self.st.heap.obj(id);
        if let Some(p) = object.props.prop_at(hint)
            && p.key == key
        {
            return (p.flags & attr::ACCESSOR == 0).then_some(p.value);
        }
        match object.kind {
            ObjectKind::Plain => {}
            ObjectKind::Array(_) if key != super::props::LENGTH => {}
            _ => return None,
        }
        if object.proto == Id::NONE || object.props.find(key).is_some() {
            return None;
        }
        let p = self.st.heap.obj(object.proto).props.prop_at(hint)?;
        (p.key == key && p.flags & attr::ACCESSOR == 0).then_some(p.value)
    }

    #[inline]
    pub(super) fn set_hinted(&mut self, id: Id, key: Key, hint: usize, value: Value) -> bool {
        let Some(p) = self.st.heap.obj(id).props.prop_at(hint) else { return false };
        if p.key != key || p.flags & (attr::ACCESSOR | attr::W) != attr::W {
            return false;
        }
        if let Some(p) = self.st.heap.obj_mut(id).props.at_mut(hint) {
            p.value = value;
        }
        true
    }

    /// Overwrites a dense element.
    #[inline]
    pub(super) fn set_dense(&mut self, id: Id, i: usize, value: Value) -> bool {
        match self.st.heap.cell(id) {
            Some(Cell::Obj(o)) => match &o.kind {
                ObjectKind::Array(a) if a.dense.get(i).is_some_and(|v| *v != Value::Hole) => {}
                _ => return false,
            },
            _ => return false,
        }
        if let ObjectKind::Array(a) = &mut self.st.heap.obj_item(id, i).kind {
            a.dense[i] = value;
        }
        true
    }
}
