//! Typed arrays: constructors and prototypes; `typed_array.js` has the methods, `elements` the natives.

use super::ids;
use super::natives::{Ctor, CtorCode, EMPTY, Module};
use crate::pure::elements::ElementType;
use crate::value::{Id, Value};

/// Type, constructor and prototype of each.
pub(super) const KINDS: &[(ElementType, Id, Id)] = &[
    (ElementType::Uint8Clamped, ids::UINT8_CLAMPED_ARRAY, ids::UINT8_CLAMPED_ARRAY_PROTO),
    (ElementType::Int8, ids::INT8_ARRAY, ids::INT8_ARRAY_PROTO),
    (ElementType::Uint8, ids::UINT8_ARRAY, ids::UINT8_ARRAY_PROTO),
    (ElementType::Int16, ids::INT16_ARRAY, ids::INT16_ARRAY_PROTO),
    (ElementType::Uint16, ids::UINT16_ARRAY, ids::UINT16_ARRAY_PROTO),
    (ElementType::Int32, ids::INT32_ARRAY, ids::INT32_ARRAY_PROTO),
    (ElementType::Uint32, ids::UINT32_ARRAY, ids::UINT32_ARRAY_PROTO),
    (ElementType::BigInt64, ids::BIG_INT64_ARRAY, ids::BIG_INT64_ARRAY_PROTO),
    (ElementType::BigUint64, ids::BIG_UINT64_ARRAY, ids::BIG_UINT64_ARRAY_PROTO),
    (ElementType::Float16, ids::FLOAT16_ARRAY, ids::FLOAT16_ARRAY_PROTO),
    (ElementType::Float32, ids::FLOAT32_ARRAY, ids::FLOAT32_ARRAY_PROTO),
    (ElementType::Float64, ids::FLOAT64_ARRAY, ids::FLOAT64_ARRAY_PROTO),
];

const fn ctor(id: Id, name: &'static str, code: &'static str, proto: Id) -> Ctor {
    Ctor {
        id,
        name,
        length: 3,
        code: CtorCode::Prelude(code),
        proto,
        parent: ids::TYPED_ARRAY,
        proto_parent: ids::TYPED_ARRAY_PROTO,
        global: true,
    }
}

pub(super) const MODULE: Module = Module {
    ctors: &[
        Ctor {
            id: ids::TYPED_ARRAY,
            name: "TypedArray",
            length: 0,
            code: CtorCode::Prelude("TypedArray_"),
            proto: ids::TYPED_ARRAY_PROTO,
            parent: ids::FUNCTION_PROTO,
            proto_parent: ids::OBJECT_PROTO,
            global: false,
        },
        ctor(ids::INT8_ARRAY, "Int8Array", "Int8Array_", ids::INT8_ARRAY_PROTO),
        ctor(ids::UINT8_ARRAY, "Uint8Array", "Uint8Array_", ids::UINT8_ARRAY_PROTO),
        ctor(
            ids::UINT8_CLAMPED_ARRAY,
            "Uint8ClampedArray",
            "Uint8ClampedArray_",
            ids::UINT8_CLAMPED_ARRAY_PROTO,
        ),
        ctor(ids::INT16_ARRAY, "Int16Array", "Int16Array_", ids::INT16_ARRAY_PROTO),
        ctor(ids::UINT16_ARRAY, "Uint16Array", "Uint16Array_", ids::UINT16_ARRAY_PROTO),
        ctor(ids::INT32_ARRAY, "Int32Array", "Int32Array_", ids::INT32_ARRAY_PROTO),
        ctor(ids::UINT32_ARRAY, "Uint32Array", "Uint32Array_", ids::UINT32_ARRAY_PROTO),
        ctor(ids::BIG_INT64_ARRAY, "BigInt64Array", "BigInt64Array_", ids::BIG_INT64_ARRAY_PROTO),
        ctor(ids::BIG_UINT64_ARRAY, "BigUint64Array", "BigUint64Array_", ids::BIG_UINT64_ARRAY_PROTO),
        ctor(ids::FLOAT16_ARRAY, "Float16Array", "Float16Array_", ids::FLOAT16_ARRAY_PROTO),
        ctor(ids::FLOAT32_ARRAY, "Float32Array", "Float32Array_", ids::FLOAT32_ARRAY_PROTO),
        ctor(ids::FLOAT64_ARRAY, "Float64Array", "Float64Array_", ids::FLOAT64_ARRAY_PROTO),
    ],
    lists: &[(ids::TYPED_ARRAY, "TypedArrayStatics"), (ids::TYPED_ARRAY_PROTO, "TypedArrayPrototype")],
    source: include_str!("typed_array.js"),
    extra: |realm| {
        realm.alias(ids::TYPED_ARRAY_PROTO, "values", "$$SYM_ITERATOR");
        realm.share(ids::ARRAY_PROTO, "toString", ids::TYPED_ARRAY_PROTO);
        for (element, constructor, proto) in KINDS {
            let size = Value::count(element.size());
            realm.put(*constructor, "BYTES_PER_ELEMENT", size, 0);
            realm.put(*proto, "BYTES_PER_ELEMENT", size, 0);
        }
    },
    ..EMPTY
};
