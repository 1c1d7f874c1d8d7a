//! Natives on the elements of typed arrays. One call handles as many elements as the prelude passes: it works in pieces, so that a run
//! can be suspended between them. Bytes are moved as a whole.
//!
//! Must not: run user code. A range that is not in bounds does nothing; the prelude has checked it.

use super::natives::{EMPTY, Module};
use super::typed_array::KINDS;
use crate::heap::object::ByteView;
use crate::pure::elements::{ElementType, ElementValue};
use crate::value::{Id, Value};
use crate::vm::{NativeCall, Res, Ret, Vm};
use num_bigint::BigInt;
use num_traits::ToPrimitive;

pub(super) const MODULE: Module = Module {
    intrinsics: &[
        ("elementCount", element_count),
        ("elementType", |vm, c| {
            let element = vm.st.heap.view(vm.arg(&c, 0)).and_then(|view| view.element);
            Ok(element.map_or(Value::Undefined, |element| Value::Int(element as i32)).into())
        }),
        ("elementSize", |vm, c| Ok(Value::count(type_arg(vm, &c).size()).into())),
        ("elementName", |vm, c| {
            let name = type_arg(vm, &c).constructor();
            Ok(vm.st.heap.str_value(name).into())
        }),
        ("elementCtor", |vm, c| Ok(kind(vm, &c).0.into())),
        ("elementProto", |vm, c| Ok(kind(vm, &c).1.into())),
        ("isBigArray", |vm, c| {
            let element = vm.st.heap.view(vm.arg(&c, 0)).and_then(|view| view.element);
            Ok(Value::Bool(element.is_some_and(ElementType::is_big)).into())
        }),
        ("toBigInt", |vm, c| {
            let n = super::bigint::to_bigint(vm, &c, 0)?;
            Ok(vm.st.heap.new_big(n).into())
        }),
        ("iteratesPlainly", |vm, c| Ok(Value::Bool(vm.iterates_plainly(vm.arg(&c, 0))).into())),
        ("elementAt", element_at),
        ("putElement", put_element),
        ("elementsFill", fill),
        ("elementsCopy", copy),
        ("elementsMove", move_bytes),
        ("elementsReverse", reverse),
        ("elementsSort", sort),
        ("elementsMerge", merge),
        ("elementsText", text),
        ("elementFind", find),
        ("elementFindLast", find_last),
    ],
    ..EMPTY
};

/// Elements that cost as much fuel as one instruction.
const ELEMENTS_PER_INSTRUCTION: usize = 16;

fn type_arg(vm: &Vm<'_>, c: &NativeCall) -> ElementType {
    let number = vm.arg(c, 0).as_num().and_then(|n| n.to_usize());
    number.and_then(ElementType::of_number).unwrap_or(ElementType::Uint8)
}

/// Constructor and prototype of an element type.
fn kind(vm: &Vm<'_>, c: &NativeCall) -> (Value, Value) {
    let element = type_arg(vm, c);
    let found = KINDS.iter().find(|(one, ..)| *one == element);
    found.map_or((Value::Undefined, Value::Undefined), |(_, ctor, proto)| {
        (Value::Obj(*ctor), Value::Obj(*proto))
    })
}

/// `$elementCount(value)`: -1 if the array is out of bounds, undefined for anything but a typed array.
fn element_count(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    Ok(match vm.st.heap.typed_array(vm.arg(&c, 0)) {
        None => Value::Undefined,
        Some(view) => vm.st.heap.count_of(view).map_or(Value::Int(-1), Value::count),
    }
    .into())
}

/// `$elementAt(object, key)`: whether a typed array has this element; undefined if the key means no element of the object.
fn element_at(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let id = vm.arg_obj(&c, 0)?;
    let key = vm.arg_key(&c, 1)?;
    Ok(match vm.typed_key(id, key) {
        None => Value::Undefined,
        Some(index) => Value::Bool(vm.has_element(id, index)),
    }
    .into())
}

