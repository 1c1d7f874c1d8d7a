//! `Iterator` and the prototypes of its helpers: ECMA-262 27.1. All methods call user code and are in `iterator_helpers.js` and
//! `iterator_more.js`.

use super::ids;
use super::natives::{Ctor, CtorCode, EMPTY, Module};

pub(super) const MODULE: Module = Module {
    ctors: &[Ctor {
        id: ids::ITERATOR,
        name: "Iterator",
        length: 0,
        code: CtorCode::Prelude("Iterator_"),
        proto: ids::ITERATOR_PROTO,
        parent: ids::FUNCTION_PROTO,
        proto_parent: ids::OBJECT_PROTO,
        global: true,
    }],
    lists: &[
        (ids::ITERATOR, "IteratorStatics"),
        (ids::ITERATOR, "IteratorMoreStatics"),
        (ids::ITERATOR_PROTO, "IteratorMethods"),
        (ids::ITERATOR_PROTO, "IteratorMoreMethods"),
        (ids::ITERATOR_HELPER_PROTO, "IteratorHelperMethods"),
        (ids::WRAP_ITERATOR_PROTO, "WrapIteratorMethods"),
    ],
    source: concat!(include_str!("iterator_helpers.js"), include_str!("iterator_more.js")),
    extra: |realm| {
        realm.heap.obj_mut(ids::ITERATOR_HELPER_PROTO).proto = ids::ITERATOR_PROTO;
        realm.heap.obj_mut(ids::WRAP_ITERATOR_PROTO).proto = ids::ITERATOR_PROTO;
        realm.tag(ids::ITERATOR_HELPER_PROTO, "Iterator Helper");
    },
    ..EMPTY
};
