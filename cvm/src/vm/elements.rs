//! Typed arrays as integer-indexed exotic objects, ECMA-262 10.4.5.
//!
//! Owns: the meaning of keys, reading and writing of elements. Must not: run user code; a value that user code must convert is
//! left to the prelude ([`PropertyWrite::Convert`]).

use super::Vm;
use super::define::Desc;
use super::props::PropertyWrite;
use crate::heap::object::{ByteView, Object, ObjectKind, attr};
use crate::heap::{Cell, StrCell};
use crate::pure::elements::{ElementType, ElementValue};
use crate::pure::number;
use crate::value::{Id, Key, Value};
use num_bigint::BigInt;
use num_traits::ToPrimitive;

/// The low 64 bits of a bigint.
pub(crate) fn low_bits(n: &BigInt) -> i128 {
    let digits = n.iter_u64_digits().next().unwrap_or(0);
    let low = if n.sign() == num_bigint::Sign::Minus { digits.wrapping_neg() } else { digits };
    i128::from(low)
}

impl Vm<'_> {
    /// `CanonicalNumericIndexString`: none for a key that is no number, else the index, if the number is one.
    #[allow(clippy::option_option, reason = "no index, an index outside, and one inside are three cases")]
    pub(crate) fn numeric_key(&self, key: Key) -> Option<Option<usize>> {
        if let Some(index) = key.as_index() {
            return Some(Some(index as usize));
        }
        let Some(Cell::Str(StrCell::Narrow(text, _))) = self.st.heap.cell(key.as_cell()?) else {
            return None;
        };
        if !matches!(text.first()?, b'0'..=b'9' | b'-' | b'I' | b'N') {
            return None;
        }
        let text = std::str::from_utf8(text).ok()?;
        if text == "-0" {
            return Some(None);
        }
        let n = number::string_to_number(&crate::heap::text::Text::Narrow(text.as_bytes()));
        let whole = (0.0..=number::MAX_SAFE_INTEGER).contains(&n) && n.trunc() == n;
        (number::to_string(n) == text).then_some(whole.then_some(n as usize))
    }

    /// As [`Vm::numeric_key`] for a typed array, none for other objects.
    #[inline]
    #[allow(clippy::option_option, reason = "no index, an index outside, and one inside are three cases")]
    pub(crate) fn typed_key(&self, id: Id, key: Key) -> Option<Option<usize>> {
        self.st.heap.typed_array(Value::Obj(id))?;
        self.numeric_key(key)
    }

    /// Whether a typed array has this element.
    pub(crate) fn has_element(&self, id: Id, index: Option<usize>) -> bool {
        let count = self.st.heap.typed_array(Value::Obj(id)).and_then(|view| self.st.heap.count_of(view));
        index.zip(count).is_some_and(|(index, count)| index < count)
    }

    /// Whether a lookup of this key along prototypes ends at this object, which does not have it.
    #[inline]
    pub(crate) fn ends_lookup(&self, object: &Object, key: Key) -> bool {
        matches!(&object.kind, ObjectKind::View(view) if view.element.is_some())
            && self.numeric_key(key).is_some()
    }

    /// An element as it is stored.
    pub(crate) fn element_value(&self, view: &ByteView, index: usize) -> Option<ElementValue> {
        let range = self.st.heap.range_of(view, index, index.checked_add(1)?)?;
        Some(view.element?.read(self.st.heap.bytes_at(view.buffer, range)?))
    }

    /// An element; `Value::Hole` for a bigint, which needs a new cell.
    pub(crate) fn element(&self, view: &ByteView, index: usize) -> Option<Value> {
        Some(match self.element_value(view, index)? {
            ElementValue::Number(n) => Value::num(n),
            ElementValue::Integer(_) => Value::Hole,
        })
    }

    /// An element that is a bigint, undefined for anything else.
    pub(crate) fn big_element(&mut self, id: Id, index: usize) -> Value {
        let view = self.st.heap.typed_array(Value::Obj(id));
        match view.and_then(|view| self.element_value(view, index)) {
            Some(ElementValue::Integer(n)) => self.st.heap.new_big(BigInt::from(n)),
            _ => Value::Undefined,
        }
    }

    /// An element of the loop's fast path: a number at an index that exists.
    #[inline]
    pub(crate) fn number_element(&self, array: Value, index: i32) -> Option<Value> {
        let view = self.st.heap.typed_array(array)?;
        let index = usize::try_from(index).ok()?;
        self.element(view, index).filter(|value| *value != Value::Hole)
    }

    /// Writes an element in the loop's fast path; false if the value or the array needs more.
    #[inline]
    pub(crate) fn set_number_element(&mut self, id: Id, index: i32, value: Value) -> bool {
        let (Some(n), Ok(index)) = (value.as_num(), usize::try_from(index)) else { return false };
        let Some(view) = self.st.heap.typed_array(Value::Obj(id)) else { return false };
        if view.element.is_some_and(ElementType::is_big)
            || self.st.heap.count_of(view).is_none_or(|count| index >= count)
        {
            return false;
        }
        self.write_element(id, index, ElementValue::Number(n));
        true
    }

    /// Writes an element if it exists.
    pub(crate) fn write_element(&mut self, id: Id, index: usize, value: ElementValue) {
        let Some(view) = self.st.heap.typed_array(Value::Obj(id)) else { return };
        let (Some(element), buffer) = (view.element, view.buffer) else { return };
        let Some(range) = index.checked_add(1).and_then(|end| self.st.heap.range_of(view, index, end)) else {
            return;
        };
        let bytes = element.write(value);
        if let Some(to) = self.st.heap.bytes_at_mut(buffer, range)
            && let Some(from) = bytes.get(..to.len())
        {
            to.copy_from_slice(from);
        }
    }

    /// The value as an element, none if user code must convert it or if it cannot be one.
    pub(crate) fn plain_element(&mut self, element: ElementType, value: Value) -> Option<ElementValue> {
        match (element.is_big(), value) {
            (
                false,
                Value::Int(_)
                | Value::Num(_)
                | Value::Undefined
                | Value::Null
                | Value::Bool(_)
                | Value::Str(_),
            ) => self.prim_number(value).ok().map(ElementValue::Number),
            (true, Value::Big(id)) => Some(ElementValue::Integer(low_bits(&self.st.heap.big(id)))),
            (true, Value::Bool(b)) => Some(ElementValue::Integer(i128::from(b))),
            (true, Value::Str(id)) => crate::pure::bigint_text::string_to_bigint(&self.st.heap.str(id))
                .ok()
                .map(|n| ElementValue::Integer(low_bits(&n))),
            _ => None,
        }
    }

    /// `TypedArraySetElement`
    pub(crate) fn put_element(&mut self, id: Id, index: Option<usize>, value: Value) -> PropertyWrite {
        let Some(element) = self.st.heap.typed_array(Value::Obj(id)).and_then(|view| view.element) else {
            return PropertyWrite::Done;
        };
        let Some(value) = self.plain_element(element, value) else { return PropertyWrite::Convert(id) };
        if let Some(index) = index {
            self.write_element(id, index, value);
        }
        PropertyWrite::Done
    }

    /// Whether a value must be converted by the prelude before it can become this element of a typed array.
    pub(crate) fn must_convert(&mut self, id: Id, key: Key, value: Value) -> bool {
        let Some(index) = self.typed_key(id, key) else { return false };
        let element = self.st.heap.typed_array(Value::Obj(id)).and_then(|view| view.element);
        self.has_element(id, index)
            && element.is_some_and(|element| self.plain_element(element, value).is_none())
    }

    /// `[[DefineOwnProperty]]` of an element; a value that must be converted is refused.
    pub(super) fn define_element(&mut self, id: Id, index: Option<usize>, desc: &Desc) -> bool {
        if !self.has_element(id, index) || desc.is_accessor() || desc.mask & !desc.flags & attr::ALL != 0 {
            return false;
        }
        match desc.value {
            Some(value) => matches!(self.put_element(id, index, value), PropertyWrite::Done),
            None => true,
        }
    }

    /// Whether a typed array may get more elements by itself.
    pub(crate) fn may_grow(&self, id: Id) -> bool {
        let Some(view) = self.st.heap.typed_array(Value::Obj(id)) else { return false };
        view.length.is_none() || self.st.heap.buffer(view.buffer).is_some_and(|buffer| buffer.max.is_some())
    }

    /// A bigint element as text, for the inspector.
    pub(crate) fn big_element_text(&self, array: Value, index: usize) -> Option<String> {
        match self.element_value(self.st.heap.typed_array(array)?, index)? {
            ElementValue::Integer(n) => Some(n.to_string()),
            ElementValue::Number(_) => None,
        }
    }

    /// `ToIndex` of an argument, ECMA-262 7.1.22.
    pub(crate) fn arg_index(&mut self, call: &super::NativeCall, i: usize, what: &str) -> super::Res<usize> {
        let n = self.arg_int(call, i)?;
        match n.to_usize().filter(|_| n <= number::MAX_SAFE_INTEGER) {
            Some(index) => Ok(index),
            None => Err(self.range_error(&format!("Invalid {what}: {}", number::to_string(n)))),
        }
    }
}
