//! Access to the host: `CC`, `fs`, `args`, `env`. Requests and their results are data.

use super::ids;
use super::natives::{EMPTY, Module, method};
use crate::heap::object::{Array, ObjectKind, attr};
use crate::outcome::PendingRequest;
use crate::state::VmState;
use crate::value::{Id, Value};
use crate::vm::props::PropertyRead;
use crate::vm::{NativeCall, Raise, Res, Ret, Vm};

pub(super) const MODULE: Module = Module {
    methods: &[
        method(ids::GLOBAL, "CC", 1, cc),
        method(ids::FS, "readFile", 1, |vm, c| request(vm, c, "readFile")),
        method(ids::FS, "writeFile", 2, |vm, c| request(vm, c, "writeFile")),
        method(ids::FS, "listFiles", 0, |vm, c| request(vm, c, "listFiles")),
    ],
    extra: |r| {
        r.global("fs", Value::Obj(ids::FS));
    },
    ..EMPTY
};

/// Defines `args` and `env` on the global object of a new state.
pub(crate) fn install_inputs(state: &mut VmState, args: &[String], env: &[(String, String)]) {
    if args.is_empty() && env.is_empty() {
        // The realm has empty ones.
        return;
    }
    let heap = &mut state.heap;
    let dense: Vec<Value> = args.iter().map(|a| heap.str_value(a)).collect();
    let len = dense.len() as u32;
    let array =
        heap.new_object(ids::ARRAY_PROTO, ObjectKind::Array(Array { dense, len, len_writable: true }));
    let object = heap.new_object(ids::OBJECT_PROTO, ObjectKind::Plain);
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
fn cc(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let (prompt, options) = question(vm, &c, "CC")?;
    vm.st.sp = c.at - 2;
    Err(Raise::Wait(Box::new(PendingRequest::Task { prompt, options })))
}

/// The prompt of a question, and its options as JSON; `function` is the name of the called one.
pub(super) fn question(vm: &mut Vm<'_>, c: &NativeCall, function: &str) -> Res<(String, Option<String>)> {
    match vm.arg(c, 0) {
        Value::Undefined => {
            return Err(vm.type_error(&format!("{function} needs a prompt as its first argument")));
        }
        Value::Str(_) | Value::Int(_) | Value::Num(_) | Value::Bool(_) => {}
        other => return Err(wrong_type(vm, &format!("The first argument of {function}"), "a string", other)),
    }
    let prompt = vm.arg_str(c, 0)?;
    let prompt = vm.st.heap.str(prompt).to_utf8();
    let second = format!("The second argument of {function}");
    let options = match vm.arg(c, 1) {
        Value::Undefined => None,
        Value::Obj(id) => {
            check_options(vm, id, function)?;
            Some(export_json(vm, Value::Obj(id), &second)?)
        }
        other => return Err(wrong_type(vm, &second, "an object", other)),
    };
    Ok((prompt, options))
}

fn check_options(vm: &mut Vm<'_>, options: Id, function: &str) -> Res<()> {
    for option in ["schema", "timeout_ms", "default", "retries"] {
        if let Some(given) = own_option(vm, options, function, option)? {
            check_option(vm, option, &format!("The option {option} of {function}"), given)?;
        }
    }
    Ok(())
}

/// The value of an option. Options that the export as JSON would leave out or make null, which means that they are not given, are
/// errors.
pub(super) fn own_option(vm: &mut Vm<'_>, options: Id, function: &str, option: &str) -> Res<Option<Value>> {
    let key = vm.st.heap.key(option);
    let what = format!("The option {option} of {function}");
    let Some(own) = vm.get_own(options, key) else {
        if !matches!(vm.get(options, key), PropertyRead::Value(Value::Undefined)) {
            return Err(vm.type_error(&format!("{what} is inherited: it must be the object's own property")));
        }
        return Ok(None);
    };
    let given = if own.flags & attr::ACCESSOR == 0 { Some(own.value) } else { vm.exported_value(own.value) };
    let Some(given) = given.filter(|_| own.flags & attr::E != 0) else {
        let message = format!("{what} is an accessor or not enumerable: it must be a plain property");
        return Err(vm.type_error(&message));
    };
    Ok(Some(given))
}

/// Refuses a value that its export as JSON would change to one that means something else.
pub(super) fn check_option(vm: &mut Vm<'_>, option: &str, what: &str, given: Value) -> Res<()> {
    let is_date = |value: Value| {
        value.as_obj().is_some_and(|id| matches!(vm.st.heap.obj(id).kind, ObjectKind::Date(_)))
    };
    let value = match given {
        Value::Obj(id) => match vm.st.heap.obj(id).kind {
            ObjectKind::Primitive(inside) => inside,
            _ => given,
        },
        _ => given,
    };
    let wanted = match option {
        "schema" => "an object",
        "default" => "a value that JSON can hold",
        _ => "a number",
    };
    match value {
        Value::Num(number) if !number.is_finite() && option != "schema" => {
            let shown = vm.plain_text(value);
            Err(vm.range_error(&format!("{what} must be a finite number, not {shown}")))
        }
        Value::Sym(_) => Err(wrong_type(vm, what, wanted, value)),
        _ if vm.is_callable(value) => Err(wrong_type(vm, what, wanted, value)),
        // The text of a date would be refused later, but not of one that is none.
        _ if option != "default" && is_date(value) => Err(wrong_type(vm, what, wanted, value)),
        _ => Ok(()),
    }
}

/// A value as JSON.
pub(super) fn export_json(vm: &mut Vm<'_>, value: Value, what: &str) -> Res<String> {
    vm.export_json(value).map_err(|error| vm.type_error(&format!("{what} {}", error.why())))
}

/// A `TypeError` that names what was passed.
pub(super) fn wrong_type(vm: &mut Vm<'_>, what: &str, wanted: &str, found: Value) -> Raise {
    let found = match found {
        Value::Obj(id) if matches!(vm.st.heap.obj(id).kind, ObjectKind::Array(_)) => "an array",
        Value::Obj(_) if vm.is_callable(found) => "a function",
        Value::Obj(_) => "an object",
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Int(_) | Value::Num(_) => "a number",
        Value::Big(_) => "a bigint",
        Value::Str(_) => "a string",
        Value::Sym(_) => "a symbol",
        _ => "undefined",
    };
    vm.type_error(&format!("{what} must be {wanted}, not {found}"))
}

/// The types of the arguments of `fs`: the path, then the text or the options.
fn check_files_call(vm: &mut Vm<'_>, c: &NativeCall, name: &str) -> Res<()> {
    let (first, second) = (vm.arg(c, 0), vm.arg(c, 1));
    let path_is_optional = name == "listFiles";
    if !(matches!(first, Value::Str(_)) || path_is_optional && first == Value::Undefined) {
        return Err(wrong_type(vm, &format!("The path of {name}"), "a string", first));
    }
    let fits = match name {
        "writeFile" => matches!(second, Value::Str(_)),
        "listFiles" => {
            second == Value::Undefined || (matches!(second, Value::Obj(_)) && !vm.is_callable(second))
        }
        _ => true,
    };
    if fits {
        return if name == "listFiles" { check_list_options(vm, second) } else { Ok(()) };
    }
    let (what, wanted) =
        if name == "writeFile" { ("The text", "a string") } else { ("The second argument", "an object") };
    Err(wrong_type(vm, &format!("{what} of {name}"), wanted, second))
}

/// The types of the options of `listFiles`; others are ignored, as Node does.
fn check_list_options(vm: &mut Vm<'_>, options: Value) -> Res<()> {
    let Value::Obj(id) = options else { return Ok(()) };
    for (option, wanted) in [("recursive", "a boolean"), ("filter", "a string")] {
        let key = vm.st.heap.key(option);
        let given = vm.st.heap.obj(id).props.get(key).filter(|prop| prop.flags & attr::ACCESSOR == 0);
        match (option, given.map_or(Value::Undefined, |prop| prop.value)) {
            (_, Value::Undefined | Value::Null)
            | ("recursive", Value::Bool(_))
            | ("filter", Value::Str(_)) => {}
            (_, other) => {
                return Err(wrong_type(vm, &format!("The option {option} of listFiles"), wanted, other));
            }
        }
    }
    Ok(())
}

fn argument_json(vm: &mut Vm<'_>, c: &NativeCall, i: usize, name: &str) -> Res<String> {
    let argument = vm.arg(c, i);
    export_json(vm, argument, &format!("An argument of {name}"))
}

fn request(vm: &mut Vm<'_>, c: NativeCall, name: &str) -> Res<Ret> {
    check_files_call(vm, &c, name)?;
    let list: Vec<String> = (0..c.argc).map(|i| argument_json(vm, &c, i, name)).collect::<Res<_>>()?;
    vm.st.sp = c.at - 2;
    Err(Raise::Wait(Box::new(PendingRequest::Host {
        name: name.to_owned(),
        args: format!("[{}]", list.join(",")),
    })))
}
