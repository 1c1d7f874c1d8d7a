//! `DisposableStack`, `AsyncDisposableStack` and `SuppressedError`: ECMA-262 20.5.8, 27.3 and 27.4. All methods call user code and
//! are in `dispose.js`.

use super::error::ctor;
use super::ids;
use super::natives::{EMPTY, Module};
use crate::heap::object::attr;
use crate::value::Value;

pub(super) const MODULE: Module = Module {
    intrinsics: &[("referenceError", |vm, c| {
        let text = vm.arg_text(&c, 0);
        Err(vm.reference_error(&text))
    })],
    ctors: &[
        ctor(
            ids::DISPOSABLE_STACK,
            "DisposableStack",
            "DisposableStack_",
            0,
            ids::DISPOSABLE_STACK_PROTO,
            true,
        ),
        ctor(
            ids::ASYNC_DISPOSABLE_STACK,
            "AsyncDisposableStack",
            "AsyncDisposableStack_",
            0,
            ids::ASYNC_DISPOSABLE_STACK_PROTO,
            true,
        ),
        ctor(
            ids::SUPPRESSED_ERROR,
            "SuppressedError",
            "SuppressedError_",
            3,
            ids::SUPPRESSED_ERROR_PROTO,
            false,
        ),
    ],
    lists: &[
        (ids::DISPOSABLE_STACK_PROTO, "DisposableStackMethods"),
        (ids::ASYNC_DISPOSABLE_STACK_PROTO, "AsyncDisposableStackMethods"),
        (ids::ITERATOR_PROTO, "IteratorDispose"),
        (ids::ASYNC_ITERATOR_PROTO, "AsyncIteratorDisposeMethods"),
    ],
    source: include_str!("dispose.js"),
    extra: |r| {
        r.alias(ids::DISPOSABLE_STACK_PROTO, "dispose", "$$SYM_DISPOSE");
        r.alias(ids::ASYNC_DISPOSABLE_STACK_PROTO, "disposeAsync", "$$SYM_ASYNC_DISPOSE");
        r.tag(ids::DISPOSABLE_STACK_PROTO, "DisposableStack");
        r.tag(ids::ASYNC_DISPOSABLE_STACK_PROTO, "AsyncDisposableStack");
        let name = r.heap.str_value("SuppressedError");
        r.put(ids::SUPPRESSED_ERROR_PROTO, "name", name, attr::HIDDEN);
        r.put(ids::SUPPRESSED_ERROR_PROTO, "message", Value::Str(ids::EMPTY), attr::HIDDEN);
    },
    ..EMPTY
};
