//! Intrinsics that the prelude builds on: types, conversions, the property model, records.
//!
//! Owns: the `$name` functions that belong to no builtin object. Must not: run user code.

use super::ids;
use super::natives::{EMPTY, Module};
use crate::heap::object::{ObjectKind, attr};
use crate::value::{Id, Value};
use crate::vm::define::Desc;
use crate::vm::{NativeCall, Res, Ret, Vm};

pub(super) const MODULE: Module = Module {
    intrinsics: &[
        ("isObject", |vm, c| Ok(Value::Bool(vm.arg(&c, 0).is_object()).into())),
        ("isCallable", |vm, c| Ok(Value::Bool(vm.is_callable(vm.arg(&c, 0))).into())),
        ("isConstructor", |vm, c| Ok(Value::Bool(vm.is_constructor(vm.arg(&c, 0))).into())),
        ("nothing", |_, _| Ok(Value::Undefined.into())),
        ("isMarker", |vm, c| Ok(Value::Bool(vm.arg(&c, 0) == Value::Hole).into())),
        ("isProxy", is_proxy),
        ("isArray", is_array),
        ("typeError", |vm, c| {
            let text = vm.arg_text(&c, 0);
            Err(vm.type_error(&text))
        }),
        ("rangeError", |vm, c| {
            let text = vm.arg_text(&c, 0);
            Err(vm.range_error(&text))
        }),
        ("syntaxError", |vm, c| {
            let text = vm.arg_text(&c, 0);
            Err(vm.syntax_error(&text))
        }),
        ("shown", |vm, c| {
            let text = vm.brief(vm.arg(&c, 0));
            Ok(vm.st.heap.str_value(text.trim_matches('"')).into())
        }),
        ("toObject", to_object),
        ("toLength", |vm, c| {
            let n = vm.arg_int(&c, 0)?;
            Ok(Value::num(n.clamp(0.0, 9_007_199_254_740_991.0)).into())
        }),
        ("toInteger", |vm, c| Ok(Value::num(vm.arg_int(&c, 0)?).into())),
        ("toNumber", |vm, c| Ok(Value::num(vm.arg_number(&c, 0)?).into())),
        ("toUint32", |vm, c| {
            Ok(Value::num(f64::from(crate::pure::number::to_uint32(vm.arg_number(&c, 0)?))).into())
        }),
        ("sameValue", |vm, c| Ok(Value::Bool(vm.same_value(vm.arg(&c, 0), vm.arg(&c, 1))).into())),
        ("sameValueZero", |vm, c| {
            let (a, b) = (vm.arg(&c, 0), vm.arg(&c, 1));
            let zero = a.as_num() == Some(0.0) && b.as_num() == Some(0.0);
            Ok(Value::Bool(zero || vm.same_value(a, b)).into())
        }),
        ("create", create),
        ("push", push),
        ("createData", create_data),
        ("ownKeys", own_keys),
        ("getProto", get_proto),
        ("setProto", set_proto),
        ("getOwn", get_own),
        ("defineOwn", define_own),
        ("delete", delete),
        ("ownEnumerable", own_enumerable),
        ("isExtensible", |vm, c| {
            let id = vm.arg_obj(&c, 0)?;
            Ok(Value::Bool(vm.st.heap.obj(id).extensible).into())
        }),
        ("preventExtensions", |vm, c| {
            let id = vm.arg_obj(&c, 0)?;
            Ok(Value::Bool(vm.prevent_extensions(id)).into())
        }),
        ("includesKey", includes_key),
        ("boundTarget", |vm, c| {
            let id = vm.arg_obj(&c, 0)?;
            Ok(match &vm.st.heap.obj(id).kind {
                ObjectKind::Bound(b) => b.0,
                _ => Value::Undefined,
            }
            .into())
        }),
        ("enter", enter),
        ("heritage", heritage),
        ("record", record),
        ("recordTag", record_tag),
        ("recordGet", record_get),
        ("recordSet", record_set),
        ("activeFunction", |vm, _| {
            let base = vm.st.frames.last().map_or(0, |f| f.base as usize);
            Ok(vm.slot(base).into())
        }),
    ],
    source: include_str!("core.js"),
    ..EMPTY
};

impl Vm<'_> {
    /// A string argument of the prelude as text.
    pub(crate) fn arg_text(&self, call: &NativeCall, i: usize) -> String {
        self.plain_text(self.arg(call, i))
    }
}

fn is_proxy(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let is =
        matches!(vm.arg(&c, 0), Value::Obj(id) if matches!(vm.st.heap.obj(id).kind, ObjectKind::Proxy(_)));
    Ok(Value::Bool(is).into())
}

