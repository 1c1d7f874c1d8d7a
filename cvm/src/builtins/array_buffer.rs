//! `ArrayBuffer`: natives on the bytes of buffers; `array_buffer.js` has the methods.

use super::ids;
use super::natives::{Ctor, CtorCode, EMPTY, Module};
use crate::heap::object::{ByteBuffer, ByteView, ObjectKind};
use crate::pure::elements::ElementType;
use crate::value::{Id, Value};
use crate::vm::{NativeCall, Res, Ret, Vm};
use num_traits::ToPrimitive;

pub(super) const MODULE: Module = Module {
    intrinsics: &[
        ("toIndex", |vm, c| {
            let what = vm.arg_text(&c, 1);
            vm.arg_index(&c, 0, &what).map(|n| Value::count(n).into())
        }),
        ("bufferNew", buffer_new),
        ("bufferLength", buffer_length),
        ("bufferMax", |vm, c| {
            let max = vm.arg(&c, 0).as_obj().and_then(|id| vm.st.heap.buffer(id)?.max);
            Ok(max.map_or(Value::Undefined, |max| Value::num(max as f64)).into())
        }),
        ("bufferResize", buffer_resize),
        ("bufferTransfer", buffer_transfer),
        ("bufferMove", buffer_move),
        ("bytesCopy", bytes_copy),
        ("isView", |vm, c| Ok(Value::Bool(vm.st.heap.view(vm.arg(&c, 0)).is_some()).into())),
        ("viewNew", view_new),
        ("viewCount", |vm, c| {
            let view = vm.st.heap.view(vm.arg(&c, 0));
            let count = view.and_then(|view| vm.st.heap.count_of(view));
            Ok(count.map_or(Value::Int(-1), Value::count).into())
        }),
        ("viewBuffer", |vm, c| {
            let view = vm.st.heap.view(vm.arg(&c, 0));
            Ok(view.map_or(Value::Undefined, |view| Value::Obj(view.buffer)).into())
        }),
        ("viewOffset", |vm, c| {
            let view = vm.st.heap.view(vm.arg(&c, 0));
            Ok(view.map_or(Value::Int(0), |view| Value::num(view.offset as f64)).into())
        }),
        ("viewTracks", |vm, c| {
            Ok(Value::Bool(vm.st.heap.view(vm.arg(&c, 0)).is_some_and(|view| view.length.is_none())).into())
        }),
    ],
    ctors: &[Ctor {
        id: ids::ARRAY_BUFFER,
        name: "ArrayBuffer",
        length: 1,
        code: CtorCode::Prelude("ArrayBuffer_"),
        proto: ids::ARRAY_BUFFER_PROTO,
        parent: ids::FUNCTION_PROTO,
        proto_parent: ids::OBJECT_PROTO,
        global: true,
    }],
    lists: &[
        (ids::ARRAY_BUFFER, "ArrayBufferStatics"),
        (ids::ARRAY_BUFFER_PROTO, "ArrayBufferPrototype"),
        (ids::DATA_VIEW_PROTO, "DataViewPrototype"),
    ],
    source: include_str!("array_buffer.js"),
    extra: |realm| realm.tag(ids::ARRAY_BUFFER_PROTO, "ArrayBuffer"),
    ..EMPTY
};

/// Bytes that cost as much fuel as one instruction when they are filled or copied.
const BYTES_PER_INSTRUCTION: usize = 256;

