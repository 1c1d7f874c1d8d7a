//! What reaches outside: `CC`, `console`, `fs`, `args`, `env`. The request leaves as data, the answer comes as data.

use super::ids;
use super::natives::{EMPTY, Module, method};
use crate::heap::object::{Array, Kind, attr};
use crate::outcome::{Level, Line, Request};
use crate::state::{LimitKind, State};
use crate::value::Value;
use crate::vm::{Call, Raise, Res, Ret, Vm};

pub(super) const MODULE: Module = Module {
    methods: &[
        method(ids::GLOBAL, "CC", 1, cc),
        method(ids::CONSOLE, "log", 0, |vm, c| print(vm, c, Level::Log)),
        method(ids::CONSOLE, "info", 0, |vm, c| print(vm, c, Level::Log)),
        method(ids::CONSOLE, "warn", 0, |vm, c| print(vm, c, Level::Warn)),
        method(ids::CONSOLE, "error", 0, |vm, c| print(vm, c, Level::Error)),
        method(ids::CONSOLE, "debug", 0, |vm, c| print(vm, c, Level::Debug)),
        method(ids::FS, "readFile", 1, |vm, c| request(vm, c, "readFile")),
        method(ids::FS, "writeFile", 2, |vm, c| request(vm, c, "writeFile")),
        method(ids::FS, "listFiles", 0, |vm, c| request(vm, c, "listFiles")),
    ],
    extra: |r| {
        r.global("console", Value::Obj(ids::CONSOLE));
        r.global("fs", Value::Obj(ids::FS));
    },
    ..EMPTY
};

/// Puts `args` and `env` on the global object of a fresh state.
pub(crate) fn install_inputs(state: &mut State, args: &[String], env: &[(String, String)]) {
    if args.is_empty() && env.is_empty() {
        // The realm's own empty ones serve.
        return;
    }
    let heap = &mut state.heap;
    let dense: Vec<Value> = args.iter().map(|a| heap.str_value(a)).collect();
    let len = dense.len() as u32;
    let array = heap.new_object(ids::ARRAY_PROTO, Kind::Array(Array { dense, len, len_writable: true }));
    let object = heap.new_object(ids::OBJECT_PROTO, Kind::Plain);
    for (name, value) in env {
        let key = heap.key(name);
        let value = heap.str_value(value);
        let props = &mut heap.obj_mut(object).props;
        if props.find(key).is_none() {
            props.push(crate::heap::object::Prop { key, flags: attr::ALL, value });
            heap.charge(24);
        }
    }
    for (name, id) in [("args", array), ("env", object)] {
        let key = heap.key(name);
        let global = heap.obj_mut(ids::GLOBAL);
        if let Some(slot) = global.props.find(key)
            && let Some(p) = global.props.at_mut(slot)
        {
            p.value = Value::Obj(id);
        }
    }
}

/// `CC(prompt, options?)`: the pause.
fn cc(vm: &mut Vm<'_>, c: Call) -> Res<Ret> {
    if matches!(vm.arg(&c, 0), Value::Undefined) {
        return Err(vm.type_error("CC needs a prompt: its first argument is what is asked"));
    }
    let prompt = vm.arg_str(&c, 0)?;
    let prompt = vm.st.heap.str(prompt).to_utf8();
    let options = match vm.arg(&c, 1) {
        Value::Undefined => None,
        Value::Obj(_) => Some(told(vm, &c, 1, "The second argument of CC")?),
        _ => return Err(vm.type_error("The second argument of CC must be an object")),
    };
    vm.st.sp = c.at - 2;
    Err(Raise::Wait(Box::new(Request::Task { prompt, options })))
}

/// An argument as JSON.
fn told(vm: &mut Vm<'_>, c: &Call, i: usize, what: &str) -> Res<String> {
    vm.told(vm.arg(c, i)).map_err(|untold| vm.type_error(&format!("{what} {}", untold.why())))
}

fn request(vm: &mut Vm<'_>, c: Call, name: &str) -> Res<Ret> {
    let list: Vec<String> =
        (0..c.argc).map(|i| told(vm, &c, i, &format!("An argument of {name}"))).collect::<Res<_>>()?;
    vm.st.sp = c.at - 2;
    Err(Raise::Wait(Box::new(Request::Host { name: name.to_owned(), args: format!("[{}]", list.join(",")) })))
}

fn print(vm: &mut Vm<'_>, c: Call, level: Level) -> Res<Ret> {
    let mut text = String::new();
    for i in 0..c.argc {
        if i > 0 {
            text.push(' ');
        }
        match vm.arg(&c, i) {
            Value::Str(id) => text.push_str(&vm.st.heap.str(id).to_utf8()),
            other => text.push_str(&vm.show(other)),
        }
    }
    vm.st.printed = vm.st.printed.saturating_add(text.len() as u64 + 1);
    if vm.st.printed > vm.st.limits.output_bytes {
        return Err(Raise::Limit(LimitKind::Output));
    }
    vm.st.output.push(Line { level, text });
    Ok(Value::Undefined.into())
}
