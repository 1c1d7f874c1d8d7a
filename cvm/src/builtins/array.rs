//! Array: natives for dense arrays and helpers of the prelude's methods.

use super::ids;
use super::natives::{Ctor, CtorCode, EMPTY, Module, method};
use crate::heap::object::{Array, Object, ObjectKind, attr};
use crate::value::{Id, Value};
use crate::vm::{NativeCall, Res, Ret, Vm};

pub(super) const MODULE: Module = Module {
    intrinsics: &[
        ("arrayNew", array_new),
        ("arraySetLength", array_set_length),
        ("listOf", list_of),
        ("sortPlain", sort_plain),
        ("denseCopy", dense_copy),
        ("densePut", dense_put),
        ("joinEnter", join_enter),
        ("joinLeave", join_leave),
    ],
    methods: &[
        method(ids::ARRAY_PROTO, "push", 1, push).slow("ArrayPushSlow"),
        method(ids::ARRAY_PROTO, "pop", 0, pop).slow("ArrayPopSlow"),
    ],
    ctors: &[Ctor {
        id: ids::ARRAY,
        name: "Array",
        length: 1,
        code: CtorCode::Prelude("Array_"),
        proto: ids::ARRAY_PROTO,
        parent: ids::FUNCTION_PROTO,
        proto_parent: ids::OBJECT_PROTO,
        global: true,
    }],
    lists: &[(ids::ARRAY_PROTO, "ArrayPrototype"), (ids::ARRAY, "ArrayStatics")],
    source: include_str!("array.js"),
    extra: |r| {
        r.pin(ids::ARRAY_PROTO, "values", ids::ARRAY_VALUES);
        r.pin(ids::ARRAY_PROTO, "toString", ids::ARRAY_TO_STRING);
        let values = Value::Obj(ids::ARRAY_VALUES);
        r.put(ids::ARRAY_PROTO, "$$SYM_ITERATOR", values, attr::HIDDEN);
    },
    ..EMPTY
};

/// `$arrayNew(proto)`
fn array_new(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let proto = vm.arg(&c, 0).as_obj().unwrap_or(ids::ARRAY_PROTO);
    let array = Array { dense: Vec::new(), len: 0, len_writable: true };
    Ok(Value::Obj(vm.st.heap.new_object(proto, ObjectKind::Array(array))).into())
}

/// `$arraySetLength(array, length)` of a fresh array.
fn array_set_length(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let id = vm.arg_obj(&c, 0)?;
    let n = vm.arg_number(&c, 1)? as u32;
    vm.set_array_length(id, n);
    Ok(Value::Undefined.into())
}

/// `$listOf(n)`: an internal array of `n` times undefined.
fn list_of(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let n = vm.arg_number(&c, 0)? as usize;
    if n as u64 * 16 + vm.st.heap.bytes > vm.st.heap.limit {
        return Err(crate::vm::Raise::Limit(crate::state::VmLimitKind::Heap));
    }
    Ok(vm.new_array(vec![Value::Undefined; n]).into())
}

/// The elements of an array that has only plain elements and no holes.
fn all_dense(object: &Object) -> Option<&Vec<Value>> {
    match &object.kind {
        ObjectKind::Array(a) if a.dense.len() == a.len as usize && !a.dense.contains(&Value::Hole) => {
            Some(&a.dense)
        }
        _ => None,
    }
}

/// `$denseCopy(object)`: a list of the elements; undefined if reading them one by one could have other effects, or if an element
/// is undefined.
fn dense_copy(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let id = vm.arg_obj(&c, 0)?;
    let elements = all_dense(vm.st.heap.obj(id)).filter(|list| !list.contains(&Value::Undefined));
    let Some(elements) = elements else { return Ok(Value::Undefined.into()) };
    let bytes = elements.len() as u64 * 16;
    if bytes + vm.st.heap.bytes > vm.st.heap.limit {
        return Err(crate::vm::Raise::Limit(crate::state::VmLimitKind::Heap));
    }
    let copy = elements.clone();
    Ok(vm.new_array(copy).into())
}

