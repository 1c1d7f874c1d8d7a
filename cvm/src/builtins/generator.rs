//! Generators and async generators: brand checks and resumption; the rest is in the prelude.

use super::ids;
use super::natives::{Ctor, CtorCode, EMPTY, Module};
use crate::heap::object::{ObjectKind, attr};
use crate::program::flag;
use crate::value::{Id, Value};
use crate::vm::coroutine::state;
use crate::vm::{NativeCall, Res, Ret, Vm};

const fn ctor(id: Id, name: &'static str, proto: Id) -> Ctor {
    Ctor {
        id,
        name,
        length: 1,
        code: CtorCode::Native(no_dynamic_code),
        proto,
        parent: ids::FUNCTION,
        proto_parent: ids::FUNCTION_PROTO,
        global: false,
    }
}

pub(super) const MODULE: Module = Module {
    intrinsics: &[
        ("resume", |vm, c| {
            let id = vm.arg_obj(&c, 0)?;
            let mode = if let Value::Int(m) = vm.arg(&c, 1) { m as u8 } else { 0 };
            Ok(Ret::Resume(id, mode, vm.arg(&c, 2)))
        }),
        ("generatorFor", generator_for),
        ("asyncGenerator", async_generator),
        ("asyncQueue", |vm, c| {
            let id = vm.arg_obj(&c, 0)?;
            Ok(vm.coroutine(id).map_or(Value::Undefined, |co| co.link).into())
        }),
        ("isDone", |vm, c| is_state(vm, c, state::DONE)),
        ("isStart", |vm, c| is_state(vm, c, state::START)),
        ("isRunning", is_running),
        ("finishCoroutine", |vm, c| {
            let id = vm.arg_obj(&c, 0)?;
            if let Some(co) = vm.coroutine_mut(id) {
                co.state = state::DONE;
                co.slots = Vec::new();
            }
            Ok(Value::Undefined.into())
        }),
        ("setAwaitingReturn", |vm, c| {
            let id = vm.arg_obj(&c, 0)?;
            let on = vm.arg(&c, 1) == Value::Bool(true);
            if let Some(co) = vm.coroutine_mut(id) {
                co.new_target = Value::Bool(on);
            }
            Ok(Value::Undefined.into())
        }),
        ("iterResult", |vm, c| {
            let done = vm.arg(&c, 1) == Value::Bool(true);
            let value = vm.arg(&c, 0);
            Ok(vm.iter_result(value, done).into())
        }),
        ("shift", shift),
        ("makeTypeError", |vm, c| {
            let text = vm.arg_text(&c, 0);
            Ok(vm.make_error(ids::TYPE_ERROR_PROTO, &text).into())
        }),
    ],
    ctors: &[
        ctor(ids::GENERATOR_FUNCTION, "GeneratorFunction", ids::GENERATOR_FUNCTION_PROTO),
        ctor(ids::ASYNC_FUNCTION, "AsyncFunction", ids::ASYNC_FUNCTION_PROTO),
        ctor(ids::ASYNC_GENERATOR_FUNCTION, "AsyncGeneratorFunction", ids::ASYNC_GENERATOR_FUNCTION_PROTO),
    ],
    lists: &[
        (ids::GENERATOR_PROTO, "GeneratorPrototype"),
        (ids::ASYNC_GENERATOR_PROTO, "AsyncGeneratorPrototype"),
        (ids::ASYNC_FROM_SYNC_PROTO, "AsyncFromSyncPrototype"),
    ],
    source: include_str!("generator.js"),
    extra: |r| {
        let families = [
            (
                ids::GENERATOR_FUNCTION,
                ids::GENERATOR_FUNCTION_PROTO,
                ids::GENERATOR_PROTO,
                ids::ITERATOR_PROTO,
                "Generator",
            ),
            (
                ids::ASYNC_GENERATOR_FUNCTION,
                ids::ASYNC_GENERATOR_FUNCTION_PROTO,
                ids::ASYNC_GENERATOR_PROTO,
                ids::ASYNC_ITERATOR_PROTO,
                "AsyncGenerator",
            ),
        ];
        for (_, function_proto, proto, parent, name) in families {
            r.heap.obj_mut(proto).proto = parent;
            r.put(function_proto, "prototype", Value::Obj(proto), attr::C);
            r.put(proto, "constructor", Value::Obj(function_proto), attr::C);
            r.tag(proto, name);
            r.tag(function_proto, &format!("{name}Function"));
        }
        for (ctor, proto) in [
            (ids::GENERATOR_FUNCTION, ids::GENERATOR_FUNCTION_PROTO),
            (ids::ASYNC_FUNCTION, ids::ASYNC_FUNCTION_PROTO),
            (ids::ASYNC_GENERATOR_FUNCTION, ids::ASYNC_GENERATOR_FUNCTION_PROTO),
        ] {
            r.put(proto, "constructor", Value::Obj(ctor), attr::C);
        }
        r.tag(ids::ASYNC_FUNCTION_PROTO, "AsyncFunction");
        r.heap.obj_mut(ids::ASYNC_FROM_SYNC_PROTO).proto = ids::ASYNC_ITERATOR_PROTO;
    },
    ..EMPTY
};