/// The argument as an element; objects are converted first.
fn element_arg(vm: &mut Vm<'_>, c: &NativeCall, i: usize, element: ElementType) -> Res<ElementValue> {
    Ok(if element.is_big() {
        ElementValue::Integer(crate::vm::elements::low_bits(&super::bigint::to_bigint(vm, c, i)?))
    } else {
        ElementValue::Number(vm.arg_number(c, i)?)
    })
}

/// `$putElement(array, key, value)`: `TypedArraySetElement`
fn put_element(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let id = vm.arg_obj(&c, 0)?;
    let key = vm.arg_key(&c, 1)?;
    let element = vm.st.heap.typed_array(Value::Obj(id)).and_then(|view| view.element);
    let Some(element) = element else { return Ok(Value::Undefined.into()) };
    let value = element_arg(vm, &c, 2, element)?;
    if let Some(Some(index)) = vm.numeric_key(key) {
        vm.write_element(id, index, value);
    }
    Ok(Value::Undefined.into())
}

/// The typed array of an argument.
fn array_arg(vm: &Vm<'_>, c: &NativeCall, i: usize) -> Option<(ByteView, ElementType)> {
    let view = vm.st.heap.typed_array(vm.arg(c, i))?.clone();
    let element = view.element?;
    Some((view, element))
}

fn number(vm: &Vm<'_>, c: &NativeCall, i: usize) -> usize {
    vm.arg(c, i).as_num().and_then(|n| n.to_usize()).unwrap_or(usize::MAX)
}

fn charge(vm: &mut Vm<'_>, elements: usize) {
    vm.charge_work(elements / ELEMENTS_PER_INSTRUCTION);
}

/// A copy of the bytes of these elements, and where they are.
fn part(vm: &Vm<'_>, view: &ByteView, from: usize, to: usize) -> Option<(std::ops::Range<usize>, Vec<u8>)> {
    let range = vm.st.heap.range_of(view, from, to)?;
    let bytes = vm.st.heap.bytes_at(view.buffer, range.clone())?.to_vec();
    Some((range, bytes))
}

fn store(vm: &mut Vm<'_>, buffer: Id, range: std::ops::Range<usize>, bytes: &[u8]) {
    if let Some(to) = vm.st.heap.bytes_at_mut(buffer, range)
        && to.len() == bytes.len()
    {
        to.copy_from_slice(bytes);
    }
}

/// `$elementsFill(array, value, from, to)`: the value is a number or a bigint.
fn fill(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let Some((view, element)) = array_arg(vm, &c, 0) else { return Ok(Value::Undefined.into()) };
    let value = element_arg(vm, &c, 1, element)?;
    let (from, to) = (number(vm, &c, 2), number(vm, &c, 3));
    let bytes = element.write(value);
    if let Some(range) = vm.st.heap.range_of(&view, from, to) {
        charge(vm, to - from);
        if let (Some(target), Some(one)) =
            (vm.st.heap.bytes_at_mut(view.buffer, range), bytes.get(..element.size()))
        {
            target.chunks_exact_mut(one.len()).for_each(|to| to.copy_from_slice(one));
        }
    }
    Ok(Value::Undefined.into())
}

/// `$elementsCopy(to, at, from, start, count)`: as if all elements were read before the first is written.
fn copy(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let (Some((to, kind)), Some((from, source))) = (array_arg(vm, &c, 0), array_arg(vm, &c, 2)) else {
        return Ok(Value::Undefined.into());
    };
    let (at, start, count) = (number(vm, &c, 1), number(vm, &c, 3), number(vm, &c, 4));
    let (Some(end), Some(last)) = (start.checked_add(count), at.checked_add(count)) else {
        return Ok(Value::Undefined.into());
    };
    let (Some((_, bytes)), Some(target)) = (part(vm, &from, start, end), vm.st.heap.range_of(&to, at, last))
    else {
        return Ok(Value::Undefined.into());
    };
    if kind == source {
        vm.charge_bytes(bytes.len());
        store(vm, to.buffer, target, &bytes);
        return Ok(Value::Undefined.into());
    }
    charge(vm, count);
    let mut converted = Vec::with_capacity(count * kind.size());
    for one in bytes.chunks_exact(source.size()) {
        converted.extend(kind.write(source.read(one)).iter().take(kind.size()));
    }
    store(vm, to.buffer, target, &converted);
    Ok(Value::Undefined.into())
}

