//! `Map`, `Set` and their iterators, and the storage of the weak collections: ECMA-262 24.1, 24.2, 24.3, 24.4, 26.1, 26.2.
//!
//! Weak collections hold strongly: collection of an object cannot be observed without `deref`, and a stored state must not
//! depend on when memory was reclaimed. Must not: call callbacks; `collections.js` does.

use super::ids;
use super::natives::{Ctor, CtorCode, EMPTY, Module, NativeMethod, getter, method};
use crate::heap::object::{EntryTable, ObjectKind};
use crate::value::{Id, Value};
use crate::vm::{NativeCall, Res, Ret, Vm};

/// Tag of the record of a Map iterator: collection, number of the last entry, kind (0 keys 1 values 2 entries).
pub(crate) const MAP_ITERATOR: u32 = 910;
/// As [`MAP_ITERATOR`], of a Set iterator.
pub(crate) const SET_ITERATOR: u32 = 911;

const fn ctor(id: Id, name: &'static str, length: u16, code: &'static str, proto: Id) -> Ctor {
    let code = CtorCode::Prelude(code);
    Ctor {
        id,
        name,
        length,
        code,
        proto,
        parent: ids::FUNCTION_PROTO,
        proto_parent: ids::OBJECT_PROTO,
        global: true,
    }
}

pub(super) const MODULE: Module = Module {
    intrinsics: &[
        ("mapNew", |vm, c| new_collection(vm, &c, ObjectKind::Map)),
        ("setNew", |vm, c| new_collection(vm, &c, ObjectKind::Set)),
        ("isMap", |vm, c| Ok(Value::Bool(is_map(vm, vm.arg(&c, 0))).into())),
        ("isSet", |vm, c| Ok(Value::Bool(is_set(vm, vm.arg(&c, 0))).into())),
        ("tableGet", |vm, c| {
            let (id, key) = (vm.arg_obj(&c, 0)?, vm.arg(&c, 1));
            Ok(vm.table_get(id, key).unwrap_or(Value::Undefined).into())
        }),
        ("tableHas", |vm, c| {
            let (id, key) = (vm.arg_obj(&c, 0)?, vm.arg(&c, 1));
            Ok(Value::Bool(vm.table_get(id, key).is_some()).into())
        }),
        ("tableSet", |vm, c| {
            let (id, key, value) = (vm.arg_obj(&c, 0)?, vm.arg(&c, 1), vm.arg(&c, 2));
            vm.table_set(id, key, value);
            Ok(Value::Undefined.into())
        }),
        ("tableDelete", |vm, c| {
            let (id, key) = (vm.arg_obj(&c, 0)?, vm.arg(&c, 1));
            Ok(Value::Bool(vm.table_delete(id, key)).into())
        }),
        ("tableSize", |vm, c| {
            let id = vm.arg_obj(&c, 0)?;
            Ok(Value::count(vm.table(id).map_or(0, |table| table.live as usize)).into())
        }),
        ("tableAfter", |vm, c| {
            let (id, after) = (vm.arg_obj(&c, 0)?, vm.arg_number(&c, 1)?);
            Ok(vm.table_after(id, after).map_or(Value::Int(-1), |entry| Value::num(entry.0 as f64)).into())
        }),
        ("tableKey", |vm, c| {
            let (id, number) = (vm.arg_obj(&c, 0)?, vm.arg_number(&c, 1)?);
            Ok(vm.table_after(id, number - 1.0).map_or(Value::Undefined, |entry| entry.1).into())
        }),
        ("tableValue", |vm, c| {
            let (id, number) = (vm.arg_obj(&c, 0)?, vm.arg_number(&c, 1)?);
            Ok(vm.table_after(id, number - 1.0).map_or(Value::Undefined, |entry| entry.2).into())
        }),
        ("canBeHeldWeakly", can_be_held_weakly),
    ],
    ctors: &[
        ctor(ids::MAP, "Map", 0, "Map_", ids::MAP_PROTO),
        ctor(ids::SET_CTOR, "Set", 0, "Set_", ids::SET_PROTO),
        ctor(ids::WEAK_MAP, "WeakMap", 0, "WeakMap_", ids::WEAK_MAP_PROTO),
        ctor(ids::WEAK_SET, "WeakSet", 0, "WeakSet_", ids::WEAK_SET_PROTO),
        ctor(ids::WEAK_REF, "WeakRef", 1, "WeakRef_", ids::WEAK_REF_PROTO),
        ctor(
            ids::FINALIZATION_REGISTRY,
            "FinalizationRegistry",
            1,
            "FinalizationRegistry_",
            ids::FINALIZATION_REGISTRY_PROTO,
        ),
    ],
    methods: METHODS,
    lists: &[
        (ids::MAP, "SpeciesStatics"),
        (ids::MAP, "MapStatics"),
        (ids::SET_CTOR, "SpeciesStatics"),
        (ids::MAP_PROTO, "MapMethods"),
        (ids::SET_PROTO, "SetMethods"),
        (ids::WEAK_MAP_PROTO, "WeakMapMethods"),
        (ids::WEAK_SET_PROTO, "WeakSetMethods"),
        (ids::WEAK_REF_PROTO, "WeakRefMethods"),
        (ids::FINALIZATION_REGISTRY_PROTO, "FinalizationRegistryMethods"),
    ],
    source: include_str!("collections.js"),
    extra: |realm| {
        realm.alias(ids::MAP_PROTO, "entries", "$$SYM_ITERATOR");
        realm.alias(ids::SET_PROTO, "values", "keys");
        realm.alias(ids::SET_PROTO, "values", "$$SYM_ITERATOR");
        realm.tag(ids::MAP_PROTO, "Map");
        realm.tag(ids::SET_PROTO, "Set");
        realm.tag(ids::WEAK_MAP_PROTO, "WeakMap");
        realm.tag(ids::WEAK_SET_PROTO, "WeakSet");
        realm.tag(ids::WEAK_REF_PROTO, "WeakRef");
        realm.tag(ids::FINALIZATION_REGISTRY_PROTO, "FinalizationRegistry");
        for (proto, tag) in
            [(ids::MAP_ITERATOR_PROTO, "Map Iterator"), (ids::SET_ITERATOR_PROTO, "Set Iterator")]
        {
            realm.heap.obj_mut(proto).proto = ids::ITERATOR_PROTO;
            realm.tag(proto, tag);
        }
    },
    ..EMPTY
};