impl Vm<'_> {
    /// Charges work to the program: it is deducted before the next instruction, whatever fuel is left.
    pub(crate) fn charge_work(&mut self, instructions: usize) {
        if instructions > 0 {
            self.st.debt = self.st.debt.saturating_add(instructions as u64);
            self.st.heap.attention = true;
        }
    }

    /// Charges filling or copying of bytes.
    pub(super) fn charge_bytes(&mut self, bytes: usize) {
        self.charge_work(bytes / BYTES_PER_INSTRUCTION);
    }

    /// Bytes for a buffer, all 0; a `RangeError` if no program with this memory limit could have so many.
    fn new_bytes(&mut self, length: f64) -> Res<Vec<u8>> {
        match length.to_usize().filter(|n| *n as u64 <= self.st.heap.limit.min(u64::from(u32::MAX))) {
            Some(n) => {
                self.charge_bytes(n);
                Ok(vec![0; n])
            }
            None => Err(self.range_error("Array buffer allocation failed")),
        }
    }

    /// A new buffer with these bytes.
    pub(super) fn new_buffer(&mut self, proto: Id, bytes: Vec<u8>, max: Option<u64>) -> Id {
        let buffer = ByteBuffer { bytes, max, detached: false };
        self.st.heap.new_object(proto, ObjectKind::Buffer(Box::new(buffer)))
    }

    /// A new `Uint8Array` with these bytes.
    pub(super) fn new_uint8_array(&mut self, bytes: Vec<u8>) -> Value {
        self.charge_bytes(bytes.len());
        let length = Some(bytes.len() as u64);
        let buffer = self.new_buffer(ids::ARRAY_BUFFER_PROTO, bytes, None);
        let view = ByteView { element: Some(ElementType::Uint8), buffer, offset: 0, length };
        Value::Obj(self.st.heap.new_object(ids::UINT8_ARRAY_PROTO, ObjectKind::View(Box::new(view))))
    }

    /// The bytes of a buffer or of what a view sees of one; none for other values, empty if detached or out of bounds.
    pub(super) fn bytes_of(&self, value: Value) -> Option<&[u8]> {
        if let Some(view) = self.st.heap.view(value) {
            let range = self.st.heap.count_of(view).and_then(|count| self.st.heap.range_of(view, 0, count));
            return Some(
                range.and_then(|range| self.st.heap.bytes_at(view.buffer, range)).unwrap_or_default(),
            );
        }
        self.st.heap.buffer(value.as_obj()?).map(|buffer| buffer.bytes.as_slice())
    }
}

/// A length that the prelude has checked.
fn max_of(vm: &Vm<'_>, c: &NativeCall, i: usize) -> Option<u64> {
    vm.arg(c, i).as_num().and_then(|max| max.to_u64())
}

/// `$bufferNew(proto, length, max)`
fn buffer_new(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let proto = vm.arg(&c, 0).as_obj().unwrap_or(ids::ARRAY_BUFFER_PROTO);
    let (length, max) = (vm.arg_number(&c, 1)?, max_of(vm, &c, 2));
    if max.is_some_and(|max| max > vm.st.heap.limit) {
        return Err(vm.range_error("Array buffer allocation failed"));
    }
    let bytes = vm.new_bytes(length)?;
    Ok(Value::Obj(vm.new_buffer(proto, bytes, max)).into())
}

/// `$bufferLength(value)`: -1 if it is detached, undefined for anything but a buffer.
fn buffer_length(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let buffer = vm.arg(&c, 0).as_obj().and_then(|id| vm.st.heap.buffer(id));
    Ok(match buffer {
        None => Value::Undefined,
        Some(buffer) if buffer.detached => Value::Int(-1),
        Some(buffer) => Value::count(buffer.bytes.len()),
    }
    .into())
}

/// `$bufferResize(buffer, length)`: the length is at most the largest one.
fn buffer_resize(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let id = vm.arg_obj(&c, 0)?;
    let length = vm.arg_number(&c, 1)?.to_usize().unwrap_or(0);
    let before = vm.st.heap.buffer(id).map_or(0, |buffer| buffer.bytes.len());
    // The stored largest length may be any number.
    let most = vm.st.heap.limit;
    let Some(buffer) = vm.st.heap.buffer_mut(id) else { return Ok(Value::Undefined.into()) };
    if buffer.max.is_none_or(|max| length as u64 > max.min(most)) {
        return Err(vm.range_error("Invalid array buffer length"));
    }
    buffer.bytes.resize(length, 0);
    vm.charge_bytes(length.abs_diff(before));
    vm.st.heap.charge(length.saturating_sub(before));
    vm.st.heap.bytes = vm.st.heap.bytes.saturating_sub(before.saturating_sub(length) as u64);
    Ok(Value::Undefined.into())
}