/// `$elementsMove(to, from, start, count)`: bytes to the start of `to`, one after another, so that a write may change what is read
/// later.
fn move_bytes(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let (Some((to, _)), Some((from, _))) = (array_arg(vm, &c, 0), array_arg(vm, &c, 1)) else {
        return Ok(Value::Undefined.into());
    };
    let (start, count) = (number(vm, &c, 2), number(vm, &c, 3));
    let target = vm.st.heap.range_of(&to, 0, count);
    let source = start.checked_add(count).and_then(|end| vm.st.heap.range_of(&from, start, end));
    let (Some(target), Some(source)) = (target, source) else { return Ok(Value::Undefined.into()) };
    vm.charge_bytes(source.len());
    let behind = target.start > source.start && target.start < source.end;
    if to.buffer == from.buffer && behind {
        let distance = target.start - source.start;
        if let Some(bytes) = vm.st.heap.bytes_at_mut(to.buffer, source.start..target.end) {
            (distance..bytes.len()).for_each(|i| bytes[i] = bytes[i - distance]);
        }
    } else if let Some(bytes) = vm.st.heap.bytes_at(from.buffer, source).map(<[u8]>::to_vec) {
        store(vm, to.buffer, target, &bytes);
    }
    Ok(Value::Undefined.into())
}

/// `$elementsReverse(array, count)`
fn reverse(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let Some((view, element)) = array_arg(vm, &c, 0) else { return Ok(Value::Undefined.into()) };
    let count = number(vm, &c, 1);
    if let Some(range) = vm.st.heap.range_of(&view, 0, count) {
        charge(vm, count);
        if let Some(bytes) = vm.st.heap.bytes_at_mut(view.buffer, range) {
            bytes.reverse();
            bytes.chunks_exact_mut(element.size()).for_each(<[u8]>::reverse);
        }
    }
    Ok(Value::Undefined.into())
}

/// `$elementsSort(array, from, to)`: ascending.
fn sort(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let Some((view, element)) = array_arg(vm, &c, 0) else { return Ok(Value::Undefined.into()) };
    let (from, to) = (number(vm, &c, 1), number(vm, &c, 2));
    let Some((range, bytes)) = part(vm, &view, from, to) else { return Ok(Value::Undefined.into()) };
    charge(vm, (to - from).saturating_mul(16));
    let mut elements: Vec<(i128, &[u8])> =
        bytes.chunks_exact(element.size()).map(|one| (element.sort_key(one), one)).collect();
    elements.sort_by_key(|(key, _)| *key);
    let sorted: Vec<u8> = elements.into_iter().flat_map(|(_, one)| one.iter().copied()).collect();
    store(vm, view.buffer, range, &sorted);
    Ok(Value::Undefined.into())
}

/// `$elementsMerge(from, to, left, middle, right, end)`: merges the sorted elements `left..middle` and `right..end` into `to`, behind
/// those that were merged before: at most a piece. Returns the new `left`, -1 if an array is out of bounds.
fn merge(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    /// The prelude's `Piece`.
    const PIECE: usize = 16_384;
    let (Some((from, element)), Some((to, same))) = (array_arg(vm, &c, 0), array_arg(vm, &c, 1)) else {
        return Ok(Value::Int(-1).into());
    };
    let at = |i| number(vm, &c, i);
    let (left, middle, right, end) = (at(2), at(3), at(4), at(5));
    if element != same || left > middle || middle > right || right > end {
        return Ok(Value::Int(-1).into());
    }
    let count = PIECE.min(middle - left + end - right);
    let out = left + right - middle;
    let (Some((_, first)), Some((_, second)), Some(target)) = (
        part(vm, &from, left, middle.min(left + count)),
        part(vm, &from, right, end.min(right + count)),
        vm.st.heap.range_of(&to, out, out + count),
    ) else {
        return Ok(Value::Int(-1).into());
    };
    charge(vm, count.saturating_mul(2));
    let size = element.size();
    let (mut a, mut b) = (first.chunks_exact(size).peekable(), second.chunks_exact(size).peekable());
    let mut merged = Vec::with_capacity(count * size);
    let mut taken = 0;
    for _ in 0..count {
        let from_first = match (a.peek(), b.peek()) {
            (Some(x), Some(y)) => element.sort_key(x) <= element.sort_key(y),
            (x, _) => x.is_some(),
        };
        taken += usize::from(from_first);
        merged.extend_from_slice(if from_first { a.next() } else { b.next() }.unwrap_or_default());
    }
    store(vm, to.buffer, target, &merged);
    Ok(Value::count(left + taken).into())
}

