//! Error objects: slots and the captured stack; constructors are in the prelude.

use super::ids;
use super::natives::{Ctor, CtorCode, EMPTY, Module};
use crate::heap::Cell;
use crate::heap::object::{ObjectKind, Prop, attr};
use crate::value::{Id, Value};
use crate::vm::{NativeCall, Res, Ret, Vm};

/// A constructor of the prelude. `top`: inherits from `Function`; otherwise from `Error`.
pub(super) const fn ctor(
    id: Id,
    name: &'static str,
    code: &'static str,
    length: u16,
    proto: Id,
    top: bool,
) -> Ctor {
    Ctor {
        id,
        name,
        length,
        code: CtorCode::Prelude(code),
        proto,
        parent: if top { ids::FUNCTION_PROTO } else { ids::ERROR },
        proto_parent: if top { ids::OBJECT_PROTO } else { ids::ERROR_PROTO },
        global: true,
    }
}

pub(super) const MODULE: Module = Module {
    intrinsics: &[
        ("errorNew", |vm, c| {
            let proto = vm.arg(&c, 0).as_obj().unwrap_or(ids::ERROR_PROTO);
            Ok(Value::Obj(vm.st.heap.new_object(proto, ObjectKind::Error)).into())
        }),
        ("errorMessage", |vm, c| hidden(vm, c, Some(ids::MESSAGE))),
        ("hidden", |vm, c| hidden(vm, c, None)),
        ("errorStack", |vm, c| {
            let id = vm.arg_obj(&c, 0)?;
            vm.capture_stack(id);
            Ok(Value::Undefined.into())
        }),
        ("errorData", |vm, c| {
            let id = vm.arg_obj(&c, 0)?;
            let found = vm.st.heap.obj(id).props.get(ids::key(ids::ERROR_DATA));
            Ok(found.map_or(Value::Str(ids::EMPTY), |p| p.value).into())
        }),
        ("isError", |vm, c| {
            let is = matches!(vm.arg(&c, 0), Value::Obj(id) if matches!(vm.st.heap.obj(id).kind, ObjectKind::Error));
            Ok(Value::Bool(is).into())
        }),
    ],
    ctors: &[
        ctor(ids::ERROR, "Error", "Error_", 1, ids::ERROR_PROTO, true),
        ctor(ids::TYPE_ERROR, "TypeError", "TypeError_", 1, ids::TYPE_ERROR_PROTO, false),
        ctor(ids::RANGE_ERROR, "RangeError", "RangeError_", 1, ids::RANGE_ERROR_PROTO, false),
        ctor(ids::REFERENCE_ERROR, "ReferenceError", "ReferenceError_", 1, ids::REFERENCE_ERROR_PROTO, false),
        ctor(ids::SYNTAX_ERROR, "SyntaxError", "SyntaxError_", 1, ids::SYNTAX_ERROR_PROTO, false),
        ctor(ids::EVAL_ERROR, "EvalError", "EvalError_", 1, ids::EVAL_ERROR_PROTO, false),
        ctor(ids::URI_ERROR, "URIError", "URIError_", 1, ids::URI_ERROR_PROTO, false),
        ctor(ids::AGGREGATE_ERROR, "AggregateError", "AggregateError_", 2, ids::AGGREGATE_ERROR_PROTO, false),
        ctor(ids::CC_ERROR, "CCError", "CCError_", 1, ids::CC_ERROR_PROTO, false),
        ctor(
            ids::CC_TIMEOUT_ERROR,
            "CCTimeoutError",
            "CCTimeoutError_",
            1,
            ids::CC_TIMEOUT_ERROR_PROTO,
            false,
        ),
    ],
    lists: &[(ids::ERROR, "ErrorStatics"), (ids::ERROR_PROTO, "ErrorPrototype")],
    source: include_str!("error.js"),
    extra: |r| {
        for ctor in MODULE.ctors {
            let name = r.heap.str_value(ctor.name);
            let empty = Value::Str(ids::EMPTY);
            r.put(ctor.proto, "name", name, attr::HIDDEN);
            r.put(ctor.proto, "message", empty, attr::HIDDEN);
        }
        if let Some(Cell::Sym(s)) = r.heap.cells.get_mut(ids::ERROR_DATA.index()) {
            s.private = true;
        }
        // A timeout is a CCError too.
        r.heap.obj_mut(ids::CC_TIMEOUT_ERROR_PROTO).proto = ids::CC_ERROR_PROTO;
        r.heap.obj_mut(ids::CC_TIMEOUT_ERROR).proto = ids::CC_ERROR;
    },
    ..EMPTY
};

/// `$hidden(object, name, value)` or `$errorMessage(object, value)`: a property that is not enumerable.
fn hidden(vm: &mut Vm<'_>, c: NativeCall, fixed: Option<Id>) -> Res<Ret> {
    let id = vm.arg_obj(&c, 0)?;
    let (key, value) = match fixed {
        Some(name) => (ids::key(name), vm.arg(&c, 1)),
        None => (vm.arg_key(&c, 1)?, vm.arg(&c, 2)),
    };
    vm.st.heap.obj_mut(id).props.push(Prop { key, flags: attr::HIDDEN, value });
    vm.st.heap.charge(24);
    Ok(Value::Undefined.into())
}