/// `$densePut(object, list, length)`: overwrites the elements with a list of this length; false if writing them one by one could
/// have other effects.
fn dense_put(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let (id, list) = (vm.arg_obj(&c, 0)?, vm.arg_obj(&c, 1)?);
    let ObjectKind::Array(from) = &vm.st.heap.obj(list).kind else { return Ok(Value::Bool(false).into()) };
    let fits = all_dense(vm.st.heap.obj(id)).is_some_and(|to| to.len() == from.dense.len());
    if !fits || vm.arg(&c, 2) != Value::count(from.dense.len()) {
        return Ok(Value::Bool(false).into());
    }
    let elements = from.dense.clone();
    if let ObjectKind::Array(to) = &mut vm.st.heap.obj_mut(id).kind {
        to.dense = elements;
    }
    Ok(Value::Bool(true).into())
}

/// `$sortPlain(list)`: sorts in place if all elements are strings; else returns false.
fn sort_plain(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let Value::Obj(id) = vm.arg(&c, 0) else { return Ok(Value::Bool(false).into()) };
    let mut list = match &vm.st.heap.obj(id).kind {
        ObjectKind::Array(a) => a.dense.clone(),
        _ => return Ok(Value::Bool(false).into()),
    };
    let mut texts: Vec<Id> = Vec::with_capacity(list.len());
    for v in &list {
        match v {
            Value::Str(s) => texts.push(*s),
            _ => return Ok(Value::Bool(false).into()),
        }
    }
    let heap = &vm.st.heap;
    texts.sort_by(|a, b| heap.str(*a).compare(heap.str(*b)));
    for (slot, text) in list.iter_mut().zip(texts) {
        *slot = Value::Str(text);
    }
    if let ObjectKind::Array(a) = &mut vm.st.heap.obj_mut(id).kind {
        a.dense = list;
    }
    Ok(Value::Bool(true).into())
}

/// `push` on a plain extensible array.
fn push(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let Value::Obj(id) = vm.this(&c) else { return Ok(Ret::Slow) };
    let object = vm.st.heap.obj(id);
    let plain = match &object.kind {
        ObjectKind::Array(a) => {
            a.len_writable && a.dense.len() == a.len as usize && a.dense.len() + c.argc < 1 << 31
        }
        _ => false,
    };
    if !plain || !object.extensible || object.proto != ids::ARRAY_PROTO || !vm.array_protos_bare() {
        return Ok(Ret::Slow);
    }
    let values: Vec<Value> = (0..c.argc).map(|i| vm.arg(&c, i)).collect();
    let n = values.len();
    let mut len = match &object.kind {
        ObjectKind::Array(a) => a.dense.len(),
        _ => 0,
    };
    for item in len..len + n {
        vm.st.heap.touch_item(id, item);
    }
    if let ObjectKind::Array(a) = &mut vm.st.heap.obj_item(id, len).kind {
        a.dense.extend(values);
        a.len = a.dense.len() as u32;
        len = a.dense.len();
    }
    vm.st.heap.charge(n * 16);
    Ok(Value::count(len).into())
}

fn pop(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let Value::Obj(id) = vm.this(&c) else { return Ok(Ret::Slow) };
    let last = match &vm.st.heap.obj(id).kind {
        ObjectKind::Array(a)
            if a.len_writable
                && a.dense.len() == a.len as usize
                && a.dense.last().is_some_and(|v| *v != Value::Hole) =>
        {
            a.dense.len() - 1
        }
        _ => return Ok(Ret::Slow),
    };
    if let ObjectKind::Array(a) = &mut vm.st.heap.obj_item(id, last).kind
        && let Some(value) = a.dense.pop()
    {
        a.len -= 1;
        return Ok(value.into());
    }
    Ok(Ret::Slow)
}

/// `$joinEnter(object)`: true if this object is being joined already (a cycle).
fn join_enter(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let id = vm.arg_obj(&c, 0)?;
    if vm.st.joining.contains(&id) {
        return Ok(Value::Bool(true).into());
    }
    vm.st.joining.push(id);
    Ok(Value::Bool(false).into())
}

fn join_leave(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let id = vm.arg_obj(&c, 0)?;
    vm.st.joining.retain(|&o| o != id);
    Ok(Value::Undefined.into())
}
