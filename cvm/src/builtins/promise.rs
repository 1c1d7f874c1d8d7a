//! Promise objects: slots and the job queue; the algorithms are in the prelude.

use super::ids;
use super::natives::{Ctor, CtorCode, EMPTY, Module};
use crate::heap::object::{Object, ObjectKind};
use crate::state::PendingJob;
use crate::value::{Id, Value};
use crate::vm::{NativeCall, Res, Ret, Vm};

pub(super) const MODULE: Module = Module {
    intrinsics: &[
        ("promiseNew", |vm, c| {
            let proto = vm.arg(&c, 0).as_obj().unwrap_or(ids::PROMISE_PROTO);
            Ok(vm.new_promise(proto).into())
        }),
        ("isPromise", |vm, c| {
            let is = matches!(vm.arg(&c, 0), Value::Obj(id) if matches!(vm.st.heap.obj(id).kind, ObjectKind::Promise(_)));
            Ok(Value::Bool(is).into())
        }),
        ("settle", |vm, c| {
            let id = vm.arg_obj(&c, 0)?;
            let state = if vm.arg(&c, 1) == Value::Int(2) { 2 } else { 1 };
            let value = vm.arg(&c, 2);
            vm.settle(id, state, value);
            Ok(Value::Undefined.into())
        }),
        ("react", |vm, c| {
            let id = vm.arg_obj(&c, 0)?;
            let (who, fulfilled, rejected) = (vm.arg(&c, 1), vm.arg(&c, 2), vm.arg(&c, 3));
            vm.react(id, who, fulfilled, rejected);
            Ok(Value::Undefined.into())
        }),
        ("enqueueThenable", enqueue_thenable),
    ],
    ctors: &[Ctor {
        id: ids::PROMISE,
        name: "Promise",
        length: 1,
        code: CtorCode::Prelude("Promise_"),
        proto: ids::PROMISE_PROTO,
        parent: ids::FUNCTION_PROTO,
        proto_parent: ids::OBJECT_PROTO,
        global: true,
    }],
    lists: &[
        (ids::PROMISE, "PromiseStatics"),
        (ids::PROMISE, "PromiseKeyedStatics"),
        (ids::PROMISE_PROTO, "PromisePrototype"),
    ],
    source: concat!(include_str!("promise.js"), include_str!("promise_keyed.js")),
    extra: |r| {
        r.tag(ids::PROMISE_PROTO, "Promise");
        *r.heap.obj_mut(ids::REJECTIONS) = Object::new(Id::NONE, ObjectKind::Map(Box::default()));
    },
    ..EMPTY
};

fn enqueue_thenable(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let args = (0..3).map(|i| vm.arg(&c, i)).collect();
    let template = vm.pre("PromiseThenableJob");
    vm.st.enqueue(PendingJob::Call(template, args));
    Ok(Value::Undefined.into())
}
