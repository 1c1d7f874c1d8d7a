//! Proxy and Reflect: the exotic object's slots; traps and their invariants are in the prelude.

use super::ids;
use super::natives::{Ctor, CtorCode, EMPTY, Module};
use crate::heap::object::ObjectKind;
use crate::value::{Id, Value};
use crate::vm::{NativeCall, Res, Ret, Vm};

pub(super) const MODULE: Module = Module {
    intrinsics: &[
        ("proxyNew", proxy_new),
        ("proxyTarget", |vm, c| Ok(parts(vm, c).map_or(Value::Null, |p| p.0).into())),
        ("proxyHandler", |vm, c| Ok(parts(vm, c).map_or(Value::Null, |p| p.1).into())),
        ("proxyRevoke", |vm, c| {
            if let Value::Obj(id) = vm.arg(&c, 0)
                && let ObjectKind::Proxy(p) = &mut vm.st.heap.obj_mut(id).kind
            {
                p.0 = Value::Null;
                p.1 = Value::Null;
            }
            Ok(Value::Undefined.into())
        }),
    ],
    ctors: &[Ctor {
        id: ids::PROXY,
        name: "Proxy",
        length: 2,
        code: CtorCode::Prelude("Proxy_"),
        proto: Id::NONE,
        parent: ids::FUNCTION_PROTO,
        proto_parent: Id::NONE,
        global: true,
    }],
    lists: &[(ids::PROXY, "ProxyStatics"), (ids::REFLECT, "ReflectStatics")],
    source: include_str!("proxy.js"),
    extra: |r| {
        r.tag(ids::REFLECT, "Reflect");
        r.global("Reflect", Value::Obj(ids::REFLECT));
    },
    ..EMPTY
};

fn parts(vm: &Vm<'_>, c: NativeCall) -> Option<(Value, Value)> {
    match vm.arg(&c, 0) {
        Value::Obj(id) => match &vm.st.heap.obj(id).kind {
            ObjectKind::Proxy(p) => Some((p.0, p.1)),
            _ => None,
        },
        _ => None,
    }
}

fn proxy_new(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let (target, handler) = (vm.arg(&c, 0), vm.arg(&c, 1));
    let (callable, constructor) = (vm.is_callable(target), vm.is_constructor(target));
    let kind = ObjectKind::Proxy(Box::new((target, handler, callable, constructor)));
    Ok(Value::Obj(vm.st.heap.new_object(Id::NONE, kind)).into())
}