/// `IsArray`
fn is_array(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let mut value = vm.arg(&c, 0);
    for _ in 0..10_000 {
        let Value::Obj(id) = value else { return Ok(Value::Bool(false).into()) };
        match &vm.st.heap.obj(id).kind {
            ObjectKind::Array(_) => return Ok(Value::Bool(true).into()),
            ObjectKind::Proxy(p) if p.1 == Value::Null => {
                return Err(vm.type_error("Cannot perform 'IsArray' on a proxy that has been revoked"));
            }
            ObjectKind::Proxy(p) => value = p.0,
            _ => return Ok(Value::Bool(false).into()),
        }
    }
    Ok(Value::Bool(false).into())
}

fn to_object(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    match vm.object_of(vm.arg(&c, 0)) {
        Some(id) => Ok(Value::Obj(id).into()),
        None => Err(vm.type_error("Cannot convert undefined or null to object")),
    }
}

/// `$create(proto)`: an ordinary object.
fn create(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let proto = vm.arg(&c, 0).as_obj().unwrap_or(Id::NONE);
    Ok(Value::Obj(vm.st.heap.new_object(proto, ObjectKind::Plain)).into())
}

/// `$push(list, value)` on an internal array.
fn push(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let value = vm.arg(&c, 1);
    if let Value::Obj(id) = vm.arg(&c, 0) {
        let item = match &vm.st.heap.obj(id).kind {
            ObjectKind::Array(a) => a.dense.len(),
            _ => 0,
        };
        if let ObjectKind::Array(a) = &mut vm.st.heap.obj_item(id, item).kind {
            a.dense.push(value);
            a.len += 1;
        }
        vm.st.heap.charge(16);
    }
    Ok(Value::Undefined.into())
}

/// `CreateDataProperty` on anything but a proxy; undefined if the value must be converted to an element of a typed array first.
fn create_data(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let id = vm.arg_obj(&c, 0)?;
    let key = vm.arg_key(&c, 1)?;
    let value = vm.arg(&c, 2);
    if vm.must_convert(id, key, value) {
        return Ok(Value::Undefined.into());
    }
    Ok(Value::Bool(vm.define_own(id, key, &Desc::data(value, attr::ALL))).into())
}

fn own_keys(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let id = vm.arg_obj(&c, 0)?;
    let keys = vm.own_keys(id);
    let values = keys.into_iter().map(|k| vm.st.heap.key_value(k)).collect();
    Ok(vm.new_array(values).into())
}

fn get_proto(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let id = vm.arg_obj(&c, 0)?;
    let proto = vm.st.heap.obj(id).proto;
    Ok(proto.some().map_or(Value::Null, Value::Obj).into())
}

fn set_proto(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let id = vm.arg_obj(&c, 0)?;
    let proto = vm.arg(&c, 1).as_obj().unwrap_or(Id::NONE);
    Ok(Value::Bool(vm.set_proto(id, proto)).into())
}

/// The own property as a descriptor object without a prototype, or undefined.
fn get_own(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let id = vm.arg_obj(&c, 0)?;
    let key = vm.arg_key(&c, 1)?;
    let Some(own) = vm.get_own(id, key) else { return Ok(Value::Undefined.into()) };
    let d = vm.st.heap.new_object(Id::NONE, ObjectKind::Plain);
    if own.flags & attr::ACCESSOR == 0 {
        let value = match own.value {
            Value::Hole => match vm.get(id, key) {
                crate::vm::props::PropertyRead::Value(v) => v,
                _ => Value::Undefined,
            },
            v => v,
        };
        vm.create(d, ids::key(ids::VALUE), value);
        vm.create(d, ids::key(ids::WRITABLE), Value::Bool(own.flags & attr::W != 0));
    } else {
        let (get, set) = vm.st.heap.pair(own.value);
        vm.create(d, ids::key(ids::GET), get);
        vm.create(d, ids::key(ids::SET), set);
    }
    vm.create(d, ids::key(ids::ENUMERABLE), Value::Bool(own.flags & attr::E != 0));
    vm.create(d, ids::key(ids::CONFIGURABLE), Value::Bool(own.flags & attr::C != 0));
    Ok(Value::Obj(d).into())
}

/// Reads a descriptor that `ToPropertyDescriptor` created.
pub(super) fn read_desc(vm: &Vm<'_>, d: Id) -> Desc {
    let field = |id: Id| vm.st.heap.obj(d).props.get(ids::key(id)).map(|p| p.value);
    let mut desc =
        Desc { value: field(ids::VALUE), get: field(ids::GET), set: field(ids::SET), flags: 0, mask: 0 };
    for (name, bit) in [(ids::WRITABLE, attr::W), (ids::ENUMERABLE, attr::E), (ids::CONFIGURABLE, attr::C)] {
        if let Some(v) = field(name) {
            desc.mask |= bit;
            if v == Value::Bool(true) {
                desc.flags |= bit;
            }
        }
    }
    desc
}