const METHODS: &[NativeMethod] = &[
    method(ids::MAP_PROTO, "get", 1, map_get),
    method(ids::MAP_PROTO, "set", 2, map_set).with_id(ids::MAP_SET),
    method(ids::MAP_PROTO, "has", 1, map_has),
    method(ids::MAP_PROTO, "delete", 1, map_delete),
    method(ids::MAP_PROTO, "clear", 0, map_clear),
    method(ids::MAP_PROTO, "entries", 0, map_entries),
    method(ids::MAP_PROTO, "keys", 0, map_keys),
    method(ids::MAP_PROTO, "values", 0, map_values),
    getter(ids::MAP_PROTO, "size", map_size),
    method(ids::SET_PROTO, "add", 1, set_add).with_id(ids::SET_ADD),
    method(ids::SET_PROTO, "has", 1, set_has),
    method(ids::SET_PROTO, "delete", 1, set_delete),
    method(ids::SET_PROTO, "clear", 0, set_clear),
    method(ids::SET_PROTO, "entries", 0, set_entries),
    method(ids::SET_PROTO, "values", 0, set_values),
    getter(ids::SET_PROTO, "size", set_size),
    method(ids::MAP_ITERATOR_PROTO, "next", 0, map_next),
    method(ids::SET_ITERATOR_PROTO, "next", 0, set_next),
];

fn is_map(vm: &Vm<'_>, value: Value) -> bool {
    value.as_obj().is_some_and(|id| matches!(vm.st.heap.obj(id).kind, ObjectKind::Map(_)))
}

fn is_set(vm: &Vm<'_>, value: Value) -> bool {
    value.as_obj().is_some_and(|id| matches!(vm.st.heap.obj(id).kind, ObjectKind::Set(_)))
}

/// `$mapNew(proto)` and `$setNew(proto)`
fn new_collection(vm: &mut Vm<'_>, call: &NativeCall, kind: fn(Box<EntryTable>) -> ObjectKind) -> Res<Ret> {
    let proto = vm.arg_obj(call, 0)?;
    Ok(Value::Obj(vm.st.heap.new_object(proto, kind(Box::default()))).into())
}

/// Objects, and symbols that are not registered with `Symbol.for`.
fn can_be_held_weakly(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let can = match vm.arg(&call, 0) {
        Value::Obj(_) => true,
        Value::Sym(id) => vm.st.heap.symbol(id).is_some_and(|symbol| !symbol.registered),
        _ => false,
    };
    Ok(Value::Bool(can).into())
}

fn this_map(vm: &mut Vm<'_>, call: &NativeCall, name: &str) -> Res<Id> {
    match vm.this(call) {
        Value::Obj(id) if is_map(vm, Value::Obj(id)) => Ok(id),
        other => {
            let shown = vm.brief(other);
            Err(vm
                .type_error(&format!("Method Map.prototype.{name} called on incompatible receiver {shown}")))
        }
    }
}

fn this_set(vm: &mut Vm<'_>, call: &NativeCall, name: &str) -> Res<Id> {
    match vm.this(call) {
        Value::Obj(id) if is_set(vm, Value::Obj(id)) => Ok(id),
        other => {
            let shown = vm.brief(other);
            Err(vm
                .type_error(&format!("Method Set.prototype.{name} called on incompatible receiver {shown}")))
        }
    }
}

fn map_get(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let id = this_map(vm, &call, "get")?;
    let key = vm.arg(&call, 0);
    Ok(vm.table_get(id, key).unwrap_or(Value::Undefined).into())
}

