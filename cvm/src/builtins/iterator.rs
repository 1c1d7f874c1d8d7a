//! Prototypes of iterators.

use super::ids;
use super::natives::{EMPTY, Module};

pub(super) const MODULE: Module = Module {
    lists: &[
        (ids::ARRAY_ITERATOR_PROTO, "ArrayIteratorPrototype"),
        (ids::ITERATOR_PROTO, "IteratorPrototype"),
        (ids::ASYNC_ITERATOR_PROTO, "AsyncIteratorPrototype"),
    ],
    source: include_str!("iterator.js"),
    extra: |r| {
        r.heap.obj_mut(ids::ARRAY_ITERATOR_PROTO).proto = ids::ITERATOR_PROTO;
        r.tag(ids::ARRAY_ITERATOR_PROTO, "Array Iterator");
        r.pin(ids::ARRAY_ITERATOR_PROTO, "next", ids::ARRAY_ITERATOR_NEXT);
    },
    ..EMPTY
};