/// `$defineOwn(object, key, descriptor)`; undefined if the value must be converted to an element of a typed array first.
fn define_own(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let id = vm.arg_obj(&c, 0)?;
    let key = vm.arg_key(&c, 1)?;
    let d = vm.arg_obj(&c, 2)?;
    let desc = read_desc(vm, d);
    if key == crate::vm::props::LENGTH
        && matches!(vm.st.heap.obj(id).kind, ObjectKind::Array(_))
        && let Some(value) = desc.value
    {
        // ArraySetLength converts twice; the prelude has stored a number here.
        let n = vm.prim_number(value)?;
        if n < 0.0 || n != f64::from(n as u32) {
            return Err(vm.range_error("Invalid array length"));
        }
    }
    if desc.value.is_some_and(|value| vm.must_convert(id, key, value)) {
        return Ok(Value::Undefined.into());
    }
    Ok(Value::Bool(vm.define_own(id, key, &desc)).into())
}

fn delete(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let id = vm.arg_obj(&c, 0)?;
    let key = vm.arg_key(&c, 1)?;
    Ok(Value::Bool(vm.delete(id, key)).into())
}

/// The attribute `enumerable` of an own property; undefined if it does not exist.
fn own_enumerable(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let id = vm.arg_obj(&c, 0)?;
    let key = vm.arg_key(&c, 1)?;
    Ok(vm.get_own(id, key).map_or(Value::Undefined, |o| Value::Bool(o.flags & attr::E != 0)).into())
}

/// `$includesKey(list, key)`
fn includes_key(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let key = vm.arg(&c, 1);
    let found = match vm.dense(vm.arg(&c, 0)) {
        Some(a) => a.dense.iter().any(|v| vm.same_key(*v, key)),
        None => false,
    };
    Ok(Value::Bool(found).into())
}

impl Vm<'_> {
    fn same_key(&self, a: Value, b: Value) -> bool {
        match (a, b) {
            (Value::Int(_), Value::Str(_)) => self.plain_text(a) == self.plain_text(b),
            (Value::Str(_), Value::Int(_)) => self.plain_text(a) == self.plain_text(b),
            _ => self.strict_equal(a, b),
        }
    }
}

/// `$enter(f, newTarget, this, args)`: runs a base constructor's code on an existing object.
fn enter(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let (f, target, this, args) = (vm.arg(&c, 0), vm.arg(&c, 1), vm.arg(&c, 2), vm.arg(&c, 3));
    vm.st.sp = c.at;
    vm.push(f);
    vm.push(this);
    vm.push(args);
    let argc = vm.spread_args()?;
    Ok(Ret::Enter(argc, target))
}

/// `$heritage(parent, prototype)`: a stand-in for a parent class if its `prototype` is not a plain property.
fn heritage(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let (parent, proto) = (vm.arg(&c, 0), vm.arg(&c, 1));
    let id = vm
        .st
        .heap
        .new_object(Id::NONE, ObjectKind::Bound(Box::new((parent, Value::Undefined, vec![Value::Uninit]))));
    vm.create(id, ids::key(ids::PROTOTYPE), proto);
    Ok(Value::Obj(id).into())
}

/// `$record(tag, proto, slots…)`: an object with internal slots.
fn record(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let tag = match vm.arg(&c, 0) {
        Value::Int(i) => i as u32,
        _ => 0,
    };
    let proto = vm.arg(&c, 1).as_obj().unwrap_or(Id::NONE);
    let slots = (2..c.argc).map(|i| vm.arg(&c, i)).collect();
    Ok(Value::Obj(vm.st.heap.new_object(proto, ObjectKind::Record(tag, slots))).into())
}

/// `$recordTag(value)`: the tag, or 0 for anything else.
fn record_tag(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let tag = match vm.arg(&c, 0) {
        Value::Obj(id) => match vm.st.heap.obj(id).kind {
            ObjectKind::Record(tag, _) => tag,
            _ => 0,
        },
        _ => 0,
    };
    Ok(Value::Int(tag as i32).into())
}

fn record_get(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let (Value::Obj(id), Value::Int(i)) = (vm.arg(&c, 0), vm.arg(&c, 1)) else {
        return Ok(Value::Undefined.into());
    };
    Ok(match &vm.st.heap.obj(id).kind {
        ObjectKind::Record(_, slots) => slots.get(i as usize).copied().unwrap_or(Value::Undefined),
        _ => Value::Undefined,
    }
    .into())
}

fn record_set(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let (Value::Obj(id), Value::Int(i)) = (vm.arg(&c, 0), vm.arg(&c, 1)) else {
        return Ok(Value::Undefined.into());
    };
    let value = vm.arg(&c, 2);
    if let ObjectKind::Record(_, slots) = &mut vm.st.heap.obj_mut(id).kind
        && let Some(slot) = slots.get_mut(i as usize)
    {
        *slot = value;
    }
    Ok(Value::Undefined.into())
}