fn map_set(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let id = this_map(vm, &call, "set")?;
    let (key, value) = (vm.arg(&call, 0), vm.arg(&call, 1));
    vm.table_set(id, key, value);
    Ok(Value::Obj(id).into())
}

fn map_has(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let id = this_map(vm, &call, "has")?;
    let key = vm.arg(&call, 0);
    Ok(Value::Bool(vm.table_get(id, key).is_some()).into())
}

fn map_delete(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let id = this_map(vm, &call, "delete")?;
    let key = vm.arg(&call, 0);
    Ok(Value::Bool(vm.table_delete(id, key)).into())
}

fn map_clear(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let id = this_map(vm, &call, "clear")?;
    vm.table_clear(id);
    Ok(Value::Undefined.into())
}

fn map_size(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let id = this_map(vm, &call, "size")?;
    Ok(Value::count(vm.table(id).map_or(0, |table| table.live as usize)).into())
}

fn set_add(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let id = this_set(vm, &call, "add")?;
    let key = vm.arg(&call, 0);
    // A set's entries have the key as value too, because iterators return both.
    let value = if key.as_num() == Some(0.0) { Value::Int(0) } else { key };
    vm.table_set(id, key, value);
    Ok(Value::Obj(id).into())
}

fn set_has(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let id = this_set(vm, &call, "has")?;
    let key = vm.arg(&call, 0);
    Ok(Value::Bool(vm.table_get(id, key).is_some()).into())
}

fn set_delete(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let id = this_set(vm, &call, "delete")?;
    let key = vm.arg(&call, 0);
    Ok(Value::Bool(vm.table_delete(id, key)).into())
}

fn set_clear(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let id = this_set(vm, &call, "clear")?;
    vm.table_clear(id);
    Ok(Value::Undefined.into())
}

fn set_size(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let id = this_set(vm, &call, "size")?;
    Ok(Value::count(vm.table(id).map_or(0, |table| table.live as usize)).into())
}

fn iterator(vm: &mut Vm<'_>, tag: u32, proto: Id, collection: Id, kind: i32) -> Ret {
    let slots = vec![Value::Obj(collection), Value::Int(-1), Value::Int(kind)];
    Ret::Value(Value::Obj(vm.st.heap.new_object(proto, ObjectKind::Record(tag, slots))))
}

fn map_keys(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let id = this_map(vm, &call, "keys")?;
    Ok(iterator(vm, MAP_ITERATOR, ids::MAP_ITERATOR_PROTO, id, 0))
}

fn map_values(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let id = this_map(vm, &call, "values")?;
    Ok(iterator(vm, MAP_ITERATOR, ids::MAP_ITERATOR_PROTO, id, 1))
}

fn map_entries(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let id = this_map(vm, &call, "entries")?;
    Ok(iterator(vm, MAP_ITERATOR, ids::MAP_ITERATOR_PROTO, id, 2))
}

fn set_values(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let id = this_set(vm, &call, "values")?;
    Ok(iterator(vm, SET_ITERATOR, ids::SET_ITERATOR_PROTO, id, 1))
}

fn set_entries(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let id = this_set(vm, &call, "entries")?;
    Ok(iterator(vm, SET_ITERATOR, ids::SET_ITERATOR_PROTO, id, 2))
}

fn map_next(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    next(vm, &call, MAP_ITERATOR, "Map Iterator")
}

fn set_next(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    next(vm, &call, SET_ITERATOR, "Set Iterator")
}

/// Steps an iterator; a finished one drops the reference to its collection.
fn next(vm: &mut Vm<'_>, call: &NativeCall, tag: u32, name: &str) -> Res<Ret> {
    let this = vm.this(call);
    let parts = this.as_obj().and_then(|id| match &vm.st.heap.obj(id).kind {
        ObjectKind::Record(found, slots) if *found == tag => match slots[..] {
            [collection, Value::Int(_) | Value::Num(_), Value::Int(kind)] => {
                Some((id, collection, slots[1].as_num().unwrap_or(-1.0), kind))
            }
            _ => None,
        },
        _ => None,
    });
    let Some((id, collection, after, kind)) = parts else {
        return Err(vm.type_error(&format!("next called on something that is not a {name}")));
    };
    let found = collection.as_obj().and_then(|collection| vm.table_after(collection, after));
    let value = match found {
        None => Value::Undefined,
        Some((_, key, _)) if kind == 0 => key,
        Some((_, _, value)) if kind == 1 => value,
        Some((_, key, value)) => vm.new_array(vec![key, value]),
    };
    if let ObjectKind::Record(_, slots) = &mut vm.st.heap.obj_mut(id).kind {
        match found {
            Some((number, ..)) => slots[1] = Value::num(number as f64),
            None => slots[0] = Value::Undefined,
        }
    }
    let result = vm.st.heap.new_object(ids::OBJECT_PROTO, ObjectKind::Plain);
    vm.create(result, ids::key(ids::VALUE), value);
    vm.create(result, ids::key(ids::DONE), Value::Bool(found.is_none()));
    Ok(Value::Obj(result).into())
}