/// `$bufferTransfer(buffer, length, max)`: a new buffer with the bytes of this one, which is detached.
fn buffer_transfer(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let id = vm.arg_obj(&c, 0)?;
    let (length, max) = (vm.arg_number(&c, 1)?, max_of(vm, &c, 2));
    let size =
        length.to_usize().filter(|n| *n as u64 <= vm.st.heap.limit && max.is_none_or(|max| *n as u64 <= max));
    let Some(size) = size else { return Err(vm.range_error("Array buffer allocation failed")) };
    let Some(old) = vm.st.heap.buffer_mut(id) else { return Ok(Value::Undefined.into()) };
    let mut bytes = std::mem::take(&mut old.bytes);
    let before = bytes.len();
    old.detached = true;
    vm.st.heap.bytes = vm.st.heap.bytes.saturating_sub(before as u64);
    bytes.resize(size, 0);
    vm.charge_bytes(size.abs_diff(before));
    Ok(Value::Obj(vm.new_buffer(ids::ARRAY_BUFFER_PROTO, bytes, max)).into())
}

/// `$bufferMove(from, to)`: `to`, a new buffer, gets the bytes of `from`, which is detached.
fn buffer_move(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let (from, to) = (vm.arg_obj(&c, 0)?, vm.arg_obj(&c, 1)?);
    let Some(old) = vm.st.heap.buffer_mut(from) else { return Ok(Value::Undefined.into()) };
    let moved = ByteBuffer { bytes: std::mem::take(&mut old.bytes), max: old.max, detached: false };
    old.detached = true;
    if let Some(new) = vm.st.heap.buffer_mut(to) {
        *new = moved;
    }
    Ok(Value::Undefined.into())
}

/// `$bytesCopy(to, at, from, start, count)` between buffers.
fn bytes_copy(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let (to, from) = (vm.arg_obj(&c, 0)?, vm.arg_obj(&c, 2)?);
    let number = |vm: &mut Vm<'_>, i| vm.arg_number(&c, i).map(|n| n.to_usize().unwrap_or(usize::MAX));
    let (at, start, count) = (number(vm, 1)?, number(vm, 3)?, number(vm, 4)?);
    let (Some(end), Some(last)) = (start.checked_add(count), at.checked_add(count)) else {
        return Ok(Value::Undefined.into());
    };
    let Some(bytes) = vm.st.heap.bytes_at(from, start..end).map(<[u8]>::to_vec) else {
        return Ok(Value::Undefined.into());
    };
    vm.charge_bytes(count);
    if let Some(target) = vm.st.heap.bytes_at_mut(to, at..last) {
        target.copy_from_slice(&bytes);
    }
    Ok(Value::Undefined.into())
}

/// `$viewNew(type, proto, buffer, offset, length)`: a typed array, or a `DataView` if the type is -1; without a length it follows
/// the buffer's. The caller has checked the bounds.
fn view_new(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let (proto, buffer) = (vm.arg_obj(&c, 1)?, vm.arg_obj(&c, 2)?);
    let element = match vm.arg(&c, 0) {
        Value::Int(number) => usize::try_from(number).ok().and_then(ElementType::of_number),
        _ => None,
    };
    let offset = vm.arg_number(&c, 3)?.to_u64().unwrap_or(0);
    let length = vm.arg(&c, 4).as_num().and_then(|length| length.to_u64());
    let view = ByteView { element, buffer, offset, length };
    Ok(Value::Obj(vm.st.heap.new_object(proto, ObjectKind::View(Box::new(view)))).into())
}
