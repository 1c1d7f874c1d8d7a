//! Text and bytes: natives of `TextEncoder`, `TextDecoder`, the digits of `Uint8Array` and `crypto.getRandomValues`.

use super::ids;
use super::math::next_random;
use super::natives::{Ctor, CtorCode, EMPTY, Module};
use crate::heap::text::Text;
use crate::pure::base64::{self, DecodedDigits, LastChunk};
use crate::value::{Id, Value};
use crate::vm::{NativeCall, Res, Ret, Vm};
use vm_system_web::DecodeError;

const fn ctor(id: Id, name: &'static str, code: &'static str, proto: Id) -> Ctor {
    Ctor {
        id,
        name,
        length: 0,
        code: CtorCode::Prelude(code),
        proto,
        parent: ids::FUNCTION_PROTO,
        proto_parent: ids::OBJECT_PROTO,
        global: true,
    }
}

pub(super) const MODULE: Module = Module {
    intrinsics: &[
        ("textEncode", text_encode),
        ("textEncodeInto", text_encode_into),
        ("encodingOf", |vm, c| {
            let name = vm_system_web::encoding_of(&vm.arg_text(&c, 0));
            Ok(name.map_or(Value::Undefined, |name| vm.st.heap.str_value(&name)).into())
        }),
        ("textDecode", text_decode),
        ("base64Bytes", base64_bytes),
        ("hexBytes", hex_bytes),
        ("bytesBase64", |vm, c| {
            let (url, padding) = (vm.arg(&c, 1) == Value::Bool(true), vm.arg(&c, 2) == Value::Bool(true));
            let text = base64::to_base64(vm.bytes_of(vm.arg(&c, 0)).unwrap_or_default(), url, padding);
            digits(vm, &text)
        }),
        ("bytesHex", |vm, c| {
            let text = base64::to_hex(vm.bytes_of(vm.arg(&c, 0)).unwrap_or_default());
            digits(vm, &text)
        }),
        ("randomFill", random_fill),
    ],
    ctors: &[
        ctor(ids::TEXT_ENCODER, "TextEncoder", "TextEncoder_", ids::TEXT_ENCODER_PROTO),
        ctor(ids::TEXT_DECODER, "TextDecoder", "TextDecoder_", ids::TEXT_DECODER_PROTO),
    ],
    lists: &[
        (ids::TEXT_ENCODER_PROTO, "TextEncoderPrototype"),
        (ids::TEXT_DECODER_PROTO, "TextDecoderPrototype"),
        (ids::UINT8_ARRAY, "Uint8ArrayStatics"),
        (ids::UINT8_ARRAY_PROTO, "Uint8ArrayPrototype"),
        (ids::CRYPTO, "CryptoFunctions"),
    ],
    source: include_str!("encoding.js"),
    extra: |r| {
        for (object, tag) in
            [(ids::TEXT_ENCODER_PROTO, "TextEncoder"), (ids::TEXT_DECODER_PROTO, "TextDecoder")]
        {
            r.tag(object, tag);
            r.show_members(object);
        }
    },
    ..EMPTY
};

fn text_arg<'v>(vm: &'v Vm<'_>, c: &NativeCall, i: usize) -> Text<'v> {
    match vm.arg(c, i) {
        Value::Str(id) => vm.st.heap.str(id),
        _ => Text::Narrow(&[]),
    }
}

fn digits(vm: &mut Vm<'_>, text: &[u8]) -> Res<Ret> {
    vm.charge_bytes(text.len() * 8);
    Ok(Value::Str(vm.st.heap.new_narrow(text)).into())
}

/// `$textEncode(text)`: UTF-8; lone surrogates become U+FFFD.
fn text_encode(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let bytes = text_arg(vm, &c, 0).to_utf8().into_bytes();
    Ok(vm.new_uint8_array(bytes).into())
}

/// `$textEncodeInto(text, array)`: units that were read and bytes that were written; no character is cut.
fn text_encode_into(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let array = vm.arg(&c, 1);
    let space = vm.bytes_of(array).map_or(0, <[u8]>::len);
    let text = text_arg(vm, &c, 0);
    // No unit is shorter than a byte; one more, because a surrogate is one half of a character.
    let units = text.slice(0, text.len().min(space.saturating_add(1))).to_wide();
    let cut = units.len() < text.len();
    let (mut read, mut bytes) = (0, Vec::new());
    for decoded in char::decode_utf16(units.iter().copied()) {
        let one = decoded.unwrap_or(char::REPLACEMENT_CHARACTER);
        let mut utf8 = [0; 4];
        let encoded = one.encode_utf8(&mut utf8).as_bytes();
        let half = cut && read + 1 == units.len();
        if half || bytes.len() + encoded.len() > space {
            break;
        }
        read += one.len_utf16();
        bytes.extend_from_slice(encoded);
    }
    let written = bytes.len();
    put_bytes(vm, array, &bytes);
    Ok(vm.new_array(vec![Value::count(read), Value::count(written)]).into())
}

