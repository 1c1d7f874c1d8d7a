//! Function objects: call, bound functions, source text.

use super::ids;
use super::natives::{Ctor, CtorCode, EMPTY, Module, method};
use crate::heap::object::{Code, ObjectKind, Prop, attr};
use crate::program::USER_TEMPLATES;
use crate::value::{Id, Value};
use crate::vm::{NativeCall, Res, Ret, Vm};

pub(super) const MODULE: Module = Module {
    intrinsics: &[("bind", bind), ("nameBound", name_bound), ("anonymous", anonymous)],
    methods: &[
        method(ids::FUNCTION_PROTO, "call", 1, call),
        method(ids::FUNCTION_PROTO, "toString", 0, to_string),
        method(ids::FUNCTION_PROTO, "%ThrowTypeError%", 0, throw_type_error).with_id(ids::THROW_TYPE_ERROR),
    ],
    ctors: &[Ctor {
        id: ids::FUNCTION,
        name: "Function",
        length: 1,
        code: CtorCode::Native(no_dynamic_code),
        proto: ids::FUNCTION_PROTO,
        parent: ids::FUNCTION_PROTO,
        proto_parent: ids::OBJECT_PROTO,
        global: true,
    }],
    lists: &[(ids::FUNCTION_PROTO, "FunctionPrototype")],
    source: include_str!("function.js"),
    extra: |r| {
        let key = r.key("%ThrowTypeError%");
        let object = r.heap.obj_mut(ids::FUNCTION_PROTO);
        if let Some(slot) = object.props.find(key) {
            object.props.remove(slot);
        }
        // %ThrowTypeError% has no name and is frozen.
        let name = Value::Str(ids::EMPTY);
        r.put(ids::THROW_TYPE_ERROR, "length", Value::Int(0), 0);
        r.put(ids::THROW_TYPE_ERROR, "name", name, 0);
        r.heap.obj_mut(ids::THROW_TYPE_ERROR).extensible = false;
        r.pin(ids::FUNCTION_PROTO, "$$SYM_HAS_INSTANCE", ids::FUNCTION_HAS_INSTANCE);
        let pinned = Value::Obj(ids::FUNCTION_HAS_INSTANCE);
        r.put(ids::FUNCTION_PROTO, "$$SYM_HAS_INSTANCE", pinned, 0);
        // Function.prototype is itself a function.
        let code = Code::Native(super::natives::intrinsic("nothing").unwrap_or(0));
        let proto = r.function(Some(ids::FUNCTION_PROTO), code, "", 0, ids::OBJECT_PROTO);
        debug_assert_eq!(proto, ids::FUNCTION_PROTO);
        let thrower = Value::Obj(ids::THROW_TYPE_ERROR);
        for name in ["caller", "arguments"] {
            let pair = r.heap.alloc(crate::heap::Cell::Pair(thrower, thrower));
            r.put(ids::FUNCTION_PROTO, name, Value::Cell(pair), attr::C | attr::ACCESSOR);
        }
    },
    ..EMPTY
};

/// `Function.prototype.call`: the same stack without its first operand.
fn call(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let this = vm.this(&c);
    if !vm.is_callable(this) {
        return Err(vm.not_callable(this, "is not a function"));
    }
    let from = c.at - 2;
    if c.argc == 0 {
        vm.set_slot(from, this);
        vm.set_slot(from + 1, Value::Undefined);
        return Ok(Ret::Tail(0));
    }
    let end = c.at + c.argc;
    vm.st.stack.copy_within(from + 1..end, from);
    vm.st.sp = end - 1;
    Ok(Ret::Tail(c.argc - 1))
}

fn no_dynamic_code(vm: &mut Vm<'_>, _: NativeCall) -> Res<Ret> {
    Err(vm.type_error("Code generation from strings is not supported"))
}

fn throw_type_error(vm: &mut Vm<'_>, _: NativeCall) -> Res<Ret> {
    Err(vm.type_error("'caller', 'callee', and 'arguments' properties may not be accessed on strict mode functions or the arguments objects for calls to them"))
}

fn to_string(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let this = vm.this(&c);
    if !vm.is_callable(this) {
        return Err(vm.type_error("Function.prototype.toString requires that 'this' be a Function"));
    }
    let Value::Obj(id) = this else { return Ok(Value::Undefined.into()) };
    if let ObjectKind::Function(f) = &vm.st.heap.obj(id).kind
        && let Code::Template(n) = f.code
        && n >= USER_TEMPLATES
    {
        let span = vm.p.template(n).span;
        let text = vm.p.source().get(span.0 as usize..span.1 as usize).unwrap_or("").to_owned();
        return Ok(vm.st.heap.str_value(&text).into());
    }
    let name = match vm.get(id, ids::key(ids::NAME)) {
        crate::vm::props::PropertyRead::Value(v @ Value::Str(_)) => vm.plain_text(v),
        _ => String::new(),
    };
    let text = format!("function {name}() {{ [native code] }}");
    Ok(vm.st.heap.str_value(&text).into())
}

/// `$bind(target, this, args, proto)`
fn bind(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let args = vm.dense(vm.arg(&c, 2)).map_or_else(Vec::new, |a| a.dense.clone());
    let proto = vm.arg(&c, 3).as_obj().unwrap_or(Id::NONE);
    let kind = ObjectKind::Bound(Box::new((vm.arg(&c, 0), vm.arg(&c, 1), args)));
    Ok(Value::Obj(vm.st.heap.new_object(proto, kind)).into())
}

/// `$nameBound(f, length, name)`
fn name_bound(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let id = vm.arg_obj(&c, 0)?;
    let length = vm.arg(&c, 1);
    let text = format!("bound {}", vm.arg_text(&c, 2));
    let name = vm.st.heap.str_value(&text);
    let object = vm.st.heap.obj_mut(id);
    object.props.push(Prop { key: ids::key(ids::LENGTH), flags: attr::C, value: length });
    object.props.push(Prop { key: ids::key(ids::NAME), flags: attr::C, value: name });
    vm.st.heap.charge(48);
    Ok(Value::Undefined.into())
}

/// `$anonymous(f)`: gives a prelude function an empty name, as the specification requires of anonymous builtins.
fn anonymous(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let f = vm.arg(&c, 0);
    if let Value::Obj(id) = f {
        vm.materialise(id);
        if vm.own(id, ids::key(ids::NAME)).is_none() {
            let name = Value::Str(ids::EMPTY);
            vm.st.heap.obj_mut(id).props.push(Prop { key: ids::key(ids::NAME), flags: attr::C, value: name });
            vm.st.heap.charge(24);
        }
    }
    Ok(f.into())
}
