//! The global object's own values and functions.

use super::ids;
use super::natives::{EMPTY, Module};
use crate::heap::object::{Array, ObjectKind, attr};
use crate::value::Value;

pub(super) const MODULE: Module = Module {
    extra: |r| {
        r.put(ids::GLOBAL, "undefined", Value::Undefined, 0);
        r.put(ids::GLOBAL, "NaN", Value::Num(f64::NAN), 0);
        r.put(ids::GLOBAL, "Infinity", Value::Num(f64::INFINITY), 0);
        r.put(ids::GLOBAL, "globalThis", Value::Obj(ids::GLOBAL), attr::HIDDEN);
        let empty = Array { dense: Vec::new(), len: 0, len_writable: true };
        let args = r.heap.new_object(ids::ARRAY_PROTO, ObjectKind::Array(empty));
        let env = r.heap.new_object(ids::OBJECT_PROTO, ObjectKind::Plain);
        r.put(ids::GLOBAL, "args", Value::Obj(args), attr::HIDDEN);
        r.put(ids::GLOBAL, "env", Value::Obj(env), attr::HIDDEN);
    },
    ..EMPTY
};
