//! Boolean.

use super::ids;
use super::natives::{Ctor, CtorCode, EMPTY, Module, method};
use crate::heap::object::ObjectKind;
use crate::value::Value;
use crate::vm::{NativeCall, Res, Ret, Vm};

pub(super) const MODULE: Module = Module {
    intrinsics: &[("wrap", wrap)],
    methods: &[
        method(ids::BOOLEAN_PROTO, "toString", 0, |vm, c| {
            let b = this_boolean(vm, c)?;
            Ok(Value::Str(if b { ids::TRUE } else { ids::FALSE }).into())
        }),
        method(ids::BOOLEAN_PROTO, "valueOf", 0, |vm, c| Ok(Value::Bool(this_boolean(vm, c)?).into())),
    ],
    ctors: &[Ctor {
        id: ids::BOOLEAN,
        name: "Boolean",
        length: 1,
        code: CtorCode::Prelude("Boolean_"),
        proto: ids::BOOLEAN_PROTO,
        parent: ids::FUNCTION_PROTO,
        proto_parent: ids::OBJECT_PROTO,
        global: true,
    }],
    source: "function Boolean_(value) {
  const b = value ? true : false;
  return new.target === undefined ? b : $wrap(b, ProtoFor(new.target, $$BOOLEAN_PROTO));
}",
    extra: |r| r.heap.obj_mut(ids::BOOLEAN_PROTO).kind = ObjectKind::Primitive(Value::Bool(false)),
    ..EMPTY
};

fn this_boolean(vm: &mut Vm<'_>, c: NativeCall) -> Res<bool> {
    match vm.this(&c) {
        Value::Bool(b) => Ok(b),
        Value::Obj(id) => match vm.st.heap.obj(id).kind {
            ObjectKind::Primitive(Value::Bool(b)) => Ok(b),
            _ => Err(vm.type_error("not a boolean")),
        },
        _ => Err(vm.type_error("not a boolean")),
    }
}

/// `$wrap(primitive, proto)`: a wrapper object.
fn wrap(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let proto = vm.arg(&c, 1).as_obj().unwrap_or(ids::OBJECT_PROTO);
    Ok(Value::Obj(vm.st.heap.new_object(proto, ObjectKind::Primitive(vm.arg(&c, 0)))).into())
}