/// Overwrites the first bytes of a `Uint8Array`.
fn put_bytes(vm: &mut Vm<'_>, array: Value, bytes: &[u8]) {
    vm.charge_bytes(bytes.len() * 8);
    let place =
        vm.st.heap.typed_array(array).map(|view| (view.buffer, vm.st.heap.range_of(view, 0, bytes.len())));
    if let Some((buffer, Some(range))) = place
        && let Some(to) = vm.st.heap.bytes_at_mut(buffer, range)
    {
        to.copy_from_slice(bytes);
    }
}

/// `$textDecode(encoding, pending, input, fatal, keepMark, stream)`: text, bytes that are pending now, how many bytes were decoded;
/// 0 for invalid bytes, 1 if the encoding cannot be decoded in chunks.
fn text_decode(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let flag = |i| vm.arg(&c, i) == Value::Bool(true);
    let (fatal, keep_mark, stream) = (flag(3), flag(4), flag(5));
    let encoding = vm.arg_text(&c, 0);
    let mut bytes = vm.bytes_of(vm.arg(&c, 1)).unwrap_or_default().to_vec();
    bytes.extend_from_slice(vm.bytes_of(vm.arg(&c, 2)).unwrap_or_default());
    vm.charge_bytes(bytes.len() * 8);
    match vm_system_web::decode(&encoding, &bytes, fatal, keep_mark, !stream) {
        Err(DecodeError::Invalid) => Ok(Value::Int(0).into()),
        Err(DecodeError::Chunks) => Ok(Value::Int(1).into()),
        Ok((text, used)) => {
            let rest = bytes.get(used..).unwrap_or_default().to_vec();
            let pending = if rest.is_empty() { Value::Undefined } else { vm.new_uint8_array(rest) };
            let text = vm.st.heap.str_value(&text);
            Ok(vm.new_array(vec![text, pending, Value::count(used)]).into())
        }
    }
}

/// Bytes of a text: a new `Uint8Array`, undefined if the text is invalid; with a target, its bytes are overwritten, and the result is
/// a list of the units that were read, the bytes that were written, and whether the text is valid.
fn stored(vm: &mut Vm<'_>, target: Value, decoded: &DecodedDigits) -> Ret {
    if target == Value::Undefined {
        return if decoded.invalid { Value::Undefined } else { vm.new_uint8_array(decoded.bytes.clone()) }
            .into();
    }
    put_bytes(vm, target, &decoded.bytes);
    let counts =
        vec![Value::count(decoded.read), Value::count(decoded.bytes.len()), Value::Bool(!decoded.invalid)];
    vm.new_array(counts).into()
}

/// Bytes that fit into the target.
fn most(vm: &Vm<'_>, target: Value) -> usize {
    vm.bytes_of(target).map_or(usize::MAX, <[u8]>::len)
}

/// `$base64Bytes(text, url, lastChunk, target)`
fn base64_bytes(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let last = match vm.arg(&c, 2) {
        Value::Int(1) => LastChunk::Strict,
        Value::Int(2) => LastChunk::StopBeforePartial,
        _ => LastChunk::Loose,
    };
    let target = vm.arg(&c, 3);
    let most = most(vm, target);
    let decoded = base64::from_base64(&text_arg(vm, &c, 0), vm.arg(&c, 1) == Value::Bool(true), last, most);
    vm.charge_bytes(decoded.read * 8);
    Ok(stored(vm, target, &decoded))
}

/// `$hexBytes(text, target)`
fn hex_bytes(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let target = vm.arg(&c, 1);
    let decoded = base64::from_hex(&text_arg(vm, &c, 0), most(vm, target));
    vm.charge_bytes(decoded.read * 8);
    Ok(stored(vm, target, &decoded))
}

/// `$randomFill(array)`: of the program's generator, as `crypto.randomUUID`: no secrets.
fn random_fill(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let array = vm.arg(&c, 0);
    let length = vm.bytes_of(array).map_or(0, <[u8]>::len);
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        bytes.extend(next_random(vm).to_le_bytes());
    }
    bytes.truncate(length);
    let place = vm.st.heap.typed_array(array).map(|view| {
        let count = vm.st.heap.count_of(view).unwrap_or(0);
        (view.buffer, vm.st.heap.range_of(view, 0, count))
    });
    if let Some((buffer, Some(range))) = place
        && let Some(to) = vm.st.heap.bytes_at_mut(buffer, range)
        && to.len() == bytes.len()
    {
        to.copy_from_slice(&bytes);
    }
    Ok(Value::Undefined.into())
}
