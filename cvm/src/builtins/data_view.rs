//! `DataView`: reading and writing of numbers at byte positions, ECMA-262 25.3.1.5 and 25.3.1.6. The constructor and the getters are
//! in `array_buffer.js`.

use super::ids;
use super::natives::{Ctor, CtorCode, EMPTY, Module, method};
use crate::pure::elements::{ElementType, ElementValue};
use crate::value::Value;
use crate::vm::elements::low_bits;
use crate::vm::{NativeCall, Res, Ret, Vm};
use num_bigint::BigInt;

macro_rules! accessors {
    ($($get:literal $set:literal $type:ident)*) => {
        &[$(
            method(ids::DATA_VIEW_PROTO, $get, 1, |vm, c| get(vm, c, ElementType::$type, $get)),
            method(ids::DATA_VIEW_PROTO, $set, 2, |vm, c| set(vm, c, ElementType::$type, $set)),
        )*]
    };
}

pub(super) const MODULE: Module = Module {
    intrinsics: &[("isDataView", |vm, c| Ok(Value::Bool(is_data_view(vm, vm.arg(&c, 0))).into()))],
    methods: accessors! {
        "getInt8" "setInt8" Int8
        "getUint8" "setUint8" Uint8
        "getInt16" "setInt16" Int16
        "getUint16" "setUint16" Uint16
        "getInt32" "setInt32" Int32
        "getUint32" "setUint32" Uint32
        "getBigInt64" "setBigInt64" BigInt64
        "getBigUint64" "setBigUint64" BigUint64
        "getFloat16" "setFloat16" Float16
        "getFloat32" "setFloat32" Float32
        "getFloat64" "setFloat64" Float64
    },
    ctors: &[Ctor {
        id: ids::DATA_VIEW,
        name: "DataView",
        length: 1,
        code: CtorCode::Prelude("DataView_"),
        proto: ids::DATA_VIEW_PROTO,
        parent: ids::FUNCTION_PROTO,
        proto_parent: ids::OBJECT_PROTO,
        global: true,
    }],
    extra: |realm| realm.tag(ids::DATA_VIEW_PROTO, "DataView"),
    ..EMPTY
};

fn is_data_view(vm: &Vm<'_>, value: Value) -> bool {
    vm.st.heap.view(value).is_some_and(|view| view.element.is_none())
}

/// `this`, and the position from the first argument.
fn receiver(vm: &mut Vm<'_>, c: &NativeCall, name: &str) -> Res<(Value, usize)> {
    let this = vm.this(c);
    if !is_data_view(vm, this) {
        let shown = vm.brief(this);
        return Err(vm.type_error(&format!(
            "Method DataView.prototype.{name} called on incompatible receiver {shown}"
        )));
    }
    Ok((this, vm.arg_index(c, 0, "offset")?))
}

/// Position of the value in the buffer, and the buffer.
fn located(
    vm: &mut Vm<'_>,
    this: Value,
    index: usize,
    size: usize,
) -> Res<(crate::value::Id, std::ops::Range<usize>)> {
    let Some(view) = vm.st.heap.view(this) else { return Err(crate::vm::Raise::Fault("view")) };
    if vm.st.heap.count_of(view).is_none() {
        return Err(vm.type_error("Cannot perform the operation on a detached or out-of-bounds buffer"));
    }
    let range = index.checked_add(size).and_then(|end| vm.st.heap.range_of(view, index, end));
    match range {
        Some(range) => Ok((view.buffer, range)),
        None => Err(vm.range_error("Offset is outside the bounds of the DataView")),
    }
}

fn get(vm: &mut Vm<'_>, c: NativeCall, element: ElementType, name: &str) -> Res<Ret> {
    let (this, index) = receiver(vm, &c, name)?;
    let little = vm.truthy(vm.arg(&c, 1));
    let (buffer, range) = located(vm, this, index, element.size())?;
    let mut bytes = vm.st.heap.bytes_at(buffer, range).unwrap_or_default().to_vec();
    if !little {
        bytes.reverse();
    }
    Ok(match element.read(&bytes) {
        ElementValue::Number(n) => Value::num(n),
        ElementValue::Integer(n) => vm.st.heap.new_big(BigInt::from(n)),
    }
    .into())
}

fn set(vm: &mut Vm<'_>, c: NativeCall, element: ElementType, name: &str) -> Res<Ret> {
    let (this, index) = receiver(vm, &c, name)?;
    let value = if element.is_big() {
        ElementValue::Integer(low_bits(&super::bigint::to_bigint(vm, &c, 1)?))
    } else {
        ElementValue::Number(vm.arg_number(&c, 1)?)
    };
    let little = vm.truthy(vm.arg(&c, 2));
    let (buffer, range) = located(vm, this, index, element.size())?;
    let mut bytes = element.write(value);
    let Some(bytes) = bytes.get_mut(..element.size()) else { return Ok(Value::Undefined.into()) };
    if !little {
        bytes.reverse();
    }
    if let Some(to) = vm.st.heap.bytes_at_mut(buffer, range) {
        to.copy_from_slice(bytes);
    }
    Ok(Value::Undefined.into())
}
