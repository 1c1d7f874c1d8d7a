//! Object: integrity levels of ordinary objects and the class names of `Object.prototype.toString`.

use super::ids;
use super::natives::{Ctor, CtorCode, EMPTY, Module};
use crate::heap::object::{ObjectKind, attr};
use crate::value::{Id, Value};
use crate::vm::define::Desc;
use crate::vm::{NativeCall, Res, Ret, Vm};

pub(super) const MODULE: Module = Module {
    intrinsics: &[("setIntegrity", set_integrity), ("classOf", class_of)],
    ctors: &[Ctor {
        id: ids::OBJECT,
        name: "Object",
        length: 1,
        code: CtorCode::Prelude("Object_"),
        proto: ids::OBJECT_PROTO,
        parent: ids::FUNCTION_PROTO,
        proto_parent: Id::NONE,
        global: true,
    }],
    lists: &[(ids::OBJECT, "ObjectStatics"), (ids::OBJECT_PROTO, "ObjectPrototype")],
    source: include_str!("object.js"),
    extra: |r| {
        r.pin(ids::OBJECT_PROTO, "toString", ids::OBJECT_TO_STRING);
        r.pin(ids::OBJECT_PROTO, "valueOf", ids::OBJECT_VALUE_OF);
    },
    ..EMPTY
};

/// `$setIntegrity(object, frozen)` of anything but a proxy.
fn set_integrity(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let id = vm.arg_obj(&c, 0)?;
    if vm
        .st
        .heap
        .typed_array(Value::Obj(id))
        .and_then(|view| vm.st.heap.count_of(view))
        .is_some_and(|n| n > 0)
    {
        return Err(vm.type_error("Cannot seal or freeze a typed array with elements"));
    }
    if vm.arg(&c, 1) == Value::Bool(true) {
        vm.freeze(id);
        return Ok(Value::Undefined.into());
    }
    vm.prevent_extensions(id);
    for key in vm.own_keys(id) {
        vm.define_own(id, key, &Desc { value: None, get: None, set: None, flags: 0, mask: attr::C });
    }
    Ok(Value::Undefined.into())
}

/// Name that `Object.prototype.toString` shows without a tag.
fn class_of(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let value = vm.arg(&c, 0);
    let name = match value {
        Value::Obj(id) => match &vm.st.heap.obj(id).kind {
            ObjectKind::Arguments(_) => "Arguments",
            ObjectKind::Error => "Error",
            ObjectKind::Primitive(Value::Bool(_)) => "Boolean",
            ObjectKind::Primitive(Value::Int(_) | Value::Num(_)) => "Number",
            ObjectKind::Primitive(Value::Str(_)) => "String",
            ObjectKind::Date(_) => "Date",
            ObjectKind::RegExp(..) => "RegExp",
            _ if vm.is_callable(value) => "Function",
            _ => "Object",
        },
        _ => "Object",
    };
    Ok(vm.st.heap.str_value(name).into())
}
