//! Bulk operations on plain arrays, with the same effect as moving, copying and comparing the elements one by one.
//!
//! Owns: the intrinsics that the methods of `array_methods.js` try first. Must not: change anything when an array is not plain, that
//! is, when reading, writing or deleting one of its elements could have other effects.

use super::ids;
use super::natives::{EMPTY, Module};
use crate::heap::object::{Array, ObjectKind};
use crate::value::{Id, Value};
use crate::vm::{NativeCall, Res, Ret, Vm};

pub(super) const MODULE: Module = Module {
    intrinsics: &[
        ("denseSplice", dense_splice),
        ("denseSlice", dense_slice),
        ("denseAppend", dense_append),
        ("denseFind", dense_find),
    ],
    ..EMPTY
};

/// Elements that cost as much fuel as one instruction.
const ELEMENTS_PER_INSTRUCTION: u64 = 16;
/// Arrays stay shorter than this.
const MOST_ELEMENTS: usize = 1 << 31;

/// An array that can be extended, with all elements, holes included, in dense storage.
fn plain<'v>(vm: &'v Vm<'_>, id: Id) -> Option<&'v Array> {
    let object = vm.st.heap.obj(id);
    let ObjectKind::Array(array) = &object.kind else { return None };
    let plain = array.len_writable
        && array.dense.len() == array.len as usize
        && object.extensible
        && object.proto == ids::ARRAY_PROTO
        && object.props.iter().all(|p| p.key.as_index().is_none())
        && vm.array_protos_bare();
    plain.then_some(array)
}

/// A plain array of this length.
fn plain_of<'v>(vm: &'v Vm<'_>, id: Id, length: Value) -> Option<&'v Array> {
    plain(vm, id).filter(|array| length.as_num() == Some(f64::from(array.len)))
}

/// Charges work to the program: it is deducted before the next instruction, whatever fuel is left.
fn charge(vm: &mut Vm<'_>, elements: usize) {
    let price = elements as u64 / ELEMENTS_PER_INSTRUCTION;
    if price > 0 {
        vm.st.debt = vm.st.debt.saturating_add(price);
        vm.st.heap.attention = true;
    }
}

/// `$denseSplice(array, from, remove, added, length)`: replaces elements by those of the list `added`, or by none if it is
/// undefined. False, with nothing done, for anything but a plain array of this length.
fn dense_splice(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let id = vm.arg_obj(&c, 0)?;
    let (from, remove) = (vm.arg_number(&c, 1)? as usize, vm.arg_number(&c, 2)? as usize);
    let added = match vm.arg(&c, 3) {
        Value::Obj(list) => match &vm.st.heap.obj(list).kind {
            ObjectKind::Array(a) | ObjectKind::Arguments(a) if a.dense.len() == a.len as usize => {
                a.dense.clone()
            }
            _ => return Ok(Value::Bool(false).into()),
        },
        _ => Vec::new(),
    };
    let Some(array) = plain_of(vm, id, vm.arg(&c, 4)) else { return Ok(Value::Bool(false).into()) };
    let before = array.dense.len();
    let inside = from.checked_add(remove).is_some_and(|end| end <= before);
    if !inside || added.contains(&Value::Hole) || before - remove + added.len() >= MOST_ELEMENTS {
        return Ok(Value::Bool(false).into());
    }
    let more = added.len().saturating_sub(remove);
    charge(vm, before - from + added.len());
    if let ObjectKind::Array(a) = &mut vm.st.heap.obj_mut(id).kind {
        drop(a.dense.splice(from..from + remove, added));
        a.len = a.dense.len() as u32;
    }
    vm.st.heap.charge(more * 16);
    Ok(Value::Bool(true).into())
}

/// `$denseSlice(to, array, from, end, length)`: copies these elements to `to`, a new empty array. False, with nothing done, if
/// `to` is not new and empty, or for anything but a plain array of this length.
fn dense_slice(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let (to, id) = (vm.arg_obj(&c, 0)?, vm.arg_obj(&c, 1)?);
    let (from, end) = (vm.arg_number(&c, 2)? as usize, vm.arg_number(&c, 3)? as usize);
    let object = vm.st.heap.obj(to);
    let fresh = match &object.kind {
        ObjectKind::Array(a) => {
            a.len_writable && a.dense.is_empty() && a.len as usize <= end.saturating_sub(from)
        }
        _ => false,
    };
    let fresh =
        fresh && object.extensible && object.proto == ids::ARRAY_PROTO && object.props.raw().is_empty();
    let part = plain_of(vm, id, vm.arg(&c, 4)).and_then(|array| array.dense.get(from..end));
    let Some(part) = part.filter(|_| fresh && to != id).map(<[Value]>::to_vec) else {
        return Ok(Value::Bool(false).into());
    };
    let n = part.len();
    charge(vm, n);
    if let ObjectKind::Array(a) = &mut vm.st.heap.obj_mut(to).kind {
        a.len = n as u32;
        a.dense = part;
    }
    vm.st.heap.charge(n * 16);
    Ok(Value::Bool(true).into())
}

/// `$denseAppend(to, length, array, count)`: appends all elements of `array` to `to`, if both are plain and have these lengths.
/// Otherwise, or if the result would be too long, changes nothing and returns false.
fn dense_append(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let (to, id) = (vm.arg_obj(&c, 0)?, vm.arg_obj(&c, 2)?);
    let before = plain_of(vm, to, vm.arg(&c, 1)).map(|array| array.dense.len());
    let part = plain_of(vm, id, vm.arg(&c, 3)).map(|array| array.dense.clone());
    let (Some(before), Some(part)) = (before, part) else { return Ok(Value::Bool(false).into()) };
    let n = part.len();
    if before + n >= MOST_ELEMENTS {
        return Ok(Value::Bool(false).into());
    }
    charge(vm, n);
    if let ObjectKind::Array(a) = &mut vm.st.heap.obj_mut(to).kind {
        a.dense.extend(part);
        a.len = a.dense.len() as u32;
    }
    vm.st.heap.charge(n * 16);
    Ok(Value::Bool(true).into())
}

/// `$denseFind(array, value, from, all, length)`: the index of the first element that equals the value, -1 if none does; undefined for
/// anything but a plain array of this length. With `all`, NaN equals itself and holes are undefined; without, holes are skipped.
fn dense_find(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let (id, value) = (vm.arg_obj(&c, 0)?, vm.arg(&c, 1));
    let (from, all) = (vm.arg_number(&c, 2)? as usize, vm.arg(&c, 3) == Value::Bool(true));
    let Some(array) = plain_of(vm, id, vm.arg(&c, 4)) else { return Ok(Value::Undefined.into()) };
    let nan = matches!(value, Value::Num(n) if n.is_nan());
    let equals = |element: &Value| match *element {
        Value::Hole => all && value == Value::Undefined,
        Value::Num(n) if all && nan && n.is_nan() => true,
        element => vm.strict_equal(element, value),
    };
    let rest = array.dense.get(from..).unwrap_or(&[]);
    let found = rest.iter().position(equals);
    let compared = found.unwrap_or(rest.len());
    charge(vm, compared);
    Ok(found.map_or(Value::Int(-1), |index| Value::count(from + index)).into())
}