/// `$elementsText(array, from, to, separator)`
fn text(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let Some((view, element)) = array_arg(vm, &c, 0) else { return Ok(Value::Undefined.into()) };
    let (from, to) = (number(vm, &c, 1), number(vm, &c, 2));
    let separator = match vm.arg(&c, 3) {
        Value::Str(id) => vm.st.heap.str(id).to_wide(),
        _ => Vec::new(),
    };
    let Some((_, bytes)) = part(vm, &view, from, to) else { return Ok(Value::Undefined.into()) };
    vm.charge_work((to - from) / 2);
    let mut units: Vec<u16> = Vec::new();
    for (i, one) in bytes.chunks_exact(element.size()).enumerate() {
        if i > 0 {
            units.extend_from_slice(&separator);
        }
        if units.len() > vm.st.limits.string_units as usize {
            return Err(crate::vm::Raise::Limit(crate::state::VmLimitKind::Text));
        }
        let shown = match element.read(one) {
            ElementValue::Number(n) => crate::pure::number::to_string(n),
            ElementValue::Integer(n) => n.to_string(),
        };
        units.extend(shown.bytes().map(u16::from));
    }
    Ok(Value::Str(vm.st.heap.new_wide(&units)).into())
}

/// Whether the element equals the value; with `zero`, NaN equals itself.
fn test(vm: &Vm<'_>, value: Value, zero: bool) -> impl Fn(ElementValue) -> bool + use<> {
    let number = value.as_num();
    let big = match value {
        Value::Big(id) => Some(vm.st.heap.big(id)),
        _ => None,
    };
    let big = big.as_ref().and_then(BigInt::to_i128);
    move |element| match element {
        ElementValue::Number(n) => {
            number.is_some_and(|wanted| n == wanted || (zero && n.is_nan() && wanted.is_nan()))
        }
        ElementValue::Integer(n) => big == Some(n),
    }
}

/// `$elementFind(array, value, from, to, zero)`: the index of the first equal element, -1 if there is none.
fn find(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let Some((view, element)) = array_arg(vm, &c, 0) else { return Ok(Value::Int(-1).into()) };
    let (value, from, to) = (vm.arg(&c, 1), number(vm, &c, 2), number(vm, &c, 3));
    let Some(range) = vm.st.heap.range_of(&view, from, to) else { return Ok(Value::Int(-1).into()) };
    let equals = test(vm, value, vm.arg(&c, 4) == Value::Bool(true));
    let bytes = vm.st.heap.bytes_at(view.buffer, range).unwrap_or_default();
    let found = bytes.chunks_exact(element.size()).position(|one| equals(element.read(one)));
    charge(vm, found.unwrap_or(to - from));
    Ok(found.map_or(Value::Int(-1), |index| Value::count(from + index)).into())
}

/// `$elementFindLast(array, value, from, to)`: the index of the last equal element, -1 if there is none.
fn find_last(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let Some((view, element)) = array_arg(vm, &c, 0) else { return Ok(Value::Int(-1).into()) };
    let (value, from, to) = (vm.arg(&c, 1), number(vm, &c, 2), number(vm, &c, 3));
    let Some(range) = vm.st.heap.range_of(&view, from, to) else { return Ok(Value::Int(-1).into()) };
    let equals = test(vm, value, false);
    let bytes = vm.st.heap.bytes_at(view.buffer, range).unwrap_or_default();
    let found = bytes.chunks_exact(element.size()).rposition(|one| equals(element.read(one)));
    charge(vm, to - from);
    Ok(found.map_or(Value::Int(-1), |index| Value::count(from + index)).into())
}
