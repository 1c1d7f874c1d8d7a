//! `Array.prototype` beyond the first methods: quick versions for plain dense arrays, `Symbol.unscopables`.
//!
//! Owns: operations that do not access properties of unknown objects. Everything else is in `array_methods.js`.

use super::ids;
use super::natives::{EMPTY, Module};
use crate::heap::object::{ObjectKind, attr};
use crate::value::{Id, Value};

/// Names that `with` statements of old scripts must not see, 23.1.3.41.
const UNSCOPABLE: &[&str] = &[
    "at",
    "copyWithin",
    "entries",
    "fill",
    "find",
    "findIndex",
    "findLast",
    "findLastIndex",
    "flat",
    "flatMap",
    "includes",
    "keys",
    "toReversed",
    "toSorted",
    "toSpliced",
    "values",
];

pub(super) const MODULE: Module = Module {
    lists: &[(ids::ARRAY_PROTO, "ArrayMore"), (ids::ARRAY, "ArrayMoreStatics")],
    source: include_str!("array_methods.js"),
    extra: |realm| {
        let list = realm.heap.new_object(Id::NONE, ObjectKind::Plain);
        for name in UNSCOPABLE {
            realm.put(list, name, Value::Bool(true), attr::ALL);
        }
        realm.put(ids::ARRAY_PROTO, "$$SYM_UNSCOPABLES", Value::Obj(list), attr::C);
    },
    ..EMPTY
};
