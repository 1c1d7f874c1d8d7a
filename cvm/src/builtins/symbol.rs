//! Symbol: values, the registry, wrappers.

use super::ids;
use super::natives::{Ctor, CtorCode, EMPTY, Module, getter, method};
use crate::heap::Cell;
use crate::heap::object::{ObjectKind, attr};
use crate::state::REGISTERED_BYTES;
use crate::value::{Id, Value};
use crate::vm::{NativeCall, Res, Ret, Vm};

pub(super) const MODULE: Module =
    Module {
        methods: &[
            method(ids::SYMBOL, "for", 1, symbol_for),
            method(ids::SYMBOL, "keyFor", 1, key_for),
            method(ids::SYMBOL_PROTO, "toString", 0, |vm, c| {
                let id = this_symbol(vm, c)?;
                let text = vm.symbol_text(id);
                Ok(vm.st.heap.str_value(&text).into())
            }),
            method(ids::SYMBOL_PROTO, "valueOf", 0, |vm, c| Ok(Value::Sym(this_symbol(vm, c)?).into())),
            method(ids::SYMBOL_PROTO, "$$SYM_TO_PRIMITIVE", 1, |vm, c| {
                Ok(Value::Sym(this_symbol(vm, c)?).into())
            }),
            getter(ids::SYMBOL_PROTO, "description", |vm, c| {
                let id = this_symbol(vm, c)?;
                Ok(vm.st.heap.symbol(id).map_or(Value::Undefined, |s| s.description).into())
            }),
        ],
        ctors: &[Ctor {
            id: ids::SYMBOL,
            name: "Symbol",
            length: 0,
            code: CtorCode::Native(construct),
            proto: ids::SYMBOL_PROTO,
            parent: ids::FUNCTION_PROTO,
            proto_parent: ids::OBJECT_PROTO,
            global: true,
        }],
        extra: |r| {
            for (name, text) in ids::SYMBOLS {
                if let (Some(id), Some(short)) = (ids::realm_id(name), text.strip_prefix("Symbol.")) {
                    r.put(ids::SYMBOL, short, Value::Sym(id), 0);
                }
            }
            r.tag(ids::SYMBOL_PROTO, "Symbol");
            let key = r.key("$$SYM_TO_PRIMITIVE");
            let object = r.heap.obj_mut(ids::SYMBOL_PROTO);
            if let Some(slot) = object.props.find(key)
                && let Some(p) = object.props.at_mut(slot)
            {
                p.flags = attr::C;
            }
        },
        ..EMPTY
    };

fn construct(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    if c.new_target != Value::Undefined {
        return Err(vm.type_error("Symbol is not a constructor"));
    }
    let description = match vm.arg(&c, 0) {
        Value::Undefined => Value::Undefined,
        _ => Value::Str(vm.arg_str(&c, 0)?),
    };
    Ok(Value::Sym(vm.st.heap.new_symbol(description, false)).into())
}

fn this_symbol(vm: &mut Vm<'_>, c: NativeCall) -> Res<Id> {
    match vm.this(&c) {
        Value::Sym(id) => Ok(id),
        Value::Obj(id) => match vm.st.heap.obj(id).kind {
            ObjectKind::Primitive(Value::Sym(id)) => Ok(id),
            _ => Err(vm.type_error("not a symbol")),
        },
        _ => Err(vm.type_error("not a symbol")),
    }
}

fn symbol_for(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let text = vm.arg_str(&c, 0)?;
    let key = vm.st.heap.key_of_str(text);
    index_registry(vm);
    if let Some(&id) = vm.st.registered.get(&key) {
        return Ok(Value::Sym(id).into());
    }
    let text = key.as_cell().unwrap_or(text);
    let id = vm.st.heap.new_symbol(Value::Str(text), false);
    if let Some(Cell::Sym(s)) = vm.st.heap.cells.get_mut(id.index()) {
        s.registered = true;
    }
    vm.st.registry.push((text, id));
    vm.st.registered.insert(key, id);
    vm.st.heap.charge(REGISTERED_BYTES as usize);
    Ok(Value::Sym(id).into())
}

/// Builds the registry's index, which is not stored, after a load.
fn index_registry(vm: &mut Vm<'_>) {
    if vm.st.registered.is_empty() {
        for (text, symbol) in vm.st.registry.clone() {
            let key = vm.st.heap.key_of_str(text);
            vm.st.registered.insert(key, symbol);
        }
    }
}

fn key_for(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let Value::Sym(id) = vm.arg(&c, 0) else {
        let shown = vm.brief(vm.arg(&c, 0));
        return Err(vm.type_error(&format!("{shown} is not a symbol")));
    };
    let registered = vm.st.heap.symbol(id).filter(|symbol| symbol.registered);
    Ok(registered.map_or(Value::Undefined, |symbol| symbol.description).into())
}