fn no_dynamic_code(vm: &mut Vm<'_>, _: NativeCall) -> Res<Ret> {
    Err(vm.type_error("Code generation from strings is not supported"))
}

fn is_state(vm: &mut Vm<'_>, c: NativeCall, wanted: u8) -> Res<Ret> {
    let id = vm.arg_obj(&c, 0)?;
    Ok(Value::Bool(vm.coroutine(id).is_some_and(|co| co.state == wanted)).into())
}

/// Running, or done and waiting for the value of a `return` request.
fn is_running(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let id = vm.arg_obj(&c, 0)?;
    let busy = vm.coroutine(id).is_some_and(|co| match co.state {
        state::RUNNING => true,
        state::DONE => co.new_target == Value::Bool(true),
        state::SUSPENDED => !at_yield(vm, id),
        _ => false,
    });
    Ok(Value::Bool(busy).into())
}

/// Whether a suspended coroutine is at a `yield`, not at an `await`.
fn at_yield(vm: &Vm<'_>, id: Id) -> bool {
    vm.coroutine(id).is_some_and(|co| {
        let start = vm.p.template(co.template).start;
        let at = (start + co.pc) as usize;
        let op = at.checked_sub(1).and_then(|i| vm.p.code.get(i)).map(|i| i.op);
        matches!(op, Some(crate::ops::Opcode::Yield | crate::ops::Opcode::YieldStar))
    })
}

/// `$generatorFor(this, method)`: the generator, or a `TypeError`.
fn generator_for(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let this = vm.arg(&c, 0);
    if let Value::Obj(id) = this
        && let ObjectKind::Coroutine(co) = &vm.st.heap.obj(id).kind
        && vm.p.template(co.template).flags & (flag::GENERATOR | flag::ASYNC) == flag::GENERATOR
    {
        if co.state == state::RUNNING {
            return Err(vm.type_error("Generator is already running"));
        }
        return Ok(this.into());
    }
    let (method, shown) = (vm.arg_text(&c, 1), vm.brief(this));
    Err(vm.type_error(&format!("{method} method called on incompatible receiver {shown}")))
}

/// The async generator, or undefined.
fn async_generator(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let this = vm.arg(&c, 0);
    let is = matches!(this, Value::Obj(id) if vm.coroutine(id).is_some_and(|co| {
        let both = flag::GENERATOR | flag::ASYNC;
        vm.p.template(co.template).flags & both == both
    }));
    Ok(if is { this } else { Value::Undefined }.into())
}

/// `$shift(list)` of an internal array.
fn shift(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let Value::Obj(id) = vm.arg(&c, 0) else { return Ok(Value::Undefined.into()) };
    if let ObjectKind::Array(a) = &mut vm.st.heap.obj_mut(id).kind
        && !a.dense.is_empty()
    {
        a.len -= 1;
        return Ok(a.dense.remove(0).into());
    }
    Ok(Value::Undefined.into())
}
